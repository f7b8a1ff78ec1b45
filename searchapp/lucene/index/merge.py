"""Merge an older version with new documents: unchanged documents are not analyzed again.

A version has a digest of each document, `digests.npy`. The postings of unchanged documents are copied under new
numbers and interleaved with those of the new documents: whole arrays, a window at a time, in bounded memory. The
result is byte by byte the version that would be built from all documents.
"""

from __future__ import annotations

import hashlib
import marshal
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import Replaced
from searchapp.lucene.index import arrays
from searchapp.lucene.index.arrays import ArrayFile, Column, Columns
from searchapp.lucene.index.documents import FILE, stored_text
from searchapp.lucene.index.inverter import Run, merge
from searchapp.lucene.index.layout import Manifest, refuting
from searchapp.lucene.index.terms import Terms
from searchapp.model import Document

Int32s = NDArray[np.int32]
Mask = NDArray[np.bool_]

DIGESTS = "digests"
"""The file with two numbers for each document: the digest of its source."""

DIGEST_BYTES = 16

NEW = -1
"""In the place of the number that a document had: it is a new one, or has changed."""


_MARSHAL_VERSION = 2
"""In later ones it depends on who else refers to a value by which bytes it is written."""


def written(document: Document) -> bytes:
    """A document as bytes, which differ where the texts differ that documents are stored as.

    The text itself would do, but takes several times as long to write. Another version of Python may write other bytes:
    it takes nothing over.
    """
    values: Any = document.id, document.text, document.fields
    try:
        return marshal.dumps(values, _MARSHAL_VERSION)
    except ValueError:  # a value is of a type of somebody's own, such as a kind of str
        # Half of a surrogate pair is refused when the document is indexed.
        return b"\0" + stored_text(document.source()).encode("utf-8", "surrogatepass")


def digest_of(document: Document) -> bytes:
    """The digest of a document."""
    return hashlib.blake2b(written(document), digest_size=DIGEST_BYTES).digest()


def in_order(numbers: Int32s) -> Int32s:
    """The numbers; NEW in the place of those that are not in a longest strictly ascending sequence of them."""
    places = np.flatnonzero(numbers >= 0)
    if (np.diff(numbers[places]) > 0).all():
        return numbers
    lasts: list[int] = []  # the smallest number that a sequence of 1, 2, ... ends with, and where that stands
    at: list[int] = []
    before: list[int] = []
    for place, number in enumerate(numbers[places].tolist()):
        length = bisect_left(lasts, number)
        lasts[length : length + 1] = [number]
        at[length : length + 1] = [place]
        before.append(at[length - 1] if length else NEW)
    found = np.full_like(numbers, NEW)
    place = at[-1]
    while place != NEW:
        found[places[place]] = numbers[places[place]]
        place = before[place]
    return found


