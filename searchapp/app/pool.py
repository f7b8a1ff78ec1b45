"""Pool several runs into a run directory for judging."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import searchapp
from searchapp.app.index import open_index
from searchapp.app.manifests import complete_manifest, manifest_of
from searchapp.app.pooling import (
    PoolDesign,
    PoolOrder,
    Sample,
    Stratum,
    draw_sample,
    pool,
    sample_record,
    sampled_documents,
)
from searchapp.app.runs import RUNS
from searchapp.engines.base import Engine
from searchapp.errors import DataError, UsageError
from searchapp.formats import trec
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Hits, Ranking, Run
from searchapp.runs import directory
from searchapp.runs.directory import GivenRun, Manifest
from searchapp.runs.lookup import LookUp, look_up_documents
from searchapp.tasks.base import Collection as TaskCollection
from searchapp.tasks.base import Grades, Task
from searchapp.text import counted

TAG = "pool"

# The file of a sample in the folder `inputs` of a pool.
SAMPLE = "sample.json"

# The beginning of the names of judging queues.
QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Scope:
    """The topics that count in a pool, and the manifest on which the pool's is based."""

    name: str  # in messages
    topics: Collection[str]
    manifest: Manifest
    # Looks documents up in the index, if it is available.
    look_up: Callable[[Collection[str]], LookUp] | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool that was written."""

    manifest: Manifest
    notes: tuple[str, ...]  # messages on topics and documents of its runs


def scope_of(task: Task, engine: Engine, data: Path, split: str) -> Scope:
    """Return the scope of TREC runs of a split; it needs the open engine.

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
    manifest = manifest_of(task, collection, split, used, (info.mapping_digest, info.digest), engine.info())
    return Scope(
        f"{task.name} {split}",
        frozenset(topic.id for topic in topics),
        manifest,
        lambda documents: look_up_documents(lambda: index, collection, documents),
    )


def write_pool(
    runs: Sequence[Path],
    design: PoolDesign,
    out: Path,
    scope: Scope | None = None,
    judged: Callable[[str], Grades] = lambda _task: {},
    *,
    overwrite: bool = False,
) -> Pool:
    """Write the documents of several runs to judge as one run directory, atomically.

    The runs are run directories of one task, split and index, and TREC runs; only their topics in the scope count.

    `judged` returns the grades of a task so far, if the design needs them.

    Raises:
        UsageError: a run does not exist, or there are only TREC runs and no scope.
        DataError: the runs are not of one task, split and index, or one of them is invalid.
    """
    directory.require_writable(out, overwrite=overwrite)
    started = time.perf_counter()
    given_runs = [directory.read_given(path) for path in runs]
    scope = _scope(given_runs, scope)
    notes = [given.note for given in given_runs if given.note]
    in_scope = []
    digests: dict[str, str] = {}
    for given in given_runs:
        run = given.run
        if given.manifest is not None:
            digests |= directory.read_digests(given.path)
        else:
            run = _restrict(given, scope)
        if left := len(given.run) - len(run):
            are, them = ("is", "it") if left == 1 else ("are", "them")
            notes.append(
                f"{given.path}: {left:,} of {counted(len(given.run), 'topic')} {are} left out, because "
                f"{scope.name} does not have {them}"
            )
        in_scope.append(run)
    inputs = {}
    if design.by is PoolOrder.sample:
        sample = draw_sample(in_scope, design.strata, design.seed)
        inputs[SAMPLE] = sample_record(sample)
        pooled = sampled_documents(sample, design.seed)
    else:
        pooled = pool(in_scope, design, judged(scope.manifest.task) if design.leaves_out_judged else None)
    pooled_documents = dict.fromkeys(document for documents in pooled.values() for document in documents)
    if scope.look_up is not None:
        result = scope.look_up(pooled_documents)
        if result.unknown:
            notes.append(f"{result}: annotators can't read them")
    run = Run(
        TAG,
        tuple(
            Ranking(
                topic, Hits(documents, [float(len(documents) - index) for index in range(len(documents))])
            )
            for topic, documents in pooled.items()
        ),
    )
    manifest = replace(
        scope.manifest,
        searchapp=searchapp.__version__,
        recipe={
            "name": TAG,
            **design.described(),
            "runs": [{"tag": given.run.tag, "digest": given.digest} for given in given_runs],
        },
        depth=max((len(documents) for documents in pooled.values()), default=0),
        tag=TAG,
        imported={},
        seconds=round(time.perf_counter() - started, 3),
        files={},
        digest="",
    )
    digests = {document: digests[document] for document in pooled_documents if document in digests}
    written = directory.write(
        out, complete_manifest(manifest, run), run, {}, digests, inputs, overwrite=overwrite
    )
    return Pool(written, tuple(notes))


