"""Score all documents of an index in Lucene's arithmetic, and select the top k: score descending, id ascending.

Sums are made in double and rounded once, as in Lucene. This is the reference that `pruning` and `kernels` equal to
the last bit. `Memory` keeps the answers of bodies for callers that search the same often: the tuning of a recipe.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.errors import beyond_float32
from searchapp.lucene.index.reader import IndexReader, Mask, Numbers
from searchapp.lucene.queries import compound
from searchapp.lucene.queries.match_all import gives_nothing
from searchapp.lucene.queries.query import (
    Bool,
    Boost,
    Boosting,
    Constant,
    DisMax,
    FunctionScore,
    Leaf,
    Query,
    ScoredLeaf,
    TermsDisjunction,
    without_boosts,
)
from searchapp.lucene.queries.rewrite import looks_at_scores, looks_at_values, scored
from searchapp.lucene.queries.term import Term
from searchapp.lucene.search.term_scores import NO_ROW, Doubles, Row, Rows
from searchapp.lucene.similarity import ONE, Float32s
from searchapp.model import Body

FEW = 256
"""Postings up to which it is cheaper to sort them than to make a number for every document."""


@dataclass(frozen=True, slots=True)
class Scores:
    """A score for every document, 0 for those that do not match.

    `matching` marks the documents that match. None stands for "where the score is not 0", which most queries come down
    to and which then need not be computed. The arrays belong to the caller who asked for the scores.
    """

    values: Float32s
    matching: Mask | None = None

    def mask(self) -> Mask:
        return self.values > 0 if self.matching is None else self.matching


def total(count: int, rows: Sequence[Row], others: Sequence[Scores] = ()) -> Scores:
    """The sum of rows and of scores, in double, rounded once; `count` is the number of all documents."""
    sums: Doubles = np.zeros(count)
    sparse = [row for row in rows if not row.is_common and len(row.documents)]
    if sparse:
        documents = np.concatenate([row.documents for row in sparse], dtype=np.intp)
        weights = np.concatenate([row.scores for row in sparse], dtype=np.float64)
        sums = np.asarray(np.bincount(documents, weights, count), np.float64)
    for row in rows:
        if row.dense is not None:
            sums += row.dense
        elif row.is_common:
            sums[row.documents] += row.scores
    for other in others:
        sums += other.values
    values = sums.astype(np.float32)
    if all(row.positive for row in rows) and all(other.matching is None for other in others):
        return Scores(values)
    mask = _marked(count, (row.documents for row in rows))
    for other in others:
        mask |= other.mask()
    return Scores(values, mask)


def total_of_few(rows: Sequence[Row]) -> Row | None:
    """The sum of rows as a row, if they have few documents, or one of them all; None if they have many.

    What counts are the documents of the whole index, so that sums of some documents are rounded as those of all.
    """
    rows = [row for row in rows if row.frequency]
    if len(rows) == 1:
        return rows[0]
    return _summed(rows) if sum(row.frequency for row in rows) <= FEW else None


def _marked(count: int, documents: Iterable[NDArray[Any]]) -> Mask:
    mask = np.zeros(count, bool)
    for some in documents:
        mask[some] = True
    return mask


def _summed(rows: Sequence[Row]) -> Row:
    """The sum of rows that have few documents, in double, rounded once."""
    if not rows:
        return NO_ROW
    documents, places = np.unique(np.concatenate([row.documents for row in rows]), return_inverse=True)
    weights = np.concatenate([row.scores for row in rows], dtype=np.float64)
    scores = np.bincount(places, weights, len(documents)).astype(np.float32)
    return Row(documents, scores, all(row.positive for row in rows))


def restricted(scores: Scores, mask: Mask) -> Scores:
    """The scores of the documents that the mask leaves."""
    return Scores(scores.values * mask, mask)


def disjunction_max(every: Sequence[Scores], tie_breaker: float) -> Scores:
    """The greatest score plus `tie_breaker` times the sum of the others, as DisjunctionMaxScorer computes it."""
    best = np.zeros_like(every[0].values)
    rest = np.zeros(len(best))
    mask = np.zeros(len(best), bool)
    for scores in every:
        rest += np.minimum(best, scores.values)
        best = np.maximum(best, scores.values)
        mask |= scores.mask()
    return Scores((best + rest * float(np.float32(tie_breaker))).astype(np.float32), mask)


@contextmanager
def finite_scores() -> Iterator[None]:
    """Refuse a query whose scores leave the range of a float32: infinite ones order nothing.

    Raises:
        EngineRefused: in the place of what NumPy then raises.
    """
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except FloatingPointError as error:
        raise beyond_float32() from error


class Scorer:
    """Scores the documents of one version of an index."""

    def __init__(self, reader: IndexReader, rows: Rows | None = None) -> None:
        self._reader = reader
        self._rows = rows or Rows(reader)
        self._count = self._rows.count

    def scores(self, query: Query, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:
        """The scores of a rewritten query whose own boost is multiplied by `boost`.

        `among` marks the documents that count, None all documents: scores of other documents are not looked at and may
        be wrong, and values that they lack are not missed.

        Raises:
            EngineRefused: the scores of some document can't be computed.
        """
        match query:
            case Boost(inner, factor):
                return self.scores(inner, np.float32(factor) * boost, among)
            case TermsDisjunction(field, terms):
                return total(self._count, self._rows.of_terms(field, terms, boost))
            case ScoredLeaf():
                return total(self._count, [self._rows.row(query, boost)])
            case Leaf():
                return self._constant(query.mask(self._reader), boost)
            case Bool():
                return self._bool(query, boost, among)
            case DisMax(queries, tie_breaker):
                return disjunction_max([self.scores(inner, boost, among) for inner in queries], tie_breaker)
            case Boosting():
                return self._boosting(query, boost, among)
            case FunctionScore():
                return self._functions(query, boost, among)
            case Constant(inner):
                return self._constant(self.matching(inner, among=among), boost)
            case _:
                assert_never(query)

    def prepare(self, queries: Iterable[Query]) -> None:
        """Compute together what the scores of several queries have in common, before they are asked for."""
        wanted: defaultdict[tuple[str, float], list[str]] = defaultdict(list)
        for query in queries:
            for leaf, boost in scored(query):
                if isinstance(leaf, TermsDisjunction):
                    wanted[leaf.field, boost] += leaf.terms
                elif isinstance(leaf, Term):
                    wanted[leaf.field, boost].append(leaf.term)
        for (field, boost), terms in wanted.items():
            self._rows.prepare(field, terms, np.float32(boost))

    def matching(self, query: Query, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:
        """The documents that a rewritten query matches, whatever their scores; `among` is as in `scores`.

        Only a `min_score` looks at scores. The boosts outside count for it, even where they count for nothing else:
        Lucene hands boosts down to filters too.
        """
        match query:
            case Leaf():
                return query.mask(self._reader)
            case TermsDisjunction(field, terms):
                mask = np.zeros(self._count, bool)
                mask[self._reader.fields[field].documents_with_terms(terms)] = True
                return mask
            case Boost(inner, factor):
                return self.matching(inner, np.float32(factor) * boost, among)
            case Constant(inner) | Boosting(positive=inner):
                return self.matching(inner, among=among)
            case FunctionScore(min_score=None):
                return self.matching(query.query, boost, among)
            case FunctionScore():
                return self.scores(query, boost, among).mask()
            case DisMax(queries, _):
                return self._any(queries, boost, among)
            case Bool():
                return self._matching_bool(query, boost, among)
            case _:
                assert_never(query)

    # Bool

    def _bool(self, query: Bool, boost: np.float32, among: Mask | None) -> Scores:
        if not looks_at_values(query):
            return self._all_of_bool(query, boost, among)
        # It makes a difference which documents come to be scored.
        among = self._matching_bool(query, boost, among)
        scores = self._all_of_bool(query, boost, among)
        return restricted(scores, scores.mask() & among)

    def _all_of_bool(self, query: Bool, boost: np.float32, among: Mask | None) -> Scores:
        scores = self._positive(query, boost, among)
        if query.filter:
            mask = scores.mask()
            for clause in query.filter:
                mask = mask & self.matching(clause, boost, among)
            scores = restricted(scores, mask)
        for clause in query.must_not:
            scores = self._without(scores, clause, boost, among)
        return scores

    def _without(self, scores: Scores, excluded: Query, boost: np.float32, among: Mask | None) -> Scores:
        """The scores without the documents of a query; the arrays given may change."""
        if not isinstance(excluded, Leaf) or not excluded.has_few_documents:
            return restricted(scores, scores.mask() & ~self.matching(excluded, boost, among))
        documents = excluded.documents(self._reader)  # cheaper than a mask of all
        scores.values[documents] = 0
        if scores.matching is not None:
            scores.matching[documents] = False
        return scores

    def _positive(self, query: Bool, boost: np.float32, among: Mask | None) -> Scores:
        """What the clauses that score come to, without filters and exclusions."""
        if not query.must and not query.filter:
            return self._should(query.should, query.minimum, boost, among)
        if query.should and query.minimum == 0 and all(map(gives_nothing, query.must)):
            return Scores(self._should(query.should, 0, boost, among).values, self._rows.everything())
        required = self._must(query.must, boost, among)
        if not query.should:
            return required
        optional = self._should(query.should, query.minimum, boost, among)
        # Lucene rounds both sides before it adds them.
        values = (required.values.astype(np.float64) + optional.values).astype(np.float32)
        mask = required.mask() & optional.mask() if query.minimum > 0 else required.mask()
        return restricted(Scores(values, mask), mask)

    def _must(self, clauses: Sequence[Query], boost: np.float32, among: Mask | None) -> Scores:
        if not clauses:
            return Scores(np.zeros(self._count, np.float32), self._rows.everything())
        every = [self.scores(clause, boost, among) for clause in clauses]
        if len(every) == 1:
            return every[0]
        sums = np.zeros(self._count)
        mask = np.ones(self._count, bool)
        for scores in every:
            sums += scores.values
            mask &= scores.mask()
        return restricted(Scores(sums.astype(np.float32), mask), mask)

    def _should(
        self, clauses: Sequence[Query], minimum: int, boost: np.float32, among: Mask | None
    ) -> Scores:
        rows: list[Row] = []
        others: list[Scores] = []
        for clause in clauses:
            if (
                isinstance(clause, TermsDisjunction) and minimum <= 1
            ):  # its terms are clauses, see `disjunctions`
                rows += self._rows.of_terms(clause.field, clause.terms, boost)
                continue
            found = self._row_or_scores(clause, boost, among)
            if isinstance(found, Row):
                rows.append(found)
            else:
                others.append(found)
        scores = total(self._count, rows, others)
        if minimum <= 1:
            return scores
        counts = np.zeros(self._count, np.int32)
        for row in rows:
            counts[row.documents] += 1
        for other in others:
            counts += other.mask()
        return restricted(scores, counts >= minimum)

    def _row_or_scores(self, clause: Query, boost: np.float32, among: Mask | None) -> Row | Scores:
        clause, boost = without_boosts(clause, boost)
        if isinstance(clause, ScoredLeaf):
            return self._rows.row(clause, boost)
        if not isinstance(clause, TermsDisjunction):
            return self.scores(clause, boost, among)
        rows = self._rows.of_terms(clause.field, clause.terms, boost)
        return total_of_few(rows) or total(self._count, [row for row in rows if len(row.documents)])

    def _matching_bool(self, query: Bool, boost: np.float32, among: Mask | None) -> Mask:
        mask = self._rows.everything() if among is None else among.copy()
        # What looks at scores comes last, when it is known which documents get that far: first what excludes.
        required = [(clause, False) for clause in (*query.must, *query.filter)]
        excluded = [(clause, True) for clause in query.must_not]
        late = [(clause, out) for clause, out in (*excluded, *required) if looks_at_scores(clause)]
        soon = [(clause, out) for clause, out in (*required, *excluded) if not looks_at_scores(clause)]
        for clause, out in (*soon, *late):
            found = self.matching(clause, boost, mask)
            mask &= ~found if out else found
        minimum = query.minimum if query.must or query.filter else max(1, query.minimum)
        if minimum == 1:
            mask &= self._any(query.should, boost, mask)
        elif minimum > 1:
            counts = np.zeros(self._count, np.int32)
            for clause in query.should:
                counts += self.matching(clause, boost, mask)
            mask &= counts >= minimum
        return mask

    def _any(self, queries: Iterable[Query], boost: np.float32, among: Mask | None) -> Mask:
        mask = np.zeros(self._count, bool)
        for query in queries:
            mask |= self.matching(query, boost, among)
        return mask

    # Others

    def _boosting(self, query: Boosting, boost: np.float32, among: Mask | None) -> Scores:
        positive = self.scores(query.positive, among=among)
        factors = np.where(self.matching(query.negative, among=among), query.factor, 1.0)
        values = (positive.values.astype(np.float64) * factors * float(boost)).astype(np.float32)
        return Scores(values, positive.mask())

    def _functions(self, query: FunctionScore, boost: np.float32, among: Mask | None) -> Scores:
        inner = self.scores(query.query, boost, among)
        mask = inner.mask()
        if among is not None:
            mask = mask & among
        documents = np.flatnonzero(mask)
        applies = [
            None if function.filter is None else self.matching(function.filter, among=mask)[documents]
            for function in query.functions
        ]
        values = np.zeros(self._count, np.float32)
        values[documents] = compound.function_scores(
            self._reader, query, documents, inner.values[documents], applies
        )
        if query.min_score is not None:
            mask = mask & (values >= np.float32(query.min_score))
        return restricted(Scores(values, mask), mask)

    def _constant(self, mask: Mask, boost: np.float32) -> Scores:
        return Scores(mask * boost, mask)


Answer = tuple[Numbers, Float32s]
"""The best documents of a query and their scores."""

NOTHING: Answer = np.empty(0, np.int32), np.empty(0, np.float32)
"""The answer to what no document matches."""

Packed = tuple[Numbers, Float32s, list[int]]
"""Answers one after the other, and how many documents each has: a process sends few objects to another."""


def packed(answers: Sequence[Answer]) -> Packed:
    """Answers, to be sent from process to process."""
    if not answers:
        return *NOTHING, []
    documents, scores = zip(*answers, strict=True)
    return np.concatenate(documents), np.concatenate(scores), list(map(len, documents))


def unpacked(sent: Packed) -> list[Answer]:
    """The answers that were sent."""
    documents, scores, sizes = sent
    ends = list(accumulate(sizes))
    return [
        (documents[end - size : end], scores[end - size : end]) for end, size in zip(ends, sizes, strict=True)
    ]


class Memory:
    """The answers of bodies, eight bytes a hit; once they take `size` bytes no more are kept."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._answers: dict[bytes, Answer] = {}

    def keys(self, bodies: Sequence[Body]) -> list[bytes]:
        """What the answers of bodies are known by."""
        return [
            hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).digest()
            for body in bodies
        ]

    def get(self, key: bytes) -> Answer | None:
        """An answer, if it is known."""
        return self._answers.get(key)

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer, if there is room."""
        size = sum(part.nbytes for part in answer) + len(key)
        if size <= self._left and key not in self._answers:
            self._left -= size
            documents, scores = answer
            self._answers[key] = documents.copy(), scores.copy()  # not the whole batch that it is part of


NOT_MATCHING = np.float32(-1)  # no query gives a negative score

SAMPLED = 16
"""Every SAMPLED-th document is looked at to estimate a score."""

_LARGEST_BITS = np.int64(0x7FFFFFFF)


def best(scores: Scores, ranks: Numbers, size: int) -> NDArray[np.intp]:
    """The first `size` documents that match, best first; `ranks` orders the documents by id.

    The bits of a float32 that is not negative order as the float does, so score and rank of id make one
    integer, by which everything is selected and sorted.
    """
    if size == 0:
        return np.empty(0, np.intp)
    candidates = promising(scores.values, size)
    if candidates is None:
        candidates = _sufficient(scores, size)
    return candidates[first(scores.values[candidates], ranks[candidates], size)]


def first(values: Float32s, ranks: Numbers, size: int) -> NDArray[np.intp]:
    """The places of the first `size` of some scores, none of them negative, best first, as `best` has them."""
    keys = (_LARGEST_BITS - values.view(np.int32).astype(np.int64)) << 32 | ranks
    if len(keys) <= size:
        return keys.argsort()
    chosen = np.argpartition(keys, size)[:size]
    return chosen[keys[chosen].argsort()]


def behind(scores: Scores, ranks: Numbers, score: float, place: int) -> Scores:
    """The scores of what comes after a score and, of documents with the same score, of ids from a place on."""
    bound = np.float32(score)
    rest = scores.mask() & ((scores.values < bound) | ((scores.values == bound) & (ranks >= place)))
    return Scores(np.where(rest, scores.values, np.float32(0)), rest)


def promising(values: Float32s, size: int) -> NDArray[np.intp] | None:
    """A few more documents than the best `size`, all of them matching; None when a sample does not tell them.

    The score that about one and a half times `size` documents reach is estimated from every sixteenth document.
    Whether enough documents reach the score is counted, so that the estimate decides on the time only.
    """
    sample = values[::SAMPLED]
    expected = size / SAMPLED
    place = int(expected + 3 * math.sqrt(expected)) + 1
    if 2 * place > len(sample):
        return None
    bound = np.partition(sample, len(sample) - place)[len(sample) - place]
    if not bound > 0:
        return None
    candidates = np.flatnonzero(values >= bound)
    return candidates if len(candidates) >= size else None


def _sufficient(scores: Scores, size: int) -> NDArray[np.intp]:
    """The matching documents with no less than the score of the last one of the best `size`."""
    values = np.where(scores.mask(), scores.values, NOT_MATCHING)
    bound = np.float32(0)
    if size < len(values):
        bound = max(np.partition(values, len(values) - size)[len(values) - size], bound)
    return np.flatnonzero(values >= bound)
