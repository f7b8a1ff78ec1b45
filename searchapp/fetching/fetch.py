"""Fetch the missing official files of a task, all or none.

Only the listed members of a ZIP file are unpacked, and harmful ones are rejected, because the list of digests
or a mirror could be wrong.
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
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from searchapp import __version__
from searchapp.config.settings import without_passwords
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.fetching.download import Downloader
from searchapp.fetching.sources import (
    RECEIPT,
    Archive,
    Download,
    Member,
    Source,
    SourceFile,
    check,
    read_receipt,
    size_words,
    source_facts,
)
from searchapp.files import atomic_file, digest_file, open_file, reason, sync_folder
from searchapp.lucene.dataclass import dataclass
from searchapp.progress import Advance, Notify, Progress, byte_count, no_notice, no_progress
from searchapp.text import counted

# Maximum number of entries of an archive.
MOST_ENTRIES = 100_000

# Maximum compression ratio of an entry: text shrinks to a tenth, rarely to a fiftieth.
HIGHEST_RATIO = 200

# Entries up to this size may have any ratio.
SMALL_BYTES = 1 << 20

_PIECE = 1 << 18
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Errors of the library for a damaged archive.
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
    """Unpack members into a folder, and return their paths there, in order.

    Args:
        archive: a ZIP file
        members: the entries to unpack
        folder: the destination
        at_most: maximum unpacked bytes
        shown: the archive's name in messages
        advance: receives numbers of unpacked bytes

    Raises:
        DataError: the archive is damaged, encrypted, unsafe or too large, or lacks a file.
    """
    shown = shown or str(archive)
    try:
        with _opened(archive) as opened:
            chosen = _chosen(opened, members, at_most, shown)
            for destination, entry in chosen.items():
                _write(opened, entry, folder / destination, shown, advance)
    except _DAMAGED as error:
        raise DataError(f"{shown} is damaged: {error}") from error
    return sorted(chosen)


def unpacked_bytes(archive: Path, members: Sequence[Member]) -> int | None:
    """Return the declared size of the members in bytes, or None if the archive is unreadable."""
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
    """Treat an OSError of reading as damage: the library seeks beyond the end of a damaged archive."""
    try:
        yield
    except OSError as error:
        raise zipfile.BadZipFile(reason(error)) from error


def _chosen(
    opened: zipfile.ZipFile, members: Sequence[Member], at_most: int, shown: str
) -> dict[str, zipfile.ZipInfo]:
    entries = opened.infolist()
    if len(entries) > MOST_ENTRIES:
        raise DataError(
            f"{shown} has {len(entries):,} entries, more than {MOST_ENTRIES:,}: it is not unpacked"
        )
    chosen: dict[str, zipfile.ZipInfo] = {}
    folded: set[str] = set()
    matched: set[Member] = set()
    for entry in entries:
        _check_path(entry, shown)
        if entry.is_dir():
            continue
        for member in members:
            destination = member.destination(entry.filename)
            if destination is None:
                continue
            # Some file systems ignore letter case, and one file would replace the other.
            if destination.casefold() in folded:
                raise DataError(f"{shown} contains {destination} twice: it is not unpacked")
            _check_content(entry, shown)
            chosen[destination] = entry
            folded.add(destination.casefold())
            matched.add(member)
            break
    missing = [member.pattern for member in members if member not in matched and not member.optional]
    if missing:
        raise DataError(f"{shown} does not contain {', '.join(missing)}: it is not the expected archive")
    total = sum(entry.file_size for entry in chosen.values())
    if total > at_most:
        raise DataError(f"{shown} would unpack to {total:,} bytes, more than {at_most:,}: it is not unpacked")
    return chosen


def _check_path(entry: zipfile.ZipInfo, shown: str) -> None:
    # The library changes separators in `filename` and cuts it at a NUL.
    name = entry.orig_filename
    outside = name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or name[1:2] == ":"
    if outside or any(ord(character) < 0x20 for character in name):
        raise DataError(f"{shown} has an entry {name!r} outside its folder: it is not unpacked")


def _check_content(entry: zipfile.ZipInfo, shown: str) -> None:
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
                raise DataError(f"{shown}: {entry.filename} is larger than declared: it is not unpacked")
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


class StagingFolder:
    """The folder `.fetching` in a task's folder, which survives a failure for the next attempt.

    `downloads` has complete and partial downloads, `files` the finished files under their final paths.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.folder = target / STAGING
        self.downloads = self.folder / "downloads"
        self.files = self.folder / "files"

    def remove(self) -> None:
        """Remove the folder, and last the lock."""
        shutil.rmtree(self.downloads, ignore_errors=True)
        shutil.rmtree(self.files, ignore_errors=True)
        with suppress(OSError):
            (self.folder / STAGING_LOCK).unlink(missing_ok=True)
            self.folder.rmdir()

    def keep_only(self, paths: Collection[str], downloads: Collection[str]) -> None:
        for path in self.ready():
            if path not in paths:
                (self.files / path).unlink()
        for file in self.downloads.iterdir():
            if file.stem not in downloads:
                file.unlink()

    def ready(self) -> list[str]:
        return sorted(
            file.relative_to(self.files).as_posix() for file in self.files.rglob("*") if file.is_file()
        )

    def kept_bytes(self) -> int:
        return sum(file.stat().st_size for file in self._contents())

    def is_empty(self) -> bool:
        return not any(self._contents())

    def _contents(self) -> Iterator[Path]:
        return (path for path in self.folder.rglob("*") if path.is_file() and path.name != STAGING_LOCK)

    def conflicts(self) -> list[str]:
        """Return the paths of finished files that differ from existing files of the task's folder."""
        return [
            path
            for path in self.ready()
            if (self.target / path).exists()
            and not filecmp.cmp(self.files / path, self.target / path, shallow=False)
        ]

    def put_in_place(self) -> None:
        """Move the finished files to the task's folder; a new folder as a whole, for concurrent readers."""
        for entry in sorted(self.files.iterdir()):
            if entry.is_dir() and (self.target / entry.name).is_dir():
                for path in self.ready():
                    if path.split("/")[0] == entry.name:
                        (self.target / path).parent.mkdir(parents=True, exist_ok=True)
                        (self.files / path).replace(self.target / path)
            else:
                entry.replace(self.target / entry.name)
        sync_folder(self.target)


