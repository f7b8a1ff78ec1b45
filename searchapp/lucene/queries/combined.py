"""Terms in several fields: `CombinedFields` scores the fields as one, `blended` shares document frequencies.

S. Robertson, H. Zaragoza and M. Taylor, Simple BM25 extension to multiple weighted fields, CIKM 2004 (BM25F).
org.apache.lucene.sandbox.search.CombinedFieldQuery (Lucene 10)
org.elasticsearch.lucene.queries.BlendedTermQuery
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import similarity
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import unsupported
from searchapp.lucene.index.mapping import Field, Schema
from searchapp.lucene.index.reader import IndexReader, Mask, Numbers, Postings
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.boolean import DisMax
from searchapp.lucene.queries.query import (
    Boost,
    Leaf,
    Query,
    apply_boost,
    explain_bm25,
    explain_idf,
)
from searchapp.lucene.queries.scores import ScoreRow, ScoreRows, Scores, total
from searchapp.lucene.queries.term import Synonym, Term, of_value
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import BM25, ONE, FieldStatistics

# Sums of this many frequencies, and sums below the limit of frequencies times multiples of the step, are the same in
# any order.
FEW_FREQUENCIES, STEP, GREATEST_FREQUENCY = 2, 1 / 256, 1 << 16


@dataclass(frozen=True, slots=True)
class CombinedFields(Leaf):
    """Terms, scored as one term of one field that contains several fields."""

    fields: tuple[tuple[str, float], ...]  # with the weights of their occurrences, sorted by name
    terms: tuple[str, ...]  # ascending

    @property
    def clause_count(self) -> int:
        return len(self.fields) * len(self.terms)

    @property
    def has_exact_sums(self) -> bool:
        """Whether frequencies do not depend on the order of their summation, which is unknown."""
        return self.clause_count <= FEW_FREQUENCIES or all(
            weight % STEP == 0 for _name, weight in self.fields
        )

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        for name, _weight in self.fields:
            yield Synonym(name, self.terms), 1.0  # marked even if the boost is 0

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return self._postings(reader).documents

    def _postings(self, reader: IndexReader) -> Postings:
        postings = [
            (reader.fields[name].postings(term), np.float32(weight))
            for (name, weight), term in product(self.fields, self.terms)
        ]
        documents = reduce(np.union1d, (term.documents for term, _weight in postings))
        frequencies = np.zeros(len(documents), np.float32)
        for term, weight in postings:
            frequencies[np.searchsorted(documents, term.documents)] += term.frequencies * weight
        if len(postings) > FEW_FREQUENCIES and (frequencies > GREATEST_FREQUENCY).any():
            raise unsupported(
                f"the query `combined_fields` with more than {GREATEST_FREQUENCY:,} occurrences"
            )
        return Postings(documents, frequencies)

    def _statistics(self, reader: IndexReader) -> FieldStatistics:
        documents = tokens = 0
        for name, weight in self.fields:
            statistics = reader.fields[name].statistics
            documents = max(documents, statistics.documents)
            tokens = int(tokens + weight * statistics.tokens)
        return FieldStatistics(documents, tokens)

    def _similarity(self, reader: IndexReader) -> BM25:
        return reader.fields[self.fields[0][0]].similarity  # all fields have the default similarity

    def _document_frequency(self, reader: IndexReader) -> int:
        return max(
            reader.fields[name].document_frequency(term)
            for (name, _weight), term in product(self.fields, self.terms)
        )

    def _length_codes(self, reader: IndexReader, documents: Numbers) -> NDArray[np.uint8]:
        lengths = np.zeros(len(documents), np.float32)
        for name, weight in self.fields:
            lengths += np.float32(weight) * similarity.LENGTHS[reader.fields[name].norms[documents]].astype(
                np.float32
            )
        return similarity.encode_lengths(np.floor(lengths.astype(np.float64) + 0.5).astype(np.int64))

    def row(self, rows: ScoreRows, boost: np.float32) -> ScoreRow:
        def compute() -> ScoreRow:
            reader = rows.reader
            postings, bm25, statistics = (
                self._postings(reader),
                self._similarity(reader),
                self._statistics(reader),
            )
            weight = bm25.weight(
                boost, similarity.idf(self._document_frequency(reader), statistics.documents)
            )
            inverses = bm25.norm_inverses(statistics)[self._length_codes(reader, postings.documents)]
            scores = similarity.scores(weight, postings.frequencies, inverses)
            frequency = reader.sum_of_parts(len(scores), lambda part: len(self.documents(part)))
            return rows.row(postings.documents, scores, bool(scores.all()), frequency)

        return rows.cached((self, float(boost)), compute)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        return total(rows.count, [self.row(rows, boost)])

    def notation(self, schema: Schema) -> str:
        fields = " ".join(
            name if weight == 1 else f"{name}^{printed(weight)}" for name, weight in self.fields
        )
        return f"CombinedFieldQuery(({fields})({' '.join(self.terms)}))"

    def filter_notation(self, schema: Schema) -> str:
        return " ".join(f"{name}:{term}" for (name, _weight), term in product(self.fields, self.terms))

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        reader = rows.reader
        postings = self._postings(reader)
        frequency = postings.frequencies[postings.documents == document]
        if not len(frequency):
            return None
        statistics = self._statistics(reader)
        explained = explain_bm25(
            self._similarity(reader),
            statistics,
            int(self._length_codes(reader, np.array([document], np.int32))[0]),
            frequency[0],
            f"termFreq={printed(frequency[0])}",
            explain_idf(self._document_frequency(reader), statistics.documents),
            boost,
        )
        weighted = f"weight({self.notation(reader.schema)} in {reader.number(document)}), result of:"
        return Explanation(explained.value, weighted, (explained,))


# `multi_match` of the type `cross_fields`


@dataclass(frozen=True, slots=True, eq=False)
class Blended(DisMax):
    """A disjunction of blended terms, which Lucene creates in a step of rewriting."""

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return Blended(children, self.tie_breaker)

    def rewritten(self) -> Query:
        return DisMax(self.queries, self.tie_breaker)

    def notation(self, schema: Schema) -> str:
        terms = (
            f"{query.query.notation(schema)}^{printed(query.boost)}"
            if isinstance(query, Boost)
            else query.notation(schema)
            for query in self.queries
        )
        return f"blended(terms:[{', '.join(terms)}])"


def blended(
    reader: IndexReader, fields: Sequence[tuple[Field, float]], tie_breaker: float, texts: Sequence[str]
) -> Query:
    """Return the query for any of the texts in any of the fields, given their boosts."""
    terms: list[tuple[Term, float]] = []
    queries: list[Query] = []
    for (field, boost), text in product(fields, texts):
        query = of_value(field, text)
        if isinstance(query, Term):
            terms.append((query, boost))
        else:
            queries.append(apply_boost(query, boost))
    if terms:
        readers = [reader.fields[term.field] for term, _boost in terms]
        own = [field.document_frequency(term.term) for field, (term, _) in zip(readers, terms, strict=True)]
        shared = blended_frequencies(own, [field.statistics for field in readers], reader.whole_count)
        clauses = (
            apply_boost(term if frequency == itself else replace(term, blended=frequency), boost)
            for (term, boost), itself, frequency in zip(terms, own, shared, strict=True)
        )
        queries.append(Blended(tuple(clauses), tie_breaker))
    return queries[0] if len(queries) == 1 else DisMax(tuple(queries), tie_breaker)


def blended_frequencies(
    frequencies: Sequence[int], statistics: Sequence[FieldStatistics], documents: int
) -> list[int]:
    """Return the greatest document frequency for all terms, plus a little for the rarer ones, within what is possible.

    Args:
        frequencies: the document frequency of each term, 0 without an occurrence.
        statistics: of the field of each term.
        documents: number of documents in the index.

    >>> blended_frequencies([3, 0, 5, 3], [FieldStatistics(9, 20)] * 4, 10)
    [6, 0, 5, 6]
    """
    blended_ = list(frequencies)
    previous = max(frequencies)
    if not previous or len(frequencies) < 2:
        return blended_
    present = [index for index in range(len(frequencies)) if frequencies[index]]
    most = min(documents, *(statistics[index].tokens for index in present))
    shared = min(most, previous)
    for index in sorted(present, key=lambda index: -frequencies[index]):
        shared += previous > frequencies[index]
        previous = frequencies[index]
        blended_[index] = min(shared, statistics[index].documents, most)
    return blended_
