"""The embedded engine, which needs no server: the protocols of `engines.base` on the indexes of `searchapp.lucene`.

Indexes are folders in the home folder. Unsupported mappings and queries are rejected with an error that names them.
"""

from __future__ import annotations

import glob
import logging
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from searchapp import __version__, processes
from searchapp.config.settings import INDEXES, Settings
from searchapp.engines.base import (
    BEST_FIRST,
    NO_TERMS,
    EngineInfo,
    Index,
    IndexSpec,
    SearchHit,
    StoredVersion,
    Terms,
    VersionState,
    require_not_cancelled,
    search_one_by_one,
)
from searchapp.errors import (
    BeingBuilt,
    Damaged,
    DataError,
    EngineRefused,
    QueryRefused,
    Replaced,
    SearchappError,
    UsageError,
)
from searchapp.files import digest_json, reason
from searchapp.lucene import native
from searchapp.lucene.analysis import AnalysisRegistry, Analyzer
from searchapp.lucene.errors import (
    CorruptIndex,
    IndexLocked,
    IndexReplaced,
    InvalidInput,
    LuceneError,
    NotSupported,
    Refused,
    UnreadableFile,
    invalid,
    restored,
    unsupported,
)
from searchapp.lucene.index.index_settings import without_similarities
from searchapp.lucene.index.layout import IndexManifest
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import DirectoryReader, Numbers, by_segment
from searchapp.lucene.index.segments import CollectionDiff, SegmentPlan
from searchapp.lucene.index.versions import CURRENT, IndexFolder
from searchapp.lucene.index.writer import IndexWriter, read_mapping
from searchapp.lucene.queries.dsl import readers
from searchapp.lucene.queries.query import Parser, Query
from searchapp.lucene.search.highlight import Emitted, Highlighter
from searchapp.lucene.search.request import BodyReader, Request
from searchapp.lucene.search.searcher import Searcher, counts
from searchapp.lucene.search.topk import Answer, Memory, Packed, finite_scores, packed, unpacked
from searchapp.lucene.similarity import Float32s
from searchapp.model import AnalysisStep, Body, Counts, Document, Explanation, Hits, IndexInfo
from searchapp.progress import Advance, Notify, Progress, no_notice, no_progress

_log = logging.getLogger("searchapp.requests")

BATCH_BODIES = 64
"""Topics whose terms are gathered together."""

TOGETHER = 8
"""Of fewer topics each is scored by itself."""

LARGE, BATCH_OF_LARGE = 200_000, 8
"""From so many documents on a batch has so many: a topic takes so long that gathering terms gains nothing."""

MANY_TO_SCORE = 200_000
"""From so many documents on, users are told that there are no compiled functions: all documents are scored then."""

FEW_BATCHES = 8
"""Fewer batches of changed documents are analyzed in this process: forking it, with all documents, takes longer."""

FIRST_OF_LARGE = 64
"""Topics there from which on the start of processes pays; what these have in common is prepared for the processes."""


