"""Scores the runs of a split in a bench, the whole of it and its groups of topics, and keeps what that came to.

    <folder>/<task>/<split>/figures.json        {"format": 1, "key": "9f2c…", "columns": […]}

The key is the digest of everything that the figures depend on. As long as it stays the same nothing is scored again.
"""

from __future__ import annotations

import json
from collections.abc import Collection as AnyCollection
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import searchapp
from searchapp import resources
from searchapp.app.bench import BenchMeasure, Cell, Column, System, column_of, measure_of, without_nan
from searchapp.app.bench_file import BenchTask, Group
from searchapp.app.comparable import require_comparable
from searchapp.app.evaluate import GoldSource, of_run
from searchapp.app.judged import Judgments
from searchapp.app.scored_runs import (
    ScoredRun,
    Scoring,
    Testing,
    measure_names,
    measured,
    pairs_of,
    scored_run,
)
from searchapp.digests import digest_file, digest_json
from searchapp.errors import DataError, SearchappError
from searchapp.evaluation.significance import mean
from searchapp.files import whole_file
from searchapp.formats.problems import Problems
from searchapp.model import Hits, Ranking, Run
from searchapp.runs import directory
from searchapp.runs.directory import StoredRun
from searchapp.tasks.base import Collection

FILE = "figures.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class ScoredSplit:
    """A split of a task whose cells are there: what its figures depend on.

    `cells` has the cell of each system, None where the recipe is not for the task; their runs are in `out`, and what is
    kept in `folder`. With `judgments` these are the gold.
    """

    task: BenchTask
    split: str
    collection: Collection
    folder: Path
    out: Path
    systems: Sequence[System]
    baseline: int
    cells: tuple[Cell | None, ...]
    testing: Testing
    judgments: Judgments | None = None

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
        options = self.task.options
        judged = self.judgments
        gold = self.collection.gold_files(self.split) if judged is None else []
        files = [*gold, *filter(None, (options.hierarchy,))]
        described = {
            "searchapp": searchapp.__version__,
            "format": FORMAT,
            "runs": [None if cell is None or cell.error is not None else cell.digest for cell in self.cells],
            "baseline": self.baseline,
            "gold": [digest_file(file) for file in files],
            "options": [options.nearest, options.knowledge_base, options.lenient],
            "measures": list(self.task.measures),
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


def kept_columns(split: ScoredSplit) -> list[Column] | None:
    """The columns of a split as they were scored before, if nothing has changed that they depend on."""
    try:
        described = resources.read_json(split.folder / FILE, file_names=True)
        if described.get("format") != FORMAT or described.get("key") != split.key():
            return None
        return [_as_now(split, column_of(one)) for one in described["columns"]]
    except (SearchappError, KeyError, TypeError, ValueError):
        return None  # is scored again


def _as_now(split: ScoredSplit, column: Column) -> Column:
    """A kept column with the cells as they are now; whether they could be scored was found before."""
    errors = {
        number: (cell.error, cell.exit_code)
        for number, cell in enumerate(column.cells)
        if cell is not None and cell.error is not None and number in split.present
    }
    return split.column(column.group, errors, column.measures, column.warnings)


def scored_columns(split: ScoredSplit) -> list[Column]:
    """Score the runs of a split, and keep what came of it.

    Raises:
        SearchappError: no run can be scored, or it can't be written down.
    """
    key = split.key()
    columns = list(_columns(split))
    described = {"format": FORMAT, "key": key, "columns": [asdict(column) for column in columns]}
    text = json.dumps(without_nan(described), ensure_ascii=False, allow_nan=False)
    with whole_file(split.folder / FILE) as file:
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")
    return columns


def _columns(split: ScoredSplit) -> Iterator[Column]:
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


def _warnings(split: ScoredSplit, scored: Mapping[int, ScoredRun]) -> list[str]:
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
    split: ScoredSplit, scored: Mapping[int, ScoredRun], topics: AnyCollection[str] | None
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


def _topics(split: ScoredSplit, group: Group) -> frozenset[str]:
    """The ids of a group's topics."""
    if group.where is None:
        return frozenset(group.topics)
    return frozenset(
        topic.id
        for topic in split.collection.topics(split.split, Problems(lenient=True))
        if all(str(topic.fields.get(name)) == value for name, value in group.where.items())
    )
