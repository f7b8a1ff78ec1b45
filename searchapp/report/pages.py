"""Reports of runs and of a bench as one HTML file each, which needs nothing else: no network, no fonts, no other file.

Whatever stands in a page goes through one door: the environment makes characters harmless that act or deceive, and
escapes what HTML would read. The page's policy forbids every request, and every style and script but its own two, which
it names by their digests. Without its script a page is complete; with it tables can be sorted.
"""

from __future__ import annotations

import base64
import hashlib
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import searchapp
from searchapp.app.comparison import (
    ComparedBreakdown,
    Comparison,
    number,
    signed,
)
from searchapp.app.experiments.bench_result import BenchResult
from searchapp.app.report import Report
from searchapp.report import wording
from searchapp.report import wording as bench_wording
from searchapp.report.charts import Mark, grouped_bars, lines, sorted_bars
from searchapp.text import counted, visible_line

KINDS = 6
"""Kinds of lines and colours, after which they repeat."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page: its name, which is that of its template too, and its heading."""

    name: str
    heading: str


def rendered(template: str, sections: Sequence[Section], warnings: Sequence[str], /, **context: Any) -> bytes:
    """A page in UTF-8 with these sections; the warnings come before them."""
    style, script = _own("style.css"), _own("script.js")
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
    return text.encode("utf-8", errors="replace")  # halves of characters are named already


def policy(style: str, script: str) -> str:
    """The Content Security Policy of a page with one style and one script of its own."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _own(name: str) -> str:
    return files("searchapp.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("searchapp.report"),
        autoescape=True,
        finalize=_harmless,
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


def _harmless(value: object) -> object:
    """What an expression of a template gives, before it is escaped: text of others without what acts or deceives."""
    return visible_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def share(value: float, greatest: float) -> float:
    """The length of a bar of which the longest has 100."""
    return round(100 * abs(value) / greatest, 1) if greatest else 0.0


ENDS = 15
"""Topics with the greatest gains, and with the greatest losses, that have a row of their own."""

MOST_PAIRS = 10
"""Pairs of runs that have a chart of their topics, and a sentence."""

MOST_GROUPS = 24
"""Groups of a breakdown that fit into a chart."""

LONGEST_TEXT = 140
"""Characters of a topic's text that are shown."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a report shows as charts, ready to stand in the page."""

    figures: Markup | None
    precision: Markup
    recall: Markup
    topics: Sequence[Markup | None]
    breakdowns: Sequence[Markup | None]


def page(report: Report) -> bytes:
    """The report as HTML in UTF-8; the same report gives the same bytes."""
    found = report.comparison
    names = [run.name for run in found.runs]
    return rendered(
        "runs.html",
        _sections(report),
        report.warnings,
        report=report,
        found=found,
        names=names,
        drawn=_drawn(report),
        topics=topic_rows(found),
        ranks=ranks_of(report),
        w=wording,
        shortened=shortened,
        ENDS=ENDS,
        MOST_PAIRS=MOST_PAIRS,
    )


def shortened(text: str) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _sections(report: Report) -> list[Section]:
    """The sections that the report has."""
    found = report.comparison
    several = len(found.runs) > 1
    there = [
        (Section("figures", "Figures"), True),
        (Section("tests", "Differences"), several),
        (Section("curves", "Precision and recall"), True),
        (Section("topics", "Topics"), True),
        (Section("difficulty", "Difficulty"), True),
        (Section("breakdowns", "Breakdowns"), bool(found.breakdowns)),
        (Section("alike", "How alike the rankings are"), several),
        (Section("judged", "Judgments"), all(one.judged for one in found.evaluations)),
        (Section("reproduce", "How to get these numbers again"), True),
    ]
    return [section for section, is_there in there if is_there]


