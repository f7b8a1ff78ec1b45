"""Why a document is at its rank for a query, or why it is not there at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest

from searchapp.app.search import Searcher, SearchRequest
from searchapp.engines.base import Explanation
from searchapp.model import Hit
from searchapp.ranking import explanations, search
from searchapp.ranking.explanations import Line
from searchapp.ranking.rank import Share
from searchapp.ranking.signals.base import Vote


class Standing(StrEnum):
    """What became of a document."""

    ranked = "ranked"
    unknown = "unknown"
    """No document of this id is indexed."""

    filtered = "filtered"
    """It matches, but a filter leaves it out."""

    left_out = "left out"
    """It has something of the query, but a clause that must match does not, or one that must not does."""

    too_little = "too little"
    """It has something of the topic, but less than the recipe's query wants."""

    behind = "behind"
    """It is not among the documents that a recipe of several signals ranks, FUSED_DEPTH at most."""

    no_match = "no match"
    """It does not match what is looked for."""

    not_in_run = "not in the run"
    """It is not in a run of which nobody knows how it was made."""


@dataclass(frozen=True, slots=True)
class Why:
    """What became of a document; `rank`, from 1, `score` and `explanation` are those of a ranked one."""

    document_id: str
    standing: Standing
    rank: int | None = None
    score: float | None = None
    explanation: Explanation | None = None
    shares: tuple[Share, ...] = ()
    """What each signal gave, for a recipe of several."""

    @property
    def votes(self) -> list[Vote]:
        """Who voted for it, the greatest votes of each signal first."""
        return [vote for share in self.shares for vote in share.votes]


def said(why: Why, task: str, of_topic: str = "") -> str:
    """What became of a document, as the rest of a sentence that begins with its id; `task` is a name.

    >>> said(Why("17", Standing.ranked, 3, 0.5), "nlps")
    'is at rank 3, with the score 0.5000'
    """
    sentences = {
        Standing.ranked: f"is at rank {why.rank or 0:,}{of_topic}, with the score {why.score or 0.0:.4f}",
        Standing.unknown: f"is not indexed: no document of {task} has this id",
        Standing.filtered: "matches, but a filter leaves it out",
        Standing.left_out: "has something of what is searched for, but a + or - leaves it out",
        Standing.too_little: "has something of what is searched for, but less than the recipe's query wants",
        Standing.behind: f"matches, but is behind the last document that is ranked{of_topic}",
        Standing.no_match: "has nothing of what is searched for",
        Standing.not_in_run: "is not in the run, and nobody knows how that was ranked",
    }
    return sentences[why.standing]


@dataclass(frozen=True, slots=True)
class Difference:
    """What gives something to one or both of two scores: a term of a field, a signal, or another part.

    `upper` and `lower` are None where a score has no such part; `figures` are those that it was computed from, which
    differ from document to document.
    """

    what: str
    upper: float | None
    lower: float | None
    upper_figures: tuple[tuple[str, str], ...] = ()
    lower_figures: tuple[tuple[str, str], ...] = ()

    @property
    def gain(self) -> float:
        """By how much it puts the upper one above the other; less than 0 where it speaks for the lower one."""
        return (self.upper or 0.0) - (self.lower or 0.0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Why one hit is above another: what decides most comes first, whichever of the two it speaks for."""

    upper: Why
    lower: Why
    signals: tuple[Difference, ...]
    terms: tuple[Difference, ...]

    @property
    def decides(self) -> Difference | None:
        """What speaks most for the upper one; None where the scores are equal, and the ids decide."""
        if self.upper.score == self.lower.score:
            return None
        most = max(self.signals or self.terms, key=lambda one: one.gain, default=None)
        return most if most is not None and most.gain > 0 else None


def why(searcher: Searcher, request: SearchRequest, document_id: str) -> Why:
    """What became of a document in the ranking of a request, whatever part of it the request asks for.

    Raises:
        as `Searcher.search` does.
    """
    if not search.sources(searcher.index, [document_id]):
        return Why(document_id, Standing.unknown)
    for rank, hit in enumerate(searcher.ranking(request), start=1):
        if hit.document_id == document_id:
            return ranked(searcher, request, rank, hit)
    unfiltered = replace(request, filters=())
    if request.filters and searcher.matches(unfiltered, document_id):
        return Why(document_id, Standing.filtered)
    if searcher.matches(unfiltered, document_id, signs=False):
        return Why(document_id, Standing.left_out)
    return Why(document_id, Standing.behind if searcher.is_cut(request) else Standing.no_match)


def ranked(searcher: Searcher, request: SearchRequest, rank: int, hit: Hit) -> Why:
    """Why a hit of a request is where it is.

    Raises:
        as `Searcher.search` does.
    """
    document, score = hit
    explanation = searcher.explain(request, document)
    return Why(document, Standing.ranked, rank, score, explanation, tuple(searcher.shares(request, document)))


def compare(
    searcher: Searcher, request: SearchRequest, first: tuple[int, Hit], second: tuple[int, Hit]
) -> Comparison:
    """Why one of two hits, each with its rank, is above the other in the ranking of a request.

    Raises:
        as `Searcher.search` does.
    """
    upper, lower = (ranked(searcher, request, *one) for one in sorted((first, second)))
    return Comparison(upper, lower, _signals(upper, lower), _terms(upper, lower))


def _signals(upper: Why, lower: Why) -> tuple[Difference, ...]:
    of_lower = {share.signal: share.value for share in lower.shares}
    found = [Difference(one.signal, one.value, of_lower.get(one.signal)) for one in upper.shares]
    return tuple(sorted(found, key=lambda one: -abs(one.gain)))


def _terms(upper: Why, lower: Why) -> tuple[Difference, ...]:
    of_upper, of_lower = _by_term(upper.explanation), _by_term(lower.explanation)
    found = []
    for what in dict.fromkeys([*of_upper, *of_lower]):
        one, other = of_upper.get(what), of_lower.get(what)
        found.append(
            Difference(
                what,
                None if one is None else one.value,
                None if other is None else other.value,
                () if one is None else one.figures,
                () if other is None else other.figures,
            )
        )
    return tuple(sorted(found, key=lambda each: -abs(each.gain)))


def _by_term(explanation: Explanation | None) -> dict[str, Line]:
    """The parts of a score that have no parts themselves, by what they are; equal ones are added."""
    lines = [] if explanation is None else explanations.shortened(explanation)
    found: dict[str, Line] = {}
    for line, following in zip_longest(lines, lines[1:]):
        if following is not None and following.depth > line.depth:
            continue
        before = found.get(line.what)
        found[line.what] = line if before is None else replace(line, value=line.value + before.value)
    return found
