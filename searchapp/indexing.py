"""Indexes a task's documents: reads and checks them, then builds an index unless the same one serves already."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from searchapp.digests import DocumentsDigest, digest_json
from searchapp.engines.base import Advance, Engine, Index, IndexInfo, IndexSpec
from searchapp.errors import BeingBuilt, DataError, EngineRefused, UsageError
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example
from searchapp.progress import Progress
from searchapp.tasks.base import Task

T = TypeVar("T")

FORMAT = 1
"""Part of every index digest: raised when the same inputs shall give another index."""

PATIENCE_SECONDS = 60.0
"""How long a process waits for another one that builds the same index."""

PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class IndexOutcome:
    """What indexing came to: the index that serves now, whether it is new, and what was left out."""

    info: IndexInfo
    built: bool
    problems: Problems


def index_task(
    task: Task,
    engine: Engine,
    data: Path,
    progress: Progress,
    *,
    shards: int = 1,
    rebuild: bool = False,
    lenient: bool = False,
) -> IndexOutcome:
    """Make the index of a task serve the documents of the folder `data`.

    Everything in the folder is read and checked before the engine is asked for anything: with invalid files
    nothing is indexed. An index of the same mapping, documents and shards is left alone unless `rebuild`.

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
    seen = _read_all(task, data, problems, progress)
    problems.raise_if_any()
    if not seen.count:
        raise DataError(f"{data} has no document that could be indexed: what is indexed already stays")
    mapping = task.index_mapping()
    digest = digest_json({"format": FORMAT, "mapping": mapping, "documents": seen.hexdigest()})
    serving = engine.index_info(task.index_name)
    if serving is not None and serving.owner != _owner(task) and not rebuild:
        raise UsageError(
            f"{serving.version} {_of_another(task, serving)}: give one of the two another name, or put this one in "
            "its place with --rebuild"
        )
    if serving is not None and (serving.digest, serving.shards) == (digest, shards) and not rebuild:
        return IndexOutcome(serving, built=False, problems=problems)

    spec = IndexSpec(mapping, seen.count, digest, seen.hexdigest(), shards, _owner(task))

    def again() -> Iterator[Document]:
        # Read again instead of kept: the documents of a large collection need not fit into memory.
        return _unchanged(task.documents(data, Problems(lenient=True)), seen, data)

    info, built = _build(engine, task.index_name, spec, again, "indexing", progress)
    return IndexOutcome(info, built, problems)


