"""Indexes a task's documents: reads and checks them, then builds an index unless the same one serves already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from searchapp import resources
from searchapp.digests import DocumentsDigest, digest_json
from searchapp.engines.base import Advance, Engine, Index, IndexInfo, IndexSpec
from searchapp.errors import DataError, EngineRefused, UsageError
from searchapp.formats.problems import Problems
from searchapp.model import Document
from searchapp.progress import Progress
from searchapp.tasks.base import Task

FORMAT = 1
"""Part of every index digest: raised when the same inputs shall give another index."""


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
    mapping = resources.index_mapping(task.mapping)
    digest = digest_json({"format": FORMAT, "mapping": mapping, "documents": seen.hexdigest()})
    serving = engine.index_info(task.name)
    if serving is not None and (serving.digest, serving.shards) == (digest, shards) and not rebuild:
        return IndexOutcome(serving, built=False, problems=problems)

    spec = IndexSpec(mapping, seen.count, digest, seen.hexdigest(), shards)
    with progress.stage("indexing", seen.count) as advance:
        # Read again instead of kept: the documents of a large collection need not fit into memory.
        again = _unchanged(task.documents(data, Problems(lenient=True)), seen, data)
        info = engine.build(task.name, spec, again, advance)
    return IndexOutcome(info, built=True, problems=problems)


def _read_all(task: Task, data: Path, problems: Problems, progress: Progress) -> DocumentsDigest:
    """Read every file of the task that is there, for its problems; returns the digest of the documents."""
    seen = DocumentsDigest()
    with progress.stage("reading documents") as advance:
        for _document in _counted(seen.watch(task.documents(data, problems)), advance):
            pass
    with progress.stage("checking topics") as advance:
        for split in task.splits:
            if task.split_file(data, split).exists():
                advance(task.check_split(data, split, problems))
    return seen


def open_index(task: Task, engine: Engine) -> Index:
    """The index of a task, if it was made with the mapping that the task's queries are written for.

    Raises:
        EngineRefused: there is no index, or it was made with another mapping.
    """
    index = engine.open(task.name)
    if index.info.mapping_digest != digest_json(resources.index_mapping(task.mapping)):
        raise EngineRefused(
            f"{index.info.version} was made with another version of the mapping {task.mapping}: "
            f"make it anew with `searchapp index {task.name}`"
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
            f"{data}: make it anew with `searchapp index {task.name} --data {data}`"
        )


def _counted(documents: Iterator[Document], advance: Advance) -> Iterator[Document]:
    for document in documents:
        advance(1)
        yield document


def _unchanged(documents: Iterator[Document], seen: DocumentsDigest, data: Path) -> Iterator[Document]:
    """The documents on their second reading; ends with an error if they are not those of the first."""
    again = DocumentsDigest()
    yield from again.watch(documents)
    if again.hexdigest() != seen.hexdigest():
        raise DataError(f"the files in {data} changed while they were indexed: index again")
