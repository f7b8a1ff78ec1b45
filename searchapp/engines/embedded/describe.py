"""Queries in Lucene's notation (`Query.toString`), as it appears in explanations."""

from __future__ import annotations

import base64
import re
import struct

import numpy as np

from searchapp.engines.embedded.java_numbers import printed
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

NUMERIC_ID, UTF8_ID, ESCAPED_ID = 0xFE, 0xFF, 0xFD
"""First bytes of ids as they are indexed (`org.elasticsearch.index.mapper.Uid`)."""

NOTHING = "the explanation of a query inside another one that matches nothing"

_LAST_OF_BASE64 = {2: "AQgw", 3: "AEIMQUYcgkosw048"}
"""The characters that may end Base64 whose last group has so many: those without bits to spare."""


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
        case Synonym(field, terms):
            return Bool(should=tuple(Term(field, term) for term in terms))
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
        return f"{query.field}:[{query.low} TO {query.high}]"
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
