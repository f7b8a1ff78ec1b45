"""Reading of type hierarchies."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from searchapp.errors import DataError, InvalidFiles, NotScorable
from searchapp.formats.problems import Problems
from searchapp.tasks.smart_types.scorer_dbpedia import Hierarchy, read_as_scored, read_hierarchy
from tests.files import kinds, write

GOOD = "Type\tDepth\tParent\na:Agent\t1\ta:Thing\na:Person\t2\ta:Agent\na:Poet\t3\ta:Person\n"


put = partial(write, name="types.tsv")


def test_both_readers_agree_on_a_valid_file(tmp_path: Path) -> None:
    problems = Problems()
    path = put(tmp_path, GOOD)
    strict, scored = read_hierarchy(path, problems), read_as_scored(path)
    assert not problems.skipped and len(problems) == 0
    assert strict.paths == scored.paths
    assert scored.paths["a:Poet"] == ("a:Poet", "a:Person", "a:Agent")
    assert strict.greatest_depth == scored.greatest_depth == 3
    assert "a:Thing" not in strict


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("a:Place\t1", "wrong number of columns"),
        ("a:Place\t1\ta:Thing\tmore", "wrong number of columns"),
        ("", "wrong number of columns"),
        ("a:Place\t1\t", "blank or spaced cell"),
        ("a Place\t1\ta:Thing", "blank or spaced cell"),
        ("a:Place\t-1\ta:Thing", "wrong depth"),
        ("a:Place\t٣\ta:Thing", "wrong depth"),
        (f"a:Place\t{'9' * 5000}\ta:Thing", "wrong depth"),
        ("a:Poet\t3\ta:Person", "duplicate type"),
    ],
)
def test_an_invalid_row_is_reported_with_its_line_and_skipped(tmp_path: Path, row: str, kind: str) -> None:
    problems = Problems(lenient=True)
    hierarchy = read_hierarchy(put(tmp_path, GOOD + row + "\n"), problems)
    assert kinds(problems) == [(kind, "line 5")]
    assert len(hierarchy.depths) == 3
    problems.raise_if_any()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a:Place\t2\ta:Thing", "a:Place has depth 2, but its parent a:Thing makes it 1"),
        ("a:Place\t1\tb:Thing", "more than one root: a:Thing, b:Thing"),
    ],
)
def test_contradictory_rows_are_rejected(tmp_path: Path, row: str, message: str) -> None:
    problems = Problems(lenient=True)
    read_hierarchy(put(tmp_path, GOOD + row + "\n"), problems)
    with pytest.raises(InvalidFiles, match=message):
        problems.raise_if_any()


@pytest.mark.parametrize("text", ["", "Type\tDepth\tParent\n", None])
def test_a_file_without_types_is_an_error_also_in_lenient_mode(tmp_path: Path, text: str | None) -> None:
    problems = Problems(lenient=True)
    path = tmp_path / "missing.tsv" if text is None else put(tmp_path, text)
    assert read_hierarchy(path, problems).depths == {}
    with pytest.raises(InvalidFiles):
        problems.raise_if_any()


def test_bytes_that_are_not_utf_8_are_reported(tmp_path: Path) -> None:
    problems = Problems()
    path = tmp_path / "types.tsv"
    path.write_bytes(GOOD.encode() + b"\xff\t1\ta\n")
    read_hierarchy(path, problems)
    assert kinds(problems) == [("not UTF-8", "line 5")]
    with pytest.raises(DataError, match="line 5: byte 0xff"):
        read_as_scored(path)


@pytest.mark.parametrize("header", ["PK\x03Type\tDepth\tParent", "a:Agent\t1\ta:Thing"])
def test_a_wrong_header_row_is_reported(tmp_path: Path, header: str) -> None:
    problems = Problems()
    read_hierarchy(put(tmp_path, "\n".join([header, *GOOD.split("\n")[1:]])), problems)
    assert kinds(problems) == [("wrong header row", "line 1")]


def test_types_in_a_cycle_have_no_path(tmp_path: Path) -> None:
    hierarchy = Hierarchy({"a": 1, "b": 2}, {"a": "b", "b": "a"}, 2)
    assert hierarchy.has_circles()
    with pytest.raises(DataError, match="has a cycle"):
        _ = hierarchy.paths
    assert not read_as_scored(put(tmp_path, GOOD)).has_circles()


def test_the_scorer_uses_the_last_row_of_a_type_and_the_greatest_depth_of_all_rows(tmp_path: Path) -> None:
    hierarchy = read_as_scored(put(tmp_path, GOOD + "a:Poet\t9\ta:Agent\na:Poet\t2\ta:Agent\n"))
    assert hierarchy.paths["a:Poet"] == ("a:Poet", "a:Agent")
    assert (hierarchy.depths["a:Poet"], hierarchy.greatest_depth) == (2, 9)


def test_the_scorer_stops_at_a_depth_that_is_not_an_integer(tmp_path: Path) -> None:
    with pytest.raises(NotScorable) as raised:
        read_as_scored(put(tmp_path, GOOD + "a:Place\tone\ta:Thing\n"))
    assert raised.value.official == "ValueError: invalid literal for int() with base 10: 'one'"
