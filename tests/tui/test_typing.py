"""Typed keys are handled at once, also with a slow engine or a large heap."""

from __future__ import annotations

import gc

import pytest
from textual import events
from textual.pilot import Pilot

from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import screen as kit_screen
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import JudgingHarness, drive, freeze_objects, key_event, screen_text, wait_until
from tests.tui.search.conftest import SearchHarness, assert_current, ids, wait_until_answered
from tests.tui.search.conftest import search_harness as search_harness  # a fixture

OBJECTS = 200_000


def test_garbage_collection_skips_objects_older_than_the_screen(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full collection of a large heap would delay keys noticeably."""
    monkeypatch.setattr(kit_screen, "freeze_objects", freeze_objects)
    objects = [[number] for number in range(OBJECTS)]
    collected: list[int] = []

    async def steps(pilot: Pilot[None], _screen: JudgeScreen) -> None:
        assert gc.isenabled() and gc.get_freeze_count() > OBJECTS
        await pilot.press(*["down", "up"] * 20)
        collected.append(len(gc.get_objects()))

    drive(judging.app(), steps)
    assert collected[0] < OBJECTS / 2
    assert gc.get_freeze_count() == 0 and len(gc.get_objects()) > len(objects)
    del objects
    gc.freeze()  # as before the test, so that later tests are fast


def test_keys_typed_while_the_engine_does_not_answer_all_arrive(search_harness: SearchHarness) -> None:
    text = "a prime number is a natural number with no divisors other than one and itself " * 6
    keys = ["space" if character == " " else character for character in text]

    async def steps(pilot: Pilot[None], screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        search_harness.index.may_answer.clear()
        searches = search_harness.index.searches
        for key in keys:
            pilot.app.post_message(key_event(key))
        await pilot.pause()
        assert screen.words.value == text  # typing does not wait for answers
        search_harness.index.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert search_harness.index.searches - searches < 20  # outdated searches are skipped
        assert screen.loader.query.text == text and ids(screen)
        assert_current(screen)

    drive(search_harness.app(), steps)


def test_alt_with_a_letter_types_nothing(search_harness: SearchHarness) -> None:
    async def steps(pilot: Pilot[None], screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        pilot.app.post_message(events.Key("alt+r", "r"))  # as terminals send it
        await wait_until(pilot, lambda: pilot.app.screen is not screen)
        assert screen.words.value == "" and "Rank with" in screen_text(pilot)

    drive(search_harness.app(), steps)
