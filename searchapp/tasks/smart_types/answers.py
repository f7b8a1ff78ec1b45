"""The JSON layout of SMART answer type prediction, for DBpedia and Wikidata.

    questions      [{"id": "dbpedia_1", "question": "Who ...?", "category": "resource", "type": ["dbo:Person"]}, ...]
    test questions likewise, without `category` and `type`
    predictions    [{"id": "dbpedia_1", "category": "resource", "type": ["dbo:Person", "dbo:Agent"]}, ...]

Ids are text or integers in the files; here they are always text, and `formats.json_files.official_ids` has their JSON
types. The category is boolean (whose type is `boolean`), literal (`date`, `number`, `string`) or resource (types of
the knowledge base, best first in a prediction).

Accepted without a note, because official files contain them:

- a null (43 of DBpedia 2020) or empty question, which is skipped, as in the official scorer; - an identical entry
(274 of DBpedia 2020), which is read once; - the same question under several ids, also with different gold (`What is
it?`); - a resource without types (16 of DBpedia 2020), which the official NDCG skips; - the type dbo:Location (2,247
of DBpedia 2020), which the official hierarchy lacks and the scorer drops; - a literal with several types (26 of
Wikidata 2020).

Gold that the official scorer accepts but training can't use is a note. Other problems are reported, and the entry is
skipped.

A document is an answer type with its category, so that one ranking predicts both:

    boolean:boolean   literal:date   literal:number   literal:string   dbo:Person   natural_person

The ids of resources are the types themselves, with `_` for a blank and percent encoding for characters that a run
file can't contain.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from searchapp.errors import NotScorable
from searchapp.evaluation.base import Breakdown, BreakdownRow, Figures
from searchapp.formats.json_files import (
    EntryReader,
    OfficialId,
    RepeatedKeys,
    official,
    read_entries,
    type_name,
)
from searchapp.formats.problems import Problems, encodable, shown
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Hits, Run

RESOURCE, LITERAL, BOOLEAN = "resource", "literal", "boolean"
CATEGORIES = (BOOLEAN, LITERAL, RESOURCE)
LITERALS = ("date", "number", "string")
# The types of the categories other than resource.
OTHER_TYPES = (*LITERALS, BOOLEAN)


class TypesQuestion(NamedTuple):
    """A question; without gold, its category is None and its types are empty."""

    id: str
    text: str
    category: str | None
    types: tuple[str, ...]

    @property
    def has_gold(self) -> bool:
        return self.category is not None


class TypesPrediction(NamedTuple):
    """One entry of a prediction file."""

    line: int
    id: str
    official_id: OfficialId  # with its JSON type
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
) -> Iterator[TypesQuestion]:
    """Read the questions of a file in order, without null and empty ones.

    `known` has the valid types of resources; None accepts any. Without `gold`, category and types are not read; with
    `masked` they may be missing, null or empty.
    """
    seen: dict[str, Any] = {}
    for entry in read_entries(path, problems, bom=bom):
        reader = _TypesReader(path, f"line {entry.line}", entry.value, problems)
        id_ = reader.new_id(seen)
        if id_ is None or not reader.has_question():
            continue
        category, types = reader.gold(known, masked=masked) if gold else (None, ())
        if reader.good:
            yield TypesQuestion(str(id_), entry.value["question"], category, types)


def read_predictions(
    path: Path, problems: Problems, *, bom: bool = False, known: Container[str] | None = None
) -> Iterator[TypesPrediction]:
    """Read the predictions of an official file, in order."""
    seen: dict[str, Any] = {}
    for entry in read_entries(path, problems, bom=bom):
        reader = _TypesReader(path, f"line {entry.line}", entry.value, problems)
        id_ = reader.new_id(seen, once=True)
        if id_ is None:
            continue
        category = reader.category()
        types = reader.types(category, known)
        if reader.good:
            yield TypesPrediction(entry.line, str(id_), id_, category, types)


class _TypesReader(EntryReader):
    def new_id(self, seen: dict[str, Any], *, once: bool = False) -> OfficialId | None:
        """Return the entry's id; None if it is unusable or repeated, which is a problem with `once`."""
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

    def has_question(self) -> bool:
        text = self.value.get("question")
        if "question" not in self.value:
            self.lacks("question")
        elif text is not None and not isinstance(text, str):
            self.wrong("wrong type", f"question is {type_name(text)}, not a string")
        elif text and not text.strip():
            self.wrong("blank text", "question must not be blank, but may be null")
        elif text:
            self.check_encodable(text, "question")
        return text not in (None, "")

    def gold(self, known: Container[str] | None, *, masked: bool) -> tuple[str | None, tuple[str, ...]]:
        category, types = self.value.get("category"), self.value.get("type")
        if not category and (not types or (category is None and "category" in self.value)):
            if not masked:
                self.note("no gold", "it has no category and is not used for training")
            return None, ()
        category = self.category()
        is_null = "type" in self.value and self.value["type"] is None  # counts as an empty list
        types = () if is_null else self._list_of_types()
        if not category or types is None:
            return category, ()
        if not types and category == LITERAL:
            self.note("no type", "the literal has none and is not used for training")
        for type_ in _repeated_types(types):
            self.note("repeated type", f"{shown(type_)}: it counts once")
        for type_ in _unknown_types(category, types, known):
            self.note("unknown type", f"{shown(type_)} is not in the type hierarchy: it is ignored")
        self._check_types(category, types)
        return category, tuple(dict.fromkeys(types))

    def category(self) -> str:
        category = self.value.get("category")
        if "category" not in self.value:
            self.lacks("category")
        elif not isinstance(category, str):
            self.wrong("wrong type", f"category is {type_name(category)}, not a string")
        elif category not in CATEGORIES:
            self.wrong("unknown category", f"{shown(category)} is not one of {', '.join(CATEGORIES)}")
        else:
            return category
        return ""

    def types(self, category: str, known: Container[str] | None) -> tuple[str, ...]:
        types = self._list_of_types()
        if not category or types is None:
            return ()
        if not types and category != BOOLEAN:
            self.wrong("no type", f"the category {category} needs at least one")
        for type_ in _repeated_types(types):
            self.wrong("repeated type", shown(type_))
        for type_ in _unknown_types(category, types, known):
            self.wrong("unknown type", f"{shown(type_)} is not in the type hierarchy")
        self._check_types(category, types)
        return types

    def _list_of_types(self) -> tuple[str, ...] | None:
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

    def _check_types(self, category: str, types: Sequence[str]) -> None:
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