TRANSLATIONS: Sequence[tuple[type[LuceneError], type[SearchappError]]] = (
    (CorruptIndex, Damaged),
    (InvalidInput, DataError),
    (NotSupported, UsageError),
    (IndexLocked, BeingBuilt),
    (IndexReplaced, Replaced),
    (Refused, EngineRefused),
)
"""The errors of searchapp for those of the search library; the first class that fits counts."""


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise errors of the search library as errors of searchapp, with the same message and attributes."""
    try:
        yield
    except UnreadableFile as error:
        assert isinstance(error.__cause__, OSError | sqlite3.Error)
        cause = error.__cause__
        why = reason(cause) if isinstance(cause, OSError) else str(cause)
        raise SearchappError(f"{error.path} can't be read: {why}") from cause
    except LuceneError as error:
        kind = next(kind for lucene_kind, kind in TRANSLATIONS if isinstance(error, lucene_kind))
        translated = restored(kind, error.args, vars(error))
        raise translated from error


class EmbeddedIndex:
    """An `Index` whose files this process has open, from which it answers even after a newer version serves."""

    is_at_hand = True

    def __init__(
        self, reader: DirectoryReader, analyzers: AnalysisRegistry, memory: Memory | None = None
    ) -> None:
        self._reader = reader
        self._memory = memory
        self._analyzers = analyzers
        self._bodies = BodyReader(Parser(reader.parts[0], analyzers, readers()))
        self._searchers = [Searcher(part) for part in reader.parts]
        self._emitted = Emitted(analyzers)
        self.is_closed = False

    @property
    def info(self) -> IndexInfo:
        return _info(self._reader.manifest)

    def search(self, bodies: Iterable[Body], advance: Advance = no_progress) -> Iterator[Hits]:
        if self._memory is not None:
            yield from self._remembered(list(bodies), self._memory, advance)
            return
        done = 0
        try:
            for answers in self._searched(bodies):
                with translated_errors():
                    hits = [self._hits(documents, scores) for documents, scores in answers]
                yield from hits
                done += len(answers)
                advance(len(answers))
        except QueryRefused as error:
            raise QueryRefused.of(error, done + error.place) from error

    def _remembered(self, bodies: Sequence[Body], memory: Memory, advance: Advance) -> Iterator[Hits]:
        """The hits of bodies, of which only those are searched that have not been before, and each once."""
        keys = memory.keys(bodies)
        # What is new is settled here: others may ask the same index while these hits are drawn.
        first: dict[bytes, int] = {}
        for place, key in enumerate(keys):
            if memory.get(key) is None:
                first.setdefault(key, place)
        new = list(first.values())
        repeated = {key for key, count in Counter(keys).items() if count > 1}
        held: dict[bytes, Answer] = {}
        searched = chain.from_iterable(self._searched(bodies[place] for place in new))
        done = 0
        for place, key in enumerate(keys):
            if first.get(key) == place:
                try:
                    answer = next(searched)
                except QueryRefused as error:  # by its place in the batch, which begins with what comes next
                    raise QueryRefused.of(error, new[done + error.place]) from error
                done += 1
                memory.put(key, answer)
                if key in repeated:
                    held[key] = answer
            else:
                known = held.get(key) or memory.get(key)
                assert known is not None  # it was there before, or is the answer of an earlier place
                answer = known
            yield self._hits(*answer)
            advance(1)

    def search_beside(self, asked: Sequence[tuple[Index, Body]]) -> list[Hits]:
        return search_one_by_one(asked)

    def _searched(self, bodies: Iterable[Body]) -> Iterator[list[Answer]]:
        """The answers to the bodies, by batches."""
        waiting = iter(bodies)
        worth_it = processes.WORTH_IT
        if self._reader.count >= LARGE:
            first = list(islice(waiting, FIRST_OF_LARGE))
            waiting = chain(first, waiting)
            if len(first) == FIRST_OF_LARGE:
                self._prepare(first)
            worth_it = FIRST_OF_LARGE // BATCH_OF_LARGE
        batches = processes.in_batches(waiting, self._batch_size, max(TOGETHER, self._batch_size // 4))
        found = processes.map_in_processes(self._answers, batches, worth_it=worth_it, here=True)
        if self._reader.count < LARGE and native.library() is not None:
            # What the first batch makes of the index and the analyzers, processes that are forked later have. NumPy
            # makes rows of its terms besides, which takes it as long as two processes save.
            found = chain(map(self._answers, islice(batches, 1)), found)
        for sent, pruned, together in found:
            answers = unpacked(sent)
            self._tell(len(answers), pruned, together)
            yield answers

    @property
    def _batch_size(self) -> int:
        return BATCH_BODIES if self._reader.count < LARGE else BATCH_OF_LARGE

    @translated_errors()
    def _prepare(self, bodies: Sequence[Body]) -> None:
        """Have at hand what processes need that answer bodies like these; what is refused here is refused there."""
        require_not_cancelled()
        queries = []
        with self._damage_reported():
            for body in bodies:
                with suppress(Refused), finite_scores():
                    queries.append(self._bodies.ranked(body).query)
            for searcher in self._searchers:
                searcher.pruner.prepare(queries)

    @translated_errors()
    def _answers(self, bodies: Sequence[Body]) -> tuple[Packed, int, int]:
        """The best documents of each body of a batch; for how many of these not all documents were scored, and how many
        the compiled functions scored.

        What the others have in common is computed together.
        """
        require_not_cancelled()
        with self._damage_reported():
            requests: list[Request] = []
            with _next_is_named(requests):
                for body in bodies:
                    requests.append(self._bodies.ranked(body))
            alone = len(requests) < TOGETHER
            asked = requests if len(self._searchers) == 1 else [request.from_first() for request in requests]
            every = [searcher.found(asked, alone=alone) for searcher in self._searchers]
            answers: list[Answer] = []
            with _next_is_named(answers):
                for place, request in enumerate(requests):
                    answers.append(
                        self._merged(
                            request,
                            [
                                searcher.best(asked[place]) if (one := found[place]) is None else one
                                for searcher, (found, _pruned, _compiled) in zip(
                                    self._searchers, every, strict=True
                                )
                            ],
                        )
                    )
            _found, pruned, compiled = every[0]  # those of the base, which is nearly all
            return packed(answers), pruned, compiled

    def _merged(self, request: Request, answers: Sequence[Answer]) -> Answer:
        """The answer to a request from those that the segments give to it, see `Request.from_first`."""
        if len(answers) == 1:
            return answers[0]
        return self._reader.merge_rankings(answers, request.frame.first, request.frame.size)

    def _tell(self, answers: int, pruned: int, together: int = 0) -> None:
        """Say how a batch was searched, to those who want to know."""
        queries = "1 query" if answers == 1 else f"{answers} queries"
        compiled = f", {together} scored by compiled functions" if together else ""
        _log.info("%s: %s, %d of them pruned%s", self.info.version, queries, pruned, compiled)

    @translated_errors()
    def find(self, body: Body, terms: Terms = NO_TERMS) -> list[SearchHit]:  # noqa: ARG002  # each is known
        require_not_cancelled()
        with self._damage_reported(), finite_scores():
            request = self._bodies.read(body)
            frame = request.frame
            schema, query = self._reader.schema, request.query
            highlighter = None
            if frame.highlight is not None:
                highlighter = Highlighter(request.marked, frame.highlight, schema, self._emitted)
            documents, scores = self._best_again(request, repr(body.get("query")))
            hits = self._hits(documents, scores)
            sources = self._reader.sources_of(documents)
            explanations = self._explanations(query, documents) if frame.explain else {}
            return [
                SearchHit(
                    hit=hit,
                    source=frame.source.apply(source),
                    highlights=highlighter.highlights(source) if highlighter else {},
                    explanation=explanations.get(document),
                )
                for hit, document, source in zip(hits, documents.tolist(), sources, strict=True)
            ]

    def _explanations(self, query: Query, documents: Numbers) -> dict[int, Explanation]:
        """How a query comes to the scores of documents, by their numbers."""
        found: dict[int, Explanation] = {}
        parts = by_segment(documents, self._reader.parts)
        for searcher, (_part, places, numbers) in zip(self._searchers, parts, strict=True):
            explanations = searcher.explanations(query, numbers.tolist())
            found |= zip(documents[places].tolist(), explanations, strict=True)
        return found

    def page(self, body: Body, terms: Terms = NO_TERMS) -> tuple[list[SearchHit], int]:
        found = self.find(body, terms)
        frame = self._bodies.frame(body)
        is_all = frame.first == 0 and frame.after is None and len(found) < frame.size
        return found, len(found) if is_all else self.counts(body["query"], {}).total

    @translated_errors()
    def analyze(
        self, text: str, *, field: str | None = None, analyzer: str | None = None
    ) -> list[AnalysisStep]:
        if analyzer is not None:
            return self._analyzers.analyzer(analyzer).steps(text)
        return self._analyzer_of(field).steps(text)

    @translated_errors()
    def frequencies(self, terms: Terms) -> dict[str, dict[str, int]]:
        fields = {name: field for name, field in self._reader.fields.items() if not field.field.is_number}
        with self._damage_reported():
            return {
                name: {term: fields[name].document_frequency(term) if name in fields else 0 for term in some}
                for name, some in terms.items()
            }

    def unknown(self, terms: Terms) -> Terms:  # noqa: ARG002  # none is
        return NO_TERMS

    @translated_errors()
    def counts(self, query: Body, fields: Mapping[str, int]) -> Counts:
        require_not_cancelled()
        with self._damage_reported(), finite_scores():
            read = self._bodies.read({"query": query, "sort": BEST_FIRST}).query
            return counts([(one.reader, read.matching(one.rows)) for one in self._searchers], fields)

    @translated_errors()
    def twin(self) -> EmbeddedIndex:
        try:
            return EmbeddedIndex(self._reader.reopened(), self._analyzers)
        except InvalidInput:
            if self._reader.is_there:
                raise
            raise Replaced(self.info.version) from None

    def close(self) -> None:
        self.is_closed = True
        self._reader.close()

    @translated_errors()
    def verify(self) -> None:
        """Read every file and compare it with the digest it was written with.

        Raises:
            DataError: a file was altered.
            SearchappError: a file can't be read.
        """
        self._reader.verify()

    def _analyzer_of(self, name: str | None) -> Analyzer:
        if name is None:
            return self._analyzers.analyzer("standard")
        field = self._reader.schema.fields.get(name)
        if field is None:
            raise invalid(f"the index {self.info.name} has no field {name}")
        return self._analyzers.analyzer(field.analyzer or "keyword")

    def _best_again(self, request: Request, words: str) -> Answer:
        """The best documents of a query in these words; if all are scored, the scores are kept for its next hits."""
        asked = request if len(self._searchers) == 1 else request.from_first()
        is_new = not self._searchers[0].remembers(words)
        answers = [searcher.best_again(asked, words) for searcher in self._searchers]
        if is_new:
            pruned = int(answers[0][1])
            self._tell(1, pruned, pruned)
        return self._merged(request, [answer for answer, _pruned in answers])

    def _hits(self, documents: Numbers, scores: Float32s) -> Hits:
        return Hits(self._reader.ids_of(documents), scores.tolist())

    @contextmanager
    def _damage_reported(self) -> Iterator[None]:
        """Report an altered file as such: what it yields makes little sense, but must not end in a traceback."""
        try:
            yield
        except (IndexError, TypeError, ValueError, OverflowError, MemoryError, sqlite3.Error):
            if self._reader.is_there:
                self.verify()
            raise


@contextmanager
def _next_is_named(done: Sequence[object]) -> Iterator[None]:
    """Name the body of a batch that is refused: it is the next after those that are done."""
    try:
        with translated_errors(), finite_scores():
            yield
    except EngineRefused as error:
        raise QueryRefused.of(error, len(done)) from error


T = TypeVar("T")


class EmbeddedEngine:
    """An `Engine` whose index `name` is the folder `<home>/indexes/<prefix>-<name>`.

    Each index that it opens keeps the answers of what it has searched in so many bytes `remembered`.
    """

    has_shards = False

    def __init__(
        self,
        home: Path,
        prefix: str,
        remembered: int = 0,
        notify: Notify = no_notice,
    ) -> None:
        self._remembered = remembered
        self._notify = notify
        self._folder = home / INDEXES
        self._prefix = prefix
        self._open: list[EmbeddedIndex] = []

    @classmethod
    def at(cls, settings: Settings, remembered: int = 0, notify: Notify = no_notice) -> EmbeddedEngine:
        """The engine of the settings' home folder; nothing is made before an index is."""
        return cls(settings.home, settings.index_prefix, remembered=remembered, notify=notify)

    def info(self) -> EngineInfo:
        return EngineInfo("embedded", __version__, str(self._folder))

    @translated_errors()
    def index_info(self, name: str) -> IndexInfo | None:
        """The version that serves now, None when there is none or it is damaged and can only be built again.

        Raises:
            EngineRefused: it is another searchapp's.
            SearchappError: it can't be read at the moment.
        """

        def verified_info(folder: Path) -> IndexInfo:
            manifest = IndexManifest.read(folder)
            for segment in manifest.segments():
                segment.manifest.require_verified()
            return _info(manifest)

        try:
            return self._of_serving(name, verified_info)
        except InvalidInput:
            return None

    def names(self) -> list[str]:
        """The indexes that have a version to serve, sound or not, in order."""
        start = f"{self._prefix}-"
        folders = self._folder.glob(f"{glob.escape(start)}*") if self._folder.is_dir() else ()
        return sorted(folder.name.removeprefix(start) for folder in folders if (folder / CURRENT).exists())

    @translated_errors()
    def stored(self) -> list[StoredVersion]:
        start = f"{self._prefix}-"
        folders = sorted(self._folder.glob(f"{glob.escape(start)}*")) if self._folder.is_dir() else []
        return [
            version
            for folder in folders
            for version in _stored(folder.name.removeprefix(start), IndexFolder(folder))
        ]

    @translated_errors()
    def verify(self, name: str, progress: Progress) -> IndexInfo | None:
        """Read every file of the version that serves and compare it with its digest; None if none serves.

        Raises:
            DataError: a file is missing or altered.
            EngineRefused: it is another searchapp's.
            SearchappError: a file can't be read.
        """

        def verify(folder: Path) -> IndexInfo:
            manifest = IndexManifest.read(folder)
            segments = manifest.segments()
            size = sum(one.manifest.bytes for one in segments)
            with progress.stage(f"verifying {name}", size, in_bytes=True) as advance:
                for one in segments:
                    one.manifest.verify(advance)
            return _info(manifest)

        return self._of_serving(name, verify)

    def flaw(self, name: str) -> str:  # noqa: ARG002
        return ""  # files that were altered are found when they are opened

    def compare(self, name: str, mapping: Mapping[str, Any]) -> CollectionDiff | None:
        try:
            folder = self._versions(name).live()
            if folder is not None:
                return CollectionDiff.of(folder, mapping)
        except (LuceneError, OSError, ValueError, KeyError) as error:
            # That it must not rank is told by those who open it.
            problem = error.problem if isinstance(error, CorruptIndex) else error
            _log.info("%s: no document can be taken over, what serves can't be read: %s", name, problem)
        return None

    @translated_errors()
    def build(
        self,
        name: str,
        spec: IndexSpec,
        documents: Iterable[Document],
        advance: Advance = no_progress,
        carried: SegmentPlan | None = None,
    ) -> IndexInfo:
        versions = self._versions(name)
        before = versions.live_name()
        schema, analyzers = read_mapping(spec.mapping)
        if spec.shards != 1:
            raise unsupported(f"{spec.shards} shards, only 1")
        if carried and carried.version != before:
            raise Replaced(f"{versions.folder.name}-{carried.version}")
        try:
            with versions.building(before) as folder:
                info = _described(name, f"{versions.folder.name}-{folder.name}", spec)
                if carried:
                    _tell(info, carried)

                writer = IndexWriter(folder, spec.mapping, schema, analyzers, carried)
                spread = partial(
                    processes.map_in_processes, worth_it=FEW_BATCHES if carried else processes.WORTH_IT
                )
                writer.write(_read(documents), spec.documents, asdict(info), advance, spread)
        except OSError as error:
            raise SearchappError(
                f"{versions.folder} could not be written: {reason(error)}; what served before still serves"
            ) from error
        return info

    @translated_errors()
    def open(self, name: str) -> EmbeddedIndex:
        return self._opened(name, DirectoryReader)

    @translated_errors()
    def open_like(self, name: str, mapping: Mapping[str, Any]) -> EmbeddedIndex:
        """A handle that scores as if the index had been made with a mapping, which has other similarities.

        Nothing is written: lengths and frequencies are the same under all similarities.

        Raises:
            EngineRefused: there is no such index, or the mapping differs in more than similarities.
        """

        def read(folder: Path) -> DirectoryReader:
            manifest = IndexManifest.read(folder)
            if without_similarities(manifest.mapping) != without_similarities(mapping):
                raise EngineRefused(f"{folder} was made with another mapping, in more than its similarities")
            return DirectoryReader(folder, Schema.of(mapping), manifest)

        return self._opened(name, read)

    def _opened(self, name: str, read: Callable[[Path], DirectoryReader]) -> EmbeddedIndex:
        reader = self._of_serving(name, read)
        if reader is None:
            folder = self._versions(name).folder
            raise EngineRefused(f"there is no index in {folder}: make it with `searchapp index {name}`")
        self._warn_if_slow(reader.count)
        memory = Memory(self._remembered) if self._remembered else None
        index = EmbeddedIndex(reader, AnalysisRegistry(reader.schema.analysis), memory)
        # What is closed is let go, with the descriptors of its mapped files.
        self._open = [*(one for one in self._open if not one.is_closed), index]
        return index

    def _warn_if_slow(self, documents: int) -> None:
        """Notify once if an index is so large that the lack of compiled functions slows searches down."""
        lacking = native.lacking() if documents >= MANY_TO_SCORE else ""
        if lacking:
            notify, self._notify = self._notify, no_notice
            notify(
                f"searching {documents:,} documents takes several times as long without compiled functions: {lacking}"
            )

    def _of_serving(self, name: str, read: Callable[[Path], T]) -> T | None:
        return self._versions(name).read_live(read)

    def shards_for(self, documents: int) -> int:  # noqa: ARG002  # one is all there is
        return 1

    def replicate(self, name: str, replicas: int) -> None:
        if replicas:
            raise EngineRefused(f"{name} is kept on this machine's disk, without replicas")

    @translated_errors()
    def remove(self, name: str) -> None:
        self._versions(name).remove()

    def close(self) -> None:
        for index in self._open:
            index.close()
        self._open = []

    def _versions(self, name: str) -> IndexFolder:
        return IndexFolder(self._folder / f"{self._prefix}-{name}")


