"""Progress bars on stderr; none when it is no terminal or when quiet was asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from searchapp.progress import Advance, Progress, Silent
from searchapp.settings import Settings


def for_person(settings: Settings) -> Progress:
    """Bars if somebody is there to see them."""
    return Silent() if settings.quiet or not sys.stderr.isatty() else Bars()


class Bars:
    """A `Progress` that draws one bar a stage."""

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        from rich import progress
        from rich.text import Text

        from searchapp.cli.output import stderr_console

        class _Rate(progress.ProgressColumn):
            """How many items are done in a second, as the time left is reckoned from."""

            def render(self, task: progress.Task) -> Text:
                speed = task.finished_speed or task.speed
                slow = speed is None or speed < 1  # of some items an hour the time left says more
                return Text("" if slow else f"{speed:,.0f}/s", style="progress.data.speed")

        columns = [
            progress.TextColumn("{task.description:>18}", markup=False),  # it may name an index
            progress.BarColumn(),
            *(
                [progress.DownloadColumn(), progress.TransferSpeedColumn()]
                if in_bytes
                else [progress.MofNCompleteColumn(), _Rate()]
            ),
            progress.TimeRemainingColumn(elapsed_when_finished=True),
        ]
        with progress.Progress(*columns, console=stderr_console(), transient=True) as bars:
            bar = bars.add_task(label, total=total)
            yield lambda done: bars.advance(bar, done)
