from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.errors import InvalidFiles
from searchapp.formats.problems import Problems
from searchapp.model import Document
from searchapp.tasks.explanation.worldtree import (
    ExplainedQuestion,
    questions_with_explanation,
    read_facts,
    read_knowledge_types,
    read_questions,
    read_table,
    split_options,
)

TABLE = "[FILL] a\tTHING\t[FILL] is\tKIND\t\t[SKIP] COMMENTS\t[SKIP] UID\n"
QUESTIONS = "questionID\tAnswerKey\tQuestion\texplanation\n"


def put(folder: Path, text: str | bytes, name: str = "KINDOF.tsv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def told(problems: Problems) -> list[tuple[str, str]]:
    return [(problem.kind, problem.where) for problem in problems]


def noted(problems: Problems) -> list[tuple[str, str]]:
    return [(problem.kind, problem.where) for problem in problems.notes.problems] if problems.notes else []


def facts(folder: Path) -> tuple[list[Document], Problems]:
    problems = Problems()
    return list(read_facts(folder, problems)), problems


def test_a_fact_is_its_cells_joined_by_one_space_without_those_to_skip(tmp_path: Path) -> None:
    put(tmp_path, TABLE + "a\t oak \tis\t\ta tree\tsee also\tu-1\n\t\tice\tNA\t \t\tGood\n\n")
    put(tmp_path, TABLE + "an\towl\tis\ta bird\t\t\tu-2\n", "A.tsv")
    found, problems = facts(tmp_path)
    assert found == [
        Document("u-2", "an owl is a bird", {"table": "A"}),
        Document("u-1", "a oak is a tree", {"table": "KINDOF"}),
        Document("Good", "ice", {"table": "KINDOF"}),
    ]
    assert not told(problems) and not noted(problems)


def test_a_uid_of_several_rows_is_a_note_and_the_first_row_counts(tmp_path: Path) -> None:
    put(tmp_path, TABLE + "a\tb\tis\tc\t\t\tu\na\tb\tis\tc\t\t\tu\na\td\tis\tc\t\t\tu\n")
    found, problems = facts(tmp_path)
    assert [fact.text for fact in found] == ["a b is c"]
    assert noted(problems) == [("repeated id", "line 3"), ("repeated id", "line 4")]
    assert problems.notes is not None
    assert [note.detail.split(", ")[1] for note in problems.notes.problems] == [
        "with the same text: that row counts",
        "with another text: that row counts",
    ]
    problems.raise_if_any()


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("a\tb\tis\tc\t\t\t\n", "unusable id"),
        ("a\tb\tis\tc\t\t\tu v\n", "unusable id"),
        ("a\tb\tis\tc\t\t\tNA\n", "unusable id"),
        ("\t \t\tNA\t\tx\tu\n", "blank text"),
        ("a\tb\tis\tc\t\tu\n", "wrong number of cells"),
        ("a\tb\tis\tc\t\t\tu\t\n", "wrong number of cells"),
        ("a\tb\tis\tc\t\t\tKNOWN\n", "ids that differ only in letter case"),
    ],
)
def test_a_broken_row_is_told_with_its_line_and_left_out(tmp_path: Path, row: str, kind: str) -> None:
    put(tmp_path, TABLE + "a\tz\tis\tz\t\t\tknown\n" + row)
    found, problems = facts(tmp_path)
    assert [fact.id for fact in found] == ["known"]
    assert told(problems) == [(kind, "line 3")]


@pytest.mark.parametrize(
    ("content", "kind", "where"),
    [
        (b"", "empty file", ""),
        (b"A\tB\nx\ty\n", "missing column", "line 1"),
        (b'A\t[SKIP] UID\n"x\tu\n', "open quote", ""),
        (b"A\t[SKIP] UID\n\xff\tu\n", "not UTF-8", "line 2"),
        (b"A\t[SKIP] UID\nx\0\tu\n", "NUL character", "line 2"),
    ],
)
def test_a_broken_table_is_never_let_pass(tmp_path: Path, content: bytes, kind: str, where: str) -> None:
    put(tmp_path, content)
    problems = Problems(lenient=True)
    assert not list(read_facts(tmp_path, problems))
    assert told(problems) == [(kind, where)]
    with pytest.raises(InvalidFiles):
        problems.raise_if_any()


