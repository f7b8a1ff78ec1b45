"""Indexes a task's documents: reads and checks them, then builds an index unless the same one serves already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from searchapp.digests import DocumentsDigest, digest_json
from searchapp.engines.base import Engine, Index, IndexInfo, IndexSpec
from searchapp.errors import DataError, EngineRefused, UsageError
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example
from searchapp.progress import Advance, Progress
from searchapp.tasks.base import Collection, Task

T = TypeVar("T")

EXAMPLES = "examples-"
"""How the names of the indexes of solved topics begin."""

FORMAT = 1
"""Part of every index digest: raised when the same inputs shall give another index."""


@dataclass(frozen=True, slots=True)
class ServingIndex:
    """An index that serves now, and whether it is new."""

    info: IndexInfo
    built: bool


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
    shards: int = 1,
    rebuild: bool = False,
    lenient: bool = False,
) -> IndexOutcome:
    """Make the indexes of a task serve the documents of a collection.

    Everything in its folder is read and checked before the engine is asked for anything: with invalid files
    nothing is indexed. An index of the same mapping, documents and shards is left alone unless `rebuild`; one of
    splits that the folder does not have is removed.

    Raises:
        UsageError: the index of that name was made for another task file, and `rebuild` is not set.
        InvalidFiles: the data has problems, and `lenient` is not set.
        DataError: there is not one document.
        EngineError: the engine failed; what served before still serves.
    """
    if shards > 1 and engine.info().name == "embedded":
        raise UsageError(
            "the embedded engine has no shards: leave out --shards, or choose --engine elasticsearch"
        )
    problems = Problems(lenient=lenient)
    names = _names(task, collection)
    seen = _read_all(task, collection, names, problems, progress)
    problems.raise_if_any(lenient_advice(problems))
    if not all(documents.count for documents in seen.values()):
        raise DataError(
            f"{collection.folder} has no document that could be indexed: what is indexed already stays"
        )
    mapping = task.index_mapping()
    serving = {name: engine.index_info(name) for name in task.info.index_names}
    for info in serving.values():
        if info is not None and info.owner != _owner(task) and not rebuild:
            raise UsageError(
                f"{info.version} {_of_another(task, info)}: give one of the two another name, or put this one in "
                "its place with --rebuild"
            )
    indexes = []
    for name, documents in seen.items():
        digest = digest_json({"format": FORMAT, "mapping": mapping, "documents": documents.hexdigest()})
        info = serving[name]
        if info is not None and (info.digest, info.shards) == (digest, shards) and not rebuild:
            indexes.append(ServingIndex(info, built=False))
            continue
        spec = IndexSpec(mapping, documents.count, digest, documents.hexdigest(), shards, _owner(task))
        with progress.stage("indexing", documents.count) as advance:
            # Asked for again instead of kept: the documents of a large collection need not fit into memory.
            read = collection.indexes[name].read(Problems(lenient=True))
            again = _unchanged(read, documents, collection.folder)
            indexes.append(ServingIndex(engine.build(name, spec, again, advance), built=True))
    removed = tuple(name for name, info in serving.items() if info is not None and name not in seen)
    for name in removed:
        engine.remove(name)
    return IndexOutcome(tuple(indexes), problems, missing_files(task, collection), removed)


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
    task: Task, collection: Collection, names: Sequence[str], problems: Problems, progress: Progress
) -> dict[str, DocumentsDigest]:
    """Read every file of the task that is there, for its problems; returns the digest of each index's documents."""
    seen = {name: DocumentsDigest() for name in names}
    with progress.stage("reading documents") as advance:
        for place, (name, digest) in enumerate(seen.items()):
            # The first index has all documents, so that the problems of the others are known already.
            documents = collection.indexes[name].read(Problems(lenient=True) if place else problems)
            for _document in _counted(digest.watch(documents), advance):
                pass
    with progress.stage("checking topics") as advance:
        # Splits that lie in the same files, such as folds, are checked once, by the first of them.
        splits = {tuple(collection.split_files(split)): split for split in reversed(task.info.splits)}
        for files, split in reversed(splits.items()):
            if any(file.exists() for file in files):
                advance(collection.check_split(split, problems))
    return seen


