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

Path: TypeAlias = tuple[Any, ...]
"""The names of objects and the places in lists, from outside in, that lead to a text."""

Filled = Callable[[Sequence[Query]], Query]
"""Makes a rewritten query of what its texts come to."""


@dataclass(slots=True)
class _Shape:
    """A query but for its texts, where these stand in it, and what makes a query of each."""

    pattern: Any
    paths: Sequence[Path]
    read: Sequence[Callable[[str], Query]]
    results: dict[tuple[Kind, ...], tuple[Filled, int] | None] = field(default_factory=dict)
    """What was made of it by what the texts came to, and the clauses besides theirs; None if none can be made so."""

    def texts(self, body: Any) -> list[str] | None:
        """The texts of a query that is this one but for them, None for any other."""
        if self.pattern != body:  # the texts of the pattern say what they are equal to
            return None
        texts: list[str] = []
        for path in self.paths:
            value = body
            for key in path:
                value = value[key]
            texts.append(value)
        return texts


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
            texts = shape.texts(body)
            if texts is not None:
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
        placed: list[tuple[Noted, Path]] = []
        pattern = _pattern(body, by_given, placed, ())
        if not noted or len(noted) != len(placed) or len(noted) != len({id(one) for one, _path in placed}):
            return
        found = [one.query for one, _path in placed]
        shape = self._known(body) or _Shape(
            pattern, [path for _one, path in placed], [one.read for one, _path in placed]
        )
        if len(shape.results) < RESULTS:
            others = count_of(query) - sum(map(count_of, found))
            filled = _filler(query, rewritten, found)
            shape.results.setdefault(_kinds(found), None if filled is None else (filled, others))
        if shape not in self._shapes:
            self._shapes = [shape, *self._shapes[: SHAPES - 1]]

    def _known(self, body: Any) -> _Shape | None:
        return next((shape for shape in self._shapes if shape.texts(body) is not None), None)


def _kinds(found: Sequence[Query]) -> tuple[Kind, ...]:
    return tuple(map(_kind, found))


def _kind(query: Query) -> Kind:
    """What a text comes to; "?" is none of the kinds, and has no result that could be kept."""
    if isinstance(query, TermsDisjunction):
        return ""
    if isinstance(query, Term):
        return query.field
    return query if isinstance(query, MatchNone) else "?"


class _AnyText:
    """What stands in a pattern for a text."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)


class _Written:
    """A value that is written like this one: 1 and true are equal, and so are 0.0 and -0.0."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self._type = type(value)
        self._written = repr(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is self._type and repr(other) == self._written


def _pattern(node: Any, noted: Mapping[int, Noted], placed: list[tuple[Noted, Path]], path: Path) -> Any:
    """What is equal to another part of a query that is this one but for its texts; `placed` gets these."""
    if isinstance(node, Mapping):
        one = noted.get(id(node))
        key = None
        if one is not None:
            key = one.key
            placed.append((one, (*path, key)))
        return {
            name: _AnyText() if name == key else _pattern(value, noted, placed, (*path, name))
            for name, value in node.items()
        }
    if isinstance(node, list):
        return [_pattern(value, noted, placed, (*path, place)) for place, value in enumerate(node)]
    return node if type(node) is str else _Written(node)


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
