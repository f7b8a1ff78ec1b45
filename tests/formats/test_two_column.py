"""Two-column prediction files, read as pandas and the official scorers read them."""

from __future__ import annotations

import gzip
import io
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import DataError, NotScorable
from searchapp.formats.two_column import MISSING, gather, read_rows, read_two_column, write_two_column
from searchapp.model import Hits, Ranking, Run
from tests.files import write

Cells = list[tuple[str | None, str | None]]


def run_of(rankings: dict[str, list[str]]) -> Run:
    return Run("r", tuple(Ranking(topic, Hits(ids, [1.0] * len(ids))) for topic, ids in rankings.items()))


put = partial(write, name="predict.txt")


def rows(folder: Path, content: bytes) -> Cells:
    return [(row.topic_id, row.document_id) for row in read_rows(put(folder, content))]


# Recorded with pandas 2.3: read_csv(sep="\t", names=["topic", "document"], dtype=str), last two columns.
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\nb\tc\n", [("a", None), ("b", "c")]),
        (b"a\tb\r\rc\td", [("a", "b"), ("c", "d")]),
        (b"a\tb\r\n\tc\n", [("a", "b"), (None, "c")]),
        (b"   \na\tb\n  ", [("a", "b")]),
        (b"a\tb\n  \r  \r\n", [("a", "b")]),
        (b" \t \n", [(" ", " ")]),
        (b"a\tb\n  c\n", [("a", "b"), ("  c", None)]),
        (b"a\tb\n\xc2\xa0\n", [("a", "b"), ("\xa0", None)]),
        (b"a\tb\n\x0b\x1c\n", [("a", "b"), ("\x0b\x1c", None)]),
        (b"x\t\n\ty\n", [("x", None), (None, "y")]),
        (b"\t\na\tb\n", [(None, None), ("a", "b")]),
        (b"a\tb\tc\nd\ne\tf\n", [("b", "c"), (None, None), ("f", None)]),
        (b"a\tb\tc\td\nd\te\tf\n", [("c", "d"), ("f", None)]),
        (b"\t\t\na\tb\tc\n", [(None, None), ("b", "c")]),
        (b'a\tb"c\n', [("a", 'b"c')]),
        (b'a\t"b"c"d"\n', [("a", 'bc"d"')]),
        (b'a\t"b""c"\n', [("a", 'b"c')]),
        (b'a\t"x\r\ny"\nb\t"x\ty"', [("a", "x\r\ny"), ("b", "x\ty")]),
        (b'a\t"x\ry"\n', [("a", "x\ry")]),
        (b' "a"\tb\n', [(' "a"', "b")]),
        (b'a\tb\n""', [("a", "b"), (None, None)]),
        (b'""\na\tb\n', [(None, None), ("a", "b")]),
        (b'a\tb\n"c"\n"d\te"\tf', [("a", "b"), ("c", None), ("d\te", "f")]),
        (b'a\t"N"A\nb\t NA\nc\t"NA"\nd\t "NA"\n', [("a", None), ("b", " NA"), ("c", None), ("d", ' "NA"')]),
        (b"a\tNone\nb\t<NA>\nc\tna\n", [("a", None), ("b", None), ("c", "na")]),
        (b"a\tb\x00c\nd\x00\te\n", [("a", "b"), ("d", "e")]),
        (b"\x00\na\tb\n", [(None, None), ("a", "b")]),
        (b"\xef\xbb\xbfa\tb\n", [("a", "b")]),
        (b'\xef\xbb\xbf"a\tb"\tc\n', [("a\tb", "c")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfa\tb\n\xef\xbb\xbfa\tb", [("\ufeffa", "b"), ("\ufeffa", "b")]),
        (b"\xef\xbb\xbf  \na\tb\n", [("a", "b")]),
        (b"a\tb\n\x1a", [("a", "b"), ("\x1a", None)]),
    ],
)
def test_rows_equal_those_of_pandas(tmp_path: Path, content: bytes, expected: Cells) -> None:
    assert rows(tmp_path, content) == expected


@pytest.mark.parametrize("spelling", sorted(MISSING))
def test_missing_values_are_read_as_none(tmp_path: Path, spelling: str) -> None:
    content = f"a\t{spelling}\n{spelling}\tb\n".encode()
    assert rows(tmp_path, content) == [("a", None), (None, "b")]


SEPARATOR = "ValueError: invalid format of the prediction dataset, possibly the wrong separator"
PARSER = "pandas.errors.ParserError: Error tokenizing data. C error: "


