"""Index a task's documents and its training topics, and list the indexes of an engine."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from searchapp import tasks
from searchapp.config.settings import SERVER, Settings
from searchapp.engines import open_engine
from searchapp.engines.base import Engine, Index, IndexSpec, StoredVersion, VersionState
from searchapp.errors import (
    BeingBuilt,
    Damaged,
    DataError,
    EngineBusy,
    EngineRefused,
    OtherDocuments,
    Replaced,
    SearchappError,
    UsageError,
)
from searchapp.files import DocumentsDigest, data_name, digest_json
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.index_settings import NOT_INDEXED
from searchapp.model import Document, Example, IndexInfo
from searchapp.progress import Advance, Progress
from searchapp.tasks.base import Collection, Task
from searchapp.text import counted, suggestion

if TYPE_CHECKING:
    from searchapp.lucene.index.segments import CollectionDiff, SegmentPlan

T = TypeVar("T")

FORMAT = 1  # part of every index digest: raised when the same inputs give another index

PATIENCE_SECONDS = 60.0  # how long a process waits for another one that builds the same index

PAUSE_SECONDS = 0.2

BATCH_SIZE = 500  # documents that are compared with the indexed ones at a time


@dataclass(frozen=True, slots=True)
class ServingIndex:
    """An index that serves now."""

    info: IndexInfo
    built: bool  # whether it is new
    carried: int = 0  # how many documents were copied from the previous version
    note: str = ""  # why no document could be copied

    @property
    def analyzed(self) -> int:
        return self.info.documents - self.carried if self.built else 0


@dataclass(frozen=True, slots=True)
class IndexOutcome:
    """The result of indexing a task."""

    indexes: tuple[ServingIndex, ...]  # the largest first
    problems: Problems
    missing: tuple[Path, ...]  # files of topics and gold that the folder lacks
    removed: tuple[str, ...] = ()  # indexes whose files the folder lacks

    @property
    def info(self) -> IndexInfo:
        return self.indexes[0].info

    @property
    def built(self) -> bool:
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
    replace: bool = True,
    lenient: bool = False,
) -> IndexOutcome:
    """Make the indexes of a task serve the documents of a collection.

    All files are validated first: with invalid files nothing is indexed. A new version reuses unchanged documents of
    the previous one, if the engine can. Indexes of splits that the folder lacks are removed.

    Args:
        task: the task to index
        engine: the engine that builds the indexes
        collection: the documents and the problems of their files
        progress: receives the stages of the work
        shards: by default as in the present index, or as many as suit the documents
        replicas: by default as in the present index, or 1 if there is a second node
        rebuild: build an unchanged, undamaged index again, from all documents
        replace: allow that more than half of the documents change: judgments refer to them by id
        lenient: leave out invalid entries

    Raises:
        OtherDocuments: fewer than half of the indexed documents are unchanged, and `replace` is not set.
        UsageError: the index belongs to another task file, and `rebuild` is not set; or the engine has no shards.
        InvalidFiles: the data has problems, and `lenient` is not set.
        DataError: there are no documents.
        EngineError: the engine failed; the previous index still serves.
    """
    if not engine.has_shards and ((shards or 1) > 1 or replicas):
        given = "shards" if (shards or 1) > 1 else "replicas"
        where = engine.info()
        raise UsageError(
            f"{where.location} manages {given} itself: leave out --{given}"
            if where.name == SERVER
            else f"the {where.name} engine has no {given}: leave out --{given}, or choose --engine elasticsearch"
        )
    problems = Problems(lenient=lenient)
    if task.info.foreign is not None:
        _check_splits(task, collection, problems, progress)
        problems.raise_if_any(lenient_advice(problems))
        info = serving_info(task, engine, task.info.index_name)
        assert info is not None
        return IndexOutcome((ServingIndex(info, built=False),), problems, missing_files(task, collection))
    names = _names(task, collection)
    mapping = task.index_mapping()
    comparisons = {} if rebuild else {name: engine.compare(name, mapping) for name in names}
    digests = _read_all(task, collection, comparisons, names, problems, progress)
    problems.raise_if_any(lenient_advice(problems))
    if not all(documents.count for documents in digests.values()):
        raise DataError(f"{collection.folder} has no document to index; existing indexes are unchanged")
    serving = {name: engine.index_info(name) for name in task.info.index_names}
    for info in () if rebuild else serving.values():
        _require_owned(task, info)
    for name, documents in () if replace else digests.items():
        info = serving[name]
        if info and info.owner == owner_of(task) and info.documents_digest != documents.hexdigest():
            _require_similar(task, engine, info, collection, comparisons.get(name))
    indexes = []
    for name, documents in digests.items():
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
        # They are read again, because the documents of a large collection may not fit into memory.
        again = _SecondReading(collection, name, documents)
        comparison = comparisons.pop(name, None)  # frees its digests of all documents
        carried = comparison.carried() if comparison else None
        indexes.append(build(engine, name, spec, info, again, "indexing", progress, carried))
    removed = tuple(name for name, info in serving.items() if info is not None and name not in digests)
    for name in removed:
        engine.remove(name)
    return IndexOutcome(tuple(indexes), problems, missing_files(task, collection), removed)


def _require_similar(
    task: Task, engine: Engine, info: IndexInfo, collection: Collection, comparison: CollectionDiff | None
) -> None:
    """Check that at least half of an index's documents are unchanged.

    Raises:
        OtherDocuments: they are not.
    """
    if comparison is not None:
        unchanged = comparison.unchanged
    else:
        try:
            with closing(engine.open(info.name)) as index:
                unchanged = _unchanged_documents(index, collection)
        except (EngineRefused, DataError):
            return  # the index can't be read, so that replacing it loses nothing
    if 2 * unchanged < info.documents:
        raise OtherDocuments(
            f"the data in {collection.folder.absolute()} shares only {unchanged:,} of "
            f"{counted(info.documents, 'document')} with {info.version}",
            f"`searchapp index {task.reference} --replace` replaces the index with these documents",
        )


def _unchanged_documents(index: Index, collection: Collection) -> int:
    """Count the indexed documents that a collection has with the same text; stops at half of them."""
    from searchapp.ranking import paging  # slow to import

    documents = collection.indexes[index.info.name].read(Problems(lenient=True))
    unchanged = 0
    while 2 * unchanged < index.info.documents and (batch := list(islice(documents, BATCH_SIZE))):
        indexed = paging.sources(index, [document.id for document in batch])
        unchanged += sum(indexed.get(document.id, {}).get("text") == document.text for document in batch)
    return unchanged


def index_digest(mapping: Mapping[str, Any], documents: DocumentsDigest) -> str:
    """Return the digest of the index of a mapping and documents."""
    return digest_json({"format": FORMAT, "mapping": mapping, "documents": documents.hexdigest()})


def build(
    engine: Engine,
    name: str,
    spec: IndexSpec,
    before: IndexInfo | None,
    documents: Iterable[Document],
    label: str,
    progress: Progress,
    carried: SegmentPlan | None = None,
) -> ServingIndex:
    """Build an index, or use an equal one that another process has built since `before` served.

    Args:
        engine: the engine that builds the index
        name: the name of the index, without a version
        spec: mapping, settings and digests of the index
        before: the index that serves now, None without one
        documents: all documents, read once
        label: the words for its documents in the progress
        progress: receives the stages of the work
        carried: the documents to copy; if that fails, the index is built from all documents

    Raises:
        BeingBuilt: another process builds it for longer than `PATIENCE_SECONDS`.
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
            note = "all documents were analyzed again: " + (
                f"the previous version is damaged ({error.problem})"
                if isinstance(error, Damaged)
                else "another process built a newer version"
            )
            carried = None
        except BeingBuilt as busy:
            if time.monotonic() > until:
                raise
            with progress.stage(f"waiting for process {busy.builder}"):
                time.sleep(PAUSE_SECONDS)


