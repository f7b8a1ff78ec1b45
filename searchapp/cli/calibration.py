"""`searchapp judgments calibrate`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import DataOption, JsonOption, SeedOption, TaskArgument, command, run_screen
from searchapp.cli.judgment_options import AnnotatorOption, LogOption, RankNowOption
from searchapp.cli.output import (
    can_move_cursor,
    for_person,
    print_json,
    require_screen,
    say,
    stdout_console,
    warn,
)
from searchapp.cli.tables import ResultTable
from searchapp.config.settings import Settings
from searchapp.errors import GateMissed, UsageError
from searchapp.judging.events import Author, Channel, annotator_name
from searchapp.options import flag, option
from searchapp.tasks import load
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.app.inspection.pages import RunPages
    from searchapp.judging.calibration import (
        CalibrationJudging,
        CalibrationResult,
        CalibrationSet,
        Concordance,
    )
    from searchapp.progress import Progress
    from searchapp.tui.judge.screen import JudgeScreen


app = typer.Typer()


@command(app)
def calibrate(
    settings: Settings,
    task: TaskArgument,
    annotator: AnnotatorOption = None,
    run: Path | None = option(
        "Run directory or TREC run whose documents are drawn; without one, a recipe ranks now.",
        completes="runs",
    ),
    recipe: RankNowOption = None,
    split: str | None = option(
        "Split to rank, or split of a TREC run's topics.",
        show_default="dev, or the first available split",
        completes="splits",
    ),
    expert: list[str] | None = option(
        "Take the judgments of this annotator, and the decisions of this adjudicator, as the known grades; "
        "repeatable. Default: the official gold, in which a document that is not listed has the grade 0.",
        completes="annotators",
    ),
    size: int = option("Number of documents to judge.", default=20, min=2),
    repeats: int = option("How many of them are judged again at the end.", default=4, min=0),
    depth: int | None = option(
        "Documents of each ranking to draw from.", min=1, show_default="the task's judging depth"
    ),
    seed: SeedOption = None,
    pass_: float | None = option(
        "Pass mark: exit with code 5 if a document has no grade, or if Cohen's kappa with the known grades is below "
        "this value.",
        "--pass",
        "--fail-under",
        min=-1,
        max=1,
    ),
    results: bool = flag("Show the results of everybody who judged these documents, without judging."),
    data: DataOption = None,
    log_file: LogOption = None,
    plain: bool = flag("Use prompts instead of a screen, for screen readers and simple terminals."),
    as_json: JsonOption = False,
) -> None:
    """Judge documents with known grades, learn from each, and measure how far you agree with them.

    After each grade you see the known grade and its guideline. Some documents come again at the end. Everybody who
    gives the same options judges the same documents. These judgments never count in the study: the log has them under a
    task name of their own.
    """
    from searchapp.app.calibration import CalibrationRequest, open_calibration
    from searchapp.app.inspection.topics import TopicsRequest

    if as_json and not results:
        raise UsageError("--json requires --results: judge first, then print the results")
    name = annotator_name(annotator or settings.annotator)
    simple = plain or not can_move_cursor()
    if not simple and not results:
        require_screen("calibration", "use --plain for prompts")
    loaded = load(task)
    request = CalibrationRequest(
        loaded,
        TopicsRequest(run, recipe, split, data, depth),
        tuple(expert or ()),
        size,
        repeats,
        depth,
        settings.seed_of(seed, 0),
        log_file,
    )
    with open_calibration(request, settings, for_person(settings), warn) as calibration:
        if not results:
            author = Author(name, channel=Channel.plain if simple else Channel.interface)
            for again in (False, True)[: 2 if calibration.documents.repeats else 1]:
                judging = calibration.judging(author, again=again)
                if judging.next_unjudged_topic() is not None:
                    _calibrate(settings, judging, calibration.pages, simple=simple, again=again)
                if judging.next_unjudged_topic() is not None:
                    say(settings, "not all documents are judged: the same command goes on")
                    break
        result = calibration.result()
        documents = calibration.documents
    _print_calibration(settings, documents, result, pass_, as_json=as_json)
    own = result.of(name)
    if pass_ is not None and (own is None or not own.passes(documents, pass_)):
        graded, kappa = (0, nan) if own is None else (own.gold.documents, own.gold.kappa)
        raise GateMissed(
            f"{name}: kappa {kappa:.4f} on {graded:,} of {counted(len(documents.known), 'document')} misses the pass "
            f"mark {pass_:g}"
        )


def _calibrate(
    settings: Settings, judging: CalibrationJudging, pages: RunPages, *, simple: bool, again: bool
) -> None:
    """Judge the documents of a calibration on a screen or by prompts."""
    from searchapp.tui.kit import keys

    name, labels = judging.session.author.annotator, pages.task.info.grades
    count = counted(sum(map(judging.length, judging.topics)), "document")
    title = f"{pages.task.name} calibration · {name} · {count}{' again' if again else ''}"
    if simple:
        from searchapp.tui.judge.prompts import JudgePrompts

        JudgePrompts(judging, pages, title, next_topic=True).converse()
        return

    @contextmanager
    def opening(_progress: Progress) -> Iterator[JudgeScreen]:
        from searchapp.tui.judge.screen import JudgeScreen

        yield JudgeScreen(judging, pages, keys.load(settings.of_user, labels).keys, title, next_topic=True)

    run_screen(settings, "judge", title, opening)


def _print_calibration(
    settings: Settings,
    documents: CalibrationSet,
    result: CalibrationResult,
    least: float | None,
    *,
    as_json: bool,
) -> None:
    if as_json:
        print_json(
            {
                "task": documents.task,
                "name": documents.name,
                "documents": len(documents.known),
                "repeats": len(documents.repeats),
                "pass": least,
                "annotators": [
                    {
                        **asdict(each),
                        "passed": None if least is None else each.passes(documents, least),
                    }
                    for each in result.annotators
                ],
                "pairs": [
                    {"annotators": list(names), **asdict(pair)} for names, pair in result.pairs.items()
                ],
            }
        )
        return
    if not result.annotators:
        say(settings, "nobody has judged these documents yet")
        return
    passed = {None: "", True: "passed", False: "missed"}
    rows = [
        (
            each.annotator,
            f"{each.gold.documents}/{len(documents.known)}",
            *_concordance_cells(each.gold),
            f"{each.bias:+.2f}",
            f"{each.repeated.share:.2f} of {each.repeated.documents}" if each.repeated.documents else "",
            passed[None if least is None else each.passes(documents, least)],
        )
        for each in result.annotators
    ]
    names = ("annotator", "graded", "equal", "kappa", "95 % interval", "bias", "repeated", "pass mark")
    ResultTable.of_rows(names, rows, texts=(0, 4, 6, 7)).print_folded()
    if result.pairs:
        stdout_console().print()
        pairs = [
            (" and ".join(both), str(pair.documents), *_concordance_cells(pair))
            for both, pair in result.pairs.items()
        ]
        names_of_pairs = ("annotators", "documents", "equal", "kappa", "95 % interval")
        ResultTable.of_rows(names_of_pairs, pairs, texts=(0, 4)).print_folded()


def _concordance_cells(concordance: Concordance) -> tuple[str, str, str]:
    return (
        f"{concordance.share:.2f}",
        f"{concordance.kappa:.4f}",
        f"{concordance.low:.2f} to {concordance.high:.2f}",
    )
