"""Terms and postings of an older version, and those of new documents, joined in the order of the new version.

Whole arrays are filtered, given new numbers and laid into each other, a window at a time, so that memory is bounded and
nothing is done in Python for each posting. What comes out is, byte by byte, what `merger` makes of all documents.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.storage import arrays
from searchapp.engines.embedded.storage.arrays import ArrayFile
from searchapp.engines.embedded.storage.carried import Int32s, Older, OlderField
from searchapp.engines.embedded.storage.columns import Column
from searchapp.engines.embedded.storage.inverter import Run
from searchapp.engines.embedded.storage.merger import merge
from searchapp.engines.embedded.storage.terms import Terms

WINDOW = 1 << 20
"""Postings of either side that are looked at together."""

LOOKED_THROUGH = 64
"""Terms of an older dictionary that are read together if a new one may be among them."""

FEW = 16
"""Where one of more than so many is marked, what belongs to it is found one by one."""

Bools = NDArray[np.bool_]
Int64s = NDArray[np.int64]
Array = NDArray[Any]


def interleaved(older: Array, new: Array, is_new: Bools) -> Array:
    """Two arrays laid into each other: `is_new` says of each place of the result from which one it is."""
    if not len(new):
        return older
    if not len(older):
        return new.astype(older.dtype)
    joined = np.empty(len(is_new), older.dtype)
    joined[is_new] = new
    joined[~is_new] = older
    return joined


def marked_parts(marked: Bools, sizes: Array) -> Bools:
    """What `np.repeat(marked, sizes)` gives, in a fraction of the time where few are marked."""
    places = np.flatnonzero(marked)
    if not 0 < len(places) * FEW < len(marked):
        return np.repeat(marked, sizes)
    # The sizes up to the first place, and from each place to the next one, added up.
    before = int(sizes[: places[0]].sum(dtype=np.int64))
    ends = before + np.cumsum(np.add.reduceat(sizes, places, dtype=np.int64))
    begins = np.concatenate([[before], ends[:-1]])
    marked_sizes = sizes[places].astype(np.int64)
    parts = np.zeros(int(ends[-1]), bool)
    within = np.arange(int(marked_sizes.sum()))
    parts[np.repeat(begins - (np.cumsum(marked_sizes) - marked_sizes), marked_sizes) + within] = True
    return parts


class JoinedTerms:
    """The terms of two dictionaries in one: the `kept` ones of an older one, and those of a new one.

    `of_older` and `of_new` are the ranks that the terms of both get, `added` says which of the new ones the older
    dictionary does not have, and `again` which rank each of the others has there. An older term that is not kept and
    does not come again has no rank.
    """

    def __init__(self, older: Terms, kept: Bools, new: Terms) -> None:
        self._older, self._new = older, new
        places, known = _places(older, list(new))
        self.added = ~known
        self.again = places[known]
        self._kept = kept.copy()
        self._kept[self.again] = True
        at = places[self.added]
        before = np.concatenate([[0], np.cumsum(self._kept)])
        self.of_older = before[:-1] + np.searchsorted(at, np.arange(len(older)), side="right")
        self.of_new = np.empty(len(new), np.int64)
        self.of_new[self.added] = before[at] + np.arange(len(at))
        self.of_new[known] = self.of_older[self.again]
        self.count = int(before[-1]) + len(at)

    def added_up(self, counted: Sequence[Int64s]) -> Int64s:
        """What is counted of the terms of each of the two, added up for each of the joined terms."""
        found = np.zeros(self.count, np.int64)
        for ranks, counts in zip((self.of_older, self.of_new), counted, strict=True):
            has = counts > 0  # a term without postings may have no rank
            found[ranks[has]] += counts[has]
        return found

    def write(self, folder: Path, name: str) -> None:
        """Write them as `TermsWriter` does."""
        is_new = np.zeros(self.count, bool)
        is_new[self.of_new[self.added]] = True
        (older, older_lengths), (new, new_lengths) = (
            _chosen(terms, which) for terms, which in ((self._older, self._kept), (self._new, self.added))
        )
        lengths = interleaved(older_lengths, new_lengths, is_new)
        characters = interleaved(older, new, marked_parts(is_new, lengths))
        arrays.save(folder, f"{name}.terms", characters)
        arrays.save(folder, f"{name}.term-starts", _summed(lengths))


def _chosen(terms: Terms, which: Bools) -> tuple[NDArray[np.uint8], Int64s]:
    """The bytes of some terms, and how many each has."""
    characters, starts = terms.arrays()
    lengths = np.diff(starts)
    if which.all():
        return characters, lengths
    return characters[~marked_parts(~which, lengths)], lengths[which]


def _places(terms: Terms, sought: Sequence[bytes]) -> tuple[Int64s, Bools]:
    """How many terms come before each of some, which ascend, and whether it is there itself."""
    places = np.full(len(sought), len(terms), np.int64)
    known = np.zeros(len(sought), bool)
    done = 0
    for first in range(0, len(terms), LOOKED_THROUGH):
        end = min(first + LOOKED_THROUGH, len(terms))
        until = bisect_right(sought, terms[end - 1], done)
        some = terms.between(first, end) if until > done else []
        place = 0
        for number in range(done, until):
            place = bisect_left(some, sought[number], place)
            places[number] = first + place
            known[number] = some[place] == sought[number]
        done = until
    return places, known


def _summed(counts: Int64s) -> Int64s:
    """Where each of some pieces begins, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