def missing_files(task: Task, collection: Collection) -> tuple[Path, ...]:
    """Return the files of a task's topics and gold that a collection lacks."""
    files = (file for split in task.info.splits for file in collection.split_files(split))
    return tuple(file for file in dict.fromkeys(files) if not file.exists())


def _names(task: Task, collection: Collection) -> tuple[str, ...]:
    present = {
        collection.index_of(split)
        for split in task.info.splits
        if any(file.exists() for file in collection.split_files(split))
    }
    return tuple(name for name in task.info.index_names if name in present) or (task.info.index_name,)


def _read_all(
    task: Task,
    collection: Collection,
    comparisons: Mapping[str, CollectionDiff | None],
    names: Sequence[str],
    problems: Problems,
    progress: Progress,
) -> dict[str, DocumentsDigest]:
    """Read every file of the task for its problems; return the digest of each index's documents.

    `comparisons` compare the documents with the indexed ones meanwhile.
    """
    digests = {}
    with progress.stage("reading documents") as advance:
        for place, name in enumerate(names):
            # The first index has all documents, so that the problems of the others are known already.
            documents = collection.indexes[name].read(Problems(lenient=True) if place else problems)
            if comparison := comparisons.get(name):
                documents = comparison.watch(documents)
            digests[name] = digest_of(with_progress(documents, advance))
    _check_splits(task, collection, problems, progress)
    return digests


