"""What the search screen is opened with, for the command line and for other screens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from searchapp.app.search import Searcher
from searchapp.app.sessions import grading_session
from searchapp.engines.base import Engine
from searchapp.judging.session import Session
from searchapp.progress import Progress
from searchapp.settings import Settings
from searchapp.tui.keys import ScreenSettings
from searchapp.tui.palette import Offer
from searchapp.tui.screen import KeyScreen
from searchapp.tui.search.searching import Sought


@dataclass(frozen=True)
class Opened:
    """What the search screen is opened with.

    `searcher` is the one for what is typed; `another` opens a further one, for what takes longer. `command` is how the
    program was called, up to the words. `session` opens that of whoever grades documents.
    `elsewhere` gives the palette what there is besides the task.
    """

    searcher: Searcher
    another: Callable[[Progress], Searcher]
    home: Path
    command: Sequence[str]
    sought: Sought
    session: Callable[[], Session]
    elsewhere: Callable[[KeyScreen], Iterable[Offer]] = lambda _screen: ()
    restore: bool = False
    """Whether it opens where it was left, unless something is sought, and keeps where it is left."""


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
