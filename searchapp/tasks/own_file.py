"""The TOML file of a user's own task, as far as it can be understood without the files that it names.

    name = "cooking"

    [documents]
    file = "recipes.jsonl"

    [topics.dev]
    file = "questions.tsv"
    gold = "qrels.txt"

Every other key has a default; docs/own-task.md has them all. Paths are relative to the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchapp.formats import graded, records
from searchapp.formats.graded import GradeLayout
from searchapp.formats.problems import Problems
from searchapp.formats.texts import TextLayout
from searchapp.model import Markup
from searchapp.names import refused
from searchapp.tasks import catalogue
from searchapp.tasks.base import JUDGING_DEPTH
from searchapp.tasks.toml_file import TomlFile, TomlTable

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
    if name in catalogue.names():
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
        choice = refused(examples, topics) if topics else f"{examples!r}: none is named"
        root.wrong("unknown split", f"examples names {choice}", "examples")
    elif examples is not None and topics[examples].gold is None:
        root.wrong("missing gold", f"the split {examples} can't be solved examples without gold", "examples")
    recipes = {table.name: table.held for table in root.tables("recipes")}
    alike = root.raw("topics_are_documents")
    if not isinstance(alike, bool | None):
        root.wrong("wrong value", "topics_are_documents must be true or false", "topics_are_documents")
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
    root.wrong("wrong value", f"markup is {refused(written, list(Markup))}", "markup")
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
            format=_format(inner, named, graded.FORMATS, graded.format_of(Path(named))),
            topic=inner.text("topic", "topic") or "",
            document=inner.text("document", "document") or "",
            grade=inner.text_or_whole("grade", "grade"),
            columns=inner.texts("columns"),
        )
        inner.finish()
        gold = Gold(named, layout_of_gold)
    elif named_alone := table.text("gold"):
        format_ = _format(table, named_alone, graded.FORMATS, graded.format_of(Path(named_alone)), "gold")
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
        table.wrong("unknown format", refused(stated, known), "format")
    if stated is None and told is None and file:
        advice = (
            f"gold = {{ file = {file!r}, format = ... }}"
            if key == "gold"
            else f"format = {' or '.join(known)}"
        )
        table.wrong("unknown format", f"{file} does not show it by its name: give {advice}", key)
    return stated or told or known[0]
