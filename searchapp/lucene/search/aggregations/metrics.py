"""Metric aggregations: numbers of a set of documents.

Source: org.elasticsearch.search.aggregations.metrics.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import unsupported
from searchapp.lucene.index.arrays import Int64s
from searchapp.lucene.index.doc_values import of_sortable, sortable
from searchapp.lucene.search.aggregations.values import Documents, ValueSource

Json = dict[str, Any]

EXACT = 2.0**53  # every integer up to this one is a double


def compensated_sum(values: NDArray[np.float64]) -> float:
    """Return the sum of doubles in their order with Kahan's compensation.

    Source: `CompensatedSum`.
    """
    if not len(values):
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        if (values == np.floor(values)).all() and np.abs(values).sum() <= EXACT:
            return float(values.sum())  # every partial sum is exact
    total = delta = 0.0
    for value in values.tolist():
        if math.isfinite(value) and math.isfinite(total):
            corrected = value + delta
            updated = total + corrected
            delta = corrected - (updated - total)
            total = updated
        else:
            total += value
    return total


def _extreme(values: NDArray[np.float64], *, is_max: bool) -> float:
    if not len(values):
        return -math.inf if is_max else math.inf
    keys = sortable(values)
    return float(of_sortable(np.array([keys.max() if is_max else keys.min()]))[0])


@dataclass(frozen=True, slots=True)
class Metric:
    """An aggregation of one value: `min`, `max`, `sum`, `avg`, `value_count` or `cardinality`."""

    kind: str
    source: ValueSource
    threshold: int = 0  # `precision_threshold` of `cardinality`

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        values = self.source.pairs(index, np.empty(0, np.int64) if documents is None else documents)[1]
        if self.kind == "value_count":
            return {"value": len(values)}
        if self.kind == "cardinality":
            return {"value": _cardinality(values, self.source, index, self.threshold)}
        doubles = values.astype(np.float64)
        value, count = _value(self.kind, doubles), len(doubles)
        if not (count or self.kind == "sum"):
            return {"value": None}
        return {"value": _shown(value), **self.source.format.as_string("value", value)}


def _value(kind: str, values: NDArray[np.float64]) -> float:
    if kind == "sum":
        return compensated_sum(values)
    if kind == "avg":
        return compensated_sum(values) / len(values) if len(values) else math.nan
    return _extreme(values, is_max=kind == "max")


def _shown(value: float) -> Any:
    """Return a double as in JSON: text if it is infinite or not a number."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


@dataclass(frozen=True, slots=True)
class Stats:
    """The aggregations `stats` and `extended_stats`."""

    kind: str
    source: ValueSource
    sigma: float | None = None  # of the bounds of `extended_stats`; None for `stats`

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        values = self.source.pairs(index, np.empty(0, np.int64) if documents is None else documents)[1]
        doubles = values.astype(np.float64)
        count = len(doubles)
        numbers = {kind: _value(kind, doubles) for kind in ("min", "max", "avg", "sum")}
        shown: Json = {"count": count, **{name: _shown(value) for name, value in numbers.items()}}
        if self.sigma is not None:
            extended = _extended(count, numbers["sum"], doubles, self.sigma)
            bounds = {name: value for name, value in extended.items() if name.startswith(("upper", "lower"))}
            numbers |= {name: value for name, value in extended.items() if name not in bounds}
            shown |= {name: _shown(value) for name, value in extended.items() if name not in bounds}
            shown["std_deviation_bounds"] = {name: _shown(value) for name, value in bounds.items()}
        if count:
            for name, value in numbers.items():
                shown |= self.source.format.as_string(name, value)
            return shown
        return {
            name: _without_values(value) if name not in ("count", "sum") else value
            for name, value in shown.items()
        }


def _without_values(value: Any) -> Any:
    return dict.fromkeys(value) if isinstance(value, dict) else None


