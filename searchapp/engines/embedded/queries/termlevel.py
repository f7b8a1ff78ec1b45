"""Queries on values as they are indexed: `term`, `terms`, `ids`, `exists`, `prefix`, `range`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchapp.engines.embedded import parameters
from searchapp.engines.embedded.queries.nodes import (
    Bool,
    Constant,
    Exists,
    Ids,
    MatchNone,
    Prefix,
    Query,
    Term,
    Terms,
)
from searchapp.engines.embedded.queries.numbers import any_of_numbers, between, of_number
from searchapp.engines.embedded.queries.parse import Parser, boosted, required
from searchapp.engines.embedded.refusals import invalid, unsupported
from searchapp.engines.embedded.schema import Field

MOST_TERMS = 65_536
MOST_IDS = 10_000
LONGEST_TERM = 32_766
"""Bytes of UTF-8."""
LONGEST_PREFIX = 1_000
"""Code units of UTF-16. All of these are Elasticsearch's defaults, which searchapp's indexes keep."""


def checked_term(text: str, place: str) -> str:
    """A text that is searched for as one term.

    Raises:
        EngineRefused: it is longer than any term of an index.
    """
    if len(text) * 3 > LONGEST_TERM and len(text.encode("utf-8", "surrogatepass")) > LONGEST_TERM:
        raise invalid(f"{place} has more than {LONGEST_TERM:,} bytes")
    return text


def of_value(field: Field, value: Any) -> Query:
    """The documents that have a value, which may be a number, exactly as it is indexed."""
    if field.is_number:
        return of_number(field, value)
    place = f"the term for {field.name}"
    return Term(field.name, checked_term(parameters.text(value, place), place))


def term(parser: Parser, content: Any) -> Query:
    """A term as it is indexed, or a number."""
    name, given = parser.on_field(content, "term", "value", ("term",))
    # `term` is an older name of `value`; of two the one that was written last counts.
    values = [value for key, value in given.items() if key in ("value", "term")]
    value = required({"value": values[-1]} if values else {}, "value", "term")
    if isinstance(value, list | tuple | Mapping):
        raise invalid(f"the query `term` on {name} needs one value, not {value!r}")
    checked_term(parameters.text(value, f"the term for {name}"), f"the term for {name}")
    field = parser.field(name)
    return MatchNone() if field is None else boosted(of_value(field, value), given, "term")


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
    place = f"a term for {name}"
    if any(isinstance(value, Mapping) for value in values):
        raise unsupported(f"an object as {place}")
    texts = [checked_term(parameters.text(value, place), place) for value in values]
    field = parser.field(name)
    if field is None or not values:
        return MatchNone()
    if len(values) > MOST_TERMS:
        raise invalid(
            f"the query `terms` on {name} has {len(values):,} values, and at most {MOST_TERMS:,} are allowed"
        )
    if field.is_number:
        return boosted(any_of_numbers(field, values), given, "terms")
    return boosted(Terms(name, tuple(sorted(set(texts)))), given, "terms")


def ids(parser: Parser, content: Any) -> Query:
    """Documents by their ids."""
    given = parser.options(content, "ids", ("values",))
    values = given.get("values", ())
    listed = [values] if isinstance(values, str) else parameters.listed(values, "`values` of the query `ids`")
    found = tuple(sorted({parameters.raw_text(value, "an id") for value in listed}))
    if "" in found:
        raise invalid("an id is empty")
    if len(found) > MOST_IDS:
        raise invalid(f"the query `ids` has {len(found):,} ids, and at most {MOST_IDS:,} are allowed")
    return boosted(Ids(found) if found else MatchNone(), given, "ids")


def exists(parser: Parser, content: Any) -> Query:
    """Documents that have a value in a field, or in any field below an object."""
    given = parser.options(content, "exists", ("field",))
    name = parameters.name(required(given, "field", "exists"), "`field` of the query `exists`")
    found = parser.field(name)
    below = (
        [found.name] if found else [field for field in parser.schema.fields if field.startswith(f"{name}.")]
    )
    if not below:
        return MatchNone()
    any_of = tuple(map(Exists, below))
    return boosted(Constant(any_of[0] if len(any_of) == 1 else Bool(should=any_of)), given, "exists")


def prefix(parser: Parser, content: Any) -> Query:
    """Terms that begin with some characters."""
    name, given = parser.on_field(content, "prefix", "value", ())
    value = parameters.raw_text(required(given, "value", "prefix"), f"the prefix for {name}")
    field = parser.field(name)
    if field is None:
        return MatchNone()
    if field.is_number:
        raise invalid(f"the query `prefix` needs a text or keyword field, {name} is {field.type}")
    if len(value.encode("utf-16-le", "surrogatepass")) > 2 * LONGEST_PREFIX:
        raise invalid(f"the prefix for {name} has more than {LONGEST_PREFIX:,} characters")
    return boosted(Prefix(name, value), given, "prefix")


def range_(parser: Parser, content: Any) -> Query:
    """Numbers between bounds; without bounds, whatever has a value."""
    name, given = parameters.single(content, "the query `range`")
    given = parser.options(given, "range", ("gt", "gte", "lt", "lte"))
    bounds = {bound: value for bound, value in given.items() if bound != "boost"}
    for bound, value in bounds.items():
        if value is not None:
            place = f"`{bound}` for {name}"
            checked_term(parameters.text(value, place), place)
    field = parser.field(name)
    if field is None:
        return MatchNone()
    if field.is_number:
        found = between(field, bounds)
    elif all(value is None for value in bounds.values()):
        found = None
    else:
        raise unsupported(f"the query `range` on {name}, a {field.type} field, only on numbers")
    return boosted(Constant(Exists(name)) if found is None else found, given, "range")
