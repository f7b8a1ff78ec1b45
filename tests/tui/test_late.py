"""What comes late leads to the screen that it leads to when it comes at once.

The same keys are pressed on the same screen three times: answers come before the screen is laid out and drawn, whose
timer is slow; each answer comes after a while, and the screen is drawn at once; and both are as they come. Whenever
everything has come to rest, text and styles of the screen must be the same.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from textual import screen as textual_screen
from textual.strip import Strip
from textual.worker import Worker

from scripts.at_rest import wait_for_rest
from scripts.pictures import SPLITS, Clock, SampleScreens
from searchapp.judging import events
from searchapp.tui.kit import background
from searchapp.tui.kit.background import BackgroundQueue, SearchQueue
from searchapp.tui.kit.palette import Palette
from searchapp.tui.kit.screen import KeyApp
from tests.profile import FULL, SEED
from tests.tui.conftest import Prepared, key_event

LONGEST_SECONDS = 0.3 if FULL else 0.15
"""The longest that an answer takes which comes late."""

SLOW_PERIOD = 0.2
"""Seconds from one turn of a screen's timer to the next where it is slow."""

SHARE = 6
"""In the short profile one walk of so many is gone, others with another seed."""

Step = Sequence[str]
"""Keys that are pressed without waiting for what comes of each."""


@dataclass(frozen=True)
class Walk:
    """Keys on a screen; everything comes to rest after each step."""

    name: str
    open: Callable[[SampleScreens], KeyApp]
    steps: Sequence[Step]
    size: tuple[int, int] = (110, 30)


WORDS = "normal subgroup"

WALKS = (
    Walk(
        "search",
        SampleScreens.search,
        ([*WORDS], ["escape"], ["w"], ["escape"], ["down", "down"], ["apostrophe"], ["escape"]),
    ),
    Walk(
        "search-recipes",
        SampleScreens.search,
        ([*WORDS, "enter"], ["r"], [*"neigh", "enter"], ["w"], ["enter"], ["escape"], ["e"]),
    ),
    Walk(
        "search-pages",
        SampleScreens.search,
        (["enter"], ["end"], ["pageup"], ["home"], ["down", "down", "pagedown"]),
        (80, 24),
    ),
    Walk(
        "search-topic",
        SampleScreens.search,
        ([*WORDS, "enter"], ["t"], ["down", "enter"], ["1"], ["0"], ["u"], ["down", "a"], ["right"]),
    ),
    Walk(
        "search-broken",
        SampleScreens.search,
        ([*WORDS, "enter"], ["s"], ["tab", "slash"], ['"'], ["ctrl+u", *"ring"]),
        (80, 24),
    ),
    Walk(
        "search-filters",
        lambda bench: bench.search("checkthat"),
        (
            [*"jobs", "enter"],
            ["f"],
            ["down", "down", "down", "enter"],
            ["enter"],
            [*"part"],
            ["escape"],
            ["w"],
        ),
        (80, 24),
    ),
    Walk(
        "search-palette",
        SampleScreens.search,
        ([*WORDS], ["ctrl+p"], [*"theme"], ["escape"], ["ctrl+p", "down", "down"]),
        (80, 24),
    ),
    Walk(
        "search-help",
        SampleScreens.search,
        ([*WORDS], ["f1"], ["escape"], ["enter", "v"], ["down", "v"], ["escape"], ["h"]),
    ),
    Walk(
        "topics",
        SampleScreens.topics,
        (["g", "e", "e"], ["w"], ["escape"], ["right_square_bracket", "down", "down"], ["o"], ["W"]),
    ),
    Walk(
        "topics-narrow",
        SampleScreens.topics,
        (["t"], ["down", "down"], ["enter"], ["j"], ["1"], ["n", *"why", "enter"], ["apostrophe"]),
        (80, 24),
    ),
    Walk(
        "topics-failures",
        SampleScreens.topics,
        (["F"], ["w"], ["escape"], ["m"], ["m"], ["ctrl+p"], [*"worst", "enter"]),
    ),
    Walk(
        "compare",
        SampleScreens.compare,
        (["j"], ["1", "0"], ["v"], ["w"], ["escape"], ["M"], ["r"]),
        (150, 32),
    ),
    Walk(
        "compare-narrow",
        SampleScreens.compare,
        (["right_square_bracket"], ["e"], ["tab"], ["apostrophe"], ["escape"], ["t"]),
        (80, 24),
    ),
    Walk(
        "judge",
        SampleScreens.judge,
        (
            ["1", "0"],
            ["n", *"see", "enter"],
            ["slash", *"group", "enter"],
            ["full_stop"],
            ["l"],
            [*"a"],
            ["escape"],
            ["m"],
        ),
    ),
    Walk(
        "judge-topics",
        SampleScreens.judge,
        (["t"], ["down", "enter"], ["r", "1", *"so", "enter"], ["space", "space", "1"], ["y"], ["u"]),
    ),
    Walk(
        "adjudicate",
        SampleScreens.adjudicate,
        (["1"], ["r", "0", *"why", "enter"], ["n", *"x", "enter"], ["down", "down"], ["f1"]),
    ),
    Walk("config", SampleScreens.settings, (["down", "down"], ["f1"], ["escape"], ["apostrophe"])),
    Walk(
        "home",
        SampleScreens.home,
        (["tab"], ["v"], ["escape"], ["e"], ["escape"], ["ctrl+p"], [*"topics of"]),
    ),
    Walk(
        "home-search",
        SampleScreens.home,
        (["down"], ["enter"], [*"group"], ["escape"], ["q"], ["apostrophe"]),
        (80, 24),
    ),
)


