"""The TOML file of a user's own task, and the files that it names: texts, grades, an index mapping.

    name = "cooking"

    [documents]
    file = "recipes.jsonl"

    [topics.dev]
    file = "questions.tsv"
    gold = "qrels.txt"

Every other key has a default; docs/own-task.md has them all. Paths are relative to the file. Texts are records with
ids, grades are TREC qrels or records.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from searchapp.errors import DataError, ErrorCollector
from searchapp.formats import json_files, records, trec
from searchapp.formats.problems import Problems, encodable, shown, unusable_id
from searchapp.formats.toml_files import TomlFile, TomlTable
from searchapp.lucene.errors import BadSettings
from searchapp.lucene.index.index_settings import NOT_INDEXED, canonical
from searchapp.model import Markup
from searchapp.tasks import catalogue
from searchapp.tasks.base import JUDGING_DEPTH
from searchapp.text import choices_hint


@dataclass(frozen=True, slots=True)
class TextLayout:
    """Which columns or keys of a file have what.

    `text` are one or several whose values make the text, a line each, blank ones left out. `fields` maps the
    names of further fields to their columns. `columns` are the names in a table without a header line.
    """

    format: str
    id: str = "id"
    text: tuple[str, ...] = ("text",)
    fields: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None

    def required(self) -> list[str]:
        return [self.id, *self.text, *self.fields.values()]


class Text(NamedTuple):
    """A document or topic as its file has it, with the line."""

    line: int
    id: str
    text: str
    fields: dict[str, Any]


def read_texts(
    path: Path, layout: TextLayout, problems: Problems, seen: set[str], *, complete: bool
) -> Iterator[Text]:
    """The texts of a file, in its order; its problems go to `problems`.

    `seen` has the ids met so far and grows. An id is text or an integer. A further field is text, a number, a
    boolean or a list of such. A record without a value for it (no such key, null, an empty cell) has no such
    field; with `complete` an empty cell is empty text instead, and a missing key or null a problem. A field that
    no object of a file has is a problem.
    """
    unseen = dict(layout.fields) if records.has_keys(layout.format) else {}
    any_record = False
    for record in records.read_records(
        path, layout.format, problems, required=layout.required(), columns=layout.columns
    ):
        any_record = True
        for name in [name for name, column in unseen.items() if column in record.values]:
            del unseen[name]
        reader = _Reader(path, f"line {record.line}", record.values, problems)
        id_ = reader.id(layout.id, seen)
        text = reader.joined(layout.text)
        fields = reader.fields(layout.fields, complete=complete)
        if reader.good:
            seen.add(id_)
            yield Text(record.line, id_, text, fields)
    for column in unseen.values() if any_record else ():
        if not complete:  # otherwise every line has been reported
            problems.add(path, "missing key", "", f"no object has {column!r}", skippable=False)


class _Reader(json_files.EntryReader):
    """Reads the columns of one record."""

    def id(self, column: str, seen: set[str]) -> str:
        if column not in self.value:
            self.lacks(column)
            return ""
        value = self.value[column]
        if not json_files.is_id(value):
            self.wrong("wrong type", f"{column} is {json_files.type_name(value)}, not a string or an integer")
            return ""
        value = str(value)
        if problem := unusable_id(value):
            self.wrong(*problem)
        elif value in seen:
            self.wrong("duplicate id", f"{shown(value)}; the first one counts")
        return value

    def joined(self, columns: tuple[str, ...]) -> str:
        parts = []
        for column in columns:
            value = self.value.get(column)
            if isinstance(value, str):
                parts.append(value)
            elif column not in self.value:
                self.lacks(column)
            elif value is not None or len(columns) == 1:
                self.wrong("wrong type", f"{column} is {json_files.type_name(value)}, not a string")
        text = "\n".join(part for part in parts if part.strip())
        if self.good and not text:
            self.wrong("blank text", f"{' and '.join(columns)} must not be blank")
        elif not encodable(text):
            self.wrong("lone surrogate", f"{' or '.join(columns)} has an escape that is half of a character")
        return text

    def fields(self, columns: Mapping[str, str], *, complete: bool) -> dict[str, Any]:
        found = {}
        for name, column in columns.items():
            value = self.value.get(column)
            if complete and column not in self.value:
                self.lacks(column)
            elif complete and value is None:
                self.wrong("wrong type", f"{column} is null, and templates need a value")
            elif value is not None and (value != "" or complete):
                self._check_field(column, value)
                found[name] = value
        return found

    def _check_field(self, column: str, value: Any) -> None:
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, str | int | float):
                kind = json_files.type_name(one)
                self.wrong("wrong type", f"{column} has {kind}, not a string, number or boolean")
            elif isinstance(one, float) and not math.isfinite(one):
                self.wrong("number out of range", column)
            elif isinstance(one, str) and not encodable(one):
                self.wrong("lone surrogate", f"{column} has an escape that is half of a character")


TREC = "trec"
FORMATS = (TREC, *records.FORMATS)
SUFFIXES = (".qrels", ".qrel", ".trec", ".txt")
"""Of files that are taken for TREC qrels."""

GradesByTopic = dict[str, dict[str, int]]

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


def read_qrels(path: Path, layout: GradeLayout, problems: Problems, highest: int) -> GradesByTopic:
    """The same by topic and document."""
    qrels: GradesByTopic = {}
    for grade in read_grades(path, layout, problems, highest):
        qrels.setdefault(grade.topic, {})[grade.document] = grade.grade
    return qrels


def _raw(path: Path, layout: GradeLayout, problems: Problems) -> Iterator[tuple[int, str, str, int | None]]:
    if layout.format == TREC:
        for line, (topic, _, document, text) in trec.read_lines(path, problems, trec.QRELS):
            yield line, topic, document, _GradeReader(path, f"line {line}", {}, problems).grade(text)
        return
    named = [layout.topic, layout.document] + ([layout.grade] if isinstance(layout.grade, str) else [])
    for line, values in records.read_records(
        path, layout.format, problems, required=named, columns=layout.columns
    ):
        reader = _GradeReader(path, f"line {line}", values, problems)
        missing = [name for name in named if name not in values]
        if missing:
            reader.lacks(missing[0])
            continue
        topic_id, document_id = (reader.id(name) for name in named[:2])
        grade = layout.grade if isinstance(layout.grade, int) else reader.grade(values[layout.grade])
        if topic_id is not None and document_id is not None:
            yield line, topic_id, document_id, grade


class _GradeReader(json_files.EntryReader):
    """Reads the ids and the grade of one record."""

    def id(self, name: str) -> str | None:
        value = self.value[name]
        if not json_files.is_id(value):
            self.wrong("wrong type", f"{name} is {json_files.type_name(value)}, not a string or an integer")
            return None
        if problem := unusable_id(str(value)):
            self.wrong(problem[0], f"{name}: {problem[1]}")
            return None
        return str(value)

    def grade(self, value: Any) -> int | None:
        if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.wrong("grade not an integer", shown(str(value)))
        return None


def own_mapping(mapping: dict[str, Any], fields: Iterable[str], path: Path, name: str) -> dict[str, Any]:
    """A mapping that the file `path` names, in canonical form, with the fields that it lacks kept and not indexed.

    Raises:
        DataError: it is none, or has no id and text.
    """
    try:
        mapping = canonical(mapping)
    except BadSettings as error:
        raise DataError(f"{path}: the mapping {name}: {error}") from error
    found = mapping.get("mappings")
    properties = found.get("properties") if isinstance(found, dict) else None
    problems = ErrorCollector()
    for key, kind in (("id", "keyword"), ("text", "text")):
        field = properties.get(key) if isinstance(properties, dict) else None
        if not isinstance(field, dict) or field.get("type") != kind:
            with problems.at(f"{path}: mappings.properties.{key}"):
                raise DataError(f"the mapping {name} must have a property {key} of type {kind}")
    problems.raise_if_any()
    assert isinstance(found, dict) and isinstance(properties, dict)
    kept = {field: NOT_INDEXED for field in fields if field not in properties}
    found = {"dynamic": "strict", **found, "properties": {**properties, **kept}}
    return {**mapping, "mappings": found}


NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
LONGEST_NAME = 60

FIELD = re.compile(r"[a-z][a-z0-9_]*")
"""The name of a further field: a template must be able to name it, and an index to have it."""

GRADES = ("not relevant", "relevant")
MEASURE = "nDCG@10"
MEASURES = ("AP", "RR", "nDCG@10", "P@1", "P@5", "P@10", "R@10", "R@100")
DEPTH = 100


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold file and what it looks like."""

    file: str
    layout: GradeLayout


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one split, and their gold, if there is any."""

    file: str
    layout: TextLayout
    gold: Gold | None


@dataclass(frozen=True, slots=True)
class OwnFile:
    """Everything that the file says, with the defaults for what it does not say."""

    path: Path
    name: str
    title: str
    about: str
    mapping: str
    measure: str
    measures: tuple[str, ...]
    grades: tuple[str, ...]
    depth: int
    judging_depth: int
    recipe: str
    search_recipe: str
    examples: str | None
    topics_are_documents: bool
    documents: tuple[str, ...]
    layout: TextLayout
    context: tuple[str, str] | None
    markup: Markup
    topics: Mapping[str, Topics]
    recipes: Mapping[str, Mapping[str, Any]]


def name_problem(name: str) -> str | None:
    """Why a task can't have this name, as a clause; None when it can."""
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        return (
            f"it takes lower-case letters and digits, - and _ between them, a letter first, and at most {LONGEST_NAME} "
            "characters, because it becomes part of an index's name"
        )
    if re.search(r"-\d{6}", name):
        return "a - followed by six digits is how versions of an index are named"
    if name in (*catalogue.names(), *catalogue.sample_names()):
        return "a task that ships with searchapp has it"
    return None


