"""`searchapp evaluate`, `validate`, `compare` and `report`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
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
from searchapp.cli.output import for_person, has_screen, print_json, say, warn, warn_all
from searchapp.cli.tables import Layout, chosen_layout, headings, print_evaluations, print_result
from searchapp.config.settings import Settings
from searchapp.errors import GateMissed, UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.files import atomic_file, require_place
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.tasks import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from searchapp.app.compare import CompareRequest
    from searchapp.app.evaluate import Evaluation, Subject
    from searchapp.app.report import People
    from searchapp.tasks.base import Grades


@dataclass(frozen=True, slots=True)
class EvaluatingOptions(JudgedOptions):
    """Options for scoring runs against judgments; TREC runs need no task."""

    qrels: Path | None = option(
        "Score against the grades in a qrels file, TREC's or BEIR's, instead of gold; TREC runs without "
        "--task by the field's measures alone."
    )


app = typer.Typer()


@command(app, cls=SpreadingCommand)
def evaluate(
    settings: Settings,
    *,
    runs: list[Path] = argument(
        "Run directories, official files, or folders of them; with --qrels or --judgments TREC runs.",
        completes="runs",
    ),
    task: str | None = option("Task of an official file or a TREC run.", metavar="TASK", completes="tasks"),
    data: Path | None = option("Folder with the task's official files; a run directory knows its own."),
    split: str | None = option("Split of an official file or a TREC run.", completes="splits"),
    gold: GoldOption = None,
    by: ByOption = None,
    measure: list[str] | None = option(
        "A measure beside the official figures, by default those that the task names: any measure that "
        "ir-measures knows, as AP, RR, P@5, nDCG@10, R(rel=2)@100. Can be given several times.",
        metavar="NAME",
        completes="measures",
    ),
    scorer: ScorerOptions,
    judged: EvaluatingOptions,
    fail_under: float | None = option("Exit with 5 if an official figure is below this."),
    per_topic: bool = flag("With --json: the figures of each topic too."),
    as_json: JsonOption = False,
) -> None:
    """Score runs exactly as the task's organisers do, with an honest figure where theirs misleads.

    A file that their scorer stops on or refuses has no figure: that is an error with exit code 4.
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
    if judged.replace_gold(source):
        subjects = [Subject.of(run, source) for run in runs]
        grades = _grades(settings, subjects, judged)
        against = Judgments(grades, judged.unjudged, judged.held_out)
        evaluations = [evaluate_judged(subject, against, source) for subject in subjects]
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
        # Without a task there is no official figure, so the first measure replaces it.
        figures = evaluation.official.values if evaluation.task is not None else evaluation.measures.values
        figure = figures.get(gate, nan)
        # Not `<`: NaN misses the gate too.
        if fail_under is not None and not figure >= fail_under:
            raise GateMissed(f"{heading}: {gate} {figure:.6f} is below {fail_under:g}")


