"""Phrases of a token graph: words, alternatives of one or several words, and gaps, one after the other.

org.apache.lucene.queries.spans.{SpanNearQuery, SpanOrQuery, NearSpansOrdered, SpanWeight}
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, count
from operator import itemgetter

import numpy as np

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import FieldReader, IndexReader, Numbers, Postings
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.query import PositionSpans, ScoredLeaf, explain
from searchapp.lucene.queries.scores import most_of_a_rare_term
from searchapp.lucene.queries.term import Term
from searchapp.lucene.records import Explanation, Token

Interval = tuple[int, int, tuple[int, ...]]
"""The first position, the one after the last, and the positions of the words."""

PositionsOf = Callable[[str], Sequence[int]]


@dataclass(frozen=True, slots=True)
class SpanOr:
    """Alternatives."""

    clauses: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class SpanNear:
    """Consecutive clauses; a number stands for a gap of so many positions."""

    clauses: tuple[Span | int, ...]


Span = str | SpanOr | SpanNear


def _terms(span: Span | int) -> Iterator[str]:
    if isinstance(span, str):
        yield span
    elif not isinstance(span, int):
        for clause in span.clauses:
            yield from _terms(clause)


def _intervals(span: Span, positions: PositionsOf) -> list[Interval]:
    """Return the intervals of a span in a document, in Lucene's order and with its repetitions."""
    if isinstance(span, str):
        return [(position, position + 1, (position,)) for position in positions(span)]
    if isinstance(span, SpanOr):
        lists = (_intervals(clause, positions) for clause in span.clauses)
        return list(heapq.merge(*lists, key=itemgetter(0, 1)))
    return list(_sequences(span, positions))


def _sequences(near: SpanNear, positions: PositionsOf) -> Iterator[Interval]:
    """Yield the intervals of consecutive clauses: for each first one, only the next interval of each other."""
    first, *others = near.clauses
    lists = [clause if isinstance(clause, int) else iter(_intervals(clause, positions)) for clause in others]
    current: list[Interval] = [(-1, -1, ())] * len(lists)
    starts = (
        ((start, start + first, ()) for start in count())
        if isinstance(first, int)
        else _intervals(first, positions)
    )
    for start, end, words in starts:
        is_match = True
        for number, intervals in enumerate(lists):
            if isinstance(intervals, int):
                current[number] = end, end + intervals, ()
            else:
                while current[number][0] < end:
                    following = next(intervals, None)
                    if following is None:
                        return
                    current[number] = following
            is_match &= current[number][0] == end
            end = current[number][1]
        if is_match:
            yield start, end, words + tuple(chain.from_iterable(words for _start, _end, words in current))


def _documents(span: Span, documents_of: Mapping[str, Numbers]) -> Numbers:
    """Return the ascending documents that have the terms of a span."""
    if isinstance(span, str):
        return documents_of[span]
    parts = [_documents(clause, documents_of) for clause in span.clauses if not isinstance(clause, int)]
    return reduce(np.union1d if isinstance(span, SpanOr) else np.intersect1d, parts)


def _notation(span: Span | int, field: str) -> str:
    if isinstance(span, int):
        return f"SpanGap(:{span})"  # without the field, as Lucene prints it
    if isinstance(span, str):
        return f"{field}:{span}"
    clauses = ", ".join(_notation(clause, field) for clause in span.clauses)
    return f"spanOr([{clauses}])" if isinstance(span, SpanOr) else f"spanNear([{clauses}], 0, true)"


@dataclass(frozen=True, slots=True)
class SpanPhrase(ScoredLeaf):
    """A span as a query, scored by its number of occurrences."""

    span: Span

    @property
    def clause_count(self) -> int:
        return sum(1 for _term in _terms(self.span))

    def postings(self, field: FieldReader) -> Postings:
        return self._postings(field, None)

    def frequency(self, field: FieldReader, document: int) -> float:
        return float(self._postings(field, document).frequencies.sum())

    def _postings(self, field: FieldReader, document: int | None) -> Postings:
        """Return the documents, or only one, with the number of occurrences."""
        none = np.empty(0, np.int32)
        found = {term: field.positions(term) for term in self.terms}
        lists = {term: positions.all() for term, positions in found.items() if positions is not None}
        documents_of = {term: lists[term][0] if term in lists else none for term in found}
        documents = _documents(self.span, documents_of)
        if document is not None:
            documents = documents[documents == document]
        ends = {term: np.cumsum(frequencies) for term, (_documents, frequencies, _all) in lists.items()}

        def positions_in(document: int, term: str) -> Sequence[int]:
            index = int(documents_of[term].searchsorted(document))
            if index == len(documents_of[term]) or documents_of[term][index] != document:
                return ()
            start = int(ends[term][index - 1]) if index else 0
            positions: Sequence[int] = lists[term][2][start : int(ends[term][index])].tolist()
            return positions

        counts = np.array(
            [
                len(_intervals(self.span, lambda term, number=number: positions_in(number, term)))  # type: ignore[misc]
                for number in documents.tolist()
            ],
            np.float32,
        )
        return field.live_postings(Postings(documents[counts > 0].astype(np.int32), counts[counts > 0]))

    def index_frequency(self, reader: IndexReader, segment_frequency: int) -> int:
        return min(segment_frequency, most_of_a_rare_term(reader.whole_count))  # see `MultiPhrase`

    def idf(self, field: FieldReader) -> np.float32:
        return np.float32(sum(float(term.idf(field)) for term in self._present(field)))

    def _present(self, field: FieldReader) -> list[Term]:
        terms = sorted(self.terms)
        return [Term(self.field, term) for term in terms if field.document_frequency(term)]

    def idf_explanation(self, field: FieldReader) -> Explanation:
        terms = [term.idf_explanation(field) for term in self._present(field)]
        return terms[0] if len(terms) == 1 else explain(self.idf(field), "idf, sum of:", terms)

    def frequency_notation(self, frequency: np.float32) -> str:
        return f"phraseFreq={printed(frequency)}"

    def notation(self, _schema: Schema) -> str:
        return _notation(self.span, self.field)

    @property
    def terms(self) -> set[str]:
        return set(_terms(self.span))

    def occurrences(self, tokens: Iterable[Token]) -> list[Interval]:
        """Return the occurrences among tokens in Lucene's order and with its repetitions."""
        by_term: defaultdict[str, list[int]] = defaultdict(list)
        for token in tokens:
            by_term[token.term].append(token.position)
        return _intervals(self.span, lambda term: sorted(by_term.get(term, ())))

    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        spans = [(start, end - 1) for start, end, _words in self.occurrences(tokens)]
        return dict.fromkeys(_terms(self.span), spans) if spans else {}
