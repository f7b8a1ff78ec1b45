"""The tasks, by name or file.

The module of a task is imported when the task is loaded. `base` defines the parts of a task.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from searchapp.errors import UsageError
from searchapp.text import choices_hint

if TYPE_CHECKING:
    from searchapp.tasks.base import Task

# The module of each shipped task in this package, and the task's variable in it.
MODULES = {
    "nlps": "nlps.task:TASK",
    "explanation-2019": "explanation.task:TASK_2019",
    "explanation-2021": "explanation.task:TASK_2021",
    "checkthat": "checkthat.task:TASK",
    "smart-types-dbpedia": "smart_types.task:TASK_DBPEDIA",
    "smart-types-wikidata": "smart_types.task:TASK_WIKIDATA",
    "smart-relations-dbpedia": "smart_relations.task:TASK_DBPEDIA",
    "smart-relations-wikidata": "smart_relations.task:TASK_WIKIDATA",
}

# The prefix of the index names of own tasks.
OWN = "own-"

# The suffix of the name of a shipped task's sample.
SAMPLE = "-sample"


def names() -> list[str]:
    """Return the names of the shipped tasks."""
    return list(MODULES)


def sample_names() -> list[str]:
    """Return the names of the samples, in the order of their tasks."""
    return [f"{name}{SAMPLE}" for name in MODULES]


def shipped_names() -> list[str]:
    """Return the names of the shipped tasks and of their samples."""
    return [*names(), *sample_names()]


def load(name: str) -> Task:
    """Return the task with a name, or the own task or variant of a TOML file.

    Raises:
        UsageError: the task or the file does not exist.
        InvalidFiles: the file has problems.
    """
    if name in sample_names():
        from searchapp.tasks.base import sample_of

        return sample_of(load(name.removesuffix(SAMPLE)), SAMPLE)
    if name not in MODULES:
        if name.lower().endswith(".toml") or Path(name).is_file():
            from searchapp.tasks.own import task, variant

            path = Path(name)
            return variant.load(path, load) if variant.is_variant(path) else task.load(path)
        raise UsageError(
            f"unknown task {choices_hint(name, names())}, or give the TOML file of your own task (its "
            "name is enough once it is indexed)"
        )
    module, _, attribute = MODULES[name].partition(":")
    return cast("Task", getattr(import_module(f"searchapp.tasks.{module}"), attribute))
