"""Whatever has a value in a field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from searchapp.engines.embedded import parameters
from searchapp.engines.embedded.queries.boosts import boosted
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.leaves.match_all import MatchAll
from searchapp.engines.embedded.queries.leaves.match_none import MatchNone
from searchapp.engines.embedded.queries.nodes import Bool, Constant, Query
from searchapp.engines.embedded.queries.parse import Parser, required
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage.reader import IndexReader


@dataclass(frozen=True, slots=True)
class Exists(Leaf):
    """Documents that have a value in the field, with the score 1."""

    field: str

    def settled(self, reader: IndexReader) -> Leaf:
        """As `FieldExistsQuery.rewrite`."""
        return MatchAll() if reader.in_all(self.field) else self

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return reader.fields[self.field].present

    def described(self, schema: Schema) -> str:  # noqa: ARG002
        return described(self.field)


def described(field: str) -> str:
    """Lucene's notation of the query for the documents that have a value in a field."""
    return f"FieldExistsQuery [field={field}]"


def read(parser: Parser, content: Any) -> Query:
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
