"""Queries without terms: every document (`match_all`), none (`match_none`), with a value (`Exists`), by id (`ids`); and
the reader of `constant_score`.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import IndexReader, Mask
from searchapp.lucene.queries.parser import Parser, required
from searchapp.lucene.queries.query import Boost, Constant, Leaf, Query, boosted
from searchapp.lucene.queries.scores import ScoreRows
from searchapp.lucene.similarity import ONE


@dataclass(frozen=True, slots=True)
class MatchAll(Leaf):
    """Every document, with the score 1; Elasticsearch finds out about a `late` one when Lucene's query is made."""

    late: bool = dataclass_field(default=False, compare=False)

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return np.flatnonzero(reader.everything()).astype(np.int32)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:  # noqa: ARG002
        return rows.reader.everything()

    def notation(self, schema: Schema) -> str:  # noqa: ARG002
        return "*:*"


def read_match_all(parser: Parser, content: Any) -> Query:
    """Every document."""
    return boosted(MatchAll(), parser.options(content, "match_all", ()), "match_all")


_EVERYTHING = (MatchAll(), Constant(MatchAll()))


def is_zero_match_all(query: Query) -> bool:
    """Whether a query matches every document and gives it the score 0, so that it has no effect where it must match."""
    return isinstance(query, Boost) and not query.boost and query.query in _EVERYTHING


INSIDE_ANOTHER = "the explanation of a query inside another one that matches nothing"


@dataclass(frozen=True, slots=True)
class MatchNone(Leaf):
    """No document.

    Elasticsearch sees most such queries as it reads them, and may drop what is around them too. `late` marks
    those of which Elasticsearch finds out when Lucene's query is made.
    """

    matches_nothing: ClassVar[bool] = True

    late: bool = False

    def rewritten(self) -> MatchNone:
        return MatchNone() if self.late else self

    def documents(self, reader: IndexReader) -> NDArray[Any]:  # noqa: ARG002
        return np.empty(0, np.int32)

    def notation(self, schema: Schema) -> str:  # noqa: ARG002
        # Elasticsearch says why, in the words of the part of it that found out.
        raise unsupported(INSIDE_ANOTHER)


def is_nothing(query: Query) -> bool:
    """Whether Elasticsearch sees as it reads a query that no document matches."""
    return isinstance(query, MatchNone) and not query.late


def read_match_none(parser: Parser, content: Any) -> Query:
    """No document."""
    parser.options(content, "match_none", ())
    return MatchNone()


@dataclass(frozen=True, slots=True)
class Exists(Leaf):
    """Documents that have a value in the field, with the score 1."""

    field: str

    def resolved(self, reader: IndexReader) -> Leaf:
        """As `FieldExistsQuery.rewrite`."""
        return MatchAll() if reader.in_all(self.field) else self

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return reader.fields[self.field].present

    def notation(self, schema: Schema) -> str:  # noqa: ARG002
        return exists_description(self.field)


def exists_description(field: str) -> str:
    """Lucene's notation of the query for the documents that have a value in a field."""
    return f"FieldExistsQuery [field={field}]"


def read_constant_score(parser: Parser, content: Any) -> Query:
    """A query as a filter: every document it matches has the same score."""
    given = parser.options(content, "constant_score", ("filter",))
    inner = parser.query(required(given, "filter", "constant_score"))
    return boosted(inner if is_nothing(inner) else Constant(inner), given, "constant_score")


MOST_IDS = 10_000
"""Elasticsearch's default of `index.max_result_window`, which searchapp's indexes keep."""

NUMERIC_ID, UTF8_ID, ESCAPED_ID = 0xFE, 0xFF, 0xFD
"""First bytes of ids as they are indexed (`org.elasticsearch.index.mapper.Uid`)."""

_LAST_OF_BASE64 = {2: "AQgw", 3: "AEIMQUYcgkosw048"}
"""The characters that may end Base64 by how many its last group has: those without bits to spare."""


@dataclass(frozen=True, slots=True)
class Ids(Leaf):
    """The documents of these ids, with the score 1."""

    has_few_documents: ClassVar[bool] = True

    ids: tuple[str, ...]

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        found = (reader.document(document_id) for document_id in self.ids)
        return np.array([document for document in found if document is not None], np.int32)

    def notation(self, schema: Schema) -> str:  # noqa: ARG002
        return f"_id:({' '.join(map(_printed, sorted(map(encoded, self.ids))))})"


def encoded(document_id: str) -> bytes:
    """An id as Elasticsearch indexes it: packed if it consists of digits, or looks like Base64 for URLs.

    >>> [encoded(one).hex() for one in ("12", "7", "é", "abcd")]
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


def _printed(term: bytes) -> str:
    """A term as text if it is text, and as its bytes otherwise."""
    try:
        return term.decode()
    except UnicodeDecodeError:
        return f"[{' '.join(format(byte, 'x') for byte in term)}]"


def read_ids(parser: Parser, content: Any) -> Query:
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
