"""MaxScore in NumPy: the bounds of clauses, their sums, and the search that skips documents by them; see `pruning`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import similarity
from searchapp.lucene.index.impacts import COUNTED, EDGES, Impacts
from searchapp.lucene.index.reader import BoundedPostings, FieldReader, Mask, Numbers
from searchapp.lucene.queries.fulltext import Phrase
from searchapp.lucene.queries.query import ScoredLeaf
from searchapp.lucene.search import scoring
from searchapp.lucene.search.scoring import Answer, Scores
from searchapp.lucene.search.term_scores import Doubles, Row
from searchapp.lucene.similarity import Float32s

WEIGHTS = (1e-12, 1e12)
"""Between these weights no score leaves the numbers that float32 has in full precision."""

_ONES = np.ones_like(EDGES)
_COUNTED = np.array([COUNTED], np.float32)
_STEPS = np.arange(1, len(EDGES))


@dataclass(frozen=True, slots=True)
class BoundedClause:
    """A term of a query, or a phrase, with the documents where it stands, ascending, and their impacts.

    `upper` has the greatest score that each impact stands for, `lower` the least; no impact times `factor` is less than
    `upper`. `bound` is the greatest score of all documents. `is_bounded` says whether these hold, see `WEIGHTS`.
    `postings` are those of a term, None for what is none. `sought` is a phrase that is still to be looked for in the
    documents: it need not stand there.
    """

    key: Hashable
    documents: Numbers
    impacts: Impacts
    upper: Doubles
    lower: Doubles
    factor: np.float32
    bound: float
    is_bounded: bool
    postings: BoundedPostings | None = None
    sought: Phrase | None = None


def clause_of_term(field: FieldReader, term: str, boost: np.float32) -> BoundedClause | None:
    """The clause of a term of a text field, None if it does not occur."""
    rank = field.rank(term)
    if rank is None:
        return None
    found = field.bounded(rank)
    weight = field.weight(boost, field.document_frequency(term))
    upper, lower = _scores(weight, field.edges_above), _scores(weight, field.edges_below)
    key = field.field.name, term
    clause = _clause(key, found.documents, found.impacts, (upper, lower), weight, found)
    # Of a very frequent term the greatest impact says nothing of the document's length.
    least = similarity.scores(weight, _COUNTED, field.norm_inverses.min(keepdims=True))
    clause.lower[-1] = min(clause.lower[-1], least[0])
    return clause


def clause_of_leaf(field: FieldReader, leaf: ScoredLeaf, boost: np.float32, row: Row) -> BoundedClause | None:
    """The clause of a leaf that is no term, whose scores are known; None if it does not occur."""
    if not len(row.documents):
        return None
    weight = field.similarity.weight(boost, leaf.idf(field))
    scores = _scores(weight, EDGES)
    impacts = np.maximum(scores.searchsorted(row.scores), 1).astype(np.uint8)
    return _clause((leaf, float(boost)), row.documents, impacts, (scores, scores), weight)


def clause_of_phrase(
    field: FieldReader, phrase: Phrase, boost: np.float32, documents: Numbers, impacts: Impacts
) -> BoundedClause:
    """The clause of a phrase that is still to be looked for, in some documents.

    It stands there no more often than the rarest of its terms, none of which may stand twice on one position; so its
    impact is not above theirs.
    """
    weight = field.similarity.weight(boost, phrase.idf(field))
    upper = _scores(weight, field.edges_above)
    return _clause((phrase, float(boost)), documents, impacts, (upper, upper), weight, sought=phrase)


def is_bounded(weight: np.float32) -> bool:
    """Whether all scores of a weight are numbers that float32 has in full precision."""
    return bool(WEIGHTS[0] < weight < WEIGHTS[1])


def _scores(weight: np.float32, edges: Float32s) -> Float32s:
    """The scores that impacts stand for by their edges."""
    with np.errstate(over="ignore", invalid="ignore"):
        return similarity.scores(weight, edges, _ONES)


def _clause(
    key: Hashable,
    documents: Numbers,
    impacts: Impacts,
    scores: tuple[Float32s, Float32s],
    weight: np.float32,
    postings: BoundedPostings | None = None,
    sought: Phrase | None = None,
) -> BoundedClause:
    """`scores` are those of the edges, no less than any score that they stand for, and no greater than any beyond."""
    upper = scores[0].astype(np.float64)
    factor = np.nextafter(np.float32((upper[1:] / _STEPS).max()), np.float32(np.inf))
    greatest = int(impacts.max()) if postings is None else postings.greatest
    lower = np.append(0.0, scores[1][:-1].astype(np.float64)) if sought is None else np.zeros_like(upper)
    return BoundedClause(
        key,
        documents,
        impacts,
        upper,
        lower,
        factor,
        float(upper[greatest]),
        is_bounded(weight),
        postings,
        sought,
    )


BLOCK = 1 << 16
"""Documents whose bounds are added up at a time: they stay in the processor's cache."""