def test_what_changes_nothing_about_a_file_is_noted(tmp_path: Path) -> None:
    put(tmp_path, "\ufeffA\t[SKIP] UID\r\nx\tu".encode())
    found, problems = facts(tmp_path)
    assert found == [Document("u", "x", {"table": "KINDOF"})]
    kinds = [("byte-order mark", "line 1"), ("CR in a line end", "line 1"), ("no final line end", "line 2")]
    assert noted(problems) == kinds
    assert not told(problems)


def test_a_folder_that_is_missing_or_has_no_tables_is_told(tmp_path: Path) -> None:
    assert told(facts(tmp_path)[1]) == [("no tables", "")]
    assert told(facts(tmp_path / "none")[1]) == [("missing folder", "")]


def test_quoted_cells_are_read_as_pandas_reads_them(tmp_path: Path) -> None:
    path = put(tmp_path, 'A\tB\n"x\t""y"" "z\tb\n')
    table = read_table(path, Problems(), ["A"])
    assert table is not None
    assert [(row.line, row.cells) for row in table.rows] == [(2, ['x\t"y" z', "b"])]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("Why? (A) a (b) (B) c", ("Why?", {"A": "a (b)", "B": "c"})),
        ("Which? (1) one (2) two (3) three", ("Which?", {"1": "one", "2": "two", "3": "three"})),
        ("No options", ("No options", {})),
        ("One (A) only", ("One (A) only", {})),
        ("Gap (A) a (C) c", ("Gap (A) a (C) c", {})),
    ],
)
def test_options_are_split_from_the_question(asked: str, expected: tuple[str, dict[str, str]]) -> None:
    assert split_options(asked) == expected


def questions(
    folder: Path, rows: str, known: set[str] | None = None, header: str = QUESTIONS, **options: bool
) -> tuple[list[ExplainedQuestion], Problems]:
    problems = Problems()
    path = put(folder, header + rows, "dev.tsv")
    return list(read_questions(path, problems, known, **options)), problems


def test_a_question_has_its_right_answer_and_its_explanation(tmp_path: Path) -> None:
    rows = "Q\tB\tHot? (A) ice (B) fire\tu|CENTRAL v|LEXGLUE\nR\tA\tCold? (A) ice (B) fire\t\n"
    (first, second), problems = questions(tmp_path, rows, {"u", "v"})
    assert (first.id, first.text, first.answer) == ("Q", "Hot?", "fire")
    assert first.gold == {"u": ("CENTRAL",), "v": ("LEXGLUE",)}
    assert second.gold == {}  # too special to be explained: that is no problem
    assert not told(problems) and not noted(problems)
    assert questions_with_explanation(tmp_path / "dev.tsv", Problems()) == {"Q": True, "R": False}


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("Q\tC\tHot? (A) ice (B) fire\tu|NE\n", "unknown answer"),
        ("Q\t\tHot? (A) ice (B) fire\tu|NE\n", "unknown answer"),
        ("Q\tA\tHot? (A)(B) fire\tu|NE\n", "no options"),
        ("Q\tA\t(A) ice (B) fire\tu|NE\n", "no options"),
        ("Q\tA\tHot? (A) ice (B) fire\tu\n", "no role"),
        ("Q\tA\tHot? (A) ice (B) fire\tu|CENTER\n", "no role"),
        ("Q\tA\tHot? (A) ice (B) fire\tw|CENTRAL\n", "unknown fact"),
        ("P\tA\tHot? (A) ice (B) fire\tu|NE\n", "duplicate id"),
        ("p\tA\tHot? (A) ice (B) fire\tu|NE\n", "duplicate id"),
        (" \tA\tHot? (A) ice (B) fire\tu|NE\n", "unusable id"),
        ("Q\tA\tHot? (A) ice (B) fire\n", "wrong number of cells"),
    ],
)
def test_a_broken_question_is_told_with_its_line_and_left_out(tmp_path: Path, row: str, kind: str) -> None:
    found, problems = questions(tmp_path, "P\tA\tWet? (A) ice (B) fire\tu|CENTRAL\n" + row, {"u"})
    assert [question.id for question in found] == ["P"]
    ((told_kind, where),) = told(problems)
    assert told_kind == kind and where.startswith("line 3")


