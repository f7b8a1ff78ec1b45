"""Saved searches on the search screen, and the screen where it was left."""

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
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import PATIENCE_SECONDS, drive, question, require_complete, text_of
from tests.tui.search.conftest import SearchingOn, answered, enter, ids

P = Pilot[None]


def test_a_search_is_saved_opened_and_deleted(searching: SearchingOn) -> None:
    saved = SavedSearchFile(searching.home, "checkthat")

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, "ctrl+s")
        assert "nothing to save: type a query first" in text_of(app)
        await enter(pilot, screen, "ctrl+l")
        assert "no saved searches in checkthat" in text_of(app)
        await enter(pilot, screen, *"jobs", "f2", *"castell", "enter", "escape", "ctrl+s", *"castell on jobs")
        await enter(pilot, screen, "enter")
        filters = (FieldFilter("speaker", "CASTELL"),)
        assert saved.searches() == {"castell on jobs": SearchQuery("jobs", None, filters)}
        found = ids(screen)
        await enter(
            pilot, screen, "ctrl+u", *"school", "f2", "ctrl+x", "escape", "ctrl+s", *"schools", "enter"
        )
        await enter(pilot, screen, "enter", "o", *"cstj")
        assert "▶ castell on jobs" in text_of(app) and "jobs · speaker: CASTELL" in text_of(app)
        assert "schools" not in text_of(app).split("castell on jobs")[1]
        await enter(pilot, screen, "enter")
        assert screen.words.value == "jobs" and ids(screen) == found
        assert screen.loader.query.filters == filters
        await enter(pilot, screen, "backspace")
        assert screen.words.value == "school"
        await enter(pilot, screen, "o", "down", "ctrl+x")
        assert question(app) == "Delete the saved search castell on jobs?"
        await enter(pilot, screen, "n", "ctrl+x", "y")
        assert list(saved.searches()) == ["schools"] and "castell on jobs" not in text_of(app)
        await enter(pilot, screen, "escape", "slash", *"s", "ctrl+s", *"schools", "enter")
        assert question(app).startswith("schools already exists: school. Replace it")
        await enter(pilot, screen, "n")
        assert saved.search("schools").text == "school"
        await enter(pilot, screen, "ctrl+s", *"schools", "enter", "y")
        assert saved.search("schools").text == "schools"

    app = searching.app("checkthat")
    drive(app, steps)


def test_what_is_like_a_document_is_saved_with_its_text(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime", "enter", "s")
        found, like = ids(screen), screen.loader.query.like
        await enter(pilot, screen, "ctrl+s", *"alike", "enter", "backspace", "o", "enter")
        assert ids(screen) == found and f"like {like} ›" in text_of(app)

    app = searching.app()
    drive(app, steps)


def test_a_saved_search_of_others_is_harmless_and_does_what_it_can(searching: SearchingOn) -> None:
    name = "\x1b[31m[/bold]\u202e" + "x" * 50
    filters = (FieldFilter("no such field", "1"), FieldFilter("speaker", "CASTELL"))
    SavedSearchFile(searching.home, "checkthat").save(
        name, SearchQuery("jobs\x1b]0;pwned\x07", "gone", filters)
    )

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, "ctrl+l")
        assert "\x1b" not in text_of(app) and "␛[31m[/bold]<U+202E>" in text_of(app)
        await enter(pilot, screen, "ctrl+x")
        assert "\x1b" not in text_of(app)
        await enter(pilot, screen, "n", "enter")
        assert "this saved search lost the recipe gone and a filter: no longer available" in text_of(app)
        assert screen.loader.query.recipe is None
        assert screen.loader.query.filters == filters[1:]
        assert "\x1b" not in text_of(app) and screen.error is None

    app = searching.app("checkthat")
    drive(app, steps)


def test_a_home_that_cannot_be_written_to_is_said(searching: SearchingOn) -> None:
    (searching.home / SAVED).mkdir()

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime", "ctrl+s", *"p", "enter")
        assert SAVED in text_of(app).splitlines()[0]

    app = searching.app()
    drive(app, steps)


