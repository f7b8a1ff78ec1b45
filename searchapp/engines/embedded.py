"""The embedded engine: the engine protocol on the search library `searchapp.lucene`, without a server.

Indexes are folders in the home directory.
"""

from __future__ import annotations

import glob
import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchapp import __version__
from searchapp.config.settings import INDEXES, Settings
from searchapp.engines.base import (
    ALL_DOCUMENTS,
    NO_TERMS,
    EngineInfo,
    IndexSpec,
    SearchHit,
    StoredVersion,
    Terms,
    TranslatedErrors,
    VersionState,
    require_not_cancelled,
    search_hit,
    search_one_by_one,
)
from searchapp.engines.base import Index as EngineIndex
from searchapp.errors import EngineRefused, QueryRefused, SearchappError
from searchapp.files import digest_json, reason
from searchapp.lucene import native
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import CorruptIndex, InvalidInput, LuceneError, Refused, unsupported
from searchapp.lucene.index.layout import IndexManifest
from searchapp.lucene.index.versions import CURRENT, IndexFolder
from searchapp.model import (
    AnalysisStep,
    Body,
    Counts,
    Document,
    ForeignIndex,
    Hits,
    IndexInfo,
    document_of,
)
from searchapp.progress import Advance, Notify, Progress, no_notice, no_progress

# Other parts of the library are imported by the methods that search and build: they are slow to import.
if TYPE_CHECKING:
    from searchapp.lucene.index.reader import Ranking
    from searchapp.lucene.index.segments import CollectionDiff, SegmentPlan
    from searchapp.lucene.search.searcher import Index, RankedBatch
    from searchapp.lucene.search.spelling import SimilarTerm

_log = logging.getLogger("searchapp.requests")

LARGE_INDEX = 200_000  # from this number of documents, batches are small, and compiled functions are needed

BATCH_BODIES, LARGE_INDEX_BATCH_BODIES = 64, 8  # topics of a batch

# On a large index, this number of topics is prepared before processes start, and justifies their start.
FIRST_OF_LARGE = 64


class RankingCache:
    """Caches rankings by body, eight bytes per hit; stops adding at `size` bytes."""

    def __init__(self, size: int) -> None:
        self._free_bytes = size
        self._rankings: dict[bytes, Ranking] = {}

    @staticmethod
    def key(body: Body) -> bytes:
        return hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).digest()

    def get(self, key: bytes) -> Ranking | None:
        return self._rankings.get(key)

    def put(self, key: bytes, ranking: Ranking) -> None:
        size = sum(part.nbytes for part in ranking) + len(key)
        if size <= self._free_bytes and key not in self._rankings:
            self._free_bytes -= size
            documents, scores = ranking
            self._rankings[key] = documents.copy(), scores.copy()  # a view would keep the whole batch


def _info(manifest: IndexManifest) -> IndexInfo:
    return IndexInfo(**manifest.user_data)


