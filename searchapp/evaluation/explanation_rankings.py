"""What the scorers of both explanation tasks have in common: where the facts of an explanation are ranked."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

Ranked = Sequence[str | None]
"""A ranking as `formats.two_column` reads it: each fact once; None is a missing value, which takes up a rank."""

Predictions = Mapping[str, Ranked]
"""The ranking of each question."""

Terms = Callable[[str], frozenset[str]]
"""The content words of a text, without inflection."""


def ranks_of(ranked: Ranked, facts: Collection[str]) -> dict[str, int]:
    """The rank, from 1 on, of those of the facts that are ranked."""
    wanted = facts if isinstance(facts, Mapping | set | frozenset) else set(facts)
    return {fact: rank for rank, fact in enumerate(ranked, 1) if fact in wanted and fact is not None}


def average_precision(ranks: Iterable[int], wanted: int) -> float:
    """The precisions at the ranks of relevant facts, summed and divided by the number of all of them."""
    return math.fsum(found / rank for found, rank in enumerate(sorted(ranks), 1)) / wanted if wanted else 0.0


def without(ranked: Ranked, left_out: Collection[str]) -> list[str | None]:
    """A ranking from which some facts are taken out: those behind them move up."""
    return [fact for fact in ranked if fact not in left_out]


def distinct(ranked: Ranked) -> Sequence[str]:
    """A ranking without missing values."""
    return ranked if None not in ranked else [fact for fact in ranked if fact is not None]  # type: ignore[return-value]


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; 0 of nothing."""
    return math.fsum(values) / len(values) if values else 0.0
