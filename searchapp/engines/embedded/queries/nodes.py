"""Lucene's queries as values: what a search body comes down to before it is scored.

Equal queries are equal values, which the rewriting relies on as Lucene's does. Boosts are float32 held in
floats, multiplied in float32.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from itertools import chain

import numpy as np


class Query:
    """Base of all queries."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Term(Query):
    """A term, scored by BM25."""

    field: str
    term: str


@dataclass(frozen=True, slots=True, eq=False)
class Bag(Query):
    """Different terms of one field of which any may match: `Bool(should=...)` of them, in one value.

    Topics consist of little else, and of hundreds of terms: to handle each of them as a query costs more time
    than to score it.
    """

    field: str
    terms: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bag) and self.field == other.field and set(self.terms) == set(other.terms)

    def __hash__(self) -> int:
        return hash((self.field, len(self.terms)))  # enough to tell most apart, without looking at every term

    def spelled_out(self) -> Bool:
        return Bool(should=tuple(Term(self.field, term) for term in self.terms))


@dataclass(frozen=True, slots=True)
class Synonym(Query):
    """Terms on one position, scored as if they were one: frequencies summed, the greatest document frequency."""

    field: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrase(Query):
    """Terms at relative positions, scored by the number of places where all stand."""

    field: str
    terms: tuple[str, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MatchAll(Query):
    """Every document, with the score 1; of a `late` one Elasticsearch finds out when Lucene's query is made."""

    late: bool = dataclass_field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class MatchNone(Query):
    """No document.

    Elasticsearch sees most such queries as it reads them, and may drop what is around them too. `late` are those of
    which it finds out when Lucene's query is made.
    """

    late: bool = False


def is_nothing(query: Query) -> bool:
    """Whether Elasticsearch sees as it reads a query that no document matches."""
    return isinstance(query, MatchNone) and not query.late


@dataclass(frozen=True, slots=True)
class Terms(Query):
    """Documents that have one of the terms, with the score 1."""

    field: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prefix(Query):
    """Documents that have a term with the prefix, with the score 1."""

    field: str
    prefix: str


def _signed(numbers: Iterable[float]) -> tuple[tuple[float, float], ...]:
    """Numbers of which 0.0 and -0.0 differ, as they do to Lucene."""
    return tuple((number, math.copysign(1, number)) for number in numbers)


@dataclass(frozen=True, slots=True, eq=False)
class Between(Query):
    """Documents that have a number from `low` to `high`, both included, with the score 1.

    Integers have bounds even where a query names none. `whole` says that all of the field's numbers are. `is_point`
    marks one integer asked for as such, which Elasticsearch looks up in another way than a range.
    """

    field: str
    low: float
    high: float
    whole: bool = False
    is_point: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Between) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.field, self.whole, self.is_point, _signed((self.low, self.high))


@dataclass(frozen=True, slots=True, eq=False)
class OneOf(Query):
    """Documents that have one of the numbers, with the score 1."""

    field: str
    numbers: tuple[float, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneOf) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.field, _signed(self.numbers)


@dataclass(frozen=True, slots=True)
class Exists(Query):
    """Documents that have a value in the field, with the score 1."""

    field: str


@dataclass(frozen=True, slots=True)
class Ids(Query):
    """The documents of these ids, with the score 1."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constant(Query):
    """The documents of a query, all with the score 1."""

    query: Query


@dataclass(frozen=True, slots=True)
class Boost(Query):
    """A query whose scores are multiplied, before its term weights are rounded."""

    query: Query
    boost: float


@dataclass(frozen=True, slots=True, eq=False)
class Bool(Query):
    """Clauses that must, should, must not match; a filter must match without counting.

    The order of clauses makes no difference, as in Lucene: two such queries beside each other become one. At
    least `minimum` of `should` must match; 0 still asks for one of them when nothing else must match.
    """

    must: tuple[Query, ...] = ()
    must_not: tuple[Query, ...] = ()
    should: tuple[Query, ...] = ()
    filter: tuple[Query, ...] = ()
    minimum: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bool) and self._without_order() == other._without_order()

    def __hash__(self) -> int:
        return hash((self.minimum, *(frozenset(clauses) for clauses in self._clauses())))

    def _clauses(self) -> tuple[tuple[Query, ...], ...]:
        return self.must, self.must_not, self.should, self.filter

    def _without_order(self) -> tuple[int, list[Counter[Query]]]:
        return self.minimum, [Counter(clauses) for clauses in self._clauses()]

    def spelled_out(self) -> Bool:
        """The same query without bags among what should match, where those are no clauses of their own.

        Lucene knows no bags: it lets the clauses of a disjunction inside another one join those of the outer.
        """
        if self.minimum > 1 or not any(isinstance(clause, Bag) for clause in self.should):
            return self
        should = (
            clause.spelled_out().should if isinstance(clause, Bag) else (clause,) for clause in self.should
        )
        return replace(self, should=tuple(chain.from_iterable(should)))

    @property
    def is_pure_disjunction(self) -> bool:
        return not (self.must or self.must_not or self.filter) and self.minimum <= 1

    def __len__(self) -> int:
        return len(self.must) + len(self.must_not) + len(self.should) + len(self.filter)


@dataclass(frozen=True, slots=True, eq=False)
class DisMax(Query):
    """The best of several queries, in any order, plus `tie_breaker` times the others."""

    queries: tuple[Query, ...]
    tie_breaker: float

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DisMax)
            and self.tie_breaker == other.tie_breaker
            and Counter(self.queries) == Counter(other.queries)
        )

    def __hash__(self) -> int:
        return hash((self.tie_breaker, frozenset(self.queries)))


@dataclass(frozen=True, slots=True)
class Boosting(Query):
    """The documents of `positive`, those that match `negative` too with `factor` times the score.

    `as_written` is `negative` before anything is done to it, as explanations show it.
    """

    positive: Query
    negative: Query
    factor: float
    as_written: Query


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A number of the document's as a factor: modifier(value * factor).

    Two that differ in `missing` only are the same to Elasticsearch: as clauses of one `bool` the first one counts
    twice. `mapped` says whether the mapping has the field at all.
    """

    field: str
    factor: float
    modifier: str
    missing: float | None = dataclass_field(compare=False)
    mapped: bool = True


