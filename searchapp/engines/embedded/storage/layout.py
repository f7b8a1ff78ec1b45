"""The files of a version, what is known of them, and the sentences for what may be wrong with them.

<home>/indexes/<prefix>-<name>/
    lock            held by the process that builds; says which
    current         the number of the version that serves, replaced in one step
    000007/         a version
        manifest.json, documents.sqlite, ids.*.npy, field<n>.*.npy
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from searchapp.digests import digest_file
from searchapp.engines.base import IndexInfo
from searchapp.errors import DataError, EngineRefused
from searchapp.progress import Advance, no_progress

FORMAT = 1
"""Raised when files of the same name mean something else."""

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """What is known of a field without opening it: its files' prefix and what BM25 needs."""

    prefix: str
    documents: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a version was made from and consists of; `files` gives each file's size in bytes and SHA-256."""

    info: IndexInfo
    mapping: Mapping[str, Any]
    fields: Mapping[str, FieldSummary]
    files: Mapping[str, tuple[int, str]]

    def write(self, folder: Path) -> None:
        described = {"searchapp": "embedded index", "format": FORMAT, **asdict(self)}
        text = json.dumps(described, ensure_ascii=False, indent=1)
        (folder / MANIFEST).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a version and check that all files are there in their sizes.

        Raises:
            EngineRefused: it is not an index of searchapp's, or one of a newer searchapp.
            DataError: a file is missing or altered.
        """
        try:
            described = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise damaged(folder, f"it has no {MANIFEST}") from None
        except (OSError, ValueError) as error:
            raise damaged(folder, f"{MANIFEST} can't be read") from error
        if not isinstance(described, dict) or described.get("searchapp") != "embedded index":
            raise EngineRefused(f"{folder} holds an index that searchapp did not make: choose another --home")
        if described.get("format") != FORMAT:
            raise EngineRefused(
                f"{folder} has the format {described.get('format')}, this searchapp reads {FORMAT}: "
                "use the searchapp that wrote it, or delete the folder and index again"
            )
        try:
            manifest = cls(
                info=IndexInfo(**described["info"]),
                mapping=described["mapping"],
                fields={name: FieldSummary(**field) for name, field in described["fields"].items()},
                files={name: (int(size), str(digest)) for name, (size, digest) in described["files"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(folder, f"{MANIFEST} lacks what it should say") from error
        manifest.check_sizes(folder)
        return manifest

    def check_sizes(self, folder: Path) -> None:
        """A cheap look at every file, enough to notice what is missing or cut short."""
        for name, (size, _digest) in self.files.items():
            try:
                found = (folder / name).stat().st_size
            except OSError:
                raise damaged(folder, f"{name} is missing") from None
            if found != size:
                raise damaged(folder, f"{name} has {found} bytes instead of {size}")

    def verify(self, folder: Path, advance: Advance = no_progress) -> None:
        """Read every file and compare its digest; `advance` is called with the bytes read."""
        self.check_sizes(folder)
        for name, (size, digest) in self.files.items():
            if digest_file(folder / name) != digest:
                raise damaged(folder, f"{name} was altered")
            advance(size)

    @property
    def bytes(self) -> int:
        """How much there is to read, in bytes."""
        return sum(size for size, _digest in self.files.values())


class Damaged(DataError):
    """A version's files are not what they were; `problem` says what is wrong with them."""

    def __init__(self, folder: Path, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"the index in {folder} is damaged ({problem}): build it again with `searchapp index`"
        )


def damaged(folder: Path, problem: str) -> Damaged:
    """The error for a version whose files are not what they were."""
    return Damaged(folder, problem)