def _build(
    engine: Engine,
    name: str,
    spec: IndexSpec,
    documents: Callable[[], Iterable[Document]],
    label: str,
    progress: Progress,
) -> tuple[IndexInfo, bool]:
    """Build an index, which waits for another process that is at it; returns it, and whether this process did it.

    What the other one has built meanwhile is taken if it is the same.

    Raises:
        BeingBuilt: the other process takes longer than `PATIENCE_SECONDS`.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    before = engine.index_info(name)
    while True:
        try:
            with progress.stage(label, spec.documents) as advance:
                return engine.build(name, spec, documents(), advance), True
        except BeingBuilt as busy:
            if time.monotonic() > until:
                raise
            with progress.stage(f"waiting for process {busy.builder}"):
                time.sleep(PAUSE_SECONDS)
        serving = engine.index_info(name)
        wanted = spec.digest, spec.shards, spec.owner
        if serving and serving != before and (serving.digest, serving.shards, serving.owner) == wanted:
            return serving, False


def _read_all(task: Task, data: Path, problems: Problems, progress: Progress) -> DocumentsDigest:
    """Read every file of the task that is there, for its problems; returns the digest of the documents."""
    seen = DocumentsDigest()
    with progress.stage("reading documents") as advance:
        for _document in _counted(seen.watch(task.documents(data, problems)), advance):
            pass
    with progress.stage("checking topics") as advance:
        # Splits that lie in the same files, such as folds, are checked once, by the first of them.
        splits = {tuple(task.split_files(data, split)): split for split in reversed(task.splits)}
        for files, split in reversed(splits.items()):
            if any(file.exists() for file in files):
                advance(task.check_split(data, split, problems))
    return seen


def index_examples(
    task: Task,
    engine: Engine,
    data: Path,
    split: str,
    progress: Progress,
    judged: Sequence[Example] = (),
) -> tuple[Index, list[Example]]:
    """The solved topics that a split's topics may be ranked by, and an index of them, made anew if need be.

    `judged` topics count as solved ones; what people say of a topic goes before the gold.

    Raises:
        InvalidFiles: the files of the solved topics have problems.
        DataError: there is not one solved topic, or the task has none at all.
        EngineError: the engine failed.
    """
    mapping = task.examples_index_mapping()
    if mapping is None:
        raise DataError(f"{task.reference} has no solved topics to rank by: choose another recipe")
    examples = read_examples(task, data, split, progress, judged)
    documents = [Document(one.topic.id, one.topic.text, one.topic.fields) for one in examples]
    seen = DocumentsDigest()
    for _document in seen.watch(documents):
        pass
    digest = digest_json({"format": FORMAT, "mapping": mapping, "documents": seen.hexdigest()})
    name = examples_name(task.index_name, split, judged=bool(judged))
    serving = engine.index_info(name)
    if serving is None or serving.digest != digest:
        spec = IndexSpec(mapping, seen.count, digest, seen.hexdigest())
        _build(engine, name, spec, lambda: documents, "indexing solved topics", progress)
    return engine.open(name), examples


def read_examples(
    task: Task, data: Path, split: str, progress: Progress, judged: Sequence[Example] = ()
) -> list[Example]:
    """The solved topics that a split's topics may be ranked by, with the `judged` ones in place of their gold.

    Raises:
        InvalidFiles: the files of the solved topics have problems.
        DataError: there is not one solved topic.
    """
    problems = Problems()
    with progress.stage("reading solved topics") as advance:
        examples = list(_counted(task.examples(data, split, problems), advance))
    problems.raise_if_any()
    known = {one.topic.id: one for one in examples} | {one.topic.id: one for one in judged}
    # Where people found nothing relevant there is no answer, and the topic would only keep out others that have one.
    without = {one.topic.id for one in judged if not one.gold}
    examples = [one for topic, one in known.items() if topic not in without]
    if not examples:
        raise DataError(f"{data} has no solved topics for {task.reference} {split}: choose another recipe")
    return examples


def examples_name(task: str, split: str, *, judged: bool = False) -> str:
    """The name of the index of the solved topics for a split; with `judged` topics it is another one."""
    return f"examples-{task}-{split.lower()}" + ("-judged" if judged else "")


def open_index(task: Task, engine: Engine) -> Index:
    """The index of a task, if it was made with the mapping that the task's queries are written for.

    Raises:
        EngineRefused: there is no index, or it was made with another mapping or for another task file.
    """
    if task.file is not None and engine.index_info(task.index_name) is None:
        raise EngineRefused(  # the engine knows the index's name only
            f"nothing of {task.name} is indexed yet: make its index with `searchapp index {task.reference}`"
        )
    index = engine.open(task.index_name)
    if index.info.owner != _owner(task):
        raise EngineRefused(
            f"{index.info.version} {_of_another(task, index.info)}: give one of the two another name, and make "
            f"the index with `searchapp index {task.reference}`"
        )
    if index.info.mapping_digest != digest_json(task.index_mapping()):
        raise EngineRefused(
            f"{index.info.version} was made with another version of the mapping {task.mapping}: "
            f"make it anew with `searchapp index {task.reference}`"
        )
    return index


def require_documents(task: Task, index: Index, data: Path) -> None:
    """Make sure that an index holds the documents of a folder.

    Raises:
        DataError: it holds others.
    """
    seen = DocumentsDigest()
    for _document in seen.watch(task.documents(data, Problems(lenient=True))):
        pass
    if seen.hexdigest() != index.info.documents_digest:
        raise DataError(
            f"{index.info.version} holds {index.info.documents:,} documents that are not the {seen.count:,} in "
            f"{data}: make it anew with `searchapp index {task.reference} --data {data}`"
        )


def _owner(task: Task) -> str:
    """Whose the index of a task is: the name of a shipped task says it, but names that people give may meet."""
    return "" if task.file is None else str(task.file.resolve())


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