def read(path: Path) -> OwnFile:
    """The task file at `path`.

    Raises:
        InvalidFiles: it is missing or has problems.
    """
    problems = Problems()
    root = TomlFile(path, problems).root
    problems.raise_if_any()
    described = _described(path, root)
    problems.raise_if_any("`searchapp tasks new` writes a task file to start from")
    return described


def _described(path: Path, root: TomlTable) -> OwnFile:
    name = root.text("name", required=True) or "unnamed"
    if problem := name_problem(name):
        root.wrong("unusable name", f"{name!r}: {problem}", "name")
    title = root.text("title", name) or name
    about = root.text("about", "A task of your own.") or ""
    mapping = root.text("mapping", "text") or "text"
    measure = root.text("measure", MEASURE) or MEASURE
    measures = root.texts("measures") or tuple(one for one in MEASURES if one != measure)
    grades = root.texts("grades") or GRADES
    if len(grades) < 2:
        root.wrong(
            "wrong value", "grades need at least two labels, the first for what is not relevant", "grades"
        )
    documents, layout, context = _documents(root)
    topics = {table.name: _topics(table) for table in root.tables("topics")}
    examples = root.text("examples")
    if examples is not None and examples not in topics:
        choice = choices_hint(examples, topics) if topics else f"{examples!r}: none is named"
        root.wrong("unknown split", f"examples names {choice}", "examples")
    elif examples is not None and topics[examples].gold is None:
        root.wrong("missing gold", f"the split {examples} can't be solved examples without gold", "examples")
    recipes = {table.name: table.held for table in root.tables("recipes")}
    alike = root.truth("topics_are_documents")
    described = OwnFile(
        path=path,
        name=name,
        title=title,
        about=about,
        mapping=mapping,
        measure=measure,
        measures=measures,
        grades=grades,
        depth=root.whole("depth", DEPTH, 1),
        judging_depth=root.whole("judging_depth", JUDGING_DEPTH, 1),
        recipe=root.text("recipe", "bm25") or "",
        search_recipe=root.text("search_recipe", "words") or "",
        examples=examples,
        topics_are_documents=bool(alike),
        documents=documents,
        layout=layout,
        context=context,
        markup=_markup(root),
        topics=topics,
        recipes=recipes,
    )
    root.finish()
    return described


