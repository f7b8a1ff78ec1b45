"""Packed numbers: blocks of 128 with as many bits per number as the greatest one of the block needs.

`<name>.npy` has the bytes of all blocks, the first number in the lowest bits, then padding. `<name>.offsets.npy` has
the start of each block in units of 16 bytes: the sum of the widths of the blocks before it in bits. Any number is found
without its predecessors, so that C reads the postings of a term from the mapped file: native/packed.h.

    D. Lemire and L. Boytsov, Decoding billions of integers per second through vectorization, 2015.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import native
from searchapp.lucene.index import arrays
from searchapp.lucene.index.arrays import ArrayFile, Int64s, Numbers, StoredArray

BLOCK = 128  # numbers

UNIT = BLOCK // 8  # bytes of a block with one bit per number

WIDEST = 32  # bits of a number

PADDING = 8  # bytes after the last block, because eight bytes are read at once

CHUNK = 1 << 20  # numbers processed at a time

BLOCKS_AT_ONCE = 1 << 10  # packed by NumPy

Uint32s = NDArray[np.uint32]

_NUMBERS = struct.Struct("=5q")  # `Numbers` of native/packed.h

_ADDRESS, _SIZES = struct.Struct("=q"), struct.Struct("=2q")

_WIDTH = 4  # bytes of a number that is not packed


class Sliced(Protocol):
    """An array that is read by slices with both ends."""

    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> NDArray[Any]: ...


# Writing


def packed(numbers: Uint32s) -> tuple[NDArray[np.uint8], Int64s]:
    """Return the bytes of whole blocks, given shape `(blocks * BLOCK,)`, and the end of each block in units."""
    library = native.library()
    blocks = len(numbers) // BLOCK
    if library is None:
        return _packed_by_numpy(numbers.reshape(blocks, BLOCK))
    content = np.zeros(blocks * WIDEST * UNIT + PADDING, np.uint8)
    ends = np.zeros(blocks, np.int64)
    library.searchapp_pack(numbers.ctypes.data, blocks, content.ctypes.data, ends.ctypes.data)
    return content[: int(ends[-1]) * UNIT if blocks else 0], ends


def _packed_by_numpy(blocks: Uint32s) -> tuple[NDArray[np.uint8], Int64s]:
    widths = np.frexp(np.bitwise_or.reduce(blocks, axis=1).astype(np.float64))[1].astype(np.int64)
    ends = np.cumsum(widths)
    content = np.empty((int(widths.sum()), UNIT), np.uint8)
    for width in sorted(set(widths.tolist()) - {0}):
        same = np.flatnonzero(widths == width)
        for first in range(0, len(same), BLOCKS_AT_ONCE):
            chosen = same[first : first + BLOCKS_AT_ONCE]
            bits = blocks[chosen, :, None] >> np.arange(width, dtype=np.uint32) & np.uint32(1)
            rows = np.packbits(bits.astype(np.uint8).reshape(len(chosen), -1), axis=1, bitorder="little")
            content[ends[chosen, None] - width + np.arange(width)] = rows.reshape(-1, width, UNIT)
    return content.reshape(-1), ends


class PackedFile:
    """A new array of packed numbers of any length, written in pieces."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._file = ArrayFile(folder, name, np.uint8)
        self._rest = np.empty(0, np.uint32)  # numbers that do not fill a block yet
        self._end = 0
        self._offsets = [np.zeros(1, np.int64)]

    def append(self, piece: NDArray[Any]) -> None:
        numbers = np.concatenate([self._rest, piece.astype(np.uint32)])
        end = len(numbers) // BLOCK * BLOCK
        self._write(numbers[:end])
        self._rest = numbers[end:].copy()

    def _write(self, numbers: Uint32s) -> None:
        content, ends = packed(numbers)
        self._file.append(content)
        self._offsets.append(self._end + ends)
        self._end = int(self._offsets[-1][-1]) if len(ends) else self._end

    def _save(self, part: str, values: Sequence[NDArray[Any]]) -> None:
        arrays.save(self._folder, f"{self._name}.{part}", np.concatenate(values))

    def _finish(self) -> None:
        self._write(np.pad(self._rest, (0, -len(self._rest) % BLOCK)))
        self._file.append(np.zeros(PADDING, np.uint8))
        self._save("offsets", [offsets.astype(np.uint32) for offsets in self._offsets])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if error is None:
                self._finish()


