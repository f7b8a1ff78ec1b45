"""Result files of CheckThat!: their failures and their scores."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import DataError
from searchapp.model import float32
from searchapp.tasks.checkthat.debate_files import failures, fixed_point, write_line_scores


def failures_in(tmp_path: Path, text: str) -> list[tuple[int, str]]:
    path = tmp_path / "d.tsv"
    path.write_text(text, encoding="utf-8")
    return [(failure.line, failure.official) for failure in failures(path)]


def test_all_failures_are_reported(tmp_path: Path) -> None:
    assert failures_in(tmp_path, "1\t0.5\n2 0.5\n5\t0.5\n6\t1e-5\n") == [
        (2, "Wrong line format: 2 0.5"),
        (3, "Problem with line_number: 5. They should be consecutive and starting from 1."),
        (4, "Wrong line format: 6\t1e-5"),
    ]


def test_blank_lines_at_the_ends_are_trimmed_but_counted(tmp_path: Path) -> None:
    assert failures_in(tmp_path, "\n\n1\t0.5\n3\t0.5\n\n") == [
        (4, "Problem with line_number: 3. They should be consecutive and starting from 1.")
    ]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"d.tsv: there is no such file"):
        list(failures(tmp_path / "d.tsv"))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_scores_have_no_exponent_and_are_read_back_as_the_same_number(score: float) -> None:
    written = fixed_point(score)
    assert not set(written) & set("eE") and "." in written
    assert float32(float(written)) == score


def test_lines_are_written_in_the_order_of_scores(tmp_path: Path) -> None:
    file = io.BytesIO()
    write_line_scores(file, [(2, -1.0), (1, 1e-05), (3, 0.0)])
    assert file.getvalue() == b"1\t0.00001\n2\t-1.0\n3\t0.0\n"
    assert failures_in(tmp_path, file.getvalue().decode()) == []
