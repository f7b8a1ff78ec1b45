"""Collect the content of a report of runs."""

from __future__ import annotations

import math
import platform
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import searchapp
from searchapp.app.compare import SUCCESS_THRESHOLD, CompareRequest, compare
from searchapp.app.comparison import ComparedRun, Comparison, Measured
from searchapp.app.evaluate import ALL, GoldSource, gold_files, of_run
from searchapp.app.manifests import command
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.evaluation.measures import Curves, curves, measures_of_curves
from searchapp.evaluation.significance import (
    PERMUTATIONS,
    RESAMPLES,
    SEED,
    Interval,
    bootstrap_interval,
    mean,
)
from searchapp.files import data_name, digest_file, digest_json
from searchapp.formats.problems import Problems
from searchapp.judging.agreement import Agreement, AnnotatorProgress
from searchapp.judging.judgments import Aggregation, Rule, Unjudged
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Run
from searchapp.runs import directory
from searchapp.runs.directory import RANKINGS, StoredRun, read_manifest
from searchapp.tasks.base import Task

# The packages whose versions affect figures.
COMPUTED_WITH = ("ir-measures", "pytrec-eval-terrier", "numpy", "scipy")


@dataclass(frozen=True, slots=True)
class JudgedIn:
    """The source of judgments that are the gold: a qrels file or a log."""

    qrels: Path | None = None
    log: Path | None = None
    aggregation: Aggregation = field(default_factory=Aggregation)

    def words(self) -> list[str]:
        """Return the options of `judgments agreement` for the log."""
        log = [] if self.log is None else ["--log", str(self.log)]
        return [*log, *(word for name in self.aggregation.annotators or () for word in ("--annotator", name))]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The commands, inputs, versions and digests behind the figures."""

    commands: Mapping[str, str]  # by the numbers that they print
    runs: tuple[Mapping[str, Any], ...]  # the inputs of each run, see `_run_inputs`
    gold: Mapping[str, str]  # the SHA-256 of each file with gold, or of the grades of judgments in a log
    versions: Mapping[str, str]
    permutations: int
    resamples: int
    seed: int


def reproduction(
    request: CompareRequest, task: Task, gold: GoldSource, comparison: Comparison, judged: JudgedIn
) -> Reproduction:
    """Return the reproduction of compared runs.

    Args:
        request: the compared runs and measures
        task: the task of the runs
        gold: the official gold
        comparison: the result of the comparison
        judged: the source of judgments, if these are the gold

    Raises:
        DataError: a file with gold is gone since it was read.
    """
    return Reproduction(
        commands=_commands(request, task, judged),
        runs=tuple(_run_inputs(path, run) for path, run in zip(request.runs, comparison.runs, strict=True)),
        gold=_gold(request, task, gold, judged.qrels),
        versions={
            "searchapp": searchapp.__version__,
            "Python": platform.python_version(),
            **{name: version for name in COMPUTED_WITH if (version := _version(name))},
        },
        permutations=request.permutations,
        resamples=RESAMPLES,
        seed=request.seed,
    )


def _gold(request: CompareRequest, task: Task, gold: GoldSource, qrels: Path | None) -> dict[str, str]:
    if qrels is not None:
        return {qrels.name: digest_file(qrels)}
    if request.judgments is not None:
        grades = {topic: dict(of_topic) for topic, of_topic in request.judgments.grades.items()}
        return {"the grades of the judgments": digest_json(grades)}
    folder = gold.folder(task) or Path()
    return {
        data_name(folder, file) if file.is_relative_to(folder) else file.name: digest_file(file)
        for file in gold_files(task, gold)
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _run_inputs(path: Path, run: ComparedRun) -> dict[str, Any]:
    manifest = read_manifest(path)
    return {
        "run": run.name,
        "command": command(manifest, portable=True),
        "searchapp": manifest.searchapp,
        "engine": " ".join(filter(None, (manifest.engine.get("name"), manifest.engine.get("version")))),
        "tool": str(manifest.imported.get("tool") or ""),
        "created": manifest.created,
        "seconds": manifest.seconds,
        "digest": manifest.digest,
        "rankings": manifest.files.get(RANKINGS, ""),
        "mapping": manifest.mapping_digest,
        "index": manifest.index_digest,
        "files": manifest.data_digests,
        "recipe": manifest.recipe,
    }


def _commands(request: CompareRequest, task: Task, judged: JudgedIn) -> dict[str, str]:
    runs, source = [str(path) for path in request.runs], request.source
    scoring = list(_scoring(request, judged))
    measures = [word for name in source.measures for word in ("--measure", name)]
    by = [word for name in source.by for word in ("--by", name)]
    of_curves = [word for name in source.also for word in ("--measure", name)]
    commands = {
        "figures and breakdowns": ["evaluate", *runs, *scoring, *measures, *by],
        "precision and recall by level and rank": ["evaluate", *runs, *scoring, *of_curves],
    }
    if len(runs) > 1:
        words = ["compare", *runs, *scoring, *measures, *by, *_testing(request)]
        commands["tests, topics, difficulty, similarity of rankings"] = words
    if request.judgments is not None and judged.qrels is None:
        commands["agreement of annotators"] = ["judgments", "agreement", task.reference, *judged.words()]
    return {title: shlex.join(["searchapp", *words, "--json"]) for title, words in commands.items()}


def _scoring(request: CompareRequest, judged: JudgedIn) -> Iterator[str]:
    source, options, judgments = request.source, request.source.options, request.judgments
    for option, value in (
        ("--data", source.data),
        *(("--gold", file) for file in source.gold),
        ("--cutoff", options.cutoff),
        ("--hierarchy", options.hierarchy),
        ("--kb", options.knowledge_base),
    ):
        if value is not None:
            yield from (option, str(value))
    if options.lenient:
        yield "--lenient"
    if judgments is None:
        return
    if judged.qrels is None:
        yield from ("--judgments", *judged.words())
        if judged.aggregation.rule is not Rule.majority:
            yield from ("--aggregation", judged.aggregation.rule.value)
    else:
        yield from ("--qrels", str(judged.qrels))
    if judgments.unjudged is not Unjudged.nonrelevant:
        yield from ("--unjudged", judgments.unjudged.value)
    if judgments.held_out:
        yield "--held-out"


def _testing(request: CompareRequest) -> Iterator[str]:
    for option, value, usual in (
        ("--baseline", request.baseline, None),
        ("--depth", request.depth, None),
        ("--success-threshold", request.success_threshold, SUCCESS_THRESHOLD),
        ("--permutations", request.permutations, PERMUTATIONS),
        ("--seed", request.seed, SEED),
    ):
        if value != usual:
            yield from (option, f"{value:g}" if isinstance(value, float) else str(value))
    if request.force:
        yield "--force"


EXACT = 1e-9  # the maximum difference of a mean of values and its figure


@dataclass(frozen=True, slots=True)
class People:
    """The progress and agreement of the annotators whose judgments are the gold."""

    progress: tuple[AnnotatorProgress, ...]
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class ReportedFigure:
    """A figure of `evaluate` in each run, None if a run lacks it."""

    name: str
    is_official: bool
    values: tuple[float | None, ...]
    # Of the mean over topics; None for a figure that is no such mean, or is not tested.
    intervals: tuple[Interval | None, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a report."""

    title: str  # of the task
    comparison: Comparison
    figures: tuple[ReportedFigure, ...]  # tested ones first
    texts: Mapping[str, str]  # the texts of topics by id, as far as they can be read
    curves: tuple[Curves, ...]  # of each run over all topics with gold
    people: People | None
    reproduction: Reproduction
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        names = [run.name for run in self.comparison.runs]
        agreement = None
        if self.people is not None:
            people_agreement = self.people.agreement
            agreement = {
                "annotators": list(people_agreement.annotators),
                "documents": people_agreement.documents,
                "alpha": people_agreement.alpha,
            }
        return {
            **self.comparison.to_json(),
            "figures": [
                {
                    "name": figure.name,
                    "official": figure.is_official,
                    "values": dict(zip(names, figure.values, strict=True)),
                    "intervals": {
                        name: None if interval is None else asdict(interval)
                        for name, interval in zip(names, figure.intervals, strict=True)
                    },
                }
                for figure in self.figures
            ],
            "curves": {
                name: {
                    "interpolated_precision": {f"{level:.1f}": at for level, at in of_run.precision.items()},
                    "recall": {str(rank): at for rank, at in of_run.recall.items()},
                }
                for name, of_run in zip(names, self.curves, strict=True)
            },
            "agreement": agreement,
            "reproduction": asdict(self.reproduction),
            "warnings": list(self.warnings),
        }


