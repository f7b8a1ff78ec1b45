"""`searchapp compare`: which run is better, where, and whether that can be told from chance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import JsonOption, command
from searchapp.cli.comparing_options import (
    PERMUTATIONS,
    SEED,
    SOLVED_FROM,
    BaselineOption,
    FilesOption,
    PermutationsOption,
    QrelsOption,
    SeedOption,
    SolvedFromOption,
)
from searchapp.cli.judgments.options import AnnotatorsOption, LogOption
from searchapp.cli.output import print_json, show, stdout_console, warn
from searchapp.cli.scoring_options import (
    ByOption,
    GoldOption,
    HierarchyOption,
    JudgmentsOption,
    KbOption,
    LenientOption,
    NearestOption,
    RuleOption,
    UnjudgedOption,
    UnseenOption,
    judged_grades,
)
from searchapp.cli.spreading import SpreadingCommand, files_named
from searchapp.cli.terminal import has_screen
from searchapp.errors import UsageError
from searchapp.judging.fold import Folding, Rule
from searchapp.judging.treatment import Unjudged
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.app.compare import CompareRequest
    from searchapp.app.judged import Judgments

TOPICS = 5
"""Topics of either end that are shown."""


def register(app: typer.Typer) -> None:
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
        from searchapp.cli import comparison_rows
        from searchapp.cli.comparison_text import print_comparison
        from searchapp.cli.progress import for_person
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
            show(comparison_rows.as_csv(found).rstrip("\n"))
        elif as_latex:
            show(comparison_rows.as_latex(found).rstrip("\n"))
        elif as_markdown:
            show(comparison_rows.as_markdown(found).rstrip("\n"))
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

    from searchapp.app.comparing import open_comparing
    from searchapp.app.sessions import grading_session, judged_by_now
    from searchapp.cli.progress import for_person
    from searchapp.runs.directory import read_manifest
    from searchapp.tui.compare import actions
    from searchapp.tui.compare.app import CompareApp
    from searchapp.tui.compare.opening import compare_screen

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
    from searchapp.app.judged import Judgments
    from searchapp.judging.exchange import read_grades
    from searchapp.runs.directory import read_manifest

    if qrels is not None:
        return Judgments(read_grades(qrels), unjudged, unseen)
    folding, log = asked
    return Judgments(judged_grades(settings, read_manifest(run).task, folding, log), unjudged, unseen)
