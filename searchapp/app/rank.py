"""Makes a run: reads a split's topics, ranks them, and writes the run directory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from searchapp.app.index import lenient_advice, open_index, require_documents
from searchapp.app.manifests import finished, manifest_of
from searchapp.app.signal_inputs import signal_inputs
from searchapp.engines.base import Engine, EngineInfo, IndexInfo
from searchapp.errors import DataError, UsageError
from searchapp.formats.problems import Problems
from searchapp.model import Example
from searchapp.progress import Progress
from searchapp.ranking import shards
from searchapp.ranking.rank import Ranker
from searchapp.ranking.recipe import Recipe
from searchapp.runs import directory, learned
from searchapp.runs.directory import Manifest
from searchapp.tasks.base import Collection, NoOfficialFile, Part, Submission, Task, Writer


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to rank and how: `depth` documents for each topic of a split of a collection.

    `judged` are topics that people have judged, which the recipe then takes for solved ones. `examples` are the splits
    whose solved topics it learns from, by default all that there are for the split. Models are kept in `home`.
    """

    collection: Collection
    split: str
    recipe: Recipe
    depth: int
    tag: str
    lenient: bool = False
    judged: tuple[Example, ...] = ()
    home: Path | None = None
    examples: tuple[str, ...] = ()

    @property
    def learning(self) -> Collection:
        """The collection with the solved topics that the recipe learns from.

        Raises:
            UsageError: it learns from none, or one of the splits has none.
        """
        if not self.examples:
            return self.collection
        if not self.recipe.learns:
            raise UsageError(
                f"the recipe {self.recipe.name} learns from no solved topics: leave out --examples"
            )
        return self.collection.solved_by(self.examples)


@dataclass(frozen=True, slots=True)
class MadeRun:
    """A run that was written; `shortfall` says why it has no official file, if it has none.

    `problems` are those of the topics, `solved_problems` those of the solved ones that the recipe learnt from;
    `warnings` say why the same run on another index may rank otherwise.
    """

    manifest: Manifest
    problems: Problems
    solved_problems: Problems
    shortfall: str | None
    warnings: tuple[str, ...] = ()


def planned(task: Task, engine: EngineInfo, index: IndexInfo, request: RunRequest) -> Manifest:
    """What the manifest of a run says before it is ranked: everything that its rankings depend on.

    Raises:
        DataError: a file that the run is made from can't be read.
    """
    collection, split = request.learning, request.split
    used = [*collection.indexes[index.name].files, *collection.split_files(split)]
    if request.recipe.learns:
        used += collection.example_files(split)
    solved = {}
    if request.recipe.learns:
        solved = learned.solved_by(collection.solved_splits(split), chosen=bool(request.examples))
    engine_info = {key: value for key, value in asdict(engine).items() if key != "location"}
    digests = index.mapping_digest, index.digest
    return replace(
        manifest_of(task, collection, split, used, digests, engine_info),
        recipe=request.recipe.manifest() | solved | learned.described(request.judged),
        depth=request.depth,
        tag=request.tag,
    )


def make_run(
    task: Task, engine: Engine, request: RunRequest, out: Path, progress: Progress, *, overwrite: bool = False
) -> MadeRun:
    """Rank every topic of the split and write the run directory `out`, whole or not at all.

    Raises:
        InvalidFiles: topics or solved topics have problems, and `request.lenient` is not set.
        EngineError: the engine failed; nothing was written.
    """
    if request.tag.split() != [request.tag]:
        raise UsageError(
            f"the tag {request.tag!r} can't stand in a TREC run: choose one without white space with --tag"
        )
    if request.judged and not request.recipe.learns:
        raise UsageError(
            f"the recipe {request.recipe.name} does not learn from judged topics: choose one that uses solved topics"
        )
    directory.require_writable(out, overwrite=overwrite)
    collection = request.learning
    problems = Problems(lenient=request.lenient)
    with progress.stage("reading topics") as advance:
        topics = collection.topics(request.split, problems)
        advance(len(topics))
    problems.raise_if_any(lenient_advice(problems))
    if not topics:
        raise DataError(f"{collection.folder}: the split {request.split} has no topics to rank")
    index = open_index(task, engine, collection.index_of(request.split))
    require_documents(task, index, collection)
    solved_problems = Problems(lenient=request.lenient)
    inputs = signal_inputs(
        task,
        engine,
        index,
        lambda: (collection, request.split),
        progress,
        solved_problems,
        request.judged,
        request.home,
    )
    ranker = Ranker(request.recipe, inputs)
    started = time.perf_counter()
    with progress.stage("ranking", len(topics)) as advance:
        run = ranker.rank(topics, request.depth, request.tag, advance)
    seconds = time.perf_counter() - started
    manifest = replace(planned(task, engine.info(), index.info, request), seconds=round(seconds, 3))
    if models := ranker.models():
        manifest = replace(manifest, recipe={**manifest.recipe, directory.MODELS: models})
    official: Mapping[str, Writer] = {}
    left = len(problems)
    shortfall = ("1 topic was left out" if left == 1 else f"{left:,} topics were left out") if left else None
    if shortfall is None:
        try:
            official = task.official.files(Submission(run, Part(collection, request.split)))
        except NoOfficialFile as error:
            shortfall = str(error)
    written = directory.write(out, finished(manifest, run), run, official, overwrite=overwrite)
    warnings = shards.warnings(request.recipe, index.info.shards)
    return MadeRun(written, problems, solved_problems, shortfall, tuple(warnings))
