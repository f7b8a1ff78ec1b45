"""Arrays in `.npy` files: written in pieces, memory-mapped, and verified block by block.

Every block of a file has a CRC-32 checksum, because a single altered bit would change a ranking unnoticed. It is
verified before its first use.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import sys
import zlib
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.layout import (
    BLOCK,
    CHECKSUMS,
    LAST_UNPACKED,
    IndexManifest,
    StoredFile,
    reading,
    refuted,
)

Numbers = NDArray[np.int32]
Int64s = NDArray[np.int64]

Mask = NDArray[np.bool_]  # a boolean per document

SUFFIX = ".npy"
TYPES = frozenset({"|u1", "<u2", "<u4", "<i4", "<i8", "<f8"})

COPIED_BYTES = 1 << 20  # bytes of a file copied at a time

_HEADER_BYTES = 128
_MAGIC = b"\x93NUMPY\x01\x00\x76\x00"
# NumPy parses a header as a Python expression, which takes a tenth of the time of opening a small index.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00\x76\x00\{'descr': '(\|u1|<u2|<u4|<i4|<i8|<f8)', 'fortran_order': False, "
    rb"'shape': \(([0-9]{1,18}),\), \} *\n"
)


def _path(folder: Path, name: str) -> str:
    # An index has a hundred arrays, for which `Path` objects take noticeable time.
    return f"{folder}{os.sep}{name}{SUFFIX}"


class ArrayFile:
    """A new one-dimensional array file, written in pieces; its length is checked if it is known."""

    def __init__(self, folder: Path, name: str, dtype: DTypeLike, length: int | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self._expected = length
        self._length = 0
        self._file = open(_path(folder, name), "xb")  # noqa: SIM115  # `__exit__` closes it
        self._write_header(length or 0)

    def _write_header(self, length: int) -> None:
        header = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': ({length},), }}"
        self._file.write(_MAGIC + header.ljust(_HEADER_BYTES - len(_MAGIC) - 1).encode() + b"\n")

    def append(self, piece: NDArray[Any]) -> None:
        self._length += len(piece)
        self._file.write(np.ascontiguousarray(piece, self.dtype).data)

    def append_content(self, path: Path) -> None:
        """Append the content of a file."""
        with path.open("rb") as file:
            while content := file.read(COPIED_BYTES):
                self.append(np.frombuffer(content, self.dtype))

    def __enter__(self) -> ArrayFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if error is not None:
                return
            if self._expected is None:
                self._file.seek(0)
                self._write_header(self._length)
            elif self._length != self._expected:
                raise ValueError(f"{self._file.name} lacks {self._expected - self._length} numbers")


def save(folder: Path, name: str, values: NDArray[Any]) -> None:
    """Write an array as `<name>.npy`."""
    with ArrayFile(folder, name, values.dtype, len(values)) as file:
        file.append(values)


class ArrayReader:
    """Reads slices of `<name>.npy`, and keeps neither memory nor a file descriptor."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = _path(folder, name)
        with open(self._path, "rb") as file:
            dtype, self._length = _read_header(file)
            self.dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> NDArray[Any]:
        """Read the elements from `part.start` to `part.stop`, which must be within the array."""
        first, count = int(part.start), int(part.stop) - int(part.start)
        values = np.fromfile(
            self._path, self.dtype, count, offset=_HEADER_BYTES + first * self.dtype.itemsize
        )
        if len(values) != count:
            raise ValueError(f"{self._path} ends before its number {first + count:,}")
        return values


def load(folder: Path, name: str) -> NDArray[Any]:
    """Read `<name>.npy`."""
    file = ArrayReader(folder, name)
    return file[0 : len(file)]


def mapped(folder: Path, name: str) -> StoredArray:
    """Map the elements of `<name>.npy`, which was just written."""
    with open(_path(folder, name), "rb") as file:
        dtype, length = _read_header(file)
        content = _mapped(file)
    return StoredArray(np.frombuffer(content, dtype, length, _HEADER_BYTES))


def marked(bits: NDArray[np.uint8], count: int) -> Numbers:
    """Return which of `count` bits are set, ascending; the first one is the lowest of the first byte."""
    return np.flatnonzero(np.unpackbits(bits, count=count, bitorder="little")).astype(np.int32)


def find_sorted(ascending: NDArray[Any], numbers: NDArray[Any]) -> tuple[NDArray[np.intp], Mask]:
    """Return the index of each number of `numbers` in a sorted array, and whether the number is present.

    The index of an absent number is arbitrary; in an empty array it is 0.

    >>> indices, is_present = find_sorted(np.array([2, 4, 8]), np.array([4, 5, 9]))
    >>> indices.tolist(), is_present.tolist()
    ([1, 2, 2], [True, False, False])
    """
    indices = ascending.searchsorted(numbers)
    if not len(ascending):
        return indices, np.zeros(len(numbers), bool)
    np.minimum(indices, len(ascending) - 1, out=indices)
    return indices, ascending.take(indices) == numbers


def _read_header(file: BinaryIO) -> tuple[str, int]:
    header = _HEADER.fullmatch(file.read(_HEADER_BYTES))
    if header is None:
        raise ValueError(f"{file.name} is not an array that searchapp wrote")
    return header[1].decode(), int(header[2])


