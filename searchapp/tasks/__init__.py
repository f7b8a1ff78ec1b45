"""The tasks, by name or file: one folder for each shared task, `own` for tasks described in TOML.

A folder holds the task's file formats, its collection, its official files and its official scorer; its module is
imported only when the task is loaded. `base` defines a task, `catalogue` lists those that ship with searchapp,
`folders` finds their files.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from searchapp.errors import UsageError
from searchapp.tasks.catalogue import MODULES as MODULES
from searchapp.tasks.catalogue import SAMPLE as SAMPLE
from searchapp.tasks.catalogue import names as names
from searchapp.tasks.catalogue import sample_names as sample_names
from searchapp.text import choices_hint

if TYPE_CHECKING:
    from searchapp.tasks.base import Task


def load(name: str) -> Task:
    """The task of that name, or the one that the TOML file at that path describes: a user's own, or a variant.

    Raises:
        UsageError: there is no such task, or no such file.
        InvalidFiles: the file has problems.
    """
    if name in sample_names():
        from searchapp.tasks.shipped import sample_of

        return sample_of(load(name.removesuffix(SAMPLE)))
    if name not in MODULES:
        if name.lower().endswith(".toml") or Path(name).is_file():
            from searchapp.tasks.own import task, variant

            path = Path(name)
            return variant.load(path, load) if variant.is_variant(path) else task.load(path)
        raise UsageError(
            f"there is no task {choices_hint(name, names())}, or name the TOML file of a task of your own (its name is "
            "enough once it is indexed)"
        )
    module, _, attribute = MODULES[name].partition(":")
    return cast("Task", getattr(import_module(f"searchapp.tasks.{module}"), attribute))