class EmbeddedIndex:
    """An index whose files this process has open, even after a newer version is live."""

    is_local = True

    def __init__(self, index: Index, cache_bytes: int = 0) -> None:
        self.index = index
        self._cache = RankingCache(cache_bytes) if cache_bytes else None
        self.is_closed = False

    @property
    def info(self) -> IndexInfo:
        return _info(self.index.reader.manifest)

    def search(self, bodies: Iterable[Body], advance: Advance = no_progress) -> Iterator[Hits]:
        if self._cache is not None:
            yield from self._search_cached(list(bodies), self._cache, advance)
            return
        done = 0
        try:
            for rankings in self._ranked(bodies):
                yield from map(self._hits, rankings)
                done += len(rankings)
                advance(len(rankings))
        except QueryRefused as error:
            raise QueryRefused.of(error, done + error.place) from error

    def _search_cached(self, bodies: Sequence[Body], cache: RankingCache, advance: Advance) -> Iterator[Hits]:
        """Yield the hits of bodies; search each distinct body that is not cached once."""
        keys = list(map(cache.key, bodies))
        # Look up all keys before the first yield: the caller may search the same index meanwhile.
        first: dict[bytes, int] = {}
        for index, key in enumerate(keys):
            if cache.get(key) is None:
                first.setdefault(key, index)
        new = list(first.values())
        rankings: dict[bytes, Ranking] = {}
        searched = chain.from_iterable(self._ranked(bodies[index] for index in new))
        for index, key in enumerate(keys):
            if first.get(key) == index:
                try:
                    rankings[key] = next(searched)
                except QueryRefused as error:  # `error.place` counts from the next body
                    raise QueryRefused.of(error, new[len(rankings) + error.place]) from error
                cache.put(key, rankings[key])
            ranking = rankings.get(key) or cache.get(key)
            assert ranking is not None  # cached before, or ranked at an earlier index
            yield self._hits(ranking)
            advance(1)

    def search_beside(self, requests: Sequence[tuple[EngineIndex, Body]]) -> list[Hits]:
        return search_one_by_one(requests)

    def _ranked(self, bodies: Iterable[Body]) -> Iterator[Sequence[Ranking]]:
        remaining = iter(bodies)
        is_large = self.index.count >= LARGE_INDEX
        size = LARGE_INDEX_BATCH_BODIES if is_large else BATCH_BODIES
        first = list(islice(remaining, FIRST_OF_LARGE if is_large else size))
        if len(first) < size:
            batches: Iterable[RankedBatch] = [self._rank(first)] if first else []
        else:
            batches = self._ranked_batches(first, remaining, size)
        for batch in batches:
            self.index.log_batch(len(batch.rankings), batch.pruned, batch.compiled)
            yield batch.rankings

    def _ranked_batches(
        self, first: Sequence[Body], others: Iterable[Body], size: int
    ) -> Iterator[RankedBatch]:
        """Rank batches of `size` bodies in several processes."""
        from searchapp import processes
        from searchapp.lucene.search.searcher import SMALLEST_BATCH

        worth_it = processes.WORTH_IT
        if self.index.count >= LARGE_INDEX:
            if len(first) == FIRST_OF_LARGE:
                require_not_cancelled()
                with TranslatedErrors():
                    self.index.prepare(first)
            worth_it = FIRST_OF_LARGE // size
        elif native.library() is not None:
            # Forked processes inherit the results of the first batch. NumPy would also compute the rows of its terms,
            # which takes as long as two processes save.
            yield self._rank(first)
            first = ()
        batches = processes.in_batches(chain(first, others), size, max(SMALLEST_BATCH, size // 4))
        yield from processes.map_in_processes(self._rank, batches, worth_it=worth_it, here=True)

    def _rank(self, bodies: Sequence[Body]) -> RankedBatch:
        require_not_cancelled()
        with TranslatedErrors():  # as a decorator, it takes longer
            return self.index.rank(bodies)

    def _hits(self, ranking: Ranking) -> Hits:
        documents, scores = ranking
        with TranslatedErrors():
            return Hits(self.index.reader.ids_of(documents), scores.tolist())

    def find(self, body: Body, terms: Terms = NO_TERMS) -> list[SearchHit]:  # noqa: ARG002  # all are known
        return list(map(search_hit, self.answer(body)["hits"]["hits"]))

    def page(self, body: Body, terms: Terms = NO_TERMS) -> tuple[list[SearchHit], int]:  # noqa: ARG002
        hits = self.answer({**body, "track_total_hits": True})["hits"]
        return list(map(search_hit, hits["hits"])), hits["total"]["value"]

    @TranslatedErrors()
    def answer(self, body: Body) -> dict[str, Any]:
        require_not_cancelled()
        return self.index.answer(body)

    @TranslatedErrors()
    def analyze(
        self, text: str, *, field: str | None = None, analyzer: str | None = None
    ) -> list[AnalysisStep]:
        return self.index.analyze(text, field=field, analyzer=analyzer)

    @TranslatedErrors()
    def frequencies(self, terms: Terms) -> dict[str, dict[str, int]]:
        return self.index.document_frequencies(terms)

    @TranslatedErrors()
    def similar_terms(self, terms: Terms, size: int) -> dict[str, dict[str, list[SimilarTerm]]]:
        similar: dict[str, dict[str, list[SimilarTerm]]] = {}
        for field, of_field in terms.items():
            for term in of_field:
                require_not_cancelled()
                similar.setdefault(field, {})[term] = self.index.similar_terms(field, term, size)
        return similar

    def unknown(self, terms: Terms) -> Terms:  # noqa: ARG002  # all are known
        return NO_TERMS

    @TranslatedErrors()
    def counts(self, query: Body, fields: Mapping[str, int]) -> Counts:
        require_not_cancelled()
        return self.index.count_matches(query, fields)

    def stored_documents(self) -> Iterator[Document]:
        body = dict(ALL_DOCUMENTS)
        while hits := self.find(body):
            yield from (document_of(hit.hit.document_id, hit.source) for hit in hits)
            body["search_after"] = [hits[-1].hit.score, hits[-1].hit.document_id]

    @TranslatedErrors()
    def twin(self) -> EmbeddedIndex:
        return EmbeddedIndex(self.index.reopen())

    def close(self) -> None:
        self.is_closed = True
        self.index.close()

    @TranslatedErrors()
    def verify(self) -> None:
        """Compare every file with its digest.

        Raises:
            Damaged: a file was altered.
            SearchappError: a file can't be read.
        """
        self.index.reader.verify()


class EmbeddedEngine:
    """An engine whose index `name` is the folder `<home>/indexes/<prefix>-<name>`.

    Each open index caches `remembered` bytes of rankings.
    """

    has_shards = False

    def __init__(self, home: Path, prefix: str, remembered: int = 0, notify: Notify = no_notice) -> None:
        self._cache_bytes = remembered
        self._notify = notify
        self._folder = home / INDEXES
        self._prefix = prefix
        self._open: list[EmbeddedIndex] = []

    @classmethod
    def at(cls, settings: Settings, remembered: int = 0, notify: Notify = no_notice) -> EmbeddedEngine:
        """Return the engine of the settings' home directory, which the first index creates."""
        return cls(settings.home, settings.index_prefix, remembered=remembered, notify=notify)

    def info(self) -> EngineInfo:
        return EngineInfo("embedded", __version__, str(self._folder))

    @TranslatedErrors()
    def index_info(self, name: str) -> IndexInfo | None:
        """Return the live version of an index; None if it is missing or must be rebuilt.

        Raises:
            EngineRefused: another program or a newer searchapp made it.
            SearchappError: it can't be read.
        """

        def verified_info(folder: Path) -> IndexInfo:
            manifest = IndexManifest.read(folder)
            for segment in manifest.segments():
                segment.manifest.require_verified()
            return _info(manifest)

        try:
            return self._versions(name).read_live(verified_info)
        except InvalidInput:
            return None

    def _names_and_folders(self) -> list[tuple[str, Path]]:
        start = f"{self._prefix}-"
        folders = sorted(self._folder.glob(f"{glob.escape(start)}*")) if self._folder.is_dir() else []
        return [(folder.name.removeprefix(start), folder) for folder in folders]

    def names(self) -> list[str]:
        return sorted(name for name, folder in self._names_and_folders() if (folder / CURRENT).exists())

    @TranslatedErrors()
    def stored(self) -> list[StoredVersion]:
        return [
            version
            for name, folder in self._names_and_folders()
            for version in _stored_versions(name, IndexFolder(folder))
        ]

    @TranslatedErrors()
    def verify(self, name: str, progress: Progress) -> IndexInfo | None:
        """Compare every file of the live version with its digest; return None without a live version.

        Raises:
            Damaged: a file is missing or altered.
            EngineRefused: another program or a newer searchapp made it.
            SearchappError: a file can't be read.
        """

        def verify(folder: Path) -> IndexInfo:
            manifest = IndexManifest.read(folder)
            manifests = [segment.manifest for segment in manifest.segments()]
            size = sum(segment_manifest.bytes for segment_manifest in manifests)
            with progress.stage(f"verifying {name}", size, in_bytes=True) as advance:
                for segment_manifest in manifests:
                    segment_manifest.verify(advance)
            return _info(manifest)

        return self._versions(name).read_live(verify)

    def flaw(self, name: str) -> str:  # noqa: ARG002
        return ""  # opening an index detects altered files

    def compare(self, name: str, mapping: Mapping[str, object]) -> CollectionDiff | None:
        from searchapp.lucene.index.segments import CollectionDiff

        try:
            folder = self._versions(name).live()
            if folder is not None:
                return CollectionDiff.of(folder, mapping)
        except (LuceneError, OSError, ValueError, KeyError) as error:
            # Opening the index reports it as an error.
            problem = error.problem if isinstance(error, CorruptIndex) else error
            _log.info(
                "%s: no document can be reused, because the live version can't be read: %s", name, problem
            )
        return None

    @TranslatedErrors()
    def build(
        self,
        name: str,
        spec: IndexSpec,
        documents: Iterable[Document],
        advance: Advance = no_progress,
        carried: SegmentPlan | None = None,
    ) -> IndexInfo:
        from searchapp import processes
        from searchapp.lucene.index.mapping import Schema
        from searchapp.lucene.index.writer import write_version

        if spec.shards != 1:
            raise unsupported(f"{spec.shards} shards, only 1")
        versions = self._versions(name)
        info: IndexInfo | None = None

        def describe(version: str) -> dict[str, object]:
            nonlocal info
            info = _describe(name, version, spec)
            if carried:
                _log_plan(version, carried)
            return asdict(info)

        try:
            write_version(
                *(versions, spec.mapping, _Documents(documents), spec.documents),
                *(describe, carried, advance, processes.map_in_processes),
            )
        except OSError as error:
            raise SearchappError(
                f"{versions.folder} could not be written: {reason(error)}; the previous index is still live"
            ) from error
        assert info is not None
        schema = Schema.of(spec.mapping)
        unchecked = [
            f"{field} ({reason})"
            for field, reason in schema.unsearched.items()
            if field not in schema.unindexed
        ]
        if unchecked:
            self._notify(
                f"the embedded engine stores these fields, and neither checks nor searches their values: "
                f"{', '.join(unchecked)}"
            )
        return info

    def open(self, name: str) -> EmbeddedIndex:
        return self._opened(name, None)

    def open_like(self, name: str, mapping: Mapping[str, object]) -> EmbeddedIndex:
        """Open an index with the similarities of another mapping.

        Raises:
            EngineRefused: there is no such index, or the mapping differs in more than similarities.
        """
        return self._opened(name, mapping)

    @TranslatedErrors()
    def _opened(self, name: str, mapping: Mapping[str, object] | None) -> EmbeddedIndex:
        from searchapp.lucene.search.searcher import Index

        folder = self._versions(name)
        if folder.live() is None:
            raise EngineRefused(
                f"there is no index in {folder.folder}: create it with `searchapp index {name}`"
            )
        index = EmbeddedIndex(Index.open(folder.folder, mapping), self._cache_bytes)
        self._warn_if_slow(index.index.count)
        # Dropping closed indexes frees the file descriptors of their mapped files.
        self._open = [*(opened for opened in self._open if not opened.is_closed), index]
        return index

    def _warn_if_slow(self, documents: int) -> None:
        problem = native.missing_reason() if documents >= LARGE_INDEX else ""
        if problem:
            notify, self._notify = self._notify, no_notice
            notify(
                f"searching {documents:,} documents without compiled functions takes several times as long: {problem}"
            )

    def shards_for(self, documents: int) -> int:  # noqa: ARG002
        return 1

    def replicate(self, name: str, replicas: int) -> None:
        if replicas:
            raise EngineRefused(f"{name} is on this machine's disk and can't have replicas")

    @TranslatedErrors()
    def remove(self, name: str) -> None:
        self._versions(name).remove()

    def foreign_info(self, name: str, foreign: ForeignIndex, mapping: Mapping[str, Any]) -> IndexInfo:  # noqa: ARG002
        raise EngineRefused(
            f"the index {foreign.index} of another program is on an Elasticsearch server: give its address with "
            "--url or SEARCHAPP_URL, or copy it to this machine with `searchapp index FILE --copy --url URL`"
        )

    def open_foreign(self, name: str, foreign: ForeignIndex, mapping: Mapping[str, Any]) -> EmbeddedIndex:
        self.foreign_info(name, foreign, mapping)
        raise AssertionError

    def close(self) -> None:
        for index in self._open:
            index.close()
        self._open = []

    def _versions(self, name: str) -> IndexFolder:
        return IndexFolder(self._folder / f"{self._prefix}-{name}")


@dataclass(frozen=True, slots=True)
class _Documents:
    """Documents that report an error of their file as such."""

    documents: Iterable[Document]

    def __iter__(self) -> Iterator[Document]:
        try:
            yield from self.documents
        except OSError as error:
            raise SearchappError(
                f"{error.filename or 'the documents'} can't be read: {reason(error)}"
            ) from error


def _stored_versions(name: str, versions: IndexFolder) -> Iterator[StoredVersion]:
    """Yield the versions of an index; none if the folder is not an index or has another prefix."""
    live: Path | None = None
    try:
        live = versions.live()
    except Refused:
        return
    except InvalidInput:
        pass
    kept_folders: list[Path] = []
    with suppress(LuceneError):
        kept_folders = (
            [versions.folder / segment for segment in IndexManifest.read(live).kept] if live else []
        )
    for folder in versions.all():
        if folder in kept_folders:
            continue  # its segment is part of the live version
        info: IndexInfo | None = None
        with suppress(InvalidInput, Refused):
            manifest = IndexManifest.read(folder)
            manifest.segments()
            info = _info(manifest)
        if info is not None and info.name != name:
            return
        if folder == live:
            state = VersionState.unreadable if info is None else VersionState.live
        else:
            state = VersionState.building if versions.is_being_built() else VersionState.leftover
        folders = [folder, *kept_folders] if folder == live else [folder]
        try:
            size = sum(
                file.stat().st_size for path in folders for file in path.rglob("*") if not file.is_dir()
            )
        except FileNotFoundError:
            continue  # removed concurrently
        version = f"{versions.folder.name}-{folder.name}"
        yield StoredVersion(name, version, state, info, size, records_name=info is not None)


def _log_plan(version: str, plan: SegmentPlan) -> None:
    _log.info(
        "%s: %d documents are reused, %d are removed, %d are analyzed; %s what %s has",
        version,
        plan.documents,
        plan.left_out,
        plan.analyzed,
        "a small part is written beside" if plan.kept else "all is merged with",
        plan.manifest.version,
    )


def _describe(name: str, version: str, spec: IndexSpec) -> IndexInfo:
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
