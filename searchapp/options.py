"""Declare options and arguments of commands without a framework.

A declaration is the default of a parameter, or a field of a record of options, which may belong to a lower
layer. `cli/commands.py` derives Typer's options from it.
"""

from __future__ import annotations

from dataclasses import MISSING, field
from typing import Any

# The default of a required option.
REQUIRED = MISSING


def option(help_: str, *flags: str, default: Any = None, completes: str = "", **details: Any) -> Any:
    """Declare an option that takes a value.

    Args:
        help_: the text of `--help`
        flags: names on the command line; default: the name of the parameter or field
        default: the value without the option, or `REQUIRED`
        completes: the function of `cli/complete.py` that completes values
        details: `min`, `max`, `metavar`; `show_default`, a text for the default; `rich_help_panel`, a heading
    """
    return field(
        default=default,
        metadata={"help": help_, "flags": flags, "completes": completes, **details},
    )


def flag(help_: str, *flags: str, **details: Any) -> Any:
    """Declare an option that takes no value."""
    return option(help_, *flags, default=False, **details)


def argument(help_: str, *, default: Any = REQUIRED, completes: str = "", **details: Any) -> Any:
    """Declare a positional argument; see `option`."""
    return option(help_, default=default, completes=completes, positional=True, **details)
