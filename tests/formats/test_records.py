"""Reading of records from CSV, TSV and JSON lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.formats import records
from searchapp.formats.problems import Problems
from tests.files import kinds, messages


def read(
    tmp_path: Path, content: str | bytes, format_: str, **options: tuple[str, ...]
) -> tuple[list[tuple[int, dict[str, object]]], list[str]]:
    """Return the records of a file with this content, and its problems without the file's name."""
    path = tmp_path / f"file.{format_}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    problems = Problems()
    rows = [
        (int(record.where.removeprefix("line ")), dict(record.values))
        for record in records.read_records(path, format_, problems, **options)
    ]
    return rows, messages(problems, path)


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
def test_the_format_is_detected_by_the_suffix(name: str, format_: str | None) -> None:
    assert records.format_of(Path(name)) == format_


def test_csv_cells_may_contain_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, 'id,text\n1,"a, ""b""\nc"\n2,d\n', "csv")
    assert rows == [(2, {"id": "1", "text": 'a, "b"\nc'}), (4, {"id": "2", "text": "d"})]
    assert problems == []


def test_quotes_have_no_meaning_in_tsv(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, 'id\ttext\n1\t"To be\n', "tsv")
    assert rows == [(2, {"id": "1", "text": '"To be'})]
    assert problems == []


@pytest.mark.parametrize("format_", ["csv", "tsv"])
def test_tables_with_byte_order_mark_blank_lines_and_crlf_are_read(tmp_path: Path, format_: str) -> None:
    tab = "," if format_ == "csv" else "\t"
    content = f"\ufeffid{tab}text\r\n\r\n1{tab}é"
    assert read(tmp_path, content, format_) == ([(3, {"id": "1", "text": "é"})], [])


def test_json_lines_with_byte_order_mark_blank_lines_and_crlf_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, '\ufeff{"id": 1}\r\n\n{"id": 2}', "jsonl") == ([(1, {"id": 1}), (3, {"id": 2})], [])


def test_a_table_without_header_is_read_with_given_columns(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, "1\ta\n2\n", "tsv", columns=("id", "text"))
    assert rows == [(1, {"id": "1", "text": "a"})]
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
def test_an_invalid_csv_is_reported_with_its_line(tmp_path: Path, content: str, problem: str) -> None:
    rows, problems = read(tmp_path, content, "csv", required=("id", "text"))
    assert rows == []
    (message,) = problems
    assert message.startswith(problem)


def test_only_the_record_that_is_not_utf_8_is_skipped(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, b'id,text\n1,"a\n\xff"\n2,b\n', "csv")
    assert rows == [(4, {"id": "2", "text": "b"})]
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
def test_an_invalid_json_line_is_reported_and_the_others_are_read(
    tmp_path: Path, line: str, problem: str
) -> None:
    rows, problems = read(tmp_path, f'{{"id": 0}}\n{line}\n{{"id": 3}}\n', "jsonl")
    assert rows == [(1, {"id": 0}), (3, {"id": 3})]
    assert problems == [f"line 2: {problem}"]


def test_a_file_without_json_is_reported(tmp_path: Path) -> None:
    assert read(tmp_path, "\n", "jsonl") == ([], ["empty file: one JSON object per line is expected"])


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    problems = Problems(lenient=True)
    assert list(records.read_records(tmp_path / "none.csv", "csv", problems)) == []
    assert kinds(problems) == [("missing file", "")]


def test_a_long_cell_is_read_completely(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, f"id,text\n1,{'x' * 200_000}\n", "csv")
    assert len(str(rows[0][1]["text"])) == 200_000
    assert problems == []


PARQUET_ROWS: list[dict[str, object]] = [
    {"id": 7, "text": "a", "tags": ["x"], "score": 1.0},
    {"id": 8, "text": None, "tags": [], "score": None},
]


def parquet_file(tmp_path: Path, rows: list[dict[str, object]], **options: object) -> Path:
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist(rows), tmp_path / "file.parquet", **options)
    return tmp_path / "file.parquet"


def read_parquet(
    path: Path, **options: tuple[str, ...]
) -> tuple[list[tuple[str, dict[str, object]]], list[str]]:
    problems = Problems()
    found = [
        (record.where, record.values) for record in records.read_records(path, "parquet", problems, **options)
    ]
    return found, messages(problems, path)


@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False}, {"row_group_size": 1, "compression": "zstd"}]
)
def test_rows_of_parquet_are_read_with_the_values_of_their_columns(
    tmp_path: Path, options: dict[str, object]
) -> None:
    path = parquet_file(tmp_path, PARQUET_ROWS, **options)
    assert read_parquet(path) == ([("row 1", PARQUET_ROWS[0]), ("row 2", PARQUET_ROWS[1])], [])
    found, problems = read_parquet(path, required=("text", "id"))
    assert (found[0], problems) == (("row 1", {"text": "a", "id": 7}), [])


def test_problems_of_a_parquet_file_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet_file(tmp_path, PARQUET_ROWS)
    assert read_parquet(path, required=("id", "title", "x")) == (
        [],
        [
            "missing column: there is no column 'title': the file has id, text, tags, score",
            "missing column: there is no column 'x': the file has id, text, tags, score",
        ],
    )
    path.write_bytes(path.read_bytes()[:-20])
    assert read_parquet(path)[1][0].startswith("not Parquet: ")
    assert "missing file" in read_parquet(tmp_path / "none.parquet")[1][0]
    path = parquet_file(tmp_path, [{"id": "x" * 100_000}] * 50, use_dictionary=False, compression="zstd")
    assert len(read_parquet(path)[0]) == 50
    monkeypatch.setattr(records, "LARGEST_COLUMN", 1_000_000)
    (problem,) = read_parquet(path)[1]
    assert problem.startswith("column too large: id has 5,") and "packed in" in problem


def test_invalid_utf8_in_parquet_is_reported_with_its_rows(tmp_path: Path) -> None:
    from pyarrow import array, binary, parquet, string, table

    text = array([b"good", b"caf\xe9"], binary()).view(string())
    parquet.write_table(table({"id": text}), tmp_path / "file.parquet")
    found, (problem,) = read_parquet(tmp_path / "file.parquet")
    assert found == [] and problem.startswith("rows 1 to 512: not UTF-8")
