"""The best documents of a query without scoring what can't be among them.

    H. Turtle and J. Flood, Query evaluation: strategies and optimizations, 1995 (MaxScore).
    S. Ding and T. Suel, Faster top-k document retrieval using block-max indexes, SIGIR 2011.

Every posting has an impact, which bounds what it gives to a score (see `storage.impacts`), so each term has a greatest
score. The terms are gone through from the greatest of these down, the rare ones first. As soon as the terms that are
left can't lift a document to the threshold, the score of the last one of the best found so far, no document that has
none of the terms before can be among the best. What may be is followed term by term: the impacts of the others are
only looked up for it, and it is dropped as soon as its bound is under the threshold. What stays is scored as all
documents are.

What a phrase adds to the scores of terms is known beforehand: its documents are scored first.

The bounds are those of sums of positive numbers. They are a little greater than any rounding could make a score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded import similarity, topk
from searchapp.engines.embedded.candidates import CandidateRows
from searchapp.engines.embedded.laid_out import MAP_BYTES, Key, LaidOut
from searchapp.engines.embedded.memory import Answer
from searchapp.engines.embedded.prunable import Shape
from searchapp.engines.embedded.queries.leaf import Mask
from searchapp.engines.embedded.queries.nodes import Query
from searchapp.engines.embedded.rows import Doubles, Rows
from searchapp.engines.embedded.scoring import Scorer
from searchapp.engines.embedded.similarity import Float32s
from searchapp.engines.embedded.storage.impacts import EDGES, Impacts
from searchapp.engines.embedded.storage.reader import BoundedPostings, IndexReader, Numbers
from searchapp.engines.embedded.sums import Scores

FEWEST_DOCUMENTS = 200_000
"""In a smaller index all documents are scored in no more time."""

MOST_TERMS = 16
"""With more terms, as a rule, most documents have to be looked at."""

MOST_SHARE = 400
"""At most one document in this many may be asked for."""

LIFTED_SHARE = 64
"""At most one document in this many may match a phrase that lifts the scores of terms."""

WEIGHTS = (1e-12, 1e12)
"""Between these weights no score leaves the numbers that float32 has in full precision."""

SLACK = 1 - 2.0**-20
"""What a bound is compared with, of the threshold: more than all roundings come to."""

SEEDS = 512
"""Documents among which the first threshold is sought."""

AT_ONCE = 128
"""Documents that may be scored at once although a better threshold would exclude some."""

BEAM = 256
"""Of the seeds, the best that are followed at least."""

MOST_CLAUSES = 2048
"""Terms of queries that are kept, in some 8 MiB."""

MOST_COMPUTED = 64 << 20
"""Bytes of their impacts that may be kept with them, where the index was written before it had impacts."""

ONES = np.ones_like(EDGES)

SPARSE = 1 << 14
"""In an array from this length on it pays to look at eight marks at a time first."""

SEARCH = 8
"""A search for a document among a term's takes as long as looking up so many impacts that are laid out."""

PATIENCE = 1
"""Once as many impacts were looked up as so many times the documents of the index, scoring all is cheaper."""


@dataclass(frozen=True, slots=True)
class _Clause:
    """A term of a query.

    `upper` has the greatest score that each impact stands for, `lower` the least, and `bound` is the greatest score of
    all documents. `is_bounded` says whether these hold, see `WEIGHTS`.
    """

    key: Key
    postings: BoundedPostings
    upper: Doubles
    lower: Doubles
    bound: float
    is_bounded: bool


