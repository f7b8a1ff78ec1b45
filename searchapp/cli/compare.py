"""`searchapp compare` and `report`: tests of the differences between runs, and one HTML file on runs or on a bench."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.commands import (
    PERMUTATIONS,
    SEED,
    SOLVED_FROM,
    BaselineOption,
    FilesOption,
    JsonOption,
    OverwriteOption,
    PermutationsOption,
    QrelsOption,
    SeedOption,
    SolvedFromOption,
    SpreadingCommand,
    command,
    files_named,
)
from searchapp.cli.judgment_options import (
    AnnotatorsOption,
    ByOption,
    GoldOption,
    HierarchyOption,
    JudgmentsOption,
    KbOption,
    LenientOption,
    LogOption,
    NearestOption,
    RuleOption,
    UnjudgedOption,
    UnseenOption,
    judged_grades,
    of_task,
    open_log,
)
from searchapp.cli.output import has_screen, print_json, say, show, stdout_console, warn
from searchapp.config.settings import Settings
from searchapp.errors import UsageError
from searchapp.judging.judgments import Folding, Rule, Unjudged

if TYPE_CHECKING:
    from searchapp.app.compare import CompareRequest
    from searchapp.app.evaluate import Judgments
    from searchapp.app.report import People


TOPICS = 5
"""Topics of either end that are shown."""


def register_compare(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, cls=SpreadingCommand)
    def compare(
        settings: Settings,
        runs: Annotated[
            list[Path],
            typer.Argument(
                help="Run directories: two or more of one split.",
                show_default=False,
                autocompletion=complete.runs,
            ),
        ],
        baseline: BaselineOption = None,
        measure: Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME",
                help="A measure to test: any that ir-measures knows, or the official one; topics are looked at by the "
                "first. By default the official one, and three that the task names. Can be given several times.",
                show_default=False,
                autocompletion=complete.measures,
            ),
        ] = None,
        by: ByOption = None,
        topics: Annotated[
            int,
            typer.Option(
                min=0, help="Topics with the greatest gains, and with the greatest losses, that are shown."
            ),
        ] = TOPICS,
        depth: Annotated[
            int | None,
            typer.Option(
                min=1,
                help="Documents of a ranking that count for gained and lost ones.",
                show_default="the first measure's cut-off, or 10",
            ),
        ] = None,
        solved_from: SolvedFromOption = SOLVED_FROM,
        permutations: PermutationsOption = PERMUTATIONS,
        seed: SeedOption = SEED,
        anyway: Annotated[
            bool,
            typer.Option(
                "--anyway",
                help="Compare runs of other topics, data, documents or judgments, and say so everywhere.",
            ),
        ] = False,
        data: FilesOption = None,
        gold: GoldOption = None,
        nearest: NearestOption = None,
        hierarchy: HierarchyOption = None,
        kb: KbOption = None,
        lenient: LenientOption = False,
        judgments: JudgmentsOption = False,
        qrels: QrelsOption = None,
        unjudged: UnjudgedOption = Unjudged.nonrelevant,
        rule: RuleOption = Rule.majority,
        annotator: AnnotatorsOption = None,
        unseen: UnseenOption = False,
        log: LogOption = None,
        screen: Annotated[
            bool,
            typer.Option(
                "--screen",
                help="Go through the topics on a screen, two rankings side by side, and judge what has moved.",
            ),
        ] = False,
        topic: Annotated[
            str | None, typer.Option(help="--screen: topic to begin with.", show_default=False)
        ] = None,
        as_csv: Annotated[
            bool, typer.Option("--csv", help="Print the tests as CSV, every figure at full precision.")
        ] = False,
        as_latex: Annotated[
            bool, typer.Option("--latex", help="Print the tests as a LaTeX table for the package booktabs.")
        ] = False,
        as_markdown: Annotated[
            bool, typer.Option("--markdown", help="Print the tests as a Markdown table.")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Compare runs: how much they differ, whether that can be told from chance, and where the difference is.

        The figures are those of `searchapp evaluate`. Each pair of runs is tested topic by topic: t-test, Wilcoxon
        test, randomisation test, with a bootstrap interval and the effect size; several pairs with corrections, and
        Tukey's tests. Runs that do not share their topics, data, documents and judgments are refused.
        """
        from searchapp.app.compare import CompareRequest
        from searchapp.app.compare import compare as compared
        from searchapp.app.evaluate import GoldSource
        from searchapp.cli import experiment_tables
        from searchapp.cli.experiment_tables import print_comparison
        from searchapp.cli.output import for_person
        from searchapp.evaluation.base import ScorerOptions

        printed = sum((as_json, as_csv, as_latex, as_markdown))
        if printed > 1:
            raise UsageError("--json, --csv, --latex and --markdown are ways to print: choose one of them")
        if screen and printed:
            raise UsageError(
                "--screen shows what --json, --csv, --latex and --markdown print: choose one of them"
            )
        if screen and not has_screen():
            raise UsageError("the compare screen needs a terminal: leave --screen out")
        if topic is not None and not screen:
            raise UsageError("--topic is where the screen begins: give --screen with it")
        source = GoldSource(
            data=data,
            gold=files_named(gold or ()),
            home=settings.home,
            options=ScorerOptions(nearest, hierarchy, kb, lenient=lenient),
            by=tuple(by or ()),
            measures=tuple(dict.fromkeys(measure or ())),
        )
        if judgments or qrels is not None:
            if source.gold or source.by:
                raise UsageError(
                    "--gold and --by need the organisers' gold: leave them out with --judgments or --qrels"
                )
            against = judgments_of(
                settings, runs[0], qrels, (Folding(rule, annotator), log), unjudged, unseen=unseen
            )
        elif unseen:
            raise UsageError("--unseen is for --judgments and --qrels: the organisers' gold is scored whole")
        else:
            against = None
        request = CompareRequest(
            tuple(runs), source, against, baseline, anyway, depth, solved_from, permutations, seed
        )
        if screen:
            _screen(request, settings, topic, (Folding(rule, annotator), log), follows=judgments)
            return
        found = compared(request, for_person(settings))
        if as_json:
            print_json(found.to_json())
        elif as_csv:
            show(experiment_tables.comparison_csv(found).rstrip("\n"))
        elif as_latex:
            show(experiment_tables.comparison_latex(found).rstrip("\n"))
        elif as_markdown:
            show(experiment_tables.comparison_markdown(found).rstrip("\n"))
        else:
            print_comparison(stdout_console(), found, topics)
        for warning in found.warnings:
            warn(warning)


