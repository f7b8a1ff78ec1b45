"""Options of multiple-choice questions are shown to people but are neither indexed nor used for ranking."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from searchapp.formats.problems import Problems
from searchapp.model import Option, Topic
from searchapp.resources import SAMPLES
from searchapp.tasks import load
from searchapp.tasks.explanation.worldtree import read_options

TASKS = ["explanation-2019", "explanation-2021"]


def topics(task: str, data: Path) -> list[Topic]:
    return load(task).collection(data).topics("dev", Problems())


@pytest.mark.parametrize("task", TASKS)
def test_a_question_has_its_options_with_one_right_option(task: str) -> None:
    first, *others = topics(task, SAMPLES / task)
    assert first.options == (
        Option("A", "it freezes", False),
        Option("B", "it turns into rock", False),
        Option("C", "it evaporates", True),
        Option("D", "it becomes salt", False),
    )
    for topic in (first, *others):
        assert [option.text for option in topic.options if option.is_right] == [topic.fields["answer"]]


@pytest.mark.parametrize("task", TASKS)
def test_templates_and_training_topics_do_not_contain_the_options(task: str) -> None:
    for topic in topics(task, SAMPLES / task):
        assert topic.variables() == replace(topic, options=()).variables()
        assert topic.variables().keys() == {"id", "text", "question", "answer"}
    for example in load(task).collection(SAMPLES / task).examples("dev", Problems()):
        assert example.topic.fields.keys() == {"question", "answer"}


def test_questions_of_2021_without_a_readable_table_have_no_options(tmp_path: Path) -> None:
    data = shutil.copytree(SAMPLES / "explanation-2021", tmp_path / "data")
    file = data / "questions" / "questions.dev.tsv"
    without = [replace(topic, options=()) for topic in topics("explanation-2021", data)]
    for content in (b"no table", b"", b"\xff\xfe\x00", b'QuestionID\tquestion\tAnswerKey\nD_1\t"open', None):
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        assert topics("explanation-2021", data) == without


def test_a_question_without_a_right_option_has_no_options(tmp_path: Path) -> None:
    path = tmp_path / "questions.tsv"
    rows = (
        "Q1\tWhat? (A) a (B) b\tB",
        "Q2\tWhat? (A) a (B) b\tE",
        "Q3\tWhat?\tA",
        "Q4\tWhat? (1) a (2) b\t2",
    )
    path.write_text("QuestionID\tquestion\tAnswerKey\n" + "".join(f"{row}\n" for row in rows))
    problems = Problems()
    assert read_options(path, problems) == {
        "Q1": ({"A": "a", "B": "b"}, "B"),
        "Q4": ({"1": "a", "2": "b"}, "2"),
    }
    assert problems.notes is None and not len(problems)


@pytest.mark.parametrize(
    ("text", "note", "count"),
    [
        ("", "empty file", 0),
        ("QuestionID\tquestion\n", "line 1: missing column: the header has no 'AnswerKey'", 0),
        (
            "QuestionID\tquestion\tAnswerKey\nQ1\tx\nQ2\tWhat? (A) a (B) b\tB\n",
            "line 2: wrong number of cells",
            1,
        ),
    ],
)
def test_an_invalid_table_of_options_is_noted_and_is_not_an_error(
    tmp_path: Path, text: str, note: str, count: int
) -> None:
    path = tmp_path / "questions.tsv"
    path.write_text(text)
    problems = Problems()
    assert len(read_options(path, problems)) == count
    assert problems.notes is not None and note in str(problems.notes)
    assert not len(problems)


def test_a_missing_table_of_options_is_not_noted(tmp_path: Path) -> None:
    problems = Problems()
    assert read_options(tmp_path / "none.tsv", problems) == {} and problems.notes is None
