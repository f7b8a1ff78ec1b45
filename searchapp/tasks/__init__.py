"""The tasks, by name or file; a task's module is imported only when it is asked for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from searchapp.errors import UsageError
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


def data_folder(task: Task, home: Path, given: Path | None = None) -> Path:
    """Where a task's files are: the given folder, else that of the task's own file, else where fetched files are."""
    if given is not None:
        return given
    return home / "data" / task.name if task.file is None else task.file.parent
