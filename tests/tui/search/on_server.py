"""The search screen on the sample of nlps, indexed on a server."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from searchapp.app.index import index_task
from searchapp.app.saved_searches import SearchQuery
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.config.settings import SERVER, Settings
from searchapp.engines import open_engine
from searchapp.judging.session import Session
from searchapp.progress import SilentProgress
from searchapp.tasks import load
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.search import actions
from searchapp.tui.search.hits import PAGE
from searchapp.tui.search.screen import SearchScreen, SearchSetup
from tests.tui.conftest import SAMPLES, press, screen_text, wait_until

DRAWN_SECONDS = 2.0
"""A key is drawn within this time, less than a request hangs; it takes milliseconds on a quiet machine."""


class ServerSearchHarness:
    """Opens the search screen on the sample of nlps, indexed on a server that it reaches through a proxy."""

    def __init__(self, home: Path, url: str, direct: str, prefix: str) -> None:
        self._opened = ExitStack()
        self.task = load("nlps")
        self.home = home
        self.settings = Settings(home=home, url=url, index_prefix=prefix, engine=SERVER)
        self.direct = Settings(home=home, url=direct, index_prefix=prefix, engine=SERVER)
        self.index()

    def index(self) -> None:
        """Rebuild the index without the proxy."""
        with closing(open_engine(self.direct)) as engine:
            collection = self.task.collection(SAMPLES / "nlps")
            index_task(self.task, engine, collection, SilentProgress(), rebuild=True)

    def app(self, **options: Any) -> KeyApp:
        engine = self._opened.enter_context(closing(open_engine(self.settings)))

        def searcher(progress: Any) -> TaskSearcher:
            return TaskSearcher.open(self.task, engine, progress, self.home, SAMPLES / "nlps")

        def session() -> Session:
            raise AssertionError("this screen does not judge")

        query = SearchQuery(options.get("text", ""), options.get("recipe"))
        setup = SearchSetup(
            searcher(SilentProgress()), searcher, self.home, ("searchapp", "search"), query, session
        )
        own = actions.load(self.home, self.task.info.grades)
        return KeyApp(SearchScreen(setup, own.keys), own.theme, own.spacing)

    def expected(self, text: str) -> list[str]:
        with closing(open_engine(self.direct)) as engine:
            searcher = TaskSearcher.open(self.task, engine, SilentProgress(), self.home)
            return [result.hit.document_id for result in searcher.search(SearchRequest(text, size=PAGE))]

    def close(self) -> None:
        self._opened.close()


async def type_text(pilot: Pilot[None], screen: SearchScreen, text: str) -> None:
    """Type a text and require that each key is drawn at once."""
    for character in text:
        start = time.monotonic()
        await press(pilot, {" ": "space"}.get(character, character))
        assert time.monotonic() - start < DRAWN_SECONDS
        assert screen.words.value in screen_text(pilot)


async def wait_for_ranking(pilot: Pilot[None], screen: SearchScreen, text: str) -> None:
    """Wait until the screen shows the ranking of a text."""
    await wait_until(pilot, lambda: screen.hits.listing.request.text == text and not screen.loader.is_waiting)
    await pilot.pause()
