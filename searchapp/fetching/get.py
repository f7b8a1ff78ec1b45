"""Fetches a task's official files: what is missing, all of it or nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from searchapp import __version__
from searchapp.digests import digest_file
from searchapp.errors import SearchappError, UsageError
from searchapp.fetching.archive import unpack, unpacked_bytes
from searchapp.fetching.download import Downloader
from searchapp.fetching.folder import RECEIPT, Found, check, read_receipt
from searchapp.fetching.sources import Archive, Download, OfficialFile, Source
from searchapp.fetching.staging import NAME, Staging, locked
from searchapp.files import reason, whole_file
from searchapp.progress import Progress


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
            f"{plan.folder} could not be written: {reason(error)}; what has arrived is kept in {NAME} there, and "
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
    with whole_file(plan.folder / RECEIPT) as file:
        file.write(json.dumps(receipt, indent=2, ensure_ascii=False).encode("utf-8") + b"\n")
