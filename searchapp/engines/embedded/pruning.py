"""The best documents of a query without scoring what can't be among them.

    H. Turtle and J. Flood, Query evaluation: strategies and optimizations, 1995 (MaxScore).
    S. Ding and T. Suel, Faster top-k document retrieval using block-max indexes, SIGIR 2011.

Every posting has an impact, which bounds what it gives to a score (see `storage.impacts`), so each term has a greatest
score. The terms are gone through from the greatest of these down, the rare ones first. As soon as the terms that are
left can't lift a document to the threshold, the score of the last one of the best found so far, no document that has
none of the terms before can be among the best. What may be is followed term by term: the impacts of the others are
only looked up for it, and it is dropped as soon as its bound is under the threshold. What stays is scored as all
documents are.

Where too many documents would have to be followed, and where there are many terms, the bounds of all documents are
added up instead, as long as that takes less time than following those that may still be among the best: see
`accumulated`. `maxscore` decides that by counts.

A phrase that adds to the scores of terms is one term more, once its documents are found.

The bounds are those of sums of positive numbers. They are a little greater than any rounding could make a score.

Where searchapp was built with a C compiler, `compiled_maxscore` answers queries that are sums or maxima of terms.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

from searchapp.engines.embedded import bounded_clause, native
from searchapp.engines.embedded.bounded_clause import BoundedClause
from searchapp.engines.embedded.candidates import CandidateRows
from searchapp.engines.embedded.compiled_maxscore import CompiledSearch
from searchapp.engines.embedded.laid_out import LOOKED_UP, MAP_BYTES, LaidOut
from searchapp.engines.embedded.maxscore import ADDED, SCATTERED, Search
from searchapp.engines.embedded.memory import NOTHING, Answer
from searchapp.engines.embedded.prunable import Part, Shape
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.leaves.match_none import MatchNone
from searchapp.engines.embedded.queries.leaves.phrase import Phrase
from searchapp.engines.embedded.queries.nodes import Query
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf
from searchapp.engines.embedded.rows import Rows
from searchapp.engines.embedded.schema import Analyzers
from searchapp.engines.embedded.scoring import Scorer
from searchapp.engines.embedded.similarity import ONE, Float32s
from searchapp.engines.embedded.storage import arrays
from searchapp.engines.embedded.storage.impacts import Impacts
from searchapp.engines.embedded.storage.reader import FieldReader, IndexReader, Numbers
from searchapp.engines.embedded.sums import Scores
from searchapp.engines.embedded.together import Flat

FEWEST_DOCUMENTS = 200_000
"""In a smaller index NumPy scores all documents in no more time."""

FEWEST_OF_BATCH = 50_000
"""In a smaller index the compiled functions score all documents for the queries of a batch together in no more time."""

MOST_SHARE = 400
"""At most one document in this many may be asked for."""

EXCLUDED_SHARE = 64
"""At most one document in this many may be left out by what must not match."""

MOST_CLAUSES = 2048
"""Clauses of queries that are kept, in some 8 MiB."""

MOST_COMPUTED = 64 << 20
"""Bytes that may be kept with them of phrases, and of impacts where the index was written before it had these."""

SOUGHT = 4096
"""A phrase whose terms are together in so many documents is only looked for in those that may be among the best."""

SEARCH = 8
"""A search for a document among a term's takes as long as looking up so many impacts that are laid out."""


class Pruned(NamedTuple):
    """The best documents, their scores, and whether the compiled functions found them."""

    documents: Numbers
    scores: Float32s
    is_compiled: bool = False