ROUNDING = 2.0**-23
"""Twice what one rounded operation makes a float32 less, of the number."""


def add_bounds(sums: Float32s, clauses: Iterable[tuple[BoundedClause, Impacts | None]], valid: int) -> None:
    """Add what bounds the scores of clauses to the bounds of all documents, float32 of shape (documents,).

    The impacts of a clause in all documents are given beside it, if they are laid out. As `clauses` are gone through,
    those of the last `valid` of them hold; the memory of others may be in use again.
    """
    laid_out: list[tuple[np.float32, Impacts]] = []
    for clause, impacts in clauses:
        if impacts is None:
            np.add.at(sums, clause.documents, clause.upper.astype(np.float32).take(clause.impacts))
            continue
        laid_out.append((clause.factor, impacts))
        if len(laid_out) == valid:
            _add_laid_out(sums, laid_out)
            laid_out.clear()
    _add_laid_out(sums, laid_out)


def _add_laid_out(sums: Float32s, laid_out: Sequence[tuple[np.float32, Impacts]]) -> None:
    if not laid_out:
        return
    given = np.empty(min(BLOCK, len(sums)), np.float32)
    for first in range(0, len(sums), BLOCK):
        of_block = sums[first : first + BLOCK]
        some = given[: len(of_block)]
        for factor, impacts in laid_out:
            some[:] = impacts[first : first + BLOCK]
            some *= factor
            of_block += some


def lower_bound(bound: float, clauses: int) -> np.float32:
    """What a sum of so many clauses is at least where it would be `bound` without rounding."""
    bound *= 1 - (clauses + 2) * ROUNDING
    return np.float32(np.nextafter(np.float32(bound), np.float32(-np.inf)))


def upper_bound(sums: Float32s, clauses: int) -> Doubles:
    """What sums of so many clauses would be at most without rounding."""
    return sums.astype(np.float64) * (1 + (clauses + 2) * ROUNDING)


SLACK = 1 - 2.0**-20
"""What a bound is compared with, of the threshold: more than all roundings come to."""

SEEDS = 512
"""Documents among which the first threshold is sought."""

AT_ONCE = 128
"""Documents that may be scored at once although a better threshold would exclude some."""

MORE_AT_ONCE = 16
"""How many times more documents are scored at once than the time before, as long as many are left."""

BEAM = 256
"""Of the seeds, the best that are followed at least."""

SPARSE = 1 << 14
"""In an array from this length on it pays to look at eight marks at a time first."""

FOLLOWED = 9
"""With more clauses, as a rule, documents of most of them would have to be followed: bounds are added up at once."""

ADDED, SCATTERED, PREPARED = 16, 2, 4
"""What is done in the time of one look at a clause's impact in a document: bounds added where impacts are laid out,
bounds added elsewhere, sums prepared and compared."""

SAMPLED = 16
"""Every SAMPLED-th sum is looked at to estimate how many reach a bound."""

MANY = 8
"""With so many times more documents that may reach the threshold than are wanted, a better one is sought."""

SCORED_SHARE = 8
"""If more than one document in this many may be among the best, scoring all is cheaper."""


class Lookup(Protocol):
    """The impacts of clauses in documents, and the documents' scores."""

    def impacts(self, clause: BoundedClause, documents: Numbers) -> tuple[Impacts, int]:
        """The impacts of a clause in some documents, 0 where it does not occur; and how many looks that took."""

    @property
    def most_in_all(self) -> int:
        """The impacts of how many clauses in all documents hold at the same time, those asked for last."""

    def in_all(self, clause: BoundedClause) -> Impacts | None:
        """The impacts of a clause in all documents, if they are laid out."""

    def zeros(self) -> AbstractContextManager[Float32s]:
        """A zero for each document, to be changed meanwhile."""


