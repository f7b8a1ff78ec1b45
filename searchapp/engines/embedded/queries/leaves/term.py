"""A term, or a number as one: what stands in a field exactly as it is indexed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.base import Explanation
from searchapp.engines.embedded import parameters
from searchapp.engines.embedded.queries.boosts import boosted
from searchapp.engines.embedded.queries.leaf import EVERYWHERE, Places
from searchapp.engines.embedded.queries.leaves import number_range
from searchapp.engines.embedded.queries.leaves.match_none import MatchNone
from searchapp.engines.embedded.queries.nodes import Query
from searchapp.engines.embedded.queries.parse import Parser, required
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf, explained_idf_of, frequency_of
from searchapp.engines.embedded.refusals import invalid, unsupported
from searchapp.engines.embedded.schema import Field, Schema
from searchapp.engines.embedded.storage.reader import FieldReader, IndexReader, Postings
from searchapp.model import Token


@dataclass(frozen=True, slots=True)
class Term(ScoredLeaf):
    """A term, scored by BM25."""

    has_few_documents: ClassVar[bool] = True

    term: str

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return reader.fields[self.field].documents_with_terms((self.term,))

    def postings(self, field: FieldReader) -> Postings:
        return field.postings(self.term)

    def idf(self, field: FieldReader) -> np.float32:
        return field.idf(field.document_frequency(self.term))

    def frequency(self, field: FieldReader, document: int) -> float:
        return frequency_of(self.term, field, document)

    def explained_idf(self, field: FieldReader) -> Explanation:
        return explained_idf_of(field.document_frequency(self.term), field)

    def described_frequency(self, frequency: np.float32) -> str:  # noqa: ARG002
        return "freq, occurrences of term within document"

    def may_match(self, reader: IndexReader, scores: bool, known: bool) -> bool:
        field = reader.fields[self.field]
        return field.occurs(self.term) if scores or known else field.may_have(self.term)

    def described(self, schema: Schema) -> str:  # noqa: ARG002
        return f"{self.field}:{self.term}"

    def places(self, tokens: Sequence[Token]) -> Mapping[str, Places]:  # noqa: ARG002
        return {self.term: EVERYWHERE}


def of_value(field: Field, value: Any) -> Query:
    """The documents that have a value, which may be a number, exactly as it is indexed."""
    if field.is_number:
        return number_range.of_number(field, value)
    return Term(field.name, parameters.term(value, f"the term for {field.name}"))


def read(parser: Parser, content: Any) -> Query:
    """A term as it is indexed, or a number."""
    name, given = parser.on_field(content, "term", "value", ("term",))
    # `term` is an older name of `value`; of two the one that was written last counts.
    keys = [key for key in given if key in ("value", "term")]
    value = required({"value": given[keys[-1]]} if keys else {}, "value", "term")
    for key, one in given.items():
        if isinstance(one, Mapping) or (key == "value" and isinstance(one, list | tuple)):
            raise invalid(f"the query `term` on {name} needs one value, not {one!r}")
    if isinstance(value, list | tuple):  # Elasticsearch searches for something that stands nowhere
        raise unsupported("a list as `term` of the query `term`")
    parameters.term(value, f"the term for {name}")
    field = parser.field(name)
    if field is None:
        return MatchNone()
    holder, key = (given, keys[-1]) if isinstance(content[name], Mapping) else (content, name)
    return boosted(parser.note(holder, key, partial(of_value, field)), given, "term")
