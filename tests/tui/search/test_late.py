"""What comes late on the search screen does what it does when it comes at once, and nothing to what was done since."""

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
from searchapp.tui.search.requests import Listing
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import PATIENCE_SECONDS, drive, press, question, settled, text_of, until
from tests.tui.search.conftest import SearchingOn, answered, assert_current, enter, ids

P = Pilot[None]


@contextmanager
def late(patch: pytest.MonkeyPatch, module: Any, name: str) -> Iterator[threading.Event]:
    """A function of a module answers when this event is set."""
    may_answer, work = threading.Event(), getattr(module, name)

    def wait(*args: Any) -> Any:
        may_answer.wait(PATIENCE_SECONDS)
        return work(*args)

    patch.setattr(module, name, wait)
    try:
        yield may_answer
    finally:
        may_answer.set()


def test_keys_after_a_grade_that_waits_for_the_hits_wait_too(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"ring", "enter")
        assert screen.searcher.collection is not None
        topic = next(iter(every_topic(screen.searched, screen.searcher.collection)))
        screen.judging.begin_topic(topic)
        await answered(pilot, screen)
        searching.index.may_answer.clear()
        screen.seek(replace(screen.loader.query, text="group", literal=False))
        await pilot.press("1", "down", "0", "0", "u")
        assert not list(searching.log.events())
        searching.index.may_answer.set()
        await answered(pilot, screen)
        hits = ids(screen)
        said = [(one.action.value, one.document_id) for _place, one in searching.log.events()]
        assert said[:3] == [("grade", hits[0]), ("grade", hits[2]), ("grade", hits[3])]
        assert [one for one, _document in said[3:]] == ["retract"] and screen.hits.cursor == 4

    drive(searching.app(), steps)


def test_an_answer_takes_back_nothing_that_was_said_since_it_was_asked_for(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"ring", "enter")
        searching.index.may_answer.clear()
        screen.seek(replace(screen.loader.query, text="group"))
        await pilot.press("d")
        assert "theme light" in text_of(app)
        searching.index.may_answer.set()
        await answered(pilot, screen)
        assert "theme light" in text_of(app)
        with late(monkeypatch, reasons, "hit_reason") as may_answer:
            await pilot.press("w")
            assert "theme light" not in text_of(app)
            await pilot.press("d")
            may_answer.set()
            await until(pilot, lambda: isinstance(app.screen, ExplanationDialog))
            await pilot.press("escape")
            assert 'theme = "' in text_of(app)
        with late(monkeypatch, reasons, "find_reason") as may_answer:
            await pilot.press("i", *ids(screen)[1], "enter")
            assert "looking for" in text_of(app)
            may_answer.set()
            await until(pilot, lambda: screen.hits.cursor == 1)
            await settled(pilot)
            assert "looking for" not in text_of(app)

    app = searching.app()
    drive(app, steps)


def test_an_answer_waits_for_whoever_does_something_else_by_then(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"ring", "enter")
        with late(monkeypatch, reasons, "hit_reason") as may_answer:
            await pilot.press("w", "f1")
            may_answer.set()
            await answered(pilot, screen)
        assert [type(one) for one in app.screen_stack][-1] is Help
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ExplanationDialog))
        await pilot.press("escape")
        assert app.screen is screen

    app = searching.app()
    drive(app, steps)


def test_counts_that_come_late_leave_the_cursor_on_its_value(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"jobs", "enter", "f2")
        dialog = app.screen
        assert isinstance(dialog, FilterDialog)
        names = [one.name for one in dialog.choices]
        await enter(pilot, screen, *["down"] * names.index("speaker: CASTELL"))
        searching.index.may_answer.clear()
        await pilot.press("enter")
        searching.index.may_answer.set()
        await answered(pilot, screen)
        assert list(screen.loader.query.filters) == [FieldFilter("speaker", "CASTELL")]
        counted = [one.name for one in dialog.choices]
        assert counted.index("speaker: CASTELL") != names.index("speaker: CASTELL"), "the list is another one"
        assert dialog.index == counted.index("speaker: CASTELL")
        await enter(pilot, screen, "enter")
        assert not list(screen.loader.query.filters)

    app = searching.app("checkthat")
    drive(app, steps)


