"""Write a task file to start from, with the columns recognised in the user's files by their content."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchapp.errors import UsageError
from searchapp.formats import records
from searchapp.formats.encoding import foreign, opened
from searchapp.formats.problems import Problems
from searchapp.formats.records import Unsupported
from searchapp.tasks.own import task_file
from searchapp.tasks.own.task_file import GradeLayout
from searchapp.text import counted

LOOKED_AT = 100
"""Rows that are looked at."""

LONGEST_NAME, MOST_WORDS = 60, 5
"""In characters and words: what is longer is a text, and no name of a column."""

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_QRELS = re.compile(r"\S+\s+\S+\s+\S+\s+[+-]?\d+\s*")
_JSON = re.compile(r"\s*\{")


@dataclass(frozen=True, slots=True)
class Header:
    """Whether the first row of a table names its columns, and why that is believed, as a clause."""

    there: bool
    because: str


def format_in(path: Path, *, with_qrels: bool = False) -> str | None:
    """The format of a file: what its name shows unless its first line shows another; None if neither shows one.

    Raises:
        Unsupported: it is no text, or a table with other separators.
        OSError: it can't be read.
    """
    with opened(path) as file:
        if found := foreign(file.head):
            raise Unsupported(str(found))
        lines = [
            line
            for line in file.head.decode(errors="replace").removeprefix("\ufeff").splitlines()
            if line.strip()
        ]
    told = task_file.format_of(path) if with_qrels else records.format_of(path)
    first = lines[0] if lines else ""
    if _JSON.match(first):
        return "jsonl"
    if with_qrels and told in (None, task_file.TREC) and _QRELS.fullmatch(first):
        return task_file.TREC
    if told in records.SEPARATORS:
        return _separated(lines, told)
    return _separated(lines, None) if told is None else told


def _separated(lines: Sequence[str], told: str | None) -> str | None:
    """The format of a table whose name shows `told`: another one if its rows are one cell each by that."""
    marks = {"tsv": "\t", "csv": ","}
    if not lines or (told is not None and marks[told] in lines[0]):
        return told
    other = next((name for name, mark in marks.items() if _splits(lines, mark)), None)
    if other is None and (instead := records.separator_instead([lines[0]], told or "csv")):
        raise Unsupported(f"its cells are separated by {instead[0]}: {instead[1]}")
    return other or told


def _splits(lines: Sequence[str], mark: str) -> bool:
    """Whether every line has a separator; the last one may be cut."""
    return all(mark in line for line in lines[:-1] or lines)


def header_of(path: Path, format_: str, known: Collection[str]) -> tuple[Header, list[list[str]]]:
    """Whether a table's first row names its columns, and its first rows; `known` are names that columns often have.

    Raises:
        Unsupported: it is no text, or a table with other separators.
        OSError: it can't be read.
    """
    rows = list(itertools.islice(records.read_rows(path, format_), LOOKED_AT))
    return (_header(rows[0], rows[1:], known) if rows else Header(True, "it is empty")), rows


def _header(first: Sequence[str], rest: Sequence[Sequence[str]], known: Collection[str]) -> Header:
    columns = [[row[place] for row in rest if place < len(row)] for place in range(len(first))]
    for cell in first:
        if cell.strip().lower() in known:
            return Header(True, f"the first line has {cell.strip()!r}")
    for cell in first:
        if _NUMBER.fullmatch(cell.strip()):
            return Header(False, f"the first line has the number {cell.strip()}")
        if len(cell) > LONGEST_NAME or len(cell.split()) > MOST_WORDS:
            return Header(False, "the first line has a text")
    for cell, others in zip(first, columns, strict=True):
        if others and all(_NUMBER.fullmatch(other.strip()) for other in others):
            return Header(True, f"below {cell.strip()!r} there are numbers")
    for cell, others in zip(first, columns, strict=True):
        shape = _shape(cell)
        if "9" in shape and others and all(_shape(other) == shape for other in others):
            return Header(False, f"{cell.strip()!r} looks like what is below it")
    return Header(True, "nothing in the first line looks like a value")


def _shape(cell: str) -> str:
    """What kinds of characters a cell has: `doc-17` and `doc-4` have one shape."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", cell.strip()))


