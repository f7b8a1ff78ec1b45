"""`searchapp browse`, `serve` and `mcp`."""

from __future__ import annotations

import sys
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import DataOption, command, run_screen
from searchapp.cli.judgment_options import AnnotatorOption
from searchapp.cli.output import (
    DRIVER,
    IN_BROWSER,
    remark,
    report_logs,
    require_screen,
    say,
    warn,
    warn_at_once,
)
from searchapp.config.resolution import Origin, Resolution
from searchapp.config.settings import Settings
from searchapp.errors import UsageError
from searchapp.options import argument, flag, option

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from searchapp.progress import Progress
    from searchapp.serving.guard import Guard, Listening
    from searchapp.tui.home.screen import HomeScreen


app = typer.Typer()


@command(app, with_sources=True)
def browse(resolution: Resolution) -> None:
    """Open the home screen: tasks, indexes, runs and their figures.

    Keys of the home screen fetch, index and rank a task and open the search, judging, check and settings screens;
    `ctrl+p` searches all commands.
    """
    require_screen("home", "`searchapp tasks` lists the tasks without one")

    @contextmanager
    def opening(_progress: Progress) -> Iterator[HomeScreen]:
        from searchapp.tui.home.screen import HomeScreen, load

        home = HomeScreen(resolution, Path.cwd(), load(resolution.settings.of_user).keys)
        with closing(home.opener):
            yield home

    run_screen(resolution.settings, "browse", "searchapp", opening)


# The command whose screen is served without a task.
HOME = "browse"


@command(app, with_sources=True)
def serve(
    resolution: Resolution,
    task: str | None = argument(
        "Task to search or judge: a name (see `searchapp tasks`), or the TOML file of your own task. Without "
        "it, the home screen is served.",
        default=None,
        completes="tasks",
    ),
    run: Path | None = option(
        "Judge this run directory or TREC run, as `searchapp judge` does, instead of searching.",
        completes="runs",
    ),
    recipe: str | None = option(
        "Recipe to search with: see `searchapp tasks show TASK`.", completes="recipes"
    ),
    blind: bool = flag("Judge as with `searchapp judge --blind`."),
    data: DataOption = None,
    annotator: AnnotatorOption = None,
    host: str = option(
        "Address to listen on; other machines can connect unless it is a loopback address.",
        default="127.0.0.1",
    ),
    port: int = option("Port to listen on; 0 chooses a free one.", default=8000, min=0, max=65535),
    public_url: str | None = option(
        "Address of a reverse proxy in front of the server, such as https://search.example.org.",
        metavar="URL",
    ),
) -> None:
    """Serve the home screen, the search screen of a task, or the judging screen of a run to browsers.

    The address with its token is printed on stderr. Anyone who has it can do everything that you can do in these
    screens. Each window runs its own process, which ends with the window. Ctrl-C ends the server and all windows.
    """
    import asyncio

    from searchapp.serving.guard import Guard, listen
    from searchapp.serving.guard import public_url as checked
    from searchapp.serving.server import ScreenServer, WindowProgram

    if blind and run is None:
        raise UsageError("--blind is for judging: give a run with --run, or leave out --blind")
    if recipe is not None and run is not None:
        raise UsageError("--recipe is for searching and --run for judging: give one of them")
    settings = resolution.settings
    url = None if public_url is None else checked(public_url)
    options = {"--run": run, "--recipe": recipe, "--data": data, "--annotator": annotator}
    given = [f"{option}={value}" for option, value in options.items() if value is not None]
    if task is None:
        if given:
            raise UsageError(f"{given[0].partition('=')[0]} is for the screen of a task: give the task, too")
        name, arguments = "searchapp", [HOME]
    else:
        name = _require_ready(settings, task, run, recipe, data)
        blindly = ["--blind"] if blind else []
        arguments = ["search" if run is None else "judge", *given, *blindly, "--", task]
    program = WindowProgram(
        (sys.executable, "-P", "-m", "searchapp", *_flags(resolution), *arguments),
        {DRIVER: IN_BROWSER, "TERM": "xterm-256color", **_environment(resolution)},
    )
    listening = listen(host, port)
    with listening.socket:
        guard = Guard(listening, url)
        server = ScreenServer(program, guard, name, _remark)
        asyncio.run(server.run(listening, lambda: _print_address(name, listening, guard, url)))


