"""Late answers on the search screen have their effect and do not undo later actions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from searchapp.app.inspection.pages import every_topic
from searchapp.ranking.query_language import BrokenQuery, FieldFilter
from searchapp.tui.kit import background
from searchapp.tui.kit.dialogs import Help, Picking
from searchapp.tui.kit.explanation import ExplanationDialog
from searchapp.tui.search import choices, panes, reasons
from searchapp.tui.search.choices import FilterDialog
from searchapp.tui.search.hits import Listing
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import (
    TIMEOUT_SECONDS,
    drive,
    press,
    question,
    screen_text,
    wait_until,
    wait_until_idle,
)
from tests.tui.search.conftest import SearchHarness, assert_current, ids, press_and_wait, wait_until_answered

P = Pilot[None]


@contextmanager
def block_function(patch: pytest.MonkeyPatch, module: Any, name: str) -> Iterator[threading.Event]:
    """Replace a function of a module by one that waits for the returned event."""
    may_answer, work = threading.Event(), getattr(module, name)

    def wait(*args: Any) -> Any:
        may_answer.wait(TIMEOUT_SECONDS)
        return work(*args)

    patch.setattr(module, name, wait)
    try:
        yield may_answer
    finally:
        may_answer.set()


def test_keys_after_a_waiting_grade_wait_too(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"ring", "enter")
        assert screen.searcher.collection is not None
        topic = next(iter(every_topic(screen.searched, screen.searcher.collection)))
        screen.judging.begin_topic(topic)
        await wait_until_answered(pilot, screen)
        search_harness.index.may_answer.clear()
        screen.seek(replace(screen.loader.query, text="group", literal=False))
        await pilot.press("1", "down", "0", "0", "u")
        assert not list(search_harness.log.events())
        search_harness.index.may_answer.set()
        await wait_until_answered(pilot, screen)
        hits = ids(screen)
        actions = [
            (event.action.value, event.document_id) for _position, event in search_harness.log.events()
        ]
        assert actions[:3] == [("grade", hits[0]), ("grade", hits[2]), ("grade", hits[3])]
        assert [action for action, _document in actions[3:]] == ["retract"] and screen.hits.cursor == 4

    drive(search_harness.app(), steps)


def test_an_answer_does_not_remove_messages_that_are_newer_than_its_request(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"ring", "enter")
        search_harness.index.may_answer.clear()
        screen.seek(replace(screen.loader.query, text="group"))
        await pilot.press("d")
        assert "theme light" in screen_text(pilot)
        search_harness.index.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert "theme light" in screen_text(pilot)
        with block_function(monkeypatch, reasons, "hit_reason") as may_answer:
            await pilot.press("w")
            assert "theme light" not in screen_text(pilot)
            await pilot.press("d")
            may_answer.set()
            await wait_until(pilot, lambda: isinstance(app.screen, ExplanationDialog))
            await pilot.press("escape")
            assert 'theme = "' in screen_text(pilot)
        with block_function(monkeypatch, reasons, "find_reason") as may_answer:
            await pilot.press("i", *ids(screen)[1], "enter")
            assert "looking for" in screen_text(pilot)
            may_answer.set()
            await wait_until(pilot, lambda: screen.hits.cursor == 1)
            await wait_until_idle(pilot)
            assert "looking for" not in screen_text(pilot)

    app = search_harness.app()
    drive(app, steps)


def test_a_late_answer_does_not_open_a_dialog_above_another_one(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"ring", "enter")
        with block_function(monkeypatch, reasons, "hit_reason") as may_answer:
            await pilot.press("w", "f1")
            may_answer.set()
            await wait_until_answered(pilot, screen)
        assert [type(screen) for screen in app.screen_stack][-1] is Help
        await pilot.press("escape")
        await wait_until(pilot, lambda: isinstance(app.screen, ExplanationDialog))
        await pilot.press("escape")
        assert app.screen is screen

    app = search_harness.app()
    drive(app, steps)


def test_late_counts_leave_the_cursor_on_its_value(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"jobs", "enter", "f2")
        dialog = app.screen
        assert isinstance(dialog, FilterDialog)
        names = [choice.name for choice in dialog.choices]
        await press_and_wait(pilot, screen, *["down"] * names.index("speaker: CASTELL"))
        search_harness.index.may_answer.clear()
        await pilot.press("enter")
        search_harness.index.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert list(screen.loader.query.filters) == [FieldFilter("speaker", "CASTELL")]
        new_names = [choice.name for choice in dialog.choices]
        assert new_names.index("speaker: CASTELL") != names.index("speaker: CASTELL"), "the order has changed"
        assert dialog.index == new_names.index("speaker: CASTELL")
        await press_and_wait(pilot, screen, "enter")
        assert not list(screen.loader.query.filters)

    app = search_harness.app("checkthat")
    drive(app, steps)


def test_counts_are_requested_again_after_a_failure(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "RETRY_SECONDS", 0.05)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"jobs", "enter")
        search_harness.index.fails = True
        await pilot.press("f2")
        dialog = app.screen
        assert isinstance(dialog, FilterDialog)
        await wait_until(pilot, lambda: "does not answer" in screen_text(pilot))
        assert not dialog.choices
        search_harness.index.fails = False
        await wait_until(pilot, lambda: dialog.choices)
        await press_and_wait(pilot, screen, "escape")
        assert "does not answer" not in screen_text(pilot)

    app = search_harness.app("checkthat")
    drive(app, steps)


def test_an_error_is_marked_at_its_column_once_the_line_is_laid_out(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_draw, update = threading.Event(), SearchScreen._on_timer_update
    may_draw.set()
    monkeypatch.setattr(
        SearchScreen, "_on_timer_update", lambda screen: update(screen) if may_draw.is_set() else None
    )

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"ring", "enter", "S")
        await press(pilot, "slash")
        await wait_until(pilot, lambda: screen.words.region.x > 10)  # after the id of a document
        may_draw.clear()
        await press(pilot, "(")
        await wait_until(pilot, lambda: isinstance(screen.error, BrokenQuery))
        may_draw.set()
        await wait_until(pilot, lambda: "› (" in screen_text(pilot))
        await wait_until_idle(pilot)
        lines = screen_text(pilot).splitlines()
        words = next(line for line in lines if "› (" in line)
        caret = next(line for line in lines if "▲" in line)
        assert caret.index("▲") == words.index("(")

    drive(search_harness.app(), steps)


def test_late_training_topics_are_added(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with block_function(monkeypatch, panes, "read_gold_topics") as may_answer:

        async def steps(pilot: P, screen: SearchScreen) -> None:
            await press_and_wait(pilot, screen, *"every ring is a group", "enter")
            await press_and_wait(pilot, screen, "w")
            await wait_until(pilot, lambda: isinstance(app.screen, ExplanationDialog))
            await press_and_wait(pilot, screen, "enter")
            dialog = app.screen
            assert isinstance(dialog, Picking) and question(pilot) == "Votes for the document"
            before = [choice.about for choice in dialog.choices]
            may_answer.set()
            await wait_until(pilot, lambda: screen.training_topics.topics is not None)
            await wait_until_idle(pilot)
            after = [choice.about for choice in dialog.choices]
            assert after != before
            assert all(new.startswith(old) for new, old in zip(after, before, strict=True))

        app = search_harness.app(recipe="neighbours")
        drive(app, steps)
    with block_function(monkeypatch, panes, "read_gold_topics") as may_answer:

        async def open_topics(pilot: P, screen: SearchScreen) -> None:
            await press_and_wait(pilot, screen, *"every ring is a group", "enter", "T")
            assert "waiting for the training topics" in screen_text(pilot)
            may_answer.set()
            await wait_until(pilot, lambda: screen.training_topics.topics is not None)
            await wait_until_idle(pilot)
            result = screen.hits.result
            assert result is not None and "waiting for the training topics" not in screen_text(pilot)
            if screen.reading.citing(result.hit.document_id):
                assert question(pilot) == "Training topics with the document in their gold"
            else:
                assert "no training topic has this document in its gold" in screen_text(pilot)

        app = search_harness.app()
        drive(app, open_topics)


def test_the_width_of_ids_does_not_depend_on_the_order_of_pages(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, "enter", "end")
        assert len(screen.hits.listing.pages) > 1
        first, *others = screen.hits.listing.pages.values()
        longer = replace(others[0][0], hit=others[0][0].hit._replace(document_id="a-longer-id"))
        listing = Listing(screen.hits.listing.request, screen.hits.count, {0: first, 1: [longer]})
        screen.hits.open(listing, 0, 0)
        late = screen.hits._id_width()
        screen.hits.open(Listing(listing.request, listing.total, {0: first}), 0, 0)
        assert screen.hits._id_width() == late

    drive(search_harness.app(), steps)


def test_an_overtaken_search_leaves_the_index_open(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "OVERTAKE_SECONDS", 0.01)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        search_harness.index.may_answer.clear()
        search_harness.index.searches = 0
        await pilot.press("p")
        await wait_until(pilot, lambda: search_harness.index.searches)
        await press(pilot, *"rime")  # a second thread answers, from an index of its own
        await wait_until(pilot, lambda: not screen.loader.is_waiting)
        search_harness.index.may_answer.set()
        await wait_until(pilot, lambda: len(screen.quick._lanes) == 1)
        await wait_until_answered(pilot, screen)
        assert not search_harness.index.is_closed
        assert_current(screen)

    drive(search_harness.app(), steps)