def _markup(root: TomlTable) -> Markup:
    written = root.text("markup", Markup.latex) or ""
    if written in list(Markup):
        return Markup(written)
    root.wrong("wrong value", f"markup is {choices_hint(written, list(Markup))}", "markup")
    return Markup.latex


def _documents(root: TomlTable) -> tuple[tuple[str, ...], TextLayout, tuple[str, str] | None]:
    table = root.table("documents", required=True)
    if table is None:
        return (), TextLayout("jsonl"), None
    one, several = table.text("file"), table.texts("files")
    if (one is None) == (several is None) and table.has("file") == table.has("files"):
        table.wrong("missing key", "[documents] needs either file or files")
    files = several or ((one,) if one else ())
    layout = _text_layout(table, files[0] if files else "", several_formats=files)
    context = table.texts("context")
    table.finish()
    if context is None:
        return files, layout, None
    if len(context) != 2 or not set(context) <= set(layout.fields):
        detail = "context must be two of the fields: which text a document is a part of, and which part"
        table.wrong("wrong value", detail, "context")
        return files, layout, None
    return files, layout, (context[0], context[1])


def _topics(table: TomlTable) -> Topics:
    if not NAME.fullmatch(table.name):
        detail = f"{table.name!r} can't name a split: use lower-case letters and digits, - and _ between them"
        table.wrong("unusable name", detail)
    file = table.text("file", required=True) or ""
    layout = _text_layout(table, file)
    gold = None
    if isinstance(table.raw("gold"), dict):
        inner = table.table("gold")
        assert inner is not None
        named = inner.text("file", required=True) or ""
        layout_of_gold = GradeLayout(
            format=_format(inner, named, FORMATS, format_of(Path(named))),
            topic=inner.text("topic", "topic") or "",
            document=inner.text("document", "document") or "",
            grade=inner.text_or_whole("grade", "grade"),
            columns=inner.texts("columns"),
        )
        inner.finish()
        gold = Gold(named, layout_of_gold)
    elif named_alone := table.text("gold"):
        format_ = _format(table, named_alone, FORMATS, format_of(Path(named_alone)), "gold")
        gold = Gold(named_alone, GradeLayout(format_))
    table.finish()
    return Topics(file, layout, gold)


