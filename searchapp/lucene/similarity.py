"""BM25 in Lucene's arithmetic: float32 where Lucene rounds, lengths in one byte, Elasticsearch's factor (k1 + 1).

S. Robertson and H. Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009, 3.4.
org.apache.lucene.search.similarities.BM25Similarity and org.apache.lucene.util.SmallFloat (Lucene 10).
org.elasticsearch.lucene.similarity.LegacyBM25Similarity: the factor (k1 + 1), which does not affect ranking.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.dataclass import dataclass

Float32s = NDArray[np.float32]

ONE = np.float32(1)
DEFAULT_K1 = 1.2
DEFAULT_B = 0.75

FREE_CODES = 24  # shorter lengths are their own code; SmallFloat keeps 4 significant bits of longer ones


def _decoded(code: int) -> int:
    if code < FREE_CODES:
        return code
    bits, shift = (code - FREE_CODES) & 7, ((code - FREE_CODES) >> 3) - 1
    return FREE_CODES + (bits if shift < 0 else (bits | 8) << shift)


# The length of each of the 256 codes, ascending.
LENGTHS: NDArray[np.int64] = np.array([_decoded(code) for code in range(256)], np.int64)


def encode_lengths(lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the code of the greatest representable length up to each length.

    >>> [int(LENGTHS[code]) for code in encode_lengths(np.array([7, 40, 41, 1000]))]
    [7, 40, 40, 984]
    """
    return (np.searchsorted(LENGTHS, lengths, side="right") - 1).astype(np.uint8)


def idf(documents_with_term: int, documents: int) -> np.float32:
    """Return ln(1 + (N - n + 0.5) / (n + 0.5)), computed in double and rounded once."""
    return np.float32(math.log(1 + (documents - documents_with_term + 0.5) / (documents_with_term + 0.5)))


@dataclass(frozen=True, slots=True)
class FieldStatistics:
    """Numbers of `documents` with at least one token, and of all `tokens`, stacked ones included."""

    documents: int
    tokens: int

    @property
    def average_length(self) -> np.float32:
        return np.float32(self.tokens / self.documents) if self.documents else ONE


@dataclass(frozen=True, slots=True)
class BM25:
    """Parameters of BM25: saturation of term frequencies (`k1`), and length normalization (`b`)."""

    k1: float = DEFAULT_K1
    b: float = DEFAULT_B

    def weight(self, boost: np.float32, idf: np.float32) -> np.float32:
        """Return the limit of a term's score for growing frequencies."""
        return np.float32(self.boost(boost) * idf)

    def boost(self, boost: np.float32) -> np.float32:
        """Multiply a boost by (k1 + 1), as Elasticsearch does."""
        return np.float32(boost * (ONE + np.float32(self.k1)))

    def norm_inverses(self, statistics: FieldStatistics) -> Float32s:
        """Return 1 / (k1 ((1 - b) + b dl / avgdl)) for each of the 256 codes of the length dl."""
        k1, b = np.float32(self.k1), np.float32(self.b)
        # As in Java, k1 = 0 is allowed (every term scores its weight), and so are values beyond float32.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            inverses = ONE / (k1 * ((ONE - b) + b * LENGTHS.astype(np.float32) / statistics.average_length))
        return np.asarray(inverses, np.float32)


@dataclass(frozen=True, slots=True)
class BooleanSimilarity(BM25):
    """Scores each occurrence of a term by the boost of its query (Lucene's `BooleanSimilarity`).

    As BM25 it has k1 = 0, so that the score of a term is its weight for all frequencies and lengths.
    """

    k1: float = 0.0
    b: float = 0.0

    def weight(self, boost: np.float32, idf: np.float32) -> np.float32:  # noqa: ARG002
        return boost

    def boost(self, boost: np.float32) -> np.float32:
        return boost


def scores(weight: np.float32 | Float32s, frequencies: Float32s, norm_inverses: Float32s) -> Float32s:
    """Return w - w / (1 + f / norm) for terms that occur f times, with one weight w or a weight per document."""
    return np.asarray(weight - weight / (ONE + frequencies * norm_inverses), np.float32)
