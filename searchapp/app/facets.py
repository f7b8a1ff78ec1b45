"""The values by which hits can be filtered, and how many hits each leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from searchapp.app.search import Searcher, SearchRequest
from searchapp.ranking.language import Filter


@dataclass(frozen=True, slots=True)
class Facet:
    """A field and its commonest values among the hits, each with their number, and the values that are chosen."""

    field: str
    values: Sequence[tuple[str, int]]
    chosen: frozenset[str] = frozenset()


def facets(searcher: Searcher, request: SearchRequest) -> list[Facet]:
    """The fields that a request can be filtered by.

    Of several values of a field any will do, so the values of a field are counted without the filters on it: the
    numbers say what a further value would bring. A value that is chosen is among them even if it brings nothing.

    Raises:
        as `Searcher.search` does.
    """
    chosen: dict[str, set[str]] = {}
    for one in request.filters:
        chosen.setdefault(one.field, set()).add(one.value)
    with_all = searcher.counts(request).values
    found = []
    for field, values in with_all.items():
        if field in chosen:
            others = tuple(one for one in request.filters if one.field != field)
            values = searcher.counts(replace(request, filters=others)).values[field]
        counted = {value for value, _count in values}
        left = [(value, 0) for value in sorted(chosen.get(field, set()) - counted)]
        found.append(Facet(field, [*left, *values], frozenset(chosen.get(field, ()))))
    return found


def toggled(filters: Sequence[Filter], one: Filter) -> tuple[Filter, ...]:
    """The filters with one more, or without it if it is among them.

    >>> toggled((Filter("label", "1"),), Filter("label", "1"))
    ()
    """
    left = tuple(other for other in filters if other != one)
    return left if len(left) < len(filters) else (*filters, one)