def _repeated_types(types: Sequence[str]) -> list[str]:
    return sorted({type_ for type_ in types if types.count(type_) > 1})


def _unknown_types(category: str, types: Sequence[str], known: Container[str] | None) -> list[str]:
    """Return the resource types that the knowledge base lacks, except those that `_check_types` reports."""
    if category != RESOURCE or known is None or all(type_ in OTHER_TYPES for type_ in types):
        return []
    return [type_ for type_ in dict.fromkeys(types) if type_ not in known]


# Makes the list of an official file from a category and its types, best first.
CompleteTypes = Callable[[str, Sequence[str]], Sequence[str]]

# The most types in a prediction: the scorers read ten.
MOST_TYPES = 10

_PLAIN_PUNCTUATION = string.punctuation.replace("%", "").replace("_", "")
_PREFIXES = (f"{BOOLEAN}:", f"{LITERAL}:")


@dataclass(frozen=True, slots=True)
class TypesPredictions:
    """The unchecked entries of an official file, or of a run."""

    entries: Sequence[Mapping[str, Any]]
    has_text_ids: bool = False  # whether ids are always text

    def aligned(self, gold: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Return the entries with the gold's ids, which have JSON types."""
        if not self.has_text_ids:
            return self.entries
        ids = {str(entry["id"]): entry["id"] for entry in gold if "id" in entry}
        return [{**entry, "id": ids.get(entry["id"], entry["id"])} for entry in self.entries]


def document_id(category: str, type_: str) -> str:
    """Return the document of a category and type.

    >>> document_id("resource", "natural person"), document_id("literal", "date")
    ('natural_person', 'literal:date')
    """
    # Letters of every script stay readable: only separators of a run file must be encoded.
    encoded = "".join(_encoded(character) for character in type_)
    if category != RESOURCE:
        return f"{category}:{encoded}"
    return encoded.replace(":", "%3A", 1) if encoded.startswith(_PREFIXES) else encoded


def _encoded(character: str) -> str:
    if character == " ":
        return "_"
    if character.isalnum() or character in _PLAIN_PUNCTUATION:
        return character
    return "%5F" if character == "_" else quote(character, safe="", errors="surrogatepass")


def category_and_type(document: str) -> tuple[str, str]:
    """Return category and type of a document.

    >>> category_and_type("boolean:boolean")
    ('boolean', 'boolean')
    """
    category = RESOURCE
    for prefix in _PREFIXES:
        if document.startswith(prefix):
            category, document = prefix[:-1], document.removeprefix(prefix)
    return category, unquote(document.replace("_", " "), errors="surrogatepass")


def predict(hits: Hits) -> tuple[str, list[str]]:
    """Return the predicted category and types of a ranking.

    The category is the first document's. The types are the first distinct ones of this category: ten of a
    resource, otherwise one.
    """
    best_category, _type = category_and_type(hits.document_ids[0])
    max_types = MOST_TYPES if best_category == RESOURCE else 1
    types: dict[str, None] = {}
    for document in hits.document_ids:
        category, type_ = category_and_type(document)
        if category == best_category:
            types[type_] = None
        if len(types) == max_types:
            break
    return best_category, list(types)


class ListedTypes(list[str]):
    """The types of a run's prediction in the official file; `ranked` are the ranked types."""

    def __init__(self, listed: Sequence[str], ranked: Sequence[str]) -> None:
        super().__init__(listed)
        self.ranked = list(ranked)


def predictions_of_run(
    run: Run, complete: CompleteTypes = lambda _category, types: types
) -> TypesPredictions:
    """Return the predictions that a scorer would read from a run's official file."""
    entries = []
    for ranking in run:
        if ranking.hits:
            category, types = predict(ranking.hits)
            listed = ListedTypes(complete(category, types), types)
            entries.append({"id": ranking.topic_id, "category": category, "type": listed})
    return TypesPredictions(entries, has_text_ids=True)


def require_key(entry: Mapping[str, Any], key: str, what: str) -> Any:
    """Return a key's value.

    Raises:
        NotScorable: the key is missing, which stops the scorer.
    """
    if key not in entry:
        raise NotScorable(
            f"{what} {shown(str(entry.get('id', '')))} has no key `{key}`", f"KeyError: '{key}'"
        )
    return entry[key]


def hashable_id(entry: Mapping[str, Any], what: str) -> Any:
    """Return an entry's id.

    Raises:
        NotScorable: the id is missing, a list or an object.
    """
    id_ = require_key(entry, "id", what)
    try:
        hash(id_)
    except TypeError as error:
        raise NotScorable(
            f"{what} {shown(str(id_))}: an id must be text or a number", official(error)
        ) from error
    return id_


def listed_types(types: Any) -> list[str]:
    """Return predicted or gold types for general measures: a string is one type, other values are dropped."""
    if isinstance(types, str):
        return [types]
    return [type_ for type_ in types if isinstance(type_, str)] if isinstance(types, list) else []


def documents_of(entry: Mapping[str, Any]) -> list[str]:
    """Return the distinct documents in an entry of gold or predictions; those of a run in ranked order."""
    category = entry.get("category")
    if category == BOOLEAN:
        return [document_id(BOOLEAN, BOOLEAN)]
    types = entry.get("type")
    types = listed_types(types.ranked if isinstance(types, ListedTypes) else types)
    return list(dict.fromkeys(document_id(str(category), type_) for type_ in types))


BREAKDOWNS: tuple[str, ...] = ("category", "gold-types", "first-word")
# Questions with at least as many gold types form one group.
MANY_TYPES = 5
# Questions whose first word is rarer than this share form one group.
RARE_SHARE = 0.01

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The result of one gold question."""

    question: Mapping[str, Any]
    # None if a figure excludes the question.
    figures: Figures
    # The number of gold types.
    types: int
    # The name of the question in `Scored.qrels`.
    name: str


class TypesScorer:
    """The common part of the official scorers for both knowledge bases."""

    files_make_one = False
    breakdowns = BREAKDOWNS

    def predictions(self, run: Run) -> TypesPredictions:
        return predictions_of_run(run)


def make_breakdown(name: str, results: Sequence[QuestionResult]) -> Breakdown:
    """Return one of `BREAKDOWNS`, with the mean of each figure over the questions that have it."""
    if name == "category":
        groups = [str(result.question["category"]) for result in results]
        order = [*CATEGORIES, *sorted(set(groups) - set(CATEGORIES))]
        return _breakdown(name, "by category of the gold", results, groups, order)
    if name == "gold-types":
        # Nearly all questions of the other categories have one type.
        resources = [result for result in results if result.question["category"] == RESOURCE]
        order = [*map(str, range(MANY_TYPES)), f"{MANY_TYPES} or more"]
        groups = [order[min(result.types, MANY_TYPES)] for result in resources]
        return _breakdown(name, "by number of gold types, only resources", resources, groups, order)
    # The scorer for Wikidata accepts questions without text.
    words = [first_word(str(result.question.get("question") or "")) for result in results]
    counts = Counter(words)
    common = sorted(
        (word for word in counts if counts[word] >= RARE_SHARE * len(results)),
        key=lambda word: (-counts[word], word),
    )
    groups = [word if counts[word] >= RARE_SHARE * len(results) else "(other)" for word in words]
    return _breakdown(name, "by first word of the question", results, groups, [*common, "(other)"])


def first_word(question: str) -> str:
    r"""Return the first word in lower case.

    >>> first_word('"What\'s the capital of Peru?')
    'what'
    """
    match = _WORD.search(question)
    return match[0].lower() if match else "(none)"


def _breakdown(
    name: str, title: str, results: Sequence[QuestionResult], groups: Sequence[str], order: Sequence[str]
) -> Breakdown:
    members: dict[str, list[QuestionResult]] = {group: [] for group in order}
    for result, group in zip(results, groups, strict=True):
        members[group].append(result)
    rows = [
        BreakdownRow(
            group, len(of_group), _means(of_group), tuple(dict.fromkeys(result.name for result in of_group))
        )
        for group, of_group in members.items()
        if of_group
    ]
    return Breakdown(name, title, tuple(rows), counted="questions")


def _means(results: Sequence[QuestionResult]) -> dict[str, float]:
    means = {}
    for measure in results[0].figures:
        values = [value for result in results if (value := result.figures[measure]) is not None]
        if values:
            means[measure] = sum(values) / len(values)
    return means
