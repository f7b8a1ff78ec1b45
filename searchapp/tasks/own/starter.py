"""Writes a task file for a user to start with, and detects the columns of the user's files."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from searchapp.errors import UsageError
from searchapp.formats import records
from searchapp.formats.encoding import foreign_kind, open_unpacked
from searchapp.formats.problems import Problems
from searchapp.formats.records import Unsupported
from searchapp.lucene.dataclass import dataclass
from searchapp.tasks.own import task_file
from searchapp.tasks.own.task_file import GradeLayout
from searchapp.text import counted

LENIENT = "--lenient leaves these entries out"

# How many rows are read.
SAMPLE_ROWS = 100

# The longest column name, in characters and words: a longer cell is a text.
MAX_NAME_LENGTH, MAX_NAME_WORDS = 60, 5

# The highest grade in a generated task file.
MAX_GRADE = 20

# Common names of columns; the first one that a file has is used.
IDS = (
    "id", "_id", "docid", "doc_id", "docno", "document_id", "did", "pid", "qid", "query_id", "topic_id", "uid"
)  # fmt: skip
TEXTS = ("text", "contents", "content", "body", "question", "query", "topic", "sentence", "abstract", "title")
TITLES = ("title", "headline")
TOPICS = ("topic", "topic_id", "query", "query_id", "query-id", "qid", "question", "question_id")
DOCUMENTS = ("document", "document_id", "doc_id", "docid", "docno", "corpus-id", "doc", "pid")
GRADES = ("grade", "relevance", "rel", "score", "label")

NAMES = frozenset((*IDS, *TEXTS, *TOPICS, *DOCUMENTS, *GRADES))

# The columns of gold without a header line, by their number; TREC qrels have four.
GOLD_COLUMNS = {
    2: ("topic", "document"),
    3: ("topic", "document", "grade"),
    4: ("topic", "iteration", "document", "grade"),
}

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
QRELS_LINE = re.compile(r"\S+\s+\S+\s+\S+\s+[+-]?\d+\s*")
_JSON = re.compile(r"\s*\{")


def detect_format(path: Path, *, with_qrels: bool = False) -> str | None:
    """Detect the format of a file from its first line and its name; None if neither shows it.

    Raises:
        Unsupported: the file is not text, or a table with other separators.
        OSError: the file can't be read.
    """
    by_name = task_file.format_of(path) if with_qrels else records.format_of(path)
    if by_name == records.PARQUET:
        return by_name
    with open_unpacked(path) as file:
        if foreign := foreign_kind(file.head):
            raise Unsupported(str(foreign))
        text = file.head.decode(errors="replace").removeprefix("\ufeff")
    lines = [line for line in text.splitlines() if line.strip()]
    first = lines[0] if lines else ""
    if _JSON.match(first):
        return "jsonl"
    if with_qrels and by_name in (None, task_file.TREC) and QRELS_LINE.fullmatch(first):
        return task_file.TREC
    return _table_format(lines, by_name) if by_name in (None, *records.SEPARATORS) else by_name


def _table_format(lines: Sequence[str], by_name: str | None) -> str | None:
    """Return the format of a table by its name, unless only another format splits its lines."""
    separators = {"tsv": "\t", "csv": ","}
    if not lines or (by_name is not None and separators[by_name] in lines[0]):
        return by_name
    complete = lines[:-1] or lines  # the last line may be cut
    for name, separator in separators.items():
        if all(separator in line for line in complete):
            return name
    if other_separator := records.other_separator([lines[0]], by_name or "csv"):
        raise Unsupported(f"its cells are separated by {other_separator[0]}: {other_separator[1]}")
    return by_name


def detect_header(path: Path, format_: str) -> tuple[bool, str, list[list[str]]]:
    """Return whether a table's first row names its columns, the reason as a clause, and the first rows.

    Raises:
        Unsupported: the file is not text, or a table with other separators.
        OSError: the file can't be read.
    """
    rows = list(itertools.islice(records.read_rows(path, format_), SAMPLE_ROWS))
    return *(_is_header(rows[0], rows[1:]) if rows else (True, "it is empty")), rows


def _is_header(first_row: Sequence[str], other_rows: Sequence[Sequence[str]]) -> tuple[bool, str]:
    columns = [[row[index] for row in other_rows if index < len(row)] for index in range(len(first_row))]
    for cell in first_row:
        if cell.strip().lower() in NAMES:
            return True, f"the first line has {cell.strip()!r}"
    for cell in first_row:
        if _NUMBER.fullmatch(cell.strip()):
            return False, f"the first line has the number {cell.strip()}"
        if len(cell) > MAX_NAME_LENGTH or len(cell.split()) > MAX_NAME_WORDS:
            return False, "the first line has a text"
    for cell, values in zip(first_row, columns, strict=True):
        if values and all(_NUMBER.fullmatch(value.strip()) for value in values):
            return True, f"below {cell.strip()!r} there are numbers"
    for cell, values in zip(first_row, columns, strict=True):
        kinds = _character_kinds(cell)
        if "9" in kinds and values and all(_character_kinds(value) == kinds for value in values):
            return False, f"{cell.strip()!r} looks like what is below it"
    return True, "no cell of the first line looks like a value"


def _character_kinds(cell: str) -> str:
    """Return the kinds of characters in a cell: `doc-17` and `doc-4` have the same shape."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", cell.strip()))


