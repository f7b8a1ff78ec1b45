"""The numbers of a version, verified block by block when they are first read.

A bit that a disk, a cable or a memory has turned gives another ranking, which looks like any other. So every block
of a file has a checksum (CRC-32, which finds each single turned bit and each burst of up to 32), and nothing is
given out of a block before it has been compared with it. Once is enough, for all processes that are forked from
this one as well: which blocks are verified is known in memory that they share.

A file of one block is read and verified when it is opened; it then needs no descriptor, of which there are few.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.storage import arrays
from searchapp.engines.embedded.storage.layout import BLOCK, CHECKSUMS, Manifest, StoredFile, reading
from searchapp.engines.embedded.storage.verified import refuted

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
        """Read the checksums of a version that has them.

        Raises:
            DataError: they are missing or were altered.
            SearchappError: they can't be read.
        """
        self._folder = folder
        self._files = manifest.files
        self._checksums: Sequence[int] | None = None
        if not manifest.has_checksums:
            return
        with reading(folder, CHECKSUMS):
            content = (folder / CHECKSUMS).read_bytes()
        if hashlib.sha256(content).hexdigest() != self._files[CHECKSUMS].digest:
            raise refuted(folder, f"{CHECKSUMS} was altered")
        self._checksums = _numbers(content, self._files[CHECKSUMS]).data
        self._verified = mmap.mmap(-1, len(self._checksums))
        self._first: dict[str, int] = {}
        blocks = 0
        for name, file in manifest.with_checksums():
            self._first[name] = blocks
            blocks += file.blocks

    def has(self, name: str) -> bool:
        """Whether the version has a file `<name>.npy`; one that an older searchapp wrote may lack some."""
        return f"{name}{arrays.SUFFIX}" in self._files

    def column(self, name: str) -> Column:
        """The numbers in `<name>.npy`.

        Raises:
            KeyError: the version has no such file.
            ValueError: the file is no array, or not of that length.
            DataError: it is missing; or it has but one block, and was altered.
            SearchappError: it can't be read.
        """
        with reading(self._folder, f"{name}{arrays.SUFFIX}"):
            if self._checksums is None:
                return Column(arrays.load(self._folder, name))
            return self._column(f"{name}{arrays.SUFFIX}", self._checksums)

    def _column(self, name: str, checksums: Sequence[int]) -> Column:
        file, first = self._files[name], self._first[name]
        checksums = checksums[first : first + file.blocks]
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
        if self._checksums is not None:
            self._verified[:] = bytes([_VERIFIED]) * len(self._verified)


def looked_through(folder: Path, name: str) -> tuple[StoredFile, list[int]]:
    """What a manifest says of a file, and of an array the checksums of its blocks, in their order.

    Raises:
        OSError: it can't be read.
    """
    digest, size, checksums = hashlib.sha256(), 0, []
    described = ("", 0)
    is_array = name.endswith(arrays.SUFFIX)
    with open(f"{folder}{os.sep}{name}", "rb") as file:
        if is_array:
            described = arrays.described(file)
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
