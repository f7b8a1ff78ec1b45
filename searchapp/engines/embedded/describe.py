"""Queries in Lucene's notation (`Query.toString`), as it appears in explanations."""

from __future__ import annotations

import base64
import math
import re
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

Precision = type[np.float32] | type[np.float64]

LONGEST_PLAIN, SHORTEST_PLAIN = 1e7, 1e-3
"""From where, and below where, Java prints a number with an exponent."""

NUMERIC_ID, UTF8_ID, ESCAPED_ID = 0xFE, 0xFF, 0xFD
"""First bytes of ids as they are indexed (`org.elasticsearch.index.mapper.Uid`)."""

NOTHING = "the explanation of a query inside another one that matches nothing"

_LAST_OF_BASE64 = {2: "AQgw", 3: "AEIMQUYcgkosw048"}
"""The characters that may end Base64 whose last group has so many: those without bits to spare."""


def printed(value: float | np.float32, precision: Precision = np.float32) -> str:
    """A float32, or with `precision` a double, as Java prints it.

    >>> [printed(value) for value in (1, 0.3, 12345678, 0.0001, 1e-45)]
    ['1.0', '0.3', '1.2345678E7', '1.0E-4', '1.4E-45']
    """
    number = precision(value)
    if np.isinf(number):
        return "-Infinity" if np.signbit(number) else "Infinity"
    if number == 0 or SHORTEST_PLAIN <= abs(float(number)) < LONGEST_PLAIN:
        return np.format_float_positional(number, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="0").split("e")
    if mantissa.endswith(".0"):  # of two digits Java takes the best, not the shortest and a zero
        mantissa, exponent = f"{number:.1e}".split("e")
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
        case OneOf(field, numbers):
            precision = np.float32 if schema.fields[field].type == "float" else np.float64
            return f"{field}:{{{' '.join(printed(number, precision) for number in numbers)}}}"
        case Ids(ids):
            return f"_id:({' '.join(map(_bytes, sorted(map(encoded_id, ids))))})"
        case Exists(field):
            return f"FieldExistsQuery [field={field}]"
        case Constant(inner):
            return f"ConstantScore({described(inner, schema)})"
        case Boost(inner, boost):
            return f"({described(inner, schema)})^{printed(boost)}"
        case Bag():
            return described(query.spelled_out(), schema)
        case Bool():
            return _bool(query.spelled_out(), schema)
        case DisMax(queries, tie_breaker):
            parts = " | ".join(_nested(inner, schema) for inner in queries)
            return f"({parts})" + (f"~{printed(tie_breaker)}" if tie_breaker else "")
        case Boosting(positive, _, factor, as_written):
            lowering = f"queryboost(score({described(as_written, schema)}))^{printed(factor)}"
            return f"FunctionScoreQuery({described(positive, schema)}, scored by boost({lowering}))"
        case FunctionScore(inner, functions=()):
            return f"function score ({described(inner, schema)}, functions: [])"
        case FunctionScore():
            # Elasticsearch prints the addresses of objects there, which are others each time.
            raise unsupported("the explanation of `function_score` inside a filter or a constant score")
        case MatchNone():
            # Elasticsearch says why, in the words of the part of it that found out.
            raise unsupported(NOTHING)
    raise TypeError(query)


def as_filter(query: Query) -> Query:
    """What explanations show in the place of a query that only filters: it makes the weight of what is inside."""
    match query:
        case (
            Boost(inner, _)
            | Constant(inner)
            | Boosting(positive=inner)
            | FunctionScore(inner, min_score=None)
        ):
            return as_filter(inner)
    return query


def encoded_id(document_id: str) -> bytes:
    """An id as Elasticsearch indexes it: packed if it consists of digits, or looks like Base64 for URLs.

    >>> [encoded_id(one).hex() for one in ("12", "7", "é", "abcd")]
    ['fe12', 'fe7f', 'ffc3a9', '69b71d']
    """
    if re.fullmatch("[0-9]+", document_id):
        return bytes([NUMERIC_ID]) + bytes.fromhex(document_id + "f" * (len(document_id) % 2))
    over = len(document_id) % 4
    if re.fullmatch("[0-9A-Za-z_-]+", document_id) and (
        over == 0 or (over > 1 and document_id[-1] in _LAST_OF_BASE64[over])
    ):
        packed = base64.urlsafe_b64decode(document_id + "=" * (-over % 4))
        return packed if packed[0] < ESCAPED_ID else bytes([ESCAPED_ID]) + packed
    return bytes([UTF8_ID]) + document_id.encode()


def _bytes(term: bytes) -> str:
    """A term as text if it is text, and as its bytes otherwise."""
    try:
        return term.decode()
    except UnicodeDecodeError:
        return f"[{' '.join(format(byte, 'x') for byte in term)}]"


def _nested(query: Query, schema: Schema) -> str:
    text = described(query, schema)
    return f"({text})" if isinstance(query, Bool | Bag) else text


def _bool(query: Bool, schema: Schema) -> str:
    if any(clause == MatchAll() for clause in map(as_filter, query.must_not)):
        raise unsupported(NOTHING)
    marks = (("+", query.must), ("-", query.must_not), ("", query.should), ("#", query.filter))
    text = " ".join(mark + _nested(clause, schema) for mark, clauses in marks for clause in clauses)
    return f"({text})~{query.minimum}" if query.minimum > 0 else text


def _phrase(query: Phrase) -> str:
    words = ["?"] * (query.positions[-1] + 1)
    for term, position in zip(query.terms, query.positions, strict=True):
        words[position] = term
    return f'{query.field}:"{" ".join(words)}"'


def _between(query: Between, schema: Schema) -> str:
    """Lucene decides while it searches which of two ways takes less time."""
    if query.is_point:
        return by_values(query, schema)
    by_index = f"FieldExistsQuery [field={query.field}]" if query.whole else _by_index(query, schema)
    return f"IndexOrDocValuesQuery(indexQuery={by_index}, dvQuery={by_values(query, schema)})"


def _by_index(query: Between, schema: Schema) -> str:
    kind = schema.fields[query.field].type
    if kind in INTEGERS:
        return by_values(query, schema)
    precision = np.float32 if kind == "float" else np.float64
    return f"{query.field}:[{printed(query.low, precision)} TO {printed(query.high, precision)}]"


def by_values(query: Between, schema: Schema) -> str:
    """A range as the query that looks at a document's numbers, with which Lucene explains it."""
    kind = schema.fields[query.field].type
    if kind in INTEGERS:
        limit = 1 << (63 if kind == "long" else 31)
        low = -limit if query.low == -math.inf else int(query.low)
        high = limit - 1 if query.high == math.inf else int(query.high)
        return f"{query.field}:[{low} TO {high}]"
    sortable = _sortable_float if kind == "float" else _sortable
    return f"{query.field}:[{sortable(query.low)} TO {sortable(query.high)}]"


def _sortable(value: float) -> int:
    """The bits of a double, changed so that they order as the number does (`NumericUtils.doubleToSortableLong`)."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits ^ (bits >> 63) & 0x7FFFFFFFFFFFFFFF)


def _sortable_float(value: float) -> int:
    """The same of a float32 (`NumericUtils.floatToSortableInt`)."""
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    return int(bits ^ (bits >> 31) & 0x7FFFFFFF)