def _text_layout(table: TomlTable, file: str, several_formats: tuple[str, ...] = ()) -> TextLayout:
    told = {records.format_of(Path(one)) for one in several_formats or (file,)}
    if len(told) > 1 and not table.has("format"):
        table.wrong(
            "different formats", "files of one task must have one format: name it with format", "files"
        )
    format_ = _format(table, file, tuple(records.FORMATS), records.format_of(Path(file)))
    fields = table.mapping("fields")
    for name in fields:
        if not FIELD.fullmatch(name) or name in ("id", "text"):
            table.wrong(
                "unusable name",
                f"{name!r} can't name a field: use lower-case letters, digits and _, and not id or text, as in "
                f"fields = {{ my_name = {name!r} }}",
                "fields",
            )
    return TextLayout(
        format=format_,
        id=table.text("id", "id") or "",
        text=table.texts("text", single=True) or ("text",),
        fields=fields,
        columns=table.texts("columns"),
    )


def _format(table: TomlTable, file: str, known: tuple[str, ...], told: str | None, key: str = "file") -> str:
    """The format that is stated, else the one that the file's name shows."""
    stated = None if key == "gold" else table.text("format")
    if stated is not None and stated not in known:
        table.wrong("unknown format", choices_hint(stated, known), "format")
    if stated is None and told is None and file:
        advice = (
            f"gold = {{ file = {file!r}, format = ... }}"
            if key == "gold"
            else f"format = {' or '.join(known)}"
        )
        table.wrong("unknown format", f"{file} does not show it by its name: give {advice}", key)
    return stated or told or known[0]