def report(request: CompareRequest, people: People | None = None, judged: JudgedIn | None = None) -> Report:
    """Return the content of a report of one or more run directories.

    Args:
        request: the run directories, measures and tests
        people: the annotators whose judgments are the gold
        judged: the source of these judgments

    Raises:
        as `compare` does.
    """
    manifests = [directory.read_manifest(run) for run in request.runs]
    task, gold = of_run(StoredRun(request.runs[0], manifests[0], Run("", ())), request.source)
    depth = max(manifest.depth for manifest in manifests)
    compare_request = replace(
        request,
        source=replace(request.source, also=measures_of_curves(depth)),
        alone=len(manifests) == 1,
    )
    compare_request, comparison, left_out = _compare(compare_request)
    texts, unread = _texts(task, gold)
    return Report(
        title=task.info.title,
        comparison=comparison,
        figures=tuple(_figures(comparison)),
        texts=texts,
        curves=tuple(curves(evaluation.also.values, depth) for evaluation in comparison.evaluations),
        people=people,
        reproduction=reproduction(compare_request, task, gold, comparison, judged or JudgedIn()),
        warnings=(*comparison.warnings, *left_out, *unread),
    )


def _compare(request: CompareRequest) -> tuple[CompareRequest, Comparison, Sequence[str]]:
    source = request.source
    if source.by or source.gold or request.judgments is not None:
        return request, compare(request), ()
    broken_down = replace(request, source=replace(source, by=(ALL,)))
    try:
        return broken_down, compare(broken_down), ()
    except (DataError, UsageError) as error:
        # Any other error is raised again without breakdowns.
        return request, compare(request), (f"no breakdowns: {error}",)


