"""Saved searches, and the position that the search screen restores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.geometry import Offset
from textual.pilot import Pilot

from searchapp.app.saved_searches import (
    POSITIONS,
    SAVED,
    LastPosition,
    SavedSearchFile,
    SearchQuery,
    last_position,
    store_position,
)
from searchapp.ranking.query_language import FieldFilter
from searchapp.tui.kit import background
from searchapp.tui.kit.dialogs import Help
from searchapp.tui.kit.jump import Jumping
from searchapp.tui.search import actions
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import TIMEOUT_SECONDS, drive, question, require_complete, screen_text
from tests.tui.search.conftest import SearchHarness, ids, press_and_wait, wait_until_answered

P = Pilot[None]


def test_a_search_is_saved_opened_and_deleted(search_harness: SearchHarness) -> None:
    saved = SavedSearchFile(search_harness.home, "checkthat")

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, "ctrl+s")
        assert "nothing to save: type a query first" in screen_text(pilot)
        await press_and_wait(pilot, screen, "ctrl+l")
        assert "no saved searches in checkthat" in screen_text(pilot)
        await press_and_wait(
            pilot, screen, *"jobs", "f2", *"castell", "enter", "escape", "ctrl+s", *"castell on jobs"
        )
        await press_and_wait(pilot, screen, "enter")
        filters = (FieldFilter("speaker", "CASTELL"),)
        assert saved.searches() == {"castell on jobs": SearchQuery("jobs", None, filters)}
        document_ids = ids(screen)
        await press_and_wait(
            pilot, screen, "ctrl+u", *"school", "f2", "ctrl+x", "escape", "ctrl+s", *"schools", "enter"
        )
        await press_and_wait(pilot, screen, "enter", "ctrl+l", *"cstj")
        assert "▶ castell on jobs" in screen_text(pilot) and "jobs · speaker: CASTELL" in screen_text(pilot)
        assert "schools" not in screen_text(pilot).split("castell on jobs")[1]
        await press_and_wait(pilot, screen, "enter")
        assert screen.words.value == "jobs" and ids(screen) == document_ids
        assert screen.loader.query.filters == filters
        await press_and_wait(pilot, screen, "backspace")
        assert screen.words.value == "school"
        await press_and_wait(pilot, screen, "ctrl+l", "down", "ctrl+x")
        assert question(pilot) == "Delete the saved search castell on jobs?"
        await press_and_wait(pilot, screen, "n", "ctrl+x", "y")
        assert list(saved.searches()) == ["schools"] and "castell on jobs" not in screen_text(pilot)
        await press_and_wait(pilot, screen, "escape", "slash", *"s", "ctrl+s", *"schools", "enter")
        assert question(pilot).startswith("schools already exists: school. Replace it")
        await press_and_wait(pilot, screen, "n")
        assert saved.search("schools").text == "school"
        await press_and_wait(pilot, screen, "ctrl+s", *"schools", "enter", "y")
        assert saved.search("schools").text == "schools"

    drive(search_harness.app("checkthat"), steps)


def test_a_search_for_similar_documents_is_saved_with_its_text(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "enter", "S")
        document_ids, document = ids(screen), screen.loader.query.like
        await press_and_wait(pilot, screen, "ctrl+s", *"alike", "enter", "backspace", "ctrl+l", "enter")
        assert ids(screen) == document_ids and f"like {document} ›" in screen_text(pilot)

    drive(search_harness.app(), steps)


def test_a_hostile_saved_search_is_escaped_and_applied_as_far_as_possible(
    search_harness: SearchHarness,
) -> None:
    name = "\x1b[31m[/bold]\u202e" + "x" * 50
    filters = (FieldFilter("no such field", "1"), FieldFilter("speaker", "CASTELL"))
    SavedSearchFile(search_harness.home, "checkthat").save(
        name, SearchQuery("jobs\x1b]0;pwned\x07", "gone", filters)
    )

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, "ctrl+l")
        assert "\x1b" not in screen_text(pilot) and "␛[31m[/bold]<U+202E>" in screen_text(pilot)
        await press_and_wait(pilot, screen, "ctrl+x")
        assert "\x1b" not in screen_text(pilot)
        await press_and_wait(pilot, screen, "n", "enter")
        message = "this saved search lost the recipe gone and a filter: no longer available"
        assert message in screen_text(pilot)
        assert screen.loader.query.recipe is None
        assert screen.loader.query.filters == filters[1:]
        assert "\x1b" not in screen_text(pilot) and screen.error is None

    drive(search_harness.app("checkthat"), steps)


def test_an_unwritable_home_directory_is_reported(search_harness: SearchHarness) -> None:
    (search_harness.home / SAVED).mkdir()

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "ctrl+s", *"p", "enter")
        assert SAVED in screen_text(pilot).splitlines()[0]

    drive(search_harness.app(), steps)


def test_the_last_position_is_restored(search_harness: SearchHarness) -> None:
    async def first(pilot: P, screen: SearchScreen) -> None:
        # The answer for the recipe moves the cursor to the first hit.
        await press_and_wait(pilot, screen, *"group", "alt+r", *"bm25", "enter")
        await press_and_wait(pilot, screen, "enter", "down", "down", ">")
        screens.append(screen_text(pilot).splitlines()[2:-1])
        document_ids.extend(ids(screen))

    async def second(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        assert (screen.words.value, screen.hits.cursor, screen.recipe) == ("group", 2, "bm25")
        assert ids(screen) == document_ids and screen.words.has_focus
        assert position is not None and screen.panes.widths == position.widths != {}
        await press_and_wait(pilot, screen, "escape")
        assert screen_text(pilot).splitlines()[2:-1] == screens[0]
        await press_and_wait(pilot, screen, "slash")

    async def third(pilot: P, screen: SearchScreen) -> None:
        assert screen.panes.widths == {}  # widths are restored only in the same size
        await press_and_wait(pilot, screen, *"ri")
        assert screen.words.value == "ri"  # typing replaces the restored query
        await press_and_wait(pilot, screen, "ctrl+u")

    async def fourth(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        assert (screen.words.value, screen.hits.count, screen.recipe) == ("", 70, "bm25")

    async def with_query(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        assert (screen.words.value, screen.recipe) == ("prime", "words")

    screens: list[list[str]] = []
    document_ids: list[str] = []
    drive(search_harness.app(restore=True), first)
    position = last_position(search_harness.home, "nlps")
    assert position is not None
    drive(search_harness.app(restore=True), second)
    drive(search_harness.app(restore=True), third, (100, 30))
    drive(search_harness.app(restore=True), fourth)
    drive(search_harness.app(text="prime", restore=True), with_query)


def test_leaving_before_hits_arrive_keeps_the_stored_position(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "OVERTAKE_SECONDS", TIMEOUT_SECONDS)
    before = LastPosition(SearchQuery("group"), 5, 160)
    store_position(search_harness.home, "nlps", before)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await pilot.press("ctrl+q")

    app = search_harness.app(restore=True)
    search_harness.index.may_answer.clear()
    drive(app, steps)
    search_harness.index.may_answer.set()
    assert last_position(search_harness.home, "nlps") == before


async def search_from_scratch(pilot: P, screen: SearchScreen) -> None:
    await wait_until_answered(pilot, screen)
    assert (screen.words.value, screen.recipe) == ("", "words")
    await press_and_wait(pilot, screen, *"prime")


def test_without_the_setting_no_position_is_restored_or_stored(search_harness: SearchHarness) -> None:
    store_position(search_harness.home, "nlps", LastPosition(SearchQuery("ring"), 1, 160))
    drive(search_harness.app(), search_from_scratch)
    position = last_position(search_harness.home, "nlps")
    assert position is not None and position.search.text == "ring"


@pytest.mark.parametrize(
    "changes",
    [
        {"recipe": "gone", "filters": [{"field": "none", "value": "1"}]},
        {"text": '"broken', "cursor": 9_999, "cells": 160, "widths": {"list": 10**9, "no such": 3}},
        {"text": "ring\x1b[2J\n" * 50, "like": "\u202ex", "literal": True},
        {"text": "no such word anywhere", "cursor": 77},
    ],
)
def test_an_outdated_position_is_harmless(search_harness: SearchHarness, changes: dict[str, object]) -> None:
    line = {"task": "nlps", "text": "ring", "cursor": 1, "cells": 160, "widths": {}, **changes}
    (search_harness.home / POSITIONS).write_text(json.dumps(line))

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        assert "\x1b" not in screen_text(pilot) and screen.query_one("#text").region.width >= 10
        await press_and_wait(pilot, screen, "ctrl+u", *"ring")
        assert ids(screen) and screen.error is None

    drive(search_harness.app(restore=True), steps)


def test_the_setting_restore_is_read(tmp_path: Path) -> None:
    assert actions.load(tmp_path).restore
    (tmp_path / "settings.toml").write_text("[search]\nrestore = false\n")
    assert not actions.load(tmp_path).restore


def test_help_and_labels_of_the_search_screen(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        require_complete(screen)
        await press_and_wait(pilot, screen, *"prime", "f1")
        assert isinstance(app.screen, Help) and "The query" in screen_text(pilot)
        await press_and_wait(pilot, screen, "escape", "ctrl+o")
        assert isinstance(app.screen, Jumping)
        hits = screen.hits
        position = hits.content_region.offset + Offset(0, 3)
        (label,) = [label for label, target in app.screen._targets.items() if target.at == position]
        await press_and_wait(pilot, screen, *label)
        assert hits.has_focus and hits.cursor == 3 and screen.words.value == "prime"
        await press_and_wait(pilot, screen, "f1")
        assert "The hits" in screen_text(pilot).split("Words")[0]

    app = search_harness.app()
    drive(app, steps, (80, 24))


def test_compact_spacing_shows_more_hits_and_their_number(search_harness: SearchHarness) -> None:
    (search_harness.home / "settings.toml").write_text('[search]\nspacing = "compact"\n')

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        lines = screen_text(pilot).splitlines()
        assert "documents · words" in lines[1] and "▶" in lines[2]
        assert screen.hits.page >= 9
        await press_and_wait(pilot, screen, "space", *'"number')
        assert "▲" in screen_text(pilot).splitlines()[2]
        await press_and_wait(pilot, screen, '"')
        assert "▲" not in screen_text(pilot)

    drive(search_harness.app(), steps, (80, 24))
