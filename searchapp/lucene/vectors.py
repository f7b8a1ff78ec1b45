"""Vectors of `dense_vector` fields: their values in JSON, and exact scores of many vectors.

Elements are bytes (int8) or bits (8 in a byte). Dot products and squared distances are integers, so no rounding
depends on the order of a sum. Scores are float32, computed from these integers as in

    org.apache.lucene.index.VectorSimilarityFunction
    org.elasticsearch.index.mapper.vectors.DenseVectorFieldMapper.{ElementType, VectorSimilarity}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import native, parameters
from searchapp.lucene.similarity import ONE, Float32s

COSINE, DOT_PRODUCT, MAX_INNER_PRODUCT, L2_NORM = SIMILARITIES = (
    "cosine", "dot_product", "max_inner_product", "l2_norm",
)  # fmt: skip
HAMMING = "hamming"  # the similarity of bits, which mappings call `l2_norm`

VECTORS = "vectors"  # the array of the vectors of a field in a segment

MOST_DIMENSIONS = 4096  # of bytes; vectors of bits have at most this many bytes

# The float32 sums of this many products of bytes are exact in any order: 1024 * 128 * 128 = 2**24.
EXACT_IN_FLOAT32 = 1024

BLOCK_BYTES = 1 << 19  # bytes of vectors compared at a time
SCORES_AT_ONCE = 1 << 24  # scores of vectors and queries in memory

_BIT_COUNTS = np.array([number.bit_count() for number in range(256)], np.uint8)

Bytes = NDArray[np.uint8]
Doubles = NDArray[np.float64]
Formula = Callable[[Any, int], Any]


def read_vector(value: Any, length: int) -> bytes:
    """Return the bytes of a vector, given as integers from -128 to 127 or as hexadecimal digits.

    Args:
        value: of a document or of `query_vector`
        length: the number of bytes

    Raises:
        NotImplementedError: only Elasticsearch reads it
        ValueError: it is no such vector
    """
    if isinstance(value, str):
        if len(value) != 2 * length or not re.fullmatch("[0-9a-fA-F]*", value):
            raise NotImplementedError(f"a text other than {2 * length:,} hexadecimal digits for a vector")
        return bytes.fromhex(value)
    if not isinstance(value, list | tuple):
        raise ValueError(f"a vector must be a list of integers, not {parameters.shown(value)}")
    if len(value) != length:
        raise ValueError(f"a vector has {len(value):,} numbers instead of {length:,}")
    try:
        return np.array([_element(number) for number in value], np.int8).tobytes()
    except ValueError as error:
        raise ValueError(f"a vector contains {error}") from error


def _element(number: Any) -> int:
    if not parameters.is_number(number):
        raise ValueError(f"{parameters.shown(number)}, which is no number")
    rounded = parameters.float32_of_json(number) if isinstance(number, float) else number
    if not -128 <= rounded <= 127 or int(rounded) != rounded:
        raise ValueError(f"{parameters.shown(number)}, which is no integer from -128 to 127")
    return int(rounded)


def _cosine(value: Any, _dims: int) -> Any:
    return (ONE + value) / np.float32(2)


def _dot_product(value: Any, dims: int) -> Any:
    return np.float32(0.5) + value / np.float32(dims * 32768)


def _max_inner_product(value: Any, _dims: int) -> Any:
    return np.where(value < 0, ONE / (ONE + np.abs(value)), value + ONE)


def _distance(value: Any, _dims: int) -> Any:
    return ONE / (ONE + value)


def _hamming(value: Any, dims: int) -> Any:
    return (np.float32(dims) - value) / np.float32(dims)


# The scores of float32 cosines, dot products, squared distances or numbers of differing bits.
_FORMULAS: Mapping[str, Formula] = {
    COSINE: _cosine,
    DOT_PRODUCT: _dot_product,
    MAX_INNER_PRODUCT: _max_inner_product,
    L2_NORM: _distance,
    HAMMING: _hamming,
}


def least_score(similarity: str, dims: int, threshold: float) -> np.float32:
    """Return the score of the parameter `similarity` of a search, a cosine, product, distance or number of bits."""
    value = np.float32(threshold)
    with np.errstate(over="ignore", divide="ignore"):
        return np.float32(_FORMULAS[similarity](value * value if similarity == L2_NORM else value, dims))


def squares(vectors: Bytes) -> Doubles:
    """Return the squared lengths of vectors of bytes, shape `(count,)`, given their bytes of shape `(count, dims)`."""
    lengths = np.empty(len(vectors))
    for block in _blocks(*vectors.shape):
        numbers = _numbers(vectors[block])
        lengths[block] = np.einsum("ij,ij->i", numbers, numbers)
    return lengths


def scores(
    similarity: str,
    vectors: Bytes,
    lengths: Doubles | None,
    queries: Bytes,
    dims: int,
    selected: NDArray[np.intp] | None = None,
) -> Float32s:
    """Return the scores of vectors for queries.

    Args:
        vectors: their bytes, shape `(count, length)`
        lengths: the `squares` of the vectors, for the cosine and the distance
        queries: shape `(number of queries, length)`
        dims: the number of elements
        selected: the indices of the vectors to compare; all by default

    Returns:
        Shape `(number of queries, number of compared vectors)`.
    """
    count = len(vectors) if selected is None else len(selected)
    result = np.empty((len(queries), count), np.float32)
    of_queries = None if lengths is None else squares(queries)
    for block in _blocks(count, vectors.shape[1]):
        part = block if selected is None else selected[block]
        if similarity == HAMMING:
            for number, query in enumerate(queries):
                differing = _BIT_COUNTS[vectors[part] ^ query].sum(1, dtype=np.int32)
                result[number, block] = _hamming(differing.astype(np.float32), dims)
            continue
        values: NDArray[Any] = dot_products(vectors[part], queries)
        if lengths is not None and of_queries is not None:
            if similarity == COSINE:
                values = values / np.sqrt(of_queries[:, None] * lengths[part])
            else:
                values = of_queries[:, None] + lengths[part] - 2.0 * values
        result[:, block] = _FORMULAS[similarity](values.astype(np.float32, copy=False), dims)
    return result


def dot_products(vectors: Bytes, queries: Bytes) -> NDArray[Any]:
    """Return the exact dot products of vectors and queries, shape `(number of queries, count)`."""
    library = native.library()
    if library is None or vectors.shape[1] > MOST_DIMENSIONS:  # the greatest length of vectors.c
        products: NDArray[Any] = _numbers(queries) @ _numbers(vectors).T
        return products
    vectors = np.ascontiguousarray(vectors)
    wide = queries.view(np.int8).astype(np.int16)
    result = np.empty((len(queries), len(vectors)), np.int32)
    written = wide.ctypes.data, len(wide), result.ctypes.data
    library.searchapp_dots(vectors.ctypes.data, *vectors.shape, *written)
    return result


def needs_lengths(similarity: str) -> bool:
    """Return whether `scores` reads the squared lengths of the vectors."""
    return similarity in (COSINE, L2_NORM)


def _numbers(vectors: Bytes) -> NDArray[Any]:
    """Return bytes as floating point numbers in which sums of their products are exact."""
    is_short = vectors.shape[1] <= EXACT_IN_FLOAT32
    return vectors.view(np.int8).astype(np.float32 if is_short else np.float64)


def _blocks(count: int, length: int) -> Sequence[slice]:
    size = max(1, BLOCK_BYTES // max(1, length))
    return [slice(first, first + size) for first in range(0, count, size)]
