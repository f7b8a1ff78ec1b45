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


def test_an_existing_file_may_be_protected(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match="exists already"), atomic_file(path, replace=False):
        pass
    assert path.read_bytes() == b"old"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
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


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with (
        pytest.raises(SearchappError, match=r"could not be written: no space left"),
        atomic_folder(tmp_path / "run"),
    ):
        with full.open("wb", buffering=0) as file:
            file.write(b"x")
    assert os.listdir(tmp_path) == []


# What is left over

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


def writing(kind: str, path: Path) -> Program:
    """Another process that is in the middle of writing a file or a folder."""
    program = Program(WRITE, kind, path)
    assert program.read_line() == "writing"
    return program


def written(kind: str, path: Path) -> None:
    with atomic_file(path) if kind == "file" else atomic_folder(path, replace=True):
        pass


@pytest.mark.parametrize("next_", ["file", "folder"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_removed_by_the_next_that_writes_there(
    tmp_path: Path, kind: str, next_: str
) -> None:
    killed, at_work = writing(kind, tmp_path / "run"), writing(kind, tmp_path / "other")
    with at_work:
        killed.close()
        (left,) = tmp_path.glob(".run.*")
        written(next_, tmp_path / "third")
        assert not left.exists()
        assert len(list(tmp_path.glob(".other.*"))) == 1  # whoever is at work keeps what is theirs
    written(next_, tmp_path / "third")
    assert os.listdir(tmp_path) == ["third"]


def test_what_others_have_put_there_is_left_alone(tmp_path: Path) -> None:
    names = [
        ".run.bak",
        ".run.0123456789abcdef.tmp",
        ".run.searchapp-0123.tmp",
        "run.searchapp-0123456789abcdef.tmp",
    ]
    for name in names:
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    written("folder", tmp_path / "run")
    written("file", tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "run", "file"])


def test_what_an_older_version_left_is_removed_once_nobody_can_be_at_it(tmp_path: Path) -> None:
    young, old, of_another = (
        tmp_path / f".{name}.0123456789a{digit}.tmp" for name, digit in (("run", 0), ("run", 1), ("other", 1))
    )
    for folder in (young, old, of_another):
        folder.mkdir()
    for folder in (old, of_another):
        os.utime(folder, (time.time() - ABANDONED_SECONDS - 60,) * 2)
    written("folder", tmp_path / "run")
    assert sorted(os.listdir(tmp_path)) == sorted([young.name, of_another.name, "run"])


def test_where_nothing_can_be_locked_only_what_is_old_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    left = tmp_path / ".run.searchapp-0123456789abcdef.tmp"
    left.mkdir()
    written("folder", tmp_path / "run")
    assert left.exists()
    os.utime(left, (0, 0))
    written("file", tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == ["file", "run"]


def test_a_folder_whose_replacement_was_cut_short_comes_back(tmp_path: Path) -> None:
    """The process was killed when the old folder had been moved away, and the new one was not in its place yet."""
    (tmp_path / ".run.searchapp-0123456789abcdef.old").mkdir()
    (tmp_path / ".run.searchapp-0123456789abcdef.old" / "run.json").write_text("old")
    (tmp_path / ".run.searchapp-fedcba9876543210.tmp").mkdir()
    with pytest.raises(UsageError, match="exists already"), atomic_folder(tmp_path / "run"):
        pass
    assert (tmp_path / "run" / "run.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["run"]


def test_what_was_replaced_and_could_not_be_removed_goes_with_the_next(tmp_path: Path) -> None:
    (tmp_path / ".run.searchapp-0123456789abcdef.old").mkdir()
    (tmp_path / "run").mkdir()
    written("file", tmp_path / "file")
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


def test_many_that_write_beside_each_other_do_not_take_each_others_for_left_over(tmp_path: Path) -> None:
    programs = [Program(WRITE_MANY, tmp_path, name) for name in "abcd"]
    for program in programs:
        with program:
            assert program.wait() == 0
    assert sorted(os.listdir(tmp_path)) == sorted(name + end for name in "abcd" for end in ("", ".txt"))


def test_too_many_open_files_are_told_with_what_to_do() -> None:
    assert reason(OSError(errno.EMFILE, "Too many open files")) == (
        "too many open files: allow more with `ulimit -n 1024`"
    )
    assert reason(OSError(errno.ENOSPC, "No space left on device")) == "no space left on device"
    assert reason(OSError("odd")) == "odd"
