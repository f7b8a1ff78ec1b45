"""The TOML file of a user's own task, and the files that it refers to: texts, grades, an index mapping.

docs/use/own-task.md describes all keys and their defaults. Paths are relative to the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

from searchapp.embeddings.reranker_source import read_rerankers
from searchapp.embeddings.source import read_source
from searchapp.errors import DataError, ErrorCollector
from searchapp.formats import json_files, records, trec
from searchapp.formats.problems import Problems, shown, unusable_id
from searchapp.formats.toml_files import TomlFile, TomlTable
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import BadSettings
from searchapp.lucene.index.index_settings import NOT_INDEXED, canonical, mapped_fields
from searchapp.model import ForeignIndex, Markup
from searchapp.resources import without_description
from searchapp.tasks import OWN, shipped_names
from searchapp.tasks.base import JUDGING_DEPTH, TEXT_FIELDS, TaskInfo
from searchapp.tasks.own.word_lists import with_word_lists
from searchapp.text import choices_hint


@dataclass(frozen=True, slots=True)
class TextLayout:
    """The columns or keys of a file of texts."""

    format: str
    id: str = "id"
    # Columns whose values form the text, one line each; blank values are omitted.
    text: tuple[str, ...] = ("text",)
    # Columns by the names of other fields.
    fields: Mapping[str, str] = field(default_factory=dict)
    # The names of the columns of a table without a header line.
    columns: tuple[str, ...] | None = None


class TextRecord(NamedTuple):
    """A document or topic of a file, with its line or row."""

    where: str
    id: str
    text: str
    fields: dict[str, Any]


def read_texts(
    path: Path, layout: TextLayout, problems: Problems, seen: set[str], *, complete: bool
) -> Iterator[TextRecord]:
    """Read the texts of a file, in order, and add their ids to `seen`, the ids of earlier files.

    An id is text or an integer. Another field is text, a number, a boolean, an object of these or a list. A field that
    is missing, null or an empty cell is omitted; with `complete`, an empty cell is empty text, and a missing key, null
    or an object is a problem. Of several columns of text, each may be missing in some objects.
    """
    unseen: set[str] = set()
    if records.has_keys(layout.format):
        unseen |= set(layout.text if len(layout.text) > 1 else ())
        unseen |= set(() if complete else layout.fields.values())  # with `complete` every line is reported
    is_empty = True
    required = [layout.id, *layout.text, *layout.fields.values()]
    for record in records.read_records(
        path, layout.format, problems, required=required, columns=layout.columns
    ):
        is_empty = False
        if unseen:
            unseen -= record.values.keys()
        reader = _TextReader(path, record.where, record.values, problems)
        id_ = reader.id(layout.id, seen)
        text = reader.joined(layout.text)
        fields = reader.fields(layout.fields, complete=complete)
        if reader.good:
            seen.add(id_)
            yield TextRecord(record.where, id_, text, fields)
    if not is_empty:
        for column in sorted(unseen):
            problems.add(path, "missing key", "", f"no object has the key {column!r}", skippable=False)


class _TextReader(json_files.EntryReader):
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
            elif column not in self.value and len(columns) == 1:
                self.lacks(column)
            elif value is not None or len(columns) == 1:
                self.wrong("wrong type", f"{column} is {json_files.type_name(value)}, not a string")
        text = "\n".join(part for part in parts if part.strip())
        if self.good and not text:
            self.wrong("blank text", f"{' and '.join(columns)} must not be blank")
        else:
            self.check_encodable(text, " or ".join(columns))
        return text

    def fields(self, columns: Mapping[str, str], *, complete: bool) -> dict[str, Any]:
        fields = {}
        for name, column in columns.items():
            value = self.value.get(column)
            if complete and column not in self.value:
                self.lacks(column)
            elif complete and value is None:
                self.wrong("wrong type", f"{column} is null, but templates need a value")
            elif value is not None and (value != "" or complete):
                self._check_field(column, value, may_have_objects=not complete)
                fields[name] = value
        return fields

    def _check_field(self, column: str, value: Any, *, may_have_objects: bool) -> None:
        items = _items(value)
        while items:
            item = items.pop()
            if isinstance(item, dict) and may_have_objects:
                for key, inner in item.items():
                    self.check_encodable(key, column)
                    items += (value for value in _items(inner) if value is not None)
            elif not isinstance(item, str | int | float):
                kind = json_files.type_name(item)
                self.wrong("wrong type", f"{column} has {kind}, not a string, number or boolean")
            elif isinstance(item, float) and not math.isfinite(item):
                self.wrong("number out of range", column)
            elif isinstance(item, str):
                self.check_encodable(item, column)


def _items(value: Any) -> list[Any]:
    return value[::-1] if isinstance(value, list) else [value]


TREC = "trec"
INDEX = "index"  # the format of documents in an index of another program
FORMATS = (TREC, *records.FORMATS)
# The guidelines of a task whose file names no others.
GUIDELINES_FILE = "guidelines.md"
# The suffixes of TREC qrels.
SUFFIXES = (".qrels", ".qrel", ".trec", ".txt")

GradesByTopic = dict[str, dict[str, int]]

_INTEGER = re.compile(r"([+-]?[0-9]{1,9})(?:\.0*)?")


@dataclass(frozen=True, slots=True)
class GradeLayout:
    """The columns or keys of a file of grades."""

    format: str
    topic: str = "topic"
    document: str = "document"
    # A column, or a number that is the grade of every record.
    grade: str | int = "grade"
    columns: tuple[str, ...] | None = None


class GradeRecord(NamedTuple):
    """One grade, with its line or row."""

    where: str
    topic: str
    document: str
    grade: int


def format_of(path: Path) -> str | None:
    """Return the format of grades according to a file's name, if any."""
    return TREC if records.suffix_of(path) in SUFFIXES else records.format_of(path)


