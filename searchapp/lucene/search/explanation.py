"""Explain a score in the structure, the words and the numbers of Elasticsearch.

Queries are described in Lucene's notation (`Query.toString`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.errors import unsupported
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import IndexReader, Mask
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries import compound
from searchapp.lucene.queries.match_all import INSIDE_ANOTHER, MatchAll
from searchapp.lucene.queries.query import (
    Bool,
    Boost,
    Boosting,
    Constant,
    DisMax,
    FieldValue,
    Function,
    FunctionScore,
    Leaf,
    Query,
    TermsDisjunction,
    constant,
    exact,
    explained,
)
from searchapp.lucene.queries.rewrite import spelled_out, with_terms_as_clauses
from searchapp.lucene.search.scoring import Scorer
from searchapp.lucene.similarity import ONE
from searchapp.model import Explanation


def described(query: Query, schema: Schema) -> str:
    """A query in Lucene's notation.

    Raises:
        EngineRefused: the notation of the query is not known here.
    """
    match query:
        case Leaf():
            return query.described(schema)
        case Constant(inner):
            return f"ConstantScore({described(inner, schema)})"
        case Boost(inner, boost):
            return f"({described(inner, schema)})^{printed(boost)}"
        case TermsDisjunction():
            return described(spelled_out(query), schema)
        case Bool():
            return _bool(with_terms_as_clauses(query), schema)
        case DisMax(queries, tie_breaker):
            parts = " | ".join(_nested(inner, schema) for inner in queries)
            return f"({parts})" + (f"~{printed(tie_breaker)}" if tie_breaker else "")
        case Boosting(positive, _, factor, as_written):
            lowering = f"queryboost(score({described(as_written, schema)}))^{printed(factor)}"
            return f"FunctionScoreQuery({described(positive, schema)}, scored by boost({lowering}))"
        case FunctionScore(inner, functions=()):
            return f"function score ({described(inner, schema)}, functions: [])"
        case FunctionScore():
            # Elasticsearch prints the addresses of objects there, which are others each time.
            raise unsupported("the explanation of `function_score` inside a filter or a constant score")
        case _:
            assert_never(query)


def described_as_filter(query: Query, schema: Schema) -> str:
    """What explanations show in the place of a query that only filters.

    Raises:
        EngineRefused: as `described`.
    """
    inner = _without_scores(query)
    return inner.described_as_filter(schema) if isinstance(inner, Leaf) else described(inner, schema)


def _without_scores(query: Query) -> Query:
    """The query inside whose weight Lucene makes when it only filters."""
    match query:
        case (
            Boost(inner, _)
            | Constant(inner)
            | Boosting(positive=inner)
            | FunctionScore(inner, min_score=None)
        ):
            return _without_scores(inner)
        case FunctionScore() | Leaf() | TermsDisjunction() | Bool() | DisMax():
            return query
        case _:
            assert_never(query)


def _nested(query: Query, schema: Schema) -> str:
    text = described(query, schema)
    return f"({text})" if isinstance(query, Bool | TermsDisjunction) else text


def _bool(query: Bool, schema: Schema) -> str:
    if any(clause == MatchAll() for clause in map(_without_scores, query.must_not)):
        raise unsupported(INSIDE_ANOTHER)
    marks = (("+", query.must), ("-", query.must_not), ("", query.should), ("#", query.filter))
    text = " ".join(mark + _nested(clause, schema) for mark, clauses in marks for clause in clauses)
    return f"({text})~{query.minimum}" if query.minimum > 0 else text


_HOW = {
    "multiply": "function score, product of:",
    "sum": "sum of",
    "avg": "avg of",
    "max": "max of:",
    "min": "min of",
}


def with_functions(
    reader: IndexReader,
    schema: Schema,
    query: FunctionScore,
    document: int,
    inner: Explanation,
    applies: Sequence[bool],
) -> Explanation:
    """How the functions of a query change the score that `inner` explains.

    `applies` tells for each function whether it is for the document.
    """
    if not query.functions:
        return inner
    place = np.array([document])
    parts = [
        _applied(reader, schema, function, place)
        for function, applying in zip(query.functions, applies, strict=True)
        if applying
    ]
    if not parts:
        factor = explained(1, "No function matched")
    elif query.single:
        factor = parts[0]
    else:
        masks = [np.array([applying]) for applying in applies]
        values = [
            compound.function_values(reader, one, place, mask)
            for one, mask in zip(query.functions, masks, strict=True)
        ]
        (value,) = compound.combined_factors(query, values, masks)
        factor = explained(value, f"function score, score mode [{query.score_mode}]", parts)
    return _combined(query, inner, factor)


def lowered(
    query: Boosting,
    schema: Schema,
    inner: Explanation,
    matched: bool,
    boost: np.float32,
    score: np.float32,
) -> Explanation:
    """How `boosting` changes the score that `inner` explains; `matched` says whether by its negative query.

    `score` is what all comes to, with the boost. The product is a double, as Lucene's `DoubleValuesSource` has it.
    """
    changed = inner
    if matched:
        negative = query.negative.query if isinstance(query.negative, Boost) else query.negative
        factor = explained(query.factor, f"Matched boosting query score({described(negative, schema)})")
        changed = Explanation(exact(inner) * exact(factor), "product of:", (inner, factor))
    name = f"weight({described(query, schema)})"
    if boost == 1:
        return Explanation(changed.value, f"{name}, result of:", (changed,))
    return explained(score, f"{name}, product of:", (explained(boost, "boost"), changed))


def _applied(
    reader: IndexReader, schema: Schema, function: Function, document: NDArray[np.intp]
) -> Explanation:
    """What a function that is for the document gives it."""
    if function.value is None:
        found = explained(1, "constant score 1.0 - no function provided")
    else:
        (value,) = compound.field_value(reader, function.value, document)
        found = explained(value, f"field value function: {_formula(function.value)}")
    if function.weight is not None:
        weight = explained(function.weight, "weight")
        found = explained(_float(found) * _float(weight), "product of:", (found, weight))
    if function.filter is None:
        return found
    filtered = explained(1, f"match filter: {described(function.filter, schema)}")
    return explained(_float(found), "function score, product of:", (filtered, found))


def _formula(value: FieldValue) -> str:
    missing = "" if value.missing is None else f"?:{printed(value.missing, np.float64)}"
    return f"{value.modifier}(doc['{value.field}'].value{missing} * factor={printed(value.factor)})"


def _combined(query: FunctionScore, inner: Explanation, factor: Explanation) -> Explanation:
    limit = explained(query.max_boost, "maxBoost")
    limited = explained(min(_float(factor), _float(limit)), "min of:", (factor, limit))
    if query.boost_mode == "replace":
        return limited
    ours, theirs = _float(inner), _float(limited)
    values: dict[str, Callable[[], np.float32]] = {
        "multiply": lambda: ours * theirs,
        "sum": lambda: ours + theirs,
        "avg": lambda: np.float32(float(ours + theirs) / 2),
        "max": lambda: max(ours, theirs),
        "min": lambda: min(ours, theirs),
    }
    with np.errstate(over="ignore"):
        return explained(values[query.boost_mode](), _HOW[query.boost_mode], (inner, limited))


def _float(explanation: Explanation) -> np.float32:
    return np.float32(exact(explanation))


class Explainer:
    """Explains the scores of documents."""

    def __init__(self, reader: IndexReader, scorer: Scorer) -> None:
        self._reader = reader
        self._scorer = scorer
        self._among: Mask | None = None

    def explanation(self, query: Query, document: int) -> Explanation:
        """How a rewritten query comes to the score of a document that it matches.

        Raises:
            EngineRefused: the query has a part whose explanation is not known here.
        """
        self._among = np.zeros(self._reader.count, bool)
        self._among[document] = True
        found = self._explained(query, document, ONE)
        assert found is not None, "only documents that match are explained"
        return found

    def _explained(self, query: Query, document: int, boost: np.float32) -> Explanation | None:
        """None when the document does not match."""
        match query:
            case Boost(inner, factor):
                return self._explained(inner, document, np.float32(factor) * boost)
            case Leaf():
                return query.explanation(self._reader, document, boost)
            case TermsDisjunction():
                return self._bool(spelled_out(query), document, boost)
            case Bool():
                return self._bool(query, document, boost)
            case DisMax():
                return self._dis_max(query, document, boost)
            case FunctionScore():
                return self._functions(query, document, boost)
            case Boosting():
                return self._boosting(query, document, boost)
            case Constant():
                return self._constant(query, document, boost)
            case _:
                assert_never(query)

    def _constant(self, query: Constant, document: int, boost: np.float32) -> Explanation | None:
        if not self._scorer.matching(query, among=self._among)[document]:
            return None
        return constant(boost, described(query, self._reader.schema))

    def _bool(self, query: Bool, document: int, boost: np.float32) -> Explanation | None:
        scores = self._scorer.scores(query, boost, self._among)
        if not scores.mask()[document]:
            return None
        scoring = (*query.must, *with_terms_as_clauses(query).should)
        clauses = [self._explained(clause, document, boost) for clause in scoring]
        filters = [self._filter(clause) for clause in query.filter]
        details = [clause for clause in clauses if clause is not None] + filters
        return explained(scores.values[document], "sum of:", details)

    def _filter(self, clause: Query) -> Explanation:
        required = "match on required clause, product of:"
        inside = [explained(0, "# clause"), explained(1, described_as_filter(clause, self._reader.schema))]
        return explained(0, required, inside)

    def _dis_max(self, query: DisMax, document: int, boost: np.float32) -> Explanation | None:
        every = (self._explained(inner, document, boost) for inner in query.queries)
        clauses = [clause for clause in every if clause is not None]
        if not clauses:
            return None
        how = (
            "max of:" if query.tie_breaker == 0 else f"max plus {printed(query.tie_breaker)} times others of:"
        )
        best, others = 0.0, 0.0
        for value in map(exact, clauses):  # in their order, as the sum of doubles depends on it
            best, others = max(best, value), others + min(best, value)
        return explained(best + others * float(np.float32(query.tie_breaker)), how, clauses)

    def _functions(self, query: FunctionScore, document: int, boost: np.float32) -> Explanation | None:
        inner = self._explained(query.query, document, boost)
        if inner is None or not self._scorer.scores(query, boost, self._among).mask()[document]:
            return None
        applies = [
            function.filter is None
            or bool(self._scorer.matching(function.filter, among=self._among)[document])
            for function in query.functions
        ]
        found = with_functions(self._reader, self._reader.schema, query, document, inner, applies)
        if query.min_score is not None and query.min_score > np.float32(exact(found)):
            # Elasticsearch explains then that the document does not match, though it found it.
            raise unsupported("the explanation of a score that reaches `min_score` by its rounding")
        return found

    def _boosting(self, query: Boosting, document: int, boost: np.float32) -> Explanation | None:
        inner = self._explained(query.positive, document, ONE)
        if inner is None:
            return None
        matched = bool(self._scorer.matching(query.negative, among=self._among)[document])
        score = self._scorer.scores(query, boost, self._among).values[document]
        return lowered(query, self._reader.schema, inner, matched, boost, score)
