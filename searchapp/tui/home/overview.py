"""Looks at engine, tasks and runs in the background, again and again, and scores the runs one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from textual.timer import Timer

from searchapp.app.evaluate import Evaluation
from searchapp.app.overview import Files, Overview, TaskState, look, look_into
from searchapp.app.runs import Figure, FigureCache, KnownRun
from searchapp.config.settings import Settings
from searchapp.errors import SearchappError
from searchapp.tui.kit.background import Post, in_background
from searchapp.tui.kit.screen import KeyScreen

EVERY_SECONDS = 5.0
"""How often it is looked whether the engine answers, and what else has changed."""


class Watching:
    """What is known of engine, tasks and runs.

    Args:
        screen: the screen
        settings: say where everything is
        folder: where runs are looked for too
        post: has answers taken in, in the thread of the screen
        show_overview: shows what was found when everything was looked at
        show_figures: shows that more is known of a run, or of the files of a task
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
        self._known: dict[tuple[Path, str], Figure | str] = {}
        """The figure of each run by its path and digest, or why there is none."""
        self._files: dict[tuple[str, Path, str], Files | None] = {}
        self._is_looking = self._is_scoring = self._is_closed = False
        self._asked_for = 0
        """Runs that are scored because somebody asked for it."""
        self._again: Timer | None = None
        self._is_outdated = False
        """Whether something may have changed since it was begun to look."""

    @property
    def is_idle(self) -> bool:
        """Whether everything was looked at, and each run is scored."""
        is_scoring = self._is_scoring or self._asked_for > 0
        is_busy = self._is_looking or is_scoring or None in self._files.values()
        return self.overview is not None and not is_busy

    def begin(self) -> None:
        """Look for the first time."""
        self.look()

    def resume(self) -> None:
        """Look again, now that the screen is seen again."""
        if self.overview is not None:
            self.look()

    def close(self) -> None:
        """Begin nothing any more."""
        self._is_closed = True

    def look(self) -> None:
        """Look at everything, or again once that is done if it is being done."""
        self._is_outdated = self._is_looking
        if self._is_looking or self._is_closed:
            return
        if self._again is not None:
            self._again.stop()
        self._is_looking = True
        in_background(
            "look around",
            lambda: look(self._settings, self._folder),
            self._looked,
            self._failed,
            self._post,
        )

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
            self._again = self._screen.set_timer(EVERY_SECONDS, self._look_if_seen)

    def _look_if_seen(self) -> None:
        if self._screen.is_current:
            self.look()
        else:
            self._plan()

    # What is in the files

    def files(self, state: TaskState) -> Files | None:
        """What is in the files of a task; None until they are read, after which the screen is told."""
        folder = state.files
        if folder is None:
            return None
        index = state.index.digest if state.index is not None else ""
        key = state.task.reference, folder, index  # read again once they were indexed anew
        if key not in self._files:
            self._files[key] = None

            def read(found: Files) -> None:
                self._files[key] = found
                self._show_figures()

            in_background(
                "count topics",
                lambda: look_into(state.task, folder),
                read,
                self._screen.tell_error,
                self._post,
            )
        return self._files[key]

    # Figures

    def figure(self, run: KnownRun) -> str:
        """The official figure of a run in a few characters; nothing where it is not known."""
        known = self._known.get(_key(run))
        return f"{known.value:.4f}" if isinstance(known, Figure) else "–" if known is not None else "…"

    def figure_words(self, run: KnownRun) -> str:
        """The official figure of a run, or why there is none; nothing where it is not known yet."""
        known = self._known.get(_key(run))
        return f"{known.measure} {known.value:.6f}" if isinstance(known, Figure) else known or ""

    def evaluate(self, run: KnownRun, then: Callable[[Evaluation], object]) -> None:
        """Score a run now; its figures go to `then`."""

        self._asked_for += 1

        def scored(found: Evaluation) -> None:
            self._asked_for -= 1
            self._keep(run, found)
            then(found)

        def failed(error: Exception) -> None:
            self._asked_for -= 1
            self._screen.tell_error(error)

        in_background(
            "score a run",
            lambda: self._figures.evaluated(run),
            scored,
            failed,
            self._post,
        )

    def _score_next(self) -> None:
        """Score the latest run whose figure is not known, and then the next one."""
        if self._is_scoring or self._is_closed or self.overview is None:
            return
        run = next((one for one in self.overview.runs if _key(one) not in self._known), None)
        if run is None:
            return
        self._is_scoring = True

        def work() -> Figure | Evaluation:
            known = self._figures.known(run)
            return self._figures.evaluated(run) if known is None else known

        def scored(found: Figure | Evaluation) -> None:
            self._is_scoring = False
            if isinstance(found, Figure):
                self._known[_key(run)] = found
                self._show_figures()
            else:
                self._keep(run, found)
            self._score_next()

        def failed(error: Exception) -> None:
            self._is_scoring = False
            is_ours = isinstance(error, SearchappError | OSError)
            self._known[_key(run)] = str(error) if is_ours else f"{type(error).__name__}: {error}"
            self._show_figures()
            self._score_next()

        in_background("score runs", work, scored, failed, self._post)

    def _keep(self, run: KnownRun, found: Evaluation) -> None:
        official = found.official
        value = official.values.get(official.measure)
        self._known[_key(run)] = "there is none" if value is None else Figure(official.measure, value)
        self._show_figures()


def _key(run: KnownRun) -> tuple[Path, str]:
    return run.path, run.manifest.digest
