"""`searchapp judgments list`, `stats`, `agreement`, `verify` and `backup`: read, check and copy the log."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import JsonOption, TaskArgument, command
from searchapp.cli.judgment_options import (
    AnnotatorsOption,
    LogOption,
    name_of,
    of_task,
    open_log,
    require_known,
    require_log,
)
from searchapp.cli.output import print_json, say, show, stdout_console
from searchapp.cli.tables import print_table
from searchapp.config.settings import Settings
from searchapp.errors import DataError, UsageError
from searchapp.options import argument, flag, option
from searchapp.tasks import load
from searchapp.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchapp.judging.agreement import Agreement, AnnotatorProgress, InSight
    from searchapp.judging.judgments import ListedJudgment
    from searchapp.judging.log import LogVerification


app, safety = typer.Typer(), typer.Typer()


class What(StrEnum):
    """What can be said of a document, as it is named on the command line."""

    grade = "grade"
    skip = "skip"
    cant_tell = "cant_tell"
    note = "note"
    adjudicate = "adjudicate"


def _print(found: Sequence[ListedJudgment], labels: Sequence[str]) -> None:
    from datetime import UTC, datetime

    from searchapp.judging.events import Action, said_of

    def what(said: ListedJudgment) -> str:
        words = said_of(said.action, said.grade, labels)
        return f"decided {words}" if said.action is Action.adjudicate else words

    rows = (
        (
            f"{datetime.fromisoformat(one.time).astimezone(UTC):%Y-%m-%d %H:%M}",
            one.annotator if one.kind.value == "person" else f"{one.annotator} (a model)",
            one.topic_id,
            one.document_id,
            what(one),
            "" if one.rank is None else str(one.rank),
            one.words,
        )
        for one in found
    )
    print_table(
        ("when (UTC)", "annotator", "topic", "document", "says", "rank", "note"), rows, (0, 1, 2, 3, 4, 6)
    )


@command(app)
def stats(settings: Settings, task: TaskArgument, log: LogOption = None, as_json: JsonOption = False) -> None:
    """Show how much each annotator has judged, with which grades, and how fast."""
    from searchapp.judging.agreement import progress

    task = name_of(task)
    with open_log(settings, log, task) as opened:
        folded, view = of_task(opened, task)
        found = progress(folded, view)
    if as_json:
        print_json({"task": task, "events": folded.count, "annotators": [asdict(one) for one in found]})
    else:
        _print_progress(found)


@command(app)
def agreement(
    settings: Settings,
    task: TaskArgument,
    annotator: AnnotatorsOption = None,
    worst: int = option("Disputed documents to show.", default=10, min=0),
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how far annotators agree beyond chance, and where they disagree most.

    Kappa is Cohen's, plain and with linear and quadratic weights; alpha is Krippendorff's, ordinal. 1 is
    perfect agreement, 0 agreement by chance. Models are annotators like others here. A grade that was given in
    view of others' judgments, or changed after these could be seen, is not independent: the output counts these.
    """
    from searchapp.judging.agreement import agreement as measured

    task = name_of(task)
    with open_log(settings, log, task) as opened:
        _, view = of_task(opened, task)
        require_known(annotator, view, task)
        found = measured(view, annotator)
    if as_json:
        print_json(_described(task, found))
    else:
        _print_agreement(found, worst)


