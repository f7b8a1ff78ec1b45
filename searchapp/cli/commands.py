"""Declare commands: lazy import, global options, exit codes of errors, and shared options.

Only the module of the typed command is imported; the list in the help imports all. `cli.judgment_options` has
the options that need `judging`, so that `tasks`, `search` and `analyze` start without it.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from searchapp import tasks
from searchapp.cli.output import complain, report_requests, report_traceback, say, warn_all, warnings_last
from searchapp.config.settings import Settings
from searchapp.errors import SearchappError, UsageError, is_lack_of_memory
from searchapp.files import STDOUT, parse_json, reason
from searchapp.options import argument, flag, option

if TYPE_CHECKING:
    from searchapp.embeddings.reranking import Reranking
    from searchapp.engines.base import Engine
    from searchapp.ranking.recipes import Recipe
    from searchapp.tasks.base import Task
    from searchapp.tui.kit.app import Opening


# The commands and groups under the headings of the help, each with the module whose `app` contains it.
HEADINGS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "setup",
        "tasks": "tasks",
        "data": "tasks",
        "index": "indexes",
        "browse": "browse",
        "serve": "browse",
        "mcp": "browse",
    },
    "Search": {
        "search": "search",
        "explain": "search",
        "analyze": "search",
    },
    "Rank and score": {
        "rank": "runs",
        "embed": "embeddings",
        "train": "runs",
        "evaluate": "evaluate",
        "topics": "judging",
        "validate": "evaluate",
        "export": "runs",
    },
    "Judge": {
        "judge": "judging",
        "judgments": "judgments",
    },
    "Compare and tune": {
        "compare": "evaluate",
        "report": "evaluate",
        "bench": "experiments",
        "ablate": "experiments",
        "learning-curve": "experiments",
        "tune": "experiments",
    },
    "Manage": {
        "runs": "runs",
        "rerun": "runs",
        "indexes": "indexes",
        "config": "setup",
        "doctor": "setup",
    },
}
MODULES = {name: module for modules in HEADINGS.values() for name, module in modules.items()}
_HEADING_OF = {name: heading for heading, modules in HEADINGS.items() for name in modules}

# Terminal columns that tables in the help need: Typer cuts names and words in narrower ones.
TABLES_FROM = 80

# Matches a required argument in a usage line, which Typer puts into braces.
_REQUIRED = re.compile(r"\{(.*)\}(?=(?:\.\.\.)?$)")


def module_of(name: str) -> str:
    """Return the module of a command."""
    return f"searchapp.cli.{MODULES[name]}"


class _PlainHelp:
    """Help that fits the terminal, without Typer's braces and types of flags."""

    rich_markup_mode: Any

    def format_help(self, ctx: Any, formatter: Any) -> None:
        columns = shutil.get_terminal_size().columns
        if columns < TABLES_FROM:
            self.rich_markup_mode = None
            formatter.width = columns
            formatter.write_dl = partial(formatter.write_dl, col_max=2)
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if not isinstance(param.get_runtime_param, _PlainConversion):
                param.get_runtime_param = _PlainConversion(param.get_runtime_param)
            if param.metavar is None and param.param_type_name == "argument":
                param.metavar = param.name.upper()
            elif param.metavar is None and getattr(param, "is_flag", False):
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [_REQUIRED.sub(r"\1", piece) for piece in super().collect_usage_pieces(ctx)]  # type: ignore[misc]


class _PlainConversion:
    """Conversion of words to text, paths and whole numbers without Pydantic, whose import takes longer than Typer's.

    Typer converts all others, and reports invalid ones.
    """

    def __init__(self, conversion_of_typer: Callable[[], Any]) -> None:
        self._conversion_of_typer = conversion_of_typer

    def __call__(self) -> _PlainConversion:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = param.type_descriptor.annotation
        many = get_origin(kind) is list
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        values = value if many else [value]
        convert = partial(_plain_value, get_args(kind)[0] if many else kind, param)
        try:
            converted = [convert(each) for each in values]
        except ValueError:
            return self._conversion_of_typer().coerce(value, param=param, ctx=ctx)
        return converted if many else converted[0]


