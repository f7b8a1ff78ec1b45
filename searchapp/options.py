"""Options and arguments of commands, declared without a framework.

Each is the default of a parameter, or a field of a record that stands for several options. The command line derives
what it needs from the declaration (`cli/commands.py`), so a record of a lower layer can declare its own options.
"""

from __future__ import annotations

from dataclasses import MISSING, field
from typing import Any

REQUIRED = MISSING
"""The default of an option that must be given."""


def option(help_: str, *flags: str, default: Any = None, completes: str = "", **details: Any) -> Any:
    """Declare an option that takes a value.

    Args:
        help_: What the option is for, as `--help` prints it.
        flags: Its names on the command line; by default the name of the parameter or field.
        default: The value without the option, or `REQUIRED`.
        completes: The function of `cli/complete.py` that offers values.
        details: `min`, `max`, `metavar`; `show_default`, a text that stands for the default; `rich_help_panel`, the
            heading that the option stands under.
    """
    return field(
        default=default,
        metadata={"help": help_, "flags": flags, "completes": completes, **details},
    )


def flag(help_: str, *flags: str, **details: Any) -> Any:
    """Declare an option that takes no value."""
    return option(help_, *flags, default=False, **details)


def argument(help_: str, *, default: Any = REQUIRED, completes: str = "", **details: Any) -> Any:
    """Declare an argument, which has no name on the command line; see `option`."""
    return option(help_, default=default, completes=completes, positional=True, **details)
