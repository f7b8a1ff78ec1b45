"""Why a document is at its rank for a query, or why it is not there at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from searchapp.app.search import Searcher, SearchRequest
from searchapp.engines.base import Explanation
from searchapp.ranking import search


class Standing(StrEnum):
    """What became of a document."""

    ranked = "ranked"
    unknown = "unknown"
    """No document of this id is indexed."""

    filtered = "filtered"
    """It matches, but a filter leaves it out."""

    left_out = "left out"
    """It has words of the query, but a clause that must match does not, or one that must not does."""

    no_match = "no match"
    """It has nothing of what is looked for."""


@dataclass(frozen=True, slots=True)
class Why:
    """What became of a document; `rank`, from 1, `score` and `explanation` are those of a ranked one."""

    document_id: str
    standing: Standing
    rank: int | None = None
    score: float | None = None
    explanation: Explanation | None = None


def why(searcher: Searcher, request: SearchRequest, document_id: str) -> Why:
    """What became of a document in the ranking of a request, whatever part of it the request asks for.

    Raises:
        as `Searcher.search` does.
    """
    if not search.sources(searcher.index, [document_id]):
        return Why(document_id, Standing.unknown)
    for rank, hit in enumerate(searcher.ranking(request), start=1):
        if hit.document_id == document_id:
            explanation = searcher.explain(request, document_id)
            return Why(document_id, Standing.ranked, rank, hit.score, explanation)
    unfiltered = replace(request, filters=())
    if request.filters and _ranks(searcher, unfiltered, document_id):
        return Why(document_id, Standing.filtered)
    words = searcher.words(request)
    if words and _ranks(searcher, replace(unfiltered, text=words, literal=True), document_id):
        return Why(document_id, Standing.left_out)
    return Why(document_id, Standing.no_match)


def _ranks(searcher: Searcher, request: SearchRequest, document_id: str) -> bool:
    return any(hit.document_id == document_id for hit in searcher.ranking(request))
