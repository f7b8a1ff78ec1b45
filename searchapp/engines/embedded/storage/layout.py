"""The files of a version, what is known of them, and the sentences for what may be wrong with them.

<home>/indexes/<prefix>-<name>/
    lock            held by the process that builds; says which
    current         the number of the version that serves, replaced in one step
    000007/         a version
        manifest.json, documents.sqlite, digests.npy, ids.*.npy, field<n>.*.npy, checksums.npy
        verified        says that all of these were found to be as they were written, see `verified`
    000008/         a version in parts, of which 000007 is the base: see `in_parts`
        manifest.json, dead.npy
        new/, gone/     each with the files of a version

What vouches for what: the manifest for itself by its `digest`, and for every file by its SHA-256; `checksums.npy` for
each block of the other arrays; each row of the documents for itself. So nothing that an answer depends on is taken
from a file that was altered, and no file is read whole for it. `current` has a checksum of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from searchapp.digests import digest_json
from searchapp.engines.base import IndexInfo
from searchapp.engines.embedded.schema import Schema
from searchapp.errors import Damaged, EngineRefused, SearchappError
from searchapp.files import reason
from searchapp.progress import Advance, no_progress

FORMAT = 2
"""Raised when files of the same name mean something else."""

IN_PARTS = 3
"""The format of a version in parts, see `in_parts`: a searchapp that knows only one part refuses it."""

BEFORE_CHECKSUMS = 1
"""The format whose manifest, arrays and documents have no checksums: its files are verified as a whole only."""

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


@dataclass(frozen=True)
class Manifest:
    """What a version was made from and consists of.

    `analysis` identifies the code that made it, see `code_digest`; empty where that is not known.
    """

    info: IndexInfo
    mapping: Mapping[str, Any]
    fields: Mapping[str, FieldSummary]
    files: Mapping[str, StoredFile]
    format: int = FORMAT
    analysis: str = ""

    @property
    def has_checksums(self) -> bool:
        """Whether the files can be verified piece by piece."""
        return self.format > BEFORE_CHECKSUMS

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
        write_described(folder, self._described(), self.digest)

    def _described(self) -> dict[str, Any]:
        described = {
            "searchapp": "embedded index",
            "info": asdict(self.info),
            "mapping": self.mapping,
            "fields": {name: field.described() for name, field in self.fields.items()},
            "files": {name: file.described() for name, file in self.files.items()},
            "format": self.format,
        }
        # Without it manifests are as they were written before they had it.
        return {**described, "analysis": self.analysis} if self.analysis else described

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a version and check that all files are there in their sizes.

        Raises:
            EngineRefused: it is not an index of searchapp's, or one of a newer searchapp.
            DataError: a file is missing or altered.
            SearchappError: a file can't be read.
        """
        return cls.of(folder, read_described(folder))

    @classmethod
    def of(cls, folder: Path, described: Mapping[str, Any]) -> Manifest:
        """The manifest of a version from what it says, see `read_described`; errors are those of `read`."""
        if described["format"] == IN_PARTS:
            raise damaged(folder, f"{MANIFEST} is that of several parts, where one should be")
        with saying(folder):
            manifest = cls(
                info=IndexInfo(**described["info"]),
                mapping=described["mapping"],
                fields={name: FieldSummary(**field) for name, field in described["fields"].items()},
                files={name: _stored(file) for name, file in described["files"].items()},
                format=described["format"],
                analysis=str(described.get("analysis", "")),
            )
        manifest.check_sizes(folder)
        return manifest

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


def write_described(folder: Path, described: Mapping[str, Any], digest: str) -> None:
    """Write what a manifest says, with its digest."""
    text = _written({**described, "digest": digest}, MANIFEST_LINES)
    # The name of a task's file may hold bytes that are not UTF-8: halves of characters, written as JSON's escapes.
    (folder / MANIFEST).write_text(text, encoding="utf-8", errors="backslashreplace")


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


def read_described(folder: Path) -> dict[str, Any]:
    """What the manifest of a version says, in parts or not, without its digest, which it has proved to be.

    Raises:
        EngineRefused: it is not an index of searchapp's, or one of a newer searchapp.
        DataError: it is missing or altered.
        SearchappError: it can't be read.
    """
    described = _read(folder)
    if described.get("searchapp") != "embedded index":
        raise EngineRefused(f"{folder} holds an index that searchapp did not make: choose another --home")
    format_ = described.get("format")
    if format_ not in (BEFORE_CHECKSUMS, FORMAT, IN_PARTS):
        raise EngineRefused(
            f"{folder} has the format {format_}, this searchapp reads {BEFORE_CHECKSUMS} to {IN_PARTS}: "
            "use the searchapp that wrote it, or delete the folder and index again"
        )
    return described


@contextmanager
def saying(folder: Path) -> Iterator[None]:
    """Take a manifest that does not say what is asked of it for damaged.

    Raises:
        DataError: it does not.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(folder, f"{MANIFEST} lacks what it should say") from error


def _read(folder: Path) -> dict[str, Any]:
    try:
        with reading(folder, MANIFEST):
            text = (folder / MANIFEST).read_text(encoding="utf-8")
        described = json.loads(text)
        if not isinstance(described, dict):
            raise ValueError("a JSON object was expected")
        digest = described.pop("digest", None)
        sound = (
            digest == digest_json(described) if digest else described.get("format") not in (FORMAT, IN_PARTS)
        )
    except (ValueError, RecursionError) as error:
        raise damaged(folder, f"{MANIFEST} is no manifest") from error
    if not sound:
        raise damaged(folder, f"{MANIFEST} was altered")
    return described


def _stored(file: Mapping[str, Any] | list[Any]) -> StoredFile:
    """What a manifest says of a file; before there were checksums, that was size and digest."""
    return StoredFile(**file) if isinstance(file, Mapping) else StoredFile(int(file[0]), str(file[1]))


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
