"""Detection of formats and header lines of own tasks."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from searchapp.formats.records import Unsupported
from searchapp.tasks.own.starter import detect_format, detect_header


@pytest.mark.parametrize(
    ("name", "content", "format_"),
    [
        ("a.csv", "id,text\n", "csv"),
        ("a.tsv", "id\ttext\n", "tsv"),
        ("a.csv", "id\ttext\n1\tx, y\n", "tsv"),
        ("a.tsv", 'id,text\n1,"x"\n', "csv"),
        ("a.dat", "id\ttext\n1\ta, b\n", "tsv"),
        ("a", "id,text\n1,x\n", "csv"),
        ("a.txt", '\n{"id": 1}\n', "jsonl"),
        ("a.csv", '{"id": 1, "text": "x"}\n', "jsonl"),
        ("a.jsonl", "not JSON\n", "jsonl"),
        ("a.tsv", "", "tsv"),
        ("a.dat", "", None),
        ("a.dat", "words and words\n", None),
        ("a.csv", "id\n1\n", "csv"),
        ("a.tsv", "\ufeffid\ttext\n", "tsv"),
    ],
)
def test_the_format_is_detected_by_the_content(
    tmp_path: Path, name: str, content: str, format_: str | None
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert detect_format(path) == format_
    path.write_bytes(gzip.compress(content.encode()))
    assert detect_format(path.rename(tmp_path / f"{name}.gz")) == format_


@pytest.mark.parametrize(
    ("name", "content", "format_"),
    [
        ("g.txt", "q1 0 d1 1\n", "trec"),
        ("g.dat", "q1 0 d1 1\n", "trec"),
        ("g.tsv", "q1\t0\td1\t1\n", "tsv"),
        ("g.qrels", "q1 0 d1\n", "trec"),
        ("g.csv", "topic,document\n", "csv"),
        ("g.dat", "topic\tdocument\n", "tsv"),
    ],
)
def test_gold_may_be_qrels(tmp_path: Path, name: str, content: str, format_: str) -> None:
    (tmp_path / name).write_text(content)
    assert detect_format(tmp_path / name, with_qrels=True) == format_


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"PAR1\x15\0", "it is a Parquet file: write its rows as JSONL or CSV"),
        ("a.csv", b"id;text\n1;x\n", "its cells are separated by semicolons: save it with commas or"),
        ("a.tsv", b"id|text\n1|x\n", "its cells are separated by vertical bars: save it with"),
        ("a.dat", b"id;text\n1;x\n", "its cells are separated by semicolons: save it with commas or"),
        ("a.tsv", "id\ttext\n".encode("utf-16"), "it is UTF-16: save it as UTF-8"),
    ],
)
def test_unsupported_formats_are_rejected_with_advice(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Unsupported, match=message):
        detect_format(tmp_path / name)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["id\ttext", "1\ta"], True),
        (["nr\twords", "1\ta"], True),
        (["Nr\tWorte", "a\tEin Satz", "b\tNoch einer"], True),
        (["key\tvalue"], True),
        (["2019\t2020", "1\t2"], False),
        (["1\ta text of some words", "2\tanother text"], False),
        (["d1\tshort", "d2\tshort too"], False),
        (["doc-1\tx", "doc-17\ty"], False),
        (["a\tevery subgroup of an abelian group is normal", "b\tx"], False),
        (["1"], False),
        (["\ttext", "0\tfoo"], True),
        (["TEXT\tother", "x\ty"], True),
        (["name1\tname2", "x\t5"], True),
    ],
)
def test_a_header_line_is_distinguished_from_values(tmp_path: Path, rows: list[str], expected: bool) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("\n".join(rows) + "\n")
    has_header, reason, read = detect_header(path, "tsv")
    assert has_header is expected, reason
    assert read == [row.split("\t") for row in rows]