def _check_splits(task: Task, collection: Collection, problems: Problems, progress: Progress) -> None:
    with progress.stage("checking topics") as advance:
        # Splits with the same files, such as folds, are validated once, by the first of them.
        splits = {tuple(collection.split_files(split)): split for split in reversed(task.info.splits)}
        for files, split in reversed(splits.items()):
            if any(file.exists() for file in files):
                advance(collection.check_split(split, problems))


def copy_index(
    task: Task, source: Engine, target: Engine, progress: Progress, *, rebuild: bool = False
) -> IndexOutcome:
    """Copy the documents of another program's index into an engine, as an index of searchapp.

    Raises:
        UsageError: the task's documents are not in such an index, or can't be copied; or the copy belongs to another
            task file, and `rebuild` is not set.
        EngineError: an engine failed, or the target does not support the mapping.
    """
    foreign, name = task.info.foreign, task.info.index_name
    if foreign is None:
        raise UsageError(f"{task.reference} names no index of another program: leave out --copy")
    mapping = indexed_mapping(task)
    with closing(source.open_foreign(name, foreign, task.index_mapping())) as index:
        info = index.info
        digest = digest_json({"format": FORMAT, "mapping": mapping, "copied": info.digest})
        spec = IndexSpec(mapping, info.documents, digest, info.digest, owner=owner_of(task))
        before = target.index_info(name)
        if not rebuild:
            _require_owned(task, before)
            if before is not None and before.digest == digest and not target.flaw(name):
                return IndexOutcome((ServingIndex(before, built=False),), Problems(), ())
        made = build(target, name, spec, before, index.stored_documents(), "copying", progress)
    return IndexOutcome((made,), Problems(), ())


def lenient_advice(problems: Problems) -> str:
    """Return the advice for entries with problems; empty if a whole file can't be read."""
    return "" if problems.stopped else "--lenient leaves these entries out"


def _is_read_in_place(task: Task, engine: Engine, name: str) -> bool:
    """Return whether a task searches the index of another program, and not a copy on disk."""
    return task.info.foreign is not None and (engine.info().name == SERVER or engine.index_info(name) is None)


def indexed_mapping(task: Task) -> dict[str, Any]:
    """Return the mapping of the index that searchapp builds for a task, also of a copy of another program's index.

    Raises:
        UsageError: a field of the task's documents has the name of another field of the other program's index.
    """
    mapping, foreign = task.index_mapping(), task.info.foreign
    if foreign is None:
        return mapping
    properties = mapping["mappings"]["properties"]
    for name, paths in {"id": (foreign.id,), "text": foreign.text}.items():
        if name in properties and (name,) != paths:
            raise UsageError(
                f"{foreign.index} can't be copied: its field {name} is not the {name} of the task's documents"
            )
    for name, path in foreign.fields.items():
        if "." in name or (name in properties and name != path):
            raise UsageError(
                f"{foreign.index} can't be copied with the field {name}: choose a name that its mapping lacks in "
                f"{task.reference}, as in fields = {{ my_name = {path!r} }}"
            )
    stored = dict.fromkeys(("text", *foreign.fields), NOT_INDEXED)
    copied = {"id": {"type": "keyword"}, **stored, **properties}
    # The properties include the fields that documents have added to the other program's mapping.
    return {**mapping, "mappings": {**mapping["mappings"], "dynamic": False, "properties": copied}}


def mapping_digests(task: Task) -> set[str]:
    """Return the digests of the mappings that an index of a task may have now."""
    digests = {digest_json(task.index_mapping())}
    if task.info.foreign is not None:
        with suppress(UsageError):
            digests.add(digest_json(indexed_mapping(task)))
    return digests


