"""No document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.nodes import Query
from searchapp.engines.embedded.queries.parse import Parser
from searchapp.engines.embedded.refusals import unsupported
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage.reader import IndexReader

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
        return MatchNone()

    def documents(self, reader: IndexReader) -> NDArray[Any]:  # noqa: ARG002
        return np.empty(0, np.int32)

    def described(self, schema: Schema) -> str:  # noqa: ARG002
        # Elasticsearch says why, in the words of the part of it that found out.
        raise unsupported(INSIDE_ANOTHER)


def is_nothing(query: Query) -> bool:
    """Whether Elasticsearch sees as it reads a query that no document matches."""
    return isinstance(query, MatchNone) and not query.late


def read(parser: Parser, content: Any) -> Query:
    """No document."""
    parser.options(content, "match_none", ())
    return MatchNone()
