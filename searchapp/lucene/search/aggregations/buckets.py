"""Bucket aggregations: groups of documents, which other aggregations describe.

Source: org.elasticsearch.search.aggregations.bucket.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.arrays import Int64s, Mask
from searchapp.lucene.index.doc_values import of_sortable, sortable
from searchapp.lucene.queries.query import Query
from searchapp.lucene.search.aggregations.metrics import Json
from searchapp.lucene.search.aggregations.rounding import Rounding
from searchapp.lucene.search.aggregations.values import (
    EMPTY,
    MOST_BUCKETS,
    Column,
    Documents,
    ValueSource,
)

Key = Any  # of a bucket: an ordinal, an integer or a double


class Aggregator(Protocol):
    """An aggregation of a request."""

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        """Return the result for documents, ascending; None in a bucket that only fills a gap, without documents."""


@dataclass(frozen=True, slots=True)
class Named:
    """An aggregation with its `meta`."""

    aggregation: Aggregator
    meta: Mapping[str, Any] | None = None

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        result = self.aggregation.compute(index, documents)
        return result if self.meta is None else {"meta": dict(self.meta), **result}


Inner = Mapping[str, Named]


def results(inner: Inner, index: Documents, documents: Int64s | None) -> Json:
    """Return the results of several aggregations on documents."""
    return {name: aggregation.compute(index, documents) for name, aggregation in inner.items()}


def bucket(inner: Inner, index: Documents, documents: Int64s | None) -> Json:
    """Return a bucket of documents, without its key."""
    count = 0 if documents is None else len(documents)
    index.count_buckets(1)
    return {"doc_count": count, **results(inner, index, documents)}


def aggregate(aggregations: Inner, index: Documents, matching: Mask) -> Json:
    """Return the results of the aggregations of a search body on the matching documents of all segments."""
    index.begin_request()
    return results(aggregations, index, np.flatnonzero(matching))


@dataclass(frozen=True, slots=True)
class Groups:
    """Documents by key, ascending."""

    keys: NDArray[Any]
    starts: Int64s  # shape (keys + 1,)
    documents: Int64s

    @classmethod
    def of(cls, documents: Int64s, keys: NDArray[Any]) -> Groups:
        """Group documents by key; repetitions are adjacent."""
        if not len(keys):
            return cls(keys, np.zeros(1, np.int64), documents)
        is_new = np.append(True, (documents[1:] != documents[:-1]) | (keys[1:] != keys[:-1]))
        documents, keys = documents[is_new], keys[is_new]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        return cls(keys[starts], np.append(starts, len(keys)), documents[order])

    @property
    def counts(self) -> Int64s:
        return np.diff(self.starts)

    def members(self, group: int) -> Int64s:
        return self.documents[self.starts[group] : self.starts[group + 1]]

    def with_keys(self, keys: NDArray[Any]) -> Groups:
        """Add groups without documents."""
        every = np.union1d(self.keys, keys).astype(self.keys.dtype)
        counts = np.zeros(len(every), np.int64)
        counts[np.searchsorted(every, self.keys)] = self.counts
        return Groups(every, np.append(0, np.cumsum(counts)), self.documents)


# Order

KEY, COUNT = "_key", "_count"


@dataclass(frozen=True, slots=True)
class Criterion:
    """What buckets are ordered by: `_key`, `_count` or a number of an inner aggregation."""

    by: str
    is_descending: bool
    number: Callable[[Json], float] | None = None  # of the results of inner aggregations


Order = Sequence[Criterion]

COUNT_DESCENDING: Order = (Criterion(COUNT, True), Criterion(KEY, False))
KEY_ASCENDING: Order = (Criterion(KEY, False),)


def ordered(
    order: Order, counts: Int64s, inner_results: Callable[[int], Json], *, on_shard: bool = False
) -> NDArray[np.intp]:
    """Return the indices of buckets, whose keys are ascending, in an order.

    NaN is the greatest number; on a shard, which chooses the buckets to answer with, it is always the last.
    """
    columns: list[NDArray[Any]] = []
    for criterion in order:
        if criterion.by == KEY:
            values = np.arange(len(counts))
        elif criterion.by == COUNT:
            values = counts
        else:
            assert criterion.number is not None
            numbers = np.array(
                [criterion.number(inner_results(index)) for index in range(len(counts))], np.float64
            )
            if on_shard:
                columns.append(np.isnan(numbers))
            values = sortable(numbers)
        columns.append(~values if criterion.is_descending else values)
    return np.lexsort(columns[::-1])


# Terms


@dataclass(frozen=True, slots=True)
class TermBuckets:
    """`terms`: a bucket for each value of a field, or for the most frequent ones."""

    source: ValueSource
    inner: Inner
    size: int
    shard_size: int
    least: int  # `min_doc_count`
    shard_least: int
    order: Order
    accepts: Callable[[Sequence[bytes] | NDArray[Any]], Mask] | None  # `include` and `exclude`
    shows_error: bool  # `show_term_doc_count_error`

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        empty: Json = {"doc_count_error_upper_bound": 0, "sum_other_doc_count": 0, "buckets": []}
        if self.source.field is None or documents is None:
            return empty
        column = self.source.column(index)
        groups = self._groups(index, column, documents)
        inner: dict[int, Json] = {}

        def inner_results(group: int) -> Json:
            if group not in inner:
                inner[group] = results(self.inner, index, groups.members(group))
            return inner[group]

        counts = groups.counts
        best = ordered(self.order, counts, inner_results, on_shard=True)
        best = best[counts[best] >= max(self.shard_least, min(self.least, 1))][: self.shard_size]
        if any(criterion.number for criterion in self.order):
            best = np.sort(best)
            best = best[ordered(self.order, counts[best], lambda at: inner_results(int(best[at])))]
        shown = best[counts[best] >= self.least]
        is_exact = self.order[0].by == KEY or (self.order[0].by, self.order[0].is_descending) == (COUNT, True)
        others = counts.sum() - counts[best].sum() + counts[shown[self.size :]].sum()
        shown = shown[: self.size]
        index.count_buckets(len(shown))
        error = 0 if is_exact or len(best) < self.shard_size else -1
        shown_error = {"doc_count_error_upper_bound": error} if self.shows_error else {}
        return {
            "doc_count_error_upper_bound": error,
            "sum_other_doc_count": int(others),
            "buckets": [
                {
                    **self._key(groups.keys[group], column),
                    "doc_count": int(counts[group]),
                    **shown_error,
                    **inner_results(group),
                }
                for group in shown.tolist()
            ],
        }

    def _groups(self, index: Documents, column: Column, documents: Int64s) -> Groups:
        is_decimal = self.source.is_decimal
        documents, values = self.source.pairs(index, documents)
        groups = Groups.of(documents, sortable(values) if is_decimal else values)
        if not self.least:
            if self.source.is_keyword:
                every: NDArray[Any] = np.arange(len(self.source.terms(column)))
            else:
                every = self.source.pairs(index, index.live)[1]
                every = sortable(every) if is_decimal else every
            groups = groups.with_keys(every)
        if self.accepts is None:
            return groups
        keys = of_sortable(groups.keys) if is_decimal else groups.keys
        if self.source.is_keyword:
            terms = self.source.terms(column)
            accepted = self.accepts([terms[ordinal] for ordinal in keys.tolist()])
        else:
            accepted = self.accepts(keys)
        counts = np.where(accepted, groups.counts, 0)
        documents = groups.documents[np.repeat(accepted, groups.counts)]
        return Groups(groups.keys[accepted], np.append(0, np.cumsum(counts[accepted])), documents)

    def _key(self, key: Any, column: Column) -> Json:
        if self.source.is_keyword:
            return {"key": self.source.terms(column)[int(key)].decode("utf-8", "surrogatepass")}
        number = float(of_sortable(np.array([key]))[0]) if self.source.is_decimal else int(key)
        return {"key": number, **self.source.format.as_string("key", number)}


# Histograms


@dataclass(frozen=True, slots=True)
class Histogram:
    """`histogram` and `date_histogram`: a bucket for each interval."""

    source: ValueSource
    inner: Inner
    order: Order
    least: int  # `min_doc_count`
    is_keyed: bool
    rounded: Callable[[NDArray[Any]], NDArray[Any]]  # the keys of values
    next: Callable[[Key], Key]
    bounds: tuple[Key | None, Key | None] = (None, None)  # `extended_bounds`, as keys and the last value

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        with_value, values = self.source.pairs(index, EMPTY if documents is None else documents)
        groups = Groups.of(with_value, self.rounded(values))
        counts = dict(zip(groups.keys.tolist(), range(len(groups.keys)), strict=True))
        keys = groups.keys[groups.counts >= self.least].tolist()
        if not self.least:
            keys = list(islice(self._without_gaps(keys), MOST_BUCKETS + 1))
        if len(keys) > MOST_BUCKETS:
            index.count_buckets(len(keys))
        buckets = [
            bucket(self.inner, index, groups.members(counts[key]) if key in counts else None) for key in keys
        ]
        order = ordered(
            self.order, np.array([entry["doc_count"] for entry in buckets], np.int64), buckets.__getitem__
        )
        format_ = self.source.format
        shown = [
            {"key": keys[at], **format_.as_string("key", keys[at]), **buckets[at]} for at in order.tolist()
        ]
        if self.is_keyed:
            return {"buckets": {format_.key(entry["key"]): entry for entry in shown}}
        return {"buckets": shown}

    def _without_gaps(self, keys: Sequence[Key]) -> Iterator[Key]:
        """Yield keys, those between them, and those of `extended_bounds`."""
        first, last = self.bounds
        if not keys and (first is None or last is None):
            return
        key = keys[0] if keys and (first is None or keys[0] < first) else first
        present = iter([*keys, None])
        expected = next(present)
        while expected is not None or (last is not None and key <= last):
            if expected is not None and key >= expected:
                key, expected = expected, next(present)
            yield key
            key = self.next(key)


def date_rounding(rounding: Rounding, offset: int) -> tuple[Callable[[Int64s], Int64s], Callable[[int], int]]:
    """Return the functions `rounded` and `next` of a histogram of dates."""
    return (
        lambda values: rounding.rounded(values - offset) + offset,
        lambda key: rounding.next(key - offset) + offset,
    )


def number_rounding(
    interval: float, offset: float
) -> tuple[Callable[[NDArray[Any]], NDArray[Any]], Callable[[float], float]]:
    """Return the same of a histogram of numbers."""

    def rounded(values: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(over="ignore"):
            return np.asarray(np.floor((values.astype(np.float64) - offset) / interval) * interval + offset)

    def following(key: float) -> float:
        return float(rounded(np.array([key + interval + interval / 2]))[0])

    return rounded, following


# Ranges and filters


@dataclass(frozen=True, slots=True)
class Range:
    """A range of `range` and `date_range`."""

    key: str
    low: float
    high: float
    shown_low: float
    shown_high: float


@dataclass(frozen=True, slots=True)
class Ranges:
    """`range` and `date_range`: a bucket for each range, which may overlap."""

    source: ValueSource
    inner: Inner
    ranges: Sequence[Range]
    is_keyed: bool

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        with_value, values = self.source.pairs(index, EMPTY if documents is None else documents)
        doubles = values.astype(np.float64)
        buckets: list[Json] = []
        for entry in self.ranges:
            members = np.unique(with_value[(doubles >= entry.low) & (doubles < entry.high)])
            shown: Json = {"key": entry.key}
            for name, end in (("from", entry.shown_low), ("to", entry.shown_high)):
                if math.isfinite(end):
                    shown |= {name: end, **self.source.format.as_string(name, end)}
            buckets.append({**shown, **bucket(self.inner, index, None if documents is None else members)})
        if self.is_keyed:
            return {"buckets": {entry.pop("key"): entry for entry in buckets}}
        return {"buckets": buckets}


@dataclass(frozen=True, slots=True)
class Filter:
    """`filter`: the documents that match a query."""

    query: Query
    inner: Inner

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        return bucket(self.inner, index, matching(self.query, index, documents))


def matching(query: Query, index: Documents, documents: Int64s | None) -> Int64s | None:
    """Return those of several documents that match a query."""
    return None if documents is None else documents[index.matching(query, documents)]


@dataclass(frozen=True, slots=True)
class Filters:
    """`filters`: a bucket for each of several queries, and one for the other documents."""

    queries: Sequence[tuple[str, Query]]
    inner: Inner
    is_named: bool
    is_keyed: bool  # whether an object has the buckets, if they are named
    other: str | None  # the key of the bucket of other documents, None without one

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        buckets = [
            (name, bucket(self.inner, index, matching(query, index, documents)))
            for name, query in self.queries
        ]
        if self.other is not None:
            rest = documents
            if documents is not None:
                masks = [index.matching(query, documents) for _name, query in self.queries]
                rest = documents[~np.logical_or.reduce(masks)]
            buckets.append((self.other, bucket(self.inner, index, rest)))
        if not self.is_named:
            return {"buckets": [entry for _name, entry in buckets]}
        if self.is_keyed:
            return {"buckets": dict(buckets)}
        return {"buckets": [{"key": name, **entry} for name, entry in buckets]}


@dataclass(frozen=True, slots=True)
class Global:
    """`global`: all documents of the index."""

    inner: Inner

    def compute(self, index: Documents, documents: Int64s | None) -> Json:  # noqa: ARG002
        return bucket(self.inner, index, index.live_documents)


@dataclass(frozen=True, slots=True)
class Missing:
    """`missing`: the documents without a value; none if a value replaces the missing ones."""

    source: ValueSource
    inner: Inner
    has_replacement: bool

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        if documents is not None and self.has_replacement:
            documents = documents[:0]
        elif documents is not None and self.source.field is not None:
            documents = documents[self.source.column(index).is_missing(documents)]
        return bucket(self.inner, index, documents)


@dataclass(frozen=True, slots=True)
class NestedBuckets:
    """`nested`: the nested objects of a path in the documents, or in the objects of an outer path."""

    path: str | None  # None if the mapping lacks it
    outer: str
    inner: Inner

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        if self.path is None or documents is None:
            return bucket(self.inner, index, None)
        return bucket(self.inner, index, index.objects(self.path, self.outer, documents))


@dataclass(frozen=True, slots=True)
class ReverseNested:
    """`reverse_nested`: the documents, or the objects of an outer path, around nested objects of a path."""

    path: str
    outer: str
    inner: Inner

    def compute(self, index: Documents, documents: Int64s | None) -> Json:
        if documents is not None and self.path != self.outer:
            documents = index.containers(self.path, self.outer, documents)
        return bucket(self.inner, index, documents)
