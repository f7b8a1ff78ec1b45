"""Pictures of the screens but that of searching, compared with those that people have looked at: see `pictures`."""

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
from tests.tui.conftest import Judging, Prepared, drive, settled
from tests.tui.pictures import in_sizes, pinned, require_same

SCREENS = {
    "judging": ("1", "0", "1", "s", "x", "m"),
    "help": ("question_mark",),
    "question": ("space", "space", "space", "1"),
    "topics": ("t", "down"),
    "reason": ("r",),
    "note": ("n", *"seen before"),
    "judged": ("1", "0", "n", *"odd", "enter", "s", "l", "tab", "shift+tab"),
}
DECIDING = {
    "deciding": ("1", "r", "0", *"too general", "enter", "n", *"see 1.2", "enter"),
    "deciding-help": ("question_mark",),
}
AROUND = {
    one.name: one
    for one in (
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
"""Screens on which nobody judges, or not yet."""


@pinned
@pytest.mark.parametrize(("name", "size"), in_sizes(SCREENS))
def test_screens_look_as_they_did(
    judging: Judging, name: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "datetime", TickingClock)  # so that pace and order are always the same ones
    monkeypatch.setattr(TickingClock, "ticks", 0)
    app = judging.app()
    topic = judging.judging.topics[0]
    documents = judging.judging.order(topic).documents
    judging.session("ben").grade([SeenDocument(topic, one) for one in documents[4:7]], 1, "by definition")
    judging.judging.refresh()
    compare(app, SCREENS[name], name, size)


@pinned
@pytest.mark.parametrize(("name", "size"), in_sizes(DECIDING))
def test_the_adjudicating_screen_looks_as_it_did(
    judging: Judging, name: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "datetime", StandingClock)
    compare(judging.adjudicating(("ann", "ben", "bot")), DECIDING[name], name, size)


@pinned
@pytest.mark.parametrize(("name", "size"), in_sizes(AROUND))
def test_screens_around_judging_look_as_they_did(
    name: str, size: tuple[int, int], prepared: Prepared, tmp_path: Path
) -> None:
    picture = AROUND[name]
    runs = {task: prepared.run(task) for task in SPLITS}
    with closing(SampleScreens(prepared.home, runs, tmp_path)) as bench:
        pictures = draw(replace(picture, size=size), bench, ("dark", "light"))
    for look, picture_ in pictures.items():
        require_same(picture_, picture.name, size, look)


class StandingClock(datetime):
    """A clock that tells the same time in every picture."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> StandingClock:
        return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)


class TickingClock(datetime):
    """A clock that goes on eleven seconds each time it is looked at."""

    ticks = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> TickingClock:
        cls.ticks += 11
        return cls(2026, 1, 2, 3, cls.ticks // 60 % 60, cls.ticks % 60, tzinfo=tz)


def compare(app: WorkApp, pressed: Sequence[str], name: str, size: tuple[int, int]) -> None:
    """Press keys, and compare the pictures with those that are kept: in the dark, and then in the light."""

    async def steps(pilot: Pilot[None], screen: WorkScreen) -> None:
        await pilot.press(*pressed)
        for look in ("dark", "light"):
            await settled(pilot)
            await wait_for_rest(pilot)
            pictures[look] = app.export_screenshot(title="searchapp judge")
            next_theme(app)

    pictures: dict[str, str] = {}
    drive(app, steps, size)
    for look, picture in pictures.items():
        require_same(picture, name, size, look)
