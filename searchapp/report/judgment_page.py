"""Report of the judgments of a task as a self-contained HTML file."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from markupsafe import Markup

from searchapp.judging.events import Kind
from searchapp.lucene.dataclass import dataclass
from searchapp.report.charts import Mark, grouped_bars, lines
from searchapp.report.judgment_tables import (
    JudgmentTable,
    calibration_table,
    comparison_table,
    coverage_sentence,
    figure,
    guidelines_table,
    labelled,
    minute,
    pace_table,
    revisions_table,
    trust_tables,
    windows_table,
)
from searchapp.report.pages import rendered
from searchapp.text import be, counted

if TYPE_CHECKING:
    from searchapp.app.judgment_report import CalibrationFile, JudgmentReport
    from searchapp.judging.agreement import PairAgreement
    from searchapp.judging.audit import AnnotatorAudit


@dataclass(frozen=True, slots=True)
class JudgmentChart:
    """A drawing with its caption."""

    drawing: Markup
    caption: str


@dataclass(frozen=True, slots=True)
class JudgmentSection:
    """A section of the page: sentences, a chart and tables in this order."""

    name: str
    heading: str
    sentences: Sequence[str] = ()
    chart: JudgmentChart | None = None
    tables: Sequence[JudgmentTable] = ()
    # Command lines by what they print.
    commands: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.sentences or self.commands or any(table.rows for table in self.tables))


def judgment_page(report: JudgmentReport) -> bytes:
    """Return the report as HTML in UTF-8."""
    sections = [section for section in _sections(report) if not section.is_empty]
    return rendered(
        "judgments.html",
        {section.name: section.heading for section in sections},
        report.warnings,
        report=report,
        of={section.name: section for section in sections},
        last=minute(report.last),
    )


def _sections(report: JudgmentReport) -> Iterator[JudgmentSection]:
    result = report.audit.audit
    people = [each for each in result.annotators if each.kind is Kind.person]
    models = [each for each in result.annotators if each.kind is Kind.model]
    against = (
        "Each grade is compared with the decision of another annotator on the document, otherwise with the "
    )
    yield JudgmentSection("agreement", "Agreement", *_agreement(report))
    windows = windows_table(result)
    yield JudgmentSection(
        "time", "Agreement over time", (), _over_time(report) if len(windows.rows) > 1 else None, [windows]
    )
    yield JudgmentSection(
        "people",
        "People",
        [f"{against}majority of the others' grades. A bias above 0 is lenient."] if people else (),
        _kappas(people),
        [_progress(report, Kind.person), comparison_table(people)],
    )
    yield JudgmentSection(
        "models",
        "Models",
        [f"{against}majority of the grades that count. Models never count as people."] if models else (),
        _kappas(models),
        [_progress(report, Kind.model), comparison_table(models), _pairs(report, _model_pairs(report))],
    )
    for number, trust in enumerate(report.trust, 1):
        sentences = [
            f"{coverage_sentence(trust.model, trust.coverage)}. Intervals are over topics; a bias above 0 is lenient."
        ]
        heading = f"Trust in {trust.model}"
        yield JudgmentSection(f"trust-{number}", heading, sentences, None, list(trust_tables(trust)))
    pace = pace_table(people)
    reading = report.request.reading
    rule = (
        f"A judgment is too fast if it took less than {reading.least_seconds:g} seconds (Huang et al. 2012), or if the "
        f"text has more words than are read in its time at {reading.words_per_minute:g} words a minute (the rate of "
        "skimming is 450: Carver 1990). A fast judgment is not wrong."
    )
    yield JudgmentSection("pace", "Pace", [rule] if pace.rows else (), None, [pace])
    yield JudgmentSection("revised", "Revised grades", (), None, [revisions_table(result.annotators)])
    uses = report.audit.agreement.guidelines
    recorded = uses if any(use.digest for use in uses) else ()
    yield JudgmentSection("guidelines", "Guidelines", (), None, [guidelines_table(recorded)])
    if report.calibration is not None:
        yield JudgmentSection("calibration", "Calibration", *_calibration(report.calibration))
    yield JudgmentSection("disputed", "Disputed documents", *_disputed(report))
    yield JudgmentSection(
        "reproduce",
        "How to reproduce these numbers",
        commands={
            printed: shlex.join(["searchapp", "judgments", command, report.audit.task, *options, "--json"])
            for printed, command, options in (
                ("Annotators, time, pace, revised grades and guidelines", "audit", report.options),
                ("Agreement and disputed documents", "agreement", report.agreement_options),
                ("Current judgments", "stats", report.log_options),
                *(
                    (f"Trust in {trust.model}", "trust", [trust.model, *report.trust_options])
                    for trust in report.trust
                ),
            )
        },
    )


def _agreement(report: JudgmentReport) -> tuple[list[str], None, list[JudgmentTable]]:
    agreement = report.agreement
    if not agreement.documents:
        return ["No document has grades of several people."], None, []
    seen = agreement.saw_others
    sentences = [
        f"Krippendorff's ordinal alpha is {figure(agreement.alpha, '.4f')} over "
        f"{counted(agreement.documents, 'document')} with several grades; 1 is perfect agreement, 0 is agreement by "
        f"chance.",
        f"Of {counted(seen.grades, 'grade')} on these, {seen.saw_others:,} {be(seen.saw_others)} known to be given in "
        f"view of others' judgments, and for {seen.unknown:,} this is not recorded.",
    ]
    topics = JudgmentTable(
        "Agreement on each topic",
        ("topic", "documents", "alpha"),
        [
            (topic, f"{documents:,}", figure(alpha, ".4f"))
            for topic, (documents, alpha) in agreement.topics.items()
        ],
    )
    return sentences, None, [_pairs(report, agreement.pairs), topics]


def _pairs(report: JudgmentReport, pairs: Sequence[PairAgreement]) -> JudgmentTable:
    rows = [
        (
            " and ".join(labelled(name, report.kinds[name]) for name in pair.annotators),
            f"{pair.documents:,}",
            *(figure(kappa, ".4f") for kappa in (pair.kappa, pair.linear, pair.quadratic)),
        )
        for pair in pairs
    ]
    names = ("annotators", "documents", "kappa", "linear", "quadratic")
    return JudgmentTable("Cohen's kappa of each pair, unweighted and weighted", names, rows)


def _model_pairs(report: JudgmentReport) -> list[PairAgreement]:
    return [
        pair
        for pair in report.audit.agreement.pairs
        if any(report.kinds[name] is Kind.model for name in pair.annotators)
    ]


def _progress(report: JudgmentReport, kind: Kind) -> JudgmentTable:
    rows = [
        (
            labelled(each.annotator, each.kind),
            *(f"{count:,}" for count in (each.topics, each.graded, each.cant_tell, each.skipped)),
            ", ".join(f"{grade}: {count:,}" for grade, count in each.grades.items()),
            minute(each.first),
            minute(each.last),
        )
        for each in report.progress
        if each.kind is kind
    ]
    names = ("annotator", "topics", "graded", "can't tell", "skipped", "grades", "first (UTC)", "last (UTC)")
    return JudgmentTable("Current judgments", names, rows, (0, 5, 6, 7))


def _kappas(annotators: Sequence[AnnotatorAudit]) -> JudgmentChart | None:
    compared = [each for each in annotators if not math.isnan(each.others.kappa)]
    if not compared:
        return None
    marks = []
    for each in compared:
        low, high = (None if math.isnan(end) else end for end in (each.others.low, each.others.high))
        name = labelled(each.annotator, each.kind)
        marks.append(Mark(each.others.kappa, f"{name}: kappa {figure(each.others.kappa, '.4f')}", low, high))
    labels = [labelled(each.annotator, each.kind) for each in compared]
    caption = "Kappa of each annotator with its 95 % interval; the table below contains the numbers"
    return JudgmentChart(grouped_bars(labels, [marks], caption), caption)


def _over_time(report: JudgmentReport) -> JudgmentChart:
    windows = report.audit.audit.windows
    labels = [str(number) for number in range(1, len(windows) + 1)]
    marks = [
        Mark(window.share, f"{minute(window.first)} to {minute(window.last)}: {window.share:.2f}")
        for window in windows
    ]
    caption = "Share of documents with equal grades by window; the table below contains the numbers"
    return JudgmentChart(lines(labels, [marks], caption, ("window", "equal grades")), caption)


def _calibration(calibration: CalibrationFile) -> tuple[list[str], None, list[JudgmentTable]]:
    mark = "" if calibration.pass_mark is None else f" The pass mark on kappa is {calibration.pass_mark:g}."
    sentence = (
        f"Grades of {counted(calibration.documents, 'document')} with known grades, before the study.{mark}"
    )
    results = [(each, each.passed) for each in calibration.annotators]
    table = calibration_table(results, calibration.documents)
    return [sentence], None, [table]


def _disputed(report: JudgmentReport) -> tuple[list[str], None, list[JudgmentTable]]:
    disputed, decisions = report.agreement.disputed, report.agreement.decisions
    if not disputed:
        return [], None, []
    shown = disputed[: report.most_disputed]
    cut = f" The table has the first {len(shown):,}." if len(shown) < len(disputed) else ""
    rows = [
        (
            *key,
            ", ".join(f"{labelled(name, report.kinds[name])}: {grade}" for name, grade in grades.items()),
            ", ".join(f"{name}: {grade}" for name, grade in report.models.get(key, {}).items()) or "–",
            "–" if (decision := decisions.get(key)) is None else f"{decision.grade} by {decision.annotator}",
        )
        for key, grades in shown
    ]
    decided = (
        f"{len(decisions):,} of {counted(len(disputed), 'disputed document')} {be(len(decisions))} decided"
    )
    table = JudgmentTable(
        "Documents with different grades, the largest differences first; grades of models do not make a dispute "
        "unless they were named",
        ("topic", "document", "grades", "models' grades", "decision"),
        rows,
        (0, 1, 2, 3, 4),
    )
    return [f"{decided}.{cut}"], None, [table]