@dataclass(frozen=True, slots=True)
class DetectedFile:
    """The detected format, columns or keys, and first records of a file."""

    path: Path
    format: str
    columns: tuple[str, ...]
    records: tuple[Mapping[str, Any], ...]
    # Whether the first row of a table names the columns; otherwise the names are generated.
    header: bool = True
    # The detected header, as a sentence; None if the user has stated it.
    assumed: str | None = None
    # The columns that become fields; with a title among them, it is also a part of the text.
    fields: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...] | None:
        """The columns that the task file must list; None if the data file names them."""
        return None if self.header else self.columns

    @property
    def stated_format(self) -> str | None:
        """The format that the task file must state; None if the data file's name shows it."""
        return None if task_file.format_of(self.path) == self.format else self.format


def detect(
    path: Path, *, gold: bool = False, header: bool | None = None, lenient: bool = False
) -> DetectedFile:
    """Detect the layout of a file of documents, topics or grades.

    `header` is whether tables have a header line; None detects it. With `lenient`, problems of single entries do not
    matter.

    Raises:
        UsageError: neither name nor content shows the format.
        InvalidFiles: the file is missing or unreadable, or its beginning does not have the format.
    """
    problems = Problems(lenient=lenient)
    try:
        format_ = detect_format(path, with_qrels=gold)
        if format_ is None:
            suffixes = " or ".join(records.FORMATS.values())
            raise UsageError(f"{path} has an unknown suffix: give it a name that ends in {suffixes}")
        if format_ == task_file.TREC:
            return DetectedFile(path, format_, (), ())
        names, assumed = None, None
        if format_ in records.SEPARATORS:
            has_header, reason, rows = detect_header(path, format_)
            if not (has_header if header is None else header):
                names = _column_names(rows, gold=gold)
            if header is None and rows:
                assumed = _assumption(path, reason, names)
    except Unsupported as error:
        problems.add(path, "unsupported file", detail=str(error), skippable=False)
    except OSError as error:
        problems.add_unopened(path, error)
    problems.raise_if_any()
    assert format_ is not None
    records_read = records.read_records(path, format_, problems, columns=names)
    first_records = tuple(record.values for record in itertools.islice(records_read, SAMPLE_ROWS))
    problems.raise_if_any()
    columns = tuple(dict.fromkeys(itertools.chain.from_iterable(first_records)))
    return DetectedFile(path, format_, columns, first_records, names is None, assumed)


def _assumption(path: Path, reason: str, names: Sequence[str] | None) -> str:
    if names is None:
        return f"{path}: its first line seems to be a header ({reason}); if not, use --no-header"
    assumption = f"it seems to have no header line ({reason}); if it has one, use --header"
    return f"{path}: {assumption}; its columns are named {', '.join(names)}"