MOST_GRADES = 20
"""No task file with more labels than that is written."""

IDS = ("id", "_id", "docid", "doc_id", "document_id", "did", "pid", "qid", "query_id", "topic_id", "uid")
TEXTS = ("text", "contents", "content", "body", "question", "query", "topic", "sentence", "abstract", "title")
TOPICS = ("topic", "topic_id", "query", "query_id", "query-id", "qid", "question", "question_id")
DOCUMENTS = ("document", "document_id", "doc_id", "docid", "docno", "corpus-id", "doc", "pid")
GRADES = ("grade", "relevance", "rel", "score", "label")
"""How people call such columns; the first that a file has is taken."""

NAMES = frozenset((*IDS, *TEXTS, *TOPICS, *DOCUMENTS, *GRADES))

GOLD_COLUMNS = {
    2: ("topic", "document"),
    3: ("topic", "document", "grade"),
    4: ("topic", "iteration", "document", "grade"),
}
"""What the columns of gold without a header line are, by their number; TREC's qrels have four."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a file looks like: its format, its columns or keys, and some records.

    `header` says whether the first row of a table names the columns; without one the names are made up. `assumed` is
    what was detected rather than stated, as a sentence.
    """

    path: Path
    format: str
    columns: tuple[str, ...]
    records: tuple[Mapping[str, Any], ...]
    header: bool = True
    assumed: str | None = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns as the task file must have them; None if the file has them itself."""
        return None if self.header else self.columns

    @property
    def told(self) -> str | None:
        """The format as the task file must have it; None if the file's name shows it."""
        return None if task_file.format_of(self.path) == self.format else self.format


def look_at(path: Path, *, gold: bool = False, header: bool | None = None) -> Seen:
    """What a file holds: documents or topics, or the grades of some.

    `header` says whether tables have a header line; None leaves that to what stands in the file.

    Raises:
        UsageError: neither its name nor its content shows its format.
        InvalidFiles: there is none, it is none that can be read, or its beginning is not what the format promises.
    """
    problems = Problems()
    try:
        format_ = format_in(path, with_qrels=gold)
        if format_ is None:
            suffixes = " or ".join(records.FORMATS.values())
            raise UsageError(
                f"{path} does not show its format by its name: give it a name that ends in {suffixes}"
            )
        if format_ == task_file.TREC:
            return Seen(path, format_, (), ())
        names, assumed = None, None
        if not records.has_keys(format_):
            found, rows = header_of(path, format_, NAMES)
            if not (found.there if header is None else header):
                names = _made_up(rows, gold=gold)
            if header is None and rows:
                assumed = _assumed(path, found, names)
    except Unsupported as error:
        problems.add(path, "unsupported file", detail=str(error), skippable=False)
    except OSError as error:
        problems.add_unopened(path, error)
    problems.raise_if_any()
    assert format_ is not None
    read = records.read_records(path, format_, problems, columns=names)
    some = tuple(record.values for record in itertools.islice(read, LOOKED_AT))
    problems.raise_if_any()
    columns = tuple(dict.fromkeys(itertools.chain.from_iterable(some)))
    return Seen(path, format_, columns, some, names is None, assumed)


def _assumed(path: Path, found: Header, names: Sequence[str] | None) -> str:
    if names is None:
        return (
            f"{path}: its first line names the columns, as it seems ({found.because}): else use --no-header"
        )
    without = f"it has no header line, as it seems ({found.because}): else use --header"
    return f"{path}: {without}; its columns are called {', '.join(names)}"


def _made_up(rows: Sequence[Sequence[str]], *, gold: bool) -> list[str]:
    """Names for the columns of a table without a header line, by what stands in them."""
    width = len(rows[0]) if rows else 0
    if gold and width in GOLD_COLUMNS:
        return list(GOLD_COLUMNS[width])
    names = [f"column{place}" for place in range(1, width + 1)]
    cells = [[row[place] for row in rows if place < len(row)] for place in range(width)]
    as_ids = [
        place for place, own in enumerate(cells) if len(set(own)) == len(own) and not any(map(_spaced, own))
    ]
    id_ = as_ids[0] if as_ids else 0
    others = [place for place in range(width) if place != id_]
    if others:
        names[max(others, key=lambda place: sum(map(len, cells[place])))] = "text"
    if names:
        names[id_] = "id"
    return names


