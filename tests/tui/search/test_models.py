"""A recipe that asks a model shows the ranking without it at once, and completes it in the background."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.app.saved_searches import SearchQuery
from searchapp.config.settings import Settings
from searchapp.progress import SilentProgress
from searchapp.tasks import load
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.search import screen as search_screen
from searchapp.tui.search.screen import SearchScreen, open_search_screen
from tests.cli.conftest import EMBEDDED, run_command
from tests.embeddings.server import EmbeddingServer
from tests.embeddings.test_embed import endpoint, task_of, texts_of
from tests.embeddings.test_words import nearest
from tests.server.faults import Request, Response
from tests.tui.conftest import SAMPLES, TIMEOUT_SECONDS, drive, press, screen_text, wait_until
from tests.tui.search.conftest import ids

P = Pilot[None]

WORDS = "garlic soup"


class WaitingServer(EmbeddingServer):
    """A server whose answers wait for `may_answer`."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = threading.Event()

    def respond(self, request: Request) -> Response | None:
        self.may_answer.wait(TIMEOUT_SECONDS)
        return super().respond(request)

    def close(self) -> None:
        self.may_answer.set()
        super().close()

    @property
    def inputs(self) -> list[str]:
        return [text for request in self.requests for text in json.loads(request.body)["input"]]


class Harness:
    """An indexed task with vectors, and its model."""

    def __init__(self, folder: Path, server: WaitingServer) -> None:
        self.server = server
        self.home = folder / "home"
        self.task = task_of(folder, endpoint(server).replace("timeout = 1", "timeout = 60"))
        server.may_answer.set()
        for command in ("embed", "index"):
            self.run(command)
        server.may_answer.clear()
        server.requests.clear()

    def run(self, command: str, *arguments: object) -> str:
        result = run_command(command, self.task, *arguments, "--home", self.home, environment=EMBEDDED)
        assert result.code == 0, result.stderr
        return result.stdout

    def ranking(self, recipe: str) -> list[str]:
        """Return the ids of the hits on the command line."""
        printed = self.run("search", WORDS, "--recipe", recipe, "--size", 1000, "--json")
        return [hit["id"] for hit in json.loads(printed)["hits"]]

    def drive(
        self, steps: Callable[[P, SearchScreen], Awaitable[None]], recipe: str = "hybrid", text: str = ""
    ) -> None:
        opening = open_search_screen(
            load(str(self.task)),
            SearchQuery(text, recipe),
            Settings(home=self.home),
            SilentProgress(),
            pytest.fail,
            data=self.task.parent,
        )
        with opening as screen:
            drive(KeyApp(screen, "dark"), steps, (120, 36))


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    folder = Path(shutil.copytree(SAMPLES / "own", tmp_path / "own"))
    with WaitingServer() as server:
        yield Harness(folder, server)


def is_complete(screen: SearchScreen) -> bool:
    loader = screen.loader
    return loader.is_current and loader.listing is not None and not loader.listing.request.offline


async def wait_for_offline(pilot: P, screen: SearchScreen) -> None:
    """Wait until the ranking without the model is on the screen and the model is asked for the words."""
    loader = screen.loader
    await wait_until(pilot, lambda: loader.is_current and loader.waited_for_models > 0)
    assert not is_complete(screen)


def test_the_order_with_vectors_follows_and_the_selected_document_keeps_its_line(harness: Harness) -> None:
    lexical = harness.ranking("bm25")

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press(pilot, *WORDS)
        await wait_for_offline(pilot, screen)
        await wait_until(pilot, lambda: WORDS in harness.server.inputs)
        assert ids(screen) == lexical[: len(ids(screen))] and screen.hits.count == len(lexical)
        assert "hybrid without vectors yet" in screen_text(pilot)
        await press(pilot, "enter", "down", "down")
        assert screen.hits.result is not None and screen.hits.result.hit.document_id == lexical[2]
        harness.server.may_answer.set()
        await wait_until(pilot, lambda: is_complete(screen))
        await pilot.pause()
        shown, text = ids(screen), screen_text(pilot)
        assert shown[screen.hits.cursor] == lexical[2] and screen.hits.cursor != 2
        assert f"the selected document has rank {screen.hits.cursor + 1}, not 3" in text
        assert "without vectors" not in text and "· hybrid" in text
        assert shown == harness.ranking("hybrid")[: len(shown)] != lexical[: len(shown)]

    harness.drive(steps)


def test_a_failing_model_leaves_the_ranking_without_it_and_the_next_query_asks_again(
    harness: Harness,
) -> None:
    harness.server.faults = ["500", "500"]
    harness.server.may_answer.set()

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until(pilot, lambda: "answers 500, after 2 attempts" in screen_text(pilot))
        assert "hybrid without vectors" in (text := screen_text(pilot))
        assert "vectors yet" not in text and "Earlier query" not in text and "resumes" not in text
        assert ids(screen) == harness.ranking("bm25")[: len(ids(screen))]
        assert screen.error is None
        await press(pilot, *" bread")
        await wait_until(pilot, lambda: is_complete(screen))
        await pilot.pause()
        assert "answers 500" not in screen_text(pilot)

    harness.drive(steps, text=WORDS)


def test_typing_goes_on_while_a_model_is_slow(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_screen, "SLOW_SECONDS", 0.1)
    monkeypatch.setattr(search_screen, "LOOK_SECONDS", 0.1)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press(pilot, *"garlic")
        await wait_for_offline(pilot, screen)
        await wait_until(pilot, lambda: "no answer of the model for 0 s yet" in screen_text(pilot))
        await press(pilot, *" soup")
        await wait_for_offline(pilot, screen)
        assert ids(screen) == harness.ranking("bm25")[: len(ids(screen))]
        await press(pilot, *" bread")
        await wait_for_offline(pilot, screen)
        harness.server.may_answer.set()
        await wait_until(pilot, lambda: is_complete(screen))
        assert screen.loader.listing is not None and screen.loader.listing.request.text == f"{WORDS} bread"
        await wait_until(pilot, lambda: "no answer" not in screen_text(pilot))

    harness.drive(steps)
    assert harness.server.inputs[-1] == f"{WORDS} bread"
    assert max(harness.server.answered.values()) == 1


def test_similar_documents_are_those_with_the_nearest_vectors(harness: Harness) -> None:
    documents, _topics = texts_of(harness.task)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_for_offline(pilot, screen)
        harness.server.may_answer.set()
        await wait_until(pilot, lambda: is_complete(screen))
        asked = list(harness.server.inputs)
        await press(pilot, "enter")
        result = screen.hits.result
        assert result is not None
        document = result.hit.document_id
        await press(pilot, "S")
        await wait_until(pilot, lambda: screen.loader.query.like == document and is_complete(screen))
        expected = [other for other in nearest(documents, documents[document]) if other != document]
        assert ids(screen) == expected[: len(ids(screen))]
        assert harness.server.inputs == asked
        command = screen.command()
        assert command is not None and f"--like={document}" in command

    harness.drive(steps, recipe="dense", text=WORDS)