@dataclass(frozen=True, slots=True)
class Side:
    """The postings of one of the two that are joined, see `inverter.Run`.

    `numbers` has the new number of each document, or one below 0 if it is gone. Without frequencies and positions
    these are not joined.
    """

    terms: Terms
    starts: Int64s
    documents: Column
    numbers: Int32s
    position_starts: Int64s | None = None
    frequencies: Column | None = None
    positions: Column | None = None

    @classmethod
    def of_older(cls, field: OlderField, *, positional: bool) -> Side:
        """The postings of a field of an older version."""
        return cls._of(field.terms, field.column, field.carried.renumbered, positional=positional)

    @classmethod
    def of_older_ids(cls, version: Older) -> Side:
        """The ids of an older version: each of them is a term with one posting."""
        documents = version.column("ids.documents")
        starts = np.arange(len(documents) + 1)
        return cls(version.terms("ids"), starts, documents, version.carried.renumbered)

    @classmethod
    def of_new(cls, folder: Path, name: str, numbers: Int32s, *, positional: bool) -> Side:
        """The postings of new documents, which count from 0 in the files of a name, as `merge` writes them."""

        def column(part: str) -> Column:
            return Column(arrays.load(folder, f"{name}.{part}"))

        return cls._of(Terms.open(folder, name), column, numbers, positional=positional)

    @classmethod
    def _of(cls, terms: Terms, column: Callable[[str], Column], numbers: Int32s, *, positional: bool) -> Side:
        some = terms, column("starts").all(), column("documents"), numbers
        if not positional:
            return cls(*some)
        return cls(*some, column("position-starts").all(), column("frequencies"), column("positions"))

    def renumbered(self, part: slice) -> Int32s:
        """The new numbers of the documents of some postings."""
        # There is nothing to clip in verified postings: it only spares a look at all of them, half of the time.
        return self.numbers.take(self.documents[part], mode="clip")

    def counted(self) -> tuple[Int64s, Int64s, int]:
        """The postings and the tokens that remain of each term, and the greatest frequency that may remain."""
        counts = np.diff(self.starts)
        tokens = np.zeros_like(counts) if self.position_starts is None else np.diff(self.position_starts)
        greatest = 0
        for first in range(0, len(self.documents), WINDOW):
            part = slice(first, min(first + WINDOW, len(self.documents)))
            gone = np.flatnonzero(self.renumbered(part) < 0)
            ranks = np.searchsorted(self.starts, gone + first, side="right") - 1
            np.subtract.at(counts, ranks, 1)
            if self.frequencies is not None:
                frequencies = self.frequencies[part]
                np.subtract.at(tokens, ranks, frequencies[gone].astype(np.int64))
                # All that fits into one byte is written in one byte.
                left = frequencies if frequencies.itemsize == 1 else np.delete(frequencies, gone)
                greatest = max(greatest, int(left.max(initial=0)))
        return counts, tokens, greatest


@dataclass(slots=True)
class _Part:
    """Some consecutive postings under their new numbers: rank and document as a key, frequencies, positions."""

    keys: Int64s
    frequencies: Array
    positions: Array

    def cut(self, postings: int) -> tuple[_Part, _Part]:
        """The first postings and the others."""
        tokens = int(self.frequencies[:postings].sum(dtype=np.int64))
        return (
            _Part(self.keys[:postings], self.frequencies[:postings], self.positions[:tokens]),
            _Part(self.keys[postings:], self.frequencies[postings:], self.positions[tokens:]),
        )


_NOTHING = _Part(np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.int32))