def _spaced(cell: str) -> bool:
    return cell.split() != [cell]


def name_for(path: Path) -> str:
    """A name for the task that a file at this path describes."""
    words = re.findall(r"[a-z0-9]+", path.stem.lower())
    name = "-".join(words)[: task_file.LONGEST_NAME].strip("-")
    if not name or not name[0].isalpha():
        name = f"task-{name}".strip("-")
    return name if task_file.name_problem(name) is None else "my-task"


def text_of(
    target: Path,
    name: str,
    documents: Sequence[Seen] = (),
    topics: Seen | None = None,
    gold: Seen | None = None,
) -> str:
    """A task file for `target`, with comments; what it does not know stands as an example.

    Raises:
        UsageError: the name can't be a task's, or a file has no columns to take id and text from.
    """
    if problem := task_file.name_problem(name):
        raise UsageError(f"{name!r} can't be the name of a task: {problem}")
    if len({one.format for one in documents}) > 1:
        raise UsageError("the files of documents have different formats: give files of one format")
    if len({one.names for one in documents}) > 1:
        raise UsageError(
            "some files of documents have a header line and others none, or other columns: use --header or "
            "--no-header, or describe them yourself"
        )
    head = _HEAD.format(name=name, grades=", ".join(map(_quoted, _labels(gold))))
    return head + _documents(target, documents) + _topics(target, topics, gold) + _FOOT


_HEAD = """\
# A task of your own for searchapp. Paths are relative to this file; docs/own-task.md explains every key.

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

# How text is indexed: "text" is made for English. A mapping of your own is a .json file.
# mapping = "text"

# What texts are written in, for reading them on a screen: "plain", "latex" or "wiki".
# markup = "latex"

# The split whose topics are solved examples, from whose gold the recipe `neighbours` ranks the others.
# examples = "train"
"""

_FOOT = """
# A way to rank of your own; `bm25` and `words` are there already.
# [recipes.mine]
# about = "What it does."
# template = "mine.json"
# parameters = { boost = 2.0 }
"""


def _labels(gold: Seen | None) -> Sequence[str]:
    """A label for every grade that the gold has."""
    if gold is None:
        return task_file.GRADES
    problems = Problems()
    grades = task_file.read_grades(gold.path, _grade_layout(gold), problems, MOST_GRADES)
    highest = max((grade.grade for grade in grades), default=1)
    problems.raise_if_any()
    if highest < len(task_file.GRADES):
        return task_file.GRADES
    return [task_file.GRADES[0], *(f"relevant, grade {grade}" for grade in range(1, highest + 1))]


def _documents(target: Path, seen: Sequence[Seen]) -> str:
    lines = ["", "[documents]"]
    if not seen:
        lines += [
            'file = "documents.jsonl"    # or files = ["a.jsonl", "b.jsonl"]; .jsonl, .csv or .tsv',
            'id = "id"',
            'text = "text"    # or several: ["title", "body"]',
            '# fields = ["title"]    # kept with the document; indexed if the mapping names them',
        ]
        return "\n".join(lines) + "\n"
    first = seen[0]
    for other in seen[1:]:
        if missing := set(first.columns) - set(other.columns):
            raise UsageError(
                f"{other.path} has no {min(missing)!r}, which {first.path} has: describe them yourself"
            )
    files = [_quoted(_relative(one.path, target)) for one in seen]
    lines.append(f"file = {files[0]}" if len(files) == 1 else f"files = [{', '.join(files)}]")
    return "\n".join([*lines, *_columns(first)]) + "\n"


