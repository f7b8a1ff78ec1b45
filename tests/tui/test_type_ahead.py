"""Type-ahead: no grade is saved for a document that was not shown, or after the key that leaves."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot

from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.search import judging as grading
from searchapp.tui.search.screen import SearchScreen
from searchapp.tui.topics.screen import TopicsScreen
from tests.tui.conftest import (
    JudgingHarness,
    drive,
    key_event,
    wait_until,
    wait_until_idle,
    wait_until_painted,
)
from tests.tui.home.conftest import HomeHarness
from tests.tui.home.conftest import home_harness as home_harness  # a fixture
from tests.tui.search.conftest import SearchHarness, wait_until_answered
from tests.tui.search.conftest import search_harness as search_harness  # a fixture
from tests.tui.search.test_judging import choose_topic
from tests.tui.search.test_late_answers import block_function
from tests.tui.topics.conftest import TopicsHarness
from tests.tui.topics.conftest import topics_harness as topics_harness  # a fixture
from tests.tui.topics.conftest import wait_until_answered as topics_answered

P = Pilot[None]


def read(*keys: str) -> list[events.Key]:
    """Return keys with the present time as the time at which the terminal read them."""
    return [key_event(key) for key in keys]


async def handle(pilot: P, keys: list[events.Key]) -> None:
    """Send keys without pauses and wait until they are handled."""
    for key in keys:
        pilot.app.post_message(key)
    await wait_until_idle(pilot)
    await wait_until_painted(pilot)


def test_grades_typed_before_the_first_paint_are_discarded(judging: JudgingHarness) -> None:
    early = read("1", "1", "s", "x")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await handle(pilot, early)
        assert judging.events() == []
        documents = list(screen.ranking.documents[:40])
        await handle(pilot, read(*"1" * 40))  # after it queued keys grade successive documents
        assert [event.document_id for event in judging.events()] == documents

    drive(judging.app(), steps)


def test_decisions_typed_before_the_first_paint_are_discarded(judging: JudgingHarness) -> None:
    early = read("1", "0")

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        before = judging.events()
        await handle(pilot, early)
        assert judging.events() == before
        await handle(pilot, read("1"))
        assert len(judging.events()) == len(before) + 1

    drive(judging.adjudicating(), steps)


def test_grades_typed_after_the_key_that_leaves_are_discarded(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await handle(pilot, read(*"1q111"))

    drive(judging.app(), steps)
    assert len(judging.events()) == 1


def test_an_uncovered_screen_discards_keys_until_it_is_painted(judging: JudgingHarness) -> None:
    above = judging.app().main
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        pilot.app.push_screen(above)
        await wait_until(pilot, lambda: above.is_painted)
        await handle(pilot, read(*"q11"))
        assert pilot.app.screen is screen and judging.events() == []
        await wait_until(pilot, lambda: screen.is_painted)
        await handle(pilot, read("1"))
        assert len(judging.events()) == 1

    drive(app, steps)


def test_keys_after_leaving_home_open_nothing(home_harness: HomeHarness) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await handle(pilot, read(*"qsc?"))
        assert pilot.app.screen is screen

    home_harness.drive(steps)


def test_a_query_typed_ahead_reaches_the_search_box_and_grades_do_not(search_harness: SearchHarness) -> None:
    early = read(*"ring", "enter", "1", "t")

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await handle(pilot, early)
        await wait_until_answered(pilot, screen)
        assert screen.loader.query.text == "ring" and screen.hits.has_focus
        assert pilot.app.screen is screen

    drive(search_harness.app(), steps)


def test_grades_are_discarded_until_hits_of_the_topic_are_shown(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        search_harness.index.may_answer.clear()
        await pilot.press("escape", "t")
        await wait_until(pilot, lambda: pilot.app.screen is not screen)
        await handle(pilot, read("down", "enter", "1", "0"))
        search_harness.index.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert list(search_harness.log.events()) == []
        await pilot.press("down", "1")  # the first hit is the topic itself
        assert len(list(search_harness.log.events())) == 1

    drive(search_harness.app(), steps)


def test_grades_are_discarded_while_a_dialog_opens(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        await choose_topic(pilot, screen)
        with block_function(monkeypatch, grading, "every_topic"):
            await handle(pilot, read("t", "1"))  # the 1 is meant for the list of topics
            assert list(search_harness.log.events()) == []
        await wait_until(pilot, lambda: pilot.app.screen is not screen)

    drive(search_harness.app(), steps)


def test_grades_on_topics_typed_before_the_first_paint_are_discarded(topics_harness: TopicsHarness) -> None:
    early = read("J", "1")

    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await handle(pilot, early)
        await topics_answered(pilot, screen)
        assert not screen.judging.is_on
        await wait_until(pilot, lambda: screen.is_painted)
        await handle(pilot, read("J", "1"))
        assert len(topics_harness.events()) == 1

    app: KeyApp = topics_harness.app()
    drive(app, steps)