@contextmanager
def staging(target: Path) -> Iterator[StagingFolder]:
    """Create and lock the staging folder of a task's folder.

    Raises:
        SearchappError: another process is fetching into the folder.
        UsageError: the folder is not writable.
    """
    folder = StagingFolder(target)
    created = [parent for parent in (target, *target.parents) if not parent.exists()]
    try:
        folder.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{target} can't be used: {reason(error)}: choose another folder") from error
    lock = _lock(folder)
    try:
        folder.downloads.mkdir(exist_ok=True)
        folder.files.mkdir(exist_ok=True)
        yield folder
    finally:
        if folder.is_empty():
            folder.remove()
            with suppress(OSError):  # a folder that is not empty stays, and so do its parents
                for parent in created:
                    parent.rmdir()
        lock.close()


def _lock(staging: StagingFolder) -> IO[bytes]:
    """Return a locked file, which the system unlocks when the process ends."""
    path = staging.folder / STAGING_LOCK
    while True:
        staging.folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = path.open("a+b")
        except FileNotFoundError:
            continue  # another process has just removed the folder
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            with lock:
                lock.seek(0)
                holder = lock.read(20).decode("ascii", "replace").strip() or "unknown"
            raise SearchappError(
                f"process {holder} is fetching into {staging.target} at this moment: wait until it is done"
            ) from error
        with suppress(FileNotFoundError):
            # The lock of a removed file excludes no other process.
            if os.path.samestat(path.stat(), os.fstat(lock.fileno())):
                lock.truncate(0)
                lock.write(str(os.getpid()).encode("ascii"))
                lock.flush()
                return lock
        lock.close()


@dataclass(frozen=True, slots=True)
class Plan:
    """The files to fetch into a folder."""

    source: Source
    folder: Path
    files: tuple[SourceFile, ...]
    archives: tuple[Archive, ...]
    # Paths of intact files.
    present: tuple[str, ...]

    @property
    def downloads(self) -> list[Download]:
        return [file.download for file in self.files] + [archive.download for archive in self.archives]

    def rows(self, sizes: Mapping[Download, int]) -> list[tuple[str, int | None]]:
        """Return the name and the size in bytes, if known, of each file or archive to download."""
        names = [file.path for file in self.files] + [_archive_name(archive) for archive in self.archives]
        return [(name, sizes.get(file)) for name, file in zip(names, self.downloads, strict=True)]


def _archive_name(archive: Archive) -> str:
    return archive.download.url.rpartition("/")[2]


def plan_facts(
    plan: Plan, downloader: Downloader, sizes: Mapping[Download, int]
) -> Sequence[tuple[str, str]]:
    """Return what the user accepts before files are fetched: sizes, folder, addresses, terms."""
    facts = [("fetch", size_words([size for _name, size in plan.rows(sizes)]))]
    if plan.present:
        facts.append(("present", f"{counted(len(plan.present), 'file')}, byte for byte"))
    if received := kept_bytes(plan.folder):
        facts.append(("kept", f"{byte_count(received)} from an earlier attempt"))
    facts.append(("into", str(plan.folder)))
    addresses = [without_passwords(downloader.address(download)) for download in plan.downloads]
    return [*facts, *source_facts(plan.source, addresses)]


