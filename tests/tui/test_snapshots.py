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
from scripts.pictures import SPLITS, WORDS, Picture, SampleScreens, draw
from searchapp.app.doctor import Check, Verdict
from searchapp.judging import events
from searchapp.judging.session import SeenDocument
from searchapp.tui.compare.screen import CompareScreen
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.home import opener
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.judging import WorkScreen
from searchapp.tui.kit.themes import next_theme, theme_of
from searchapp.tui.search.screen import SearchScreen
from searchapp.tui.topics.screen import TopicsScreen
from tests.tui.conftest import JudgingHarness, SampleRuns, drive, wait_until_idle
from tests.tui.pictures import RESIZED, in_sizes, pinned, require_same

JUDGING_KEYS = {
    "judging": ("1", "0", "1", "s", "x", "m"),
    "help": ("question_mark",),
    "question": ("space", "space", "space", "1"),
    "topics": ("t", "down"),
    "reason": ("R",),
    "note": ("a", *"seen before"),
    "judged": ("1", "0", "a", *"odd", "enter", "s", "l", "tab", "shift+tab"),
}
ADJUDICATION_KEYS = {
    "deciding": ("1", "R", "0", *"too general", "enter", "a", *"see 1.2", "enter"),
    "deciding-help": ("question_mark",),
}
OTHER_PICTURES = {
    picture.name: picture
    for picture in (
        Picture("home", HomeScreen, SampleScreens.home),
        Picture("home-run", HomeScreen, SampleScreens.home, ("tab",)),
        Picture("home-help", HomeScreen, SampleScreens.home, ("question_mark",)),
        Picture("home-palette", HomeScreen, SampleScreens.home, ("ctrl+p", *"rank")),
        Picture("home-path", HomeScreen, SampleScreens.home, ("I", "f", *"/no/folder", "enter")),
        Picture("home-scores", HomeScreen, SampleScreens.home, ("tab", "E")),
        Picture("doctor", HomeScreen, SampleScreens.home, ("D",)),
        Picture("settings", ConfigScreen, SampleScreens.settings, ("down",)),
        Picture("settings-value", ConfigScreen, SampleScreens.settings, ("enter", *"lucene", "enter")),
        Picture(
            "search-order", SearchScreen, SampleScreens.search, (*WORDS, "enter", "v", "down", "down", "v")
        ),
        Picture("search-analysis", SearchScreen, SampleScreens.search, (*WORDS, "enter", "A")),
        Picture(
            "search-saved",
            SearchScreen,
            SampleScreens.search,
            (*WORDS, "ctrl+s", *"groups", "enter", "ctrl+l"),
        ),
        Picture("walking", TopicsScreen, SampleScreens.topics),
        Picture("comparing", CompareScreen, SampleScreens.compare),
        Picture("comparing-judged", CompareScreen, SampleScreens.compare, ("J", "1", "w")),
        Picture(
            "walking-gold", TopicsScreen, SampleScreens.topics, ("right_square_bracket", "n", "J", "1", "w")
        ),
    )
}
"""Screens that are not opened for judging."""

CHECKS = (
    Check("versions", Verdict.ok, "searchapp 1.0.0, Python 3.14.0, Textual 8.0.0"),
    Check("home directory", Verdict.ok, "~/.local/share/searchapp is writable and has 20 GB free"),
    Check("terminal", Verdict.warning, "TERM=screen has 8 colours: set TERM to a terminal with 256 or more"),
    Check("judgment log", Verdict.failed, "judgments.sqlite is locked: close the program that uses it"),
)
"""What the doctor finds on all machines."""


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
    name: str, size: tuple[int, int], samples: SampleRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "examine", lambda *_: CHECKS)
    picture = OTHER_PICTURES[name]
    runs = {task: samples.run(task) for task in SPLITS}
    with closing(SampleScreens(samples.home, runs, tmp_path)) as screens:
        pictures = draw(replace(picture, size=size), screens, ("dark", "light"), RESIZED.get(size, ()))
    for (drawn_size, look), drawn in pictures.items():
        require_same(drawn, picture.name, drawn_size, look)


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


def compare_pictures(app: KeyApp, keys: Sequence[str], name: str, size: tuple[int, int]) -> None:
    """Press keys and compare the pictures in the dark and the light theme with the approved ones."""

    async def steps(pilot: Pilot[None], screen: WorkScreen) -> None:
        await pilot.press(*keys)
        for look in ("dark", "light"):
            await take(pilot, size, look)
            next_theme(app)
        next_theme(app, (theme_of(app), "dark"))
        for further_size in RESIZED.get(size, ()):
            await pilot.resize_terminal(*further_size)
            await take(pilot, further_size, "dark")

    async def take(pilot: Pilot[None], size: tuple[int, int], look: str) -> None:
        await wait_until_idle(pilot)
        await wait_for_rest(pilot)
        pictures[size, look] = app.export_screenshot(title="searchapp judge")

    pictures: dict[tuple[tuple[int, int], str], str] = {}
    drive(app, steps, size)
    for (drawn_size, look), picture in pictures.items():
        require_same(picture, name, drawn_size, look)