class Pruner:
    """Finds the best documents of an index."""

    def __init__(self, reader: IndexReader, rows: Rows, map_bytes: int = MAP_BYTES) -> None:
        """`rows` are those of all documents, for what is no term."""
        self._reader = reader
        self._rows = rows
        self._laid_out = LaidOut(reader.count, map_bytes)
        self._clauses: dict[tuple[str, str, float], _Clause | None] = {}
        self._computed = 0

    def best(self, query: Query, size: int) -> Answer | None:
        """The first `size` documents of a rewritten query; None where it is better to score all documents.

        That is so where scores leave float32, too, which is refused when all documents are scored.
        """
        if not size or self._reader.count < max(FEWEST_DOCUMENTS, size * MOST_SHARE):
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return self._best(query, size)

    def _best(self, query: Query, size: int) -> Answer | None:
        shape = Shape.of(query)
        if shape is None or sum(len(terms) for _field, terms, _boost in shape.parts) > MOST_TERMS:
            return None
        clauses: list[_Clause] = []
        for field, terms, weight in shape.parts:
            if not self._reader.fields[field].field.is_text:
                return None
            clauses += self._of_terms(field, terms, weight)
        if not all(clause.is_bounded for clause in clauses):
            return None
        if not clauses:
            return np.empty(0, np.int32), np.empty(0, np.float32)
        lifted = self._lifted(shape)
        if lifted is None:
            return None
        postings = {one.key: one.postings for one in clauses}
        rows = partial(CandidateRows, self._reader, self._rows, postings, self._laid_out.known)

        def scores(documents: Numbers) -> Scores:
            return Scorer(self._reader, rows(documents)).scores(query)

        search = _Search(self._reader, self.impacts, scores, clauses, size, is_sum=shape.is_sum)
        return search.answer(lifted)

    def _lifted(self, shape: Shape) -> Numbers | None:
        """The documents that more than the terms give a score, ascending; None if there are many, or no bounds."""
        found = np.empty(0, np.int32)
        for leaf, boost in shape.lifting:
            field = self._reader.fields[leaf.field]
            if not WEIGHTS[0] < field.similarity.weight(boost, leaf.idf(field)) < WEIGHTS[1]:
                return None
            documents = self._rows.row(leaf, boost).documents
            found = np.union1d(found, documents) if len(found) else documents
        return found if len(found) * LIFTED_SHARE <= self._reader.count else None

    def _of_terms(self, name: str, terms: Sequence[str], boost: np.float32) -> list[_Clause]:
        """The clauses of the terms of a field, those that occur."""
        clauses = []
        for term in terms:
            key = name, term, float(boost)
            try:
                clause = self._clauses[key]
            except KeyError:
                clause = self._clause(name, term, boost)
                self._keep(key, clause)
            if clause is not None:
                clauses.append(clause)
        return clauses

    def _keep(self, key: tuple[str, str, float], clause: _Clause | None) -> None:
        """Keep a clause for the next query; all are forgotten when they grow too many."""
        if clause is not None and not self._reader.fields[key[0]].has_impacts:
            self._computed += clause.postings.impacts.nbytes
        if len(self._clauses) == MOST_CLAUSES or self._computed > MOST_COMPUTED:
            self._clauses.clear()
            self._computed = 0
        self._clauses[key] = clause

    def _clause(self, name: str, term: str, boost: np.float32) -> _Clause | None:
        """The clause of a term, None if it does not occur."""
        field = self._reader.fields[name]
        rank = field.rank(term)
        if rank is None:
            return None
        postings = field.bounded(rank)
        idf = similarity.idf(len(postings.documents), field.statistics.documents)
        weight = field.similarity.weight(boost, idf)
        upper = similarity.scores(weight, EDGES, ONES).astype(np.float64)
        is_bounded = bool(WEIGHTS[0] < weight < WEIGHTS[1])
        lower, bound = np.append(0.0, upper[:-1]), float(upper[postings.greatest])
        return _Clause((name, term), postings, upper, lower, bound, is_bounded)

    def impacts(self, clause: _Clause, documents: Numbers) -> tuple[Impacts, int]:
        """The impacts of a term in some documents, 0 where it does not occur; and how long it took, see `PATIENCE`."""
        laid_out = self._laid_out.of(clause.key, clause.postings, len(documents))
        if laid_out is not None:
            return laid_out.take(documents), len(documents)
        postings = clause.postings
        at = postings.documents.searchsorted(documents)
        np.minimum(at, len(postings.documents) - 1, out=at)
        found: Impacts = postings.impacts.take(at) * (postings.documents.take(at) == documents)
        return found, len(documents) * SEARCH


