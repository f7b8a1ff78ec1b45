"""The engine that needs no server: indexes are folders in the home folder."""

from __future__ import annotations

import glob
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from searchapp import __version__
from searchapp.digests import digest_json
from searchapp.engines import changes
from searchapp.engines.base import (
    EngineInfo,
    IndexInfo,
    IndexSpec,
    State,
    StoredVersion,
)
from searchapp.engines.embedded.index import EmbeddedIndex
from searchapp.engines.embedded.memory import Memory
from searchapp.engines.embedded.parts import Parts
from searchapp.engines.embedded.refusals import unsupported
from searchapp.engines.embedded.schema import Analyzers, Schema
from searchapp.engines.embedded.storage import in_parts
from searchapp.engines.embedded.storage.carried import Carried, Older
from searchapp.engines.embedded.storage.code_digest import code_digest
from searchapp.engines.embedded.storage.comparison import Comparison
from searchapp.engines.embedded.storage.in_parts import PartsManifest, ordinary, read_manifest
from searchapp.engines.embedded.storage.layout import Manifest
from searchapp.engines.embedded.storage.reader import IndexReader
from searchapp.engines.embedded.storage.small_part import SmallPart
from searchapp.engines.embedded.storage.versions import CURRENT, Versions
from searchapp.engines.embedded.storage.writer import IndexWriter
from searchapp.engines.index_settings import without_similarities
from searchapp.errors import Damaged, DataError, EngineRefused, Replaced, SearchappError
from searchapp.files import reason
from searchapp.model import Document
from searchapp.progress import Advance, Progress, no_progress
from searchapp.settings import INDEXES, Settings

T = TypeVar("T")

_log = logging.getLogger("searchapp.requests")

ATTEMPTS = 5
"""How often a version may disappear, replaced by a newer one, while it is being opened."""

MakeAnalyzers = Callable[[Mapping[str, Any]], Analyzers]


