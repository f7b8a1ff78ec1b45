"""Gold of a user's own: the grades of documents for topics, as TREC qrels or as records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from searchapp.formats import json_stream, records, trec
from searchapp.formats.ids import unusable
from searchapp.formats.problems import Problems, shown

TREC = "trec"
FORMATS = (TREC, *records.FORMATS)
SUFFIXES = (".qrels", ".qrel", ".trec", ".txt")
"""Of files that are taken for TREC qrels."""

Qrels = dict[str, dict[str, int]]

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class GradeLayout:
    """Which columns or keys of a file have what; a number for `grade` is the grade of every record."""

    format: str
    topic: str = "topic"
    document: str = "document"
    grade: str | int = "grade"
    columns: tuple[str, ...] | None = None


class Grade(NamedTuple):
    """One grade, and its line."""

    line: int
    topic: str
    document: str
    grade: int


def format_of(path: Path) -> str | None:
    """The format that a file's name shows; None when it shows none."""
    return TREC if records.suffix_of(path) in SUFFIXES else records.format_of(path)


def read_grades(path: Path, layout: GradeLayout, problems: Problems, highest: int) -> Iterator[Grade]:
    """Every good grade of a file, in its order; its problems go to `problems`.

    Grades are whole numbers from 0 to `highest`; a document must not be graded twice for a topic.
    """
    seen: set[tuple[str, str]] = set()
    for line, topic, document, grade in _raw(path, layout, problems):
        where = f"line {line}"
        if not isinstance(grade, int):
            continue  # reported already
        if not 0 <= grade <= highest:
            detail = f"{grade}, where the task has grades from 0 to {highest}: name more with `grades`"
            problems.add(path, "unknown grade", where, detail)
        elif (topic, document) in seen:
            detail = f"{shown(document)} of topic {shown(topic)}; the first grade counts"
            problems.add(path, "duplicate document", where, detail)
        else:
            seen.add((topic, document))
            yield Grade(line, topic, document, grade)


def read_qrels(path: Path, layout: GradeLayout, problems: Problems, highest: int) -> Qrels:
    """The same by topic and document."""
    qrels: Qrels = {}
    for grade in read_grades(path, layout, problems, highest):
        qrels.setdefault(grade.topic, {})[grade.document] = grade.grade
    return qrels


def _raw(path: Path, layout: GradeLayout, problems: Problems) -> Iterator[tuple[int, str, str, int | None]]:
    def wrong(line: int, kind: str, detail: str) -> None:
        problems.add(path, kind, f"line {line}", detail)

    if layout.format == TREC:
        for line, (topic, _, document, text) in trec.read_lines(path, problems, trec.QRELS):
            yield line, topic, document, _integer(text, line, wrong)
        return
    named = [layout.topic, layout.document] + ([layout.grade] if isinstance(layout.grade, str) else [])
    for line, values in records.read_records(
        path, layout.format, problems, required=named, columns=layout.columns
    ):
        missing = [name for name in named if name not in values]
        if missing:
            wrong(line, "missing key", missing[0])
            continue
        ids = [_id(values[name], name, line, wrong) for name in named[:2]]
        grade = layout.grade if isinstance(layout.grade, int) else _integer(values[layout.grade], line, wrong)
        topic_id, document_id = ids
        if topic_id is not None and document_id is not None:
            yield line, topic_id, document_id, grade


Wrong = Callable[[int, str, str], None]


def _id(value: Any, name: str, line: int, wrong: Wrong) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        wrong(line, "wrong type", f"{name} is {json_stream.type_name(value)}, not a string or an integer")
        return None
    if problem := unusable(value):
        wrong(line, problem[0], f"{name}: {problem[1]}")
        return None
    return value


def _integer(value: Any, line: int, wrong: Wrong) -> int | None:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    wrong(line, "grade not an integer", shown(str(value)))
    return None
