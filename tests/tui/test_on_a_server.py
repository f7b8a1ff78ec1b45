"""The topics and judging screens in a real terminal, on documents that are indexed on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from searchapp.app.index import index_task
from searchapp.config.settings import SERVER, Settings
from searchapp.engines import open_engine
from searchapp.judging.events import Event
from searchapp.judging.log import JudgmentLog
from searchapp.progress import SilentProgress
from searchapp.tasks import load
from tests.terminal import Terminal
from tests.tui.conftest import SAMPLES

pytestmark = pytest.mark.elasticsearch

DATA = SAMPLES / "nlps"

Open = Callable[..., Terminal]


@pytest.fixture
def settings(elasticsearch_url: str, index_prefix: str, tmp_path: Path) -> Settings:
    """Return the settings of a server on which the sample is indexed."""
    settings = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix, engine=SERVER)
    task = load("nlps")
    with closing(open_engine(settings)) as engine:
        index_task(task, engine, task.collection(DATA), SilentProgress())
    return settings


@pytest.fixture
def open_screen(settings: Settings) -> Iterator[Open]:
    """Return a function that opens the screen of a command on the server."""
    terminals: list[Terminal] = []

    def start(*arguments: object) -> Terminal:
        options = ("--url", settings.url, *arguments, "--data", DATA, "--annotator", "ann")
        prefix = settings.index_prefix
        terminals.append(
            Terminal(*options, home=settings.home, columns=80, lines=24, SEARCHAPP_INDEX_PREFIX=prefix)
        )
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def judgments(settings: Settings) -> list[Event]:
    with JudgmentLog(settings.home / "judgments.sqlite") as log:
        return [event for _position, event in log.events()]


def test_topics_are_shown_and_judged(settings: Settings, open_screen: Open) -> None:
    terminal = open_screen("topics", "nlps", "--recipe", "neighbours", "--split", "dev")
    terminal.wait_for(r"Topic \d+ · AP \S+ · \d of \d missed", 60)
    first = terminal.wait_for(r"Document (\d+) .*rank 1 ")[1]
    terminal.press("]")
    document = terminal.wait_for(rf"Document (?!{first} )(\d+) .*rank 1 ")[1]
    topic = terminal.wait_for(r"Topic (\d+) ")[1]
    terminal.press("w")
    terminal.wait_for(rf"{document} is at rank 1, with the score")
    terminal.press("escape")
    terminal.wait_for(rf"Document {document} .*rank 1 ")  # the reason is closed
    terminal.press("J", "1")
    terminal.wait_for("saved  1 relevant")
    terminal.press("q")
    assert terminal.wait_for_end() == 0
    (event,) = judgments(settings)
    assert (event.topic_id, event.document_id, event.grade, event.rank) == (topic, document, 1, 1)


def test_rankings_of_a_recipe_are_judged(settings: Settings, open_screen: Open) -> None:
    terminal = open_screen("judge", "nlps", "--recipe", "bm25", "--split", "dev")
    document = terminal.wait_for(r"(?:Document |▶.* 1 +)(\d+)", 60)[1]
    terminal.press("1")
    terminal.wait_for("saved")
    terminal.press("q")
    assert terminal.wait_for_end() == 0
    (event,) = judgments(settings)
    assert (event.document_id, event.grade, event.rank) == (document, 1, 1)
