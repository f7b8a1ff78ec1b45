"""Fetch a task's official files: what is missing, all of it or nothing.

Files lie in a hidden folder inside the task's, with a lock, until all of them are there.

Of a ZIP file only the wanted entries are unpacked, and one that could do harm is rejected. The archives are known by
their digests, so none of this should ever happen; it is what stands between a mistake in that knowledge, or a mirror's,
and the person's files.
"""

from __future__ import annotations

import fcntl
import filecmp
import json
import lzma
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from searchapp import __version__
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.fetching.download import Downloader
from searchapp.fetching.sources import (
    RECEIPT,
    Archive,
    Download,
    Found,
    Member,
    OfficialFile,
    Source,
    check,
    read_receipt,
)
from searchapp.files import atomic_file, digest_file, open_file, reason, sync_folder
from searchapp.progress import Advance, Progress, no_progress

MOST_ENTRIES = 100_000
"""An archive with more entries than this is rejected."""

HIGHEST_RATIO = 200
"""An entry that grows by more than this factor is rejected as a bomb; text shrinks to a tenth, rarely a fiftieth."""

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


STAGING = ".fetching"
STAGING_LOCK = "lock"


class Staging:
    """The folder `.fetching` in a task's folder: `downloads` with what has arrived or is arriving, `files` with what
    is ready, under the paths that it will have. It outlives a failure, so that the next attempt resumes from it.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.folder = target / STAGING
        self.downloads = self.folder / "downloads"
        self.files = self.folder / "files"

    def remove(self) -> None:
        """Remove it, when all that was in it is in place; the lock last, for others come in after it."""
        shutil.rmtree(self.downloads, ignore_errors=True)
        shutil.rmtree(self.files, ignore_errors=True)
        with suppress(OSError):
            (self.folder / STAGING_LOCK).unlink(missing_ok=True)
            self.folder.rmdir()

    def keep_only(self, paths: Collection[str], downloads: Collection[str]) -> None:
        """Remove what is not wanted: half an archive, files of an earlier list of sources."""
        for path in self.ready():
            if path not in paths:
                (self.files / path).unlink()
        for file in self.downloads.iterdir():
            if file.stem not in downloads:
                file.unlink()

    def ready(self) -> list[str]:
        """The paths of the files that are ready, with slashes."""
        return sorted(
            file.relative_to(self.files).as_posix() for file in self.files.rglob("*") if file.is_file()
        )

    def kept_bytes(self) -> int:
        """How much of what was to be fetched is here already."""
        return sum(
            file.stat().st_size
            for file in self.folder.rglob("*")
            if file.is_file() and file.name != STAGING_LOCK
        )

    def conflicts(self) -> list[str]:
        """The paths of ready files in whose place other files lie."""
        return [
            path
            for path in self.ready()
            if (self.target / path).exists()
            and not filecmp.cmp(self.files / path, self.target / path, shallow=False)
        ]

    def put_in_place(self) -> None:
        """Move everything that is ready to where it belongs, and remove this folder.

        A folder that is not there yet appears with all its files at once: a reader never sees only a part.
        """
        for entry in sorted(self.files.iterdir()):
            if entry.is_dir() and (self.target / entry.name).is_dir():
                for path in self.ready():
                    if path.split("/")[0] == entry.name:
                        place = self.target / path
                        place.parent.mkdir(parents=True, exist_ok=True)
                        (self.files / path).replace(place)
            else:
                entry.replace(self.target / entry.name)
        sync_folder(self.target)


@contextmanager
def locked(target: Path) -> Iterator[Staging]:
    """The staging folder of a task's folder, for one process at a time; the folders are made if need be.

    Raises:
        SearchappError: another process is fetching into this folder.
        UsageError: the folder can't be made or written to.
    """
    staging = Staging(target)
    made = [folder for folder in (target, *target.parents) if not folder.exists()]
    try:
        staging.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{target} can't be used: {reason(error)}: choose another folder") from error
    descriptor = _lock(staging)
    try:
        staging.downloads.mkdir(exist_ok=True)
        staging.files.mkdir(exist_ok=True)
        yield staging
    finally:
        if not any(file.is_file() and file.name != STAGING_LOCK for file in staging.folder.rglob("*")):
            staging.remove()
            with suppress(OSError):  # one that holds something stays, and so do those above it
                for folder in made:
                    folder.rmdir()
        os.close(descriptor)


def _lock(staging: Staging) -> int:
    """An open file that holds the lock; the system gives it back however the process ends."""
    path = staging.folder / STAGING_LOCK
    while True:
        staging.folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            continue  # who was here before has just removed the folder
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise SearchappError(
                f"process {holder} is fetching into {staging.target} at this moment: wait until it is done"
            ) from error
        # The lock of a file that was removed since keeps nobody else out.
        try:
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, str(os.getpid()).encode("ascii"), 0)
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be fetched into a folder, and the paths of what is there already, byte for byte."""

    source: Source
    folder: Path
    files: tuple[OfficialFile, ...]
    archives: tuple[Archive, ...]
    present: tuple[str, ...]

    @property
    def downloads(self) -> list[Download]:
        return [file.download for file in self.files] + [archive.download for archive in self.archives]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was fetched: for each path its address (`from`), `size` in bytes and `sha256`."""

    files: Mapping[str, Mapping[str, Any]]


def make_plan(source: Source, folder: Path, *, overwrite: bool = False) -> Plan:
    """Compare what is there with what should be.

    Raises:
        UsageError: other files lie in the place of official ones, and may not be overwritten.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder")
    found = check(source, folder)
    if not overwrite:
        _refuse_conflicts(folder, [one.path for one in found if one.state == "changed"])
    by_path = {one.path: one for one in found}
    return Plan(
        source,
        folder,
        tuple(file for file in source.files if by_path[file.path].state != "intact"),
        tuple(archive for archive in source.archives if not _is_complete(archive, found)),
        tuple(one.path for one in found if one.state == "intact"),
    )


