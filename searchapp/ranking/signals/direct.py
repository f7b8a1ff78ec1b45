"""The signal `direct`: a query template over the documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from searchapp.ranking.signals.base import Asked, Inputs, Retriever, Scorer, Signal, one_document

if TYPE_CHECKING:
    from searchapp.engines.base import Index
    from searchapp.model import Body, Explanation, Hits, Topic
    from searchapp.ranking.templates import Table, TopicQuery


@dataclass(frozen=True, slots=True)
class Direct(Signal):
    """The hits of `query`."""

    kind: ClassVar[str] = "direct"

    query: TopicQuery

    @classmethod
    def read(cls, table: Table) -> Direct:
        """The signal of a table with `template` and, if need be, `window`."""
        return cls(table.name, table.weight(), table.query("template"), window=table.window())

    @property
    def queries(self) -> tuple[TopicQuery, ...]:
        """The one that retrieves."""
        return (self.query,)

    def parameters(self) -> dict[str, Any]:
        """Nothing else."""
        return {}

    def prepare(self, inputs: Inputs) -> Scorer:
        """Nothing but the index is needed."""
        return _Searching(self.query, inputs.index, self.window)


@dataclass(frozen=True, slots=True)
class _Searching(Retriever):
    query: TopicQuery
    index: Index
    window: int

    @property
    def searched(self) -> Index:
        return self.index

    def body(self, topic: Topic, asked: Asked) -> Body:
        return self.query.body(topic, max(self.window, asked.depth))

    def answer(self, topic: Topic, hits: Hits, asked: Asked) -> Hits:  # noqa: ARG002  # the engine's as they are
        return hits

    def explain(self, asked: Asked, document_id: str) -> Explanation | None:
        (topic,) = asked.topics
        query = self.query.body(topic, 1).get("query")
        found = self.index.find(one_document(document_id, query) | {"explain": True})
        return found[0].explanation if found else None