class DocumentsFile(PackedFile):
    """The documents of terms as differences to the one before; each term begins with its first document.

    `<name>.bases.npy` has the document before each block.
    """

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self._count = 0
        self._last = np.int32(0)
        self._bases = [np.zeros(1, np.int32)]
        self._starts = np.empty(0, np.int64)

    def begin_terms(self, counts: Int64s) -> None:
        """State the numbers of documents of the next terms."""
        self._starts = self._count + np.cumsum(counts) - counts

    def append(self, piece: Numbers) -> None:
        if not len(piece):
            return
        first, self._count = self._count, self._count + len(piece)
        differences = np.diff(piece, prepend=self._last)
        self._last = piece[-1]
        begin, end = self._starts.searchsorted((first, self._count)).tolist()
        begins = self._starts[begin:end] - first
        differences[begins] = piece[begins]
        self._bases.append(piece[BLOCK - 1 - first % BLOCK :: BLOCK].copy())  # a view would keep the piece
        super().append(differences)

    def _finish(self) -> None:
        super()._finish()
        self._save("bases", self._bases)


class FrequenciesFile(PackedFile):
    """Frequencies less one.

    `<name>.sums.npy` has the sum of the frequencies before each block.
    """

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self._count = 0
        self._sum = 0
        self._sums = [np.zeros(1, np.int64)]

    def append(self, piece: NDArray[Any]) -> None:
        if not len(piece):
            return
        sums = self._sum + np.cumsum(piece, dtype=np.int64)
        self._sums.append(sums[BLOCK - 1 - self._count % BLOCK :: BLOCK].copy())
        self._sum = int(sums[-1])
        self._count += len(piece)
        super().append(piece.astype(np.uint32) - np.uint32(1))

    def _finish(self) -> None:
        super()._finish()
        self._save("sums", self._sums)


# Reading


