"""The tasks, by name or file; a task's module is imported only when it is asked for.

`base` says what a task is, `catalogue` names those that ship with searchapp, `folders` says where their files are.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from searchapp.errors import UsageError
from searchapp.names import refused
from searchapp.tasks.catalogue import MODULES
from searchapp.tasks.catalogue import names as names

if TYPE_CHECKING:
    from searchapp.tasks.base import Task


def load(name: str) -> Task:
    """The task of that name, or the one that the TOML file at that path describes: a user's own, or a variant.

    Raises:
        UsageError: there is no such task, or no such file.
        InvalidFiles: the file has problems.
    """
    if name not in MODULES:
        if name.lower().endswith(".toml") or Path(name).is_file():
            from searchapp.tasks import own, variant

            path = Path(name)
            return variant.load(path, load) if variant.is_variant(path) else own.load(path)
        raise UsageError(
            f"there is no task {refused(name, names())}, or name the TOML file of a task of your own"
        )
    return cast("Task", import_module(f"searchapp.tasks.{MODULES[name]}").TASK)
