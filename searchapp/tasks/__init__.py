"""The tasks, by name; a task's module is imported only when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from searchapp.errors import UsageError

if TYPE_CHECKING:
    from searchapp.tasks.base import Task

_MODULES = {"nlps": "nlps"}


def names() -> list[str]:
    """The names of all tasks."""
    return list(_MODULES)


def load(name: str) -> Task:
    """The task of that name.

    Raises:
        UsageError: there is no such task.
    """
    if name not in _MODULES:
        raise UsageError(f"there is no task {name!r}: choose {' or '.join(names())}")
    return cast("Task", import_module(f"searchapp.tasks.{_MODULES[name]}").TASK)
