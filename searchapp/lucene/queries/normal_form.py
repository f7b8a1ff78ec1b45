"""The normal form of a query, in which scores do not depend on how an index is divided into segments.

Lucene adds up the clauses of a `bool` in double and rounds the sum to float32. Where optional clauses are required
besides `must` (`minimum_should_match`), it rounds the sum of `must` and the sum of `should` separately, except on a
segment where only as many optional clauses have a term as are required: there all of them make one sum
(`BooleanWeight.scorerSupplier`). So the score of a document depends on the other documents of its segment.

In the normal form the optional clauses are one clause of `must`, a `bool` of their own, whose sum is always rounded
by itself. Both engines search in this form. It has the same hits and marks the same words.

`minimum_should_match` (`2`, `-1`, `75%`, `2<75%`, `2<-25% 9<-3`) is read as by
`org.elasticsearch.common.lucene.search.Queries.calculateMinShouldMatch`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ctypes import c_float
from typing import Any

from searchapp.lucene.queries.registry import KINDS

_TRIMMED = "".join(map(chr, range(0x21)))
_HALF = 1 << 31


def required(optional: int, specification: str) -> int:
    """Return how many of `optional` clauses must match, which may be more than there are.

    >>> [required(5, text) for text in ("2", "-1", "75%", "-25%", "5<50%", "2<-25% 4<-3", "9")]
    [2, 4, 3, 4, 5, 2, 9]

    Raises:
        ValueError: the specification is no number, percentage or condition.
    """
    text = specification.strip(_TRIMMED)
    if "<" not in text:
        return _simple(optional, text)
    result = optional
    for condition in re.sub(r"[ \t\n\x0b\f\r]*<[ \t\n\x0b\f\r]*", "<", text).rstrip(" ").split(" "):
        bound, *then = condition.split("<")
        if optional <= _integer(bound, specification):
            return result
        if not any(then):
            raise ValueError(f"minimum_should_match {specification!r} has a condition without a number")
        result = required(optional, then[0])
    return result


def _simple(optional: int, text: str) -> int:
    if "%" in text:
        # Java's integers of 32 bits begin anew beyond their end, and its shares are float32.
        product = (optional * _integer(text[:-1], text) + _HALF) % (2 * _HALF) - _HALF
        share = _float32(_float32(product) * _float32(0.01))
        count = int(share)  # towards zero, as Java casts
        return max(0, optional + count if share < 0 else count)
    count = _integer(text, text)
    return max(0, optional + count if count < 0 else count)


def _float32(number: float) -> float:
    return c_float(number).value


def _integer(text: str, specification: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text) or max(text) > "\uffff" or not -_HALF <= int(text) < _HALF:
        raise ValueError(f"minimum_should_match {specification!r} is no number, percentage or condition")
    return int(text)


_NEVER = {"term": {"id": {"value": "\u0000 no document"}}}


def normal_body(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a search body with its query in normal form, the same object if it is in normal form already."""
    query = body.get("query")
    normal = normal_form(query)
    return body if normal is query else {**body, "query": normal}


def normal_form(query: Any, *, scored: bool = True) -> Any:
    """Return the query in normal form, the same object if it is in normal form already.

    Args:
        query: a query of the search DSL; what is malformed stays as it is, for the engine to reject
        scored: whether its scores count: clauses that only filter stay as they are
    """
    if isinstance(query, list | tuple):
        clauses = [normal_form(clause, scored=scored) for clause in query]
        return clauses if any(new is not old for new, old in zip(clauses, query, strict=True)) else query
    if not isinstance(query, Mapping) or len(query) != 1:
        return query
    ((kind, content),) = query.items()
    if not isinstance(content, Mapping):
        return query
    changed = {
        name: new
        for name, inner_scored in _inner(kind, content, scored)
        if name in content and (new := normal_form(content[name], scored=inner_scored)) is not content[name]
    }
    if kind == "function_score" and isinstance(functions := content.get("functions"), list | tuple):
        filters = [_function(function) for function in functions]
        if any(new is not old for new, old in zip(filters, functions, strict=True)):
            changed["functions"] = filters
    normal = {**content, **changed} if changed else content
    if kind == "bool" and scored:
        normal = _bool(normal)
    return query if normal is content else {kind: normal}


def _inner(kind: str, content: Mapping[str, Any], scored: bool) -> Iterator[tuple[str, bool]]:
    """The names of the queries inside a query, and whether their scores count."""
    if kind not in KINDS:
        return
    # A `min_score` lets scores choose the hits, in a filter too.
    scored = scored or (kind == "function_score" and content.get("min_score") is not None)
    yield from ((name, scored) for name in KINDS[kind].scored)
    yield from ((name, False) for name in KINDS[kind].unscored)


def _function(function: Any) -> Any:
    """A function of a `function_score` whose filter is in normal form."""
    if not isinstance(function, Mapping) or "filter" not in function:
        return function
    condition = normal_form(function["filter"], scored=False)
    return function if condition is function["filter"] else {**function, "filter": condition}


def _bool(content: Mapping[str, Any]) -> Mapping[str, Any]:
    must, should, filters = (_several(content.get(name)) for name in ("must", "should", "filter"))
    minimum = _minimum(content.get("minimum_should_match"), len(should))
    if not (must or filters) or not 0 < minimum <= len(should):
        return content
    rest = {name: value for name, value in content.items() if name not in ("should", "minimum_should_match")}
    if minimum == len(should):
        return {**rest, "must": [*must, *should]} if must else content
    optional = {"bool": {name: content[name] for name in ("should", "minimum_should_match")}}
    if minimum > 1:
        # Lucene does not merge a `bool` that has a clause in `should` with the one around it. Otherwise it would where
        # a clause matches nothing in the index, and just as many others as are required are left, or where clauses are
        # filters too, which it then requires.
        optional = {"bool": {"must": [optional], "should": [_NEVER]}}
    elif not must:
        return content
    return {**rest, "must": [*must, optional]}


def _several(clauses: Any) -> list[Any]:
    if clauses is None:
        return []
    return list(clauses) if isinstance(clauses, list | tuple) else [clauses]


def _minimum(specification: Any, optional: int) -> int:
    """The number of optional clauses that are required; 0 where it is not specified or malformed."""
    if isinstance(specification, bool) or not isinstance(specification, int | str):
        return 0
    try:
        return required(optional, str(specification))
    except ValueError:
        return 0
