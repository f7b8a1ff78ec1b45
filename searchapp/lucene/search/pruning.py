"""Dynamic pruning: the best documents of a query without scoring those that cannot be among them.

    H. Turtle and J. Flood, Query evaluation: strategies and optimizations, 1995 (MaxScore).
    S. Ding and T. Suel, Faster top-k document retrieval using block-max indexes, SIGIR 2011.

Every posting has an impact, which bounds its score (see `index.impacts`), so each term has a greatest score. Terms
are visited from the greatest of these down, the rare ones first. As soon as the remaining terms can't lift a
document to the threshold, the score of the last of the best found so far, only documents with one of the terms
before can be among the best. These are followed term by term: the impacts of the others are only looked up for
them, and a document is dropped as soon as its bound is under the threshold. The rest is scored exactly.

Where too many documents would have to be followed, and where there are many terms, the bounds of all documents are
added up instead, as long as that takes less time: `maxscore` decides that by counts. A phrase added to the scores
of terms is one more term, once its documents are found. Bounds are those of sums of positive numbers, a little
greater than any rounding could make a score.

`Shape` recognises the queries that can be pruned. Sums and maxima of terms are answered by `kernels` if it was
compiled.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from searchapp.lucene import native
from searchapp.lucene.index import arrays
from searchapp.lucene.index.impacts import Impacts
from searchapp.lucene.index.mapping import Analyzers
from searchapp.lucene.index.reader import FieldReader, IndexReader, Numbers
from searchapp.lucene.queries.fulltext import Phrase
from searchapp.lucene.queries.match_all import MatchNone, gives_nothing
from searchapp.lucene.queries.query import (
    Bool,
    Boost,
    DisMax,
    Leaf,
    Query,
    ScoredLeaf,
    TermsDisjunction,
    without_boosts,
)
from searchapp.lucene.queries.term import Term
from searchapp.lucene.search import maxscore
from searchapp.lucene.search.kernels import LOOKED_UP, MAP_BYTES, CompiledSearch, Flat, LaidOut
from searchapp.lucene.search.maxscore import ADDED, SCATTERED, BoundedClause, Search
from searchapp.lucene.search.scoring import NOTHING, Answer, Scorer, Scores
from searchapp.lucene.search.term_scores import CandidateRows, Rows
from searchapp.lucene.similarity import ONE, Float32s

Part: TypeAlias = tuple[str, Sequence[str], np.float32]
"""A field, terms of it, and their boost."""

Lifting: TypeAlias = tuple[ScoredLeaf, np.float32]
"""What adds to the scores of its documents, and its boost."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A query that gives a score to what has one of some terms.

    A score is at most the sum of what the terms of `parts` and the leaves `lifting` give. If `is_sum` is true it is
    that sum, and what has one of them matches. The documents of the leaves `excluded` are left out, and `scored` is the
    query without these. `matches_all` says that what has none of the terms matches, with the score 0.
    """

    parts: Sequence[Part]
    lifting: Sequence[Lifting]
    is_sum: bool
    excluded: Sequence[Leaf]
    scored: Query
    matches_all: bool

    @classmethod
    def of(cls, query: Query) -> Shape | None:
        """The shape of a rewritten query, None for what has another one."""
        scored, excluded = _without_excluded(query)
        leaves = [leaf for leaf in excluded if isinstance(leaf, Leaf) and leaf.has_few_documents]
        if len(leaves) < len(excluded):
            return None
        query, boost = without_boosts(scored)
        optional: Sequence[Query] = ()
        inner = boost
        matches_all = False
        if isinstance(query, Bool) and query.must:
            if len(query.must) > 1 or query.filter or query.minimum:
                return None
            if matches_all := gives_nothing(query.must[0]):
                query = replace(query, must=())
            else:
                optional = query.should
                query, inner = without_boosts(query.must[0], boost)
        clauses = _Clauses([], [])
        is_sum = not isinstance(query, DisMax)
        if not all(clauses.add(*one, may_lift=is_sum) for one in _inside(query, inner)):
            return None
        known = {(field, term) for field, terms, _boost in clauses.parts for term in terms}
        for one, factor in (without_boosts(one, boost) for one in optional):
            if not clauses.add(one, factor):
                return None
            needs_known = _needs(one, known)
            if isinstance(one, Term | TermsDisjunction) and not needs_known:
                return None  # most of their documents would be looked at in vain
            is_sum = is_sum and needs_known
        if not clauses.parts and not any(isinstance(leaf, Phrase) for leaf, _boost in clauses.lifting):
            return None
        return cls(clauses.parts, clauses.lifting, is_sum, leaves, scored, matches_all)


@dataclass(frozen=True, slots=True)
class _Clauses:
    """The clauses of a sum or a maximum, see `Shape`."""

    parts: list[Part]
    lifting: list[Lifting]

    def add(self, query: Query, boost: np.float32, *, may_lift: bool = True) -> bool:
        """Add a query; returns False if it is no clause whose scores are bounded."""
        if isinstance(query, TermsDisjunction):
            self.parts.append((query.field, query.terms, boost))
        elif isinstance(query, Term):
            self.parts.append((query.field, (query.term,), boost))
        elif isinstance(query, ScoredLeaf) and may_lift:
            self.lifting.append((query, boost))
        else:
            return False
        return True


def _needs(query: Query, known: Container[tuple[str, str]]) -> bool:
    """Whether what matches a query has one of the known terms of fields."""
    if isinstance(query, Term):
        return (query.field, query.term) in known
    return isinstance(query, Phrase) and any((query.field, term) in known for term in query.terms)


def _without_excluded(query: Query) -> tuple[Query, Sequence[Query]]:
    """A query without what must not match, and that."""
    if isinstance(query, Boost):
        inner, excluded = _without_excluded(query.query)
        return Boost(inner, query.boost), excluded
    if isinstance(query, Bool) and query.must_not:
        return replace(query, must_not=()), query.must_not
    return query, ()


def _inside(query: Query, boost: np.float32) -> Iterator[tuple[Query, np.float32]]:
    """The queries of a sum or a maximum and their boosts."""
    queries: Sequence[Query] = (query,)
    if isinstance(query, DisMax) and 0 <= query.tie_breaker <= 1:
        queries = query.queries
    elif isinstance(query, Bool) and query.is_pure_disjunction:
        queries = query.should
    return (without_boosts(one, boost) for one in queries)


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
                clause = maxscore.clause_of_term(field, term, boost)
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
                clause = maxscore.clause_of_leaf(field, leaf, boost, self._rows.row(leaf, boost))
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
        return maxscore.clause_of_phrase(field, phrase, boost, documents, impacts)

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
