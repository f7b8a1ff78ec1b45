"""The two lists of the home screen: tasks and runs, one a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from searchapp.app.known_runs import KnownRun
from searchapp.app.overview import TaskState
from searchapp.tui.rows import Part, Rows, fitted

NAME_SHARE = 0.5
"""The share of a line that a name may take."""

COUNT_CELLS = 11
JUDGED_CELLS = 14
FIGURE_CELLS = 9
WHEN_CELLS = 10
NARROW_CELLS = 44
"""A narrower list leaves out what is in the details too."""


class TaskRows(Rows):
    """The tasks: what is indexed of each, and how many judgments there are."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done", "rows--rank"}

    def __init__(self) -> None:
        super().__init__(id="tasks")
        self.states: Sequence[TaskState] = ()

    @property
    def state(self) -> TaskState | None:
        """The task that the cursor is on."""
        return self.states[self.cursor] if self.states else None

    def list(self, states: Sequence[TaskState]) -> None:
        """Show tasks, the cursor where it was."""
        here = self.state
        self.states = states
        names = [one.task.reference for one in states]
        place = names.index(here.task.reference) if here and here.task.reference in names else self.cursor
        self.show(len(states), place)

    def parts(self, place: int, width: int) -> Sequence[Part]:
        one = self.states[place]
        is_narrow = width < NARROW_CELLS
        name_cells = width - 2 - COUNT_CELLS - (0 if is_narrow else JUDGED_CELLS)
        documents = "–" if one.index is None else f"{one.index.documents:,}"
        judged = f"{one.judged:,} judged" if one.judged else ""
        parts = [
            ("▶ " if place == self.cursor else "  ", "rows--begun"),
            (fitted(one.task.name, name_cells), "rows--text" if one.index else "rows--faint"),
            (f"{documents:>{COUNT_CELLS}}", "rows--done" if one.index else "rows--faint"),
        ]
        if not is_narrow:
            parts.append((f"{judged:>{JUDGED_CELLS}}", "rows--rank"))
        return parts


class RunRows(Rows):
    """The runs, the latest first, with their official figure as `figure` has it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done", "rows--rank"}

    def __init__(self, figure: Callable[[KnownRun], str]) -> None:
        super().__init__(id="runs")
        self.runs: Sequence[KnownRun] = ()
        self._figure = figure

    @property
    def run(self) -> KnownRun | None:
        """The run that the cursor is on."""
        return self.runs[self.cursor] if self.runs else None

    def list(self, runs: Sequence[KnownRun]) -> None:
        """Show runs, the cursor where it was."""
        here = self.run
        self.runs = runs
        paths = [one.path for one in runs]
        place = paths.index(here.path) if here is not None and here.path in paths else self.cursor
        self.show(len(runs), place)

    def parts(self, place: int, width: int) -> Sequence[Part]:
        one = self.runs[place]
        is_narrow = width < NARROW_CELLS
        left = width - 2 - FIGURE_CELLS - (0 if is_narrow else WHEN_CELLS + 2)
        name_cells = int(left * NAME_SHARE)
        parts = [
            ("▶ " if place == self.cursor else "  ", "rows--begun"),
            (fitted(one.path.name, name_cells - 1) + " ", "rows--text"),
            (
                fitted(f"{one.manifest.task} {one.manifest.split} {one.recipe}", left - name_cells),
                "rows--faint",
            ),
            (fitted(f"{self._figure(one):>{FIGURE_CELLS}}", FIGURE_CELLS), "rows--done"),
        ]
        if not is_narrow:
            parts.append((f"  {fitted(one.manifest.created[:WHEN_CELLS], WHEN_CELLS)}", "rows--rank"))
        return parts
