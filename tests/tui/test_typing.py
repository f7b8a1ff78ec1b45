"""Typing: every key is handled at once, whatever the engine, earlier screens or the size of the heap do."""

from __future__ import annotations

import gc

import pytest
from textual.pilot import Pilot

from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import screen as kit_screen
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import Judging, drive, freeze_objects, key_event
from tests.tui.search.conftest import SearchingOn, answered, assert_current, ids
from tests.tui.search.conftest import searching as searching  # a fixture

OBJECTS = 200_000


def test_garbage_collection_leaves_out_objects_that_are_older_than_the_screen(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full collection of a large heap takes long enough to be noticed while typing."""
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
    gc.freeze()  # as before the test, for the speed of those after it


def test_keys_typed_while_the_engine_does_not_answer_all_arrive(searching: SearchingOn) -> None:
    text = "a prime number is a natural number with no divisors other than one and itself " * 6
    keys = ["space" if character == " " else character for character in text]

    async def steps(pilot: Pilot[None], screen: SearchScreen) -> None:
        await answered(pilot, screen)
        searching.index.may_answer.clear()
        searches = searching.index.finds
        for key in keys:
            pilot.app.post_message(key_event(key))
        await pilot.pause()
        assert screen.words.value == text  # typing waits for no answer
        searching.index.may_answer.set()
        await answered(pilot, screen)
        assert searching.index.finds - searches < 20  # outdated searches are left out
        assert screen.loader.query.text == text and ids(screen)
        assert_current(screen)

    drive(searching.app(), steps)
