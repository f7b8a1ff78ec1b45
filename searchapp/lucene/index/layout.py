"""The files of a version of an index: manifest, digests, damage, verification.

<index>/
    lock            held by the process that builds; contains its number
    current         the name of the live version, replaced in one step
    000007/         a version: one segment
        manifest.json, documents.sqlite, digests.npy, ids.*.npy, field<n>.*.npy, checksums.npy
        verified        the stamp: all of these were verified
    000008/         a version that keeps the segment of 000007, and adds one of its own
        the same files, for the documents that 000007 does not have
        dead-000007.npy, dead-000007.field<n>.*.npy     deleted documents of that segment, and their terms

An index is a list of immutable segments. The manifest is the commit point: it names the segments that are kept of
earlier versions, with the documents that were deleted since.

The manifest is covered by its own `digest`, every file by its SHA-256 in the manifest, each block of an array by
`checksums.npy`, each row of the documents by a checksum in the row, `current` by a checksum of its own. So no answer
depends on an altered file, and opening an index reads no file from end to end.

The stamp holds one digest: of the manifest, and of each file's size, times and inode. Changing, copying or
replacing a file changes it, and the version is verified again. A wrong stamp costs only that time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from searchapp.lucene.errors import CorruptIndex, LuceneError, OldFormat, Refused, UnreadableFile
from searchapp.lucene.index.mapping import Schema

FORMAT = 7
"""Raised when files of the same name get another meaning."""

PROGRAM = "embedded index"
MANIFEST = "manifest.json"
STAMP = "verified"
CHECKSUMS = "checksums.npy"
BLOCK = 1 << 16
"""Bytes that share a checksum."""

Advance = Callable[[int], None]
"""Called with each number of items or bytes that are done."""


def no_progress(_done: int) -> None:
    """Ignore progress."""


def digest_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value, whatever the order of its keys."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


# The tuples below are lists in the manifest.


class FieldSummary(NamedTuple):
    """The prefix of a field's files, and the statistics that BM25 needs."""

    prefix: str
    documents: int
    tokens: int


