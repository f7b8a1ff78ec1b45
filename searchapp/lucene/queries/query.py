"""Lucene's queries as values: what every query does, and the queries that others are made of.

A query rewrites, matches, scores, explains and shows itself; a compound one names the queries inside it by `children`.
Equal queries are equal values, on which rewriting relies as Lucene's does. Boosts are float32 held in floats and are
multiplied in float32. Values of explanations are float32 as a rule, printed as the shortest decimal that is the same
float32.
"""

from __future__ import annotations

import operator
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters, similarity
from searchapp.lucene.errors import invalid
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import FieldReader, IndexReader, Mask, Postings
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.scores import ScoreRow, ScoreRows, Scores, of_constant, total
from searchapp.lucene.records import Explanation, Token
from searchapp.lucene.similarity import ONE

MOST_CLAUSES = 8_192
"""What a server with 512 MB of heap and two cores allows.

Each server has a limit of its own, of 1,024 or more: its heap in MB times 64, divided by its search threads. The
embedded engine has one that is the same everywhere.
"""


def require_few(count: int) -> None:
    """Refuse a query with more clauses than a server allows.

    Raises:
        Refused: it has too many.
    """
    if count > MOST_CLAUSES:
        raise invalid(f"a query has {count:,} clauses, and at most {MOST_CLAUSES:,} are allowed")


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


PositionSpans = Sequence[tuple[int, int]]
"""First and last positions of the parts of a text."""

EVERYWHERE: PositionSpans = ((0, sys.maxsize),)


class Query:
    """What the engine asks of every query; `scores` and what follows it are asked of a rewritten query.

    The class is abstract by its methods and not by its metaclass, which would make each `isinstance` of a clause
    slower, and a topic has hundreds of clauses.
    """

    __slots__ = ()

    matches_nothing: ClassVar[bool] = False
    """Whether no document matches, whatever the index holds."""

    # Queries inside

    def children(self) -> tuple[Query, ...]:
        """The queries that this one is made of."""
        return ()

    def with_children(self, children: tuple[Query, ...]) -> Query:  # noqa: ARG002
        """The same query made of others, given in the order of `children`."""
        return self

    @property
    def clause_count(self) -> int:
        """How many clauses Elasticsearch counts the query as (`MaxClauseCountQueryVisitor`).

        Raises:
            Refused: a query inside has too many.
        """
        return sum(child.clause_count for child in self.children())

    @property
    def reads_values(self) -> bool:
        """Whether scores depend on the values of fields, which not every document need have."""
        return any(child.reads_values for child in self.children())

    @property
    def reads_scores(self) -> bool:
        """Whether the documents that match depend on their scores."""
        return any(child.reads_scores for child in self.children())

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        """The leaves inside that give the query hits, and their boosts: what highlighting marks."""
        for child in self.children():
            yield from child.leaves(boost)

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """The field, the terms and the boost of each clause of terms whose scores count."""
        for child in self.children():
            yield from child.scored_terms(boost)

    # Simplifying

    def resolved(self, reader: IndexReader) -> Query:
        """The query as it was written, with what Lucene learns from the index: that all documents match, or none."""
        return self.with_children(tuple(child.resolved(reader) for child in self.children()))

    def rewritten(self) -> Query:
        """What one call of `Query.rewrite` makes of the query: the query itself when nothing is left to do.

        Lucene takes a step everywhere in a query before it takes the next one anywhere: the order in which boosts are
        multiplied depends on it, and what becomes of clauses whose scores nobody looks at.
        """
        children = self.children()
        simpler = each(one_step, children)
        return self if simpler is children else self.with_children(simpler)

    def only_matching(self) -> Query:
        """What is left of the query inside a constant score, after a step."""
        return self

    # Matching and scoring

    @abstractmethod
    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:
        """The documents that match, whatever their scores; `among` is as in `scores`.

        Only a `min_score` looks at scores. The boosts outside count for it, even where they count for nothing else:
        Lucene hands boosts down to filters too.
        """

    @abstractmethod
    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:
        """The scores of all documents, the query's own boost multiplied by `boost`.

        `among` marks the documents that count, None all documents: scores of other documents are not looked at and may
        be wrong, and values that they lack are not missed.

        Raises:
            Refused: the scores of some document can't be computed.
        """

    # Showing

    @abstractmethod
    def notation(self, schema: Schema) -> str:
        """The query in Lucene's notation (`Query.toString`).

        Raises:
            Refused: the notation is not known here.
        """

    def inner_notation(self, schema: Schema) -> str:
        """The query as a part of another one in Lucene's notation."""
        return self.notation(schema)

    def filter_notation(self, schema: Schema) -> str:
        """What explanations show of a query that only filters and is `unscored`."""
        return self.notation(schema)

    def unscored(self) -> Query:
        """The query inside whose weight Lucene makes when it only filters."""
        return self

    @abstractmethod
    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        """How the query comes to the score of a document; None when the document does not match.

        Raises:
            Refused: the explanation is not known here.
        """


