"""Lucene's queries as values: what a search body comes down to before it is scored.

A query is a leaf, of which `leaves` has one in each module, or it is of one of the classes here, which hold other
queries. There is no other kind: where code does something else for each kind, `assert_never` lets mypy check that none
is forgotten.

Equal queries are equal values, which the rewriting relies on as Lucene's does. Boosts are float32 held in floats, see
`boosts`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TypeAlias, assert_never

from searchapp.engines.embedded.queries.leaf import Leaf


@dataclass(frozen=True, slots=True, eq=False)
class TermsDisjunction:
    """Different terms of one field of which any may match: `Bool(should=...)` of them, in one value.

    Topics consist of little else, and of hundreds of terms: to handle each term as a query costs more time than to
    score it. Lucene has no such query: `disjunctions` spells one out.
    """

    field: str
    terms: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TermsDisjunction)
            and self.field == other.field
            and set(self.terms) == set(other.terms)
        )

    def __hash__(self) -> int:
        return hash((self.field, len(self.terms)))  # enough to tell most apart, without looking at every term


@dataclass(frozen=True, slots=True)
class Constant:
    """The documents of a query, all with the score 1."""

    query: Query


@dataclass(frozen=True, slots=True)
class Boost:
    """A query whose scores are multiplied, before its term weights are rounded."""

    query: Query
    boost: float


@dataclass(frozen=True, slots=True, eq=False)
class Bool:
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

    @property
    def is_pure_disjunction(self) -> bool:
        return not (self.must or self.must_not or self.filter) and self.minimum <= 1

    def __len__(self) -> int:
        return len(self.must) + len(self.must_not) + len(self.should) + len(self.filter)


@dataclass(frozen=True, slots=True, eq=False)
class DisMax:
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
class Boosting:
    """The documents of `positive`, those that match `negative` too with `factor` times the score.

    `as_written` is `negative` as the search body has it, which explanations show.
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
class FunctionScore:
    """A query whose scores are combined with functions of the document.

    `single` says that there is at most one function and that the function is for all documents, which
    Elasticsearch explains differently.
    """

    query: Query
    functions: tuple[Function, ...]
    score_mode: str
    boost_mode: str
    max_boost: float
    min_score: float | None
    single: bool


Query: TypeAlias = Leaf | TermsDisjunction | Constant | Boost | Bool | DisMax | Boosting | FunctionScore
"""Every query."""


def inside(query: Query) -> tuple[Query, ...]:
    """The queries that a query is made of, the filters of its functions included."""
    match query:
        case Leaf() | TermsDisjunction():
            return ()
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
        case _:
            assert_never(query)
