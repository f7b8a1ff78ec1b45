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
    warn,
)
from searchapp.cli.tables import print_tables
from searchapp.config.settings import Settings
from searchapp.errors import GateMissed, UsageError
from searchapp.judging.events import Author, Channel, annotator_name
from searchapp.options import flag, option
from searchapp.report.judgment_tables import JudgmentTable, calibration_table, concordance_cells, figure
from searchapp.tasks import load
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.app.inspection.pages import RunPages
    from searchapp.judging.calibration import (
        CalibrationJudging,
        CalibrationResult,
        CalibrationSet,
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
            f"{name}: kappa {figure(kappa, '.4f')} on {graded:,} of {counted(len(documents.known), 'document')} misses "
            f"the pass mark {pass_:g}"
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
    tables = [
        calibration_table(
            [(each, None if least is None else each.passes(documents, least)) for each in result.annotators],
            len(documents.known),
        )
    ]
    if result.pairs:
        rows = [
            (" and ".join(both), f"{pair.documents:,}", *concordance_cells(pair))
            for both, pair in result.pairs.items()
        ]
        names = ("annotators", "documents", "equal", "kappa", "95 % interval")
        tables.append(JudgmentTable("Agreement between annotators", names, rows))
    print_tables(tables)