def test_the_screen_opens_where_it_was_left(searching: SearchingOn) -> None:
    async def first(pilot: P, screen: SearchScreen) -> None:
        # The answer for the recipe puts the cursor on the first hit.
        await enter(pilot, screen, *"group", "f3", *"bm25", "enter")
        await enter(pilot, screen, "enter", "down", "down", ">")
        seen.append(text_of(pilot.app).splitlines()[2:-1])  # type: ignore[arg-type]
        found.extend(ids(screen))

    async def second(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        assert (screen.words.value, screen.hits.cursor, screen.recipe) == ("group", 2, "bm25")
        assert ids(screen) == found and screen.words.has_focus
        assert last is not None and screen.panes.widths == last.widths != {}
        await enter(pilot, screen, "escape")
        assert text_of(app).splitlines()[2:-1] == seen[0]
        await enter(pilot, screen, "slash")

    async def third(pilot: P, screen: SearchScreen) -> None:
        assert screen.panes.widths == {}  # they were for a terminal of another size
        await enter(pilot, screen, *"ri")
        assert screen.words.value == "ri"  # what was restored gave way
        await enter(pilot, screen, "ctrl+u")

    async def fourth(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        assert (screen.words.value, screen.hits.count, screen.recipe) == ("", 70, "bm25")

    async def with_words(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        assert (screen.words.value, screen.recipe) == ("prime", "words")

    seen: list[list[str]] = []
    found: list[str] = []
    drive(searching.app(restore=True), first)
    last = last_position(searching.home, "nlps")
    assert last is not None
    app = searching.app(restore=True)
    drive(app, second)
    drive(searching.app(restore=True), third, (100, 30))
    drive(searching.app(restore=True), fourth)
    drive(searching.app(text="prime", restore=True), with_words)


def test_leaving_before_the_hits_are_there_loses_nothing(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "OVERTAKE_SECONDS", PATIENCE_SECONDS)
    before = LastPosition(SearchQuery("group"), 5, 160)
    store_position(searching.home, "nlps", before)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await pilot.press("ctrl+q")

    app = searching.app(restore=True)
    searching.index.may_answer.clear()
    drive(app, steps)
    searching.index.may_answer.set()
    assert last_position(searching.home, "nlps") == before


async def with_nothing(pilot: P, screen: SearchScreen) -> None:
    await answered(pilot, screen)
    assert (screen.words.value, screen.recipe) == ("", "words")
    await enter(pilot, screen, *"prime")


def test_without_the_setting_nothing_is_restored_nor_kept(searching: SearchingOn) -> None:
    store_position(searching.home, "nlps", LastPosition(SearchQuery("ring"), 1, 160))
    drive(searching.app(), with_nothing)
    last = last_position(searching.home, "nlps")
    assert last is not None and last.search.text == "ring"


@pytest.mark.parametrize(
    "more",
    [
        {"recipe": "gone", "filters": [{"field": "none", "value": "1"}]},
        {"text": '"broken', "cursor": 9_999, "cells": 160, "widths": {"list": 10**9, "no such": 3}},
        {"text": "ring\x1b[2J\n" * 50, "like": "\u202ex", "literal": True},
        {"text": "no such word anywhere", "cursor": 77},
    ],
)
def test_a_position_that_makes_no_sense_any_more_is_no_harm(
    searching: SearchingOn, more: dict[str, object]
) -> None:
    line = {"task": "nlps", "text": "ring", "cursor": 1, "cells": 160, "widths": {}, **more}
    (searching.home / POSITIONS).write_text(json.dumps(line))

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        assert "\x1b" not in text_of(app) and screen.query_one("#text").region.width >= 10
        await enter(pilot, screen, "ctrl+u", *"ring")
        assert ids(screen) and screen.error is None

    app = searching.app(restore=True)
    drive(app, steps)


def test_the_settings_say_whether_it_is_restored(tmp_path: Path) -> None:
    from searchapp.tui.search import actions

    assert actions.load(tmp_path).restore
    (tmp_path / "settings.toml").write_text("[search]\nrestore = false\n")
    assert not actions.load(tmp_path).restore


def test_help_and_labels_of_the_search_screen(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        require_complete(screen)
        await enter(pilot, screen, *"prime", "f1")
        assert isinstance(app.screen, Help) and "The query" in text_of(app)
        await enter(pilot, screen, "escape", "ctrl+o")
        assert isinstance(app.screen, Jumping)
        hits = screen.hits
        at = hits.content_region.offset + Offset(0, 3)
        (label,) = [label for label, one in app.screen._targets.items() if one.at == at]
        await enter(pilot, screen, *label)
        assert hits.has_focus and hits.cursor == 3 and screen.words.value == "prime"
        await enter(pilot, screen, "f1")
        assert "The hits" in text_of(app).split("Words")[0]

    app = searching.app()
    drive(app, steps, (80, 24))


def test_compact_spacing_shows_more_hits_and_still_says_how_many(searching: SearchingOn) -> None:
    (searching.home / "settings.toml").write_text('[search]\nspacing = "compact"\n')

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        lines = text_of(app).splitlines()
        assert "documents · words" in lines[1] and "▶" in lines[2]
        assert screen.hits.page >= 9
        await enter(pilot, screen, "space", *'"number')
        assert "▲" in text_of(app).splitlines()[2]
        await enter(pilot, screen, '"')
        assert "▲" not in text_of(app)

    app = searching.app()
    drive(app, steps, (80, 24))
