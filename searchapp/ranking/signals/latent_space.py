r"""Latent semantic analysis: texts as vectors of fewer dimensions than they have words, without a pretrained model.

A text is a vector of the tf-idf weights of its words and pairs of words, (1 + ln tf) * idf with
idf = ln((1 + N) / (1 + df)) + 1 over the distinct texts, and has length 1. The truncated singular value decomposition
of these vectors (Deerwester et al., "Indexing by latent semantic analysis", JASIS 1990), by scikit-learn's seeded
randomised algorithm (Halko, Martinsson and Tropp, SIAM Review 2011), gives the latent space.

The same texts give the same space on the same kind of processor, whatever the number of threads; on another one the
last bits of sums differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

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

SVD_ITERATIONS = 1  # more change no measured figure

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


# The folds of a training mostly have the same texts, because their topics are documents.
@lru_cache(maxsize=1)
def latent_space(texts: Sequence[str], min_df: int, dimensions: int, seed: int) -> LatentSpace:
    """Return the latent space of distinct texts, with fewer dimensions if the texts or features are fewer.

    Args:
        texts: the texts, as a tuple
        min_df: the least number of texts with a feature
        dimensions: the number of dimensions
        seed: the seed of the decomposition

    Raises:
        DataError: less than two features, or texts, remain.
    """
    from sklearn.decomposition import TruncatedSVD
    from threadpoolctl import threadpool_limits

    features = TextFeatures.of(texts, min_df)
    weights = features.vectors(texts)
    most = min(weights.shape) - 1
    if most < 1:
        raise DataError(
            f"only {counted(len(features.names), 'word')} of {counted(len(texts), 'text')} occur in at least "
            f"{min_df} texts: lower `min_df`"
        )
    svd = TruncatedSVD(min(dimensions, most), n_iter=SVD_ITERATIONS, random_state=seed)
    with threadpool_limits(limits=1):
        rows = svd.fit_transform(weights)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return LatentSpace(features, svd.components_.astype(np.float32), rows.astype(np.float32))


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
        greatest = float(np.abs(matrix).max())
        return cls(features, (matrix * (_PROJECTION_SCALE / greatest)).astype(np.float16))

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
        vectors: NDArray[np.float64] = weights[:, used] @ self._matrix[used].astype(np.float64)
        return vectors
