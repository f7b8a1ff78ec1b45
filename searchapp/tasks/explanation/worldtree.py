"""The files of the WorldTree corpus: tables of facts, explained questions, ratings, knowledge types.

Tables and questions have the layout of TextGraphs-13, with a header and cells as in `formats.two_column`:

    tables/KINDOF.tsv                     one fact a row: its text is the cells of all columns except those whose
                                          name begins with `[SKIP]`
    questions/ARC-Elementary+EXPL-Dev.tsv one question a row, with its options in the text
                                          (`... (A) a stone (B) a leaf`), the label of the right one, and the
                                          explanation: `6abc-4443-f672-9a97|CENTRAL a1a9-97db-a771-1c2b|GROUNDING`

Every problem is reported, and a row with a problem is skipped. Some irregularities of the published files are only
notes:

- a UID in several rows: a ranking can contain it only once, so the first row is its fact; - a fact twice in an
explanation, also in two roles: it counts once; - an unknown fact in an explanation of a training topic: the other
facts count; - a question without options: its text alone is the query; - a byte-order mark, line ends other than LF,
and a last line without a line end.

Questions without an explanation are ranked and never scored. In a masked file the explanations or their column are
missing.

The ratings of TextGraphs-15 say how relevant facts are to a question and its right answer, from 0 to 6:

    {"rankingProblems": [
      {"qid": "Q1", "queryText": "What is hot? [ANSWER] fire",
       "questionText": "What is hot?", "answerText": "fire",
       "documents": [{"uuid": "6abc-4443-f672-9a97", "relevance": 6, "goldRole": "CENTRAL"}, ...]}, ...]}

`questionText` and `answerText` may be missing: `queryText` has both. In a masked file, `documents` is missing, null
or empty.

The file of knowledge types has a header and one table a row, with its type: RET (retrieval), INSUPP
(inference-supporting) or COMPLEX (complex inference).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from searchapp import resources
from searchapp.errors import NotScorable
from searchapp.formats import json_files, two_column
from searchapp.formats.encoding import read_utf8
from searchapp.formats.problems import EntryProblems, Problems, shown, unusable_id
from searchapp.formats.two_column import MISSING
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.lucene.analysis import Analyzer

# The index mapping of facts.
MAPPING = "facts"


def content_words(text: str) -> frozenset[str]:
    """Return the terms of a text, analyzed as facts are, for lexical overlap."""
    return frozenset(term for term, _position in _analyzer().terms(text))


@cache
def _analyzer() -> Analyzer:
    from searchapp.lucene.analysis import AnalysisRegistry

    return AnalysisRegistry(resources.index_mapping(MAPPING)["settings"]["analysis"]).analyzer("fact")


class TableRow(EntryProblems):
    """A row with as many cells as the header."""

    def __init__(
        self, path: Path, line: int, columns: Sequence[str], cells: list[str], problems: Problems
    ) -> None:
        super().__init__(path, f"line {line}", problems)
        self.line = line
        self.cells = cells
        self._columns = columns

    def cell(self, name: str) -> str:
        """Return the cell of a column; report different values in columns of the same name."""
        cells = {cell for column, cell in zip(self._columns, self.cells, strict=True) if column == name}
        if len(cells) > 1:
            self.wrong("contradiction", f"columns with the name {name!r} have different values")
        return cells.pop()


class WorldTreeTable(NamedTuple):
    """A table without its blank lines."""

    columns: list[str]
    rows: list[TableRow]


def read_table(
    path: Path,
    problems: Problems,
    required: Sequence[str],
    spellings: Mapping[str, Sequence[str]] | None = None,
) -> WorldTreeTable | None:
    """Read a table with the `required` columns; None, with a problem, if it is unusable.

    A row with more or fewer cells than the header is skipped. `spellings` has alternative names of columns.
    """
    text = _table_text(path, problems)
    if text is None:
        return None
    try:
        rows = [(line, cells) for line, _row, cells in two_column.split_cells(text, path)]
    except NotScorable as error:
        problems.add(path, "open quote", detail=error.problem.removeprefix(f"{path}: "), skippable=False)
        return None
    if not rows:
        problems.add(path, "empty file", detail="a header line is expected", skippable=False)
        return None
    header_line, header = rows.pop(0)
    renamed = {
        next((spelling for spelling in names if spelling in header), column): column
        for column, names in (spellings or {}).items()
    }
    columns = [renamed.get(column, column) for column in header]
    missing = [name for name in required if name not in columns]
    for name in missing:
        detail = f"the header has no {name!r}"
        problems.add(path, "missing column", f"line {header_line}", detail, skippable=False)
    if missing:
        return None
    table = WorldTreeTable(columns, [])
    for line, cells in rows:
        row = TableRow(path, line, columns, cells, problems)
        if len(cells) == len(columns):
            table.rows.append(row)
        else:
            expected = f"but {len(columns)} in the header: separate cells by tabs"
            row.wrong("wrong number of cells", f"{counted(len(cells), 'cell')}, {expected}")
    return table


def _table_text(path: Path, problems: Problems) -> str | None:
    text = read_utf8(path, problems)
    if text is None:
        return None
    if "\0" in text:
        problems.add(path, "NUL character", _line_of(text, "\0"), "a text file is expected", skippable=False)
        return None
    if text.startswith("\ufeff"):
        problems.note(path, "byte-order mark", "line 1", "it is ignored")
        text = text[1:]
    if "\r" in text:
        problems.note(path, "CR in a line end", _line_of(text, "\r"), "it is read as a line end")
    if text and not text.endswith(("\n", "\r")):
        detail = "the last line has no line end; make sure that the file is complete"
        problems.note(path, "no final line end", f"line {text.count(chr(10)) + 1}", detail)
    return text


def _line_of(text: str, character: str) -> str:
    return f"line {text.count(chr(10), 0, text.index(character)) + 1}"


FILE = "WorldTree-V2.1-TableKnowledgeTypes.tsv"
TYPES = ("RET", "INSUPP", "COMPLEX")


def read_knowledge_types(path: Path, problems: Problems) -> dict[str, str]:
    """Return the knowledge type of each table, by the table's name."""
    table = read_table(path, problems, ["TABLE"])
    types: dict[str, str] = {}
    if table is None:
        return types
    if len(table.columns) != 2:
        detail = f"the header has {counted(len(table.columns), 'column')}: expected TABLE and its type"
        problems.add(path, "wrong columns", "line 1", detail, skippable=False)
        return types
    for row in table.rows:
        name, type_ = (cell.strip() for cell in row.cells)
        if type_ not in TYPES:
            row.wrong("unknown type", f"{shown(type_)!r} is not one of {' '.join(TYPES)}")
        elif name in types:
            row.wrong("duplicate table", f"{shown(name)} is also in an earlier line")
        else:
            types[name] = type_
    return types


