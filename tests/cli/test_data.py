"""`searchapp data` with a server on loopback that has the sample of nlps in place of the official data."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import signal
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from searchapp.fetching import download, sources
from searchapp.fetching.fetch import STAGING
from tests.cli.conftest import SAMPLE, Cli
from tests.cli.test_json_reference import missing_keys
from tests.fetching.server import Fault, FileServer
from tests.terminal import Terminal

BASE = "/data.example/nlps/"
NAMES = ("knowledge_base.json", "train_set.json", "dev_set.json")


def toml() -> str:
    """Write a list of sources: the sample as the files of nlps, and an archive as checkthat."""
    rows = [
        f'{{ path = "{name}", size = {len(content)}, git_blob = "{blob}" }},'
        for name in NAMES
        for content in [(SAMPLE / name).read_bytes()]
        for blob in [hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()]
    ]
    return f"""
[nlps]
page = "https://data.example/"
terms = "To be used with care."
[[nlps.groups]]
base = "https:/{BASE}"
files = [
{chr(10).join(rows)}
]

[checkthat]
page = "https://data.example/"
terms = "To be used with care."
[[checkthat.archives]]
url = "http://data.example/speeches.zip"
sha256 = "{hashlib.sha256(archive()).hexdigest()}"
at_most = 100_000
unpacked_at_most = 1_000_000
top = "speeches/"
members = [{{ from = "training/*.tsv", to = "training/" }}]
"""


def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for number in range(12):
            file.writestr(zipfile.ZipInfo(f"speeches/training/{number}.tsv"), f"{number}\tA\tB\t0\n")
    return buffer.getvalue()


@pytest.fixture
def sources_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file in place of the list of sources."""
    path = tmp_path / "sources.toml"
    path.write_text(toml())
    monkeypatch.setattr(sources, "_FILE", path)
    sources._read.cache_clear()
    yield path
    sources._read.cache_clear()


