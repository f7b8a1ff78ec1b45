"""An ablation as people read it in a terminal or a pipe, as CSV, as Markdown and as LaTeX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from searchapp.app.comparison import number, p_value, signed
from searchapp.cli.figures import Column, print_columns
from searchapp.cli.written_tables import (
    TESTED,
    csv_table,
    exactly,
    for_latex,
    for_markdown,
    latex_comments,
    latex_table,
    markdown_table,
    tested,
)
from searchapp.report.wording import between, effect
from searchapp.visible import visible_line

if TYPE_CHECKING:
    from searchapp.app.ablation import Ablation
    from searchapp.app.comparison import Measured
    from searchapp.cli.output import Console

COLUMNS = (
    "task",
    "splits",
    "recipe",
    "measure",
    "official",
    "topics",
    "kind",
    "signal",
    "feature",
    "figure",
    *("gain" if name == "difference" else name for name in TESTED),
    "cpu_seconds",
    "cpu_saved",
    "clock_seconds",
)
"""Of the CSV: a row a measure and variant."""


def print_ablation(console: Console, found: Ablation) -> None:
    """Print a table a measure, and what must be known of them."""
    from rich.text import Text

    for place, measured in enumerate(found.measures):
        if place:
            console.print()
        console.print(Text(visible_line(_heading(found, measured)), style="bold"), soft_wrap=True)
        first, *columns = _columns(found, measured)
        print_columns(console, first, columns, bold=[0])
    console.print()
    for line in _legend(found):
        console.print(Text(visible_line(line)), soft_wrap=True)


def as_csv(found: Ablation) -> str:
    """The ablation for a spreadsheet."""
    return csv_table(COLUMNS, _rows(found))


def as_markdown(found: Ablation) -> str:
    """The ablation as Markdown tables, and below them what must be known of them."""
    lines: list[str] = []
    for measured in found.measures:
        lines += [f"**{for_markdown(_heading(found, measured))}**", ""]
        lines += [*markdown_table(_columns(found, measured)), ""]
    return "\n".join([*lines, *(f"- {for_markdown(one)}" for one in _legend(found))]) + "\n"


def as_latex(found: Ablation) -> str:
    """The ablation as tables for LaTeX with the package booktabs, and what must be known of them as comments."""
    lines = latex_comments(_legend(found))
    for measured in found.measures:
        lines += ["", rf"\textbf{{{for_latex(_heading(found, measured))}}}\par"]
        lines += latex_table(_columns(found, measured))
    return "\n".join(lines) + "\n"


def _heading(found: Ablation, measured: Measured) -> str:
    official = " (official)" if measured.is_official else ""
    where = f"{found.task} {', '.join(found.splits)}, recipe {found.recipe['name']}"
    return f"{where}: {measured.name}{official} of {measured.topics:,} topics"


def _columns(found: Ablation, measured: Measured) -> list[Column]:
    rows = list(found.rows(measured))
    tests = [None if pair is None else pair.tests for _, _, pair in rows]
    corrected = [None if pair is None else pair.corrected["randomisation"] for _, _, pair in rows]
    won = [None if one is None else one.outcomes for one in tests]
    return [
        Column("recipe", [variant.name for variant, _, _ in rows], is_text=True),
        Column(measured.name, [number(figure) for _, figure, _ in rows]),
        Column("gain", ["" if one is None else signed(one.mean) for one in tests]),
        Column("95% interval", ["" if one is None else between(one.interval, sign=True) for one in tests]),
        Column(
            "won/tied/lost", ["" if one is None else f"{one.wins}/{one.ties}/{one.losses}" for one in won]
        ),
        Column("d_z", ["" if one is None else effect(one.effect) for one in tests]),
        Column("randomisation", ["" if one is None else p_value(one.p) for one in corrected]),
        Column("Holm", ["" if one is None else p_value(one.holm) for one in corrected]),
        Column("CPU s", [f"{variant.cpu:.2f}" for variant, _, _ in rows]),
        Column("cost", ["" if pair is None else f"{found.saved(variant):+.2f}" for variant, _, pair in rows]),
    ]


def _rows(found: Ablation) -> Iterator[list[object]]:
    for measured in found.measures:
        for variant, figure, pair in found.rows(measured):
            yield [
                found.task,
                " ".join(found.splits),
                found.recipe["name"],
                measured.name,
                str(measured.is_official).lower(),
                measured.topics,
                variant.kind.value,
                variant.signal,
                variant.feature,
                exactly(figure),
                *([""] * len(TESTED) if pair is None else tested(pair)),
                exactly(variant.cpu),
                exactly(found.saved(variant)),
                exactly(variant.clock),
            ]


def _legend(found: Ablation) -> Iterator[str]:
    """What must be known to read the figures, in sentences."""
    yield (
        "gain: what the recipe as it is has more, so what the part gains that is missing; interval: BCa bootstrap over "
        f"topics; p-values are two-sided, of the randomisation test ({found.permutations:,} sign vectors of seed "
        f"{found.seed}), corrected by Holm among the variants of one kind"
    )
    yield (
        f"CPU s: seconds of processors for ranking {found.topics:,} topics to depth {found.depth:,}, without indexing "
        "and training; cost: what the missing part takes of them"
    )
    if found.folds > 1:
        yield f"topics are ranked in {found.folds:,} folds, each by the solved topics of the others"
    yield (
        "weights and parameters are those of the recipe in every row; the learned fusion is trained anew for the "
        "signals that are left"
        if found.learned
        else "weights and parameters are those of the recipe in every row; none is chosen anew for what is left"
    )
    if found.told:
        yield (
            f"{', '.join(found.told)}: told what signals before it rank highest, in every row as in the recipe as it "
            "is, whether these count or not"
        )
    completed = [variant.name for variant in found.variants if variant.completed]
    if completed:
        yield (
            f"{', '.join(completed)}: the official scorer asks for more documents than are retrieved; those of the "
            "other signals follow in the order of their ids"
        )
