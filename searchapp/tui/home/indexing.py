"""Indexing from the home screen, with questions, progress and cancellation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from searchapp.app.index import index_task, outcome_sentences
from searchapp.app.overview import TaskState
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import DataError, OtherDocuments, SearchappError, UsageError
from searchapp.files import reason
from searchapp.progress import Advance, TextProgress, WorkStopped, no_notice
from searchapp.tasks import SAMPLE, folders, load
from searchapp.tasks.base import Task
from searchapp.text import counted
from searchapp.tui.kit.background import Post, in_background
from searchapp.tui.kit.dialogs import Choose, PathDialog
from searchapp.tui.kit.screen import KeyScreen

# The program waits for this time for the removal of an unfinished index.
LEAVING_SECONDS = 10.0


class Indexing:
    """Indexes a task in a thread, and is the `Progress` of that work.

    Args:
        settings: all settings
        task: the task
        folder: its files
        post: calls a function in the screen's thread
        report: receives the progress in words
        done: receives sentences, the error, or None if it was stopped
        remember: make the folder the default of the task
        replace: replace an index with mostly other documents
    """

    def __init__(
        self,
        settings: Settings,
        task: Task,
        folder: Path,
        post: Post,
        report: Callable[[str], object],
        done: Callable[[Sequence[str] | Exception | None], object],
        *,
        remember: bool,
        replace: bool,
    ) -> None:
        self.task = task
        self._settings = settings
        self._folder = folder
        self._remember = remember
        self._replace = replace
        self._words = TextProgress(lambda words: post(lambda: report(words)))
        self._stop = threading.Event()
        self._thread = in_background(
            f"index {task.name}",
            self._work,
            done,
            lambda error: done(None if isinstance(error, WorkStopped) else error),
            post,
        )

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        self._stop.set()

    def stop_and_wait(self) -> None:
        self.stop()
        self._thread.join(LEAVING_SECONDS)

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        self._check_stop()
        with self._words.stage(label, total, in_bytes=in_bytes) as say:

            def advance(further: int) -> None:
                self._check_stop()
                say(further)

            yield advance

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise WorkStopped

    def _work(self) -> Sequence[str]:
        collection = self.task.collection(self._folder)
        with closing(open_engine(self._settings, no_notice)) as engine:
            outcome = index_task(self.task, engine, collection, self, replace=self._replace)
        sentences = list(outcome_sentences(self.task, collection, outcome))
        if self._remember:
            try:
                folders.remember(self.task, self._settings.home, self._folder)
            except SearchappError as error:
                sentences.append(f"the folder was not remembered: {error}")
        return sentences


class Indexer:
    """Indexes one task at a time; `done` is called after each."""

    def __init__(
        self,
        home: KeyScreen,
        settings: Settings,
        post: Post,
        tell_news: Callable[[Sequence[str], str], object],
        done: Callable[[], object],
    ) -> None:
        self._home = home
        self._tell_news = tell_news
        self._settings = settings
        self._post = post
        self._done = done
        self.indexing: Indexing | None = None
        # The last typed path by question.
        self._typed_paths: dict[str, str] = {}

    def ask(self, state: TaskState) -> None:
        if self._is_busy():
            return
        task, sample = state.task, state.sample
        ways: list[tuple[str, str, Callable[[], object]]] = []
        if state.has_files:
            ways.append(("d", f"Its files in {state.folder}", lambda: self.start(task, state.folder)))
        if sample is not None:
            of_sample = load(f"{task.name}{SAMPLE}")
            about = f"The bundled sample, as the task {of_sample.name}"
            ways.append(("s", about, lambda: self.start(of_sample, sample)))
        if task.info.folder is None:
            ways.append(("f", "Another folder with its files", lambda: self._ask_folder(task)))
        acts = {key: act for key, _about, act in ways}
        question = f"Index {task.name} from which source?"
        if state.index is not None:
            question += (
                f" The present index ({counted(state.index.documents, 'document')}) stays live until then."
            )

        def answer(key: str | None) -> None:
            if key is not None:
                acts[key]()

        self._home.app.push_screen(Choose(question, [(key, about) for key, about, _act in ways]), answer)

    def ask_own_task(self) -> None:
        if self._is_busy():
            return

        def prepare(words: str) -> Callable[[], object]:
            path = _path(words)
            if path.suffix.lower() != ".toml":
                raise UsageError(f"{path} is not a task file: its name must end in .toml")
            task = load(str(path))
            return lambda: self.start(task, path.parent)

        self._ask_path("The TOML file of your own task", prepare, ".toml")

    def start(self, task: Task, folder: Path, *, remember: bool = False, replace: bool = False) -> None:
        """Index a task; without `replace`, ask before replacing other documents."""

        def ended(result: Sequence[str] | Exception | None) -> None:
            if not isinstance(result, OtherDocuments):
                self._ended(result)
                return
            self._ended(None)
            question = f"{result.finding}. Replace the index with these documents?"
            again = partial(self.start, task, folder, remember=remember, replace=True)
            self._home.when_in_front(lambda: self._home.ask(question, again))

        if not self._is_busy():
            self.indexing = Indexing(
                self._settings,
                task,
                folder,
                self._post,
                self._report,
                ended,
                remember=remember,
                replace=replace,
            )

    def stop(self) -> None:
        if self.indexing is None:
            self._home.head.tell("")
        else:
            self.indexing.stop()
            self._home.head.tell(f"{self.indexing.task.name}: stopping …", "$warning")

    def _ask_folder(self, task: Task) -> None:
        def prepare(words: str) -> Callable[[], object]:
            folder = _path(words)
            if not folder.is_dir():
                raise UsageError(f"there is no folder {folder}")
            return lambda: self.start(task, folder, remember=True)

        self._ask_path(f"The folder with the official files of {task.name}", prepare)

    def _ask_path(
        self, question: str, prepare: Callable[[str], Callable[[], object]], suffix: str = ""
    ) -> None:
        """Ask for a path to index; begin with the last answer, whose files may have been the wrong ones."""

        def prepare_or_explain(words: str) -> Callable[[], object]:
            self._typed_paths[question] = words
            try:
                return prepare(words)
            except OSError as error:  # the system may reject a long name
                raise DataError(f"{words} can't be read: {reason(error)}") from error

        initial = self._typed_paths.get(question, "")
        dialog = PathDialog(question, prepare_or_explain, "index", suffix=suffix, initial=initial)
        self._home.app.push_screen(dialog, lambda start: start() if start is not None else None)

    def _is_busy(self) -> bool:
        if self.indexing is None:
            return False
        stop = self._home.keys.shown("clear")
        words = f"{self.indexing.task.name} is being indexed: {stop} stops it"
        self._home.head.tell(words, "$warning", holds=lambda: self.indexing is not None)
        return True

    def _report(self, words: str) -> None:
        if self.indexing is not None and not self.indexing.is_stopping:
            stop = self._home.keys.shown("clear")
            self._home.head.tell(f"{self.indexing.task.name}: {words}   {stop} stops it", "$primary")

    def _ended(self, result: Sequence[str] | Exception | None) -> None:
        if self.indexing is None:
            return
        name, self.indexing = self.indexing.task.name, None
        if result is None:
            self._tell_news([f"{name}: indexing stopped, nothing was changed"], "$warning")
        elif isinstance(result, Exception):
            self._home.tell_error(result)
        else:
            self._tell_news(result, "$success")
        self._done()


def _path(words: str) -> Path:
    try:
        return Path(words).expanduser().absolute()
    except RuntimeError as error:
        raise UsageError(f"{words} can't be found: no user on this machine has this name") from error