def read_grades(path: Path, layout: GradeLayout, problems: Problems, highest: int) -> Iterator[GradeRecord]:
    """Read every valid grade of a file, in order.

    Grades are integers from 0 to `highest`; a negative grade is noted and counts as 0. A document has one grade for a
    topic.
    """
    seen: set[tuple[str, str]] = set()
    for where, topic, document, grade in _integer_grades(path, layout, problems):
        if grade > highest:
            detail = f"{grade}: the grades of the task are 0 to {highest}; add more with `grades`"
            problems.add(path, "unknown grade", where, detail)
        elif (topic, document) in seen:
            detail = f"{shown(document)} of topic {shown(topic)}; the first grade counts"
            problems.add(path, "duplicate document", where, detail)
        else:
            if grade < 0:
                problems.note(path, "negative grade", where, f"{grade} counts as 0, {GRADES[0]}")
            seen.add((topic, document))
            yield GradeRecord(where, topic, document, max(0, grade))


def read_qrels(path: Path, layout: GradeLayout, problems: Problems, highest: int) -> GradesByTopic:
    """Return the grades of a file by topic and document."""
    qrels: GradesByTopic = {}
    for grade in read_grades(path, layout, problems, highest):
        qrels.setdefault(grade.topic, {})[grade.document] = grade.grade
    return qrels


def _integer_grades(path: Path, layout: GradeLayout, problems: Problems) -> Iterator[GradeRecord]:
    if layout.format == TREC:
        for line, (topic, _, document, text) in trec.read_lines(path, problems, trec.QRELS):
            grade = _GradeReader(path, f"line {line}", {}, problems).grade(text)
            if grade is not None:
                yield GradeRecord(f"line {line}", topic, document, grade)
        return
    columns = [layout.topic, layout.document] + ([layout.grade] if isinstance(layout.grade, str) else [])
    for where, values in records.read_records(
        path, layout.format, problems, required=columns, columns=layout.columns
    ):
        reader = _GradeReader(path, where, values, problems)
        missing = [name for name in columns if name not in values]
        if missing:
            reader.lacks(missing[0])
            continue
        topic_id, document_id = (reader.id(name) for name in columns[:2])
        grade = layout.grade if isinstance(layout.grade, int) else reader.grade(values[layout.grade])
        if topic_id is not None and document_id is not None and grade is not None:
            yield GradeRecord(where, topic_id, document_id, grade)


class _GradeReader(json_files.EntryReader):
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
        if isinstance(value, str) and (integer := _INTEGER.fullmatch(value.strip())):
            return int(integer[1])
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        self.wrong("grade not an integer", shown(str(value)))
        return None


