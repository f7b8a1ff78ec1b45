"""The interface of queries, and the parser of Elasticsearch's query DSL.

Queries are values: rewriting compares them for equality, as Lucene does. Boosts are float32 values held in floats.
"""

from __future__ import annotations

import operator
import sys
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from time import time_ns
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters, similarity
from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import ErrorCollector, Refused, Reported, invalid, known_only, unsupported
from searchapp.lucene.index.mapping import KEYED, ROOT, Field, Schema, objects
from searchapp.lucene.index.reader import FieldReader, IndexReader, Mask, Postings
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.scores import ScoreRow, ScoreRows, Scores, constant_scores, total
from searchapp.lucene.records import Explanation, Token
from searchapp.lucene.similarity import BM25, ONE, BooleanSimilarity, FieldStatistics

# Limit of a server with 512 MB of heap and two cores. A server allows its heap in MB times 64, divided by its search
# threads, but at least 1,024.
MOST_CLAUSES = 8_192


def check_clause_count(count: int) -> None:
    """Reject a query with more than `MOST_CLAUSES` clauses."""
    if count > MOST_CLAUSES:
        raise invalid(f"a query has {count:,} clauses, and at most {MOST_CLAUSES:,} are allowed")


def exact_value(explanation: Explanation) -> float:
    """Return the unrounded value of an explanation."""
    value = explanation.value  # Lucene prints its few doubles in full
    return float(np.float32(value)) if float(printed(value)) == value else value


def explain(value: float | np.float32, description: str, details: Iterable[Explanation] = ()) -> Explanation:
    """Return an explanation of a float32."""
    return Explanation(float(printed(value)), description, tuple(details))


def explain_constant(boost: np.float32, name: str) -> Explanation:
    """Return the explanation of a query that scores each document with the boost."""
    return explain(boost, name if boost == 1 else f"{name}^{printed(boost)}")


PositionSpans = Sequence[tuple[int, int]]  # first and last positions of parts of a text

EVERYWHERE: PositionSpans = ((0, sys.maxsize),)


# No `abc.ABC`: its metaclass slows down `isinstance`, and a topic has hundreds of clauses.
class Query:
    """A query. Call `rewrite` before `scores` and the methods after it."""

    __slots__ = ()

    # Whether no document matches in any index.
    matches_nothing: ClassVar[bool] = False

    # Parts

    def children(self) -> tuple[Query, ...]:
        return ()

    def with_children(self, children: tuple[Query, ...]) -> Query:
        """Return the query with its children replaced, in the order of `children`."""
        return self

    @property
    def clause_count(self) -> int:
        """The number of clauses by Elasticsearch's `MaxClauseCountQueryVisitor`."""
        return sum(child.clause_count for child in self.children())

    @property
    def reads_values(self) -> bool:
        """Whether scores depend on field values, which a document may lack."""
        return any(child.reads_values for child in self.children())

    @property
    def reads_scores(self) -> bool:
        """Whether the set of matching documents depends on scores."""
        return any(child.reads_scores for child in self.children())

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        """Yield the leaves that highlighting marks, with their boosts."""
        for child in self.children():
            yield from child.leaves(boost)

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """Yield field, terms and boost of each scored clause of terms."""
        for child in self.children():
            yield from child.scored_terms(boost)

    # Rewriting

    def resolved(self, reader: IndexReader) -> Query:
        """Replace the parts that match all documents of the index, or none, as Lucene does."""
        return self.with_children(tuple(child.resolved(reader) for child in self.children()))

    def rewritten(self) -> Query:
        """Return the result of one call of Lucene's `Query.rewrite`; the query itself if no step is left.

        Lucene takes a step in the whole query before the next step, which determines the products of boosts.
        """
        children = self.children()
        simpler = map_queries(rewrite_once, children)
        return self if simpler is children else self.with_children(simpler)

    def only_matching(self) -> Query:
        """Return the query inside a constant score, after one step."""
        return self

    # Matching and scoring

    @abstractmethod
    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        """Return the mask of matching documents, shape `(rows.count,)`; see `scores` for `scope`.

        Only a `min_score` reads the boost, which Lucene passes to filters too.
        """

    @abstractmethod
    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        """Return the scores of all documents; the query's own boost is multiplied by `boost`.

        Documents outside the mask `scope` may have wrong scores, and may lack the values that the query reads.
        """

    # Printing

    @abstractmethod
    def notation(self, schema: Schema) -> str:
        """Return the query in Lucene's notation (`Query.toString`)."""

    def inner_notation(self, schema: Schema) -> str:
        return self.notation(schema)

    def filter_notation(self, schema: Schema) -> str:
        """Return the notation of an `unscored` filter in explanations."""
        return self.notation(schema)

    def unscored(self) -> Query:
        """Return the inner query for which Lucene creates a weight if the query only filters."""
        return self

    @abstractmethod
    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        """Return the explanation of a document's score; None if the document does not match."""


