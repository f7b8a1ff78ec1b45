"""The JSON layout of SMART answer type prediction, for DBpedia and for Wikidata.

    questions      [{"id": "dbpedia_1", "question": "Who ...?", "category": "resource", "type": ["dbo:Person"]}, ...]
    test questions likewise, without `category` and `type`
    predictions    [{"id": "dbpedia_1", "category": "resource", "type": ["dbo:Person", "dbo:Agent"]}, ...]

Ids are text for DBpedia and integers for Wikidata; here they are text always. The category is boolean (whose type
is `boolean`), literal (`date`, `number`, `string`) or resource (types of the knowledge base, best first in a
prediction). Harmless, and found in the real files:

- a question that is null (43 of DBpedia): it has nothing to rank by, the official scorer leaves it out, so does
  this reader, without a word;
- the same entry twice, id and all (274 of DBpedia): it is read once;
- the same question under several ids, also with other gold (`What is it?`);
- a resource without any type (16 of DBpedia), which the official NDCG leaves out;
- the type dbo:Location (2,247 of DBpedia), which the official hierarchy lacks and the scorer drops;
- a literal with several types (26 of Wikidata).

Every problem is recorded and the next entry read. An entry with a problem is left out.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from searchapp.formats.ids import encodable, unusable
from searchapp.formats.json_array import Entry, RepeatedKeys, read_entries
from searchapp.formats.json_stream import type_name
from searchapp.formats.problems import Problems, shown

RESOURCE, LITERAL, BOOLEAN = "resource", "literal", "boolean"
CATEGORIES = (BOOLEAN, LITERAL, RESOURCE)
LITERALS = ("date", "number", "string")


@dataclass(frozen=True, slots=True)
class Layout:
    """How the files of one knowledge base differ: whether ids are integers, whether a byte-order mark may stand."""

    integer_ids: bool
    bom: bool


DBPEDIA = Layout(integer_ids=False, bom=False)
WIKIDATA = Layout(integer_ids=True, bom=True)


class Question(NamedTuple):
    """A question. `category` is None, and `types` empty, when the gold is masked or was not asked for."""

    id: str
    text: str
    category: str | None
    types: tuple[str, ...]


class Prediction(NamedTuple):
    """What one entry of a prediction file says."""

    line: int
    id: str
    category: str
    types: tuple[str, ...]


def read_questions(
    path: Path,
    problems: Problems,
    layout: Layout,
    *,
    known: Container[str] | None = None,
    gold: bool = True,
    masked: bool = False,
) -> Iterator[Question]:
    """The questions of a file in its order, without those that are null; its problems go to `problems`.

    `known` has the types that a resource may have; without it any goes. Without `gold` category and types are not
    looked at; with `masked` they may be missing, null or empty.
    """
    seen: dict[str, Any] = {}
    for entry in read_entries(path, problems, bom=layout.bom):
        reader = _Entry(entry, path, problems, layout)
        id_ = reader.id(seen)
        if id_ is None or not reader.text():
            continue
        value = entry.value
        category: str | None = None
        types: tuple[str, ...] = ()
        if gold and not (masked and not value.get("category") and not value.get("type")):
            category = reader.category()
            types = reader.types(category, known, may_be_empty=True)
        if reader.good:
            yield Question(id_, value["question"], category, types)


def read_predictions(
    path: Path, problems: Problems, layout: Layout, known: Container[str] | None = None
) -> Iterator[Prediction]:
    """The predictions of an official file in its order; its problems go to `problems`."""
    seen: dict[str, Any] = {}
    for entry in read_entries(path, problems, bom=layout.bom):
        reader = _Entry(entry, path, problems, layout)
        id_ = reader.id(seen, once=True)
        if id_ is None:
            continue
        category = reader.category()
        types = reader.types(category, known, may_be_empty=category == BOOLEAN)
        if reader.good:
            yield Prediction(entry.line, id_, category, types)


def write_predictions(
    file: BinaryIO, answers: Sequence[tuple[str, str, Sequence[str]]], layout: Layout
) -> None:
    """Write id, category and types of each answer as the official file: UTF-8, one prediction a line."""
    lines = []
    for id_, category, types in answers:
        official_id = int(id_) if layout.integer_ids else id_
        entry = {"id": official_id, "category": category, "type": list(types)}
        lines.append(json.dumps(entry, ensure_ascii=False))
    file.write(("[\n" + ",\n".join(lines) + "\n]\n").encode())


class _Entry:
    """One entry of a file's list; it is `good` until something is found wrong with it."""

    def __init__(self, entry: Entry, path: Path, problems: Problems, layout: Layout) -> None:
        self.good = True
        self._value = entry.value
        self._path = path
        self._where = f"line {entry.line}"
        self._problems = problems
        self._layout = layout

    def wrong(self, kind: str, detail: str) -> None:
        self.good = False
        self._problems.add(self._path, kind, self._where, detail)

    def id(self, seen: dict[str, Any], *, once: bool = False) -> str | None:
        """The entry's id as text; None when it is not usable, or the same entry has been read already.

        `seen` has the entries by id; with `once` an entry that comes again is a problem too.
        """
        value = self._value
        if not isinstance(value, dict):
            self.wrong("wrong type", f"the entry is {type_name(value)}, not an object")
            return None
        if "id" not in value:
            self.wrong("missing key", "id")
            return None
        id_, expected = value["id"], "an integer" if self._layout.integer_ids else "a string"
        if type(id_) is not (int if self._layout.integer_ids else str):
            self.wrong("wrong type", f"id is {type_name(id_)}, not {expected}")
            return None
        text = str(id_)
        if problem := unusable(text):
            self.wrong(problem[0], f"{shown(text)}: {problem[1]}")
            return None
        self._where += f": question {shown(text)}"
        if isinstance(value, RepeatedKeys):
            self.wrong("duplicate key", ", ".join(map(shown, value.names)))
        if text in seen:
            if once or value != seen[text]:
                self.wrong(
                    "duplicate id", "an entry before has this id" + ("" if once else " and says otherwise")
                )
            return None
        seen[text] = value
        return text

    def text(self) -> bool:
        """Whether the entry has a question that is not null."""
        text = self._value.get("question")
        if "question" not in self._value:
            self.wrong("missing key", "question")
        elif text is not None and not isinstance(text, str):
            self.wrong("wrong type", f"question is {type_name(text)}, not a string")
        elif text is not None and not text.strip():
            self.wrong("blank text", "question must say something, or be null")
        elif text is not None and not encodable(text):
            self.wrong("lone surrogate", "question has an escape that is half of a character")
        return text is not None

    def category(self) -> str:
        category = self._value.get("category")
        if "category" not in self._value:
            self.wrong("missing key", "category")
        elif not isinstance(category, str):
            self.wrong("wrong type", f"category is {type_name(category)}, not a string")
        elif category not in CATEGORIES:
            self.wrong("unknown category", f"{shown(category)} is not {', '.join(CATEGORIES)}")
        else:
            return category
        return ""

    def types(self, category: str, known: Container[str] | None, *, may_be_empty: bool) -> tuple[str, ...]:
        types = self._value.get("type")
        if "type" not in self._value:
            self.wrong("missing key", "type")
        elif not isinstance(types, list):
            self.wrong("wrong type", f"type is {type_name(types)}, not a list")
        elif not all(isinstance(type_, str) for type_ in types):
            other = next(type_ for type_ in types if not isinstance(type_, str))
            self.wrong("wrong type", f"a type is {type_name(other)}, not a string")
        elif not all(type_.strip() and encodable(type_) for type_ in types):
            self.wrong("blank type", "a type must say something")
        elif not types:
            if category == LITERAL or not may_be_empty:
                self.wrong("no type", f"the category {category} needs at least one")
        elif category:
            self._check(category, types, known)
            return tuple(types)
        return ()

    def _check(self, category: str, types: Sequence[str], known: Container[str] | None) -> None:
        for type_ in sorted({type_ for type_ in types if types.count(type_) > 1}):
            self.wrong("repeated type", shown(type_))
        if category == BOOLEAN and list(types) != [BOOLEAN]:
            self.wrong("contradiction", f"the type of a boolean is boolean, not {shown(', '.join(types))}")
        for type_ in types:
            if category == LITERAL and type_ not in LITERALS:
                self.wrong("contradiction", f"{shown(type_)} is no literal: {', '.join(LITERALS)}")
        if category != RESOURCE:
            return
        # Wikidata has a class `number`: only a resource with no other type contradicts itself.
        if all(type_ in (*LITERALS, BOOLEAN) for type_ in types):
            self.wrong(
                "contradiction", f"{shown(', '.join(types))}: a resource needs a type of the knowledge base"
            )
        elif known is not None:
            for type_ in types:
                if type_ not in known:
                    self.wrong("unknown type", f"{shown(type_)} is not in the type hierarchy")