def fetch(
    plan: Plan,
    downloader: Downloader,
    sizes: Mapping[Download, int],
    progress: Progress,
    *,
    overwrite: bool = False,
) -> Fetched:
    """Download, check, unpack and put in place everything that a plan asks for.

    `sizes` are those of the downloads in bytes, as far as they are known. What has arrived when this ends early is
    kept in the hidden folder `.fetching`, from which the next call goes on.

    Raises:
        SearchappError: a server can't be reached, the disk is full, or another process fetches into this folder.
        DataError: something arrived that is not what was meant.
        UsageError: other files lie in the place of official ones, and may not be overwritten.
    """
    try:
        with locked(plan.folder) as staging:
            plan = make_plan(
                plan.source, plan.folder, overwrite=overwrite
            )  # another process may have been here
            return _fetch(plan, staging, downloader, sizes, progress, overwrite=overwrite)
    except OSError as error:
        raise SearchappError(
            f"{plan.folder} could not be written: {reason(error)}; what has arrived is kept in {STAGING} there, and "
            "the same command resumes"
        ) from error


def kept_bytes(folder: Path) -> int:
    """How much of an earlier attempt at this folder is kept, in bytes."""
    return Staging(folder).kept_bytes()


def _fetch(
    plan: Plan,
    staging: Staging,
    downloader: Downloader,
    sizes: Mapping[Download, int],
    progress: Progress,
    *,
    overwrite: bool,
) -> Fetched:
    staging.keep_only([file.path for file in plan.files], [one.name for one in plan.downloads])
    _require_space(plan, staging, sizes)
    total = sum(sizes[one] for one in plan.downloads) if all(one in sizes for one in plan.downloads) else None
    with progress.stage("fetching", total, in_bytes=True) as advance:
        for file in plan.files:
            ready = staging.files / file.path
            if ready.exists() and file.download.digest.matches(ready):
                advance(ready.stat().st_size)
                continue
            arrived = staging.downloads / file.download.name
            downloader.fetch(file.download, arrived, advance)
            ready.parent.mkdir(parents=True, exist_ok=True)
            arrived.replace(ready)
        for archive in plan.archives:
            arrived = staging.downloads / archive.download.name
            if arrived.exists() and archive.download.digest.matches(arrived):
                advance(arrived.stat().st_size)
            else:
                downloader.fetch(archive.download, arrived, advance)
    entries = {file.path: {"from": file.download.url} for file in plan.files}
    for archive in plan.archives:
        for path in _unpack(archive, staging, progress):
            entries[path] = {"from": archive.download.url, "archive": str(archive.download.digest)}
    if not overwrite:
        _refuse_conflicts(plan.folder, staging.conflicts())
    files = {
        path: {
            **entry,
            "size": (staging.files / path).stat().st_size,
            "sha256": digest_file(staging.files / path),
        }
        for path, entry in entries.items()
    }
    staging.put_in_place()
    _write_receipt(plan, files)
    staging.remove()
    return Fetched(files)


def _unpack(archive: Archive, staging: Staging, progress: Progress) -> list[str]:
    path = staging.downloads / archive.download.name
    total = unpacked_bytes(path, archive.members)
    with progress.stage("unpacking", total, in_bytes=True) as advance:
        return unpack(
            path,
            archive.members,
            staging.files,
            at_most=archive.unpacked_at_most,
            shown=archive.download.url,
            advance=advance,
        )


def _require_space(plan: Plan, staging: Staging, sizes: Mapping[Download, int]) -> None:
    needed = sum(sizes.get(one, 0) for one in plan.downloads) - staging.kept_bytes()
    free = shutil.disk_usage(plan.folder).free
    if needed > free:
        raise SearchappError(
            f"{plan.folder} has room for {free:,} bytes, and {needed:,} are needed: make room, or choose another "
            "folder"
        )


def _refuse_conflicts(folder: Path, paths: list[str]) -> None:
    if paths:
        shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        raise UsageError(
            f"{folder} holds other files in the place of official ones ({shown}): move them away, choose another "
            "folder, or replace them with --overwrite"
        )


def _is_complete(archive: Archive, found: list[Found]) -> bool:
    of_archive = [one for one in found if one.url == archive.download.url]
    return bool(of_archive) and all(one.state == "intact" for one in of_archive)


def _write_receipt(plan: Plan, files: Mapping[str, Mapping[str, Any]]) -> None:
    kept = {path: entry for path, entry in read_receipt(plan.folder).files.items() if path in plan.present}
    receipt = {
        "task": plan.source.task,
        "page": plan.source.page,
        "terms": plan.source.terms,
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
        "searchapp": __version__,
        "files": dict(sorted({**kept, **files}.items())),
    }
    with atomic_file(plan.folder / RECEIPT) as file:
        file.write(json.dumps(receipt, indent=2, ensure_ascii=False).encode("utf-8") + b"\n")
