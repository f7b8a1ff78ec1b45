from __future__ import annotations

import os
from pathlib import Path

import pytest

from searchapp.errors import SearchappError, UsageError
from searchapp.files import whole_file, whole_folder


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    with whole_file(path) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"
    assert os.listdir(tmp_path) == ["run.trec"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), whole_file(path) as file:
        file.write(b"new")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["run.trec"]


def test_an_existing_file_may_be_protected(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match="exists already"), whole_file(path, replace=False):
        pass
    assert path.read_bytes() == b"old"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"), whole_file(tmp_path / "none" / "x"):
        pass


def test_a_folder_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    with whole_folder(path) as folder:
        (folder / "run.json").write_text("{}")
        assert not path.exists()
    assert os.listdir(path) == ["run.json"]
    assert os.listdir(tmp_path / "deep") == ["run"]


def test_a_failed_folder_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    (path / "run.json").write_text("old")
    with pytest.raises(RuntimeError), whole_folder(path, replace=True) as folder:
        (folder / "run.json").write_text("new")
        raise RuntimeError
    assert (path / "run.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["run"]


def test_a_folder_is_replaced_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    (path / "old").write_text("old")
    with pytest.raises(UsageError, match="exists already"), whole_folder(path):
        pass
    with whole_folder(path, replace=True) as folder:
        (folder / "new").write_text("new")
    assert os.listdir(path) == ["new"]
    assert os.listdir(tmp_path) == ["run"]


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with (
        pytest.raises(SearchappError, match=r"could not be written: no space left"),
        whole_folder(tmp_path / "run"),
    ):
        with full.open("wb", buffering=0) as file:
            file.write(b"x")
    assert os.listdir(tmp_path) == []
