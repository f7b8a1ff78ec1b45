"""How a score came about, in the structure, the words and the numbers of Elasticsearch.

Lucene explains the query that it scores, that is the rewritten one. The numbers are those of Elasticsearch's JSON: see
`explanations`.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np

from searchapp.engines.base import Explanation
from searchapp.engines.embedded.describe import described, described_as_filter
from searchapp.engines.embedded.explain_functions import lowered, with_functions
from searchapp.engines.embedded.explanations import constant, exact, explained
from searchapp.engines.embedded.java_numbers import printed
from searchapp.engines.embedded.queries.disjunctions import spelled_out, with_terms_as_clauses
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.nodes import (
    Bool,
    Boost,
    Boosting,
    Constant,
    DisMax,
    FunctionScore,
    Query,
    TermsDisjunction,
)
from searchapp.engines.embedded.refusals import unsupported
from searchapp.engines.embedded.scoring import Scorer
from searchapp.engines.embedded.similarity import ONE
from searchapp.engines.embedded.storage.reader import IndexReader, Mask


class Explainer:
    """Explains the scores of documents."""

    def __init__(self, reader: IndexReader, scorer: Scorer) -> None:
        self._reader = reader
        self._scorer = scorer.explaining()
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