def serving_info(task: Task, engine: Engine, name: str) -> IndexInfo | None:
    """Return the live version of an index of a task, None without one; for an own task on an index of another
    program, the present state of that.

    Raises:
        EngineError: the engine failed.
    """
    if _is_read_in_place(task, engine, name):
        assert task.info.foreign is not None
        return engine.foreign_info(name, task.info.foreign, task.index_mapping())
    return engine.index_info(name)


def open_index(task: Task, engine: Engine, name: str | None = None) -> Index:
    """Open an index of a task with the present mapping, by default the searched one.

    Raises:
        EngineRefused: there is no index, or it has another mapping or belongs to another task file.
    """
    index = _open_first(task, engine, task.info.index_names if name is None else (name,))
    if index.info.is_foreign:
        return index
    if index.info.owner != owner_of(task):
        raise EngineRefused(
            f"{index.info.version} {_of_another(task, index.info)}: rename one of the tasks, and build the "
            f"index with `searchapp index {task.reference}`"
        )
    if index.info.mapping_digest not in mapping_digests(task):
        raise EngineRefused(
            f"{index.info.version} was built with another version of the mapping {task.info.mapping}: "
            f"build it again with `searchapp index {task.reference}`"
        )
    return index


def replacement_news(info: IndexInfo, what: str) -> str:
    """Return a sentence on an index that `what`, such as hits, come from now."""
    if info.is_foreign:
        return (
            f"{info.version} was changed by another program: {what} now come from its present "
            f"{counted(info.documents, 'document')}"
        )
    return f"the index was rebuilt: {what} now come from {info.version}"


def _open_first(task: Task, engine: Engine, names: Sequence[str]) -> Index:
    """Open the first index of these names that exists.

    Raises:
        EngineRefused: there is none, or it must not rank.
    """
    name, *others = names
    if _is_read_in_place(task, engine, name):
        assert task.info.foreign is not None
        return engine.open_foreign(name, task.info.foreign, task.index_mapping())
    try:
        return engine.open(name)  # the cause of a failure is determined only then: a server may be far away
    except EngineBusy:
        raise
    except EngineRefused as error:
        exists = engine.index_info(name) is not None
        if others and not exists:
            return _open_first(task, engine, others)
        raise _refusal(task, engine, name, exists, error) from error


def _refusal(task: Task, engine: Engine, name: str, exists: bool, error: EngineRefused) -> EngineRefused:
    if name == task.name:
        return error
    command = f"`searchapp index {task.reference}`"
    if not exists:
        if name != task.info.index_name:
            return EngineRefused(
                f"this split needs the index {name}, which does not exist: build it with {command} from a "
                "folder with the split's files"
            )
        return EngineRefused(f"{task.name} is not indexed yet: build the index with {command}")
    if flaw := engine.flaw(name):
        return EngineRefused(f"{flaw}: build it again with `searchapp index {task.reference} --rebuild`")
    return error


def require_documents(task: Task, index: Index, collection: Collection) -> None:
    """Check that an index has the documents of a collection.

    Raises:
        DataError: it has others.
    """
    if task.info.foreign is not None:
        return
    digest = digest_of(collection.indexes[index.info.name].read(Problems(lenient=True)))
    if digest.hexdigest() != index.info.documents_digest:
        data = collection.folder
        replace_option = (
            "" if 2 * _unchanged_documents(index, collection) >= index.info.documents else " --replace"
        )
        raise DataError(
            f"{index.info.version} was built from other documents ({index.info.documents:,}) than those in "
            f"{data} ({digest.count:,}): build it again with `searchapp index {task.reference} "
            f"--data {data}{replace_option}`"
        )


def owner_of(task: Task) -> str:
    """Return the task file that owns the index of an own task: several files may use one name."""
    return "" if task.info.file is None else str(task.info.file.resolve())


def _require_owned(task: Task, info: IndexInfo | None) -> None:
    if info is not None and info.owner != owner_of(task):
        raise UsageError(
            f"{info.version} {_of_another(task, info)}: rename one of the tasks, or replace the index with --rebuild"
        )


def _of_another(task: Task, info: IndexInfo) -> str:
    return f"was made for the task {info.owner or task.name}, not for {task.reference}"


def with_progress(items: Iterable[T], advance: Advance) -> Iterator[T]:
    """Yield the items, each as one step of progress."""
    for item in items:
        advance(1)
        yield item


