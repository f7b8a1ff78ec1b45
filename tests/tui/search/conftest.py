"""The search screen on a sample whose index can be made slow or fail."""

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
from searchapp.engines.base import NO_TERMS, Engine, SearchHit, Terms
from searchapp.engines.embedded import EmbeddedIndex
from searchapp.errors import EngineUnreachable
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Session
from searchapp.model import Counts
from searchapp.progress import Progress, SilentProgress
from searchapp.ranking.query_language import FieldFilter
from searchapp.tasks import load
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.search import actions
from searchapp.tui.search.actions import KEY_ACTIONS
from searchapp.tui.search.requests import request_of
from searchapp.tui.search.screen import SearchScreen, SearchSetup
from tests.tui.conftest import SAMPLES, TIMEOUT_SECONDS, SampleRuns, press, screen_text, wait_until


class FickleIndex:
    """An index that waits for `may_answer` and fails while `fails` is true."""

    def __init__(self, index: EmbeddedIndex) -> None:
        self._index = index
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.fails = False
        self.searches = 0

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
        self.searches += 1
        self._wait()

    def _wait(self) -> None:
        self.may_answer.wait(TIMEOUT_SECONDS)
        if self.fails:
            raise EngineUnreachable("the server does not answer")


class SearchHarness:
    """Opens the search screen on a sample, with a judgment log in `home`."""

    def __init__(self, samples: SampleRuns, home: Path) -> None:
        self._samples = samples
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
        variant: Path | None = None,
    ) -> KeyApp:
        self._samples.run(task)
        loaded = load(task if variant is None else str(variant))
        engine = self._opened.enter_context(self.engine())

        def searcher(progress: Progress) -> TaskSearcher:
            return TaskSearcher.open(loaded, engine, progress, self._samples.home, SAMPLES / task)

        first = searcher(SilentProgress())
        self.index = FickleIndex(first.index)  # type: ignore[arg-type]
        first.index = self.index  # type: ignore[assignment]
        own = actions.load(self.home, loaded.info.grades)
        setup = SearchSetup(
            first,
            searcher,
            self.home,
            ("searchapp", "search"),
            SearchQuery(text, recipe, filters),
            self._session,
            restore=restore,
            two_lines=own.two_lines,
        )
        return KeyApp(SearchScreen(setup, own.keys), own.theme, own.spacing)

    def engine(self) -> closing[Engine]:
        return closing(open_engine(Settings(home=self._samples.home)))

    def _session(self) -> Session:
        self.log = self._opened.enter_context(JudgmentLog(self.home / "judgments.sqlite"))
        return Session(self.log, "nlps", Author("ann"))

    def close(self) -> None:
        self._opened.close()


@pytest.fixture
def search_harness(
    samples: SampleRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SearchHarness]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    search_harness = SearchHarness(samples, tmp_path)
    yield search_harness
    search_harness.close()


async def wait_until_answered(pilot: Pilot[None], screen: SearchScreen) -> None:
    """Wait until all requests are answered and the answers are drawn."""
    for _attempt in range(3):  # showing an answer may cause further requests
        await wait_until(
            pilot,
            lambda: (
                not any(loader.is_waiting for loader in screen.loaders)
                and all(queue.is_idle for queue in screen.queues)
            ),
        )
        await pilot.pause()
        await pilot.pause()


async def press_and_wait(pilot: Pilot[None], screen: SearchScreen, *keys: str) -> None:
    """Press keys and wait until their requests are answered."""
    await press(pilot, *keys)
    await wait_until_answered(pilot, screen)


async def wait_for_training_topics(pilot: Pilot[None], screen: SearchScreen) -> None:
    """Wait until the training topics are read."""
    await wait_until(pilot, lambda: screen.training_topics.topics is not None)
    await pilot.pause()


def ids(screen: SearchScreen) -> list[str]:
    """Return the loaded hits from the first one to the first gap."""
    document_ids = []
    for position in range(screen.hits.count):
        result = screen.hits.listing.hit(position)
        if result is None:
            break
        document_ids.append(result.hit.document_id)
    return document_ids


EDITING_KEYS = [*'prime number +-"(*:\\', "space", "backspace", "ctrl+w", "left", "right", "home", "end"]
EXCLUDED = {"quit", "pager", "palette", "theme", "export"}
"""Actions that leave the program, offer to, or only draw everything again."""


async def press_random_keys(pilot: Pilot[None], screen: SearchScreen, seed: int, count: int) -> None:
    """Press random keys that edit the query or start actions, at most a hundred a second, then check the hits.

    In the end either the hits are those of the query, or an error is shown; then another query gets its hits.
    """
    random_source = random.Random(seed)
    keys = [key for action in KEY_ACTIONS if action.name not in EXCLUDED for key in action.keys]
    all_keys = [*keys, "enter", "escape", "tab"]
    for _key in range(count):
        start = time.monotonic()
        await press(pilot, random_source.choice(EDITING_KEYS if random_source.random() < 0.6 else all_keys))
        assert time.monotonic() - start < 3
        await asyncio.sleep(max(0.0, 0.01 - (time.monotonic() - start)))
    while pilot.app.screen is not screen:
        await press(pilot, "escape")
    await wait_until_answered(pilot, screen)
    if screen.loader.is_current:
        assert_current(screen)
    else:
        assert screen.error is not None and "▲" in screen_text(pilot)
    await press(pilot, *([] if screen.words.has_focus else ["escape"]))
    await press_and_wait(pilot, screen, "ctrl+u", "ctrl+k", *"ring")
    assert screen.words.value == "ring" and screen.loader.is_current
    assert_current(screen)


def assert_current(screen: SearchScreen) -> None:
    """Require that the screen shows the hits of the current query."""
    results = screen.searcher.search(request_of(screen.loader.query))
    assert ids(screen)[: len(results)] == [result.hit.document_id for result in results]
