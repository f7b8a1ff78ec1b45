"""Open other screens from the home screen or the palette of a search screen, and close their resources."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec

from searchapp.app.compare import CompareRequest
from searchapp.app.doctor import Check, Verdict, examine
from searchapp.app.evaluate import GoldSource
from searchapp.app.inspection.pages import LocalFirst, RunPages, require_topic
from searchapp.app.inspection.topic_comparison import open_comparing
from searchapp.app.inspection.topics import TopicsRequest, open_topics
from searchapp.app.overview import Overview, TaskState, look
from searchapp.app.runs import KnownRun
from searchapp.app.saved_searches import SearchQuery
from searchapp.app.search import TaskSearcher
from searchapp.app.sessions import (
    PATIENCE_SECONDS,
    annotator_name,
    grading_session,
    judged_by_now,
    judging_session,
    team,
    usual_depth,
)
from searchapp.config.resolution import Resolution
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import DataError, SearchappError
from searchapp.judging.events import Author, Channel
from searchapp.judging.log import JudgmentLog, Presence
from searchapp.judging.session import Session, summary
from searchapp.judging.team import Synchronizer
from searchapp.model import Topic
from searchapp.progress import Notify, SilentProgress, no_notice
from searchapp.tasks import load
from searchapp.tasks.base import Task
from searchapp.tui.compare.screen import compare_screen
from searchapp.tui.config.screen import GRADES, ConfigScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import keys
from searchapp.tui.kit.background import Post, in_background
from searchapp.tui.kit.content import Content
from searchapp.tui.kit.descriptions import session_summary
from searchapp.tui.kit.dialogs import ReportDialog
from searchapp.tui.kit.keys import load as load_keys
from searchapp.tui.kit.palette import Offer
from searchapp.tui.kit.screen import KeyScreen
from searchapp.tui.search import actions
from searchapp.tui.search.screen import SearchScreen, search_setup
from searchapp.tui.topics.screen import topics_screen

# Attempts of a request while the user waits.
ATTEMPTS = 2


P = ParamSpec("P")


class PreparedScreen:
    """A screen that opens without waiting, and its resources."""

    def __init__(self, make: Callable[[PreparedScreen], KeyScreen]) -> None:
        # Closes the resources.
        self.stack = ExitStack()
        # Returns sentences about the work done.
        self.farewell: Callable[[], Sequence[str]] = lambda: ()
        self._make = make

    def open(self) -> KeyScreen:
        """Make the screen, in the app's thread.

        Raises:
            SearchappError: the screen cannot be opened.
        """
        try:
            return self._make(self)
        except BaseException:
            self.stack.close()
            raise

    def close(self) -> Sequence[str]:
        sentences = self.farewell()
        self.stack.close()
        return sentences


def _preparing(function: Callable[Concatenate[ExitStack, P], PreparedScreen]) -> Callable[P, PreparedScreen]:
    @wraps(function)
    def prepare(*arguments: P.args, **options: P.kwargs) -> PreparedScreen:
        stack = ExitStack()
        try:
            prepared = function(stack, *arguments, **options)
        except BaseException:
            stack.close()
            raise
        prepared.stack = stack
        return prepared

    return prepare


@_preparing
def prepare_search(
    stack: ExitStack, settings: Settings, task: Task, query: SearchQuery, data: Path | None = None
) -> PreparedScreen:
    """Prepare the search screen of a task, in any thread.

    Raises:
        EngineError: the task is not indexed, or the engine does not answer.
        DataError: the index is damaged, or the keys in the user file contradict each other.
    """
    own = actions.load(settings.of_user, task.info.grades)
    engine = stack.enter_context(closing(open_engine(settings, attempts=ATTEMPTS)))
    searcher = TaskSearcher.open(task, engine, SilentProgress(), settings.home, data)
    searcher.recipe(query.recipe)

    def make(prepared: PreparedScreen) -> SearchScreen:
        name = settings.annotator
        setup = search_setup(searcher, engine, query, settings, own, prepared.stack, data, name)
        return SearchScreen(setup, own.keys)

    return PreparedScreen(make)


@_preparing
def prepare_judging(stack: ExitStack, settings: Settings, run: KnownRun, warn: Notify) -> PreparedScreen:
    """Prepare the judging screen of a run, in any thread.

    Raises:
        UsageError: the run or its topics are gone, or the annotator has no name.
        DataError: a file is invalid.
        EngineError: the documents cannot be read.
    """
    task = load(run.task)
    name = annotator_name(settings.annotator)
    own = keys.load(settings.of_user, task.info.grades)
    documents = LocalFirst(settings, SilentProgress(), warn, copy=settings.shared)
    stack.enter_context(closing(documents))
    run_pages = RunPages.open(task, documents, run.path, home=settings.home)
    require_topic(run_pages, run_pages.topics, None)
    for note in run_pages.notes:
        warn(note)
    synchronizer = _join_team(settings, task.name, stack) if settings.shared else None

    def make(prepared: PreparedScreen) -> JudgeScreen:
        # The log's database belongs to the thread that opens it.
        log = prepared.stack.enter_context(JudgmentLog(settings.judgments, PATIENCE_SECONDS, warn))
        presence = prepared.stack.enter_context(Presence(log.path, task.name, name))
        session = Session(log, task.name, Author(name, channel=Channel.interface))
        session.synchronizer = synchronizer
        log.damage.report = session.news.append
        judging = judging_session(session, run_pages, run_pages.topics, usual_depth(run_pages))
        prepared.farewell = lambda: session_summary(summary(judging), task.info.grades)
        title = f"{task.name} {run_pages.split or run.path.name} · {name}"
        return JudgeScreen(
            *(judging, run_pages, own.keys, title),
            presence=presence,
            goal=own.goal,
            next_topic=own.next_topic,
        )

    return PreparedScreen(make)


@_preparing
def prepare_topics(stack: ExitStack, settings: Settings, run: KnownRun, warn: Notify) -> PreparedScreen:
    """Prepare the screen of a run's topics, in any thread; raises the errors of `open_topics`."""
    request = TopicsRequest(run.path)
    topics = open_topics(stack, load(run.task), request, settings, SilentProgress(), warn)
    for note in topics.pages.notes:
        warn(note)
    return PreparedScreen(
        lambda prepared: topics_screen(
            topics,
            request,
            settings,
            lambda: grading_session(prepared.stack, settings.judgments, topics.task.name, settings.annotator),
        )
    )


