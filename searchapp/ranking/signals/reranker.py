"""The signal `reranker`: the first documents of the preceding signals in the order of a reranking model.

A table `[rerankers.NAME]` of the task file names the model, see `searchapp.embeddings.reranker_source`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

from searchapp.embeddings.reranker_source import TABLE, RerankerSource
from searchapp.engines.base import Index
from searchapp.errors import DataError
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Hits, Topic
from searchapp.progress import Advance, no_progress
from searchapp.ranking.paging import sources
from searchapp.ranking.signals.base import (
    AT_ONCE,
    Inputs,
    Need,
    Normalization,
    Scores,
    Signal,
    SignalRequest,
    SignalScorer,
    ranked,
)
from searchapp.ranking.templates import RecipeTable, text, whole
from searchapp.text import choices_hint, counted

# The texts of so many documents are in memory at once.
_DOCUMENTS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranker(Signal):
    """The documents of the preceding signals: the first `candidates` by the scores of a model, then the others."""

    kind: ClassVar[str] = "reranker"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.leaders})
    is_external: ClassVar[bool] = True
    leaders: ClassVar[int] = sys.maxsize

    reranker: str = text("the table [rerankers.NAME] of the task file that names the model")
    candidates: int = whole(
        "number of documents that the model scores, the first ones of the preceding signals", default=100
    )
    source: RerankerSource

    @classmethod
    def read(cls, table: RecipeTable) -> Self:
        """Read a table as `Signal.read` does.

        Raises:
            DataError: also if the task file has no such reranker.
        """
        values = table.parameters(cls)
        name, known = values["reranker"], table.place.book.rerankers
        if name not in known:
            choice = choices_hint(name, known) if known else f"{name!r}: add a table [{TABLE}.{name}]"
            raise DataError(
                f"the recipe {table.place}: {table.place.book.file.name} has no reranker {choice}"
            )
        return cls(name=table.name, source=known[name], **values)

    def parameters(self) -> dict[str, Any]:
        # super() fails in a dataclass with slots: the decorator creates a new class.
        return {**Signal.parameters(self), "source": self.source.record()}

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _RerankerScorer(self, inputs)


class _RerankerScorer(SignalScorer):
    def __init__(self, signal: Reranker, inputs: Inputs) -> None:
        self._signal = signal
        self._index: Index = inputs.index
        self._rerank = inputs.rerank

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Scores]:
        pairs = zip(request.topics, request.leaders, strict=True)
        at_once = max(1, min(AT_ONCE, _DOCUMENTS_AT_ONCE // self._signal.candidates))
        while batch := list(itertools.islice(pairs, at_once)):
            for (_, leaders), scores in zip(batch, self._model_scores(batch, advance), strict=True):
                first = _normalized(scores, request.normalization)
                others = [document for document in leaders.document_ids if document not in first]
                yield first | _following(others, first)

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,), (leaders,) = request.topics, request.leaders
        if document_id not in leaders.document_ids:
            return None
        before = leaders.document_ids.index(document_id) + 1
        (scores,) = self._model_scores([(topic, leaders)], no_progress)
        if document_id not in scores:
            (answer,) = self.answers(request, no_progress)
            description = f"below the first {counted(len(scores), 'document')}, which {self._name} reranks"
            return Explanation(answer[document_id], f"{description}: rank {before:,} before and after")
        order = ranked(_normalized(scores, request.normalization), len(scores)).document_ids
        after = order.index(document_id) + 1
        return Explanation(
            scores[document_id],
            f"score by {self._name}: rank {after:,} of the first {len(scores):,}, rank {before:,} before",
        )

    def model(self) -> dict[str, Any]:
        return {"digest": self._signal.source.digest}

    @property
    def _name(self) -> str:
        return f"the reranker {self._signal.reranker}"

    def _model_scores(self, batch: Sequence[tuple[Topic, Hits]], advance: Advance) -> list[dict[str, float]]:
        """Return the scores by the model of the first documents of each topic, by id."""
        candidates = [leaders.document_ids[: self._signal.candidates] for _, leaders in batch]
        known = sources(self._index, dict.fromkeys(itertools.chain(*candidates)))
        # Training topics may vote for documents that the index no longer has.
        first = [[document for document in documents if document in known] for documents in candidates]
        queries = [
            (topic.text, [str(known[document]["text"]) for document in documents])
            for (topic, _), documents in zip(batch, first, strict=True)
        ]
        scores = self._rerank(self._signal.source, queries, advance)
        return [dict(zip(documents, row, strict=True)) for documents, row in zip(first, scores, strict=True)]


def _normalized(scores: Scores, normalization: Normalization) -> dict[str, float]:
    """Return scores as shares of the greatest, or unchanged.

    Before shares are taken, all are raised if the least is not above 0, to the range divided by their number.
    """
    if normalization is Normalization.none or not scores:
        return dict(scores)
    least, greatest = min(scores.values()), max(scores.values())
    rise = (greatest - least or 1.0) / len(scores) - least if least <= 0 else 0.0
    return {document: (score + rise) / (greatest + rise) for document, score in scores.items()}


def _following(documents: Sequence[str], scores: Scores) -> dict[str, float]:
    """Return scores below the least one, which keep the order of documents."""
    least = min(scores.values(), default=0.0)
    step = (abs(least) or 1.0) / (len(documents) + 1)
    return {document: least - rank * step for rank, document in enumerate(documents, start=1)}
