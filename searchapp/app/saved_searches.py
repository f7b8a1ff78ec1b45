"""Searches in the home folder: recent ones, those saved under a name, and the last position in each task.

    <home>/searches.jsonl           {"task": "nlps", "text": "normal subgroup"}
    <home>/saved-searches.jsonl     {"task": "nlps", "name": "groups", "text": "normal subgroup", "recipe": null, ...}
    <home>/positions.jsonl          {"task": "nlps", "text": "normal subgroup", "cursor": 3, "widths": {}, ...}

Recent searches are a cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from searchapp.app.json_lines import Described, JsonLines
from searchapp.errors import SearchappError, UsageError
from searchapp.ranking.query_language import FieldFilter
from searchapp.text import choices_hint

RECENT_FILE = "searches.jsonl"

MOST_RECENT = 2_000
"""Searches that are kept, of all tasks; as many again are written before the oldest are taken out."""

LONGEST = 10_000
"""Longer texts are not kept."""


class Past:
    """The searches of a task, the latest first, each once."""

    def __init__(self, home: Path, task: str) -> None:
        self._kept = JsonLines(home / RECENT_FILE, MOST_RECENT)
        self._task = task
        self.texts: list[str] = []
        for described in self._kept.read():
            if described.get("task") == task and isinstance(described.get("text"), str):
                self._put(described["text"])

    def add(self, text: str) -> None:
        """Keep a search, if it is another one than the last."""
        text = text.strip()
        if not text or len(text) > LONGEST or self.texts[:1] == [text]:
            return
        self._put(text)
        self._kept.add({"task": self._task, "text": text})

    def _put(self, text: str) -> None:
        if text in self.texts:
            self.texts.remove(text)
        self.texts.insert(0, text)


SAVED, POSITIONS = "saved-searches.jsonl", "positions.jsonl"


LONGEST_NAME = 100

FURTHEST = 10_000
"""Further down than at this hit nothing is opened again: to get there would take long."""


@dataclass(frozen=True, slots=True)
class KeptSearch:
    """What was searched for: a text, or with `like` what is like the document of that id, which the text is of then."""

    text: str = ""
    recipe: str | None = None
    filters: tuple[FieldFilter, ...] = ()
    like: str | None = None
    literal: bool = False

    @classmethod
    def from_json(cls, described: Described) -> KeptSearch:
        """The search of a line.

        Raises:
            ValueError, KeyError, TypeError: it is none.
        """
        search = cls(
            described["text"],
            described.get("recipe"),
            tuple(FieldFilter(one["field"], one["value"]) for one in described.get("filters", ())),
            described.get("like"),
            described.get("literal", False) is True,
        )
        texts = (search.text, search.recipe or "", search.like or "")
        values = tuple(value for one in search.filters for value in (one.field, one.value))
        if not all(isinstance(one, str) and len(one) <= LONGEST for one in (*texts, *values)):
            raise ValueError("a part of the search is no text")
        return search


class Saved:
    """The searches of a task that were saved, by their names."""

    def __init__(self, home: Path, task: str) -> None:
        self._kept = JsonLines(home / SAVED)
        self._task = task

    def searches(self) -> dict[str, KeptSearch]:
        """All of them, the latest first; none where the file can't be read."""
        found: dict[str, KeptSearch] = {}
        for described in self._kept.read():
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                if self._is_of_task(described) and 0 < len(described["name"].strip()) <= LONGEST_NAME:
                    found.pop(described["name"], None)
                    found[described["name"]] = KeptSearch.from_json(described)
        return dict(reversed(found.items()))

    def search(self, name: str) -> KeptSearch:
        """The one of a name.

        Raises:
            UsageError: there is none.
        """
        found = self.searches()
        if name not in found:
            names = (
                choices_hint(name, found)
                if found
                else f"{name!r}, nor another one: the search screen saves them"
            )
            raise UsageError(f"there is no saved search of {self._task} {names}")
        return found[name]

    def save(self, name: str, search: KeptSearch) -> None:
        """Save a search, in the place of one that has the name.

        Raises:
            UsageError: the name is none, or the text too long.
            SearchappError: the file can't be read or written.
        """
        name = name.strip()
        if not name or len(name) > LONGEST_NAME:
            raise UsageError(f"the name of a search has 1 to {LONGEST_NAME} characters")
        if len(search.text) > LONGEST:
            raise UsageError(f"a text of more than {LONGEST:,} characters is not saved")
        line = {"task": self._task, "name": name, **asdict(search)}
        self._kept.replace(lambda one: self._is_called(one, name), [line])

    def delete(self, name: str) -> None:
        """Delete a search.

        Raises:
            SearchappError: the file can't be read or written.
        """
        self._kept.replace(lambda one: self._is_called(one, name), [])

    def _is_called(self, described: Described, name: str) -> bool:
        return self._is_of_task(described) and described.get("name") == name

    def _is_of_task(self, described: Described) -> bool:
        return described.get("task") == self._task


@dataclass(frozen=True, slots=True)
class LastPosition:
    """Where somebody was: what they sought, the hit, and how wide columns were in a terminal of `cells`."""

    search: KeptSearch = field(default_factory=KeptSearch)
    cursor: int = 0
    cells: int = 0
    widths: Mapping[str, int] = field(default_factory=dict)


def last_position(home: Path, task: str) -> LastPosition | None:
    """Where somebody left the search screen of a task; None if nobody did, or it can't be read."""
    found: LastPosition | None = None
    for described in JsonLines(home / POSITIONS).read():
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            if described["task"] == task:
                found = _position(described)
    return found


def keep_position(home: Path, task: str, position: LastPosition) -> None:
    """Keep where somebody leaves the search screen of a task; what can't be written is not kept."""
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
        JsonLines(home / POSITIONS).replace(lambda one: one.get("task") == task, [line])


def _position(described: Described) -> LastPosition:
    cursor, cells = _number(described["cursor"]), _number(described["cells"])
    widths = {str(name): _number(width) for name, width in described["widths"].items()}
    return LastPosition(KeptSearch.from_json(described), cursor if cursor <= FURTHEST else 0, cells, widths)


def _number(held: object) -> int:
    if not isinstance(held, int) or held < 0:
        raise ValueError("that is no number from 0 on")
    return held
