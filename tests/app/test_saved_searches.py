"""Saved searches, and the last position in each task."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from searchapp.app.saved_searches import (
    FURTHEST,
    LONGEST,
    POSITIONS,
    SAVED,
    LastPosition,
    SavedSearchFile,
    SearchQuery,
    last_position,
    store_position,
)
from searchapp.errors import SearchappError, UsageError
from searchapp.ranking.query_language import FieldFilter

FULL_QUERY = SearchQuery(
    "a\n\x1b[2J\u202e b", "words", (FieldFilter("speaker", "CASTELL"),), "d:1", literal=True
)

DAMAGED = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b'{"task": "nlps"}',
    b'{"task": "nlps", "name": "x"}',
    b'{"task": "nlps", "name": 1, "text": "a"}',
    b'{"task": "nlps", "name": " ", "text": "a"}',
    b'{"task": "nlps", "name": "x", "text": 1}',
    b'{"task": "nlps", "name": "x", "text": "a", "recipe": 1}',
    b'{"task": "nlps", "name": "x", "text": "a", "filters": 1}',
    b'{"task": "nlps", "name": "x", "text": "a", "filters": [{"field": "a"}]}',
    b'{"task": "nlps", "name": "x", "text": "a", "filters": [{"field": "a", "value": 1}]}',
    b'{"task": "nlps", "name": "x", "text": "a", "filters": ["ab"]}',
    b'{"task": ["nlps"], "name": "x", "text": "a"}',
    b'{"task": "nlps", "name": "x", "text": "\\ud800"}',
    b"[" * 5_000,
    b'{"task": "nlps", "name": "x", "text": "' + b"a" * (LONGEST + 1) + b'"}',
]


def test_saved_searches_are_listed_latest_first(tmp_path: Path) -> None:
    home = tmp_path / "not made yet"
    saved = SavedSearchFile(home, "nlps")
    assert saved.searches() == {}
    saved.save("one", SearchQuery("ring"))
    saved.save(" two ", FULL_QUERY)
    SavedSearchFile(home, "checkthat").save("one", SearchQuery("jobs"))
    assert list(saved.searches().items()) == [("two", FULL_QUERY), ("one", SearchQuery("ring"))]
    saved.save("one", SearchQuery("rings"))
    assert list(saved.searches()) == ["one", "two"] and saved.search("one").text == "rings"
    saved.delete("one")
    saved.delete("unknown")
    assert list(saved.searches()) == ["two"]
    assert SavedSearchFile(home, "checkthat").search("one").text == "jobs"


def test_an_unknown_name_is_refused_with_the_known_names(tmp_path: Path) -> None:
    saved = SavedSearchFile(tmp_path, "nlps")
    with pytest.raises(UsageError, match="nlps has no saved search 'rings', nor any other"):
        saved.search("rings")
    saved.save("ring", SearchQuery("ring"))
    with pytest.raises(UsageError, match=r"'rings' \(did you mean ring\?\): choose ring"):
        saved.search("rings")


@pytest.mark.parametrize("name", ["", "  ", "a" * 101])
def test_invalid_names_and_long_queries_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="the name of a search"):
        SavedSearchFile(tmp_path, "nlps").save(name, SearchQuery("a"))
    with pytest.raises(UsageError, match="a search of more than"):
        SavedSearchFile(tmp_path, "nlps").save("a", SearchQuery("a" * (LONGEST + 1)))


def test_unreadable_lines_are_skipped_and_preserved(tmp_path: Path) -> None:
    path = tmp_path / SAVED
    own = json.dumps({"task": "nlps", "name": "own", "text": "ring", "new": 1}).encode()
    path.write_bytes(b"\n".join([*DAMAGED, own]))  # the last line has no newline
    saved = SavedSearchFile(tmp_path, "nlps")
    assert saved.searches() == {"own": SearchQuery("ring")}
    saved.save("another", FULL_QUERY)
    assert list(saved.searches()) == ["another", "own"]
    lines = path.read_bytes().splitlines()
    assert set(filter(None, DAMAGED)) <= set(lines) and own in lines


def test_a_pipe_or_folder_in_place_of_a_file_is_not_overwritten(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / SAVED)
    (tmp_path / POSITIONS).mkdir()
    assert SavedSearchFile(tmp_path, "nlps").searches() == {}
    with pytest.raises(SearchappError):
        SavedSearchFile(tmp_path, "nlps").save("a", SearchQuery("a"))
    assert last_position(tmp_path, "nlps") is None
    store_position(tmp_path, "nlps", LastPosition())  # raises no error
    assert (tmp_path / SAVED).is_fifo() and (tmp_path / POSITIONS).is_dir()


def test_concurrent_saves_lose_nothing(tmp_path: Path) -> None:
    names = [str(number) for number in range(12)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda name: SavedSearchFile(tmp_path, "nlps").save(name, SearchQuery(name)), names))
    assert sorted(SavedSearchFile(tmp_path, "nlps").searches()) == sorted(names)


def test_each_task_has_its_last_position(tmp_path: Path) -> None:
    position = LastPosition(FULL_QUERY, 7, 160, {"list": 40})
    store_position(tmp_path, "nlps", LastPosition())
    store_position(tmp_path, "nlps", position)
    store_position(tmp_path, "checkthat", LastPosition(SearchQuery("jobs")))
    assert last_position(tmp_path, "nlps") == position
    assert last_position(tmp_path, "checkthat") == LastPosition(SearchQuery("jobs"))
    assert len((tmp_path / POSITIONS).read_bytes().splitlines()) == 2
    store_position(tmp_path, "nlps", LastPosition(SearchQuery("a" * (LONGEST + 1))))
    assert last_position(tmp_path, "nlps") == position


@pytest.mark.parametrize(
    "more",
    [
        '"cursor": -1',
        '"cursor": "1"',
        '"cursor": 1.5',
        '"cells": null',
        '"widths": []',
        '"widths": {"list": -4}',
    ],
)
def test_an_invalid_position_is_ignored(tmp_path: Path, more: str) -> None:
    members = '"task": "nlps", "text": "a", "cursor": 0, "cells": 80, "widths": {}'
    (tmp_path / POSITIONS).write_text(f"{{{members}, {more}}}\n")
    assert last_position(tmp_path, "nlps") is None
    (tmp_path / POSITIONS).write_text(f'{{{members}, "cursor": {FURTHEST + 1}}}\n')
    assert last_position(tmp_path, "nlps") == LastPosition(SearchQuery("a"), 0, 80)
