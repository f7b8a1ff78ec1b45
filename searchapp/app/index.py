"""Indexes a task's documents: reads and checks them, then builds an index unless the same one serves already."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from searchapp.digests import DocumentsDigest, digest_json
from searchapp.engines.base import Engine, Index, IndexInfo, IndexSpec
from searchapp.engines.changes import Carried, Comparison
from searchapp.errors import BeingBuilt, Damaged, DataError, EngineBusy, EngineRefused, Replaced, UsageError
from searchapp.formats.problems import Problems
from searchapp.model import Document
from searchapp.progress import Advance, Progress
from searchapp.settings import SERVER
from searchapp.tasks.base import Collection, Task

T = TypeVar("T")

FORMAT = 1
"""Part of every index digest: raised when the same inputs shall give another index."""

PATIENCE_SECONDS = 60.0
"""How long a process waits for another one that builds the same index."""

PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class ServingIndex:
    """An index that serves now, and whether it is new.

    Of a new one's documents so many were `carried` over from the version before; `note` says why none were that
    should have been, as a sentence.
    """

    info: IndexInfo
    built: bool
    carried: int = 0
    note: str = ""

    @property
    def analyzed(self) -> int:
        """How many documents were analyzed for it."""
        return self.info.documents - self.carried if self.built else 0


@dataclass(frozen=True, slots=True)
class IndexOutcome:
    """What indexing came to: the indexes that serve now, the largest first, and what was left out of them.

    `missing` are the files of topics and gold that the folder lacks, `removed` indexes of files that it has no more.
    """

    indexes: tuple[ServingIndex, ...]
    problems: Problems
    missing: tuple[Path, ...]
    removed: tuple[str, ...] = ()

    @property
    def info(self) -> IndexInfo:
        """The index with all documents."""
        return self.indexes[0].info

    @property
    def built(self) -> bool:
        """Whether any index is new."""
        return any(index.built for index in self.indexes)


def index_task(
    task: Task,
    engine: Engine,
    collection: Collection,
    progress: Progress,
    *,
    shards: int | None = None,
    replicas: int | None = None,
    rebuild: bool = False,
    lenient: bool = False,
) -> IndexOutcome:
    """Make the indexes of a task serve the documents of a collection.

    Everything in its folder is read and checked before a server is asked for anything: with invalid files
    nothing is indexed. An index of the same mapping, documents and shards is left alone unless `rebuild`, or unless
    it does not hold what it was built from; one of splits that the folder does not have is removed. Where the engine
    can, and without `rebuild`, a new version takes over the documents that have not changed. Without `shards`
    an index that is there keeps those it has, and a new one gets as many as fit it; without `replicas` it keeps those
    it has, and a new one gets one where there is a second node.

    Raises:
        UsageError: the index of that name was made for another task file, and `rebuild` is not set; or the engine has
            no shards.
        InvalidFiles: the data has problems, and `lenient` is not set.
        DataError: there is not one document.
        EngineError: the engine failed; the index before it still serves.
    """
    if not engine.has_shards and ((shards or 1) > 1 or replicas):
        given = "shards" if (shards or 1) > 1 else "replicas"
        where = engine.info()
        raise UsageError(
            f"{where.location} chooses {given} by itself: leave out --{given}"
            if where.name == SERVER
            else f"the {where.name} engine has no {given}: leave out --{given}, or choose --engine elasticsearch"
        )
    problems = Problems(lenient=lenient)
    names = _names(task, collection)
    mapping = task.index_mapping()
    comparisons = {} if rebuild else {name: engine.compare(name, mapping) for name in names}
    seen = _read_all(task, collection, comparisons, names, problems, progress)
    problems.raise_if_any(lenient_advice(problems))
    if not all(documents.count for documents in seen.values()):
        raise DataError(
            f"{collection.folder} has no document that could be indexed: what is indexed already stays"
        )
    serving = {name: engine.index_info(name) for name in task.info.index_names}
    for info in serving.values():
        if info is not None and info.owner != owner_of(task) and not rebuild:
            raise UsageError(
                f"{info.version} {_of_another(task, info)}: rename one of the two, or replace the "
                "index with --rebuild"
            )
    indexes = []
    for name, documents in seen.items():
        digest = index_digest(mapping, documents)
        info = serving[name]
        unchanged = info is not None and info.digest == digest and shards in (None, info.shards)
        if info is not None and unchanged and not rebuild and not engine.flaw(name):
            if replicas is not None:
                engine.replicate(name, replicas)
            indexes.append(ServingIndex(info, built=False))
            continue
        spec = IndexSpec(
            mapping,
            documents.count,
            digest,
            documents.hexdigest(),
            shards or engine.shards_for(documents.count),
            owner_of(task),
            replicas,
        )
        # Asked for again instead of kept: the documents of a large collection need not fit into memory.
        again = _Again(collection, name, documents)
        comparison = comparisons.pop(name, None)  # it holds a digest of each document
        carried = comparison.carried() if comparison else None
        indexes.append(build(engine, name, spec, info, again, "indexing", progress, carried))
    removed = tuple(name for name, info in serving.items() if info is not None and name not in seen)
    for name in removed:
        engine.remove(name)
    return IndexOutcome(tuple(indexes), problems, missing_files(task, collection), removed)


def index_digest(mapping: Mapping[str, Any], documents: DocumentsDigest) -> str:
    """The digest of the index that a mapping and documents make."""
    return digest_json({"format": FORMAT, "mapping": mapping, "documents": documents.hexdigest()})


def build(
    engine: Engine,
    name: str,
    spec: IndexSpec,
    before: IndexInfo | None,
    documents: Iterable[Document],
    label: str,
    progress: Progress,
    carried: Carried | None = None,
) -> ServingIndex:
    """Build an index, which waits for another process that is at it.

    What another one has built since `before` served is taken if it is the same. If nothing can be `carried` over after
    all, because that version is damaged or has been replaced, the index is built from all documents.

    Raises:
        BeingBuilt: the other process takes longer than `PATIENCE_SECONDS`.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    note = ""
    while True:
        serving = engine.index_info(name)
        wanted = spec.digest, spec.shards, spec.owner
        made = serving and serving != before and (serving.digest, serving.shards, serving.owner) == wanted
        if serving and made and not engine.flaw(name):
            return ServingIndex(serving, built=False)
        try:
            with progress.stage(label, spec.documents) as advance:
                info = engine.build(name, spec, documents, advance, carried)
            return ServingIndex(info, built=True, carried=carried.documents if carried else 0, note=note)
        except (Damaged, Replaced) as error:
            if carried is None:
                raise
            note = f"no document could be taken over, all were analyzed: {_why_none(error)}"
            carried = None
        except BeingBuilt as busy:
            if time.monotonic() > until:
                raise
            with progress.stage(f"waiting for process {busy.builder}"):
                time.sleep(PAUSE_SECONDS)