@dataclass(frozen=True, slots=True)
class InRun:
    """A topic in one run: its value, and how many of its relevant documents are among the first."""

    value: float
    found: int


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in all runs, None where a run has no value for it, and how many relevant documents it has."""

    topic_id: str
    runs: Sequence[InRun | None]
    relevant: int

    @property
    def difference(self) -> float | None:
        """The last value less the first."""
        first, last = self.runs[0], self.runs[-1]
        return None if first is None or last is None else last.value - first.value

    @property
    def mean(self) -> float:
        """Of the values that there are."""
        there = [one.value for one in self.runs if one is not None]
        return math.fsum(there) / len(there)


def topic_rows(found: Comparison) -> list[TopicRow]:
    """All topics of all pairs; of two runs the greatest gain first, else the least mean."""
    of_topics: dict[str, dict[int, InRun]] = {}
    relevant: dict[str, int] = {}
    for pair in found.topics:
        for topic in pair.topics:
            runs = of_topics.setdefault(topic.topic_id, {})
            relevant[topic.topic_id] = len(topic.documents)
            first = sum(move.first is not None and move.first <= topic.depth for move in topic.documents)
            second = sum(move.second is not None and move.second <= topic.depth for move in topic.documents)
            runs[pair.first] = InRun(topic.first, first)
            runs[pair.second] = InRun(topic.second, second)
    rows = [
        TopicRow(topic, [runs.get(place) for place in range(len(found.runs))], relevant[topic])
        for topic, runs in of_topics.items()
    ]
    if len(found.runs) == 2:
        return rows  # as they are in the pair
    return sorted(rows, key=lambda row: row.mean)


def _drawn(report: Report) -> Drawn:
    found = report.comparison
    names = [run.name for run in found.runs]
    levels = [f"{level:g}" for level in report.curves[0].precision]
    ranks = [_rank(rank) for rank in ranks_of(report)]
    runs = list(zip(names, report.curves, strict=True))
    return Drawn(
        figures=_figures(report, names),
        precision=lines(
            levels,
            [
                _points(name, levels, list(one.precision.values()), "precision at recall")
                for name, one in runs
            ],
            "Interpolated precision by recall, a line a run; the numbers are in the table below",
            ("recall", "precision"),
        ),
        recall=lines(
            ranks,
            [
                _points(name, ranks, [one.recall[rank] for rank in ranks_of(report)], "recall at rank")
                for name, one in runs
            ],
            "Recall by rank, a line a run; the numbers are in the table below",
            ("rank", "recall"),
        ),
        topics=_of_topics(found),
        breakdowns=[_breakdown(one, names) for one in found.breakdowns],
    )


def ranks_of(report: Report) -> list[int]:
    """The ranks of the curves, up to the first from which on no run finds anything more."""
    ranks = list(report.curves[0].recall)
    while len(ranks) > 2 and all(one.recall[ranks[-2]] == one.recall[ranks[-1]] for one in report.curves):
        ranks.pop()
    return ranks


def _rank(rank: int) -> str:
    """A rank in few characters.

    >>> _rank(500), _rank(1000), _rank(1234)
    ('500', '1k', '1234')
    """
    return f"{rank // 1000}k" if rank % 1000 == 0 else f"{rank}"


def _points(name: str, labels: Sequence[str], values: Sequence[float], what: str) -> list[Mark]:
    return [
        Mark(value, f"{name}: {what} {label} {number(value)}")
        for label, value in zip(labels, values, strict=True)
    ]


def _figures(report: Report, names: Sequence[str]) -> Markup | None:
    """The measures that topics are looked at by, as far as they are fractions."""
    tested = {one.name for one in report.comparison.measures}
    shown = [
        one
        for one in report.figures
        if one.name in tested and all(value is None or 0 <= value <= 1 for value in one.values)
    ]
    if not shown:
        return None
    series = [
        [
            Mark(
                one.values[place],
                f"{name}, {one.name}: {number(one.values[place])}",
                *_ends_of(one.intervals[place]),
            )
            for one in shown
        ]
        for place, name in enumerate(names)
    ]
    about = "The figures of each run as bars with their 95% intervals; the numbers are in the table below"
    return grouped_bars([one.name for one in shown], series, about)


def _ends_of(interval: Any) -> tuple[float | None, float | None]:
    if interval is None or math.isnan(interval.low):
        return None, None
    return interval.low, interval.high


def _of_topics(found: Comparison) -> Sequence[Markup | None]:
    """A chart a pair of runs, or of one run alone its values; None where all of them are 0."""
    measure, names = found.measures[0].name, [run.name for run in found.runs]
    if len(names) == 1:
        rows = sorted(topic_rows(found), key=lambda row: -row.mean)
        marks = [Mark(row.mean, f"{row.topic_id}: {number(row.mean)}") for row in rows]
        return [_sorted(marks, f"{measure} of each topic, the greatest first")]
    charts = []
    for pair in found.topics[:MOST_PAIRS]:
        marks = [
            Mark(
                one.difference,
                f"{one.topic_id}: {signed(one.difference)} ({number(one.first)} → {number(one.second)})",
                kind="gain" if one.difference > 0 else "loss",
            )
            for one in pair.topics
        ]
        about = (
            f"{measure} of each topic: {names[pair.second]} less {names[pair.first]}, the greatest gain first"
        )
        charts.append(_sorted(marks, about))
    return charts


def _sorted(marks: Sequence[Mark], about: str) -> Markup | None:
    return sorted_bars(marks, about) if any(mark.value for mark in marks) else None


def _breakdown(one: ComparedBreakdown, names: Sequence[str]) -> Markup | None:
    """The first figure of a breakdown, where it is a fraction and there are not too many groups."""
    figure = next((name for row in one.rows for name in row.values), None)
    if figure is None or len(one.rows) > MOST_GROUPS:
        return None
    nothing = (None,) * len(names)
    columns = [row.values.get(figure, nothing) for row in one.rows]
    if any(value is not None and not 0 <= value <= 1 for column in columns for value in column):
        return None
    series = [
        [
            Mark(column[place], f"{name}, {row.group}: {figure} {number(column[place])}")
            for row, column in zip(one.rows, columns, strict=True)
        ]
        for place, name in enumerate(names)
    ]
    return grouped_bars(
        [row.group for row in one.rows], series, f"{one.title}: {figure}; the numbers are in the table below"
    )


def bench_page(found: BenchResult) -> bytes:
    """The bench as HTML in UTF-8; the same result gives the same bytes."""
    file = Path(found.file).name
    there = [
        (Section("bench-heatmap", "Figures"), bool(bench_wording.official(found))),
        (Section("bench-tests", "Differences"), len(found.systems) > 1),
        (Section("bench-measures", "All measures"), any(column.measures for column in found.columns)),
        (Section("bench-again", "How to get these numbers again"), True),
    ]
    return rendered(
        "bench.html",
        [section for section, is_there in there if is_there],
        _warnings(found),
        found=found,
        names=[system.name for system in found.systems],
        baseline=found.systems[found.baseline].name,
        b=bench_wording,
        w=wording,
        most=bench_wording.greatest(found),
        file=file,
        command=shlex.join(["searchapp", "bench", file, "--json"]),
    )


def _warnings(found: BenchResult) -> list[str]:
    """What must not be missed: which cells have no figures, and where a figure misleads."""
    warnings = [
        f"{column.name}, {system.name} has no figures: {cell.error}" for system, column, cell in found.failed
    ]
    for column in found.columns:
        warnings += [f"{column.name}: {warning}" for warning in column.warnings]
        for system, cell in zip(found.systems, column.cells, strict=True):
            if cell is not None and column.group is None:
                warnings += [f"{column.name}, {system.name}: {warning}" for warning in cell.warnings]
    return warnings
