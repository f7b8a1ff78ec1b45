"""The `_source` of search bodies: the parts of a source to return.

    org.elasticsearch.search.lookup.SourceFilter
    org.elasticsearch.common.xcontent.support.XContentMapValues.filter
    org.elasticsearch.xcontent.support.filtering.{FilterPath, FilterPathBasedFilter}

Elasticsearch filters with patterns of whole paths, where an asterisk stands for dots too, if an exclude has an
asterisk. Otherwise it filters with patterns of each name in a path, and drops objects and lists that become empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import ErrorCollector, invalid, known_only, unsupported

_NOTHING = object()  # a part that is not returned

# Patterns of names by their first name; True after the last name.
Names = Mapping[str, Any]


@dataclass(frozen=True)
class SourceFilter:
    """The properties of a source to return: `includes` (empty: all) without `excludes`."""

    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    shows_vectors: bool | None = None  # None: if `includes` do, or the index

    @classmethod
    def of(cls, value: Any) -> SourceFilter | None:
        """Read the `_source` of a search body: true, false, a name, names, or includes and excludes.

        Returns None for false.
        """
        if isinstance(value, bool):
            return cls() if value else None
        problems = ErrorCollector()
        excludes: tuple[str, ...] = ()
        shows_vectors: bool | None = None
        if isinstance(value, Mapping):
            with problems.at("_source"):
                known_only(value, {"includes", "excludes", "exclude_vectors"}, "`_source`")
                if "exclude_vectors" in value:
                    label = "`exclude_vectors` of `_source`"
                    if value["exclude_vectors"] == "":
                        raise invalid(f"{label} must be true or false")
                    shows_vectors = not parameters.flag(value["exclude_vectors"], label)
            includes, excludes = (
                _patterns(value.get(key, ()), f"_source.{key}", problems, only_text=True)
                for key in ("includes", "excludes")
            )
        else:
            includes = _patterns(value, "_source", problems)
        problems.raise_if_any()
        return cls(includes, excludes, True if includes else shows_vectors)

    def apply(self, source: Mapping[str, Any]) -> Mapping[str, Any]:
        if any("*" in pattern for pattern in self.excludes):
            return self._members(source, "")
        filtered: Any = source
        if self.includes:
            filtered = _by_names(filtered, [self._included], is_inclusive=True)
        if self.excludes and filtered is not _NOTHING:
            filtered = _by_names(filtered, [self._excluded], is_inclusive=False)
        return {} if filtered is _NOTHING else filtered

    @cached_property
    def _included(self) -> Names:
        return _names(self.includes)

    @cached_property
    def _excluded(self) -> Names:
        return _names(self.excludes)

    def _members(
        self, members: Mapping[str, Any], prefix: str, *, includes_all: bool = False
    ) -> dict[str, Any]:
        """Return the members to return of an object, whose path with a dot is `prefix`."""
        filtered = {}
        includes = () if includes_all else self.includes
        for key, value in members.items():
            path = prefix + key
            may_include, is_included = _covers(includes or ("*",), path)
            if not may_include or _covers(self.excludes, path)[1]:
                continue
            if is_included and not _covers(self.excludes, f"{path}.")[0]:
                filtered[key] = value
            elif isinstance(value, Mapping):
                inner = self._members(value, f"{path}.", includes_all=is_included)
                if inner or is_included:
                    filtered[key] = inner
            elif isinstance(value, list):
                items = self._items(value, path, is_included)
                if items or is_included:
                    filtered[key] = items
            elif is_included:
                filtered[key] = value
        return filtered

    def _items(self, values: Sequence[Any], path: str, is_included: bool) -> list[Any]:
        items: list[Any] = []
        for value in values:
            if isinstance(value, Mapping):
                if inner := self._members(value, f"{path}.", includes_all=is_included):
                    items.append(inner)
            elif isinstance(value, list):
                if inner_items := self._items(value, path, is_included):
                    items.append(inner_items)
            elif is_included:
                items.append(value)
        return items


def _patterns(value: Any, path: str, problems: ErrorCollector, *, only_text: bool = False) -> tuple[str, ...]:
    patterns: list[str] = []
    is_list = isinstance(value, list | tuple)
    for number, name in enumerate(value if is_list else [value]):
        with problems.at(f"{path}[{number}]" if is_list else path):
            if not isinstance(name, str) and (only_text or not is_list):
                raise invalid(f"`_source` must name properties, not {name!r}")
            text = parameters.raw_text(name, "a name in `_source`")
            if "**" in text or "\\" in text or text.endswith(".") or text != text.strip() or not text:
                raise unsupported(f"the pattern `{text}` in `_source`")
            patterns.append(text)
    return tuple(patterns)


@lru_cache(4096)
def _covers(patterns: tuple[str, ...], path: str) -> tuple[bool, bool]:
    """Return whether a pattern matches a longer path, and whether one matches the path or an object around it."""
    may_match = matches = False
    for pattern in patterns:
        positions = _after_stars(pattern, {0})
        for character in path:
            positions = _after_stars(
                pattern,
                {
                    position + (position <= len(pattern) and pattern[position : position + 1] != "*")
                    for position in positions
                    if position > len(pattern) or f"{pattern}."[position] in ("*", character)
                },
            )
        may_match = may_match or bool(positions)
        matches = matches or any(position >= len(pattern) for position in positions)
    return may_match, matches


def _after_stars(pattern: str, positions: set[int]) -> set[int]:
    """Return the positions in a pattern, with those after an asterisk that matches nothing."""
    return positions | {position + 1 for position in positions if pattern[position : position + 1] == "*"}


def _names(patterns: Sequence[str]) -> Names:
    root: dict[str, Any] = {}
    for pattern in patterns:
        node = root
        rest = pattern
        while (dot := rest.find(".")) > 0 and node.get(rest[:dot]) is not True:
            node = node.setdefault(rest[:dot], {})
            rest = rest[dot + 1 :]
        if dot <= 0:
            node[rest] = True
    return root


def _by_names(value: Any, filters: Sequence[Names], *, is_inclusive: bool) -> Any:
    """Return the part of a value that the filters, if inclusive, match or else do not match."""
    if not is_inclusive and value in ({}, []):
        return value
    if isinstance(value, Mapping):
        members = {}
        for key, inner in value.items():
            further: list[Names] = []
            if any(_matches(names, key, further) for names in filters):
                kept = inner if is_inclusive else _NOTHING
            elif not further:
                kept = _NOTHING if is_inclusive else inner
            else:
                kept = _by_names(inner, further, is_inclusive=is_inclusive)
            if kept is not _NOTHING:
                members[key] = kept
        return members or _NOTHING
    if isinstance(value, list):
        items = [_by_names(item, filters, is_inclusive=is_inclusive) for item in value]
        return [item for item in items if item is not _NOTHING] or _NOTHING
    return _NOTHING if is_inclusive else value


def _matches(names: Names, name: str, further: list[Names]) -> bool:
    """Return whether a path of names ends with `name`; append the rests of paths that begin with it to `further`."""
    dot = name.find(".")
    if 0 < dot < len(name) - 1:
        rests: list[Names] = []
        if _matches(names, name[:dot], rests):
            return True
        return any(_matches(rest, name[dot + 1 :], further) for rest in rests)
    for pattern, rest in names.items():
        if re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL):
            if rest is True:
                return True
            further.append(rest)
    return False
