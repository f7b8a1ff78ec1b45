"""Any of several terms or numbers, of which none counts more than another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from searchapp.engines.embedded import parameters
from searchapp.engines.embedded.queries.boosts import boosted
from searchapp.engines.embedded.queries.leaf import EVERYWHERE, MarkedLeaf, Places
from searchapp.engines.embedded.queries.leaves import number_in_set
from searchapp.engines.embedded.queries.leaves.match_none import MatchNone
from searchapp.engines.embedded.queries.nodes import Query
from searchapp.engines.embedded.queries.parse import Parser
from searchapp.engines.embedded.refusals import invalid, unsupported
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage.reader import IndexReader
from searchapp.model import Token

MOST_TERMS = 65_536
"""Elasticsearch's default of `index.max_terms_count`, which searchapp's indexes keep."""


@dataclass(frozen=True, slots=True)
class TermInSet(MarkedLeaf):
    """Documents that have one of the terms, with the score 1."""

    has_few_documents: ClassVar[bool] = True

    terms: tuple[str, ...]

    @property
    def is_multi_term(self) -> bool:
        return len(self.terms) > 1

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return reader.fields[self.field].documents_with_terms(self.terms)

    def described(self, schema: Schema) -> str:  # noqa: ARG002
        return f"{self.field}:({' '.join(self.terms)})"

    def places(self, tokens: Sequence[Token]) -> Mapping[str, Places]:  # noqa: ARG002
        return dict.fromkeys(self.terms, EVERYWHERE)


def read(parser: Parser, content: Any) -> Query:
    """Any of several terms or numbers."""
    given = parameters.mapping(content, "the query `terms`")
    named = {name: value for name, value in given.items() if name != "boost"}
    name, values = parameters.single(named, "the query `terms`")
    if isinstance(values, Mapping):
        raise unsupported("the lookup of terms in another index")
    if not isinstance(values, list | tuple):
        raise invalid("the query `terms` needs a list of values")
    parameters.boost(given.get("boost", 1), "the query `terms`")  # refused even where nothing matches
    place = f"a term for {name}"
    if any(isinstance(value, Mapping) for value in values):
        raise unsupported(f"an object as {place}")
    texts = [parameters.term(value, place) for value in values]
    field = parser.field(name)
    if field is None or not values:
        return MatchNone()
    if len(values) > MOST_TERMS:
        raise invalid(
            f"the query `terms` on {name} has {len(values):,} values, and at most {MOST_TERMS:,} are allowed"
        )
    if field.is_number:
        return boosted(number_in_set.of_numbers(field, values), given, "terms")
    return boosted(TermInSet(name, tuple(sorted(set(texts)))), given, "terms")
