"""The JSON layout of SMART answer type prediction, for DBpedia and for Wikidata.

    questions      [{"id": "dbpedia_1", "question": "Who ...?", "category": "resource", "type": ["dbo:Person"]}, ...]
    test questions likewise, without `category` and `type`
    predictions    [{"id": "dbpedia_1", "category": "resource", "type": ["dbo:Person", "dbo:Agent"]}, ...]

Ids are text in some of the organisers' files (DBpedia 2020: `dbpedia_1`) and integers in others (Wikidata, and 2021
of DBpedia too); here they are text always, and `json_array.official_ids` has them as a file does. The category is
boolean (whose type is `boolean`), literal (`date`, `number`, `string`) or resource (types of the knowledge base, best
first in a prediction). Harmless, and found in the real files:

- a question that is null (43 of DBpedia 2020) or empty: it has nothing to rank by, the official scorer leaves it
  out, so does this reader, without a word;
- the same entry twice, id and all (274 of DBpedia 2020): it is read once;
- the same question under several ids, also with other gold (`What is it?`);
- a resource without any type (16 of DBpedia 2020), which the official NDCG leaves out;
- the type dbo:Location (2,247 of DBpedia 2020), which the official hierarchy lacks and the scorer drops;
- a literal with several types (26 of Wikidata 2020).

Gold that the official scorer copes with and nothing can be learnt from is noted, and its question kept: a question
without a category (DBpedia 2021 has such), a literal without types, a type that the hierarchy lacks, a type twice.

Every problem is recorded and the next entry read. An entry with a problem is left out.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from searchapp.formats.ids import encodable, unusable
from searchapp.formats.json_array import Entry, OfficialId, RepeatedKeys, other_type_of_id, read_entries
from searchapp.formats.json_stream import type_name
from searchapp.formats.problems import Problems, shown

RESOURCE, LITERAL, BOOLEAN = "resource", "literal", "boolean"
CATEGORIES = (BOOLEAN, LITERAL, RESOURCE)
LITERALS = ("date", "number", "string")
OTHER_TYPES = (*LITERALS, BOOLEAN)
"""The types of the categories other than resource."""


class Question(NamedTuple):
    """A question. `category` is None, and `types` empty, when it has no gold, or that was not asked for."""

    id: str
    text: str
    category: str | None
    types: tuple[str, ...]


class Prediction(NamedTuple):
    """What one entry of a prediction file says; `official_id` is its id as it stands there."""

    line: int
    id: str
    official_id: OfficialId
    category: str
    types: tuple[str, ...]


def read_questions(
    path: Path,
    problems: Problems,
    *,
    bom: bool = False,
    known: Container[str] | None = None,
    gold: bool = True,
    masked: bool = False,
) -> Iterator[Question]:
    """The questions of a file in its order, without those that are null or empty; its problems go to `problems`.

    A byte-order mark may stand with `bom`. `known` has the types that a resource may have; without it any goes.
    Without `gold` category and types are not looked at; with `masked` they may be missing, null or empty without a
    note.
    """
    seen: dict[str, Any] = {}
    for entry in read_entries(path, problems, bom=bom):
        reader = _Entry(entry, path, problems)
        id_ = reader.id(seen)
        if id_ is None or not reader.text():
            continue
        category, types = reader.gold(known, masked=masked) if gold else (None, ())
        if reader.good:
            yield Question(str(id_), entry.value["question"], category, types)


def read_predictions(
    path: Path, problems: Problems, *, bom: bool = False, known: Container[str] | None = None
) -> Iterator[Prediction]:
    """The predictions of an official file in its order; its problems go to `problems`."""
    seen: dict[str, Any] = {}
    for entry in read_entries(path, problems, bom=bom):
        reader = _Entry(entry, path, problems)
        id_ = reader.id(seen, once=True)
        if id_ is None:
            continue
        category = reader.category()
        types = reader.types(category, known)
        if reader.good:
            yield Prediction(entry.line, str(id_), id_, category, types)


def write_predictions(file: BinaryIO, answers: Iterable[tuple[OfficialId, str, Sequence[str]]]) -> None:
    """Write id, category and types of each answer as the official file: UTF-8, one prediction a line."""
    lines = [
        json.dumps({"id": id_, "category": category, "type": list(types)}, ensure_ascii=False)
        for id_, category, types in answers
    ]
    file.write(("[\n" + ",\n".join(lines) + "\n]\n").encode())


class _Entry:
    """One entry of a file's list; it is `good` until something is found wrong with it."""

    def __init__(self, entry: Entry, path: Path, problems: Problems) -> None:
        self.good = True
        self._value = entry.value
        self._path = path
        self._where = f"line {entry.line}"
        self._problems = problems

    def wrong(self, kind: str, detail: str) -> None:
        self.good = False
        self._problems.add(self._path, kind, self._where, detail)

    def odd(self, kind: str, detail: str) -> None:
        self._problems.note(self._path, kind, self._where, detail)

    def id(self, seen: dict[str, Any], *, once: bool = False) -> OfficialId | None:
        """The entry's id; None when it is not usable, or the same entry has been read already.

        `seen` has the entries by id; with `once` an entry that comes again is a problem too.
        """
        value = self._value
        if not isinstance(value, dict):
            self.wrong("wrong type", f"the entry is {type_name(value)}, not an object")
            return None
        if "id" not in value:
            self.wrong("missing key", "id")
            return None
        first = next((entry["id"] for entry in seen.values()), None)
        if detail := other_type_of_id(value["id"], first):
            self.wrong("wrong type", detail)
            return None
        id_: OfficialId = value["id"]
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
                    "duplicate id", "an earlier entry has this id" + ("" if once else " and other content")
                )
            return None
        seen[text] = value
        return id_

    def text(self) -> bool:
        """Whether the entry has a question that is neither null nor empty."""
        text = self._value.get("question")
        if "question" not in self._value:
            self.wrong("missing key", "question")
        elif text is not None and not isinstance(text, str):
            self.wrong("wrong type", f"question is {type_name(text)}, not a string")
        elif text and not text.strip():
            self.wrong("blank text", "question must not be blank, but may be null")
        elif text and not encodable(text):
            self.wrong("lone surrogate", "question has an escape that is half of a character")
        return text not in (None, "")

    def gold(self, known: Container[str] | None, *, masked: bool) -> tuple[str | None, tuple[str, ...]]:
        """Category and types of a gold question; without a category there are no types."""
        category, types = self._value.get("category"), self._value.get("type")
        if not category and (not types or (category is None and "category" in self._value)):
            if not masked:
                self.odd("no gold", "it has no category, so that nothing is learned from it")
            return None, ()
        known_category = self.category()
        return known_category, self._gold_types(known_category, known)

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

    def types(self, category: str, known: Container[str] | None) -> tuple[str, ...]:
        """The types of a prediction."""
        types = self._listed()
        if not category or types is None:
            return ()
        if not types and category != BOOLEAN:
            self.wrong("no type", f"the category {category} needs at least one")
        for type_ in sorted({type_ for type_ in types if types.count(type_) > 1}):
            self.wrong("repeated type", shown(type_))
        for type_ in self._unknown(category, types, known):
            self.wrong("unknown type", f"{shown(type_)} is not in the type hierarchy")
        self._check(category, types)
        return types

    def _gold_types(self, category: str, known: Container[str] | None) -> tuple[str, ...]:
        """The types of a gold question, each once; null is a list of none."""
        is_null = "type" in self._value and self._value["type"] is None
        types = () if is_null else self._listed()
        if not category or types is None:
            return ()
        if not types and category == LITERAL:
            self.odd("no type", "the literal has none, so that nothing is learned from it")
        for type_ in sorted({type_ for type_ in types if types.count(type_) > 1}):
            self.odd("repeated type", f"{shown(type_)}: it counts once")
        for type_ in self._unknown(category, types, known):
            self.odd("unknown type", f"{shown(type_)} is not in the type hierarchy: the others count")
        self._check(category, types)
        return tuple(dict.fromkeys(types))

    def _listed(self) -> tuple[str, ...] | None:
        """The value of `type` as it stands, if it is a list of text."""
        types = self._value.get("type")
        if "type" not in self._value:
            self.wrong("missing key", "type")
        elif not isinstance(types, list):
            self.wrong("wrong type", f"type is {type_name(types)}, not a list")
        elif not all(isinstance(type_, str) for type_ in types):
            other = next(type_ for type_ in types if not isinstance(type_, str))
            self.wrong("wrong type", f"a type is {type_name(other)}, not a string")
        elif not all(type_.strip() and encodable(type_) for type_ in types):
            self.wrong("blank type", "a type must not be blank")
        else:
            return tuple(types)
        return None

    @staticmethod
    def _unknown(category: str, types: Sequence[str], known: Container[str] | None) -> list[str]:
        """The types of a resource that the knowledge base lacks; one without any other is a contradiction."""
        if category != RESOURCE or known is None or all(type_ in OTHER_TYPES for type_ in types):
            return []
        return [type_ for type_ in dict.fromkeys(types) if type_ not in known]

    def _check(self, category: str, types: Sequence[str]) -> None:
        """Whether the types are such that a question of the category can have them."""
        if not types:
            return
        if category == BOOLEAN and any(type_ != BOOLEAN for type_ in types):
            self.wrong("contradiction", f"the type of a boolean is boolean, not {shown(', '.join(types))}")
        for type_ in types:
            if category == LITERAL and type_ not in LITERALS:
                self.wrong("contradiction", f"{shown(type_)} is not a literal: {', '.join(LITERALS)}")
        # Wikidata has a class `number`: only a resource with no other type contradicts itself.
        if category == RESOURCE and all(type_ in OTHER_TYPES for type_ in types):
            self.wrong(
                "contradiction", f"{shown(', '.join(types))}: a resource needs a type of the knowledge base"
            )
