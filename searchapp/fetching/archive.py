"""Unpacks the wanted entries of a ZIP file, and refuses one that could do harm.

The archives are known by their digests, so none of this should ever happen; it is what stands between a mistake in
that knowledge, or a mirror's, and the person's files.
"""

from __future__ import annotations

import lzma
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from searchapp.errors import DataError
from searchapp.fetching.sources import Member
from searchapp.files import reason
from searchapp.inputs import open_file
from searchapp.progress import Advance, no_progress

MOST_ENTRIES = 100_000
"""An archive with more entries than this is refused."""

HIGHEST_RATIO = 200
"""An entry that grows by more than this factor is refused as a bomb; text shrinks to a tenth, rarely a fiftieth."""

SMALL_BYTES = 1 << 20
"""Below this size no entry is a bomb, whatever its ratio."""

_PIECE = 1 << 18
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What the library raises on a damaged archive, besides its own error.
_DAMAGED = (
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
)


def unpack(
    archive: Path,
    members: Sequence[Member],
    folder: Path,
    *,
    at_most: int,
    shown: str = "",
    advance: Advance = no_progress,
) -> list[str]:
    """Unpack the wanted entries into a folder and return their paths there, with slashes, in order.

    `at_most` bounds their bytes together, `shown` is what the archive is called in an error, and `advance` is given
    of each number of bytes.

    Raises:
        DataError: the archive is damaged, encrypted or unsafe, is larger than it may be, or lacks a file.
    """
    shown = shown or str(archive)
    try:
        with _opened(archive) as opened:
            chosen = _chosen(opened, members, at_most, shown)
            for place, entry in chosen.items():
                _write(opened, entry, folder / place, shown, advance)
    except _DAMAGED as error:
        raise DataError(f"{shown} is damaged: {error}") from error
    return sorted(chosen)


def unpacked_bytes(archive: Path, members: Sequence[Member]) -> int | None:
    """How many bytes the wanted entries say they have; None when the archive can't be read."""
    try:
        with _opened(archive) as opened:
            return sum(
                entry.file_size
                for entry in opened.infolist()
                if any(member.destination(entry.filename) for member in members)
            )
    except _DAMAGED:
        return None


@contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile]:
    with open_file(archive) as file:
        with _reading():
            opened = zipfile.ZipFile(file)
        with opened:
            yield opened


@contextmanager
def _reading() -> Iterator[None]:
    """Take it for damage when the archive leads the library to places that it has not, which is an OSError.

    One that comes from writing is none: the disk is full.
    """
    try:
        yield
    except OSError as error:
        raise zipfile.BadZipFile(reason(error)) from error


def _chosen(
    opened: zipfile.ZipFile, members: Sequence[Member], at_most: int, shown: str
) -> dict[str, zipfile.ZipInfo]:
    """The wanted entries by where they go."""
    entries = opened.infolist()
    if len(entries) > MOST_ENTRIES:
        raise DataError(
            f"{shown} has {len(entries):,} entries, more than {MOST_ENTRIES:,}: it is not unpacked"
        )
    chosen: dict[str, zipfile.ZipInfo] = {}
    folded: set[str] = set()
    found: set[Member] = set()
    for entry in entries:
        _refuse_path(entry, shown)
        if entry.is_dir():
            continue
        for member in members:
            place = member.destination(entry.filename)
            if place is None:
                continue
            # By capitals alone some file systems don't tell two names apart: one would replace the other.
            if place.casefold() in folded:
                raise DataError(f"{shown} holds {place} twice: it is not unpacked")
            _refuse_content(entry, shown)
            chosen[place] = entry
            folded.add(place.casefold())
            found.add(member)
            break
    missing = [member.pattern for member in members if member not in found and not member.optional]
    if missing:
        raise DataError(f"{shown} does not hold {', '.join(missing)}: it is not the expected archive")
    total = sum(entry.file_size for entry in chosen.values())
    if total > at_most:
        raise DataError(f"{shown} would unpack to {total:,} bytes, more than {at_most:,}: it is not unpacked")
    return chosen


def _refuse_path(entry: zipfile.ZipInfo, shown: str) -> None:
    # As it stands in the archive: the library replaces a system's own separators and cuts at a NUL.
    name = entry.orig_filename
    outside = name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or name[1:2] == ":"
    if outside or any(ord(character) < 0x20 for character in name):
        raise DataError(f"{shown} has an entry {name!r}, which leads out of its folder: it is not unpacked")


def _refuse_content(entry: zipfile.ZipInfo, shown: str) -> None:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise DataError(f"{shown}: {entry.filename} is a link or a device, not a file: it is not unpacked")
    if entry.flag_bits & 0x1:
        raise DataError(f"{shown}: {entry.filename} is encrypted: it can't be unpacked")
    if entry.compress_type not in _METHODS:
        raise DataError(f"{shown}: {entry.filename} is packed in a way that is not supported")
    if entry.file_size > SMALL_BYTES and entry.file_size > HIGHEST_RATIO * max(1, entry.compress_size):
        raise DataError(
            f"{shown}: {entry.filename} would grow from {entry.compress_size:,} to {entry.file_size:,} bytes, "
            "like a decompression bomb: it is not unpacked"
        )


def _write(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, shown: str, advance: Advance) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with _reading():
        packed = opened.open(entry)
    with packed, path.open("wb") as file:
        while piece := _read(packed):
            written += len(piece)
            if written > entry.file_size:
                raise DataError(f"{shown}: {entry.filename} is larger than it says: it is not unpacked")
            file.write(piece)
            advance(len(piece))
        file.flush()
        os.fsync(file.fileno())
    if written != entry.file_size:
        raise DataError(f"{shown} is damaged: {entry.filename} ends early")


def _read(packed: IO[bytes]) -> bytes:
    with _reading():
        return packed.read(_PIECE)
