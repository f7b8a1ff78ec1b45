"""Make the pictures of screens in docs/images from the sample collections: `make pictures`.

python scripts/pictures.py [NAME]...

The pictures are the same on all machines: they contain no time, path or name of the machine, and load no files. Screens
that show folders and times are opened in a temporary home directory and at a fixed time. Each screen needs a line in
PICTURES. Tests check this and compare the pictures with the stored ones.
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
from scripts.at_rest import wait_for_rest
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
from searchapp.tui.config.screen import GRADES, ConfigScreen
from searchapp.tui.home import overview as home_overview
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.home.screen import load as load_home
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import keys
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.screen import KeyScreen
from searchapp.tui.kit.themes import next_theme, theme_of
from searchapp.tui.search import actions
from searchapp.tui.search.screen import SearchScreen, SearchSetup
from searchapp.tui.topics.screen import TopicsScreen, topics_screen

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
SAMPLES = Path(searchapp.__file__).parent / "samples"
TASK, SPLIT = "nlps", "dev"
SPLITS = {TASK: SPLIT, "checkthat": "training"}
"""The indexed samples and their ranked splits."""

CUTOFF, DEPTH = 50, 3
"""The cut-off of the official scorer, which its default exceeds for the small sample, and the depth of missed gold."""

SIZE = (110, 26)
FONTS = "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"


class Clock(datetime):
    """A clock that advances by eleven seconds each time it is read."""

    ticks = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Clock:
        cls.ticks += 11
        return cls(2026, 1, 2, 3, cls.ticks // 60 % 60, cls.ticks % 60, tzinfo=tz)


class SampleScreens:
    """Opens screens with the samples, and with an empty judgment log.

    Args:
        home: the home directory with the indexes
        runs: a run of each sample
        folder: an empty folder
    """

    def __init__(self, home: Path, runs: Mapping[str, Path], folder: Path) -> None:
        self._home = home
        self._runs = runs
        self._folder = folder
        self._stack = ExitStack()

    def close(self) -> None:
        self._stack.close()

    def search(self, name: str = TASK) -> KeyApp:
        """Open the search screen on a sample."""
        task = load(name)
        engine = self._stack.enter_context(closing(open_engine(Settings(home=self._home))))
        searcher = TaskSearcher.open(task, engine, SilentProgress(), self._home, SAMPLES / name)
        setup = SearchSetup(
            searcher,
            lambda progress: TaskSearcher.open(task, engine, progress, self._home, SAMPLES / name),
            self._folder,
            ("searchapp", "search"),
            SearchQuery(),
            lambda: self._session("ann"),
        )
        own = actions.load(self._folder, task.info.grades)
        return KeyApp(SearchScreen(setup, own.keys), own.theme, own.spacing)

    def topics(self) -> KeyApp:
        """Open the screen of topics on rankings of a recipe."""
        request = TopicsRequest(recipe="bm25", split=SPLIT, data=SAMPLES / TASK)
        settings = Settings(home=self._home)
        topics = open_topics(self._stack, load(TASK), request, settings, SilentProgress(), print)
        screen = topics_screen(topics, request, settings, lambda: self._session("ann"))
        return KeyApp(screen, THEMES[0])

    def compare(self) -> KeyApp:
        """Open the compare screen on two runs."""
        runs = self._folder / "bm25", self._folder / "neighbours"
        shutil.copytree(self._runs[TASK], runs[0])
        task, settings = load(TASK), Settings(home=self._home)
        recipe = recipes.load(task.recipe_book(), "neighbours")
        request = RunRequest(task.collection(SAMPLES / TASK), SPLIT, recipe, 500, "neighbours")
        with closing(open_engine(settings)) as engine:
            make_run(task, engine, request, runs[1], SilentProgress())
        source = GoldSource(options=ScorerOptions(cutoff=CUTOFF))
        comparing = open_comparing(
            self._stack,
            CompareRequest(runs, source, depth=DEPTH),
            settings,
            SilentProgress(),
            print,
            lambda: judged_by_now(self._folder / "judgments.sqlite", TASK),
        )
        return KeyApp(compare_screen(comparing, settings, lambda: self._session("ann")), THEMES[0])

    def judge(self) -> KeyApp:
        """Open the judging screen."""
        pages = self._pages()
        judging = JudgingSession(
            self._session("ann"), pages.topics, pages.ranking, pages.scored, pages.name, None, None
        )
        settings = keys.load(self._folder, load(TASK).info.grades)
        screen = JudgeScreen(judging, pages, settings.keys, f"{TASK} {SPLIT} · ann")
        return KeyApp(screen, settings.theme, settings.spacing)

    def adjudicate(self) -> KeyApp:
        """Open the adjudicating screen after three people and a model have judged two topics."""
        pages = self._pages()
        documents = {topic: pages.ranking(topic)[:4] for topic in pages.topics[:2]}
        for name, grades in {"ann": (1, 0, 1, 1), "ben": (0, 0, 1, 0)}.items():
            for grade in (0, 1):
                graded = [
                    SeenDocument(topic, document)
                    for topic, ranked in documents.items()
                    for document, opinion in zip(ranked, grades, strict=True)
                    if opinion == grade
                ]
                self._session(name).grade(graded, grade, "by definition" if grade and name == "ann" else "")
        bot = Session(self._log, TASK, Author("bot", Kind.model))
        bot.grade([SeenDocument(topic, ranked[1]) for topic, ranked in documents.items()], 1, "cosine 0.83")
        topic, ranked = next(iter(documents.items()))
        self._session("eve").cant_tell(SeenDocument(topic, ranked[0]), "needs the whole page")
        session = Session(self._log, TASK, Author("kim"), (Action.adjudicate,))
        adjudication = Adjudication(session, ("ann", "ben", "bot"))
        settings = keys.load(self._folder, load(TASK).info.grades)
        screen = AdjudicateScreen(adjudication, pages, settings.keys, f"{TASK} · kim decides")
        return KeyApp(screen, settings.theme, settings.spacing)

    def home(self) -> KeyApp:
        """Open the home screen of a user who has indexed and ranked two samples, and graded some documents."""
        home = self._user_home()
        for task, split in SPLITS.items():
            index = Path(INDEXES) / f"{Settings(home=home).index_prefix}-{task}"
            shutil.copytree(self._home / index, home / index)
            shutil.copytree(SAMPLES / task, home / "data" / task)
            shutil.copytree(self._runs[task], home / "runs" / f"{task}-{split}")
        self._stack.enter_context(patch.object(home_overview, "look", _look_at_fixed_time))
        pages = self._pages()
        with JudgmentLog(home / "judgments.sqlite") as log:
            graded = [
                SeenDocument(pages.topics[0], document) for document in pages.ranking(pages.topics[0])[:12]
            ]
            Session(log, TASK, Author("ann")).grade(graded, 1)
        settings = load_home(home)
        screen = HomeScreen(resolution({}, {"SEARCHAPP_HOME": str(home)}, home), home, settings.keys)
        self._stack.callback(screen.opener.close)
        return KeyApp(screen, settings.theme, settings.spacing)

    def settings(self) -> KeyApp:
        """Open the screen of settings of a user with user settings, project settings and variables."""
        home = self._user_home()
        work = home.parents[2] / "projects"
        work.mkdir()
        (work / "searchapp.toml").write_text('url = "https://cluster:9200"\nindex_prefix = "lab"\n')
        (home / "settings.toml").write_text(
            'annotator = "ann"\ntrusted = ["~/projects"]\n\n[search]\nspacing = "compact"\n'
        )
        environ = {"SEARCHAPP_HOME": str(home), "SEARCHAPP_API_KEY": "c2VjcmV0"}
        own = keys.load(home, GRADES)
        return KeyApp(ConfigScreen(resolution({}, environ, work), own.keys), own.theme, own.spacing)

    def _user_home(self) -> Path:
        """Make the home directory of searchapp of an imaginary user."""
        user = (self._folder / "somebody").resolve()
        home = user / ".local" / "share" / "searchapp"
        home.mkdir(parents=True)
        self._stack.enter_context(patch.dict(os.environ, HOME=str(user), USERPROFILE=str(user)))
        return home

    @cached_property
    def _log(self) -> JudgmentLog:
        return self._stack.enter_context(JudgmentLog(self._folder / "judgments.sqlite"))

    def _session(self, name: str) -> Session:
        return Session(self._log, TASK, Author(name))

    def _pages(self) -> RunPages:
        on_disk = LocalFirst(Settings(home=self._home), SilentProgress(), print, copy=False)
        return RunPages.open(load(TASK), self._stack.enter_context(closing(on_disk)), self._runs[TASK])


FIXED_TIME = "2026-01-02T03:04:05"
"""The time at which all shown files were made; without a time zone, so that all zones show the same."""


def _look_at_fixed_time(settings: Settings, folder: Path) -> overview.Overview:
    """Return the overview with the fixed time and with paths of data in the home directory."""
    data = settings.home / "data"
    result = overview.look(settings, folder)
    states = [
        replace(task, index=None if task.index is None else replace(task.index, created=FIXED_TIME))
        for task in result.tasks
    ]
    runs = [
        replace(run, manifest=replace(run.manifest, created=FIXED_TIME, data=str(data / run.manifest.task)))
        for run in sorted(result.runs, key=lambda run: run.path.name)
    ]
    return replace(result, tasks=tuple(states), runs=tuple(runs))


@dataclass(frozen=True)
class Picture:
    """A picture: its screen, how to open it, and the keys to press."""

    name: str
    screen: type[KeyScreen]
    open: Callable[[SampleScreens], KeyApp]
    press: tuple[str, ...] = ()
    size: tuple[int, int] = SIZE

    @property
    def path(self) -> Path:
        return IMAGES / f"{self.name}.svg"


WORDS = "normal subgroup of a group"
PICTURES = (
    Picture("search", SearchScreen, SampleScreens.search, (*WORDS, *["down"] * 3)),
    Picture("why", SearchScreen, SampleScreens.search, (*WORDS, "enter", "w")),
    Picture("jump", SearchScreen, SampleScreens.search, (*WORDS, "enter", "apostrophe")),
    Picture("home", HomeScreen, SampleScreens.home, ("tab",), (130, 30)),
    Picture("settings", ConfigScreen, SampleScreens.settings, ("down",), (110, 30)),
    Picture("topics", TopicsScreen, SampleScreens.topics, ("n",), (130, 28)),
    Picture("compare", CompareScreen, SampleScreens.compare, ("J", "1", "0"), (150, 32)),
    Picture("judging", JudgeScreen, SampleScreens.judge,
            ("1", "0", "1", "a", *"see 102", "enter", "s", "x", "1"), (130, 28)),
    Picture("adjudicating", AdjudicateScreen, SampleScreens.adjudicate,
            ("1", "R", "0", *"too general", "enter"), (130, 28)),
)  # fmt: skip


def draw(
    picture: Picture,
    screens: SampleScreens,
    themes: Sequence[str] = THEMES[:1],
    sizes: Sequence[tuple[int, int]] = (),
) -> dict[tuple[tuple[int, int], str], str]:
    """Return a picture as SVG in each of these themes, which must be the first themes in order.

    Then resize it to each of the further sizes, and draw it in the first theme.
    """

    async def run() -> dict[tuple[tuple[int, int], str], str]:
        app = picture.open(screens)
        async with app.run_test(size=picture.size) as pilot:
            await wait_for_rest(pilot)
            for key in picture.press:
                await pilot.press({" ": "space"}.get(key, key))
                await wait_for_rest(pilot)
            pictures = {}
            for theme in themes:
                await wait_for_rest(pilot)
                pictures[picture.size, theme] = without_network(app.export_screenshot(title="searchapp"))
                next_theme(app)
            next_theme(app, (theme_of(app), themes[0]))
            for size in sizes:
                await pilot.resize_terminal(*size)
                await wait_for_rest(pilot)
                pictures[size, themes[0]] = without_network(app.export_screenshot(title="searchapp"))
            return pictures

    Clock.ticks = 0
    with patch.object(events, "datetime", Clock), patch.dict(os.environ):
        os.environ.pop("NO_COLOR", None)
        return asyncio.run(run())


def without_network(svg: str) -> str:
    """Replace the font of Textual, which browsers would fetch from a server, by fonts of the machine."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code, monospace", FONTS)


@contextmanager
def sample_runs() -> Iterator[tuple[Path, Mapping[str, Path]]]:
    """Index the samples and rank each; yield the home directory and the runs."""
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


def draw_once(picture: Picture, home: Path, runs: Mapping[str, Path]) -> str:
    """Return a picture, drawn with a new judgment log."""
    with tempfile.TemporaryDirectory() as folder, closing(SampleScreens(home, runs, Path(folder))) as screens:
        (svg,) = draw(picture, screens).values()
        return svg


def main(names: list[str]) -> None:
    """Write all pictures, or the named ones."""
    with sample_runs() as (home, runs):
        for picture in PICTURES:
            if not names or picture.name in names:
                picture.path.write_text(draw_once(picture, home, runs), encoding="utf-8")
                print(picture.path.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