class PackedNumbers:
    """Packed numbers of an index."""

    dtype: np.dtype[Any] = np.dtype(np.uint32)

    def __init__(self, content: StoredArray, offsets: StoredArray, length: int) -> None:
        if len(offsets) != -(-length // BLOCK) + 1 or content.dtype != np.uint8 or offsets.dtype != np.uint32:
            raise ValueError("its files do not agree on packed numbers")
        self._content = content
        self._offsets = offsets
        self._length = length
        self._addresses = (content.unverified().ctypes.data, offsets.unverified().ctypes.data, len(content))

    def __len__(self) -> int:
        return self._length

    def require(self, first: int, end: int) -> None:
        """Verify the numbers from `first` to `end`, before C reads them."""
        if not 0 <= first <= end <= self._length:
            raise IndexError("packed numbers are not in their file")
        if self._offsets.is_verified and self._content.is_verified:
            return
        begin, stop = first // BLOCK, -(-end // BLOCK)
        self._offsets.require(begin, stop + 1)
        bounds = self._offsets.unverified()
        size = len(self._content)
        end_of_block = int(bounds[stop]) * UNIT + PADDING
        self._content.require(min(int(bounds[begin]) * UNIT, size), min(end_of_block, size))

    def address(self, first: int) -> bytes:
        """Return the numbers from `first` on as `Numbers` of native/packed.h; the caller calls `require`."""
        return _NUMBERS.pack(0, *self._addresses, first)

    def __getitem__(self, part: slice) -> NDArray[Any]:
        """Return the numbers from `part.start` to `part.stop`, which must be within the array."""
        return self.parts([part])

    def first_of(self, block: int) -> int:
        """Return the first number of a block."""
        self.require(block * BLOCK, block * BLOCK + 1)
        begin, end = self._offsets.number(block), self._offsets.number(block + 1)
        four_bytes = self._content.unverified()[begin * UNIT : begin * UNIT + 4].tobytes()
        return int.from_bytes(four_bytes, "little") & ((1 << (end - begin)) - 1)

    def all(self) -> NDArray[Any]:
        return self[0 : len(self)]

    def parts(self, parts: Sequence[slice]) -> NDArray[Any]:
        """Return the concatenated numbers of several parts."""
        return self._unpacked(parts)

    def sums(self, parts: Sequence[slice]) -> Uint32s:
        """Return the concatenated running sums of several parts."""
        return self._unpacked(parts, is_summed=True)

    def _unpacked(self, parts: Sequence[slice], *, is_summed: bool = False) -> Uint32s:
        begins, ends = [part.start for part in parts], [part.stop for part in parts]
        if max(ends, default=0) > self._length:
            raise IndexError("packed numbers are not in their file")
        if not (self._offsets.is_verified and self._content.is_verified):
            for part in parts:
                self.require(part.start, part.stop)
        library = native.library()
        if library is None:
            return self._unpacked_by_numpy(parts, is_summed)
        numbers = np.empty(sum(ends) - sum(begins), np.uint32)
        if library.searchapp_unpack(
            self.address(0),
            array("q", begins).tobytes(),
            array("q", ends).tobytes(),
            is_summed,
            len(parts),
            numbers.ctypes.data,
        ):
            raise IndexError("packed numbers are not in their file")
        return numbers

    def _unpacked_by_numpy(self, parts: Sequence[slice], is_summed: bool) -> Uint32s:
        pieces = [np.empty(0, np.uint32)]
        for part in parts:
            first, end = part.start, part.stop
            if first >= end:
                continue
            begin = first // BLOCK
            offsets = self._offsets[begin : -(-end // BLOCK) + 1].astype(np.int64)
            piece = self._blocks(offsets)[first - begin * BLOCK :][: end - first]
            pieces.append(np.cumsum(piece, dtype=np.uint32) if is_summed else piece)
        return np.concatenate(pieces)

    def _blocks(self, offsets: Int64s) -> Uint32s:
        """Return the numbers of whole blocks, given their offsets and the end."""
        content = self._content.unverified()
        widths = np.diff(offsets)
        if (widths < 0).any() or (widths > WIDEST).any() or offsets[-1] * UNIT + PADDING > len(content):
            raise IndexError("packed numbers are not in their file")
        bits = offsets[:-1, None] * BLOCK + np.arange(BLOCK) * widths[:, None]
        # The eight bytes from each byte on.
        words = np.lib.stride_tricks.as_strided(content[:8].view(np.uint64), (len(content) - 7,), (1,))
        masks = (np.uint64(1) << widths.astype(np.uint64)) - np.uint64(1)
        numbers: NDArray[np.uint64] = words[bits >> 3] >> (bits & 7).astype(np.uint64) & masks[:, None]
        return numbers.astype(np.uint32).reshape(-1)


class PackedFrequencies(PackedNumbers):
    """Frequencies of postings, see `FrequenciesFile`."""

    def __init__(self, content: StoredArray, offsets: StoredArray, sums: StoredArray, length: int) -> None:
        super().__init__(content, offsets, length)
        if len(sums) != length // BLOCK + 1 or sums.dtype != np.int64:
            raise ValueError("its files do not agree on the sums of frequencies")
        self._sums = sums

    def sums_address(self) -> int:
        """Return the address of the sums before each block, after their verification."""
        return self._sums.all().ctypes.data

    def parts(self, parts: Sequence[slice]) -> NDArray[Any]:
        return super().parts(parts) + np.uint32(1)

    def sum_before(self, index: int) -> int:
        """Return the sum of the frequencies before one of them."""
        block = index // BLOCK
        return self._sums.number(block) + int(self[block * BLOCK : index].sum(dtype=np.int64))

    def sums_before(self, indices: Int64s) -> Int64s:
        """Return the sum of the frequencies before each of ascending indices."""
        sums = np.empty(len(indices), np.int64)
        total, done = 0, 0
        for first in range(0, len(self) + 1, CHUNK):
            end = min(first + CHUNK, len(self))
            before = total + np.append(0, np.cumsum(self[first:end], dtype=np.int64))
            stop = int(indices.searchsorted(end, "right"))
            sums[done:stop] = before[indices[done:stop] - first]
            total, done = int(before[-1]), stop
        return sums


def save_starts(folder: Path, name: str, starts: Int64s) -> None:
    """Write the starts of consecutive pieces, and the end of the last, as the packed lengths of the pieces.

    `<name>.bases.npy` has the start of each block, then the number of pieces.
    """
    with PackedFile(folder, name) as file:
        file.append(np.diff(starts))
    arrays.save(folder, f"{name}.bases", np.append(starts[:-1:BLOCK], len(starts) - 1))


def open_starts(
    open_array: Callable[[str], StoredArray], name: str, *, is_packed: bool
) -> StoredArray | PackedStarts:
    """Open what `save_starts` wrote, or an array of format 7."""
    content = open_array(name)
    if not is_packed:
        return content
    return PackedStarts(content, open_array(f"{name}.offsets"), open_array(f"{name}.bases"))


class PackedStarts:
    """The ascending starts of consecutive pieces, then the end of the last, see `save_starts`."""

    dtype: np.dtype[Any] = np.dtype(np.int64)

    def __init__(self, content: StoredArray, offsets: StoredArray, bases: StoredArray) -> None:
        if not len(bases) or bases.dtype != np.int64:
            raise ValueError("its files do not agree on the starts of terms")
        self._bases = bases
        self._count = bases.number(len(bases) - 1)
        if len(bases) != -(-self._count // BLOCK) + 1:
            raise ValueError("its files do not agree on the starts of terms")
        self._lengths = PackedNumbers(content, offsets, self._count)

    def __len__(self) -> int:
        return self._count + 1

    def __getitem__(self, part: slice) -> Int64s:
        first, end = int(part.start), int(part.stop)
        if first >= end:
            return np.empty(0, np.int64)
        block = min(first, max(self._count - 1, 0)) // BLOCK  # the last start may follow the last block
        begin = block * BLOCK
        starts = np.zeros(end - begin, np.int64)
        np.cumsum(self._lengths[begin : end - 1], out=starts[1:])
        if self._count:
            starts += self._bases[block : block + 1]
        return starts[first - begin :]

    @cached_property
    def _all(self) -> Int64s:
        return self[0 : len(self)]

    def all(self) -> Int64s:
        return self._all

    def pair(self, index: int) -> tuple[int, int]:
        """Return a start and the next one."""
        block, place = divmod(index, BLOCK)
        start = self._bases.number(block)
        if not place:
            return start, start + self._lengths.first_of(block)
        lengths = self._lengths[index - place : index + 1]
        end = start + int(lengths.sum(dtype=np.int64))
        return end - int(lengths[place]), end


class PackedDocuments:
    """The documents of terms, see `DocumentsFile`; `starts` has the start of each term, then the end of the last."""

    dtype: np.dtype[Any] = np.dtype(np.int32)

    def __init__(
        self,
        content: StoredArray,
        offsets: StoredArray,
        bases: StoredArray,
        starts: StoredArray | PackedStarts,
    ) -> None:
        length = int(starts[len(starts) - 1 : len(starts)][0])
        if len(bases) != length // BLOCK + 1 or bases.dtype != np.int32:
            raise ValueError("its files do not agree on the documents of terms")
        self._differences = PackedNumbers(content, offsets, length)
        self._bases = bases
        self._starts = starts
        self._bases_address = bases.unverified().ctypes.data

    def __len__(self) -> int:
        return len(self._differences)

    def address(self, part: slice) -> bytes:
        """Return the part of a term as `Numbers` and `bases` of native/postings.h."""
        self._bases.require(part.start // BLOCK, (part.stop - 1) // BLOCK + 1)
        self._differences.require(part.start, part.stop)
        return self._differences.address(part.start) + _ADDRESS.pack(self._bases_address)

    def parts(self, parts: Sequence[slice]) -> Numbers:
        """Return the concatenated documents of terms, given the part of each."""
        return self._differences.sums(parts).view(np.int32)

    def __getitem__(self, part: slice) -> Numbers:
        """Return the documents from `part.start` to `part.stop`, which may be those of several terms."""
        first, end = int(part.start), int(part.stop)
        if first >= end:
            return np.empty(0, np.int32)
        begin = first // BLOCK * BLOCK
        sums = np.cumsum(self._differences[begin:end], dtype=np.int64)
        starts = self._starts.all()
        inside = starts[slice(*starts.searchsorted((begin, end)))] - begin  # where terms begin
        lengths = np.diff(inside, append=len(sums))
        before = np.append(0, sums)[inside]
        head = len(sums) - int(lengths.sum())  # documents of the term that begins before
        sums[:head] += self._bases.number(begin // BLOCK)
        sums[head:] -= np.repeat(before, lengths)
        return sums[first - begin :].astype(np.int32)

    def all(self) -> Numbers:
        return self[0 : len(self)]


# Addresses for C


def documents_address(
    documents: StoredArray | PackedDocuments, part: slice, count: int
) -> tuple[bytes, NDArray[Any] | None]:
    """Return the documents of a term as `Documents` of native/postings.h, and an array that must be kept.

    `count` is the number of documents of the segment.
    """
    size = _SIZES.pack(part.stop - part.start, count)
    if isinstance(documents, PackedDocuments):
        return documents.address(part) + size, None
    numbers, values = numbers_address(documents, part)
    return numbers + _ADDRESS.pack(0) + size, values


def numbers_address(numbers: StoredArray | PackedNumbers, part: slice) -> tuple[bytes, NDArray[Any] | None]:
    """Return a part of an array as `Numbers` of native/packed.h, and an array that must be kept."""
    if isinstance(numbers, PackedNumbers):
        numbers.require(part.start, part.stop)
        return numbers.address(part.start), None
    values = numbers[part]
    if len(values) != part.stop - part.start:
        raise IndexError("postings are not in their file")
    if values.itemsize != _WIDTH:
        values = values.astype(np.uint32)
    return _NUMBERS.pack(values.ctypes.data, 0, 0, 0, 0), values