def digest_of(documents: Iterable[Document]) -> DocumentsDigest:
    """Return the digest of documents."""
    digest = DocumentsDigest()
    for _document in digest.watch(documents):
        pass
    return digest


@dataclass(frozen=True, slots=True)
class _SecondReading:
    collection: Collection
    name: str
    first: DocumentsDigest

    def __iter__(self) -> Iterator[Document]:
        source = self.collection.indexes[self.name]
        documents = source.read(Problems(lenient=True))
        if source.is_in_memory:
            yield from documents
            return
        digest = DocumentsDigest()
        yield from digest.watch(documents)
        if digest.hexdigest() != self.first.hexdigest():
            raise DataError(f"the files in {self.collection.folder} changed during indexing: index again")


def outcome_sentences(task: Task, collection: Collection, outcome: IndexOutcome) -> Iterator[str]:
    """Yield sentences on the serving indexes, removed ones, and splits that can't be ranked."""
    data = collection.folder
    for index in outcome.indexes:
        info = index.info
        if index.note:
            yield f"note: {index.note}"
        if info.is_foreign:
            yield (
                f"{task.name}: nothing to index: {info.version} with {counted(info.documents, 'document')} is "
                "searched as it is"
            )
        elif index.built:
            parts = f" ({index.carried:,} reused, {index.analyzed:,} analyzed)" if index.carried else ""
            yield (
                f"{task.name}: indexed {counted(info.documents, 'document')}{parts} into {info.version} (now live)"
            )
        else:
            yield (
                f"{task.name}: nothing has changed, {info.version} with "
                f"{counted(info.documents, 'document')} is still live"
            )
    for name in outcome.removed:
        yield f"{task.name}: removed the index {name}, because {data} has no files of its splits"
    if outcome.missing:
        names = ", ".join(data_name(data, file) for file in outcome.missing)
        lost = [
            split
            for split in task.info.splits
            if any(file in outcome.missing for file in collection.split_files(split))
        ]
        can_not = f"the {'split' if len(lost) == 1 else 'splits'} {', '.join(lost)} can't be ranked"
        if any(
            file in outcome.missing for split in task.info.splits for file in collection.example_files(split)
        ):
            can_not += ", and no split can be ranked with a recipe that learns from training topics"
        yield f"note: {data} has no {names}: {can_not}"


TRAINING_PREFIX = "training-"  # the prefix of the names of indexes of training topics

TRAINING_ATTEMPTS = 5  # how often training topics are indexed again that another process replaces at once


def index_examples(
    task: Task,
    engine: Engine,
    collection: Collection,
    split: str,
    progress: Progress,
    judged: Sequence[Example] = (),
    problems: Problems | None = None,
) -> tuple[Index, list[Example]]:
    """Return the training topics of a split and their index, rebuilt if it is out of date.

    Raises:
        as `read_examples` does.
        DataError: the task has no training topics.
        EngineError: the engine failed.
    """
    mapping = task.examples_index_mapping()
    if mapping is None:
        raise DataError(f"{task.reference} has no training topics: choose another recipe")
    examples = read_examples(task, collection, split, progress, judged, problems)
    documents = [Document(example.topic.id, example.topic.text, example.topic.fields) for example in examples]
    digest = digest_of(documents)
    name = examples_name(task.info.index_name, split, judged=bool(judged))
    spec = IndexSpec(
        mapping, digest.count, index_digest(mapping, digest), digest.hexdigest(), owner=owner_of(task)
    )
    # Another process may replace the index by one of other training topics at any moment.
    for _ in range(TRAINING_ATTEMPTS):
        serving = engine.index_info(name)
        if serving is None or serving.digest != spec.digest or engine.flaw(name):
            build(engine, name, spec, serving, documents, "indexing training topics", progress)
        index = engine.open(name)
        if index.info.digest == spec.digest:
            return index, examples
    raise EngineRefused(
        f"another process is ranking with other training topics in the index {name}: rank again when it ends"
    )


