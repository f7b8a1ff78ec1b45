"""Indexes a task in the background, says how far it is, and can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from searchapp.app.index import index_task
from searchapp.app.index_report import sentences
from searchapp.engines import open_engine
from searchapp.errors import SearchappError
from searchapp.progress import Advance, InWords, Stopped, no_notice
from searchapp.settings import Settings
from searchapp.tasks import folders
from searchapp.tasks.base import Task
from searchapp.tui.background import Post, in_background

LEAVING_SECONDS = 10.0
"""How long the end of the program waits until what is half done is removed."""


class Indexing:
    """One task being indexed; `post` has things done in the thread of the screen.

    Args:
        remember: whether the folder is where the task's files are looked for from now on
        told: is called with how far it is
        done: is called with what came of it, or with the error that it ended with; with None if it was stopped
    """

    def __init__(
        self,
        settings: Settings,
        task: Task,
        folder: Path,
        post: Post,
        told: Callable[[str], object],
        done: Callable[[Sequence[str] | Exception | None], object],
        *,
        remember: bool,
    ) -> None:
        self.task = task
        self._settings = settings
        self._folder = folder
        self._remember = remember
        self._words = InWords(lambda words: post(lambda: told(words)))
        self._stop = threading.Event()
        self._thread = in_background(f"index {task.name}", self._work, done, self._failed(done), post)

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Stop at the next document; what serves now stays."""
        self._stop.set()

    def stop_and_wait(self) -> None:
        """Stop, and wait until what is half done is removed."""
        self.stop()
        self._thread.join(LEAVING_SECONDS)

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        """As a `Progress` has it."""
        self._require_wanted()
        with self._words.stage(label, total, in_bytes=in_bytes) as say:

            def advance(further: int) -> None:
                self._require_wanted()
                say(further)

            yield advance

    def _require_wanted(self) -> None:
        if self._stop.is_set():
            raise Stopped

    def _failed(self, done: Callable[[Exception | None], object]) -> Callable[[Exception], object]:
        return lambda error: done(None if isinstance(error, Stopped) else error)

    def _work(self) -> Sequence[str]:
        collection = self.task.collection(self._folder)
        with closing(open_engine(self._settings, no_notice)) as engine:
            outcome = index_task(self.task, engine, collection, self)
        said = list(sentences(self.task, collection, outcome))
        if self._remember:
            try:
                folders.remember(self.task, self._settings.home, self._folder)
            except SearchappError as error:
                said.append(f"the folder must be named again: {error}")
        return said
