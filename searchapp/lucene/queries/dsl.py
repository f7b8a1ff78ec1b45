"""Elasticsearch's query DSL: its queries, and the normal form in which both engines search.

In the normal form, scores are independent of the division of an index into segments, see `_normal_bool`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_float
from functools import lru_cache
from importlib import import_module
from typing import Any

from searchapp.lucene.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class QueryKind:
    """A query of the DSL."""

    module: str  # contains the function `read_NAME`
    scored: tuple[str, ...] = ()  # parameters with queries whose scores count
    unscored: tuple[str, ...] = ()  # parameters with other queries
    # Whether scores are the same on any number of shards. Other queries choose terms by the content of each shard, or
    # combine the document frequencies of several terms there.
    on_shards: bool = True


KINDS: Mapping[str, QueryKind] = {
    "bool": QueryKind("boolean", ("must", "should"), ("filter", "must_not")),
    "boosting": QueryKind("boosting", ("positive",), ("negative",)),
    "combined_fields": QueryKind("fulltext", on_shards=False),
    "constant_score": QueryKind("match_all", (), ("filter",)),
    "dis_max": QueryKind("boolean", ("queries",)),
    "distance_feature": QueryKind("distance_feature"),
    "exists": QueryKind("boolean"),
    "function_score": QueryKind("function_score", ("query",)),
    "fuzzy": QueryKind("fuzzy", on_shards=False),
    "geo_bounding_box": QueryKind("geo"),
    "geo_distance": QueryKind("geo"),
    "ids": QueryKind("match_all"),
    "match": QueryKind("fulltext"),
    "match_all": QueryKind("match_all"),
    "match_bool_prefix": QueryKind("fulltext"),
    "match_none": QueryKind("match_all"),
    "match_phrase": QueryKind("fulltext"),
    "match_phrase_prefix": QueryKind("fulltext", on_shards=False),
    "more_like_this": QueryKind("more_like_this", on_shards=False),
    "multi_match": QueryKind("fulltext"),
    "nested": QueryKind("nested", ("query",)),
    "prefix": QueryKind("term"),
    "query_string": QueryKind("query_string", on_shards=False),
    "range": QueryKind("term"),
    "regexp": QueryKind("regexp"),
    "simple_query_string": QueryKind("query_string", on_shards=False),
    "term": QueryKind("term"),
    "terms": QueryKind("boolean"),
    "terms_set": QueryKind("terms_set"),
    "wildcard": QueryKind("term"),
}


@lru_cache
def reader(name: str) -> Callable[[Any, Any], Any] | None:
    """Import the module of a query, and return its reader (`QueryReader`); None for an unknown query."""
    kind = KINDS.get(name)
    return None if kind is None else getattr(import_module(f"{__package__}.{kind.module}"), f"read_{name}")


# The query that matches no document.
NOTHING: Mapping[str, Any] = {"match_none": {}}

_TRIMMED = "".join(map(chr, range(0x21)))
_HALF = 1 << 31


def required_clauses(optional: int, specification: str) -> int:
    """Return the number of `optional` clauses that must match, possibly more than there are.

    Source: `org.elasticsearch.common.lucene.search.Queries.calculateMinShouldMatch`.

    >>> [required_clauses(5, text) for text in ("2", "-1", "75%", "-25%", "5<50%", "2<-25% 4<-3", "9")]
    [2, 4, 3, 4, 5, 2, 9]

    Raises:
        ValueError: the specification is no number, percentage or condition.
    """
    text = specification.strip(_TRIMMED)
    if "<" not in text:
        return _plain_minimum(optional, text)
    minimum = optional
    for condition in re.sub(r"[ \t\n\x0b\f\r]*<[ \t\n\x0b\f\r]*", "<", text).rstrip(" ").split(" "):
        bound, *then = condition.split("<")
        if optional <= _integer(bound, specification):
            return minimum
        if not any(then):
            raise ValueError(f"minimum_should_match {specification!r} has a condition without a number")
        minimum = required_clauses(optional, then[0])
    return minimum


def _plain_minimum(optional: int, text: str) -> int:
    if "%" in text:
        # Java's 32-bit integers overflow, and its shares are float32.
        product = (optional * _integer(text[:-1], text) + _HALF) % (2 * _HALF) - _HALF
        share = c_float(c_float(product).value * c_float(0.01).value).value
        is_negative, count = share < 0, int(share)  # towards zero, as Java casts
    else:
        count = _integer(text, text)
        is_negative = count < 0
    return max(0, optional + count if is_negative else count)


def _integer(text: str, specification: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text) or max(text) > "\uffff" or not -_HALF <= int(text) < _HALF:
        raise ValueError(f"minimum_should_match {specification!r} is not a number, percentage or condition")
    return int(text)


_NEVER = {"term": {"id": {"value": "\u0000 no document"}}}


def normal_body(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a search body with its query in normal form, and equal hits sorted by id; the same object if unchanged."""
    query, sort = body.get("query"), body.get("sort")
    normal = normal_form(query)
    if normal is not query:
        body = {**body, "query": normal}
    if "knn" in body:
        body = {**body, "knn": _normal_sections(body["knn"])}
    if body.get("rescore"):  # which Elasticsearch allows without a sort only
        return {name: value for name, value in body.items() if name != "sort"} if sort in BY_SCORE else body
    total = total_order(sort)
    return body if total is sort else {**body, "sort": total}


