"""Compare all screens except the search screen with approved pictures: see `tests.tui.pictures`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path

import pytest
from textual.pilot import Pilot

from scripts.at_rest import wait_for_rest
from scripts.pictures import SPLITS, Picture, SampleScreens, draw
from searchapp.judging import events
from searchapp.judging.session import SeenDocument
from searchapp.tui.compare.screen import CompareScreen
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.kit.judging import WorkApp, WorkScreen
from searchapp.tui.kit.themes import next_theme
from searchapp.tui.topics.screen import TopicsScreen
from tests.tui.conftest import JudgingHarness, SampleRuns, drive, wait_until_idle
from tests.tui.pictures import in_sizes, pinned, require_same

JUDGING_KEYS = {
    "judging": ("1", "0", "1", "s", "x", "m"),
    "help": ("question_mark",),
    "question": ("space", "space", "space", "1"),
    "topics": ("t", "down"),
    "reason": ("r",),
    "note": ("n", *"seen before"),
    "judged": ("1", "0", "n", *"odd", "enter", "s", "l", "tab", "shift+tab"),
}
ADJUDICATION_KEYS = {
    "deciding": ("1", "r", "0", *"too general", "enter", "n", *"see 1.2", "enter"),
    "deciding-help": ("question_mark",),
}
OTHER_PICTURES = {
    picture.name: picture
    for picture in (
        Picture("home", HomeScreen, SampleScreens.home),
        Picture("home-run", HomeScreen, SampleScreens.home, ("tab",)),
        Picture("settings", ConfigScreen, SampleScreens.settings, ("down",)),
        Picture("walking", TopicsScreen, SampleScreens.topics),
        Picture("comparing", CompareScreen, SampleScreens.compare),
        Picture("comparing-judged", CompareScreen, SampleScreens.compare, ("v", "j", "1", "w")),
        Picture(
            "walking-gold", TopicsScreen, SampleScreens.topics, ("right_square_bracket", "g", "j", "1", "w")
        ),
    )
}
"""Screens that are not opened for judging."""


@pinned
@pytest.mark.parametrize(("name", "size"), in_sizes(JUDGING_KEYS))
def test_the_judging_screen_is_unchanged(
    judging: JudgingHarness, name: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "datetime", TickingClock)  # keeps pace and order the same
    monkeypatch.setattr(TickingClock, "ticks", 0)
    app = judging.app()
    topic = judging.own_session.topics[0]
    documents = judging.own_session.order(topic).documents
    judging.session("ben").grade(
        [SeenDocument(topic, document) for document in documents[4:7]], 1, "by definition"
    )
    judging.own_session.refresh()
    compare_pictures(app, JUDGING_KEYS[name], name, size)


@pinned
@pytest.mark.parametrize(("name", "size"), in_sizes(ADJUDICATION_KEYS))
def test_the_adjudication_screen_is_unchanged(
    judging: JudgingHarness, name: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "datetime", FixedClock)
    compare_pictures(judging.adjudicating(("ann", "ben", "bot")), ADJUDICATION_KEYS[name], name, size)


@pinned
@pytest.mark.parametrize(("name", "size"), in_sizes(OTHER_PICTURES))
def test_other_screens_are_unchanged(
    name: str, size: tuple[int, int], samples: SampleRuns, tmp_path: Path
) -> None:
    picture = OTHER_PICTURES[name]
    runs = {task: samples.run(task) for task in SPLITS}
    with closing(SampleScreens(samples.home, runs, tmp_path)) as screens:
        pictures = draw(replace(picture, size=size), screens, ("dark", "light"))
    for look, picture_ in pictures.items():
        require_same(picture_, picture.name, size, look)


class FixedClock(datetime):
    """A clock with a fixed time."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> FixedClock:
        return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)


class TickingClock(datetime):
    """A clock that advances by eleven seconds each time it is read."""

    ticks = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> TickingClock:
        cls.ticks += 11
        return cls(2026, 1, 2, 3, cls.ticks // 60 % 60, cls.ticks % 60, tzinfo=tz)


def compare_pictures(app: WorkApp, keys: Sequence[str], name: str, size: tuple[int, int]) -> None:
    """Press keys and compare the pictures in the dark and the light theme with the approved ones."""

    async def steps(pilot: Pilot[None], screen: WorkScreen) -> None:
        await pilot.press(*keys)
        for look in ("dark", "light"):
            await wait_until_idle(pilot)
            await wait_for_rest(pilot)
            pictures[look] = app.export_screenshot(title="searchapp judge")
            next_theme(app)

    pictures: dict[str, str] = {}
    drive(app, steps, size)
    for look, picture in pictures.items():
        require_same(picture, name, size, look)
