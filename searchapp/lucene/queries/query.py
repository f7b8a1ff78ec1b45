"""Lucene's queries as values: leaves, queries made of others, and their union `Query`.

A leaf reads, matches, scores, explains and highlights itself; a `ScoredLeaf` is scored by BM25. The other classes
hold queries. Code with one branch for each kind ends in `assert_never`, so mypy reports a forgotten kind. Equal
queries are equal values, on which rewriting relies as Lucene's does. Boosts are float32 held in floats and are
multiplied in float32. Values of explanations are float32 as a rule, printed as the shortest decimal that is the
same float32.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, ClassVar, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters, similarity
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import FieldReader, IndexReader, Mask, Postings
from searchapp.lucene.parameters import printed
from searchapp.lucene.similarity import ONE
from searchapp.model import Explanation, Token


def shortest(value: float | np.float32) -> float:
    """The decimal by which Java prints a float32."""
    return float(printed(value))


def exact(explanation: Explanation) -> float:
    """The number that an explanation's value stands for: Lucene's few doubles are printed in full."""
    value = explanation.value
    return float(np.float32(value)) if shortest(value) == value else value


def explained(
    value: float | np.float32, description: str, details: Iterable[Explanation] = ()
) -> Explanation:
    """An explanation whose value is a float32."""
    return Explanation(shortest(value), description, tuple(details))


def constant(boost: np.float32, name: str) -> Explanation:
    """The explanation of a query by whose name all documents have one score, the boost."""
    return explained(boost, name if boost == 1 else f"{name}^{printed(boost)}")


Places = Sequence[tuple[int, int]]
"""First and last positions of the parts of a text."""

EVERYWHERE: Places = ((0, sys.maxsize),)


class Leaf:
    """A query without others inside, which gives the same score to each document it matches; a `ScoredLeaf` does not.

    Equal leaves are equal values. The class is abstract by its methods and not by its metaclass, which would make each
    `isinstance` of a clause slower, and a topic has hundreds of clauses.
    """

    __slots__ = ()

    matches_nothing: ClassVar[bool] = False
    """Whether no document matches, whatever the index holds."""

    has_few_documents: ClassVar[bool] = False
    """Whether it is cheaper, as a rule, to go through the leaf's documents than through all of the index."""

    @property
    def clause_count(self) -> int:
        """How many clauses Elasticsearch counts the leaf as."""
        return 1

    @property
    def is_multi_term(self) -> bool:
        """Whether Lucene first has to look for the terms that the leaf stands for (`MultiTermQuery`)."""
        return False

    # Simplifying

    def settled(self, reader: IndexReader) -> Leaf:  # noqa: ARG002
        """The leaf that Lucene makes of this one once the index is known: see `settle`."""
        return self

    def rewritten(self) -> Leaf:
        """The leaf that Lucene scores in the place of this one: see `rewrite`."""
        return self

    # Matching

    @abstractmethod
    def documents(self, reader: IndexReader) -> NDArray[Any]:
        """The documents that match, in any order; a document may come several times."""

    def mask(self, reader: IndexReader) -> Mask:
        """The documents that match, as one truth value for each document of the index."""
        mask = np.zeros(reader.count, bool)
        mask[self.documents(reader)] = True
        return mask

    # Showing

    @abstractmethod
    def described(self, schema: Schema) -> str:
        """The leaf in Lucene's notation (`Query.toString`).

        Raises:
            EngineRefused: the notation is not known here.
        """

    def described_as_filter(self, schema: Schema) -> str:
        """What explanations show of a leaf that only filters."""
        return self.described(schema)

    def described_as_constant(self, schema: Schema) -> str:
        """What explanations show of a leaf that gives each document the same score."""
        return self.described(schema)

    def explanation(self, reader: IndexReader, document: int, boost: np.float32) -> Explanation | None:
        """How the leaf comes to the score of a document; None when the document does not match.

        Raises:
            EngineRefused: the explanation is not known here.
        """
        if not self.mask(reader)[document]:
            return None
        return constant(boost, self.described_as_constant(reader.schema))


@dataclass(frozen=True, slots=True)
class MarkedLeaf(Leaf):
    """A leaf on the terms of a field, which highlighting marks in the field's text."""

    field: str

    @abstractmethod
    def places(self, tokens: Sequence[Token]) -> Mapping[str, Places]:
        """The terms to mark among the tokens of a text, and in which places: `EVERYWHERE`, or where a phrase stands.

        Terms that the text does not have make no difference.
        """


