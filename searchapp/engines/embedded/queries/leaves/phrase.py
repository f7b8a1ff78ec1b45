"""Terms that stand together in a text, in their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.base import Explanation
from searchapp.engines.embedded.explanations import explained
from searchapp.engines.embedded.java_numbers import printed
from searchapp.engines.embedded.queries.leaf import Leaf, Places
from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf, idf_of
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage.reader import FieldReader, IndexReader, Numbers, Postings
from searchapp.model import Token


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
        documents, _positions = self._occurrences(field)
        distinct = _distinct(documents)
        ends = np.searchsorted(documents, distinct, "right")
        return Postings(distinct, np.diff(ends, prepend=0).astype(np.float32))

    def may_match(self, reader: IndexReader, scores: bool, known: bool) -> bool:  # noqa: ARG002
        field = reader.fields[self.field]
        return all(field.rank(term) is not None for term in self.terms)

    def idf(self, field: FieldReader) -> np.float32:
        """The sum of the terms' idfs, in double."""
        parts = (idf_of(field.document_frequency(term), field) for term in self.terms)
        return np.float32(sum(map(float, parts)))

    def frequency(self, field: FieldReader, document: int) -> float:
        documents, _positions = self._occurrences(field)
        return float(np.count_nonzero(documents == document))

    def _occurrences(self, field: FieldReader) -> tuple[Numbers, Numbers]:
        """Document and position of the phrase's first term, for each time that it begins the whole phrase.

        A first term that stands twice on one position (as itself and as a synonym, say) begins the phrase twice; how
        often the others stand on theirs makes no difference.
        """
        firsts = found = np.empty(0, np.int64)
        documents: Numbers | None = None
        # The rarest first: each of the others is looked at only in the documents that are left.
        for number in np.argsort([field.document_frequency(term) for term in self.terms], kind="stable"):
            places = self._begins(field, int(number), documents)
            if number == 0:
                firsts = places
            found = places if documents is None else _those_in(found, places)
            documents = _distinct((found >> 32).astype(np.int32))
        firsts = _those_in(firsts, found)
        return (firsts >> 32).astype(np.int32), (firsts & 0xFFFFFFFF).astype(np.int32)

    def _begins(self, field: FieldReader, number: int, documents: Numbers | None) -> NDArray[np.int64]:
        """Where the phrase begins if a term of it stands in its place, as one number for document and position."""
        where, at = field.positions(self.terms[number], documents)
        begins = at.astype(np.int64) - (self.positions[number] - self.positions[0])
        places = where.astype(np.int64) << 32 | begins
        return places if number == 0 else places[begins >= 0]

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


def _distinct(documents: Numbers) -> Numbers:
    """Each of the documents once; they are ascending, so that they need not be sorted."""
    return documents[np.diff(documents, prepend=-1) > 0]


def _those_in(some: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those numbers that are among the others, which are ascending."""
    if not len(others):
        return some[:0]
    nearest = np.searchsorted(others, some)
    nearest[nearest == len(others)] = 0
    return np.asarray(some[others[nearest] == some])
