"""Entries that lack the same key are one problem with their number and the keys of the first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from searchapp.errors import InvalidFiles
from searchapp.formats.problems import Problems
from searchapp.tasks.explanation import worldtree
from searchapp.tasks.nlps import task
from searchapp.tasks.own import task_file
from searchapp.tasks.smart_relations import task as smart_relations
from searchapp.tasks.smart_types import answers

Read = Callable[[Path, Problems], Iterable[object]]

QUESTIONS = [{"id": f"q{number}", "query": "Who?"} for number in range(1, 2001)]
RATED = [{"qid": f"q{number}", "queryText": "Who? [ANSWER] I"} for number in range(1, 2001)]
UNRATED = [
    {**entry, "documents": [{"uuid": "u", "rating": 1}, {"uuid": "v", "rating": 2}]} for entry in RATED
]


def json_lines(values: Iterable[object]) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


@pytest.mark.parametrize(
    ("content", "read", "message"),
    [
        (
            json.dumps({entry["id"]: entry for entry in QUESTIONS}),
            partial(task.read_statements, gold=False),
            "statement q1: missing key: text: the object has id, query; 2,000 objects lack it, the first is shown",
        ),
        (
            json.dumps({entry["id"]: {"text": "x", **entry} for entry in QUESTIONS}),
            task.read_statements,
            "statement q1: missing key: premises: the object has text, id, query; 2,000 objects lack it, the "
            "first is shown",
        ),
        (
            json.dumps(QUESTIONS, indent=0),
            answers.read_questions,
            "line 2: question q1: missing key: question: the object has id, query; 2,000 objects lack it, "
            "the first is shown",
        ),
        (
            json.dumps(QUESTIONS, indent=0),
            smart_relations.read_predictions,
            "line 2: question q1: missing key: relations: the object has id, query; 2,000 objects lack it, "
            "the first is shown",
        ),
        (
            json.dumps({f"P{number}": {"id": f"P{number}", "description": "x"} for number in range(1, 3)}),
            smart_relations.read_wikidata_vocabulary,
            "property P1: missing key: label: the object has id, description; 2 objects lack it, the first is shown",
        ),
        (
            json.dumps({"rankingProblems": [{"id": "x"}, *RATED]}),
            lambda path, problems: worldtree.read_ratings(path, problems, {"u"}),
            "question q1: missing key: documents: the object has qid, queryText; 2,000 objects lack it, the "
            "first is shown",
        ),
        (
            json.dumps({"rankingProblems": UNRATED}),
            lambda path, problems: worldtree.read_ratings(path, problems, {"u", "v"}),
            "question q1: fact u: missing key: relevance: the object has uuid, rating; 4,000 objects lack "
            "it, the first is shown",
        ),
        (
            json.dumps({"problems": [], "version": 1}),
            worldtree.read_ratings,
            "missing key: rankingProblems: the object has problems, version",
        ),
        (
            json_lines(QUESTIONS),
            lambda path, problems: task_file.read_texts(
                path, task_file.TextLayout("jsonl"), problems, set(), complete=True
            ),
            "line 1: missing key: text: the object has id, query; 2,000 objects lack it, the first is shown",
        ),
        (
            json_lines({"topic": entry["id"]} for entry in QUESTIONS),
            lambda path, problems: task_file.read_grades(path, task_file.GradeLayout("jsonl"), problems, 1),
            "line 1: missing key: document: the object has topic; 2,000 objects lack it, the first is shown",
        ),
    ],
)
def test_entries_that_lack_the_same_key_are_one_message(
    tmp_path: Path, content: str, read: Read, message: str
) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    problems = Problems()
    assert list(read(path, problems)) == []
    with pytest.raises(InvalidFiles) as caught:
        problems.raise_if_any("advice")
    lines = [line.strip().removesuffix("; advice") for line in caught.value.lines]
    assert lines.count(f"{path}: {message}") == 1
    kind_and_key = message[message.index("missing key") : message.index(": the object")]
    assert sum(kind_and_key in line for line in lines) == 1


def test_skipped_entries_are_counted_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    entries: list[dict[str, Any]] = [*QUESTIONS[:3], {"id": 4, "question": ["Who?"]}]
    path.write_text(json.dumps(entries))
    problems = Problems(lenient=True)
    assert list(answers.read_questions(path, problems)) == []
    skipped = problems.skipped
    assert skipped is not None and len(skipped.problems) == 4
    assert skipped.counts() == {"missing key": 3, "wrong type": 1}
    assert skipped.lines[0] == "4 problems: missing key (3), wrong type (1)" and len(skipped.lines) == 3
