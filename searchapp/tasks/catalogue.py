"""The names of the tasks that ship with searchapp, and how users' own are called beside them."""

from __future__ import annotations

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
"""The module of each shipped task in this package, and the name of the task there."""

OWN = "own-"
"""How the names of the indexes of users' own tasks begin."""

SAMPLE = "-sample"
"""How the name of a shipped task's sample ends, which is a task of its own."""


def names() -> list[str]:
    """The names of all tasks that ship with searchapp."""
    return list(MODULES)


def sample_names() -> list[str]:
    """The names of the samples, in the order of their tasks."""
    return [f"{name}{SAMPLE}" for name in MODULES]