@dataclass(frozen=True, slots=True)
class Function:
    """One function of `function_score`: for the documents of `filter`, a weight times a field's value."""

    filter: Query | None
    weight: float | None
    value: FieldValue | None


@dataclass(frozen=True, slots=True)
class FunctionScore(Query):
    """A query whose scores are combined with functions of the document.

    `single` says that there is at most one function and that it is for all documents, which Elasticsearch
    explains differently.
    """

    query: Query
    functions: tuple[Function, ...]
    score_mode: str
    boost_mode: str
    max_boost: float
    min_score: float | None
    single: bool


def inside(query: Query) -> tuple[Query, ...]:
    """The queries that a query is made of, the filters of its functions included."""
    match query:
        case Boost(inner, _) | Constant(inner):
            return (inner,)
        case Bool():
            return (*query.must, *query.must_not, *query.should, *query.filter)
        case DisMax(queries, _):
            return queries
        case Boosting(positive, negative):
            return positive, negative
        case FunctionScore(inner, functions):
            return (inner, *(one.filter for one in functions if one.filter is not None))
    return ()


def looks_at_values(query: Query) -> bool:
    """Whether scores depend on the values of fields, which not every document need have."""
    if isinstance(query, Term | Bag):  # most are
        return False
    if isinstance(query, FunctionScore) and any(one.value is not None for one in query.functions):
        return True
    return any(map(looks_at_values, inside(query)))


def looks_at_scores(query: Query) -> bool:
    """Whether the documents that match depend on their scores."""
    if isinstance(query, FunctionScore) and query.min_score is not None:
        return True
    return any(map(looks_at_scores, inside(query)))


def leaves(query: Query, boost: float = 1.0) -> Iterator[tuple[Query, float]]:
    """The queries inside a query that give it hits, down to terms, and their boosts.

    What must not match is left out, and so is the filter of a function. Elasticsearch rewrites a `function_score` right
    inside another one before it looks into it, and so finds no prefixes and lists of terms there.
    """
    match query:
        case Boost(inner, factor):
            yield from leaves(inner, multiplied(factor, boost))
        case FunctionScore(query=FunctionScore() as inner):
            for leaf, its_boost in leaves(inner, boost):
                if not isinstance(leaf, Prefix) and not (isinstance(leaf, Terms) and len(leaf.terms) > 1):
                    yield leaf, its_boost
        case Constant(inner) | FunctionScore(query=inner) | Boosting(positive=inner):
            yield from leaves(inner, boost)
        case Bool():
            for inner in (*query.must, *query.should, *query.filter):
                yield from leaves(inner, boost)
        case DisMax(queries, _):
            for inner in queries:
                yield from leaves(inner, boost)
        case _:
            yield query, boost


def scored(query: Query, boost: float = 1.0) -> Iterator[tuple[Query, float]]:
    """The queries inside a query whose scores count, down to terms, and their boosts."""
    match query:
        case Boost(inner, factor):
            yield from scored(inner, multiplied(factor, boost))
        case FunctionScore(query=inner):
            yield from scored(inner, boost)
        case Boosting(positive=inner):
            yield from scored(inner)
        case Bool():
            for inner in (*query.must, *query.should):
                yield from scored(inner, boost)
        case DisMax(queries, _):
            for inner in queries:
                yield from scored(inner, boost)
        case _:
            yield query, boost


def multiplied(first: float, second: float) -> float:
    """The product of two boosts, in float32."""
    return float(np.float32(first) * np.float32(second))
