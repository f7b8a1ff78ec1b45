"""Indexes tasks from the home screen: asks from what, says how far it is and what came of it, and can be stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from textual.app import App

from searchapp.app.overview import TaskState
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.files import reason
from searchapp.settings import Settings
from searchapp.tasks import load
from searchapp.tasks.base import Task
from searchapp.tui.background import Post
from searchapp.tui.dialogs import Choose, Words
from searchapp.tui.head import Banner
from searchapp.tui.home.indexing import Indexing
from searchapp.tui.keys import KeyMap


class Home(Protocol):
    """The home screen, as far as it is told of indexing."""

    keys: KeyMap

    @property
    def app(self) -> App[object]:
        """The app."""

    @property
    def head(self) -> Banner:
        """The first line."""

    def tell_error(self, error: Exception) -> None:
        """Say that something has failed."""

    def tell_news(self, sentences: Sequence[str], look: str) -> None:
        """Say what was done: the first sentence in the first line, all of them where there is room."""


class Maker:
    """Indexes one task at a time.

    Args:
        home: the screen
        settings: say where everything is
        post: has things done in the thread of the screen
        done: is called when something was indexed, or was not
    """

    def __init__(self, home: Home, settings: Settings, post: Post, done: Callable[[], object]) -> None:
        self._home = home
        self._settings = settings
        self._post = post
        self._done = done
        self.indexing: Indexing | None = None

    def ask(self, state: TaskState) -> None:
        """Ask what to index a task from, and do it."""
        if self._is_busy():
            return
        task, sample = state.task, state.sample
        ways: list[tuple[str, str, Callable[[], object]]] = []
        if state.has_files:
            ways.append(("d", f"Its files in {state.folder}", lambda: self.start(task, state.folder)))
        if sample is not None:
            ways.append(("s", "The sample that ships with searchapp", lambda: self.start(task, sample)))
        ways.append(("f", "Another folder with its files", lambda: self._ask_folder(task)))
        acts = {key: act for key, _about, act in ways}
        question = f"Index {task.name}: from what?"
        if state.index is not None:
            question += f" The {state.index.documents:,} documents that are indexed serve until it is done."

        def answer(key: str | None) -> None:
            if key is not None:
                acts[key]()

        self._home.app.push_screen(Choose(question, [(key, about) for key, about, _act in ways]), answer)

    def ask_own_task(self) -> None:
        """Ask for the file of a task of the user's own, and index it."""
        if self._is_busy():
            return

        def named(words: str | None) -> None:
            if not words:
                return
            try:
                path = _path(words)
                if path.suffix.lower() != ".toml":
                    raise UsageError(f"{path} is not the file of a task: its name must end in .toml")
                task = load(str(path))
            except (SearchappError, OSError) as error:
                self._home.tell_error(_told(error, words))
            else:
                self.start(task, path.parent)

        self._home.app.push_screen(Words("The TOML file of a task of your own"), named)

    def start(self, task: Task, folder: Path, *, remember: bool = False) -> None:
        """Index a task from a folder; with `remember` its files are looked for there from now on."""
        if not self._is_busy():
            self.indexing = Indexing(
                self._settings, task, folder, self._post, self._how_far, self._ended, remember=remember
            )

    def stop(self) -> None:
        """Stop what is being indexed."""
        if self.indexing is None:
            self._home.head.tell("")
        else:
            self.indexing.stop()
            self._home.head.tell(f"{self.indexing.task.name}: stopping …", "$warning")

    def _ask_folder(self, task: Task) -> None:
        def named(words: str | None) -> None:
            if not words:
                return
            try:
                folder = _path(words)
                if not folder.is_dir():
                    raise UsageError(f"there is no folder {folder}")
            except (UsageError, OSError) as error:  # a name can be longer than any file's
                self._home.tell_error(_told(error, words))
            else:
                self.start(task, folder, remember=True)

        self._home.app.push_screen(Words(f"The folder with the official files of {task.name}"), named)

    def _is_busy(self) -> bool:
        """Whether something is being indexed; says so."""
        if self.indexing is None:
            return False
        stop = self._home.keys.shown("stop")
        self._home.head.tell(f"{self.indexing.task.name} is being indexed: {stop} stops that", "$warning")
        return True

    def _how_far(self, words: str) -> None:
        if self.indexing is not None and not self.indexing.is_stopping:
            stop = self._home.keys.shown("stop")
            self._home.head.tell(f"{self.indexing.task.name}: {words}   {stop} stops it", "$primary")

    def _ended(self, result: Sequence[str] | Exception | None) -> None:
        if self.indexing is None:
            return
        name, self.indexing = self.indexing.task.name, None
        if result is None:
            self._home.tell_news([f"{name}: stopped, everything is as it was before"], "$warning")
        elif isinstance(result, Exception):
            self._home.tell_error(result)
        else:
            self._home.tell_news(result, "$success")
        self._done()


def _path(words: str) -> Path:
    """The path that somebody typed.

    Raises:
        UsageError: it is in the home folder of a user whom nobody knows.
    """
    try:
        return Path(words).expanduser().absolute()
    except RuntimeError as error:
        raise UsageError(f"{words} begins with ~ and nobody knows whose folder that is") from error


def _told(error: SearchappError | OSError, words: str) -> SearchappError:
    """What is wrong with the path that somebody typed, in a sentence."""
    if isinstance(error, SearchappError):
        return error
    return DataError(f"{words} can't be read: {reason(error)}")