def read_sample(path: Path, task: str | None) -> Sample:
    """Return the sample that a pool records, if known of this task.

    Raises:
        UsageError: the path is not a run directory, not a sampled pool, or a pool of another task.
        DataError: the record is damaged or has changed.
    """
    manifest = directory.read_manifest(path)
    if task is not None and manifest.task != task:
        raise UsageError(f"{path} is a pool of {manifest.task}, not of {task}: give a pool of {task}")
    recorded = directory.read_input(path, manifest, SAMPLE)
    if recorded is None:
        raise UsageError(
            f"{path} is not a sampled pool: make one with `searchapp judgments pool --by sample`"
        )
    try:
        return {
            topic: [Stratum(tuple(stratum["sampled"]), tuple(stratum["unsampled"])) for stratum in strata]
            for topic, strata in recorded.items()
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(
            f"{path / directory.INPUTS / SAMPLE} is not a sample of searchapp: write the pool again"
        ) from error


@dataclass(frozen=True, slots=True)
class QueuedHits:
    """Hits in the judging queue of a split."""

    path: Path  # the queue's run directory
    new: int  # how many of the hits the queue did not have yet


def queue_hits(
    task: Task, engine: Engine, collection: TaskCollection, home: Path, topic_id: str, hits: Hits
) -> QueuedHits:
    """Add hits for a topic to the judging queue of its split: a pool among the runs of the home directory.

    Raises:
        UsageError: no split has the topic.
        DataError: the queue is of another version of the documents.
        EngineError: there is no index of the documents.
    """
    split = _split_of(task, collection, topic_id)
    path = home / RUNS / f"{QUEUE}-{task.name}-{split}"
    queued = directory.read(path).run if path.exists() else Run(TAG, ())
    depth = max((len(hits), *(len(ranking.hits) for ranking in queued)))
    known = {
        document for ranking in queued if ranking.topic_id == topic_id for document in ranking.document_ids()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        found = Path(folder) / "hits.trec"
        with found.open("wb") as file:
            trec.write_run(file, trec.with_distinct_scores(Run(QUEUE, (Ranking(topic_id, hits),))))
        runs = [found, *([path] if path.exists() else [])]
        scope = scope_of(task, engine, collection.folder, split)
        write_pool(runs, PoolDesign(depth=depth), path, scope, overwrite=path.exists())
    return QueuedHits(path, len({*hits.document_ids} - known))


def _split_of(task: Task, collection: TaskCollection, topic_id: str) -> str:
    for split in task.info.splits:
        if all(file.exists() for file in collection.split_files(split)) and any(
            topic.id == topic_id for topic in collection.topics(split, Problems(lenient=True))
        ):
            return split
    raise UsageError(f"no split of {task.name} has topic {topic_id!r}")


def _scope(runs: Sequence[GivenRun], scope: Scope | None) -> Scope:
    manifests = [(given.path, given.manifest) for given in runs if given.manifest is not None]
    if not manifests:
        if scope is None:
            raise UsageError(
                f"{runs[0].path} is a TREC run, which does not record its task: give its task with --task "
                "and its split with --split"
            )
        return scope
    path, first = manifests[0]
    if scope is not None:
        path, first = Path(scope.name), scope.manifest
    for other, manifest in manifests:
        for key in ("task", "split", "index_digest"):
            if getattr(manifest, key) != getattr(first, key):
                raise DataError(
                    f"{other} has another {key.replace('_', ' ')} than {path}: pool runs that rank the same "
                    "documents for the same topics"
                )
    if scope is not None:
        return scope
    topics = {ranking.topic_id for given in runs if given.manifest is not None for ranking in given.run}
    return Scope(str(path), topics, first)


def _restrict(given: GivenRun, scope: Scope) -> Run:
    run = Run(given.run.tag, tuple(ranking for ranking in given.run if ranking.topic_id in scope.topics))
    if not run.rankings:
        raise DataError(f"{given.path} ranks no topic of {scope.name}: give a run of the same topics")
    return run
