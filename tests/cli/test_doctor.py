"""`searchapp doctor`: checks of the engine, of versions, of index files and of the home directory."""

from __future__ import annotations

import importlib.metadata
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchapp import resources
from tests.cli.conftest import SAMPLE, Cli


def test_without_a_server_all_checks_pass(offline: Cli) -> None:
    result = offline("doctor")
    assert result.code == 0
    assert "embedded (default)" in result.stdout
    assert "not indexed yet: `searchapp index nlps --data DIR` builds the index" in result.stdout


def test_an_index_is_reported_with_its_size(offline: Cli) -> None:
    offline("index", "nlps", "--data", SAMPLE)
    assert "index nlps: 70 documents, built 2" in offline("doctor").stdout


@pytest.fixture
def other_numpy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reports NumPy 99.0, an untested version, as installed."""

    installed = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata,
        "version",
        lambda package: "99.0" if package == "numpy" else installed(package),
    )
    resources.untested_versions.cache_clear()
    yield
    resources.untested_versions.cache_clear()


def test_a_version_outside_the_tested_range_is_a_warning(offline: Cli, other_numpy: None) -> None:
    result = offline("doctor", "--json")
    (check,) = [check for check in result.json["checks"] if check["name"] == "tested versions"]
    assert result.code == 0 and check["verdict"] == "warning"
    assert check["finding"].startswith("outside the tested range: numpy 99.0 (tested: ")


def test_a_run_names_untested_versions(offline: Cli, other_numpy: None, tmp_path: Path) -> None:
    offline("index", "nlps", "--data", SAMPLE)
    assert offline("rank", "nlps", "--split", "dev", "--out", tmp_path / "run").code == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["untested_packages"] == {"numpy": "99.0"}
    assert offline("runs", "verify", tmp_path / "run").code == 0


def index_file(home: Path, name: str) -> Path:
    (file,) = home.glob(f"indexes/searchapp-nlps/*/{name}")
    return file


def test_the_files_of_an_index_are_verified(offline: Cli) -> None:
    offline("index", "nlps", "--data", SAMPLE)
    checks = {check["name"]: check for check in offline("doctor", "--json").json["checks"]}
    assert checks["files of nlps"]["verdict"] == "ok"
    assert checks["files of nlps"]["finding"].startswith("intact")


def test_an_altered_index_file_fails(offline: Cli, tmp_path: Path) -> None:
    offline("index", "nlps", "--data", SAMPLE)
    file = index_file(tmp_path / "home", "documents.npy")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1  # the size is the same, so that only the digest changes
    file.write_bytes(content)
    result = offline("doctor")
    assert result.code == 1
    expected = "damaged (documents.npy was altered): build it again with `searchapp index nlps --data DIR`"
    assert expected in result.stdout
    assert "checks failed: files of nlps" in result.stderr
    offline("index", "nlps", "--data", SAMPLE, "--rebuild")
    assert offline("doctor").code == 0


@pytest.mark.parametrize("name", ["manifest.json", "ids.ranks.npy"])
def test_an_index_that_lacks_a_file_is_reported_as_damaged(offline: Cli, tmp_path: Path, name: str) -> None:
    offline("index", "nlps", "--data", SAMPLE)
    index_file(tmp_path / "home", name).unlink()
    result = offline("doctor")
    assert result.code == 1
    assert "index nlps: not indexed yet" not in result.stdout
    assert name in result.stdout and "build it again with `searchapp index nlps --data DIR`" in result.stdout


def test_damage_of_the_other_engine_is_a_warning(
    offline: Cli, server: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offline("--engine", "embedded", "index", "nlps", "--data", SAMPLE)
    (file,) = (tmp_path / "home").glob("indexes/*/*/manifest.json")
    file.unlink()
    result = server("doctor", "--json")
    (check,) = [check for check in result.json["checks"] if check["name"] == "files of nlps"]
    assert result.code == 0 and check["verdict"] == "warning"


def test_both_engines_agree_without_leftovers(
    server: Cli, elasticsearch_url: str, index_prefix: str, tmp_path: Path
) -> None:
    checks = {check["name"]: check for check in server("doctor", "--json").json["checks"]}
    assert checks["engine"]["finding"].endswith("(chosen by SEARCHAPP_URL)")
    assert checks["engines agree"]["verdict"] == "ok"
    finding = checks["engines agree"]["finding"]
    assert "both engines return the same documents and scores for 10 sample topics" in finding
    with urllib.request.urlopen(f"{elasticsearch_url}/_cat/indices/{index_prefix}*", timeout=30) as answer:
        assert answer.read() == b""
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file() and "doctor" in str(path)]


def test_an_unreachable_server_fails(offline: Cli) -> None:
    result = offline("doctor", "--url", "http://127.0.0.1:9")
    assert result.code == 1
    assert "no Elasticsearch answers at http://127.0.0.1:9" in result.stdout
    assert "checks failed: engine answers" in result.stderr


def test_an_unusable_home_directory_fails(offline: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = offline("doctor", "--home", tmp_path / "file" / "home")
    assert result.code == 1 and "is not writable" in result.stdout