def _screen(
    request: CompareRequest,
    settings: Settings,
    topic: str | None,
    asked: tuple[Folding, Path | None],
    *,
    follows: bool,
) -> None:
    """Open the screen."""
    from contextlib import ExitStack

    from searchapp.app.inspection.topic_comparison import open_comparing
    from searchapp.app.sessions import grading_session, judged_by_now
    from searchapp.cli.output import for_person
    from searchapp.runs.directory import read_manifest
    from searchapp.tui.compare import screen as actions
    from searchapp.tui.compare.screen import CompareApp, compare_screen

    folding, log = asked
    name, log = read_manifest(request.runs[0]).task, log or settings.judgments
    with ExitStack() as opened:
        comparing = open_comparing(
            opened,
            request,
            settings,
            for_person(settings),
            warn,
            lambda: judged_by_now(log, name, folding),
            follows=follows,
        )
        for note in dict.fromkeys(note for topics in comparing.topics for note in topics.pages.notes):
            warn(note)
        own = actions.load(settings.of_user, comparing.topics[0].task.info.grades)
        session = lambda: grading_session(opened, log, name, settings.annotator)  # noqa: E731
        app = CompareApp(compare_screen(comparing, settings, session, topic), own.theme, own.spacing)
        app.run()
        if app.return_code:
            raise typer.Exit(app.return_code)


def judgments_of(
    settings: Settings,
    run: Path,
    qrels: Path | None,
    asked: tuple[Folding, Path | None],
    unjudged: Unjudged,
    *,
    unseen: bool,
) -> Judgments:
    """The judgments to score against: those in a qrels file, or those of the task of the runs."""
    from searchapp.app.evaluate import Judgments
    from searchapp.judging.exchange import read_grades
    from searchapp.runs.directory import read_manifest

    if qrels is not None:
        return Judgments(read_grades(qrels), unjudged, unseen)
    folding, log = asked
    return Judgments(judged_grades(settings, read_manifest(run).task, folding, log), unjudged, unseen)


