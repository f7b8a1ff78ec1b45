"""`searchapp evaluate`, `validate`, `compare` and `report`."""

from __future__ import annotations

from dataclasses import field
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.commands import (
    PERMUTATIONS,
    SEED,
    DataOption,
    JsonOption,
    OverwriteOption,
    PermutationsOption,
    SeedOption,
    SpreadingCommand,
    command,
    data_of,
    files_named,
    run_screen,
)
from searchapp.cli.judgment_options import (
    ByOption,
    GoldOption,
    JudgedOptions,
    judged_grades,
    open_judgments,
)
from searchapp.cli.output import for_person, print_json, require_screen, say, warn, warn_all
from searchapp.cli.tables import Layout, chosen_layout, headings, print_evaluations, print_result
from searchapp.config.settings import Settings
from searchapp.errors import GateMissed, UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.files import atomic_file, require_place
from searchapp.judging.judgments import Unjudged
from searchapp.lucene.dataclass import dataclass
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.tasks import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from searchapp.app.compare import CompareRequest
    from searchapp.app.evaluate import Evaluation, GoldSource, Subject
    from searchapp.app.report import People
    from searchapp.progress import Progress
    from searchapp.tasks.base import Grades
    from searchapp.tui.compare.screen import CompareScreen


@dataclass(frozen=True, slots=True)
class EvaluatingOptions(JudgedOptions):
    """Options for scoring runs against judgments; TREC runs need no task."""

    qrels: Path | None = option(
        "Score against the grades in a TREC or BEIR qrels file instead of gold; TREC runs without --task "
        "have no official figure."
    )
    sample: Path | None = option(
        "--judgments, --qrels: estimate xinfAP and infNDCG, with 95 % intervals, from the judged documents of "
        "this pool of `judgments pool --by sample`.",
        metavar="POOL",
        completes="runs",
    )

    def require_sample(self, source: GoldSource) -> None:
        """Check the options beside `sample`.

        Raises:
            UsageError: one of them does not go with it.
        """
        if self.sample is None:
            return
        if not self.judgments and self.qrels is None:
            raise UsageError("--sample requires --judgments or --qrels: the official gold is not sampled")
        if self.unjudged is not Unjudged.nonrelevant:
            raise UsageError("--sample excludes --unjudged: documents without a grade are estimated")
        if source.measures:
            raise UsageError("--sample excludes --measure: it estimates xinfAP and infNDCG")


app = typer.Typer()


@command(app, cls=SpreadingCommand)
def evaluate(
    settings: Settings,
    *,
    runs: list[Path] = argument(
        "Run directories, official files, or folders of these; with --qrels or --judgments also TREC runs.",
        completes="runs",
    ),
    task: str | None = option("Task of an official file or a TREC run.", metavar="TASK", completes="tasks"),
    data: Path | None = option(
        "Folder with the task's official files; default: the folder that the run directory records."
    ),
    split: str | None = option("Split of an official file or a TREC run.", completes="splits"),
    gold: GoldOption = None,
    by: ByOption = None,
    measure: list[str] | None = option(
        "An additional measure in ir-measures' notation, such as AP, RR, P@5, nDCG@10 or R(rel=2)@100; "
        "repeatable. Default: the measures of the task.",
        metavar="NAME",
        completes="measures",
    ),
    scorer: ScorerOptions,
    judged: EvaluatingOptions,
    fail_under: float | None = option("Exit with code 5 if an official figure is below this value."),
    per_topic: bool = flag("With --json: also print the figures of each topic."),
    as_json: JsonOption = False,
) -> None:
    """Score runs exactly as the official scorer does, with an honest figure where the official one misleads.

    If the official scorer stops on a file or rejects it, there is no figure, and the exit code is 4.
    """
    from searchapp.app.evaluate import GoldSource, Judgments, Subject, evaluate_judged
    from searchapp.app.evaluate import evaluate as score
    from searchapp.evaluation.measures import require_measures

    source = GoldSource(
        task=task,
        data=data,
        split=split,
        gold=files_named(gold or ()),
        home=settings.home,
        options=scorer,
        by=tuple(by or ()),
        measures=tuple(dict.fromkeys(measure or ())),
    )
    require_measures(source.measures)
    judged.require_sample(source)
    if judged.replace_gold(source):
        subjects = [Subject.of(run, source) for run in runs]
        grades = _grades(settings, subjects, judged)
        if judged.sample is None:
            against = Judgments(grades, judged.unjudged, judged.held_out)
            evaluations = [evaluate_judged(subject, against, source) for subject in subjects]
        else:
            evaluations = _estimates(subjects, grades, judged.sample, held_out=judged.held_out)
    else:
        evaluations = score(runs, source)
    if as_json:
        described = [evaluation.to_json(per_topic=per_topic) for evaluation in evaluations]
        print_json(described[0] if len(described) == 1 else {"runs": described})
    else:
        print_evaluations(evaluations)
    warn_all(_distinct_warnings(evaluations))
    for heading, evaluation in zip(headings(evaluations), evaluations, strict=True):
        gate = evaluation.official.measure
        # Without a task and for estimates there is no official figure, so the first measure replaces it.
        is_official = evaluation.task is not None and judged.sample is None
        figures = evaluation.official.values if is_official else evaluation.measures.values
        figure = figures.get(gate, nan)
        # Not `<`: NaN misses the gate too.
        if fail_under is not None and not figure >= fail_under:
            raise GateMissed(f"{heading}: {gate} {figure:.6f} is below {fail_under:g}")


