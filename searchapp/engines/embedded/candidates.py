"""The scores of a few documents, as a `Scorer` computes those of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from searchapp.engines.embedded import similarity
from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf
from searchapp.engines.embedded.rows import NO_ROW, Row, is_common
from searchapp.engines.embedded.storage.reader import BoundedPostings, IndexReader, Numbers

PostingsOfTerms = Mapping[tuple[str, str], BoundedPostings]
"""The postings of a field's terms, of those that occur."""


class CandidateRows:
    """Rows in which each candidate counts as a document: the first one is 0, the second one 1, and so on.

    What is asked of them are the terms whose postings are given, so that nothing is looked up twice.
    """

    def __init__(self, reader: IndexReader, postings: PostingsOfTerms, candidates: Numbers) -> None:
        """`candidates` are documents, ascending."""
        self._reader = reader
        self._postings = postings
        self._candidates = candidates

    @property
    def count(self) -> int:
        """The number of documents that the rows are of."""
        return len(self._candidates)

    def row(self, leaf: ScoredLeaf, boost: np.float32) -> Row:
        """The row of a term."""
        assert isinstance(leaf, Term)
        return self.of_terms(leaf.field, [leaf.term], boost)[0]

    def of_terms(self, name: str, terms: Sequence[str], boost: np.float32) -> list[Row]:
        """The rows of terms of a field, in their order."""
        field = self._reader.fields[name]
        found = [self._postings.get((name, term)) for term in terms]
        places, frequencies, weights = [], [], []
        for postings in found:
            if postings is None:
                continue
            at = postings.documents.searchsorted(self._candidates)
            np.minimum(at, len(postings.documents) - 1, out=at)
            there = np.flatnonzero(postings.documents.take(at) == self._candidates)
            places.append(there)
            frequencies.append(postings.frequencies.take(at.take(there)))
            idf = similarity.idf(len(postings.documents), field.statistics.documents)
            weights.append(field.similarity.weight(boost, idf))
        if not places:
            return [NO_ROW] * len(terms)
        counts = [len(some) for some in places]
        scores = similarity.scores(
            np.repeat(np.array(weights, np.float32), counts),
            np.concatenate(frequencies).astype(np.float32),
            field.inverses(self._candidates)[np.concatenate(places)],
        )
        pieces = iter(zip(places, np.split(scores, np.cumsum(counts)[:-1]), strict=True))
        rows = []
        for postings in found:
            if postings is None:
                rows.append(NO_ROW)
                continue
            there, of_term = next(pieces)
            common = is_common(len(postings.documents), self._reader.count)
            rows.append(Row(there.astype(np.int32), of_term, bool(of_term.all()), common))
        return rows
