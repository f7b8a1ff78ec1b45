"""The signal `prior`: the score of a query that is the same for all topics, such as whether documents have a field.

It is searched once.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from searchapp.engines.base import Index
from searchapp.errors import DataError
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Topic
from searchapp.progress import no_progress
from searchapp.ranking.signals.base import (
    Inputs,
    Normalization,
    Signal,
    SignalRequest,
    SignalScorer,
    TopicScorer,
    one_document,
    searched,
    shares_of,
)
from searchapp.ranking.templates import TopicQuery, template

NO_TOPIC = Topic("", "")
_TOPIC = "topic."


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior(Signal):
    """The scores of all documents that match `query`, which uses no variable of a topic."""

    kind: ClassVar[str] = "prior"

    query: TopicQuery = template()

    def __post_init__(self) -> None:
        used = sorted(name for name in self.query.template.variables if name.startswith(_TOPIC))
        if used:
            raise DataError(
                f"{self.query.template.name} uses {used[0]}, but the signal {self.name!r} is the same "
                "for all topics: use the signal direct, or another template"
            )

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _Prior(self.query, inputs.index)


class _Prior(TopicScorer):
    def __init__(self, query: TopicQuery, index: Index) -> None:
        self._query = query
        self._index = index

    @cached_property
    def _scores(self) -> dict[str, float]:
        query = self._query.body(NO_TOPIC, 1)["query"]
        matching = self._index.counts(query, {}).total
        if not matching:
            return {}
        (hits,) = searched(
            self._index, [NO_TOPIC], lambda topic: self._query.body(topic, matching), no_progress
        )
        return dict(zip(hits.document_ids, hits.scores, strict=True))

    @cached_property
    def _shares(self) -> dict[str, float]:
        return shares_of(self._scores)

    def scores(self, topic: Topic, request: SignalRequest) -> dict[str, float]:  # noqa: ARG002  # the same for all
        return self._shares if request.normalization is Normalization.max else self._scores

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        query = self._query.body(NO_TOPIC, 1).get("query")
        hits = self._index.find(one_document(document_id, query) | {"explain": True})
        if not hits or hits[0].explanation is None:
            return None
        value = self.scores(NO_TOPIC, request)[document_id]
        return Explanation(value, "the same for every topic", (hits[0].explanation,))
