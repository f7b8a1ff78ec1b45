"""The names of what can be tuned: the parameters of a recipe, and k1 and b of the similarities of the mappings.

neighbours.k            as `searchapp tasks show TASK --recipe R` lists it
k1, b                   of all similarities of the documents' mapping, unless the recipe has one of that name
mapping.k1              the same
mapping.statement.b     of the similarity of that name
examples.k1             of the mapping of solved topics, where that is another one
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from searchapp.app.cross_validation import Scoring
from searchapp.engines.index_settings import NUMBERS, Similarities, similarities, with_similarities
from searchapp.errors import UsageError
from searchapp.names import meant
from searchapp.ranking import recipes
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.tables import WHOLE
from searchapp.tasks.base import Task

MAPPING, EXAMPLES = "mapping", "examples"


@dataclass(frozen=True, slots=True)
class Trial:
    """A recipe and the similarities of the indexes, with the values of a trial."""

    recipe: Recipe
    scoring: Scoring


class Names:
    """What can be tuned of a recipe of a task, some of whose parameters were set before."""

    def __init__(self, task: Task, recipe: str, overrides: Mapping[str, Any]) -> None:
        self._task = task
        self._book = task.recipe_book()
        self._overrides = dict(overrides)
        self.recipe = recipes.load(self._book, recipe, overrides)
        self._settable = {one.name: one for one in recipes.settable(self._book, self.recipe)}
        documents, examples = task.index_mapping(), task.examples_index_mapping()
        self._alike = examples is None or examples == documents
        self.mappings = {MAPPING: documents} | (
            {} if examples is None or self._alike else {EXAMPLES: examples}
        )
        self._similarities = {part: similarities(mapping) for part, mapping in self.mappings.items()}

    def usual(self, name: str) -> str:
        """The name under which a parameter is listed, of which it has several."""
        full = {one.full: one.name for one in self._settable.values()}
        similarity = f"{MAPPING}.{name}" if name in NUMBERS and name not in self._settable else name
        return full.get(similarity, similarity)

    def whole(self, name: str) -> bool:
        """Whether a parameter takes whole numbers."""
        return name in self._settable and self._settable[name].kind == WHOLE

    def trial(self, values: Mapping[str, Any]) -> Trial:
        """A recipe with these values.

        Raises:
            UsageError: there is no such parameter, or a value is not one that it can have.
        """
        of_recipe: dict[str, Any] = {}
        of_parts: dict[str, dict[str, dict[str, float]]] = {part: {} for part in self.mappings}
        for name, value in values.items():
            if name in self._settable:
                of_recipe[name] = value
                continue
            part, of_similarities, key = self._place(name)
            number = _number(name, key, value)
            for one in of_similarities:
                of_parts[part].setdefault(one, {})[key] = number
        recipe = recipes.load(self._book, self.recipe.name, {**self._overrides, **of_recipe})
        return Trial(recipe, self._scoring(of_parts))

    def mappings_of(self, scoring: Scoring) -> dict[str, dict[str, Any]]:
        """The mappings with these similarities, of those that differ."""
        numbers: dict[str, Similarities] = {MAPPING: scoring.documents}
        if not self._alike:
            numbers[EXAMPLES] = scoring.examples
        return {
            part: with_similarities(self.mappings[part], found) for part, found in numbers.items() if found
        }

    def _scoring(self, of_parts: Mapping[str, Similarities]) -> Scoring:
        documents = of_parts[MAPPING]
        return Scoring(documents, documents if self._alike else of_parts[EXAMPLES])

    def _place(self, name: str) -> tuple[str, list[str], str]:
        """Of which mapping and which of its similarities a name is a number, and of which number."""
        part, *middle, key = name.split(".") if "." in name else (MAPPING, name)
        known = self._similarities.get(part, {})
        if key in NUMBERS and known and len(middle) <= 1 and (not middle or middle[0] in known):
            return part, middle or list(known), key
        there = [*self._settable, *self._listed()]
        raise UsageError(
            f"{self._task.reference} with the recipe {self.recipe.name} has no parameter {name!r}{meant(name, there)} "
            f"to tune: it has {', '.join(there)}"
        )

    def _listed(self) -> list[str]:
        """The names of numbers of similarities."""
        of_all = [f"{part}.{key}" for part, known in self._similarities.items() if known for key in NUMBERS]
        of_one = [
            f"{part}.{one}.{key}"
            for part, known in self._similarities.items()
            for one in known
            for key in NUMBERS
        ]
        return [*of_all, *of_one]


def _number(name: str, key: str, value: object) -> float:
    right = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if not right or not 0 <= float(value) <= (1 if key == "b" else float("inf")):  # type: ignore[arg-type]
        kind = "a number from 0 to 1" if key == "b" else "a number that is not negative"
        raise UsageError(f"{name} must be {kind}, not {value!r}")
    return float(value)  # type: ignore[arg-type]
