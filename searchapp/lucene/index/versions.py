"""Versions of an index: which one is live, which parts it has, which code made it, and the lock of its builder.

The pointer `current` is replaced by one rename, so a reader finds the old version or the new one whenever the
builder is killed. A version that is neither live nor the base of the live one is a leftover, removed by the next
holder of the lock. A CRC-32 follows the name in `current`: a turned bit must not make a leftover live.

A version in parts has a base, which is an ordinary version of the same index, and the changes since:

    000007/         the base, never written to; it may be the base of several versions, one after the other
    000008/
        manifest.json   names the base and the digests of the three manifests
        dead.npy        deleted documents of the base, as ascending numbers
        new/            a version with the documents that the base does not have
        gone/           a version with the deleted documents of the base, for its statistics alone

Documents are base - dead + new; each count of documents, tokens, postings or numbers in a range is base + new -
gone: the count of a version of all documents.

`code_digest`: postings are taken over only from a version made by the same code. It covers every file of the
analyzers and of the index, rather than a number that a developer might forget to raise.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import platform
import re
import shutil
import time
import unicodedata
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

import searchapp
from searchapp.errors import BeingBuilt, DataError, EngineRefused, SearchappError
from searchapp.files import digest_file, digest_json
from searchapp.lucene.index import arrays, layout
from searchapp.lucene.index.arrays import synchronize
from searchapp.lucene.index.layout import (
    IN_PARTS,
    Manifest,
    damaged,
    outdated,
    read_described,
    reading,
    saying,
    write_described,
)
from searchapp.model import IndexInfo
from searchapp.progress import Advance, no_progress

DEAD = "dead"
NEW_FOLDER, GONE_FOLDER = "new", "gone"

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
            _stored(folder, folder / NEW_FOLDER, self.new_digest),
            _stored(folder, folder / GONE_FOLDER, self.gone_digest),
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
        layout.require(*one)
    return manifest.info


def verify(versions: list[Stored], advance: Advance = no_progress) -> None:
    """Compare every file of some versions with its digest; `advance` is called with the bytes read.

    Raises:
        DataError: a file is missing or altered.
        SearchappError: a file can't be read.
    """
    for one in versions:
        layout.verify(*one, advance)


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


LOCK = "lock"
CURRENT = "current"
NEXT = "current.next"

LAST_BREATH_SECONDS = 2.0
"""How long the helpers of a builder that was killed may take to notice, and to let go of the lock."""

_VERSION = re.compile(r"[0-9]{6,}")
_POINTER = re.compile(r"([0-9]{6,})(?: ([0-9a-f]{8}))?\n?")
"""What `current` says; that of an earlier searchapp has no checksum."""


class Versions:
    """The folder of one index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def serving(self) -> Path | None:
        """The folder of the version that serves, None when there is none.

        Raises:
            EngineRefused: the folder holds something else.
            DataError: the pointer is damaged.
            SearchappError: it can't be read.
        """
        self._refuse_foreign()
        if not (self.folder / CURRENT).exists():
            return None
        with reading(self.folder, CURRENT):
            pointer = _POINTER.fullmatch(
                (self.folder / CURRENT).read_text(encoding="ascii", errors="replace")
            )
        if pointer is not None and pointer[2] is None:
            raise outdated(self.folder)
        if pointer is None or pointer[2] != _checksum(pointer[1]):
            raise damaged(self.folder, f"{CURRENT} names no version")
        return self.folder / pointer[1]

    @contextmanager
    def building(self, before: str) -> Iterator[Path]:
        """A new, empty folder to build a version in; it serves once the block ends without an error.

        `before` is the name of the version that served when the new one was asked for, see `serving_name`.

        Raises:
            BeingBuilt: another process is building this index, or has built it while this one waited for the lock:
                what it has built may be what is asked for.
            EngineRefused: the folder holds something else.
        """
        self._refuse_foreign()
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked() as waited_for:
            if self.serving_name() != before:
                raise BeingBuilt(f"the index in {self.folder}", waited_for)
            self._remove_leftovers()
            version = self.folder / f"{max([0, *map(int, self._names())]) + 1:06d}"
            try:
                version.mkdir()
                yield version
                self._let_serve(version)
            except BaseException:
                with suppress(OSError, SearchappError):  # what stays is removed by the next build
                    if self.serving_name() != version.name:  # else it serves: what failed came after that
                        self._remove_leftovers()
                raise
            self._remove_leftovers()

    def all(self) -> list[Path]:
        """The folders of every version, complete or not, oldest first."""
        if not self.folder.is_dir():
            return []
        return [self.folder / name for name in sorted(self._names(), key=int)]

    def is_being_built(self) -> bool:
        """Whether a process holds the lock at this moment."""
        try:
            with (self.folder / LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def remove(self) -> None:
        """Remove the index with all its versions; nothing happens if there is none.

        Raises:
            BeingBuilt: another process is building it.
            EngineRefused: the folder holds something else.
        """
        self._refuse_foreign()
        if not self.folder.exists():
            return
        with self._locked():
            (self.folder / CURRENT).unlink(missing_ok=True)  # first of all: from here on there is no index
            shutil.rmtree(self.folder)

    def _let_serve(self, version: Path) -> None:
        for folder, _folders, files in os.walk(version, topdown=False):
            for name in files:
                synchronize(f"{folder}{os.sep}{name}")
            synchronize(folder)
        synchronize(self.folder)
        pointer = self.folder / NEXT
        pointer.write_text(f"{version.name} {_checksum(version.name)}\n", encoding="ascii")
        synchronize(pointer)
        pointer.replace(self.folder / CURRENT)
        synchronize(self.folder)

    @contextmanager
    def _locked(self) -> Iterator[str]:
        """Hold the lock of the index; who held it before is given, if this process had to wait."""
        # The lock belongs to the open file: the system gives it back however the process ends.
        with (self.folder / LOCK).open("a+", encoding="ascii") as lock:
            before = self._acquire(lock)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield before

    def _acquire(self, lock: TextIO) -> str:
        """Take the lock; returns the number of the process that was waited for, "" if none was."""
        builder, waited = "", False
        until = time.monotonic() + LAST_BREATH_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return builder
            except BlockingIOError:
                lock.seek(0)
                builder = lock.read().strip()
            # Once is no proof: somebody may have looked whether there is a builder at this very moment.
            if waited and (_is_alive(builder) or time.monotonic() > until):
                raise BeingBuilt(f"the index in {self.folder}", builder)
            waited = True
            time.sleep(0.02)

    def _remove_leftovers(self) -> None:
        needed = self.needed()
        for name in self._names():
            if name not in needed:
                shutil.rmtree(self.folder / name, ignore_errors=True)
        with suppress(OSError):
            (self.folder / NEXT).unlink()

    def serving_name(self) -> str:
        """The name of the version that serves, "" if none does, or none can be found any more.

        Raises:
            SearchappError: the pointer can't be read at the moment.
        """
        try:
            serving = self.serving()
        except DataError:
            return ""
        return serving.name if serving else ""

    def base(self) -> Path | None:
        """The folder of the version on which the one builds that serves; None if there is none, or none is known."""
        try:
            serving = self.serving()
            name = base_of(serving) if serving else ""
        except SearchappError:
            return None
        return self.folder / name if name else None

    def needed(self) -> set[str]:
        """The names of the version that serves and of the one on which it builds.

        Where it can't be read on which it builds, all that are older than it count.

        Raises:
            SearchappError: the pointer can't be read at the moment.
        """
        serving = self.serving_name()
        if not serving:
            return set()
        try:
            return {serving, base_of(self.folder / serving)} - {""}
        except SearchappError:
            return {name for name in self._names() if int(name) <= int(serving)}

    def _names(self) -> list[str]:
        return [entry.name for entry in self.folder.iterdir() if _VERSION.fullmatch(entry.name)]

    def _refuse_foreign(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise EngineRefused(
                f"{self.folder} is a file, where the folder of an index should be: move it away"
            )
        for entry in self.folder.iterdir() if self.folder.is_dir() else ():
            if entry.name not in (LOCK, CURRENT, NEXT) and not _VERSION.fullmatch(entry.name):
                raise EngineRefused(
                    f"{self.folder} holds {entry.name}, which searchapp did not put there: "
                    "move it away, or choose another --home"
                )


def _checksum(name: str) -> str:
    return f"{zlib.crc32(name.encode()):08x}"


def _is_alive(pid: str) -> bool:
    """Whether there is a process of this number; a builder that has not told its number yet will do so."""
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


CODE = ("lucene", "engines/embedded.py", "model.py")
"""What the postings of a document depend on, besides mapping and document."""

_COMPILED = {".so", ".sha256", ".pyd", ".dylib", ".c", ".h"}
"""What only scores, and may be compiled later."""


_LOADED = time.time()
"""When this process had begun to load the code: files that have changed since are not what it runs."""


@cache
def code_digest() -> str:
    """What identifies the code that this process runs; empty where its files can't be read, or are others by now."""
    folder = Path(searchapp.__file__).parent
    try:
        files = _files(folder)
        if any(_changed(file) > _LOADED for file in files):
            return ""
        return digest_json(
            {
                "files": {file.relative_to(folder).as_posix(): digest_file(file) for file in files},
                "python": platform.python_version(),
                "unicode": unicodedata.unidata_version,
                "regex": version("regex"),
            }
        )
    except (OSError, DataError, PackageNotFoundError):
        return ""


def _files(folder: Path) -> list[Path]:
    """The files of the code.

    Raises:
        OSError: it is not there as files.
    """
    found = []
    for name in CODE:
        place = folder / name
        inner = sorted(place.rglob("*")) if place.is_dir() else [place]
        files = [
            file
            for file in inner
            if file.suffix not in _COMPILED and "__pycache__" not in file.parts and not file.is_dir()
        ]
        if not files:
            raise FileNotFoundError(place)
        found += files
    return found


def _changed(file: Path) -> float:
    """When a file was last written, or put into the place of another one."""
    status = file.stat()
    return max(status.st_mtime, status.st_ctime)
