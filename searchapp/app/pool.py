"""Pool several runs into a run directory of its own, for judging."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import searchapp
from searchapp.app.index import open_index
from searchapp.app.manifests import finished, manifest_of
from searchapp.engines.base import Engine
from searchapp.errors import DataError, UsageError
from searchapp.formats.problems import Problems
from searchapp.judging.assignment import pool
from searchapp.model import Hits, Ranking, Run
from searchapp.runs import directory
from searchapp.runs.directory import GivenRun, Manifest
from searchapp.runs.lookup import LookUp, look_up_documents
from searchapp.tasks.base import Task
from searchapp.text import counted

TAG = "pool"


@dataclass(frozen=True, slots=True)
class Scope:
    """What the runs of a pool are of: the topics that count, and the manifest that theirs is made from.

    `name` is what messages call it. `look_up` finds which documents the index does not have, where it is available.
    """

    name: str
    topics: Collection[str]
    manifest: Manifest
    look_up: Callable[[Collection[str]], LookUp] | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool that was written; `notes` are sentences on what was made of its runs."""

    manifest: Manifest
    notes: tuple[str, ...]


def scope_of(task: Task, engine: Engine, data: Path, split: str) -> Scope:
    """What TREC runs of a split are of, which do not say it themselves; as long as the engine is open.

    Raises:
        InvalidFiles: the topics can't be read.
        EngineError: there is no index of the documents.
    """
    problems = Problems(lenient=True)
    collection = task.collection(data)
    topics = collection.topics(split, problems)
    problems.raise_if_any()
    name = collection.index_of(split)
    index = open_index(task, engine, name)
    info = index.info
    files = (*collection.indexes[name].files, *collection.split_files(split))
    used = [file for file in files if file.is_file()]
    engine_info = {key: value for key, value in asdict(engine.info()).items() if key != "location"}
    manifest = manifest_of(task, collection, split, used, (info.mapping_digest, info.digest), engine_info)
    return Scope(
        f"{task.name} {split}",
        frozenset(topic.id for topic in topics),
        manifest,
        lambda documents: look_up_documents(lambda: index, collection, documents),
    )


def write_pool(
    runs: Sequence[Path], depth: int, out: Path, scope: Scope | None = None, *, overwrite: bool = False
) -> Pool:
    """Write the first `depth` documents of several runs as one run, whole or not at all.

    The runs are run directories of one task, split and index, and TREC runs. Of a TREC run those topics count that are
    in the scope: the given one, by default that of the run directories. The scores say nothing but the order.

    Raises:
        UsageError: there is no run of a name, or only TREC runs without a scope.
        DataError: the runs are not of one task, split and index, or one of them is not what it should be.
    """
    directory.require_writable(out, overwrite=overwrite)
    started = time.perf_counter()
    read = [directory.read_given(path) for path in runs]
    scope = _scope(read, scope)
    notes = [one.note for one in read if one.note]
    kept = []
    for one in read:
        run = one.run if one.manifest is not None else _within(one, scope)
        if left := len(one.run) - len(run):
            are = "is" if left == 1 else "are"
            notes.append(
                f"{one.path}: {left:,} of {counted(len(one.run), 'topic')} {are} not of {scope.name}, and left out"
            )
        kept.append(run)
    pooled = pool(kept, depth)
    if scope.look_up is not None:
        found = scope.look_up(dict.fromkeys(one for documents in pooled.values() for one in documents))
        if found.unknown:
            notes.append(f"{found}: nobody will be able to read them")
    run = Run(
        TAG,
        tuple(
            Ranking(
                topic, Hits(documents, [float(len(documents) - place) for place in range(len(documents))])
            )
            for topic, documents in pooled.items()
        ),
    )
    manifest = replace(
        scope.manifest,
        searchapp=searchapp.__version__,
        recipe={
            "name": TAG,
            "depth": depth,
            "runs": [{"tag": one.run.tag, "digest": one.digest} for one in read],
        },
        depth=max((len(documents) for documents in pooled.values()), default=0),
        tag=TAG,
        imported={},
        seconds=round(time.perf_counter() - started, 3),
        files={},
        digest="",
    )
    known: dict[str, str] = {}
    for one in read:
        if one.manifest is not None:
            known |= directory.read_digests(one.path)
    pooled_documents = {one for documents in pooled.values() for one in documents}
    digests = {document: known[document] for document in pooled_documents & known.keys()}
    written = directory.write(out, finished(manifest, run), run, {}, digests, overwrite=overwrite)
    return Pool(written, tuple(notes))


def _scope(runs: Sequence[GivenRun], scope: Scope | None) -> Scope:
    """The given scope, or that of the run directories, which must be alike and in it."""
    manifests = [(one.path, one.manifest) for one in runs if one.manifest is not None]
    if not manifests:
        if scope is None:
            raise UsageError(
                f"{runs[0].path} is a TREC run, which does not name its task: name its task with --task and its "
                "split with --split"
            )
        return scope
    path, first = manifests[0]
    if scope is not None:
        path, first = Path(scope.name), scope.manifest
    for other, manifest in manifests:
        for what in ("task", "split", "index_digest"):
            if getattr(manifest, what) != getattr(first, what):
                raise DataError(
                    f"{other} has another {what.replace('_', ' ')} than {path}: a pool is made of runs that rank the "
                    "same documents for the same topics"
                )
    if scope is not None:
        return scope
    topics = {ranking.topic_id for one in runs if one.manifest is not None for ranking in one.run}
    return Scope(str(path), topics, first)


def _within(one: GivenRun, scope: Scope) -> Run:
    """A TREC run with the topics of a scope alone."""
    run = Run(one.run.tag, tuple(ranking for ranking in one.run if ranking.topic_id in scope.topics))
    if not run.rankings:
        raise DataError(f"{one.path} ranks no topic of {scope.name}: name a run of the same topics")
    return run