def make_plan(source: Source, folder: Path, *, overwrite: bool = False) -> Plan:
    """Compare a folder with the official files.

    Raises:
        UsageError: other files are in the place of official ones, and `overwrite` is false.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder")
    statuses = check(source, folder)
    if not overwrite:
        _require_no_conflicts(folder, [status.path for status in statuses if status.state == "changed"])
    intact = {status.path for status in statuses if status.state == "intact"}
    missing = {status.url for status in statuses if status.state != "intact"}
    urls = {status.url for status in statuses}
    return Plan(
        source,
        folder,
        tuple(file for file in source.files if file.path not in intact),
        tuple(
            archive
            for archive in source.archives
            if archive.download.url in missing or archive.download.url not in urls
        ),
        tuple(status.path for status in statuses if status.state == "intact"),
    )


def fetch(
    plan: Plan,
    downloader: Downloader,
    sizes: Mapping[Download, int],
    progress: Progress,
    begin: Notify = no_notice,
    *,
    overwrite: bool = False,
) -> dict[str, dict[str, Any]]:
    """Download, check, unpack and install the files of a plan, and return their entries in the receipt.

    Args:
        plan: the files
        downloader: the HTTP client
        sizes: known sizes of downloads in bytes
        progress: receives the stages
        begin: receives the name of each file before its download
        overwrite: replace other files in the place of official ones

    Raises:
        SearchappError: a server is unreachable, the disk is full, or another process fetches into the folder.
        DataError: a downloaded file is not the expected one.
        UsageError: other files are in the place of official ones.
    """
    try:
        with staging(plan.folder) as folder:
            # Another process may have fetched files meanwhile.
            plan = make_plan(plan.source, plan.folder, overwrite=overwrite)
            return _fetch(plan, folder, downloader, sizes, progress, begin, overwrite=overwrite)
    except OSError as error:
        raise SearchappError(
            f"{plan.folder} could not be written: {reason(error)}; received files are kept in its folder "
            f"{STAGING}: run the same command again to resume"
        ) from error


def kept_bytes(folder: Path) -> int:
    """Return the size of the files of an earlier attempt."""
    return StagingFolder(folder).kept_bytes()


def _fetch(
    plan: Plan,
    staging: StagingFolder,
    downloader: Downloader,
    sizes: Mapping[Download, int],
    progress: Progress,
    begin: Notify,
    *,
    overwrite: bool,
) -> dict[str, dict[str, Any]]:
    staging.keep_only([file.path for file in plan.files], [download.name for download in plan.downloads])
    required = sum(sizes.get(download, 0) for download in plan.downloads) - staging.kept_bytes()
    free = shutil.disk_usage(plan.folder).free
    if required > free:
        raise SearchappError(
            f"{plan.folder} has {free:,} bytes free, but {required:,} are needed: free some space, or choose another "
            "folder"
        )
    is_total = all(download in sizes for download in plan.downloads)
    total = sum(sizes[download] for download in plan.downloads) if is_total else None
    with progress.stage("fetching", total, in_bytes=True) as advance:

        def arrive(download: Download, path: Path) -> None:
            if path.exists() and download.digest.matches(path):
                advance(path.stat().st_size)
            else:
                downloader.fetch(download, staging.downloads / download.name, advance)

        for file in plan.files:
            begin(file.path)
            ready = staging.files / file.path
            arrive(file.download, ready)
            arrived = staging.downloads / file.download.name
            if arrived.exists():
                ready.parent.mkdir(parents=True, exist_ok=True)
                arrived.replace(ready)
        for archive in plan.archives:
            begin(_archive_name(archive))
            arrive(archive.download, staging.downloads / archive.download.name)
    entries: dict[str, dict[str, Any]] = {file.path: {"from": file.download.url} for file in plan.files}
    for archive in plan.archives:
        url, path = archive.download.url, staging.downloads / archive.download.name
        with progress.stage("unpacking", unpacked_bytes(path, archive.members), in_bytes=True) as advance:
            at_most = archive.unpacked_at_most
            names = unpack(path, archive.members, staging.files, at_most=at_most, shown=url, advance=advance)
        entries |= {name: {"from": url, "archive": str(archive.download.digest)} for name in names}
    if not overwrite:
        _require_no_conflicts(plan.folder, staging.conflicts())
    for name, entry in entries.items():
        ready = staging.files / name
        entry |= {"size": ready.stat().st_size, "sha256": digest_file(ready)}
    staging.put_in_place()
    _write_receipt(plan, entries)
    staging.remove()
    return entries


def _require_no_conflicts(folder: Path, paths: list[str]) -> None:
    if paths:
        shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        raise UsageError(
            f"{folder} contains other files with the names of official ones ({shown}): move them, choose another "
            "folder, or replace them with --overwrite"
        )


def _write_receipt(plan: Plan, files: Mapping[str, Mapping[str, Any]]) -> None:
    present = {path: entry for path, entry in read_receipt(plan.folder).items() if path in plan.present}
    receipt = {
        "task": plan.source.task,
        "page": plan.source.page,
        "terms": plan.source.terms,
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
        "searchapp": __version__,
        "files": dict(sorted({**present, **files}.items())),
    }
    with atomic_file(plan.folder / RECEIPT) as file:
        file.write(json.dumps(receipt, indent=2, ensure_ascii=False).encode("utf-8") + b"\n")