@pytest.fixture
def web(sources_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """The server, which is set as the mirror."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "FIRST_WAIT_SECONDS", 0.01)
    with FileServer() as web:
        web.files.update({BASE + name: (SAMPLE / name).read_bytes() for name in NAMES})
        web.files["/data.example/speeches.zip"] = archive()
        monkeypatch.setenv("SEARCHAPP_DATA_MIRROR", web.url)
        yield web


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home" / "data" / "nlps"


def test_fetched_data_is_found_by_index_and_rank(
    web: FileServer, cli: Cli, home: Path, tmp_path: Path
) -> None:
    got = cli("data", "get", "nlps", "--accept-terms")
    assert got.code == 0, got.stderr
    assert got.stdout == ""
    for part in (
        "nlps",
        "To be used with care.",
        f"{web.url}{BASE}",
        "3 files, ",
        str(home),
        "dev_set.json",
    ):
        assert part in got.stderr
    assert cli("index", "nlps").code == 0
    ranked = cli("rank", "nlps", "--split", "dev", "--depth", "10", "--out", tmp_path / "run")
    assert ranked.code == 0, ranked.stderr
    verified = cli("data", "verify", "nlps")
    assert verified.code == 0
    assert "3 files in" in verified.stderr and "byte for byte" in verified.stderr


def test_the_result_as_json(web: FileServer, offline: Cli, home: Path) -> None:
    got = offline("data", "get", "nlps", "--accept-terms", "--json", "--quiet")
    assert got.stderr == ""
    assert (got.json["task"], got.json["folder"], got.json["present"]) == ("nlps", str(home), [])
    assert not missing_keys("data get", got.json)
    for entry in got.json["fetched"]:
        content = (home / entry["path"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
        assert entry["from"] == f"https:/{BASE}{entry['path']}"
    again = offline("data", "get", "nlps", "--json")
    assert again.code == 0  # no terms to accept, since nothing is fetched
    assert again.json["fetched"] == []
    assert sorted(again.json["present"]) == sorted(NAMES)
    assert "all official files are already in" in again.stderr


def test_without_a_terminal_terms_are_not_accepted(web: FileServer, offline: Cli, home: Path) -> None:
    result = offline("data", "get", "nlps")
    assert result.code == 2
    assert result.stderr == (
        "searchapp: there is no terminal to accept the terms of the data of nlps: read them with "
        "`searchapp data list nlps`, and add --accept-terms\n"
    )
    assert not web.requests_of and not home.exists()


def test_another_folder_can_be_named(web: FileServer, offline: Cli, home: Path, tmp_path: Path) -> None:
    assert offline("data", "get", "nlps", "--accept-terms", "--out", tmp_path / "mine").code == 0
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {*NAMES, "fetched.json"}
    assert not home.exists()
    assert offline("data", "verify", "nlps", "--data", tmp_path / "mine").code == 0
    (tmp_path / "mine" / "dev_set.json").unlink()
    missing = offline("data", "verify", "nlps", "--data", tmp_path / "mine")
    assert f"`searchapp data get nlps --out {tmp_path / 'mine'}` fetches missing files" in missing.stderr


def test_an_archive_of_many_files_is_fetched_and_listed(web: FileServer, offline: Cli) -> None:
    before = offline("data", "list", "checkthat")
    assert "checkthat  not fetched" in before.stdout
    assert "training/*.tsv" in before.stdout and "size unknown" in before.stdout
    got = offline("data", "get", "checkthat", "--accept-terms")
    assert got.code == 0, got.stderr
    assert "speeches.zip" in got.stderr and "fetched 12 files" in got.stderr
    after = offline("data", "list", "checkthat")
    assert "checkthat  complete" in after.stdout and "training/11.tsv" in after.stdout
    assert offline("data", "verify", "checkthat").code == 0


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        (Fault(status=404), 1, "answers 404 Not Found: nothing was fetched from it; the file may have moved"),
        (Fault(status=429), 1, "answers 429 Too Many Requests: try again later"),
        (Fault(status=503), 1, "answers 503 Service Unavailable: try again later"),
        (Fault(cut_after=10), 1, "60 bytes are kept: run the same command again to resume"),
        (Fault(corrupt=True), 4, "is not the expected file, git-blob:"),
        (Fault(body=b"<html>"), 4, "has 6 bytes, and the expected file has"),
    ],
)
def test_download_errors_are_reported_in_one_line(
    web: FileServer, offline: Cli, home: Path, fault: Fault, code: int, message: str
) -> None:
    web.faults[BASE + "train_set.json"] = fault
    result = offline("data", "get", "nlps", "--accept-terms", "--quiet")
    assert result.code == code
    error = result.stderr.splitlines()[-1]
    assert error.startswith("searchapp: ") and f"{BASE}train_set.json" in error and message in error
    assert not any((home / name).exists() for name in NAMES)


def test_an_unreachable_source_fails_with_1(
    web: FileServer, offline: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_DATA_MIRROR", "http://127.0.0.1:9")
    result = offline("data", "get", "nlps", "--accept-terms", "--quiet")
    assert result.code == 1
    assert "can't be reached (connection refused; check the network" in result.stderr.splitlines()[-1]
    assert not home.exists() and not home.parent.exists()


def test_an_invalid_mirror_is_a_usage_error(
    web: FileServer, offline: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_DATA_MIRROR", "mirror")
    assert offline("data", "get", "nlps", "--accept-terms").code == 2


def test_verify_reports_changed_and_missing_files(web: FileServer, offline: Cli, home: Path) -> None:
    nothing = offline("data", "verify", "nlps")
    assert nothing.code == 4 and "fetch it with `searchapp data get nlps`" in nothing.stderr
    offline("data", "get", "nlps", "--accept-terms")
    (home / "dev_set.json").write_text("{}")
    (home / "train_set.json").unlink()
    result = offline("data", "verify", "nlps", "--json")
    assert result.code == 4
    assert "changed file: dev_set.json" in result.stderr and "missing file: train_set.json" in result.stderr
    states = {file["path"]: file["state"] for file in result.json["files"]}
    assert states == {"knowledge_base.json": "intact", "train_set.json": "missing", "dev_set.json": "changed"}
    assert result.json["complete"] is False
    refused = offline("data", "get", "nlps", "--accept-terms")
    assert refused.code == 2 and "or replace them with --overwrite" in refused.stderr
    assert offline("data", "get", "nlps", "--accept-terms", "--overwrite").code == 0
    assert offline("data", "verify", "nlps").code == 0


def test_verify_warns_of_unofficial_files(web: FileServer, offline: Cli, tmp_path: Path) -> None:
    offline("data", "get", "checkthat", "--accept-terms", "--out", tmp_path / "c")
    (tmp_path / "c" / "training" / "mine.tsv").write_text("x")
    result = offline("data", "verify", "checkthat", "--data", tmp_path / "c", "--json")
    assert result.code == 0
    assert "mine.tsv is not an official file" in result.stderr
    assert result.json["unofficial_files"] == ["training/mine.tsv"]


def test_the_list_has_sizes_sources_terms_and_states(web: FileServer, offline: Cli, home: Path) -> None:
    offline("data", "get", "nlps", "--accept-terms")
    (home / "dev_set.json").unlink()
    listed = offline("data", "list", "--json").json["tasks"]
    assert [task["task"] for task in listed] == ["nlps", "checkthat"]
    nlps = listed[0]
    assert (nlps["terms"], nlps["complete"], nlps["folder"]) == ("To be used with care.", False, str(home))
    assert {file["path"]: (file["expected"], file["state"]) for file in nlps["files"]} == {
        name: ((SAMPLE / name).stat().st_size, "missing" if name == "dev_set.json" else "present")
        for name in NAMES
    }
    text = offline("data", "list").stdout
    assert "nlps  2 of 3 files" in text and "checkthat  not fetched" in text
    assert "To be used with care." in text and f"https:/{BASE}" in text


def test_an_incomplete_download_is_not_used_as_data(web: FileServer, offline: Cli, home: Path) -> None:
    web.faults[BASE + "dev_set.json"] = Fault(status=404)
    assert offline("data", "get", "nlps", "--accept-terms").code == 1
    assert (home / STAGING).is_dir()
    tasks = {task["task"]: task for task in offline("tasks", "--json").json["tasks"]}
    assert tasks["nlps"]["data_found"] is False
    assert offline("data", "verify", "nlps").code == 4
    indexed = offline("index", "nlps")
    assert indexed.code == 4
    assert indexed.stderr == (
        f"searchapp: {home} has no data of nlps: fetch it with "
        "`searchapp data get nlps`, or give its folder with --data\n"
    )


SCRIPT = """
import os, sys
from pathlib import Path
from searchapp.fetching import sources
sources._FILE = Path(sys.argv.pop(1))
os.dup2(os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT), 1)
from searchapp.cli import main
main()
"""


@pytest.fixture
def get(web: FileServer, sources_file: Path, tmp_path: Path) -> Callable[..., Terminal]:
    """Runs `data get` in a terminal, with its standard output in the file `printed`."""
    program = ["-c", SCRIPT, str(sources_file), str(tmp_path / "printed")]

    def start(*arguments: str) -> Terminal:
        home = tmp_path / "home"
        return Terminal("data", "get", *arguments, home=home, program=program, SEARCHAPP_DATA_MIRROR=web.url)

    return start


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"])
def test_a_user_can_decline_the_terms(
    web: FileServer, get: Callable[..., Terminal], tmp_path: Path, answer: str
) -> None:
    with get("nlps") as terminal:
        terminal.wait_for(r"Accept these terms and fetch the files\? \[y/N\] ")
        terminal.press(answer)
        assert terminal.wait_for_end() == 1
    assert terminal.text.rstrip().endswith("searchapp: terms not accepted: nothing was fetched")
    assert not web.requests_of and not (tmp_path / "home").exists()


def test_a_user_can_interrupt_the_prompt(get: Callable[..., Terminal], tmp_path: Path) -> None:
    with get("nlps") as terminal:
        terminal.wait_for(r"Accept these terms and fetch the files\? \[y/N\] ")
        time.sleep(0.5)  # a signal just before the program waits for input would be missed
        terminal.signal(signal.SIGINT)
        assert terminal.wait_for_end() == 130
    assert not (tmp_path / "home").exists()


def test_a_user_can_accept_the_terms(get: Callable[..., Terminal], home: Path, tmp_path: Path) -> None:
    with get("nlps", "--json") as terminal:
        terminal.wait_for(r"Accept these terms and fetch the files\? \[y/N\] ")
        assert "To be used with care." in terminal.text
        terminal.press("y\n")
        assert terminal.wait_for_end() == 0
    printed = (tmp_path / "printed").read_text()
    assert "fetched 3 files into" in terminal.text
    assert printed.startswith("{") and json.loads(printed)["folder"] == str(home)
    assert json.loads((home / "fetched.json").read_text())["terms"] == "To be used with care."


def test_an_interrupted_download_is_resumed(
    web: FileServer, get: Callable[..., Terminal], sources_file: Path, offline: Cli, tmp_path: Path
) -> None:
    web.files["/data.example/speeches.zip"] = content = os.urandom(200_000)
    before, after = (hashlib.sha256(file).hexdigest() for file in (archive(), content))
    text = sources_file.read_text().replace(before, after)
    sources_file.write_text(text.replace("at_most = 100_000", "at_most = 200_000"))
    web.faults["/data.example/speeches.zip"] = [Fault(pause=0.2)]
    folder = tmp_path / "home" / "data" / "checkthat"
    with get("checkthat", "--accept-terms") as terminal:
        while not any(part.stat().st_size for part in folder.glob(f"{STAGING}/downloads/*.part")):
            time.sleep(0.01)
        terminal.signal(signal.SIGINT)
        assert terminal.wait_for_end() == 130
    assert re.search(r"kept \d.*: run the same command again to resume", terminal.text)
    assert terminal.text.rstrip().endswith("searchapp: interrupted")
    assert b"Traceback" not in terminal.raw
    sources._read.cache_clear()
    result = offline("data", "get", "checkthat", "--accept-terms")
    assert "from an earlier attempt" in result.stderr
    assert web.ranges("/data.example/speeches.zip")[-1] not in (None, "bytes=0-")
    assert result.code == 4 and "speeches.zip is damaged" in result.stderr  # these bytes are no archive
