"""The tables of an audit of judgments, for the command and for the report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchapp.judging.agreement import GuidelinesUse
    from searchapp.judging.audit import AnnotatorAudit, JudgingAudit
    from searchapp.judging.calibration import Concordance
    from searchapp.judging.events import Kind


@dataclass(frozen=True, slots=True)
class JudgmentTable:
    """Rows of text below headings."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    # The indexes of columns without figures.
    texts: Sequence[int] = (0,)


def minute(time: str) -> str:
    """Return the time of an event to the minute, in UTC."""
    return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M}"


def figure(value: float | None, form: str) -> str:
    """Return a figure, – for none and NaN."""
    return "–" if value is None or math.isnan(value) else format(value, form)


def labelled(annotator: str, kind: Kind) -> str:
    """Return an annotator's name, labelled if it is a model's."""
    return f"{annotator} (a model)" if kind.value == "model" else annotator


def concordance_cells(concordance: Concordance) -> tuple[str, str, str]:
    """Return the share of equal grades, kappa and its interval."""
    low, high = (figure(end, ".2f") for end in (concordance.low, concordance.high))
    return (
        figure(concordance.share, ".2f"),
        figure(concordance.kappa, ".4f"),
        "–" if math.isnan(concordance.low) else f"{low} to {high}",
    )


def comparison_table(annotators: Sequence[AnnotatorAudit]) -> JudgmentTable:
    """Return how far each annotator agrees with the others."""
    rows = [
        (
            labelled(each.annotator, each.kind),
            f"{each.graded:,}",
            f"{each.others.documents:,}",
            *concordance_cells(each.others),
            figure(each.bias, "+.2f"),
            figure(each.earlier, ".2f"),
            figure(each.later, ".2f"),
        )
        for each in annotators
        if each.graded
    ]
    return JudgmentTable(
        "Grades of each annotator against decisions and the others' grades",
        (
            "annotator",
            "graded",
            "compared",
            "equal",
            "kappa",
            "95 % interval",
            "bias",
            "earlier half",
            "later half",
        ),
        rows,
        (0, 5),
    )


def pace_table(annotators: Sequence[AnnotatorAudit]) -> JudgmentTable:
    """Return the pace of each person."""
    rows = [
        (
            each.annotator,
            figure(each.pace.seconds, ".1f"),
            f"{each.pace.timed:,}",
            f"{each.pace.too_fast:,}",
            figure(each.pace.too_fast / each.pace.timed if each.pace.timed else None, ".1%"),
            f"{each.pace.at_once:,}",
        )
        for each in annotators
        if each.pace is not None and each.graded
    ]
    names = ("annotator", "seconds each", "timed documents", "too fast", "share", "graded at once")
    return JudgmentTable("Pace of each person", names, rows)


def revisions_table(annotators: Sequence[AnnotatorAudit]) -> JudgmentTable:
    """Return the revised grades of each annotator who revised some."""
    rows = [
        (
            labelled(each.annotator, each.kind),
            f"{each.revisions.documents:,}",
            figure(each.revisions.documents / each.graded if each.graded else None, ".1%"),
            f"{each.revisions.saw_others:,}",
            ", ".join(
                f"{before} → {after}: {count:,}"
                for before, counts in each.revisions.grades.items()
                for after, count in counts.items()
            ),
        )
        for each in annotators
        if each.revisions.documents
    ]
    names = ("annotator", "revised documents", "share", "in view of others'", "grades")
    return JudgmentTable("Grades that were revised later", names, rows, (0, 4))


def windows_table(result: JudgingAudit) -> JudgmentTable:
    """Return the agreement over time."""
    rows = [
        (
            minute(window.first),
            minute(window.last),
            f"{window.documents:,}",
            figure(window.share, ".2f"),
            figure(window.alpha, ".4f"),
        )
        for window in result.windows
    ]
    names = ("first (UTC)", "last (UTC)", "documents", "equal", "alpha")
    return JudgmentTable("Agreement over time", names, rows, (0, 1))


def guidelines_table(uses: Sequence[GuidelinesUse]) -> JudgmentTable:
    """Return the grades by version of the guidelines."""
    rows = [
        (
            use.digest or "not recorded",
            f"{use.grades:,}",
            ", ".join(use.annotators),
            minute(use.first),
            minute(use.last),
        )
        for use in uses
    ]
    names = ("guidelines", "grades", "annotators", "first (UTC)", "last (UTC)")
    return JudgmentTable("Grades by the version of the guidelines", names, rows, (0, 2, 3, 4))


def audit_tables(result: JudgingAudit, guidelines: Sequence[GuidelinesUse]) -> Iterator[JudgmentTable]:
    """Yield the tables of an audit that have rows."""
    tables = (
        comparison_table(result.annotators),
        windows_table(result),
        pace_table(result.annotators),
        revisions_table(result.annotators),
        guidelines_table(guidelines if any(use.digest for use in guidelines) else ()),
    )
    return (table for table in tables if table.rows)
