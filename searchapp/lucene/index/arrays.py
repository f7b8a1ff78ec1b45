"""Numbers in `.npy` files: written in pieces, made durable, read by memory map, verified block by block.

A bit turned by a disk, a cable or memory gives another ranking, which looks like any other. So every block of a
file has a checksum (CRC-32, which finds each single turned bit and each burst of up to 32), and is compared with it
before its first use. The set of verified blocks is in memory that forked processes share. A file of one block is
read and verified when it is opened; it then needs no descriptor.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from searchapp.lucene.index.layout import BLOCK, CHECKSUMS, Manifest, StoredFile, reading, refuted

Numbers = NDArray[np.int32]
Int64s = NDArray[np.int64]

Mask = NDArray[np.bool_]
"""A truth value for each document."""

SUFFIX = ".npy"
TYPES = frozenset({"|u1", "<u2", "<u4", "<i4", "<i8", "<f8"})

_HEADER_BYTES = 128
_MAGIC = b"\x93NUMPY\x01\x00\x76\x00"
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00\x76\x00\{'descr': '(\|u1|<u2|<u4|<i4|<i8|<f8)', 'fortran_order': False, "
    rb"'shape': \(([0-9]{1,18}),\), \} *\n"
)
"""The header that `ArrayFile` writes. NumPy parses it as a program, which takes a tenth of opening a small index."""


class ArrayFile:
    """A one-dimensional array of a known length that is appended to piece by piece."""

    def __init__(self, folder: Path, name: str, dtype: DTypeLike, length: int) -> None:
        """Begin `<name>.npy`, which must not be there yet."""
        self.dtype = np.dtype(dtype)
        self._left = length
        self._file = open(_path(folder, name), "xb")  # noqa: SIM115  # `__exit__` closes it
        self._file.write(_header(self.dtype, length))

    def append(self, piece: NDArray[Any]) -> None:
        self._left -= len(piece)
        self._file.write(np.ascontiguousarray(piece, self.dtype).data)

    def __enter__(self) -> ArrayFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if error is None and self._left:
            raise ValueError(f"{self._file.name} lacks {self._left} numbers")


def save(folder: Path, name: str, values: NDArray[Any]) -> None:
    """Write a whole array as `<name>.npy`."""
    with ArrayFile(folder, name, values.dtype, len(values)) as file:
        file.append(values)


def load(folder: Path, name: str) -> NDArray[Any]:
    """Map `<name>.npy` into memory, without reading it.

    Raises:
        ValueError: the file is not a one-dimensional array in full length.
        OSError: it can't be read.
    """
    path = _path(folder, name)
    try:
        with open(path, "rb") as file:
            empty = dtype_and_length(file)[1] == 0
        values = np.load(path, mmap_mode=None if empty else "r")  # nothing can't be mapped
    except OSError:
        raise
    except Exception as error:  # a header that was altered fails in NumPy's parser in many ways
        raise ValueError(f"{name}{SUFFIX} is not an array that searchapp wrote") from error
    if values.ndim != 1 or values.dtype.str not in TYPES:
        raise ValueError(f"{name}{SUFFIX} is not an array that searchapp wrote")
    return values.view(np.ndarray)  # type: ignore[no-any-return]  # slices of a plain array are cheaper


class ArrayOnDisk:
    """The numbers of `<name>.npy`, of which each part is read when it is asked for.

    Nothing stays behind of it, neither memory nor a descriptor: many files can be read in turn from end to end.

    Raises:
        ValueError: the file is not an array that searchapp wrote.
        OSError: it can't be read.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = _path(folder, name)
        with open(self._path, "rb") as file:
            dtype, self._length = dtype_and_length(file)
            self.dtype = np.dtype(dtype)
            self._offset = os.fstat(file.fileno()).st_size - self._length * self.dtype.itemsize

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> NDArray[Any]:
        """The numbers from `part.start` to `part.stop`, which must lie within the array."""
        first, count = int(part.start), int(part.stop) - int(part.start)
        offset = self._offset + first * self.dtype.itemsize
        values = np.fromfile(self._path, self.dtype, count, offset=offset)
        if len(values) != count:
            raise ValueError(f"{self._path} ends before its number {first + count:,}")
        return values


