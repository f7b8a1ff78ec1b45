"""The folder of a task's data: given, remembered or fetched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchapp import tasks
from searchapp.errors import DataError, SearchappError
from searchapp.tasks.folders import FOLDERS_FILE, data_folder, remembered_folders
from searchapp.tasks.folders import remember as remember_folder
from searchapp.tasks.folders import remember_folder as remember
from tests.programs import Program


def test_a_folder_is_remembered_until_it_is_replaced(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert remembered_folders(home) == {}
    assert remember(home, "nlps", tmp_path / "a")
    assert not remember(home, "nlps", tmp_path / "a")
    assert remember(home, "checkthat", tmp_path / "b")
    assert remembered_folders(home) == {"nlps": tmp_path / "a", "checkthat": tmp_path / "b"}
    assert remember(home, "nlps", tmp_path / "c")
    assert remember(home, "checkthat", None)
    assert not remember(home, "checkthat", None)
    assert remembered_folders(home) == {"nlps": tmp_path / "c"}
    assert sorted(path.name for path in home.iterdir()) == [FOLDERS_FILE, f"{FOLDERS_FILE}.lock"]


@pytest.mark.parametrize("name", ["a b", "ä\nö", "x\udcff", '"', "\\"])
def test_folders_with_unusual_names_are_remembered(tmp_path: Path, name: str) -> None:
    remember(tmp_path, "nlps", Path("/data") / name)
    assert remembered_folders(tmp_path) == {"nlps": Path("/data") / name}


DAMAGED = [
    b"",
    b"{",
    b"[]",
    b"\xff",
    b"null",
    b'{"format": 1}',
    b'{"format": 1, "folders": []}',
    b'{"format": 1, "folders": {"nlps": 7}}',
    b'{"format": 0, "folders": {}}',
    b'{"format": "1", "folders": {}}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_reported_and_replaced_by_the_next_folder(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FOLDERS_FILE).write_bytes(content)
    with pytest.raises(DataError, match=r"folders\.json, which lists .*, is damaged: remove it, and name"):
        remembered_folders(tmp_path)
    assert remember(tmp_path, "nlps", Path("/data"))
    assert remembered_folders(tmp_path) == {"nlps": Path("/data")}


def test_the_file_of_a_newer_version_is_not_overwritten(tmp_path: Path) -> None:
    content = json.dumps({"format": 2, "folders": {}})
    (tmp_path / FOLDERS_FILE).write_text(content)
    for use in (lambda: remembered_folders(tmp_path), lambda: remember(tmp_path, "nlps", Path("/data"))):
        with pytest.raises(DataError, match="newer version of searchapp: update"):
            use()
    assert (tmp_path / FOLDERS_FILE).read_text() == content


def test_a_home_that_is_not_writable_is_reported(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    with pytest.raises(SearchappError, match=r"folders\.json could not be written"):
        remember(tmp_path / "home", "nlps", Path("/data"))


def test_concurrent_writers_lose_no_folder(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from searchapp.tasks.folders import remember_folder, remembered_folders\n"
        "for n in range(60):\n"
        "    remember_folder(Path(sys.argv[1]), f'{sys.argv[2]}-{n}', Path('/data'))\n"
        "    assert f'{sys.argv[2]}-{n}' in remembered_folders(Path(sys.argv[1]))\n"
    )
    writers = [Program(code, tmp_path, name) for name in "abc"]
    for writer in writers:
        with writer:
            assert writer.wait() == 0
    assert set(remembered_folders(tmp_path)) == {f"{name}-{n}" for name in "abc" for n in range(60)}


def test_a_given_folder_precedes_the_remembered_and_the_fetched_folder(tmp_path: Path) -> None:
    task, home, given, last = tasks.load("nlps"), tmp_path / "home", tmp_path / "given", tmp_path / "last"
    fetched = home / "data" / "nlps"
    for folder in (given, last, fetched):
        folder.mkdir(parents=True)
    assert data_folder(task, home) == fetched
    assert remember_folder(task, home, last)
    assert data_folder(task, home) == last
    assert data_folder(task, home, given) == given
    assert data_folder(tasks.load("checkthat"), home) == home / "data" / "checkthat"
    assert remember_folder(task, home, fetched)  # the default is not remembered
    assert remembered_folders(home) == {}


def test_own_tasks_with_equal_names_have_separate_folders(tmp_path: Path) -> None:
    files = []
    for name in ("first", "second"):
        file = tmp_path / name / "task.toml"
        file.parent.mkdir()
        file.write_text('name = "same"\n[documents]\nfile = "d.jsonl"\n')
        files.append(file)
    first, second = (tasks.load(str(file)) for file in files)
    remember_folder(first, tmp_path, tmp_path)
    assert data_folder(first, tmp_path) == tmp_path
    assert data_folder(second, tmp_path) == files[1].parent


def test_a_missing_remembered_folder_is_reported(tmp_path: Path) -> None:
    task, folder = tasks.load("nlps"), tmp_path / "data"
    folder.mkdir()
    remember_folder(task, tmp_path, folder)
    folder.rmdir()
    message = (
        r"/data, from which nlps was last indexed, no longer exists: .* `searchapp index nlps --data DIR`"
    )
    with pytest.raises(DataError, match=message):
        data_folder(task, tmp_path)
    assert data_folder(task, tmp_path, tmp_path) == tmp_path