def map_queries(step: Callable[[Query], Query], queries: tuple[Query, ...]) -> tuple[Query, ...]:
    """Apply a step to queries; return the same tuple if it changes none."""
    simpler = tuple(map(step, queries))
    return queries if all(map(operator.is_, queries, simpler)) else simpler


def rewrite_once(query: Query) -> Query:
    """Take one step of rewriting."""
    return query.rewritten()


def rewrite(query: Query) -> Query:
    """Simplify a query completely (`Query.rewrite`, Lucene 10).

    Scores depend on it: Lucene rounds a separate clause to float32 before it adds it to others, but not a merged
    clause.
    """
    simpler = query.rewritten()
    while simpler is not query:
        query, simpler = simpler, simpler.rewritten()
    return query


def document_mask(document: int, rows: ScoreRows) -> Mask:
    """Return a mask that contains one document."""
    mask = np.zeros(rows.count, bool)
    mask[document] = True
    return mask


class Leaf(Query):
    """A query without children that gives each matching document the same score, except a `ScoredLeaf`."""

    __slots__ = ()

    # Whether the leaf's documents usually cost less time than all documents of the index.
    has_few_documents: ClassVar[bool] = False

    @property
    def clause_count(self) -> int:
        return 1

    @property
    def is_multi_term(self) -> bool:
        """Whether Lucene must enumerate the terms of the leaf (`MultiTermQuery`)."""
        return False

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        yield self, boost

    def rewritten(self) -> Query:
        return self

    @abstractmethod
    def documents(self, reader: IndexReader) -> NDArray[Any]:
        """Return the matching documents, in any order, possibly with repetitions."""

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        mask = np.zeros(rows.count, bool)
        mask[self.documents(rows.reader)] = True
        return mask

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        return constant_scores(self.matching(rows), boost)

    def constant_notation(self, schema: Schema) -> str:
        """Return the notation in the explanation of a constant score."""
        return self.notation(schema)

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        if not self.matching(rows)[document]:
            return None
        return explain_constant(boost, self.constant_notation(rows.reader.schema))


@dataclass(frozen=True, slots=True)
class MarkedLeaf(Leaf):
    """A leaf on the terms of a field, which highlighting marks."""

    field: str

    @abstractmethod
    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        """Return each term to mark in a text with `EVERYWHERE` or the spans of a phrase."""


EXACT_LENGTHS = 39  # the greatest length code that Lucene's explanations call exact


@dataclass(frozen=True, slots=True)
class ScoredLeaf(MarkedLeaf):
    """A leaf whose score is the BM25 of its frequency in a field."""

    @abstractmethod
    def postings(self, field: FieldReader) -> Postings: ...

    @abstractmethod
    def idf(self, field: FieldReader) -> np.float32: ...

    @abstractmethod
    def frequency(self, field: FieldReader, document: int) -> float: ...

    @abstractmethod
    def idf_explanation(self, field: FieldReader) -> Explanation: ...

    def frequency_notation(self, frequency: np.float32) -> str:
        return f"termFreq={printed(frequency)}"

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return self.postings(reader.fields[self.field]).documents

    def index_frequency(self, reader: IndexReader, segment_frequency: int) -> int:
        return reader.sum_of_parts(
            segment_frequency, lambda part: len(self.postings(part.fields[self.field]).documents)
        )

    @property
    def score_key(self) -> Hashable:
        """Identifies the leaf's scores; equal leaves may have different ones."""
        return self

    def row(self, rows: ScoreRows, boost: np.float32) -> ScoreRow:
        def compute() -> ScoreRow:
            field = rows.reader.fields[self.field]
            postings = self.postings(field)
            weight = field.similarity.weight(boost, self.idf(field))
            scores = similarity.scores(weight, postings.frequencies, field.inverses(postings.documents))
            frequency = self.index_frequency(rows.reader, len(scores))
            return rows.row(postings.documents, scores, bool(scores.all()), frequency)

        return rows.cached((self.score_key, float(boost)), compute)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        return total(rows.count, [self.row(rows, boost)])

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        reader = rows.reader
        field = reader.fields[self.field]
        frequency = np.float32(self.frequency(field, document))
        if not frequency:
            return None
        if isinstance(field.similarity, BooleanSimilarity):
            constant = explain(boost, "boost, query boost")
            explained = explain(boost, "score(BooleanWeight), computed from:", [constant])
        else:
            explained = explain_bm25(
                field.similarity,
                field.statistics,
                field.length_code(document),
                frequency,
                self.frequency_notation(frequency),
                self.idf_explanation(field),
                boost,
            )
        place = f"{self.notation(reader.schema)} in {reader.number(document)}"
        description = f"weight({place}) [PerFieldSimilarity], result of:"
        return Explanation(explained.value, description, (explained,))


