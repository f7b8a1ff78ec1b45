"""What a report of runs holds: figures with intervals, tests, curves, topics, agreement, and how to get them again.

Nothing is measured here: the figures, the values of topics and the tests are those of `compare`, the curves are
measures of ir-measures, see `evaluation.curves`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from searchapp.app.compare import CompareRequest, compare
from searchapp.app.comparison import Comparison, Measured
from searchapp.app.evaluate import ALL, GoldSource, of_run
from searchapp.app.reproduction import JudgedIn, Reproduction, reproduction
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.evaluation.curves import Curves, curves, measures_of_curves
from searchapp.evaluation.significance import Interval, bootstrap_interval, mean
from searchapp.formats.problems import Problems
from searchapp.judging.statistics import Agreement, AnnotatorProgress
from searchapp.model import Run
from searchapp.runs import directory
from searchapp.runs.directory import StoredRun
from searchapp.tasks.base import Task

EXACT = 1e-9
"""By which the mean of values may differ from the figure that it is."""


@dataclass(frozen=True, slots=True)
class People:
    """Those whose judgments are the gold: what each has judged, and how far they agree."""

    progress: tuple[AnnotatorProgress, ...]
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """What to report on: one run, or several as `compare` takes them.

    Where nobody says by what figures are broken down, it is all that the task has. `people` are those whose judgments
    the gold is, `judged` says where judgments come from; neither matters where the gold is the organisers'.
    """

    runs: CompareRequest
    people: People | None = None
    judged: JudgedIn = field(default_factory=JudgedIn)


@dataclass(frozen=True, slots=True)
class ReportedFigure:
    """A figure of `evaluate` in each run, None where a run lacks it.

    `intervals` are those of the mean over topics; None where the figure is no mean of values that the scorer has for
    topics, or is not among those that are tested.
    """

    name: str
    is_official: bool
    values: tuple[float | None, ...]
    intervals: tuple[Interval | None, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """One run, or several beside each other.

    `title` is the task's. `figures` are all of `evaluate`, those first that are tested. `texts` are those of the topics
    by their ids, as far as they could be read, `curves` those of each run over all topics with gold. `warnings` must
    not be missed.
    """

    title: str
    comparison: Comparison
    figures: tuple[ReportedFigure, ...]
    texts: Mapping[str, str]
    curves: tuple[Curves, ...]
    people: People | None
    reproduction: Reproduction
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """What `report --json` prints: what `compare --json` has, and what the report has besides."""
        names = [run.name for run in self.comparison.runs]
        return {
            **self.comparison.to_json(),
            "figures": [
                {
                    "name": one.name,
                    "official": one.is_official,
                    "values": dict(zip(names, one.values, strict=True)),
                    "intervals": {
                        name: None if interval is None else asdict(interval)
                        for name, interval in zip(names, one.intervals, strict=True)
                    },
                }
                for one in self.figures
            ],
            "curves": {
                name: {
                    "interpolated_precision": {f"{level:.1f}": at for level, at in one.precision.items()},
                    "recall": {str(rank): at for rank, at in one.recall.items()},
                }
                for name, one in zip(names, self.curves, strict=True)
            },
            "agreement": None if self.people is None else _agreement(self.people.agreement),
            "reproduction": asdict(self.reproduction),
            "warnings": list(self.warnings),
        }


def _agreement(found: Agreement) -> dict[str, Any]:
    """The short form: `judgments agreement --json` has all of it."""
    return {"annotators": list(found.annotators), "documents": found.documents, "alpha": found.alpha}


def report(request: ReportRequest) -> Report:
    """Everything that a report of run directories shows.

    Raises:
        as `compare` does.
    """
    manifests = [directory.read_manifest(run) for run in request.runs.runs]
    task, gold = of_run(StoredRun(request.runs.runs[0], manifests[0], Run("", ())), request.runs.source)
    depth = max(manifest.depth for manifest in manifests)
    asked = replace(
        request.runs,
        source=replace(request.runs.source, also=measures_of_curves(depth)),
        alone=len(manifests) == 1,
    )
    asked, comparison, left_out = _compared(asked)
    texts, unread = _texts(task, gold)
    return Report(
        title=task.info.title,
        comparison=comparison,
        figures=tuple(_figures(comparison)),
        texts=texts,
        curves=tuple(curves(one.also.values, depth) for one in comparison.evaluations),
        people=request.people,
        reproduction=reproduction(asked, task, gold, comparison, request.judged),
        warnings=(*comparison.warnings, *left_out, *unread),
    )


def _compared(asked: CompareRequest) -> tuple[CompareRequest, Comparison, Sequence[str]]:
    """The runs beside each other, what was asked for that, and why breakdowns that nobody chose are left out."""
    source = asked.source
    if source.by or source.gold or asked.judgments is not None:
        return asked, compare(asked), ()
    broken_down = replace(asked, source=replace(source, by=(ALL,)))
    try:
        return broken_down, compare(broken_down), ()
    except (DataError, UsageError) as error:
        # Where something else is wrong, it is wrong without breakdowns too.
        return asked, compare(asked), (f"there are no breakdowns: {error}",)


def _figures(found: Comparison) -> list[ReportedFigure]:
    """Those that are tested first, then all others that `evaluate` has."""
    tested = {one.name: one for one in found.measures}
    names = dict.fromkeys(tested)
    known = [{**one.measures.values, **one.official.values} for one in found.evaluations]
    for held in known:
        names |= dict.fromkeys(held)
    return [
        ReportedFigure(
            name,
            name == found.evaluations[0].official.measure,
            tuple(held.get(name) for held in known),
            tuple(
                _interval(held.get(name), tested.get(name), place, found.seed)
                for place, held in enumerate(known)
            ),
        )
        for name in names
    ]


def _interval(figure: float | None, measured: Measured | None, run: int, seed: int) -> Interval | None:
    """The interval of a figure that is the mean of the values that its topics have."""
    if figure is None or measured is None:
        return None
    values = [value for value in measured.values[run].values() if value is not None and math.isfinite(value)]
    if not values or not abs(mean(values) - figure) <= EXACT:
        return None
    return bootstrap_interval(values, seed=seed)


def _texts(task: Task, gold: GoldSource) -> tuple[Mapping[str, str], Sequence[str]]:
    """The texts of the topics by their ids, and why there are none: figures can be had without them."""
    folder = gold.folder(task)
    if folder is None or gold.split is None:
        return {}, ()
    try:
        topics = task.collection(folder).topics(gold.split, Problems(lenient=True))
    except SearchappError as error:
        return {}, (f"the texts of the topics are missing: {error}",)
    return {topic.id: topic.text for topic in topics}, ()
