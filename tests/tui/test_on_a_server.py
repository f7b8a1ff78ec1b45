"""The screens on topics as people meet them, on documents that are indexed on a server."""

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
    """Those of a server on which the sample is indexed."""
    settings = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix, engine=SERVER)
    task = load("nlps")
    with closing(open_engine(settings)) as engine:
        index_task(task, engine, task.collection(DATA), SilentProgress())
    return settings


@pytest.fixture
def on_server(settings: Settings) -> Iterator[Open]:
    """Opens a command's screen on the server."""
    opened: list[Terminal] = []

    def start(*arguments: object) -> Terminal:
        given = ("--url", settings.url, *arguments, "--data", DATA, "--annotator", "ann")
        prefix = settings.index_prefix
        opened.append(
            Terminal(*given, home=settings.home, columns=80, lines=24, SEARCHAPP_INDEX_PREFIX=prefix)
        )
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def judged(settings: Settings) -> list[Event]:
    with JudgmentLog(settings.home / "judgments.sqlite") as log:
        return [event for _place, event in log.events()]


def test_topics_are_walked_and_judged(settings: Settings, on_server: Open) -> None:
    terminal = on_server("topics", "nlps", "--recipe", "neighbours", "--split", "dev")
    terminal.wait_for(r"Topic \d+ · AP \S+ · \d of \d missed", 60)
    first = terminal.wait_for(r"Document (\d+) .*rank 1 ")[1]
    terminal.press("]")
    document = terminal.wait_for(rf"Document (?!{first} )(\d+) .*rank 1 ")[1]
    topic = terminal.wait_for(r"Topic (\d+) ")[1]
    terminal.press("w")
    terminal.wait_for(rf"{document} is at rank 1, with the score")
    terminal.press("escape")
    terminal.wait_for(rf"Document {document} .*rank 1 ")  # which was behind the reason
    terminal.press("j", "1")
    terminal.wait_for("saved  1 relevant")
    terminal.press("q")
    assert terminal.wait_for_end() == 0
    (event,) = judged(settings)
    assert (event.topic_id, event.document_id, event.grade, event.rank) == (topic, document, 1, 1)


def test_what_a_recipe_ranks_now_is_judged(settings: Settings, on_server: Open) -> None:
    terminal = on_server("judge", "nlps", "--recipe", "bm25", "--split", "dev")
    document = terminal.wait_for(r"(?:Document |▶.* 1 +)(\d+)", 60)[1]
    terminal.press("1")
    terminal.wait_for("saved")
    terminal.press("q")
    assert terminal.wait_for_end() == 0
    (event,) = judged(settings)
    assert (event.document_id, event.grade, event.rank) == (document, 1, 1)
