"""Searches in the home directory: recent ones, named ones, and the last position in each task.

<home>/searches.jsonl           {"task": "nlps", "text": "normal subgroup"}
<home>/saved-searches.jsonl     {"task": "nlps", "name": "groups", "text": "normal subgroup", "recipe": null, ...}
<home>/positions.jsonl          {"task": "nlps", "text": "normal subgroup", "cursor": 3, "widths": {}, ...}
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, field
from pathlib import Path

from searchapp.app.json_lines import Described, JsonLines
from searchapp.errors import SearchappError, UsageError
from searchapp.lucene.dataclass import dataclass
from searchapp.ranking.query_language import FieldFilter
from searchapp.text import choices_hint

RECENT_FILE = "searches.jsonl"

MOST_RECENT = 2_000  # recent searches of all tasks, see `JsonLines`

LONGEST = 10_000  # characters of a stored text


class RecentSearches:
    """The recent searches of a task, the latest first, each once."""

    def __init__(self, home: Path, task: str) -> None:
        self._file = JsonLines(home / RECENT_FILE, MOST_RECENT)
        self._task = task
        self.texts: list[str] = []
        for described in self._file.read():
            if described.get("task") == task and isinstance(described.get("text"), str):
                self._put(described["text"])

    def add(self, text: str) -> None:
        text = text.strip()
        if not text or len(text) > LONGEST or self.texts[:1] == [text]:
            return
        self._put(text)
        self._file.add({"task": self._task, "text": text})

    def _put(self, text: str) -> None:
        if text in self.texts:
            self.texts.remove(text)
        self.texts.insert(0, text)


SAVED, POSITIONS = "saved-searches.jsonl", "positions.jsonl"


LONGEST_NAME = 100

FURTHEST = 10_000  # the last hit at which the screen opens again: a later one would take too long


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """Typed words, or with `like` a search for documents similar to the one of that id, which has the text."""

    text: str = ""
    recipe: str | None = None
    filters: tuple[FieldFilter, ...] = ()
    like: str | None = None
    literal: bool = False

    @classmethod
    def from_json(cls, described: Described) -> SearchQuery:
        """Return the search of a line.

        Raises:
            ValueError, KeyError, TypeError: the line has none.
        """
        search = cls(
            described["text"],
            described.get("recipe"),
            tuple(FieldFilter(item["field"], item["value"]) for item in described.get("filters", ())),
            described.get("like"),
            described.get("literal", False) is True,
        )
        texts = (search.text, search.recipe or "", search.like or "")
        values = tuple(value for filter_ in search.filters for value in (filter_.field, filter_.value))
        if not all(isinstance(text, str) and len(text) <= LONGEST for text in (*texts, *values)):
            raise ValueError("a part of the search is not text")
        return search


class SavedSearchFile:
    """The named searches of a task."""

    def __init__(self, home: Path, task: str) -> None:
        self._file = JsonLines(home / SAVED)
        self._task = task

    def searches(self) -> dict[str, SearchQuery]:
        """Return all searches by name, the latest first; none if the file can't be read."""
        searches: dict[str, SearchQuery] = {}
        for described in self._file.read():
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                if described.get("task") == self._task and 0 < len(described["name"].strip()) <= LONGEST_NAME:
                    searches.pop(described["name"], None)
                    searches[described["name"]] = SearchQuery.from_json(described)
        return dict(reversed(searches.items()))

    def search(self, name: str) -> SearchQuery:
        """Return the search of a name.

        Raises:
            UsageError: the name is unknown.
        """
        searches = self.searches()
        if name not in searches:
            hint = f"{name!r}, nor any other: the search screen saves searches"
            names = choices_hint(name, searches) if searches else hint
            raise UsageError(f"{self._task} has no saved search {names}")
        return searches[name]

    def save(self, name: str, search: SearchQuery) -> None:
        """Save a search, and replace one of the same name.

        Raises:
            UsageError: the name is invalid, or the text too long.
            SearchappError: the file can't be read or written.
        """
        name = name.strip()
        if not name or len(name) > LONGEST_NAME:
            raise UsageError(f"the name of a search has 1 to {LONGEST_NAME} characters")
        if len(search.text) > LONGEST:
            raise UsageError(f"a search of more than {LONGEST:,} characters can't be saved")
        self._replace(name, [{"task": self._task, "name": name, **asdict(search)}])

    def delete(self, name: str) -> None:
        """Delete a search.

        Raises:
            SearchappError: the file can't be read or written.
        """
        self._replace(name, [])

    def _replace(self, name: str, lines: list[Described]) -> None:
        key = self._task, name
        self._file.replace(lambda line: (line.get("task"), line.get("name")) == key, lines)


@dataclass(frozen=True, slots=True)
class LastPosition:
    """The last search, hit and widths of columns in a terminal of `cells`."""

    search: SearchQuery = field(default_factory=SearchQuery)
    cursor: int = 0
    cells: int = 0
    widths: Mapping[str, int] = field(default_factory=dict)


def last_position(home: Path, task: str) -> LastPosition | None:
    """Return the last position on the search screen of a task, if there is one."""
    position: LastPosition | None = None
    for described in JsonLines(home / POSITIONS).read():
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            if described["task"] == task:
                cursor, cells = _number(described["cursor"]), _number(described["cells"])
                position = LastPosition(
                    SearchQuery.from_json(described),
                    cursor if cursor <= FURTHEST else 0,
                    cells,
                    {str(name): _number(width) for name, width in described["widths"].items()},
                )
    return position


def store_position(home: Path, task: str, position: LastPosition) -> None:
    """Store the position on the search screen of a task; a failed write is ignored."""
    if len(position.search.text) > LONGEST:
        return
    line = {
        "task": task,
        **asdict(position.search),
        "cursor": position.cursor,
        "cells": position.cells,
        "widths": dict(position.widths),
    }
    with suppress(SearchappError):
        JsonLines(home / POSITIONS).replace(lambda entry: entry.get("task") == task, [line])


def _number(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("not a number from 0")
    return value