def _estimates(
    subjects: Sequence[Subject], grades: Grades, sample: Path, *, held_out: bool
) -> list[Evaluation]:
    from searchapp.app.evaluate import evaluate_sampled
    from searchapp.app.pool import read_sample

    task = next((subject.task.name for subject in subjects if subject.task is not None), None)
    drawn = read_sample(sample, task)
    return [evaluate_sampled(subject, grades, drawn, held_out=held_out) for subject in subjects]


def _distinct_warnings(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    sources_of: dict[str, list[str]] = {}
    for evaluation in evaluations:
        for warning in evaluation.warnings:
            sources_of.setdefault(warning, []).append(evaluation.source)
    for warning, sources in sources_of.items():
        if len(evaluations) == 1 or any(source in warning for source in sources):
            yield warning
        else:
            yield f"{', '.join(dict.fromkeys(sources))}: {warning}"


def _grades(settings: Settings, subjects: Sequence[Subject], judged: JudgedOptions) -> Grades:
    from searchapp.formats import trec
    from searchapp.judging.exchange import read_grades

    if judged.qrels is not None:
        # Grades of tasks are never negative; in other qrels, negative grades mean unknown or worse than not relevant.
        of_no_task = all(subject.task is None for subject in subjects)
        return trec.read_qrels(judged.qrels) if of_no_task else read_grades(judged.qrels)
    task = subjects[0].task
    if task is None:
        raise UsageError(
            f"{subjects[0].path} is a TREC run, which does not record its task: give it with --task"
        )
    return judged_grades(settings, task.name, judged.aggregation, judged.log)


@command(app)
def validate(
    settings: Settings,
    file: Path = argument("An official file."),
    task: str = option("Task of the file.", default=REQUIRED, metavar="TASK", completes="tasks"),
    split: str | None = option("Split of the file.", completes="splits"),
    data: DataOption = None,
    cutoff: int | None = option("nlps: required number of premises per statement; default: 500.", min=1),
    as_json: JsonOption = False,
) -> None:
    """Report everything in an official file that the task would not accept, with line numbers.

    With --split, compare the file with the topics of the split and, if their gold is available, report what would stop
    the official scorer.
    """
    from searchapp.app.evaluate import validate as validated
    from searchapp.tasks.base import DataSplit

    loaded = load(task)
    folder = None if split is None and data is None else data_of(settings, loaded, data)
    part = None
    if folder is not None and split is not None:
        part = DataSplit(loaded.collection(folder), split, ScorerOptions(cutoff))
    problems = validated(loaded, file, part)
    warnings = [str(note) for note in problems.notes.problems] if problems.notes else []
    if as_json:
        described = [
            {"file": problem.file, "kind": problem.kind, "where": problem.where, "detail": problem.detail}
            for problem in problems
        ]
        print_json(
            {
                "task": loaded.name,
                "split": split,
                "file": str(file),
                "valid": not described and not warnings,
                "problems": described,
                "warnings": warnings,
            }
        )
    problems.raise_if_any()
    warn_all(warnings)
    if warnings:
        say(
            settings,
            f"{file}: the official format checker accepts this file, but the official scorer stops on it",
        )
    else:
        say(settings, f"{file}: a valid {loaded.name} file" + (f" for the split {split}" if split else ""))


BaselineOption = Annotated[
    Path | None,
    option(
        "Run to compare all others with; default: the first of two runs. With more runs, every pair is compared.",
        completes="runs",
    ),
]
# Number of displayed topics with the greatest gains, and with the greatest losses.
TOPICS = 5
SUCCESS_THRESHOLD = 0.5  # as in `evaluation.significance`, which imports NumPy


@dataclass(frozen=True, slots=True)
class ComparingOptions:
    """Options for comparing runs."""

    success_threshold: float = option(
        "Smallest value of the first measure at which a topic counts as a success.",
        default=SUCCESS_THRESHOLD,
        min=0,
    )
    permutations: PermutationsOption = PERMUTATIONS
    seed: SeedOption = None
    force: bool = flag(
        "Compare runs even if their topics, data, documents or judgments differ, with a warning."
    )
    data: Path | None = option(
        "Folder with the task's official files; default: the folder that the runs record."
    )
    gold: GoldOption = None
    scorer: ScorerOptions = field(default_factory=ScorerOptions)
    judged: JudgedOptions = field(default_factory=JudgedOptions)

    def request(
        self,
        settings: Settings,
        runs: list[Path],
        baseline: Path | None,
        measures: list[str] | None,
        breakdowns: list[str] | None,
        depth: int | None,
    ) -> CompareRequest:
        """Make the request.

        Raises:
            UsageError: options contradict each other.
        """
        from searchapp.app.compare import CompareRequest
        from searchapp.app.evaluate import GoldSource, Judgments
        from searchapp.judging.exchange import read_grades
        from searchapp.runs.directory import read_manifest

        source = GoldSource(
            data=self.data,
            gold=files_named(self.gold or ()),
            home=settings.home,
            options=self.scorer,
            by=tuple(breakdowns or ()),
            measures=tuple(dict.fromkeys(measures or ())),
        )
        judged, judgments = self.judged, None
        if judged.replace_gold(source):
            grades = (
                judged_grades(settings, read_manifest(runs[0]).task, judged.aggregation, judged.log)
                if judged.qrels is None
                else read_grades(judged.qrels)
            )
            judgments = Judgments(grades, judged.unjudged, judged.held_out)
        return CompareRequest(
            tuple(runs),
            source,
            judgments,
            baseline,
            self.force,
            depth,
            self.success_threshold,
            self.permutations,
            settings.seed_of(self.seed, SEED),
        )


@dataclass(frozen=True, slots=True)
class ReportingOptions(ComparingOptions):
    """Options for comparing runs in a report; `--force` has another help."""

    force: bool = flag(
        "Compare runs even if their topics, data, documents or judgments differ, with a warning in the report."
    )


@command(app, cls=SpreadingCommand)
def compare(
    settings: Settings,
    *,
    runs: list[Path] = argument("Two or more run directories of one split.", completes="runs"),
    baseline: BaselineOption = None,
    measure: list[str] | None = option(
        "Measure to test, in ir-measures' notation or the official one; repeatable. The first measure also "
        "orders the topics. Default: the official measure and the first three of the task.",
        metavar="NAME",
        completes="measures",
    ),
    by: ByOption = None,
    topics: int = option(
        "Number of topics to show with the largest gains, and with the largest losses.",
        default=TOPICS,
        min=0,
    ),
    depth: int | None = option(
        "Depth of the rankings in which gained and lost documents are counted.",
        min=1,
        show_default="the first measure's cut-off, or 10",
    ),
    options: ComparingOptions,
    screen: bool = flag(
        "Open a screen that shows each topic with two rankings side by side, to inspect and judge."
    ),
    topic: str | None = option("--screen: first topic to show."),
    as_csv: bool = flag("Print the tests as CSV, every figure at full precision.", "--csv"),
    as_latex: bool = flag("Print the tests as a LaTeX table for the package booktabs.", "--latex"),
    as_markdown: bool = flag("Print the tests as a Markdown table.", "--markdown"),
    as_json: JsonOption = False,
) -> None:
    """Compare runs: size and significance of the differences, and the topics where they occur.

    The figures equal those of `searchapp evaluate`. Each pair of runs is tested topic by topic: t-test, Wilcoxon test,
    randomisation test, a bootstrap interval and the effect size; several pairs with corrections for multiple
    comparisons and Tukey's tests. Runs with different topics, data, documents or judgments are rejected unless --force
    is given.
    """
    layout = chosen_layout(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    if screen and layout is not Layout.text:
        raise UsageError("--screen excludes --json, --csv, --latex and --markdown: give one of them")
    if screen:
        require_screen("compare", "leave out --screen")
    if topic is not None and not screen:
        raise UsageError("--topic requires --screen")
    if screen:
        judged = options.judged

        def opening(progress: Progress) -> AbstractContextManager[CompareScreen]:
            from searchapp.tui.compare.screen import open_compare_screen

            return open_compare_screen(
                *(options.request(settings, runs, baseline, measure, by, depth), settings, progress, warn),
                log=judged.log,
                aggregation=judged.aggregation,
                follows=judged.judgments,
                start=topic,
            )

        run_screen(settings, "compare", " and ".join(run.name for run in runs), opening)
        return

    from searchapp.app.compare import compare as compared
    from searchapp.cli.experiment_tables import comparison_printout

    request = options.request(settings, runs, baseline, measure, by, depth)
    result = compared(request, for_person(settings))
    print_result(layout, result.to_json, lambda: comparison_printout(result, topics))
    warn_all(result.warnings)


@command(app, cls=SpreadingCommand)
def report(
    settings: Settings,
    *,
    runs: list[Path] = argument(
        "One run directory, several of one split, or the folder of a bench.", completes="runs"
    ),
    out: Path = option("HTML file to write; - is stdout.", default=REQUIRED),
    baseline: BaselineOption = None,
    measure: list[str] | None = option(
        "Measure to show and test, as in `compare`; repeatable.",
        metavar="NAME",
        completes="measures",
    ),
    by: ByOption = None,
    depth: int | None = option(
        "Depth of the rankings in which found, gained and lost documents are counted.",
        min=1,
        show_default="the first measure's cut-off, or 10",
    ),
    options: ReportingOptions,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one self-contained HTML file about one run, several runs or a bench.

    A report of runs contains the figures of `evaluate` with intervals, the tests of `compare`, topics, all breakdowns
    (or those of --by), precision and recall curves, with --judgments the agreement of annotators, and the commands that
    reproduce each number. Runs with different topics, data, documents or judgments are rejected as in `compare`. The
    report of a bench contains its figures as a heatmap, and its tests.
    """
    from searchapp.app.experiments.bench_result import is_bench
    from searchapp.app.report import JudgedIn
    from searchapp.app.report import report as reported
    from searchapp.report.pages import page
    from searchapp.runs.directory import read_manifest

    require_place(out, replace=overwrite)
    if any(map(is_bench, runs)):
        if len(runs) > 1:
            raise UsageError(
                f"{', '.join(map(str, runs))}: the folder of a bench has its own report: give it alone"
            )
        _report_bench(settings, runs[0], out, overwrite=overwrite, as_json=as_json)
        return
    compared = options.request(settings, runs, baseline, measure, by, depth)
    judged, people = options.judged, None
    if judged.judgments and judged.qrels is None:
        people = _people(settings, read_manifest(runs[0]).task, judged.annotator, judged.log)
    sources = JudgedIn(judged.qrels, judged.log, judged.aggregation)
    result = reported(compared, people, sources)
    with atomic_file(out, replace=overwrite) as file:
        file.write(page(result))
    warn_all(result.warnings)
    if as_json:
        print_json(result.to_json())
    say(settings, f"wrote the report of {', '.join(map(str, runs))} to {out}")


def _report_bench(settings: Settings, folder: Path, out: Path, *, overwrite: bool, as_json: bool) -> None:
    from searchapp.app.experiments.bench_result import read_bench
    from searchapp.report.pages import bench_page

    result = read_bench(folder)
    with atomic_file(out, replace=overwrite) as file:
        file.write(bench_page(result))
    if as_json:
        print_json(result.to_json())
    say(settings, f"wrote the report of the bench {folder} to {out}")


def _people(settings: Settings, task: str, annotators: list[str] | None, log: Path | None) -> People:
    from searchapp.app.report import People
    from searchapp.judging.agreement import agreement, progress

    with open_judgments(settings, log, task) as (_, view):
        return People(tuple(progress(view)), agreement(view, annotators))
