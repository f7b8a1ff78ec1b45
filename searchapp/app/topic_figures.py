"""Figures of single topics, and orders of topics; imports nothing of searchapp."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from searchapp.lucene.dataclass import dataclass


class Order(StrEnum):
    """The order of topics."""

    file = "file"  # of the run
    worst = "worst"  # the lowest figure first; topics without one last
    missed = "missed"  # the most missed gold first


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """The figure of a topic, and how many of its relevant documents are missed."""

    value: float | None  # None if the scorer has none
    relevant: int
    missed: int

    @property
    def fails(self) -> bool:
        return bool(self.relevant) and (bool(self.missed) or (self.value is not None and self.value < 1))


@dataclass(frozen=True, slots=True)
class FiguresByTopic:
    """The figures of topics by their ids."""

    name: str  # the measure of one topic
    topics: Mapping[str, TopicFigures]
    instead_of: str | None = None  # why they are not the official ones


def topic_ids(names: Sequence[str], known: Collection[str]) -> dict[str, str]:
    """Return the ids of topics by the scorer's names, which may be file names in the same order; empty if unmatched."""
    if all(name in known for name in names):
        return {name: name for name in names}
    return dict(zip(names, known, strict=True)) if len(names) == len(known) else {}
