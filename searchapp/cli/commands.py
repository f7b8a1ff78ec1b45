"""The commands as Typer has them: each is imported when it is needed, and usage lines and help look alike.

A module of this package stands for the command or group of its name, with _ for -. Only the one that is typed is
imported, all of them for the list in the help.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, MutableMapping
from functools import partial
from importlib import import_module
from typing import Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

NAMES = (
    "demo",
    "doctor",
    "config",
    "browse",
    "tasks",
    "data",
    "index",
    "indexes",
    "search",
    "serve",
    "rank",
    "train",
    "tune",
    "export",
    "validate",
    "evaluate",
    "compare",
    "bench",
    "ablate",
    "learning-curve",
    "explain",
    "report",
    "runs",
    "topics",
    "judge",
    "judgments",
    "analyze",
)
"""The commands and groups, in the order of the help."""

TABLES_FROM = 80
"""In terminals of fewer columns help is a list: Typer's tables cut names and words there."""

_REQUIRED = re.compile(r"\{(.*)\}(?=(?:\.\.\.)?$)")


def module_of(name: str) -> str:
    """The module that stands for a command."""
    return f"searchapp.cli.{name.replace('-', '_')}"


def _plain(params: list[Any]) -> list[Any]:
    """Parameters with capital names of arguments, and without a type behind an option that takes no value."""
    for one in params:
        if one.metavar is None and one.param_type_name == "argument":
            one.metavar = one.name.upper()
        elif one.metavar is None and getattr(one, "is_flag", False):
            one.metavar = ""
    return params


def _without_braces(pieces: list[str]) -> list[str]:
    """A usage line's pieces, where Typer puts a required argument into braces."""
    return [_REQUIRED.sub(r"\1", piece) for piece in pieces]


def _list_where_narrow(command: Any, formatter: Any) -> None:
    """In a narrow terminal, have the help of a command be a list, each name on a line above what it means."""
    columns = shutil.get_terminal_size().columns
    if columns < TABLES_FROM:
        command.rich_markup_mode = None
        formatter.width = columns
        formatter.write_dl = partial(formatter.write_dl, col_max=2)


class Command(TyperCommand):
    """A command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _list_where_narrow(self, formatter)
        super().format_help(ctx, formatter)

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return _without_braces(super().collect_usage_pieces(ctx))


class Group(TyperGroup):
    """A group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _list_where_narrow(self, formatter)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):  # whose paragraphs are whole, unlike Typer's
            helps = {name: self.commands[name].help or "" for name in self.list_commands(ctx)}
            formatter.write_dl([(name, help_.partition("\n\n")[0]) for name, help_ in helps.items()])

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return _without_braces(super().collect_usage_pieces(ctx))


class Program(Group):
    """The whole program."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(self.commands)  # whose order is known without importing any


class _Commands(MutableMapping[str, Any]):
    """The commands by name; one that nobody asks for is not imported."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in NAMES:
            raise KeyError(name)
        if name not in self._made:
            holder = typer.Typer()
            import_module(module_of(name)).register(holder)
            self._made |= typer.main.get_group(holder).commands
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        raise TypeError(f"{name}: the commands are those of NAMES")

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name}: the commands are those of NAMES")

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)