def _plain_value(kind: Any, param: Any, value: Any) -> Any:
    """Convert a word.

    Raises:
        ValueError: Typer is to convert it, or to report it.
    """
    if isinstance(kind, type) and not isinstance(value, str) and isinstance(value, kind):
        return value  # a default
    if kind is str and isinstance(value, str):
        return value
    if kind is Path and (os.access(value, os.R_OK) or not os.access(value, os.F_OK)):
        return Path(value)
    if kind is int and re.fullmatch("[0-9]{1,9}", value):
        number = int(value)
        if (param.min is None or number >= param.min) and (param.max is None or number <= param.max):
            return number
    raise ValueError


class Command(_PlainHelp, TyperCommand):
    """A command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # Typer's parser does not name the command
                error.ctx = ctx  # type: ignore[attr-defined]
            raise


class CommandGroup(_PlainHelp, TyperGroup):
    """A group of commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            help_ = self.commands[name].help or ""  # with complete first paragraphs, unlike Typer's
            heading = getattr(self.commands[name], "rich_help_panel", None) or "Commands"
            rows.setdefault(heading, []).append((name, help_.partition("\n\n")[0]))
        for heading, commands in rows.items():
            with formatter.section(heading):
                formatter.write_dl(commands)


class RootGroup(CommandGroup):
    """The program."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]  # never changed

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(self.commands)  # without importing any


class _Commands(Mapping[str, Any]):
    """The commands by name, imported on access."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in MODULES and name not in self._loaded:
            commands: Mapping[str, Any] = typer.main.get_group(import_module(module_of(name)).app).commands
            for loaded_name, loaded in commands.items():
                loaded.rich_help_panel = _HEADING_OF[loaded_name]
            self._loaded |= commands
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


class SpreadingCommand(Command):
    """A command whose options in `spread` take several words (`--gold a b c`) after the first argument.

    Before the first argument they take one word, because the next word is the argument.
    """

    spread = frozenset({"--gold"})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_word = {
            name: not getattr(option, "is_flag", False) and not getattr(option, "count", False)
            for option in self.params
            if option.param_type_name == "option"
            for name in (*option.opts, *option.secondary_opts)
        }
        return super().parse_args(ctx, list(spread_words(args, self.spread, takes_word)))


def spread_words(
    args: Sequence[str], spread: frozenset[str], takes_word: Mapping[str, bool]
) -> Iterator[str]:
    """Repeat the name of a spread option before each of its words; `takes_word` has the options that take
    words.

    >>> list(spread_words(["p", "--gold", "a", "b", "--json"], frozenset({"--gold"}), {"--gold": True}))
    ['p', '--gold', 'a', '--gold', 'b', '--json']
    """
    arguments, option, waiting = False, "", False
    words = iter(args)
    for word in words:
        if word == "--":
            yield word
            break
        if waiting:
            waiting = False
        elif word.startswith("-") and word != "-":
            option, equals, _value = word.partition("=")
            waiting = not equals and takes_word.get(option, False)
        elif option in spread and arguments:
            yield option
        else:
            arguments, option = True, ""
        yield word
    yield from words


def files_named(given: Sequence[Path]) -> tuple[Path, ...]:
    """Split names at commas, as in `a.tsv,b.tsv`, unless a file of that name exists."""
    files: list[Path] = []
    for path in given:
        names = [name.strip() for name in str(path).split(",")]
        files += [path] if path.exists() or len(names) == 1 else map(Path, filter(None, names))
    return tuple(files)


_PANEL = "Global options"

