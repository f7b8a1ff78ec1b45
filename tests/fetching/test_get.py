"""Fetching the files of a source: downloading, unpacking, comparing, and continuing after failures."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import signal
import time
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.fetching import fetch as get
from searchapp.fetching.download import Downloader
from searchapp.fetching.fetch import STAGING, fetch, kept_bytes, make_plan, staging
from searchapp.fetching.sources import RECEIPT, Source, check, has_data, look, parse, unofficial_files
from searchapp.progress import SilentProgress
from tests.fetching.server import Fault, FileServer
from tests.programs import Program

PLAIN = {"base.json": b'{"1": "a"}', "training/1.tsv": b"1\tx\n" * 40_000, "training/2.tsv": b"2\ty\n"}
PACKED = {"top/tables/A.tsv": b"a\n", "top/tables/B.tsv": b"b\n", "top/ratings.json": b"[]"}
UNPACKED = {"tables/A.tsv": b"a\n", "tables/B.tsv": b"b\n", "ratings.json": b"[]"}
ALL_FILES = {**PLAIN, **UNPACKED}


def git_blob(read_folder: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(read_folder) + read_folder).hexdigest()


def make_archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, read_folder in PACKED.items():
            archive.writestr(zipfile.ZipInfo(name), read_folder)
    return buffer.getvalue()


@pytest.fixture
def table(files: FileServer) -> Any:
    """The description of a source: three files and an archive of three more, all on the server."""
    archive = make_archive()
    files.files.update(
        {f"/{path}": read_folder for path, read_folder in PLAIN.items()}, **{"/a.zip": archive}
    )
    return {
        "page": "http://page.example",
        "terms": "Be kind.",
        "groups": [
            {
                "base": f"{files.url}/",
                "files": [
                    {"path": path, "size": len(read_folder), "git_blob": git_blob(read_folder)}
                    for path, read_folder in PLAIN.items()
                ],
            }
        ],
        "archives": [
            {
                "url": f"{files.url}/a.zip",
                "sha256": hashlib.sha256(archive).hexdigest(),
                "at_most": 10_000,
                "unpacked_at_most": 10_000,
                "top": "top/",
                "members": [
                    {"from": "tables/*.tsv", "to": "tables/"},
                    {"from": "ratings.json", "to": ""},
                ],
            }
        ],
    }


@pytest.fixture
def source(table: Any) -> Source:
    return parse("sample", table)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "data" / "sample"


@pytest.fixture
def run(source: Source, folder: Path) -> Callable[..., Any]:
    """Fetches missing files."""

    def run(**options: Any) -> Any:
        plan = make_plan(source, folder, **options)
        with closing(Downloader()) as downloader:
            return fetch(plan, downloader, downloader.sizes(plan.downloads), SilentProgress(), **options)

    return run


def read_folder(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def states(source: Source, folder: Path) -> dict[str, str]:
    return {file.path: file.state for file in check(source, folder)}


def test_all_files_are_fetched_unpacked_and_recorded(
    source: Source, folder: Path, run: Callable[..., Any]
) -> None:
    fetched = run()
    receipt = json.loads((folder / RECEIPT).read_text())
    assert read_folder(folder) == {**ALL_FILES, RECEIPT: (folder / RECEIPT).read_bytes()}
    assert set(fetched) == set(receipt["files"]) == set(ALL_FILES)
    assert receipt["terms"] == "Be kind."
    for path, entry in receipt["files"].items():
        assert entry["sha256"] == hashlib.sha256(ALL_FILES[path]).hexdigest()
        assert entry["size"] == len(ALL_FILES[path])
    assert set(states(source, folder).values()) == {"intact"}
    assert {file.state for file in look(source, folder)} == {"present"}


def test_nothing_is_fetched_twice(source: Source, folder: Path, run: Callable[..., Any]) -> None:
    run()
    plan = make_plan(source, folder)
    assert plan.downloads == []
    assert sorted(plan.present) == sorted(ALL_FILES)


def test_only_missing_files_are_fetched(
    files: FileServer, source: Source, folder: Path, run: Callable[..., Any]
) -> None:
    run()
    (folder / "training/2.tsv").unlink()
    files.requests_of.clear()
    fetched = run()
    assert list(fetched) == ["training/2.tsv"]
    assert list(files.requests_of) == ["/training/2.tsv"]
    assert set(json.loads((folder / RECEIPT).read_text())["files"]) == set(ALL_FILES)
    assert set(states(source, folder).values()) == {"intact"}


def test_an_archive_is_fetched_again_if_one_of_its_files_is_missing(
    source: Source, folder: Path, run: Callable[..., Any]
) -> None:
    run()
    shutil.rmtree(folder / "tables")
    assert states(source, folder)["tables/A.tsv"] == "missing"
    run()
    assert set(states(source, folder).values()) == {"intact"}


def test_files_are_moved_into_place_only_after_all_have_arrived(
    files: FileServer, source: Source, folder: Path, run: Callable[..., Any]
) -> None:
    files.faults["/a.zip"] = Fault(status=404)
    with pytest.raises(SearchappError, match="answers 404"):
        run()
    assert not has_data(folder)
    assert [path.name for path in folder.iterdir()] == [STAGING]
    assert kept_bytes(folder) == sum(map(len, PLAIN.values()))
    files.faults.clear()
    files.requests_of.clear()
    run()
    assert list(files.requests_of) == ["/a.zip"]
    assert set(states(source, folder).values()) == {"intact"}


def test_a_failure_before_anything_arrived_leaves_nothing(
    files: FileServer, folder: Path, run: Callable[..., Any]
) -> None:
    files.faults["/base.json"] = Fault(status=404)
    with pytest.raises(SearchappError):
        run()
    assert not folder.exists()


def test_an_archive_that_arrived_is_not_fetched_twice(
    files: FileServer, folder: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(get, "unpack", fails)
        with pytest.raises(KeyboardInterrupt):
            run()
    files.requests_of.clear()
    run()
    assert not files.requests_of


def test_files_of_a_killed_attempt_are_never_moved_into_place(folder: Path, run: Callable[..., Any]) -> None:
    (folder / STAGING / "files" / "tables").mkdir(parents=True)
    (folder / STAGING / "files" / "tables" / "OLD.tsv").write_text("of an attempt that was killed")
    (folder / STAGING / "downloads").mkdir()
    (folder / STAGING / "downloads" / ("0" * 40 + ".part")).write_text("of another version of the sources")
    run()
    assert "tables/OLD.tsv" not in read_folder(folder)
    assert not (folder / STAGING).exists()


def test_other_files_in_place_of_the_official_ones_are_not_touched(
    files: FileServer, source: Source, folder: Path, run: Callable[..., Any]
) -> None:
    folder.mkdir(parents=True)
    (folder / "base.json").write_bytes(b"mine")
    with pytest.raises(
        UsageError, match=r"other files with the names of official ones \(base.json\): move them"
    ):
        run()
    assert not files.requests_of
    (folder / "base.json").unlink()
    (folder / "tables").mkdir()
    (folder / "tables" / "A.tsv").write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"\(tables/A.tsv\)"):
        run()
    assert (folder / "tables" / "A.tsv").read_bytes() == b"mine"
    assert not (folder / "ratings.json").exists()
    files.requests_of.clear()
    run(overwrite=True)  # received files are not fetched again
    assert not files.requests_of
    assert set(states(source, folder).values()) == {"intact"}


def test_changed_files_are_replaced_only_with_overwrite(
    source: Source, folder: Path, run: Callable[..., Any]
) -> None:
    run()
    for path in ("base.json", "tables/B.tsv"):
        (folder / path).write_bytes(b"mine")
    assert {path for path, state in states(source, folder).items() if state == "changed"} == {
        "base.json",
        "tables/B.tsv",
    }
    with pytest.raises(UsageError, match=r"base.json, tables/B.tsv"):
        run()
    run(overwrite=True)
    assert set(states(source, folder).values()) == {"intact"}


def test_files_beside_the_official_ones_are_not_touched(
    source: Source, folder: Path, run: Callable[..., Any]
) -> None:
    for path in ("notes.txt", "training/9.tsv"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("mine")
    run()
    assert (
        read_folder(folder).items() >= {"notes.txt": b"mine", "training/9.tsv": b"mine", **ALL_FILES}.items()
    )
    assert unofficial_files(folder, check(source, folder)) == ["training/9.tsv"]


def test_files_that_were_unpacked_by_hand_are_compared_when_fetched(
    source: Source, folder: Path, run: Callable[..., Any]
) -> None:
    for path, file in ALL_FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(file)
    assert states(source, folder)["tables/*.tsv"] == "unknown"
    assert states(source, folder)["base.json"] == "intact"
    assert set(run()) == set(UNPACKED)
    assert set(states(source, folder).values()) == {"intact"}


def test_a_corrupted_archive_is_refused(files: FileServer, folder: Path, run: Callable[..., Any]) -> None:
    files.faults["/a.zip"] = Fault(corrupt=True)
    with pytest.raises(DataError, match="is not the expected file"):
        run()
    assert not has_data(folder)


def test_received_files_are_kept_when_the_disk_is_full(
    files: FileServer, source: Source, folder: Path, run: Callable[..., Any]
) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    part = folder / STAGING / "downloads" / f"{source.files[1].download.name}.part"
    part.parent.mkdir(parents=True)
    part.symlink_to(full)
    with pytest.MonkeyPatch.context() as patch:
        # Otherwise the download would replace the link.
        patch.setattr("searchapp.fetching.download.PartialFile.begin", lambda *_: None)
        with pytest.raises(
            SearchappError, match=r"no space left on device; received files are kept"
        ) as caught:
            run()
    assert caught.value.exit_code == 1
    part.unlink()
    files.requests_of.clear()
    run()
    assert "/base.json" not in files.requests_of


def test_too_little_disk_space_is_reported_before_fetching(
    files: FileServer, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(SearchappError, match=r"has 1,000 bytes free, but 160,\d\d\d are needed"):
        run()
    assert not files.requests_of


def test_a_folder_that_cannot_be_created_is_refused(tmp_path: Path, source: Source) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file: name a folder"):
        make_plan(source, tmp_path / "file")
    with (
        pytest.raises(UsageError, match="can't be used: not a directory"),
        staging(tmp_path / "file" / "deeper"),
    ):
        pass


def test_a_damaged_receipt_is_refused(folder: Path, source: Source, run: Callable[..., Any]) -> None:
    run()
    for damage in ("", "{}", '{"files": [1]}', '{"files": {"a": {}}}', '{"files": {"a": 1}}', "\xff"):
        (folder / RECEIPT).write_text(damage, encoding="latin-1")
        with pytest.raises(DataError, match=f"{RECEIPT} is not a record of fetched files"):
            make_plan(source, folder)


def test_only_one_process_fetches_into_a_folder(folder: Path) -> None:
    hold = (
        "import sys; from pathlib import Path; from searchapp.fetching.fetch import staging\n"
        "with staging(Path(sys.argv[1])):\n    print('locked', flush=True); sys.stdin.read()"
    )
    with Program(hold, folder) as other:
        assert other.read_line() == "locked"
        with pytest.raises(SearchappError, match=f"process {other.pid} is fetching into {folder}"):
            with staging(folder):
                pass
        other.send_signal(signal.SIGKILL)  # the system gives the lock back
        other.wait()
    with staging(folder):
        pass
    assert list(folder.iterdir()) == []


CHILD = """
import json, sys
from contextlib import closing
from pathlib import Path
from searchapp.errors import SearchappError
from searchapp.fetching.download import Downloader
from searchapp.fetching.fetch import fetch, make_plan
from searchapp.fetching.sources import parse
from searchapp.progress import SilentProgress

