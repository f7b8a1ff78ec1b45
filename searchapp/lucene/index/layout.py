"""The files of a version of an index: manifest, digests, verification.

<index>/
    lock            held by the building process; contains its number
    current         the name of the live version, replaced atomically
    000007/         a version with one segment
        manifest.json, documents*.npy, digests.npy, ids.*.npy, field<n>.*.npy, checksums.npy
        verified        the stamp: all files were verified
    000008/         a version that keeps the segment of 000007, and adds its own
        the same files, for the documents that 000007 lacks
        dead-000007.npy, dead-000007.field<n>.*.npy     deleted documents of that segment, and their terms

The nested objects of a path are stored like documents: `nested<n>.parents.npy`, `nested<n>.places.npy` and
`nested<n>.field<m>.*.npy`.

An index is a list of immutable segments. The manifest is the commit point: it lists the segments kept from earlier
versions, with the documents deleted since.

The manifest has its own `digest`, and the SHA-256 of every file. `checksums.npy` covers each block of an array, and
`current` contains a checksum.

The stamp is a digest of the manifest and of each file's size, times and inode. Changing, copying or replacing a file
invalidates it, and the version is verified again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import (
    OTHER_FOLDER,
    CorruptIndex,
    LuceneError,
    OldFormat,
    Refused,
    UnreadableFile,
)
from searchapp.lucene.index.index_settings import mapped_fields

if TYPE_CHECKING:
    from searchapp.lucene.index.dynamic import Added
    from searchapp.lucene.index.mapping import Schema

FORMAT = 9  # incremented when a file changes its meaning, or another version can't read it

LAST_UNPACKED = 7  # of searchapp 0.3, with documents in SQLite and postings in arrays

READABLE = (LAST_UNPACKED, FORMAT)

PROGRAM = "embedded index"
MANIFEST = "manifest.json"
STAMP = "verified"
CHECKSUMS = "checksums.npy"
BLOCK = 1 << 16  # bytes that share a checksum

Advance = Callable[[int], None]  # called with the number of items or bytes done since the last call


def no_progress(_done: int) -> None:
    """Ignore progress."""


def digest_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value, independent of the order of keys."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


# The manifest stores these tuples as lists.


class FieldSummary(NamedTuple):
    """The prefix of a field's files, and its statistics for BM25."""

    prefix: str
    documents: int
    tokens: int


class NestedSummary(NamedTuple):
    """The prefix of the files of a path's nested objects in a segment, their number, and their fields."""

    prefix: str
    documents: int
    fields: Mapping[str, FieldSummary]


