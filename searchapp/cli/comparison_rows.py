"""A comparison as rows of text, and these rows as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from searchapp.report.wording import legend, pairs, tests_table
from searchapp.visible import visible_line

if TYPE_CHECKING:
    from searchapp.app.comparison import Comparison


class Layout(StrEnum):
    """What a table of a comparison is written as."""

    csv = "csv"
    markdown = "markdown"
    latex = "latex"


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

COLUMNS = (
    "measure",
    "first",
    "second",
    "topics",
    "mean_first",
    "mean_second",
    *TESTED,
    "p_tukey",
    "p_randomised_tukey",
    "difference_low",
    "difference_high",
    "due_to_unjudged",
)
"""Of the CSV: a row a measure and pair of runs, every figure at full precision, nothing where there is none."""


def as_csv(found: Comparison) -> str:
    """The comparison for a spreadsheet."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for measured, pair in pairs(found):
        tests, at_random = pair.tests, pair.corrected["randomisation"]
        doubt = pair.doubt
        writer.writerow(
            [
                measured.name,
                found.runs[pair.first].name,
                found.runs[pair.second].name,
                tests.topics,
                *map(
                    exactly,
                    (tests.first, tests.second, tests.mean, tests.interval.low, tests.interval.high),
                ),
                tests.outcomes.wins,
                tests.outcomes.ties,
                tests.outcomes.losses,
                *map(
                    exactly,
                    (
                        tests.effect,
                        tests.t_test.p,
                        tests.wilcoxon.p,
                        at_random.p,
                        at_random.holm,
                        at_random.benjamini_hochberg,
                        pair.tukey,
                        pair.randomised_tukey,
                        None if doubt is None else doubt.low,
                        None if doubt is None else doubt.high,
                    ),
                ),
                "" if doubt is None else doubt.due,
            ]
        )
    return buffer.getvalue()


def as_markdown(found: Comparison) -> str:
    """The comparison as a Markdown table, and below it what must be known of it."""
    heading, rows = tests_table(found)
    lines = ["| " + " | ".join(map(for_markdown, heading)) + " |"]
    lines.append("|" + "".join("---|" if place < 2 else "---:|" for place in range(len(heading))))
    lines += ["| " + " | ".join(map(for_markdown, row)) + " |" for row in rows]
    return "\n".join([*lines, "", *(f"- {for_markdown(one)}" for one in legend(found))]) + "\n"


def as_latex(found: Comparison) -> str:
    """The comparison as a table for LaTeX with the package booktabs, and what must be known of it as comments."""
    heading, rows = tests_table(found)
    lines = [f"% {visible_line(one)}" for one in legend(found)]
    lines += [rf"\begin{{tabular}}{{ll{'r' * (len(heading) - 2)}}}", r"\toprule"]
    lines += [" & ".join(map(_for_latex, heading)) + r" \\", r"\midrule"]
    lines += [" & ".join(map(_for_latex, row)) + r" \\" for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def exactly(value: float | None) -> str:
    """A figure at full precision, nothing where there is none."""
    return "" if value is None or math.isnan(value) else repr(float(value))


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
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#])")


def _for_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in visible_line(text))


def for_markdown(text: str) -> str:
    """A text as one cell of a Markdown table."""
    return _MARKDOWN.sub(r"\\\1", visible_line(text))


def bars(values: Sequence[float], width: int) -> list[str]:
    """A bar for each value, the longest being `width` blocks: those below 0 are of another kind."""
    greatest = max(map(abs, values), default=0.0) or 1.0
    return [("█" if value > 0 else "░") * round(width * abs(value) / greatest) for value in values]
