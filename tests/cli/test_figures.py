"""Tables of figures on terminals of any width show every figure completely."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from searchapp.app.evaluate import Evaluation
from searchapp.cli import tables
from searchapp.cli.tables import ResultTable, TableColumn, blocks, headings
from searchapp.evaluation.base import OfficialScore
from searchapp.evaluation.measures import Measures

GROUP = TableColumn(
    "debate",
    ["20160722_trump_acceptance", "HILLARY CLINTON (D-NY), FORMER SECRETARY OF STATE, CANDIDATE"],
    True,
)
FIGURES = [
    TableColumn("lines", ["375", "12345"]),
    *(TableColumn(name, ["0.1234", "1.0000"]) for name in ("AP", "mean R-Precision", "P@1", "P@5", "P@50")),
    TableColumn("runs/explanation-2019-neighbours", ["0.508230", ""]),
]


def print_table(width: int) -> str:
    """Return the table as a terminal of this width shows it."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    ResultTable([GROUP, *FIGURES]).print(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 1000])
def test_no_figure_heading_or_group_is_truncated(width: int) -> None:
    text = print_table(width)
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())
    figures = [cell for column in FIGURES for cell in column.cells if cell]
    assert sorted(re.findall(r"(?<!\S)(?:\d\.\d+|375|12345)(?!\S)", text)) == sorted(figures)
    letters = re.sub(r"\s", "", text)
    for column in (GROUP, *FIGURES):
        for word in column.heading.split():
            assert set(word) <= set(letters)
    assert "SECRETARY" in text


def test_a_table_that_fits_has_one_line_for_each_row_and_right_aligned_figures() -> None:
    lines = [line.rstrip() for line in print_table(200).splitlines()]
    assert len(lines) == 3
    assert lines[0].index("lines") + len("lines") == lines[1].index("375") + len("375")


def test_a_table_that_is_too_wide_continues_below_with_the_groups_repeated() -> None:
    text = print_table(80)
    assert text.count("20160722_trump_acceptance") == 2
    (columns, folded) = next(blocks(GROUP, FIGURES, 200))
    assert list(columns) == FIGURES and not folded


def test_a_column_wider_than_the_terminal_has_its_own_table() -> None:
    wide = TableColumn("figure", ["1" * 50])
    assert [len(block) for block, _folded in blocks(GROUP, [wide, wide], 60)] == [1, 1]


def test_a_first_column_that_fits_is_not_widened() -> None:
    console = Console(file=io.StringIO(), width=20, color_system=None)
    ResultTable([TableColumn("n", ["1", "2"], True), TableColumn("text", ["x" * 20, "y"], True)]).print(
        console
    )
    assert isinstance(console.file, io.StringIO)
    assert [line.split() for line in console.file.getvalue().splitlines()] == [
        ["n", "text"],
        ["1", "x" * 17],
        ["xxx"],
        ["2", "y"],
    ]


ROWS = [
    ("a name of four words", "person", "1,234", "0", "0: 1,000"),
    ("another of five words", "model", "20", "17", "1: 20"),
]


@pytest.mark.parametrize(("width", "lines"), [(20, None), (30, None), (45, 6), (200, 3)])
def test_a_table_of_judgments_is_folded(
    monkeypatch: pytest.MonkeyPatch, width: int, lines: int | None
) -> None:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    monkeypatch.setattr(tables, "stdout_console", lambda: console)
    names = ("annotator", "kind", "graded", "can't tell", "grades")
    ResultTable.of_rows(names, ROWS, texts=(0, 1, 4)).print_folded()
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "…" not in text and all(len(line) <= width for line in text.splitlines())
    assert {word for row in ROWS for cell in row for word in cell.split()} <= set(text.split())
    assert lines is None or text.count("\n") == lines


def evaluation(*paths: str) -> Evaluation:
    """Make an evaluation of a run or of a submission of several files."""
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
def test_headings_are_short_and_different(sources: list[list[str]], expected: list[str]) -> None:
    assert headings([evaluation(*paths) for paths in sources]) == expected
