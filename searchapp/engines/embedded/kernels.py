"""The best documents of a batch of topics by the functions of `kernels.c`, where it was compiled, see `native`.

All that `sums` and `topk` say in NumPy is said there once more, to the same bits, in a third of the time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.memory import Answer
from searchapp.engines.embedded.rows import Row
from searchapp.engines.embedded.similarity import Float32s
from searchapp.engines.embedded.storage.reader import Numbers

Longs = NDArray[np.int64]

SUM = -1.0
"""The tie breaker of a topic whose clauses are added up."""

_BEYOND = -1


@dataclass(frozen=True, slots=True)
class Table:
    """The postings of terms, one term after the other: those of a rank from `starts[rank]` to `starts[rank + 1]`.

    A term with more postings than `common` is common, see `rows`. `frequencies` has how many postings each term has in
    the whole index, where these are those of a part.
    """

    documents: Numbers
    scores: Float32s
    starts: Longs
    common: int
    frequencies: Longs | None = None

    @classmethod
    def of(cls, documents: NDArray[Any], scores: NDArray[Any], starts: NDArray[Any], common: int) -> Table:
        """A table of such arrays, of which those are copied that do not lie in memory as C has them."""
        return cls(
            np.ascontiguousarray(documents, np.int32),
            np.ascontiguousarray(scores, np.float32),
            np.ascontiguousarray(starts, np.int64),
            common,
        )

    @classmethod
    def of_row(cls, row: Row) -> Table:
        """A row as a table of its own."""
        common = -1 if row.is_common else len(row.scores)
        return cls.of(row.documents, row.scores, np.array([0, len(row.scores)]), common)


@dataclass(slots=True)
class Batch:
    """Topics as numbers: a topic has clauses, a clause has rows, and a row is a term of a table.

    `*_ends` say where the clauses of the next topic, its excluded documents, or the rows of the next clause begin. The
    sum of a clause is `rounded` before it is added to those of others. `row_tables` has the table of as many
    rows as `rows_of_table` says. The other lists have a value for each topic: how many documents are asked for, whether
    documents with the score 0 match too, and the tie breaker.

    Of a part of an index, `elsewhere` has for each clause how many of its terms occur in other parts only, and in how
    many documents. Documents that are `dead` never match.
    """

    tables: list[Table] = field(default_factory=list)
    row_tables: list[int] = field(default_factory=list)
    rows_of_table: list[int] = field(default_factory=list)
    row_ranks: list[int] = field(default_factory=list)
    row_ends: list[int] = field(default_factory=list)
    rounded: list[bool] = field(default_factory=list)
    clause_ends: list[int] = field(default_factory=list)
    excluded: list[int] = field(default_factory=list)
    excluded_ends: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    all_match: list[bool] = field(default_factory=list)
    tie_breakers: list[float] = field(default_factory=list)
    elsewhere: list[tuple[int, int]] = field(default_factory=list)
    dead: Numbers | None = None

    def add_rows(self, table: int, ranks: Sequence[int]) -> None:
        """Add terms of a table to the clause at work."""
        self.row_ranks += ranks
        self.row_tables.append(table)
        self.rows_of_table.append(len(ranks))

    def end_clause(self, rounded: bool) -> None:
        """Let another clause begin."""
        self.row_ends.append(len(self.row_ranks))
        self.rounded.append(rounded)

    def end_topic(self, size: int, all_match: bool, tie_breaker: float, excluded: Sequence[int]) -> None:
        """Let another topic begin."""
        self.excluded += excluded
        self.excluded_ends.append(len(self.excluded))
        self.clause_ends.append(len(self.row_ends))
        self.sizes.append(size)
        self.all_match.append(all_match)
        self.tie_breakers.append(tie_breaker)


class _Table(ctypes.Structure):
    """`Table` of kernels.c."""

    _fields_ = [
        (name, ctypes.c_int64 if name in ("terms", "postings", "common") else ctypes.c_void_p)
        for name in ("documents", "scores", "starts", "frequencies", "terms", "postings", "common")
    ]


_NUMBERS = ("count", "few", "table_count", "topic_count", "width", "dead_count")


class _Batch(ctypes.Structure):
    """`Batch` of kernels.c."""

    _fields_ = [
        (name, ctypes.c_int64 if name in _NUMBERS else ctypes.c_void_p)
        for name in (
            *("count", "ranks", "by_rank", "few", "table_count", "tables", "topic_count"),
            *("clause_ends", "excluded_ends", "excluded", "all_match", "tie_breakers", "sizes"),
            *("row_ends", "rounded", "elsewhere", "row_tables", "row_ranks", "dead_count", "dead"),
            *("width", "documents", "scores", "found"),
            *("sums", "clause", "rest", "values", "keys"),
        )
    ]


def best(
    functions: ctypes.CDLL, batch: Batch, ranks: Numbers, by_rank: Numbers, few: int
) -> list[Answer | None]:
    """The best documents of each topic and their scores, best first; None for a topic whose scores leave float32.

    `ranks` is each document's place among the ids in order, `by_rank` the document at each place. A rounded sum of no
    more than `few` postings is added before common rows, see `sums`.

    Raises:
        IndexError: a number points where nothing is: files were altered.
    """
    count, topics, width = len(ranks), len(batch.sizes), max(batch.sizes, default=0)
    width = min(width, count)
    tables = (_Table * len(batch.tables))(*map(_addressed, batch.tables))
    arrays: dict[str, NDArray[Any]] = {
        "ranks": np.ascontiguousarray(ranks, np.int32),
        "by_rank": np.ascontiguousarray(by_rank, np.int32),
        "clause_ends": np.array(batch.clause_ends, np.int64),
        "excluded_ends": np.array(batch.excluded_ends, np.int64),
        "excluded": np.array(batch.excluded, np.int64),
        "all_match": np.array(batch.all_match, np.uint8),
        "tie_breakers": np.array(batch.tie_breakers, np.float64),
        "sizes": np.array(batch.sizes, np.int64),
        "row_ends": np.array(batch.row_ends, np.int64),
        "rounded": np.array(batch.rounded, np.uint8),
        "row_tables": np.repeat(np.array(batch.row_tables, np.int32), batch.rows_of_table),
        "row_ranks": np.array(batch.row_ranks, np.int32),
        "documents": np.empty((topics, width), np.int32),
        "scores": np.empty((topics, width), np.float32),
        "found": np.empty(topics, np.int64),
        "sums": np.zeros(count),
        "clause": np.zeros(count),
        "rest": np.zeros(count),
        "values": np.empty(count, np.float32),
        "keys": np.empty(2 * count, np.uint64),
    }
    if batch.elsewhere:
        arrays["elsewhere"] = np.array(batch.elsewhere, np.int64)
    if batch.dead is not None:
        arrays["dead"] = np.ascontiguousarray(batch.dead, np.int32)
    given = _Batch(
        count=count,
        few=few,
        table_count=len(tables),
        topic_count=topics,
        width=width,
        dead_count=0 if batch.dead is None else len(batch.dead),
        tables=ctypes.addressof(tables),
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    if functions.searchapp_best(ctypes.byref(given)):
        raise IndexError("the postings of a term are not those of documents")
    found = zip(arrays["documents"], arrays["scores"], arrays["found"].tolist(), strict=True)
    return [
        None if size == _BEYOND else (documents[:size], scores[:size]) for documents, scores, size in found
    ]


def _addressed(table: Table) -> _Table:
    return _Table(
        table.documents.ctypes.data,
        table.scores.ctypes.data,
        table.starts.ctypes.data,
        None if table.frequencies is None else table.frequencies.ctypes.data,
        len(table.starts) - 1,
        len(table.documents),
        table.common,
    )
