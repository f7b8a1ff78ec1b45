"""Reading of graded gold in all formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.formats.problems import Problems
from searchapp.tasks.own.task_file import GradeLayout, format_of, read_qrels

EXPECTED = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}


@pytest.mark.parametrize(
    ("name", "content", "layout"),
    [
        ("g.txt", "q1 0 d1 2\nq1 0 d2 0\n\nq2\t0\td1\t1\n", GradeLayout("trec")),
        ("g.csv", "topic,document,grade\nq1,d1,2\nq1,d2,0\nq2,d1,1\n", GradeLayout("csv")),
        (
            "g.tsv",
            "q1\td1\t2\nq1\td2\t0\nq2\td1\t1\n",
            GradeLayout("tsv", columns=("topic", "document", "grade")),
        ),
        (
            "g.jsonl",
            '{"q": "q1", "d": "d1", "r": 2}\n{"q": "q1", "d": "d2", "r": "0"}\n{"q": "q2", "d": "d1", "r": 1}\n',
            GradeLayout("jsonl", "q", "d", "r"),
        ),
    ],
)
def test_all_formats_have_the_same_grades(
    tmp_path: Path, name: str, content: str, layout: GradeLayout
) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert format_of(path) == layout.format
    problems = Problems()
    assert read_qrels(path, layout, problems, 2) == EXPECTED
    assert not list(problems)


def test_a_fixed_grade_applies_to_all_records(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("topic,document\nq1,d1\n")
    assert read_qrels(path, GradeLayout("csv", grade=1), Problems(), 1) == {"q1": {"d1": 1}}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("q1 0 d1", "wrong number of columns: 3 cells instead of 4"),
        ("q1 0 d1 yes", "grade not an integer: yes"),
        ("q1 0 d1 1.5", "grade not an integer: 1.5"),
        ("q1 0 d1 3", "unknown grade: 3: the grades of the task are 0 to 1; add more with `grades`"),
        ("q1 0 d0 0", "duplicate document: d0 of topic q1; the first grade counts"),
    ],
)
def test_an_invalid_grade_is_reported_with_its_line(tmp_path: Path, row: str, problem: str) -> None:
    path = tmp_path / "g.txt"
    path.write_text(f"q1 0 d0 1\n{row}\n")
    problems = Problems()
    assert read_qrels(path, GradeLayout("trec"), problems, 1) == {"q1": {"d0": 1}}
    (reported,) = problems
    assert str(reported).startswith(f"{path}: line 2: {problem}")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('{"topic": "q1", "grade": 1}', "missing key: document: the object has topic, grade"),
        ('{"topic": null, "document": "d", "grade": 1}', "wrong type: topic is null"),
        ('{"topic": "q 1", "document": "d", "grade": 1}', "unusable id: topic: an id must not"),
        ('{"topic": "q1", "document": "d", "grade": true}', "grade not an integer: True"),
    ],
)
def test_an_invalid_object_is_reported_with_its_line(tmp_path: Path, row: str, problem: str) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text(f"{row}\n")
    problems = Problems()
    assert read_qrels(path, GradeLayout("jsonl"), problems, 1) == {}
    (reported,) = problems
    assert str(reported).startswith(f"{path}: line 1: {problem}")
