"""A version in parts: a base, which is an ordinary version of the same index, and what has changed since.

<home>/indexes/<prefix>-<name>/
    000007/         the base
    000008/
        manifest.json   names the base and the digests of the three manifests: a base that was made again is another one
        dead.npy        the documents of the base that do not count any more, as ascending numbers
        new/            a version with the documents that the base does not have
        gone/           a version with the dead documents of the base, for its statistics alone

So the documents of the index are base - dead + new, and each count of documents, tokens, postings or numbers in a range
is base + new - gone: what a version of all documents would count. The base may be that of several versions, one after
the other; it is never written to.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchapp.digests import digest_json
from searchapp.engines.base import IndexInfo
from searchapp.engines.embedded.storage import arrays, verified
from searchapp.engines.embedded.storage.layout import (
    IN_PARTS,
    Manifest,
    damaged,
    read_described,
    reading,
    saying,
    write_described,
)
from searchapp.progress import Advance, no_progress

DEAD = "dead"
NEW, GONE = "new", "gone"

Int32s = NDArray[np.int32]


class Stored(NamedTuple):
    """An ordinary version, or a part: its folder and its manifest."""

    folder: Path
    manifest: Manifest


class OpenedParts(NamedTuple):
    """What a version in parts consists of."""

    base: Stored
    new: Stored
    gone: Stored
    dead: Int32s


@dataclass(frozen=True, slots=True)
class PartsManifest:
    """What a version in parts was made from and consists of; `info` and `mapping` are those of the whole.

    `base` is the name of the version on which it builds. `base_digest`, `new_digest` and `gone_digest` are those of
    the manifests of the parts, `dead_digest` is the SHA-256 of the file of dead documents.
    """

    info: IndexInfo
    mapping: Mapping[str, Any]
    analysis: str
    base: str
    base_digest: str
    new_digest: str
    gone_digest: str
    dead_digest: str

    @property
    def digest(self) -> str:
        """The SHA-256 of everything in the manifest."""
        return digest_json(self._described())

    def write(self, folder: Path) -> None:
        """Write it into the folder of the version."""
        write_described(folder, self._described(), self.digest)

    def _described(self) -> dict[str, Any]:
        return {"searchapp": "embedded index", "format": IN_PARTS, **asdict(self)}

    @classmethod
    def of(cls, folder: Path, described: Mapping[str, Any]) -> PartsManifest:
        """The manifest of a version from what it says, see `read_described`.

        Raises:
            DataError: it does not say what it should.
        """
        said = {name: value for name, value in described.items() if name not in ("searchapp", "format")}
        with saying(folder):
            return cls(**{**said, "info": IndexInfo(**said["info"])})

    def opened(self, folder: Path) -> OpenedParts:
        """The parts of the version in a folder.

        Raises:
            DataError: something is missing or altered, or the base is another one than it was.
            SearchappError: something can't be read.
        """
        base = folder.with_name(self.base)
        if not base.is_dir():
            raise damaged(folder, f"{self.base}, on which it builds, is missing")
        return OpenedParts(
            _stored(folder, base, self.base_digest),
            _stored(folder, folder / NEW, self.new_digest),
            _stored(folder, folder / GONE, self.gone_digest),
            self._dead(folder),
        )

    def _dead(self, folder: Path) -> Int32s:
        name = f"{DEAD}{arrays.SUFFIX}"
        with reading(folder, name):
            content = (folder / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != self.dead_digest:
            raise damaged(folder, f"{name} was altered")
        numbers: Int32s = np.load(io.BytesIO(content))
        return numbers


def _stored(folder: Path, part: Path, digest: str) -> Stored:
    manifest = Manifest.read(part)
    if manifest.digest != digest:
        raise damaged(folder, f"{part.name} is not the one that it was made with")
    return Stored(part, manifest)


def read_manifest(folder: Path) -> Manifest | PartsManifest:
    """The manifest of a version, in parts or not; of one that is not, all files are there in their sizes.

    Raises:
        EngineRefused: it is not an index of searchapp's, or one of a newer searchapp.
        DataError: a file is missing or altered.
        SearchappError: a file can't be read.
    """
    described = read_described(folder)
    if described["format"] == IN_PARTS:
        return PartsManifest.of(folder, described)
    return Manifest.of(folder, described)


def ordinary(folder: Path, manifest: Manifest | PartsManifest) -> list[Stored]:
    """The ordinary versions that a version consists of: itself, or its base and its parts.

    Raises:
        DataError: something is missing or altered.
        SearchappError: something can't be read.
    """
    return [Stored(folder, manifest)] if isinstance(manifest, Manifest) else list(manifest.opened(folder)[:3])


def require(folder: Path) -> IndexInfo:
    """What a version says of itself, once all of its files were found to be as they were written, see `verified`.

    Raises:
        EngineRefused: it is not an index of searchapp's, or one of a newer searchapp.
        DataError: a file is missing or altered.
        SearchappError: a file can't be read.
    """
    manifest = read_manifest(folder)
    for one in ordinary(folder, manifest):
        verified.require(*one)
    return manifest.info


def verify(versions: list[Stored], advance: Advance = no_progress) -> None:
    """Compare every file of some versions with its digest; `advance` is called with the bytes read.

    Raises:
        DataError: a file is missing or altered.
        SearchappError: a file can't be read.
    """
    for one in versions:
        verified.verify(*one, advance)


def base_of(folder: Path) -> str:
    """The name of the version on which the one in a folder builds, "" for one that is not in parts.

    Raises:
        EngineRefused, DataError, SearchappError: as `read_manifest`.
    """
    described = read_described(folder)
    return PartsManifest.of(folder, described).base if described["format"] == IN_PARTS else ""


def size(folder: Path) -> int:
    """The bytes that a folder takes, with its parts.

    Raises:
        FileNotFoundError: something was removed meanwhile.
    """
    return sum(file.stat().st_size for file in folder.rglob("*") if not file.is_dir())
