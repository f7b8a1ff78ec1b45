"""Reading and writing of the JSON files of answer type prediction."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from searchapp.formats.json_files import official_ids
from searchapp.formats.problems import Problems
from searchapp.tasks.smart_types.answers import (
    TypesPrediction,
    TypesQuestion,
    read_predictions,
    read_questions,
)
from searchapp.tasks.splits import write_entries
from tests.files import kinds, notes

KNOWN = {"dbo:Person", "dbo:Agent"}


def entry(**changes: Any) -> dict[str, Any]:
    plain = {"id": "q1", "question": "Who?", "category": "resource", "type": ["dbo:Person"]}
    return {key: value for key, value in {**plain, **changes}.items() if value != "(none)"}


def put(folder: Path, *entries: object, bom: bool = False) -> Path:
    path = folder / "questions.json"
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    path.write_text(("\ufeff" if bom else "") + f"[\n{lines}\n]\n", encoding="utf-8")
    return path


def questions(path: Path, **options: Any) -> tuple[list[TypesQuestion], list[Any]]:
    read, problems, _notes = with_notes(path, **options)
    return read, problems


def with_notes(path: Path, **options: Any) -> tuple[list[TypesQuestion], list[Any], list[str]]:
    problems = Problems()
    read = list(read_questions(path, problems, known=KNOWN, **options))
    details = [(problem.kind, problem.where, problem.detail) for problem in problems]
    return read, details, [kind for kind, _ in notes(problems)]


def test_valid_entries_are_read(tmp_path: Path) -> None:
    path = put(tmp_path, entry(), entry(id="q2", category="literal", type=["date"], score=1))
    assert questions(path) == (
        [
            TypesQuestion("q1", "Who?", "resource", ("dbo:Person",)),
            TypesQuestion("q2", "Who?", "literal", ("date",)),
        ],
        [],
    )


def test_ids_are_texts_or_integers_also_after_an_allowed_byte_order_mark(tmp_path: Path) -> None:
    path = put(tmp_path, entry(id=7), entry(id=8), bom=True)
    assert [question.id for question in questions(path, bom=True)[0]] == ["7", "8"]
    assert official_ids(path, bom=True) == {"7": 7, "8": 8}
    assert official_ids(put(tmp_path, entry(id="7"))) == {"7": "7"}
    path = put(tmp_path, entry(id=7), bom=True)
    assert [kind for kind, _, _ in questions(path)[1]] == ["byte-order mark"]


@pytest.mark.parametrize(
    ("id_", "type_"), [(True, "a boolean"), (None, "null"), (7.0, "a fraction"), (["q"], "a list")]
)
def test_an_id_of_another_type_is_reported(tmp_path: Path, id_: Any, type_: str) -> None:
    problems = [("wrong type", "line 2", f"id is {type_}, not a string or an integer")]
    assert questions(put(tmp_path, entry(id=id_))) == ([], problems)


def test_ids_of_another_type_than_the_first_are_reported(tmp_path: Path) -> None:
    read, problems = questions(put(tmp_path, entry(id=7), entry(id="8"), entry(id=9)))
    assert [question.id for question in read] == ["7", "9"]
    assert problems == [("wrong type", "line 3", "id is a string, and an integer in the first entry")]


def test_contents_of_real_files_are_valid(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        entry(id="null", question=None),
        entry(id="empty", question=""),
        entry(),
        entry(),
        entry(id="q2"),
        entry(id="q3", type=["dbo:Agent"]),
        entry(id="q4", type=[]),
        entry(id="q5", category="literal", type=["number", "string"]),
    )
    read, problems = questions(path)
    assert [question.id for question in read] == ["q1", "q2", "q3", "q4", "q5"]
    assert problems == []


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"id": "(none)"}, "missing key", "id"),
        ({"id": "a b"}, "unusable id", "white space"),
        ({"id": "\ud800"}, "lone surrogate", "half of a surrogate pair"),
        ({"question": "(none)"}, "missing key", "question"),
        ({"question": "  "}, "blank text", "be null"),
        ({"question": 5}, "wrong type", "question is an integer"),
        ({"question": "Who \ud800?"}, "lone surrogate", ""),
        ({"category": "(none)"}, "missing key", "category"),
        ({"category": "Resource"}, "unknown category", "Resource is not one of boolean, literal, resource"),
        ({"category": 1}, "wrong type", "category is an integer"),
        ({"type": "(none)"}, "missing key", "type"),
        ({"type": "dbo:Person"}, "wrong type", "type is a string, not a list"),
        ({"type": ["dbo:Person", 3]}, "wrong type", "a type is an integer"),
        ({"type": [" "]}, "blank type", ""),
        ({"type": ["date"]}, "contradiction", "a resource needs a type of the knowledge base"),
        ({"category": "boolean"}, "contradiction", "the type of a boolean is boolean, not dbo:Person"),
        ({"category": "boolean", "type": ["boolean", "date"]}, "contradiction", "not 'boolean, date'"),
        ({"category": "literal"}, "contradiction", "dbo:Person is not a literal: date, number, string"),
    ],
)
def test_an_invalid_entry_is_reported_with_its_line_and_skipped(
    tmp_path: Path, changes: dict[str, Any], kind: str, message: str
) -> None:
    read, problems = questions(put(tmp_path, entry(id="q0"), entry(**changes)))
    assert [question.id for question in read] == ["q0"]
    ((reported, where, detail),) = problems
    assert reported == kind and message in detail
    assert where.startswith("line 3")


@pytest.mark.parametrize(
    ("changes", "gold", "expected"),
    [
        ({"category": None, "type": None}, (None, ()), ["no gold"]),
        ({"category": None}, (None, ()), ["no gold"]),
        ({"category": "(none)", "type": "(none)"}, (None, ()), ["no gold"]),
        ({"type": None}, ("resource", ()), []),
        ({"category": "literal", "type": []}, ("literal", ()), ["no type"]),
        ({"category": "literal", "type": None}, ("literal", ()), ["no type"]),
        ({"type": ["dbo:person"]}, ("resource", ("dbo:person",)), ["unknown type"]),
        (
            {"type": ["dbo:Person", "dbo:Agent", "dbo:Person"]},
            ("resource", ("dbo:Person", "dbo:Agent")),
            ["repeated type"],
        ),
    ],
)
def test_unusual_gold_is_noted_and_its_question_is_read(
    tmp_path: Path, changes: dict[str, Any], gold: object, expected: list[str]
) -> None:
    (question,), problems, noted = with_notes(put(tmp_path, entry(**changes)))
    assert (question.category, question.types) == gold
    assert noted == expected and problems == []
    if question.category is None:
        assert with_notes(put(tmp_path, entry(**changes)), masked=True)[2] == []


def test_a_repeated_id_with_other_content_is_a_problem(tmp_path: Path) -> None:
    read, problems = questions(put(tmp_path, entry(), entry(question="Where?")))
    assert [question.text for question in read] == ["Who?"]
    assert problems == [
        ("duplicate id", "line 3: question q1", "an earlier entry has this id and other content")
    ]


def test_a_repeated_key_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text(
        '[{"id": "q1", "question": "a", "question": "b", "category": "boolean", "type": ["boolean"]}]'
    )
    assert [kind for kind, _, _ in questions(path)[1]] == ["duplicate key"]


def test_masked_gold_may_be_missing_completely(tmp_path: Path) -> None:
    bare = {"id": "q1", "question": "Who?"}
    path = put(tmp_path, bare, {**bare, "id": "q2", "category": None, "type": []}, entry(id="q3"))
    assert [question.category for question in questions(path, masked=True)[0]] == [None, None, "resource"]
    half = put(tmp_path, {**bare, "category": "resource"})
    assert [kind for kind, _, _ in questions(half, masked=True)[1]] == ["missing key"]


def test_gold_is_not_read_for_topics(tmp_path: Path) -> None:
    path = put(tmp_path, entry(category="?", type=3))
    assert questions(path, gold=False) == ([TypesQuestion("q1", "Who?", None, ())], [])


def test_written_predictions_are_read_back(tmp_path: Path) -> None:
    file = io.BytesIO()
    answers: list[tuple[str | int, str, list[str]]] = [
        (7, "resource", ["Bien de Interés", 'a "big" isn\'t']),
        (8, "boolean", ["boolean"]),
    ]
    write_entries(
        file, [{"id": id_, "category": category, "type": types} for id_, category, types in answers]
    )
    path = tmp_path / "predictions.json"
    path.write_bytes(file.getvalue())
    problems = Problems()
    assert list(read_predictions(path, problems)) == [
        TypesPrediction(line, str(id_), id_, category, tuple(types))
        for line, (id_, category, types) in enumerate(answers, 2)
    ]
    assert len(problems) == 0
    assert [entry["id"] for entry in json.loads(path.read_text())] == [7, 8]


def test_a_prediction_needs_types_and_a_unique_id(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        entry(),
        entry(),
        entry(id="q2", type=[]),
        entry(id="q3", category="boolean", type=[]),
        entry(id="q4", type=["dbo:Ghost"]),
        entry(id="q5", type=None),
        entry(id="q6", type=["dbo:Person", "dbo:Person"]),
    )
    problems = Problems()
    assert [prediction.id for prediction in read_predictions(path, problems, known=KNOWN)] == ["q1", "q3"]
    assert kinds(problems) == [
        ("duplicate id", "line 3: question q1"),
        ("no type", "line 4: question q2"),
        ("unknown type", "line 6: question q4"),
        ("wrong type", "line 7: question q5"),
        ("repeated type", "line 8: question q6"),
    ]
