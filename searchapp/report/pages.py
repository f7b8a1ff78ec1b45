"""Reports of runs and of a bench as self-contained HTML files.

The page's policy forbids every request, and every style and script except its own, by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import math
import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import searchapp
from searchapp.app.comparison import ComparedBreakdown, Comparison, number, signed
from searchapp.app.experiments.bench_result import BenchResult
from searchapp.app.report import Report
from searchapp.lucene.dataclass import dataclass
from searchapp.report import wording
from searchapp.report.charts import Mark, grouped_bars, lines, sorted_bars
from searchapp.text import counted, visible_line

KINDS = 6  # line styles and colours before they repeat


Sections = dict[str, str]  # headings of sections by the names of their templates


def rendered(template: str, sections: Sections, warnings: Sequence[str], /, **context: Any) -> bytes:
    """Return a page in UTF-8 with these sections after the warnings."""
    style, script = _file("style.css"), _file("script.js")
    text = (
        _environment()
        .get_template(template)
        .render(
            sections=sections,
            warnings=warnings,
            version=searchapp.__version__,
            style=Markup(style),
            script=Markup(script),
            policy=policy(style, script),
            **context,
        )
    )
    return text.encode("utf-8", errors="replace")  # lone surrogates are replaced before


def policy(style: str, script: str) -> str:
    """Return the Content Security Policy of a page with one style and one script."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _file(name: str) -> str:
    return files("searchapp.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("searchapp.report"),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "number": number,
        "signed": signed,
        "share": share,
        "counted": counted,
        "zip": zip,
        "KINDS": KINDS,
    }
    return environment


def _visible(value: object) -> object:
    """Return the value of an expression without control and deceptive characters; the template escapes it later."""
    return visible_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def share(value: float, greatest: float) -> float:
    """Return the length of a bar, 100 for the longest one."""
    return round(100 * abs(value) / greatest, 1) if greatest else 0.0


ENDS = 15  # topics with the greatest gains, and with the greatest losses, in the table

MOST_PAIRS = 10  # pairs of runs that have a chart of their topics and a sentence

MOST_GROUPS = 24  # groups of a breakdown in a chart

LONGEST_TEXT = 140  # characters of a topic's text


def page(report: Report) -> bytes:
    """Return the report as HTML in UTF-8."""
    comparison = report.comparison
    names = [run.name for run in comparison.runs]
    several = len(names) > 1
    sections = {
        "figures": "Figures",
        "tests": "Differences" if several else "",
        "curves": "Precision and recall",
        "topics": "Topics",
        "difficulty": "Difficulty",
        "breakdowns": "Breakdowns" if comparison.breakdowns else "",
        "alike": "Similarity of the rankings" if several else "",
        "judged": "Judgments" if all(evaluation.judged for evaluation in comparison.evaluations) else "",
        "reproduce": "How to reproduce these numbers",
    }
    return rendered(
        "runs.html",
        _present(sections),
        report.warnings,
        report=report,
        comparison=comparison,
        names=names,
        drawn=_charts(report, names),
        topics=topic_rows(comparison),
        ranks=ranks_of(report),
        w=wording,
        shortened=shortened,
        ENDS=ENDS,
        MOST_PAIRS=MOST_PAIRS,
    )


def _present(sections: Sections) -> Sections:
    return {name: heading for name, heading in sections.items() if heading}


def shortened(text: str) -> str:
    """Return the beginning of a text on one line."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


@dataclass(frozen=True, slots=True)
class TopicInRun:
    """The value of a topic in one run, and the number of its relevant documents among the first."""

    value: float
    retrieved: int


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in all runs; None if a run has no value for it."""

    topic_id: str
    runs: Sequence[TopicInRun | None]
    relevant: int

    @property
    def difference(self) -> float | None:
        first, last = self.runs[0], self.runs[-1]
        return None if first is None or last is None else last.value - first.value

    @property
    def mean(self) -> float:
        values = [run.value for run in self.runs if run is not None]
        return math.fsum(values) / len(values)


def topic_rows(comparison: Comparison) -> list[TopicRow]:
    """Return all topics; for two runs the greatest gain first, otherwise the least mean."""
    of_topics: dict[str, dict[int, TopicInRun]] = {}
    relevant: dict[str, int] = {}
    for pair in comparison.topics:
        for topic in pair.topics:
            runs = of_topics.setdefault(topic.topic_id, {})
            relevant[topic.topic_id] = len(topic.documents)
            first = sum(move.first is not None and move.first <= topic.depth for move in topic.documents)
            second = sum(move.second is not None and move.second <= topic.depth for move in topic.documents)
            runs[pair.first] = TopicInRun(topic.first, first)
            runs[pair.second] = TopicInRun(topic.second, second)
    rows = [
        TopicRow(topic, [runs.get(run_number) for run_number in range(len(comparison.runs))], relevant[topic])
        for topic, runs in of_topics.items()
    ]
    if len(comparison.runs) == 2:
        return rows  # in the order of the pair
    return sorted(rows, key=lambda row: row.mean)


