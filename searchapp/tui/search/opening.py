"""What the search screen is opened with, for the command line and for other screens."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from searchapp.app.search import Searcher
from searchapp.app.sessions import grading_session
from searchapp.engines.base import Engine
from searchapp.settings import Settings
from searchapp.tui.keys import ScreenSettings
from searchapp.tui.search.screen import Opened
from searchapp.tui.search.searching import Sought


def opened_search(
    searcher: Searcher,
    engine: Engine,
    sought: Sought,
    settings: Settings,
    own: ScreenSettings,
    held: ExitStack,
    data: Path | None,
    annotator: str | None,
) -> Opened:
    """A search that begins with what is `sought`; the log of who grades there is closed with `held`.

    `data` is where the task's files are, if that was said.
    """
    task = searcher.task
    return Opened(
        searcher,
        lambda progress: Searcher.open(task, engine, progress, settings.home, data),
        settings.home,
        ("searchapp", "search", *(("--data", str(data)) if data else ())),
        sought,
        lambda: grading_session(held, settings.judgments, task.name, annotator),
        restore=own.restore,
    )