UID = "[SKIP] UID"
# The roles of facts in explanations; the last three are rare.
ROLES = ("CENTRAL", "GROUNDING", "LEXGLUE", "BACKGROUND", "ROLE", "NEG", "NE")

# The columns of questions, as TextGraphs-13 names them.
QUESTION_ID, ASKED, ANSWER, EXPLANATION = "questionID", "Question", "AnswerKey", "explanation"

# Column names that differ between WorldTree 1 and WorldTree 2.
SPELLINGS = {QUESTION_ID: (QUESTION_ID, "QuestionID"), ASKED: (ASKED, "question")}

_MARKER = re.compile(r"\(([A-Z]|[1-9])\)")
_ID = re.compile(r"[^\s\0]{1,512}")


@dataclass(frozen=True, slots=True)
class ExplainedQuestion:
    """A multiple-choice question."""

    id: str
    text: str
    # All options by label.
    options: dict[str, str]
    answer_label: str
    # Each fact of the explanation with its roles.
    gold: dict[str, tuple[str, ...]]

    @property
    def answer(self) -> str:
        """The text of the right option; empty without options."""
        return self.options.get(self.answer_label, "")


def table_files(folder: Path) -> list[Path]:
    """Return the tables in a folder, in reading order."""
    return sorted(folder.glob("*.tsv"), key=lambda path: path.name.encode())