class Pruner:
    """Finds the best documents of an index."""

    def __init__(
        self, reader: IndexReader, rows: Rows, analyzers: Analyzers, map_bytes: int = MAP_BYTES
    ) -> None:
        """`rows` are those of all documents, for what is no term; `analyzers` those of the index."""
        self._reader = reader
        self._rows = rows
        self._analyzers = analyzers
        self._laid_out = LaidOut(reader.count, map_bytes)
        self._compiled = CompiledSearch(reader, map_bytes)
        self._clauses: dict[Hashable, BoundedClause | None] = {}
        self._computed = 0
        self._spare: list[Float32s] = []

    def best(self, query: Query, size: int, *, alone: bool = True) -> Pruned | None:
        """The first `size` documents of a rewritten query; None where it is better to score all documents.

        That is so where scores leave float32, too, which is refused when all documents are scored; and, unless the
        query is asked `alone`, in a small index, where it costs less to score those of a batch together.
        """
        if not size or self._reader.count < size * MOST_SHARE:
            return None
        if isinstance(query, MatchNone):
            return Pruned(*NOTHING)
        is_large = self._reader.count >= FEWEST_DOCUMENTS
        is_compiled = alone or is_large or self._reader.count >= FEWEST_OF_BATCH
        with np.errstate(over="ignore", invalid="ignore"):
            answer = self._best_compiled(query, size) if is_compiled else None
            if answer is not None:
                return Pruned(*answer, is_compiled=True)
            shape = Shape.of(query) if is_large else None
            answer = None if shape is None else self._best(shape, size)
            return None if answer is None else Pruned(*answer)

    def prepare(self, queries: Iterable[Query]) -> None:
        """Lay out what several queries look up, before processes are forked that would each do so."""
        if self._reader.count < FEWEST_DOCUMENTS:
            return
        library = native.library()
        clauses: list[BoundedClause] = []
        flat: list[Flat] = []
        with np.errstate(over="ignore", invalid="ignore"):
            for query in queries:
                one = None if library is None else self._flat(query)
                if one is not None:
                    flat.append(one)
                    continue
                shape = Shape.of(query)
                clauses += self._of_parts(shape.parts) or () if shape is not None else ()
            self._laid_out.prepare(clauses)
            self._compiled.prepare(flat)

    def _flat(self, query: Query) -> Flat | None:
        """A query as the compiled functions may find it, None for any other."""
        flat = Flat.of(query)
        return flat if flat is not None and self._compiled.may_find(flat) else None

    def _best_compiled(self, query: Query, size: int) -> Answer | None:
        library = native.library()
        flat = None if library is None else self._flat(query)
        if library is None or flat is None:
            return None
        excluded = self._excluded(flat.excluded)
        answer = None if excluded is None else self._compiled.best(library, flat, excluded, size)
        if answer is not None and flat.all_match and (len(answer[0]) < size or not answer[1][-1]):
            return None  # what has no term follows, or has as good a score
        return answer

    def _best(self, shape: Shape, size: int) -> Answer | None:
        clauses = self._of_parts(shape.parts)
        if clauses is None or not all(clause.is_bounded for clause in clauses):
            return None
        for leaf, boost in shape.lifting:
            clause = self._of_leaf(leaf, boost)
            if clause is not None and not clause.is_bounded:
                return None
            clauses += [] if clause is None else [clause]
        excluded = self._excluded(shape.excluded)
        if excluded is None:
            return None
        if clauses:
            search = Search(
                self,
                partial(self._scores, shape.scored, clauses),
                self._reader.ranks,
                clauses,
                size,
                excluded=excluded,
                live=self._reader.live,
                is_sum=shape.is_sum,
            )
            answer = search.answer()
        else:
            answer = NOTHING
        # What has no term follows where too few have one.
        return None if answer is not None and shape.matches_all and len(answer[0]) < size else answer

    def _scores(self, query: Query, clauses: Sequence[BoundedClause], documents: Numbers) -> Scores:
        postings = {clause.key: clause.postings for clause in clauses if clause.postings is not None}
        sought = [clause.sought for clause in clauses if clause.sought is not None]
        rows = CandidateRows(self._reader, self._rows, postings, self._laid_out.known, documents, sought)
        return Scorer(self._reader, rows).scores(query)

    def _excluded(self, leaves: Sequence[Leaf]) -> Numbers | None:
        """The documents of leaves; None if there are many."""
        found = [leaf.documents(self._reader).astype(np.int32) for leaf in leaves]
        if sum(map(len, found)) * EXCLUDED_SHARE > self._reader.count:
            return None
        return np.concatenate(found) if found else np.empty(0, np.int32)

    # Clauses

    def _of_parts(self, parts: Iterable[Part]) -> list[BoundedClause] | None:
        """The clauses of terms that occur; None where some are no words."""
        clauses: list[BoundedClause] = []
        for field, terms, boost in parts:
            if not self._reader.fields[field].field.is_text:
                return None
            clauses += self._of_terms(field, terms, boost)
        return clauses

    def _of_terms(self, name: str, terms: Sequence[str], boost: np.float32) -> list[BoundedClause]:
        """The clauses of the terms of a field, those that occur."""
        clauses = []
        field = self._reader.fields[name]
        for term in terms:
            key = name, term, float(boost)
            try:
                clause = self._clauses[key]
            except KeyError:
                clause = bounded_clause.of_term(field, term, boost)
                self._keep(key, clause, is_computed=not field.has_impacts)
            if clause is not None:
                clauses.append(clause)
        return clauses

    def _of_leaf(self, leaf: ScoredLeaf, boost: np.float32) -> BoundedClause | None:
        """The clause of what is no term, None if it does not occur."""
        key = leaf, float(boost)
        if key not in self._clauses:
            field = self._reader.fields[leaf.field]
            clause = self._of_phrase(field, leaf, boost) if isinstance(leaf, Phrase) else None
            if clause is None:
                clause = bounded_clause.of_leaf(field, leaf, boost, self._rows.row(leaf, boost))
            self._keep(key, clause, is_computed=True)
        return self._clauses[key]

    def _of_phrase(self, field: FieldReader, phrase: Phrase, boost: np.float32) -> BoundedClause | None:
        """The clause of a phrase whose terms are together in many documents; None elsewhere."""
        if self._may_repeat_terms(field):
            return None
        names = list(dict.fromkeys(phrase.terms))
        clauses = self._of_terms(phrase.field, names, ONE)
        if len(clauses) < len(names):
            return None
        first, *others = sorted(clauses, key=lambda clause: len(clause.documents))
        documents, impacts = first.documents, first.impacts
        for other in others:
            if len(documents) < SOUGHT:
                return None
            found, _looks = self.impacts(other, documents)
            there = np.flatnonzero(found)
            documents = documents.take(there)
            impacts = np.minimum(impacts.take(there), found.take(there))
        if len(documents) < SOUGHT:
            return None
        return bounded_clause.of_phrase(field, phrase, boost, documents, impacts)

    def _may_repeat_terms(self, field: FieldReader) -> bool:
        """Whether a term may stand several times on one position, where a phrase that it begins begins as often.

        Then the phrase may stand more often than the rarest of its terms does.
        """
        name = field.field.analyzer
        return name is None or self._analyzers.analyzer(name).bulk is None

    def _keep(self, key: Hashable, clause: BoundedClause | None, *, is_computed: bool) -> None:
        """Keep a clause for the next query; all are forgotten when they grow too many."""
        if clause is not None and is_computed:
            self._computed += clause.impacts.nbytes + (
                clause.documents.nbytes if clause.postings is None else 0
            )
        if len(self._clauses) >= MOST_CLAUSES or self._computed > MOST_COMPUTED:
            self._clauses.clear()
            self._computed = 0
        self._clauses[key] = clause

    # Impacts

    def impacts(self, clause: BoundedClause, documents: Numbers) -> tuple[Impacts, int]:
        """The impacts of a clause in some documents, 0 where it does not occur; and how many looks that took."""
        laid_out = self._laid_out.of(clause, len(documents))
        if laid_out is not None:
            return laid_out.take(documents), len(documents)
        at, there = arrays.located(clause.documents, documents)
        found: Impacts = clause.impacts.take(at) * there
        return found, len(documents) * SEARCH

    @property
    def most_in_all(self) -> int:
        """The impacts of how many clauses in all documents hold at the same time, those asked for last."""
        return self._laid_out.most

    def in_all(self, clause: BoundedClause) -> Impacts | None:
        """The impacts of a clause in all documents, if they are laid out."""
        if len(clause.documents) * ADDED < self._reader.count * SCATTERED:
            return None  # adding up those of the clause alone takes less time
        return self._laid_out.of(clause, len(clause.documents) // LOOKED_UP)

    @contextmanager
    def zeros(self) -> Iterator[Float32s]:
        """A zero for each document, to be changed meanwhile."""
        try:
            found = self._spare.pop()  # there are as many as threads have needed at once
        except IndexError:
            found = np.empty(self._reader.count, np.float32)
        found.fill(0)
        yield found
        self._spare.append(found)
