"""Atomic writing of files and folders, and removal of abandoned ones."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

import pytest

from searchapp.errors import SearchappError, UsageError
from searchapp.files import ABANDONED_SECONDS, atomic_file, atomic_folder, reason
from tests.programs import Program


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    with atomic_file(path) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"
    assert os.listdir(tmp_path) == ["run.trec"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), atomic_file(path) as file:
        file.write(b"new")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["run.trec"]


def test_an_existing_file_is_not_replaced_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match="exists already"), atomic_file(path, replace=False):
        pass
    assert path.read_bytes() == b"old"


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"), atomic_file(tmp_path / "none" / "x"):
        pass


def test_a_folder_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    with atomic_folder(path) as folder:
        (folder / "run.json").write_text("{}")
        assert not path.exists()
    assert os.listdir(path) == ["run.json"]
    assert os.listdir(tmp_path / "deep") == ["run"]


def test_a_failed_folder_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    (path / "run.json").write_text("old")
    with pytest.raises(RuntimeError), atomic_folder(path, replace=True) as folder:
        (folder / "run.json").write_text("new")
        raise RuntimeError
    assert (path / "run.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["run"]


def test_a_folder_is_replaced_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    (path / "old").write_text("old")
    with pytest.raises(UsageError, match="exists already"), atomic_folder(path):
        pass
    with atomic_folder(path, replace=True) as folder:
        (folder / "new").write_text("new")
    assert os.listdir(path) == ["new"]
    assert os.listdir(tmp_path) == ["run"]


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with (
        pytest.raises(SearchappError, match="could not be written: no space left"),
        atomic_folder(tmp_path / "run"),
        full.open("wb", buffering=0) as file,
    ):
        file.write(b"x")
    assert os.listdir(tmp_path) == []


# Abandoned files and folders

WRITE = """
import sys, time
from pathlib import Path
from searchapp.files import atomic_file, atomic_folder
path = Path(sys.argv[2])
if sys.argv[1] == "file":
    with atomic_file(path) as file:
        file.write(b"half")
        print("writing", flush=True)
        time.sleep(600)
with atomic_folder(path, replace=True) as folder:
    (folder / "run.trec").write_bytes(b"half")
    print("writing", flush=True)
    time.sleep(600)
"""


def start_writing(kind: str, path: Path) -> Program:
    """Start a process that is writing a file or a folder."""
    program = Program(WRITE, kind, path)
    assert program.read_line() == "writing"
    return program


def write(kind: str, path: Path) -> None:
    with atomic_file(path) if kind == "file" else atomic_folder(path, replace=True):
        pass


@pytest.mark.parametrize("next_", ["file", "folder"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_files_of_a_killed_process_are_removed_by_the_next_writer(
    tmp_path: Path, kind: str, next_: str
) -> None:
    killed, working = start_writing(kind, tmp_path / "run"), start_writing(kind, tmp_path / "other")
    with working:
        killed.close()
        (left,) = tmp_path.glob(".run.*")
        write(next_, tmp_path / "third")
        assert not left.exists()
        assert len(list(tmp_path.glob(".other.*"))) == 1  # files of running processes stay
    write(next_, tmp_path / "third")
    assert os.listdir(tmp_path) == ["third"]


def test_files_with_similar_names_are_not_removed(tmp_path: Path) -> None:
    names = [
        ".run.bak",
        ".run.0123456789abcdef.tmp",
        ".run.searchapp-0123.tmp",
        "run.searchapp-0123456789abcdef.tmp",
    ]
    for name in names:
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    write("folder", tmp_path / "run")
    write("file", tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "run", "file"])


def test_old_temporary_folders_of_earlier_versions_are_removed(tmp_path: Path) -> None:
    recent, old, of_other_name = (
        tmp_path / f".{name}.0123456789a{digit}.tmp" for name, digit in (("run", 0), ("run", 1), ("other", 1))
    )
    for folder in (recent, old, of_other_name):
        folder.mkdir()
    for folder in (old, of_other_name):
        os.utime(folder, (time.time() - ABANDONED_SECONDS - 60,) * 2)
    write("folder", tmp_path / "run")
    assert sorted(os.listdir(tmp_path)) == sorted([recent.name, of_other_name.name, "run"])


def test_without_locks_only_old_folders_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    left = tmp_path / ".run.searchapp-0123456789abcdef.tmp"
    left.mkdir()
    write("folder", tmp_path / "run")
    assert left.exists()
    os.utime(left, (0, 0))
    write("file", tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == ["file", "run"]


def test_a_folder_is_restored_after_an_interrupted_replacement(tmp_path: Path) -> None:
    """The process was killed after moving the old folder away and before moving the new one into its place."""
    (tmp_path / ".run.searchapp-0123456789abcdef.old").mkdir()
    (tmp_path / ".run.searchapp-0123456789abcdef.old" / "run.json").write_text("old")
    (tmp_path / ".run.searchapp-fedcba9876543210.tmp").mkdir()
    with pytest.raises(UsageError, match="exists already"), atomic_folder(tmp_path / "run"):
        pass
    assert (tmp_path / "run" / "run.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["run"]


def test_a_replaced_folder_that_could_not_be_removed_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    (tmp_path / ".run.searchapp-0123456789abcdef.old").mkdir()
    (tmp_path / "run").mkdir()
    write("file", tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == ["file", "run"]


WRITE_MANY = """
import sys
from pathlib import Path
from searchapp.files import atomic_file, atomic_folder
folder, name = Path(sys.argv[1]), sys.argv[2]
for number in range(40):
    with atomic_folder(folder / name, replace=True) as inside:
        (inside / "number").write_text(str(number))
    with atomic_file(folder / f"{name}.txt") as file:
        file.write(str(number).encode())
"""


def test_concurrent_writers_do_not_remove_the_files_of_each_other(tmp_path: Path) -> None:
    programs = [Program(WRITE_MANY, tmp_path, name) for name in "abcd"]
    for program in programs:
        with program:
            assert program.wait() == 0
    assert sorted(os.listdir(tmp_path)) == sorted(name + end for name in "abcd" for end in ("", ".txt"))


def test_reasons_of_errors() -> None:
    assert reason(OSError(errno.EMFILE, "Too many open files")) == (
        "too many open files: allow more with `ulimit -n 1024`"
    )
    assert reason(OSError(errno.ENOSPC, "No space left on device")) == "no space left on device"
    assert reason(OSError("odd")) == "odd"
