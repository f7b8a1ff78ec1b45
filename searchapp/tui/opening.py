"""Opens the search screen on a task, those of judging and topics on a run, and the compare screen on several."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from searchapp.app.compare import CompareRequest
from searchapp.app.comparing import open_comparing
from searchapp.app.evaluate import GoldSource
from searchapp.app.exchange import team
from searchapp.app.index_sources import LocalFirst
from searchapp.app.known_runs import KnownRun
from searchapp.app.open_topics import TopicsRequest, open_topics
from searchapp.app.run_pages import RunPages, require_topic
from searchapp.app.search import Searcher
from searchapp.app.sessions import (
    PATIENCE_SECONDS,
    annotator_name,
    grading_session,
    judged_by_now,
    judging_session,
    usual_depth,
)
from searchapp.engines import open_engine
from searchapp.judging.events import Author, Channel
from searchapp.judging.log import JudgmentLog
from searchapp.judging.presence import Presence
from searchapp.judging.session import Session
from searchapp.judging.shared import Synchronizer
from searchapp.judging.summary import summary
from searchapp.progress import Silent, no_notice
from searchapp.settings import Settings
from searchapp.tasks import load
from searchapp.tasks.base import Task
from searchapp.tui import keys
from searchapp.tui.compare.opening import compare_screen
from searchapp.tui.compare.screen import CompareScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.screen import KeyScreen
from searchapp.tui.search import actions
from searchapp.tui.search.opening import opened_search
from searchapp.tui.search.screen import SearchScreen
from searchapp.tui.search.searching import Sought
from searchapp.tui.status import summed_up
from searchapp.tui.topics.opening import topics_screen
from searchapp.tui.topics.screen import TopicsScreen

ATTEMPTS = 2
"""How often a server is asked that somebody waits for."""


class Prepared:
    """A screen that can be opened at once, and what it holds open until `close`, which says what came of it."""

    def __init__(self, stack: ExitStack, screen: Callable[[ExitStack], KeyScreen]) -> None:
        self._stack = stack
        self._screen = screen
        self.farewell: Callable[[], Sequence[str]] = lambda: ()

    def open(self) -> KeyScreen:
        """Make the screen, in the thread of the app.

        Raises:
            SearchappError: it can't be opened; what it would hold open is closed.
        """
        try:
            return self._screen(self._stack)
        except BaseException:
            self._stack.close()
            raise

    def close(self) -> Sequence[str]:
        """Let go of everything; sentences on what was done."""
        said = self.farewell()
        self._stack.close()
        return said


def prepare_search(settings: Settings, task: Task, sought: Sought, data: Path | None = None) -> Prepared:
    """Open what the search screen of a task needs, in whatever thread.

    Raises:
        EngineError: the task is not indexed, or the engine does not answer.
        DataError: the index is damaged, or the keys in the user's file contradict each other.
    """
    own = actions.load(settings.of_user, task.info.grades)
    with ExitStack() as stack:
        engine = stack.enter_context(closing(open_engine(settings, attempts=ATTEMPTS)))
        searcher = Searcher.open(task, engine, Silent(), settings.home, data)
        searcher.recipe(sought.recipe)

        def screen(held: ExitStack) -> SearchScreen:
            opened = opened_search(searcher, engine, sought, settings, own, held, data, settings.annotator)
            return SearchScreen(opened, own.keys)

        return Prepared(stack.pop_all(), screen)
    raise AssertionError("the context lets no error pass")


def prepare_judging(settings: Settings, run: KnownRun, warn: Callable[[str], object]) -> Prepared:
    """Open what the judging screen of a run needs, in whatever thread; `warn` is called with what people must know.

    Raises:
        UsageError: the run or its topics are gone, or nobody knows who judges.
        DataError: a file is not what it should be.
        EngineError: the documents can't be had.
    """
    task = load(run.task)
    name = annotator_name(settings.annotator)
    own = keys.load(settings.of_user, task.info.grades)
    with ExitStack() as stack:
        source = LocalFirst(settings, Silent(), lambda words: _ignore(warn(words)), copy=settings.shared)
        documents = stack.enter_context(closing(source))
        run_pages = RunPages.open(task, documents, run.path, home=settings.home)
        require_topic(run_pages, run_pages.topics, None)
        for note in run_pages.notes:
            warn(note)
        synchronizer = _joined_team(settings, task.name, stack) if settings.shared else None

        def screen(held: ExitStack) -> JudgeScreen:
            # The log's database belongs to the thread that opens it.
            log = held.enter_context(
                JudgmentLog(settings.judgments, PATIENCE_SECONDS, lambda words: _ignore(warn(words)))
            )
            presence = held.enter_context(Presence(log.path, task.name, name))
            session = Session(log, task.name, Author(name, channel=Channel.interface))
            judging = judging_session(session, run_pages, run_pages.topics, usual_depth(run_pages))
            judging.session.synchronizer = synchronizer
            log.damage.report = judging.session.news.append
            prepared.farewell = lambda: summed_up(summary(judging), task.info.grades)
            title = f"{task.name} {run_pages.split or run.path.name} · {name}"
            return JudgeScreen(judging, run_pages, own.keys, None, title, presence)

        prepared = Prepared(stack.pop_all(), screen)
        return prepared
    raise AssertionError("the context lets no error pass")


def prepare_topics(settings: Settings, run: KnownRun, warn: Callable[[str], object]) -> Prepared:
    """Open what the screen of a run's topics needs, in whatever thread; `warn` is called with what people must know.

    Raises:
        as `open_topics` does.
        DataError: the keys in the user's file contradict each other.
    """
    request = TopicsRequest(run.path)
    with ExitStack() as stack:
        topics = open_topics(
            stack, load(run.task), request, settings, Silent(), lambda words: _ignore(warn(words))
        )
        for note in topics.pages.notes:
            warn(note)

        def screen(held: ExitStack) -> TopicsScreen:
            return topics_screen(
                topics,
                request,
                settings,
                lambda: grading_session(held, settings.judgments, topics.task.name, settings.annotator),
            )

        return Prepared(stack.pop_all(), screen)
    raise AssertionError("the context lets no error pass")


def prepare_compare(
    settings: Settings, runs: Sequence[KnownRun], warn: Callable[[str], object], *, anyway: bool = False
) -> Prepared:
    """Open what the compare screen of some runs needs, in whatever thread; `warn` is called with what people must know.

    Raises:
        as `open_comparing` does.
        DataError: the keys in the user's file contradict each other.
    """
    task = runs[0].manifest.task
    request = CompareRequest(tuple(run.path for run in runs), GoldSource(home=settings.home), anyway=anyway)
    with ExitStack() as stack:
        comparing = open_comparing(
            stack,
            request,
            settings,
            Silent(),
            lambda words: _ignore(warn(words)),
            lambda: judged_by_now(settings.judgments, task),
        )
        for note in dict.fromkeys(note for topics in comparing.topics for note in topics.pages.notes):
            warn(note)

        def screen(held: ExitStack) -> CompareScreen:
            return compare_screen(
                comparing,
                settings,
                lambda: grading_session(held, settings.judgments, task, settings.annotator),
            )

        return Prepared(stack.pop_all(), screen)
    raise AssertionError("the context lets no error pass")


def _joined_team(settings: Settings, task: str, stack: ExitStack) -> Synchronizer:
    """Exchange judgments with the team until the stack is closed, and once more then, which nobody waits for.

    It has a thread of its own, to which its handle on the log belongs. The program ends when it is done.

    Raises:
        SearchappError: there is no cluster to exchange them with, or the log can't be opened.
    """
    begun: queue.SimpleQueue[Synchronizer | Exception] = queue.SimpleQueue()
    left = threading.Event()

    def run() -> None:
        try:
            with (
                JudgmentLog(settings.judgments, PATIENCE_SECONDS) as log,
                team(settings, log, task, no_notice, no_notice) as synchronizer,
            ):
                begun.put(synchronizer)
                left.wait()
        except Exception as error:  # at the beginning, or nobody listens any more
            begun.put(error)

    threading.Thread(target=run, name="team").start()
    first = begun.get()
    if isinstance(first, Exception):
        raise first
    stack.callback(left.set)
    return first


def _ignore(_result: object) -> None:
    """What comes of showing words is of no interest to who says them."""