class EmbeddedEngine:
    """An `Engine` whose index `name` is the folder `<home>/indexes/<prefix>-<name>`.

    Each index that it opens keeps the answers of what it has searched in so many bytes `remembered`.
    """

    has_shards = False

    def __init__(
        self, home: Path, prefix: str, analyzers: MakeAnalyzers | None = None, remembered: int = 0
    ) -> None:
        self._remembered = remembered
        self._folder = home / INDEXES
        self._prefix = prefix
        self._analyzers = analyzers or _analyzers
        self._open: list[EmbeddedIndex] = []

    @classmethod
    def at(cls, settings: Settings, remembered: int = 0) -> EmbeddedEngine:
        """The engine of the settings' home folder; nothing is made before an index is."""
        return cls(settings.home, settings.index_prefix, remembered=remembered)

    def info(self) -> EngineInfo:
        return EngineInfo("embedded", __version__, str(self._folder))

    def index_info(self, name: str) -> IndexInfo | None:
        """The version that serves now, None when there is none or it is damaged and can only be built again.

        Raises:
            EngineRefused: it is another searchapp's.
            SearchappError: it can't be read at the moment.
        """
        try:
            return self._of_serving(name, in_parts.require)
        except DataError:
            return None

    def names(self) -> list[str]:
        """The indexes that have a version to serve, sound or not, in order."""
        start = f"{self._prefix}-"
        folders = self._folder.glob(f"{glob.escape(start)}*") if self._folder.is_dir() else ()
        return sorted(folder.name.removeprefix(start) for folder in folders if (folder / CURRENT).exists())

    def stored(self) -> list[StoredVersion]:
        start = f"{self._prefix}-"
        folders = sorted(self._folder.glob(f"{glob.escape(start)}*")) if self._folder.is_dir() else []
        return [
            version
            for folder in folders
            for version in _stored(folder.name.removeprefix(start), Versions(folder))
        ]

    def verify(self, name: str, progress: Progress) -> IndexInfo | None:
        """Read every file of the version that serves and compare it with its digest; None if none serves.

        Raises:
            DataError: a file is missing or altered.
            EngineRefused: it is another searchapp's.
            SearchappError: a file can't be read.
        """

        def verify(folder: Path) -> IndexInfo:
            manifest = read_manifest(folder)
            versions = ordinary(folder, manifest)
            size = sum(one.manifest.bytes for one in versions)
            with progress.stage(f"verifying {name}", size, in_bytes=True) as advance:
                in_parts.verify(versions, advance)
            return manifest.info

        return self._of_serving(name, verify)

    def flaw(self, name: str) -> str:  # noqa: ARG002
        return ""  # files that were altered are found when they are opened

    def compare(self, name: str, mapping: Mapping[str, Any]) -> Comparison | None:
        try:
            folder = self._versions(name).serving()
            if folder is not None:
                return Comparison.of(folder, mapping, self._code())
        except (SearchappError, OSError, ValueError, KeyError) as error:
            # That it must not rank is told by those who open it.
            problem = error.problem if isinstance(error, Damaged) else error
            _log.info("%s: no document can be taken over, what serves can't be read: %s", name, problem)
        return None

    def _code(self) -> str:
        """The digest of the code that analyzes; empty for analyzers of which nothing is known."""
        return code_digest() if self._analyzers is _analyzers else ""

    def build(
        self,
        name: str,
        spec: IndexSpec,
        documents: Iterable[Document],
        advance: Advance = no_progress,
        carried: changes.Carried | None = None,
    ) -> IndexInfo:
        versions = self._versions(name)
        before = versions.serving_name()
        schema = Schema.of(spec.mapping)
        analyzers = self._analyzers(schema.analysis)
        for field in schema.fields.values():
            if field.search_analyzer is not None:
                analyzers.analyzer(field.search_analyzer)  # refused now, not when the first query needs it
        if spec.shards != 1:
            raise unsupported(f"{spec.shards} shards, only 1")
        assert carried is None or isinstance(carried, Carried | SmallPart)
        if carried and carried.version != before:
            raise Replaced(f"{versions.folder.name}-{carried.version}")
        try:
            with versions.building(before) as folder:
                info = _info(name, f"{versions.folder.name}-{folder.name}", spec)
                if carried:
                    _tell(info, carried)

                def writer(folder: Path, older: Older | None) -> IndexWriter:
                    return IndexWriter(
                        folder, spec.mapping, schema, analyzers, code=self._code(), older=older
                    )

                if isinstance(carried, SmallPart):
                    carried.write(folder, info, spec.mapping, _read(documents), writer, advance)
                else:
                    older = Older(carried) if carried else None
                    documents = carried.new(documents) if carried else documents
                    writer(folder, older).write(_read(documents), info, advance)
        except OSError as error:
            raise SearchappError(
                f"{versions.folder} could not be written: {reason(error)}; what served before still serves"
            ) from error
        return info

    def open(self, name: str) -> EmbeddedIndex:
        return self._opened(name, lambda folder: _reader(folder, read_manifest(folder)))

    def open_like(self, name: str, mapping: Mapping[str, Any]) -> EmbeddedIndex:
        """A handle that scores as if the index had been made with a mapping, which has other similarities.

        Nothing is written: lengths and frequencies are the same under all similarities.

        Raises:
            EngineRefused: there is no such index, or the mapping differs in more than similarities.
        """

        def read(folder: Path) -> IndexReader | Parts:
            manifest = read_manifest(folder)
            if without_similarities(manifest.mapping) != without_similarities(mapping):
                raise EngineRefused(f"{folder} was made with another mapping, in more than its similarities")
            return _reader(folder, manifest, Schema.of(mapping))

        return self._opened(name, read)

    def _opened(self, name: str, read: Callable[[Path], IndexReader | Parts]) -> EmbeddedIndex:
        reader = self._of_serving(name, read)
        if reader is None:
            folder = self._versions(name).folder
            raise EngineRefused(f"there is no index in {folder}: make it with `searchapp index {name}`")
        memory = Memory(self._remembered) if self._remembered else None
        index = EmbeddedIndex(reader, self._analyzers(reader.schema.analysis), memory)
        # What is closed is let go, with the descriptors of its mapped files.
        self._open = [*(one for one in self._open if not one.is_closed), index]
        return index

    def _of_serving(self, name: str, read: Callable[[Path], T]) -> T | None:
        """What is read of the version that serves, None if none does.

        Raises:
            DataError: it is damaged or missing, and no newer one has taken its place meanwhile.
        """
        versions = self._versions(name)
        for attempt in range(ATTEMPTS):
            folder = versions.serving()
            if folder is None:
                return None
            try:
                return read(folder)
            except DataError:
                if versions.serving() == folder or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def shards_for(self, documents: int) -> int:  # noqa: ARG002  # one is all there is
        return 1

    def replicate(self, name: str, replicas: int) -> None:
        if replicas:
            raise EngineRefused(f"{name} is kept on this machine's disk, without replicas")

    def remove(self, name: str) -> None:
        self._versions(name).remove()

    def close(self) -> None:
        for index in self._open:
            index.close()
        self._open = []

    def _versions(self, name: str) -> Versions:
        return Versions(self._folder / f"{self._prefix}-{name}")


