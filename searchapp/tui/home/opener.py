"""Opens the other screens, from the home screen or the palette of a search screen, and closes what they hold open.

Imports all screens: the search screen imports it when somebody opens its palette.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from searchapp.app.compare import CompareRequest
from searchapp.app.doctor import Check, Verdict, examine
from searchapp.app.evaluate import GoldSource
from searchapp.app.inspection.pages import LocalFirst, RunPages, require_topic
from searchapp.app.inspection.topic_comparison import open_comparing
from searchapp.app.inspection.topics import TopicsRequest, open_topics
from searchapp.app.overview import Overview, TaskState, look
from searchapp.app.runs import KnownRun
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
from searchapp.tui.compare.screen import CompareScreen, compare_screen
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
from searchapp.tui.search.requests import Sought
from searchapp.tui.search.screen import SearchScreen, opened_search
from searchapp.tui.topics.screen import TopicsScreen, topics_screen

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
        searcher = TaskSearcher.open(task, engine, SilentProgress(), settings.home, data)
        searcher.recipe(sought.recipe)

        def screen(held: ExitStack) -> SearchScreen:
            opened = opened_search(searcher, engine, sought, settings, own, held, data, settings.annotator)
            return SearchScreen(opened, own.keys)

        return Prepared(stack.pop_all(), screen)
    raise AssertionError("the context lets no error pass")


def prepare_judging(settings: Settings, run: KnownRun, warn: Notify) -> Prepared:
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
        source = LocalFirst(settings, SilentProgress(), warn, copy=settings.shared)
        documents = stack.enter_context(closing(source))
        run_pages = RunPages.open(task, documents, run.path, home=settings.home)
        require_topic(run_pages, run_pages.topics, None)
        for note in run_pages.notes:
            warn(note)
        synchronizer = _joined_team(settings, task.name, stack) if settings.shared else None

        def screen(held: ExitStack) -> JudgeScreen:
            # The log's database belongs to the thread that opens it.
            log = held.enter_context(JudgmentLog(settings.judgments, PATIENCE_SECONDS, warn))
            presence = held.enter_context(Presence(log.path, task.name, name))
            session = Session(log, task.name, Author(name, channel=Channel.interface))
            judging = judging_session(session, run_pages, run_pages.topics, usual_depth(run_pages))
            judging.session.synchronizer = synchronizer
            log.damage.report = judging.session.news.append
            prepared.farewell = lambda: session_summary(summary(judging), task.info.grades)
            title = f"{task.name} {run_pages.split or run.path.name} · {name}"
            return JudgeScreen(judging, run_pages, own.keys, None, title, presence)

        prepared = Prepared(stack.pop_all(), screen)
        return prepared
    raise AssertionError("the context lets no error pass")


def prepare_topics(settings: Settings, run: KnownRun, warn: Notify) -> Prepared:
    """Open what the screen of a run's topics needs, in whatever thread; `warn` is called with what people must know.

    Raises:
        as `open_topics` does.
        DataError: the keys in the user's file contradict each other.
    """
    request = TopicsRequest(run.path)
    with ExitStack() as stack:
        topics = open_topics(stack, load(run.task), request, settings, SilentProgress(), warn)
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
    settings: Settings, runs: Sequence[KnownRun], warn: Notify, *, anyway: bool = False
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
            SilentProgress(),
            warn,
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


LOOKS = {Verdict.ok: "$success", Verdict.warning: "$warning", Verdict.failed: "bold $error"}


class Opener:
    """Opens screens on another one, the home screen mostly; `post` has things done in its thread."""

    def __init__(self, home: KeyScreen, settings: Settings, post: Post) -> None:
        self._home = home
        self._settings = settings
        self._post = post
        self._opened: dict[KeyScreen, Prepared] = {}
        self._is_opening = False
        self._held_back: Prepared | None = None
        """What waits for the screen to be in front."""

    @property
    def is_idle(self) -> bool:
        """Whether no screen is being opened."""
        return not self._is_opening

    def search(self, state: TaskState, sought: Sought | None = None, topic: Topic | None = None) -> None:
        """Open the search screen on a task that is indexed."""
        data = None if state.has_files else state.files

        def opened(screen: KeyScreen) -> None:
            if topic is not None and isinstance(screen, SearchScreen):
                screen.call_after_refresh(screen.judging.begin_topic, topic)

        self._stand(
            state.task.name,
            lambda: prepare_search(self._settings, state.task, sought or Sought(), data),
            opened,
        )

    def judge(self, run: KnownRun) -> None:
        """Open the judging screen on a run."""
        self._on_run(run, prepare_judging)

    def topics(self, run: KnownRun) -> None:
        """Open the screen of a run's topics, beside their gold."""
        self._on_run(run, prepare_topics)

    def compare(self, runs: Sequence[KnownRun], *, anyway: bool = False) -> None:
        """Open the compare screen on two runs; where they can't be compared, ask whether to do so anyway."""
        warnings: list[str] = []

        def failed(error: Exception) -> None:
            if anyway or not isinstance(error, DataError):
                self._home.tell_error(error)
                return
            self._home.head.came()
            self._home.ask(f"{error}. Compare them anyway?", lambda: self.compare(runs, anyway=True))

        self._stand(
            " and ".join(run.path.name for run in runs),
            lambda: prepare_compare(self._settings, runs, warnings.append, anyway=anyway),
            lambda screen: self._warn(screen, warnings),
            failed,
        )

    def _on_run(self, run: KnownRun, prepare: Callable[[Settings, KnownRun, Notify], Prepared]) -> None:
        warnings: list[str] = []
        self._stand(
            run.path.name,
            lambda: prepare(self._settings, run, warnings.append),
            lambda screen: self._warn(screen, warnings),
        )

    def _warn(self, screen: KeyScreen, warnings: Sequence[str]) -> None:
        """Say on a screen that was opened what people must know."""
        if warnings:
            screen.call_after_refresh(screen.head.tell, "; ".join(warnings), "$warning")

    def settings(self, resolution: Resolution) -> None:
        """Open the screen with all settings."""
        own = load_keys(self._settings.of_user, GRADES)
        self._home.app.push_screen(ConfigScreen(resolution, own.keys))

    def doctor(self) -> None:
        """Show what the doctor finds, check by check."""
        report = ReportDialog("Can searchapp work here?")
        self._home.app.push_screen(report)

        def show(check: Check) -> None:
            verdict = (f"{check.verdict:<8} ", LOOKS[check.verdict])
            report.add(Content.assemble(verdict, (f"{check.name}: ", "bold"), check.finding))

        def work() -> None:
            for check in examine(self._settings, SilentProgress()):
                if report.is_left:
                    return
                self._post(partial(show, check))

        def done(_nothing: None) -> None:
            report.add(Content.styled("These were all checks.", "$faint"))

        in_background("doctor", work, done, self._home.tell_error, self._post)

    def close(self) -> None:
        """Let go of what screens hold open that were never left."""
        for prepared in self._opened.values():
            prepared.close()
        self._opened.clear()
        if self._held_back is not None:
            self._held_back.close()
            self._held_back = None

    def _stand(
        self,
        name: str,
        prepare: Callable[[], Prepared],
        opened: Callable[[KeyScreen], object],
        refused: Callable[[Exception], object] | None = None,
    ) -> None:
        """Put a screen on the home screen, once it is prepared; `refused` is told why it can't be, if it is given."""
        if self._is_opening:
            return
        self._is_opening = True
        self._home.head.wait(f"opening {name} …")

        def ready(prepared: Prepared) -> None:
            if not self._home.is_attached:
                prepared.close()
                return
            self._held_back = prepared
            self._home.when_in_front(lambda: stand(prepared))  # so that no key that somebody types goes there

        def stand(prepared: Prepared) -> None:
            self._is_opening, self._held_back = False, None
            try:
                screen = prepared.open()
            except (SearchappError, OSError) as error:
                self._home.tell_error(error)
                return
            self._home.head.came()
            self._opened[screen] = prepared
            self._home.app.push_screen(screen, lambda _result: self._left(screen))
            opened(screen)

        def failed(error: Exception) -> None:
            self._is_opening = False
            (refused or self._home.tell_error)(error)

        in_background(f"open {name}", prepare, ready, failed, self._post)

    def _left(self, screen: KeyScreen) -> None:
        said = self._opened.pop(screen).close()
        if said:
            self._home.head.tell("; ".join(said))


