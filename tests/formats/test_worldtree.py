"""Reading of the facts and questions of WorldTree."""

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
from tests.files import kinds, notes

TABLE = "[FILL] a\tTHING\t[FILL] is\tKIND\t\t[SKIP] COMMENTS\t[SKIP] UID\n"
QUESTIONS = "questionID\tAnswerKey\tQuestion\texplanation\n"


def put(folder: Path, text: str | bytes, name: str = "KINDOF.tsv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def facts(folder: Path) -> tuple[list[Document], Problems]:
    problems = Problems()
    return list(read_facts(folder, problems)), problems


def test_a_fact_is_its_cells_without_the_skipped_columns(tmp_path: Path) -> None:
    put(tmp_path, TABLE + "a\t oak \tis\t\ta tree\tsee also\tu-1\n\t\tice\tNA\t \t\tGood\n\n")
    put(tmp_path, TABLE + "an\towl\tis\ta bird\t\t\tu-2\n", "A.tsv")
    documents, problems = facts(tmp_path)
    assert documents == [
        Document("u-2", "an owl is a bird", {"table": "A"}),
        Document("u-1", "a oak is a tree", {"table": "KINDOF"}),
        Document("Good", "ice", {"table": "KINDOF"}),
    ]
    assert not kinds(problems) and not notes(problems)


def test_the_first_row_of_a_repeated_uid_counts(tmp_path: Path) -> None:
    put(tmp_path, TABLE + "a\tb\tis\tc\t\t\tu\na\tb\tis\tc\t\t\tu\na\td\tis\tc\t\t\tu\n")
    documents, problems = facts(tmp_path)
    assert [fact.text for fact in documents] == ["a b is c"]
    assert notes(problems) == [("repeated id", "line 3"), ("repeated id", "line 4")]
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
def test_an_invalid_row_is_reported_with_its_line_and_skipped(tmp_path: Path, row: str, kind: str) -> None:
    put(tmp_path, TABLE + "a\tz\tis\tz\t\t\tknown\n" + row)
    documents, problems = facts(tmp_path)
    assert [fact.id for fact in documents] == ["known"]
    assert kinds(problems) == [(kind, "line 3")]


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
def test_lenient_mode_rejects_an_invalid_table(tmp_path: Path, content: bytes, kind: str, where: str) -> None:
    put(tmp_path, content)
    problems = Problems(lenient=True)
    assert not list(read_facts(tmp_path, problems))
    assert kinds(problems) == [(kind, where)]
    with pytest.raises(InvalidFiles):
        problems.raise_if_any()


def test_harmless_deviations_are_noted(tmp_path: Path) -> None:
    put(tmp_path, "\ufeffA\t[SKIP] UID\r\nx\tu".encode())
    documents, problems = facts(tmp_path)
    assert documents == [Document("u", "x", {"table": "KINDOF"})]
    deviations = ["byte-order mark", "CR in a line end", "no final line end"]
    assert notes(problems) == list(zip(deviations, ["line 1", "line 1", "line 2"], strict=True))
    assert not kinds(problems)


def test_a_missing_folder_and_a_folder_without_tables_are_reported(tmp_path: Path) -> None:
    assert kinds(facts(tmp_path)[1]) == [("no tables", "")]
    assert kinds(facts(tmp_path / "none")[1]) == [("missing folder", "")]


def test_quoted_cells_are_read_like_in_pandas(tmp_path: Path) -> None:
    path = put(tmp_path, 'A\tB\n"x\t""y"" "z\tb\n')
    table = read_table(path, Problems(), ["A"])
    assert table is not None
    assert [(row.line, row.cells) for row in table.rows] == [(2, ['x\t"y" z', "b"])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Why? (A) a (b) (B) c", ("Why?", {"A": "a (b)", "B": "c"})),
        ("Which? (1) one (2) two (3) three", ("Which?", {"1": "one", "2": "two", "3": "three"})),
        ("No options", ("No options", {})),
        ("One (A) only", ("One (A) only", {})),
        ("Gap (A) a (C) c", ("Gap (A) a (C) c", {})),
    ],
)
def test_options_are_split_from_the_question(text: str, expected: tuple[str, dict[str, str]]) -> None:
    assert split_options(text) == expected


def questions(
    folder: Path, rows: str, known: set[str] | None = None, header: str = QUESTIONS, **options: bool
) -> tuple[list[ExplainedQuestion], Problems]:
    problems = Problems()
    path = put(folder, header + rows, "dev.tsv")
    return list(read_questions(path, problems, known, **options)), problems


