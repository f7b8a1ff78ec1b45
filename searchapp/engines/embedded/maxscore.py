"""The way of one query to its best documents, see `pruning`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded import accumulated, topk
from searchapp.engines.embedded.bounded_clause import BoundedClause
from searchapp.engines.embedded.memory import Answer
from searchapp.engines.embedded.rows import Doubles
from searchapp.engines.embedded.similarity import Float32s
from searchapp.engines.embedded.storage.impacts import Impacts
from searchapp.engines.embedded.storage.reader import Mask, Numbers
from searchapp.engines.embedded.sums import Scores

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
                accumulated.add(sums, given, self._lookup.most_in_all)
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
            documents = _places(sums >= accumulated.least(least, end - place)).astype(np.int32)
            bounds = accumulated.most(sums.take(documents), end - place)
        self._take(*self._followed(documents, bounds, end))
        return True

    def _reaching(self, sums: Float32s, place: int, end: int) -> int:
        """About how many documents may reach the threshold when bounds are added up from a place on to another one."""
        least = self._threshold - self._rest[end]
        return _count(sums, accumulated.least(least, end - place)) if least > 0 else len(sums)

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
        documents = topk.promising(sums, self._size + 16)
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
        order = topk.first(self._scores, self._ranks[self._documents], self._size)
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
