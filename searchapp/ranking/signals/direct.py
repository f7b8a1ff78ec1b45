"""The signal `direct`: a query template over the documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from searchapp.engines.base import BEST_FIRST
from searchapp.ranking.signals.base import Answer, Asked, Inputs, Scorer, Signal, searched

if TYPE_CHECKING:
    from searchapp.engines.base import Explanation, Index
    from searchapp.progress import Advance
    from searchapp.ranking.tables import Table
    from searchapp.ranking.templates import TopicQuery


@dataclass(frozen=True, slots=True)
class Direct(Signal):
    """The hits of `query`."""

    kind: ClassVar[str] = "direct"

    query: TopicQuery

    @classmethod
    def read(cls, table: Table) -> Direct:
        """The signal of a table with `template`."""
        return cls(table.name, table.weight(), table.query("template"))

    @property
    def queries(self) -> tuple[TopicQuery, ...]:
        """The one that retrieves."""
        return (self.query,)

    def parameters(self) -> dict[str, Any]:
        """Nothing else."""
        return {}

    def prepare(self, inputs: Inputs) -> Scorer:
        """Nothing but the index is needed."""
        return _Searching(self.query, inputs.index)


@dataclass(frozen=True, slots=True)
class _Searching(Scorer):
    query: TopicQuery
    index: Index

    def answers(self, asked: Asked, advance: Advance) -> Iterator[Answer]:
        return searched(self.index, asked.topics, lambda topic: self.query.body(topic, asked.depth), advance)

    def explain(self, asked: Asked, document_id: str) -> Explanation | None:
        (topic,) = asked.topics
        only = {"ids": {"values": [document_id]}}
        body = self.query.body(topic, 1)
        wanted = {"bool": {"must": [body["query"]], "filter": [only]}} if "query" in body else only
        found = self.index.find(
            {"query": wanted, "size": 1, "sort": BEST_FIRST, "_source": False, "explain": True}
        )
        return found[0].explanation if found else None