def explain_bm25(
    bm25: BM25,
    statistics: FieldStatistics,
    length_code: int,
    frequency: np.float32,
    frequency_notation: str,
    idf: Explanation,
    boost: np.float32,
) -> Explanation:
    """Return the explanation of the score of a frequency in a document."""
    weight = bm25.weight(boost, np.float32(idf.value))
    inverses = bm25.norm_inverses(statistics)[[length_code]]
    score = similarity.scores(weight, np.full(1, frequency, np.float32), inverses)[0]
    approximate = " (approximate)" if length_code > EXACT_LENGTHS else ""
    tf = explain(
        ONE - ONE / (ONE + frequency * inverses[0]),
        "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
        (
            explain(frequency, frequency_notation),
            explain(bm25.k1, "k1, term saturation parameter"),
            explain(bm25.b, "b, length normalization parameter"),
            explain(int(similarity.LENGTHS[length_code]), f"dl, length of field{approximate}"),
            explain(statistics.average_length, "avgdl, average length of field"),
        ),
    )
    factor = bm25.boost(boost)
    details = [explain(factor, "boost")] if factor != 1 else []
    details += [idf, tf]
    return explain(score, f"score(freq={printed(frequency)}), computed as boost * idf * tf from:", details)


def explain_idf(document_frequency: int, documents: int) -> Explanation:
    """Return the explanation of an inverse document frequency among documents with the field."""
    return explain(
        similarity.idf(document_frequency, documents),
        "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
        (
            Explanation(document_frequency, "n, number of documents containing term"),
            Explanation(documents, "N, total number of documents with field"),
        ),
    )


def frequency_of(term: str, field: FieldReader, document: int) -> float:
    """Return the frequency of a term in a document, 0 without an occurrence."""
    postings = field.postings(term)
    index = int(np.searchsorted(postings.documents, document))
    if index == len(postings.documents) or postings.documents[index] != document:
        return 0.0
    return float(postings.frequencies[index])


@dataclass(frozen=True, slots=True)
class Wrapper(Query):
    """A query that wraps another one and has the same hits."""

    query: Query

    def children(self) -> tuple[Query, ...]:
        return (self.query,)

    def only_matching(self) -> Query:
        return self.query

    def unscored(self) -> Query:
        return self.query.unscored()


@dataclass(frozen=True, slots=True)
class Constant(Wrapper):
    """Gives each document of a query the score 1."""

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return Constant(children[0])

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        yield from ()  # the score does not depend on the terms

    def rewritten(self) -> Query:
        inner = self.query.rewritten().only_matching()
        if inner.matches_nothing:
            return inner
        return self if inner is self.query else Constant(inner)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        return self.query.matching(rows, scope=scope)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        return constant_scores(self.matching(rows, scope=scope), boost)

    def notation(self, schema: Schema) -> str:
        return f"ConstantScore({self.query.notation(schema)})"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        if not self.matching(rows, scope=document_mask(document, rows))[document]:
            return None
        return explain_constant(boost, self.notation(rows.reader.schema))


@dataclass(frozen=True, slots=True)
class Boost(Wrapper):
    """Multiplies the scores of a query, before term weights are rounded."""

    boost: float

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return Boost(children[0], self.boost)

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        return self.query.leaves(multiply_boosts(self.boost, boost))

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        return self.query.scored_terms(multiply_boosts(self.boost, boost))

    def rewritten(self) -> Query:
        inner, boost = self.query.rewritten(), self.boost
        if boost == 1 or inner.matches_nothing:
            return inner
        if isinstance(inner, Boost):
            return Boost(inner.query, multiply_boosts(boost, inner.boost))
        if boost == 0 and not isinstance(inner, Constant):
            return Boost(Constant(inner), 0.0)
        return self if inner is self.query else Boost(inner, boost)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        return self.query.matching(rows, np.float32(self.boost) * boost, scope)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        return self.query.scores(rows, np.float32(self.boost) * boost, scope)

    def notation(self, schema: Schema) -> str:
        return f"({self.query.notation(schema)})^{printed(self.boost)}"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        return self.query.explanation(rows, document, np.float32(self.boost) * boost)


