"""Carry out a bench: rank missing cells, score every split and its groups of topics, compare with the baseline.

    <folder>/<task>/<split>/figures.json        {"format": 1, "key": "9f2c…", "columns": […]}

The key is the digest of everything that the figures depend on: while it stays the same, nothing is scored
again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection as AnyCollection
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

import searchapp
from searchapp import resources
from searchapp.app import runs
from searchapp.app.compare import require_comparable
from searchapp.app.comparison import (
    ScoredRun,
    Scoring,
    Testing,
    import_tests,
    measure_names,
    measured,
    pairs_of,
    scored_run,
)
from searchapp.app.evaluate import GoldSource, Judgments, of_run
from searchapp.app.experiments import bench_result
from searchapp.app.experiments.bench_plan import BenchPlan, BenchRecipe, BenchTask, Group
from searchapp.app.experiments.bench_result import (
    BenchMeasure,
    BenchResult,
    Cell,
    Column,
    System,
    measure_of,
    record_of,
    write_json,
)
from searchapp.app.index import index_task
from searchapp.app.rank import RunRequest, make_run, planned
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.base import EngineInfo
from searchapp.errors import DataError, SearchappError, is_lack_of_memory
from searchapp.evaluation.significance import mean
from searchapp.files import digest_file, digest_json, exclusive_folder, reason
from searchapp.formats.problems import Problems
from searchapp.judging.judgments import Unjudged
from searchapp.model import Hits, IndexInfo, Ranking, Run
from searchapp.processes import process_each
from searchapp.progress import Progress, SilentProgress
from searchapp.ranking import recipes
from searchapp.runs import directory
from searchapp.runs.directory import Manifest, StoredRun
from searchapp.tasks import folders
from searchapp.tasks.base import Collection, Grades
from searchapp.text import counted

FIGURES_FILE = "figures.json"
FIGURES_FORMAT = 1


@dataclass(frozen=True, slots=True)
class BenchSplit:
    """A split of a task: what its figures depend on.

    The runs of the `systems` are in `out`, what is kept of the split in `folder`. With `judgments` these are the gold.
    `cells` has the cell of each system once all are ranked, None where the recipe is not for the task.
    """

    task: BenchTask
    split: str
    collection: Collection
    folder: Path
    out: Path
    systems: Sequence[System]
    baseline: int
    testing: Testing
    judgments: Judgments | None
    cells: tuple[Cell | None, ...] = ()

    @property
    def index_name(self) -> str:
        """The index that the split is ranked in."""
        return self.collection.index_of(self.split)

    @property
    def present(self) -> list[int]:
        """The systems that have a run."""
        return [number for number, cell in enumerate(self.cells) if cell is not None and cell.error is None]

    @property
    def source(self) -> GoldSource:
        """What the runs are scored against."""
        return GoldSource(
            data=self.task.data, split=self.split, options=self.task.options, measures=self.task.measures
        )

    def key(self) -> str:
        """The digest of all that the figures depend on.

        Raises:
            DataError: the gold can't be read.
        """
        options, info = self.task.options, self.task.task.info
        judged = self.judgments
        gold = self.collection.gold_files(self.split) if judged is None else []
        files = [*gold, *filter(None, (options.hierarchy,))]
        described = {
            "searchapp": searchapp.__version__,
            "format": FIGURES_FORMAT,
            "runs": [None if cell is None or cell.error is not None else cell.digest for cell in self.cells],
            "baseline": self.baseline,
            "gold": [digest_file(file) for file in files],
            "options": [options.nearest, options.knowledge_base, options.lenient],
            "measures": list(self.task.measures),
            "task": [info.official_measure, info.measures, info.grades],
            "groups": [asdict(group) for group in self.task.groups],
            "testing": asdict(self.testing),
        }
        if judged is not None:
            grades = {topic: dict(held) for topic, held in judged.grades.items()}
            described["judgments"] = [judged.unjudged.value, digest_json(grades)]
        return digest_json(described)

    def without_figures(self, why: tuple[str, int] | None) -> list[Column]:
        """The column of a split that can't be scored; `why` is the error of every cell that has a run."""
        return [self.column(None, dict.fromkeys(self.present, why) if why else {}, ())]

    def column(
        self,
        group: str | None,
        errors: Mapping[int, tuple[str, int]],
        measures: Sequence[BenchMeasure],
        warnings: Sequence[str] = (),
    ) -> Column:
        """A column with the cells as they are, some of which have no figures for these errors."""
        cells = [
            replace(cell, error=errors[number][0], exit_code=errors[number][1])
            if cell is not None and number in errors
            else cell
            for number, cell in enumerate(self.cells)
        ]
        return Column(self.task.name, self.split, group, tuple(cells), tuple(measures), tuple(warnings))