# Type and declaration of the options accepted before and after a command's name. Those after it have
# precedence.
GLOBAL_OPTIONS = {
    "engine": (
        str | None,
        option("Search engine: embedded, or elasticsearch.", rich_help_panel=_PANEL, completes="engines"),
    ),
    "url": (
        list[str] | None,
        option(
            "Address of an Elasticsearch server; selects the engine elasticsearch. Repeat it for several nodes.",
            rich_help_panel=_PANEL,
        ),
    ),
    "home": (
        Path | None,
        option("Home directory of indexes, judgments, models and settings.", rich_help_panel=_PANEL),
    ),
    "insecure": (
        bool,
        flag(
            "Allow credentials to go to another machine without TLS, although others on the network can read them.",
            rich_help_panel=_PANEL,
        ),
    ),
    "quiet": (bool, flag("Print results and errors only.", "--quiet", "-q", rich_help_panel=_PANEL)),
    "verbose": (
        bool,
        flag(
            "Print each server request or embedded search, and tracebacks of errors.",
            rich_help_panel=_PANEL,
        ),
    ),
}

# Flags that choose the layout of a result on stdout.
_PRINTING = ("as_json", "as_csv", "as_latex", "as_markdown")

TaskArgument = Annotated[
    str,
    argument(
        "Name of a task (see `searchapp tasks`), or TOML file of your own task; once indexed, also its name.",
        metavar="TASK",
        completes="tasks",
    ),
]
RunArgument = Annotated[Path, argument("A run directory.", completes="runs")]
DataOption = Annotated[
    Path | None,
    option("Folder with the task's official files; default: the folder of the last `index --data`."),
]
OverwriteOption = Annotated[bool, flag("Replace existing output.")]
JsonOption = Annotated[bool, flag("Print one JSON document on stdout.", "--json")]
RunCommandOption = Annotated[bool, flag("Allow to run the command of a model that the task file names.")]
MaxCostOption = Annotated[
    float | None,
    option(
        "Send no request to a model that could make this command cost more, by the prices in the task file.",
        min=0,
    ),
]


def command(
    app: typer.Typer,
    name: str | None = None,
    cls: type[Command] = Command,
    *,
    of_group: bool = False,
    with_sources: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function `(settings, ...)` as a command with the global options.

    `searchapp.options` declares the other parameters; a parameter of a dataclass type has one option for each
    field. Errors are printed on stderr and set the exit code.

    Args:
        app: the group of the command
        name: the command's name; default: the function's
        cls: the class that parses the command's words
        of_group: the command is the group itself
        with_sources: the first parameter is the `Resolution` instead of the settings
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]
        parameters = [
            expanded for each in own for expanded in _expanded(each.name, hints[each.name], each.default)
        ]

        @functools.wraps(function)
        def wrapper(*, context: typer.Context, **values: Any) -> None:
            flags = {
                option: values.pop(option) or (context.obj or {}).get(option) for option in GLOBAL_OPTIONS
            }
            if of_group:
                context.obj = flags  # for a command of the group
            if of_group and context.invoked_subcommand is not None:
                given = next((name for name, value in values.items() if value), None)
                if given is None:
                    return
                raise typer.BadParameter(f"put the options of {context.invoked_subcommand} after its name")

            def act() -> None:
                from searchapp.config.resolution import resolution

                report_requests(bool(flags["verbose"]))
                path = "-".join(context.command_path.split()[1:]) or "searchapp"
                resolved = resolution(flags, os.environ, opaque_id=f"searchapp/{path}/{INVOCATION}")
                warn_all(resolved.warnings)
                if isinstance(task := values.get("task"), str) and task not in tasks.names():
                    from searchapp.app.index import reference

                    values["task"] = reference(resolved.settings, task)
                printing = next((flag for flag in _PRINTING if values.get(flag)), None)
                if printing and values.get("out") == STDOUT:
                    flag = printing.replace("as_", "--")
                    raise UsageError(f"--out - and {flag} both write to stdout: give one of them")
                arguments = {each.name: _assembled(each.name, hints[each.name], values) for each in own}
                function(resolved if with_sources else resolved.settings, **arguments)

            code = guarded(warnings_last()(act), bool(flags["verbose"]))
            if code:
                raise typer.Exit(code)

        del wrapper.__wrapped__  # Typer would use its signature
        take_options(wrapper, parameters)
        # One line for each paragraph: the help is wrapped to the terminal.
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        help_text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        if of_group:
            app.callback(invoke_without_command=True, help=help_text)(wrapper)
        else:
            app.command(name, cls=cls, help=help_text)(wrapper)
        return function

    return decorate


