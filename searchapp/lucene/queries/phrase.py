"""Phrases: terms at relative positions, with alternatives, prefixes and slop.

org.apache.lucene.search.ExactPhraseMatcher, SloppyPhraseMatcher, MultiPhraseQuery (Lucene 10)
org.elasticsearch.common.lucene.search.MultiPhrasePrefixQuery
"""

from __future__ import annotations

import ctypes
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import native
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import unsupported
from searchapp.lucene.index import arrays
from searchapp.lucene.index.arrays import StoredArray
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.postings import StoredPostings
from searchapp.lucene.index.reader import (
    RARE_SHARE,
    FieldReader,
    IndexReader,
    Numbers,
    Postings,
    TermPositions,
)
from searchapp.lucene.parameters import LARGEST_INTEGER, printed
from searchapp.lucene.queries.boolean import NONE, Bool
from searchapp.lucene.queries.match_all import MatchNone
from searchapp.lucene.queries.query import PositionSpans, Query, ScoredLeaf, explain
from searchapp.lucene.queries.scores import most_of_a_rare_term
from searchapp.lucene.queries.term import Term
from searchapp.lucene.records import Explanation, Token
from searchapp.lucene.similarity import ONE, Float32s

_TERM = struct.Struct("=5q")  # the end of `Term` of phrases.c, after the addresses of postings

NO_MEMORY = -2


def _compiled_postings(
    library: ctypes.CDLL,
    terms: Sequence[TermPositions],
    positions: Sequence[int],
    documents: Numbers,
    count: int,
) -> Postings:
    """Return the ascending documents that have the terms at relative positions, with the frequencies.

    `count` is the number of documents of the segment.
    """
    documents = np.ascontiguousarray(documents, np.int32)
    packed, alive = [], []
    for term, position in zip(terms, positions, strict=True):
        addresses, kept = term.address(count)
        packed.append(addresses + _TERM.pack(position - positions[0], *(0,) * 4))
        alive.append(kept)
    matching, counts = np.empty(len(documents), np.int32), np.empty(len(documents), np.float32)
    size = library.searchapp_phrase(
        ctypes.create_string_buffer(b"".join(packed)),
        len(terms),
        documents.ctypes.data,
        len(documents),
        matching.ctypes.data,
        counts.ctypes.data,
    )
    if size == NO_MEMORY:
        raise MemoryError
    if size < 0:
        raise IndexError("the positions of a term are not those of documents")
    return Postings(matching[:size].copy(), counts[:size].copy())


DOCUMENTS_AT_ONCE = 1 << 15  # documents whose positions fit into the processor's cache

COMPILED = 64  # for fewer documents NumPy is faster: the C function reads all positions of a term

OUTSIDE = np.int64(1 << 48)  # greater than every start of a phrase

# Maximum size of a bitmap of starts; above it, in very long documents, each start is searched.
MARKED = 1 << 24


Alternatives = tuple[tuple[str, ...], ...]  # the terms of each position of a phrase