def apply_boost_parameter(query: Query, options: Mapping[str, Any], name: str) -> Query:
    """Apply the parameter `boost` to a query."""
    return apply_boost(query, parameters.boost(options.get("boost", 1), f"the query `{name}`"))


def apply_boost(query: Query, boost: float) -> Query:
    """Apply a boost to a query."""
    if boost == 1 or query.matches_nothing:
        return query
    return Boost(query, parameters.finite(boost, "the boost of a query"))


def without_boosts(query: Query, boost: np.float32 = ONE) -> tuple[Query, np.float32]:
    """Strip the outer boosts of a query; return their product too, in the order of Lucene's `Scorer`."""
    while isinstance(query, Boost):
        boost, query = np.float32(query.boost) * boost, query.query
    return query, boost


def multiply_boosts(first: float, second: float) -> float:
    """Return the float32 product of two boosts."""
    return float(np.float32(first) * np.float32(second))


# Reading

QueryReader = Callable[["Parser", Any], Query]

DEEPEST = 30  # maximum nesting depth in Elasticsearch (`indices.query.bool.max_nested_depth`)

REMEMBERED_TEXTS = 16


@dataclass(frozen=True, slots=True, eq=False)
class QueryText:
    """A text in a query: its location, the function that parses a replacement, and the resulting query."""

    options: Mapping[str, Any]
    key: str
    read: Callable[[str], Query]
    query: Query