def take_options(function: Callable[..., None], own: Iterable[inspect.Parameter]) -> None:
    """Set the signature of a function: its context, its own options and the global ones."""
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    shared = (declared(name, *declaration) for name, declaration in GLOBAL_OPTIONS.items())
    parameters = [context, *own, *shared]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def _options_of(record: Any) -> dict[str, tuple[Any, Any]]:
    hints = get_type_hints(record, include_extras=True)
    return {
        each.name: (hints[each.name], each if each.metadata else each.default)
        for each in fields(record)
        if each.metadata or get_origin(hints[each.name]) is Annotated or is_dataclass(hints[each.name])
    }


def _expanded(name: str, hint: Any, default: Any) -> Iterator[inspect.Parameter]:
    """Yield Typer's parameter, or a parameter for each field of a record."""
    if is_dataclass(hint):
        for field_name, declaration in _options_of(hint).items():
            yield from _expanded(field_name, *declaration)
    else:
        yield declared(name, hint, default)


def _assembled(name: str, hint: Any, values: Mapping[str, Any]) -> Any:
    """Return the value of a parameter; make a record from the values of its fields."""
    if not is_dataclass(hint):
        return values[name]
    options = _options_of(hint).items()
    return hint(**{each: _assembled(each, field_hint, values) for each, (field_hint, _) in options})  # type: ignore[operator]


def declared(name: str, hint: Any, default: Any) -> inspect.Parameter:
    """Make Typer's parameter from a declaration in the default or in the annotation."""
    kind, *declarations = get_args(hint) if get_origin(hint) is Annotated else (hint, default)
    declaration = declarations[0]
    if default is declaration:
        default = inspect.Parameter.empty if declaration.default is MISSING else declaration.default
    details = {"show_default": default not in (None, inspect.Parameter.empty), **declaration.metadata}
    flags, completes = details.pop("flags"), details.pop("completes")
    details["autocompletion"] = _completion(completes) if completes else None
    if details.pop("positional", False):
        typed = typer.Argument(**details)
    else:
        # Typer gives a flag without a name a second one, --no-NAME.
        names = flags or ([f"--{name.replace('_', '-')}"] if kind is bool else [])
        typed = typer.Option(*names, **details)
    annotation: Any = Annotated[kind, typed]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _completion(kind: str) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from searchapp.cli import complete

        return complete.complete(kind, ctx, incomplete)

    return complete


# Identifies this process in the header X-Opaque-Id: `searchapp/judgments-sync/1f0c22ab`.
INVOCATION = os.urandom(4).hex()


def guarded(action: Callable[[], None], verbose: bool) -> int:
    """Run an action, print its error, and return the exit code."""
    try:
        action()
        sys.stdout.flush()
    except SearchappError as error:
        _report(*error.lines, verbose=verbose)
        return error.exit_code
    except BrokenPipeError:
        _drop_output()  # the reader, `head` for instance, has read enough
        return 0
    except typer.Exit:
        raise
    except Exception as error:
        if is_lack_of_memory(error):
            message = "not enough memory: end other programs, or allow more with `ulimit -v`"
        elif isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else "the output could not be written: "
            message = f"{where}{reason(error)}"
        else:
            kind = type(error).__name__
            message = f"an internal error, {kind} ({error}): please report it with the output of --verbose"
        _report(message, verbose=verbose)
        if isinstance(error, OSError):
            try:
                sys.stdout.flush()
            except OSError:
                _drop_output()
        return 1
    return 0


