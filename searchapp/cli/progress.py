"""Progress bars on stderr; none when it is no terminal or when quiet was asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from searchapp.progress import Advance, Progress, Silent
from searchapp.settings import Settings

LEAST_BAR = 4
"""Columns of the terminal below which a bar says nothing."""


def for_person(settings: Settings) -> Progress:
    """Bars if somebody is there to see them."""
    return Silent() if settings.quiet or not sys.stderr.isatty() else Bars()


class Bars:
    """A `Progress` that draws one bar a stage."""

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        from rich import progress
        from rich.table import Column, Table
        from rich.text import Text

        from searchapp.cli.output import stderr_console

        class _Rate(progress.ProgressColumn):
            """How many items are done in a second, as the time left is reckoned from."""

            def render(self, task: progress.Task) -> Text:
                speed = task.finished_speed or task.speed
                slow = speed is None or speed < 1  # of some items an hour the time left says more
                return Text("" if slow else f"{speed:,.0f}/s", style="progress.data.speed")

        # It may name an index.
        of_label = progress.TextColumn(
            "{task.description:>18}", markup=False, table_column=Column(overflow="fold")
        )
        of_bar = progress.BarColumn()
        done = progress.DownloadColumn() if in_bytes else progress.MofNCompleteColumn()
        rate = progress.TransferSpeedColumn() if in_bytes else _Rate()
        left = progress.TimeRemainingColumn(elapsed_when_finished=True)
        columns: list[progress.ProgressColumn] = [of_label, of_bar, done, rate, left]
        weightiest: list[progress.ProgressColumn] = [of_label, done, of_bar, left, rate]
        console = stderr_console()

        class _Fitting(progress.Progress):
            """A line that leaves out what there is no room for; a label that is too wide by itself is folded."""

            def make_tasks_table(self, tasks: Iterable[progress.Task]) -> Table:
                room = console.width + 1
                kept: list[progress.ProgressColumn] = []
                for task in tasks:  # one, once it is there
                    for column in weightiest:
                        shown = column(task)
                        room -= 1 + (shown.cell_len if isinstance(shown, Text) else LEAST_BAR)
                        if room < 0 and kept:
                            break
                        kept.append(column)
                self.columns = tuple(column for column in columns if column in kept)
                table = super().make_tasks_table(tasks)
                for shown_as, drawn in zip(self.columns, table.columns, strict=True):
                    drawn.no_wrap = len(kept) > 1 and shown_as is not of_bar
                return table

        with _Fitting(*columns, console=console, transient=True) as bars:
            bar = bars.add_task(label, total=total)
            yield lambda done: bars.advance(bar, done)
