"""The command line: one module per group of commands, each a thin layer over `searchapp.app`.

commands             declaration of commands, and shared options
judgment_options     options on judgments, annotators and gold
complete             completion by the Tab key
output, tables       printing
experiment_tables    comparisons, benches, ablations and learning curves as tables
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from searchapp.cli.commands import RootGroup, declared, take_options
from searchapp.cli.output import COMPLETION_VARIABLE, complain, show, take_over
from searchapp.options import flag
from searchapp.text import suggestion

app = typer.Typer(
    name="searchapp",
    cls=RootGroup,
    help="Ranked retrieval in the terminal: index, search, rank, judge and score shared tasks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from searchapp import __version__

        show(f"searchapp {__version__}")
        raise typer.Exit


def _globals(*, context: typer.Context, version: bool, **flags: object) -> None:  # noqa: ARG001  # its callback acts
    context.obj = flags


_VERSION = flag("Print the version.", callback=_print_version, is_eager=True)
take_options(_globals, [declared("version", bool, _VERSION)])
app.callback()(_globals)


def main() -> None:
    """Run the typed command line, and exit with its code."""
    _prepare_streams()
    take_over()
    # NumPy's BLAS is not used, but would start a thread with much memory for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with _interruptible():
            code = _complete() if COMPLETION_VARIABLE in os.environ else run()
    except KeyboardInterrupt:  # outside of Typer, or a second one
        complain("interrupted")
        code = 130
    sys.exit(code)


def _complete() -> int:
    from searchapp.cli.complete import offer

    return offer(run)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise exceptions during a command, so that it removes partial files.

    A signal that the parent process ignores stays ignored. Restores the previous handlers.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        if before[signal.SIGINT] != signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if before[signal.SIGTERM] != signal.SIG_IGN:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default the typed one, and return the exit code."""
    try:
        code: int = app(arguments, prog_name="searchapp", standalone_mode=False) or 0
    except typer.Abort:
        code = 130
    except Exception as error:
        # Typer's usage errors, whose class depends on its version.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]  # prints the help
        else:
            path = "searchapp" if context is None else context.command_path
            message = _renamed_option(error, context) or _clause(error.format_message())
            complain(f"{message}: see `{path} --help`")
        return 2
    if code == 130:  # Typer's code for Ctrl-C
        complain("interrupted")
    return code


# Options by their names before 0.3.0, which are not similar to the present ones.
RENAMED_OPTIONS: Mapping[str, str] = {
    "--alone": "--judgments-only",
    "--anyway": "--force",
    "--examples": "--training-split",
    "--into": "--out",
    "--jobs": "--workers",
    "--log": "--trials-dir",
    "--nearest": "--cutoff",
    "--noted": "--with-notes",
    "--on-reported": "--allow-reported",
    "--open": "--document",
    "--over": "--param",
    "--per-topic": "--annotators-per-topic",
    "--rule": "--aggregation",
    "--see-others": "--show-others",
    "--solved-from": "--success-threshold",
    "--to": "--quota",
    "--unjudged": "--test-topics",
    "--unseen": "--held-out",
    "--why": "--explain-document",
    "--worst": "--disputed",
}


def _renamed_option(error: Exception, context: Any) -> str | None:
    """The message about an unknown option that has a new name; None for another error."""
    option = getattr(error, "option_name", None)
    new = None if context is None else RENAMED_OPTIONS.get(str(option))
    if new is None or all(new not in param.opts for param in context.command.params):
        return None
    return f"no such option: {option} (did you mean {new}?)"


def _clause(message: str) -> str:
    """Rewrite an error of Typer as a clause, with suggestions as in other messages."""
    words = " ".join(message.split()).rstrip(".").replace("Value error, ", "")
    words = words.replace(": Input should ", ": it should ")
    words = re.sub(r"\. Did you mean '([^']*)'.*", r" (did you mean \1?)", words)
    words = re.sub(r"\(Possible options: ([^,)]*).*\)", r"(did you mean \1?)", words)
    if choice := re.fullmatch(r"(.*'(.*)') is not one of (.*)", words):
        known = re.findall(r"'([^']*)'", choice[3])
        words = f"{choice[1]}{suggestion(choice[2], known)} is not one of {choice[3]}"
    return f"{words[:1].lower()}{words[1:]}"


def _prepare_streams() -> None:
    """Escape characters that a stream cannot encode, and replace closed streams."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115  # until the process ends
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