def _drop_output() -> None:
    """Discard buffered output: Python would write it at exit, fail, and end with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(*lines: str, verbose: bool) -> None:
    if verbose:
        report_traceback()
    complain(*lines)


@contextmanager
def reporting_engine(settings: Settings) -> Iterator[Engine]:
    """Open the engine for a command that changes indexes; report waiting on stderr."""
    from searchapp.engines import open_engine

    with closing(open_engine(settings, lambda sentence: say(settings, sentence))) as engine:
        yield engine


def run_screen(settings: Settings, section: str, title: str, opening: Opening) -> None:
    """Show a screen: paint a first frame, open the screen in the background, and close it after the user has left.

    Args:
        settings: with the theme
        section: the screen's section in the settings file
        title: the first line of the first frame
        opening: opens the screen; imports its module only then

    Raises:
        SearchappError: the screen cannot be opened.
        typer.Exit: the screen ended with an exit code other than 0.
    """
    from searchapp.tui.kit.app import KeyApp, LoadingScreen
    from searchapp.tui.kit.keys import appearance

    with ExitStack() as resources:
        loading = LoadingScreen(title, opening, resources)
        screen = KeyApp(loading, *appearance(settings.of_user, section))
        try:
            screen.run()
        finally:
            loading.stop()
        if screen.return_code:
            raise typer.Exit(screen.return_code)


def data_of(settings: Settings, task: Task, data: Path | None) -> Path:
    """Return the data folder of a task: the given one, the stored one, or the default folder for fetched files.

    Raises:
        DataError: no folder is given, and the default one is missing or empty.
    """
    from searchapp.tasks.folders import require_data

    return require_data(task, settings.home, data)


SetOption = Annotated[
    list[str] | None,
    option(
        "Set a parameter of the recipe: `searchapp tasks show TASK --recipe R` lists them.",
        "--set",
        metavar="NAME=VALUE",
    ),
]


TrainingSplitOption = Annotated[
    list[str] | None,
    option(
        "Learn only from the training topics of this split; repeat it for several splits. Default: all "
        "training topics that the split may use; for nlps and explanation-* those of train, for test also "
        "those of dev.",
        metavar="SPLIT",
        completes="splits",
    ),
]
DepthOption = Annotated[int | None, option("Documents per topic; default: the task's depth.", min=1)]


def parameters_of(settings: list[str]) -> dict[str, object]:
    """Parse `name=value`: JSON values keep their types, others are text."""
    values: dict[str, object] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise UsageError(
                f"--set {setting}: use the form NAME=VALUE; `searchapp tasks show TASK --recipe R` lists the parameters"
            )
        try:
            values[name] = parse_json(text)
        except ValueError:
            values[name] = text
    return values


def recipe_of(task: Task, name: str | None, set_: list[str] | None) -> Recipe:
    """Load a recipe, by default the task's own, with the parameters of `--set`.

    Raises:
        UsageError: the recipe or a parameter is unknown.
    """
    from searchapp.ranking import recipes

    return recipes.load(task.recipe_book(), name or task.info.default_recipe, parameters_of(set_ or []))


def reranking_of(settings: Settings, *, run_command: bool, max_cost: float | None) -> Reranking:
    """Return the rerankers of a command, which reports further attempts of requests."""
    from searchapp.embeddings.reranking import Reranking

    def notify(sentence: str) -> None:
        say(settings, sentence)

    return Reranking.of(settings, commands=run_command, max_cost=max_cost, notify=notify)


# As in `evaluation.significance`, which imports NumPy.
PERMUTATIONS = 100_000
SEED = 20_071_109

LEARNING_SEED = 2021  # of `tune` and `learning-curve`

PermutationsOption = Annotated[
    int,
    option(
        "Random sign vectors of the randomisation test; if there are fewer in total, all are used.", min=1
    ),
]
SeedOption = Annotated[
    int | None,
    option("Seed of the random numbers.", min=0, show_default="the setting seed, or the command's own"),
]