def _print_address(name: str, listening: Listening, guard: Guard, public_url: str | None) -> None:
    warn_at_once()
    _remark(f"serving {name} until Ctrl-C: open {guard.address}")
    if not listening.is_loopback and not (public_url or "").startswith("https:"):
        warn(
            "other machines can connect, and the connection is not encrypted, not even the token: put a "
            "proxy with TLS in front of the server, or connect through ssh"
        )


def _remark(line: str) -> None:
    """Print a line on stderr even with --quiet, because the server is useless without its address."""
    with suppress(OSError):  # if the reader, such as `head`, has closed stderr, the server continues
        remark(line)


def _require_ready(
    settings: Settings, task: str, run: Path | None, recipe: str | None, data: Path | None
) -> str:
    """Check the requirements of every window, and return the task's name.

    Raises:
        SearchappError: task, run, recipe or index do not exist.
    """
    from searchapp.app.search import TaskSearcher
    from searchapp.engines import open_engine
    from searchapp.progress import SilentProgress
    from searchapp.ranking import recipes
    from searchapp.tasks import load

    loaded = load(task)
    if run is not None:
        if not run.exists():
            raise UsageError(f"{run} does not exist: give a run directory or a TREC run with --run")
        return loaded.name
    book = loaded.recipe_book()
    recipes.require_words(book, recipes.load(book, recipe or loaded.info.search_recipe))
    with closing(open_engine(settings)) as engine:
        TaskSearcher.open(loaded, engine, SilentProgress(), settings.home, data)
    return loaded.name


def _flags(resolution: Resolution) -> Iterator[str]:
    """Yield the given global options for a window's program, which reads environment and files itself."""
    values = resolution.values
    if values["home"].source.origin is Origin.flag:
        yield f"--home={resolution.settings.home}"
    if values["engine"].source.origin is Origin.flag:
        yield f"--engine={resolution.settings.engine}"
    for name in ("insecure", "verbose"):
        if values[name].source.origin is Origin.flag:
            yield values[name].setting.flag


def _environment(resolution: Resolution) -> Mapping[str, str]:
    """Return the variable for `--url`: its address may contain a password, and command lines are visible."""
    of_url = resolution.values["url"]
    return {of_url.setting.variable: resolution.settings.url} if of_url.source.origin is Origin.flag else {}


# Judgments of a session of `mcp --judge-as`.
JUDGMENTS = 100


@command(app)
def mcp(
    settings: Settings,
    judge_as: str | None = option(
        "Let the model judge documents, as an annotator of kind model with this name.", metavar="NAME"
    ),
    limit: int | None = option(
        "Most judgments of the session, with --judge-as.", min=1, show_default=str(JUDGMENTS)
    ),
) -> None:
    """Serve searchapp's tools to a language model, with the Model Context Protocol on stdin and stdout.

    A client, such as an assistant or an editor, starts this command. The tools list tasks and runs, search, explain,
    score and compare; none takes a path or an address, and without --judge-as none changes a judgment. The end of the
    input ends the server.
    """
    if judge_as is None and limit is not None:
        raise UsageError("--limit is for judging: give a name with --judge-as, or leave out --limit")
    if judge_as is not None and not judge_as.strip():
        raise UsageError("--judge-as needs the name of an annotator")
    try:
        from searchapp.mcp.tool_server import serve as serve_tools
        from searchapp.mcp.toolbox import ModelJudge
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "pydantic"):
            raise
        raise UsageError(
            "`searchapp mcp` needs the package mcp, version 2.3 or newer: install it with `pip install '.[mcp]'`"
        ) from error
    judge = None if judge_as is None else ModelJudge(judge_as.strip(), limit or JUDGMENTS)
    report_logs()
    warn_at_once()
    if sys.stdin.isatty():
        say(
            settings,
            "waiting for a client on stdin, which usually starts this command itself; Ctrl-D ends it",
        )
    serve_tools(settings, Path.cwd(), judge)
