"""The settings of one piece of an analyzer, read by type and checked for leftovers.

Elasticsearch keeps every setting as text, so `2`, `"2"`, `true` and `"true"` are all good values, and a list
may be given as one string with commas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from searchapp.lucene.errors import BadSettings, NotSupported

TRIMMED = "".join(map(chr, range(0x21)))
"""What Java's `String.trim` takes off both ends."""

JAVA_WHITESPACE = "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680\u2028\u2029\u205f\u3000" + "".join(
    chr(code) for code in range(0x2000, 0x200B) if code != 0x2007
)
"""Java's `Character.isWhitespace`: the no-break spaces are no white space to it."""

_INTEGER = re.compile(r"[+-]?\d+")
_LIMIT = 1 << 31

ALWAYS_ALLOWED = frozenset({"type"})


class Options:
    """The settings of a piece called `piece` in messages, such as "filter `stems`"."""

    def __init__(self, piece: str, settings: Mapping[str, Any]) -> None:
        self.piece = piece
        self._settings = {key: value for key, value in settings.items() if value is not None}
        self._read: set[str] = set(ALWAYS_ALLOWED)

    def __contains__(self, name: str) -> bool:
        return name in self._settings

    def is_list(self, name: str) -> bool:
        """Whether a setting is given as a list and not as one value."""
        return isinstance(self._settings.get(name), list)

    def text(self, name: str, default: str | None = None) -> str:
        """A string; without a default the setting is required."""
        value = self._value(name)
        if value is None:
            if default is None:
                raise BadSettings(f"{self.piece}: `{name}` is missing")
            return default
        return self._scalar(value, name)

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number of 32 bits; without a default the setting is required."""
        text = self.text(name, None if default is None else str(default))
        if not _INTEGER.fullmatch(text) or max(text) > "\uffff" or not -_LIMIT <= int(text) < _LIMIT:
            raise BadSettings(f"{self.piece}: `{name}` must be an integer, not {text!r}")
        return int(text)

    def boolean(self, name: str, default: bool) -> bool:
        """Yes or no; a blank text is neither and leaves the default."""
        text = self.text(name, str(default).lower())
        if not text.strip(JAVA_WHITESPACE):
            return default
        if text not in ("true", "false"):
            raise BadSettings(f"{self.piece}: `{name}` must be true or false, not {text!r}")
        return text == "true"

    def strings(self, name: str, default: list[str] | None = None) -> list[str]:
        """A list of strings, or one string with commas; without a default the setting is required."""
        value = self._value(name)
        if isinstance(value, list):
            return [self._scalar(item, name) for item in value]
        parts = [] if value is None else self._scalar(value, name).split(",")
        while parts and not parts[-1]:
            parts.pop()
        if parts:
            return [part.strip(TRIMMED) for part in parts]
        if default is None:
            raise BadSettings(f"{self.piece}: `{name}` is missing")
        return default

    def _scalar(self, value: Any, name: str) -> str:
        """A value as the text that Elasticsearch keeps of it."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, (str, int, float)):
            return str(value)
        raise BadSettings(f"{self.piece}: `{name}` must be a string or a list of strings, not {value!r}")

    def refuse(self, *names: str) -> None:
        """Name those of these settings that are given as not supported."""
        if given := [f"`{name}`" for name in names if name in self._settings]:
            raise self.not_supported(" and ".join(given))

    def not_supported(self, what: str) -> NotSupported:
        """The error that names a part of this piece, such as "`flags` COMMENTS"."""
        return NotSupported(f"{what} of {self.piece}")

    def bad(self, what: str) -> BadSettings:
        return BadSettings(f"{self.piece}: {what}")

    def finish(self) -> None:
        """Refuse every setting that nobody has read: none is ever ignored."""
        self.refuse(*sorted(self._settings.keys() - self._read))

    def _value(self, name: str) -> Any:
        self._read.add(name)
        return self._settings.get(name)