def _why_none(error: Damaged | Replaced) -> str:
    if isinstance(error, Damaged):
        return f"the version before is damaged ({error.problem})"
    return "another version was made meanwhile"


def missing_files(task: Task, collection: Collection) -> tuple[Path, ...]:
    """The files of a task's topics and gold that a collection does not have."""
    files = (file for split in task.info.splits for file in collection.split_files(split))
    return tuple(file for file in dict.fromkeys(files) if not file.exists())


def _names(task: Task, collection: Collection) -> tuple[str, ...]:
    """The names of the indexes that a collection has documents for, the largest first."""
    there = {
        collection.index_of(split)
        for split in task.info.splits
        if any(file.exists() for file in collection.split_files(split))
    }
    return tuple(name for name in task.info.index_names if name in there) or (task.info.index_name,)


def _read_all(
    task: Task,
    collection: Collection,
    comparisons: Mapping[str, Comparison | None],
    names: Sequence[str],
    problems: Problems,
    progress: Progress,
) -> dict[str, DocumentsDigest]:
    """Read every file of the task that is there, for its problems; returns the digest of each index's documents.

    On the way they are compared with those that the index has, where there is a comparison.
    """
    seen = {name: DocumentsDigest() for name in names}
    with progress.stage("reading documents") as advance:
        for place, (name, digest) in enumerate(seen.items()):
            # The first index has all documents, so that the problems of the others are known already.
            documents = collection.indexes[name].read(Problems(lenient=True) if place else problems)
            if comparison := comparisons.get(name):
                documents = comparison.watch(documents)
            for _document in counted(digest.watch(documents), advance):
                pass
    with progress.stage("checking topics") as advance:
        # Splits that lie in the same files, such as folds, are checked once, by the first of them.
        splits = {tuple(collection.split_files(split)): split for split in reversed(task.info.splits)}
        for files, split in reversed(splits.items()):
            if any(file.exists() for file in files):
                advance(collection.check_split(split, problems))
    return seen