def _read(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents; a file of them that can't be read is not taken for one of the index."""
    try:
        yield from documents
    except OSError as error:
        raise SearchappError(f"{error.filename or 'the documents'} can't be read: {reason(error)}") from error


def _stored(name: str, versions: IndexFolder) -> Iterator[StoredVersion]:
    """The versions of an index; none if the folder is not that of an index, or of one with another prefix."""
    try:
        serving = versions.live()
    except Refused:
        return
    except InvalidInput:
        serving = None
    kept: list[Path] = []
    with suppress(LuceneError):
        kept = [versions.folder / name for name in IndexManifest.read(serving).kept] if serving else []
    for folder in versions.all():
        if folder in kept:
            continue  # its segment is one of the version that serves
        try:
            manifest = IndexManifest.read(folder)
            manifest.segments()
            info = _info(manifest)
        except (InvalidInput, Refused):
            info = None
        if info is not None and info.name != name:
            return
        if folder == serving:
            state = VersionState.unreadable if info is None else VersionState.serves
        else:
            state = VersionState.building if versions.is_being_built() else VersionState.leftover
        try:
            folders = [folder, *kept] if folder == serving else [folder]
            size = sum(file.stat().st_size for one in folders for file in one.rglob("*") if not file.is_dir())
        except FileNotFoundError:
            continue  # removed a moment ago
        version = f"{versions.folder.name}-{folder.name}"
        yield StoredVersion(name, version, state, info, size, says_name=info is not None)


def _tell(info: IndexInfo, carried: SegmentPlan) -> None:
    """Say what a new version is made of, to those who want to know."""
    how = "a small part is written beside" if carried.kept else "all is merged with"
    _log.info(
        "%s: %d documents are taken over, %d are left out, %d are analyzed; %s what %s has",
        info.version,
        carried.documents,
        carried.left_out,
        carried.analyzed,
        how,
        f"{info.version.rpartition('-')[0]}-{carried.version}",
    )


def _info(manifest: IndexManifest) -> IndexInfo:
    return IndexInfo(**manifest.user_data)


def _described(name: str, version: str, spec: IndexSpec) -> IndexInfo:
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


__all__ = ["EmbeddedEngine"]
