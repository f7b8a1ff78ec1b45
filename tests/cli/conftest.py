from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import searchapp
from searchapp.cli import app
from searchapp.config.settings import DECLARED
from searchapp.runs import directory
from tests.server.rest import Server

SAMPLES = Path(searchapp.__file__).parent / "samples"
SAMPLE = SAMPLES / "nlps"


@dataclass(frozen=True)
class Result:
    """The exit code and output of a command."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


Cli = Callable[..., Result]


EMBEDDED: Mapping[str, str | None] = {f"SEARCHAPP_{name}": None for name in ("URL", "ENGINE", "INDEX_PREFIX")}
"""The environment of a command that uses the embedded engine, whatever engine the tests use."""


def run_command(
    *arguments: object,
    typed: str | bytes | None = None,
    environment: Mapping[str, str | None] | None = None,
) -> Result:
    """Run a command of searchapp in this process, with `typed` as its standard input."""
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(app, words, input=typed, env=environment)
    return Result(result.exit_code, result.stdout, result.stderr)


def read_rankings(run: Path) -> dict[str, list[str]]:
    """Read the documents of each topic from a run directory, without searchapp."""
    rankings: dict[str, list[str]] = {}
    for line in (run / "run.trec").read_text().splitlines():
        topic, _q0, document, *_rest = line.split()
        rankings.setdefault(topic, []).append(document)
    return rankings


def index_and_rank(cli: Cli, task: str, data: Path, out: Path, *options: object) -> Path:
    """Index the documents of a folder and rank with options of `searchapp rank`; return the run directory."""
    assert cli("index", task, "--data", data).code == 0
    ranked = cli("rank", task, "--data", data, "--out", out, *options)
    assert ranked.code == 0, ranked.stderr
    return out


def change_manifest(run: Path, **changes: Any) -> None:
    """Change members of a run's manifest, and its digest accordingly."""
    path = run / directory.MANIFEST
    manifest = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps(manifest))
    path.write_text(json.dumps({**manifest, "digest": directory.read_manifest(run).own_digest()}))


def clear_variables(monkeypatch: pytest.MonkeyPatch, *excepted: str) -> None:
    """Unset the variables of all settings except the named ones."""
    for setting in DECLARED:
        if setting.variable and setting.name not in excepted:
            monkeypatch.delenv(setting.variable, raising=False)


def shares_indexes(node: pytest.Item) -> bool:
    """Whether a test uses samples that earlier tests indexed, see the marker `shared_indexes`."""
    return bool(node.get_closest_marker("shared_indexes")) and not node.get_closest_marker("own_indexes")


@pytest.fixture(scope="session")
def samples_indexes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of indexes of the embedded engine that tests share."""
    return tmp_path_factory.mktemp("indexes")


@pytest.fixture
def offline(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Runs commands on the embedded engine, with indexes of the test or with shared ones."""
    clear_variables(monkeypatch, "data_mirror")  # which other fixtures set
    home = tmp_path / "home"
    monkeypatch.setenv("SEARCHAPP_HOME", str(home))
    if shares_indexes(request.node):
        home.mkdir()
        (home / "indexes").symlink_to(request.getfixturevalue("samples_indexes"))
    return run_command


@pytest.fixture
def data(task: str, tmp_path: Path) -> Path:
    """A copy of the task's sample that a test may damage."""
    return Path(shutil.copytree(SAMPLES / task, tmp_path / "data"))


@pytest.fixture(scope="session")
def samples_prefix(elasticsearch_url: str) -> Iterator[str]:
    """The prefix of indexes of samples that tests share, see the marker `shared_indexes`."""
    prefix = f"test-{secrets.token_hex(6)}"
    yield prefix
    Server(elasticsearch_url).delete_indices(prefix)


@pytest.fixture
def server(
    request: pytest.FixtureRequest, offline: Cli, elasticsearch_url: str, monkeypatch: pytest.MonkeyPatch
) -> Cli:
    """Runs commands on the real server, with indexes of the test or with shared ones of samples."""
    shared = shares_indexes(request.node)
    prefix: str = request.getfixturevalue("samples_prefix" if shared else "index_prefix")
    monkeypatch.setenv("SEARCHAPP_URL", elasticsearch_url)
    monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", prefix)
    return offline


@pytest.fixture(params=["embedded", pytest.param("elasticsearch", marks=pytest.mark.elasticsearch)])
def cli(request: pytest.FixtureRequest) -> Cli:
    """Runs commands on each of the two engines."""
    run: Cli = request.getfixturevalue("offline" if request.param == "embedded" else "server")
    return run


@pytest.fixture(scope="session")
def indexed_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory with an index of the sample of nlps, to copy."""
    home = tmp_path_factory.mktemp("indexed") / "home"
    result = run_command("index", "nlps", "--data", SAMPLE, "--home", home, environment=EMBEDDED)
    assert result.code == 0, result.stderr
    return home


@pytest.fixture
def indexed(request: pytest.FixtureRequest, cli: Cli, tmp_path: Path) -> Cli:
    """As `cli`, with an index of the sample of nlps."""
    if request.node.callspec.params["cli"] == "embedded" and not shares_indexes(request.node):
        shutil.copytree(request.getfixturevalue("indexed_home"), tmp_path / "home")
    else:
        assert cli("index", "nlps", "--data", SAMPLE).code == 0
    return cli


@pytest.fixture
def run(indexed: Cli, tmp_path: Path) -> Path:
    """A run over the dev split of the sample of nlps."""
    path = tmp_path / "run"
    assert indexed("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", path).code == 0
    return path


@pytest.fixture
def indexed_server(server: Cli) -> Cli:
    """As `server`, with an index of the sample of nlps."""
    assert server("index", "nlps", "--data", SAMPLE).code == 0
    return server


def official_figures(result: Result, expected: Mapping[str, Any]) -> Any:
    """Return the official figures of `evaluate --json`, or None if the official scorer is expected to refuse."""
    if "error" in expected:
        assert (result.code, result.stdout) == (4, "")
        assert "the official scorer would not score this file" in result.stderr
        assert expected["error"] in result.stderr
        return None
    assert result.code == 0, result.stderr
    return result.json["official"]