@pytest.mark.parametrize(
    ("content", "official", "message"),
    [
        (b"", SEPARATOR, "empty file"),
        (b"\n \n", SEPARATOR, "empty file"),
        (b"a 1\na 2\n", SEPARATOR, "the second column has no value"),
        (b"x\t\ny\tNA\n", SEPARATOR, "the second column has no value"),
        (b"\tx\n", SEPARATOR, "the first column has no value"),
        (b"a\nb\tc\td\n", PARSER + "Expected 2 fields in line 2, saw 3", "line 2: 3 cells"),
        (b"a\tb\nc\td\t\n", PARSER + "Expected 2 fields in line 2, saw 3", "line 2: 3 cells"),
        (b"a\tb\tc\n\nd\te\tf\tg\n", PARSER + "Expected 3 fields in line 3, saw 4", "line 3: 4 cells"),
        (b'a\t"\nb"\nc\td\te', PARSER + "Expected 2 fields in line 2, saw 3", "line 3: 3 cells"),
        (b'a\tb\n\n"c\td\n', PARSER + "EOF inside string starting at row 2", "line 3: a cell begins"),
        (b'a\t"b""', PARSER + "EOF inside string starting at row 0", "line 1: a cell begins"),
        (
            b"a\tb\nc\t\xff\n",
            "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 6: invalid start byte",
            "line 2: byte 0xff at offset 6",
        ),
    ],
)
def test_files_that_stop_the_official_scorer(
    tmp_path: Path, content: bytes, official: str, message: str
) -> None:
    with pytest.raises(NotScorable) as raised:
        read_two_column(put(tmp_path, content))
    assert raised.value.official == official
    assert message in str(raised.value)
    assert raised.value.exit_code == 4


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_two_column(tmp_path / "none")


def test_rows_have_their_line_numbers(tmp_path: Path) -> None:
    assert [row.line for row in read_rows(put(tmp_path, b"a\tb\n\na\tc\r\na\td"))] == [1, 3, 4]
    assert [row.line for row in read_rows(put(tmp_path, b'a\t"b\n"\n\na\tc\r\na\td'))] == [1, 4, 5]


def test_documents_of_a_topic_are_folded_and_unique() -> None:
    cells: Cells = [("t", "B"), ("T", "x"), (None, "y"), ("t", None), ("t", "a"), ("t", "b"), ("t", None)]
    assert gather([*cells, ("t", "07"), ("t", "7")]) == {"t": ["b", None, "a", "07", "7"], "T": ["x"]}


def test_topics_keep_the_order_of_their_first_rows(tmp_path: Path) -> None:
    assert list(read_two_column(put(tmp_path, b"b\t1\na\t1\nb\t2\n"))) == ["b", "a"]


def test_written_files_are_tab_separated_with_line_feeds() -> None:
    stream = io.BytesIO()
    write_two_column(stream, run_of({"Δ": ["1", "2"], "none": []}))
    assert stream.getvalue() == "Δ\t1\nΔ\t2\n".encode()


@pytest.mark.parametrize(
    "bad", ["", "NA", "null", "a\tb", "a\nb", "a\rb", '"a', "a\0", "\ufeffa", "\ud800", "#N/A N/A"]
)
@pytest.mark.parametrize("kind", ["topic", "document"])
def test_ids_that_could_not_be_read_back_are_rejected(bad: str, kind: str) -> None:
    rankings = {bad: ["a"]} if kind == "topic" else {"t": ["a", bad]}
    stream = io.BytesIO()
    with pytest.raises(DataError, match=f"the {kind} id .* can't be represented"):
        write_two_column(stream, run_of(rankings))
    assert not stream.getvalue()


def test_documents_that_differ_only_in_letter_case_are_rejected() -> None:
    with pytest.raises(DataError, match="document ID is already in the ranking"):
        write_two_column(io.BytesIO(), run_of({"t": ["id", "ID"]}))


CELL = st.text(st.sampled_from('ab\t\r\n" NA\0\ufeff7İß'), max_size=5)


@given(st.dictionaries(CELL, st.lists(CELL, min_size=1, max_size=4), min_size=1, max_size=4))
def test_written_runs_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, rankings: dict[str, list[str]]
) -> None:
    path = tmp_path_factory.mktemp("predictions") / "predict.txt"
    try:
        with path.open("wb") as file:
            write_two_column(file, run_of(rankings))
    except DataError:
        return
    expected = {topic: [document.lower() for document in ranked] for topic, ranked in rankings.items()}
    assert read_two_column(path) == expected


@given(st.lists(st.lists(st.text(max_size=4), min_size=2, max_size=2), min_size=1))
def test_quoted_cells_are_read_back(tmp_path_factory: pytest.TempPathFactory, table: list[list[str]]) -> None:
    path = tmp_path_factory.mktemp("quoted") / "predict.txt"
    lines = ["\t".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in table]
    path.write_bytes("".join(lines).encode())
    cells = [cell.partition("\0")[0] for row in table for cell in row]
    expected = [None if cell in MISSING else cell for cell in cells]
    try:
        assert [cell for row in read_rows(path) for cell in row[1:]] == expected
    except NotScorable as error:
        assert error.official == SEPARATOR


def test_a_file_named_gz_is_decompressed_like_in_pandas(tmp_path: Path) -> None:
    path = tmp_path / "predict.txt.gz"
    path.write_bytes(gzip.compress(b"t1\td1\n"))
    assert read_two_column(path) == {"t1": ["d1"]}
    path.write_bytes(b"t1\td1\n")
    with pytest.raises(NotScorable, match="not compressed with gzip"):
        read_two_column(path)
    other = put(tmp_path, gzip.compress(b"t1\td1\n"))
    with pytest.raises(NotScorable, match="not UTF-8"):
        read_two_column(other)
