"""Queries that recur with other texts, as a template makes them for every topic.

To read and rewrite such a query again and again takes longer than to score it. What becomes of it depends on its texts
only by what each text comes to: different terms, one term, or nothing. So this is done once for all that come to the
same, and in the result the terms of others are put in the place of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from searchapp.engines.embedded.queries.clauses import MOST_CLAUSES, count_of
from searchapp.engines.embedded.queries.leaf import MarkedLeaf
from searchapp.engines.embedded.queries.leaves.match_none import MatchNone
from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.nodes import Bool, Boost, DisMax, Query, TermsDisjunction, inside
from searchapp.engines.embedded.queries.parse import Noted

SHAPES = 4
"""So many queries are kept that are more than texts apart."""

RESULTS = 64
"""So many ways are kept in which the texts of one of them may turn out."""

Kind: TypeAlias = str | MatchNone
"""What a text comes to: "" for different terms of its field, the field for one term, or nothing."""

Same = Callable[[Any, list[str]], bool]
"""Whether a part of a query is the one that is known but for its texts, which are added to the list."""

Filled = Callable[[Sequence[Query]], Query]
"""Makes a rewritten query of what its texts come to."""


@dataclass(slots=True)
class _Shape:
    """A query but for its texts, in the order in which they stand in it, and what makes a query of each."""

    same: Same
    read: Sequence[Callable[[str], Query]]
    results: dict[tuple[Kind, ...], tuple[Filled, int] | None] = field(default_factory=dict)
    """What was made of it by what the texts came to, and the clauses besides theirs; None if none can be made so."""


class Recurring:
    """Rewritten queries, for who reads many of a few templates."""

    def __init__(self) -> None:
        self._shapes: list[_Shape] = []

    def rewritten(self, body: Any) -> Query | None:
        """The rewritten query of a body, None for one that must be read as a whole.

        Raises:
            EngineRefused: a text can't be searched for.
        """
        for shape in self._shapes:
            texts: list[str] = []
            if shape.same(body, texts):
                found = [read(text) for read, text in zip(shape.read, texts, strict=True)]
                known = shape.results.get(_kinds(found))
                if known is None:
                    return None
                filled, others = known
                clauses = others + sum(map(count_of, found))
                return filled(found) if clauses <= MOST_CLAUSES else None
        return None

    def learn(self, body: Any, noted: Sequence[Noted], query: Query, rewritten: Query) -> None:
        """Keep what has become of a body, whose texts were noted while its `query` was read."""
        by_given = {id(one.given): one for one in noted}
        placed: list[Noted] = []
        same = _same(body, by_given, placed)
        if not noted or same is None or len(placed) != len(noted):
            return
        shape = self._known(body) or _Shape(same, [one.read for one in placed])
        found = [one.query for one in placed]
        if len(shape.results) < RESULTS:
            others = count_of(query) - sum(map(count_of, found))
            filled = _filler(query, rewritten, found)
            shape.results.setdefault(_kinds(found), None if filled is None else (filled, others))
        if shape not in self._shapes:
            self._shapes = [shape, *self._shapes[: SHAPES - 1]]

    def _known(self, body: Any) -> _Shape | None:
        return next((shape for shape in self._shapes if shape.same(body, [])), None)


def _kinds(found: Sequence[Query]) -> tuple[Kind, ...]:
    return tuple(map(_kind, found))


def _kind(query: Query) -> Kind:
    """What a text comes to; "?" is none of the kinds, and has no result that could be kept."""
    if isinstance(query, TermsDisjunction):
        return ""
    if isinstance(query, Term):
        return query.field
    return query if isinstance(query, MatchNone) else "?"


def _same(node: Any, noted: Mapping[int, Noted], placed: list[Noted]) -> Same | None:
    """What tells whether another part of a query is this one but for its texts; `placed` gets those that it meets.

    None if a text is met again, which is in two places then.
    """
    before = len(placed)
    names: list[str] | None = None
    parts: list[Same | None] = []
    if isinstance(node, Mapping):
        one = noted.get(id(node))
        if one is not None and one in placed:
            return None
        if one is not None:
            placed.append(one)
        key = None if one is None else one.key
        names = list(node)
        parts = [_text if name == key else _same(value, noted, placed) for name, value in node.items()]
    elif isinstance(node, list):
        parts = [_same(value, noted, placed) for value in node]
    if len(placed) == before:
        return _same_written(node)
    known = [part for part in parts if part is not None]
    return _same_parts(names, known) if len(known) == len(parts) else None


def _same_written(node: Any) -> Same:
    # 1 and true are equal, and so are 0.0 and -0.0; and the same object may have been changed since.
    written = repr(node)

    def same(other: Any, texts: list[str]) -> bool:  # noqa: ARG001
        return repr(other) == written

    return same


def _same_parts(names: list[str] | None, parts: Sequence[Same]) -> Same:
    """Whether an object has these names, and its parts are the same; or a list, if there are no names."""

    def same(other: Any, texts: list[str]) -> bool:
        if names is None:
            if not isinstance(other, list) or len(other) != len(parts):
                return False
        elif not isinstance(other, dict) or list(other) != names:
            return False
        for part, one in zip(parts, other if names is None else other.values(), strict=True):
            if not part(one, texts):
                return False
        return True

    return same


def _text(other: Any, texts: list[str]) -> bool:
    texts.append(other)
    return isinstance(other, str)


def _filler(query: Query, rewritten: Query, found: Sequence[Query]) -> Filled | None:
    """What makes the rewritten query with other terms in the place of those that were found; None if nothing does.

    The terms of a text must not be those of another clause, with which they could become one, and must have been left
    together.
    """
    terms = [one for one in found if isinstance(one, TermsDisjunction | Term)]
    if any(not isinstance(one, TermsDisjunction | Term | MatchNone) for one in found):
        return None
    fields = [leaf.field for leaf in _terms_inside(query)]
    if len(fields) != len(set(fields)) or set(fields) != {one.field for one in terms}:
        return None
    places: list[int] = []
    filled = _filled(rewritten, found, places)
    met = sorted(places)
    expected = [place for place, one in enumerate(found) if not isinstance(one, MatchNone)]
    return filled if met == expected else None


def _terms_inside(query: Query) -> list[TermsDisjunction | MarkedLeaf]:
    """The clauses of a query that have terms."""
    if isinstance(query, TermsDisjunction | MarkedLeaf):
        return [query]
    return list(chain.from_iterable(map(_terms_inside, inside(query))))


def _filled(node: Query, found: Sequence[Query], places: list[int]) -> Filled:
    """What makes a part of the query; `places` get those of `found` that it meets."""
    for place, one in enumerate(found):
        if node is one:
            places.append(place)
            return lambda others: others[place]
    before = len(places)
    if isinstance(node, Boost):
        inner, boost = _filled(node.query, found, places), node.boost
        if len(places) > before:
            return lambda others: Boost(inner(others), boost)
    elif isinstance(node, DisMax):
        queries, tie_breaker = _all_filled(node.queries, found, places), node.tie_breaker
        if len(places) > before:
            return lambda others: DisMax(queries(others), tie_breaker)
    elif isinstance(node, Bool):
        must, must_not, should, filters = (
            _all_filled(clauses, found, places)
            for clauses in (node.must, node.must_not, node.should, node.filter)
        )
        minimum = node.minimum
        if len(places) > before:
            return lambda others: Bool(
                must(others), must_not(others), should(others), filters(others), minimum
            )
    return lambda _others: node


def _all_filled(
    nodes: tuple[Query, ...], found: Sequence[Query], places: list[int]
) -> Callable[[Sequence[Query]], tuple[Query, ...]]:
    before = len(places)
    parts = [_filled(node, found, places) for node in nodes]
    if len(places) == before:
        return lambda _others: nodes
    return lambda others: tuple([part(others) for part in parts])
