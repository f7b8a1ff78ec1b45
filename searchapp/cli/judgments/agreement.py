"""`searchapp judgments stats` and `agreement`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.common import JsonOption, TaskArgument, command
from searchapp.cli.judgments.options import (
    AnnotatorsOption,
    LogOption,
    name_of,
    of_task,
    open_log,
    require_known,
)
from searchapp.cli.judgments.tables import print_table
from searchapp.cli.output import print_json, stdout_console
from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchapp.judging.statistics import Agreement, AnnotatorProgress, InSight


def register(group: typer.Typer) -> None:
    """Add the commands."""

    @command(group)
    def stats(
        settings: Settings, task: TaskArgument, log: LogOption = None, as_json: JsonOption = False
    ) -> None:
        """Show how much each annotator has judged, with which grades, and how fast."""
        from searchapp.judging.statistics import progress

        task = name_of(task)
        with open_log(settings, log, task) as opened:
            folded, view = of_task(opened, task)
            found = progress(folded, view)
        if as_json:
            print_json({"task": task, "events": folded.count, "annotators": [asdict(one) for one in found]})
        else:
            _print_progress(found)

    @command(group)
    def agreement(
        settings: Settings,
        task: TaskArgument,
        annotator: AnnotatorsOption = None,
        worst: Annotated[int, typer.Option(min=0, help="Disputed documents to show.")] = 10,
        log: LogOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Show how far annotators agree beyond chance, and where they disagree most.

        Kappa is Cohen's, plain and with linear and quadratic weights; alpha is Krippendorff's, ordinal. 1 is
        perfect agreement, 0 agreement by chance. Models are annotators like others here. A grade that was given in
        view of others' judgments, or changed after these could be seen, is not independent: the output counts these.
        """
        from searchapp.judging.statistics import agreement as measured

        task = name_of(task)
        with open_log(settings, log, task) as opened:
            _, view = of_task(opened, task)
            require_known(annotator, view, task)
            found = measured(view, annotator)
        if as_json:
            print_json(_described(task, found))
        else:
            _print_agreement(found, worst)


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
        f"alpha {_figure(found.alpha)} (Krippendorff, ordinal) over {found.documents:,} documents with several grades"
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

    >>> from searchapp.judging.statistics import InSight
    >>> _in_sight_words(InSight(200, 3, 0))
    '3 of 200 grades (1.5%) were given in view of others' judgments'
    """
    known = found.grades - found.unknown
    if not known:
        return "whether grades were given in view of others' judgments is not known: they are older than its record"
    share = f"{found.in_sight / known:.1%}"
    unknown = f"; of {found.unknown:,} more it is not known" if found.unknown else ""
    return (
        f"{found.in_sight:,} of {known:,} grades ({share}) were given in view of others' judgments{unknown}"
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
