"""Keys that are typed ahead: no grade is saved for a document that nobody saw, nor after the key that leaves."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot

from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.screen import KeyApp
from searchapp.tui.search import judging as grading
from searchapp.tui.search.screen import SearchScreen
from searchapp.tui.topics.screen import TopicsScreen
from tests.tui.conftest import Judging, drive, key_event, painted, settled, until
from tests.tui.home.conftest import AtHome
from tests.tui.home.conftest import at_home as at_home  # a fixture
from tests.tui.search.conftest import SearchingOn, answered
from tests.tui.search.conftest import searching as searching  # a fixture
from tests.tui.search.test_judging import choose_topic
from tests.tui.search.test_late import late
from tests.tui.topics.conftest import Walked
from tests.tui.topics.conftest import answered as topics_answered
from tests.tui.topics.conftest import walked as walked  # a fixture

P = Pilot[None]


def read(*keys: str) -> list[events.Key]:
    """Keys that are read from the terminal now, and handled later."""
    return [key_event(key) for key in keys]


async def handle(pilot: P, keys: list[events.Key]) -> None:
    """Have keys handled that were read, all in one write."""
    for key in keys:
        pilot.app.post_message(key)
    await settled(pilot)
    await painted(pilot)


def test_grades_typed_before_the_first_paint_are_discarded(judging: Judging) -> None:
    early = read("1", "1", "s", "x")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await handle(pilot, early)
        assert judging.events() == []
        documents = list(screen.ranking.documents[:40])
        await handle(pilot, read(*"1" * 40))  # after it queued keys grade successive documents
        assert [one.document_id for one in judging.events()] == documents

    drive(judging.app(), steps)


def test_decisions_typed_before_the_first_paint_are_discarded(judging: Judging) -> None:
    early = read("1", "0")

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        before = judging.events()
        await handle(pilot, early)
        assert judging.events() == before
        await handle(pilot, read("1"))
        assert len(judging.events()) == len(before) + 1

    drive(judging.adjudicating(), steps)


def test_grades_typed_after_the_key_that_leaves_are_discarded(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await handle(pilot, read(*"1q111"))

    drive(judging.app(), steps)
    assert len(judging.events()) == 1


def test_a_screen_that_comes_back_discards_keys_until_it_is_painted(judging: Judging) -> None:
    above = judging.app().main
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        pilot.app.push_screen(above)
        await until(pilot, lambda: above.is_painted)
        await handle(pilot, read(*"q11"))
        assert pilot.app.screen is screen and judging.events() == []
        await until(pilot, lambda: screen.is_painted)
        await handle(pilot, read("1"))
        assert len(judging.events()) == 1

    drive(app, steps)


def test_keys_after_leaving_home_open_nothing(at_home: AtHome) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await handle(pilot, read(*"qsc?"))
        assert pilot.app.screen is screen

    at_home.drive(steps)


def test_words_typed_ahead_reach_the_search_box_and_grades_do_not(searching: SearchingOn) -> None:
    early = read(*"ring", "enter", "1", "t")

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await handle(pilot, early)
        await answered(pilot, screen)
        assert screen.loader.query.text == "ring" and screen.hits.has_focus
        assert pilot.app.screen is screen

    drive(searching.app(), steps)


def test_grades_are_discarded_until_hits_of_the_topic_are_shown(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        searching.index.may_answer.clear()
        await pilot.press("escape", "t")
        await until(pilot, lambda: pilot.app.screen is not screen)
        await handle(pilot, read("down", "enter", "1", "0"))
        searching.index.may_answer.set()
        await answered(pilot, screen)
        assert list(searching.log.events()) == []
        await pilot.press("down", "1")  # the first hit is the topic itself
        assert len(list(searching.log.events())) == 1

    drive(searching.app(), steps)


def test_grades_are_discarded_while_a_dialog_opens(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        await choose_topic(pilot, screen)
        with late(monkeypatch, grading, "every_topic"):
            await handle(pilot, read("t", "1"))  # the 1 is meant for the list of topics
            assert list(searching.log.events()) == []
        await until(pilot, lambda: pilot.app.screen is not screen)

    drive(searching.app(), steps)


def test_grades_on_topics_typed_before_the_first_paint_are_discarded(walked: Walked) -> None:
    early = read("J", "1")

    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await handle(pilot, early)
        await topics_answered(pilot, screen)
        assert not screen.judging.is_on
        await until(pilot, lambda: screen.is_painted)
        await handle(pilot, read("J", "1"))
        assert len(walked.events()) == 1

    app: KeyApp = walked.app()
    drive(app, steps)
