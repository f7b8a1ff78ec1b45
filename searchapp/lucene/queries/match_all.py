"""Queries without terms: `match_all`, `match_none`, `exists` (the leaf), `ids`, `constant_score`."""

from __future__ import annotations

import base64
import re
from dataclasses import field as dataclass_field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index.mapping import RESULT_WINDOW, Field, Schema
from searchapp.lucene.index.reader import IndexReader, Mask
from searchapp.lucene.queries.query import (
    Boost,
    Constant,
    Leaf,
    Parser,
    Query,
    apply_boost_parameter,
    required,
)
from searchapp.lucene.queries.scores import ScoreRows
from searchapp.lucene.similarity import ONE


@dataclass(frozen=True, slots=True)
class MatchAll(Leaf):
    """All documents, with the score 1."""

    # Whether Elasticsearch recognises the query only when it creates Lucene's query.
    late: bool = dataclass_field(default=False, compare=False)

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return np.flatnonzero(reader.live_mask()).astype(np.int32)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        return rows.reader.live_mask()

    def notation(self, schema: Schema) -> str:
        return "*:*"


def read_match_all(parser: Parser, content: Any) -> Query:
    """Read `match_all`."""
    return apply_boost_parameter(MatchAll(), parser.options(content, "match_all", ()), "match_all")


_ALL_DOCUMENTS = (MatchAll(), Constant(MatchAll()))


def is_zero_match_all(query: Query) -> bool:
    """Return whether a query scores all documents 0, and so has no effect as a required clause."""
    return isinstance(query, Boost) and not query.boost and query.query in _ALL_DOCUMENTS


UNKNOWN_EXPLANATION = "the explanation of a query inside another one that matches nothing"


@dataclass(frozen=True, slots=True)
class MatchNone(Leaf):
    """No document.

    Elasticsearch recognises most such queries while parsing, and may drop enclosing queries too.
    """

    matches_nothing: ClassVar[bool] = True

    # Whether Elasticsearch recognises the query only when it creates Lucene's query.
    late: bool = False

    def rewritten(self) -> MatchNone:
        return MatchNone() if self.late else self

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return np.empty(0, np.int32)

    def notation(self, schema: Schema) -> str:
        # Elasticsearch prints a reason that depends on the component that recognised it.
        raise unsupported(UNKNOWN_EXPLANATION)


def is_nothing(query: Query) -> bool:
    """Return whether Elasticsearch recognises while parsing that no document matches."""
    return isinstance(query, MatchNone) and not query.late


def read_match_none(parser: Parser, content: Any) -> Query:
    """Read `match_none`."""
    parser.options(content, "match_none", ())
    return MatchNone()


@dataclass(frozen=True, slots=True)
class Exists(Leaf):
    """Documents with a value in the field, with the score 1."""

    field: str

    def resolved(self, reader: IndexReader) -> Leaf:
        """Follow `FieldExistsQuery.rewrite`."""
        is_direct = _finds_values(reader.schema.fields[self.field])
        return MatchAll() if is_direct and reader.in_all(self.field) else self

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return reader.fields[self.field].present

    def notation(self, schema: Schema) -> str:
        if _finds_values(schema.fields[self.field]):
            return f"FieldExistsQuery [field={self.field}]"
        return f"_field_names:{self.field}"


def _finds_values(field: Field) -> bool:
    """Return whether Lucene finds the documents with a value by doc values or lengths."""
    return field.has_doc_values or field.has_norms


def read_constant_score(parser: Parser, content: Any) -> Query:
    """Read `constant_score`: a filter whose documents all have the same score."""
    options = parser.options(content, "constant_score", ("filter",))
    inner = parser.query(required(options, "filter", "constant_score"))
    return apply_boost_parameter(inner if is_nothing(inner) else Constant(inner), options, "constant_score")


# First bytes of indexed ids (`org.elasticsearch.index.mapper.Uid`).
_NUMERIC_ID, _UTF8_ID, _ESCAPED_ID = 0xFE, 0xFF, 0xFD

# Final characters of Base64 without unused bits, by the length of the last group.
_LAST_OF_BASE64 = {2: "AQgw", 3: "AEIMQUYcgkosw048"}


@dataclass(frozen=True, slots=True)
class Ids(Leaf):
    """Documents by their ids, with the score 1."""

    has_few_documents: ClassVar[bool] = True

    ids: tuple[str, ...]

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return reader.documents_of(self.ids)

    def notation(self, schema: Schema) -> str:
        return f"_id:({' '.join(map(_printed_id, sorted(map(indexed_id, self.ids))))})"


def indexed_id(document_id: str) -> bytes:
    """Return an id as Elasticsearch indexes it: packed if it consists of digits or is valid URL-safe Base64.

    >>> [indexed_id(document_id).hex() for document_id in ("12", "7", "é", "abcd")]
    ['fe12', 'fe7f', 'ffc3a9', '69b71d']
    """
    if re.fullmatch("[0-9]+", document_id):
        return bytes([_NUMERIC_ID]) + bytes.fromhex(document_id + "f" * (len(document_id) % 2))
    over = len(document_id) % 4
    if re.fullmatch("[0-9A-Za-z_-]+", document_id) and (
        over == 0 or (over > 1 and document_id[-1] in _LAST_OF_BASE64[over])
    ):
        packed = base64.urlsafe_b64decode(document_id + "=" * (-over % 4))
        return packed if packed[0] < _ESCAPED_ID else bytes([_ESCAPED_ID]) + packed
    return bytes([_UTF8_ID]) + document_id.encode()


def _printed_id(term: bytes) -> str:
    try:
        return term.decode()
    except UnicodeDecodeError:
        return f"[{' '.join(format(byte, 'x') for byte in term)}]"


def read_ids(parser: Parser, content: Any) -> Query:
    """Read `ids`."""
    options = parser.options(content, "ids", ("values",))
    values = options.get("values", ())
    listed = [values] if isinstance(values, str) else parameters.listed(values, "`values` of the query `ids`")
    ids = tuple(sorted({parameters.raw_text(value, "an id") for value in listed}))
    if "" in ids:
        raise invalid("an id is empty")
    if len(ids) > RESULT_WINDOW:
        raise invalid(f"the query `ids` has {len(ids):,} ids, and at most {RESULT_WINDOW:,} are allowed")
    return apply_boost_parameter(Ids(ids) if ids else MatchNone(), options, "ids")
