"""What the engine asks of a leaf that BM25 scores, and how Lucene explains its score."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.base import Explanation
from searchapp.engines.embedded import similarity
from searchapp.engines.embedded.explanations import explained
from searchapp.engines.embedded.java_numbers import printed
from searchapp.engines.embedded.queries.leaf import MarkedLeaf
from searchapp.engines.embedded.similarity import ONE
from searchapp.engines.embedded.storage.reader import FieldReader, IndexReader, Postings

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