def each(step: Callable[[Query], Query], queries: tuple[Query, ...]) -> tuple[Query, ...]:
    """The queries after a step, which are the same tuple when nothing is left to do in any."""
    simpler = tuple(map(step, queries))
    return queries if all(map(operator.is_, queries, simpler)) else simpler


def one_step(query: Query) -> Query:
    """See `Query.rewritten`."""
    return query.rewritten()


def rewrite(query: Query) -> Query:
    """The query that Lucene scores in the place of this one (`Query.rewrite`, Lucene 10).

    The simplifications matter to the last bit: a separate clause is rounded to float32 before it is added to its
    neighbours, a merged clause is not. Explanations show the simplified query.
    """
    simpler = query.rewritten()
    while simpler is not query:
        query, simpler = simpler, simpler.rewritten()
    return query


def only(document: int, rows: ScoreRows) -> Mask:
    """The mark of one document, to compute nothing that counts for others."""
    among = np.zeros(rows.count, bool)
    among[document] = True
    return among


class Leaf(Query):
    """A query without others inside, which gives the same score to each document it matches; a `ScoredLeaf` does not.

    Equal leaves are equal values.
    """

    __slots__ = ()

    has_few_documents: ClassVar[bool] = False
    """Whether it is cheaper, as a rule, to go through the leaf's documents than through all of the index."""

    @property
    def clause_count(self) -> int:
        return 1

    @property
    def is_multi_term(self) -> bool:
        """Whether Lucene first has to look for the terms that the leaf stands for (`MultiTermQuery`)."""
        return False

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        yield self, boost

    def rewritten(self) -> Query:
        return self

    @abstractmethod
    def documents(self, reader: IndexReader) -> NDArray[Any]:
        """The documents that match, in any order; a document may come several times."""

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:  # noqa: ARG002
        mask = np.zeros(rows.count, bool)
        mask[self.documents(rows.reader)] = True
        return mask

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:  # noqa: ARG002
        return of_constant(self.matching(rows), boost)

    def constant_notation(self, schema: Schema) -> str:
        """What explanations show of a leaf that gives each document the same score."""
        return self.notation(schema)

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        if not self.matching(rows)[document]:
            return None
        return constant(boost, self.constant_notation(rows.reader.schema))