class Search:
    """One query on its way to its best documents."""

    def __init__(
        self,
        lookup: Lookup,
        scores: Callable[[Numbers], Scores],
        ranks: Numbers,
        clauses: Sequence[BoundedClause],
        size: int,
        *,
        excluded: Numbers,
        live: Mask | None,
        is_sum: bool,
    ) -> None:
        """`scores` scores documents, `ranks` orders all documents by id, `excluded` are left out.

        `live` marks the documents that count, None if all do.

        Scores are the sums of what the clauses give if `is_sum` is true, and what has one of them matches; if it is not
        true, scores are not above these sums.
        """
        self._lookup = lookup
        self._scores_of = scores
        self._ranks = ranks
        self._size = size
        self._excluded = excluded
        self._live = live
        self._is_sum = is_sum
        self._clauses = sorted(clauses, key=lambda clause: -clause.bound)
        bounds = [clause.bound for clause in self._clauses]
        self._rest = [*reversed(list(accumulate(reversed(bounds)))), 0.0]
        """The greatest score of each clause and those after it."""
        self._threshold = 0.0
        self._looks = 0
        """Looks that following documents has taken so far."""
        self._documents: Numbers = np.empty(0, np.int32)
        self._scores: Float32s = np.empty(0, np.float32)

    def answer(self) -> Answer | None:
        """The best documents and their scores; None where scoring all documents takes less time."""
        clauses = self._clauses
        if sum(len(clause.documents) for clause in clauses) <= SEEDS:
            self._score(np.unique(np.concatenate([clause.documents for clause in clauses])))
            return self._best()
        if len(clauses) > FOLLOWED:
            return self._best() if self._accumulate(0) else None
        if self._is_sum and len(clauses[0].documents) > 2 * SEEDS:
            self._threshold = self._first_threshold()
        for place, clause in enumerate(clauses):
            if self._rest[place] < self._threshold:
                break
            impact = self._least_impact(place)
            looks = _count(clause.impacts, impact) * min(2, len(clauses) - place - 1)
            if self._looks + looks > self._cost_of_all(place):
                return self._best() if self._accumulate(place) else None
            self._take(*self._followed(*_having(clause, impact), place + 1))
        return self._best()

    # Following documents from clause to clause

    def _least_impact(self, place: int) -> int:
        """The impact that a clause must have at least in a document that has none of those before."""
        least = self._threshold - self._rest[place + 1]
        return int(self._clauses[place].upper.searchsorted(least))

    def _followed(self, documents: Numbers, bounds: Doubles, place: int) -> tuple[Numbers, Doubles]:
        """Those of some documents that the clauses from a place on may lift to the threshold, and their bounds."""
        for after, clause in enumerate(self._clauses[place:], place + 1):
            impacts, looks = self._lookup.impacts(clause, documents)
            self._looks += looks
            bounds = bounds + clause.upper.take(impacts)
            keep = np.flatnonzero(bounds >= self._threshold - self._rest[after])
            if len(keep) < len(documents):
                documents, bounds = documents.take(keep), bounds.take(keep)
        return documents, bounds

    def _first_threshold(self) -> float:
        """A score that as many documents as are wanted reach: those that likely do are looked at; 0 if unknown."""
        size = self._size + len(self._excluded)
        wanted = max(SEEDS, 4 * size)
        pieces: list[Numbers] = []
        for clause in self._clauses:
            left = wanted - sum(map(len, pieces))
            if left <= 0:
                break
            pieces.append(_greatest(clause, left))
        documents = np.unique(np.concatenate(pieces)) if len(pieces) > 1 else pieces[0]
        documents = self._of_live(documents)
        beam = max(BEAM, 2 * size)
        least = np.zeros(len(documents))
        for place, clause in enumerate(self._clauses):
            impacts, _took = self._lookup.impacts(clause, documents)
            least += clause.lower.take(impacts)
            if place and len(documents) > beam:
                chosen = np.argpartition(least, -beam)[-beam:]
                chosen.sort()
                documents, least = documents.take(chosen), least.take(chosen)
        if len(least) < size:
            return 0.0
        return float(np.partition(least, -size)[-size]) * SLACK

    # Adding up the bounds of all documents

    def _accumulate(self, place: int) -> bool:
        """Take what the clauses from a place on may lift to the threshold; returns False where that is too much.

        What has a clause before was taken already, or cannot reach it. Bounds are added up clause by clause, until so
        few documents may still reach the threshold that following them takes less time than adding up the next clause.
        """
        with self._lookup.zeros() as sums:
            end = place
            while end < len(self._clauses):
                begin, end = end, self._next_end(end)
                of_group = self._clauses[begin:end]
                given = ((clause, self._lookup.in_all(clause)) for clause in of_group)
                add_bounds(sums, given, self._lookup.most_in_all)
                reaching = self._reaching(sums, place, end)
                is_last = end == len(self._clauses)
                if not self._threshold or (is_last and reaching > MANY * (self._size + SEEDS)):
                    self._seek(sums)
                    reaching = self._reaching(sums, place, end)
                if reaching * 2 * ADDED < len(sums):
                    break
            least = self._threshold - self._rest[end]
            if least <= 0 or reaching * SCORED_SHARE > len(sums):
                return False
            documents = _places(sums >= lower_bound(least, end - place)).astype(np.int32)
            bounds = upper_bound(sums.take(documents), end - place)
        self._take(*self._followed(documents, bounds, end))
        return True

    def _reaching(self, sums: Float32s, place: int, end: int) -> int:
        """About how many documents may reach the threshold when bounds are added up from a place on to another one."""
        least = self._threshold - self._rest[end]
        return _count(sums, lower_bound(least, end - place)) if least > 0 else len(sums)

    def _next_end(self, end: int) -> int:
        """Up to which place bounds are to be added up after those up to `end`.

        That is at least one clause further, all those without which documents may reach the threshold, and those of so
        few documents that adding them takes next to no time.
        """
        few = len(self._ranks) * SCATTERED // (2 * ADDED)
        end += 1
        while end < len(self._clauses) and (
            self._rest[end] >= self._threshold > 0 or len(self._clauses[end].documents) < few
        ):
            end += 1
        return end

    def _seek(self, sums: Float32s) -> None:
        """Find a threshold among the documents of the greatest sums."""
        documents = scoring.promising(sums, self._size + 16)
        if documents is not None and len(documents) <= 4 * self._size + SEEDS:
            self._score(documents.astype(np.int32))

    def _cost_of_all(self, place: int) -> int:
        """What adding up the bounds that clauses from a place on give to all documents costs, in looks at an impact."""
        count = len(self._ranks)
        return count // PREPARED + sum(
            min(len(clause.documents) // SCATTERED, count // ADDED) for clause in self._clauses[place:]
        )

    # Scoring

    def _take(self, documents: Numbers, bounds: Doubles) -> None:
        """Score candidates, the most promising ones first."""
        some = self._size + 16
        while len(documents) > 2 * some + AT_ONCE:
            chosen = np.zeros(len(documents), bool)
            chosen[np.argpartition(bounds, -some)[-some:]] = True
            self._score(documents[chosen])
            left = ~chosen & (bounds >= self._threshold)
            documents, bounds = documents[left], bounds[left]
            some *= MORE_AT_ONCE
        self._score(documents)

    def _score(self, documents: Numbers) -> None:
        """Score documents, which are ascending, and keep the best of all that were."""
        documents = self._of_live(documents)
        for left_out in (self._documents, self._excluded):
            if len(left_out):
                documents = documents[~np.isin(documents, left_out)]
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

    def _of_live(self, documents: Numbers) -> Numbers:
        return documents if self._live is None else documents[self._live.take(documents)]

    def _best(self) -> Answer:
        order = scoring.first(self._scores, self._ranks[self._documents], self._size)
        return self._documents[order], self._scores[order]


def _count(values: NDArray[Any], least: Any) -> int:
    """About how many numbers are no less than another one."""
    return SAMPLED * int(np.count_nonzero(values[::SAMPLED] >= least))


def _having(clause: BoundedClause, impact: int) -> tuple[Numbers, Doubles]:
    """The documents in which a clause has at least an impact, and the bounds of its scores there."""
    documents, impacts = clause.documents, clause.impacts
    if impact > 1:
        places = _places(impacts >= impact)
        documents, impacts = documents.take(places), impacts.take(places)
    return documents, clause.upper.take(impacts)


def _greatest(clause: BoundedClause, wanted: int) -> Numbers:
    """About so many of the documents of a clause, those of the greatest impacts."""
    if len(clause.documents) <= wanted:
        return clause.documents
    impacts = clause.impacts[: wanted * 64]
    sample = np.sort(impacts[:: max(1, len(impacts) // 1024)])
    least = sample[-max(1, len(sample) * wanted // len(impacts))]
    return clause.documents.take(_places(impacts >= least)[:wanted])


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
