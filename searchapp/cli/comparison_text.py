"""A comparison as people read it in a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from searchapp.app.comparison import number, signed
from searchapp.cli.comparison_rows import bars, tests_columns
from searchapp.cli.figures import Column, print_columns
from searchapp.report.wording import DUE, doubted, figures_of, legend, moves
from searchapp.visible import visible, visible_line

if TYPE_CHECKING:
    from searchapp.app.comparison import Alike, Comparison, TopicDifferences
    from searchapp.cli.output import Console

BAR = 30
"""Blocks of the longest bar."""


def print_comparison(console: Console, found: Comparison, topics: int) -> None:
    """Print the figures, the tests, and where the runs differ, with so many topics of either end."""
    _print_figures(console, found)
    _heading(console, "Differences")
    first, *columns = tests_columns(found)
    print_columns(console, first, columns)
    _print_doubts(console, found)
    for one in found.topics if topics else ():
        _print_topics(console, found, one, topics)
    _print_difficulty(console, found)
    _print_alike(console, found.alike, [run.name for run in found.runs])
    _print_breakdowns(console, found)
    console.print()
    for line in legend(found):
        _line(console, line)


def _heading(console: Console, text: str) -> None:
    from rich.text import Text

    console.print()
    console.print(Text(visible(text), style="bold"))


def _line(console: Console, text: str) -> None:
    from rich.text import Text

    console.print(Text(visible_line(text)), soft_wrap=True)


def _print_figures(console: Console, found: Comparison) -> None:
    """The mean of each run under each measure, and how much of its first documents is judged."""
    names = ["topics", *(f"{one.name}{' (official)' if one.is_official else ''}" for one in found.measures)]
    judged = list(dict.fromkeys(cut for run in found.runs for cut in run.judged))
    columns = []
    for place, run in enumerate(found.runs):
        cells = [f"{found.measures[0].topics:,}", *(number(one.means[place]) for one in found.measures)]
        cells += [number(run.judged.get(cut)) for cut in judged]
        columns.append(Column(run.name + (" (baseline)" if place == found.baseline else ""), cells))
    print_columns(console, Column("mean", [*names, *judged], is_text=True), columns)


def _print_doubts(console: Console, found: Comparison) -> None:
    """What unjudged documents can have to do with each difference."""
    rows = [(one.name, pair, doubt) for one, pair, doubt in doubted(found)]
    if not rows:
        return
    _heading(console, "What documents that nobody has judged can do to these differences")
    names = [run.name for run in found.runs]
    print_columns(
        console,
        Column("measure", [name for name, _, _ in rows], is_text=True),
        [
            Column(
                "runs", [f"{names[pair.first]} → {names[pair.second]}" for _, pair, _ in rows], is_text=True
            ),
            Column("difference", [signed(pair.tests.mean) for _, pair, _ in rows]),
            Column("at least", [signed(doubt.low) for _, _, doubt in rows]),
            Column("at most", [signed(doubt.high) for _, _, doubt in rows]),
            Column("in the other's favour", [signed(doubt.reversed) for _, _, doubt in rows]),
            Column("the difference is", [DUE[doubt.due] for _, _, doubt in rows], is_text=True),
        ],
    )


def _print_topics(console: Console, found: Comparison, one: TopicDifferences, count: int) -> None:
    """The topics of either end with bars, and what became of their relevant documents."""
    first, second = found.runs[one.first].name, found.runs[one.second].name
    gains = [topic for topic in one.topics if topic.difference > 0][:count]
    losses = [topic for topic in one.topics if topic.difference < 0][-count:]
    chosen = [*gains, *losses]
    _heading(
        console,
        f"{found.measures[0].name} by topic: {second} less {first}, the first {found.depth:,} documents",
    )
    if not chosen:
        _line(console, "no topic differs")
        return
    print_columns(
        console,
        Column("topic", [topic.topic_id for topic in chosen], is_text=True),
        [
            Column(first, [number(topic.first) for topic in chosen]),
            Column(second, [number(topic.second) for topic in chosen]),
            Column("difference", [signed(topic.difference) for topic in chosen]),
            Column("", bars([topic.difference for topic in chosen], BAR), is_text=True),
            Column("gained +, lost -, moved", [", ".join(moves(topic)) for topic in chosen], is_text=True),
        ],
    )


def _print_difficulty(console: Console, found: Comparison) -> None:
    """How many topics are solved by none of the runs, by one, ..., by all."""
    _heading(console, f"Topics by difficulty: solved from {found.measures[0].name} {found.solved_from:g} on")
    groups = found.difficulty
    runs = len(found.runs)
    print_columns(
        console,
        Column("solved by", [f"{one.solved_by} of {runs} runs" for one in groups], is_text=True),
        [
            Column("topics", [f"{len(one.topics):,}" for one in groups]),
            *(
                Column(run.name, [number(one.means[place]) for one in groups])
                for place, run in enumerate(found.runs)
            ),
            Column("such as", [", ".join(map(visible_line, one.topics[:3])) for one in groups], is_text=True),
        ],
    )


def _print_alike(console: Console, alike: Sequence[Alike], names: Sequence[str]) -> None:
    overlap = alike[0].overlap
    _heading(
        console,
        f"How alike the rankings are: RBO with p = {overlap.persistence:g}; tau over the documents that both have "
        f"among their first {overlap.tau_depth}",
    )
    print_columns(
        console,
        Column("runs", [f"{names[one.first]} → {names[one.second]}" for one in alike], is_text=True),
        [
            Column("topics", [f"{one.overlap.topics:,}" for one in alike]),
            Column("same", [f"{one.overlap.same:,}" for one in alike]),
            Column("RBO", [number(one.overlap.rbo) for one in alike]),
            Column("tau", [number(one.overlap.tau) for one in alike]),
            *(
                Column(f"Jaccard@{k}", [number(one.overlap.jaccard[k]) for one in alike])
                for k in overlap.jaccard
            ),
        ],
    )


def _print_breakdowns(console: Console, found: Comparison) -> None:
    for one in found.breakdowns:
        _heading(console, one.title)
        for figure in figures_of(one):
            held = [row.values.get(figure, (None,) * len(found.runs)) for row in one.rows]
            columns = [Column(one.counted, [str(row.count) for row in one.rows])]
            columns += [
                Column(f"{figure} {run.name}", [number(values[place]) for values in held])
                for place, run in enumerate(found.runs)
            ]
            if len(found.runs) == 2:
                columns.append(Column("difference", [_less(*values) for values in held]))
            print_columns(console, Column(one.name, [row.group for row in one.rows], is_text=True), columns)


def _less(first: float | None, second: float | None) -> str:
    return "–" if first is None or second is None else signed(second - first)
