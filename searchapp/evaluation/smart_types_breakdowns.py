"""The figures of answer type prediction by category, by number of gold types and by the question's first word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchapp.evaluation.base import Breakdown, Figures, Row

BREAKDOWNS: tuple[str, ...] = ("category", "gold-types", "first-word")
"""The names that `evaluate --by` takes."""

MANY = 5
"""From this number of gold types on, questions are one group."""
RARE = 0.01
"""First words of fewer questions than this share of all are one group."""

_WORD = re.compile(r"\w+")
_CATEGORY_ORDER = ("boolean", "literal", "resource")


@dataclass(frozen=True, slots=True)
class Single:
    """One result: the gold question, its figures (None where it is left out of one), how many types it has.

    `name` is that of the question in `Scored.qrels`.
    """

    question: Mapping[str, Any]
    figures: Figures
    types: int
    name: str


def broken_down(name: str, singles: Sequence[Single]) -> Breakdown:
    """One of `BREAKDOWNS`. Each figure of a group is the mean over its questions that have it, as in the whole."""
    if name == "category":
        groups = [str(single.question["category"]) for single in singles]
        order = [*_CATEGORY_ORDER, *sorted(set(groups) - set(_CATEGORY_ORDER))]
        return _breakdown(name, "by category of the gold", singles, groups, order)
    if name == "gold-types":
        return _by_types(name, singles)
    words = [first_word(str(single.question["question"])) for single in singles]
    counts = Counter(words)
    common = sorted(
        (word for word in counts if counts[word] >= RARE * len(singles)),
        key=lambda word: (-counts[word], word),
    )
    kept = set(common)
    groups = [word if word in kept else "(other)" for word in words]
    return _breakdown(name, "by first word of the question", singles, groups, [*common, "(other)"])


def first_word(question: str) -> str:
    r"""The first word in lower case.

    >>> first_word('"What\'s the capital of Peru?')
    'what'
    """
    match = _WORD.search(question)
    return match[0].lower() if match else "(none)"


def _by_types(name: str, singles: Sequence[Single]) -> Breakdown:
    """By number of gold types, resources alone: the others have one type by definition, or nearly so."""
    resources = [single for single in singles if single.question["category"] == "resource"]
    order = [*map(str, range(MANY)), f"{MANY} or more"]
    groups = [order[min(single.types, MANY)] for single in resources]
    return _breakdown(name, "by number of gold types, resources alone", resources, groups, order)


def _breakdown(
    name: str, title: str, singles: Sequence[Single], groups: Sequence[str], order: Sequence[str]
) -> Breakdown:
    members: dict[str, list[Single]] = {group: [] for group in order}
    for single, group in zip(singles, groups, strict=True):
        members[group].append(single)
    rows = [
        Row(group, len(held), _means(held), tuple(dict.fromkeys(single.name for single in held)))
        for group, held in members.items()
        if held
    ]
    return Breakdown(name, title, tuple(rows), counted="questions")


def _means(singles: Sequence[Single]) -> dict[str, float]:
    means = {}
    for measure in singles[0].figures:
        values = [value for single in singles if (value := single.figures[measure]) is not None]
        if values:
            means[measure] = sum(values) / len(values)
    return means
