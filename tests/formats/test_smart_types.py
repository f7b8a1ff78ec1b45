from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from searchapp.formats.problems import Problems
from searchapp.formats.smart_types import (
    DBPEDIA,
    WIKIDATA,
    Layout,
    Prediction,
    Question,
    read_predictions,
    read_questions,
    write_predictions,
)

KNOWN = {"dbo:Person", "dbo:Agent"}


def entry(**changes: Any) -> dict[str, Any]:
    plain = {"id": "q1", "question": "Who?", "category": "resource", "type": ["dbo:Person"]}
    return {key: value for key, value in {**plain, **changes}.items() if value != "(none)"}


def put(folder: Path, *entries: object, bom: bool = False) -> Path:
    path = folder / "questions.json"
    lines = ",\n".join(json.dumps(one) for one in entries)
    path.write_text(("\ufeff" if bom else "") + f"[\n{lines}\n]\n", encoding="utf-8")
    return path


def questions(path: Path, layout: Layout = DBPEDIA, **options: Any) -> tuple[list[Question], list[Any]]:
    problems = Problems()
    read = list(read_questions(path, problems, layout, known=KNOWN, **options))
    return read, [(problem.kind, problem.where, problem.detail) for problem in problems]


def test_a_good_entry_is_read(tmp_path: Path) -> None:
    path = put(tmp_path, entry(), entry(id="q2", category="literal", type=["date"], score=1))
    assert questions(path) == (
        [Question("q1", "Who?", "resource", ("dbo:Person",)), Question("q2", "Who?", "literal", ("date",))],
        [],
    )


def test_ids_of_wikidata_are_integers_and_a_byte_order_mark_may_stand(tmp_path: Path) -> None:
    path = put(tmp_path, entry(id=7), bom=True)
    assert [question.id for question in questions(path, WIKIDATA)[0]] == ["7"]
    assert [kind for kind, _, _ in questions(path)[1]] == ["byte-order mark"]


@pytest.mark.parametrize(
    ("layout", "id_", "said"),
    [
        (DBPEDIA, 7, "id is an integer, not a string"),
        (WIKIDATA, "7", "id is a string, not an integer"),
        (WIKIDATA, True, "id is a boolean, not an integer"),
        (DBPEDIA, None, "id is null, not a string"),
    ],
)
def test_an_id_of_the_wrong_type_is_told(tmp_path: Path, layout: Layout, id_: Any, said: str) -> None:
    assert questions(put(tmp_path, entry(id=id_)), layout) == ([], [("wrong type", "line 2", said)])


def test_what_real_files_hold_is_no_problem(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        entry(id="null", question=None),
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
    ("changes", "kind", "said"),
    [
        ({"id": "(none)"}, "missing key", "id"),
        ({"id": "a b"}, "unusable id", "whitespace"),
        ({"id": "\ud800"}, "lone surrogate", "half of a character"),
        ({"question": "(none)"}, "missing key", "question"),
        ({"question": "  "}, "blank text", "be null"),
        ({"question": 5}, "wrong type", "question is an integer"),
        ({"question": "Who \ud800?"}, "lone surrogate", ""),
        ({"category": "(none)"}, "missing key", "category"),
        ({"category": "Resource"}, "unknown category", "Resource is not boolean, literal, resource"),
        ({"category": 1}, "wrong type", "category is an integer"),
        ({"type": "(none)"}, "missing key", "type"),
        ({"type": "dbo:Person"}, "wrong type", "type is a string, not a list"),
        ({"type": None}, "wrong type", "type is null"),
        ({"type": ["dbo:Person", 3]}, "wrong type", "a type is an integer"),
        ({"type": [" "]}, "blank type", ""),
        ({"type": ["dbo:person"]}, "unknown type", "dbo:person is not in the type hierarchy"),
        ({"type": ["dbo:Person", "dbo:Person"]}, "repeated type", "dbo:Person"),
        ({"type": ["date"]}, "contradiction", "a resource needs a type of the knowledge base"),
        ({"category": "boolean"}, "contradiction", "the type of a boolean is boolean, not dbo:Person"),
        ({"category": "boolean", "type": ["boolean", "date"]}, "contradiction", "not 'boolean, date'"),
        ({"category": "literal"}, "contradiction", "dbo:Person is no literal: date, number, string"),
        ({"category": "literal", "type": []}, "no type", "literal"),
    ],
)
def test_a_wrong_entry_is_told_with_its_line_and_left_out(
    tmp_path: Path, changes: dict[str, Any], kind: str, said: str
) -> None:
    read, problems = questions(put(tmp_path, entry(id="q0"), entry(**changes)))
    assert [question.id for question in read] == ["q0"]
    ((found, where, detail),) = problems
    assert found == kind and said in detail
    assert where.startswith("line 3")


def test_an_id_that_comes_again_with_something_else_is_a_problem(tmp_path: Path) -> None:
    read, problems = questions(put(tmp_path, entry(), entry(question="Where?")))
    assert [question.text for question in read] == ["Who?"]
    assert problems == [
        ("duplicate id", "line 3: question q1", "an entry before has this id and says otherwise")
    ]


def test_a_key_that_comes_twice_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text(
        '[{"id": "q1", "question": "a", "question": "b", "category": "boolean", "type": ["boolean"]}]'
    )
    assert [kind for kind, _, _ in questions(path)[1]] == ["duplicate key"]


def test_masked_gold_may_be_missing_but_not_half_of_it(tmp_path: Path) -> None:
    bare = {"id": "q1", "question": "Who?"}
    path = put(tmp_path, bare, {**bare, "id": "q2", "category": None, "type": []}, entry(id="q3"))
    assert [question.category for question in questions(path, masked=True)[0]] == [None, None, "resource"]
    half = put(tmp_path, {**bare, "category": "resource"})
    assert [kind for kind, _, _ in questions(half, masked=True)[1]] == ["missing key"]
    assert [kind for kind, _, _ in questions(put(tmp_path, bare))[1]] == ["missing key", "missing key"]


def test_without_gold_only_the_question_matters(tmp_path: Path) -> None:
    path = put(tmp_path, entry(category="?", type=3))
    assert questions(path, gold=False) == ([Question("q1", "Who?", None, ())], [])


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = io.BytesIO()
    answers = [("7", "resource", ["Bien de Interés", 'a "big" isn\'t']), ("8", "boolean", ["boolean"])]
    write_predictions(file, answers, WIKIDATA)
    path = tmp_path / "predictions.json"
    path.write_bytes(file.getvalue())
    problems = Problems()
    assert list(read_predictions(path, problems, WIKIDATA)) == [
        Prediction(line, id_, category, tuple(types))
        for line, (id_, category, types) in enumerate(answers, 2)
    ]
    assert len(problems) == 0
    assert json.loads(path.read_text())[0]["id"] == 7


def test_a_prediction_needs_types_and_an_id_of_its_own(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        entry(),
        entry(),
        entry(id="q2", type=[]),
        entry(id="q3", category="boolean", type=[]),
        entry(id="q4", type=["dbo:Ghost"]),
    )
    problems = Problems()
    assert [one.id for one in read_predictions(path, problems, DBPEDIA, KNOWN)] == ["q1", "q3"]
    assert [(problem.kind, problem.where) for problem in problems] == [
        ("duplicate id", "line 3: question q1"),
        ("no type", "line 4: question q2"),
        ("unknown type", "line 6: question q4"),
    ]
