"""Makes a run: reads a split's topics, ranks them, and writes the run directory."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import searchapp
from searchapp.digests import digest_file
from searchapp.engines.base import Engine
from searchapp.errors import DataError, UsageError
from searchapp.formats.problems import Problems
from searchapp.indexing import open_index, require_documents
from searchapp.progress import Progress
from searchapp.ranking.rank import rank
from searchapp.ranking.recipes import Recipe
from searchapp.runs import directory
from searchapp.runs.directory import Manifest
from searchapp.tasks.base import Task


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to rank and how: `depth` documents for each topic of `split` in the folder `data`."""

    data: Path
    split: str
    recipe: Recipe
    depth: int
    tag: str
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class MadeRun:
    """A run that was written; `shortfall` says why it has no official file, if it has none."""

    manifest: Manifest
    problems: Problems
    shortfall: str | None


def make_run(
    task: Task, engine: Engine, request: RunRequest, out: Path, progress: Progress, *, overwrite: bool = False
) -> MadeRun:
    """Rank every topic of the split and write the run directory `out`, whole or not at all.

    Raises:
        InvalidFiles: the topics have problems, and `request.lenient` is not set.
        EngineError: the engine failed; nothing was written.
    """
    if request.tag.split() != [request.tag]:
        raise UsageError(
            f"the tag {request.tag!r} can't stand in a TREC run: choose one without white space with --tag"
        )
    directory.require_writable(out, overwrite=overwrite)
    problems = Problems(lenient=request.lenient)
    with progress.stage("reading topics") as advance:
        topics = task.topics(request.data, request.split, problems)
        advance(len(topics))
    problems.raise_if_any()
    if not topics:
        raise DataError(f"{task.split_file(request.data, request.split)}: there are no topics to rank")
    index = open_index(task, engine)
    require_documents(task, index, request.data)
    started = time.perf_counter()
    with progress.stage("ranking", len(topics)) as advance:
        run = rank(
            index,
            topics,
            request.recipe,
            request.depth,
            request.tag,
            advance,
            topics_are_documents=task.topics_are_documents,
        )
    seconds = time.perf_counter() - started
    used = [*task.document_files(request.data), task.split_file(request.data, request.split)]
    manifest = Manifest(
        searchapp=searchapp.__version__,
        task=task.name,
        split=request.split,
        recipe=request.recipe.manifest(),
        depth=request.depth,
        tag=request.tag,
        engine={key: value for key, value in asdict(engine.info()).items() if key != "location"},
        data=str(request.data.resolve()),
        data_digests={file.name: digest_file(file) for file in used},
        mapping_digest=index.info.mapping_digest,
        index_digest=index.info.digest,
        topics=len(run),
        hits=sum(len(ranking.hits) for ranking in run),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
    )
    left_out = len(problems)
    shortfall = f"{left_out} topics were left out" if left_out else task.official_shortfall(run, None)
    official = {} if shortfall else {task.official_file: lambda file: task.write_official(file, run)}
    written = directory.write(out, manifest, run, official, overwrite=overwrite)
    return MadeRun(written, problems, shortfall)
