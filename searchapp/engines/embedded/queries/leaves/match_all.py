"""Every document."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.queries.boosts import boosted
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.nodes import Boost, Constant, Query
from searchapp.engines.embedded.queries.parse import Parser
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage.reader import IndexReader, Mask


@dataclass(frozen=True, slots=True)
class MatchAll(Leaf):
    """Every document, with the score 1; Elasticsearch finds out about a `late` one when Lucene's query is made."""

    late: bool = dataclass_field(default=False, compare=False)

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return np.flatnonzero(reader.everything()).astype(np.int32)

    def mask(self, reader: IndexReader) -> Mask:
        return reader.everything()

    def may_match(self, reader: IndexReader, scores: bool, known: bool) -> bool:  # noqa: ARG002
        return True

    def described(self, schema: Schema) -> str:  # noqa: ARG002
        return "*:*"


def read(parser: Parser, content: Any) -> Query:
    """Every document."""
    return boosted(MatchAll(), parser.options(content, "match_all", ()), "match_all")


_EVERYTHING = (MatchAll(), Constant(MatchAll()))


def gives_nothing(query: Query) -> bool:
    """Whether a query matches every document and gives it the score 0, so that it has no effect where it must match."""
    return isinstance(query, Boost) and not query.boost and query.query in _EVERYTHING
