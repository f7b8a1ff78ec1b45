"""Late answers lead to the same screen as early ones.

The same keys are pressed on the same screen with different timing: answers arrive before a screen with a slow timer is
laid out and drawn, or each answer arrives late. Whenever nothing is pending, text and styles must be the same.
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
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.background import BackgroundQueue, SearchQueue
from searchapp.tui.kit.palette import Palette
from tests.profile import FULL, SEED
from tests.tui.conftest import SampleRuns, key_event

LONGEST_SECONDS = 0.3 if FULL else 0.15
"""Longest delay of a late answer."""

SLOW_PERIOD = 0.2
"""Period in seconds of the slow timer of a screen."""

SCENARIO_SHARE = 6
"""The short profile runs one in this many scenarios, and others with another seed."""

Keys = Sequence[str]
"""Keys that are pressed without pauses."""


@dataclass(frozen=True)
class Scenario:
    """Steps of keys on a screen; after each step the test waits until nothing is pending."""

    name: str
    open: Callable[[SampleScreens], KeyApp]
    steps: Sequence[Keys]
    size: tuple[int, int] = (110, 30)


WORDS = "normal subgroup"

SCENARIOS = (
    Scenario(
        "search",
        SampleScreens.search,
        ([*WORDS], ["escape"], ["w"], ["escape"], ["down", "down"], ["apostrophe"], ["escape"]),
    ),
    Scenario(
        "search-recipes",
        SampleScreens.search,
        ([*WORDS, "enter"], ["r"], [*"neigh", "enter"], ["w"], ["enter"], ["escape"], ["e"]),
    ),
    Scenario(
        "search-pages",
        SampleScreens.search,
        (["enter"], ["end"], ["pageup"], ["home"], ["down", "down", "pagedown"]),
        (80, 24),
    ),
    Scenario(
        "search-topic",
        SampleScreens.search,
        ([*WORDS, "enter"], ["t"], ["down", "enter"], ["1"], ["0"], ["u"], ["down", "a"], ["right"]),
    ),
    Scenario(
        "search-broken",
        SampleScreens.search,
        ([*WORDS, "enter"], ["s"], ["tab", "slash"], ['"'], ["ctrl+u", *"ring"]),
        (80, 24),
    ),
    Scenario(
        "search-filters",
        lambda screens: screens.search("checkthat"),
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
    Scenario(
        "search-palette",
        SampleScreens.search,
        ([*WORDS], ["ctrl+p"], [*"theme"], ["escape"], ["ctrl+p", "down", "down"]),
        (80, 24),
    ),
    Scenario(
        "search-help",
        SampleScreens.search,
        ([*WORDS], ["f1"], ["escape"], ["enter", "v"], ["down", "v"], ["escape"], ["h"]),
    ),
    Scenario(
        "topics",
        SampleScreens.topics,
        (["g", "e", "e"], ["w"], ["escape"], ["right_square_bracket", "down", "down"], ["o"], ["W"]),
    ),
    Scenario(
        "topics-narrow",
        SampleScreens.topics,
        (["t"], ["down", "down"], ["enter"], ["j"], ["1"], ["n", *"why", "enter"], ["apostrophe"]),
        (80, 24),
    ),
    Scenario(
        "topics-failures",
        SampleScreens.topics,
        (["F"], ["w"], ["escape"], ["m"], ["m"], ["ctrl+p"], [*"worst", "enter"]),
    ),
    Scenario(
        "compare",
        SampleScreens.compare,
        (["j"], ["1", "0"], ["v"], ["w"], ["escape"], ["M"], ["r"]),
        (150, 32),
    ),
    Scenario(
        "compare-narrow",
        SampleScreens.compare,
        (["right_square_bracket"], ["e"], ["tab"], ["apostrophe"], ["escape"], ["t"]),
        (80, 24),
    ),
    Scenario(
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
    Scenario(
        "judge-topics",
        SampleScreens.judge,
        (["t"], ["down", "enter"], ["r", "1", *"so", "enter"], ["space", "space", "1"], ["y"], ["u"]),
    ),
    Scenario(
        "adjudicate",
        SampleScreens.adjudicate,
        (["1"], ["r", "0", *"why", "enter"], ["n", *"x", "enter"], ["down", "down"], ["f1"]),
    ),
    Scenario("config", SampleScreens.settings, (["down", "down"], ["f1"], ["escape"], ["apostrophe"])),
    Scenario(
        "home",
        SampleScreens.home,
        (["tab"], ["v"], ["escape"], ["e"], ["escape"], ["ctrl+p"], [*"topics of"]),
    ),
    Scenario(
        "home-search",
        SampleScreens.home,
        (["down"], ["enter"], [*"group"], ["escape"], ["q"], ["apostrophe"]),
        (80, 24),
    ),
)


class DelayedAnswers:
    """Delays each answer, from any thread, by a random time.

    Args:
        longest_delay: in seconds
        seed: of the random delays
    """

    def __init__(self, longest_delay: float, seed: int) -> None:
        self._longest = longest_delay
        self._random = random.Random(seed)

    def delay(self) -> float:
        return self._random.random() * self._longest

    def before(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that waits before it calls `work`."""

        def late(*args: Any, **kwargs: Any) -> Any:
            time.sleep(self.delay())
            return work(*args, **kwargs)

        return late

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Delay everything that screens request."""
        patch.setattr(BackgroundQueue, "_work", self.before(BackgroundQueue._work))
        patch.setattr(SearchQueue, "_deliver", self.before(SearchQueue._deliver))
        run_threaded, init_palette, in_background = (
            Worker._run_threaded,
            Palette.__init__,
            background.in_background,
        )

        async def run_late(worker: Worker[Any]) -> Any:
            await asyncio.sleep(self.delay())
            return await run_threaded(worker)

        def init_palette_late(screen: Palette, offers: Any, further: Callable[[], Any]) -> None:
            init_palette(screen, offers, self.before(further))

        def in_background_late(name: str, work: Callable[[], Any], *rest: Any) -> Any:
            return in_background(name, self.before(work), *rest)

        patch.setattr(Worker, "_run_threaded", run_late)
        patch.setattr(Palette, "__init__", init_palette_late)
        for name, module in [*sys.modules.items()]:
            if name.startswith("searchapp.tui.") and vars(module).get("in_background") is in_background:
                patch.setattr(module, "in_background", in_background_late)


Frames = list[list[Strip]]
"""The lines of the screen at the beginning and after each step."""


class ScenarioRunner:
    """Runs a scenario several times, each time in a new folder."""

    def __init__(self, samples: SampleRuns, folder: Path) -> None:
        self._samples = samples
        self._folder = folder
        self._numbers = itertools.count()

    def run(
        self, scenario: Scenario, *, longest_delay: float, period: float | None, seed: int = SEED
    ) -> Frames:
        """Run a scenario and return its frames; `period` is that of the timers of screens."""
        folder = self._folder / f"run-{next(self._numbers)}"
        folder.mkdir()
        runs = {task: self._samples.run(task) for task in SPLITS}
        with (
            closing(SampleScreens(self._samples.home, runs, folder)) as screens,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.delenv("NO_COLOR", raising=False)
            patch.setattr(events, "datetime", Clock)
            patch.setattr(Clock, "ticks", 0)
            if period is not None:
                patch.setattr(textual_screen, "UPDATE_PERIOD", period)
            app = scenario.open(screens)
            if longest_delay:
                DelayedAnswers(longest_delay, seed).install(patch)
            return asyncio.run(self._carry_out(app, scenario))

    async def _carry_out(self, app: KeyApp, scenario: Scenario) -> Frames:
        frames: Frames = []
        async with app.run_test(size=scenario.size) as pilot:
            await wait_for_rest(pilot)
            frames.append(list(app.screen._compositor.render_strips()))
            for step in scenario.steps:
                for key in step:
                    app.post_message(key_event(key))
                await wait_for_rest(pilot)
                frames.append(list(app.screen._compositor.render_strips()))
        return frames


def require_same(scenario: Scenario, expected: Frames, actual: Frames) -> None:
    """Require the same frames, in text and in styles."""
    for step, (before, after) in enumerate(zip(expected, actual, strict=True)):
        context = f"{scenario.name}, after {[*scenario.steps][:step]}"
        assert text(after) == text(before), context
        assert after == before, f"{context}: other colours"


def text(lines: Sequence[Strip]) -> str:
    return "\n".join(line.text.rstrip() for line in lines)


@pytest.fixture
def runner(samples: SampleRuns, tmp_path: Path) -> Iterator[ScenarioRunner]:
    yield ScenarioRunner(samples, tmp_path)


@pytest.mark.parametrize(
    "scenario",
    SCENARIOS if FULL else SCENARIOS[SEED % SCENARIO_SHARE :: SCENARIO_SHARE],
    ids=lambda scenario: scenario.name,
)
def test_late_answers_lead_to_the_same_screen(runner: ScenarioRunner, scenario: Scenario) -> None:
    """The short profile runs some scenarios with one order of answers, the full one all with several."""
    early = runner.run(scenario, longest_delay=0.0, period=SLOW_PERIOD)
    for seed in range(SEED, SEED + (3 if FULL else 1)):
        for period in (None, SLOW_PERIOD) if FULL else (None,):
            late = runner.run(scenario, longest_delay=LONGEST_SECONDS, period=period, seed=seed)
            require_same(scenario, early, late)
