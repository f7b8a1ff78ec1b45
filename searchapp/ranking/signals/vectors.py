"""The signal `vectors`: the cosine of the embeddings of topic and document, as bytes.

`searchapp embed` writes a file with the vectors. The greatest component of a vector is scaled to 127, others in
proportion, and rounded. The score is that of Elasticsearch for `dense_vector` fields of bytes with the similarity
`cosine`, (1 + cosine) / 2 in float32, from exact sums of integers: equal on every processor, with every engine.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import DataError
from searchapp.files import digest_text
from searchapp.formats.problems import some
from searchapp.lucene import vectors
from searchapp.model import Explanation, Hits, Topic
from searchapp.progress import Advance
from searchapp.ranking import learning
from searchapp.ranking.learning import Arrays, StoredModel
from searchapp.ranking.signals.base import AT_ONCE, FileSignal, Inputs, SignalRequest, SignalScorer
from searchapp.ranking.templates import text, window
from searchapp.text import counted

# (texts, dimensions)
Floats32 = NDArray[np.float32]
Int8s = NDArray[np.int8]

# Parts of the file.
DOCUMENTS, TOPICS, DIGEST, SOURCE = "documents", "topics", "documents_digest", "source"

# Topics by which the loss of rounding is measured, and the depth.
COMPARED, DEPTH = 100, 10

_AGAIN = "run `searchapp embed TASK`"


def as_bytes(rows: NDArray[Any]) -> Int8s:
    """Return vectors as bytes: the greatest absolute component of a row becomes 127; 0 stays 0."""
    greatest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = np.divide(127.0 * rows, greatest, out=np.zeros_like(rows), where=greatest > 0)
    rounded: Int8s = np.rint(scaled).astype(np.int8)
    return rounded


def overlap(documents: Floats32, topics: Floats32) -> float | None:
    """Return the mean share of the first `DEPTH` documents by floating point cosines that are also first by bytes.

    At most `COMPARED` topics are compared; None without topics.
    """
    topics = topics[:COMPARED]
    depth = min(DEPTH, len(documents))
    if not len(topics) or not depth:
        return None
    units = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    stored = as_bytes(documents).view(np.uint8)
    lengths = vectors.squares(stored)
    shared = 0
    for topic in topics:
        (scores,) = vectors.scores(
            vectors.COSINE, stored, lengths, as_bytes(topic[None, :]).view(np.uint8), len(topic)
        )
        first = [
            set(np.argsort(-values, kind="stable")[:depth].tolist()) for values in (units @ topic, scores)
        ]
        shared += len(first[0] & first[1])
    return shared / (len(topics) * depth)


def stored_vectors(
    about: Mapping[str, Any],
    ids: Sequence[str],
    topics: Sequence[str],
    vectors_of: tuple[Floats32, Floats32],
) -> StoredModel:
    """Return the content of a file of vectors.

    Args:
        about: further keys of its header
        ids: the ids of the documents
        topics: the texts of the topics
        vectors_of: the vectors of documents and topics
    """
    documents, of_topics = map(as_bytes, vectors_of)
    order = sorted(range(len(ids)), key=lambda row: ids[row].encode())  # the order of equal scores
    header = {
        **about,
        "dimensions": documents.shape[1],
        "loss": {"overlap": overlap(*vectors_of), "topics": min(len(topics), COMPARED), "depth": DEPTH},
        DOCUMENTS: [ids[row] for row in order],
        TOPICS: [digest_text(topic) for topic in topics],
    }
    return StoredModel.of(header, {DOCUMENTS: documents[order], TOPICS: of_topics})


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSignal(FileSignal):
    """Documents by the cosine of their embedding and the topic's."""

    kind: ClassVar[str] = "vectors"
    is_external: ClassVar[bool] = True

    file: str = text("the file of `searchapp embed`, relative to the file of the recipe")
    window: int = window()

    @property
    def path(self) -> Path:
        return self.folder / self.file

    def files(self) -> Sequence[Path]:
        if not self.path.is_file():
            raise DataError(f"there is no file {self.path} with vectors: {_AGAIN}")
        return (self.path,)

    def prepare(self, inputs: Inputs) -> SignalScorer:
        (path,) = self.files()
        return _FileScorer(self, inputs, learning.read_model(path, _AGAIN))