@dataclass
class Parser:
    """Parses queries on the fields of an index, of which `reader` is a segment."""

    reader: IndexReader
    analyzers: AnalysisRegistry
    reader_of: Callable[[str], QueryReader | None]  # by the name of a query
    scope: str = ROOT  # the path of the nested query that is being read
    unresolved: Query | None = None  # the last complete query before `resolved`
    _texts: list[QueryText] | None = None
    _problems: ErrorCollector | None = None
    _path: list[str] = field(default_factory=list)
    _depth: int = 0
    _now: int | None = None

    def __post_init__(self) -> None:
        # The functions must not refer to the parser, which would then outlive its index until garbage collection.
        analyzer_of = self.analyzers.analyzer

        @lru_cache(REMEMBERED_TEXTS)  # a body often needs the terms of a text twice
        def tokens(analyzer: str, text: str) -> tuple[list[str], list[int]]:
            return analyzer_of(analyzer).joined((text,))

        @lru_cache(REMEMBERED_TEXTS)
        def distinct_terms(analyzer: str, text: str) -> tuple[str, ...] | None:
            distinct = analyzer_of(analyzer).distinct_terms
            terms = distinct(text) if distinct else None
            if terms is not None:
                return terms
            repeated, positions = tokens(analyzer, text)
            is_distinct = len(set(repeated)) == len(repeated) and len(set(positions)) == len(positions)
            return tuple(repeated) if is_distinct else None

        self._tokens = tokens
        # The terms that an analyzer makes of a text, if each is alone on its position and none is repeated.
        self.distinct_terms = distinct_terms

    def read(self, body: Any) -> tuple[Query, list[QueryText]]:
        """Return the query of a search body, and its texts."""
        # An attribute would keep the parser, to which the texts refer, and its index alive.
        texts: list[QueryText] = []
        self._now = None
        self._texts = texts
        try:
            query = self.query_at("query", body)
        finally:
            self._texts = None
        check_clause_count(query.clause_count)
        return query, texts

    @property
    def now(self) -> int:
        """The time of the search body in milliseconds since 1970, the same for all its queries."""
        if self._now is None:
            self._now = time_ns() // 1_000_000
        return self._now

    @property
    def has_used_now(self) -> bool:
        """Whether the queries of the last search body depend on its time."""
        return self._now is not None

    def query_at(self, path: str, body: Any) -> Query:
        """Parse the query at a path of a search body, such as `highlight.highlight_query`.

        Raises:
            Refused: lists all problems of the query with their JSON paths.
        """
        self._problems = problems = ErrorCollector()
        self._path = [path]
        query: Query | None = None
        try:
            with problems.at(*([] if isinstance(body, Mapping) else [path])):
                query = self.query(body)
        finally:
            self._problems = None
            self._path = []
        problems.raise_if_any()
        assert query is not None
        return query

    def query(self, body: Any) -> Query:
        """Parse one query object."""
        name, content = parameters.single(body, "a query")
        reader = self.reader_of(name)
        if reader is None:
            advice = ", which ranks differently in 8.19 and 9.x (write the section `knn` of the body)"
            raise unsupported(f"the query `{name}`{advice if name == 'knn' else ''}")
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                raise invalid(f"more than {DEEPEST} nested queries")
            query = reader(self, content)
        finally:
            self._depth -= 1
        if self._depth:
            return query
        self.unresolved = query
        return query.resolved(self.reader)

    def queries(self, bodies: Any, path: str) -> tuple[Query, ...]:
        """Parse one query or a list of queries at a `path` inside the enclosing query, such as `bool.must`.

        Raises:
            Reported: queries were rejected and their problems collected.
            Refused: a query was rejected, and problems are not collected.
        """
        is_list = isinstance(bodies, list | tuple)
        several: Iterable[Any] = bodies if is_list else [bodies]
        if self._problems is None:
            return tuple(map(self.query, several))
        queries: list[Query] = []
        count = 0
        for count, body in enumerate(several, 1):
            self._path.append(f"{path}[{count - 1}]" if is_list else path)
            try:
                queries.append(self.query(body))
            except Reported:
                pass
            except Refused as error:
                self._problems.add(error, ".".join(self._path))
            finally:
                self._path.pop()
        if len(queries) < count:
            raise Reported
        return tuple(queries)

    def field(self, name: str, *types: str) -> Field | None:
        """Return a field; None for an unknown field, which matches nothing in Elasticsearch.

        Args:
            name: of the field or of an alias
            types: those of points, ranges and vectors that the query accepts
        """
        if not name:
            raise invalid("the name of a field is empty")
        if "*" in name:
            raise unsupported(f"the pattern `{name}` for the names of fields")
        # Elasticsearch reserves names such as `_id` for its own fields.
        schema = self.reader.schema
        if name.startswith("_") and name not in schema.fields:
            raise unsupported(f"queries on `{name}`")
        name = schema.aliases.get(name, name)
        field = schema.fields.get(name)
        if field is not None and not field.is_keyed:
            if (field.is_geometry or field.is_range or field.is_vector) and field.type not in types:
                raise unsupported(f"queries on {name} (the type {field.type})")
            return field.bound(self.analyzers)
        for part in objects(name):
            if keyed := schema.fields.get(schema.aliases.get(part, part) + KEYED):
                return keyed.with_key(name[len(part) + 1 :])
        for part in (name, *objects(name)):  # types such as `flattened` have fields inside
            if part in schema.unsearched:
                raise unsupported(f"queries on {name} ({schema.unsearched[part]})")
        return None

    def terms(self, analyzer: str, text: str) -> list[tuple[int, list[str]]]:
        pairs = zip(*self._tokens(analyzer, text), strict=True)
        return [
            (position, [term for term, _ in group]) for position, group in groupby(pairs, key=itemgetter(1))
        ]

    def read_text(self, options: Mapping[str, Any], key: str, read: Callable[[str], Query]) -> Query:
        """Parse a text, and record it for bodies that differ only in this text."""
        query = read(options[key])
        if self._texts is not None and isinstance(options[key], str):
            self._texts.append(QueryText(options, key, read, query))
        return query

    def options(self, content: Any, name: str, known: Iterable[str]) -> Mapping[str, Any]:
        """Return the parameters of a query; reject unknown ones."""
        options = parameters.mapping(content, f"the query `{name}`")
        known_only(options, {*known, "boost"}, f"the query `{name}`")
        parameters.boost(options.get("boost", 1), f"the query `{name}`")  # reject it even if nothing matches
        return options

    def on_field(
        self, content: Any, name: str, value: str, known: Iterable[str]
    ) -> tuple[str, Mapping[str, Any]]:
        """Return the field of a query and its parameters; `{"match": {"text": "x"}}` is short for its `value`."""
        field_name, options = parameters.single(content, f"the query `{name}`")
        if not isinstance(options, Mapping):
            options = {value: options}
        return field_name, self.options(options, name, {*known, value})


def required(options: Mapping[str, Any], parameter: str, name: str) -> Any:
    """Return a parameter; reject a query without it."""
    if options.get(parameter) is None:
        raise invalid(f"the query `{name}` lacks `{parameter}`")
    return options[parameter]
