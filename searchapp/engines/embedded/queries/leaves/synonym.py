"""Terms on one position of a text, which analysis made of one word: searched for as if they were one term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from searchapp.engines.base import Explanation
from searchapp.engines.embedded.queries.leaf import EVERYWHERE, Leaf, Places
from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf, explained_idf_of, frequency_of
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage.reader import FieldReader, IndexReader, Postings
from searchapp.model import Token


@dataclass(frozen=True, slots=True)
class Synonym(ScoredLeaf):
    """Terms scored as if they were one: frequencies summed, the greatest document frequency."""

    terms: tuple[str, ...]

    @property
    def clause_count(self) -> int:
        return len(self.terms)

    def rewritten(self) -> Leaf:
        return Term(self.field, self.terms[0]) if len(self.terms) == 1 else self

    def may_match(self, reader: IndexReader, scores: bool, known: bool) -> bool:
        """Lucene puts off looking for terms that are scored together, and takes others for those of a disjunction."""
        return scores or any(Term(self.field, term).may_match(reader, scores, known) for term in self.terms)

    def postings(self, field: FieldReader) -> Postings:
        return _merged([field.postings(term) for term in self.terms])

    def idf(self, field: FieldReader) -> np.float32:
        return field.idf(self._document_frequency(field))

    def frequency(self, field: FieldReader, document: int) -> float:
        return sum(frequency_of(term, field, document) for term in self.terms)

    def explained_idf(self, field: FieldReader) -> Explanation:
        return explained_idf_of(self._document_frequency(field), field)

    def _document_frequency(self, field: FieldReader) -> int:
        """In how many documents BM25 believes the terms to be: the commonest term counts."""
        return max(field.document_frequency(term) for term in self.terms)

    def described(self, schema: Schema) -> str:  # noqa: ARG002
        return f"Synonym({self._listed()})"

    def described_as_filter(self, schema: Schema) -> str:  # noqa: ARG002
        return self._listed()  # the terms are clauses of a disjunction then

    def _listed(self) -> str:
        return " ".join(f"{self.field}:{term}" for term in self.terms)

    def places(self, tokens: Sequence[Token]) -> Mapping[str, Places]:  # noqa: ARG002
        return dict.fromkeys(self.terms, EVERYWHERE)


def _merged(found: list[Postings]) -> Postings:
    documents = reduce(np.union1d, (one.documents for one in found))
    frequencies = np.zeros(len(documents), np.float32)
    for one in found:
        frequencies[np.searchsorted(documents, one.documents)] += one.frequencies
    return Postings(documents, frequencies)