def narrowest(largest: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds every number from 0 to `largest`."""
    return np.min_scalar_type(largest)


def located(ascending: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where each wanted number stands among ascending ones, and whether it does; elsewhere the place is any of them.

    Where there are none, the places are 0, of which nothing can be taken.

    >>> places, there = located(np.array([2, 4, 8]), np.array([4, 5, 9]))
    >>> places.tolist(), there.tolist()
    ([1, 2, 2], [True, False, False])
    """
    places = ascending.searchsorted(wanted)
    if not len(ascending):
        return places, np.zeros(len(wanted), bool)
    np.minimum(places, len(ascending) - 1, out=places)
    return places, ascending.take(places) == wanted


def synchronize(path: Path | str) -> None:
    """Have the system write a file or a folder to disk now."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def dtype_and_length(file: BinaryIO) -> tuple[str, int]:
    """The type and the number of what an array file of ours holds, which is open at its beginning.

    Raises:
        ValueError: it is none.
    """
    if header := _HEADER.fullmatch(file.read(_HEADER_BYTES)):
        return header[1].decode(), int(header[2])
    file.seek(0)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"{file.name} is not an array that searchapp wrote")
    shape, _order, dtype = np.lib.format.read_array_header_1_0(file)
    return dtype.str, shape[0]


def _header(dtype: np.dtype[Any], length: int) -> bytes:
    """The header of an array, as `np.save` writes it in several times the time."""
    said = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({length},), }}"
    return _MAGIC + said.ljust(_HEADER_BYTES - len(_MAGIC) - 1).encode() + b"\n"


def _path(folder: Path, name: str) -> str:
    """The path of `<name>.npy`: an index has a hundred of them, and a `Path` for each would take time."""
    return f"{folder}{os.sep}{name}{SUFFIX}"


_UNVERIFIED, _VERIFIED = b"\0", 1


class Blocks:
    """The blocks of one file; those of `verified` from `first` on say which of them are known to be sound."""

    def __init__(
        self, path: Path, content: mmap.mmap, checksums: Sequence[int], verified: mmap.mmap, first: int
    ) -> None:
        self._path = path
        self._content = memoryview(content)
        self._checksums = checksums
        self._verified = verified
        self._first = first
        self._end = first + len(checksums)

    def require(self, begin: int, end: int) -> bool:
        """Verify the blocks that hold the bytes from `begin` to `end`; returns whether all of the file are verified.

        Raises:
            DataError: one was altered.
        """
        block = self._first + begin // BLOCK
        stop = self._first + -(-end // BLOCK)
        while (block := self._verified.find(_UNVERIFIED, block, stop)) >= 0:
            self._verify(block)
        return self._verified.find(_UNVERIFIED, self._first, self._end) < 0

    def _verify(self, block: int) -> None:
        number = block - self._first
        if zlib.crc32(self._content[number * BLOCK : (number + 1) * BLOCK]) != self._checksums[number]:
            raise refuted(self._path.parent, f"{self._path.name} was altered")
        self._verified[block] = _VERIFIED


class Column:
    """The numbers of a file. Without `blocks` they are known to be sound; else their bytes begin at `offset`."""

    def __init__(self, values: NDArray[Any], blocks: Blocks | None = None, offset: int = 0) -> None:
        self._values = values
        self._blocks = blocks
        self._offset = offset

    def __len__(self) -> int:
        return len(self._values)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        return self._values.dtype

    def __getitem__(self, part: slice) -> NDArray[Any]:
        """The numbers from `part.start` to `part.stop`, which must lie within the column."""
        if self._blocks is not None:
            self.require(part.start, part.stop)
        return self._values[part]

    def all(self) -> NDArray[Any]:
        """All numbers."""
        if self._blocks is not None:
            self.require(0, len(self))
        return self._values

    def require(self, start: int, stop: int) -> bool:
        """Verify the numbers from `start` to `stop`; returns whether all of the column are.

        Raises:
            DataError: they were altered.
        """
        blocks = self._blocks  # another thread may find the last one sound meanwhile
        if blocks is None:
            return True
        width = self._values.itemsize
        if not blocks.require(self._offset + start * width, self._offset + stop * width):
            return False
        self._blocks = None
        return True

    def unverified(self) -> NDArray[Any]:
        """All numbers, for those who call `require` before they look at some."""
        return self._values


class Columns:
    """The array files of a version, opened by name."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """Read the checksums of a version.

        Raises:
            DataError: they are missing or were altered.
            SearchappError: they can't be read.
        """
        self._folder = folder
        self._files = manifest.files
        with reading(folder, CHECKSUMS):
            content = (folder / CHECKSUMS).read_bytes()
        if hashlib.sha256(content).hexdigest() != self._files[CHECKSUMS].digest:
            raise refuted(folder, f"{CHECKSUMS} was altered")
        self._checksums: Sequence[int] = _numbers(content, self._files[CHECKSUMS]).data
        self._verified = mmap.mmap(-1, len(self._checksums))
        self._first: dict[str, int] = {}
        blocks = 0
        for name, file in manifest.with_checksums():
            self._first[name] = blocks
            blocks += file.blocks

    def column(self, name: str) -> Column:
        """The numbers in `<name>.npy`.

        Raises:
            KeyError: the version has no such file.
            ValueError: the file is no array, or not of that length.
            DataError: it is missing; or it has but one block, and was altered.
            SearchappError: it can't be read.
        """
        with reading(self._folder, f"{name}{SUFFIX}"):
            return self._column(f"{name}{SUFFIX}")

    def _column(self, name: str) -> Column:
        file, first = self._files[name], self._first[name]
        checksums = self._checksums[first : first + file.blocks]
        if file.blocks == 1:
            with open(f"{self._folder}{os.sep}{name}", "rb") as opened:
                content = opened.read()
            if zlib.crc32(content) != checksums[0]:
                raise refuted(self._folder, f"{name} was altered")
            return Column(_numbers(content, file))
        path = self._folder / name
        mapped = _mapped(path)
        blocks = Blocks(path, mapped, checksums, self._verified, first)
        return Column(_numbers(mapped, file), blocks, file.offset)

    def trust(self) -> None:
        """Count every block as verified: all files have just been compared with their digests."""
        self._verified[:] = bytes([_VERIFIED]) * len(self._verified)


def looked_through(folder: Path, name: str) -> tuple[StoredFile, list[int]]:
    """What a manifest says of a file, and of an array the checksums of its blocks, in their order.

    Raises:
        OSError: it can't be read.
    """
    digest, size, checksums = hashlib.sha256(), 0, []
    described = ("", 0)
    is_array = name.endswith(SUFFIX)
    with open(f"{folder}{os.sep}{name}", "rb") as file:
        if is_array:
            described = dtype_and_length(file)
            file.seek(0)
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
            if is_array:
                checksums.append(zlib.crc32(block))
    return StoredFile(size, digest.hexdigest(), *described), checksums


def _numbers(content: bytes | mmap.mmap, file: StoredFile) -> NDArray[Any]:
    return np.frombuffer(content, file.dtype, file.length, file.offset)


def _mapped(path: Path) -> mmap.mmap:
    """A file's bytes, read as they are asked for; from Python 3.13 on no descriptor is kept for them."""
    with path.open("rb") as file:
        if sys.version_info >= (3, 13):
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ, trackfd=False)
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
