"""Queries in Lucene's notation (`Query.toString`), as it appears in explanations."""

from __future__ import annotations

import math
import struct

import numpy as np

from searchapp.engines.embedded.queries.nodes import (
    Bag,
    Between,
    Bool,
    Boost,
    Boosting,
    Constant,
    DisMax,
    Exists,
    FunctionScore,
    Ids,
    MatchAll,
    MatchNone,
    OneOf,
    Phrase,
    Prefix,
    Query,
    Synonym,
    Term,
    Terms,
)
from searchapp.engines.embedded.refusals import unsupported
from searchapp.engines.embedded.schema import INTEGERS, Schema

LONGEST_PLAIN, SHORTEST_PLAIN = 1e7, 1e-3
"""From where, and below where, Java prints a float with an exponent."""


def printed(value: float | np.float32) -> str:
    """A float32 as Java prints it.

    >>> [printed(value) for value in (1, 0.3, 12345678, 0.0001)]
    ['1.0', '0.3', '1.2345678E7', '1.0E-4']
    """
    number = np.float32(value)
    if number == 0 or SHORTEST_PLAIN <= abs(number) < LONGEST_PLAIN:
        return np.format_float_positional(number, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="0").split("e")
    return f"{mantissa}E{int(exponent)}"


def described(query: Query, schema: Schema) -> str:
    """A query in Lucene's notation.

    Raises:
        EngineRefused: the notation of the query is not known here.
    """
    match query:
        case Term(field, term):
            return f"{field}:{term}"
        case Synonym(field, terms):
            return f"Synonym({' '.join(f'{field}:{term}' for term in terms)})"
        case Phrase():
            return _phrase(query)
        case MatchAll():
            return "*:*"
        case Terms(field, terms):
            return f"{field}:({' '.join(terms)})"
        case Prefix(field, prefix):
            return f"{field}:{prefix}*"
        case Between():
            return _between(query, schema)
        case OneOf(field, numbers) if schema.fields[field].type in INTEGERS:
            return f"{field}:{{{' '.join(map(str, numbers))}}}"
        case Exists(field):
            return f"FieldExistsQuery [field={field}]"
        case Constant(inner):
            return f"ConstantScore({described(inner, schema)})"
        case Boost(inner, boost):
            return f"({described(inner, schema)})^{printed(boost)}"
        case Bag():
            return described(query.spelled_out(), schema)
        case Bool():
            return _bool(query, schema)
        case DisMax(queries, tie_breaker):
            parts = " | ".join(_nested(inner, schema) for inner in queries)
            return f"({parts})" + (f"~{printed(tie_breaker)}" if tie_breaker else "")
        case MatchNone() | Ids() | OneOf() | Boosting() | FunctionScore():
            pass
    raise unsupported(f"the explanation of a query of the kind {type(query).__name__}")


def _nested(query: Query, schema: Schema) -> str:
    text = described(query, schema)
    return f"({text})" if isinstance(query, Bool | Bag) else text


def _bool(query: Bool, schema: Schema) -> str:
    marks = (("+", query.must), ("-", query.must_not), ("", query.should), ("#", query.filter))
    text = " ".join(mark + _nested(clause, schema) for mark, clauses in marks for clause in clauses)
    return f"({text})~{query.minimum}" if query.minimum > 0 else text


def _phrase(query: Phrase) -> str:
    words = ["?"] * (query.positions[-1] - query.positions[0] + 1)
    for term, position in zip(query.terms, query.positions, strict=True):
        words[position - query.positions[0]] = term
    return f'{query.field}:"{" ".join(words)}"'


def _between(query: Between, schema: Schema) -> str:
    kind = schema.fields[query.field].type
    if kind in INTEGERS:
        limit = 1 << (63 if kind == "long" else 31)
        low = -limit if query.low == -math.inf else int(query.low)
        high = limit - 1 if query.high == math.inf else int(query.high)
        return f"{query.field}:[{low} TO {high}]"
    if kind == "double":
        return f"{query.field}:[{_sortable(query.low)} TO {_sortable(query.high)}]"
    raise unsupported(f"the explanation of numbers of the type {kind}")


def _sortable(value: float) -> int:
    """The bits of a double, changed so that they order as the number does (`NumericUtils.doubleToSortableLong`)."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits ^ (bits >> 63) & 0x7FFFFFFFFFFFFFFF)
