"""Figures of single topics, and the orders in which topics are listed. Imports nothing else of searchapp."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Order(StrEnum):
    """In which order topics are gone through."""

    file = "file"
    """As the run has them."""

    worst = "worst"
    """Those with the least figure first; those without one last."""

    missed = "missed"
    """Those with the most missed gold first."""


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """How a topic does: its figure (None: the scorer has none), and how many of its relevant documents are missed."""

    value: float | None
    relevant: int
    missed: int

    @property
    def fails(self) -> bool:
        """Whether something is wrong: a relevant document is missed, or another one stands before it."""
        return bool(self.relevant) and (bool(self.missed) or (self.value is not None and self.value < 1))


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of topics by their ids; `name` is that of the measure of one topic.

    `instead_of` says why they are not those of the organisers' scorer, where they are not.
    """

    name: str
    topics: Mapping[str, TopicFigures]
    instead_of: str | None = None


def topic_ids(names: Sequence[str], known: Collection[str]) -> dict[str, str]:
    """The ids of topics by the names that a scorer has for them; nothing of one that nobody can tell.

    A scorer may call topics otherwise, by the names of files for instance; the grades are in the same order.

    >>> topic_ids(["a.tsv", "b.tsv"], ["a", "b"])
    {'a.tsv': 'a', 'b.tsv': 'b'}
    """
    if all(name in known for name in names):
        return {name: name for name in names}
    return dict(zip(names, known, strict=True)) if len(names) == len(known) else {}