@command(app, "list")
def list_(
    settings: Settings,
    task: TaskArgument,
    annotator: list[str] | None = option(
        "Only this annotator, a model too; can be given several times.",
        show_default="everybody",
        completes="annotators",
    ),
    topic: list[str] | None = option("Only this topic; can be given several times.", show_default="all"),
    action: list[What] | None = option(
        "Only grades, skips, “can't tell”, mere notes, or decisions; can be given several times.",
        show_default="all",
    ),
    grade: list[int] | None = option(
        "Only this grade; can be given several times.", min=0, show_default="all"
    ),
    noted: bool = flag("Only what has a note or a reason."),
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the judgments that hold: annotator, topic, document, grade, reason and time.

    Judgments that were undone or replaced are not listed; `judgments export` has every event.
    """
    from searchapp.judging.events import Action
    from searchapp.judging.judgments import Filter, listed

    loaded = load(task)
    for one in grade or ():
        if one >= len(loaded.info.grades):
            raise UsageError(f"{loaded.name} has the grades 0 to {len(loaded.info.grades) - 1}, not {one}")
    with open_log(settings, log, loaded.name) as opened:
        _, view = of_task(opened, loaded.name)
        require_known(annotator, view, loaded.name)
        actions = None if action is None else [Action(one.value) for one in action]
        found = listed(view, Filter(annotator, topic, actions, grade, noted))
    if as_json:
        print_json({"task": loaded.name, "judgments": [asdict(one) for one in found]})
    elif found:
        _print(found, loaded.info.grades)
    say(settings, f"{len(found):,} listed")


def _print_progress(found: Sequence[AnnotatorProgress]) -> None:
    names = ("annotator", "kind", "topics", "graded", "can't tell", "skipped", "seconds each", "grades")
    rows = (
        (
            one.annotator,
            one.kind.value,
            str(one.topics),
            str(one.graded),
            str(one.cant_tell),
            str(one.skipped),
            "" if one.seconds is None else f"{one.seconds:.1f}",
            "  ".join(f"{grade}: {count}" for grade, count in one.grades.items()),
        )
        for one in found
    )
    print_table(names, rows, left=(0, 1, 7))


def _print_agreement(found: Agreement, worst: int) -> None:
    console = stdout_console()
    if not found.documents:
        console.print(
            "no document has grades of several annotators: `judgments assign --overlap` shares topics"
        )
        return
    console.print(
        f"alpha {_figure(found.alpha)} (Krippendorff, ordinal) over "
        f"{counted(found.documents, 'document')} with several grades"
    )
    console.print(_in_sight_words(found.in_sight))
    if found.in_sight.in_sight or found.in_sight.unknown:
        console.print()
        seen = (
            (name, *map(str, (of.grades, of.in_sight, of.unknown))) for name, of in found.in_sight_by.items()
        )
        print_table(("annotator", "grades", "in view of others'", "not known"), seen)
    if found.pairs:
        console.print()
        names = ("annotators", "documents", "kappa", "linear", "quadratic")
        rows = (
            (
                " and ".join(pair.annotators),
                str(pair.documents),
                *map(_figure, (pair.kappa, pair.linear, pair.quadratic)),
            )
            for pair in found.pairs
        )
        print_table(names, rows)
    if found.topics:
        console.print()
        of_topics = (
            (topic, str(documents), _figure(alpha)) for topic, (documents, alpha) in found.topics.items()
        )
        print_table(("topic", "documents", "alpha"), of_topics)
    if found.disputed and worst:
        console.print()
        disputed = (
            (topic, document, "  ".join(f"{name}: {grade}" for name, grade in grades.items()))
            for (topic, document), grades in found.disputed[:worst]
        )
        print_table(("topic", "document", "grades"), disputed, left=(0, 1, 2))


def _in_sight_words(found: InSight) -> str:
    """Which share of the grades was given in view of others'.

    >>> from searchapp.judging.agreement import InSight
    >>> _in_sight_words(InSight(200, 3, 0))
    '3 of 200 grades (1.5%) were given in view of others' judgments'
    """
    known = found.grades - found.unknown
    if not known:
        return "whether grades were given in view of others' judgments is not known: they are older than its record"
    share = f"{found.in_sight / known:.1%}"
    unknown = f"; of {found.unknown:,} more it is not known" if found.unknown else ""
    were = "was" if found.in_sight == 1 else "were"
    return (
        f"{found.in_sight:,} of {counted(known, 'grade')} ({share}) {were} given in view of others' "
        f"judgments{unknown}"
    )


def _described(task: str, found: Agreement) -> dict[str, object]:
    return {
        "task": task,
        "annotators": list(found.annotators),
        "documents": found.documents,
        "alpha": found.alpha,
        "in_sight": {
            **asdict(found.in_sight),
            "annotators": {name: asdict(of) for name, of in found.in_sight_by.items()},
        },
        "pairs": [asdict(pair) for pair in found.pairs],
        "topics": {
            topic: {"documents": documents, "alpha": alpha}
            for topic, (documents, alpha) in found.topics.items()
        },
        "disputed": [
            {"topic": topic, "document": document, "grades": dict(grades)}
            for (topic, document), grades in found.disputed
        ],
    }


def _figure(value: float) -> str:
    return f"{value:.4f}"


SHOWN = 20
"""How many problems are listed without --json."""


@command(safety)
def verify(settings: Settings, log: LogOption = None, as_json: JsonOption = False) -> None:
    """Check the whole log for damage: every event, its checksum, and the file's structure.

    Exits with 4 if anything is wrong, and says which events are damaged or gone.
    """
    from searchapp.judging.log import JudgmentLog
    from searchapp.judging.log import verify as verified

    path = require_log(settings, log)
    with closing(JudgmentLog(path)) as opened:
        verdict = verified(opened)
    _report(settings, path, verdict, as_json)
    if not verdict.is_sound:
        raise DataError(
            f"{path} is damaged: damaged events are left out of everything; restore a backup, or keep the "
            "others, with `searchapp judgments export` and `import --log` into a new log"
        )


@command(safety)
def backup(
    settings: Settings,
    file: Path = argument("New file to write."),
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the log to a new file while people judge, and verify the copy.

    The copy is one file that opens with --log. An existing file is never replaced.
    """
    from searchapp.judging.log import JudgmentLog, back_up

    path = require_log(settings, log)
    with closing(JudgmentLog(path)) as opened:
        verdict = back_up(opened, file)
    _report(settings, file, verdict, as_json)
    if not verdict.is_sound:
        raise DataError(f"{file} is written, but {path} is damaged, and so is its copy: keep earlier backups")


def _report(settings: Settings, path: Path, verdict: LogVerification, as_json: bool) -> None:
    if as_json:
        print_json({"log": str(path), "sound": verdict.is_sound, **asdict(verdict)})
        return
    for problem in verdict.problems[:SHOWN]:
        show(problem)
    if len(verdict.problems) > SHOWN:
        show(f"and {len(verdict.problems) - SHOWN:,} more: --json lists them all")
    if verdict.is_sound:
        say(settings, f"{path}: {counted(verdict.events, 'event')}, every one as it was written")
