"""The search screen on a sample, whose index can be made slow, or fail."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from searchapp.app.saved_searches import SearchQuery
from searchapp.app.search import TaskSearcher
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.base import NO_TERMS, SearchHit, Terms
from searchapp.engines.embedded import EmbeddedIndex
from searchapp.errors import EngineUnreachable
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Session
from searchapp.model import Counts
from searchapp.progress import Progress, SilentProgress
from searchapp.ranking.query_language import FieldFilter
from searchapp.tasks import load
from searchapp.tui.search import actions
from searchapp.tui.search.actions import KEY_ACTIONS
from searchapp.tui.search.requests import request_of
from searchapp.tui.search.screen import SearchApp, SearchScreen, SearchSetup
from tests.tui.conftest import PATIENCE_SECONDS, SAMPLES, Prepared, press, text_of, until


class FickleIndex:
    """An index that answers when `may_answer` is set, and fails while `fails` is."""

    def __init__(self, index: EmbeddedIndex) -> None:
        self._index = index
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.fails = False
        self.finds = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def find(self, body: dict[str, Any], terms: Terms = NO_TERMS) -> list[SearchHit]:
        self._ask()
        return self._index.find(body, terms)

    def page(self, body: dict[str, Any], terms: Terms = NO_TERMS) -> tuple[list[SearchHit], int]:
        self._ask()
        return self._index.page(body, terms)

    def counts(self, query: dict[str, Any], fields: dict[str, int]) -> Counts:
        self._wait()
        return self._index.counts(query, fields)

    def _ask(self) -> None:
        self.finds += 1
        self._wait()

    def _wait(self) -> None:
        self.may_answer.wait(PATIENCE_SECONDS)
        if self.fails:
            raise EngineUnreachable("the server does not answer")


class SearchingOn:
    """Opens the screen on a sample."""

    def __init__(self, prepared: Prepared, home: Path) -> None:
        self._prepared = prepared
        self._opened = ExitStack()
        self.home = home

    def app(
        self,
        task: str = "nlps",
        text: str = "",
        recipe: str | None = None,
        filters: tuple[FieldFilter, ...] = (),
        *,
        restore: bool = False,
    ) -> SearchApp:
        self._prepared.run(task)
        loaded = load(task)
        engine = self._opened.enter_context(closing(open_engine(Settings(home=self._prepared.home))))

        def searcher(progress: Progress) -> TaskSearcher:
            return TaskSearcher.open(loaded, engine, progress, self._prepared.home, SAMPLES / task)

        first = searcher(SilentProgress())
        self.index = FickleIndex(first.index)  # type: ignore[arg-type]
        first.index = self.index  # type: ignore[assignment]
        opened = SearchSetup(
            first,
            searcher,
            self.home,
            ("searchapp", "search"),
            SearchQuery(text, recipe, filters),
            self._session,
            restore=restore,
        )
        return SearchApp(opened, actions.load(self.home, loaded.info.grades))

    def _session(self) -> Session:
        self.log = self._opened.enter_context(JudgmentLog(self.home / "judgments.sqlite"))
        return Session(self.log, "nlps", Author("ann"))

    def close(self) -> None:
        self._opened.close()


@pytest.fixture
def searching(prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchingOn]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    searching = SearchingOn(prepared, tmp_path)
    yield searching
    searching.close()


async def answered(pilot: Pilot[None], screen: SearchScreen) -> None:
    """Wait until nothing is asked any more, and everything that came is drawn."""
    for _again in range(3):  # what comes may be a reason to ask for more
        await until(
            pilot,
            lambda: not screen.loader.is_waiting and screen.quick.is_idle and screen.slow.is_idle,
        )
        await pilot.pause()
        await pilot.pause()


async def enter(pilot: Pilot[None], screen: SearchScreen, *keys: str) -> None:
    """Press keys, and wait for what comes of them."""
    await press(pilot, *keys)
    await answered(pilot, screen)


async def solved(pilot: Pilot[None], screen: SearchScreen) -> None:
    """Wait until the solved topics are read."""
    await until(pilot, lambda: screen.training_topics.topics is not None)
    await pilot.pause()


def ids(screen: SearchScreen) -> list[str]:
    """The hits that are there, from the first on."""
    found = []
    for place in range(screen.hits.count):
        result = screen.hits.listing.hit(place)
        if result is None:
            break
        found.append(result.hit.document_id)
    return found


TYPED = [*'prime number +-"(*:\\', "space", "backspace", "ctrl+w", "left", "right", "home", "end"]
NEVER = {"quit", "pager", "palette", "theme"}
"""What ends the program or leaves it, offers to, or only draws everything again."""


async def random_keys(pilot: Pilot[None], screen: SearchScreen, seed: int, count: int) -> None:
    """Press a hundred keys a second at most, of those that edit the text and of every action, in the line and outside.

    In the end the ranking in sight is that of the text; or it says what is wrong with that, and another text is found.
    """
    dice = random.Random(seed)
    keys = [key for action in KEY_ACTIONS if action.name not in NEVER for key in action.keys]
    every = [*keys, "enter", "escape", "tab"]
    for _key in range(count):
        begin = time.monotonic()
        await press(pilot, dice.choice(TYPED if dice.random() < 0.6 else every))
        assert time.monotonic() - begin < 3
        await asyncio.sleep(max(0.0, 0.01 - (time.monotonic() - begin)))
    while pilot.app.screen is not screen:
        await press(pilot, "escape")
    await answered(pilot, screen)
    if screen.loader.is_current:
        assert_current(screen)
    else:
        assert screen.error is not None and "▲" in text_of(pilot.app)  # type: ignore[arg-type]
    await press(pilot, *([] if screen.words.has_focus else ["escape"]))
    await enter(pilot, screen, "ctrl+u", "ctrl+k", *"ring")
    assert screen.words.value == "ring" and screen.loader.is_current
    assert_current(screen)


def assert_current(screen: SearchScreen) -> None:
    """That the hits are those that the use case finds for what is sought."""
    found = screen.searcher.search(request_of(screen.loader.query))
    assert ids(screen)[: len(found)] == [one.hit.document_id for one in found]