def read_facts(folder: Path, problems: Problems) -> Iterator[Document]:
    """Read the facts of all tables in a folder; the field `table` has the table's name."""
    files = table_files(folder)
    if not files:
        kind = "no tables" if folder.is_dir() else "missing folder"
        problems.add(folder, kind, detail="it must contain the tables of facts, *.tsv", skippable=False)
    seen: dict[str, tuple[str, str, str]] = {}
    for path in files:
        table = read_table(path, problems, [UID])
        if table is None:
            continue
        texts = [index for index, name in enumerate(table.columns) if not name.startswith("[SKIP]")]
        for row in table.rows:
            uid = row.cell(UID)
            if not row.good:
                continue
            if not usable_id(uid):
                row.wrong(
                    "unusable id", f"{shown(uid)!r} in the column {UID!r}: expected an id without white space"
                )
                continue
            text = " ".join(cell for index in texts if (cell := row.cells[index].strip()) not in MISSING)
            if not text:
                row.wrong("blank text", f"fact {shown(uid)} has no cell with text")
            elif _is_new_fact(row, uid, text, seen):
                yield Document(uid, text, {"table": path.stem})


def _is_new_fact(row: TableRow, id_: str, text: str, seen: dict[str, tuple[str, str, str]]) -> bool:
    """Return whether a fact's id is new, and report it otherwise.

    `seen` has id, place and text of earlier facts by lower-cased id, because the scorers ignore letter case.
    """
    location = f"{Path(row.path).name} {row.where}"
    first_seen = seen.setdefault(id_.lower(), (id_, location, text))
    if first_seen[1] == location:
        return True
    other_id, location, earlier_text = first_seen
    if other_id != id_:
        detail = f"fact {shown(id_)} and {shown(other_id)} in {location} differ only in letter case"
        row.wrong("ids that differ only in letter case", detail)
    else:
        which = "the same text" if text == earlier_text else "another text"
        row.note("repeated id", f"fact {shown(id_)} is also in {location}, with {which}: that row counts")
    return False


def read_questions(
    path: Path,
    problems: Problems,
    known: Container[str] | None = None,
    *,
    training: bool = False,
    masked: bool = False,
) -> Iterator[ExplainedQuestion]:
    """Read the questions of a file, in order.

    Facts of explanations must be among `known`; without it, `gold` stays empty. With `training`, unknown facts are only
    notes. With `masked`, the column of explanations may be missing.
    """
    table = _question_table(path, problems, [QUESTION_ID, ASKED, ANSWER], masked=masked)
    if table is None:
        return
    seen: dict[str, int] = {}
    for row in table.rows:
        question = _question(row, known, training)
        if question is None:
            continue
        first = seen.setdefault(question.id.lower(), row.line)
        if first != row.line:
            row.where = f"line {row.line}"
            row.wrong(
                "duplicate id", f"{shown(question.id)} is also in line {first} (letter case does not count)"
            )
        else:
            yield question


def _question_table(
    path: Path, problems: Problems, columns: list[str], *, masked: bool
) -> WorldTreeTable | None:
    """Read a table of questions with the column names of WorldTree 1; missing explanations are empty."""
    needed = columns if masked else [*columns, EXPLANATION]
    table = read_table(path, problems, needed, SPELLINGS)
    if table is None or EXPLANATION in table.columns:
        return table
    columns = [*table.columns, EXPLANATION]
    rows = [TableRow(path, row.line, columns, [*row.cells, ""], problems) for row in table.rows]
    return WorldTreeTable(columns, rows)


def _question(row: TableRow, known: Container[str] | None, training: bool) -> ExplainedQuestion | None:
    id_, question, label, explanation = map(row.cell, (QUESTION_ID, ASKED, ANSWER, EXPLANATION))
    if not row.good:
        return None
    if not usable_id(id_):
        detail = f"{shown(id_)!r} in the column {QUESTION_ID!r}: expected an id without white space"
        row.wrong("unusable id", detail)
        return None
    row.where += f": question {shown(id_)}"
    text, options = split_options(question)
    label = label.strip()
    if not text or not all(options.values()):
        row.wrong(
            "no options", f"the column {ASKED!r} must have a text and then its options: ... (A) ... (B) ..."
        )
    elif options and label not in options:
        detail = f"the right answer is {shown(label)!r}, but the options are {' '.join(options)}"
        row.wrong("unknown answer", detail)
    elif not options:
        row.note("no options", "no options such as ... (A) ... (B) ...: only the text is the query")
    gold = {} if known is None else _explanation(row, explanation, known, training)
    return ExplainedQuestion(id_, text, options, label, gold) if row.good else None


