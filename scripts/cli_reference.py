"""Write docs/reference/cli.md, the reference of the command line.

    python scripts/cli_reference.py

A test fails if the file is not up to date.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from searchapp.cli import app
from searchapp.cli.commands import GLOBAL_OPTIONS

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
HEAD = """# Command line

Made by `python scripts/cli_reference.py`. Every command also takes the global options, before or after its name.
"""


def reference() -> str:
    """Return the reference as Markdown."""
    root: Any = typer.main.get_command(app)
    parts = [HEAD, "## Global options\n", *_table(_globals(root))]
    for path, command in _commands(root, ("searchapp",)):
        parts += [f"## `{' '.join(path)}`\n", inspect.cleandoc(command.help or "") + "\n"]
        arguments = [param for param in command.params if param.param_type_name == "argument"]
        words = [_shown(argument) if argument.required else f"[{_shown(argument)}]" for argument in arguments]
        parts += ["    " + " ".join([*path, *words, "[OPTIONS]"]) + "\n"]
        parts += _table([param for param in command.params if not _is_global(param)])
    return "\n".join(parts).rstrip() + "\n"


def _shown(argument: Any) -> str:
    return f"{argument.metavar or argument.name.upper()}{'...' if argument.nargs != 1 else ''}"


def _commands(group: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in sorted(group.commands):
        command = group.commands[name]
        if hasattr(command, "commands"):
            if command.invoke_without_command:
                yield (*path, name), command
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def _globals(root: Any) -> list[Any]:
    of_program = ("version", "install_completion", "show_completion")
    return [param for param in root.params if _is_global(param) or param.name in of_program]


def _is_global(parameter: Any) -> bool:
    return parameter.name in GLOBAL_OPTIONS


def _table(parameters: list[Any]) -> list[str]:
    head = ["| option | meaning | default |", "|---|---|---|"]
    rows = []
    for parameter in parameters:
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        is_argument = parameter.param_type_name == "argument"
        name = _shown(parameter) if is_argument else ", ".join([*parameter.opts, *parameter.secondary_opts])
        default = (
            "required"
            if parameter.required
            else ""
            if parameter.default in (None, False)
            else f"`{parameter.default}`"
        )
        help_text = (parameter.help or "").replace("|", "\\|")
        rows.append(f"| `{name}` | {help_text} | {default} |")
    return [*head, *rows, ""] if rows else []


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