class Carried:
    """The documents that a new version takes over from the one in a folder, which has so many of them, `older`.

    `manifest` is the digest of its manifest: an index that is removed and made again has versions of the same names.
    `numbers` has for each document of the new version the number that it had there, or NEW. `served` is the name of the
    version that serves, where that is another one, which builds upon the one in the folder.
    """

    def __init__(
        self,
        folder: Path,
        manifest: str,
        numbers: Int32s,
        older: int,
        kept: list[Document] | None = None,
        served: str = "",
    ) -> None:
        self.folder = folder
        self.version = served or folder.name
        self.manifest = manifest
        self.numbers = numbers
        self._older = older
        self._kept = kept

    @cached_property
    def is_carried(self) -> Mask:
        """For each document of the new version whether it is carried over."""
        return self.numbers >= 0

    @property
    def documents(self) -> int:
        """How many documents are carried over."""
        return int(np.count_nonzero(self.is_carried))

    @property
    def left_out(self) -> int:
        """How many documents of the older version are not in the new one."""
        return self._older - self.documents

    @property
    def analyzed(self) -> int:
        """How many documents of the new version are not carried over."""
        return len(self.numbers) - self.documents

    @cached_property
    def renumbered(self) -> Int32s:
        """For each document of the older version its number in the new one, or NEW if that has it not."""
        found = np.full(self._older, NEW, np.int32)
        places = np.flatnonzero(self.is_carried)
        found[self.numbers[places]] = places
        return found

    @cached_property
    def added(self) -> Int32s:
        """The numbers in the new version of the documents that are not carried over."""
        return np.flatnonzero(~self.is_carried).astype(np.int32)

    def copy(self, older: NDArray[Any], new: NDArray[Any]) -> None:
        """Put what an array has for each document that is carried over in its place in a new array."""
        new[self.is_carried] = older[self.numbers[self.is_carried]]

    def new(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Those of all documents that are not carried over; they are not drawn if the new ones were kept."""
        if self._kept is not None:
            yield from self._kept
            return
        for number, document in enumerate(documents):
            if number >= len(self.is_carried) or not self.is_carried[number]:
                yield document


class Older:
    """The version that documents are carried over from, opened; its numbers are verified when they are read."""

    def __init__(self, carried: Carried) -> None:
        """Open it.

        Raises:
            DataError: it is damaged.
            EngineRefused, SearchappError: it can't be read, or another version has its name now.
        """
        self.carried = carried
        self._manifest = Manifest.read(carried.folder)
        if self._manifest.digest != carried.manifest:
            raise Replaced(self._manifest.info.version)
        self._columns = Columns(carried.folder, self._manifest)
        with refuting(carried.folder):
            # It is copied past Python, which can compare no checksums then.
            self._manifest.verify_file(carried.folder, FILE)

    def column(self, name: str) -> Column:
        """The numbers in one of its files."""
        return self._columns.column(name)

    def terms(self, name: str) -> Terms:
        """The terms in two of its files."""
        return Terms.of(self._columns.column, name)

    def field(self, name: str) -> OlderField:
        """One of its fields."""
        return OlderField(self, self._manifest.fields[name].prefix)

    def place(self, added: int) -> int:
        """The number in the new version of the document that is added as this one, counted from 0."""
        places = self.carried.added
        return int(places[added]) if added < len(places) else len(self.carried.numbers)

    def digests(self, added: NDArray[np.int64]) -> NDArray[np.int64]:
        """The digests of all documents of the new version, from those of the documents that are added."""
        joined = np.empty((len(self.carried.numbers), 2), np.int64)
        joined[self.carried.added] = added.reshape(-1, 2)
        self.carried.copy(self.column(DIGESTS).all().reshape(-1, 2), joined)
        return joined.reshape(-1)


class OlderField:
    """One field of an older version."""

    def __init__(self, version: Older, prefix: str) -> None:
        self.carried = version.carried
        self._version = version
        self._prefix = prefix

    @property
    def terms(self) -> Terms:
        """Its terms."""
        return self._version.terms(self._prefix)

    def column(self, part: str) -> Column:
        """The numbers in one of its files."""
        return self._version.column(f"{self._prefix}.{part}")

    def documents(self, older: Int32s, added: Int32s) -> Int32s:
        """The numbers in the new version of some documents that are carried over, and some that are added."""
        renumbered = self.carried.renumbered[older]
        joined = np.concatenate([renumbered[renumbered >= 0], self.carried.added[added]])
        joined.sort(kind="stable")
        return joined

    def numbers(self, values: NDArray[Any], of_values: Int32s) -> tuple[NDArray[Any], Int32s]:
        """All numbers of the field in any order but that of one document, and the new numbers of their documents.

        Given are those of the documents that are added.
        """
        renumbered = self.carried.renumbered[self.column("documents").all()]
        left = renumbered >= 0
        return (
            np.concatenate([self.column("values").all()[left], values]),
            np.concatenate([renumbered[left], self.carried.added[of_values]]),
        )

    def copy(self, part: str, values: NDArray[Any]) -> None:
        """Put what a file has for each document that is carried over in its place among `values`."""
        self.carried.copy(self.column(part).all(), values)


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