def index_examples(
    task: Task,
    engine: Engine,
    collection: Collection,
    split: str,
    progress: Progress,
    judged: Sequence[Example] = (),
    problems: Problems | None = None,
) -> tuple[Index, list[Example]]:
    """The solved topics that a split's topics may be ranked by, and an index of them, made anew if need be.

    `judged` topics count as solved ones; what people say of a topic goes before the gold.

    Raises:
        InvalidFiles: the files of the solved topics have problems, and `problems`, to which they go, is not lenient.
        DataError: there is not one solved topic, or the task has none at all.
        EngineError: the engine failed.
    """
    mapping = task.examples_index_mapping()
    if mapping is None:
        raise DataError(f"{task.reference} has no solved topics to rank by: choose another recipe")
    examples = read_examples(task, collection, split, progress, judged, problems)
    documents = [Document(one.topic.id, one.topic.text, one.topic.fields) for one in examples]
    seen = DocumentsDigest()
    for _document in seen.watch(documents):
        pass
    digest = digest_json({"format": FORMAT, "mapping": mapping, "documents": seen.hexdigest()})
    name = examples_name(task.info.index_name, split, judged=bool(judged))
    serving = engine.index_info(name)
    if serving is None or serving.digest != digest:
        with progress.stage("indexing solved topics", seen.count) as advance:
            spec = IndexSpec(mapping, seen.count, digest, seen.hexdigest(), owner=_owner(task))
            engine.build(name, spec, documents, advance)
    return engine.open(name), examples


def read_examples(
    task: Task,
    collection: Collection,
    split: str,
    progress: Progress,
    judged: Sequence[Example] = (),
    problems: Problems | None = None,
) -> list[Example]:
    """The solved topics that a split's topics may be ranked by, with the `judged` ones in place of their gold.

    Raises:
        InvalidFiles: the files of the solved topics have problems, and `problems`, to which they go, is not lenient.
        DataError: there is not one solved topic.
    """
    problems = Problems() if problems is None else problems
    with progress.stage("reading solved topics") as advance:
        examples = list(_counted(collection.examples(split, problems), advance))
    problems.raise_if_any(lenient_advice(problems))
    known = {one.topic.id: one for one in examples} | {one.topic.id: one for one in judged}
    # Where people found nothing relevant there is no answer, and the topic would only keep out others that have one.
    without = {one.topic.id for one in judged if not one.gold}
    examples = [one for topic, one in known.items() if topic not in without]
    if not examples:
        raise DataError(
            f"{collection.folder} has no solved topics for {task.reference} {split}: choose another recipe"
        )
    return examples


def lenient_advice(problems: Problems) -> str:
    """What helps with entries that have problems; nothing where a whole file can't be read."""
    return "" if problems.stopped else "--lenient leaves these entries out"


def examples_name(task: str, split: str, *, judged: bool = False) -> str:
    """The name of the index of the solved topics for a split; with `judged` topics it is another one."""
    return f"{EXAMPLES}{task}-{split.lower()}" + ("-judged" if judged else "")


def open_index(task: Task, engine: Engine, name: str | None = None) -> Index:
    """An index of a task, if it was made with the mapping that the task's queries are written for.

    Without a `name` it is the one that people search.

    Raises:
        EngineRefused: there is no index, or it was made with another mapping or for another task file.
    """
    if name is None:
        *larger, _last = task.info.index_names
        name = next((one for one in larger if engine.index_info(one)), task.info.index_name)
    if name != task.name and engine.index_info(name) is None:  # the engine knows the index's name only
        command = f"`searchapp index {task.reference}`"
        if name != task.info.index_name:
            raise EngineRefused(
                f"there is no index {name}, which this split needs: make it with {command}, from a folder that has "
                "the split's files"
            )
        raise EngineRefused(f"nothing of {task.name} is indexed yet: make its index with {command}")
    index = engine.open(name)
    if index.info.owner != _owner(task):
        raise EngineRefused(
            f"{index.info.version} {_of_another(task, index.info)}: give one of the two another name, and make "
            f"the index with `searchapp index {task.reference}`"
        )
    if index.info.mapping_digest != digest_json(task.index_mapping()):
        raise EngineRefused(
            f"{index.info.version} was made with another version of the mapping {task.info.mapping}: "
            f"make it anew with `searchapp index {task.reference}`"
        )
    return index


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
            f"{data}: make it anew with `searchapp index {task.reference} --data {data}`"
        )


def _owner(task: Task) -> str:
    """Whose the index of a task is: the name of a shipped task says it, but names that people give may meet."""
    return "" if task.info.file is None else str(task.info.file.resolve())


def _of_another(task: Task, info: IndexInfo) -> str:
    return f"was made for the task {info.owner or task.name}, not for {task.reference}"


def _counted(items: Iterator[T], advance: Advance) -> Iterator[T]:
    for item in items:
        advance(1)
        yield item


def _unchanged(documents: Iterator[Document], seen: DocumentsDigest, data: Path) -> Iterator[Document]:
    """The documents on their second reading; ends with an error if they are not those of the first."""
    again = DocumentsDigest()
    yield from again.watch(documents)
    if again.hexdigest() != seen.hexdigest():
        raise DataError(f"the files in {data} changed while they were indexed: index again")