def _read(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents; a file of them that can't be read is not taken for one of the index."""
    try:
        yield from documents
    except OSError as error:
        raise SearchappError(f"{error.filename or 'the documents'} can't be read: {reason(error)}") from error


def _stored(name: str, versions: Versions) -> Iterator[StoredVersion]:
    """The versions of an index; none if the folder is not that of an index, or of one with another prefix."""
    try:
        serving = versions.serving()
    except EngineRefused:
        return
    except DataError:
        serving = None
    base = versions.base()
    for folder in versions.all():
        if folder == base:
            continue  # a part of the version that serves
        try:
            info = _sound(folder)
        except (DataError, EngineRefused):
            info = None
        if info is not None and info.name != name:
            return
        if folder == serving:
            state = State.unreadable if info is None else State.serves
        else:
            state = State.building if versions.is_being_built() else State.leftover
        try:
            size = in_parts.size(folder)
            if base is not None and folder == serving:
                size += in_parts.size(base)
        except FileNotFoundError:
            continue  # removed a moment ago
        version = f"{versions.folder.name}-{folder.name}"
        yield StoredVersion(name, version, state, info, size, says_name=info is not None)


def _sound(folder: Path) -> IndexInfo:
    """What a version says of itself, all of whose files are there in their sizes.

    Raises:
        DataError, EngineRefused, SearchappError: they are not, or it can't be read.
    """
    manifest = read_manifest(folder)
    ordinary(folder, manifest)
    return manifest.info


def _reader(
    folder: Path, manifest: Manifest | PartsManifest, schema: Schema | None = None
) -> IndexReader | Parts:
    """A version of this manifest, open; scored by the similarities of a schema, or of its own."""
    if isinstance(manifest, Manifest):
        return IndexReader(folder, schema, manifest)
    *parts, dead = manifest.opened(folder)
    return Parts.of(manifest.info, parts, dead, schema)


def _tell(info: IndexInfo, carried: Carried | SmallPart) -> None:
    """Say what a new version is made of, to those who want to know."""
    how = "a small part is written beside" if isinstance(carried, SmallPart) else "all is merged with"
    _log.info(
        "%s: %d documents are taken over, %d are left out, %d are analyzed; %s what %s has",
        info.version,
        carried.documents,
        carried.left_out,
        carried.analyzed,
        how,
        f"{info.version.rpartition('-')[0]}-{carried.version}",
    )


def _info(name: str, version: str, spec: IndexSpec) -> IndexInfo:
    return IndexInfo(
        name=name,
        version=version,
        documents=spec.documents,
        digest=spec.digest,
        mapping_digest=digest_json(spec.mapping),
        documents_digest=spec.documents_digest,
        shards=spec.shards,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        owner=spec.owner,
    )


def _analyzers(analysis: Mapping[str, Any]) -> Analyzers:
    from searchapp.analysis import AnalysisRegistry

    registry: Analyzers = AnalysisRegistry(analysis)
    return registry
