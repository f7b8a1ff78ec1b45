"""Tables as text for other programs: CSV, Markdown, and LaTeX with the package booktabs."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from searchapp.visible import visible_line

if TYPE_CHECKING:
    from searchapp.app.comparison import Pair
    from searchapp.cli.figures import Column

TESTED = (
    "difference",
    "low",
    "high",
    "wins",
    "ties",
    "losses",
    "d_z",
    "p_t_test",
    "p_wilcoxon",
    "p_randomisation",
    "p_randomisation_holm",
    "p_randomisation_bh",
)
"""Columns of a difference and its tests, in every CSV that has them."""


def tested(pair: Pair) -> list[object]:
    """The cells of `TESTED` for a pair."""
    tests, at_random = pair.tests, pair.corrected["randomisation"]
    holm = at_random.p, at_random.holm, at_random.benjamini_hochberg
    return [
        *map(exactly, (tests.mean, tests.interval.low, tests.interval.high)),
        tests.outcomes.wins,
        tests.outcomes.ties,
        tests.outcomes.losses,
        *map(exactly, (tests.effect, tests.t_test.p, tests.wilcoxon.p, *holm)),
    ]


def csv_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table for a spreadsheet."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return buffer.getvalue()


def exactly(value: float | None) -> str:
    """A figure at full precision, nothing where there is none."""
    return "" if value is None or math.isnan(value) else repr(float(value))


def markdown_table(columns: Sequence[Column]) -> list[str]:
    """The lines of a table in Markdown."""
    lines = ["| " + " | ".join(for_markdown(one.heading) for one in columns) + " |"]
    lines.append("|" + "".join("---|" if one.is_text else "---:|" for one in columns))
    return lines + [
        "| " + " | ".join(for_markdown(one.cells[row].strip()) for one in columns) + " |"
        for row in range(len(columns[0].cells))
    ]


def latex_table(columns: Sequence[Column]) -> list[str]:
    """The lines of a table in LaTeX."""
    lines = [rf"\begin{{tabular}}{{{''.join('l' if one.is_text else 'r' for one in columns)}}}", r"\toprule"]
    lines += [" & ".join(for_latex(one.heading) for one in columns) + r" \\", r"\midrule"]
    lines += [
        " & ".join(for_latex(one.cells[row].strip()) for one in columns) + r" \\"
        for row in range(len(columns[0].cells))
    ]
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def latex_comments(sentences: Iterable[str]) -> list[str]:
    """Sentences as comments in LaTeX, one a line."""
    return [f"% {visible_line(one)}" for one in sentences]


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "→": r"$\rightarrow$",
    "–": "--",
    "<": r"$<$",
    ">": r"$>$",
    "█": r"$\bullet$",
    "░": r"$\circ$",
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#])")


def for_latex(text: str) -> str:
    """A text as one cell of a table in LaTeX."""
    return "".join(_LATEX.get(character, character) for character in visible_line(text))


def for_markdown(text: str) -> str:
    """A text as one cell of a Markdown table."""
    return _MARKDOWN.sub(r"\\\1", visible_line(text))