def kept_columns(split: BenchSplit) -> list[Column] | None:
    """The columns of a split as they were scored before, if nothing has changed that they depend on."""
    try:
        described = resources.read_json(split.folder / FIGURES_FILE, file_names=True)
        if described.get("format") != FIGURES_FORMAT or described.get("key") != split.key():
            return None
        return [_as_now(split, record_of(Column, one)) for one in described["columns"]]
    except (SearchappError, KeyError, TypeError, ValueError):
        return None  # is scored again


def _as_now(split: BenchSplit, column: Column) -> Column:
    """A kept column with the cells as they are now; whether they could be scored was found before."""
    errors = {
        number: (cell.error, cell.exit_code)
        for number, cell in enumerate(column.cells)
        if cell is not None and cell.error is not None and number in split.present
    }
    return split.column(column.group, errors, column.measures, column.warnings)


def scored_columns(split: BenchSplit) -> list[Column]:
    """Score the runs of a split, and keep what came of it.

    Raises:
        SearchappError: no run can be scored, or it can't be written down.
    """
    key = split.key()
    columns = list(_columns(split))
    described = {"format": FIGURES_FORMAT, "key": key, "columns": [asdict(column) for column in columns]}
    write_json(split.folder / FIGURES_FILE, described)
    return columns


def _columns(split: BenchSplit) -> Iterator[Column]:
    scoring = Scoring(split.source, split.judgments)
    errors: dict[int, tuple[str, int]] = {}
    scored: dict[int, ScoredRun] = {}
    read: list[StoredRun] = []
    for number in split.present:
        cell = split.cells[number]
        assert cell is not None
        try:
            stored = directory.read(split.out / cell.run)
            task, gold = of_run(stored, split.source)
            scored[number] = scored_run(stored, scoring, task, scoring.grades(task, gold))
        except SearchappError as error:
            errors[number] = error.lines[0], error.exit_code
            continue
        topics = tuple(Ranking(ranking.topic_id, Hits()) for ranking in stored.run)
        read.append(replace(stored, run=Run(stored.run.tag, topics)))  # the rankings are not needed any more
    if read:
        require_comparable(read, anyway=False)
    yield split.column(None, errors, list(_measures(split, scored, None)), _warnings(split, scored))
    for group in split.task.groups:
        topics_of_group = _topics(split, group)
        there = next(iter(next(iter(scored.values())).values.values()), {}) if scored else {}
        if not topics_of_group & there.keys():
            found: list[BenchMeasure] = []
            said = [f"the group {group.name} has no topic of {split.task.name} {split.split}"]
        else:
            found, said = list(_measures(split, scored, topics_of_group)), []
        yield split.column(group.name, errors, found, said)


def _warnings(split: BenchSplit, scored: Mapping[int, ScoredRun]) -> list[str]:
    """Where figures mislead, each once, with the systems that it is said of unless it is said of all."""
    about: dict[str, list[str]] = {}
    for number, run in scored.items():
        for warning in run.evaluation.warnings:
            about.setdefault(warning, []).append(split.systems[number].name)
    return [
        warning if len(names) == len(scored) else f"{', '.join(names)}: {warning}"
        for warning, names in about.items()
    ]


