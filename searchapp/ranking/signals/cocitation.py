"""The signal `cocitation`: documents that training topics have as answers together with the first candidates.

A text that uses one premise often uses related ones. For the first `top` candidates t, the first documents of the
recipe's first signal, and the training topics q with both t and d in their gold, a document d gets

    c(d) = sum over t of share(t) * |q with t and d| / (|q with t| + damping)

where share(t) is t's score as a share of the greatest: the co-citation strength of Small, "Co-citation in the
scientific literature", Journal of the American Society for Information Science 24, 1973, relative to the citations of
t. `damping` limits the weight of rarely cited t.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Hits, Topic
from searchapp.progress import Advance
from searchapp.ranking.signals.base import (
    Answer,
    Inputs,
    Need,
    Normalization,
    Signal,
    SignalRequest,
    SignalScorer,
    Vote,
    shares_of,
)
from searchapp.ranking.templates import number, whole

# The graded answers of each training topic.
Gold = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cocitation(Signal):
    """Documents that training topics have together with one of the first `top` candidates."""

    kind: ClassVar[str] = "cocitation"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.examples, Need.candidates})

    top: int = whole("number of first candidates whose co-cited documents count")
    damping: float = number("how much less candidates count that occur in few training topics")

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _Companions(self, inputs.examples().gold)


class _Companion(NamedTuple):
    """The vote of a training topic for the documents that it has beside a candidate."""

    candidate: str
    topic_id: str
    share: float
    value: float


class _Companions(SignalScorer):
    def __init__(self, signal: Cocitation, gold: Gold) -> None:
        self._signal = signal
        self._gold = gold
        self._answers = {
            topic_id: [document for document, grade in answers.items() if grade > 0]
            for topic_id, answers in gold.items()
        }
        self._citing: defaultdict[str, list[str]] = defaultdict(list)
        for topic_id, documents in self._answers.items():
            for document in documents:
                self._citing[document].append(topic_id)

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        for topic, candidates in zip(request.topics, request.candidates, strict=True):
            yield self._scores(topic, candidates, request.normalization)
            advance(1)

    def _scores(self, topic: Topic, candidates: Hits, normalization: Normalization) -> dict[str, float]:
        totals: dict[str, float] = {}
        for vote in self._companions(topic, candidates):
            for document in self._answers[vote.topic_id]:
                if document != vote.candidate:
                    totals[document] = totals.get(document, 0.0) + vote.value
        return totals if normalization is Normalization.none else shares_of(totals)

    def _companions(self, topic: Topic, candidates: Hits) -> Iterator[_Companion]:
        """Yield the votes for each candidate, in order; no topic votes for its own answers."""
        best = candidates.scores[0] if candidates else 0.0
        if best <= 0:
            return
        for candidate, score in candidates[: self._signal.top]:
            citing_topics = [topic_id for topic_id in self._citing.get(candidate, ()) if topic_id != topic.id]
            share = score / best
            value = share / (len(citing_topics) + self._signal.damping) if citing_topics else 0.0
            for topic_id in citing_topics:
                yield _Companion(candidate, topic_id, share, value)

    def _beside(self, request: SignalRequest, document_id: str) -> list[_Companion]:
        (topic,), (candidates,) = request.topics, request.candidates
        return [
            companion
            for companion in self._companions(topic, candidates)
            if companion.candidate != document_id and self._gold[companion.topic_id].get(document_id, 0.0) > 0
        ]

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,), (candidates,) = request.topics, request.candidates
        value = self._scores(topic, candidates, request.normalization).get(document_id)
        if value is None:
            return None
        by_candidate: defaultdict[str, list[_Companion]] = defaultdict(list)
        for companion in self._beside(request, document_id):
            by_candidate[companion.candidate].append(companion)
        details = tuple(
            Explanation(
                sum(companion.value for companion in companions),
                f"beside {candidate}, whose share is {companions[0].share:g}, in the training topics "
                + ", ".join(companion.topic_id for companion in companions),
            )
            for candidate, companions in by_candidate.items()
        )
        scale = ", as a share of the greatest" if request.normalization is Normalization.max else ""
        description = (
            f"in the gold of training topics together with {len(details)} of the first "
            f"{self._signal.top} candidates{scale}"
        )
        return Explanation(value, description, details)

    def votes(self, request: SignalRequest, document_id: str) -> Sequence[Vote]:
        votes = [
            Vote(vote.topic_id, document_id, self._gold[vote.topic_id][document_id], vote.share, vote.value)
            for vote in self._beside(request, document_id)
        ]
        return sorted(votes, key=lambda vote: -vote.value)
