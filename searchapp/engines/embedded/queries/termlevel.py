"""Queries on values as they are indexed: `term`, `terms`, `ids`, `exists`, `prefix`, `range`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from searchapp.engines.embedded.queries import parameters
from searchapp.engines.embedded.queries.nodes import (
    Between,
    Constant,
    Exists,
    Ids,
    MatchNone,
    OneOf,
    Prefix,
    Query,
    Term,
    Terms,
)
from searchapp.engines.embedded.queries.parse import Parser, boosted, reads, required
from searchapp.engines.embedded.refusals import invalid, unsupported
from searchapp.engines.embedded.schema import INTEGERS, Field


@reads("term")
def term(parser: Parser, content: Any) -> Query:
    """A term as it is indexed, or a number."""
    name, given = parser.on_field(content, "term", "value", ())
    value = required(given, "value", "term")
    if isinstance(value, list | tuple | Mapping):
        raise invalid(f"the query `term` on {name} needs one value, not {value!r}")
    field = parser.field(name)
    if field is None:
        return MatchNone()
    found = (
        of_number(field, value)
        if field.is_number
        else Term(name, parameters.text(value, f"the term for {name}"))
    )
    return boosted(found, given, "term")


@reads("terms")
def terms(parser: Parser, content: Any) -> Query:
    """Any of several terms or numbers."""
    given = parameters.mapping(content, "the query `terms`")
    named = {name: value for name, value in given.items() if name != "boost"}
    name, values = parameters.single(named, "the query `terms`")
    if isinstance(values, Mapping):
        raise unsupported("the lookup of terms in another index")
    if not isinstance(values, list | tuple):
        raise invalid("the query `terms` needs a list of values")
    boosted(MatchNone(), given, "terms")  # refused even where nothing matches
    if any(value is None for value in values):
        raise invalid(f"the query `terms` on {name} has a value that is null")
    field = parser.field(name)
    if field is None or not values:
        return MatchNone()
    if field.is_number:
        numbers = [one.low for value in values if isinstance(one := of_number(field, value), Between)]
        # -0.0 is a number of its own to Lucene.
        different = {(number, math.copysign(1, number)) for number in numbers}
        if not different:
            return MatchNone(late=True)
        found: Query = OneOf(name, tuple(number for number, _sign in sorted(different)))
    else:
        found = Terms(name, tuple(sorted({parameters.text(value, f"a term for {name}") for value in values})))
    return boosted(found, given, "terms")


@reads("ids")
def ids(parser: Parser, content: Any) -> Query:
    """Documents by their ids."""
    given = parser.options(content, "ids", ("values",))
    values = required(given, "values", "ids")
    listed = [values] if isinstance(values, str) else parameters.listed(values, "`values` of the query `ids`")
    found = tuple(sorted({parameters.text(value, "an id") for value in listed}))
    if "" in found:
        raise invalid("an id is empty")
    return boosted(Ids(found) if found else MatchNone(), given, "ids")


@reads("exists")
def exists(parser: Parser, content: Any) -> Query:
    """Documents that have a value in a field."""
    given = parser.options(content, "exists", ("field",))
    field = parser.field(parameters.name(required(given, "field", "exists"), "`field` of the query `exists`"))
    return boosted(Constant(Exists(field.name)) if field else MatchNone(), given, "exists")


@reads("prefix")
def prefix(parser: Parser, content: Any) -> Query:
    """Terms that begin with some characters."""
    name, given = parser.on_field(content, "prefix", "value", ())
    value = parameters.text(required(given, "value", "prefix"), f"the prefix for {name}")
    field = parser.field(name)
    if field is None:
        return MatchNone()
    if field.is_number:
        raise invalid(f"the query `prefix` needs a text or keyword field, {name} is {field.type}")
    return boosted(Prefix(name, value), given, "prefix")


@reads("range")
def range_(parser: Parser, content: Any) -> Query:
    """Numbers between bounds."""
    name, given = parameters.single(content, "the query `range`")
    given = parser.options(given, "range", ("gt", "gte", "lt", "lte"))
    field = parser.field(name)
    if field is None:
        return MatchNone()
    if not field.is_number:
        raise unsupported(f"the query `range` on {name}, a {field.type} field, only on numbers")
    low, high = -math.inf, math.inf
    for bound in ("gt", "gte", "lt", "lte"):
        if given.get(bound) is None:
            continue
        value = parameters.exact(given[bound], f"`{bound}` for {name}")
        limit = 1 << max(31, INTEGERS.get(field.type, 0))
        if field.type in INTEGERS and not -limit <= value < limit:
            raise invalid(f"`{bound}` for {name} is {value}, which no {field.type} can be")
        if bound.startswith("g"):
            low = max(low, _bound(field, value, bound))
        else:
            high = min(high, _bound(field, value, bound))
    if low == -math.inf and high == math.inf:
        return boosted(Constant(Exists(name)), given, "range")
    return boosted(Between(name, low, high), given, "range")


def of_number(field: Field, value: Any) -> Query:
    """The documents that have a number."""
    exact = parameters.exact(value, f"the number for {field.name}")
    if field.type in INTEGERS and exact != int(exact):
        return MatchNone(late=True)
    if field.type == "float":
        exact = _float32(exact)
    return Between(field.name, exact, exact, is_point=field.type in INTEGERS)


def _bound(field: Field, value: float, bound: str) -> float:
    """The outermost value of the field that a bound lets in."""
    up = bound.startswith("g")
    if field.type in INTEGERS:
        if value != int(value):
            return math.ceil(value) if up else math.floor(value)
        return int(value) + {"gt": 1, "lt": -1}.get(bound, 0)
    if field.type == "float":
        value = _float32(value)
    if bound in ("gte", "lte"):
        return value
    if value == 0 and up == (math.copysign(1, value) < 0):
        return -float(value)  # Lucene has -0.0 beside 0.0, the next smaller number
    direction = math.inf if up else -math.inf
    if field.type == "float":
        return float(np.nextafter(np.float32(value), np.float32(direction)))
    return math.nextafter(value, direction)


def _float32(value: float) -> float:
    """The nearest float32, which is infinite for what is too great."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))
