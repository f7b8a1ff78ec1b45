"""Reading of knowledge bases and statements of natural language premise selection."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import InvalidFiles
from searchapp.formats import json_files
from searchapp.formats.problems import Problems
from searchapp.model import Document
from searchapp.tasks.nlps.task import Statement, read_knowledge_base, read_statements
from tests.files import write

BIG = 217373851401385999308586201941246152900


put = partial(write, name="set.json")


def details(problems: Problems) -> list[tuple[str, str, str]]:
    return [(problem.kind, problem.where, problem.detail) for problem in problems]


def statement(text: Any = "Let it be.", premises: Any = ()) -> dict[str, Any]:
    return {"text": text, "premises": list(premises) if isinstance(premises, tuple) else premises}


def test_a_knowledge_base_keeps_order_and_text(tmp_path: Path) -> None:
    path = put(tmp_path, '{"10": "$\\\\mathbb Z$\\n", "2": "\\ud835\\udc00", "x-1": "c"}')
    problems = Problems()
    assert list(read_knowledge_base(path, problems)) == [
        Document("10", "$\\mathbb Z$\n"),
        Document("2", "𝐀"),
        Document("x-1", "c"),
    ]
    assert not list(problems)


def test_large_premise_ids_keep_all_digits_and_repeats_are_dropped(tmp_path: Path) -> None:
    path = put(tmp_path, {"a": statement("A", (BIG, BIG + 1, 7, BIG)), "b": statement("B")})
    problems = Problems()
    assert list(read_statements(path, problems)) == [
        Statement("a", "A", (str(BIG), str(BIG + 1), "7")),
        Statement("b", "B", ()),
    ]
    problems.raise_if_any()


@pytest.mark.parametrize("entry", [{"text": "A"}, {"text": "A", "premises": None}, statement("A")])
def test_masked_premises_are_read_as_none(tmp_path: Path, entry: object) -> None:
    problems = Problems()
    assert list(read_statements(put(tmp_path, {"a": entry}), problems, masked=True)) == [
        Statement("a", "A", None)
    ]
    problems.raise_if_any()


def test_premises_in_a_masked_split_are_read(tmp_path: Path) -> None:
    path = put(tmp_path, {"a": statement("A", (1,))})
    assert list(read_statements(path, Problems(), masked=True)) == [Statement("a", "A", ("1",))]


@pytest.mark.parametrize(
    ("entry", "kind", "detail"),
    [
        ([], "wrong type", "the value is a list, not an object"),
        ({"premises": []}, "missing key", "text: the object has premises"),
        ({"text": "A"}, "missing key", "premises: the object has text"),
        (statement(3), "wrong type", "text is an integer, not a string"),
        (statement(" \n"), "blank text", "text must not be blank"),
        (statement("A", None), "wrong type", "premises is null, not a list"),
        (statement("A", {"1": 2}), "wrong type", "premises is an object, not a list"),
        (statement("A", ("1",)), "wrong type", "a premise is a string, not an integer"),
        (statement("A", (1.0,)), "wrong type", "a premise is a fraction, not an integer"),
        (statement("A", (True,)), "wrong type", "a premise is a boolean, not an integer"),
        (statement("A", (1, 9)), "unknown premise", "9 is not in the knowledge base"),
        (statement("\ud800"), "lone surrogate", "text has an escape that is half of a surrogate pair"),
        (statement("\udc00."), "lone surrogate", "text has an escape that is half of a surrogate pair"),
    ],
)
def test_an_invalid_entry_is_reported_and_the_next_is_read(
    tmp_path: Path, entry: object, kind: str, detail: str
) -> None:
    path = put(tmp_path, {"a": entry, "b": statement("B", (1,))})
    problems = Problems()
    assert [read.id for read in read_statements(path, problems, known={"1"})] == ["b"]
    assert details(problems) == [(kind, "statement a", detail)]


def test_an_integer_with_too_many_digits_is_reported(tmp_path: Path) -> None:
    path = put(tmp_path, '{"a": {"text": "A", "premises": [' + "9" * 5000 + ']}, "b": "c", "d": {"e": {}}}')
    problems = Problems()
    assert list(read_statements(path, problems)) == []
    assert len(problems) == 4
    assert details(problems)[0][2] == "a premise is a number with too many digits, not an integer"


def test_all_problems_of_a_file_are_counted(tmp_path: Path) -> None:
    path = put(
        tmp_path, '{"a": {"text": "", "premises": [true, 5]}, "b": 1, "b": 2, "a b": 3, "": 4, "c\\ud800": 5}'
    )
    problems = Problems()
    assert list(read_statements(path, problems, known=set())) == []
    with pytest.raises(InvalidFiles) as raised:
        problems.raise_if_any()
    assert raised.value.exit_code == 4
    assert raised.value.counts() == {
        "wrong type": 2,
        "unusable id": 2,
        "blank text": 1,
        "unknown premise": 1,
        "duplicate id": 1,
        "lone surrogate": 1,
    }
    assert str(raised.value).encode()


def test_a_repeated_id_keeps_its_first_value(tmp_path: Path) -> None:
    problems = Problems()
    read = list(read_knowledge_base(put(tmp_path, '{"1": "a", "2": "b", "1": "c"}'), problems))
    assert read == [Document("1", "a"), Document("2", "b")]
    assert details(problems) == [("duplicate id", "premise 1", "the first one counts")]


@pytest.mark.parametrize(
    ("content", "kind", "where", "detail"),
    [
        (b"", "empty file", "", "a JSON object is expected"),
        (b"\xef\xbb\xbf \n", "empty file", "", "a JSON object is expected"),
        (b'["a"]', "wrong shape", "", "the file contains a list, not an object"),
        (b'"a"', "wrong shape", "", "the file contains a string, not an object"),
        (b"PK\x03", "not JSON", "line 1 column 1", "expecting value"),
        (b'{\n "1": "a",\n "2" "b"}', "not JSON", "line 3 column 6", "expecting ':' delimiter"),
        (b'{"1": "NaN",\n "2": NaN}', "not JSON", "line 2 column 7", "there is no NaN in JSON"),
        (b'{"1": "a"} {}', "not JSON", "line 1 column 12", "extra data"),
        (b'{"1": 1e99999999999999999999999}', "not JSON", "", "it has a number that is out of range"),
        (
            b'{"1": "a",\n "2": "\xff"}',
            "not UTF-8",
            "line 2",
            "byte 0xff at offset 18 is not valid there; save the file as UTF-8",
        ),
    ],
)
def test_a_file_that_is_not_an_object_has_one_problem(
    tmp_path: Path, content: bytes, kind: str, where: str, detail: str
) -> None:
    problems = Problems(lenient=True)
    list(read_knowledge_base(put(tmp_path, content), problems))
    assert details(problems) == [(kind, where, detail)]
    with pytest.raises(InvalidFiles):
        problems.raise_if_any()


def test_the_offset_of_an_invalid_byte_is_counted_from_the_start_of_the_file(tmp_path: Path) -> None:
    path = put(tmp_path, b'\xef\xbb\xbf{"1": "\xe2\x82\xac",\n "2": "\xe2\x82"}')
    problems = Problems()
    list(read_knowledge_base(path, problems))
    assert details(problems)[0][:2] == ("not UTF-8", "line 2")
    assert f"offset {path.read_bytes().rindex(bytes([0xE2]))} " in details(problems)[0][2]


@given(st.text('{}[]:,"1\n ', max_size=12))
def test_members_and_errors_equal_the_standard_library(
    tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    path = put(tmp_path_factory.mktemp("members"), ('{"a": [1], "b"' + content).encode())
    problems = Problems()
    members = list(json_files.read_members(path, problems))
    try:
        pairs = json.loads(path.read_bytes(), object_pairs_hook=list)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        assert details(problems) == [("not JSON", where, error.msg[:1].lower() + error.msg[1:])]
        assert members[:1] == [("a", [1])] and len(members) <= content.count(":") + 1
    else:
        assert not details(problems)
        assert [key for key, _ in members] == [key for key, _ in pairs]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from(
                ["1", "-1.50", "1e400", "9" * 400, "NaN", '{"a": 1, "a": {"b": 2}}', "[{}]", '"\\ud800"']
            ),
        ),
        max_size=4,
    ),
    st.sampled_from(["", "}", ",", " "]),
)
def test_members_are_the_same_read_at_once_or_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], end: str
) -> None:
    content = ", ".join(f'"{key}": {value}' for key, value in pairs)
    path = put(tmp_path_factory.mktemp("members"), f"{{{content}}}{end}".encode())
    read = []
    for limit in (json_files.READ_AT_ONCE, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_files, "READ_AT_ONCE", limit)
            problems = Problems()
            read.append((list(json_files.read_members(path, problems)), details(problems)))
    assert read[0] == read[1]


def test_the_error_for_a_missing_file_names_it_and_the_folder(tmp_path: Path) -> None:
    problems = Problems(lenient=True)
    assert list(read_knowledge_base(tmp_path / "knowledge_base.json", problems)) == []
    with pytest.raises(InvalidFiles, match="missing file: knowledge_base.json is expected in the folder .*"):
        problems.raise_if_any()


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = put(tmp_path, b'\xef\xbb\xbf{"1": "a"}')
    assert list(read_knowledge_base(path, Problems())) == [Document("1", "a")]


def test_lenient_skips_invalid_entries_and_counts_them(tmp_path: Path) -> None:
    assert Problems(lenient=True).skipped is None
    problems = Problems(lenient=True)
    assert [read.id for read in read_knowledge_base(put(tmp_path, {"1": 1, "2": "b"}), problems)] == ["2"]
    problems.raise_if_any()
    assert problems.skipped is not None
    assert problems.skipped.counts() == {"wrong type": 1}


IDS = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(st.dictionaries(IDS, st.tuples(TEXTS, st.lists(st.integers()))), st.booleans())
def test_written_statements_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, split: dict[str, tuple[str, list[int]]], ascii_only: bool
) -> None:
    path = tmp_path_factory.mktemp("split") / "set.json"
    content = {id_: {"text": text, "premises": premises} for id_, (text, premises) in split.items()}
    path.write_text(json.dumps(content, ensure_ascii=ascii_only), encoding="utf-8")
    problems = Problems()
    assert list(read_statements(path, problems)) == [
        Statement(id_, text, tuple(dict.fromkeys(map(str, premises))))
        for id_, (text, premises) in split.items()
    ]
    problems.raise_if_any()