def _explanation(
    row: TableRow, explanation: str, known: Container[str], training: bool
) -> dict[str, tuple[str, ...]]:
    roles: dict[str, tuple[str, ...]] = {}
    for item in explanation.split():
        uid, bar, role = item.partition("|")
        if not bar or not uid or role not in ROLES:
            row.wrong(
                "no role", f"{shown(item)!r} must be a fact, a bar and one of the roles {' '.join(ROLES)}"
            )
        elif uid not in known and training:
            row.note("unknown fact", f"no table has the fact {shown(uid)}: it is ignored")
        elif uid not in known:
            row.wrong("unknown fact", f"no table has the fact {shown(uid)}")
        elif uid in roles:
            row.note("repeated fact", f"{shown(uid)}: it counts once")
            roles[uid] = tuple(dict.fromkeys((*roles[uid], role)))
        else:
            roles[uid] = (role,)
    return roles


def read_options(path: Path, problems: Problems) -> dict[str, tuple[dict[str, str], str]]:
    """Read the options of questions in a WorldTree 2 table, and the right label, by question id.

    The table may be missing. The options are only displayed, so problems are only notes.
    """
    if not path.is_file():
        return {}
    table_problems = Problems()
    columns = ("QuestionID", "question", "AnswerKey")
    table = read_table(path, table_problems, columns)
    for problem in table_problems:
        problems.note(path, problem.kind, problem.where, problem.detail)
    if table is None:
        return {}
    id_, question, label = map(table.columns.index, columns)
    result = {}
    for row in table.rows:
        options, right = split_options(row.cells[question])[1], row.cells[label].strip()
        if right in options:
            result[row.cells[id_].strip()] = options, right
    return result


def split_options(question: str) -> tuple[str, dict[str, str]]:
    """Split a question into its text and options by label, which must be A, B, ... or 1, 2, ...

    >>> split_options("What is hot? (A) ice (B) fire")
    ('What is hot?', {'A': 'ice', 'B': 'fire'})
    """
    markers = list(_MARKER.finditer(question))
    labels = [marker[1] for marker in markers]
    if "".join(labels) not in ("ABCDEFGHI"[: len(labels)], "123456789"[: len(labels)]) or len(labels) < 2:
        return question.strip(), {}
    ends = [marker.start() for marker in markers[1:]] + [len(question)]
    options = {
        marker[1]: question[marker.end() : end].strip() for marker, end in zip(markers, ends, strict=True)
    }
    return question[: markers[0].start()].strip(), options


def usable_id(id_: str) -> bool:
    """Return whether run files and the two-column file can contain an id."""
    return (
        bool(_ID.fullmatch(id_))
        and unusable_id(id_) is None
        and id_ not in MISSING
        and id_[0] not in '"\ufeff'
    )


def questions_with_explanation(path: Path, problems: Problems, *, masked: bool = False) -> dict[str, bool]:
    """Return whether each question of a file has an explanation, by question id; no other checks."""
    table = _question_table(path, problems, [QUESTION_ID], masked=masked)
    if table is None:
        return {}
    question, explanation = table.columns.index(QUESTION_ID), table.columns.index(EXPLANATION)
    return {row.cells[question]: bool(row.cells[explanation].strip()) for row in table.rows}


PROBLEMS = "rankingProblems"
MAX_RATING = 6
ANSWER_MARKER = "[ANSWER]"


@dataclass(frozen=True, slots=True)
class RatedQuestion:
    """A question with its right answer, and the ratings of facts."""

    id: str
    text: str
    answer: str
    ratings: dict[str, float]


def read_ratings(
    path: Path,
    problems: Problems,
    known: Container[str] | None = None,
    *,
    masked: bool = False,
    training: bool = False,
) -> Iterator[RatedQuestion]:
    """Read the questions of a file, in order.

    Rated facts must be among `known`; without it, ratings stay empty. With `masked`, questions may lack ratings. With
    `training`, unknown facts are only notes.
    """
    seen: set[str] = set()
    has_list, problems_before = False, len(problems)
    keys: list[str] = []
    for key, value in json_files.read_members(path, problems):
        keys.append(key)
        if key != PROBLEMS:
            continue
        if has_list:
            problems.add(path, "duplicate key", PROBLEMS, "the file has several lists: merge them")
        has_list = True
        if not isinstance(value, list):
            detail = f"{PROBLEMS} is {json_files.type_name(value)}, not a list"
            problems.add(path, "wrong type", "", detail, skippable=False)
            continue
        for number, entry in enumerate(value, 1):
            reader = _RatingsReader(path, f"entry {number}", entry, problems)
            question = reader.question(known, masked, training)
            if question is None:
                continue
            if question.id in seen:
                reader.wrong("duplicate id", "an earlier question has the same qid")
                continue
            seen.add(question.id)
            yield question
    if not has_list and len(problems) == problems_before:
        problems.add_missing(path, PROBLEMS, "", keys, skippable=False)