@pytest.mark.parametrize("asked", ["Name what is hot.", "Hot? (A) ice"])
def test_a_question_without_options_is_noted_and_asked_alone(tmp_path: Path, asked: str) -> None:
    (question,), problems = questions(tmp_path, f"Q\tfire\t{asked}\tu|NE\n", {"u"})
    assert (question.text, question.answer, question.gold) == (asked, "", {"u": ("NE",)})
    assert noted(problems) == [("no options", "line 2: question Q")] and not told(problems)


def test_the_columns_of_worldtree_2_are_known(tmp_path: Path) -> None:
    header = "QuestionID\tAnswerKey\texplanation\tquestion\n"
    (question,), problems = questions(tmp_path, "Q\tB\tu|NE\tHot? (A) ice (B) fire\n", {"u"}, header)
    assert (question.id, question.text, question.answer, list(question.gold)) == ("Q", "Hot?", "fire", ["u"])
    assert questions_with_explanation(tmp_path / "dev.tsv", problems) == {"Q": True}
    assert not told(problems) and not noted(problems)


def test_masked_questions_may_have_no_column_of_explanations(tmp_path: Path) -> None:
    header, row = "questionID\tAnswerKey\tQuestion\n", "Q\tB\tHot? (A) ice (B) fire\n"
    (question,), problems = questions(tmp_path, row, {"u"}, header, masked=True)
    assert question.gold == {} and not told(problems)
    assert questions_with_explanation(tmp_path / "dev.tsv", problems, masked=True) == {"Q": False}
    assert told(questions(tmp_path, row, {"u"}, header)[1]) == [("missing column", "line 1")]


def test_without_facts_explanations_are_not_looked_at(tmp_path: Path) -> None:
    (question,), problems = questions(tmp_path, "Q\tA\tHot? (A) ice (B) fire\tnonsense\n")
    assert question.gold == {} and not told(problems)


def test_a_fact_named_twice_counts_once_with_all_its_roles(tmp_path: Path) -> None:
    row = "Q\tA\tHot? (A) ice (B) fire\tu|NE u|NE u|CENTRAL\n"
    (question,), problems = questions(tmp_path, row, {"u"})
    assert question.gold == {"u": ("NE", "CENTRAL")}
    assert [kind for kind, _ in noted(problems)] == ["repeated fact", "repeated fact"] and not told(problems)


def test_an_unknown_fact_of_a_solved_question_is_noted(tmp_path: Path) -> None:
    row = "Q\tA\tHot? (A) ice (B) fire\tu|NE w|NE\n"
    (question,), problems = questions(tmp_path, row, {"u"}, training=True)
    assert list(question.gold) == ["u"]
    assert noted(problems) == [("unknown fact", "line 2: question Q")] and not told(problems)


def test_columns_of_one_name_must_agree(tmp_path: Path) -> None:
    header = QUESTIONS.replace("\n", "\tAnswerKey\n")
    rows = "Q\tA\tHot? (A) ice (B) fire\t\tA\nR\tA\tHot? (A) ice (B) fire\t\tB\n"
    found, problems = questions(tmp_path, rows, set(), header)
    assert [question.id for question in found] == ["Q"]
    assert told(problems) == [("contradiction", "line 3")]


def test_the_types_of_tables(tmp_path: Path) -> None:
    problems = Problems()
    path = put(tmp_path, "TABLE\tV2.1\nKINDOF\tRET\nCAUSE\tCOMPLEX\nKINDOF\tRET\nX\tOTHER\n")
    assert read_knowledge_types(path, problems) == {"KINDOF": "RET", "CAUSE": "COMPLEX"}
    assert told(problems) == [("duplicate table", "line 4"), ("unknown type", "line 5")]
    wide = Problems()
    assert read_knowledge_types(put(tmp_path, "TABLE\tA\tB\n"), wide) == {}
    assert told(wide) == [("wrong columns", "line 1")]