def _column_names(rows: Sequence[Sequence[str]], *, gold: bool) -> list[str]:
    width = len(rows[0]) if rows else 0
    if gold and width in GOLD_COLUMNS:
        return list(GOLD_COLUMNS[width])
    names = [f"column{number}" for number in range(1, width + 1)]
    columns = [[row[index] for row in rows if index < len(row)] for index in range(width)]
    ids = [
        index
        for index, cells in enumerate(columns)
        if len(set(cells)) == len(cells) and all(cell.split() == [cell] for cell in cells)
    ]
    id_ = ids[0] if ids else 0
    other_columns = [index for index in range(width) if index != id_]
    if other_columns:
        names[max(other_columns, key=lambda index: sum(map(len, columns[index])))] = "text"
    if names:
        names[id_] = "id"
    return names


# Names of text fields that seldom have words to search.
_NO_TEXTS = re.compile(
    r"(^|[._-])(id|ids|uuid|url|uri|link|slug|email|phone|lang|language|path|hash)$", re.IGNORECASE
)

MOST_TEXT_FIELDS = 5


@dataclass(frozen=True, slots=True)
class IndexedDocuments:
    """An index of another program that has the documents of a task, its mapping, and the file of that."""

    index: str
    mapping_file: str
    mapping: Mapping[str, Any]

    def table(self) -> str:
        """Return the table [documents] of a task file, with proposed fields.

        Raises:
            UsageError: the mapping has no text field.
        """
        properties = self.mapping["mappings"]["properties"]
        texts, keywords = task_file.texts_and_keywords(properties)
        if not texts:
            raise UsageError(
                f"{self.index} has no text field outside of nested documents, so it can't be searched"
            )
        chosen = _text_choice(texts)
        id_ = next((name for name in keywords if name.lower() in IDS), None)
        others = [name for name in properties if name not in (*chosen, id_, "id", "text")]
        lines = [
            "",
            "# An index of another program, which is only read.",
            "[documents]",
            f"index = {_quoted(self.index)}",
            f"# text fields: {', '.join(map(_quoted, texts))}",
            f"text = [{', '.join(map(_quoted, chosen))}]",
            f"# keyword fields: {', '.join(map(_quoted, keywords)) or 'none'}",
            "# The field with the id of a document, which orders equal scores; without it, `_id` counts, and the order "
            "of equal",
            "# scores can't be reproduced.",
            f"{'# ' if id_ is None else ''}id = {_quoted(id_ or 'sku')}",
            f"fields = [{', '.join(map(_quoted, others))}]    # shown with the text; paths are valid, too",
        ]
        return "\n".join(lines) + "\n"


def _text_choice(texts: Sequence[str]) -> list[str]:
    """Return the likely fields of the text: those with usual names in their usual order, else the first ones."""
    likely = [name for name in texts if not _NO_TEXTS.search(name)] or list(texts)
    first = ("title", "name", "headline", "subject", "heading", *TEXTS, "description", "summary")
    order = {name: place for place, name in enumerate(dict.fromkeys(first))}
    known = [name for name in likely if name.lower() in order]
    known.sort(key=lambda name: order[name.lower()])
    return (known or likely)[:MOST_TEXT_FIELDS]


def name_for(path: Path) -> str:
    """Return a name for the task of the file at this path."""
    words = re.findall(r"[a-z0-9]+", path.stem.lower())
    name = "-".join(words)[: task_file.LONGEST_NAME].strip("-")
    if not name or not name[0].isalpha():
        name = f"task-{name}".strip("-")
    return name if task_file.name_problem(name) is None else "my-task"


# The topics of each split, and their gold, if any.
DetectedSplits = Mapping[str, tuple[DetectedFile, DetectedFile | None]]


def task_file_text(
    target: Path,
    name: str,
    documents: Sequence[DetectedFile] = (),
    splits: DetectedSplits | None = None,
    problems: Problems | None = None,
    foreign: IndexedDocuments | None = None,
) -> str:
    """Return the content of a task file for `target`, with comments and examples; `problems` collects those of gold.

    Raises:
        UsageError: the name is not valid for a task, or a file has no columns for id and text.
    """
    if problem := task_file.name_problem(name):
        raise UsageError(f"invalid task name {name!r}: {problem}")
    if len({file.format for file in documents}) > 1:
        raise UsageError("the files of documents have different formats: name files of one format")
    if len({file.names for file in documents}) > 1:
        raise UsageError(
            "the files of documents differ in header lines or columns: use --header or --no-header, or "
            "edit the task file"
        )
    golds = [gold for _topics_of_split, gold in (splits or {}).values() if gold is not None]
    head = _HEAD.format(
        name=name,
        mapping=_MAPPING,
        grades=", ".join(map(_quoted, _labels(golds, Problems() if problems is None else problems))),
    )
    topics = [_topics(target, split, *files) for split, files in (splits or {}).items()] or [_TOPICS]
    if foreign is not None:
        mapping = f"# The mapping of the index, as it was read.\nmapping = {_quoted(foreign.mapping_file)}"
        return head.replace(_MAPPING, mapping) + foreign.table() + "".join(topics) + _FOOT
    return head + _TRAINING + _documents(target, documents) + "".join(topics) + _FOOT