def _measures(
    split: BenchSplit, scored: Mapping[int, ScoredRun], topics: AnyCollection[str] | None
) -> Iterator[BenchMeasure]:
    """The official figure and the measures of all systems, over some of the topics if these are given."""
    if not scored:
        return
    numbers = list(scored)
    runs = list(scored.values())
    official = runs[0].evaluation.official.measure
    try:
        names = measure_names(runs, [name for name in split.task.measures if name in runs[0].values])
    except DataError:
        names = []  # no figure is a mean over topics
    place = numbers.index(split.baseline) if split.baseline in scored else None
    pairs = [] if place is None else pairs_of(len(runs), place)
    for name in dict.fromkeys((official, *names)):
        figures: list[float | None] = [None] * len(split.systems)
        if name not in names:
            if topics is None:  # it is one of all topics, and has no values
                for number, run in scored.items():
                    figures[number] = run.figure(name)
                yield BenchMeasure(name, True, 0, tuple(figures), (None,) * len(figures))
            continue
        found = measured(name, runs, pairs, split.testing, topics=topics)
        for number, run, values in zip(numbers, runs, found.values, strict=True):
            known = [value for value in values.values() if value is not None]
            figures[number] = run.figure(name) if topics is None else mean(known)
        yield measure_of(found, figures, numbers, split.baseline)


def _topics(split: BenchSplit, group: Group) -> frozenset[str]:
    """The ids of a group's topics."""
    if group.where is None:
        return frozenset(group.topics)
    return frozenset(
        topic.id
        for topic in split.collection.topics(split.split, Problems(lenient=True))
        if all(str(topic.fields.get(name)) == value for name, value in group.where.items())
    )


BUSY = "process {process} is at this bench in %s: wait until it is done, or choose another folder with --out"


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """A plan, and with which settings it is carried out: `jobs` cells at a time, as many as there are processors where
    it is None. With `overwrite` every cell is ranked anew. `judged` are the grades of people by the names of the tables
    of tasks, of all that the plan scores by judgments.
    """

    plan: BenchPlan
    settings: Settings
    jobs: int | None = None
    overwrite: bool = False
    judged: Mapping[str, Grades] = field(default_factory=dict)


def run_bench(request: BenchRequest, progress: Progress) -> BenchResult:
    """Carry out a plan, and write the result into its folder; cells that failed are in it.

    Raises:
        SearchappError: another process is at it, or the folder can't be written to.
    """
    with exclusive_folder(request.plan.out, BUSY % request.plan.out):
        found = _Bench(request).result(progress)
        bench_result.write_bench(found)
    return found


class _What(Enum):
    index = auto()
    rank = auto()
    score = auto()


class _Job(NamedTuple):
    """Something for a process to do: index for an engine, rank a cell, or score a split; by the numbers of these."""

    what: _What
    split: int
    system: int = 0


