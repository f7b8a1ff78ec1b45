"""Progress bars on stderr; none when it is no terminal or when quiet was asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from searchapp.engines.base import Advance
from searchapp.progress import Progress, Silent
from searchapp.settings import Settings


def for_person(settings: Settings) -> Progress:
    """Bars if somebody is there to see them."""
    return Silent() if settings.quiet or not sys.stderr.isatty() else Bars()


class Bars:
    """A `Progress` that draws one bar a stage."""

    @contextmanager
    def stage(self, label: str, total: int | None = None) -> Iterator[Advance]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = [
            TextColumn("{task.description:>18}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        ]
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            bar = bars.add_task(label, total=total)
            yield lambda done: bars.advance(bar, done)