def register_report(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, cls=SpreadingCommand)
    def report(
        settings: Settings,
        runs: Annotated[
            list[Path],
            typer.Argument(
                help="Run directories: one, or several of one split. Or the folder of a bench.",
                show_default=False,
                autocompletion=complete.runs,
            ),
        ],
        out: Annotated[Path, typer.Option(help="HTML file to write; - is stdout.", show_default=False)],
        baseline: BaselineOption = None,
        measure: Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME",
                help="A measure to show and test, as in `compare`. Can be given several times.",
                show_default=False,
                autocompletion=complete.measures,
            ),
        ] = None,
        by: ByOption = None,
        depth: Annotated[
            int | None,
            typer.Option(
                min=1,
                help="Documents of a ranking that count for found, gained and lost ones.",
                show_default="the first measure's cut-off, or 10",
            ),
        ] = None,
        solved_from: SolvedFromOption = SOLVED_FROM,
        permutations: PermutationsOption = PERMUTATIONS,
        seed: SeedOption = SEED,
        anyway: Annotated[
            bool,
            typer.Option(
                "--anyway",
                help="Compare runs of other topics, data, documents or judgments, and say so in the report.",
            ),
        ] = False,
        data: FilesOption = None,
        gold: GoldOption = None,
        nearest: NearestOption = None,
        hierarchy: HierarchyOption = None,
        kb: KbOption = None,
        lenient: LenientOption = False,
        judgments: JudgmentsOption = False,
        qrels: QrelsOption = None,
        unjudged: UnjudgedOption = Unjudged.nonrelevant,
        rule: RuleOption = Rule.majority,
        annotator: AnnotatorsOption = None,
        unseen: UnseenOption = False,
        log: LogOption = None,
        overwrite: OverwriteOption = False,
        as_json: JsonOption = False,
    ) -> None:
        """Write one HTML file on a run, or on several beside each other, which needs no network and no other file.

        A report of runs has the figures of `evaluate` with intervals, the tests of `compare`, topics, breakdowns,
        curves of precision and recall, with --judgments how far annotators agree, and how to get each number again.
        Breakdowns are all that the task has, unless --by chooses. Runs that do not share their topics, data, documents
        and judgments are refused, as in `compare`. The report of a bench has its figures as a heatmap, and its tests.
        """
        from searchapp.app.compare import CompareRequest
        from searchapp.app.evaluate import GoldSource
        from searchapp.app.experiments.bench_result import is_bench
        from searchapp.app.report import JudgedIn, ReportRequest
        from searchapp.app.report import report as reported
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.files import require_place, whole_file
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
        source = GoldSource(
            data=data,
            gold=files_named(gold or ()),
            home=settings.home,
            options=ScorerOptions(nearest, hierarchy, kb, lenient=lenient),
            by=tuple(by or ()),
            measures=tuple(dict.fromkeys(measure or ())),
        )
        against, people = None, None
        judged = JudgedIn(qrels, log, Folding(rule, annotator))
        if judgments or qrels is not None:
            if source.gold or source.by:
                raise UsageError(
                    "--gold and --by need the organisers' gold: leave them out with --judgments or --qrels"
                )
            against = judgments_of(settings, runs[0], qrels, (judged.folding, log), unjudged, unseen=unseen)
            if qrels is None:
                people = _people(settings, read_manifest(runs[0]).task, annotator, log)
        elif unseen:
            raise UsageError("--unseen is for --judgments and --qrels: the organisers' gold is scored whole")
        compared = CompareRequest(
            tuple(runs), source, against, baseline, anyway, depth, solved_from, permutations, seed
        )
        found = reported(ReportRequest(compared, people, judged))
        with whole_file(out, replace=overwrite) as file:
            file.write(page(found))
        for warning in found.warnings:
            warn(warning)
        if as_json:
            print_json(found.to_json())
        say(settings, f"the report of {', '.join(map(str, runs))} is written to {out}")


def _report_bench(settings: Settings, folder: Path, out: Path, *, overwrite: bool, as_json: bool) -> None:
    """Write the report of a bench."""
    from searchapp.app.experiments.bench_result import read_bench
    from searchapp.files import whole_file
    from searchapp.report.pages import bench_page

    found = read_bench(folder)
    with whole_file(out, replace=overwrite) as file:
        file.write(bench_page(found))
    if as_json:
        print_json(found.to_json())
    say(settings, f"the report of the bench {folder} is written to {out}")


def _people(settings: Settings, task: str, annotators: list[str] | None, log: Path | None) -> People:
    """Those who have judged, and how far they agree."""
    from searchapp.app.report import People
    from searchapp.judging.agreement import agreement, progress

    with open_log(settings, log, task) as opened:
        folded, view = of_task(opened, task)
        return People(tuple(progress(folded, view)), agreement(view, annotators))


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    register_compare(app)
    register_report(app)
