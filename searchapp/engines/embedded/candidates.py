"""The scores of a few documents, as a `Scorer` computes those of all."""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded import similarity
from searchapp.engines.embedded.queries.leaves.phrase import Phrase
from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf
from searchapp.engines.embedded.rows import NO_ROW, Row, Rows, is_common, scores_of
from searchapp.engines.embedded.storage import arrays
from searchapp.engines.embedded.storage.impacts import Impacts
from searchapp.engines.embedded.storage.reader import (
    BoundedPostings,
    FieldReader,
    IndexReader,
    Mask,
    Numbers,
)

Places = NDArray[np.intp]

PostingsOfTerms = Mapping[Hashable, BoundedPostings]
"""The postings of terms that occur, by field and term."""


class CandidateRows:
    """Rows in which each candidate counts as a document: the first one is 0, the second one 1, and so on.

    Of terms, those are asked whose postings are given, so that nothing is looked up twice; the rows of other leaves are
    cut out of those of all documents.
    """

    def __init__(
        self,
        reader: IndexReader,
        rows: Rows,
        postings: PostingsOfTerms,
        laid_out: Mapping[Hashable, Impacts],
        candidates: Numbers,
        sought: Container[ScoredLeaf] = (),
    ) -> None:
        """`candidates` are documents, ascending.

        `rows` are those of all documents, `laid_out` has the impacts of some terms in all documents. The phrases
        `sought` are looked for among the candidates instead.
        """
        self._reader = reader
        self._rows = rows
        self._postings = postings
        self._laid_out = laid_out
        self._candidates = candidates
        self._sought = sought

    @property
    def count(self) -> int:
        """The number of documents that the rows are of."""
        return len(self._candidates)

    def everything(self) -> Mask:
        """Marks of all of them that count: dead documents are no candidates."""
        return np.ones(self.count, bool)

    def row(self, leaf: ScoredLeaf, boost: np.float32) -> Row:
        """The row of a leaf whose boost is given."""
        if isinstance(leaf, Term):
            return self.of_terms(leaf.field, [leaf.term], boost)[0]
        if isinstance(leaf, Phrase) and leaf in self._sought:
            return self._found_phrase(leaf, boost)
        row = self._rows.row(leaf, boost)
        if not len(row.documents):
            return NO_ROW
        at, there = self._found(row.documents)
        scores = row.scores.take(at.take(there))
        return Row(there.astype(np.int32), scores, row.positive, row.is_common, whole=len(row.documents))

    def _found_phrase(self, phrase: Phrase, boost: np.float32) -> Row:
        field = self._reader.fields[phrase.field]
        found = phrase.postings_among(field, self._candidates)
        scores = scores_of(phrase, boost, field, found)
        there = self._candidates.searchsorted(found.documents).astype(np.int32)
        return Row(there, scores, bool(scores.all()))

    def of_terms(self, name: str, terms: Sequence[str], boost: np.float32) -> list[Row]:
        """The rows of terms of a field, in their order."""
        field = self._reader.fields[name]
        found = [self._postings.get((name, term)) for term in terms]
        codes = field.length_codes(self._candidates)
        places, frequencies, weights = [], [], []
        for term, postings in zip(terms, found, strict=True):
            if postings is None:
                continue
            known = self._known(field, term, codes)
            if known is None:
                at, there = self._found(postings.documents)
                known = there, postings.frequencies.take(at.take(there))
            places.append(known[0])
            frequencies.append(known[1])
            weights.append(field.weight(boost, field.document_frequency(term)))
        if not places:
            return [self._nowhere(field, term) for term in terms]
        counts = [len(some) for some in places]
        scores = similarity.scores(
            np.repeat(np.array(weights, np.float32), counts),
            np.concatenate(frequencies).astype(np.float32),
            field.norm_inverses.take(codes.take(np.concatenate(places))),
        )
        pieces = iter(zip(places, np.split(scores, np.cumsum(counts)[:-1]), strict=True))
        rows = []
        for term, postings in zip(terms, found, strict=True):
            if postings is None:
                rows.append(self._nowhere(field, term))
                continue
            there, of_term = next(pieces)
            frequency = field.document_frequency(term)
            common = is_common(frequency, self._reader.whole_count)
            rows.append(Row(there.astype(np.int32), of_term, bool(of_term.all()), common, whole=frequency))
        return rows

    def _nowhere(self, field: FieldReader, term: str) -> Row:
        """The row of a term that stands in no document here, but perhaps in other parts of the index."""
        return NO_ROW._replace(whole=field.document_frequency(term)) if self._reader.is_part else NO_ROW

    def _known(
        self, field: FieldReader, term: str, codes: NDArray[np.uint8]
    ) -> tuple[Places, NDArray[np.unsignedinteger]] | None:
        """The candidates where a term stands, and how often, from its impacts; None if these do not tell."""
        laid_out = self._laid_out.get((field.field.name, term))
        by_impact = None if laid_out is None else field.frequencies_by_impact
        if laid_out is None or by_impact is None:
            return None
        impacts = laid_out.take(self._candidates)
        there = np.flatnonzero(impacts)
        frequencies = by_impact[codes.take(there), impacts.take(there)]
        return (there, frequencies) if frequencies.all() else None

    def _found(self, documents: Numbers) -> tuple[Places, Places]:
        """Where each candidate would stand among some documents, and which of the candidates do."""
        at, there = arrays.located(documents, self._candidates)
        return at, np.flatnonzero(there)
