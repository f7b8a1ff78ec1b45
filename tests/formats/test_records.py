from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.formats import records
from searchapp.formats.problems import Problems


def read(
    tmp_path: Path, content: str | bytes, format_: str, **options: tuple[str, ...]
) -> tuple[list[tuple[int, dict[str, object]]], list[str]]:
    """The records of a file with this content, and its problems without the file's name."""
    path = tmp_path / f"file.{format_}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    problems = Problems()
    found = [tuple(record) for record in records.read_records(path, format_, problems, **options)]
    return found, [str(problem).removeprefix(f"{path}: ") for problem in problems]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("a.CSV", "csv"),
        ("a.tsv", "tsv"),
        ("a.ndjson", "jsonl"),
        ("a.jsonl", "jsonl"),
        ("a.txt", None),
        ("csv", None),
    ],
)
def test_a_suffix_tells_the_format(name: str, format_: str | None) -> None:
    assert records.format_of(Path(name)) == format_


def test_a_csv_cell_may_hold_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    found, problems = read(tmp_path, 'id,text\n1,"a, ""b""\nc"\n2,d\n', "csv")
    assert found == [(2, {"id": "1", "text": 'a, "b"\nc'}), (4, {"id": "2", "text": "d"})]
    assert problems == []


def test_a_quote_in_a_tsv_is_a_character(tmp_path: Path) -> None:
    found, problems = read(tmp_path, 'id\ttext\n1\t"To be\n', "tsv")
    assert found == [(2, {"id": "1", "text": '"To be'})]
    assert problems == []


@pytest.mark.parametrize("format_", ["csv", "tsv"])
def test_what_is_harmless_in_a_table_is_accepted(tmp_path: Path, format_: str) -> None:
    tab = "," if format_ == "csv" else "\t"
    content = f"\ufeffid{tab}text\r\n\r\n1{tab}é"
    assert read(tmp_path, content, format_) == ([(3, {"id": "1", "text": "é"})], [])


def test_what_is_harmless_in_json_lines_is_accepted(tmp_path: Path) -> None:
    assert read(tmp_path, '\ufeff{"id": 1}\r\n\n{"id": 2}', "jsonl") == ([(1, {"id": 1}), (3, {"id": 2})], [])


def test_columns_can_be_named_for_a_table_without_a_header(tmp_path: Path) -> None:
    found, problems = read(tmp_path, "1\ta\n2\n", "tsv", columns=("id", "text"))
    assert found == [(1, {"id": "1", "text": "a"})]
    assert problems == ["line 2: wrong number of cells: 1 cell, where the task file has 2"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("id,text\n1\n", "line 2: wrong number of cells: 1 cell, where the header has 2"),
        ('id,text\n1,"a\n', "line 2: broken row: unexpected end of data"),
        ('id,text\n1,"a"b\n', "line 2: broken row: ',' expected after '\"'"),
        ("id,id,text\n", "line 1: duplicate column: the header contains 'id' twice"),
        ("id,body\n", "line 1: missing column: there is no column 'text': the header has id, body"),
        ("", "empty file: a header line is expected"),
    ],
)
def test_a_broken_csv_is_told_with_its_line(tmp_path: Path, content: str, problem: str) -> None:
    found, problems = read(tmp_path, content, "csv", required=("id", "text"))
    assert found == []
    (told,) = problems
    assert told.startswith(problem)


def test_what_is_no_utf_8_is_left_out_with_its_record_alone(tmp_path: Path) -> None:
    found, problems = read(tmp_path, b'id,text\n1,"a\n\xff"\n2,b\n', "csv")
    assert found == [(4, {"id": "2", "text": "b"})]
    assert problems == [
        "line 3: not UTF-8: byte 0xff at offset 13 is not valid there; save the file as UTF-8"
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": 1', "not JSON: expecting ',' delimiter at column 9"),
        ("[1]", "wrong type: the line is a list, not an object"),
        ('{"id": 1, "id": 2}', "duplicate key: the object has 'id' twice"),
        ('{"id": NaN}', "not JSON: there is no NaN in JSON"),
        ('{"id": 1} {"id": 2}', "not JSON: extra data at column 11"),
    ],
)
def test_a_broken_json_line_is_told_and_the_others_read(tmp_path: Path, line: str, problem: str) -> None:
    found, problems = read(tmp_path, f'{{"id": 0}}\n{line}\n{{"id": 3}}\n', "jsonl")
    assert found == [(1, {"id": 0}), (3, {"id": 3})]
    assert problems == [f"line 2: {problem}"]


def test_a_file_without_any_json_is_told(tmp_path: Path) -> None:
    assert read(tmp_path, "\n", "jsonl") == ([], ["empty file: one JSON object per line is expected"])


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    problems = Problems(lenient=True)
    assert list(records.read_records(tmp_path / "none.csv", "csv", problems)) == []
    assert [problem.kind for problem in problems] == ["missing file"]


def test_a_long_cell_is_read_whole(tmp_path: Path) -> None:
    found, problems = read(tmp_path, f"id,text\n1,{'x' * 200_000}\n", "csv")
    assert len(str(found[0][1]["text"])) == 200_000
    assert problems == []