EXACT_LENGTHS = 39
"""The greatest code of a length up to which Lucene calls the length exact."""

_TF = "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:"
_IDF = "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:"


@dataclass(frozen=True, slots=True)
class ScoredLeaf(MarkedLeaf):
    """A leaf whose score is BM25 of how often it occurs in a document's field."""

    @abstractmethod
    def postings(self, field: FieldReader) -> Postings:
        """The documents where the leaf occurs, and how often in each."""

    @abstractmethod
    def idf(self, field: FieldReader) -> np.float32:
        """The inverse document frequency."""

    @abstractmethod
    def frequency(self, field: FieldReader, document: int) -> float:
        """How often the leaf occurs in a document."""

    @abstractmethod
    def explained_idf(self, field: FieldReader) -> Explanation:
        """How the inverse document frequency came about."""

    def described_frequency(self, frequency: np.float32) -> str:
        """The words by which Lucene calls the frequency."""
        return f"termFreq={printed(frequency)}"

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return self.postings(reader.fields[self.field]).documents

    def explanation(self, reader: IndexReader, document: int, boost: np.float32) -> Explanation | None:
        field = reader.fields[self.field]
        frequency = self.frequency(field, document)
        if not frequency:
            return None
        weight = field.similarity.weight(boost, self.idf(field))
        freq, inverse = np.full(1, frequency, np.float32), field.inverses(np.array([document], np.int32))
        score = similarity.scores(weight, freq, inverse)[0]
        factor = field.similarity.boost(boost)
        details = [explained(factor, "boost")] if factor != 1 else []
        details += [self.explained_idf(field), self._explained_tf(field, document, freq[0], inverse[0])]
        result = explained(
            score, f"score(freq={printed(frequency)}), computed as boost * idf * tf from:", details
        )
        name = self.described(reader.schema)
        where = f"{name} in {reader.first + document}"
        return explained(score, f"weight({where}) [PerFieldSimilarity], result of:", [result])

    def _explained_tf(
        self, field: FieldReader, document: int, frequency: np.float32, inverse: np.float32
    ) -> Explanation:
        bm25 = field.similarity
        code = field.length_code(document)
        approximate = " (approximate)" if code > EXACT_LENGTHS else ""
        details = [
            explained(frequency, self.described_frequency(frequency)),
            explained(bm25.k1, "k1, term saturation parameter"),
            explained(bm25.b, "b, length normalization parameter"),
            explained(int(similarity.LENGTHS[code]), f"dl, length of field{approximate}"),
            explained(field.statistics.average_length, "avgdl, average length of field"),
        ]
        return explained(ONE - ONE / (ONE + frequency * inverse), _TF, details)


def explained_idf_of(document_frequency: int, field: FieldReader) -> Explanation:
    """How the idf of what BM25 believes to be in this many documents of a field came about."""
    counts = (
        Explanation(document_frequency, "n, number of documents containing term"),
        Explanation(field.statistics.documents, "N, total number of documents with field"),
    )
    return explained(field.idf(document_frequency), _IDF, counts)


def frequency_of(term: str, field: FieldReader, document: int) -> float:
    """How often a term occurs in a document."""
    postings = field.postings(term)
    place = int(np.searchsorted(postings.documents, document))
    if place == len(postings.documents) or postings.documents[place] != document:
        return 0.0
    return float(postings.frequencies[place])


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


def boosted(query: Query, given: Mapping[str, Any], name: str) -> Query:
    """The query with the boost among its parameters."""
    return multiplied_by(query, parameters.boost(given.get("boost", 1), f"the query `{name}`"))


def multiplied_by(query: Query, boost: float) -> Query:
    """The query with a boost."""
    if boost == 1 or (isinstance(query, Leaf) and query.matches_nothing):
        return query
    return Boost(query, parameters.finite(boost, "the boost of a query"))


def without_boosts(query: Query, boost: np.float32 = ONE) -> tuple[Query, np.float32]:
    """What is inside the boosts of a query, and their product with the one outside, as a `Scorer` multiplies them."""
    while isinstance(query, Boost):
        boost, query = np.float32(query.boost) * boost, query.query
    return query, boost


def product(first: float, second: float) -> float:
    """The product of two boosts."""
    return float(np.float32(first) * np.float32(second))
