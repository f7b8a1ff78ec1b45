"""How a score came about, in the structure, the words and the numbers of Elasticsearch.

Lucene explains the query that it scores, that is the rewritten one. Numbers are those of its JSON: see
`explanations`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from searchapp.engines.base import Explanation
from searchapp.engines.embedded import phrases, similarity
from searchapp.engines.embedded.describe import as_filter, by_values, described
from searchapp.engines.embedded.explain_functions import lowered, with_functions
from searchapp.engines.embedded.explanations import exact, explained
from searchapp.engines.embedded.java_numbers import printed
from searchapp.engines.embedded.queries.nodes import (
    Bag,
    Between,
    Bool,
    Boost,
    Boosting,
    DisMax,
    FunctionScore,
    Phrase,
    Query,
    Synonym,
    Term,
)
from searchapp.engines.embedded.refusals import unsupported
from searchapp.engines.embedded.rows import Scored, document_frequency, idf
from searchapp.engines.embedded.scoring import Mask, Scorer
from searchapp.engines.embedded.similarity import BM25, ONE
from searchapp.engines.embedded.storage.reader import FieldReader, IndexReader

EXACT_LENGTHS = 39
"""The greatest code of a length up to which Lucene calls the length exact."""

_TF = "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:"
_IDF = "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:"


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
            case Bag():
                return self._bool(query.spelled_out(), document, boost)
            case Bool():
                return self._bool(query, document, boost)
            case DisMax():
                return self._dis_max(query, document, boost)
            case Term() | Synonym() | Phrase():
                return self._scored(query, document, boost)
            case FunctionScore():
                return self._functions(query, document, boost)
            case Boosting():
                return self._boosting(query, document, boost)
        if not self._scorer.matching(query, among=self._among)[document]:
            return None
        schema = self._reader.schema
        name = by_values(query, schema) if isinstance(query, Between) else described(query, schema)
        return explained(boost, name + ("" if boost == 1 else f"^{printed(boost)}"))

    def _bool(self, query: Bool, document: int, boost: np.float32) -> Explanation | None:
        scores = self._scorer.scores(query, boost, self._among)
        if not scores.mask()[document]:
            return None
        scoring = (*query.must, *query.spelled_out().should)
        clauses = [self._explained(clause, document, boost) for clause in scoring]
        filters = [self._filter(clause) for clause in query.filter]
        details = [clause for clause in clauses if clause is not None] + filters
        return explained(scores.values[document], "sum of:", details)

    def _filter(self, clause: Query) -> Explanation:
        required = "match on required clause, product of:"
        inside = [explained(0, "# clause"), explained(1, described(as_filter(clause), self._reader.schema))]
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

    def _scored(self, query: Scored, document: int, boost: np.float32) -> Explanation | None:
        field = self._reader.fields[query.field]
        frequency = self._frequency(field, query, document)
        if not frequency:
            return None
        weight = field.similarity.weight(boost, idf(field, query))
        freq, inverse = np.full(1, frequency, np.float32), field.inverses(np.array([document], np.int32))
        score = similarity.scores(weight, freq, inverse)[0]
        factor = field.similarity.boost(boost)
        details = [explained(factor, "boost")] if factor != 1 else []
        details += [_idf(field, query), _tf(field, query, document, freq[0], inverse[0])]
        result = explained(
            score, f"score(freq={printed(frequency)}), computed as boost * idf * tf from:", details
        )
        name = described(query, self._reader.schema)
        return explained(score, f"weight({name} in {document}) [PerFieldSimilarity], result of:", [result])

    def _frequency(self, field: FieldReader, query: Scored, document: int) -> float:
        match query:
            case Term(_, term):
                return _frequency(field, term, document)
            case Synonym(_, terms):
                return sum(_frequency(field, term, document) for term in terms)
            case Phrase():
                documents, _positions = phrases.occurrences(field, query)
                return float(np.count_nonzero(documents == document))


def _frequency(field: FieldReader, term: str, document: int) -> float:
    postings = field.postings(term)
    place = int(np.searchsorted(postings.documents, document))
    if place == len(postings.documents) or postings.documents[place] != document:
        return 0.0
    return float(postings.frequencies[place])


def _idf(field: FieldReader, query: Scored) -> Explanation:
    if isinstance(query, Phrase):
        terms = [_idf(field, Term(query.field, term)) for term in query.terms]
        return explained(idf(field, query), "idf, sum of:", terms)
    counts = (
        Explanation(document_frequency(field, query), "n, number of documents containing term"),
        Explanation(field.statistics.documents, "N, total number of documents with field"),
    )
    return explained(idf(field, query), _IDF, counts)


def _tf(
    field: FieldReader, query: Scored, document: int, frequency: np.float32, inverse: np.float32
) -> Explanation:
    bm25: BM25 = field.similarity
    code = field.length_code(document)
    approximate = " (approximate)" if code > EXACT_LENGTHS else ""
    details: Sequence[Explanation] = [
        explained(frequency, _frequency_words(query, frequency)),
        explained(bm25.k1, "k1, term saturation parameter"),
        explained(bm25.b, "b, length normalization parameter"),
        explained(int(similarity.LENGTHS[code]), f"dl, length of field{approximate}"),
        explained(field.statistics.average_length, "avgdl, average length of field"),
    ]
    return explained(ONE - ONE / (ONE + frequency * inverse), _TF, details)


def _frequency_words(query: Scored, frequency: np.float32) -> str:
    match query:
        case Phrase():
            return f"phraseFreq={printed(frequency)}"
        case Synonym():
            return f"termFreq={printed(frequency)}"
    return "freq, occurrences of term within document"
