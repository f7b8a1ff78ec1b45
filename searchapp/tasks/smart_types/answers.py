"""The JSON layout of SMART answer type prediction, for DBpedia and for Wikidata.

    questions      [{"id": "dbpedia_1", "question": "Who ...?", "category": "resource", "type": ["dbo:Person"]}, ...]
    test questions likewise, without `category` and `type`
    predictions    [{"id": "dbpedia_1", "category": "resource", "type": ["dbo:Person", "dbo:Agent"]}, ...]

Ids are text in some of the organisers' files (DBpedia 2020: `dbpedia_1`) and integers in others (Wikidata, and 2021
of DBpedia too); here they are text always, and `formats.json_files.official_ids` has them as a file does. The
category is boolean (whose type is `boolean`), literal (`date`, `number`, `string`) or resource (types of the
knowledge base, best first in a prediction). Harmless, and found in the real files:

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

As a ranking, a document is an answer type together with its category, so that one ranking says both:

    boolean:boolean   literal:date   literal:number   literal:string   dbo:Person   natural_person

The ids of the category `resource` are the types themselves, with `_` for a blank and percent signs as in
addresses for what a run file cannot carry; those of the others begin with their category.

The breakdowns are by category, by number of gold types and by the first word of the question.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from searchapp.errors import NotScorable
from searchapp.evaluation.base import Breakdown, Figures, Row
from searchapp.formats.json_files import (
    EntryReader,
    OfficialId,
    RepeatedKeys,
    official,
    read_entries,
    type_name,
)
from searchapp.formats.problems import Problems, encodable, shown
from searchapp.model import Hits, Run

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
        reader = _Entry(path, f"line {entry.line}", entry.value, problems)
        id_ = reader.own_id(seen)
        if id_ is None or not reader.is_asked():
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
        reader = _Entry(path, f"line {entry.line}", entry.value, problems)
        id_ = reader.own_id(seen, once=True)
        if id_ is None:
            continue
        category = reader.category()
        types = reader.types(category, known)
        if reader.good:
            yield Prediction(entry.line, str(id_), id_, category, types)


class _Entry(EntryReader):
    """One entry of a file's list."""

    def own_id(self, seen: dict[str, Any], *, once: bool = False) -> OfficialId | None:
        """The entry's id; None when it is not usable, or the same entry has been read already.

        `seen` has the entries by id; with `once` an entry that comes again is a problem too.
        """
        value = self.value
        id_ = self.official_id(next((entry["id"] for entry in seen.values()), None))
        if id_ is None:
            return None
        if isinstance(value, RepeatedKeys):
            self.wrong("duplicate key", ", ".join(map(shown, value.names)))
        text = str(id_)
        if text in seen:
            if once or value != seen[text]:
                self.wrong(
                    "duplicate id", "an earlier entry has this id" + ("" if once else " and other content")
                )
            return None
        seen[text] = value
        return id_

    def is_asked(self) -> bool:
        """Whether the entry has a question that is neither null nor empty."""
        text = self.value.get("question")
        if "question" not in self.value:
            self.lacks("question")
        elif text is not None and not isinstance(text, str):
            self.wrong("wrong type", f"question is {type_name(text)}, not a string")
        elif text and not text.strip():
            self.wrong("blank text", "question must not be blank, but may be null")
        elif text and not encodable(text):
            self.wrong("lone surrogate", "question has an escape that is half of a character")
        return text not in (None, "")

    def gold(self, known: Container[str] | None, *, masked: bool) -> tuple[str | None, tuple[str, ...]]:
        """Category and types of a gold question; without a category there are no types."""
        category, types = self.value.get("category"), self.value.get("type")
        if not category and (not types or (category is None and "category" in self.value)):
            if not masked:
                self.note("no gold", "it has no category, so that nothing is learned from it")
            return None, ()
        known_category = self.category()
        return known_category, self._gold_types(known_category, known)

    def category(self) -> str:
        category = self.value.get("category")
        if "category" not in self.value:
            self.lacks("category")
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
        is_null = "type" in self.value and self.value["type"] is None
        types = () if is_null else self._listed()
        if not category or types is None:
            return ()
        if not types and category == LITERAL:
            self.note("no type", "the literal has none, so that nothing is learned from it")
        for type_ in sorted({type_ for type_ in types if types.count(type_) > 1}):
            self.note("repeated type", f"{shown(type_)}: it counts once")
        for type_ in self._unknown(category, types, known):
            self.note("unknown type", f"{shown(type_)} is not in the type hierarchy: the others count")
        self._check(category, types)
        return tuple(dict.fromkeys(types))

    def _listed(self) -> tuple[str, ...] | None:
        """The value of `type` as it stands, if it is a list of text."""
        types = self.list_of("type")
        if types is None:
            return None
        if not all(isinstance(type_, str) for type_ in types):
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