_MAPPING = """\
# How text is indexed: "text" is for English. Your own mapping is a .json file.
# mapping = "text\""""

_TRAINING = """
# The split of the training topics, with whose gold the recipe `neighbours` ranks other topics.
# training_split = "train"
"""

_HEAD = """\
# A task of your own for searchapp. Paths are relative to this file; docs/use/own-task.md explains every key.

name = "{name}"
title = "{name}"
# about = "For a question, rank the documents that answer it."

# What the grades 0, 1, ... mean.
grades = [{grades}]

# The figure that ranks systems, in the notation of ir-measures: nDCG@10, AP, RR, P@5, R@100, ...
measure = "nDCG@10"

# How many documents are ranked for a topic.
# depth = 100

# How many of them people judge.
# judging_depth = 100

{mapping}

# What texts are written in, for reading them on a screen: "plain", "latex" or "wiki".
# markup = "latex"
"""

_DOCUMENTS = """
[documents]
file = "documents.jsonl"    # or files = ["a.jsonl", "b.jsonl"]; .jsonl, .csv or .tsv
id = "id"
text = "text"    # or several: ["title", "body"]
# fields = ["title"]    # kept with the document; indexed if the mapping names them
"""

_TOPICS = """
# The topics of a split: [topics.dev], [topics.test], ...
# [topics.dev]
# file = "topics.tsv"
# id = "id"
# text = "text"
# gold = "qrels.txt"    # TREC qrels; or a table: { file = "gold.csv", topic = "topic", document = "document", \
grade = "grade" }
"""

_FOOT = """
# A way to rank of your own; `bm25` and `words` are there already.
# [recipes.mine]
# about = "What it does."
# template = "mine.json"
# parameters = { boost = 2.0 }
"""


def _labels(golds: Sequence[DetectedFile], problems: Problems) -> Sequence[str]:
    highest = 1
    for gold in golds:
        grades = task_file.read_grades(gold.path, grade_layout(gold), problems, MAX_GRADE)
        highest = max(highest, max((grade.grade for grade in grades), default=1))
    problems.raise_if_any("" if problems.stopped else LENIENT)
    if highest < len(task_file.GRADES):
        return task_file.GRADES
    return [task_file.GRADES[0], *(f"relevant, grade {grade}" for grade in range(1, highest + 1))]


def _documents(target: Path, documents: Sequence[DetectedFile]) -> str:
    if not documents:
        return _DOCUMENTS
    first_file = documents[0]
    for other_file in documents[1:]:
        if missing := set(first_file.columns) - set(other_file.columns):
            raise UsageError(
                f"{other_file.path} lacks the column {min(missing)!r} of {first_file.path}: edit the task file"
            )
    files = [_quoted(_relative(document.path, target)) for document in documents]
    key = f"file = {files[0]}" if len(files) == 1 else f"files = [{', '.join(files)}]"
    return "\n".join(["", "[documents]", key, *_columns(first_file)]) + "\n"


def _topics(target: Path, split: str, topics: DetectedFile, gold: DetectedFile | None) -> str:
    gold_key = '# gold = "qrels.txt"' if gold is None else f"gold = {_gold(target, gold)}"
    file = f"file = {_quoted(_relative(topics.path, target))}"
    return "\n".join(["", f"[topics.{split}]", file, *_columns(topics), gold_key]) + "\n"


