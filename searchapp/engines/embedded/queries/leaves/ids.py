"""Documents by their ids."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded import parameters
from searchapp.engines.embedded.queries.boosts import boosted
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.leaves.match_none import MatchNone
from searchapp.engines.embedded.queries.nodes import Query
from searchapp.engines.embedded.queries.parse import Parser
from searchapp.engines.embedded.refusals import invalid
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage.reader import IndexReader

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

    def described(self, schema: Schema) -> str:  # noqa: ARG002
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


def read(parser: Parser, content: Any) -> Query:
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