Listed = Callable[[str, Sequence[str]], Sequence[str]]
"""What the official file lists for a category and its types, best first."""

InSplit = Callable[[str | None, str], bool]
"""Whether the question of an id belongs to a split, for gold files that hold several."""

MOST_TYPES = 10
"""How many types a prediction has at most: the scorers look at no more than ten."""

_KEPT = string.punctuation.replace("%", "").replace("_", "")
_PREFIXES = (f"{BOOLEAN}:", f"{LITERAL}:")


@dataclass(frozen=True, slots=True)
class Predictions:
    """The entries of an official file, each with its keys as they stand.

    With `of_run` their ids are text, as runs have them, and stand for whichever id of the gold is written so.
    """

    entries: Sequence[Mapping[str, Any]]
    of_run: bool = False

    def aligned(self, gold: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """The entries with ids of the type that the gold has."""
        if not self.of_run:
            return self.entries
        ids = {str(entry["id"]): entry["id"] for entry in gold if "id" in entry}
        return [{**entry, "id": ids.get(entry["id"], entry["id"])} for entry in self.entries]


def document_id(category: str, type_: str) -> str:
    """The id of the document that stands for a type.

    >>> document_id("resource", "natural person"), document_id("literal", "date")
    ('natural_person', 'literal:date')
    """
    # What is not ASCII stays readable: only what separates the cells of a run file must go.
    encoded = "".join(_encoded(character) for character in type_)
    if category != RESOURCE:
        return f"{category}:{encoded}"
    return encoded.replace(":", "%3A", 1) if encoded.startswith(_PREFIXES) else encoded


def _encoded(character: str) -> str:
    if character == " ":
        return "_"
    if character.isalnum() or character in _KEPT:
        return character
    return "%5F" if character == "_" else quote(character, safe="", errors="surrogatepass")


def category_and_type(document: str) -> tuple[str, str]:
    """What the document of an id stands for.

    >>> category_and_type("boolean:boolean")
    ('boolean', 'boolean')
    """
    category = RESOURCE
    for prefix in _PREFIXES:
        if document.startswith(prefix):
            category, document = prefix[:-1], document.removeprefix(prefix)
    return category, unquote(document.replace("_", " "), errors="surrogatepass")


def prediction(hits: Hits) -> tuple[str, list[str]]:
    """Category and types of a ranking.

    The category is that of the best-ranked document; the types are the best-ranked of this category, each once:
    up to ten for a resource, the first alone otherwise, since an answer has one literal type.
    """
    best, _type = category_and_type(hits.document_ids[0])
    wanted = MOST_TYPES if best == RESOURCE else 1
    types: dict[str, None] = {}
    for document in hits.document_ids:
        category, type_ = category_and_type(document)
        if category == best:
            types[type_] = None
        if len(types) == wanted:
            break
    return best, list(types)


class ListedTypes(list[str]):
    """The types of a run's prediction as the official file lists them; `ranked` are those of them that were ranked."""

    def __init__(self, listed: Sequence[str], ranked: Sequence[str]) -> None:
        super().__init__(listed)
        self.ranked = list(ranked)


def as_ranked(_category: str, types: Sequence[str]) -> Sequence[str]:
    """The list of an official file that has the types as they are ranked."""
    return types


def of_run(run: Run, listed: Listed = as_ranked) -> Predictions:
    """What a scorer would read from the official file of a run, but for the type of its ids."""
    entries = []
    for ranking in run:
        if ranking.hits:
            category, types = prediction(ranking.hits)
            of_file = ListedTypes(listed(category, types), types)
            entries.append({"id": ranking.topic_id, "category": category, "type": of_file})
    return Predictions(entries, of_run=True)


def required(entry: Mapping[str, Any], key: str, what: str) -> Any:
    """A key's value.

    Raises:
        NotScorable: the scorer stops because the key is missing.
    """
    if key not in entry:
        raise NotScorable(
            f"{what} {shown(str(entry.get('id', '')))} has no key `{key}`", f"KeyError: '{key}'"
        )
    return entry[key]


def hashable_id(entry: Mapping[str, Any], what: str) -> Any:
    """An entry's id, that distinguishes entries.

    Raises:
        NotScorable: there is none, or it is a list or an object.
    """
    id_ = required(entry, "id", what)
    try:
        hash(id_)
    except TypeError as error:
        raise NotScorable(
            f"{what} {shown(str(id_))}: an id must be text or a number", official(error)
        ) from error
    return id_


def as_types(types: Any) -> list[str]:
    """Predicted or gold types as text for the field's measures: one string is one type, what is no text is none."""
    if isinstance(types, str):
        return [types]
    return [type_ for type_ in types if isinstance(type_, str)] if isinstance(types, list) else []


def documents_of(entry: Mapping[str, Any]) -> list[str]:
    """The documents that an entry of gold or predictions names, each once; of a run's as they are ranked."""
    category = entry.get("category")
    if category == BOOLEAN:
        return [document_id(BOOLEAN, BOOLEAN)]
    types = entry.get("type")
    types = as_types(types.ranked if isinstance(types, ListedTypes) else types)
    return list(dict.fromkeys(document_id(str(category), type_) for type_ in types))


BREAKDOWNS: tuple[str, ...] = ("category", "gold-types", "first-word")
"""The names that `evaluate --by` takes."""

MANY = 5
"""From this number of gold types on, questions are one group."""
RARE = 0.01
"""First words of fewer questions than this share of all are one group."""

_WORD = re.compile(r"\w+")
_CATEGORY_ORDER = ("boolean", "literal", "resource")


@dataclass(frozen=True, slots=True)
class Single:
    """One result: the gold question, its figures (None where it is left out of one), how many types it has.

    `name` is that of the question in `Scored.qrels`.
    """

    question: Mapping[str, Any]
    figures: Figures
    types: int
    name: str


def broken_down(name: str, singles: Sequence[Single]) -> Breakdown:
    """One of `BREAKDOWNS`. Each figure of a group is the mean over its questions that have it, as in the whole."""
    if name == "category":
        groups = [str(single.question["category"]) for single in singles]
        order = [*_CATEGORY_ORDER, *sorted(set(groups) - set(_CATEGORY_ORDER))]
        return _breakdown(name, "by category of the gold", singles, groups, order)
    if name == "gold-types":
        return _by_types(name, singles)
    # The scorer of wikidata needs no text of a question.
    words = [first_word(str(single.question.get("question") or "")) for single in singles]
    counts = Counter(words)
    common = sorted(
        (word for word in counts if counts[word] >= RARE * len(singles)),
        key=lambda word: (-counts[word], word),
    )
    kept = set(common)
    groups = [word if word in kept else "(other)" for word in words]
    return _breakdown(name, "by first word of the question", singles, groups, [*common, "(other)"])


def first_word(question: str) -> str:
    r"""The first word in lower case.

    >>> first_word('"What\'s the capital of Peru?')
    'what'
    """
    match = _WORD.search(question)
    return match[0].lower() if match else "(none)"


def _by_types(name: str, singles: Sequence[Single]) -> Breakdown:
    """By number of gold types, resources alone: the others have one type by definition, or nearly so."""
    resources = [single for single in singles if single.question["category"] == "resource"]
    order = [*map(str, range(MANY)), f"{MANY} or more"]
    groups = [order[min(single.types, MANY)] for single in resources]
    return _breakdown(name, "by number of gold types, resources alone", resources, groups, order)


def _breakdown(
    name: str, title: str, singles: Sequence[Single], groups: Sequence[str], order: Sequence[str]
) -> Breakdown:
    members: dict[str, list[Single]] = {group: [] for group in order}
    for single, group in zip(singles, groups, strict=True):
        members[group].append(single)
    rows = [
        Row(group, len(held), _means(held), tuple(dict.fromkeys(single.name for single in held)))
        for group, held in members.items()
        if held
    ]
    return Breakdown(name, title, tuple(rows), counted="questions")


def _means(singles: Sequence[Single]) -> dict[str, float]:
    means = {}
    for measure in singles[0].figures:
        values = [value for single in singles if (value := single.figures[measure]) is not None]
        if values:
            means[measure] = sum(values) / len(values)
    return means