def _distinct_warnings(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Yield each warning once, with the runs that have it."""
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
    """Read the grades of a qrels file, or aggregate the judgments of the runs' task."""
    from searchapp.formats import trec
    from searchapp.judging.exchange import read_grades

    if judged.qrels is not None:
        # Grades of tasks are never negative; in other qrels, negative grades mean unknown or worse than not relevant.
        of_no_task = all(subject.task is None for subject in subjects)
        return trec.read_qrels(judged.qrels) if of_no_task else read_grades(judged.qrels)
    task = subjects[0].task
    if task is None:
        raise UsageError(
            f"{subjects[0].path} is a TREC run, which does not name its task: name it with --task"
        )
    return judged_grades(settings, task.name, judged.aggregation, judged.log)


@command(app)
def validate(
    settings: Settings,
    file: Path = argument("An official file."),
    task: str = option("The task that it is for.", default=REQUIRED, metavar="TASK", completes="tasks"),
    split: str | None = option("The split that it is for.", completes="splits"),
    data: DataOption = None,
    cutoff: int | None = option("nlps: premises that each statement needs; 500 by default.", min=1),
    as_json: JsonOption = False,
) -> None:
    """Find everything in an official file that the organisers would not accept, with line numbers.

    With --split the file is compared with the questions, and, where their gold is there, with what the organisers'
    scorer stops at.
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
        say(settings, f"{file}: the organisers' format checker lets it pass, and their scorer stops on it")
    else:
        say(settings, f"{file}: a valid {loaded.name} file" + (f" for the split {split}" if split else ""))


BaselineOption = Annotated[
    Path | None,
    option(
        "The run that all others are compared with; by default the first of two, and of more runs every "
        "pair is compared.",
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
    seed: SeedOption = SEED
    force: bool = flag("Compare runs of other topics, data, documents or judgments, and say so everywhere.")
    data: Path | None = option(
        "Folder with the task's official files, if they are not where the runs had them."
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
            self.seed,
        )


@dataclass(frozen=True, slots=True)
class ReportingOptions(ComparingOptions):
    """Options for comparing runs in a report; `--force` has another help."""

    force: bool = flag(
        "Compare runs of other topics, data, documents or judgments, and say so in the report."
    )


@command(app, cls=SpreadingCommand)
def compare(
    settings: Settings,
    *,
    runs: list[Path] = argument("Run directories: two or more of one split.", completes="runs"),
    baseline: BaselineOption = None,
    measure: list[str] | None = option(
        "A measure to test: any that ir-measures knows, or the official one; topics are looked at by the "
        "first. By default the official one, and three that the task names. Can be given several times.",
        metavar="NAME",
        completes="measures",
    ),
    by: ByOption = None,
    topics: int = option(
        "Topics with the greatest gains, and with the greatest losses, that are shown.",
        default=TOPICS,
        min=0,
    ),
    depth: int | None = option(
        "Documents of a ranking that count for gained and lost ones.",
        min=1,
        show_default="the first measure's cut-off, or 10",
    ),
    options: ComparingOptions,
    screen: bool = flag(
        "Go through the topics on a screen, two rankings side by side, and judge what has moved."
    ),
    topic: str | None = option("--screen: topic to begin with."),
    as_csv: bool = flag("Print the tests as CSV, every figure at full precision.", "--csv"),
    as_latex: bool = flag("Print the tests as a LaTeX table for the package booktabs.", "--latex"),
    as_markdown: bool = flag("Print the tests as a Markdown table.", "--markdown"),
    as_json: JsonOption = False,
) -> None:
    """Compare runs: how much they differ, whether that can be told from chance, and where the difference is.

    The figures are those of `searchapp evaluate`. Each pair of runs is tested topic by topic: t-test, Wilcoxon
    test, randomisation test, with a bootstrap interval and the effect size; several pairs with corrections, and
    Tukey's tests. Runs that do not share their topics, data, documents and judgments are refused.
    """
    from searchapp.app.compare import compare as compared
    from searchapp.cli.experiment_tables import comparison_printout

    layout = chosen_layout(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    if screen and layout is not Layout.text:
        raise UsageError(
            "--screen shows what --json, --csv, --latex and --markdown print: choose one of them"
        )
    if screen and not has_screen():
        raise UsageError("the compare screen needs a terminal: leave --screen out")
    if topic is not None and not screen:
        raise UsageError("--topic is where the screen begins: give --screen with it")
    request = options.request(settings, runs, baseline, measure, by, depth)
    if screen:
        _show_comparison(request, settings, topic, options.judged)
        return
    result = compared(request, for_person(settings))
    print_result(layout, result.to_json, lambda: comparison_printout(result, topics))
    warn_all(result.warnings)


def _show_comparison(
    request: CompareRequest,
    settings: Settings,
    topic: str | None,
    judged: JudgedOptions,
) -> None:
    from searchapp.app.inspection.topic_comparison import open_comparing
    from searchapp.app.sessions import grading_session, judged_by_now
    from searchapp.runs.directory import read_manifest
    from searchapp.tui.compare.screen import KEY_ACTIONS, SECTION, compare_screen
    from searchapp.tui.kit import keys
    from searchapp.tui.kit.screen import KeyApp

    name, log = read_manifest(request.runs[0]).task, judged.log or settings.judgments
    with ExitStack() as opened:
        comparing = open_comparing(
            opened,
            request,
            settings,
            for_person(settings),
            warn,
            lambda: judged_by_now(log, name, judged.aggregation),
            follows=judged.judgments,
        )
        warn_all(dict.fromkeys(note for topics in comparing.topics for note in topics.pages.notes))
        labels = comparing.topics[0].task.info.grades
        own = keys.load(settings.of_user, labels, SECTION, KEY_ACTIONS)
        session = lambda: grading_session(opened, log, name, settings.annotator)  # noqa: E731
        app = KeyApp(compare_screen(comparing, settings, session, topic), own.theme, own.spacing)
        run_screen(app)


@command(app, cls=SpreadingCommand)
def report(
    settings: Settings,
    *,
    runs: list[Path] = argument(
        "Run directories: one, or several of one split. Or the folder of a bench.", completes="runs"
    ),
    out: Path = option("HTML file to write; - is stdout.", default=REQUIRED),
    baseline: BaselineOption = None,
    measure: list[str] | None = option(
        "A measure to show and test, as in `compare`. Can be given several times.",
        metavar="NAME",
        completes="measures",
    ),
    by: ByOption = None,
    depth: int | None = option(
        "Documents of a ranking that count for found, gained and lost ones.",
        min=1,
        show_default="the first measure's cut-off, or 10",
    ),
    options: ReportingOptions,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one HTML file on a run, or on several beside each other, which needs no network and no other file.

    A report of runs has the figures of `evaluate` with intervals, the tests of `compare`, topics, breakdowns,
    curves of precision and recall, with --judgments how far annotators agree, and how to get each number again.
    Breakdowns are all that the task has, unless --by chooses. Runs that do not share their topics, data, documents
    and judgments are refused, as in `compare`. The report of a bench has its figures as a heatmap, and its tests.
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
                f"{', '.join(map(str, runs))}: the folder of a bench has a report of its own: name it alone"
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
    say(settings, f"the report of {', '.join(map(str, runs))} is written to {out}")


def _report_bench(settings: Settings, folder: Path, out: Path, *, overwrite: bool, as_json: bool) -> None:
    from searchapp.app.experiments.bench_result import read_bench
    from searchapp.report.pages import bench_page

    result = read_bench(folder)
    with atomic_file(out, replace=overwrite) as file:
        file.write(bench_page(result))
    if as_json:
        print_json(result.to_json())
    say(settings, f"the report of the bench {folder} is written to {out}")


def _people(settings: Settings, task: str, annotators: list[str] | None, log: Path | None) -> People:
    from searchapp.app.report import People
    from searchapp.judging.agreement import agreement, progress

    with open_judgments(settings, log, task) as (_, view):
        return People(tuple(progress(view)), agreement(view, annotators))
