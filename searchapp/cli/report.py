"""`searchapp report`: one HTML file on a run, or on several beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import JsonOption, OverwriteOption, command
from searchapp.cli.compare import judgments_of
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
from searchapp.cli.judgments.options import AnnotatorsOption, LogOption, of_task, open_log
from searchapp.cli.output import print_json, say, warn
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
)
from searchapp.cli.spreading import SpreadingCommand, files_named
from searchapp.errors import UsageError
from searchapp.judging.fold import Folding, Rule
from searchapp.judging.treatment import Unjudged
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.app.report import People


def register(app: typer.Typer) -> None:
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
        out: Annotated[Path, typer.Option(help="HTML file to write.", show_default=False)],
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
        from searchapp.app.bench import is_bench
        from searchapp.app.compare import CompareRequest
        from searchapp.app.evaluate import GoldSource
        from searchapp.app.report import ReportRequest
        from searchapp.app.report import report as reported
        from searchapp.app.reproduction import JudgedIn
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.files import require_place, whole_file
        from searchapp.report.page import page
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
    from searchapp.app.bench import read_bench
    from searchapp.files import whole_file
    from searchapp.report.bench_page import bench_page

    found = read_bench(folder)
    with whole_file(out, replace=overwrite) as file:
        file.write(bench_page(found))
    if as_json:
        print_json(found.to_json())
    say(settings, f"the report of the bench {folder} is written to {out}")


def _people(settings: Settings, task: str, annotators: list[str] | None, log: Path | None) -> People:
    """Those who have judged, and how far they agree."""
    from searchapp.app.report import People
    from searchapp.judging.statistics import agreement, progress

    with open_log(settings, log, task) as opened:
        folded, view = of_task(opened, task)
        return People(tuple(progress(folded, view)), agreement(view, annotators))