class StoredFile(NamedTuple):
    """A file's size in bytes and SHA-256; for an array the type and number of its elements, after a header."""

    size: int
    digest: str
    dtype: str = ""
    length: int = 0

    @property
    def offset(self) -> int:
        """The size of the header in bytes."""
        return self.size - self.length * np.dtype(self.dtype).itemsize

    @property
    def blocks(self) -> int:
        return -(-self.size // BLOCK)


class Deletions(NamedTuple):
    """The deleted documents of a segment: how many there are, and how many have each field.

    The file with the name `prefix` has the document numbers, ascending. The files of a field, with the prefix of its
    summary, are the ranks of the terms of deleted documents, and the number of deleted documents that have each.
    """

    prefix: str = ""
    documents: int = 0
    fields: Mapping[str, FieldSummary] = {}


class KeptSegment(NamedTuple):
    """A segment of an earlier version: the digest of its manifest, and its documents that were deleted since."""

    digest: str
    deletions: Deletions


class Segment(NamedTuple):
    """A segment of an index: the manifest of the version that wrote it, and its documents that were deleted since."""

    manifest: IndexManifest
    deletions: Deletions

    @property
    def folder(self) -> Path:
        return self.manifest.folder

    @property
    def live(self) -> int:
        """The number of documents that are not deleted."""
        return self.manifest.documents - self.deletions.documents


@dataclass(frozen=True)
class IndexManifest:
    """The contents of a version, in its `folder`."""

    folder: Path
    mapping: Mapping[str, Any]
    total: int
    """Documents of the index."""
    user_data: Mapping[str, Any]
    """JSON that the caller of the writer stores with the version."""
    documents: int
    """Documents of the version's own segment, deleted ones included; `fields` and `files` are that segment's too."""
    fields: Mapping[str, FieldSummary]
    files: Mapping[str, StoredFile]
    analysis: str
    """Identity of the analysis that made the terms."""
    kept: Mapping[str, KeptSegment]
    """Segments of earlier versions by the names of these."""

    @property
    def version(self) -> str:
        """The name of the version for messages."""
        return f"{self.folder.parent.name}-{self.folder.name}"

    @cached_property
    def schema(self) -> Schema:
        """The fields of the mapping.

        Raises:
            Refused: as `Schema.of`.
        """
        return Schema.of(self.mapping)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of everything in the manifest."""
        return digest_json(self._json())

    def _json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "folder"}
        return {"searchapp": PROGRAM, "format": FORMAT, **values}

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files.values())

    def with_checksums(self) -> Iterator[tuple[str, StoredFile]]:
        """Yield the files whose blocks have checksums, in the order of these."""
        return ((name, file) for name, file in sorted(self.files.items()) if file.dtype and name != CHECKSUMS)

    def write(self) -> None:
        """Write the manifest."""
        text = json.dumps({**self._json(), "digest": self.digest}, ensure_ascii=False)
        # A file name in the user data may hold bytes that are not UTF-8: lone surrogates, written as JSON's escapes.
        (self.folder / MANIFEST).write_text(text, encoding="utf-8", errors="backslashreplace")

    @classmethod
    def read(cls, folder: Path) -> IndexManifest:
        """Read the manifest of a version and check that all files exist in their sizes.

        Raises:
            Refused: it is not an index of searchapp's, or one of a newer searchapp.
            OldFormat: an earlier searchapp wrote it.
            CorruptIndex: a file is missing or altered.
            UnreadableFile: a file can't be read.
        """
        described = _read_json(folder)
        try:
            manifest = cls(
                folder=folder,
                mapping=described["mapping"],
                total=described["total"],
                user_data=described["user_data"],
                documents=described["documents"],
                fields=_summaries(described["fields"]),
                files={name: StoredFile(*file) for name, file in described["files"].items()},
                analysis=described["analysis"],
                kept={
                    name: KeptSegment(digest, Deletions(prefix, documents, _summaries(fields)))
                    for name, (digest, (prefix, documents, fields)) in described["kept"].items()
                },
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptIndex(folder, f"{MANIFEST} lacks what it should say") from error
        manifest.check_sizes()
        return manifest

    def segments(self) -> list[Segment]:
        """Return the segments of the index whose commit point is this version: its own is the last.

        Raises:
            CorruptIndex: one is missing or altered.
            UnreadableFile: one can't be read.
        """
        segments = []
        for name, kept in self.kept.items():
            folder = self.folder.with_name(name)
            if not folder.is_dir():
                raise CorruptIndex(self.folder, f"{name}, on which it builds, is missing")
            manifest = IndexManifest.read(folder)
            if manifest.digest != kept.digest:
                raise CorruptIndex(self.folder, f"{name} is not the one that it was made with")
            segments.append(Segment(manifest, kept.deletions))
        return [*segments, Segment(self, Deletions())]

    def _statuses(self) -> Iterator[tuple[str, os.stat_result]]:
        prefix = f"{self.folder}{os.sep}"
        for name in self.files:
            try:
                status = os.stat(prefix + name)
            except OSError as error:
                raise _read_error(self.folder, name, error) from error
            yield name, status

    def check_sizes(self) -> None:
        """Check the size of every file, which shows that one is missing or cut short.

        Raises:
            CorruptIndex: one is.
            UnreadableFile: the system does not tell a size.
        """
        for name, status in self._statuses():
            size = self.files[name].size
            if status.st_size != size:
                raise CorruptIndex(self.folder, f"{name} has {status.st_size} bytes instead of {size}")

    def verify_file(self, name: str) -> None:
        """Compare one file with its digest.

        Raises:
            CorruptIndex: the file is missing or altered.
            UnreadableFile: it can't be read.
        """
        with reading(self.folder, name), (self.folder / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != self.files[name].digest:
            raise refuted(self.folder, f"{name} was altered")

    def verify(self, advance: Advance = no_progress) -> None:
        """Compare every file with its digest, and write the stamp; `advance` is called with the bytes read.

        Raises:
            CorruptIndex: a file is missing or altered.
            UnreadableFile: a file can't be read.
        """
        try:
            state = self._state()  # before the files are read: a later change invalidates it
            self.check_sizes()
            for name, file in self.files.items():
                self.verify_file(name)
                advance(file.size)
        except CorruptIndex as error:
            raise refuted(self.folder, error.problem) from error
        self._write_stamp(state)

    def require_verified(self) -> bool:
        """Verify the files unless the stamp says that they were; return whether they were verified now.

        Raises:
            CorruptIndex: a file is missing or altered.
            UnreadableFile: a file can't be read.
        """
        with suppress(OSError, ValueError):
            if (self.folder / STAMP).read_text(encoding="ascii") == self._state():
                return False
        self.verify()
        return True

    def mark_verified(self) -> None:
        """Write the stamp of a version that was just written."""
        self._write_stamp(self._state())

    def _write_stamp(self, state: str) -> None:
        with suppress(OSError):  # in a folder that is read-only the version is verified again the next time
            (self.folder / STAMP).write_text(state, encoding="ascii")

    def _state(self) -> str:
        files = {
            name: [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
            for name, status in self._statuses()
        }
        return digest_json({"manifest": self.digest, "files": files})


def _summaries(described: Mapping[str, Any]) -> dict[str, FieldSummary]:
    return {name: FieldSummary(*summary) for name, summary in described.items()}


def _read_json(folder: Path) -> dict[str, Any]:
    """Return the verified contents of a manifest without its digest."""
    try:
        with reading(folder, MANIFEST):
            text = (folder / MANIFEST).read_text(encoding="utf-8")
        described = json.loads(text)
        if not isinstance(described, dict):
            raise ValueError("a JSON object was expected")
        digest = described.pop("digest", None)
        is_sound = digest == digest_json(described)
    except (ValueError, RecursionError) as error:
        raise CorruptIndex(folder, f"{MANIFEST} is no manifest") from error
    format_ = described.get("format")
    if format_ == FORMAT and not is_sound:
        raise CorruptIndex(folder, f"{MANIFEST} was altered")
    if described.get("searchapp") != PROGRAM:
        raise Refused(f"{folder} holds an index that searchapp did not make: choose another --home")
    if format_ == FORMAT:
        return described
    if isinstance(format_, int) and format_ < FORMAT:
        raise OldFormat(folder)
    raise Refused(
        f"{folder} has the format {format_}, this searchapp reads {FORMAT}: "
        "use the searchapp that wrote it, or delete the folder and index again"
    )


@contextmanager
def reading(folder: Path, name: str) -> Iterator[None]:
    """Report the failure to read a file of a version.

    Raises:
        CorruptIndex: the file is missing.
        UnreadableFile: the system does not let it be read.
    """
    try:
        yield
    except OSError as error:
        raise _read_error(folder, name, error) from error


def _read_error(folder: Path, name: str, error: OSError) -> LuceneError:
    if isinstance(error, FileNotFoundError):
        return CorruptIndex(folder, f"{name} is missing")
    return UnreadableFile(folder / name, (error.strerror or str(error)).lower())


def refuted(folder: Path, problem: str) -> CorruptIndex:
    """Return the error for a version that was found to be altered, and remove its stamp."""
    with suppress(OSError):
        (folder / STAMP).unlink()
    return CorruptIndex(folder, problem)
