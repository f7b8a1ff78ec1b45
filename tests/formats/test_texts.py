"""Reading of topics and documents of own tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchapp.formats.problems import Problems
from searchapp.tasks.own.task_file import TextLayout, TextRecord, read_texts
from tests.files import kinds, messages

LAYOUT = TextLayout("jsonl", fields={"kind": "Kind"})


def read(
    tmp_path: Path, rows: list[Any], layout: TextLayout = LAYOUT, *, complete: bool = False
) -> tuple[list[TextRecord], list[str]]:
    path = tmp_path / "file.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    problems = Problems()
    texts = list(read_texts(path, layout, problems, set(), complete=complete))
    return texts, messages(problems, path)


def test_ids_texts_and_fields_are_read_from_their_columns(tmp_path: Path) -> None:
    layout = TextLayout("jsonl", id="_id", text=("title", "body"), fields={"kind": "Kind"})
    rows: list[dict[str, Any]] = [
        {"_id": 7, "title": "T", "body": "B", "Kind": [1, "x"]},
        {"_id": "8", "title": "", "body": "C", "Kind": None},
        {"_id": "9", "title": "D", "Kind": [{"a": [{"b": 1}, None]}, {"a": None}]},
    ]
    texts, problems = read(tmp_path, rows, layout)
    assert texts[:2] == [("line 1", "7", "T\nB", {"kind": [1, "x"]}), ("line 2", "8", "C", {})]
    assert texts[2].fields == {"kind": rows[2]["Kind"]} and problems == []
    _, problems = read(tmp_path, rows[2:], layout, complete=True)
    assert problems[:2] == ["line 1: wrong type: Kind has an object, not a string, number or boolean"] * 2


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"text": "x"}, "missing key: id: the object has text"),
        ({"_id": "7", "text": "x"}, "missing key: id: the object has _id, text"),
        ({"id": True, "text": "x"}, "wrong type: id is a boolean, not a string or an integer"),
        ({"id": "a b", "text": "x"}, "unusable id: an id must not be empty or contain white space"),
        ({"id": "", "text": "x"}, "unusable id: an id must not be empty or contain white space"),
        ({"id": "a\x00b", "text": "x"}, "unusable id: an id must not contain control characters"),
        ({"id": "a\x7fb", "text": "x"}, "unusable id: an id must not contain control characters"),
        ({"id": "é" * 257, "text": "x"}, "unusable id: an id must not be longer than 512 bytes"),
        ({"id": "x" * 513, "text": "x"}, "unusable id: an id must not be longer than 512 bytes"),
        ({"id": "1", "text": "x"}, "duplicate id: 1; the first one counts"),
        ({"id": "2"}, "missing key: text"),
        ({"id": "2", "text": None}, "wrong type: text is null, not a string"),
        ({"id": "2", "text": " "}, "blank text: text must not be blank"),
        (
            {"id": "2", "text": "\ud800"},
            "lone surrogate: text has an escape that is half of a surrogate pair",
        ),
        ({"id": "2", "text": "x", "Kind": [[1]]}, "wrong type: Kind has a list, not a string"),
        ({"id": "2", "text": "x", "Kind": 1e999}, "not JSON: there is no Infinity in JSON"),
    ],
)
def test_an_invalid_record_is_reported_and_skipped(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    first, last = {"id": "1", "text": "x", "Kind": "k"}, {"id": "3", "text": "x"}
    texts, problems = read(tmp_path, [first, row, last])
    assert [text.id for text in texts] == ["1", "3"]
    (message,) = problems
    assert message.startswith(f"line 2: {problem}")


def test_a_number_out_of_range_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text('{"id": 1, "text": "x", "Kind": 1e999}\n')
    problems = Problems()
    assert list(read_texts(path, LAYOUT, problems, set(), complete=False)) == []
    assert [kind for kind, _ in kinds(problems)] == ["number out of range"]


def test_a_field_that_no_object_has_is_reported(tmp_path: Path) -> None:
    _, problems = read(tmp_path, [{"id": 1, "text": "x"}])
    assert problems == ["missing key: no object has the key 'Kind'"]


def test_a_topic_needs_all_fields(tmp_path: Path) -> None:
    rows = [{"id": 1, "text": "x", "Kind": ""}, {"id": 2, "text": "x"}, {"id": 3, "text": "x", "Kind": None}]
    texts, problems = read(tmp_path, rows, complete=True)
    assert [text.fields for text in texts] == [{"kind": ""}]
    assert problems == [
        "line 2: missing key: Kind: the object has id, text",
        "line 3: wrong type: Kind is null, but templates need a value",
    ]


def test_ids_are_unique_over_several_files(tmp_path: Path) -> None:
    path = tmp_path / "file.tsv"
    path.write_text("id\ttext\n1\tx\n")
    problems, seen = Problems(), {"1"}
    assert list(read_texts(path, TextLayout("tsv"), problems, seen, complete=False)) == []
    assert [kind for kind, _ in kinds(problems)] == ["duplicate id"]


def test_of_several_columns_of_text_each_may_be_missing_in_some_objects(tmp_path: Path) -> None:
    layout = TextLayout("jsonl", text=("title", "text"))
    rows = [{"id": "1", "text": "x"}, {"id": "2", "title": "t", "text": None}, {"id": "3"}]
    texts, problems = read(tmp_path, rows, layout)
    assert [(text.id, text.text) for text in texts] == [("1", "x"), ("2", "t")]
    assert problems == ["line 3: blank text: title and text must not be blank"]
    assert read(tmp_path, rows[:1], layout)[1] == ["missing key: no object has the key 'title'"]
