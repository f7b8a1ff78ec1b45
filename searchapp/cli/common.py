"""What the commands share: global options, error handling."""

from __future__ import annotations

import functools
import inspect
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from searchapp.cli import complete
from searchapp.cli.commands import Command
from searchapp.cli.output import complain, report_requests, report_traceback, warn
from searchapp.errors import DataError, SearchappError, is_lack_of_memory
from searchapp.files import reason
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.tasks.base import Task

_PANEL = "Global options"

EngineOption = Annotated[
    str | None,
    typer.Option(
        help="Search engine: embedded, or elasticsearch.",
        rich_help_panel=_PANEL,
        show_default=False,
        autocompletion=complete.engines,
    ),
]
UrlOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Address of an Elasticsearch server, which is then the engine; once for each node.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
HomeOption = Annotated[
    Path | None,
    typer.Option(help="Folder for searchapp's own data.", rich_help_panel=_PANEL, show_default=False),
]
InsecureOption = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Let credentials go to another machine without TLS, where others on the network can read them.",
        rich_help_panel=_PANEL,
    ),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print results and errors only.", rich_help_panel=_PANEL)
]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose",
        help="Print each request to a server or search of the embedded engine, and tracebacks with errors.",
        rich_help_panel=_PANEL,
    ),
]

GLOBAL_OPTIONS: dict[str, tuple[Any, bool | None]] = {
    "engine": (EngineOption, None),
    "url": (UrlOption, None),
    "home": (HomeOption, None),
    "insecure": (InsecureOption, False),
    "quiet": (QuietOption, False),
    "verbose": (VerboseOption, False),
}
"""Type and default of the options that are accepted before and after the command's name; after it wins."""

TaskArgument = Annotated[
    str,
    typer.Argument(
        help="A task: see `searchapp tasks`; or the TOML file of a task of your own.",
        show_default=False,
        metavar="TASK",
        autocompletion=complete.tasks,
    ),
]
RunArgument = Annotated[
    Path, typer.Argument(help="A run directory.", show_default=False, autocompletion=complete.runs)
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder with the task's official files; by default the one that was indexed, which is remembered.",
        show_default=False,
    ),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace what is there already.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]


def command(
    app: typer.Typer,
    name: str | None = None,
    cls: type[Command] = Command,
    *,
    of_group: bool = False,
    with_sources: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function whose first parameter is `settings: Settings` as a command.

    The command gets the global options besides its own. An error that is meant for people is printed as one
    sentence on stderr and becomes the exit code. `cls` is the command's class, when it reads its words in a way of
    its own. With `of_group` the function is what the group `app` does when none of its commands is named; with
    `with_sources` its first parameter is the `Resolution` that says where the settings come from, too.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter("context", keyword, annotation=typer.Context),
            *(parameter.replace(kind=keyword, annotation=hints[parameter.name]) for parameter in own),
            *(
                inspect.Parameter(option, keyword, annotation=kind, default=default)
                for option, (kind, default) in GLOBAL_OPTIONS.items()
            ),
        ]

        @functools.wraps(function)
        def wrapper(*, context: typer.Context, **values: Any) -> None:
            flags = {option: values.pop(option) for option in GLOBAL_OPTIONS}
            flags = {option: flags[option] or (context.obj or {}).get(option) for option in flags}
            if of_group:
                context.obj = flags  # for the command that is named, if one is
            if of_group and context.invoked_subcommand is not None:
                given = next((name for name, value in values.items() if value), None)
                if given is None:
                    return
                raise typer.BadParameter(f"put the options of {context.invoked_subcommand} behind its name")

            def act() -> None:
                from searchapp.config.sources import resolution

                report_requests(bool(flags["verbose"]))
                found = resolution(flags, os.environ, opaque_id=_opaque_id(context))
                for warning in found.warnings:
                    warn(warning)
                function(found if with_sources else found.settings, **values)

            code = guarded(act, bool(flags["verbose"]))
            if code:
                raise typer.Exit(code)

        del wrapper.__wrapped__  # or its signature would be taken
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        help_text = _unwrapped(function.__doc__ or "")
        if of_group:
            app.callback(invoke_without_command=True, help=help_text)(wrapper)
        else:
            app.command(name, cls=cls, help=help_text)(wrapper)
        return function

    return decorate


RUN = secrets.token_hex(4)
"""Names this run of the program among the requests that a server's owner sees."""


def _opaque_id(context: typer.Context) -> str:
    """What requests of a command are known by: `searchapp/judgments-sync/1f0c22ab`."""
    return f"searchapp/{'-'.join(context.command_path.split()[1:]) or 'searchapp'}/{RUN}"


def guarded(action: Callable[[], None], verbose: bool) -> int:
    """Run an action and return the exit code, with errors printed the way people can read them."""
    try:
        action()
        sys.stdout.flush()
    except SearchappError as error:
        _report(*error.lines, verbose=verbose)
        return error.exit_code
    except BrokenPipeError:
        _drop_output()  # the reader, `head` for instance, has seen enough
        return 0
    except typer.Exit:
        raise
    except Exception as error:
        if is_lack_of_memory(error):
            _report(
                "there is not enough memory: end other programs, or allow more with `ulimit -v`",
                verbose=verbose,
            )
            return 1
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else "the output could not be written: "
            _report(f"{where}{reason(error)}", verbose=verbose)
            try:
                sys.stdout.flush()
            except OSError:
                _drop_output()
            return 1
        kind = type(error).__name__
        _report(
            f"an internal error, {kind} ({error}): please report it with what --verbose prints",
            verbose=verbose,
        )
        return 1
    return 0


def _drop_output() -> None:
    """Write nowhere what is still buffered. Otherwise Python tries it at its exit, complains, and ends with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(*lines: str, verbose: bool) -> None:
    if verbose:
        report_traceback()
    complain(*lines)


def data_of(settings: Settings, task: Task, data: Path | None) -> Path:
    """The folder of a task's files: the given one, else the remembered one, else the one that they are kept in.

    Raises:
        DataError: no folder is given, and the remembered one is gone, or none of the files have been fetched.
    """
    from searchapp.fetching.folder import has_data
    from searchapp.tasks.folders import data_folder

    folder = data_folder(task, settings.home, data)
    if data is None and task.info.file is None and not has_data(folder):
        raise DataError(
            f"there is no data of {task.name} in {folder}: fetch it with `searchapp data get {task.name}`, "
            "or name the folder that it is in with --data"
        )
    return folder


def _unwrapped(docstring: str) -> str:
    """A docstring whose paragraphs are one line each: the help text is wrapped to the terminal again."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
