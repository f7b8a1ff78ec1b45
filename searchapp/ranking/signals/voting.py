"""What signals have in common for which the nearest of something votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from searchapp.ranking.signals.base import Signal

if TYPE_CHECKING:
    from searchapp.ranking.tables import Table
    from searchapp.ranking.templates import TopicQuery


@dataclass(frozen=True, slots=True)
class Voting(Signal):
    """`query` finds the nearest `k`; each votes with the weight (s / s1) ** `power`.

    s is the score of one of them, s1 that of the first.
    """

    meanings: ClassVar[Mapping[str, str]] = {
        "k": "how many of the nearest vote",
        "power": "how steeply a vote falls with the score: (s / s1) ** power, s1 being that of the nearest",
    }

    query: TopicQuery
    k: int
    power: float

    @classmethod
    def read(cls, table: Table) -> Self:
        """The signal of a table with `template`, `k` and `power`."""
        query = table.query("template")
        return cls(table.name, table.weight(), query, table.whole("k"), table.number("power"))

    @property
    def queries(self) -> tuple[TopicQuery, ...]:
        """The one that finds who votes."""
        return (self.query,)

    def parameters(self) -> dict[str, Any]:
        """How many vote, and how steeply."""
        return {"k": self.k, "power": self.power}