def _topics(target: Path, seen: Seen | None, gold: Seen | None) -> str:
    if seen is None and gold is None:
        return (
            "\n# The topics of a split: [topics.dev], [topics.test], ...\n"
            "# [topics.dev]\n"
            '# file = "topics.tsv"\n'
            '# id = "id"\n'
            '# text = "text"\n'
            '# gold = "qrels.txt"    # TREC qrels; or a table: { file = "gold.csv", topic = "topic", '
            'document = "document", grade = "grade" }\n'
        )
    if seen is None:
        raise UsageError("gold is of topics: name their file with --topics")
    lines = ["", "[topics.dev]", f"file = {_quoted(_relative(seen.path, target))}", *_columns(seen)]
    if gold is None:
        lines.append('# gold = "qrels.txt"')
    else:
        lines.append(f"gold = {_gold(target, gold)}")
    return "\n".join(lines) + "\n"


def _columns(seen: Seen) -> list[str]:
    """The lines that say what the columns have: those that people call so, else the first, and the longest."""
    if len(seen.columns) < 2:
        raise UsageError(
            f"{seen.path} has {counted(len(seen.columns), 'column')}: an id and a text are needed"
        )
    id_ = _called(seen.columns, IDS) or seen.columns[0]
    others = [column for column in seen.columns if column != id_]
    text = _called(others, TEXTS) or max(others, key=lambda column: _length(seen, column))
    further = [column for column in others if column != text]
    lines = [
        *([] if seen.told is None else [f"format = {_quoted(seen.told)}"]),
        _named(seen),
        f"id = {_quoted(id_)}",
        f"text = {_quoted(text)}    # or several of them in a list",
    ]
    named = [
        column for column in further if task_file.FIELD.fullmatch(column) and column not in ("id", "text")
    ]
    if named:
        lines.append(
            f"# fields = [{', '.join(map(_quoted, named))}]    # kept; indexed if the mapping names them"
        )
    return lines


def _named(seen: Seen) -> str:
    """The line with the names of the columns: what the file says itself is a comment."""
    names = ", ".join(map(_quoted, seen.columns))
    return f"# columns: {names}" if seen.header else f"columns = [{names}]    # the file has no header line"


def _gold(target: Path, gold: Seen) -> str:
    file = _quoted(_relative(gold.path, target))
    layout = _grade_layout(gold)
    told = "" if gold.told is None else f", format = {_quoted(gold.told)}"
    if layout.format == task_file.TREC:
        return f"{{ file = {file}{told} }}" if told else file
    columns = "" if gold.header else f", columns = [{', '.join(map(_quoted, gold.columns))}]"
    grade = layout.grade if isinstance(layout.grade, int) else _quoted(layout.grade)
    topic, document = map(_quoted, (layout.topic, layout.document))
    return f"{{ file = {file}{told}{columns}, topic = {topic}, document = {document}, grade = {grade} }}"


def _grade_layout(gold: Seen) -> GradeLayout:
    if gold.format == task_file.TREC:
        return GradeLayout(task_file.TREC)
    if gold.names == GOLD_COLUMNS[2]:
        return GradeLayout(gold.format, grade=1, columns=gold.names)
    found = [_called(gold.columns, known) for known in (TOPICS, DOCUMENTS, GRADES)]
    missing = [
        noun for noun, column in zip(("topic", "document", "grade"), found, strict=True) if column is None
    ]
    if missing:
        raise UsageError(
            f"{gold.path} has no column called {missing[0]}: it has {', '.join(gold.columns)}; leave out --gold and "
            "describe it yourself"
        )
    topic, document, grade = (column or "" for column in found)
    return GradeLayout(gold.format, topic, document, grade, gold.names)


def _called(columns: Sequence[str], known: Sequence[str]) -> str | None:
    by_name = {column.lower(): column for column in reversed(columns)}
    return next((by_name[name] for name in known if name in by_name), None)


def _length(seen: Seen, column: str) -> int:
    values = (record.get(column) for record in seen.records)
    return sum(len(value) for value in values if isinstance(value, str))


def _relative(path: Path, target: Path) -> str:
    return Path(os.path.relpath(path.absolute(), target.absolute().parent)).as_posix()


def _quoted(text: str) -> str:
    """A TOML string: those of JSON are, but for the one control character that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
