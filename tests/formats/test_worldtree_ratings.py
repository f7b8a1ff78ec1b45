"""Reading of the rated questions of WorldTree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchapp.formats.problems import Problems
from searchapp.tasks.explanation.worldtree import RatedQuestion, read_ratings
from tests.files import kinds, notes


def read(
    folder: Path, value: Any, known: set[str] | None = None, **options: bool
) -> tuple[list[RatedQuestion], list[tuple[str, str]], list[tuple[str, str]]]:
    path = folder / "ratings.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    problems = Problems()
    return list(read_ratings(path, problems, known, **options)), kinds(problems), notes(problems)


def listed(*questions: Any) -> dict[str, Any]:
    return {"rankingProblems": list(questions), "other": 1}


def question(**changes: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "qid": "Q",
        "queryText": "Hot? [ANSWER] fire",
        "documents": [{"uuid": "u", "relevance": 6, "goldRole": "CENTRAL"}, {"uuid": "v", "relevance": 2.5}],
        **changes,
    }
    return {key: value for key, value in entry.items() if value is not ...}


def test_a_question_has_its_answer_and_its_ratings(tmp_path: Path) -> None:
    questions, problems, _ = read(tmp_path, listed(question()), {"u", "v"})
    assert questions == [RatedQuestion("Q", "Hot?", "fire", {"u": 6.0, "v": 2.5})]
    assert not problems


def test_question_and_answer_may_have_their_own_keys(tmp_path: Path) -> None:
    for changes in ({}, {"queryText": ...}):
        entry = question(questionText="Hot?", answerText="fire", **changes)
        assert read(tmp_path, listed(entry))[0] == [RatedQuestion("Q", "Hot?", "fire", {})]


@pytest.mark.parametrize(
    "changes",
    [{"queryText": "Hot? [ANSWER] "}, {"questionText": "Hot?", "answerText": " ", "queryText": ...}],
)
def test_a_question_without_an_answer_is_noted(tmp_path: Path, changes: dict[str, Any]) -> None:
    questions, problems, noted = read(tmp_path, listed(question(**changes)))
    assert questions == [RatedQuestion("Q", "Hot?", "", {})] and not problems
    assert [kind for kind, _ in noted] == ["no answer"]


@pytest.mark.parametrize("documents", [..., None, []])
def test_masked_questions_have_no_ratings(tmp_path: Path, documents: Any) -> None:
    value = listed(question(documents=documents))
    assert read(tmp_path, value, {"u"}, masked=True)[0] == [RatedQuestion("Q", "Hot?", "fire", {})]


def test_only_masked_files_may_lack_the_list_of_ratings(tmp_path: Path) -> None:
    assert read(tmp_path, listed(question(documents=[])), {"u"})[1] == []
    assert read(tmp_path, listed(question(documents=...)), {"u"})[1] == [("missing key", "question Q")]
    assert read(tmp_path, listed(question(documents=None)), {"u"})[1] == [("wrong type", "question Q")]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"queryText": "Hot? fire"}, "no answer"),
        ({"queryText": "[ANSWER] fire"}, "no answer"),
        ({"queryText": ...}, "missing key"),
        ({"queryText": 7}, "wrong type"),
        ({"questionText": "Cold?", "answerText": "fire"}, "contradiction"),
        ({"questionText": " ", "answerText": "fire"}, "blank text"),
        ({"questionText": "Hot?"}, "missing key"),
        ({"documents": [{"uuid": "u", "relevance": 7}]}, "rating out of range"),
        ({"documents": [{"uuid": "u", "relevance": -1}]}, "rating out of range"),
        ({"documents": [{"uuid": "u", "relevance": "6"}]}, "wrong type"),
        ({"documents": [{"uuid": "u", "relevance": True}]}, "wrong type"),
        ({"documents": [{"uuid": "u"}]}, "missing key"),
        ({"documents": [{"relevance": 1}]}, "missing key"),
        ({"documents": ["u"]}, "wrong type"),
        ({"documents": [{"uuid": "w", "relevance": 1}]}, "unknown fact"),
        ({"documents": [{"uuid": "u", "relevance": 1}] * 2}, "duplicate rating"),
    ],
)
def test_an_invalid_question_is_reported_and_skipped(
    tmp_path: Path, changes: dict[str, Any], kind: str
) -> None:
    value = listed(question(), question(qid="R", **changes))
    questions, problems, _ = read(tmp_path, value, {"u", "v"})
    assert [question.id for question in questions] == ["Q"]
    ((reported, where),) = problems
    assert reported == kind and where in ("question R", "question R: fact u")


@pytest.mark.parametrize(
    ("entry", "kind", "where"),
    [
        (7, "wrong type", "entry 2"),
        (question(qid=...), "missing key", "entry 2"),
        (question(qid="a b"), "unusable id", "entry 2"),
        (question(), "duplicate id", "question Q"),
    ],
)
def test_an_entry_without_a_unique_id_is_reported(tmp_path: Path, entry: Any, kind: str, where: str) -> None:
    questions, problems, _ = read(tmp_path, listed(question(), entry), {"u", "v"})
    assert len(questions) == 1 and problems == [(kind, where)]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({}, "missing key"),
        ([], "wrong shape"),
        ({"rankingProblems": {}}, "wrong type"),
        ('{"rankingProblems": [', "not JSON"),
        ('{"rankingProblems": [], "rankingProblems": []}', "duplicate key"),
    ],
)
def test_a_file_of_another_shape_has_one_problem(tmp_path: Path, value: Any, kind: str) -> None:
    questions, problems, _ = read(tmp_path, value)
    assert questions == [] and [reported for reported, _ in problems] == [kind]


def test_an_unknown_fact_of_a_training_question_is_noted(tmp_path: Path) -> None:
    questions, problems, noted = read(tmp_path, listed(question()), {"u"}, training=True)
    assert questions[0].ratings == {"u": 6.0} and not problems
    assert [kind for kind, _ in noted] == ["unknown fact"]
