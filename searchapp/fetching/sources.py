"""Where each task's official files come from and what they are known by: `data_sources.toml`, read."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from searchapp.errors import UsageError
from searchapp.files import unreadable
from searchapp.inputs import open_file, parse_toml, read_text
from searchapp.names import refused

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
    """One address. `size` in bytes is None when it isn't known beforehand; more than `at_most` is refused."""

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
        raise UsageError(f"no official data is known for {refused(task, known)}")
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
