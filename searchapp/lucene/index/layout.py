"""The layout of a version: its files, the manifest with their digests, damage, verification.

<home>/indexes/<prefix>-<name>/
    lock            held by the process that builds; contains its id
    current         the number of the live version, replaced in one step
    000007/         a version: one segment
        manifest.json, documents.sqlite, digests.npy, ids.*.npy, field<n>.*.npy, checksums.npy
        verified        the stamp: all of these were verified
    000008/         a version that keeps the segment of 000007, and adds one of its own
        the same files, for the documents that 000007 does not have
        dead-000007.npy, dead-000007.field<n>.*.npy     deleted documents of that segment, and their terms

An index is a list of segments, which are never written to again. The manifest is the commit point: it names the
segments that are kept of earlier versions, with the documents that were deleted since.

The manifest is covered by its own `digest`, every file by its SHA-256 in the manifest, each block of the other
arrays by `checksums.npy`, each row of the documents by a checksum in the row, `current` by a checksum of its own.
So no answer depends on an altered file, and no file is read whole for it.

The stamp holds one digest: of the manifest, and of each file's size, times and inode. Changing, copying or
replacing a file changes it, and the version is verified again. A wrong stamp costs only that time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from searchapp.errors import Damaged, DataError, EngineRefused, SearchappError
from searchapp.files import digest_json, reason
from searchapp.lucene.index.mapping import Schema
from searchapp.model import IndexInfo
from searchapp.progress import Advance, no_progress

FORMAT = 6
"""Raised when files of the same name mean something else."""

MANIFEST = "manifest.json"
MANIFEST_LINES = 2
"""How deep what stands in a manifest has lines of its own: each file has one."""

CHECKSUMS = "checksums.npy"
BLOCK = 1 << 16
"""Bytes that have a checksum together."""


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """What is known of a field without opening it: its files' prefix and what BM25 needs."""

    prefix: str
    documents: int
    tokens: int

    def described(self) -> dict[str, Any]:
        """As `asdict`, which takes several times as long."""
        return {"prefix": self.prefix, "documents": self.documents, "tokens": self.tokens}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file's size in bytes, its SHA-256, and of an array the type and number of what it holds at its end."""

    size: int
    digest: str
    dtype: str = ""
    length: int = 0

    @property
    def offset(self) -> int:
        """Where the numbers begin, behind the header."""
        return self.size - self.length * np.dtype(self.dtype).itemsize

    @property
    def blocks(self) -> int:
        """How many blocks the file has."""
        return -(-self.size // BLOCK)

    def described(self) -> dict[str, Any]:
        """As `asdict`, which goes through each of a hundred files again for every opening of an index."""
        return {"size": self.size, "digest": self.digest, "dtype": self.dtype, "length": self.length}


@dataclass(frozen=True, slots=True)
class Deletions:
    """The deleted documents of a segment: their number, and what they have of each field.

    The numbers of the documents, ascending, are in the file of the name `prefix`. The files of a field, which its
    summary gives the prefix of, are the ranks of the terms of deleted documents, and their document frequencies there.
    """

    prefix: str = ""
    documents: int = 0
    fields: Mapping[str, FieldSummary] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptSegment:
    """A segment of an earlier version: the digest of its manifest, and what was deleted of it since."""

    manifest: str
    deletions: Deletions


class Segment(NamedTuple):
    """A segment of an index: the version that it was written with, and what was deleted of it since."""

    folder: Path
    manifest: Manifest
    deletions: Deletions

    @property
    def live(self) -> int:
        """How many of its documents were not deleted."""
        return self.manifest.documents - self.deletions.documents


@dataclass(frozen=True)
class Manifest:
    """What a version was made from and consists of.

    `info` describes the whole index; `documents`, `fields` and `files` its own segment. `kept` has the segments of
    earlier versions by their names. `analysis` is the identity of the analysis that made it.
    """

    info: IndexInfo
    mapping: Mapping[str, Any]
    documents: int
    fields: Mapping[str, FieldSummary]
    files: Mapping[str, StoredFile]
    analysis: str
    kept: Mapping[str, KeptSegment]
    format: int = FORMAT

    @cached_property
    def schema(self) -> Schema:
        """What its mapping says.

        Raises:
            EngineRefused: as `Schema.of`.
        """
        return Schema.of(self.mapping)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of everything in the manifest."""
        return digest_json(self._described())

    def with_checksums(self) -> Iterator[tuple[str, StoredFile]]:
        """The files whose blocks have a checksum, in the order of these."""
        return ((name, file) for name, file in sorted(self.files.items()) if file.dtype and name != CHECKSUMS)

    def write(self, folder: Path) -> None:
        text = _written({**self._described(), "digest": self.digest}, MANIFEST_LINES)
        # The name of a task's file may hold bytes that are not UTF-8: halves of characters, written as JSON's escapes.
        (folder / MANIFEST).write_text(text, encoding="utf-8", errors="backslashreplace")

    def _described(self) -> dict[str, Any]:
        return {
            "searchapp": "embedded index",
            "info": asdict(self.info),
            "mapping": self.mapping,
            "documents": self.documents,
            "kept": {name: asdict(segment) for name, segment in self.kept.items()},
            "fields": {name: summary.described() for name, summary in self.fields.items()},
            "files": {name: file.described() for name, file in self.files.items()},
            "format": self.format,
            "analysis": self.analysis,
        }

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a version and check that all files are there in their sizes.

        Raises:
            EngineRefused: it is not an index of searchapp's, or one of a newer searchapp.
            DataError: a file is missing or altered.
            SearchappError: a file can't be read.
        """
        described = _read(folder)
        try:
            manifest = cls(
                info=IndexInfo(**described["info"]),
                mapping=described["mapping"],
                documents=described["documents"],
                fields=_summaries(described["fields"]),
                files={name: StoredFile(**file) for name, file in described["files"].items()},
                analysis=described["analysis"],
                kept={name: _kept(segment) for name, segment in described["kept"].items()},
                format=described["format"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(folder, f"{MANIFEST} lacks what it should say") from error
        manifest.check_sizes(folder)
        return manifest

    def segments(self, folder: Path) -> list[Segment]:
        """The segments of the index, of which this version in a folder is the commit point: its own is the last.

        Raises:
            DataError: one is missing or altered.
            SearchappError: one can't be read.
        """
        found = []
        for name, kept in self.kept.items():
            earlier = folder.with_name(name)
            if not earlier.is_dir():
                raise damaged(folder, f"{name}, on which it builds, is missing")
            manifest = Manifest.read(earlier)
            if manifest.digest != kept.manifest:
                raise damaged(folder, f"{name} is not the one that it was made with")
            found.append(Segment(earlier, manifest, kept.deletions))
        return [*found, Segment(folder, self, Deletions())]

    def check_sizes(self, folder: Path) -> None:
        """A cheap look at every file, enough to notice what is missing or cut short."""
        for name, status in self.looked_at(folder):
            file, found = self.files[name], status.st_size
            if found != file.size:
                raise damaged(folder, f"{name} has {found} bytes instead of {file.size}")

    def looked_at(self, folder: Path) -> Iterator[tuple[str, os.stat_result]]:
        """The names of all files, and what the system knows of each.

        Raises:
            DataError: a file is missing.
            SearchappError: the system says nothing of it.
        """
        beginning = f"{folder}{os.sep}"
        for name in self.files:
            try:
                status = os.stat(beginning + name)
            except OSError as error:
                raise _unread(folder, name, error) from error
            yield name, status

    def verify(self, folder: Path, advance: Advance = no_progress) -> None:
        """Read every file and compare its digest; `advance` is called with the bytes read.

        Raises:
            DataError: a file is missing or altered.
            SearchappError: a file can't be read.
        """
        self.check_sizes(folder)
        for name, file in self.files.items():
            self.verify_file(folder, name)
            advance(file.size)

    def verify_file(self, folder: Path, name: str) -> None:
        """Read one file and compare its digest.

        Raises:
            DataError: the file is missing or altered.
            SearchappError: it can't be read.
        """
        with reading(folder, name), (folder / name).open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if found != self.files[name].digest:
            raise damaged(folder, f"{name} was altered")

    @property
    def bytes(self) -> int:
        """How much there is to read, in bytes."""
        return sum(file.size for file in self.files.values())


def _written(value: Any, depth: int) -> str:
    """A JSON value that has a line for each entry down to a depth.

    Python's encoder in C makes no lines, and that in Python takes ten times as long.
    """
    if not depth or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    before = "\n" + " " * (MANIFEST_LINES - depth + 1)
    entries = (
        f"{before}{json.dumps(key, ensure_ascii=False)}: {_written(one, depth - 1)}"
        for key, one in value.items()
    )
    return f"{{{','.join(entries)}\n{' ' * (MANIFEST_LINES - depth)}}}"


def _summaries(described: Mapping[str, Any]) -> dict[str, FieldSummary]:
    return {name: FieldSummary(**summary) for name, summary in described.items()}


def _kept(described: Mapping[str, Any]) -> KeptSegment:
    deletions = described["deletions"]
    fields = _summaries(deletions["fields"])
    return KeptSegment(described["manifest"], Deletions(**{**deletions, "fields": fields}))


def outdated(folder: Path) -> DataError:
    """Return the error for a version that an earlier searchapp wrote in a layout of its own."""
    return DataError(
        f"the index in {folder} was written by an earlier searchapp: index again with `searchapp index`"
    )


def _read(folder: Path) -> dict[str, Any]:
    """Read what the manifest of a version says, without its digest, which it has proved to be."""
    try:
        with reading(folder, MANIFEST):
            text = (folder / MANIFEST).read_text(encoding="utf-8")
        described = json.loads(text)
        if not isinstance(described, dict):
            raise ValueError("a JSON object was expected")
        digest = described.pop("digest", None)
        sound = digest == digest_json(described)
    except (ValueError, RecursionError) as error:
        raise damaged(folder, f"{MANIFEST} is no manifest") from error
    if described.get("format") == FORMAT and not sound:
        raise damaged(folder, f"{MANIFEST} was altered")
    if described.get("searchapp") != "embedded index":
        raise EngineRefused(f"{folder} holds an index that searchapp did not make: choose another --home")
    format_ = described.get("format")
    if format_ == FORMAT:
        return described
    if isinstance(format_, int) and format_ < FORMAT:
        raise outdated(folder)
    raise EngineRefused(
        f"{folder} has the format {format_}, this searchapp reads {FORMAT}: "
        "use the searchapp that wrote it, or delete the folder and index again"
    )


def damaged(folder: Path, problem: str) -> Damaged:
    """The error for a version whose files are not what they were."""
    return Damaged(folder, problem)


@contextmanager
def reading(folder: Path, name: str) -> Iterator[None]:
    """Tell a file that is missing, which is damage, from one that the system does not let us read at the moment.

    Raises:
        DataError: the file is missing.
        SearchappError: it can't be read: too many files are open, say, or it belongs to somebody else.
    """
    try:
        yield
    except OSError as error:
        raise _unread(folder, name, error) from error


def _unread(folder: Path, name: str, error: OSError) -> SearchappError:
    if isinstance(error, FileNotFoundError):
        return damaged(folder, f"{name} is missing")
    return SearchappError(f"{folder / name} can't be read: {reason(error)}")


STAMP = "verified"


def require_index(folder: Path) -> IndexInfo:
    """Return what a version says of itself, once all files of all its segments were found to be as they were written.

    Raises:
        EngineRefused: it is not an index of searchapp's, or one of a newer searchapp.
        DataError: a file is missing or altered.
        SearchappError: a file can't be read.
    """
    manifest = Manifest.read(folder)
    for segment in manifest.segments(folder):
        require(segment.folder, segment.manifest)
    return manifest.info


def require(folder: Path, manifest: Manifest) -> bool:
    """Make sure that every file of a version was found to be as it was written; returns whether this was done now.

    Raises:
        DataError: a file was altered.
        SearchappError: a file can't be read.
    """
    with suppress(OSError, ValueError):
        if (folder / STAMP).read_text(encoding="ascii") == _state(folder, manifest):
            return False
    verify(folder, manifest)
    return True


def verify(folder: Path, manifest: Manifest, advance: Advance = no_progress) -> None:
    """Compare every file of a version with its digest, and remember that they agree.

    Raises:
        DataError: a file was altered.
        SearchappError: a file can't be read.
    """
    with refuting(folder):
        before = _state(folder, manifest)  # what changes from here on is not vouched for
        manifest.verify(folder, advance)
    _remember(folder, before)


def remember(folder: Path, manifest: Manifest) -> None:
    """Count a version as verified that has just been written."""
    _remember(folder, _state(folder, manifest))


def refuted(folder: Path, problem: str) -> Damaged:
    """The error for a version that was found to be altered; from now on nobody takes it for sound."""
    with suppress(OSError):
        (folder / STAMP).unlink()
    return damaged(folder, problem)


@contextmanager
def refuting(folder: Path) -> Iterator[None]:
    """Have a version refuted that is found to be altered meanwhile.

    Raises:
        DataError: it was.
    """
    try:
        yield
    except Damaged as error:
        raise refuted(folder, error.problem) from error


def _remember(folder: Path, state: str) -> None:
    with suppress(OSError):  # where nothing can be written, it is verified again the next time
        (folder / STAMP).write_text(state, encoding="ascii")


def _state(folder: Path, manifest: Manifest) -> str:
    """The digest of all that the system knows of the files of a version."""
    files = {
        name: [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        for name, status in manifest.looked_at(folder)
    }
    return digest_json({"manifest": manifest.digest, "files": files})
