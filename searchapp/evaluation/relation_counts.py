"""Counts, of one question of relation prediction, what is right: officially and honestly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from searchapp.errors import DataError, NotScorable

MEASURES = ("Precision", "Recall", "F1")


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one question: predicted relations and how many are right, gold slots and how many are filled."""

    predicted: int = 0
    right: int = 0
    slots: int = 0
    filled: int = 0

    def figures(self) -> dict[str, float]:
        """Precision, recall and F1; 0 where there is nothing to divide by."""
        precision = self.right / self.predicted if self.predicted else 0.0
        recall = self.filled / self.slots if self.slots else 0.0
        return dict(zip(MEASURES, (precision, recall, _f1(precision, recall)), strict=True))


def count_slots(predicted: Any, gold: Any, where: str) -> tuple[Counts, Counts]:
    """The counts of a question of DBpedia, officially and honestly."""
    if not isinstance(predicted, list):
        kind = type(predicted).__name__
        raise NotScorable(
            f"{where}: the predicted relations must be a list, not {json_name(predicted)}",
            f"AttributeError: '{kind}' object has no attribute 'copy'",
        )
    if not isinstance(gold, list) or not all(isinstance(slot, list | str) for slot in gold):
        raise DataError(f"{where}: the gold relations must be a list of lists")
    if not predicted or not gold:
        what = "predicted relations" if not predicted else "gold relations"
        raise NotScorable(f"{where} has no {what}", "ZeroDivisionError: division by zero")
    # Iterating over a slot that is a text gives its letters, as it does in the official script.
    accepted = [relation for slot in gold for relation in slot]
    right = sum(relation in accepted for relation in predicted)
    remaining, filled = list(predicted), 0
    for slot in gold:
        for relation in slot:
            if relation in remaining:
                remaining.remove(relation)
                filled += 1
                break
    slots = [[slot] if isinstance(slot, str) else slot for slot in gold]
    return (
        Counts(len(predicted), right, len(gold), filled),
        Counts(len(predicted), _right_once(predicted, slots), len(gold), _best_assignment(predicted, slots)),
    )


def _right_once(predicted: Sequence[Any], slots: Sequence[Sequence[Any]]) -> int:
    """How many predicted relations are right, a repeated one at most once for each slot that has it."""
    return sum(
        predicted[:place].count(relation) < sum(relation in slot for slot in slots)
        for place, relation in enumerate(predicted)
    )


def _best_assignment(predicted: Sequence[Any], slots: Sequence[Sequence[Any]]) -> int:
    """The greatest number of slots that can be filled, each by another predicted relation (Kuhn's algorithm)."""
    filler: dict[int, int] = {}

    def fill(slot: int, tried: set[int]) -> bool:
        for place, relation in enumerate(predicted):
            if relation in slots[slot] and place not in tried:
                tried.add(place)
                if place not in filler or fill(filler[place], tried):
                    filler[place] = slot
                    return True
        return False

    return sum(fill(slot, set()) for slot in range(len(slots)))


def count_multisets(predicted: Any, gold: Any, where: str) -> tuple[Counts, Counts]:
    """The counts of a question of Wikidata, officially and honestly: the same."""
    for what, relations in (("predicted", predicted), ("gold", gold)):
        if isinstance(relations, dict):
            raise DataError(f"{where}: the {what} relations must be a list, not an object")
        if not isinstance(relations, list | str):
            raise NotScorable(
                f"{where}: the {what} relations must be a list, not {json_name(relations)}",
                f"TypeError: object of type '{type(relations).__name__}' has no len()",
            )
    if not predicted:
        counts = Counts(slots=len(gold))
        return counts, counts
    for what, relations in (("predicted", predicted), ("gold", gold)):
        nested = next((relation for relation in relations if isinstance(relation, list | dict)), None)
        if nested is not None:
            raise NotScorable(
                f"{where}: the {what} relations must be a flat list",
                f"TypeError: unhashable type: '{type(nested).__name__}'",
            )
    if not gold:
        raise NotScorable(f"{where} has no gold relations", "ZeroDivisionError: division by zero")
    common = (Counter(predicted) & Counter(gold)).total()
    counts = Counts(len(predicted), common, len(gold), common)
    return counts, counts


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def json_name(value: Any) -> str:
    """What JSON calls a value, with its article."""
    names = {
        type(None): "null",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
    }
    return names.get(type(value), "an object")