# With a filter that matches few documents, Elasticsearch also returns documents without a vector, which have the score
# 0, from segments where another document has one.
def _normal_sections(knn: Any) -> Any:
    """Return sections `knn` whose filters require a vector."""
    if isinstance(knn, list | tuple):
        return list(map(_normal_sections, knn))
    if not isinstance(knn, Mapping) or not knn.get("filter") or not isinstance(knn.get("field"), str):
        return knn
    return {**knn, "filter": [*listed(knn["filter"]), {"exists": {"field": knn["field"]}}]}


# The sorts by score alone.
BY_SCORE: Sequence[Any] = (
    None,
    [],
    "_score",
    ["_score"],
    {"_score": "desc"},
    [{"_score": "desc"}],
    [{"_score": {"order": "desc"}}],
)


def total_order(sort: Any) -> Any:
    """Return a `sort` that ends with the id, unless it has the id already; the same object if unchanged.

    Elasticsearch would sort equal hits by their numbers in the index, which differ between indexes.
    """
    if sort in BY_SCORE:
        return [{"_score": "desc"}, {"id": "asc"}]
    clauses = sort if isinstance(sort, list | tuple) else [sort]
    names = (name for clause in clauses for name in (clause if isinstance(clause, Mapping) else [clause]))
    return sort if "id" in names else [*clauses, {"id": "asc"}]


def normal_form(query: Any, *, scored: bool = True) -> Any:
    """Return the query in normal form; the same object if nothing changes.

    Args:
        query: a query of the DSL; malformed parts stay, for the engine to reject.
        scored: whether its scores count; filters stay unchanged.
    """
    if isinstance(query, list | tuple):
        return _same_if_equal(query, [normal_form(clause, scored=scored) for clause in query])
    if not isinstance(query, Mapping) or len(query) != 1:
        return query
    ((name, content),) = query.items()
    if not isinstance(content, Mapping):
        return query
    changed: dict[str, Any] = {}
    kind = KINDS.get(name, QueryKind(""))
    # With a `min_score`, scores select hits even in a filter.
    inner_scored = scored or (name == "function_score" and content.get("min_score") is not None)
    for parameter in (*kind.scored, *kind.unscored):
        if parameter in content:
            changed[parameter] = normal_form(
                content[parameter], scored=inner_scored and parameter in kind.scored
            )
    if name == "function_score" and isinstance(functions := content.get("functions"), list | tuple):
        changed["functions"] = _same_if_equal(functions, list(map(_normal_function, functions)))
    if any(new is not content[parameter] for parameter, new in changed.items()):
        content = {**content, **changed}
    if name == "bool" and scored:
        content = _normal_bool(content)
    return query if content is query[name] else {name: content}


def _same_if_equal(old: Sequence[Any], new: list[Any]) -> Sequence[Any]:
    return new if any(ours is not theirs for ours, theirs in zip(new, old, strict=True)) else old


def _normal_function(function: Any) -> Any:
    """Normalise the filter of a function of a `function_score`."""
    if not isinstance(function, Mapping) or "filter" not in function:
        return function
    condition = normal_form(function["filter"], scored=False)
    return function if condition is function["filter"] else {**function, "filter": condition}


# Lucene adds the clauses of a `bool` in double, and rounds the sum to float32. With `must` and required optional
# clauses, it rounds the sums of `must` and `should` separately, except on a segment where only as many optional
# clauses as required have a term: there it computes one sum (`BooleanWeight.scorerSupplier`). Then scores depend on
# the other documents of the segment. The normal form moves the optional clauses to a `bool` inside `must`, whose sum
# is always rounded separately. Hits and highlights stay the same.
def _normal_bool(content: Mapping[str, Any]) -> Mapping[str, Any]:
    must, should, filters = (listed(content.get(name)) for name in ("must", "should", "filter"))
    minimum = _minimum(content.get("minimum_should_match"), len(should))
    if not (must or filters) or not 0 < minimum <= len(should):
        return content
    rest = {name: value for name, value in content.items() if name not in ("should", "minimum_should_match")}
    if minimum == len(should):
        return {**rest, "must": [*must, *should]} if must else content
    optional = {"bool": {name: content[name] for name in ("should", "minimum_should_match")}}
    if minimum > 1:
        # A clause in `should` keeps Lucene from merging the inner `bool` into the outer one. It would otherwise if
        # exactly the required number of clauses match documents, or if optional clauses are also filters.
        optional = {"bool": {"must": [optional], "should": [_NEVER]}}
    elif not must:
        return content
    return {**rest, "must": [*must, optional]}


def listed(clauses: Any) -> Sequence[Any]:
    """Return the clauses of a parameter that may be one clause, several or none."""
    if clauses is None:
        return []
    return clauses if isinstance(clauses, list | tuple) else [clauses]


def _minimum(specification: Any, optional: int) -> int:
    if isinstance(specification, bool) or not isinstance(specification, int | str):
        return 0
    try:
        return required_clauses(optional, str(specification))
    except ValueError:
        return 0
