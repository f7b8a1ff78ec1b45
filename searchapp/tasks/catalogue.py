"""The names of the tasks that ship with searchapp, and how users' own are called beside them."""

from __future__ import annotations

MODULES = {
    "nlps": "nlps",
    "explanation-2019": "explanation_2019",
    "explanation-2021": "explanation_2021",
    "checkthat": "checkthat",
    "smart-types-dbpedia": "smart_types_dbpedia",
    "smart-types-wikidata": "smart_types_wikidata",
    "smart-relations-dbpedia": "smart_relations_dbpedia",
    "smart-relations-wikidata": "smart_relations_wikidata",
}
"""The module of each shipped task in this package, which has it as TASK."""

OWN = "own-"
"""How the names of the indexes of users' own tasks begin."""


def names() -> list[str]:
    """The names of all tasks that ship with searchapp."""
    return list(MODULES)
