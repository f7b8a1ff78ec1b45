"""The settings of one piece of an analyzer, read by type and checked for leftovers.

Elasticsearch keeps every setting as text, so `2`, `"2"`, `true` and `"true"` are all good values, and a list
may be given as one string with commas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchapp.analysis.errors import BadSettings, NotSupported

ALWAYS_ALLOWED = frozenset({"type"})


class Options:
    """The settings of a piece called `piece` in messages, such as "filter `stems`"."""

    def __init__(self, piece: str, settings: Mapping[str, Any]) -> None:
        self.piece = piece
        self._settings = {key: value for key, value in settings.items() if value is not None}
        self._read: set[str] = set(ALWAYS_ALLOWED)

    def __contains__(self, name: str) -> bool:
        return name in self._settings

    def text(self, name: str, default: str | None = None) -> str:
        """A string; without a default the setting is required."""
        value = self._value(name)
        if value is None:
            if default is None:
                raise BadSettings(f"{self.piece}: `{name}` is missing")
            return default
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, (str, int, float)):
            return str(value)
        raise BadSettings(f"{self.piece}: `{name}` must be a string, not {value!r}")

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number; without a default the setting is required."""
        text = self.text(name, None if default is None else str(default))
        try:
            return int(text)
        except ValueError:
            raise BadSettings(f"{self.piece}: `{name}` must be an integer, not {text!r}") from None

    def boolean(self, name: str, default: bool) -> bool:
        text = self.text(name, str(default).lower())
        if text not in ("true", "false"):
            raise BadSettings(f"{self.piece}: `{name}` must be true or false, not {text!r}")
        return text == "true"

    def strings(self, name: str, default: list[str] | None = None) -> list[str]:
        """A list of strings; without a default the setting is required."""
        value = self._value(name)
        if value is None:
            if default is None:
                raise BadSettings(f"{self.piece}: `{name}` is missing")
            return default
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
            return [str(item) for item in value]
        raise BadSettings(f"{self.piece}: `{name}` must be a list of strings, not {value!r}")

    def refuse(self, *names: str) -> None:
        """Name the first of these settings that is given as not supported."""
        for name in names:
            if name in self._settings:
                raise self.not_supported(f"`{name}`")

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
