"""What is there of a task's official files, and whether it is what was fetched."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from searchapp.digests import digest_file
from searchapp.errors import DataError
from searchapp.fetching.sources import Archive, OfficialFile, Source
from searchapp.inputs import parse_json, read_text

RECEIPT = "fetched.json"
"""In a task's folder: what was fetched, from where and when, under which terms, with the digest of every file."""

State = Literal["missing", "there", "intact", "changed", "unknown"]


@dataclass(frozen=True, slots=True)
class Found:
    """One official file and what lies in its place.

    `path` has slashes, and is a pattern (`tables/*.tsv`) where the names are those of an archive that has not been
    fetched. `expected` and `size` are in bytes, None where not known or not there. `state`: "missing"; "there", of
    the expected size as far as that is known; "intact", byte for byte; "changed", something else; "unknown", there
    but never fetched by searchapp, so that there is nothing to compare it with.
    """

    path: str
    url: str
    expected: int | None
    size: int | None
    state: State


@dataclass(frozen=True, slots=True)
class Receipt:
    """The file `fetched.json`: for each path `from` (address), `size` in bytes and `sha256`."""

    files: Mapping[str, Mapping[str, Any]]

    def of_archive(self, archive: Archive) -> dict[str, Mapping[str, Any]]:
        """The files that were unpacked from this very archive."""
        digest = str(archive.download.digest)
        return {path: entry for path, entry in self.files.items() if entry.get("archive") == digest}


def read_receipt(folder: Path) -> Receipt:
    """The receipt of a folder; one without files when there is none.

    Raises:
        DataError: it is damaged.
    """
    path = folder / RECEIPT
    try:
        files = parse_json(read_text(path))["files"]
        if all(
            isinstance(entry["sha256"], str) and isinstance(entry["size"], int) for entry in files.values()
        ):
            return Receipt(files)
    except (FileNotFoundError, NotADirectoryError):
        return Receipt({})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    raise DataError(f"{path} is not a record of what was fetched: remove it and fetch again")


def look(source: Source, folder: Path) -> list[Found]:
    """What is there, by name and size: quick."""
    return list(_survey(source, folder, read_receipt(folder), thorough=False))


def check(source: Source, folder: Path) -> list[Found]:
    """What is there, by its digests: every byte is read."""
    return list(_survey(source, folder, read_receipt(folder), thorough=True))


def has_data(folder: Path) -> bool:
    """Whether there is anything in a folder but what is hidden, such as a download that is not complete."""
    return folder.is_dir() and any(not entry.name.startswith(".") for entry in folder.iterdir())


def strangers(folder: Path, found: Sequence[Found]) -> list[str]:
    """Files that lie among the official ones without being one: a task that reads a whole folder reads them, too."""
    places = {one.path.rpartition("/")[0] for one in found if "/" in one.path}
    known = [one.path for one in found]
    return sorted(
        path
        for place in places
        if (folder / place).is_dir()
        for file in (folder / place).iterdir()
        if not file.name.startswith(".")
        for path in [f"{place}/{file.name}"]
        if not any(fnmatch.fnmatchcase(path, one) for one in known)
    )


def _survey(source: Source, folder: Path, receipt: Receipt, *, thorough: bool) -> Iterator[Found]:
    for file in source.files:
        yield _official(file, folder, thorough=thorough)
    for archive in source.archives:
        unpacked = receipt.of_archive(archive)
        if unpacked:
            yield from _unpacked(archive, unpacked, folder, thorough=thorough)
        else:
            yield from _never_unpacked(archive, folder, thorough=thorough)


def _official(file: OfficialFile, folder: Path, *, thorough: bool) -> Found:
    path = folder / file.path
    expected = file.download.size
    size = _size(path)
    state: State = "missing"
    if size is not None:
        same = expected is None or size == expected
        state = "changed" if not same else "there"
        if same and thorough:
            state = "intact" if file.download.digest.matches(path) else "changed"
    return Found(file.path, file.download.url, expected, size, state)


def _unpacked(
    archive: Archive, entries: Mapping[str, Mapping[str, Any]], folder: Path, *, thorough: bool
) -> Iterator[Found]:
    for name, entry in sorted(entries.items()):
        size = _size(folder / name)
        state: State = "missing"
        if size is not None:
            state = "there" if size == entry["size"] else "changed"
            if state == "there" and thorough:
                state = "intact" if digest_file(folder / name) == entry["sha256"] else "changed"
        yield Found(name, archive.download.url, entry["size"], size, state)


def _never_unpacked(archive: Archive, folder: Path, *, thorough: bool) -> Iterator[Found]:
    for member in archive.members:
        if member.optional:
            continue
        pattern = member.folder + member.pattern.rpartition("/")[2]
        sizes = [size for path in folder.glob(pattern) if (size := _size(path)) is not None]
        state: State = "missing"
        if sizes:
            state = "unknown" if thorough else "there"
        yield Found(pattern, archive.download.url, None, sum(sizes) if sizes else None, state)


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None