def test_counts_that_an_engine_refused_come_when_it_answers_again(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "RETRY_SECONDS", 0.05)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"jobs", "enter")
        searching.index.fails = True
        await pilot.press("f2")
        dialog = app.screen
        assert isinstance(dialog, FilterDialog)
        await until(pilot, lambda: "does not answer" in text_of(app))
        assert not dialog.choices
        searching.index.fails = False
        await until(pilot, lambda: dialog.choices)

    app = searching.app("checkthat")
    drive(app, steps)


def test_what_is_wrong_is_pointed_to_where_it_stands_once_the_line_is_laid_out(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_draw, turn = threading.Event(), SearchScreen._on_timer_update
    may_draw.set()
    monkeypatch.setattr(
        SearchScreen, "_on_timer_update", lambda screen: turn(screen) if may_draw.is_set() else None
    )

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"ring", "enter", "s")
        await press(pilot, "slash")
        await until(pilot, lambda: screen.words.region.x > 10)  # behind the name of a document
        may_draw.clear()
        await press(pilot, "(")
        await until(pilot, lambda: isinstance(screen.error, BrokenQuery))
        may_draw.set()
        await until(pilot, lambda: "› (" in text_of(app))
        await settled(pilot)
        lines = text_of(app).splitlines()
        words = next(line for line in lines if "› (" in line)
        caret = next(line for line in lines if "▲" in line)
        assert caret.index("▲") == words.index("(")

    app = searching.app()
    drive(app, steps)


def test_solved_topics_that_come_late_are_offered_then(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with late(monkeypatch, panes, "read_gold_topics") as may_answer:

        async def steps(pilot: P, screen: SearchScreen) -> None:
            await enter(pilot, screen, *"every ring is a group", "enter")
            await enter(pilot, screen, "w")
            await until(pilot, lambda: isinstance(app.screen, ExplanationDialog))
            await enter(pilot, screen, "enter")
            dialog = app.screen
            assert isinstance(dialog, Picking) and question(app) == "Votes for the document"
            before = [one.about for one in dialog.choices]
            may_answer.set()
            await until(pilot, lambda: screen.training_topics.topics is not None)
            await settled(pilot)
            after = [one.about for one in dialog.choices]
            assert after != before and all(
                one.startswith(two) for one, two in zip(after, before, strict=True)
            )

        app = searching.app(recipe="neighbours")
        drive(app, steps)
    with late(monkeypatch, panes, "read_gold_topics") as may_answer:

        async def cited(pilot: P, screen: SearchScreen) -> None:
            await enter(pilot, screen, *"every ring is a group", "enter", "e")
            assert "waiting for the training topics" in text_of(app)
            may_answer.set()
            await until(pilot, lambda: screen.training_topics.topics is not None)
            await settled(pilot)
            here = screen.hits.result
            assert here is not None and "waiting for the training topics" not in text_of(app)
            if screen.reading.citing(here.hit.document_id):
                assert question(app) == "Training topics with the document in their gold"
            else:
                assert "no training topic has this document in its gold" in text_of(app)

        app = searching.app()
        drive(app, cited)


def test_ids_take_the_same_cells_whichever_pages_came_first(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, "enter", "end")
        assert len(screen.hits.listing.pages) > 1
        first, *others = screen.hits.listing.pages.values()
        longer = replace(others[0][0], hit=others[0][0].hit._replace(document_id="a-longer-id"))
        listing = Listing(screen.hits.listing.request, screen.hits.count, {0: first, 1: [longer]})
        screen.hits.open(listing, 0, 0)
        late = screen.hits._id_width()
        screen.hits.open(Listing(listing.request, listing.total, {0: first}), 0, 0)
        assert screen.hits._id_width() == late

    drive(searching.app(), steps)


def test_a_search_that_was_overtaken_leaves_the_index_open(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "OVERTAKE_SECONDS", 0.01)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        searching.index.may_answer.clear()
        searching.index.finds = 0
        await pilot.press("p")
        await until(pilot, lambda: searching.index.finds)
        await press(pilot, *"rime")  # answered by a second thread, from an index opened for it
        await until(pilot, lambda: not screen.loader.is_waiting)
        searching.index.may_answer.set()
        await until(pilot, lambda: len(screen.quick._lanes) == 1)
        await answered(pilot, screen)
        assert not searching.index.is_closed
        assert_current(screen)

    drive(searching.app(), steps)
