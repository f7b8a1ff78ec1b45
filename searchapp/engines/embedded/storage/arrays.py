"""Numbers in `.npy` files: written in pieces, made durable, read by memory map."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

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
            empty = described(file)[1] == 0
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
            dtype, self._length = described(file)
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


def described(file: BinaryIO) -> tuple[str, int]:
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