@_preparing
def prepare_compare(
    stack: ExitStack, settings: Settings, runs: Sequence[KnownRun], warn: Notify, *, force: bool = False
) -> PreparedScreen:
    """Prepare the compare screen, in any thread; raises the errors of `open_comparing`."""
    task = runs[0].manifest.task
    request = CompareRequest(tuple(run.path for run in runs), GoldSource(home=settings.home), force=force)
    judged = partial(judged_by_now, settings.judgments, task)
    comparing = open_comparing(stack, request, settings, SilentProgress(), warn, judged)
    for note in dict.fromkeys(note for topics in comparing.topics for note in topics.pages.notes):
        warn(note)
    return PreparedScreen(
        lambda prepared: compare_screen(
            comparing,
            settings,
            lambda: grading_session(prepared.stack, settings.judgments, task, settings.annotator),
        )
    )


def _join_team(settings: Settings, task: str, stack: ExitStack) -> Synchronizer:
    """Exchange judgments with the team in a thread until the stack is closed, and once afterwards.

    Raises:
        SearchappError: the engine is not a cluster, or the log cannot be opened.
    """
    started: queue.SimpleQueue[Synchronizer | Exception] = queue.SimpleQueue()
    left = threading.Event()

    def run() -> None:
        try:
            with (
                JudgmentLog(settings.judgments, PATIENCE_SECONDS) as log,
                team(settings, log, task, no_notice, no_notice) as synchronizer,
            ):
                started.put(synchronizer)
                left.wait()
        except Exception as error:  # raised by the caller if it is the first answer
            started.put(error)

    threading.Thread(target=run, name="team").start()
    first = started.get()
    if isinstance(first, Exception):
        raise first
    stack.callback(left.set)
    return first


LOOKS = {Verdict.ok: "$success", Verdict.warning: "$warning", Verdict.failed: "bold $error"}


