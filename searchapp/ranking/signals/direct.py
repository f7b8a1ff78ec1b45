"""The signal `direct`: a query template over the documents."""

from __future__ import annotations

from typing import ClassVar

from searchapp.engines.base import Index
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.queries import dsl
from searchapp.model import Body, Explanation, Hits, Topic
from searchapp.ranking import paging
from searchapp.ranking.signals.base import (
    Inputs,
    Retriever,
    Signal,
    SignalRequest,
    SignalScorer,
    one_document,
)
from searchapp.ranking.templates import TopicQuery, template, window


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct(Signal):
    """The hits of `query`."""

    kind: ClassVar[str] = "direct"

    window: int = window()
    query: TopicQuery = template()

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _Searching(self.query, inputs.index, self.window)


@dataclass(frozen=True, slots=True)
class _Searching(Retriever):
    query: TopicQuery
    index: Index
    window: int

    @property
    def searched(self) -> Index:
        return self.index

    def body(self, topic: Topic, request: SignalRequest) -> Body:
        return self.query.body(topic, max(self.window, request.depth))

    def answer(self, topic: Topic, hits: Hits, request: SignalRequest) -> Hits:  # noqa: ARG002  # the engine's hits, unchanged
        return hits

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        body = self.body(topic, request)
        only = one_document(document_id)
        if paging.finds_nearest(body):
            (section,) = dsl.listed(body["knn"])
            filters = [*dsl.listed(section.get("filter")), only["query"]]
            asked = {**only, "knn": {**section, "filter": filters}, "query": body["query"]}
        elif "knn" in body:  # which must find the nearest documents of the ranking
            asked = {**body, **only, "query": body["query"], "post_filter": only["query"]}
        else:
            asked = one_document(document_id, body.get("query"))
        hits = self.index.find(asked | {"explain": True})
        return hits[0].explanation if hits else None
