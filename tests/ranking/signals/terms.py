"""A small space of terms, in which signals are computed by hand."""

from __future__ import annotations

from searchapp.model import Document, Example, Topic
from searchapp.progress import no_progress
from searchapp.ranking.signals.base import Answer, Inputs, Normalization, Signal, SignalRequest, SignalScorer
from searchapp.ranking.signals.terms import TermSpace

DOCUMENTS = [
    Document("sun", "the sun is a star"),
    Document("star", "a star gives light"),
    Document("ice", "ice is water"),
    Document("empty", ""),
]
SOLVED = [
    Example(Topic("q1", "why does ice melt", {"answer": "water"}), {"ice": 1.0}),
    Example(Topic("q2", "what does a star give", {"answer": "light"}), {"star": 1.0, "sun": 0.5}),
    Example(Topic("q3", "why is the sun bright", {"answer": "light"}), {"sun": 1.0}),
]


def space() -> TermSpace:
    return TermSpace(DOCUMENTS, SOLVED, str.split)


def prepared(
    signal: Signal, found: TermSpace | None = None, *, topics_are_documents: bool = False
) -> SignalScorer:
    """A signal that is ready to rank in the space."""
    held = found or space()
    return signal.prepare(
        Inputs(None, topics_are_documents, terms=lambda: held)  # type: ignore[arg-type]  # no engine is asked
    )


def asked(
    *topics: Topic, normalization: Normalization = Normalization.none, depth: int = 10
) -> SignalRequest:
    return SignalRequest(topics, depth, normalization)


def answer(scorer: SignalScorer, told: SignalRequest) -> Answer:
    (found,) = scorer.answers(told, no_progress)
    return found
