"""Sources of each task's official files (`data_sources.toml`), and which of the files are in a folder, unaltered."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from searchapp.errors import DataError, UsageError
from searchapp.files import digest_file, open_file, parse_json, parse_toml, read_text, unreadable
from searchapp.text import choices_hint

_FILE = Path(__file__).parents[1] / "data_sources.toml"


@dataclass(frozen=True, slots=True)
class Digest:
    """What a file's bytes are known by: their SHA-256, or git's id of a file with these bytes."""

    kind: Literal["sha256", "git-blob"]
    value: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"

    def matches(self, path: Path) -> bool:
        """Whether a file is exactly the one that is meant.

        Raises:
            DataError: the file can't be read.
        """
        try:
            with open_file(path) as file:
                if self.kind == "sha256":
                    return hashlib.file_digest(file, "sha256").hexdigest() == self.value
                # git hashes a header before the bytes: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
                seen = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
                while piece := file.read(1 << 20):
                    seen.update(piece)
                return seen.hexdigest() == self.value
        except OSError as error:
            raise unreadable(path, error) from error


@dataclass(frozen=True, slots=True)
class Download:
    """One address. `size` in bytes is None when it isn't known beforehand; more than `at_most` is rejected."""

    url: str
    digest: Digest
    size: int | None
    at_most: int

    @property
    def name(self) -> str:
        """A file name for it that no other download has."""
        return self.digest.value


@dataclass(frozen=True, slots=True)
class OfficialFile:
    """A file that is downloaded as it is; `path` is its place in the task's folder, with slashes."""

    path: str
    download: Download


@dataclass(frozen=True, slots=True)
class Member:
    """Which entries of an archive are wanted, as a path or pattern, and where in the task's folder they go.

    A `folder` that is not empty ends in a slash.
    """

    pattern: str
    folder: str
    optional: bool = False

    def destination(self, entry: str) -> str | None:
        """Where an entry of the archive goes; None when it is not meant."""
        wanted, parts = self.pattern.split("/"), entry.split("/")
        if len(wanted) != len(parts):
            return None
        if not all(fnmatch.fnmatchcase(part, one) for part, one in zip(parts, wanted, strict=True)):
            return None
        return self.folder + parts[-1]


@dataclass(frozen=True, slots=True)
class Archive:
    """A ZIP file of whose entries some are unpacked, at most `unpacked_at_most` bytes together."""

    download: Download
    members: tuple[Member, ...]
    unpacked_at_most: int


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that is fetched for one task. `page` is its home on the web, `terms` what its use is bound to."""

    task: str
    page: str
    terms: str
    files: tuple[OfficialFile, ...]
    archives: tuple[Archive, ...]

    def downloads(self) -> list[Download]:
        """Every address that something is fetched from."""
        return [file.download for file in self.files] + [archive.download for archive in self.archives]


def names() -> list[str]:
    """The tasks whose data can be fetched."""
    return list(_read())


def load(task: str) -> Source:
    """Where the data of a task comes from.

    Raises:
        UsageError: no official data of such a task is known.
    """
    known = _read()
    if task not in known:
        raise UsageError(f"no official data is known for {choices_hint(task, known)}")
    return parse(task, known[task])


def parse(task: str, table: Mapping[str, Any]) -> Source:
    """A source from its table in the TOML file."""
    return Source(
        task,
        table["page"],
        table["terms"].strip(),
        tuple(
            OfficialFile(file["path"], _download(group["base"] + file.get("from", file["path"]), file))
            for group in table.get("groups", ())
            for file in group["files"]
        ),
        tuple(
            Archive(
                _download(archive["url"], archive),
                tuple(
                    Member(archive["top"] + one["from"], one["to"], one.get("optional", False))
                    for one in archive["members"]
                ),
                archive["unpacked_at_most"],
            )
            for archive in table.get("archives", ())
        ),
    )


@cache
def _read() -> Mapping[str, Mapping[str, Any]]:
    return parse_toml(read_text(_FILE))


def _download(url: str, table: Mapping[str, Any]) -> Download:
    digest = Digest("sha256", table["sha256"]) if "sha256" in table else Digest("git-blob", table["git_blob"])
    size = table.get("size")
    return Download(url, digest, size, size if size is not None else table["at_most"])


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
