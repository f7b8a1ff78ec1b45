"""Queries that several shards rank with the statistics of the whole index, as one shard does.

`dfs_query_then_fetch` collects the statistics of all shards before any of them ranks. But each shard simplifies the
query first, and counts nothing for what it drops:

- A clause on numbers, or on whether a field is there, that must match, filters or must not match, and that no document
  of a shard matches, or every one, lets the shard drop the query around it. Here it becomes "this or a document that is
  not there, but not another one that is not there": a shard does not know that before it looks.
- A phrase none of whose words is on a shard asks for nothing there, not even how many documents have the field. Beside
  it is put here a clause that scores the same words and never matches either.

What never matches changes no score: the hits are those of the query itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from searchapp.engines.base import Body

NUMBERS = frozenset(
    {
        "long",
        "integer",
        "short",
        "byte",
        "double",
        "float",
        "half_float",
        "scaled_float",
        "unsigned_long",
        "date",
        "date_nanos",
        "ip",
    }
)
"""The types of fields whose values a shard knows the least and the greatest of."""


_NOT_SCORED = ("filter", "must_not")
_NONE = (None, 0, "0")


def number_fields(properties: Mapping[str, Any], prefix: str = "") -> frozenset[str]:
    """The full names of the fields on numbers in the `properties` of a mapping."""
    found: set[str] = set()
    for name, described in properties.items():
        if described.get("type") in NUMBERS:
            found.add(prefix + name)
        for inner in ("properties", "fields"):
            found |= number_fields(described.get(inner, {}), f"{prefix}{name}.")
    return frozenset(found)


def whole(body: Body, numbers: frozenset[str]) -> Body:
    """The body for an index of several shards; `numbers` are its fields on numbers.

    What it marks in texts is what the query itself matches.
    """
    query = body.get("query")
    kept = _Kept(numbers).query(query, required=False, scored=True)
    if kept == query:
        return body
    highlight = body.get("highlight")
    marks = {"highlight": {"highlight_query": query, **highlight}} if isinstance(highlight, Mapping) else {}
    return {**body, "query": kept, **marks}


class _Kept:
    """Goes through a query, and leaves what it does not know as it is: the server refuses what makes no sense."""

    def __init__(self, numbers: frozenset[str]) -> None:
        self._numbers = numbers
        self._absent = 0

    def query(self, query: Any, *, required: bool, scored: bool) -> Any:
        if isinstance(query, list):
            return [self.query(one, required=required, scored=scored) for one in query]
        if not isinstance(query, Mapping) or len(query) != 1:
            return query
        ((kind, content),) = query.items()
        if not isinstance(content, Mapping):
            return query
        inner = _INSIDE.get(kind)
        if inner is not None:
            return {kind: inner(self, content, required, scored)}
        if kind == "match_phrase" and scored:
            words = _words(content)
            beside = {"bool": {"must": [words], "filter": [self._never()]}}
            return (
                query if words is None else {"bool": {"should": [query, beside], "minimum_should_match": 1}}
            )
        if required and (kind in ("range", "exists") or not self._numbers.isdisjoint(_fields(kind, content))):
            return {
                "bool": {
                    "should": [query, self._never()],
                    "must_not": [self._never()],
                    "minimum_should_match": 1,
                }
            }
        return query

    def boolean(self, content: Mapping[str, Any], required: bool, scored: bool) -> dict[str, Any]:
        some_must = content.get("minimum_should_match") not in _NONE
        return {
            name: self.query(
                inner,
                required=required or some_must if name == "should" else True,
                scored=scored and name not in _NOT_SCORED,
            )
            if name in ("must", "should", *_NOT_SCORED)
            else inner
            for name, inner in content.items()
        }

    def _never(self) -> dict[str, Any]:
        """What matches no document; another one each time, or a shard would see that one is required and excluded."""
        self._absent += 1
        return {"term": {"id": {"value": f"\u0000 no document {self._absent}"}}}

    def of(self, name: str, content: Mapping[str, Any], required: bool, scored: bool) -> dict[str, Any]:
        """The content of a query with one or several queries under a name."""
        if name not in content:
            return dict(content)
        return {**content, name: self.query(content[name], required=required, scored=scored)}


def _under(
    name: str, *, is_scored: bool = True
) -> Callable[[_Kept, Mapping[str, Any], bool, bool], dict[str, Any]]:
    return lambda kept, content, required, scored: kept.of(name, content, required, scored and is_scored)


_INSIDE: Mapping[str, Callable[[_Kept, Mapping[str, Any], bool, bool], dict[str, Any]]] = {
    "bool": _Kept.boolean,
    "dis_max": _under("queries"),
    "constant_score": _under("filter", is_scored=False),
    "function_score": _under("query"),
    "boosting": _under("positive"),
}


def _words(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """The query that scores the words of a phrase; None where the phrase is not understood."""
    if len(content) != 1:
        return None
    ((field, asked),) = content.items()
    given = asked if isinstance(asked, Mapping) else {"query": asked}
    if "query" not in given:
        return None
    return {"match": {field: {name: given[name] for name in ("query", "analyzer") if name in given}}}


def _fields(kind: str, content: Mapping[str, Any]) -> Iterable[str]:
    """The fields that a query without others inside is about."""
    if kind == "multi_match":
        fields = content.get("fields", ())
        return {str(one).partition("^")[0] for one in ([fields] if isinstance(fields, str) else fields)}
    return set(content) if kind in ("term", "terms", "match") else ()
