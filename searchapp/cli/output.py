"""Everything that a command prints: results on stdout; messages, warnings and progress bars on stderr.

All text passes through here and is made harmless. There are no progress bars with --quiet or where stderr is
no terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from searchapp.config.settings import Settings, without_passwords
from searchapp.errors import InvalidFiles
from searchapp.files import replace_nonfinite
from searchapp.progress import Advance, Progress, SilentProgress
from searchapp.text import escaped, visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from rich.console import Console as Console


DRIVER = "TEXTUAL_DRIVER"
"""The variable that names what draws a screen, where that is no terminal."""
IN_BROWSER = "searchapp.tui.kit.browser:BrowserDriver"


def has_screen() -> bool:
    """Whether there is a person in front of a screen that keys come from."""
    return bool(os.environ.get(DRIVER)) or (sys.stdin.isatty() and sys.stdout.isatty())


def say(settings: Settings, message: str) -> None:
    """Tell the person something on stderr, unless they asked for quiet."""
    if not settings.quiet:
        remark(message)


def remark(message: str) -> None:
    """Tell the person something on stderr, also if they asked for quiet."""
    _to_person(_one_line(message))


def warn(*lines: str) -> None:
    """Tell the person something that they should not miss, on stderr."""
    _begun("warning: ", lines)


def complain(*lines: str) -> None:
    """Tell the person why the program ends, on stderr."""
    _begun("searchapp: ", lines)


def _begun(beginning: str, lines: Sequence[str]) -> None:
    _to_person("\n".join(_one_line(line) for line in (beginning + lines[0], *lines[1:])))


def _one_line(text: str) -> str:
    """A line in which nothing ends it: what follows in a name could pretend to be a line of the program."""
    return text.replace("\n", "␊")


def report_traceback() -> None:
    """Print the traceback of the error that is being handled, on stderr."""
    import traceback

    _to_person(traceback.format_exc().rstrip("\n"))


def report_requests(wanted: bool) -> None:
    """From here on, print a line on stderr for each request to a server or search of an embedded index, or none."""
    import logging

    class ToPerson(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            remark(record.getMessage())

    requests = logging.getLogger("searchapp.requests")
    requests.handlers = [ToPerson()] if wanted else []
    requests.setLevel(logging.INFO if wanted else logging.NOTSET)


def take_over() -> None:
    """Let all that Python prints by itself come through here: errors that nobody caught, warnings."""
    import threading
    import warnings

    def uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        import traceback

        _to_person("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"))

    def in_thread(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_type is not SystemExit:  # which ends a thread in silence
            uncaught(failed.exc_type, failed.exc_value, failed.exc_traceback)

    def shown(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,  # noqa: ARG001  # Python's own signature
        line: str | None = None,
    ) -> None:
        _to_person(warnings.formatwarning(message, category, filename, lineno, line).rstrip("\n"))

    sys.excepthook = uncaught
    threading.excepthook = in_thread
    sys.unraisablehook = lambda failed: uncaught(failed.exc_type, failed.exc_value, failed.exc_traceback)
    warnings.showwarning = shown


def ask(question: str) -> str:
    """Ask on stderr, and return the line that is typed; nothing at the end of the input."""
    _to_person(question, end="")
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        _to_person("")
    return answer.strip()


def show(text: str) -> None:
    """Print a result on stdout."""
    print(visible(text))


def warn_of_skipped(problems: InvalidFiles | None) -> None:
    """Report what `--lenient` has left out."""
    if problems is not None:
        warn(f"left out: {problems.lines[0]}", *problems.lines[1:])


def warn_of_notes(notes: InvalidFiles | None) -> None:
    """Report what is odd about files, and what was made of it."""
    if notes is not None:
        warn(f"unusual, but not an error: {notes.lines[0]}", *notes.lines[1:])


def print_json(value: Any) -> None:
    """One JSON document on stdout; a figure that is not a number is the text "nan", which JSON can hold.

    Characters that could act on a terminal, or that nobody would see, are written as escapes; so are all but those of
    ASCII where stdout can't hold every one, as under PYTHONIOENCODING=latin-1: Python's own escapes are not JSON's.
    """
    holds_all = (sys.stdout.encoding or "utf-8").casefold().startswith("utf")
    text = json.dumps(replace_nonfinite(value, "nan"), indent=2, ensure_ascii=not holds_all, allow_nan=False)
    sys.stdout.write(f"{escaped(text)}\n")


def stdout_console() -> Console:
    """A console for results: nothing in them is markup, and into a pipe no line is wrapped or cut."""
    return _console(width=None if sys.stdout.isatty() else 100_000)


def stderr_console() -> Console:
    """The same for what is no result."""
    return _console(stderr=True, width=None if sys.stderr.isatty() else 100_000)


def _console(**options: Any) -> Console:
    from searchapp.console import HarmlessConsole

    return HarmlessConsole(**options)


def _to_person(message: str, end: str = "\n") -> None:
    print(visible(without_passwords(message)), end=end, file=sys.stderr, flush=True)


LEAST_BAR = 4
"""Columns of the terminal below which a bar says nothing."""


def for_person(settings: Settings) -> Progress:
    """Bars if somebody is there to see them."""
    return SilentProgress() if settings.quiet or not sys.stderr.isatty() else Bars()


class Bars:
    """A `Progress` that draws one bar a stage."""

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        from rich import progress
        from rich.table import Column, Table
        from rich.text import Text

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
