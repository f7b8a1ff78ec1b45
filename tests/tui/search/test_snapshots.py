"""Compare the search screen with approved pictures: see `tests.tui.pictures`."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from scripts.at_rest import wait_for_rest
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import drive
from tests.tui.pictures import pinned, require_same
from tests.tui.search.conftest import (
    SearchHarness,
    ids,
    press_and_wait,
    wait_for_training_topics,
    wait_until_answered,
)

STAGES = {
    "search": ("down",),
    "search-broken": (" ", '"', *"new"),
    "search-filters": ("backspace",) * 5 + ("f2", "down"),
    "search-why": ("escape", "enter", "w"),
    "search-topics": ("escape", "t"),
    "search-topic": ("down", "enter", "1", "0"),
    "search-jump": ("apostrophe",),
    "search-help": ("escape", "f1"),
}
"""The keys before each picture, one picture after the other; the test waits for the answers to each key."""

FEW_NAMES = ("search", "search-filters")


@pinned
@pytest.mark.parametrize(
    ("size", "look", "names"),
    [
        ((80, 24), "dark", STAGES),
        ((160, 45), "dark", STAGES),
        ((40, 15), "dark", STAGES),
        ((80, 24), "light", FEW_NAMES),
        ((80, 24), "ansi-dark", FEW_NAMES),
        ((160, 45), "ansi-light", FEW_NAMES),
        ((80, 24), "NO_COLOR", FEW_NAMES),
        ((80, 24), "compact", FEW_NAMES),
    ],
    ids=lambda value: value if isinstance(value, str) else "x".join(map(str, value))[:6],
)
def test_the_search_screen_is_unchanged(
    search_harness: SearchHarness,
    size: tuple[int, int],
    look: str,
    names: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if look == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    setting = {"compact": 'spacing = "compact"', "NO_COLOR": ""}.get(look, f'theme = "{look}"')
    (search_harness.home / "settings.toml").write_text(f"[search]\n{setting}\n")
    app = search_harness.app("checkthat")
    pictures: dict[str, str] = {}

    async def steps(pilot: Pilot[None], screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        await press_and_wait(pilot, screen, *"jobs")
        for name, keys in STAGES.items():
            if name in names or not set(names) <= pictures.keys():
                for key in keys:
                    await press_and_wait(pilot, screen, key)
            if name in names:
                await wait_for_rest(pilot)
                pictures[name] = app.export_screenshot(title="searchapp search")

    drive(app, steps, size)
    for name, picture in pictures.items():
        require_same(picture, name, size, look)


@pinned
@pytest.mark.parametrize("size", [(160, 45), (80, 24), (40, 15)])
def test_two_recipes_and_hits_on_two_lines_are_unchanged(
    search_harness: SearchHarness, size: tuple[int, int]
) -> None:
    app = search_harness.app()
    stages = {"search-second": ("alt+v", *"bm25", "enter", "enter", "down")}
    if size == (80, 24):
        stages["search-lines"] = ("V", "L")
    pictures: dict[str, str] = {}

    async def steps(pilot: Pilot[None], screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"every finite ring")
        for name, keys in stages.items():
            await press_and_wait(pilot, screen, *keys)
            await wait_for_rest(pilot)
            pictures[name] = app.export_screenshot(title="searchapp search")

    drive(app, steps, size)
    for name, picture in pictures.items():
        require_same(picture, name, size, "dark")


@pinned
@pytest.mark.parametrize("size", [(160, 45), (80, 24), (40, 15)])
def test_the_page_of_a_training_topic_is_unchanged(
    search_harness: SearchHarness, size: tuple[int, int]
) -> None:
    app = search_harness.app()
    pictures: dict[str, str] = {}

    async def steps(pilot: Pilot[None], screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"normal subgroup", "enter")
        await wait_for_training_topics(pilot, screen)
        topics = screen.training_topics.topics
        assert topics is not None
        screen.hits.move(next(index for index, hit in enumerate(ids(screen)) if topics.citing(hit)))
        await wait_until_answered(pilot, screen)
        for name, key in (("search-citing", "T"), ("search-training-topic", "enter")):
            await press_and_wait(pilot, screen, key)
            await wait_for_rest(pilot)
            pictures[name] = app.export_screenshot(title="searchapp search")

    drive(app, steps, size)
    for name, picture in pictures.items():
        require_same(picture, name, size, "dark")
