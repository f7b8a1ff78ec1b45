r"""The signal `metric`: the similarity of vectors that are trained on topics and their relevant documents.

A text is a vector of the tf-idf weights of its words and pairs of words, (1 + ln tf) * idf with
idf = ln((1 + N) / (1 + df)) + 1 over the distinct texts of documents and training topics. A truncated singular value
decomposition (as in `latent`) reduces these to `latent_dimensions`. Two matrices A and B, one for topics and one for
documents, map them to vectors of `dimensions`. They start as the identity with noise and are trained by Adam (Kingma
and Ba, ICLR 2015) on pairs of a topic t and a relevant document d, to minimise

    -ln( e^(cos(tA, dB) / temperature) / Σ_e e^(cos(tA, eB) / temperature) )

over d and the documents e of the other pairs of a batch (dense passage retrieval: Karpukhin et al., EMNLP 2020),
except pairs with the same topic or the same document.

Vectors are stored and compared as bytes: the greatest component is scaled to 127, others in proportion, and rounded. A
score is that of Elasticsearch for the similarity `cosine` of bytes, (1 + cosine) / 2, from exact sums of integers.

Training computes in float32 in one thread. The same input gives the same model on the same kind of processor; on
another one the last bits of sums differ, which training amplifies. A model has the vectors of all documents.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import DataError
from searchapp.model import Document, Example, Topic
from searchapp.ranking import learning
from searchapp.ranking.signals.base import (
    Inputs,
    SignalScorer,
    Trained,
    model_record,
    require_unseen,
)
from searchapp.ranking.signals.vectors import ByteVectorScorer, Int8s, as_bytes, byte_matrix
from searchapp.ranking.templates import RecipeTable, number, whole, window
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.ranking.learning import Arrays, StoredModel

Float32s = NDArray[np.float32]
Numbers = NDArray[np.intp]

# A word, a LaTeX command, a number or a sign.
_TOKEN = re.compile(r"\\?[^\W\d_]+|\d+|[^\w\s\\]")

NOISE = 0.01  # standard deviation of the noise in the initial matrices
SVD_ITERATIONS = 1  # more change no measured figure
# Adam's decay rates of both moments, and the constant in its divisor.
_FIRST_DECAY, _SECOND_DECAY, _EPSILON = 0.9, 0.999, 1e-8
# The greatest absolute value of a stored projection, in whose range float16 is most precise.
_PROJECTION_SCALE = 1024.0


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
        from threadpoolctl import threadpool_info, threadpool_limits

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
            projection = space.components.T @ of_topics
            document_vectors = as_bytes(space.rows[[row_of[texts[id_]] for id_ in ids]] @ of_documents)
        greatest = float(np.abs(projection).max())
        kernels = {str(library["architecture"]) for library in threadpool_info() if "architecture" in library}
        header = {
            "features": list(space.features.names),
            "labels": ids,
            "processor": " ".join([platform.machine(), *sorted(kernels)]),
        }
        return header, {
            "idf": space.features.idf,
            "projection": (projection * (_PROJECTION_SCALE / greatest)).astype(np.float16),
            "documents": document_vectors,
        }

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


@dataclass(frozen=True, eq=False)
class _Features:
    """Words and pairs of words, sorted, and their idf (features,)."""

    names: tuple[str, ...]
    idf: NDArray[np.float64]

    @classmethod
    def of(cls, texts: Sequence[str], min_df: int) -> _Features:
        df = Counter(feature for text in texts for feature in _count_features(text))
        names = sorted(feature for feature, count in df.items() if count >= min_df)
        counts = np.array([df[feature] for feature in names], np.float64)
        return cls(tuple(names), np.log((1.0 + len(texts)) / (1.0 + counts)) + 1.0)

    @cached_property
    def _columns(self) -> Mapping[str, int]:
        return {feature: column for column, feature in enumerate(self.names)}

    def vectors(self, texts: Iterable[str]) -> Any:
        """Return the weights of the features of each text: a sparse matrix by rows of length 1, or 0."""
        from scipy.sparse import csr_array

        columns: list[int] = []
        values: list[NDArray[np.float64]] = []
        ends = [0]
        for text in texts:
            counts = sorted(
                (self._columns[feature], count)
                for feature, count in _count_features(text).items()
                if feature in self._columns
            )
            columns += [column for column, _count in counts]
            ends.append(len(columns))
            weights = 1.0 + np.log([count for _column, count in counts])
            weights *= self.idf[columns[ends[-2] :]]
            values.append(weights / np.sqrt(weights @ weights) if counts else weights)
        cells = np.concatenate([*values, np.zeros(0)]), np.array(columns, np.int32), np.array(ends)
        return csr_array(cells, shape=(len(values), len(self.names)))


def _count_features(text: str) -> Counter[str]:
    words = _TOKEN.findall(text.lower())
    counts = Counter(words)
    counts.update(f"{first} {second}" for first, second in pairwise(words))
    return counts


class _LatentSpace(NamedTuple):
    features: _Features
    components: Float32s  # (dimensions, features)
    rows: Float32s  # the vectors of the texts, (texts, dimensions), of length 1 or 0


# The folds of a training mostly have the same texts, because their topics are documents.
@lru_cache(maxsize=1)
def _latent_space(texts: Sequence[str], min_df: int, dimensions: int, seed: int) -> _LatentSpace:
    from sklearn.decomposition import TruncatedSVD

    features = _Features.of(texts, min_df)
    weights = features.vectors(texts)
    most = min(weights.shape) - 1
    if most < 1:
        raise DataError(
            f"only {counted(len(features.names), 'word')} of {counted(len(texts), 'text')} occur in at least "
            f"{min_df} texts: lower `min_df` with --set, or choose another recipe"
        )
    svd = TruncatedSVD(min(dimensions, most), n_iter=SVD_ITERATIONS, random_state=seed)
    rows = svd.fit_transform(weights)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return _LatentSpace(features, svd.components_.astype(np.float32), rows.astype(np.float32))


class _MetricScorer(ByteVectorScorer):
    def __init__(self, signal: LearnedMetric, stored: StoredModel, *, topics_are_documents: bool) -> None:
        self._stored = stored
        arrays = stored.arrays
        names = learning.texts(stored.header, "features")
        ids = learning.texts(stored.header, "labels")
        self._features = _Features(names, learning.numbers(arrays, "idf", len(names)))
        self._projection = _projection(arrays, len(names))
        documents = byte_matrix(arrays, "documents", len(ids), self._projection.shape[1])
        # Documents without a known word have no vector.
        has_vector = documents.any(axis=1)
        super().__init__(
            np.array(ids)[has_vector].tolist(),
            documents[has_vector],
            signal.window,
            topics_are_documents=topics_are_documents,
        )

    def topic_vectors(self, topics: Sequence[Topic]) -> Int8s:
        require_unseen(self._stored, topics)
        weights = self._features.vectors([topic.text for topic in topics])
        used = np.unique(weights.indices)
        # Sparse products are sums in the order of the features, in double precision.
        return as_bytes(weights[:, used] @ self._projection[used].astype(np.float64))

    def model(self) -> dict[str, Any]:
        return model_record(self._stored)


def _projection(arrays: Arrays, rows: int) -> Any:
    """Return the matrix from features to the vectors of topics.

    Raises:
        DataError: it is missing, or has another shape or kind of numbers.
    """
    matrix = arrays.get("projection")
    if matrix is None or matrix.ndim != 2 or matrix.dtype.kind != "f" or len(matrix) != rows:
        raise learning.invalid_part("projection")
    if not np.isfinite(matrix).all():
        raise learning.invalid_part("projection")
    return matrix