class _RatingsReader(json_files.EntryReader):
    def question(self, known: Container[str] | None, masked: bool, training: bool) -> RatedQuestion | None:
        if not self.is_object("it"):
            return None
        id_ = self._text(self.value, "qid")
        if not self.good:
            return None
        if not usable_id(id_):
            self.wrong("unusable id", f"{shown(id_)!r} as qid: expected an id without white space")
            return None
        self.where = f"question {shown(id_)}"
        text, answer = self._question_and_answer()
        ratings = {} if known is None else self._ratings(known, masked, training)
        return RatedQuestion(id_, text, answer, ratings) if self.good else None

    def _text(self, holder: dict[str, Any], key: str, *, may_be_blank: bool = False) -> str:
        if key not in holder:
            self.lacks(key, holder)
        elif not isinstance(holder[key], str):
            self.wrong("wrong type", f"{key} is {json_files.type_name(holder[key])}, not a string")
        elif not holder[key].strip() and not may_be_blank:
            self.wrong("blank text", f"{key} must not be blank")
        else:
            return str(holder[key]).strip()
        return ""

    def _question_and_answer(self) -> tuple[str, str]:
        if "questionText" not in self.value and "answerText" not in self.value:
            both = self._text(self.value, "queryText")
            text, marker, answer = (part.strip() for part in both.rpartition(ANSWER_MARKER))
            if self.good and not (text and marker):
                self.wrong(
                    "no answer", f"queryText must be the question, {ANSWER_MARKER} and the right answer"
                )
        else:
            text = self._text(self.value, "questionText")
            answer = self._text(self.value, "answerText", may_be_blank=True)
            both = self._text(self.value, "queryText") if "queryText" in self.value else ""
            if self.good and both and both.split() != [*text.split(), ANSWER_MARKER, *answer.split()]:
                self.wrong("contradiction", f"queryText must be questionText, {ANSWER_MARKER} and answerText")
        if self.good and not answer:
            self.note("no answer", "only the question is the query")
        return text, answer

    def _ratings(self, known: Container[str], masked: bool, training: bool) -> dict[str, float]:
        documents = self.value.get("documents")
        if masked and not documents:
            return {}
        if "documents" not in self.value:
            self.lacks("documents", self.value)
            return {}
        if not isinstance(documents, list):
            self.wrong("wrong type", "documents is not a list")
            return {}
        ratings: dict[str, float] = {}
        for document in documents:
            if not isinstance(document, dict):
                self.wrong("wrong type", f"a document is {json_files.type_name(document)}, not an object")
                continue
            uid = self._text(document, "uuid")
            if not uid:
                continue
            rating = self._rating(uid, document)
            if uid not in known:
                if training:
                    self.note("unknown fact", f"no table has the fact {shown(uid)}: it is ignored")
                else:
                    self.wrong("unknown fact", f"no table has the fact {shown(uid)}")
            elif uid in ratings:
                self.wrong("duplicate rating", f"fact {shown(uid)} is rated twice")
            elif rating is not None:
                ratings[uid] = rating
        return ratings

    def _rating(self, uid: str, document: dict[str, Any]) -> float | None:
        if "relevance" not in document:
            self.lacks("relevance", document, f": fact {shown(uid)}")
            return None
        rating = document["relevance"]
        if not isinstance(rating, int | float | Decimal) or isinstance(rating, bool):
            named = json_files.type_name(rating)
            self.wrong("wrong type", f"fact {shown(uid)}: relevance is {named}, not a number")
        elif not 0 <= rating <= MAX_RATING:
            self.wrong("rating out of range", f"fact {shown(uid)}: {rating} is not from 0 to {MAX_RATING}")
        else:
            return float(rating)
        return None
