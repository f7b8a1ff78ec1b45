"""What the scorers of answer type prediction (SMART) share: their files, and questions as rankings of types.

A document is an answer type together with its category, so that one ranking of documents says both:

    boolean:boolean   literal:date   literal:number   literal:string   dbo:Person   natural_person

The ids of the category `resource` are the types themselves, with `_` for a blank and percent signs as in
addresses for what a run file cannot carry; those of the others begin with their category.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from searchapp.errors import NotScorable
from searchapp.evaluation.json_files import official
from searchapp.formats.problems import shown
from searchapp.formats.smart_types import BOOLEAN, LITERAL, RESOURCE
from searchapp.model import Hits, Run

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
