"""The signal `transformer`: the scores of a PyTerrier transformer.

A recipe can't name Python code: only a Python program gives the transformer, by the signal's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from searchapp.engines.base import Index
from searchapp.errors import DataError, UsageError
from searchapp.formats import frames
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Hits, Topic
from searchapp.progress import Advance, no_progress
from searchapp.ranking.paging import sources
from searchapp.ranking.signals.base import (
    AT_ONCE,
    Inputs,
    Need,
    Signal,
    SignalRequest,
    SignalScorer,
    ranked,
)
from searchapp.ranking.templates import choice, window

QUERIES, CANDIDATES = "queries", "candidates"

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # in the description of an object


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerSignal(Signal):
    """The documents that a transformer finds for queries, or candidates that it scores."""

    kind: ClassVar[str] = "transformer"

    window: int = window()
    input: str = choice(
        (QUERIES, CANDIDATES),
        "what the transformer gets: queries, or the documents of the first signal with their texts",
        default=QUERIES,
    )

    @property
    def needs(self) -> frozenset[Need]:  # type: ignore[override]
        return frozenset({Need.candidates} if self.input == CANDIDATES else ())

    def prepare(self, inputs: Inputs) -> SignalScorer:
        if self.name not in inputs.transformers:
            raise UsageError(
                f"the signal {self.name} is a PyTerrier transformer, which only Python code can give: rank with "
                "searchapp.Index.rank(…, transformers={…}), or choose another recipe"
            )
        return _TransformerScorer(self, inputs.transformers[self.name], inputs)


class _TransformerScorer(SignalScorer):
    def __init__(self, signal: TransformerSignal, transformer: Any, inputs: Inputs) -> None:
        self._signal = signal
        self._transformer = transformer
        self._index: Index = inputs.index
        self._topics_are_documents = inputs.topics_are_documents

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Hits]:
        depth = max(self._signal.window, request.depth)
        for start in range(0, len(request.topics), AT_ONCE):
            topics = request.topics[start : start + AT_ONCE]
            scores = self._scores(topics, request.candidates[start : start + AT_ONCE])
            for topic in topics:
                own = topic.id if self._topics_are_documents else None
                yield ranked(scores.get(topic.id, {}), depth, own)
                advance(1)

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (hits,) = self.answers(request, no_progress)
        scores = dict(hits)
        if document_id not in scores:
            return None
        return Explanation(scores[document_id], f"score of {self.model()['transformer']}")

    def model(self) -> dict[str, Any]:
        return {"transformer": _ADDRESS.sub("", repr(self._transformer))}

    def _scores(self, topics: Sequence[Topic], candidates: Sequence[Hits]) -> dict[str, dict[str, float]]:
        """Return the scores of the transformer by topic and document.

        Raises:
            DataError: its data frame lacks a column or an id, or a score is not a finite number.
        """
        if self._signal.input == QUERIES:
            columns = {
                "qid": [topic.id for topic in topics],
                "query": [topic.text for topic in topics],
            }
        else:
            columns = self._candidates(topics, candidates)
        scores: dict[str, dict[str, float]] = {}
        try:
            for topic, document, rank, score in frames.run_rows(
                self._transformer.transform(frames.make_frame(columns, "pandas"))
            ):
                scores.setdefault(topic, {})[document] = -float(rank or 0) if score is None else score
        except UsageError as error:
            raise DataError(f"the transformer of the signal {self._signal.name}: {error}") from error
        return scores

    def _candidates(self, topics: Sequence[Topic], candidates: Sequence[Hits]) -> dict[str, list[Any]]:
        names = ("qid", "query", "docno", "text", "score", "rank")
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for topic, hits in zip(topics, candidates, strict=True):
            found = sources(self._index, hits.document_ids)
            for rank, (document, score) in enumerate(hits):
                text = str(found[document]["text"]) if document in found else ""
                row = (topic.id, topic.text, document, text, score, rank)
                for name, value in zip(names, row, strict=True):
                    columns[name].append(value)
        return columns
