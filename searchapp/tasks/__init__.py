"""The tasks, by name or file; a task's module is imported only when it is asked for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from searchapp import remembered
from searchapp.errors import DataError, UsageError
from searchapp.names import refused

if TYPE_CHECKING:
    from searchapp.tasks.base import Task

_MODULES = {
    "nlps": "nlps",
    "explanation-2019": "explanation_2019",
    "explanation-2021": "explanation_2021",
    "checkthat": "checkthat",
    "smart-types-dbpedia": "smart_types_dbpedia",
    "smart-types-wikidata": "smart_types_wikidata",
    "smart-relations-dbpedia": "smart_relations_dbpedia",
    "smart-relations-wikidata": "smart_relations_wikidata",
}

OWN = "own-"
"""How the names of the indexes of users' own tasks begin."""


def names() -> list[str]:
    """The names of all tasks that ship with searchapp."""
    return list(_MODULES)


def load(name: str) -> Task:
    """The task of that name, or the one that the TOML file at that path describes.

    Raises:
        UsageError: there is no such task, or no such file.
        InvalidFiles: the file has problems.
    """
    if name not in _MODULES:
        if name.lower().endswith(".toml") or Path(name).is_file():
            from searchapp.tasks import own

            return own.load(Path(name))
        raise UsageError(
            f"there is no task {refused(name, names())}, or name the TOML file of a task of your own"
        )
    return cast("Task", import_module(f"searchapp.tasks.{_MODULES[name]}").TASK)


def data_folder(task: Task, home: Path | None, given: Path | None = None) -> Path:
    """Where a task's files are: the given folder, else the remembered one, else `own_folder`.

    Without `home` nothing is remembered.

    Raises:
        DataError: the remembered folder is not there any more, or nobody can read what is remembered.
    """
    if given is not None:
        return given
    folder = None if home is None else remembered_folder(task, home)
    if folder is None:
        return own_folder(task, home or Path())
    if not folder.is_dir():
        raise DataError(
            f"the folder {folder}, from which {task.name} was last indexed, is not there any more: name the one "
            f"that has its files with --data; `searchapp index {task.reference} --data DIR` remembers it"
        )
    return folder


def own_folder(task: Task, home: Path) -> Path:
    """Where a task's files are if nobody says anything else: beside its own file, or where `data get` puts them."""
    return home / "data" / task.name if task.file is None else task.file.parent


def remembered_folder(task: Task, home: Path) -> Path | None:
    """The folder that the task was last indexed from, whether it is still there or not; None if it was its own.

    Raises:
        DataError: nobody can read what is remembered.
    """
    return remembered.folders(home).get(_known_as(task))


def remember_folder(task: Task, home: Path, folder: Path) -> bool:
    """Let every command look for a task's files in a folder from now on; returns whether it did not before.

    Raises:
        SearchappError: that can't be written down.
    """
    folder = folder.resolve()
    is_own = folder == own_folder(task, home).resolve()
    return remembered.remember(home, _known_as(task), None if is_own else folder)


def _known_as(task: Task) -> str:
    """What the task is remembered under: names that people give may meet, files do not."""
    return task.name if task.file is None else str(task.file.resolve())