def _extended(count: int, total: float, values: NDArray[np.float64], sigma: float) -> dict[str, float]:
    with np.errstate(over="ignore"):
        squares = compensated_sum(values * values)
    deviation = squares - _quotient(total * total, count)
    variance, sampling = (_quotient(deviation, divisor) for divisor in (count, count - 1))
    variance, sampling = (0.0 if value < 0 else value for value in (variance, sampling))
    average = _quotient(total, count)
    extended = {
        "sum_of_squares": squares,
        "variance": variance,
        "variance_population": variance,
        "variance_sampling": sampling,
        "std_deviation": math.sqrt(variance),
        "std_deviation_population": math.sqrt(variance),
        "std_deviation_sampling": math.sqrt(sampling),
    }
    for end, sign in (("upper", 1), ("lower", -1)):
        for suffix, name in (("", ""), ("_population", "_population"), ("_sampling", "_sampling")):
            extended[f"{end}{suffix}"] = average + sign * (extended[f"std_deviation{name}"] * sigma)
    return extended


def _quotient(dividend: float, divisor: int) -> float:
    if divisor:
        return dividend / divisor
    return math.nan if not dividend or math.isnan(dividend) else math.copysign(math.inf, dividend)


# Cardinality

_P2 = 25  # bits of a hash that linear counting distinguishes
_MOST_THRESHOLD = 40_000


def _cardinality(values: NDArray[Any], source: ValueSource, index: Documents, threshold: int) -> int:
    """Return the number of distinct values as `HyperLogLogPlusPlus` estimates it with linear counting."""
    values = of_sortable(np.unique(sortable(values))) if source.is_decimal else np.unique(values)
    entries = math.ceil(min(threshold, _MOST_THRESHOLD) / 0.75)
    precision = min(max((entries * 4).bit_length(), 4), 18)
    capacity = 1 << precision - 2
    if source.is_keyword:
        terms = source.terms(source.column(index))
        hashes = np.array([murmur3(terms[ordinal]) for ordinal in values.tolist()], np.uint64)
    else:
        hashes = _mixed(values.view(np.uint64))
    high = hashes >> np.uint64(64 - _P2)
    is_short = (high & np.uint64((1 << _P2 - precision) - 1)) == 0
    run = np.minimum(_leading_zeros(hashes << np.uint64(_P2)), 64 - _P2) + 1
    short = (high << np.uint64(7)) | (run.astype(np.uint64) << np.uint64(1)) | np.uint64(1)
    distinct = len(np.unique(np.where(is_short, short, high << np.uint64(1))))
    if distinct > int(capacity * 0.75):
        raise unsupported(f"`cardinality` of {distinct:,} values with `precision_threshold` {threshold:,}")
    return math.floor((1 << _P2) * math.log((1 << _P2) / ((1 << _P2) - distinct)) + 0.5)


def _leading_zeros(values: NDArray[np.uint64]) -> Int64s:
    return np.array([64 - value.bit_length() for value in values.tolist()], np.int64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hash of 64 bits (`BitMixer.mix64`)."""
    values = (values ^ (values >> np.uint64(32))) * np.uint64(0x4CD6944C5CC20B6D)
    values = (values ^ (values >> np.uint64(29))) * np.uint64(0xFC12C5B19D3259E9)
    return values ^ (values >> np.uint64(32))


_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def murmur3(data: bytes) -> int:
    """Return the first half of the 128-bit MurmurHash3 for 64-bit machines with the seed 0."""
    first = second = 0
    length = len(data)
    for start in range(0, length - 15, 16):
        first ^= _scrambled(int.from_bytes(data[start : start + 8], "little"), _C1, 31, _C2)
        first = (_rotated(first, 27) + second) * 5 + 0x52DCE729 & _MASK
        second ^= _scrambled(int.from_bytes(data[start + 8 : start + 16], "little"), _C2, 33, _C1)
        second = (_rotated(second, 31) + first) * 5 + 0x38495AB5 & _MASK
    tail = data[length // 16 * 16 :]
    second ^= _scrambled(int.from_bytes(tail[8:], "little"), _C2, 33, _C1)
    first ^= _scrambled(int.from_bytes(tail[:8], "little"), _C1, 31, _C2)
    first, second = first ^ length, second ^ length
    first = first + second & _MASK
    second = second + first & _MASK
    return _final(first) + _final(second) & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _scrambled(value: int, first: int, bits: int, second: int) -> int:
    return _rotated(value * first & _MASK, bits) * second & _MASK


def _final(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
