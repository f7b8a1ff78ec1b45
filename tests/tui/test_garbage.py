"""Python's search for garbage in all objects waits until nobody is at the keys."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from textual.pilot import Pilot

from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.screen import GARBAGE_REST_SECONDS, LATEST, WORTH_IT, Garbage
from tests.tui.conftest import Judging, drive


@pytest.fixture
def searches() -> Iterator[list[int]]:
    """The generations that were searched."""
    found: list[int] = []

    def searched(phase: str, info: dict[str, Any]) -> None:
        if phase == "stop":
            found.append(info["generation"])

    gc.callbacks.append(searched)
    yield found
    gc.callbacks.remove(searched)


def age() -> None:
    """Search among the younger objects so often that a search among all pays."""
    gc.collect()
    for _time in range(WORTH_IT + 1):
        gc.collect(1)


def test_nothing_is_searched_for_while_somebody_is_at_the_keys(
    searches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("searchapp.tui.kit.screen.time.monotonic", lambda: now)
    kept = Garbage()
    kept.begin()
    try:
        age()
        searches.clear()
        kept.input_came()
        kept.look()
        assert 2 not in searches
        now += GARBAGE_REST_SECONDS
        kept.look()
        assert searches.count(2) == 1
        kept.look()  # nothing has come since
        assert searches.count(2) == 1
    finally:
        kept.end()


def test_a_screen_puts_searches_off_and_leaves_everything_as_it_was(judging: Judging) -> None:
    before = gc.get_threshold()

    async def steps(pilot: Pilot[None], screen: JudgeScreen) -> None:
        assert gc.get_threshold() == (*before[:2], LATEST)
        last = app._garbage._last_input
        await pilot.press("down")
        assert app._garbage._last_input > last

    app = judging.app()
    drive(app, steps)
    assert gc.get_threshold() == before
