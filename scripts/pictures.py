"""Makes the pictures of the screens in docs/images, from the sample collections: `make pictures`.

python scripts/pictures.py [NAME]...

They show the same on every machine: no clock, no path and no name of it is in them, and they load nothing. Screens that
show folders and the time are opened in a folder of their own that stands in for somebody's, at a moment that is fixed.
A screen has a line in PICTURES; a test says so where one has none, and compares the pictures with those that are kept.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import cached_property
from pathlib import Path
from unittest.mock import patch

import searchapp
from scripts.at_rest import still
from searchapp.app import overview
from searchapp.app.compare import CompareRequest
from searchapp.app.evaluate import GoldSource
from searchapp.app.inspection.pages import LocalFirst, RunPages
from searchapp.app.inspection.topic_comparison import open_comparing
from searchapp.app.inspection.topics import TopicsRequest, open_topics
from searchapp.app.rank import RunRequest, make_run
from searchapp.app.saved_searches import SearchQuery
from searchapp.app.search import TaskSearcher
from searchapp.app.sessions import judged_by_now
from searchapp.config.resolution import resolution
from searchapp.config.settings import INDEXES, THEMES, Settings
from searchapp.engines import open_engine
from searchapp.evaluation.base import ScorerOptions
from searchapp.judging import events
from searchapp.judging.events import Action, Author, Kind
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Adjudication, JudgingSession, SeenDocument, Session
from searchapp.progress import SilentProgress
from searchapp.ranking import recipes
from searchapp.tasks import load
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.compare.screen import CompareScreen, compare_screen
from searchapp.tui.config.screen import ConfigApp, ConfigScreen
from searchapp.tui.home import overview as watching
from searchapp.tui.home.screen import HomeApp, HomeScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import keys
from searchapp.tui.kit.judging import WorkApp
from searchapp.tui.kit.screen import KeyApp, KeyScreen
from searchapp.tui.kit.themes import next_theme
from searchapp.tui.search import actions
from searchapp.tui.search.screen import SearchApp, SearchScreen, SearchSetup
from searchapp.tui.topics.screen import TopicsScreen, topics_screen

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
SAMPLES = Path(searchapp.__file__).parent / "samples"
TASK, SPLIT = "nlps", "dev"
SPLITS = {TASK: SPLIT, "checkthat": "training"}
"""The samples that are indexed and ranked, and the split that each is ranked for."""

CUTOFF, DEPTH = 50, 3
"""How deep the sample is scored, which has fewer documents than the official scorer wants, and where gold is missed."""

SIZE = (110, 26)
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
        home: a folder that has the indexes
        runs: a run of each sample
        own: an empty folder
    """

    def __init__(self, home: Path, runs: Mapping[str, Path], own: Path) -> None:
        self._home = home
        self._runs = runs
        self._own = own
        self._opened = ExitStack()

    def close(self) -> None:
        self._opened.close()

    def search(self, name: str = TASK) -> SearchApp:
        """The search screen, on one of the samples."""
        task = load(name)
        engine = self._opened.enter_context(closing(open_engine(Settings(home=self._home))))
        searcher = TaskSearcher.open(task, engine, SilentProgress(), self._home, SAMPLES / name)
        opened = SearchSetup(
            searcher,
            lambda progress: TaskSearcher.open(task, engine, progress, self._home, SAMPLES / name),
            self._own,
            ("searchapp", "search"),
            SearchQuery(),
            lambda: self._session("ann"),
        )
        return SearchApp(opened, actions.load(self._own, task.info.grades))

    def topics(self) -> KeyApp:
        """The screen of topics, on what a recipe ranks."""
        request = TopicsRequest(recipe="bm25", split=SPLIT, data=SAMPLES / TASK)
        settings = Settings(home=self._home)
        topics = open_topics(self._opened, load(TASK), request, settings, SilentProgress(), print)
        screen = topics_screen(topics, request, settings, lambda: self._session("ann"))
        return KeyApp(screen, THEMES[0])

    def compare(self) -> KeyApp:
        """The compare screen, on the run of the sample and one of another recipe."""
        runs = self._own / "bm25", self._own / "neighbours"
        shutil.copytree(self._runs[TASK], runs[0])
        task, settings = load(TASK), Settings(home=self._home)
        recipe = recipes.load(task.recipe_book(), "neighbours")
        request = RunRequest(task.collection(SAMPLES / TASK), SPLIT, recipe, 500, "neighbours")
        with closing(open_engine(settings)) as engine:
            make_run(task, engine, request, runs[1], SilentProgress())
        source = GoldSource(options=ScorerOptions(cutoff=CUTOFF))
        comparing = open_comparing(
            self._opened,
            CompareRequest(runs, source, depth=DEPTH),
            settings,
            SilentProgress(),
            print,
            lambda: judged_by_now(self._own / "judgments.sqlite", TASK),
        )
        return KeyApp(compare_screen(comparing, settings, lambda: self._session("ann")), THEMES[0])

    def judge(self) -> WorkApp:
        """The judging screen."""
        pages = self._pages()
        judging = JudgingSession(
            self._session("ann"), pages.topics, pages.ranking, pages.scored, pages.name, None, None
        )
        own = keys.load(self._own, load(TASK).info.grades)
        return WorkApp(JudgeScreen(judging, pages, own.keys, f"{TASK} {SPLIT} · ann"), own)

    def adjudicate(self) -> WorkApp:
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
        own_settings = keys.load(self._own, load(TASK).info.grades)
        screen = AdjudicateScreen(adjudication, pages, own_settings.keys, f"{TASK} · kim decides")
        return WorkApp(screen, own_settings)

    def home(self) -> HomeApp:
        """The home screen of somebody who has indexed and ranked two samples, and graded some documents."""
        home = self._somebodys()
        for task, split in SPLITS.items():
            index = Path(INDEXES) / f"{Settings(home=home).index_prefix}-{task}"
            shutil.copytree(self._home / index, home / index)
            shutil.copytree(SAMPLES / task, home / "data" / task)
            shutil.copytree(self._runs[task], home / "runs" / f"{task}-{split}")
        self._opened.enter_context(patch.object(watching, "look", _at_a_fixed_moment))
        pages = self._pages()
        with JudgmentLog(home / "judgments.sqlite") as log:
            seen = [SeenDocument(pages.topics[0], one) for one in pages.ranking(pages.topics[0])[:12]]
            Session(log, TASK, Author("ann")).grade(seen, 1)
        app = HomeApp(resolution({}, {"SEARCHAPP_HOME": str(home)}, home), home)
        self._opened.callback(app.home.opener.close)
        return app

    def settings(self) -> ConfigApp:
        """The screen of settings of somebody who has some in each place."""
        home = self._somebodys()
        work = home.parents[2] / "projects"
        work.mkdir()
        (work / "searchapp.toml").write_text('url = "https://cluster:9200"\nindex_prefix = "lab"\n')
        (home / "settings.toml").write_text(
            'annotator = "ann"\ntrusted = ["~/projects"]\n\n[search]\nspacing = "compact"\n'
        )
        environ = {"SEARCHAPP_HOME": str(home), "SEARCHAPP_API_KEY": "c2VjcmV0"}
        return ConfigApp(resolution({}, environ, work))

    def _somebodys(self) -> Path:
        """A folder of searchapp's in the folder that stands in for somebody's own."""
        own = (self._own / "somebody").resolve()
        home = own / ".local" / "share" / "searchapp"
        home.mkdir(parents=True)
        self._opened.enter_context(patch.dict(os.environ, HOME=str(own), USERPROFILE=str(own)))
        return home

    @cached_property
    def _log(self) -> JudgmentLog:
        return self._opened.enter_context(JudgmentLog(self._own / "judgments.sqlite"))

    def _session(self, name: str) -> Session:
        return Session(self._log, TASK, Author(name))

    def _pages(self) -> RunPages:
        on_disk = LocalFirst(Settings(home=self._home), SilentProgress(), print, copy=False)
        return RunPages.open(load(TASK), self._opened.enter_context(closing(on_disk)), self._runs[TASK])


