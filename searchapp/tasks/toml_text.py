"""Values as TOML has them, in one line each."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def inline(value: Any) -> str:
    """A value in one line.

    >>> inline({"a": [1, 2.0, True], "b c": "so"})
    '{ a = [1, 2.0, true], "b c" = "so" }'

    Raises:
        TypeError: TOML has no such value.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key(name)} = {inline(one)}" for name, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    raise TypeError(f"TOML has no {type(value).__name__}")


def assignments(table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a table."""
    for name, value in table.items():
        yield f"{key(name)} = {inline(value)}"


def key(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """A basic string: TOML's escapes are those of JSON, but for DEL and halves of characters."""
    escaped = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in escaped)