def read_examples(
    task: Task,
    collection: Collection,
    split: str,
    progress: Progress,
    judged: Sequence[Example] = (),
    problems: Problems | None = None,
) -> list[Example]:
    """Return the training topics of a split; the gold of `judged` ones takes precedence.

    Raises:
        InvalidFiles: the files have problems, and `problems`, which collects them, is not lenient.
        DataError: there are no training topics.
    """
    problems = Problems() if problems is None else problems
    with progress.stage("reading training topics") as advance:
        examples = list(with_progress(collection.examples(split, problems), advance))
    problems.raise_if_any(lenient_advice(problems))
    known = {example.topic.id: example for example in (*examples, *judged)}
    # A judged topic without a relevant document has no answer, and would only displace topics that have one.
    without = {example.topic.id for example in judged if not example.gold}
    examples = [example for topic, example in known.items() if topic not in without]
    if not examples:
        raise DataError(
            f"{collection.folder} has no training topics for {task.reference} {split}: choose another recipe"
        )
    return examples


def examples_name(task: str, split: str, *, judged: bool = False) -> str:
    """Return the name of the index of a split's training topics, with or without `judged` ones."""
    return f"{TRAINING_PREFIX}{task}-{split.lower()}" + ("-judged" if judged else "")


# Part of the name of a variant's index with its own mappings, see `tasks.own.variant`.
_VARIED = re.compile(r"-m[0-9a-f]{8}(-|$)")


@dataclass(frozen=True, slots=True)
class OwnTask:
    """An own task that has an index."""

    name: str
    file: Path  # its file, which may be gone
    documents: int


def stored_versions(engine: Engine) -> list[StoredVersion]:
    """Return every version of every index of the engine's prefix, by name and version."""
    # The prefix of an index that does not record its name may be a longer one.
    return [version for version in engine.stored() if version.records_name or _is_ours(version.name)]


def task_of(version: StoredVersion) -> str:
    """Return the name of an index's task, followed by the split for training topics of an own task."""
    name = version.name.removeprefix(TRAINING_PREFIX)
    return _shipped_task(name) or name.removeprefix(tasks.OWN)


def remedy(name: str, owner: str = "") -> str:
    """Return the remedy for a damaged index, as the end of a sentence; `owner` is the file of an own task."""
    if name.startswith(TRAINING_PREFIX):
        return "`searchapp rank` builds it again when needed"
    if _VARIED.search(name):
        return (
            "build it again with `searchapp index FILE --rebuild`, where FILE is the variant's task file, "
            f"or remove {name}"
        )
    return f"build it again with `searchapp index {owner or _shipped_task(name) or name} --rebuild`"


def own_tasks(stored: Iterable[StoredVersion]) -> list[OwnTask]:
    """Return the own tasks whose documents are indexed, by name."""
    return [
        OwnTask(task_of(version), Path(version.info.owner), version.info.documents)
        for version in stored
        if version.state is VersionState.live and version.info and version.info.owner
        if not version.name.startswith(TRAINING_PREFIX) and not _VARIED.search(version.name)
    ]


def reference(settings: Settings, task: str) -> str:
    """Return the file of an indexed own task for its name; return everything else unchanged."""
    if task in tasks.shipped_names() or Path(task).is_file():
        return task
    from searchapp.tasks.own import task_file  # slow to import

    if task_file.name_problem(task):
        return task
    try:
        with closing(open_engine(settings)) as engine:
            info = engine.index_info(f"{tasks.OWN}{task}")
    except SearchappError:
        return task
    return info.owner if info and info.owner else task


def named(stored: Iterable[StoredVersion], names: Sequence[str]) -> dict[str, list[StoredVersion]]:
    """Return the versions of the named indexes; the name of an own task means the index of its documents.

    Raises:
        UsageError: there is no index of such a name.
    """
    versions: dict[str, list[StoredVersion]] = {}
    for version in stored:
        versions.setdefault(version.name, []).append(version)
    full = [name if name in versions else f"{tasks.OWN}{name}" for name in names]
    for name, index in zip(names, full, strict=True):
        if index not in versions:
            known = f"choose from {', '.join(versions)}" if versions else "no index exists yet"
            raise UsageError(f"searchapp has no index {name!r}{suggestion(name, versions)}: {known}")
    return {name: versions[name] for name in dict.fromkeys(full)}


def _is_ours(name: str) -> bool:
    inner = name.removeprefix(TRAINING_PREFIX)
    own = inner.removeprefix(tasks.OWN)
    return _shipped_task(inner) is not None or (own != inner and _shipped_task(own) is None)


def _shipped_task(name: str) -> str | None:
    matches = [task for task in tasks.shipped_names() if name == task or name.startswith(f"{task}-")]
    return max(matches, key=len, default=None)
