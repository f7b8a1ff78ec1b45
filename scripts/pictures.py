"""Makes the pictures of the screens in docs/images, from the sample collections: `make pictures`.

python scripts/pictures.py [NAME]...

They show the same on every machine: no clock, no path and no name of it is in them, and they load nothing.
A screen has a line in PICTURES; a test says so where one has none, and compares the pictures with those that are kept.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cached_property
from pathlib import Path
from typing import Protocol
from unittest.mock import patch

from textual.pilot import Pilot

import searchapp
from searchapp.app.index_sources import LocalFirst
from searchapp.app.open_topics import TopicsRequest, open_topics
from searchapp.app.run_pages import RunPages
from searchapp.app.search import Searcher
from searchapp.engines import open_engine
from searchapp.judging import events
from searchapp.judging.disputes import Adjudication
from searchapp.judging.events import Action, Author, Kind
from searchapp.judging.judging_session import JudgingSession
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.progress import Silent
from searchapp.settings import THEMES, Settings
from searchapp.tasks import load
from searchapp.tui import keys
from searchapp.tui.adjudicate.app import AdjudicateApp
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.judge.app import JudgeApp
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.screen import KeyApp, KeyScreen
from searchapp.tui.search import actions
from searchapp.tui.search.app import SearchApp
from searchapp.tui.search.screen import Opened, SearchScreen
from searchapp.tui.search.searching import Sought
from searchapp.tui.topics.app import TopicsApp
from searchapp.tui.topics.opening import topics_screen
from searchapp.tui.topics.screen import TopicsScreen

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
SAMPLES = Path(searchapp.__file__).parent / "samples"
TASK, SPLIT = "nlps", "dev"
SIZE = (110, 26)
PATIENCE_SECONDS = 60
FONTS = "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"


class Clock(datetime):
    """A clock that goes on eleven seconds each time it is looked at."""

    ticks = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Clock:
        cls.ticks += 11
        return cls(2026, 1, 2, 3, cls.ticks // 60 % 60, cls.ticks % 60, tzinfo=tz)


class Bench:
    """Opens screens on the sample of a task, with a log of judgments that is empty at first.

    Args:
        home: a folder that has the index
        run: a run of the sample
        own: an empty folder
    """

    def __init__(self, home: Path, run: Path, own: Path) -> None:
        self._home = home
        self._run = run
        self._own = own
        self._opened = ExitStack()

    def close(self) -> None:
        self._opened.close()

    def search(self) -> SearchApp:
        """The search screen."""
        task = load(TASK)
        engine = self._opened.enter_context(closing(open_engine(Settings(home=self._home))))
        searcher = Searcher.open(task, engine, Silent(), self._home, SAMPLES / TASK)
        opened = Opened(
            searcher,
            lambda progress: Searcher.open(task, engine, progress, self._home, SAMPLES / TASK),
            self._own,
            ("searchapp", "search"),
            Sought(),
            lambda: self._session("ann"),
        )
        return SearchApp(opened, actions.load(self._own, task.info.grades))

    def topics(self) -> TopicsApp:
        """The screen of topics, on what a recipe ranks."""
        request = TopicsRequest(recipe="bm25", split=SPLIT, data=SAMPLES / TASK)
        settings = Settings(home=self._home)
        topics = open_topics(self._opened, load(TASK), request, settings, Silent(), print)
        screen = topics_screen(topics, request, settings, lambda: self._session("ann"))
        return TopicsApp(screen, THEMES[0])

    def judge(self) -> JudgeApp:
        """The judging screen."""
        pages = self._pages()
        judging = JudgingSession(
            self._session("ann"), pages.topics, pages.ranking, pages.scored, pages.name, None, None
        )
        return JudgeApp(judging, pages, keys.load(self._own, load(TASK).info.grades), f"{TASK} {SPLIT} · ann")

    def adjudicate(self) -> AdjudicateApp:
        """The adjudicating screen, after three people and a model have judged two topics."""
        pages = self._pages()
        documents = {topic: pages.ranking(topic)[:4] for topic in pages.topics[:2]}
        for name, grades in {"ann": (1, 0, 1, 1), "ben": (0, 0, 1, 0)}.items():
            for grade in (0, 1):
                seen = [
                    SeenDocument(topic, document)
                    for topic, own in documents.items()
                    for document, given in zip(own, grades, strict=True)
                    if given == grade
                ]
                self._session(name).grade(seen, grade, "by definition" if grade and name == "ann" else "")
        bot = Session(self._log, TASK, Author("bot", Kind.model))
        bot.grade([SeenDocument(topic, own[1]) for topic, own in documents.items()], 1, "cosine 0.83")
        topic, own = next(iter(documents.items()))
        self._session("eve").cant_tell(SeenDocument(topic, own[0]), "needs the whole page")
        session = Session(self._log, TASK, Author("kim"), (Action.adjudicate,))
        adjudication = Adjudication(session, ("ann", "ben", "bot"))
        own_keys = keys.load(self._own, load(TASK).info.grades)
        return AdjudicateApp(adjudication, pages, own_keys, f"{TASK} · kim decides")

    @cached_property
    def _log(self) -> JudgmentLog:
        return self._opened.enter_context(JudgmentLog(self._own / "judgments.sqlite"))

    def _session(self, name: str) -> Session:
        return Session(self._log, TASK, Author(name))

    def _pages(self) -> RunPages:
        on_disk = LocalFirst(Settings(home=self._home), Silent(), print, copy=False)
        return RunPages.open(load(TASK), self._opened.enter_context(closing(on_disk)), self._run)


@dataclass(frozen=True)
class Picture:
    """A picture: the screen that it is of, how that is opened, and the keys that are pressed there."""

    name: str
    screen: type[KeyScreen]
    open: Callable[[Bench], KeyApp]
    press: tuple[str, ...] = ()
    size: tuple[int, int] = SIZE

    @property
    def path(self) -> Path:
        return IMAGES / f"{self.name}.svg"


NOT_PICTURED: frozenset[type[KeyScreen]] = frozenset({HomeScreen, ConfigScreen})
"""Screens that show folders of the machine, and the time."""

WORDS = "normal subgroup of a group"
PICTURES = (
    Picture("search", SearchScreen, Bench.search, (*WORDS, *["down"] * 3)),
    Picture("why", SearchScreen, Bench.search, (*WORDS, "enter", "w")),
    Picture("jump", SearchScreen, Bench.search, (*WORDS, "enter", "apostrophe")),
    Picture("topics", TopicsScreen, Bench.topics, ("g",), (130, 28)),
    Picture("judging", JudgeScreen, Bench.judge,
            ("m", "1", "0", "1", "n", *"see 102", "enter", "s", "x", "1"), (130, 28)),
    Picture("adjudicating", AdjudicateScreen, Bench.adjudicate,
            ("1", "r", "0", *"too general", "enter"), (130, 28)),
)  # fmt: skip


def drawn(picture: Picture, bench: Bench) -> str:
    """A picture as SVG."""

    async def run() -> str:
        app = picture.open(bench)
        async with app.run_test(size=picture.size) as pilot:
            await _settled(pilot, app.main)
            for key in picture.press:
                await pilot.press({" ": "space"}.get(key, key))
                await _settled(pilot, app.main)
            return app.export_screenshot(title="searchapp")

    Clock.ticks = 0
    with patch.object(events, "datetime", Clock), patch.dict(os.environ):
        os.environ.pop("NO_COLOR", None)
        return without_network(asyncio.run(run()))


async def _settled(pilot: Pilot[None], screen: KeyScreen) -> None:
    """Wait until everything that was begun is done and drawn."""
    for _again in range(2):  # what comes may be a reason to ask for more
        await pilot.app.workers.wait_for_complete()
        for _try in range(100 * PATIENCE_SECONDS):
            await pilot.pause()
            if all(one.is_idle for one in _askers(screen)):
                break
            await asyncio.sleep(0.01)


class Asks(Protocol):
    """Something that is asked in the background."""

    @property
    def is_idle(self) -> bool: ...


def _askers(screen: KeyScreen) -> Sequence[Asks]:
    """What a screen asks in the background."""
    if isinstance(screen, SearchScreen):
        return screen.quick, screen.slow, screen.solved
    if isinstance(screen, TopicsScreen):
        return screen.quick, screen.slow, screen.figuring
    return ()


def without_network(svg: str) -> str:
    """A picture whose letters are those of the machine that shows it, where Textual's are fetched from a server."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code, monospace", FONTS)


@contextmanager
def prepared() -> Iterator[tuple[Path, Path]]:
    """A home folder with the index of the sample, and a run of it."""
    with tempfile.TemporaryDirectory(prefix="searchapp-pictures-") as folder:
        home, run = Path(folder) / "home", Path(folder) / "run"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SEARCHAPP_")}
        for command in (["index", TASK], ["rank", TASK, "--split", SPLIT, "--out", str(run)]):
            subprocess.run(
                [sys.executable, "-m", "searchapp", *command, "--data", str(SAMPLES / TASK), "--quiet",
                 "--home", str(home)],
                check=True, env=environment, cwd=folder, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        yield home, run


def made(picture: Picture, home: Path, run: Path) -> str:
    """A picture, made with a log of judgments of its own."""
    with tempfile.TemporaryDirectory() as own, closing(Bench(home, run, Path(own))) as bench:
        return drawn(picture, bench)


def main(names: list[str]) -> None:
    """Write the pictures, or those of these names."""
    with prepared() as (home, run):
        for picture in PICTURES:
            if not names or picture.name in names:
                picture.path.write_text(made(picture, home, run), encoding="utf-8")
                print(picture.path.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