MOMENT = "2026-01-02T03:04:05"
"""The one at which everything was made; of no time zone, so that it is the same one in all of them."""


def _at_a_fixed_moment(settings: Settings, folder: Path) -> overview.Overview:
    """What there is, made at the moment, of files that are in the home folder."""
    data = settings.home / "data"
    result = overview.look(settings, folder)
    states = [
        replace(task, index=None if task.index is None else replace(task.index, created=MOMENT))
        for task in result.tasks
    ]
    runs = [
        replace(one, manifest=replace(one.manifest, created=MOMENT, data=str(data / one.manifest.task)))
        for one in sorted(result.runs, key=lambda run: run.path.name)
    ]
    return replace(result, tasks=tuple(states), runs=tuple(runs))


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


WORDS = "normal subgroup of a group"
PICTURES = (
    Picture("search", SearchScreen, Bench.search, (*WORDS, *["down"] * 3)),
    Picture("why", SearchScreen, Bench.search, (*WORDS, "enter", "w")),
    Picture("jump", SearchScreen, Bench.search, (*WORDS, "enter", "apostrophe")),
    Picture("home", HomeScreen, Bench.home, ("tab",), (130, 30)),
    Picture("settings", ConfigScreen, Bench.settings, ("down",), (110, 30)),
    Picture("topics", TopicsScreen, Bench.topics, ("g",), (130, 28)),
    Picture("compare", CompareScreen, Bench.compare, ("j", "1", "0"), (150, 32)),
    Picture("judging", JudgeScreen, Bench.judge,
            ("m", "1", "0", "1", "n", *"see 102", "enter", "s", "x", "1"), (130, 28)),
    Picture("adjudicating", AdjudicateScreen, Bench.adjudicate,
            ("1", "r", "0", *"too general", "enter"), (130, 28)),
)  # fmt: skip