class _Bench:
    """A bench at work. What its processes do, they do to the copies that they were forked with, and answer."""

    def __init__(self, request: BenchRequest) -> None:
        self._plan = plan = request.plan
        self._request = request
        engines = plan.engines or (request.settings.engine,)
        self._settings = {name: replace(request.settings, engine=name) for name in engines}
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
        self._baseline = next(place for place, (one, _) in enumerate(rows) if one.name == plan.baseline)
        self._splits = [
            BenchSplit(
                task=task,
                split=split,
                collection=collection,
                folder=plan.out / task.name / split,
                out=plan.out,
                systems=self._systems,
                baseline=self._baseline,
                testing=Testing(plan.permutations, plan.seed, jointly=False),
                judgments=None
                if task.judged is None
                else Judgments(request.judged[task.name], task.judged.unjudged),
            )
            for task in plan.tasks
            for collection in [task.task.collection(task.data)]
            for split in task.splits
        ]
        self._cells: dict[tuple[int, int], Cell] = {}
        self._columns: dict[int, Sequence[Column]] = {}
        self._engines: dict[str, EngineInfo | SearchappError] = {}
        self._indexes: dict[tuple[str, str], IndexInfo | SearchappError | None] = {}
        self._indexing: dict[_Job, list[_Job]] = {}
        """What waits for an index, by the job that makes it."""

    def result(self, progress: Progress) -> BenchResult:
        """Do what is to be done, and say what it came to."""
        places = list(self._places())
        waiting: deque[_Job] = deque()
        with progress.stage("checking", len(places)) as advance:
            self._look_at_engines()
            for number, system in places:
                self._check(number, system, waiting)
                advance(1)
            for number in range(len(self._splits)):
                self._score_if_ranked(number, waiting)
        left = len(places) - len(self._cells) + len(self._splits) - len(self._columns) + len(self._indexing)
        if left:
            import_tests()
            with (
                progress.stage("ranking and scoring", left) as advance,
                closing(process_each(self._work, waiting, self._request.jobs)) as outcomes,
            ):
                for job, outcome in outcomes:
                    advance(self._settle(job, outcome, waiting))
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
        """Which tasks are scored by something else than the organisers' gold."""
        for task in self._plan.tasks:
            if task.judged is not None:
                grades = self._request.judged[task.name]
                treated = "left out" if task.judged.unjudged is Unjudged.condensed else "not relevant"
                yield (
                    f"{task.name} is scored by what people have judged, "
                    f"{counted(sum(map(len, grades.values())), 'document')} of {counted(len(grades), 'topic')}; "
                    "documents "
                    f"that nobody has judged are {treated}"
                )

    # What there is

    def _places(self) -> Iterator[tuple[int, int]]:
        """The cells, by the numbers of their splits and systems."""
        for number, split in enumerate(self._splits):
            for system, recipe in enumerate(self._recipes):
                if recipe.is_for(split.task):
                    yield number, system

    def _look_at_engines(self) -> None:
        for name, settings in self._settings.items():
            try:
                with closing(open_engine(settings)) as engine:
                    self._engines[name] = engine.info()
                    for index in {split.index_name for split in self._splits}:
                        try:
                            self._indexes[name, index] = engine.index_info(index)
                        except SearchappError as error:
                            self._indexes[name, index] = error
            except SearchappError as error:
                self._engines[name] = error

    def _path(self, number: int, system: int) -> Path:
        return self._splits[number].folder / self._systems[system].engine / self._recipes[system].name

    def _check(self, number: int, system: int, waiting: deque[_Job]) -> None:
        """Keep a cell that is as it would be now, or have it ranked."""
        job = _Job(_What.rank, number, system)
        name = self._systems[system].engine
        engine = self._engines[name]
        try:
            if isinstance(engine, SearchappError):
                raise engine
            index = self._indexes[name, self._splits[number].index_name]
            if isinstance(index, SearchappError):
                raise index
            manifest = None if index is None else self._kept(number, system, engine, index)
        except SearchappError as error:
            self._cells[number, system] = self._failed(number, system, error)
            return
        if manifest is not None:
            self._cells[number, system] = self._cell(number, system, manifest)
        elif index is None:
            self._once_indexed(job, waiting)
        else:
            waiting.append(job)

    def _once_indexed(self, job: _Job, waiting: deque[_Job]) -> None:
        """Have a cell ranked when its task is indexed, which one process does for all of them."""
        task, engine = self._splits[job.split].task, self._systems[job.system].engine
        indexing = _Job(
            _What.index,
            next(number for number, one in enumerate(self._splits) if one.task is task),
            next(number for number, one in enumerate(self._systems) if one.engine == engine),
        )
        if indexing not in self._indexing:
            self._indexing[indexing] = []
            waiting.append(indexing)
        self._indexing[indexing].append(job)

    def _kept(self, number: int, system: int, engine: EngineInfo, index: IndexInfo) -> Manifest | None:
        """The manifest of a cell that needs not be ranked again."""
        path, task = self._path(number, system), self._splits[number].task.task
        if self._request.overwrite or not (path / directory.MANIFEST).is_file():
            return None
        if index.mapping_digest != digest_json(task.index_mapping()):
            return None  # nobody can rank with this index: whoever tries says so
        return directory.kept(path, planned(task, engine, index, self._run_request(number, system)))

    def _run_request(self, number: int, system: int) -> RunRequest:
        split, recipe = self._splits[number], self._recipes[system]
        return RunRequest(
            collection=split.collection,
            split=split.split,
            recipe=recipes.load(split.task.task.recipe_book(), recipe.recipe, recipe.parameters),
            depth=split.task.depth,
            tag=f"searchapp-{recipe.name}",
            lenient=split.task.lenient,
            home=self._request.settings.home,
        )

    # What the processes do

    def _work(self, job: _Job) -> Cell | Sequence[Column] | None:
        if job.what is _What.index:
            self._index(job.split, job.system)
            return None
        if job.what is _What.rank:
            return self._rank(job.split, job.system)
        return scored_columns(self._scored_split(job.split))

    def _index(self, number: int, system: int) -> None:
        split, settings = self._splits[number], self._settings[self._systems[system].engine]
        task = split.task
        with closing(open_engine(settings)) as engine:
            index_task(task.task, engine, split.collection, SilentProgress(), lenient=task.lenient)
        folders.remember(task.task, settings.home, task.data)

    def _rank(self, number: int, system: int) -> Cell:
        split, path = self._splits[number], self._path(number, system)
        with closing(open_engine(self._settings[self._systems[system].engine])) as engine:
            index = engine.index_info(split.index_name)
            if index is not None and (manifest := self._kept(number, system, engine.info(), index)):
                return self._cell(number, system, manifest)  # its index alone was gone
            request = self._run_request(number, system)
            made = make_run(split.task.task, engine, request, path, SilentProgress(), overwrite=True)
        warnings = list(made.warnings)
        for problems in (made.problems.skipped, made.solved_problems.skipped):
            warnings += [] if problems is None else [f"left out: {problems.lines[0]}"]
        if made.shortfall:
            warnings.append(f"the run has no official file: {made.shortfall}")
        return replace(self._cell(number, system, made.manifest), made=True, warnings=tuple(warnings))

    # What came of it

    def _settle(self, job: _Job, outcome: object, waiting: deque[_Job]) -> int:
        """Keep what a process has answered, and put what can be done now into the queue; returns how much is done."""
        if job.what is _What.index:
            depending = self._indexing.pop(job)
            if not isinstance(outcome, Exception):
                waiting.extendleft(reversed(depending))
                return 1
            for one in depending:
                self._cells[one.split, one.system] = self._failed(one.split, one.system, outcome)
            failed = {one.split for one in depending}
            return 1 + len(depending) + sum(self._score_if_ranked(number, waiting) for number in failed)
        if job.what is _What.rank:
            cell = outcome if isinstance(outcome, Cell) else self._failed(job.split, job.system, outcome)
            self._cells[job.split, job.system] = cell
            if cell.made:
                runs.remember_run(self._request.settings.home, self._path(job.split, job.system))
            return 1 + self._score_if_ranked(job.split, waiting)
        if isinstance(outcome, Exception):
            self._columns[job.split] = self._scored_split(job.split).without_figures(_reason(outcome))
        else:
            assert isinstance(outcome, Sequence)
            self._columns[job.split] = outcome
        return 1

    def _score_if_ranked(self, number: int, waiting: deque[_Job]) -> bool:
        """Have a split scored whose cells are all there, unless that is known; returns whether it is done with it."""
        wanted = [place for place in self._places() if place[0] == number]
        if any(place not in self._cells for place in wanted):
            return False
        split = self._scored_split(number)
        if not split.present:
            self._columns[number] = split.without_figures(None)
        elif (known := kept_columns(split)) is not None:
            self._columns[number] = known
        else:
            waiting.append(_Job(_What.score, number))
            return False
        return True

    def _scored_split(self, number: int) -> BenchSplit:
        cells = tuple(self._cells.get((number, system)) for system in range(len(self._systems)))
        return replace(self._splits[number], cells=cells)

    def _cell(self, number: int, system: int, manifest: Manifest) -> Cell:
        return Cell(self._named(number, system), manifest.digest, seconds=manifest.seconds)

    def _failed(self, number: int, system: int, error: object) -> Cell:
        sentence, code = _reason(error)
        return Cell(self._named(number, system), error=sentence, exit_code=code)

    def _named(self, number: int, system: int) -> str:
        return self._path(number, system).relative_to(self._plan.out).as_posix()


def _reason(error: object) -> tuple[str, int]:
    """Why something failed, in a sentence, and the exit code that says of what kind that is."""
    if isinstance(error, SearchappError):
        return error.lines[0], error.exit_code
    if isinstance(error, BaseException) and is_lack_of_memory(error):
        return "there is not enough memory: end other programs, or rank fewer cells at a time with --jobs", 1
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {reason(error)}", 1
    return f"an internal error, {type(error).__name__} ({error}): please report it", 1
