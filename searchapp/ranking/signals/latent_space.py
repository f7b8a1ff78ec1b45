r"""Latent semantic analysis: texts as vectors of fewer dimensions than they have words, without a pretrained model.

A text is a vector of the tf-idf weights of its words and pairs of words, (1 + ln tf) * idf with
idf = ln((1 + N) / (1 + df)) + 1 over the distinct texts, and has length 1. The truncated singular value decomposition
of these vectors (Deerwester et al., "Indexing by latent semantic analysis", JASIS 1990), by a seeded randomised
algorithm (Halko, Martinsson and Tropp, "Finding structure with randomness", SIAM Review 2011) in single precision,
gives the latent space. scikit-learn's `TruncatedSVD` does the same in double precision, with copies of each matrix.

The same texts give the same space on the same kind of processor, whatever the number of threads; on another one the
last bits of sums differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import DataError
from searchapp.lucene.dataclass import dataclass
from searchapp.ranking import learning
from searchapp.ranking.learning import StoredModel
from searchapp.text import counted

Float32s = NDArray[np.float32]

# A word, a LaTeX command, a number or a sign.
_TOKEN = re.compile(r"\\?[^\W\d_]+|\d+|[^\w\s\\]")

OVERSAMPLING = 10  # additional dimensions of the random sample, as Halko, Martinsson and Tropp recommend

TEXTS_AT_ONCE, COLUMNS_AT_ONCE = 1024, 64  # which bounds temporary memory

# The greatest absolute value of a stored projection, in whose range float16 is most precise.
_PROJECTION_SCALE = 1024.0


@dataclass(frozen=True, eq=False)
class TextFeatures:
    """Words and pairs of words, sorted, and their idf (features,)."""

    names: tuple[str, ...]
    idf: NDArray[np.float64]

    @classmethod
    def of(cls, texts: Sequence[str], min_df: int) -> TextFeatures:
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


class LatentSpace(NamedTuple):
    """The latent space of some texts."""

    features: TextFeatures
    components: Float32s  # (dimensions, features)
    rows: Float32s  # the vectors of the texts, (texts, dimensions), of length 1 or 0


def latent_space(texts: Sequence[str], min_df: int, dimensions: int, seed: int) -> LatentSpace:
    """Return the latent space of distinct texts, with fewer dimensions if the texts or features are fewer.

    Args:
        texts: the texts
        min_df: the least number of texts with a feature
        dimensions: the number of dimensions
        seed: the seed of the decomposition

    Raises:
        DataError: less than two features, or texts, remain.
    """
    features = TextFeatures.of(texts, min_df)
    weights = features.vectors(texts).astype(np.float32)
    most = min(weights.shape) - 1
    if most < 1:
        raise DataError(
            f"only {counted(len(features.names), 'word')} of {counted(len(texts), 'text')} occur in at least "
            f"{min_df} texts: lower `min_df`"
        )
    components = _singular_vectors(weights, min(dimensions, most), seed)
    rows = _product([weights], components)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return LatentSpace(features, components.T, rows)


def _singular_vectors(weights: Any, dimensions: int, seed: int) -> Float32s:
    """Return the first right singular vectors, (features, dimensions), of a sparse matrix, (texts, features).

    Every step overwrites its input or works on a part of it, because the matrices take most of the memory of training.
    """
    from scipy.linalg import eigh, qr
    from threadpoolctl import threadpool_limits

    by_feature = weights.T.tocsr()
    size = min(dimensions + OVERSAMPLING, *weights.shape)
    # A sample of the smaller side, and one power iteration: more change no measured figure.
    factors = [by_feature, weights, by_feature]
    if weights.shape[0] > weights.shape[1]:
        factors.append(weights)
    sample = np.random.RandomState(seed).normal(size=(factors[-1].shape[1], size)).astype(np.float32)
    basis = _product(factors, sample, order="F")
    del sample
    # Sums of several threads would depend on their number. The library of SciPy must be loaded before.
    with threadpool_limits(limits=1):
        basis, _ = qr(basis, mode="economic", overwrite_a=True, check_finite=False)
        projected = _product([weights], basis)
        # The eigenvectors of this small matrix are singular vectors of `projected`.
        products = np.zeros((size, size))
        for begin in range(0, len(projected), TEXTS_AT_ONCE):
            part = projected[begin : begin + TEXTS_AT_ONCE].astype(np.float64)
            products += part.T @ part
        del projected
        vectors = eigh(products)[1][:, : -dimensions - 1 : -1].astype(np.float32)
        for begin in range(0, len(basis), TEXTS_AT_ONCE):
            part = basis[begin : begin + TEXTS_AT_ONCE]
            part[:, :dimensions] = part @ vectors
    components: Float32s = basis[:, :dimensions]
    # Singular vectors have no sign: their greatest value is positive here.
    components *= np.where(components.max(axis=0) < -components.min(axis=0), -1, 1).astype(np.float32)
    return components


def _product(factors: Sequence[Any], matrix: NDArray[Any], order: Literal["C", "F"] = "C") -> NDArray[Any]:
    """Return the product of sparse matrices, the last one first, with a matrix, in their precision.

    Args:
        factors: the sparse matrices
        matrix: the dense matrix
        order: whether the result is stored by rows (C) or by columns (F)
    """
    result = np.empty((factors[0].shape[0], matrix.shape[1]), factors[0].dtype, order=order)
    for begin in range(0, matrix.shape[1], COLUMNS_AT_ONCE):
        part = matrix[:, begin : begin + COLUMNS_AT_ONCE].astype(result.dtype)
        for factor in reversed(factors):
            part = factor @ part
        result[:, begin : begin + COLUMNS_AT_ONCE] = part
    return result


def lsa(
    documents: Sequence[str], topics: Sequence[str], min_df: int, dimensions: int, seed: int
) -> tuple[TextProjection, Float32s, Float32s]:
    """Return the latent space of documents as a projection, and the vectors of documents and topics in it.

    Vectors of texts without a known feature are 0. For `min_df`, `dimensions` and `seed` see `latent_space`.

    Raises:
        DataError: less than two features, or texts, remain.
    """
    distinct = tuple(sorted(set(documents)))
    space = latent_space(distinct, min_df, dimensions, seed)
    row_of = {text: row for row, text in enumerate(distinct)}
    projection = TextProjection.of(space.features, space.components.T)
    vectors = space.rows[[row_of[text] for text in documents]]
    return projection, vectors, projection.vectors(topics).astype(np.float32)


class TextProjection:
    """A linear map from the features of texts to vectors, as it is stored in the file of a model.

    Args:
        features: the features
        matrix: floating point numbers, (features, dimensions)
    """

    def __init__(self, features: TextFeatures, matrix: NDArray[Any]) -> None:
        self._features = features
        self._matrix = matrix

    @classmethod
    def of(cls, features: TextFeatures, matrix: Float32s) -> TextProjection:
        """Return a matrix, (features, dimensions), as float16, up to a factor."""
        greatest = float(max(matrix.max(), -matrix.min()))
        scaled = np.empty(matrix.shape, np.float16)
        np.multiply(matrix, _PROJECTION_SCALE / greatest, out=scaled, casting="same_kind")
        return cls(features, scaled)

    @classmethod
    def read(cls, stored: StoredModel) -> TextProjection:
        """Return the projection of a file.

        Raises:
            DataError: it is missing, or has another shape or kind of numbers.
        """
        names = learning.texts(stored.header, "features")
        matrix = stored.arrays.get("projection")
        if matrix is None or matrix.ndim != 2 or matrix.dtype.kind != "f" or len(matrix) != len(names):
            raise learning.invalid_part("projection")
        if not np.isfinite(matrix).all():
            raise learning.invalid_part("projection")
        return cls(TextFeatures(names, learning.numbers(stored.arrays, "idf", len(names))), matrix)

    @property
    def dimensions(self) -> int:
        return int(self._matrix.shape[1])

    def header(self) -> dict[str, Any]:
        return {"features": list(self._features.names)}

    def arrays(self) -> dict[str, Any]:
        return {"idf": self._features.idf, "projection": self._matrix}

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the vectors of texts, (texts, dimensions), of any length; 0 for a text without a known feature."""
        weights = self._features.vectors(texts)
        used = np.unique(weights.indices)
        # Sparse products are sums in the order of the features, in double precision.
        return _product([weights[:, used]], self._matrix[used])
