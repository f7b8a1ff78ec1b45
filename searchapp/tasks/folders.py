"""Where a task's files are: the folder that is given, the one it was last indexed from, or its own.

    <home>/folders.json         {"format": 1, "folders": {"nlps": "/data/nlps", "/home/ann/cooking.toml": "/data/c"}}
    <home>/folders.json.lock    held by the process that writes

A task that ships with searchapp is known by its name, a user's own by its file. The file is replaced in one step; a
writer holds the lock from reading to writing, so that neither of two processes loses what the other has written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from searchapp.errors import DataError, UsageError
from searchapp.files import atomic_file, file_lock, parse_json, read_text
from searchapp.tasks.base import Task

FOLDERS_FILE = "folders.json"
FOLDERS_FORMAT = 1


class _Newer(DataError):
    """The file has a format that this searchapp does not know, and must not write over."""


def remembered_folders(home: Path) -> dict[str, Path]:
    """The remembered folders, whether they are still there or not.

    Raises:
        DataError: the file is damaged, or a newer searchapp's.
    """
    path = home / FOLDERS_FILE
    try:
        held = parse_json(read_text(path), file_names=True)
        version, found = held["format"], held["folders"]
        if version == FOLDERS_FORMAT and all(isinstance(folder, str) for folder in found.values()):
            return {task: Path(folder) for task, folder in found.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        version = None
    if isinstance(version, int) and version > FOLDERS_FORMAT:
        raise _Newer(
            f"{path} was written by a newer searchapp: update searchapp, or name folders with --data"
        )
    raise DataError(
        f"{path}, which says where the files of the tasks are, is damaged: remove it, and name the folder once more "
        "with `searchapp index TASK --data DIR`"
    )


def remember_folder(home: Path, task: str, folder: Path | None) -> bool:
    """Remember the folder of a task, or forget it; returns whether that changes anything.

    A damaged file is replaced: what it held can't be read any more.

    Raises:
        DataError: the file is a newer searchapp's.
        SearchappError: it can't be written.
    """
    with file_lock(home / FOLDERS_FILE):
        known = _known(home)
        after = {name: place for name, place in known.items() if name != task}
        if folder is not None:
            after[task] = folder
        if after == known:
            return False
        described = {
            "format": FOLDERS_FORMAT,
            "folders": {name: str(place) for name, place in sorted(after.items())},
        }
        with atomic_file(home / FOLDERS_FILE) as file:
            file.write(f"{json.dumps(described, indent=2)}\n".encode())
    return True


def _known(home: Path) -> dict[str, Path]:
    try:
        return remembered_folders(home)
    except _Newer:
        raise
    except DataError:
        return {}


@dataclass(frozen=True, slots=True)
class DataFolder:
    """A folder where a task's files are looked for, and whether that is remembered from `index --data`."""

    path: Path
    is_remembered: bool = False


def find(task: Task, home: Path | None, given: Path | None = None) -> DataFolder:
    """The given folder, else the remembered one, else `own_folder`, whether they are there or not.

    Without `home` nothing is remembered.

    Raises:
        UsageError: another folder is given for a sample.
        DataError: nobody can read what is remembered.
    """
    sample = task.info.folder
    if sample is not None:
        if given is not None and given.resolve() != sample:
            raise UsageError(f"{task.name} has its files in {sample}: leave out --data, or name another task")
        return DataFolder(sample)
    if given is not None:
        return DataFolder(given)
    folder = None if home is None else remembered_folders(home).get(_known_as(task))
    return DataFolder(own_folder(task, home or Path())) if folder is None else DataFolder(folder, True)


def data_folder(task: Task, home: Path | None, given: Path | None = None) -> Path:
    """The folder that `find` finds.

    Raises:
        DataError: the remembered folder is gone, or nobody can read what is remembered.
    """
    folder = find(task, home, given)
    if folder.is_remembered and not folder.path.is_dir():
        raise DataError(
            f"the folder {folder.path}, from which {task.name} was last indexed, is gone: name the one "
            f"that has its files with --data; `searchapp index {task.reference} --data DIR` remembers it"
        )
    return folder.path


def own_folder(task: Task, home: Path) -> Path:
    """Where a task's files are if nobody says anything else: beside its own file, or where `data get` puts them."""
    if task.info.folder is not None:
        return task.info.folder
    return fetched(task.name, home) if task.info.file is None else task.info.file.parent


def fetched(name: str, home: Path) -> Path:
    """Where `data get` puts the files of a shared task."""
    return home / "data" / name


def remember(task: Task, home: Path, folder: Path) -> bool:
    """Let every command look for a task's files in a folder from now on; returns whether it did not before.

    Raises:
        SearchappError: that can't be written down.
    """
    folder = folder.resolve()
    is_own = folder == own_folder(task, home).resolve()
    return remember_folder(home, _known_as(task), None if is_own else folder)


def _known_as(task: Task) -> str:
    """What the task is remembered under: names that people give may meet, files do not."""
    return task.name if task.info.file is None else str(task.info.file.resolve())
