"""The tables of an audit of judgments, of a calibration and of trust in models, for commands and for the report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from searchapp.lucene.dataclass import dataclass
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.app.judgment_report import CalibratedAnnotator
    from searchapp.app.trust import ModelTrust, SystemAgreement
    from searchapp.judging.agreement import GuidelinesUse
    from searchapp.judging.audit import AnnotatorAudit, JudgingAudit
    from searchapp.judging.calibration import AnnotatorCalibration, Concordance
    from searchapp.judging.events import Kind
    from searchapp.judging.trust import Coefficient, GroupAgreement, TrustCoverage


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


def interval(low: float, high: float, form: str = ".2f") -> str:
    """Return an interval, – for an undefined one."""
    return "–" if math.isnan(low) else f"{low:{form}} to {high:{form}}"


def with_interval(coefficient: Coefficient, form: str = ".2f") -> str:
    """Return a coefficient with its interval, if it has one.

    >>> from searchapp.judging.trust import Coefficient
    >>> with_interval(Coefficient(0.5, 0.25, 0.75)), with_interval(Coefficient(0.5, float("nan"), float("nan")))
    ('0.50 (0.25 to 0.75)', '0.50')
    """
    value = figure(coefficient.value, form)
    limits = interval(coefficient.low, coefficient.high, form)
    return value if math.isnan(coefficient.low) else f"{value} ({limits})"


def concordance_cells(concordance: Concordance) -> tuple[str, str, str]:
    """Return the share of equal grades, kappa and its interval."""
    return (
        figure(concordance.share, ".2f"),
        figure(concordance.kappa, ".4f"),
        interval(concordance.low, concordance.high),
    )


def comparison_table(annotators: Sequence[AnnotatorAudit]) -> JudgmentTable:
    """Return how far each annotator agrees with the others."""
    rows = [
        (
            labelled(each.annotator, each.kind),
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
        ("annotator", "compared", "equal", "kappa", "95 % interval", "bias", "earlier half", "later half"),
        rows,
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


def calibration_table(
    results: Sequence[tuple[AnnotatorCalibration | CalibratedAnnotator, bool | None]], documents: int
) -> JudgmentTable:
    """Return the results of a calibration.

    Args:
        results: annotators, and whether each passed; None without a pass mark
        documents: the number of documents with known grades
    """
    rows = [
        (
            each.annotator,
            f"{each.gold.documents:,}/{documents:,}",
            *concordance_cells(each.gold),
            figure(each.bias, "+.2f"),
            f"{each.repeated.share:.2f} of {each.repeated.documents}" if each.repeated.documents else "–",
            {None: "–", True: "passed", False: "missed"}[passed],
        )
        for each, passed in results
    ]
    names = ("annotator", "graded", "equal", "kappa", "95 % interval", "bias", "repeated", "pass mark")
    return JudgmentTable("Agreement with the known grades", names, rows)


def coverage_sentence(model: str, coverage: TrustCoverage) -> str:
    """Describe what a model did with the documents that people graded.

    >>> from searchapp.judging.trust import TrustCoverage
    >>> coverage_sentence("tiny", TrustCoverage(200, 150, 30, 0, 20))
    'Of 200 documents that people graded, tiny graded 150 (75.0%), abstained on 30, skipped 0 and has not judged 20'
    """
    return (
        f"Of {counted(coverage.documents, 'document')} that people graded, {model} graded {coverage.graded:,} "
        f"({coverage.graded / coverage.documents:.1%}), abstained on {coverage.abstained:,}, skipped "
        f"{coverage.skipped:,} and has not judged {coverage.missing:,}"
    )


def trust_tables(trust: ModelTrust) -> Iterator[JudgmentTable]:
    """Yield the tables on a model that have rows, the most important first."""
    overall = trust.overall
    coefficients = [
        ("kappa", overall.kappa),
        ("kappa, quadratic weights", overall.quadratic),
        ("alpha, ordinal", overall.alpha),
    ]
    labels = sorted({*trust.confusion, *(grade for row in trust.confusion.values() for grade in row)})
    grades = [
        (f"{each.grade}", f"{each.people:,}", f"{each.model:,}", f"{each.both:,}", with_interval(each.kappa))
        for each in trust.grades
    ]
    tables = (
        JudgmentTable(
            f"Agreement with people on {counted(overall.documents, 'document')} of "
            f"{counted(overall.topics, 'topic')}",
            ("coefficient", "value", "95 % interval"),
            [
                *(
                    (name, figure(each.value, ".4f"), interval(each.low, each.high))
                    for name, each in coefficients
                ),
                ("share of equal grades", figure(overall.share, ".4f"), "–"),
                ("bias of the model", figure(overall.bias, "+.4f"), "–"),
            ],
        ),
        JudgmentTable(
            "Documents by the grades of people and of the model",
            ("grades", *(f"model {given}" for given in labels)),
            [
                (
                    f"people {known}",
                    *(f"{trust.confusion.get(known, {}).get(given, 0):,}" for given in labels),
                )
                for known in labels
            ],
        ),
        *(() if trust.systems is None else _system_tables(trust.systems)),
        JudgmentTable("Each grade against all others", ("grade", "people", "model", "both", "kappa"), grades),
        _group_table("Agreement by the length of documents", "characters", trust.lengths),
        _group_table("Agreement by the share of the topic's terms in documents", "overlap", trust.overlaps),
        JudgmentTable(
            "Settings of the model",
            ("settings", "documents"),
            [(each.name, f"{each.documents:,}") for each in trust.settings if len(trust.settings) > 1],
        ),
        _group_table(
            "Self-agreement of the model", "settings", [each.agreement for each in trust.self_agreement]
        ),
        _group_table("Agreement on each topic", "topic", trust.topics),
    )
    return (table for table in tables if table.rows)


def _group_table(caption: str, heading: str, groups: Sequence[GroupAgreement]) -> JudgmentTable:
    rows = [
        (
            each.name,
            f"{each.documents:,}",
            figure(each.share, ".2f"),
            figure(each.bias, "+.2f"),
            with_interval(each.kappa),
        )
        for each in groups
    ]
    return JudgmentTable(caption, (heading, "graded", "equal", "bias", "kappa"), rows)


def _system_tables(systems: SystemAgreement) -> Iterator[JudgmentTable]:
    yield JudgmentTable(
        f"{systems.measure} of runs under both sets of judgments, over {counted(systems.topics, 'topic')}",
        ("run", "people", "model"),
        [(str(each.path), f"{each.people:.4f}", f"{each.model:.4f}") for each in systems.systems],
    )
    correlations = (("tau-b", systems.tau_b), ("tau-AP", systems.tau_ap))
    yield JudgmentTable(
        "Correlation of the two rankings of runs",
        ("coefficient", "value", "95 % interval"),
        [(name, figure(tau.value, ".4f"), interval(tau.low, tau.high)) for name, tau in correlations],
    )
