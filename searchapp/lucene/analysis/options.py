"""The settings of one component of an analyzer, read by type, with a check for unknown settings.

Elasticsearch stores settings as text: `2`, `"2"`, `true` and `"true"` are all valid, and a list may be a string with
commas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from searchapp.lucene.errors import BadSettings, NotSupported

TRIMMED = "".join(map(chr, range(0x21)))  # the characters that Java's `String.trim` removes

# Java's `Character.isWhitespace`, without no-break spaces.
JAVA_WHITESPACE = "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680\u2028\u2029\u205f\u3000" + "".join(
    chr(code) for code in range(0x2000, 0x200B) if code != 0x2007
)

# Settings of the index that limit the sizes of grams, with Elasticsearch's defaults.
LIMITS: Mapping[str, int] = {"max_ngram_diff": 1, "max_shingle_diff": 3}

_INTEGER = re.compile(r"[+-]?\d+")
_LIMIT = 1 << 31


class Options:
    """The settings of a component called `piece` in messages, such as "filter `stems`"."""

    def __init__(self, piece: str, settings: Mapping[str, Any], limits: Mapping[str, int] = LIMITS) -> None:
        self.piece = piece
        self.limits = limits
        self._settings = {key: value for key, value in settings.items() if value is not None}
        self._read = {"type"}

    def __contains__(self, name: str) -> bool:
        return name in self._settings

    def is_list(self, name: str) -> bool:
        return isinstance(self._settings.get(name), list)

    def text(self, name: str, default: str | None = None) -> str:
        """Read a string; without a default it is required."""
        value = self._value(name)
        if value is not None:
            return self._scalar(value, name)
        if default is None:
            raise self.bad(f"`{name}` is missing")
        return default

    def integer(self, name: str, default: int | None = None) -> int:
        """Read an integer of 32 bits; without a default it is required."""
        text = self.text(name, None if default is None else str(default))
        if not _INTEGER.fullmatch(text) or max(text) > "\uffff" or not -_LIMIT <= int(text) < _LIMIT:
            raise self.bad(f"`{name}` must be an integer, not {text!r}")
        return int(text)

    def boolean(self, name: str, default: bool) -> bool:
        """Read true or false; blank text means the default."""
        text = self.text(name, str(default).lower())
        if not text.strip(JAVA_WHITESPACE):
            return default
        if text not in ("true", "false"):
            raise self.bad(f"`{name}` must be true or false, not {text!r}")
        return text == "true"

    def strings(self, name: str, default: list[str] | None = None) -> list[str]:
        """Read a list of strings, or a string with commas; without a default it is required."""
        value = self._value(name)
        if isinstance(value, list):
            return [self._scalar(item, name) for item in value]
        parts = [] if value is None else self._scalar(value, name).split(",")
        while parts and not parts[-1]:
            parts.pop()
        if parts:
            return [part.strip(TRIMMED) for part in parts]
        if default is None:
            raise self.bad(f"`{name}` is missing")
        return default

    def _value(self, name: str) -> Any:
        self._read.add(name)
        return self._settings.get(name)

    def _scalar(self, value: Any, name: str) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, (str, int, float)):
            return str(value)
        raise self.bad(f"`{name}` must be a string or a list of strings, not {value!r}")

    def require_range(self, low: int, high: int, limit: str) -> None:
        """Reject sizes that differ by more than a limit of the index."""
        if high - low > self.limits[limit]:
            raise self.bad(f"the sizes differ by more than {self.limits[limit]} (index.{limit})")

    def refuse(self, *names: str) -> None:
        if refused := [f"`{name}`" for name in names if name in self._settings]:
            raise self.not_supported(" and ".join(refused))

    def not_supported(self, construct: str) -> NotSupported:
        """Return the error for a part of this component, such as "`flags` COMMENTS"."""
        return NotSupported(f"{construct} of {self.piece}")

    def bad(self, problem: str) -> BadSettings:
        """Return the error for a setting that Elasticsearch also rejects."""
        return BadSettings(f"{self.piece}: {problem}")

    def finish(self) -> None:
        self.refuse(*sorted(self._settings.keys() - self._read))