def own_mapping(mapping: dict[str, Any], fields: Iterable[str], path: Path, name: str) -> dict[str, Any]:
    """Return the mapping `name` of a task file in canonical form, with the word lists beside its file `path`.

    Fields that it lacks are stored, not indexed. With `dynamic: true` in the mapping, engines add these fields.

    Raises:
        DataError: the mapping is invalid, or lacks id or text, or a word list can't be read.
    """
    try:
        mapping = with_word_lists(canonical(without_description(mapping)), path.parent)
    except (BadSettings, DataError) as error:
        raise DataError(f"{path}: {error}") from error
    mappings = mapping.get("mappings")
    mappings = mappings if isinstance(mappings, dict) else {}
    properties = mappings.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    problems = ErrorCollector()
    for key, kind in (("id", "keyword"), ("text", "text")):
        field = properties.get(key)
        if not isinstance(field, dict) or field.get("type") != kind:
            with problems.at(f"{path}: mappings.properties.{key}"):
                raise DataError(f"the mapping {name} must have a property {key} of type {kind}")
    problems.raise_if_any()
    is_dynamic = mappings.get("dynamic") in (True, "true")
    stored = {field: NOT_INDEXED for field in fields if field not in properties and not is_dynamic}
    return {
        **mapping,
        "mappings": {"dynamic": "strict", **mappings, "properties": {**properties, **stored}},
    }


def foreign_mapping(mapping: dict[str, Any], foreign: ForeignIndex, path: Path, name: str) -> dict[str, Any]:
    """Return the mapping of another program's index in canonical form, with the fields of the text.

    Raises:
        DataError: the mapping is invalid, a field of the text is not a text field, or the id field is no keyword.
    """
    try:
        mapping = canonical(mapping)
    except BadSettings as error:
        raise DataError(f"{path}: the mapping {name}: {error}") from error
    mappings = mapping.get("mappings")
    properties = mappings.get("properties") if isinstance(mappings, dict) else None
    properties = properties if isinstance(properties, dict) else {}
    texts, keywords = texts_and_keywords(properties)
    problems = ErrorCollector()
    for field_name, kind, known in (
        *((text, "text", texts) for text in foreign.text),
        (foreign.id, "keyword", keywords),
    ):
        if field_name is not None and field_name not in known:
            with problems.at(f"{path}: the mapping {name}"):
                choice = choices_hint(field_name, known) if known else repr(field_name)
                raise DataError(f"{foreign.index} has no {kind} field {choice}")
    problems.raise_if_any()
    return {**mapping, "mappings": {"properties": properties, "_meta": {TEXT_FIELDS: list(foreign.text)}}}