def test_a_question_has_its_answer_and_its_explanation(tmp_path: Path) -> None:
    rows = "Q\tB\tHot? (A) ice (B) fire\tu|CENTRAL v|LEXGLUE\nR\tA\tCold? (A) ice (B) fire\t\n"
    (first, second), problems = questions(tmp_path, rows, {"u", "v"})
    assert (first.id, first.text, first.answer) == ("Q", "Hot?", "fire")
    assert first.gold == {"u": ("CENTRAL",), "v": ("LEXGLUE",)}
    assert second.gold == {}  # questions without explanation are valid
    assert not kinds(problems) and not notes(problems)
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
def test_an_invalid_question_is_reported_with_its_line_and_skipped(
    tmp_path: Path, row: str, kind: str
) -> None:
    read, problems = questions(tmp_path, "P\tA\tWet? (A) ice (B) fire\tu|CENTRAL\n" + row, {"u"})
    assert [question.id for question in read] == ["P"]
    ((reported, where),) = kinds(problems)
    assert reported == kind and where.startswith("line 3")


@pytest.mark.parametrize("text", ["Name what is hot.", "Hot? (A) ice"])
def test_a_question_without_options_is_noted_and_has_no_answer(tmp_path: Path, text: str) -> None:
    (question,), problems = questions(tmp_path, f"Q\tfire\t{text}\tu|NE\n", {"u"})
    assert (question.text, question.answer, question.gold) == (text, "", {"u": ("NE",)})
    assert notes(problems) == [("no options", "line 2: question Q")] and not kinds(problems)


def test_the_columns_of_worldtree_2_are_read(tmp_path: Path) -> None:
    header = "QuestionID\tAnswerKey\texplanation\tquestion\n"
    (question,), problems = questions(tmp_path, "Q\tB\tu|NE\tHot? (A) ice (B) fire\n", {"u"}, header)
    assert (question.id, question.text, question.answer, list(question.gold)) == ("Q", "Hot?", "fire", ["u"])
    assert questions_with_explanation(tmp_path / "dev.tsv", problems) == {"Q": True}
    assert not kinds(problems) and not notes(problems)


def test_masked_questions_need_no_column_of_explanations(tmp_path: Path) -> None:
    header, row = "questionID\tAnswerKey\tQuestion\n", "Q\tB\tHot? (A) ice (B) fire\n"
    (question,), problems = questions(tmp_path, row, {"u"}, header, masked=True)
    assert question.gold == {} and not kinds(problems)
    assert questions_with_explanation(tmp_path / "dev.tsv", problems, masked=True) == {"Q": False}
    assert kinds(questions(tmp_path, row, {"u"}, header)[1]) == [("missing column", "line 1")]


def test_explanations_are_not_read_without_facts(tmp_path: Path) -> None:
    (question,), problems = questions(tmp_path, "Q\tA\tHot? (A) ice (B) fire\tnonsense\n")
    assert question.gold == {} and not kinds(problems)


def test_a_repeated_fact_counts_once_with_all_its_roles(tmp_path: Path) -> None:
    row = "Q\tA\tHot? (A) ice (B) fire\tu|NE u|NE u|CENTRAL\n"
    (question,), problems = questions(tmp_path, row, {"u"})
    assert question.gold == {"u": ("NE", "CENTRAL")}
    assert [kind for kind, _ in notes(problems)] == ["repeated fact", "repeated fact"] and not kinds(problems)


def test_an_unknown_fact_of_a_training_question_is_noted(tmp_path: Path) -> None:
    row = "Q\tA\tHot? (A) ice (B) fire\tu|NE w|NE\n"
    (question,), problems = questions(tmp_path, row, {"u"}, training=True)
    assert list(question.gold) == ["u"]
    assert notes(problems) == [("unknown fact", "line 2: question Q")] and not kinds(problems)


def test_columns_of_the_same_name_must_have_equal_values(tmp_path: Path) -> None:
    header = QUESTIONS.replace("\n", "\tAnswerKey\n")
    rows = "Q\tA\tHot? (A) ice (B) fire\t\tA\nR\tA\tHot? (A) ice (B) fire\t\tB\n"
    read, problems = questions(tmp_path, rows, set(), header)
    assert [question.id for question in read] == ["Q"]
    assert kinds(problems) == [("contradiction", "line 3")]


def test_knowledge_types_of_tables(tmp_path: Path) -> None:
    problems = Problems()
    path = put(tmp_path, "TABLE\tV2.1\nKINDOF\tRET\nCAUSE\tCOMPLEX\nKINDOF\tRET\nX\tOTHER\n")
    assert read_knowledge_types(path, problems) == {"KINDOF": "RET", "CAUSE": "COMPLEX"}
    assert kinds(problems) == [("duplicate table", "line 4"), ("unknown type", "line 5")]
    problems = Problems()
    assert read_knowledge_types(put(tmp_path, "TABLE\tA\tB\n"), problems) == {}
    assert kinds(problems) == [("wrong columns", "line 1")]