class ByteVectorScorer(SignalScorer):
    """Ranks documents by the cosine of their vectors, of bytes, and a topic's.

    Args:
        ids: the documents, in the order of equal scores: by the bytes of their ids
        documents: their vectors, (documents, dimensions); documents with the vector 0 are not ranked
        depth: the least number of documents to rank
        topics_are_documents: whether a topic is not ranked for itself
    """

    def __init__(
        self, ids: Sequence[str], documents: Int8s, depth: int, *, topics_are_documents: bool
    ) -> None:
        has_vector = documents.any(axis=1)
        self._documents = list(itertools.compress(ids, has_vector.tolist()))
        self._vectors = documents[has_vector].view(np.uint8)
        self._lengths = vectors.squares(self._vectors)
        self._depth = depth
        self._topics_are_documents = topics_are_documents

    @abstractmethod
    def topic_vectors(self, topics: Sequence[Topic]) -> Int8s:
        """Return the vectors of topics, (topics, dimensions); 0 for a topic without one.

        Raises:
            DataError: a topic must not be ranked, or has no vector.
        """

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Hits]:
        depth = max(self._depth, request.depth)
        at_once = max(1, min(AT_ONCE, vectors.SCORES_AT_ONCE // max(1, len(self._documents))))
        for start in range(0, len(request.topics), at_once):
            topics = request.topics[start : start + at_once]
            for topic, scores in zip(topics, self._scores(topics), strict=True):
                rows = np.arange(len(scores))
                if depth + 1 < len(scores):  # one of them may be the topic itself
                    rows = np.flatnonzero(scores >= np.partition(scores, -depth - 1)[-depth - 1])
                best = rows[np.argsort(-scores[rows], kind="stable")].tolist()
                best = [row for row in best if scores[row] > 0 and not self._is_own(topic, row)][:depth]
                yield Hits([self._documents[row] for row in best], scores[best].tolist())
                advance(1)

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        if document_id not in self._documents:
            return None
        row = self._documents.index(document_id)
        (scores,) = self._scores([topic])
        score = float(scores[row])
        if not score or self._is_own(topic, row):
            return None
        ahead = np.append(np.flatnonzero(scores > scores[row]), np.flatnonzero(scores[:row] == scores[row]))
        rank = 1 + sum(not self._is_own(topic, number) for number in ahead.tolist())
        description = f"similarity (1 + cosine) / 2 of the vectors of topic and document, rank {rank:,}"
        return Explanation(score, description, (Explanation(2 * score - 1, "cosine"),))

    def _is_own(self, topic: Topic, row: int) -> bool:
        return self._topics_are_documents and self._documents[row] == topic.id

    def _scores(self, topics: Sequence[Topic]) -> Floats32:
        """Return the scores of all documents, (topics, documents); 0 for a topic without a vector."""
        rows = self.topic_vectors(topics)
        has_vector = rows.any(axis=1)
        result = np.zeros((len(topics), len(self._documents)), np.float32)
        result[has_vector] = vectors.scores(
            vectors.COSINE, self._vectors, self._lengths, rows[has_vector].view(np.uint8), rows.shape[1]
        )
        return result


class _FileScorer(ByteVectorScorer):
    def __init__(self, signal: VectorSignal, inputs: Inputs, stored: StoredModel) -> None:
        self._signal = signal
        self._stored = stored
        self._embed_words = inputs.embed_words
        ids, digests = (learning.texts(stored.header, name) for name in (DOCUMENTS, TOPICS))
        documents = byte_matrix(stored.arrays, DOCUMENTS, len(ids))
        self._topics = byte_matrix(stored.arrays, TOPICS, len(digests), documents.shape[1])
        self._rows = {digest: row for row, digest in enumerate(digests)}
        if stored.header.get(DIGEST) != inputs.index.info.documents_digest:
            raise DataError(
                f"{signal.path} has the vectors of other documents than {inputs.index.info.version}: index "
                f"the documents, and {_AGAIN}, which keeps the vectors of known texts"
            )
        super().__init__(ids, documents, signal.window, topics_are_documents=inputs.topics_are_documents)

    def topic_vectors(self, topics: Sequence[Topic]) -> Int8s:
        if len(topics) == 1 and (of_words := self._vector_of_words(topics[0])) is not None:
            return of_words
        unknown = [topic.id or "typed words" for topic in topics if digest_text(topic.text) not in self._rows]
        if unknown:
            raise DataError(
                f"{self._signal.path} has no vector of {counted(len(unknown), 'topic')} ({some(unknown)}): "
                f"{_AGAIN}, or choose a recipe without the signal {self._signal.name}"
            )
        of_topics: Int8s = self._topics[[self._rows[digest_text(topic.text)] for topic in topics]]
        return of_topics

    def _vector_of_words(self, topic: Topic) -> Int8s | None:
        """Return the vector of typed words, (1, dimensions), or of the document whose text they are.

        None for other topics, and for words that are a topic's.
        """
        if topic.like and topic.like in self._documents:
            row = self._documents.index(topic.like)
            return self._vectors[row : row + 1].view(np.int8)
        if topic.id or self._embed_words is None or digest_text(topic.text) in self._rows:
            return None
        vector = as_bytes(self._embed_words(topic.text, self._stored.header.get(SOURCE, {})))
        if vector.shape != (1, self._topics.shape[1]):
            raise DataError(
                f"the model returns vectors of {vector.shape[1]:,} dimensions, but {self._signal.path} has some "
                f"of {self._topics.shape[1]:,}: {_AGAIN}"
            )
        return vector

    def model(self) -> dict[str, Any]:
        counts = {DOCUMENTS: len(self._documents), TOPICS: len(self._topics)}
        return {"digest": self._stored.digest, "dimensions": self._topics.shape[1], **counts}


def byte_matrix(arrays: Arrays, name: str, rows: int, columns: int | None = None) -> Int8s:
    """Return a matrix of bytes of a model.

    Raises:
        DataError: it is missing, or has another shape or kind of numbers.
    """
    matrix: Int8s | None = arrays.get(name)
    if matrix is None or matrix.ndim != 2 or matrix.dtype != np.int8 or len(matrix) != rows:
        raise learning.invalid_part(name)
    if columns is not None and matrix.shape[1] != columns:
        raise learning.invalid_part(name)
    return matrix
