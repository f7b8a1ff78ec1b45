"""Puts screens on the one that asks for them, and lets go of what they hold open when they are left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from textual.app import App

from searchapp.app.doctor import Check, Verdict, examine
from searchapp.app.known_runs import KnownRun
from searchapp.app.overview import TaskState
from searchapp.config.sources import Resolution
from searchapp.errors import DataError, SearchappError
from searchapp.model import Topic
from searchapp.progress import Silent
from searchapp.settings import Settings
from searchapp.tui.background import Post, in_background
from searchapp.tui.config.app import GRADES
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.content import Content
from searchapp.tui.head import Banner
from searchapp.tui.home.report import Report
from searchapp.tui.keys import load as load_keys
from searchapp.tui.opening import (
    Prepared,
    prepare_compare,
    prepare_judging,
    prepare_search,
    prepare_topics,
)
from searchapp.tui.screen import KeyScreen
from searchapp.tui.search.screen import SearchScreen
from searchapp.tui.search.searching import Sought

LOOKS = {Verdict.ok: "$success", Verdict.warning: "$warning", Verdict.failed: "bold $error"}


class Below(Protocol):
    """The screen that others are put on."""

    @property
    def app(self) -> App[object]:
        """The app."""

    @property
    def head(self) -> Banner:
        """The first line."""

    @property
    def is_attached(self) -> bool:
        """Whether it is still there."""

    def tell_error(self, error: Exception) -> None:
        """Say that something has failed."""

    def ask(self, question: str, yes: Callable[[], object]) -> None:
        """Ask whether to do something."""

    def when_in_front(self, do: Callable[[], object]) -> None:
        """Do something now, or as soon as nothing stands on the screen any more."""


class Opener:
    """Opens screens on another one, the home screen mostly; `post` has things done in its thread."""

    def __init__(self, home: Below, settings: Settings, post: Post) -> None:
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
                screen.call_after_refresh(screen.grading.begin_topic, topic)

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

    def _on_run(
        self, run: KnownRun, prepare: Callable[[Settings, KnownRun, Callable[[str], object]], Prepared]
    ) -> None:
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
        report = Report("Can searchapp work here?")
        self._home.app.push_screen(report)

        def show(check: Check) -> None:
            verdict = (f"{check.verdict:<8} ", LOOKS[check.verdict])
            report.add(Content.assemble(verdict, (f"{check.name}: ", "bold"), check.finding))

        def work() -> None:
            for check in examine(self._settings, Silent()):
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
