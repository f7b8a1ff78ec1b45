"""Reading of JSON lists entry by entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchapp.formats.json_files import RepeatedKeys, read_entries
from searchapp.formats.problems import Problems
from tests.files import kinds, messages


def read(tmp_path: Path, content: str | bytes, **options: Any) -> tuple[list[tuple[int, Any]], list[str]]:
    path = tmp_path / "list.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    problems = Problems()
    entries = [(entry.line, entry.value) for entry in read_entries(path, problems, **options)]
    return entries, messages(problems, path)


def test_entries_have_the_line_of_their_start(tmp_path: Path) -> None:
    entries, problems = read(tmp_path, ' [\n1,\n\n {"a":\n [2]}, "x"\r\n,null]\n')
    assert entries == [(2, 1), (4, {"a": [2]}), (5, "x"), (6, None)]
    assert problems == []


@pytest.mark.parametrize("content", ["[]", " [ \n ] "])
def test_an_empty_list_has_no_entries(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content) == ([], [])


def test_entries_before_an_error_are_read(tmp_path: Path) -> None:
    entries, problems = read(tmp_path, '[1,\n{"a": 2},\n{"b" 3}]')
    assert entries == [(1, 1), (2, {"a": 2})]
    assert problems == ["line 3 column 6: not JSON: expecting ':' delimiter"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "empty file: a JSON list is expected"),
        ("\n ", "empty file: a JSON list is expected"),
        ('{"a": []}', "wrong shape: the file contains an object, not a list"),
        ("7", "wrong shape: the file contains an integer, not a list"),
        ("[1", "line 1 column 3: not JSON: expecting ',' or ']' after an entry of the list"),
        ("[1,]", "line 1 column 4: not JSON: expecting value"),
        ("[1]\n[2]", "line 2 column 1: not JSON: there is text after the end of the list"),
        ('["NaN",\n NaN]', "line 2 column 2: not JSON: there is no NaN in JSON"),
        ("[-Infinity]", "line 1 column 2: not JSON: there is no -Infinity in JSON"),
        ("[\n" + "9" * 5000 + "]", "line 2: not JSON: a number has too many digits"),
        ("\n" + "[" * 100_000, "line 2: not JSON: it is nested too deeply"),
        ('["a\0"]', "line 1 column 4: not JSON: invalid control character at"),
        (
            b'[\n"\xe9"]',
            "line 2: not UTF-8: byte 0xe9 at offset 3 is not valid there; save the file as UTF-8",
        ),
        ("\ufeff[]", "line 1: byte-order mark: save the file as UTF-8 without one"),
    ],
)
def test_errors_are_reported_with_line_and_column(tmp_path: Path, content: str | bytes, problem: str) -> None:
    assert read(tmp_path, content)[1] == [problem]


def test_a_byte_order_mark_is_skipped_if_allowed(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeff[1]", bom=True) == ([(1, 1)], [])


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    problems = Problems()
    assert list(read_entries(tmp_path / "none.json", problems)) == []
    assert kinds(problems) == [("missing file", "")]


def test_an_object_with_a_repeated_key_is_marked(tmp_path: Path) -> None:
    ((_line, value),), problems = read(tmp_path, '[{"a": 1, "b": 2, "a": 3}]')
    assert isinstance(value, RepeatedKeys)
    assert (value, value.names, problems) == ({"a": 3, "b": 2}, ["a"], [])