def texts_and_keywords(properties: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the names of the fields that can form a text or be its id; nested documents have none."""
    fields = [field for field in mapped_fields(properties) if not field.is_nested]
    texts = [field.name for field in fields if field.type == "text" and field.name == field.source]
    return texts, [field.name for field in fields if field.type == "keyword"]


NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
LONGEST_NAME = 60

# The name of a field, in templates and in the index.
FIELD = re.compile(r"[a-z][a-z0-9_]*")

GRADES = ("not relevant", "relevant")
MEASURE = "nDCG@10"
MEASURES = ("AP", "RR", "nDCG@10", "P@1", "P@5", "P@10", "R@10", "R@100")
DEPTH = 100
OFFICIAL_FILE = "run.trec"


@dataclass(frozen=True, slots=True)
class SplitGold:
    """A gold file and its layout."""

    file: str
    layout: GradeLayout


@dataclass(frozen=True, slots=True)
class SplitTopics:
    """The topics of one split, and their gold, if any."""

    file: str
    layout: TextLayout
    gold: SplitGold | None


@dataclass(frozen=True, slots=True)
class OwnFile:
    """The content of a task file, with defaults for missing keys."""

    info: TaskInfo
    documents: tuple[str, ...]
    layout: TextLayout
    topics: Mapping[str, SplitTopics]
    # The split of the training topics.
    training_split: str | None
    recipes: Mapping[str, Mapping[str, Any]]


def name_problem(name: str) -> str | None:
    """Return why a name is not valid for a task, as a clause; None if it is valid."""
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        return (
            "a name has lower-case letters, digits, - and _, begins with a letter, and has at most "
            f"{LONGEST_NAME} characters, because it is part of the name of an index"
        )
    if re.search(r"-\d{6}", name):
        return "a - followed by six digits names a version of an index"
    if name in shipped_names():
        return "a built-in task has this name"
    return None


def read(path: Path) -> OwnFile:
    """Read a task file.

    Raises:
        InvalidFiles: the file is missing or has problems.
    """
    problems = Problems()
    root = TomlFile(path, problems).root
    problems.raise_if_any()
    content = _content(path, root)
    problems.raise_if_any("`searchapp tasks new` writes a task file to start from")
    return content


def _content(path: Path, root: TomlTable) -> OwnFile:
    # In the order in which messages about unknown keys list the known keys.
    name = root.text("name", "unnamed", required=True)
    if problem := name_problem(name):
        root.wrong("unusable name", f"{name!r}: {problem}", "name")
    title = root.text("title", name)
    about = root.text("about", "A task of your own.")
    mapping = root.text("mapping", "text")
    measure = root.text("measure", MEASURE)
    measures = root.texts("measures") or tuple(other for other in MEASURES if other != measure)
    grades = root.texts("grades") or GRADES
    if len(grades) < 2:
        root.wrong(
            "wrong value",
            "grades needs at least two labels, the first for documents that are not relevant",
            "grades",
        )
    documents, layout, context, foreign = _documents(root)
    if foreign is not None and not mapping.endswith(".json"):
        root.wrong(
            "missing mapping",
            f"mapping must name a .json file with the mapping of {foreign.index}, which `searchapp tasks new FILE "
            f"--from-index {foreign.index}` writes",
            "mapping",
        )
    topics = {table.name: _topics(table) for table in root.tables("topics")}
    training_split = root.text("training_split")
    if training_split is not None and training_split not in topics:
        choice = (
            choices_hint(training_split, topics)
            if topics
            else f"{training_split!r}: the file has no [topics.NAME]"
        )
        root.wrong("unknown split", f"training_split names {choice}", "training_split")
    elif training_split is not None and topics[training_split].gold is None:
        root.wrong("missing gold", f"the training split {training_split} needs gold", "training_split")
    elif training_split is not None and foreign is not None:
        root.wrong(
            "unusable split",
            "training topics need an index of searchapp, and a task on an index of another program is only read",
            "training_split",
        )
    recipes = {table.name: table.content for table in root.tables("recipes")}
    info = TaskInfo(
        name=name,
        title=title,
        about=about,
        splits=tuple(topics),
        mapping=mapping,
        training_mapping=mapping if training_split else None,
        official_measure=measure,
        official_file=OFFICIAL_FILE,
        measures=measures,
        grades=grades,
        context=context,
        foreign=foreign,
        file=path,
        indexes=(f"{OWN}{name}",),
        topics_are_documents=bool(root.truth("topics_are_documents")),
        default_depth=root.whole("depth", DEPTH, 1),
        judging_depth=root.whole("judging_depth", JUDGING_DEPTH, 1),
        guidelines=_guidelines(root, path.parent),
        default_recipe=root.text("recipe", "bm25"),
        search_recipe=root.text("search_recipe", "words"),
        markup=_markup(root),
        embeddings=read_source(root, path.parent),
        rerankers=read_rerankers(root, path.parent),
    )
    root.finish()
    return OwnFile(info, documents, layout, topics, training_split, recipes)


def _guidelines(root: TomlTable, folder: Path) -> Path | None:
    name = root.text("guidelines")
    file = folder / (name or GUIDELINES_FILE)
    if file.is_file():
        return file
    if name is not None:
        root.wrong("missing guidelines", f"guidelines names {name!r}, but {file} is not a file", "guidelines")
    return None


def _markup(root: TomlTable) -> Markup:
    name = root.text("markup", Markup.latex)
    if name in list(Markup):
        return Markup(name)
    root.wrong("wrong value", f"markup is {choices_hint(name, list(Markup))}", "markup")
    return Markup.latex


def _documents(
    root: TomlTable,
) -> tuple[tuple[str, ...], TextLayout, tuple[str, str] | None, ForeignIndex | None]:
    table = root.table("documents", required=True)
    if table is None:
        return (), TextLayout("jsonl"), None, None
    file, files, index = table.text("file"), table.texts("files"), table.text("index")
    if index is not None:
        if file is not None or files is not None:
            table.wrong("wrong value", "[documents] needs one of file, files and index", "index")
        text = table.texts("text", single=True) or ("text",)
        foreign = ForeignIndex(index, table.text("id"), text, _fields(table))
        table.finish()
        return (), TextLayout(INDEX, foreign.id or "_id", text, foreign.fields), None, foreign
    if (file is None) == (files is None) and table.has("file") == table.has("files"):
        table.wrong("missing key", "[documents] needs one of file, files and index")
    files = files or ((file,) if file else ())
    layout = _text_layout(table, files)
    context = table.texts("context")
    table.finish()
    if context is None:
        return files, layout, None, None
    if len(context) != 2 or not set(context) <= set(layout.fields):
        detail = (
            "context must be two of the fields: the text that a document belongs to, and its position there"
        )
        table.wrong("wrong value", detail, "context")
        return files, layout, None, None
    return files, layout, (context[0], context[1]), None


def _topics(table: TomlTable) -> SplitTopics:
    if not NAME.fullmatch(table.name):
        detail = f"{table.name!r} is not a valid name of a split: use lower-case letters, digits, - and _"
        table.wrong("unusable name", detail)
    file = table.text("file", "", required=True)
    layout = _text_layout(table, (file,))
    gold = None
    if isinstance(table.raw("gold"), dict):
        inner = table.table("gold")
        assert inner is not None
        gold_file = inner.text("file", "", required=True)
        layout_of_gold = GradeLayout(
            format=_format(inner, gold_file, FORMATS, format_of(Path(gold_file))),
            topic=inner.text("topic", "topic"),
            document=inner.text("document", "document"),
            grade=inner.text_or_whole("grade", "grade"),
            columns=inner.texts("columns"),
        )
        inner.finish()
        gold = SplitGold(gold_file, layout_of_gold)
    elif gold_file := table.text("gold", ""):
        format_ = _format(table, gold_file, FORMATS, format_of(Path(gold_file)), "gold")
        gold = SplitGold(gold_file, GradeLayout(format_))
    table.finish()
    return SplitTopics(file, layout, gold)


def _text_layout(table: TomlTable, files: tuple[str, ...]) -> TextLayout:
    file = files[0] if files else ""
    if len({records.format_of(Path(name)) for name in files}) > 1 and not table.has("format"):
        table.wrong("different formats", "all files must have the same format: name it with format", "files")
    format_ = _format(table, file, tuple(records.FORMATS), records.format_of(Path(file)))
    fields = _fields(table, FIELD)
    return TextLayout(
        format=format_,
        id=table.text("id", "id"),
        text=table.texts("text", single=True) or ("text",),
        fields=fields,
        columns=table.texts("columns"),
    )


def _fields(table: TomlTable, pattern: re.Pattern[str] | None = None) -> dict[str, str]:
    fields = table.mapping("fields")
    usable = "any name but" if pattern is None else "lower-case letters, digits and _, but not"
    for name in fields:
        if name in ("id", "text") or (pattern is not None and not pattern.fullmatch(name)):
            table.wrong(
                "unusable name",
                f"{name!r} is not a valid name of a field: use {usable} id or text, as in "
                f"fields = {{ my_name = {name!r} }}",
                "fields",
            )
    return fields


def _format(
    table: TomlTable, file: str, known: tuple[str, ...], by_name: str | None, key: str = "file"
) -> str:
    stated = None if key == "gold" else table.text("format")
    if stated is not None and stated not in known:
        table.wrong("unknown format", choices_hint(stated, known), "format")
    if stated is None and by_name is None and file:
        advice = (
            f"gold = {{ file = {file!r}, format = ... }}"
            if key == "gold"
            else f"format = {' or '.join(known)}"
        )
        table.wrong("unknown format", f"{file} has an unknown suffix: add {advice}", key)
    return stated or by_name or known[0]
