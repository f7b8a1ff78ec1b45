"""The signal `cocitation`: documents that solved topics have as answers together with the leading candidates.

Premises come in company: a text that uses one definition often uses related ones. For the first `top` candidates t, the
first documents of the recipe's first signal, and the solved topics q that have both t and d in their gold, a document d
gets

    c(d) = sum over t of share(t) * |q with t and d| / (|q with t| + damping)

share(t) being t's score as a share of the greatest: the strength of co-citation of Small, "Co-citation in the
scientific literature", Journal of the American Society for Information Science 24, 1973, for each t as the part of its
citations together with d. `damping` limits the weight of a t that few solved topics have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from searchapp.model import Explanation, Hits, Topic
from searchapp.progress import Advance
from searchapp.ranking.signals.base import (
    Answer,
    Inputs,
    Need,
    Scale,
    Signal,
    SignalRequest,
    SignalScorer,
    Vote,
    shares_of,
)
from searchapp.ranking.templates import number, whole

Gold = Mapping[str, Mapping[str, float]]
"""The graded answers of each solved topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cocitation(Signal):
    """Documents that solved topics have together with one of the first `top` candidates."""

    kind: ClassVar[str] = "cocitation"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.examples, Need.candidates})

    top: int = whole("beside how many of the first candidates documents count")
    damping: float = number("how much less candidates count that few solved topics have")

    def prepare(self, inputs: Inputs) -> SignalScorer:
        """Read which solved topics have which documents."""
        return _Companions(self, inputs.examples().gold)


class _Companion(NamedTuple):
    """The vote of a solved topic for the documents that it has beside a leading candidate."""

    candidate: str
    solved: str
    share: float
    value: float


class _Companions(SignalScorer):
    def __init__(self, signal: Cocitation, gold: Gold) -> None:
        self._signal = signal
        self._gold = gold
        self._answers = {
            solved: [document for document, grade in answers.items() if grade > 0]
            for solved, answers in gold.items()
        }
        self._citing: defaultdict[str, list[str]] = defaultdict(list)
        for solved, documents in self._answers.items():
            for document in documents:
                self._citing[document].append(solved)

    def answers(self, asked: SignalRequest, advance: Advance) -> Iterator[Answer]:
        for topic, candidates in zip(asked.topics, asked.candidates, strict=True):
            yield self._scores(topic, candidates, asked.scale)
            advance(1)

    def _scores(self, topic: Topic, candidates: Hits, scale: Scale) -> dict[str, float]:
        total: dict[str, float] = {}
        for one in self._companions(topic, candidates):
            for document in self._answers[one.solved]:
                if document != one.candidate:
                    total[document] = total.get(document, 0.0) + one.value
        return total if scale is Scale.scores else shares_of(total.items(), max(total.values(), default=0.0))

    def _companions(self, topic: Topic, candidates: Hits) -> Iterator[_Companion]:
        """Yield the citations of each of the leading candidates, in order; no topic votes for its own answers."""
        best = candidates.scores[0] if candidates else 0.0
        if best <= 0:
            return
        for candidate, score in candidates[: self._signal.top]:
            citing = [one for one in self._citing.get(candidate, ()) if one != topic.id]
            share = score / best
            value = share / (len(citing) + self._signal.damping) if citing else 0.0
            for solved in citing:
                yield _Companion(candidate, solved, share, value)

    def _beside(self, asked: SignalRequest, document_id: str) -> list[_Companion]:
        (topic,), (candidates,) = asked.topics, asked.candidates
        return [
            one
            for one in self._companions(topic, candidates)
            if one.candidate != document_id and self._gold[one.solved].get(document_id, 0.0) > 0
        ]

    def explain(self, asked: SignalRequest, document_id: str) -> Explanation | None:
        (topic,), (candidates,) = asked.topics, asked.candidates
        value = self._scores(topic, candidates, asked.scale).get(document_id)
        if value is None:
            return None
        by_candidate: defaultdict[str, list[_Companion]] = defaultdict(list)
        for one in self._beside(asked, document_id):
            by_candidate[one.candidate].append(one)
        details = tuple(
            Explanation(
                sum(one.value for one in found),
                f"beside {candidate}, whose share is {found[0].share:g}, in the solved topics "
                + ", ".join(one.solved for one in found),
            )
            for candidate, found in by_candidate.items()
        )
        scale = ", as a share of the greatest" if asked.scale is Scale.shares else ""
        said = (
            f"in solved topics together with {len(details)} of the first {self._signal.top} candidates{scale}"
        )
        return Explanation(value, said, details)

    def votes(self, asked: SignalRequest, document_id: str) -> Sequence[Vote]:
        found = [
            Vote(one.solved, document_id, self._gold[one.solved][document_id], one.share, one.value)
            for one in self._beside(asked, document_id)
        ]
        return sorted(found, key=lambda one: -one.value)
