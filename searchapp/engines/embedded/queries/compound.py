"""Queries made of queries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from searchapp.engines.embedded import parameters
from searchapp.engines.embedded.queries.boosts import boosted
from searchapp.engines.embedded.queries.leaves.match_all import MatchAll
from searchapp.engines.embedded.queries.leaves.match_none import MatchNone, is_nothing
from searchapp.engines.embedded.queries.minimum_should_match import with_minimum
from searchapp.engines.embedded.queries.nodes import Bool, Boost, Boosting, Constant, DisMax, Query
from searchapp.engines.embedded.queries.parse import Parser, required
from searchapp.engines.embedded.refusals import invalid, unsupported

_CLAUSES = ("must", "must_not", "should", "filter")


def _clauses(parser: Parser, described: Any, name: str) -> tuple[Query, ...]:
    if described is None:
        return ()
    if not isinstance(described, list | tuple | Mapping):
        raise invalid(f"`{name}` of the query `bool` must be a query or a list of them, not {described!r}")
    return parser.queries(described)


def bool_(parser: Parser, content: Any) -> Query:
    """Clauses that must, should or must not match; without any, every document."""
    given = parser.options(content, "bool", (*_CLAUSES, "minimum_should_match"))
    must, must_not, should, filters = (_clauses(parser, given.get(name), name) for name in _CLAUSES)
    query = Bool(must, must_not, should, filters)
    minimum = given.get("minimum_should_match")
    text = None if minimum is None else parameters.raw_text(minimum, "minimum_should_match")
    if not len(query):
        return boosted(MatchAll(), given, "bool")
    if _matches_nothing(query):
        return MatchNone()
    query = with_minimum(query, text)
    if len(query.must_not) == len(query):
        query = Bool(must_not=query.must_not, filter=(MatchAll(),))
    return boosted(query, given, "bool")


def _matches_nothing(query: Bool) -> bool:
    """What Elasticsearch sees in the clauses (`BoolQueryBuilder.doRewrite`)."""
    if any(map(is_nothing, (*query.must, *query.filter))) or any(map(_is_everything, query.must_not)):
        return True
    return len(query.should) == len(query) and all(map(is_nothing, query.should))


def _is_everything(query: Query) -> bool:
    inside = query.query if isinstance(query, Boost) else query
    return isinstance(inside, MatchAll) and not inside.late


def dis_max(parser: Parser, content: Any) -> Query:
    """The best of several queries."""
    given = parser.options(content, "dis_max", ("queries", "tie_breaker"))
    queries = parser.queries(required(given, "queries", "dis_max"))
    if not queries:
        raise invalid("the query `dis_max` has no `queries`")
    tie_breaker = parameters.share(given.get("tie_breaker", 0), "tie_breaker")
    return boosted(DisMax(queries, tie_breaker), given, "dis_max")


def constant_score(parser: Parser, content: Any) -> Query:
    """A query as a filter: every document it matches has the same score."""
    given = parser.options(content, "constant_score", ("filter",))
    inner = parser.query(required(given, "filter", "constant_score"))
    return boosted(inner if is_nothing(inner) else Constant(inner), given, "constant_score")


def boosting(parser: Parser, content: Any) -> Query:
    """A query, and another one that lowers the score of what it matches."""
    described = parameters.mapping(content, "the query `boosting`")
    parameters.without_lists(described, ("boost", "negative_boost"), "the query `boosting`")
    given = parser.options(described, "boosting", ("positive", "negative", "negative_boost"))
    factor = parameters.signless(required(given, "negative_boost", "boosting"), "negative_boost")
    if not math.isfinite(factor):
        raise unsupported(f"{factor} as negative_boost")
    if factor < 0:
        raise invalid(f"negative_boost is {factor:g}, but must not be negative")
    positive = parser.query(required(given, "positive", "boosting"))
    negative = parser.query(required(given, "negative", "boosting"))
    if is_nothing(positive):
        return positive
    return boosted(Boosting(positive, negative, factor, as_written=negative), given, "boosting")