class _Search:
    """One query on its way to its best documents."""

    def __init__(
        self,
        reader: IndexReader,
        impacts: Callable[[_Clause, Numbers], tuple[Impacts, int]],
        scores: Callable[[Numbers], Scores],
        clauses: list[_Clause],
        size: int,
        *,
        is_sum: bool,
    ) -> None:
        """`impacts` looks up those of a term in some documents, `scores` scores documents."""
        self._reader = reader
        self._impacts = impacts
        self._scores_of = scores
        self._size = size
        self._is_sum = is_sum
        self._clauses = sorted(clauses, key=lambda clause: -clause.bound)
        bounds = [clause.bound for clause in self._clauses]
        self._rest = [*reversed(list(accumulate(reversed(bounds)))), 0.0]
        """The greatest score of each clause and those after it."""
        self._threshold = 0.0
        self._documents: Numbers = np.empty(0, np.int32)
        self._scores: Float32s = np.empty(0, np.float32)
        self._left = reader.count * PATIENCE

    def answer(self, lifted: Numbers) -> Answer | None:
        """The best documents and their scores, None when it takes too long.

        `lifted` are the documents that may score more than their terms give; others than those that match are left out.
        """
        self._score(lifted)
        if sum(len(clause.postings.documents) for clause in self._clauses) <= SEEDS:
            self._score(np.unique(np.concatenate([clause.postings.documents for clause in self._clauses])))
            return self._best()
        if self._is_sum and len(self._clauses[0].postings.documents) > 2 * SEEDS:
            self._threshold = self._first_threshold()
        for place, clause in enumerate(self._clauses):
            if self._rest[place] < self._threshold:
                break
            documents, bounds = self._reaching(clause, self._threshold - self._rest[place + 1])
            documents, bounds = self._followed(documents, bounds, place + 1)
            if self._left < 0:
                return None
            self._take(documents, bounds)
        return self._best()

    def _reaching(self, clause: _Clause, least: float) -> tuple[Numbers, Doubles]:
        """The documents to which a term may give a score, and the bounds of that."""
        documents, impacts = clause.postings.documents, clause.postings.impacts
        impact = int(clause.upper.searchsorted(least))
        if impact > 1:
            places = _places(impacts >= impact)
            documents, impacts = documents.take(places), impacts.take(places)
        return documents, clause.upper.take(impacts)

    def _followed(self, documents: Numbers, bounds: Doubles, place: int) -> tuple[Numbers, Doubles]:
        """Those of some documents that the clauses from a place on may lift to the threshold, and their bounds."""
        for after, clause in enumerate(self._clauses[place:], place + 1):
            if self._left < 0:
                break
            impacts, took = self._impacts(clause, documents)
            self._left -= took
            bounds = bounds + clause.upper.take(impacts)
            keep = np.flatnonzero(bounds >= self._threshold - self._rest[after])
            if len(keep) < len(documents):
                documents, bounds = documents.take(keep), bounds.take(keep)
        return documents, bounds

    def _first_threshold(self) -> float:
        """A score that as many documents as are wanted reach: those that likely do are looked at; 0 if unknown."""
        wanted = max(SEEDS, 4 * self._size)
        pieces: list[Numbers] = []
        for clause in self._clauses:
            left = wanted - sum(map(len, pieces))
            if left <= 0:
                break
            pieces.append(_greatest(clause.postings, left))
        documents = np.unique(np.concatenate(pieces)) if len(pieces) > 1 else pieces[0]
        beam = max(BEAM, 2 * self._size)
        least = np.zeros(len(documents))
        for place, clause in enumerate(self._clauses):
            impacts, took = self._impacts(clause, documents)
            self._left -= took
            least += clause.lower.take(impacts)
            if place and len(documents) > beam:
                chosen = np.argpartition(least, -beam)[-beam:]
                chosen.sort()
                documents, least = documents.take(chosen), least.take(chosen)
        if len(least) < self._size:
            return 0.0
        return float(np.partition(least, -self._size)[-self._size]) * SLACK

    def _take(self, documents: Numbers, bounds: Doubles) -> None:
        """Score candidates, the most promising ones first."""
        some = self._size + 16
        if len(documents) > 2 * some + AT_ONCE:
            chosen = np.zeros(len(documents), bool)
            chosen[np.argpartition(bounds, -some)[-some:]] = True
            self._score(documents[chosen])
            documents = documents[~chosen & (bounds >= self._threshold)]
        self._score(documents)

    def _score(self, documents: Numbers) -> None:
        """Score documents, which are ascending, and keep the best of all that were."""
        if len(self._documents):
            documents = documents[~np.isin(documents, self._documents, assume_unique=True)]
        if not len(documents):
            return
        found = self._scores_of(documents)
        matching = found.mask()
        documents = np.append(self._documents, documents[matching])
        scores = np.append(self._scores, found.values[matching])
        if len(documents) >= self._size:
            last = np.partition(scores, -self._size)[-self._size]
            keep = scores >= last
            documents, scores = documents[keep], scores[keep]
            self._threshold = max(self._threshold, float(last) * SLACK)
        self._documents, self._scores = documents, scores

    def _best(self) -> Answer:
        order = topk.first(self._scores, self._reader.ranks[self._documents], self._size)
        return self._documents[order], self._scores[order]


def _greatest(postings: BoundedPostings, wanted: int) -> Numbers:
    """About so many of the documents of a term, those of the greatest impacts."""
    if len(postings.documents) <= wanted:
        return postings.documents
    impacts = postings.impacts[: wanted * 64]
    sample = np.sort(impacts[:: max(1, len(impacts) // 1024)])
    least = sample[-max(1, len(sample) * wanted // len(impacts))]
    return postings.documents.take(_places(impacts >= least)[:wanted])


def _places(marked: Mask) -> NDArray[np.intp]:
    """Where an array is marked, as `flatnonzero`; faster where few places are."""
    whole = len(marked) // 8 * 8
    if whole < SPARSE:
        return np.flatnonzero(marked)
    eights = np.flatnonzero(marked[:whole].view(np.uint64))
    if len(eights) * 32 > whole:
        return np.flatnonzero(marked)
    which, place = marked[:whole].reshape(-1, 8)[eights].nonzero()
    return np.append(eights[which] * 8 + place, whole + np.flatnonzero(marked[whole:]))