def lenient_advice(problems: Problems) -> str:
    """What helps with entries that have problems; nothing where a whole file can't be read."""
    return "" if problems.stopped else "--lenient leaves these entries out"


def open_index(task: Task, engine: Engine, name: str | None = None) -> Index:
    """An index of a task, if it was made with the mapping that the task's queries are written for.

    Without a `name` it is the one that people search.

    Raises:
        EngineRefused: there is no index, or it was made with another mapping or for another task file.
    """
    index = _opened(task, engine, task.info.index_names if name is None else (name,))
    if index.info.owner != owner_of(task):
        raise EngineRefused(
            f"{index.info.version} {_of_another(task, index.info)}: rename one of the two, and make "
            f"the index with `searchapp index {task.reference}`"
        )
    if index.info.mapping_digest != digest_json(task.index_mapping()):
        raise EngineRefused(
            f"{index.info.version} was made with another version of the mapping {task.info.mapping}: "
            f"build it again with `searchapp index {task.reference}`"
        )
    return index


def _opened(task: Task, engine: Engine, names: Sequence[str]) -> Index:
    """The first index of these names that there is.

    Raises:
        EngineRefused: there is none, or it must not rank.
    """
    name, *others = names
    try:
        return engine.open(
            name
        )  # what is wrong is looked for only where something is: a server may be far away
    except EngineBusy:
        raise
    except EngineRefused as error:
        is_there = engine.index_info(name) is not None
        if others and not is_there:
            return _opened(task, engine, others)
        raise _refused(task, engine, name, is_there, error) from error


def _refused(task: Task, engine: Engine, name: str, is_there: bool, error: EngineRefused) -> EngineRefused:
    """Why an index can't be opened, in the words of its task: the engine knows the index's name only."""
    if name == task.name:
        return error
    command = f"`searchapp index {task.reference}`"
    if not is_there:
        if name != task.info.index_name:
            return EngineRefused(
                f"there is no index {name}, which this split needs: make it with {command}, from a folder that has "
                "the split's files"
            )
        return EngineRefused(f"nothing of {task.name} is indexed yet: build it with {command}")
    if flaw := engine.flaw(name):
        return EngineRefused(f"{flaw}: build it again with `searchapp index {task.reference} --rebuild`")
    return error


def require_documents(task: Task, index: Index, collection: Collection) -> None:
    """Make sure that an index holds the documents of a collection that it should.

    Raises:
        DataError: it holds others.
    """
    seen = DocumentsDigest()
    for _document in seen.watch(collection.indexes[index.info.name].read(Problems(lenient=True))):
        pass
    if seen.hexdigest() != index.info.documents_digest:
        data = collection.folder
        raise DataError(
            f"{index.info.version} holds {index.info.documents:,} documents that are not the {seen.count:,} in "
            f"{data}: build it again with `searchapp index {task.reference} --data {data}`"
        )


def owner_of(task: Task) -> str:
    """Whose the index of a task is: the name of a shipped task says it, but names that people give may meet."""
    return "" if task.info.file is None else str(task.info.file.resolve())


def _of_another(task: Task, info: IndexInfo) -> str:
    return f"was made for the task {info.owner or task.name}, not for {task.reference}"


def counted(items: Iterator[T], advance: Advance) -> Iterator[T]:
    """The items as they come, each of which is one step of progress."""
    for item in items:
        advance(1)
        yield item


class _Again:
    """The documents of an index on their next reading; it ends with an error if they are not those of the first."""

    def __init__(self, collection: Collection, name: str, seen: DocumentsDigest) -> None:
        self._collection = collection
        self._name = name
        self._seen = seen

    def __iter__(self) -> Iterator[Document]:
        again = DocumentsDigest()
        documents = self._collection.indexes[self._name].read(Problems(lenient=True))
        yield from again.watch(documents)
        if again.hexdigest() != self._seen.hexdigest():
            raise DataError(
                f"the files in {self._collection.folder} changed while they were indexed: index again"
            )
