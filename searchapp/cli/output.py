"""Print results on stdout; messages, warnings and progress bars on stderr. Makes all text harmless."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from searchapp.config.settings import Settings, without_passwords
from searchapp.errors import InvalidFiles, UsageError
from searchapp.files import replace_nonfinite
from searchapp.progress import Advance, Progress, SilentProgress
from searchapp.text import escaped, visible

if TYPE_CHECKING:
    import logging
    from types import TracebackType

    from rich.console import Console as Console


# The variable for Textual's driver, if the screen is not a terminal.
DRIVER = "TEXTUAL_DRIVER"
IN_BROWSER = "searchapp.tui.kit.browser:BrowserDriver"
# The variable with which a shell requests completions.
COMPLETION_VARIABLE = "_SEARCHAPP_COMPLETE"


def has_screen() -> bool:
    """Return whether a terminal or browser can show a screen."""
    return bool(os.environ.get(DRIVER)) or (sys.stdin.isatty() and sys.stdout.isatty())


def can_move_cursor() -> bool:
    """Return whether screens can be drawn on the terminal; assume it of terminals that the system does not know."""
    name = os.environ.get("TERM")
    if os.environ.get(DRIVER) or not name:
        return True
    with suppress(ImportError):  # some systems lack it
        import curses

        with suppress(curses.error):  # the name is not in the database of terminals
            curses.setupterm(name, 1)  # only the first call in a process has an effect
            return curses.tigetstr("cup") is not None
    return name not in ("dumb", "unknown")


def require_screen(name: str, alternative: str) -> None:
    """Check that a screen can be shown; `alternative` says how to go on without it.

    Raises:
        UsageError: there is no terminal, or it can't move its cursor.
    """
    if not has_screen():
        raise UsageError(f"the {name} screen needs a terminal: {alternative}")
    if not can_move_cursor():
        terminal = os.environ["TERM"]
        raise UsageError(
            f"the {name} screen needs a terminal that can move its cursor, which TERM={terminal} can't: {alternative}"
        )


def say(settings: Settings, message: str) -> None:
    """Print a message on stderr, except with --quiet."""
    if not settings.quiet:
        remark(message)


def remark(message: str) -> None:
    """Print a message on stderr, even with --quiet."""
    _print_error(_one_line(message))


# The warnings of the running command, a list for each command in a command; None if they are printed at once.
_held_warnings: list[list[str] | None] = [None]


def warn(*lines: str) -> None:
    """Print a warning on stderr, after the output of the running command."""
    text = "\n".join(map(_one_line, (f"warning: {lines[0]}", *lines[1:])))
    held = _held_warnings[-1]
    if held is None:
        _print_error(text)
    else:
        held.append(text)


@contextmanager
def warnings_last() -> Iterator[None]:
    """Print warnings at the end, where output does not scroll them away."""
    _held_warnings.append([])
    try:
        yield
        sys.stdout.flush()
    finally:
        warn_at_once()
        _held_warnings.pop()


def warn_at_once() -> None:
    """Print the warnings so far, and later ones at once: before a question or a long wait."""
    for text in _held_warnings[-1] or ():
        _print_error(text)
    _held_warnings[-1] = None


def warn_all(warnings: Iterable[str]) -> None:
    """Print a line for each warning on stderr."""
    for warning in warnings:
        warn(warning)


def complain(*lines: str) -> None:
    """Print an error on stderr."""
    _print_error("\n".join(map(_one_line, (f"searchapp: {lines[0]}", *lines[1:]))))


def _one_line(text: str) -> str:
    # The rest of a name with a line end could look like another message.
    return text.replace("\n", "␊")


def report_traceback() -> None:
    """Print the traceback of the current error on stderr."""
    import traceback

    _print_error(traceback.format_exc().rstrip("\n"))


def report_requests(is_verbose: bool) -> None:
    """Switch the lines on stderr for requests and embedded searches on or off."""
    import logging

    requests = logging.getLogger("searchapp.requests")
    requests.handlers = [_remark_handler()] if is_verbose else []
    requests.setLevel(logging.INFO if is_verbose else logging.NOTSET)


def report_logs() -> None:
    """Print warnings and errors that libraries log on stderr."""
    import logging

    logging.getLogger().handlers = [_remark_handler()]


def _remark_handler() -> logging.Handler:
    import logging

    class RemarkHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            remark(record.getMessage())
            if record.exc_info:
                _print_error(logging.Formatter().formatException(record.exc_info))

    return RemarkHandler()


def take_over() -> None:
    """Route Python's own uncaught errors and warnings through this module."""
    import threading
    import warnings

    def uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        import traceback

        _print_error("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"))

    def in_thread(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_type is not SystemExit:  # it ends a thread silently
            uncaught(failed.exc_type, failed.exc_value, failed.exc_traceback)

    def shown(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,  # noqa: ARG001  # Python's own signature
        line: str | None = None,
    ) -> None:
        _print_error(warnings.formatwarning(message, category, filename, lineno, line).rstrip("\n"))

    sys.excepthook = uncaught
    threading.excepthook = in_thread
    sys.unraisablehook = lambda failed: uncaught(failed.exc_type, failed.exc_value, failed.exc_traceback)
    warnings.showwarning = shown


def ask(question: str) -> str:
    """Ask on stderr, and return the typed line; empty at the end of the input."""
    warn_at_once()
    _print_error(question, end="")
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        _print_error("")
    return answer.strip()


def show(text: str) -> None:
    """Print a result on stdout."""
    print(visible(text))


def warn_of_skipped(*skipped: InvalidFiles | None) -> None:
    """Report the entries that `--lenient` skipped."""
    for problems in skipped:
        if problems is not None:
            warn(f"left out: {problems.lines[0]}", *problems.lines[1:])


def warn_of_notes(notes: InvalidFiles | None) -> None:
    """Report oddities of files and their interpretation."""
    if notes is not None:
        warn(f"unusual, but not an error: {notes.lines[0]}", *notes.lines[1:])


def print_json(value: Any) -> None:
    """Print one JSON document on stdout; NaN becomes the text "nan".

    Escapes control and invisible characters, and all but ASCII if stdout is not UTF.
    """
    # Python's own escapes, as under PYTHONIOENCODING=latin-1, are not JSON's.
    is_utf = (sys.stdout.encoding or "utf-8").casefold().startswith("utf")
    text = json.dumps(replace_nonfinite(value, "nan"), indent=2, ensure_ascii=not is_utf, allow_nan=False)
    sys.stdout.write(f"{escaped(text)}\n")


def stdout_console() -> Console:
    """Return a console for results, without markup; in a pipe it neither wraps nor cuts lines."""
    return _console(width=None if sys.stdout.isatty() else 100_000)


def stderr_console() -> Console:
    """Return a console for all other output."""
    return _console(stderr=True, width=None if sys.stderr.isatty() else 100_000)


def _console(**options: Any) -> Console:
    from searchapp.console import HarmlessConsole

    return HarmlessConsole(**options)


def _print_error(message: str, end: str = "\n") -> None:
    print(visible(without_passwords(message)), end=end, file=sys.stderr, flush=True)


# Narrower bars are useless.
LEAST_BAR = 4


def for_person(settings: Settings) -> Progress:
    """Return progress bars, if stderr is a terminal and without --quiet."""
    return SilentProgress() if settings.quiet or not sys.stderr.isatty() else Bars()


class Bars:
    """Shows a progress bar for each stage."""

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        from rich import progress
        from rich.table import Column, Table
        from rich.text import Text

        class _Rate(progress.ProgressColumn):
            """Items per second, which the time left is computed from."""

            def render(self, task: progress.Task) -> Text:
                speed = task.finished_speed or task.speed
                slow = speed is None or speed < 1  # then the remaining time is more useful
                return Text("" if slow else f"{speed:,.0f}/s", style="progress.data.speed")

        of_label = progress.TextColumn(
            "{task.description:>18}", markup=False, table_column=Column(overflow="fold")
        )
        of_bar = progress.BarColumn()
        done = progress.DownloadColumn() if in_bytes else progress.MofNCompleteColumn()
        rate = progress.TransferSpeedColumn() if in_bytes else _Rate()
        left = progress.TimeRemainingColumn(elapsed_when_finished=True)
        columns: list[progress.ProgressColumn] = [of_label, of_bar, done, rate, left]
        by_weight: list[progress.ProgressColumn] = [of_label, done, of_bar, left, rate]
        console = stderr_console()

        class _Fitting(progress.Progress):
            """Drops the columns that do not fit, and folds a label that is too wide alone."""

            def make_tasks_table(self, tasks: Iterable[progress.Task]) -> Table:
                room = console.width + 1
                fitting: list[progress.ProgressColumn] = []
                for task in tasks:  # at most one
                    for column in by_weight:
                        cell = column(task)
                        room -= 1 + (cell.cell_len if isinstance(cell, Text) else LEAST_BAR)
                        if room < 0 and fitting:
                            break
                        fitting.append(column)
                self.columns = tuple(column for column in columns if column in fitting)
                table = super().make_tasks_table(tasks)
                for shown, drawn in zip(self.columns, table.columns, strict=True):
                    drawn.no_wrap = len(fitting) > 1 and shown is not of_bar
                return table

        with _Fitting(*columns, console=console, transient=True) as bars:
            bar = bars.add_task(label, total=total)
            yield lambda done: bars.advance(bar, done)
