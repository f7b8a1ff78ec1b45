"""Reading and writing files of debates."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from searchapp.formats.problems import Problems
from searchapp.tasks.checkthat.debate_files import DebateLine, read_debate, write_debate
from tests.files import kinds


def read(tmp_path: Path, content: bytes) -> tuple[list[DebateLine], list[tuple[str, str]]]:
    path, problems = tmp_path / "d.tsv", Problems()
    path.write_bytes(content)
    lines = list(read_debate(path, problems))
    return lines, kinds(problems)


def test_the_lines_of_a_debate(tmp_path: Path) -> None:
    lines, problems = read(tmp_path, b"1\tANN\tWe lost 5 jobs.\t1\n2\tSYSTEM\t(APPLAUSE)\t0\n")
    assert lines == [DebateLine(1, "ANN", "We lost 5 jobs.", 1), DebateLine(2, "SYSTEM", "(APPLAUSE)", 0)]
    assert not problems


@pytest.mark.parametrize(
    "content",
    [
        b"1\tA\tX.\t0\n2\tA\tY.\t1",  # no final line end
        b"1\tA\tX.\t0\r\n2\tA\tY.\t1\r\n",
        b'1\tA\t"X.\t0\n2\tA\tHe said "no.\t1\n',
        b"1\t\tX.\t0\n2\tA\t  Y. \t1\n",
        b"1\tA\tX.\t0\n2\tA\tX.\t1\n",
        "1\tA\tX\u2028x.\t0\n2\tA\tY\x85y.\t1\n".encode(),
    ],
)
def test_unusual_but_valid_lines_are_read(tmp_path: Path, content: bytes) -> None:
    lines, problems = read(tmp_path, content)
    assert [line.label for line in lines] == [0, 1]
    assert not problems


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (b"2\tA\tY.", "wrong number of columns"),
        (b"2\tA\tY.\t0\t", "wrong number of columns"),
        (b"2 A Y. 0", "wrong number of columns"),
        (b"", "blank line"),
        (b" ", "blank line"),
        (b"two\tA\tY.\t0", "wrong line number"),
        (b"02\tA\tY.\t0", "wrong line number"),
        (b"-2\tA\tY.\t0", "wrong line number"),
        (b"4\tA\tY.\t0", "wrong line number"),
        (b"1\tA\tY.\t0", "duplicate line number"),
        (b"10000\tA\tY.\t0", "too many lines"),
        (b"9" * 5000 + b"\tA\tY.\t0", "too many lines"),
        (b"2\tA\tY\0.\t0", "NUL character"),
        (b"2\tA\tY.\t2", "unknown label"),
        (b"2\tA\tY.\t", "unknown label"),
        (b"2\tA\tY.\t1.0", "unknown label"),
        (b"2\tA\t \t0", "blank text"),
        (b"2\tA\tY.\ry\t0", "stray carriage return"),
    ],
)
def test_an_invalid_line_is_reported_with_its_number_and_skipped(
    tmp_path: Path, row: bytes, kind: str
) -> None:
    lines, problems = read(tmp_path, b"1\tA\tX.\t0\n" + row + b"\n3\tA\tZ.\t1\n")
    assert problems == [(kind, "line 2")]
    assert [line.number for line in lines] == [1, 3]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "empty file"),
        (b"\xef\xbb\xbf1\tA\tX.\t0\n", "byte-order mark"),
        (b"1\tA\tX.\t0\n2\tA\t\xe9\t0\n", "not UTF-8"),
    ],
)
def test_a_file_that_is_not_a_debate_has_one_problem(tmp_path: Path, content: bytes, kind: str) -> None:
    lines, problems = read(tmp_path, content)
    assert (lines, [reported for reported, _ in problems]) == ([], [kind])


def test_a_missing_file(tmp_path: Path) -> None:
    problems = Problems()
    assert not list(read_debate(tmp_path / "d.tsv", problems))
    assert kinds(problems) == [("missing file", "")]


def test_a_written_debate_is_read_back(tmp_path: Path) -> None:
    lines = [DebateLine(1, "ANN", "“We” lost — 5 jobs.", 1), DebateLine(2, "", " (APPLAUSE)", 0)]
    file = io.BytesIO()
    write_debate(file, lines)
    assert read(tmp_path, file.getvalue()) == (lines, [])
