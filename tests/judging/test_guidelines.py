"""Guidelines of tasks: sections of grades, paragraphs, and records with judgments."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.errors import DataError
from searchapp.judging.agreement import agreement
from searchapp.judging.events import Author
from searchapp.judging.guidelines import GUIDELINES, MOST_CHARACTERS, Guidelines, paragraphs, read_guidelines
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.tasks import load, names

TEXT = """# Title

Words that
go on.

## 0 none
nothing
### an example
zero
## 1
one
## 10 ten
ten

- an item
  of two lines
- another
"""


def test_a_section_belongs_to_the_grade_that_its_heading_begins_with() -> None:
    guidelines = Guidelines(TEXT)
    assert guidelines.of_grade(0) == "nothing\n### an example\nzero"
    assert guidelines.of_grade(1) == "one"
    assert guidelines.of_grade(10).startswith("ten\n")
    assert guidelines.of_grade(2) == "" == Guidelines("").of_grade(0)


def test_paragraphs_have_one_line_each() -> None:
    assert [paragraph.text for paragraph in paragraphs(TEXT)] == [
        *("Title", "", "Words that go on.", "", "0 none", "nothing", "an example", "zero", "1", "one"),
        *("10 ten", "ten", "", "- an item of two lines", "- another"),
    ]
    assert [paragraph.text for paragraph in paragraphs(TEXT) if paragraph.is_heading] == [
        *("Title", "0 none", "an example", "1", "10 ten")
    ]


@pytest.mark.parametrize("name", names())
def test_each_shared_task_has_guidelines_with_an_example_for_each_grade(name: str) -> None:
    info = load(name).info
    guidelines = read_guidelines(info.guidelines)
    assert guidelines is not None
    for grade, label in enumerate(info.grades):
        assert f"## {grade} {label}\n" in guidelines.text
        assert "Example: " in guidelines.of_grade(grade)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff\xfe", "not UTF-8: save the file as UTF-8"),
        (b"a" * (MOST_CHARACTERS + 1), "more than 200,000 characters"),
        (None, "no such file"),
    ],
)
def test_unreadable_guidelines_are_reported_with_their_path(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "guidelines.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=problem) as caught:
        read_guidelines(path)
    assert str(path) in str(caught.value)


def test_agreement_reports_the_grades_under_each_version(log: JudgmentLog) -> None:
    first, second = Guidelines("a"), Guidelines("b")
    for name, guidelines, documents in (
        ("ann", None, "x"),
        ("ann", first, "ab"),
        ("ben", second, "abc"),
    ):
        session = Session(log, "nlps", Author(name), guidelines=guidelines)
        session.grade([SeenDocument("t", document) for document in documents], 1)
        session.note(SeenDocument("t", "a"), "notes are not judged by the guidelines")
    digests = {detail.event: detail.value["digest"] for detail in log.details("nlps", GUIDELINES)}
    assert len(digests) == 5
    result = agreement(session.view, None, digests)
    assert [(use.digest, use.grades, use.annotators) for use in result.guidelines] == [
        (None, 1, ("ann",)),
        (first.digest, 2, ("ann",)),
        (second.digest, 3, ("ben",)),
    ]
    assert result.guidelines_changed
    assert not agreement(session.view, ["ann"], digests).guidelines_changed
