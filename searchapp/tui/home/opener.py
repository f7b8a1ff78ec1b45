"""Open other screens from the home screen or the palette of a search screen, and close their resources."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

from searchapp.app.compare import CompareRequest
from searchapp.app.doctor import Check, Verdict, examine
from searchapp.app.evaluate import GoldSource
from searchapp.app.inspection.topics import TopicsRequest
from searchapp.app.overview import Overview, TaskState, look
from searchapp.app.runs import KnownRun
from searchapp.app.saved_searches import SearchQuery
from searchapp.app.sessions import JudgingRequest
from searchapp.config.resolution import Resolution
from searchapp.config.settings import Settings
from searchapp.errors import DataError
from searchapp.judging.events import Author, Channel, annotator_name
from searchapp.judging.session import summary
from searchapp.model import Topic
from searchapp.progress import Notify, Progress, SilentProgress, TextProgress
from searchapp.tasks import load
from searchapp.tui.compare.screen import open_compare_screen
from searchapp.tui.config.screen import GRADES, ConfigScreen
from searchapp.tui.judge.screen import JudgeScreen, open_judge_screen
from searchapp.tui.kit.app import LEAVING_SECONDS
from searchapp.tui.kit.background import Post, in_background
from searchapp.tui.kit.content import Content
from searchapp.tui.kit.descriptions import session_summary
from searchapp.tui.kit.dialogs import ReportDialog
from searchapp.tui.kit.keys import load as load_keys
from searchapp.tui.kit.palette import Offer
from searchapp.tui.kit.screen import KeyScreen
from searchapp.tui.search.screen import SearchScreen, open_search_screen
from searchapp.tui.topics.screen import open_topics_screen

# Opens a screen with its progress; the functions receive warnings, and sentences about the work done.
Opening = Callable[[Progress, Notify, Notify], AbstractContextManager[KeyScreen]]

LOOKS = {Verdict.ok: "$success", Verdict.warning: "$warning", Verdict.failed: "bold $error"}


class Opener:
    """Opens screens above another one."""

    def __init__(self, home: KeyScreen, settings: Settings, post: Post) -> None:
        self._home = home
        self._settings = settings
        self._post = post
        # The resources of each screen.
        self._stacks: list[ExitStack] = []
        self._opening: threading.Thread | None = None
        self._is_opening = False
        # Threads that close resources.
        self._closing: list[threading.Thread] = []

    @property
    def is_idle(self) -> bool:
        return not self._is_opening

    def search(self, state: TaskState, query: SearchQuery | None = None, topic: Topic | None = None) -> None:
        data = None if state.has_files else state.files

        def opened(screen: KeyScreen) -> None:
            if topic is not None and isinstance(screen, SearchScreen):
                screen.call_after_refresh(screen.judging.begin_topic, topic)

        searched = query or SearchQuery()
        self._open(
            state.task.name,
            lambda progress, warn, _say: open_search_screen(
                state.task, searched, self._settings, progress, warn, data=data
            ),
            opened,
        )

    def judge(self, run: KnownRun) -> None:
        @contextmanager
        def opening(progress: Progress, warn: Notify, say: Notify) -> Iterator[JudgeScreen]:
            task = load(run.task)
            author = Author(annotator_name(self._settings.annotator), channel=Channel.interface)
            request = JudgingRequest(task, author, run.path, shared=self._settings.shared)
            with open_judge_screen(request, self._settings, progress, warn, say) as screen:
                yield screen
                for line in session_summary(summary(screen.judging), task.info.grades):
                    say(line)

        self._open(run.path.name, opening)

    def topics(self, run: KnownRun) -> None:
        self._open(
            run.path.name,
            lambda progress, warn, _say: open_topics_screen(
                load(run.task), TopicsRequest(run.path), None, self._settings, progress, warn
            ),
        )

    def compare(self, runs: Sequence[KnownRun], *, force: bool = False) -> None:
        """Open the compare screen; ask for confirmation if the runs' data differ."""

        def failed(error: Exception) -> None:
            if force or not isinstance(error, DataError):
                self._home.tell_error(error)
                return
            self._home.head.end_wait()
            self._home.ask(f"{error}. Compare them anyway?", lambda: self.compare(runs, force=True))

        gold = GoldSource(home=self._settings.home)
        request = CompareRequest(tuple(run.path for run in runs), gold, force=force)
        self._open(
            " and ".join(run.path.name for run in runs),
            lambda progress, warn, _say: open_compare_screen(request, self._settings, progress, warn),
            refused=failed,
        )

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
        if self._opening is not None:
            self._opening.join(LEAVING_SECONDS)
        for thread in self._closing:
            thread.join()
        for stack in self._stacks:
            stack.close()

    def _open(
        self,
        name: str,
        opening: Opening,
        begin: Callable[[KeyScreen], object] = lambda _screen: None,
        refused: Callable[[Exception], object] | None = None,
    ) -> None:
        if self._is_opening:
            return
        self._is_opening = True
        self._home.head.wait(f"opening {name} …")
        stack, closing = ExitStack(), tuple(self._closing)
        self._stacks.append(stack)
        warnings: list[str] = []
        farewell: list[str] = []

        def report(words: str) -> None:
            if self._is_opening:
                self._home.head.wait(f"opening {name}: {words}")

        def work() -> KeyScreen:
            for thread in closing:  # else the screen counts a closed one as another window
                thread.join()
            progress = TextProgress(lambda words: self._post(partial(report, words)))
            return stack.enter_context(opening(progress, warnings.append, farewell.append))

        def ready(screen: KeyScreen) -> None:
            if self._home.is_attached:
                # Only in front: else it would take keys typed on another screen.
                self._home.when_in_front(lambda: push(screen))
            else:
                stack.close()

        def push(screen: KeyScreen) -> None:
            self._is_opening = False
            self._home.head.end_wait()
            screen.after_removal = partial(self._close_screen, stack, farewell)
            self._home.app.push_screen(screen)
            begin(screen)
            if warnings:
                screen.call_after_refresh(screen.head.tell, "; ".join(warnings), "$warning")

        def failed(error: Exception) -> None:
            self._is_opening = False
            (refused or self._home.tell_error)(error)

        self._opening = in_background(f"open {name}", work, ready, failed, self._post)

    def _close_screen(self, stack: ExitStack, farewell: Sequence[str]) -> None:
        def closed(_nothing: None) -> None:
            if farewell:
                self._home.head.tell("; ".join(farewell))

        # Not in the app's thread: leaving a team waits for the last exchange.
        self._closing.append(in_background("close", stack.close, closed, self._home.tell_error, self._post))


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
