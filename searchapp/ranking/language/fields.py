"""The fields that a typed query may name, and how each is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from searchapp.ranking.marking import index_analyzer, search_analyzer

ID = "id"

_INTEGERS = {"long", "integer", "short", "byte"}
_FLOATS = {"double", "float", "half_float"}


class Kind(Enum):
    """What a field holds: text that is analyzed, values that are the same or not, numbers."""

    text = "text"
    value = "value"
    integer = "integer"
    number = "number"


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields by their full names, and the names of those texts that words without a field are looked for in.

    `analyzers` are what queries in the texts are analyzed by, `indexed_by` what the texts are; `filters` the fields by
    whose values documents are chosen: all that are no text, but the id.
    """

    kinds: Mapping[str, Kind]
    searched: tuple[str, ...]
    analyzers: Mapping[str, str]
    indexed_by: Mapping[str, str]
    filters: tuple[str, ...]

    @classmethod
    def of(cls, mapping: Mapping[str, Any], query: Mapping[str, Any]) -> Fields:
        """The fields of a create-index body; words are looked for in those texts that a recipe's query matches.

        A query that matches sub-fields stands for the text itself: `text.prose` has only a part of what `text` says.
        """
        described = dict(_described(mapping.get("mappings", {}).get("properties", {})))
        kinds = {name: kind for name, one in described.items() if (kind := _kind(one.field)) is not None}
        matched = {described[name].whole for name in _matched(query) if name in described}
        texts = [name for name, kind in kinds.items() if kind is Kind.text]
        whole = [name for name in texts if name == described[name].whole]
        return cls(
            kinds,
            tuple(name for name in whole if name in matched) or tuple(whole),
            {name: search_analyzer(mapping, described[name].field) for name in texts},
            {name: index_analyzer(mapping, described[name].field) for name in texts},
            tuple(
                name
                for name, kind in kinds.items()
                if kind is not Kind.text and name != ID and name == described[name].whole
            ),
        )

    @property
    def facets(self) -> tuple[str, ...]:
        """Those of the `filters` whose values are counted: numbers are too many."""
        return tuple(name for name in self.filters if self.kinds[name] is Kind.value)


class _Described(NamedTuple):
    """A field as the mapping describes it; `whole` is the field that it is a sub-field of, or itself."""

    field: Mapping[str, Any]
    whole: str


def _described(properties: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, _Described]]:
    for short, field in properties.items():
        name = prefix + short
        yield name, _Described(field, name)
        for inner, also in field.get("fields", {}).items():
            yield f"{name}.{inner}", _Described(also, name)
        yield from _described(field.get("properties", {}), f"{name}.")


def _kind(field: Mapping[str, Any]) -> Kind | None:
    """What a field holds; None if it can't be searched."""
    type_ = field.get("type", "")
    if field.get("index", True) in (False, "false"):
        return None
    if type_ == "text":
        return Kind.text
    if type_ == "keyword":
        return Kind.value
    if type_ in _INTEGERS:
        return Kind.integer
    return Kind.number if type_ in _FLOATS else None


def _matched(query: Any) -> Iterator[str]:
    """The fields of every `match`, `match_phrase` and `multi_match` anywhere in a query."""
    if isinstance(query, Mapping):
        for key, content in query.items():
            if key in ("match", "match_phrase") and isinstance(content, Mapping):
                yield from content
            elif key == "multi_match" and isinstance(content, Mapping):
                named = content.get("fields", ())
                yield from (name.partition("^")[0] for name in ([named] if isinstance(named, str) else named))
            else:
                yield from _matched(content)
    elif isinstance(query, list | tuple):
        for one in query:
            yield from _matched(one)
