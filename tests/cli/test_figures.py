"""Figures on a terminal: every one is there whole, however narrow it is."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from searchapp.app.evaluate import Evaluation
from searchapp.cli.figures import Column, blocks, headings, print_columns
from searchapp.evaluation.base import OfficialScore
from searchapp.evaluation.measures import Measures

GROUP = Column(
    "debate",
    ["20160722_trump_acceptance", "HILLARY CLINTON (D-NY), FORMER SECRETARY OF STATE, CANDIDATE"],
    True,
)
FIGURES = [
    Column("lines", ["375", "12345"]),
    *(Column(name, ["0.1234", "1.0000"]) for name in ("AP", "mean R-Precision", "P@1", "P@5", "P@50")),
    Column("runs/explanation-2019-neighbours", ["0.508230", ""]),
]


def printed(width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_columns(console, GROUP, FIGURES)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 1000])
def test_no_figure_heading_or_group_is_cut(width: int) -> None:
    text = printed(width)
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())
    figures = [cell for column in FIGURES for cell in column.cells if cell]
    assert sorted(re.findall(r"(?<!\S)(?:\d\.\d+|375|12345)(?!\S)", text)) == sorted(figures)
    letters = re.sub(r"\s", "", text)
    for column in (GROUP, *FIGURES):
        for word in column.heading.split():
            assert set(word) <= set(letters)
    assert "FORMER SECRETARY" in text


def test_a_table_that_fits_is_one_line_a_row_and_right_aligned() -> None:
    lines = [line.rstrip() for line in printed(200).splitlines()]
    assert len(lines) == 3
    assert lines[0].index("lines") + len("lines") == lines[1].index("375") + len("375")


def test_a_table_that_is_too_wide_goes_on_below_with_the_groups_again() -> None:
    text = printed(80)
    assert text.count("20160722_trump_acceptance") == 2
    (whole, folded) = next(blocks(GROUP, FIGURES, 200))
    assert list(whole) == FIGURES and not folded


def test_a_column_wider_than_the_terminal_has_a_table_of_its_own() -> None:
    wide = Column("figure", ["1" * 50])
    assert [len(block) for block, _folded in blocks(GROUP, [wide, wide], 60)] == [1, 1]


def evaluation(*paths: str) -> Evaluation:
    """One of a run, or of several files that make a submission."""
    files = paths if len(paths) > 1 else ()
    official, measures = OfficialScore("MAP", {}), Measures({}, {})
    return Evaluation(", ".join(paths), "t", "dev", 1, official, measures, (), files=files)


LONG = "/home/somebody/experiments/2024-05/runs"


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ([["runs/dev"]], ["runs/dev"]),
        ([[f"{LONG}/neighbours"]], ["experiments/2024-05/runs/neighbours"]),
        ([["x" * 60]], ["x" * 60]),
        ([[f"{LONG}/a"], [f"{LONG}/b"]], ["a", "b"]),
        ([["runs/a/best"], ["runs/b/best"]], ["a/best", "b/best"]),
        ([["runs"], ["runs/a"]], ["runs", "runs/a"]),
        ([["runs/a"], ["runs/a"]], ["a", "a"]),
        ([["a"], ["/a"]], ["a", "/a"]),
        ([[f"{LONG}/{name}.tsv" for name in "abcdefg"]], [f"{LONG} (7 files)"]),
        ([["p/a.tsv", "p/b.tsv"], ["r"]], ["p (2 files)", "r"]),
        ([["a.tsv", "b.tsv"]], [". (2 files)"]),
        ([["runs/a.tsv", "runs/b.tsv"], ["runs/r"]], ["runs (2 files)", "runs/r"]),
    ],
)
def test_headings_are_short_and_tell_runs_apart(sources: list[list[str]], expected: list[str]) -> None:
    assert headings([evaluation(*some) for some in sources]) == expected
