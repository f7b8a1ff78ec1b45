"""The fields that a typed query may name, and how each is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

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
    """Fields by their full names, and the names of those texts that words without a field are looked for in."""

    kinds: Mapping[str, Kind]
    searched: tuple[str, ...]

    @classmethod
    def of(cls, mapping: Mapping[str, Any], query: Mapping[str, Any]) -> Fields:
        """The fields of a create-index body; words are looked for in those texts that a recipe's query matches.

        A query that matches sub-fields stands for the text itself: `text.prose` has only a part of what `text` says.
        """
        kinds = dict(_kinds(mapping.get("mappings", {}).get("properties", {})))
        matched = {field.partition(".")[0] for field in _matched(query)}
        texts = [name for name, kind in kinds.items() if kind is Kind.text and "." not in name]
        return cls(kinds, tuple(name for name in texts if name in matched) or tuple(texts))

    @property
    def filters(self) -> tuple[str, ...]:
        """The fields by whose values documents are chosen: all that are no text, but the id."""
        return tuple(
            name
            for name, kind in self.kinds.items()
            if kind is not Kind.text and name != ID and "." not in name
        )

    @property
    def facets(self) -> tuple[str, ...]:
        """Those of the `filters` whose values are counted: numbers are too many."""
        return tuple(name for name in self.filters if self.kinds[name] is Kind.value)


def _kinds(properties: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Kind]]:
    for name, described in properties.items():
        kind = _kind(described.get("type", ""))
        if kind is not None:
            yield prefix + name, kind
        for inner in ("properties", "fields"):
            yield from _kinds(described.get(inner, {}), f"{prefix}{name}.")


def _kind(type_: str) -> Kind | None:
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