def _figures(comparison: Comparison) -> list[ReportedFigure]:
    tested = {measured.name: measured for measured in comparison.measures}
    names = dict.fromkeys(tested)
    known = [
        {**evaluation.measures.values, **evaluation.official.values} for evaluation in comparison.evaluations
    ]
    for figures in known:
        names |= dict.fromkeys(figures)
    return [
        ReportedFigure(
            name,
            name == comparison.evaluations[0].official.measure,
            tuple(figures.get(name) for figures in known),
            tuple(
                _interval(figures.get(name), tested.get(name), run, comparison.seed)
                for run, figures in enumerate(known)
            ),
        )
        for name in names
    ]


def _interval(figure: float | None, measured: Measured | None, run: int, seed: int) -> Interval | None:
    if figure is None or measured is None:
        return None
    values = [value for value in measured.values[run].values() if value is not None and math.isfinite(value)]
    if not values or not abs(mean(values) - figure) <= EXACT:
        return None
    return bootstrap_interval(values, seed=seed)


def _texts(task: Task, gold: GoldSource) -> tuple[Mapping[str, str], Sequence[str]]:
    folder = gold.folder(task)
    if folder is None or gold.split is None:
        return {}, ()
    try:
        topics = task.collection(folder).topics(gold.split, Problems(lenient=True))
    except SearchappError as error:
        return {}, (f"no texts of topics: {error}",)
    return {topic.id: topic.text for topic in topics}, ()