source, folder = parse("sample", json.loads(sys.argv[1])), Path(sys.argv[2])
try:
    with closing(Downloader()) as downloader:
        fetch(make_plan(source, folder), downloader, {}, SilentProgress())
except SearchappError as error:
    assert "is fetching into" in str(error), error
    sys.exit(error.exit_code)
"""


def start_fetch(table: Any, folder: Path) -> Program:
    """Start another process that fetches."""
    return Program(CHILD, json.dumps(table), folder)


def test_two_processes_leave_all_files_complete(table: Any, folder: Path, files: FileServer) -> None:
    files.faults["/training/1.tsv"] = Fault(pause=0.02)
    programs = [start_fetch(table, folder) for _ in range(2)]
    codes = []
    for program in programs:
        with program:
            codes.append(program.wait())
    codes.sort()
    assert codes in ([0, 0], [0, 1])
    assert {path: file for path, file in read_folder(folder).items() if path != RECEIPT} == ALL_FILES


def test_the_download_of_a_killed_process_is_resumed(
    files: FileServer, table: Any, source: Source, folder: Path, run: Callable[..., Any]
) -> None:
    files.faults["/training/1.tsv"] = [Fault(pause=0.2)]
    part = folder / STAGING / "downloads" / f"{source.files[1].download.name}.part"
    with start_fetch(table, folder) as other:
        while not (part.exists() and part.stat().st_size):
            time.sleep(0.01)
        other.send_signal(signal.SIGKILL)
    kept = part.stat().st_size
    run()
    assert files.ranges("/training/1.tsv")[-1] == f"bytes={kept}-"
    assert set(states(source, folder).values()) == {"intact"}