def drawn(picture: Picture, bench: Bench, looks: Sequence[str] = THEMES[:1]) -> dict[str, str]:
    """A picture as SVG, in each of these looks, which are the first themes in their order."""

    async def run() -> dict[str, str]:
        app = picture.open(bench)
        async with app.run_test(size=picture.size) as pilot:
            await still(pilot)
            for key in picture.press:
                await pilot.press({" ": "space"}.get(key, key))
                await still(pilot)
            pictures = {}
            for look in looks:
                await still(pilot)
                pictures[look] = without_network(app.export_screenshot(title="searchapp"))
                next_theme(app)
            return pictures

    Clock.ticks = 0
    with patch.object(events, "datetime", Clock), patch.dict(os.environ):
        os.environ.pop("NO_COLOR", None)
        return asyncio.run(run())


def without_network(svg: str) -> str:
    """A picture whose letters are those of the machine that shows it, where Textual's are fetched from a server."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code, monospace", FONTS)


@contextmanager
def prepared() -> Iterator[tuple[Path, Mapping[str, Path]]]:
    """A home folder with the indexes of the samples, and a run of each."""
    with tempfile.TemporaryDirectory(prefix="searchapp-pictures-") as folder:
        home, runs = Path(folder) / "home", {task: Path(folder) / task for task in SPLITS}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SEARCHAPP_")}
        for task, run in runs.items():
            for command in (["index", task], ["rank", task, "--split", SPLITS[task], "--out", str(run)]):
                subprocess.run(
                    [sys.executable, "-m", "searchapp", *command, "--data", str(SAMPLES / task), "--quiet",
                     "--home", str(home)],
                    check=True, env=environment, cwd=folder, stderr=subprocess.DEVNULL,
                )  # fmt: skip
        yield home, runs


def made(picture: Picture, home: Path, runs: Mapping[str, Path]) -> str:
    """A picture, made with a log of judgments of its own."""
    with tempfile.TemporaryDirectory() as own, closing(Bench(home, runs, Path(own))) as bench:
        (svg,) = drawn(picture, bench).values()
        return svg


def main(names: list[str]) -> None:
    """Write the pictures, or those of these names."""
    with prepared() as (home, runs):
        for picture in PICTURES:
            if not names or picture.name in names:
                picture.path.write_text(made(picture, home, runs), encoding="utf-8")
                print(picture.path.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
