"""The runs of a field merged into the postings that are searched."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.storage import arrays
from searchapp.engines.embedded.storage.arrays import ArrayFile
from searchapp.engines.embedded.storage.inverter import Run
from searchapp.engines.embedded.storage.terms import TermsWriter

COPIED = 1 << 20
"""Postings that are copied at a time where there is nothing to merge."""


def merge(runs: Sequence[Run], folder: Path, name: str, *, positional: bool) -> tuple[int, int]:
    """Write the postings of a field; returns the number of postings and that of tokens.

    A field that is not `positional` counts a term once a document, as an index of documents alone does.
    """
    postings = sum(len(run.documents) for run in runs)
    tokens = sum(len(run.positions) for run in runs)
    largest = max((int(run.frequencies.max(initial=0)) for run in runs), default=0)
    with ExitStack() as stack:

        def file(part: str, dtype: np.dtype[Any], length: int) -> ArrayFile:
            return stack.enter_context(ArrayFile(folder / f"{name}.{part}{arrays.SUFFIX}", dtype, length))

        files = [("documents", file("documents", np.dtype(np.int32), postings))]
        if positional:
            files.append(("frequencies", file("frequencies", arrays.narrowest(largest), postings)))
            files.append(("positions", file("positions", np.dtype(np.int32), tokens)))
        starts, position_starts = (
            _copy(runs[0], files, folder, name) if len(runs) == 1 else _weave(runs, files, folder, name)
        )
    arrays.save(folder, f"{name}.starts", starts)
    if positional:
        arrays.save(folder, f"{name}.position-starts", position_starts)
    return postings, tokens if positional else postings


Files = Sequence[tuple[str, ArrayFile]]
Starts = tuple[NDArray[np.int64], NDArray[np.int64]]


def _copy(run: Run, files: Files, folder: Path, name: str) -> Starts:
    for part, file in files:
        values = getattr(run, part)
        for first in range(0, len(values), COPIED):
            file.append(values[first : first + COPIED])
    terms = TermsWriter()
    terms.add_all(run.terms)
    terms.write(folder, name)
    return run.starts, run.position_starts


def _weave(runs: Sequence[Run], files: Files, folder: Path, name: str) -> Starts:
    """Lay the postings of each term, run after run, one after the other."""
    terms = TermsWriter()
    counts, position_counts = [0], [0]
    for term, entries in groupby(heapq.merge(*map(_entries, range(len(runs)), runs)), key=itemgetter(0)):
        terms.add(term)
        count = position_count = 0
        for _term, number, rank in entries:
            run = runs[number]
            postings = slice(run.starts[rank], run.starts[rank + 1])
            positions = slice(run.position_starts[rank], run.position_starts[rank + 1])
            for part, file in files:
                file.append(getattr(run, part)[positions if part == "positions" else postings])
            count += postings.stop - postings.start
            position_count += positions.stop - positions.start
        counts.append(count)
        position_counts.append(position_count)
    terms.write(folder, name)
    return np.cumsum(counts, dtype=np.int64), np.cumsum(position_counts, dtype=np.int64)


def _entries(number: int, run: Run) -> Iterator[tuple[bytes, int, int]]:
    for rank, term in enumerate(run.terms):
        yield term, number, rank
