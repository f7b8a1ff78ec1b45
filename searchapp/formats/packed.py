"""Text that is compressed with gzip in pieces, each of which is read without those before it.

A gzip file may be several members one behind the other, which every tool unpacks as one text. Here each piece is a
member, and says in an extra field of its header (RFC 1952, 2.3.1.1) how many bytes the member has and how many lines
the piece: so the pieces are found by a few bytes each. The header has neither name nor time, so that the same text
gives the same bytes, as long as the library zlib is the same.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import IO, BinaryIO, cast

SUFFIX = ".gz"

LEVEL = 1
"""The quickest: what is random in a run, the order of its ids, no level makes smaller."""

_HEADER = struct.Struct("<4B I 2B H 2s H Q Q")
"""Two magic bytes, the method, the flags; time; two bytes without a meaning; length of the extra field; name and length
of its only part, which has the bytes of the member and the lines of the piece."""

_FIXED = (0x1F, 0x8B, 8, 4, 0, 0, 255, 20, b"sa", 16)
_TRAILER = struct.Struct("<I I")
"""The checksum of the piece and its length."""


class PieceWriter:
    """Writes to a file, each piece that is written as a member of its own."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, piece: bytes) -> int:
        """Compress and write a piece."""
        compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = compressor.compress(piece) + compressor.flush()
        size = _HEADER.size + len(packed) + _TRAILER.size
        self._file.write(_HEADER.pack(*_FIXED, size, piece.count(b"\n")))
        self._file.write(packed)
        self._file.write(_TRAILER.pack(zlib.crc32(piece), len(piece) & 0xFFFFFFFF))
        return len(piece)


@dataclass(frozen=True, slots=True)
class Piece:
    """Where a piece stands in a file, and how many lines it has."""

    begin: int
    end: int
    lines: int


def pieces(held: bytes | mmap) -> list[Piece] | None:
    """The pieces of a file that `PieceWriter` wrote; None of any other."""
    found = []
    begin = 0
    while begin < len(held):
        if begin + _HEADER.size > len(held):
            return None
        *fixed, size, lines = _HEADER.unpack_from(held, begin)
        end = begin + size
        if tuple(fixed) != _FIXED or size < _HEADER.size + _TRAILER.size or end > len(held):
            return None
        found.append(Piece(begin, end, lines))
        begin = end
    return found


def unpacked(held: bytes | mmap, piece: Piece, at_most: int = 0) -> bytes:
    """The text of a piece, or its first bytes.

    Raises:
        ValueError: it was altered.
    """
    try:
        packed = held[piece.begin : piece.end]
        if at_most:
            return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(packed, at_most)
        return gzip.decompress(packed)
    except (zlib.error, EOFError, OSError) as error:
        raise ValueError(f"not as it was compressed: {error}") from error


@contextmanager
def packing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to whose content is compressed as a whole, the same content to the same bytes."""
    with (
        path.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=file, mtime=0) as packed,
    ):
        yield cast("BinaryIO", cast("IO[bytes]", packed))