def id_and_text(file: DetectedFile) -> tuple[str, str]:
    """Return the columns of id and text: common names, else the first column as id and the longest as text.

    Raises:
        UsageError: the file has fewer than two columns.
    """
    if len(file.columns) < 2:
        raise UsageError(f"{file.path} has {counted(len(file.columns), 'column')}: it needs an id and a text")
    id_ = _column(file.columns, IDS) or file.columns[0]
    others = [column for column in file.columns if column != id_]
    return id_, _column(others, TEXTS) or max(others, key=lambda column: _length(file, column))


def with_title(file: DetectedFile) -> DetectedFile:
    """Return the file with its title, if any, as a field and a part of the text.

    Raises:
        UsageError: the file has fewer than two columns.
    """
    title = _column(file.columns, TITLES)
    return file if title in (None, *id_and_text(file)) else replace(file, fields=(str(title),))


def _columns(file: DetectedFile) -> list[str]:
    """Return the lines about columns."""
    id_, text = id_and_text(file)
    title = _column(file.fields, TITLES)
    texts = (
        f"[{_quoted(title)}, {_quoted(text)}]"
        if title
        else f"{_quoted(text)}    # or several of them in a list"
    )
    lines = [] if file.stated_format is None else [f"format = {_quoted(file.stated_format)}"]
    lines += [
        f"# columns: {', '.join(map(_quoted, file.columns))}"
        if file.header
        else f"columns = [{', '.join(map(_quoted, file.columns))}]    # the file has no header line",
        f"id = {_quoted(id_)}",
        f"text = {texts}",
    ]
    if file.fields:
        named = {_field_name(column): column for column in file.fields}
        if all(map(str.__eq__, named, named.values())):
            return [*lines, f"fields = [{', '.join(map(_quoted, named))}]"]
        return [*lines, f"fields = {{ {', '.join(f'{name} = {_quoted(named[name])}' for name in named)} }}"]
    fields = [
        column
        for column in file.columns
        if column not in (id_, text, "id", "text") and task_file.FIELD.fullmatch(column)
    ]
    if fields:
        quoted = ", ".join(map(_quoted, fields))
        lines.append(f"# fields = [{quoted}]    # kept; indexed if the mapping names them")
    return lines


def _field_name(column: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", column.lower())


def _gold(target: Path, gold: DetectedFile) -> str:
    file = _quoted(_relative(gold.path, target))
    layout = grade_layout(gold)
    format_ = "" if gold.stated_format is None else f", format = {_quoted(gold.stated_format)}"
    if layout.format == task_file.TREC:
        return f"{{ file = {file}{format_} }}" if format_ else file
    columns = "" if gold.header else f", columns = [{', '.join(map(_quoted, gold.columns))}]"
    grade = layout.grade if isinstance(layout.grade, int) else _quoted(layout.grade)
    topic, document = map(_quoted, (layout.topic, layout.document))
    return f"{{ file = {file}{format_}{columns}, topic = {topic}, document = {document}, grade = {grade} }}"


def grade_layout(gold: DetectedFile) -> GradeLayout:
    """Return the columns of topics, documents and grades.

    Raises:
        UsageError: the file lacks one of them.
    """
    if gold.format == task_file.TREC:
        return GradeLayout(task_file.TREC)
    if gold.names == GOLD_COLUMNS[2]:
        return GradeLayout(gold.format, grade=1, columns=gold.names)
    columns = []
    for noun, common_names in (("topic", TOPICS), ("document", DOCUMENTS), ("grade", GRADES)):
        column = _column(gold.columns, common_names)
        if column is None:
            raise UsageError(
                f"{gold.path} has no column {noun}: its columns are {', '.join(gold.columns)}; omit "
                "--gold and edit the task file"
            )
        columns.append(column)
    topic, document, grade = columns
    return GradeLayout(gold.format, topic, document, grade, gold.names)


def _column(columns: Sequence[str], known: Sequence[str]) -> str | None:
    by_name = {column.lower(): column for column in reversed(columns)}
    return next((by_name[name] for name in known if name in by_name), None)


def _length(file: DetectedFile, column: str) -> int:
    values = (record.get(column) for record in file.records)
    return sum(len(value) for value in values if isinstance(value, str))


def _relative(path: Path, target: Path) -> str:
    return Path(os.path.relpath(path.absolute(), target.absolute().parent)).as_posix()


def _quoted(text: str) -> str:
    """Return a TOML string: JSON, except for a control character that JSON does not escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