def task_offers(overview: Overview, search: Callable[[TaskState], object]) -> Iterator[Offer]:
    """The tasks that are indexed."""
    for state in overview.tasks:
        if state.index is not None:
            yield Offer(f"search {state.task.name}", lambda state=state: search(state), "task")  # type: ignore[misc]


def run_offers(overview: Overview, verb: str, act: Callable[[KnownRun], object]) -> Iterator[Offer]:
    """The runs, and what is done with them."""
    for run in overview.runs:
        what = f"{run.path.name} ({run.manifest.task} {run.manifest.split} {run.recipe})"
        yield Offer(f"{verb} {what}", lambda run=run: act(run), "run")  # type: ignore[misc]


class Elsewhere:
    """Where one can go from a search screen that stands alone; runs are looked for in `folder` too."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._settings = settings
        self._folder = folder
        self._opener: Opener | None = None

    def offers(self, screen: KeyScreen) -> Iterator[Offer]:
        """The tasks and the runs; looking for them takes a while."""
        if self._opener is None:
            self._opener = Opener(screen, self._settings, screen.call_later)
        overview = look(self._settings, self._folder)
        yield from task_offers(overview, self._opener.search)
        yield from run_offers(overview, "judge", self._opener.judge)

    def close(self) -> None:
        """Let go of what screens hold open that were never left."""
        if self._opener is not None:
            self._opener.close()