@dataclass(frozen=True, slots=True)
class MultiPhrase(ScoredLeaf):
    """Alternative terms at relative positions, scored by their number of occurrences.

    With `slop` the terms of an occurrence may be moved, by that many positions in total.
    """

    prints_first_gap: ClassVar[bool] = False

    terms: Alternatives
    positions: tuple[int, ...]
    slop: int = 0

    @property
    def clause_count(self) -> int:
        return sum(map(len, self.terms))

    def rewritten(self) -> Query:
        if len(self.terms) > 1:
            return self
        return Bool(should=tuple(Term(self.field, term) for term in self.terms[0]))

    def postings(self, field: FieldReader) -> Postings:
        return self.postings_among(field, None)

    def index_frequency(self, reader: IndexReader, segment_frequency: int) -> int:
        # Counting the phrase in all segments takes too long: a phrase is never common.
        return min(segment_frequency, most_of_a_rare_term(reader.whole_count))

    def idf(self, field: FieldReader) -> np.float32:
        return np.float32(sum(float(term.idf(field)) for term in self._present(field)))

    def _present(self, field: FieldReader) -> list[Term]:
        """Return the terms that documents of the index have."""
        terms = chain.from_iterable(self.terms)
        return [Term(self.field, term) for term in terms if field.document_frequency(term)]

    def frequency(self, field: FieldReader, document: int) -> float:
        return float(self.postings_among(field, np.array([document], np.int32)).frequencies.sum())

    def postings_among(self, field: FieldReader, among: Numbers | None) -> Postings:
        """Return the documents with the phrase, among ascending documents or all (None), and its frequencies."""
        return field.live_postings(self._postings_among(field, among))

    def _postings_among(self, field: FieldReader, among: Numbers | None) -> Postings:
        positions = [_any_positions(field, alternatives) for alternatives in self.terms]
        terms = [term for term in positions if term is not None]
        if len(terms) < len(positions):
            return Postings(np.empty(0, np.int32), np.empty(0, np.float32))
        library = native.library()
        if library is not None and not self.slop and (among is None or len(among) >= COMPILED):
            documents = min(terms, key=len).documents if among is None else among
            return _compiled_postings(library, terms, self.positions, documents, field.documents)
        # Positions are read only in documents that have all terms, and of some documents at a time.
        documents = _in_all([term.documents for term in terms], field.documents, among)
        count: Callable[[Sequence[TermPositions], Numbers], NDArray[Any]] = self._counts
        if self.slop:
            count = SloppyMatcher(self.terms, self.positions, self.slop).frequencies
        counts = [np.empty(0, np.float32)]
        for first in range(0, len(documents), DOCUMENTS_AT_ONCE):
            counts.append(count(terms, documents[first : first + DOCUMENTS_AT_ONCE]).astype(np.float32))
        frequencies = np.concatenate(counts)
        return Postings(documents[frequencies > 0], frequencies[frequencies > 0])

    def _counts(self, terms: Sequence[TermPositions], documents: Numbers) -> NDArray[np.int64]:
        """Return the frequency of the phrase in each document; all documents have all terms."""
        # The possible starts of the phrase in all documents are numbered consecutively: a document has as many as the
        # last position of the rarest term requires. Starts that other terms imply outside this range fall into another
        # document's range, and are dropped. A first term that occurs twice on a position (as itself and as a synonym)
        # counts twice; repetitions of the other terms do not.
        base = int(documents[0])
        starts = np.full(int(documents[-1]) - base + 1, OUTSIDE)
        count, remaining = 0, documents
        ends = firsts = matches = np.empty(0, np.int64)
        # Rarest term first: positions of the others are read only in the remaining documents.
        order = np.argsort([len(term) for term in terms], kind="stable").tolist()
        for turn, number in enumerate(order):
            term_documents, counts, positions = terms[number].select(remaining)
            position_ends = np.cumsum(counts)
            offset = self.positions[number] - self.positions[0]
            if not turn:
                last = positions[position_ends - 1]
                if len(term_documents) > len(documents):
                    last = last[np.isin(term_documents, documents, assume_unique=True)]
                ends = np.cumsum(np.maximum(last.astype(np.int64) - offset + 1, 0))
                starts[documents - base] = np.append(0, ends[:-1])
                count = int(ends[-1])
            candidates = _repeated(starts[term_documents - base] - offset, position_ends)
            candidates += positions
            if turn:
                hits = np.flatnonzero(_among(candidates, matches, count))
                # Drop starts in another document's range.
                matches = candidates[hits]
                rows = ends.searchsorted(matches, "right")
                is_own = documents[rows] == term_documents[position_ends.searchsorted(hits, "right")]
                matches, remaining = matches[is_own], _distinct(documents[rows[is_own]])
            elif offset or len(term_documents) > len(documents):
                matches = candidates[(positions >= offset) & (candidates < count)]
            else:
                matches = candidates
            if not number:
                firsts = matches
            if not len(matches):
                return np.zeros(len(documents), np.int64)
        begins = firsts[_among(firsts, matches, count)]
        return np.bincount(ends.searchsorted(begins, "right"), minlength=len(documents))

    def idf_explanation(self, field: FieldReader) -> Explanation:
        terms = [term.idf_explanation(field) for term in self._present(field)]
        return explain(self.idf(field), "idf, sum of:", terms)

    def frequency_notation(self, frequency: np.float32) -> str:
        return f"phraseFreq={printed(frequency)}"

    def notation(self, schema: Schema) -> str:
        first = 0 if self.prints_first_gap else self.positions[0]
        words = ["?"] * (self.positions[-1] - first + 1)
        for terms, position in zip(self.terms, self.positions, strict=True):
            words[position - first] = terms[0] if len(terms) == 1 else f"({' '.join(terms)})"
        return f'{self.field}:"{" ".join(words)}"' + (f"~{self.slop}" if self.slop else "")

    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        spans = list(self._spans(tokens))
        return dict.fromkeys(chain.from_iterable(self.terms), spans) if spans else {}

    def _spans(self, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
        """Yield the first and last position of the terms: in order, with at most as many gaps as the phrase, or within
        the slop.
        """
        by_term: defaultdict[str, list[int]] = defaultdict(list)
        for token in tokens:
            by_term[token.term].append(token.position)
        lists = [sorted(chain.from_iterable(map(by_term.__getitem__, terms))) for terms in self.terms]
        slop = self.slop + self._gaps
        if self.slop and len(lists) > 1:
            yield from _unordered_spans(lists, slop if slop <= LARGEST_INTEGER else -1)  # overflows in Java
            return
        for start in lists[0]:
            last, skipped = start, 0
            for others in lists[1:]:
                following = next((position for position in others if position > last), None)
                if following is None:
                    return
                skipped += following - last - 1
                last = following
            if skipped <= slop:
                yield start, last

    @property
    def _gaps(self) -> int:
        """The number of positions without a term, which highlighting allows between any terms."""
        return self.positions[-1] + 1 - len(self.positions)


@dataclass(frozen=True, slots=True)
class Phrase(MultiPhrase):
    """A phrase with one term at each position."""

    prints_first_gap: ClassVar[bool] = True

    @classmethod
    def of(cls, field: str, terms: Iterable[str], positions: Iterable[int], slop: int = 0) -> Phrase:
        return cls(field, tuple((term,) for term in terms), tuple(positions), slop)

    def rewritten(self) -> Query:
        if len(self.terms) == 1:
            return Term(self.field, self.terms[0][0])
        first = self.positions[0]
        if not first:
            return self
        return replace(self, positions=tuple(position - first for position in self.positions))

    @property
    def _gaps(self) -> int:
        return max(0, self.positions[-1] - self.positions[0] - len(self.positions) + 1)


@dataclass(frozen=True, slots=True)
class PhrasePrefix(MultiPhrase):
    """A phrase whose last terms are prefixes: they stand for the first `most` terms of the index that begin so.

    Elasticsearch takes the first terms of the first segment before those of the next one; this is the choice for one
    segment.
    """

    most: int = 0
    expanded: Query = NONE

    def resolved(self, reader: IndexReader) -> Query:
        return replace(self, expanded=self._expanded(reader.fields[self.field].terms_with_prefix))

    def rewritten(self) -> Query:
        return self.expanded

    def _expanded(self, terms_with_prefix: Callable[[str], Iterable[str]]) -> MultiPhrase | MatchNone:
        terms: dict[str, None] = {}
        for prefix in self.terms[-1]:
            for term in terms_with_prefix(prefix):
                terms[term] = None
                if len(terms) >= self.most:
                    break
            if len(terms) > self.most:
                break
        if not terms:
            return NONE
        return MultiPhrase(self.field, (*self.terms[:-1], tuple(terms)), self.positions, self.slop)

    def notation(self, schema: Schema) -> str:
        words = [terms[0] if len(terms) == 1 else f"({' '.join(terms)})" for terms in self.terms[:-1]]
        last = " ".join(f"{term}*" for term in self.terms[-1])
        words.append(last if len(self.terms[-1]) == 1 else f"({last})")
        return f'{self.field}:"{" ".join(words)}"' + (f"~{self.slop}" if self.slop else "")

    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        phrase = self.expanded_among(sorted({token.term for token in tokens}))
        return {} if isinstance(phrase, MatchNone) else phrase.term_spans(tokens)

    def expanded_among(self, terms: Sequence[str]) -> MultiPhrase | MatchNone:
        """Return the phrase that this query stands for in an index of ascending terms."""
        return self._expanded(lambda prefix: (term for term in terms if term.startswith(prefix)))


def _any_positions(field: FieldReader, terms: Sequence[str]) -> TermPositions | None:
    """Return the positions of all the terms, None if the segment has none of them."""
    present = [found for term in terms if (found := field.positions(term)) is not None]
    if len(present) < 2:
        return present[0] if present else None
    parts = [term.all() for term in present]
    documents = np.concatenate([np.repeat(numbers, counts) for numbers, counts, _positions in parts])
    positions = np.concatenate([positions for _numbers, _counts, positions in parts])
    order = np.lexsort((positions, documents))
    distinct, counts = np.unique(documents, return_counts=True)
    postings = StoredPostings(
        starts=StoredArray(np.array([0, len(distinct)])),
        documents=StoredArray(distinct),
        frequencies=StoredArray(counts.astype(np.uint32)),
        positions=StoredArray(positions[order]),
        unpacked_position_starts=StoredArray(np.array([0, len(positions)])),
    )
    return TermPositions(postings, slice(0, len(distinct)))


def _in_all(lists: Sequence[Numbers], count: int, among: Numbers | None) -> Numbers:
    """Return the documents of `among` (None: all of `count`) that are in all ascending lists."""
    ordered = sorted(lists, key=len)
    documents = ordered[0] if among is None else among
    for others in ordered if among is not None else ordered[1:]:
        if len(documents) * RARE_SHARE < len(others):
            documents = documents[arrays.find_sorted(others, documents)[1]]
        else:
            marked = np.zeros(count, bool)
            marked[others] = True
            documents = documents[marked.take(documents)]
    return documents


def _distinct(documents: Numbers) -> Numbers:
    return documents[np.diff(documents, prepend=-1) > 0]


def _repeated(numbers: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Repeat each number up to its end; faster than `np.repeat` for few repetitions."""
    steps = np.zeros(ends[-1], np.int64)
    steps[0] = numbers[0]
    steps[ends[:-1]] = np.diff(numbers)
    return np.cumsum(steps, out=steps)


def _among(candidates: NDArray[np.int64], others: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    if count <= MARKED:
        marked = np.zeros(count + 2, bool)  # starts outside map to either end
        marked[others + 1] = True
        return marked.take(candidates + 1, mode="clip")
    return arrays.find_sorted(others, candidates)[1]


# Phrases with slop. The matcher advances the position that begins first, and so finds only some of the occurrences:
# frequencies depend on the order of its steps, and on the order of equal or changed elements in Lucene's heap.


class Cursor:
    """A position of a phrase, at one of its terms' positions in a document (`PhrasePositions`)."""

    __slots__ = ("_positions", "group", "index", "key", "number", "offset", "start")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.group: list[Cursor] = []  # the cursors that may be at the same term, ascending
        self.index = 0  # in the group

    def begin(self, positions: Iterable[int]) -> None:
        self._positions = iter(positions)
        self.number = -1  # of the present position in the document
        self.advance()

    def advance(self) -> bool:
        """Go to the next position in the document, unless this is the last one."""
        position = next(self._positions, None)
        if position is None:
            return False
        self.number += 1
        self.start = position - self.offset  # where the phrase begins if this term is in place
        self.key = self.start, self.offset
        return True


class _HasKey(Protocol):
    key: Any


Keyed = TypeVar("Keyed", bound=_HasKey)


class Heap(Generic[Keyed]):
    """Lucene's `PriorityQueue` of elements with a `key`, which may change inside it."""

    def __init__(self, elements: Iterable[Keyed]) -> None:
        self._heap: list[Any] = [None]  # the root is at index 1
        for element in elements:
            self.add(element)

    def __len__(self) -> int:
        return len(self._heap) - 1

    @property
    def top(self) -> Keyed:
        element: Keyed = self._heap[1]
        return element

    def add(self, cursor: Keyed) -> None:
        heap, key = self._heap, cursor.key
        index = len(heap)
        heap.append(cursor)
        while index > 1 and key < heap[index >> 1].key:
            heap[index] = heap[index >> 1]
            index >>= 1
        heap[index] = cursor

    def pop(self) -> Keyed:
        top: Keyed = self._heap[1]
        last = self._heap.pop()
        if len(self._heap) > 1:
            self._heap[1] = last
            self.update_top()
        return top

    def update_top(self) -> None:
        heap, size = self._heap, len(self._heap)
        index, child = 1, 2
        cursor = heap[1]
        while child < size:
            if child + 1 < size and heap[child + 1].key < heap[child].key:
                child += 1
            if not heap[child].key < cursor.key:
                break
            heap[index] = heap[child]
            index, child = child, child << 1
        heap[index] = cursor


class Lead(NamedTuple):
    """The term that begins an occurrence of a sloppy phrase."""

    cursor: Cursor
    number: int  # of its position in the document


class SloppyMatcher:
    """Finds the occurrences of a phrase with slop in a document, once its cursors have begun."""

    def __init__(self, terms: Alternatives, positions: Sequence[int], slop: int) -> None:
        self._slop = slop
        self.cursors = [Cursor(position) for position in positions]
        self._end = 0
        counts = Counter(chain.from_iterable(terms))
        repeated = {term for term, count in counts.items() if count > 1}
        linked: list[tuple[set[str], list[Cursor]]] = []
        self._have_alternatives = False
        for alternatives, cursor in zip(terms, self.cursors, strict=True):
            shared = repeated.intersection(alternatives)
            if shared:
                self._have_alternatives |= len(alternatives) > 1
                merged = [group for group in linked if group[0] & shared]
                linked = [group for group in linked if not group[0] & shared]
                cursors = [*chain.from_iterable(group for _terms, group in merged), cursor]
                linked.append((shared.union(*(others for others, _group in merged)), cursors))
        self._groups = [sorted(group, key=lambda cursor: cursor.offset) for _terms, group in linked]
        for group in self._groups:
            for index, cursor in enumerate(group):
                cursor.group, cursor.index = group, index

    def frequencies(self, terms: Sequence[TermPositions], documents: Numbers) -> Float32s:
        """Return the frequency of the phrase in each of the ascending documents, which have all terms."""
        lists = []
        for term in terms:
            term_documents, counts, positions = term.select(documents)
            indices = term_documents.searchsorted(documents)
            ends = np.cumsum(counts)
            lists.append((positions.tolist(), (ends - counts)[indices].tolist(), ends[indices].tolist()))
        frequencies = np.zeros(len(documents), np.float32)
        for number in range(len(documents)):
            for cursor, (positions, starts, ends) in zip(self.cursors, lists, strict=True):
                cursor.begin(positions[starts[number] : ends[number]])
            frequency = np.float32(0)
            for length, _lead in self._occurrences():
                frequency += ONE / (ONE + np.float32(length))
            frequencies[number] = frequency
        return frequencies

    def occurrences(self) -> Iterator[Lead]:
        """Yield the lead of each occurrence, while the other cursors are at their terms."""
        return (lead for _length, lead in self._occurrences())

    def _occurrences(self) -> Iterator[tuple[int, Lead]]:
        """Yield by how many positions the terms of each occurrence are moved, and its lead."""
        self._end = -LARGEST_INTEGER
        if not self._separate_repeated():
            return
        self._end = max(self._end, *(cursor.start for cursor in self.cursors))
        heap = Heap(self.cursors)
        cursor, following = heap.pop(), heap.top.start
        length, lead = self._end - cursor.start, Lead(cursor, cursor.number)
        while self._advance(cursor):
            if cursor.group and not self._resolve_collision(cursor, heap):
                break
            if cursor.start > following:
                heap.add(cursor)
                if length <= self._slop:
                    yield length, lead
                cursor, following = heap.pop(), heap.top.start
                length = self._end - cursor.start
            else:
                length = min(length, self._end - cursor.start)
            lead = Lead(cursor, cursor.number)
        if length <= self._slop:
            yield length, lead

    def _advance(self, cursor: Cursor) -> bool:
        if not cursor.advance():
            return False
        self._end = max(self._end, cursor.start)
        return True

    def _separate_repeated(self) -> bool:
        """Move the cursors of repeated terms to different positions; return whether the document has enough."""
        if self._have_alternatives:
            return all(map(self._separate_alternatives, self._groups))
        firsts = {group[0].start + group[0].offset for group in self._groups}
        if len(firsts) < len(self._groups):
            # Lucene takes them for one term if this is the first document of the segment that has all terms.
            raise unsupported(
                "the slop of a phrase that repeats several terms which begin at one position of a text"
            )
        return all(
            cursor.advance() for group in self._groups for cursor in group for _ in range(cursor.index)
        )

    def _separate_alternatives(self, group: Sequence[Cursor]) -> bool:
        index = 0
        while index < len(group):
            step = 1
            while (other := _colliding(group[index])) is not None:
                moved = min(group[index], other, key=lambda cursor: cursor.key)
                if not self._advance(moved):
                    return False
                if moved.index < index:
                    step = 0
                    break
            index += step
        return True

    def _resolve_collision(self, cursor: Cursor, heap: Heap[Cursor]) -> bool:
        """Separate a cursor from others of its group; return whether the document has enough positions."""
        first, moved = cursor.index, set()
        while (other := _colliding(cursor)) is not None:
            cursor = min(cursor, other, key=lambda cursor: cursor.key)
            if not self._advance(cursor):
                return False
            if other.index != first:
                moved.add(other.index)
        popped = []
        while moved:
            popped.append(heap.pop())
            if popped[-1].group:
                moved.discard(popped[-1].index)  # of any group, as in Lucene
        for cursor in reversed(popped):
            heap.add(cursor)
        return True


def _colliding(cursor: Cursor) -> Cursor | None:
    """Return the first other cursor of the group at the same position in the document."""
    position = cursor.start + cursor.offset
    others = (
        other for other in cursor.group if other.start + other.offset == position and other is not cursor
    )
    return next(others, None)


def _unordered_spans(lists: Sequence[Sequence[int]], slop: int) -> Iterator[tuple[int, int]]:
    """Yield first and last positions of one element of each list with at most `slop` positions between them
    (`NearSpansUnordered`).
    """
    if not all(lists):
        return
    cursors = [Cursor(0) for _positions in lists]
    for cursor, positions in zip(cursors, lists, strict=True):
        cursor.begin(positions)
    heap = Heap(cursors)
    last = max(cursor.start for cursor in cursors)
    while True:
        if last + 1 - heap.top.start - len(lists) <= slop:
            yield heap.top.start, last
        if not heap.top.advance():
            return
        last = max(last, heap.top.start)
        heap.update_top()