def describe_file(folder: Path, name: str) -> tuple[StoredFile, list[int]]:
    """Return the manifest's entry for a file and, for an array, the checksums of its blocks."""
    digest, size, checksums = hashlib.sha256(), 0, []
    header = ("", 0)
    is_array = name.endswith(SUFFIX)
    with open(f"{folder}{os.sep}{name}", "rb") as file:
        if is_array:
            header = _read_header(file)
            file.seek(0)
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
            if is_array:
                checksums.append(zlib.crc32(block))
    return StoredFile(size, digest.hexdigest(), *header), checksums


_UNVERIFIED, _VERIFIED = b"\0", 1


@dataclass(slots=True)
class _Blocks:
    """The blocks of a mapped array file; `verified[first + n]` is 1 once block n is verified."""

    path: Path
    content: memoryview
    checksums: Sequence[int]
    verified: mmap.mmap
    first: int
    header: int  # bytes before the elements

    def require(self, begin: int, end: int) -> bool:
        """Verify the bytes from `begin` to `end` of the elements; return whether all blocks are verified."""
        block = self.first + (self.header + begin) // BLOCK
        stop = self.first + -(-(self.header + end) // BLOCK)
        while (block := self.verified.find(_UNVERIFIED, block, stop)) >= 0:
            number = block - self.first
            content = self.content[number * BLOCK : (number + 1) * BLOCK]
            if zlib.crc32(content) != self.checksums[number]:
                raise refuted(self.path.parent, f"{self.path.name} was altered")
            self.verified[block] = _VERIFIED
        return self.verified.find(_UNVERIFIED, self.first, self.first + len(self.checksums)) < 0


class StoredArray:
    """An array of an index; without `blocks` it is already verified."""

    def __init__(self, values: NDArray[Any], blocks: _Blocks | None = None) -> None:
        self._values = values
        self._blocks = blocks
        self._numbers: Sequence[int] = memoryview(values.data)  # returns Python integers
        self.dtype = values.dtype

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, part: slice) -> NDArray[Any]:
        """Return the elements from `part.start` to `part.stop`, which must be within the array."""
        if self._blocks is not None:
            self.require(part.start, part.stop)
        return self._values[part]

    def parts(self, parts: Sequence[slice]) -> NDArray[Any]:
        """Return the concatenated elements of several parts; a single part is returned as a view."""
        if len(parts) == 1:
            return self[parts[0]]
        return np.concatenate([self[part] for part in parts]) if parts else self[0:0]

    def all(self) -> NDArray[Any]:
        if self._blocks is not None:
            self.require(0, len(self))
        return self._values

    def require(self, start: int, stop: int) -> bool:
        """Verify the elements from `start` to `stop`; return whether the whole array is verified."""
        blocks = self._blocks  # another thread may reset the attribute
        if blocks is None:
            return True
        width = self._values.itemsize
        if not blocks.require(start * width, stop * width):
            return False
        self._blocks = None
        return True

    def number(self, index: int) -> int:
        """Return an element of an array of integers."""
        if self._blocks is not None:
            self.require(index, index + 1)
        return self._numbers[index]

    def pair(self, index: int) -> tuple[int, int]:
        """Return an element and the next one."""
        first, second = self[index : index + 2].tolist()
        return first, second

    @property
    def is_verified(self) -> bool:
        return self._blocks is None

    def unverified(self) -> NDArray[Any]:
        """Return all elements; the caller must call `require` before it reads them."""
        return self._values


class StoredArrays:
    """Opens the arrays of a version by name."""

    def __init__(self, manifest: IndexManifest) -> None:
        self._folder = manifest.folder
        self._files = manifest.files
        with reading(self._folder, CHECKSUMS):
            content = (self._folder / CHECKSUMS).read_bytes()
        file = self._files[CHECKSUMS]
        if hashlib.sha256(content).hexdigest() != file.digest:
            raise refuted(self._folder, f"{CHECKSUMS} was altered")
        self._checksums: list[int] = _elements(content, file).tolist()
        self.is_packed = manifest.format > LAST_UNPACKED
        self._verified = mmap.mmap(-1, max(1, len(self._checksums)))
        firsts = accumulate((file.blocks for _name, file in manifest.with_checksums()), initial=0)
        self._first = dict(zip((name for name, _file in manifest.with_checksums()), firsts, strict=False))

    def open(self, name: str) -> StoredArray:
        """Open `<name>.npy`.

        Raises:
            KeyError: the version has no such file.
            ValueError: the file is not an array of that length.
        """
        file_name = f"{name}{SUFFIX}"
        file, first = self._files[file_name], self._first[file_name]
        checksums = self._checksums[first : first + file.blocks]
        with reading(self._folder, file_name), open(_path(self._folder, name), "rb") as opened:
            if file.blocks > 1:
                mapped = _mapped(opened)
            else:
                content = opened.read()
        if file.blocks > 1:
            path = self._folder / file_name
            blocks = _Blocks(path, memoryview(mapped), checksums, self._verified, first, file.offset)
            return StoredArray(_elements(mapped, file), blocks)
        if zlib.crc32(content) != checksums[0]:
            raise refuted(self._folder, f"{file_name} was altered")
        return StoredArray(_elements(content, file))

    def mark_verified(self) -> None:
        """Mark every block as verified, after all files were compared with their digests."""
        self._verified[:] = bytes([_VERIFIED]) * len(self._verified)


def _elements(content: bytes | mmap.mmap, file: StoredFile) -> NDArray[Any]:
    return np.frombuffer(content, file.dtype, file.length, file.offset)


def _mapped(file: BinaryIO) -> mmap.mmap:
    if sys.version_info >= (3, 13):  # saves a file descriptor
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ, trackfd=False)
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