class Opener:
    """Opens screens above another one."""

    def __init__(self, home: KeyScreen, settings: Settings, post: Post) -> None:
        self._home = home
        self._settings = settings
        self._post = post
        self._opened: dict[KeyScreen, PreparedScreen] = {}
        self._is_opening = False
        # Opened when the home screen is in front.
        self._pending: PreparedScreen | None = None

    @property
    def is_idle(self) -> bool:
        return not self._is_opening

    def search(self, state: TaskState, query: SearchQuery | None = None, topic: Topic | None = None) -> None:
        data = None if state.has_files else state.files

        def opened(screen: KeyScreen) -> None:
            if topic is not None and isinstance(screen, SearchScreen):
                screen.call_after_refresh(screen.judging.begin_topic, topic)

        self._open(
            state.task.name,
            lambda: prepare_search(self._settings, state.task, query or SearchQuery(), data),
            opened,
        )

    def judge(self, run: KnownRun) -> None:
        self._on_run(run, prepare_judging)

    def topics(self, run: KnownRun) -> None:
        self._on_run(run, prepare_topics)

    def compare(self, runs: Sequence[KnownRun], *, force: bool = False) -> None:
        """Open the compare screen; ask for confirmation if the runs' data differ."""
        warnings: list[str] = []

        def failed(error: Exception) -> None:
            if force or not isinstance(error, DataError):
                self._home.tell_error(error)
                return
            self._home.head.end_wait()
            self._home.ask(f"{error}. Compare them anyway?", lambda: self.compare(runs, force=True))

        self._open(
            " and ".join(run.path.name for run in runs),
            lambda: prepare_compare(self._settings, runs, warnings.append, force=force),
            lambda screen: self._warn(screen, warnings),
            failed,
        )

    def _on_run(self, run: KnownRun, prepare: Callable[[Settings, KnownRun, Notify], PreparedScreen]) -> None:
        warnings: list[str] = []
        self._open(
            run.path.name,
            lambda: prepare(self._settings, run, warnings.append),
            lambda screen: self._warn(screen, warnings),
        )

    def _warn(self, screen: KeyScreen, warnings: Sequence[str]) -> None:
        if warnings:
            screen.call_after_refresh(screen.head.tell, "; ".join(warnings), "$warning")

    def settings(self, resolution: Resolution) -> None:
        own = load_keys(self._settings.of_user, GRADES)
        self._home.app.push_screen(ConfigScreen(resolution, own.keys))

    def doctor(self) -> None:
        report = ReportDialog("Does searchapp work on this machine?")
        self._home.app.push_screen(report)

        def show(check: Check) -> None:
            verdict = (f"{check.verdict:<8} ", LOOKS[check.verdict])
            report.add(Content.assemble(verdict, (f"{check.name}: ", "bold"), check.finding))

        def work() -> None:
            for check in examine(self._settings, SilentProgress()):
                if report.was_closed:
                    return
                self._post(partial(show, check))

        def done(_nothing: None) -> None:
            report.finish("All checks are done.")

        in_background("doctor", work, done, self._home.tell_error, self._post)

    def close(self) -> None:
        for prepared in self._opened.values():
            prepared.close()
        self._opened.clear()
        if self._pending is not None:
            self._pending.close()
            self._pending = None

    def _open(
        self,
        name: str,
        prepare: Callable[[], PreparedScreen],
        opened: Callable[[KeyScreen], object],
        refused: Callable[[Exception], object] | None = None,
    ) -> None:
        if self._is_opening:
            return
        self._is_opening = True
        self._home.head.wait(f"opening {name} …")

        def ready(prepared: PreparedScreen) -> None:
            if not self._home.is_attached:
                prepared.close()
                return
            self._pending = prepared
            # Only in front: else it would take keys typed on another screen.
            self._home.when_in_front(lambda: push(prepared))

        def push(prepared: PreparedScreen) -> None:
            self._is_opening, self._pending = False, None
            try:
                screen = prepared.open()
            except (SearchappError, OSError) as error:
                self._home.tell_error(error)
                return
            self._home.head.end_wait()
            self._opened[screen] = prepared
            self._home.app.push_screen(screen, lambda _result: self._close_screen(screen))
            opened(screen)

        def failed(error: Exception) -> None:
            self._is_opening = False
            (refused or self._home.tell_error)(error)

        in_background(f"open {name}", prepare, ready, failed, self._post)

    def _close_screen(self, screen: KeyScreen) -> None:
        sentences = self._opened.pop(screen).close()
        if sentences:
            self._home.head.tell("; ".join(sentences))


def task_offers(overview: Overview, search: Callable[[TaskState], object]) -> Iterator[Offer]:
    """Yield the indexed tasks."""
    for state in overview.tasks:
        if state.index is not None:
            yield Offer(f"search {state.task.name}", lambda state=state: search(state), "task")  # type: ignore[misc]


def run_offers(overview: Overview, verb: str, act: Callable[[KnownRun], object]) -> Iterator[Offer]:
    """Yield the runs with an action."""
    for run in overview.runs:
        description = f"{run.path.name} ({run.manifest.task} {run.manifest.split} {run.recipe})"
        yield Offer(f"{verb} {description}", lambda run=run: act(run), "run")  # type: ignore[misc]


class PaletteTargets:
    """The tasks and runs for the palette of a search screen."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._settings = settings
        self._folder = folder
        self._opener: Opener | None = None

    def offers(self, screen: KeyScreen) -> Iterator[Offer]:
        if self._opener is None:
            self._opener = Opener(screen, self._settings, screen.call_later)
        overview = look(self._settings, self._folder)
        yield from task_offers(overview, self._opener.search)
        yield from run_offers(overview, "judge", self._opener.judge)

    def close(self) -> None:
        if self._opener is not None:
            self._opener.close()
