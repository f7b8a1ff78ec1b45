"""The documents of a section `knn` of a search body, as a query.

Source: `org.elasticsearch.search.vectors.KnnScoreDocQuery`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import IndexReader, Mask, Numbers, SegmentReader
from searchapp.lucene.queries.query import Leaf, explain
from searchapp.lucene.queries.scores import ScoreRows, Scores
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE, Float32s


@dataclass(frozen=True, slots=True)
class NearestDocuments(Leaf):
    """The documents of a section with their scores."""

    # Of all segments, as bytes, which are hashed and compared fast.
    numbers: bytes  # of the documents in the index, ascending, int32
    values: bytes  # float32

    def _part(self, reader: IndexReader) -> tuple[Numbers, Float32s]:
        """Return the documents in a segment, and their scores."""
        numbers, values = np.frombuffer(self.numbers, np.int32), np.frombuffer(self.values, np.float32)
        if not isinstance(reader, SegmentReader):  # nested objects have no vectors
            return numbers[:0], values[:0]
        part = slice(*numbers.searchsorted([reader.first, reader.first + reader.count]).tolist())
        return numbers[part] - np.int32(reader.first), values[part]

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return self._part(reader)[0]

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        scores = Scores(np.zeros(rows.count, np.float32), np.zeros(rows.count, bool))
        documents, values = self._part(rows.reader)
        scores.values[documents] = values * boost
        scores.mask()[documents] = True
        return scores

    def notation(self, schema: Schema) -> str:
        return "ScoreAndDocQuery"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        scores = self.scores(rows, boost)
        if not scores.mask()[document]:
            return None
        return explain(scores.values[document], "within top k documents")
