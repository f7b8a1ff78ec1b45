"""Monitor engine, tasks and runs in the background, and score the runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from textual.timer import Timer

from searchapp.app.evaluate import Evaluation
from searchapp.app.overview import Files, Overview, TaskState, look, look_into
from searchapp.app.runs import Figure, FigureCache, KnownRun
from searchapp.config.settings import Settings
from searchapp.tui.kit.background import Post, in_background
from searchapp.tui.kit.descriptions import error_text
from searchapp.tui.kit.screen import KeyScreen

# The interval of monitoring.
EVERY_SECONDS = 5.0


class OverviewMonitor:
    """The present state of engine, tasks and runs.

    Args:
        screen: has timers and shows errors
        settings: all settings
        folder: a further folder with runs
        post: calls a function in the screen's thread
        show_overview: shows the state
        show_figures: called for new figures of a run or topics of a task
    """

    def __init__(
        self,
        screen: KeyScreen,
        settings: Settings,
        folder: Path,
        post: Post,
        show_overview: Callable[[Overview], object],
        show_figures: Callable[[], object],
    ) -> None:
        self.overview: Overview | None = None
        self._screen = screen
        self._show_overview = show_overview
        self._show_figures = show_figures
        self._settings = settings
        self._folder = folder
        self._post = post
        self._figures = FigureCache(settings.home)
        # By path and digest: the figure of a run, or the reason without one.
        self._known: dict[tuple[Path, str], Figure | str] = {}
        self._files: dict[tuple[str, Path, str], Files | None] = {}
        self._is_looking = self._is_scoring = self._is_closed = False
        # Number of runs that are being scored on request.
        self._requested = 0
        self._timer: Timer | None = None
        # Something may have changed since the running refresh began.
        self._is_outdated = False

    @property
    def is_idle(self) -> bool:
        is_scoring = self._is_scoring or self._requested > 0
        is_busy = self._is_looking or is_scoring or None in self._files.values()
        return self.overview is not None and not is_busy

    def resume(self) -> None:
        if self.overview is not None:
            self.look()

    def close(self) -> None:
        self._is_closed = True

    def look(self) -> None:
        """Refresh the state; if a refresh is running, once more afterwards."""
        self._is_outdated = self._is_looking
        if self._is_looking or self._is_closed:
            return
        if self._timer is not None:
            self._timer.stop()
        self._is_looking = True
        work = lambda: look(self._settings, self._folder)  # noqa: E731  # looked up when it is called
        in_background("look around", work, self._looked, self._failed, self._post)

    def look_again(self) -> None:
        self._files.clear()
        self.look()

    def _looked(self, overview: Overview) -> None:
        self._is_looking = False
        self.overview = overview
        self._show_overview(overview)
        self._score_next()
        self._plan()

    def _failed(self, error: Exception) -> None:
        self._is_looking = False
        self._screen.tell_error(error)
        self._plan()

    def _plan(self) -> None:
        if self._is_outdated:
            self.look()
        elif not self._is_closed:
            self._timer = self._screen.set_timer(EVERY_SECONDS, self._look_if_seen)

    def _look_if_seen(self) -> None:
        if self._screen.is_current:
            self.look()
        else:
            self._plan()

    def files(self, state: TaskState) -> Files | None:
        folder = state.files
        if folder is None:
            return None
        index = state.index.digest if state.index is not None else ""
        key = state.task.reference, folder, index  # read again after indexing
        if key not in self._files:
            self._files[key] = None

            def read(content: Files) -> None:
                self._files[key] = content
                self._show_figures()

            work = partial(look_into, state.task, folder)
            in_background("count topics", work, read, self._screen.tell_error, self._post)
        return self._files[key]

    # Figures

    def figure(self, run: KnownRun) -> str:
        known = self._known.get(_key(run))
        return f"{known.value:.4f}" if isinstance(known, Figure) else "–" if known is not None else "…"

    def figure_words(self, run: KnownRun) -> str:
        """Return the official figure of a run, or the reason without one; empty until it is known."""
        known = self._known.get(_key(run))
        return f"{known.measure} {known.value:.6f}" if isinstance(known, Figure) else known or ""

    def evaluate(self, run: KnownRun, then: Callable[[Evaluation], object]) -> None:
        self._requested += 1

        def scored(evaluation: Evaluation) -> None:
            self._requested -= 1
            self._record(run, evaluation)
            then(evaluation)

        def failed(error: Exception) -> None:
            self._requested -= 1
            self._screen.tell_error(error)

        in_background("score a run", partial(self._figures.evaluated, run), scored, failed, self._post)

    def _score_next(self) -> None:
        if self._is_scoring or self._is_closed or self.overview is None:
            return
        run = next((run for run in self.overview.runs if _key(run) not in self._known), None)
        if run is None:
            return
        self._is_scoring = True

        def work() -> Figure | Evaluation:
            known = self._figures.known(run)
            return self._figures.evaluated(run) if known is None else known

        def scored(result: Figure | Evaluation) -> None:
            self._is_scoring = False
            self._record(run, result)
            self._score_next()

        def failed(error: Exception) -> None:
            self._is_scoring = False
            self._known[_key(run)] = error_text(error)
            self._show_figures()
            self._score_next()

        in_background("score runs", work, scored, failed, self._post)

    def _record(self, run: KnownRun, result: Figure | Evaluation) -> None:
        if isinstance(result, Figure):
            self._known[_key(run)] = result
        else:
            official = result.official
            value = official.values.get(official.measure)
            self._known[_key(run)] = "no official score" if value is None else Figure(official.measure, value)
        self._show_figures()


def _key(run: KnownRun) -> tuple[Path, str]:
    return run.path, run.manifest.digest
