"""Where a task's files are: the one place that says it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from searchapp import remembered
from searchapp.errors import DataError
from searchapp.tasks.base import Task


@dataclass(frozen=True, slots=True)
class DataFolder:
    """A folder where a task's files are looked for, and whether that is remembered from `index --data`."""

    path: Path
    is_remembered: bool = False


def find(task: Task, home: Path | None, given: Path | None = None) -> DataFolder:
    """The given folder, else the remembered one, else `own_folder`, whether they are there or not.

    Without `home` nothing is remembered.

    Raises:
        DataError: nobody can read what is remembered.
    """
    if given is not None:
        return DataFolder(given)
    folder = None if home is None else remembered.folders(home).get(_known_as(task))
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
    return remembered.remember(home, _known_as(task), None if is_own else folder)


def _known_as(task: Task) -> str:
    """What the task is remembered under: names that people give may meet, files do not."""
    return task.name if task.info.file is None else str(task.info.file.resolve())
