"""Terms that stand together in a text, in their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.base import Explanation
from searchapp.engines.embedded import compiled_phrases, native
from searchapp.engines.embedded.explanations import explained
from searchapp.engines.embedded.java_numbers import printed
from searchapp.engines.embedded.queries.leaf import Leaf, Places
from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage import arrays
from searchapp.engines.embedded.storage.reader import FieldReader, IndexReader, Numbers, Postings
from searchapp.engines.embedded.storage.term_positions import FEW_AMONG, TermPositions
from searchapp.model import Token

TOGETHER = 1 << 15
"""Documents whose positions are looked at together: they stay in the processor's cache."""

COMPILED = 64
"""Of fewer documents NumPy reads the positions that lie between them, where compiled functions read all of a term."""

OUTSIDE = np.int64(1 << 48)
"""A place beyond all those where a phrase may begin."""

MARKED = 1 << 24
"""Up to so many places are marked; of more, in documents of very many words, each is searched for."""


@dataclass(frozen=True, slots=True)
class Phrase(ScoredLeaf):
    """Terms at relative positions, scored by the number of places where all stand."""

    terms: tuple[str, ...]
    positions: tuple[int, ...]

    @property
    def clause_count(self) -> int:
        return len(self.terms)

    def rewritten(self) -> Leaf:
        if len(self.terms) == 1:
            return Term(self.field, self.terms[0])
        first = self.positions[0]
        if not first:
            return self
        return Phrase(self.field, self.terms, tuple(position - first for position in self.positions))

    def postings(self, field: FieldReader) -> Postings:
        return self.postings_among(field, None)

    def may_match(self, reader: IndexReader, scores: bool, known: bool) -> bool:  # noqa: ARG002
        field = reader.fields[self.field]
        return all(field.occurs(term) for term in self.terms)

    def idf(self, field: FieldReader) -> np.float32:
        """The sum of the terms' idfs, in double."""
        parts = (field.idf(field.document_frequency(term)) for term in self.terms)
        return np.float32(sum(map(float, parts)))

    def frequency(self, field: FieldReader, document: int) -> float:
        return float(self.postings_among(field, np.array([document], np.int32)).frequencies.sum())

    def postings_among(self, field: FieldReader, among: Numbers | None) -> Postings:
        """The documents where the phrase stands, of some documents, ascending, or of all, and how often.

        First it is found which documents have all terms; positions are only read there, and some documents at a time.
        """
        return field.living(self._postings_among(field, among))

    def _postings_among(self, field: FieldReader, among: Numbers | None) -> Postings:
        """The same, dead documents too."""
        terms = [field.positions(term) for term in self.terms]
        known = [term for term in terms if term is not None]
        if len(known) < len(terms):
            return Postings(np.empty(0, np.int32), np.empty(0, np.float32))
        library = native.library()
        if library is not None and (among is None or len(among) >= COMPILED):
            return compiled_phrases.postings(library, known, self.positions, among)
        documents = _in_all([term.documents for term in known], field.documents, among)
        counts = [np.empty(0, np.int64)]
        for first in range(0, len(documents), TOGETHER):
            counts.append(self._counts(known, documents[first : first + TOGETHER]))
        count = np.concatenate(counts)
        return Postings(documents[count > 0], count[count > 0].astype(np.float32))

    def _counts(self, terms: Sequence[TermPositions], documents: Numbers) -> NDArray[np.int64]:
        """How often the phrase stands in each of some documents, all of which have all terms.

        Each document has room for the places where the phrase may begin, up to where it would with the last one of the
        rarest term. What other terms have elsewhere lies in the room of another document, or in none. A first term that
        stands twice on one position (as itself and as a synonym, say) begins the phrase twice; how often the others
        stand on theirs makes no difference.
        """
        base = int(documents[0])
        starts = np.full(int(documents[-1]) - base + 1, OUTSIDE)
        count, left = 0, documents
        ends = firsts = found = np.empty(0, np.int64)
        # The rarest first: each of the others is looked at only in the documents that are left.
        order = np.argsort([len(term.documents) for term in terms], kind="stable").tolist()
        for turn, number in enumerate(order):
            there, counts, positions = terms[number].of(left)
            ends_there = np.cumsum(counts)
            before = self.positions[number] - self.positions[0]
            if not turn:
                last = positions[ends_there - 1]
                if len(there) > len(documents):
                    last = last[np.isin(there, documents, assume_unique=True)]
                ends = np.cumsum(np.maximum(last.astype(np.int64) - before + 1, 0))
                starts[documents - base] = np.append(0, ends[:-1])
                count = int(ends[-1])
            places = _repeated(starts[there - base] - before, ends_there)
            places += positions
            if turn:
                hits = np.flatnonzero(_among(places, found, count))
                # It must be the room of its own document.
                found = places[hits]
                rows = ends.searchsorted(found, "right")
                stays = documents[rows] == there[ends_there.searchsorted(hits, "right")]
                found, left = found[stays], _distinct(documents[rows[stays]])
            elif before or len(there) > len(documents):
                found = places[(positions >= before) & (places < count)]
            else:
                found = places
            if not number:
                firsts = found
            if not len(found):
                return np.zeros(len(documents), np.int64)
        begun = firsts[_among(firsts, found, count)]
        return np.bincount(ends.searchsorted(begun, "right"), minlength=len(documents))

    def explained_idf(self, field: FieldReader) -> Explanation:
        terms = [Term(self.field, term).explained_idf(field) for term in self.terms]
        return explained(self.idf(field), "idf, sum of:", terms)

    def described_frequency(self, frequency: np.float32) -> str:
        return f"phraseFreq={printed(frequency)}"

    def described(self, schema: Schema) -> str:  # noqa: ARG002
        words = ["?"] * (self.positions[-1] + 1)
        for term, position in zip(self.terms, self.positions, strict=True):
            words[position] = term
        return f'{self.field}:"{" ".join(words)}"'

    def places(self, tokens: Sequence[Token]) -> Mapping[str, Places]:
        found = list(self._spans(tokens))
        return dict.fromkeys(self.terms, found) if found else {}

    def _spans(self, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
        """First and last position of each place where the terms stand in order, with at most as many holes as here."""
        where: defaultdict[str, list[int]] = defaultdict(list)
        for token in tokens:
            where[token.term].append(token.position)
        holes = max(0, self.positions[-1] - self.positions[0] - len(self.positions) + 1)
        for start in where[self.terms[0]]:
            last, skipped = start, 0
            for term in self.terms[1:]:
                following = next((place for place in where[term] if place > last), None)
                if following is None:
                    return
                skipped += following - last - 1
                last = following
            if skipped <= holes:
                yield start, last


def _in_all(lists: Sequence[Numbers], count: int, among: Numbers | None) -> Numbers:
    """The documents of `among`, None for all of `count`, that are in all of several ascending lists."""
    ordered = sorted(lists, key=len)
    documents = ordered[0] if among is None else among
    for others in ordered if among is not None else ordered[1:]:
        if len(documents) * FEW_AMONG < len(others):
            documents = documents[arrays.located(others, documents)[1]]
        else:
            marked = np.zeros(count, bool)
            marked[others] = True
            documents = documents[marked.take(documents)]
    return documents


def _distinct(documents: Numbers) -> Numbers:
    """Each of the documents once; they are ascending, so that they need not be sorted."""
    return documents[np.diff(documents, prepend=-1) > 0]


def _repeated(numbers: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number as often as it takes to get to its end, as `repeat`; faster where most come once or twice."""
    steps = np.zeros(ends[-1], np.int64)
    steps[0] = numbers[0]
    steps[ends[:-1]] = np.diff(numbers)
    return np.cumsum(steps, out=steps)


def _among(places: NDArray[np.int64], others: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """Which of some places are among others, which are ascending and less than `count`."""
    if count <= MARKED:
        marked = np.zeros(count + 2, bool)  # what lies outside is looked for at either end
        marked[others + 1] = True
        return marked.take(places + 1, mode="clip")
    return arrays.located(others, places)[1]
