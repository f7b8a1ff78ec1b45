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
    """It has something of the query, but a clause that must match does not, or one that must not does."""

    behind = "behind"
    """It is not among the documents that a recipe of several signals ranks, FUSED_DEPTH at most."""

    no_match = "no match"
    """It does not match what is looked for."""


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
    if request.filters and searcher.matches(unfiltered, document_id):
        return Why(document_id, Standing.filtered)
    if searcher.matches(unfiltered, document_id, signs=False):
        return Why(document_id, Standing.left_out)
    return Why(document_id, Standing.behind if searcher.is_cut(request) else Standing.no_match)