class StoredFile(NamedTuple):
    """Size in bytes and SHA-256 of a file; for an array, the type and number of its elements."""

    size: int
    digest: str
    dtype: str = ""
    length: int = 0

    @property
    def offset(self) -> int:
        """Size of the header in bytes."""
        import numpy as np  # slow to import

        return self.size - self.length * np.dtype(self.dtype).itemsize

    @property
    def blocks(self) -> int:
        return -(-self.size // BLOCK)


class Deletions(NamedTuple):
    """The number of deleted documents of a segment, and of those with each field."""

    prefix: str = ""  # name of the array of ascending document numbers
    documents: int = 0
    fields: Mapping[str, FieldSummary] = {}  # prefix of the arrays `ranks` of terms and `counts` of documents
    nested: Mapping[str, Mapping[str, FieldSummary]] = {}  # the same for the nested objects of each path


class KeptSegment(NamedTuple):
    """The manifest digest of an earlier version's segment, and its deletions since."""

    digest: str
    deletions: Deletions


class Segment(NamedTuple):
    """A segment: the manifest of the version that wrote it, and its deletions since."""

    manifest: IndexManifest
    deletions: Deletions

    @property
    def folder(self) -> Path:
        return self.manifest.folder

    @property
    def live(self) -> int:
        return self.manifest.documents - self.deletions.documents


@dataclass(frozen=True)
class IndexManifest:
    """The manifest of the version in `folder`."""

    folder: Path
    mapping: Mapping[str, Any]
    total: int  # documents of the index
    user_data: Mapping[str, Any]  # JSON that the caller of the writer stores
    # Documents of the version's own segment, deleted ones included; `fields` and `files` also describe this segment.
    documents: int
    fields: Mapping[str, FieldSummary]
    nested: Mapping[str, NestedSummary]  # by path, parents first
    files: Mapping[str, StoredFile]
    analysis: str  # identity of the analysis that produced the terms
    kept: Mapping[str, KeptSegment]  # segments by the names of the earlier versions that wrote them
    added: Added  # fields of documents that `mapping` lacks
    format: int = FORMAT

    @cached_property
    def version(self) -> str:
        """The name of the version for messages."""
        return f"{self.folder.parent.name}-{self.folder.name}"

    @cached_property
    def schema(self) -> Schema:
        return self.schema_of(self.mapping)

    def schema_of(self, mapping: Mapping[str, Any]) -> Schema:
        """Return the schema of the mapping, which may have other similarities."""
        from searchapp.lucene.index.dynamic import completed  # slow to import
        from searchapp.lucene.index.mapping import Schema

        return Schema.of(completed(mapping, self.added))

    @cached_property
    def digest(self) -> str:
        return digest_json(self._json())

    def _json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "folder"}
        if not self.added:
            del values["added"]  # an earlier version did not write it
        return {"searchapp": PROGRAM, **values}

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files.values())

    def with_checksums(self) -> Iterator[tuple[str, StoredFile]]:
        """Yield the files whose blocks have checksums, in the order of the checksums."""
        return ((name, file) for name, file in sorted(self.files.items()) if file.dtype and name != CHECKSUMS)

    def write(self) -> None:
        text = json.dumps({**self._json(), "digest": self.digest}, ensure_ascii=False)
        # A file name in the user data may contain lone surrogates (bytes that are not UTF-8), written as JSON escapes.
        (self.folder / MANIFEST).write_text(text, encoding="utf-8", errors="backslashreplace")

    @classmethod
    def read(cls, folder: Path) -> IndexManifest:
        """Read the manifest of a version, and check the size of every file.

        Raises:
            Refused: the index is not searchapp's, or was made by a newer searchapp.
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
                nested={
                    path: NestedSummary(prefix, documents, _summaries(fields))
                    for path, (prefix, documents, fields) in described.get("nested", {}).items()
                },
                files={name: StoredFile(*file) for name, file in described["files"].items()},
                analysis=described["analysis"],
                kept={
                    name: KeptSegment(digest, _deletions(*deletions))
                    for name, (digest, deletions) in described["kept"].items()
                },
                added=described.get("added", {}),
                format=described["format"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptIndex(folder, f"{MANIFEST} is incomplete") from error
        manifest.check_sizes()
        return manifest

    def segments(self) -> list[Segment]:
        """Return the segments of the index, this version's own last."""
        segments = []
        for name, kept in self.kept.items():
            folder = self.folder.with_name(name)
            if not folder.is_dir():
                raise CorruptIndex(self.folder, f"{name}, which it refers to, is missing")
            manifest = IndexManifest.read(folder)
            if manifest.digest != kept.digest:
                raise CorruptIndex(self.folder, f"{name} is not the version that it refers to")
            segments.append(Segment(manifest, kept.deletions))
        segments.append(Segment(self, Deletions()))
        # An earlier version did not search some types of fields.
        if any(self._lacks_field(segment.manifest.fields) for segment in segments):
            raise OldFormat(self.folder)
        return segments

    def _lacks_field(self, fields: Mapping[str, FieldSummary]) -> bool:
        """Return whether the mapping has a searched field that is not among those of a segment."""
        properties = self.mapping.get("mappings", {}).get("properties", {})
        mapped = (field for field in mapped_fields(properties) if field.type != "object")
        if not self.added and all(field.name in fields for field in mapped):
            return False  # without the import of `Schema`
        from searchapp.lucene.index.mapping import ROOT

        return bool(self.schema.fields_of(ROOT).keys() - fields.keys())

    def _statuses(self) -> Iterator[tuple[str, os.stat_result]]:
        prefix = f"{self.folder}{os.sep}"
        for name in self.files:
            try:
                status = os.stat(prefix + name)
            except OSError as error:
                raise _read_error(self.folder, name, error) from error
            yield name, status

    def check_sizes(self) -> None:
        for name, status in self._statuses():
            size = self.files[name].size
            if status.st_size != size:
                raise CorruptIndex(self.folder, f"{name} has {status.st_size} bytes instead of {size}")

    def verify_file(self, name: str) -> None:
        with reading(self.folder, name), (self.folder / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != self.files[name].digest:
            raise refuted(self.folder, f"{name} was altered")

    def verify(self, advance: Advance = no_progress) -> None:
        """Compare every file with its digest, and write the stamp; call `advance` with the bytes read."""
        try:
            state = self._state()  # before reading, so that a concurrent change invalidates the stamp
            self.check_sizes()
            for name, file in self.files.items():
                self.verify_file(name)
                advance(file.size)
        except CorruptIndex as error:
            raise refuted(self.folder, error.problem) from error
        self._write_stamp(state)

    def require_verified(self) -> bool:
        """Verify the files unless the stamp is valid; return whether they were verified now."""
        with suppress(OSError, ValueError):
            if (self.folder / STAMP).read_text(encoding="ascii") == self._state():
                return False
        self.verify()
        return True

    def mark_verified(self) -> None:
        """Write the stamp without verification, for a version just written."""
        self._write_stamp(self._state())

    def _write_stamp(self, state: str) -> None:
        with suppress(OSError):  # a version in a read-only folder is verified each time
            (self.folder / STAMP).write_text(state, encoding="ascii")

    def _state(self) -> str:
        files = {
            name: [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
            for name, status in self._statuses()
        }
        return digest_json({"manifest": self.digest, "files": files})


def _summaries(described: Mapping[str, Any]) -> dict[str, FieldSummary]:
    return {name: FieldSummary(*summary) for name, summary in described.items()}


def _deletions(
    prefix: str, documents: int, fields: Mapping[str, Any], nested: Mapping[str, Mapping[str, Any]] = {}
) -> Deletions:
    nested_fields = {path: _summaries(described) for path, described in nested.items()}
    return Deletions(prefix, documents, _summaries(fields), nested_fields)


def _read_json(folder: Path) -> dict[str, Any]:
    try:
        with reading(folder, MANIFEST):
            text = (folder / MANIFEST).read_text(encoding="utf-8")
        described = json.loads(text)
        if not isinstance(described, dict):
            raise ValueError("a JSON object was expected")
        digest = described.pop("digest", None)
        is_sound = digest == digest_json(described)
    except (ValueError, RecursionError) as error:
        raise CorruptIndex(folder, f"{MANIFEST} is not a manifest") from error
    format_ = described.get("format")
    if format_ in READABLE and not is_sound:
        raise CorruptIndex(folder, f"{MANIFEST} was altered")
    if described.get("searchapp") != PROGRAM:
        raise Refused(f"{folder} contains an index of another program: {OTHER_FOLDER}")
    if format_ in READABLE:
        return described
    if isinstance(format_, int) and format_ < FORMAT:
        raise OldFormat(folder)
    raise Refused(
        f"{folder} has the format {format_}, but this version reads {FORMAT}: use the version that "
        "wrote it, or delete the folder and index again"
    )


@contextmanager
def reading(folder: Path, name: str) -> Iterator[None]:
    """Translate a failure to read a file of a version.

    Raises:
        CorruptIndex: the file is missing.
        UnreadableFile: the system denies access.
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
    """Remove the stamp of an altered version, and return the error."""
    with suppress(OSError):
        (folder / STAMP).unlink()
    return CorruptIndex(folder, problem)
