"""The signal `vectors`: the cosine of the embeddings of topic and document, or of topic and training topic, as bytes.

`searchapp embed` writes a file with the vectors. The greatest component of a vector is scaled to 127, others in
proportion, and rounded. The score is that of Elasticsearch for `dense_vector` fields of bytes with the similarity
`cosine`, (1 + cosine) / 2 in float32, from exact sums of integers: equal on every processor, with every engine.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import DataError
from searchapp.files import digest_text
from searchapp.formats.problems import some
from searchapp.lucene import vectors
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Hits, Topic
from searchapp.progress import Advance, no_progress
from searchapp.ranking import learning
from searchapp.ranking.learning import Arrays, StoredModel
from searchapp.ranking.signals.base import (
    AT_ONCE,
    FileSignal,
    Inputs,
    Need,
    Scores,
    SignalRequest,
    SignalScorer,
    model_record,
)
from searchapp.ranking.signals.latent_space import TextProjection
from searchapp.ranking.signals.neighbours import Gold, NeighbourScorer, vote_scores
from searchapp.ranking.templates import number, text, whole, window
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
    greatest = np.maximum(
        rows.max(axis=1, keepdims=True, initial=0.0), -rows.min(axis=1, keepdims=True, initial=0.0)
    )
    scaled = 127.0 * rows
    np.divide(scaled, greatest, out=scaled, where=greatest > 0)
    rounded: Int8s = np.rint(scaled, out=scaled).astype(np.int8)
    return rounded


def overlap(documents: Floats32, topics: Floats32) -> float | None:
    """Return the mean share of the first `DEPTH` documents by floating point cosines that are also first by bytes.

    No vector is 0. None without topics.
    """
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
    projection: TextProjection | None = None,
) -> StoredModel:
    """Return the content of a file of vectors.

    Args:
        about: further keys of its header
        ids: the ids of the documents
        topics: the texts of the topics
        vectors_of: the vectors of documents and topics; 0 for a text without one
        projection: the map from texts to vectors, if it is known
    """
    documents, of_topics = map(as_bytes, vectors_of)
    order = sorted(range(len(ids)), key=lambda row: ids[row].encode())  # the order of equal scores
    known, compared = (rows[rows.any(axis=1)] for rows in vectors_of)
    compared = compared[:COMPARED]
    header = {
        **about,
        **({} if projection is None else projection.header()),
        "dimensions": documents.shape[1],
        "loss": {"overlap": overlap(known, compared), "topics": len(compared), "depth": DEPTH},
        DOCUMENTS: [ids[row] for row in order],
        TOPICS: [digest_text(topic) for topic in topics],
    }
    arrays = {DOCUMENTS: documents[order], TOPICS: of_topics}
    return StoredModel.of(header, {**arrays, **({} if projection is None else projection.arrays())})


def _votes(read: Mapping[str, Any]) -> bool:
    return read["k"] is not None


def _ranks_documents(read: Mapping[str, Any]) -> bool:
    return not _votes(read)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSignal(FileSignal):
    """Documents by the cosine of their embedding and the topic's, or by votes of the nearest training topics."""

    kind: ClassVar[str] = "vectors"
    is_external: ClassVar[bool] = True
    listed_first: ClassVar[tuple[str, ...]] = ("k",)

    file: str = text("the file of `searchapp embed`, relative to the file of the recipe")
    window: int = window(when=_ranks_documents)
    k: int | None = whole(
        "number of nearest training topics that vote; omitted: documents are ranked by their own vectors",
        default=None,
    )
    power: float = number(
        "how steeply votes fall with the cosine s: (s / s1) ** power, with the nearest topic's cosine s1",
        default=1.0,
        when=_votes,
    )

    @property
    def needs(self) -> frozenset[Need]:  # type: ignore[override]
        return frozenset({Need.labels} if self.k else ())

    @property
    def path(self) -> Path:
        return self.folder / self.file

    def files(self) -> Sequence[Path]:
        if not self.path.is_file():
            raise DataError(f"there is no file {self.path} with vectors: {_AGAIN}")
        return (self.path,)

    def prepare(self, inputs: Inputs) -> SignalScorer:
        (path,) = self.files()
        stored = learning.read_model(path, _AGAIN)
        if self.k is None:
            return _FileScorer(self, inputs, stored)
        labels = inputs.labels()
        solved = {topic: labels.topics[topic] for topic in labels.gold}
        if not solved:
            raise DataError(
                f"the signal {self.name} needs training topics, and this task has none: choose another recipe"
            )
        return _NearestTopics(_FileScorer(self, inputs, stored, solved), labels.gold, self.k, self.power)


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
        known = np.flatnonzero(documents.any(axis=1))
        self._documents = [ids[row] for row in known.tolist()]
        self._vectors = documents[known].view(np.uint8)
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
    """Ranks the documents of a file, or training topics, if there are some, in place of them."""

    def __init__(
        self,
        signal: VectorSignal,
        inputs: Inputs,
        stored: StoredModel,
        solved: Mapping[str, Topic] | None = None,
    ) -> None:
        self._signal = signal
        self._stored = stored
        self._embed_words = inputs.embed_words
        self._projection = TextProjection.read(stored) if "features" in stored.header else None
        ids, digests = (learning.texts(stored.header, name) for name in (DOCUMENTS, TOPICS))
        documents = byte_matrix(stored.arrays, DOCUMENTS, len(ids))
        self._topics = byte_matrix(stored.arrays, TOPICS, len(digests), documents.shape[1])
        self._rows = {digest: row for row, digest in enumerate(digests)}
        if stored.header.get(DIGEST) != inputs.index.info.documents_digest:
            raise DataError(
                f"{signal.path} has the vectors of other documents than {inputs.index.info.version}: index "
                f"the documents, and {_AGAIN}, which keeps the vectors of known texts"
            )
        if solved is None:
            super().__init__(ids, documents, signal.window, topics_are_documents=inputs.topics_are_documents)
        else:
            names = sorted(solved, key=str.encode)
            rows = self.topic_vectors([solved[name] for name in names])
            super().__init__(names, rows, 0, topics_are_documents=True)  # a topic has no vote for itself

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
        if topic.like and topic.like in self._stored.header[DOCUMENTS]:
            row = self._stored.header[DOCUMENTS].index(topic.like)
            of_document: Int8s = self._stored.arrays[DOCUMENTS][row : row + 1]
            return of_document
        if topic.id or digest_text(topic.text) in self._rows:
            return None
        if self._projection is not None:
            return as_bytes(self._projection.vectors([topic.text]))
        if self._embed_words is None:
            return None
        vector = as_bytes(self._embed_words(topic.text, self._stored.header.get(SOURCE, {})))
        if vector.shape != (1, self._topics.shape[1]):
            raise DataError(
                f"the model returns vectors of {vector.shape[1]:,} dimensions, but {self._signal.path} has some "
                f"of {self._topics.shape[1]:,}: {_AGAIN}"
            )
        return vector

    def model(self) -> dict[str, Any]:
        counts = {DOCUMENTS: len(self._stored.header[DOCUMENTS]), TOPICS: len(self._topics)}
        return {**model_record(self._stored), "dimensions": self._topics.shape[1], **counts}


class _NearestTopics(NeighbourScorer):
    """The `k` training topics with the greatest cosines vote; `topics` ranks them."""

    similarity = "cosine"

    def __init__(self, topics: _FileScorer, gold: Gold, k: int, power: float) -> None:
        super().__init__(gold, power)
        self._topics = topics
        self._k = k

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Scores]:
        for hits in self._nearest(request, advance):
            yield vote_scores(hits, self._gold, self._power, normalization=request.normalization)

    def nearest_to(self, request: SignalRequest) -> Hits:
        (hits,) = self._nearest(request, no_progress)
        return hits

    def model(self) -> dict[str, Any]:
        return self._topics.model()

    def _nearest(self, request: SignalRequest, advance: Advance) -> Iterator[Hits]:
        """Yield the nearest training topics of each topic, with their cosines above 0."""
        for hits in self._topics.answers(replace(request, depth=self._k), advance):
            cosines = [2 * score - 1 for score in hits.scores]
            positive = sum(cosine > 0 for cosine in cosines)
            yield Hits(hits.document_ids[:positive], cosines[:positive])


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