class _Stream:
    """The postings of a side that remain, window by window in the order of their keys."""

    def __init__(self, side: Side, ranks: Int64s) -> None:
        self._side = side
        self._ranks = ranks
        self._next = self._next_position = 0
        self._part = _NOTHING

    def ends(self) -> int | None:
        """The last key of the window, which is filled if it has none left; None if no posting comes after it."""
        while not len(self._part.keys) and self._next < len(self._side.documents):
            self._part = self._read()
        return int(self._part.keys[-1]) if self._next < len(self._side.documents) else None

    def take(self, limit: int | None) -> _Part:
        """The postings of the window up to a key, or all of them."""
        keys = self._part.keys
        postings = len(keys) if limit is None else int(np.searchsorted(keys, limit, side="right"))
        taken, self._part = self._part.cut(postings)
        return taken

    def _read(self) -> _Part:
        side = self._side
        first, end = self._next, min(self._next + WINDOW, len(side.documents))
        self._next = end
        begin = int(np.searchsorted(side.starts, first, side="right")) - 1
        stop = int(np.searchsorted(side.starts, end))
        edges = np.clip(side.starts[begin : stop + 1], first, end)
        numbers = side.renumbered(slice(first, end))
        keys = np.repeat(self._ranks[begin:stop] << 32, np.diff(edges))
        keys += numbers
        left = numbers >= 0
        whole = bool(left.all())
        if side.frequencies is None or side.positions is None:
            kept = keys if whole else keys[left]
            return _Part(kept, np.zeros(len(kept), np.uint8), _NOTHING.positions)
        frequencies = side.frequencies[first:end]
        position = self._next_position
        self._next_position += int(frequencies.sum(dtype=np.int64))
        positions = side.positions[position : self._next_position]
        if whole:
            return _Part(keys, frequencies, positions)
        return _Part(keys[left], frequencies[left], positions[~marked_parts(~left, frequencies)])


def join_runs(
    older: Side, runs: Sequence[Run], added: Int32s, scratch: Path, folder: Path, name: str
) -> tuple[int, int]:
    """Write the postings of a field as `merge` does of all documents; those of `added` ones are in the runs."""
    positional = older.positions is not None
    name_of_new = f"new-{name}"
    merge(runs, scratch, name_of_new, positional=positional)
    return join(older, Side.of_new(scratch, name_of_new, added, positional=positional), folder, name)


def join(older: Side, new: Side, folder: Path, name: str) -> tuple[int, int]:
    """Write the postings of a field; returns the number of postings and that of tokens, as `merge` does."""
    positional = older.positions is not None
    counts, tokens, greatest = zip(*(side.counted() for side in (older, new)), strict=True)
    terms = JoinedTerms(older.terms, counts[0] > 0, new.terms)
    terms.write(folder, name)
    starts, position_starts = (_summed(terms.added_up(of_both)) for of_both in (counts, tokens))
    arrays.save(folder, f"{name}.starts", starts)
    postings, all_tokens = int(starts[-1]), int(position_starts[-1])
    with ExitStack() as stack:

        def file(part: str, dtype: np.dtype[Any], length: int) -> ArrayFile:
            return stack.enter_context(ArrayFile(folder, f"{name}.{part}", dtype, length))

        documents = file("documents", np.dtype(np.int32), postings)
        frequencies = positions = None
        if positional:
            arrays.save(folder, f"{name}.position-starts", position_starts)
            frequencies = file("frequencies", arrays.narrowest(max(greatest)), postings)
            positions = file("positions", np.dtype(np.int32), all_tokens)
        streams = _Stream(older, terms.of_older), _Stream(new, terms.of_new)
        while True:
            ends = [end for stream in streams if (end := stream.ends()) is not None]
            before, then = (stream.take(min(ends, default=None)) for stream in streams)
            is_new = np.zeros(len(before.keys) + len(then.keys), bool)
            is_new[np.searchsorted(before.keys, then.keys) + np.arange(len(then.keys))] = True
            # The lower half of a key is its document.
            documents.append(interleaved(before.keys, then.keys, is_new).astype(np.int32))
            if frequencies is not None and positions is not None:
                # One of the two may have wider numbers.
                wide = np.result_type(before.frequencies, then.frequencies)
                joined = interleaved(before.frequencies.astype(wide, copy=False), then.frequencies, is_new)
                frequencies.append(joined)
                of_new = marked_parts(is_new, joined) if len(then.keys) else is_new
                positions.append(interleaved(before.positions, then.positions, of_new))
            if not ends:
                return postings, all_tokens if positional else postings
