"""Terms that begin with some characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from searchapp.engines.embedded import parameters
from searchapp.engines.embedded.queries.boosts import boosted
from searchapp.engines.embedded.queries.leaf import EVERYWHERE, MarkedLeaf, Places
from searchapp.engines.embedded.queries.leaves.match_none import MatchNone
from searchapp.engines.embedded.queries.nodes import Query
from searchapp.engines.embedded.queries.parse import Parser, required
from searchapp.engines.embedded.refusals import invalid
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage.reader import IndexReader
from searchapp.model import Token

LONGEST_PREFIX = 1_000
"""Code units of UTF-16: Elasticsearch's default of `index.max_regex_length`, which searchapp's indexes keep."""


@dataclass(frozen=True, slots=True)
class Prefix(MarkedLeaf):
    """Documents that have a term with the prefix, with the score 1."""

    prefix: str

    @property
    def is_multi_term(self) -> bool:
        return True

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        field = reader.fields[self.field]
        return field.documents_with(field.terms.with_prefix(self.prefix))

    def described(self, schema: Schema) -> str:  # noqa: ARG002
        return f"{self.field}:{self.prefix}*"

    def places(self, tokens: Sequence[Token]) -> Mapping[str, Places]:
        return {token.term: EVERYWHERE for token in tokens if token.term.startswith(self.prefix)}


def read(parser: Parser, content: Any) -> Query:
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
