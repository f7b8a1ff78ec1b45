"""A comparison as rows of text, and these rows as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from searchapp.app.comparison import number, p_value, signed
from searchapp.visible import visible_line

if TYPE_CHECKING:
    from searchapp.app.comparison import Comparison, Measured, Pair


class Layout(StrEnum):
    """What a table of a comparison is written as."""

    csv = "csv"
    markdown = "markdown"
    latex = "latex"


COLUMNS = (
    "measure",
    "first",
    "second",
    "topics",
    "mean_first",
    "mean_second",
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
    for measured, pair in _pairs(found):
        tests, at_random = pair.tests, pair.corrected["randomisation"]
        doubt = pair.doubt
        writer.writerow(
            [
                measured.name,
                found.runs[pair.first].name,
                found.runs[pair.second].name,
                tests.topics,
                *map(
                    _exactly,
                    (tests.first, tests.second, tests.mean, tests.interval.low, tests.interval.high),
                ),
                tests.outcomes.wins,
                tests.outcomes.ties,
                tests.outcomes.losses,
                *map(
                    _exactly,
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
    heading, rows = shown(found)
    lines = ["| " + " | ".join(map(_for_markdown, heading)) + " |"]
    lines.append("|" + "".join("---|" if place < 2 else "---:|" for place in range(len(heading))))
    lines += ["| " + " | ".join(map(_for_markdown, row)) + " |" for row in rows]
    return "\n".join([*lines, "", *(f"- {_for_markdown(one)}" for one in legend(found))]) + "\n"


def as_latex(found: Comparison) -> str:
    """The comparison as a table for LaTeX with the package booktabs, and what must be known of it as comments."""
    heading, rows = shown(found)
    lines = [f"% {visible_line(one)}" for one in legend(found)]
    lines += [rf"\begin{{tabular}}{{ll{'r' * (len(heading) - 2)}}}", r"\toprule"]
    lines += [" & ".join(map(_for_latex, heading)) + r" \\", r"\midrule"]
    lines += [" & ".join(map(_for_latex, row)) + r" \\" for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def shown(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Headings and rows for people: a row a measure and pair of runs."""
    several = len(found.runs) > 2
    corrected = len(found.measures[0].pairs) > 1
    heading = ["measure", "runs", "first", "second", "difference", "95% interval", "won/tied/lost", "d_z"]
    heading += ["t-test", "Wilcoxon", "randomisation"]
    heading += ["Holm", "BH"] if corrected else []
    heading += ["Tukey", "randomised Tukey"] if several else []
    rows = []
    for measured, pair in _pairs(found):
        tests, at_random = pair.tests, pair.corrected["randomisation"]
        won = tests.outcomes
        row = [
            measured.name,
            f"{found.runs[pair.first].name} → {found.runs[pair.second].name}",
            number(tests.first),
            number(tests.second),
            signed(tests.mean),
            f"{signed(tests.interval.low)} to {signed(tests.interval.high)}",
            f"{won.wins}/{won.ties}/{won.losses}",
            "–" if math.isnan(tests.effect) else f"{tests.effect:.2f}",
            *map(p_value, (tests.t_test.p, tests.wilcoxon.p, at_random.p)),
        ]
        row += [p_value(at_random.holm), p_value(at_random.benjamini_hochberg)] if corrected else []
        row += [p_value(pair.tukey), p_value(pair.randomised_tukey)] if several else []
        rows.append(row)
    return heading, rows


def legend(found: Comparison) -> Iterator[str]:
    """What must be known to read the figures, in sentences."""
    for one in found.differing:
        yield f"the runs are compared although {one}"
    tests = found.measures[0].pairs[0].tests
    drawn = [pair for _, pair in _pairs(found) if not pair.tests.randomisation.exact]
    of = "all sign vectors"
    if drawn:
        error = max(pair.tests.randomisation.error for pair in drawn)
        of = (
            f"{found.permutations:,} sign vectors of seed {found.seed}, standard error of p up to {error:.1g}"
        )
    split = f" {found.split}" if found.split else ""
    yield f"{found.task}{split} against {found.against}; differences are the second less the first"
    yield (
        f"p-values are two-sided: paired t-test; Wilcoxon without ties; randomisation of the mean difference ({of})"
        f"; interval: {tests.interval.method} of {tests.interval.resamples:,} resamples"
    )
    yield found.treatment
    yield from found.notes


def _exactly(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else repr(float(value))


def _pairs(found: Comparison) -> Iterator[tuple[Measured, Pair]]:
    for measured in found.measures:
        for pair in measured.pairs:
            yield measured, pair


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


def _for_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", visible_line(text))


def bars(values: Sequence[float], width: int) -> list[str]:
    """A bar for each value, the longest being `width` blocks: those below 0 are of another kind."""
    greatest = max(map(abs, values), default=0.0) or 1.0
    return [("█" if value > 0 else "░") * round(width * abs(value) / greatest) for value in values]
