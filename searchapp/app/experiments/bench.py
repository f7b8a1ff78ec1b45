"""Run a bench: rank missing cells, score every split and its topic groups, compare with the baseline.

    <folder>/figures.jsonl      {"key": "9f2c…", "columns": […]}, a line for each scored split

The key is the digest of all inputs of the figures: a split with a known key is not scored again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as AnyCollection
from contextlib import closing
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import searchapp
from searchapp.app import runs
from searchapp.app.compare import require_comparable
from searchapp.app.comparison import (
    Difference,
    ScoredRun,
    Scoring,
    import_tests,
    list_pairs,
    measure_names,
    measured,
    score_run,
)
from searchapp.app.evaluate import GoldSource, Judgments, of_run
from searchapp.app.experiments import bench_result
from searchapp.app.experiments.bench_plan import BenchPlan, BenchRecipe, BenchTask, TopicGroup
from searchapp.app.experiments.bench_result import (
    BenchColumn,
    BenchMeasure,
    BenchResult,
    Cell,
    System,
    from_json,
)
from searchapp.app.index import index_task, mapping_digests, serving_info
from searchapp.app.json_lines import JsonLines
from searchapp.app.rank import RunRequest, make_run, planned_manifest
from searchapp.config.settings import Settings
from searchapp.embeddings.reranking import Reranking
from searchapp.engines import open_engine
from searchapp.engines.base import EngineInfo
from searchapp.errors import DataError, SearchappError, is_lack_of_memory
from searchapp.evaluation.significance import mean
from searchapp.files import digest_file, digest_json, exclusive_folder, reason, replace_nonfinite
from searchapp.formats.problems import Problems
from searchapp.judging.judgments import Unjudged
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Hits, IndexInfo, Ranking, Run
from searchapp.processes import process_each
from searchapp.progress import Advance, Progress, SilentProgress
from searchapp.ranking import recipes
from searchapp.runs import directory
from searchapp.runs.directory import Manifest, StoredRun
from searchapp.tasks import folders
from searchapp.tasks.base import Collection, Grades
from searchapp.text import counted

FIGURES_FILE = "figures.jsonl"
FIGURES_FORMAT = 2
MAX_FIGURES = 1_000  # lines of the file that remain when the oldest are dropped

BUSY = (
    "process {process} is running this bench in %s: wait until it ends, or choose another folder with --out"
)

Position = tuple[int, int]  # a cell by the numbers of its split and its system

Failure = tuple[str, int]  # the message of an error, and its exit code

EngineStates = dict[str, EngineInfo | SearchappError]  # each engine, or the error of opening it, by name

# Each index, or the error of opening it, by engine and name.
IndexStates = dict[tuple[str, str], IndexInfo | SearchappError | None]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """A plan, and the settings of its engines."""

    plan: BenchPlan
    settings: Settings
    workers: int | None = None  # cells that are ranked at a time; None for as many as there are processors
    overwrite: bool = False  # whether every cell is ranked anew
    run_command: bool = False  # whether commands of rerankers may be run
    # The judgments that are gold, by the name of the task's table.
    judged: Mapping[str, Grades] = field(default_factory=dict)


def run_bench(request: BenchRequest, progress: Progress) -> BenchResult:
    """Run a bench and write the result, including failed cells, into its folder.

    Raises:
        SearchappError: another process uses the folder, or it can't be written to.
    """
    with exclusive_folder(request.plan.out, BUSY % request.plan.out):
        result = _Bench(request).run(progress)
        bench_result.write_bench(result)
    return result


@dataclass(frozen=True, slots=True)
class _Split:
    task: BenchTask
    name: str
    collection: Collection
    judgments: Judgments | None

    @property
    def index_name(self) -> str:
        return self.collection.index_of(self.name)

    @property
    def source(self) -> GoldSource:
        task = self.task
        return GoldSource(data=task.data, split=self.name, options=task.options, measures=task.measures)

    def topics_of(self, group: TopicGroup) -> frozenset[str]:
        if group.where is None:
            return frozenset(group.topics)
        return frozenset(
            topic.id
            for topic in self.collection.topics(self.name, Problems(lenient=True))
            if all(str(topic.fields.get(name)) == value for name, value in group.where.items())
        )


class _Bench:
    def __init__(self, request: BenchRequest) -> None:
        self._request = request
        self._plan = plan = request.plan
        engines = plan.engines or (request.settings.engine,)
        self._settings = {engine: replace(request.settings, engine=engine) for engine in engines}
        rows = [(recipe, engine) for recipe in plan.recipes for engine in engines]
        self._recipes: list[BenchRecipe] = [recipe for recipe, _ in rows]
        self._systems = tuple(
            System(
                recipe.name if len(engines) == 1 else f"{recipe.name} ({engine})",
                recipe.recipe,
                dict(recipe.parameters),
                engine,
            )
            for recipe, engine in rows
        )
        self._baseline = next(
            number for number, recipe in enumerate(self._recipes) if recipe.name == plan.baseline
        )
        self._splits = [
            _Split(
                task,
                split,
                collection,
                None if task.judged is None else Judgments(request.judged[task.name], task.judged.unjudged),
            )
            for task in plan.tasks
            for collection in [task.task.collection(task.data)]
            for split in task.splits
        ]
        self._cells: dict[Position, Cell] = {}
        self._columns: dict[int, Sequence[BenchColumn]] = {}
        self._figures = JsonLines(plan.out / FIGURES_FILE, MAX_FIGURES)

    def run(self, progress: Progress) -> BenchResult:
        positions = [
            (number, system)
            for number, split in enumerate(self._splits)
            for system, recipe in enumerate(self._recipes)
            if recipe.is_for(split.task)
        ]
        unindexed: dict[tuple[str, str], list[Position]] = {}
        with progress.stage("checking", len(positions)) as advance:
            engines, indexes = self._query_engines()
            for position in positions:
                self._check(position, engines, indexes, unindexed)
                advance(1)
            missing = [position for position in positions if position not in self._cells]
            unranked = {split for split, _ in missing}
            unscored = [
                split
                for split in range(len(self._splits))
                if split in unranked or not self._scored_before(split)
            ]
        if total := len(unindexed) + len(missing) + len(unscored):
            import_tests()
            with progress.stage("ranking and scoring", total) as advance:
                self._index_all(unindexed, advance)
                self._rank_all([position for position in missing if position not in self._cells], advance)
                self._score_all(unscored, advance)
        return BenchResult(
            folder=self._plan.out,
            file=str(self._plan.path.absolute()),
            searchapp=searchapp.__version__,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            baseline=self._baseline,
            systems=self._systems,
            columns=tuple(column for number in sorted(self._columns) for column in self._columns[number]),
            permutations=self._plan.permutations,
            seed=self._plan.seed,
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        for task in self._plan.tasks:
            if task.judged is not None:
                grades = self._request.judged[task.name]
                treated = "left out" if task.judged.unjudged is Unjudged.condensed else "not relevant"
                yield (
                    f"{task.name} is scored against judgments of "
                    f"{counted(sum(map(len, grades.values())), 'document')} for "
                    f"{counted(len(grades), 'topic')}; unjudged documents are {treated}"
                )

    # Existing cells

    def _query_engines(
        self,
    ) -> tuple[EngineStates, IndexStates]:
        engines: EngineStates = {}
        indexes: IndexStates = {}
        for name, settings in self._settings.items():
            try:
                with closing(open_engine(settings)) as engine:
                    engines[name] = engine.info()
                    for index, task in {split.index_name: split.task.task for split in self._splits}.items():
                        try:
                            indexes[name, index] = serving_info(task, engine, index)
                        except SearchappError as error:
                            indexes[name, index] = error
            except SearchappError as error:
                engines[name] = error
        return engines, indexes

    def _check(
        self,
        position: Position,
        engines: EngineStates,
        indexes: IndexStates,
        unindexed: dict[tuple[str, str], list[Position]],
    ) -> None:
        """Keep a cell whose run is up to date; add one whose task is not indexed to `unindexed`."""
        split, name = self._splits[position[0]], self._systems[position[1]].engine
        try:
            if isinstance(engine := engines[name], SearchappError):
                raise engine
            if isinstance(index := indexes[name, split.index_name], SearchappError):
                raise index
            manifest = None if index is None else self._reusable_manifest(position, engine, index)
        except SearchappError as error:
            self._cells[position] = self._failed(position, error)
            return
        if manifest is not None:
            self._cells[position] = self._cell(position, manifest)
        elif index is None:
            unindexed.setdefault((split.task.name, name), []).append(position)

    def _reusable_manifest(self, position: Position, engine: EngineInfo, index: IndexInfo) -> Manifest | None:
        path, task = self._path(position), self._splits[position[0]].task.task
        if self._request.overwrite or not (path / directory.MANIFEST).is_file():
            return None
        if index.mapping_digest not in mapping_digests(task):
            return None  # ranking with this index reports the error
        return directory.reusable_manifest(
            path, planned_manifest(task, engine, index, self._run_request(position))
        )

    def _run_request(self, position: Position) -> RunRequest:
        split, recipe = self._splits[position[0]], self._recipes[position[1]]
        return RunRequest(
            collection=split.collection,
            split=split.name,
            recipe=recipes.load(split.task.task.recipe_book(), recipe.recipe, recipe.parameters),
            depth=split.task.depth,
            tag=f"searchapp-{recipe.name}",
            lenient=split.task.options.lenient,
            home=self._request.settings.home,
            reranking=Reranking.of(self._request.settings, commands=self._request.run_command),
        )

    # Indexing, ranking and scoring in processes

    def _in_processes(
        self, work: Callable[[T], R], jobs: Iterable[T]
    ) -> Iterator[tuple[T, R | BaseException]]:
        with closing(process_each(work, deque(jobs), self._request.workers)) as outcomes:
            yield from outcomes

    def _index_all(self, unindexed: Mapping[tuple[str, str], list[Position]], advance: Advance) -> None:
        waiting = {positions[0]: positions for positions in unindexed.values()}
        for first, outcome in self._in_processes(self._index, waiting):
            advance(1)
            if isinstance(outcome, BaseException):
                self._cells |= {position: self._failed(position, outcome) for position in waiting[first]}
                advance(len(waiting[first]))

    def _index(self, position: Position) -> None:
        split, settings = self._splits[position[0]], self._settings[self._systems[position[1]].engine]
        task = split.task
        with closing(open_engine(settings)) as engine:
            index_task(task.task, engine, split.collection, SilentProgress(), lenient=task.options.lenient)
        folders.remember(task.task, settings.home, task.data)

    def _rank_all(self, positions: Iterable[Position], advance: Advance) -> None:
        for position, outcome in self._in_processes(self._rank, positions):
            cell = outcome if isinstance(outcome, Cell) else self._failed(position, outcome)
            self._cells[position] = cell
            if cell.ranked:
                runs.remember_run(self._request.settings.home, self._path(position))
            advance(1)

    def _rank(self, position: Position) -> Cell:
        split, path = self._splits[position[0]], self._path(position)
        with closing(open_engine(self._settings[self._systems[position[1]].engine])) as engine:
            index = serving_info(split.task.task, engine, split.index_name)
            if index is not None and (manifest := self._reusable_manifest(position, engine.info(), index)):
                return self._cell(position, manifest)  # only its index was missing
            request = self._run_request(position)
            made = make_run(split.task.task, engine, request, path, SilentProgress(), overwrite=True)
        warnings = list(made.warnings)
        for problems in (made.problems.skipped, made.training_problems.skipped):
            warnings += [] if problems is None else [f"left out: {problems.lines[0]}"]
        if made.shortfall:
            warnings.append(f"the run has no official file: {made.shortfall}")
        return replace(self._cell(position, made.manifest), ranked=True, warnings=tuple(warnings))

    def _score_all(self, splits: Iterable[int], advance: Advance) -> None:
        unscored = []
        for split in splits:
            if self._scored_before(split):
                advance(1)
            else:
                unscored.append(split)
        for split, outcome in self._in_processes(self._score, unscored):
            if isinstance(outcome, BaseException):
                failures = dict.fromkeys(self._present(split), _failure(outcome))
                self._columns[split] = [self._column(split, None, failures, ())]
            else:
                key, self._columns[split] = outcome
                figures = {"key": key, "columns": [asdict(column) for column in self._columns[split]]}
                self._figures.add(replace_nonfinite(figures, None))
            advance(1)

    def _score(self, split: int) -> tuple[str, list[BenchColumn]]:
        return self._key(split), list(self._scored_columns(split))

    def _scored_before(self, split: int) -> bool:
        """Reuse the columns of a split without runs, or with known figures."""
        if not self._present(split):
            self._columns[split] = [self._column(split, None, {}, ())]
            return True
        try:
            columns = [from_json(BenchColumn, column) for column in self._known_figures[self._key(split)]]
        except (SearchappError, KeyError, TypeError, ValueError):
            return False
        self._columns[split] = [
            self._column(
                split,
                column.group,
                {
                    number: (cell.error, cell.exit_code)
                    for number, cell in enumerate(column.cells)
                    if cell is not None and cell.error is not None and number in self._present(split)
                },
                column.measures,
                column.warnings,
            )
            for column in columns
        ]
        return True

    @cached_property
    def _known_figures(self) -> Mapping[str, Sequence[Mapping[str, object]]]:
        return {line.get("key", ""): line.get("columns", ()) for line in self._figures.read()}

    def _key(self, number: int) -> str:
        """Return the digest of all inputs of the figures of a split.

        Raises:
            DataError: the gold can't be read.
        """
        split = self._splits[number]
        task, judgments = split.task, split.judgments
        options, info = task.options, task.task.info
        gold = split.collection.gold_files(split.name) if judgments is None else []
        files = [*gold, *filter(None, (options.hierarchy,))]
        cells = [self._cells.get((number, system)) for system in range(len(self._systems))]
        inputs = {
            "searchapp": searchapp.__version__,
            "format": FIGURES_FORMAT,
            "split": [task.name, split.name],
            "runs": [None if cell is None or cell.error is not None else cell.digest for cell in cells],
            "baseline": self._baseline,
            "gold": [digest_file(file) for file in files],
            "options": [options.cutoff, options.knowledge_base, options.lenient],
            "measures": list(task.measures),
            "task": [info.official_measure, info.measures, info.grades],
            "groups": [asdict(group) for group in task.groups],
            "testing": [self._plan.permutations, self._plan.seed],
        }
        if judgments is not None:
            grades = {topic: dict(of_topic) for topic, of_topic in judgments.grades.items()}
            inputs["judgments"] = [judgments.unjudged.value, digest_json(grades)]
        return digest_json(inputs)

    # Columns

    def _scored_columns(self, number: int) -> Iterator[BenchColumn]:
        """Yield the column of a split, and the columns of its groups.

        Raises:
            SearchappError: no run can be scored.
        """
        split = self._splits[number]
        scoring = Scoring(split.source, split.judgments)
        failures: dict[int, Failure] = {}
        scored: dict[int, ScoredRun] = {}
        stored_runs: list[StoredRun] = []
        for system in self._present(number):
            try:
                stored = directory.read(self._path((number, system)))
                task, gold = of_run(stored, split.source)
                scored[system] = score_run(stored, scoring, task, scoring.grades(task, gold))
            except SearchappError as error:
                failures[system] = _failure(error)
                continue
            topics = tuple(Ranking(ranking.topic_id, Hits()) for ranking in stored.run)
            stored_runs.append(replace(stored, run=Run(stored.run.tag, topics)))  # frees the rankings
        if stored_runs:
            require_comparable(stored_runs, force=False)
        measures = list(self._measures(split, scored, None))
        yield self._column(number, None, failures, measures, self._warnings(scored))
        known = next(iter(next(iter(scored.values())).values.values()), {}) if scored else {}
        for group in split.task.groups:
            of_group = split.topics_of(group)
            if of_group & known.keys():
                measures, warnings = list(self._measures(split, scored, of_group)), []
            else:
                measures = []
                warnings = [f"the group {group.name} contains no topic of {split.task.name} {split.name}"]
            yield self._column(number, group.name, failures, measures, warnings)

    def _warnings(self, scored: Mapping[int, ScoredRun]) -> list[str]:
        systems: dict[str, list[str]] = {}
        for system, run in scored.items():
            for warning in run.evaluation.warnings:
                systems.setdefault(warning, []).append(self._systems[system].name)
        return [
            warning if len(names) == len(scored) else f"{', '.join(names)}: {warning}"
            for warning, names in systems.items()
        ]

    def _measures(
        self, split: _Split, scored: Mapping[int, ScoredRun], topics: AnyCollection[str] | None
    ) -> Iterator[BenchMeasure]:
        if not scored:
            return
        systems, scored_runs = list(scored), list(scored.values())
        first = scored_runs[0]
        official = first.evaluation.official.measure
        try:
            names = measure_names(scored_runs, [name for name in split.task.measures if name in first.values])
        except DataError:
            names = []  # no figure is a mean over topics
        pairs = list_pairs(len(systems), systems.index(self._baseline)) if self._baseline in scored else []
        for name in dict.fromkeys((official, *names)):
            figures: list[float | None] = [None] * len(self._systems)
            differences: list[Difference | None] = [None] * len(self._systems)
            if name not in names and topics is not None:
                continue  # no value a topic
            if topics is None:
                for system, run in scored.items():
                    figures[system] = run.figure(name)
            if name not in names:
                yield BenchMeasure(name, True, 0, tuple(figures), tuple(differences))
                continue
            values = measured(
                name, scored_runs, pairs, self._plan.permutations, self._plan.seed, topics=topics
            )
            if topics is not None:
                for system, of_topics in zip(systems, values.values, strict=True):
                    figures[system] = mean([value for value in of_topics.values() if value is not None])
            for pair in values.pairs:
                differences[systems[pair.second]] = pair.difference
            yield BenchMeasure(name, values.is_official, values.topics, tuple(figures), tuple(differences))

    def _column(
        self,
        number: int,
        group: str | None,
        failures: Mapping[int, Failure],
        measures: Sequence[BenchMeasure],
        warnings: Sequence[str] = (),
    ) -> BenchColumn:
        split = self._splits[number]
        cells = [self._cells.get((number, system)) for system in range(len(self._systems))]
        for system, (error, exit_code) in failures.items():
            if (cell := cells[system]) is not None:
                cells[system] = replace(cell, error=error, exit_code=exit_code)
        return BenchColumn(split.task.name, split.name, group, tuple(cells), tuple(measures), tuple(warnings))

    def _present(self, split: int) -> list[int]:
        return [
            system
            for system in range(len(self._systems))
            if (cell := self._cells.get((split, system))) is not None and cell.error is None
        ]

    def _path(self, position: Position) -> Path:
        split, system = self._splits[position[0]], position[1]
        engine, recipe = self._systems[system].engine, self._recipes[system]
        return self._plan.out / split.task.name / split.name / engine / recipe.name

    def _cell(self, position: Position, manifest: Manifest) -> Cell:
        return Cell(self._run_name(position), manifest.digest, seconds=manifest.seconds)

    def _failed(self, position: Position, error: object) -> Cell:
        sentence, exit_code = _failure(error)
        return Cell(self._run_name(position), error=sentence, exit_code=exit_code)

    def _run_name(self, position: Position) -> str:
        return self._path(position).relative_to(self._plan.out).as_posix()


def _failure(error: object) -> Failure:
    if isinstance(error, SearchappError):
        return error.lines[0], error.exit_code
    if isinstance(error, BaseException) and is_lack_of_memory(error):
        return "not enough memory: end other programs, or rank fewer cells at a time with --workers", 1
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {reason(error)}", 1
    return f"an internal error, {type(error).__name__} ({error}): please report this", 1
