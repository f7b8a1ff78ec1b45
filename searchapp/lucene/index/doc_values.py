"""The numbers of documents: as integers of the same order, and several of a document as one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.index.arrays import Int64s

_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)  # the bits of a double without its sign
LEAST_LONG, GREATEST_LONG = -(1 << 63), (1 << 63) - 1


def sortable(values: NDArray[Any]) -> Int64s:
    """Return doubles as integers of the same order, -0.0 before 0.0 (`NumericUtils.doubleToSortableLong`)."""
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    return np.asarray(bits ^ ((bits >> 63) & _MAGNITUDE))


def of_sortable(keys: Int64s) -> NDArray[np.float64]:
    """Return the doubles of `sortable` integers."""
    return np.ascontiguousarray(keys ^ ((keys >> 63) & _MAGNITUDE)).view(np.float64)


def as_longs(numbers: NDArray[Any]) -> Int64s:
    """Cast doubles as Java does, towards zero and within the range of long."""
    with np.errstate(invalid="ignore"):
        longs = numbers.astype(np.int64)
    longs[numbers >= 2.0**63] = GREATEST_LONG
    longs[numbers <= -(2.0**63)] = LEAST_LONG
    return longs


def _rounded(values: NDArray[np.float64]) -> Int64s:
    """Round half up to integers, as `Math.round` does."""
    whole = np.floor(values)
    return as_longs(whole + (values - whole >= 0.5))


def one_of_each(
    mode: str, documents: NDArray[Any], values: NDArray[Any], count: int, missing: float = 0
) -> NDArray[Any]:
    """Return one number for each of `count` documents.

    Means and medians of integers are rounded.

    Args:
        mode: `min`, `max`, `sum`, `avg` or `median`
        documents: the document of each value
        values: ascending
        count: the number of documents
        missing: the number of a document without a value
    """
    counts = np.bincount(documents, minlength=count)
    chosen = np.full(count, missing, values.dtype)
    if mode in ("min", "max") or counts.max(initial=0) < 2:
        end = -1 if mode == "min" else 1  # the last assignment to a document counts
        chosen[documents[::end]] = values[::end]
        return chosen
    has_value = counts > 0
    counts = counts[has_value]
    is_integer = values.dtype == np.int64
    with np.errstate(over="ignore", invalid="ignore"):
        if mode == "median":
            by_document = values[np.argsort(documents, kind="stable")]
            starts = np.cumsum(counts) - counts
            lower, upper = (by_document[starts + index] for index in ((counts - 1) // 2, counts // 2))
            middle = (lower.astype(np.float64) + upper) / 2.0
            is_odd = counts % 2 == 1
            chosen[has_value] = np.where(is_odd, lower, _rounded(middle) if is_integer else middle)
            return chosen
        sums = np.zeros(count, values.dtype)
        np.add.at(sums, documents, values)  # in ascending order, as Elasticsearch
        sums = sums[has_value]
        if mode == "sum":
            chosen[has_value] = sums
        else:
            means = sums / counts
            chosen[has_value] = np.where(counts > 1, _rounded(means), sums) if is_integer else means
    return chosen