@dataclass(frozen=True, slots=True)
class MarkedLeaf(Leaf):
    """A leaf on the terms of a field, which highlighting marks in the field's text."""

    field: str

    @abstractmethod
    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
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

    def frequency_notation(self, frequency: np.float32) -> str:
        """The words by which Lucene calls the frequency."""
        return f"termFreq={printed(frequency)}"

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return self.postings(reader.fields[self.field]).documents

    def index_frequency(self, reader: IndexReader, here: int) -> int:
        """In how many documents of the whole index the leaf is that is in so many `here`."""
        return reader.sum_of_parts(here, lambda part: len(self.postings(part.fields[self.field]).documents))

    def row(self, rows: ScoreRows, boost: np.float32) -> ScoreRow:
        """The scores of the documents where the leaf occurs."""

        def compute() -> ScoreRow:
            field = rows.reader.fields[self.field]
            found = self.postings(field)
            weight = field.similarity.weight(boost, self.idf(field))
            scores = similarity.scores(weight, found.frequencies, field.inverses(found.documents))
            frequency = self.index_frequency(rows.reader, len(scores))
            return rows.row(found.documents, scores, bool(scores.all()), frequency)

        return rows.kept((self, float(boost)), compute)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:  # noqa: ARG002
        return total(rows.count, [self.row(rows, boost)])

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        reader = rows.reader
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
        name = self.notation(reader.schema)
        where = f"{name} in {reader.first + document}"
        return explained(score, f"weight({where}) [PerFieldSimilarity], result of:", [result])

    def _explained_tf(
        self, field: FieldReader, document: int, frequency: np.float32, inverse: np.float32
    ) -> Explanation:
        bm25 = field.similarity
        code = field.length_code(document)
        approximate = " (approximate)" if code > EXACT_LENGTHS else ""
        details = [
            explained(frequency, self.frequency_notation(frequency)),
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


@dataclass(frozen=True, slots=True)
class Around(Query):
    """A query made of another one, with the same hits."""

    query: Query

    def children(self) -> tuple[Query, ...]:
        return (self.query,)

    def only_matching(self) -> Query:
        return self.query

    def unscored(self) -> Query:
        return self.query.unscored()


@dataclass(frozen=True, slots=True)
class Constant(Around):
    """The documents of a query, all with the score 1."""

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return Constant(children[0])

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:  # noqa: ARG002
        yield from ()  # a constant's score is not that of what is inside

    def rewritten(self) -> Query:
        inner = self.query.rewritten().only_matching()
        if inner.matches_nothing:
            return inner
        return self if inner is self.query else Constant(inner)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:  # noqa: ARG002
        return self.query.matching(rows, among=among)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:
        return of_constant(self.matching(rows, among=among), boost)

    def notation(self, schema: Schema) -> str:
        return f"ConstantScore({self.query.notation(schema)})"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        if not self.matching(rows, among=only(document, rows))[document]:
            return None
        return constant(boost, self.notation(rows.reader.schema))


@dataclass(frozen=True, slots=True)
class Boost(Around):
    """A query whose scores are multiplied, before its term weights are rounded."""

    boost: float

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return Boost(children[0], self.boost)

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        return self.query.leaves(product(self.boost, boost))

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        return self.query.scored_terms(product(self.boost, boost))

    def rewritten(self) -> Query:
        inner, boost = self.query.rewritten(), self.boost
        if boost == 1 or inner.matches_nothing:
            return inner
        if isinstance(inner, Boost):
            return Boost(inner.query, product(boost, inner.boost))
        if boost == 0 and not isinstance(inner, Constant):
            return Boost(Constant(inner), 0.0)
        return self if inner is self.query else Boost(inner, boost)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:
        return self.query.matching(rows, np.float32(self.boost) * boost, among)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:
        return self.query.scores(rows, np.float32(self.boost) * boost, among)

    def notation(self, schema: Schema) -> str:
        return f"({self.query.notation(schema)})^{printed(self.boost)}"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        return self.query.explanation(rows, document, np.float32(self.boost) * boost)


def boosted(query: Query, given: Mapping[str, Any], name: str) -> Query:
    """The query with the boost among its parameters."""
    return multiplied_by(query, parameters.boost(given.get("boost", 1), f"the query `{name}`"))


def multiplied_by(query: Query, boost: float) -> Query:
    """The query with a boost."""
    if boost == 1 or query.matches_nothing:
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