class Lateness:
    """Lets each answer take a while, from whatever thread it comes.

    Args:
        longest: the longest that one takes, in seconds; each takes a random share of it
        seed: names the shares
    """

    def __init__(self, longest: float, seed: int) -> None:
        self._longest = longest
        self._dice = random.Random(seed)

    def seconds(self) -> float:
        return self._dice.random() * self._longest

    def before(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """A function that waits before it works."""

        def late(*args: Any, **named: Any) -> Any:
            time.sleep(self.seconds())
            return work(*args, **named)

        return late

    def hold_up(self, patch: pytest.MonkeyPatch) -> None:
        """Let everything that is asked on screens take its time."""
        patch.setattr(BackgroundQueue, "_work", self.before(BackgroundQueue._work))
        patch.setattr(SearchQueue, "_deliver", self.before(SearchQueue._deliver))
        threaded, palette, in_background = Worker._run_threaded, Palette.__init__, background.in_background

        async def run_late(worker: Worker[Any]) -> Any:
            await asyncio.sleep(self.seconds())
            return await threaded(worker)

        def offer_late(screen: Palette, offers: Any, further: Callable[[], Any]) -> None:
            palette(screen, offers, self.before(further))

        def begin_late(name: str, work: Callable[[], Any], *rest: Any) -> Any:
            return in_background(name, self.before(work), *rest)

        patch.setattr(Worker, "_run_threaded", run_late)
        patch.setattr(Palette, "__init__", offer_late)
        for name, module in [*sys.modules.items()]:
            if name.startswith("searchapp.tui.") and vars(module).get("in_background") is in_background:
                patch.setattr(module, "in_background", begin_late)


Looks = list[list[Strip]]
"""What is seen at the beginning and after each step, line by line."""


class Walking:
    """Goes the same way several times, each time on a bench of its own."""

    def __init__(self, prepared: Prepared, folder: Path) -> None:
        self._prepared = prepared
        self._folder = folder
        self._ways = itertools.count()

    def seen(self, walk: Walk, *, longest: float, period: float | None, seed: int = SEED) -> Looks:
        """What is seen where answers take so long at most, and the timer of screens so long from turn to turn."""
        own = self._folder / f"way-{next(self._ways)}"
        own.mkdir()
        runs = {task: self._prepared.run(task) for task in SPLITS}
        with (
            closing(SampleScreens(self._prepared.home, runs, own)) as bench,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.delenv("NO_COLOR", raising=False)
            patch.setattr(events, "datetime", Clock)
            patch.setattr(Clock, "ticks", 0)
            if period is not None:
                patch.setattr(textual_screen, "UPDATE_PERIOD", period)
            app = walk.open(bench)
            if longest:
                Lateness(longest, seed).hold_up(patch)
            return asyncio.run(self._walked(app, walk))

    async def _walked(self, app: KeyApp, walk: Walk) -> Looks:
        looks: Looks = []
        async with app.run_test(size=walk.size) as pilot:
            await wait_for_rest(pilot)
            looks.append(list(app.screen._compositor.render_strips()))
            for step in walk.steps:
                for key in step:
                    app.post_message(key_event(key))
                await wait_for_rest(pilot)
                looks.append(list(app.screen._compositor.render_strips()))
        return looks


def require_same(walk: Walk, expected: Looks, found: Looks) -> None:
    """That the same was seen after each step, in the same colours."""
    for place, (before, after) in enumerate(zip(expected, found, strict=True)):
        where = f"{walk.name}, after {[*walk.steps][:place]}"
        assert text(after) == text(before), where
        assert after == before, f"{where}: other colours"


def text(lines: Sequence[Strip]) -> str:
    return "\n".join(line.text.rstrip() for line in lines)


@pytest.fixture
def walking(prepared: Prepared, tmp_path: Path) -> Iterator[Walking]:
    yield Walking(prepared, tmp_path)


@pytest.mark.parametrize("walk", WALKS if FULL else WALKS[SEED % SHARE :: SHARE], ids=lambda one: one.name)
def test_what_comes_late_leads_to_the_same_screen(walking: Walking, walk: Walk) -> None:
    """In the short profile a share of the walks, each with one late way; in the full one several ways of each."""
    early = walking.seen(walk, longest=0.0, period=SLOW_PERIOD)
    for seed in range(SEED, SEED + (3 if FULL else 1)):
        for period in (None, SLOW_PERIOD) if FULL else (None,):
            late = walking.seen(walk, longest=LONGEST_SECONDS, period=period, seed=seed)
            require_same(walk, early, late)
