r"""The signal `metric`: the similarity of vectors that are trained on topics and their relevant documents.

A text is a vector of `latent_dimensions` in the latent space of all documents and training topics (see
`searchapp.ranking.signals.latent_space`). Two matrices A and B, one for topics and one for documents, map them to
vectors of `dimensions`. They start as the identity with noise and are trained by Adam (Kingma and Ba, ICLR 2015) on
pairs of a topic t and a relevant document d, to minimise

    -ln( e^(cos(tA, dB) / temperature) / Σ_e e^(cos(tA, eB) / temperature) )

over d and the documents e of the other pairs of a batch (dense passage retrieval: Karpukhin et al., EMNLP 2020),
except pairs with the same topic or the same document.

Vectors are stored and compared as bytes: the greatest component is scaled to 127, others in proportion, and rounded. A
score is that of Elasticsearch for the similarity `cosine` of bytes, (1 + cosine) / 2, from exact sums of integers.

Training computes in float32 in one thread. The same input gives the same model on the same kind of processor; on
another one the last bits of sums differ, which training amplifies. A model has the vectors of all documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import DataError
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Example, Topic
from searchapp.ranking import learning
from searchapp.ranking.signals.base import (
    Inputs,
    SignalScorer,
    Trained,
    model_record,
    require_unseen,
)
from searchapp.ranking.signals.latent_space import TextProjection, latent_space
from searchapp.ranking.signals.vectors import ByteVectorScorer, Int8s, as_bytes, byte_matrix
from searchapp.ranking.templates import RecipeTable, number, whole, window
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.ranking.learning import StoredModel

Float32s = NDArray[np.float32]
Numbers = NDArray[np.intp]

NOISE = 0.01  # standard deviation of the noise in the initial matrices
# Adam's decay rates of both moments, and the constant in its divisor.
_FIRST_DECAY, _SECOND_DECAY, _EPSILON = 0.9, 0.999, 1e-8

# The folds of a training mostly have the same texts, because their topics are documents.
_latent_space = lru_cache(maxsize=1)(latent_space)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedMetric(Trained):
    """The cosine of the vectors of topic and document."""

    kind: ClassVar[str] = "metric"
    most_kept: ClassVar[int] = 4  # a model of 12,000 documents is a file of up to 100 MB

    window: int = window()
    dimensions: int = whole("number of dimensions of the vectors", default=400)
    latent_dimensions: int = whole("number of dimensions of the latent space", default=1200)
    min_df: int = whole("minimum number of texts with a word or a pair of words", default=3)
    temperature: float = number("divisor of the cosines in the training", default=0.1)
    batch_size: int = whole("number of pairs of a batch", default=512)
    learning_rate: float = number("learning rate of Adam", default=0.005)
    epochs: int = whole("number of passes over all pairs", default=20)

    @classmethod
    def read(cls, table: RecipeTable) -> Self:
        signal = cls(name=table.name, **table.parameters(cls))
        if signal.temperature == 0:
            raise table.place.wrong(f"has the temperature 0 in {table.name!r}: it must be above 0")
        return signal

    def train(
        self,
        examples: Sequence[Example],
        documents: Iterable[Document],
        workers: int,  # noqa: ARG002  # sums of several threads would depend on their number
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        learning.require_learn()
        from threadpoolctl import threadpool_limits

        texts = {document.id: document.text for document in documents}
        ids = sorted(texts, key=str.encode)
        distinct = tuple(sorted({*texts.values(), *(example.topic.text for example in examples)}))
        row_of = {text: row for row, text in enumerate(distinct)}
        pairs = sorted(
            (example.topic.id, row_of[example.topic.text], row_of[texts[document]])
            for example in examples
            for document, grade in example.gold.items()
            if grade > 0 and document in texts
        )
        if not pairs:
            raise DataError(
                f"none of the {counted(len(examples), 'training topic')} has a relevant document, so the signal "
                f"{self.name} can't learn: choose another recipe"
            )
        topic_rows, document_rows = np.array([pair[1:] for pair in pairs], np.intp).T
        with threadpool_limits(limits=1):
            space = _latent_space(distinct, self.min_df, self.latent_dimensions, self.seed)
            of_topics, of_documents = self._matrices(space.rows, topic_rows, document_rows)
            projection = TextProjection.of(space.features, space.components.T @ of_topics)
            document_vectors = as_bytes(space.rows @ of_documents)[[row_of[texts[id_]] for id_ in ids]]
        header = {**projection.header(), "labels": ids, "processor": learning.processor()}
        return header, {**projection.arrays(), "documents": document_vectors}

    def release(self) -> None:
        _latent_space.cache_clear()

    def _matrices(
        self, rows: Float32s, topic_rows: Numbers, document_rows: Numbers
    ) -> tuple[Float32s, Float32s]:
        """Return A and B, trained on pairs of texts given by their numbers."""
        generator = np.random.default_rng(self.seed)
        shape = rows.shape[1], min(self.dimensions, rows.shape[1])
        matrices = [
            (np.eye(*shape) + generator.normal(scale=NOISE, size=shape)).astype(np.float32) for _ in range(2)
        ]
        moments = [(np.zeros_like(matrix), np.zeros_like(matrix)) for matrix in matrices]
        step = 0
        for _ in range(self.epochs):
            order = generator.permutation(len(topic_rows))
            for start in range(0, len(order), self.batch_size):
                batch = order[start : start + self.batch_size]
                gradients = _gradients(
                    matrices, rows, topic_rows[batch], document_rows[batch], self.temperature
                )
                step += 1
                rate = self.learning_rate * np.sqrt(1 - _SECOND_DECAY**step) / (1 - _FIRST_DECAY**step)
                for matrix, gradient, (first, second) in zip(matrices, gradients, moments, strict=True):
                    first += (1 - _FIRST_DECAY) * (gradient - first)
                    second += (1 - _SECOND_DECAY) * (gradient * gradient - second)
                    matrix -= np.float32(rate) * first / (np.sqrt(second) + _EPSILON)
        return matrices[0], matrices[1]

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _MetricScorer(self, inputs.model(self), topics_are_documents=inputs.topics_are_documents)


def _gradients(
    matrices: Sequence[Float32s], rows: Float32s, topics: Numbers, documents: Numbers, temperature: float
) -> list[Float32s]:
    """Return the gradients of A and B: those of the mean loss of a batch of pairs."""
    texts = [rows[topics], rows[documents]]
    mapped = [text @ matrix for text, matrix in zip(texts, matrices, strict=True)]
    lengths = [np.maximum(np.linalg.norm(vector, axis=1, keepdims=True), 1e-9) for vector in mapped]
    of_topics, of_documents = (vector / length for vector, length in zip(mapped, lengths, strict=True))
    logits = (of_topics @ of_documents.T) / np.float32(temperature)
    is_excluded = (topics[:, None] == topics) | (documents[:, None] == documents)
    np.fill_diagonal(is_excluded, val=False)
    logits[is_excluded] = -np.inf
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares -= np.eye(len(shares), dtype=np.float32)
    shares /= np.float32(temperature * len(shares))
    gradients = []
    for text, unit, length, gradient in zip(
        texts, (of_topics, of_documents), lengths, (shares @ of_documents, shares.T @ of_topics), strict=True
    ):
        along = (unit * gradient).sum(axis=1, keepdims=True)
        gradients.append(text.T @ ((gradient - unit * along) / length))
    return gradients


class _MetricScorer(ByteVectorScorer):
    def __init__(self, signal: LearnedMetric, stored: StoredModel, *, topics_are_documents: bool) -> None:
        self._stored = stored
        self._projection = TextProjection.read(stored)
        ids = learning.texts(stored.header, "labels")
        documents = byte_matrix(stored.arrays, "documents", len(ids), self._projection.dimensions)
        super().__init__(ids, documents, signal.window, topics_are_documents=topics_are_documents)

    def topic_vectors(self, topics: Sequence[Topic]) -> Int8s:
        require_unseen(self._stored, topics)
        return as_bytes(self._projection.vectors([topic.text for topic in topics]))

    def model(self) -> dict[str, Any]:
        return model_record(self._stored)