def _charts(report: Report, names: Sequence[str]) -> dict[str, Any]:
    comparison, ranks = report.comparison, ranks_of(report)
    levels = list(report.curves[0].precision)
    level_labels, rank_labels = [f"{level:g}" for level in levels], [_rank(rank) for rank in ranks]
    runs = list(zip(names, report.curves, strict=True))
    return {
        "figures": _figures(report, names),
        "precision": lines(
            level_labels,
            [
                _points(name, level_labels, list(curves.precision.values()), "precision at recall")
                for name, curves in runs
            ],
            "Interpolated precision by recall, one line per run; the table below contains the numbers",
            ("recall", "precision"),
        ),
        "recall": lines(
            rank_labels,
            [
                _points(name, rank_labels, [curves.recall[rank] for rank in ranks], "recall at rank")
                for name, curves in runs
            ],
            "Recall by rank, one line per run; the table below contains the numbers",
            ("rank", "recall"),
        ),
        "topics": _of_topics(comparison),
        "breakdowns": [_breakdown(breakdown, names) for breakdown in comparison.breakdowns],
    }


def ranks_of(report: Report) -> list[int]:
    """Return the ranks of the curves, up to the first rank after which no run has relevant documents."""
    ranks = list(report.curves[0].recall)
    while len(ranks) > 2 and all(
        curves.recall[ranks[-2]] == curves.recall[ranks[-1]] for curves in report.curves
    ):
        ranks.pop()
    return ranks


def _rank(rank: int) -> str:
    """Return a rank in few characters: 1k for 1000."""
    return f"{rank // 1000}k" if rank % 1000 == 0 else f"{rank}"


def _points(name: str, labels: Sequence[str], values: Sequence[float], axis: str) -> list[Mark]:
    return [
        Mark(value, f"{name}: {axis} {label} {number(value)}")
        for label, value in zip(labels, values, strict=True)
    ]


def _figures(report: Report, names: Sequence[str]) -> Markup | None:
    tested = {measured.name for measured in report.comparison.measures}
    shown = [
        figure
        for figure in report.figures
        if figure.name in tested and all(value is None or 0 <= value <= 1 for value in figure.values)
    ]
    if not shown:
        return None
    series = [
        [
            Mark(
                figure.values[run_number],
                f"{name}, {figure.name}: {number(figure.values[run_number])}",
                *_ends_of(figure.intervals[run_number]),
            )
            for figure in shown
        ]
        for run_number, name in enumerate(names)
    ]
    about = "The figures of each run as bars with 95% intervals; the table below contains the numbers"
    return grouped_bars([figure.name for figure in shown], series, about)


def _ends_of(interval: Any) -> tuple[float | None, float | None]:
    if interval is None or math.isnan(interval.low):
        return None, None
    return interval.low, interval.high


def _of_topics(comparison: Comparison) -> Sequence[Markup | None]:
    measure, names = comparison.measures[0].name, [run.name for run in comparison.runs]
    if len(names) == 1:
        rows = sorted(topic_rows(comparison), key=lambda row: -row.mean)
        marks = [Mark(row.mean, f"{row.topic_id}: {number(row.mean)}") for row in rows]
        return [_nonzero_bars(marks, f"{measure} of each topic, highest first")]
    charts = []
    for pair in comparison.topics[:MOST_PAIRS]:
        marks = [
            Mark(
                topic.difference,
                f"{topic.topic_id}: {signed(topic.difference)} ({number(topic.first)} → {number(topic.second)})",
                kind="gain" if topic.difference > 0 else "loss",
            )
            for topic in pair.topics
        ]
        about = f"{measure} of each topic: {names[pair.second]} − {names[pair.first]}, largest gain first"
        charts.append(_nonzero_bars(marks, about))
    return charts


def _nonzero_bars(marks: Sequence[Mark], about: str) -> Markup | None:
    return sorted_bars(marks, about) if any(mark.value for mark in marks) else None


def _breakdown(breakdown: ComparedBreakdown, names: Sequence[str]) -> Markup | None:
    rows = breakdown.rows
    figure = next((name for row in rows for name in row.values), None)
    if figure is None or len(rows) > MOST_GROUPS:
        return None
    columns = [row.values.get(figure, (None,) * len(names)) for row in rows]
    if any(value is not None and not 0 <= value <= 1 for column in columns for value in column):
        return None
    series = [
        [
            Mark(column[run_number], f"{name}, {row.group}: {figure} {number(column[run_number])}")
            for row, column in zip(rows, columns, strict=True)
        ]
        for run_number, name in enumerate(names)
    ]
    about = f"{breakdown.title}: {figure}; the table below contains the numbers"
    return grouped_bars([row.group for row in rows], series, about)


def bench_page(result: BenchResult) -> bytes:
    """Return the bench as HTML in UTF-8."""
    file = Path(result.file).name
    sections = {
        "bench-heatmap": "Figures" if wording.official(result) else "",
        "bench-tests": "Differences" if len(result.systems) > 1 else "",
        "bench-measures": "All measures" if any(column.measures for column in result.columns) else "",
        "bench-again": "How to reproduce these numbers",
    }
    return rendered(
        "bench.html",
        _present(sections),
        _warnings(result),
        result=result,
        names=[system.name for system in result.systems],
        baseline=result.systems[result.baseline].name,
        b=wording,
        w=wording,
        most=wording.greatest(result),
        file=file,
        command=shlex.join(["searchapp", "bench", file, "--json"]),
    )


def _warnings(result: BenchResult) -> list[str]:
    warnings = [
        f"{column.name}, {system.name} has no figures: {cell.error}" for system, column, cell in result.failed
    ]
    for column in result.columns:
        warnings += [f"{column.name}: {warning}" for warning in column.warnings]
        for system, cell in zip(result.systems, column.cells, strict=True):
            if cell is not None and column.group is None:
                warnings += [f"{column.name}, {system.name}: {warning}" for warning in cell.warnings]
    return warnings
