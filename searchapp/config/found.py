"""A setting's value and where it comes from, as people are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from searchapp.config.declared import BY_NAME, Declared
from searchapp.config.files import SettingsFile
from searchapp.config.kinds import Value


class Origin(StrEnum):
    """Where a value comes from."""

    flag = "flag"
    environment = "environment"
    project = "project file"
    user = "user file"
    default = "default"


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that one origin sets, by the names of settings."""

    origin: Origin
    values: Mapping[str, Value] = field(repr=False)
    file: SettingsFile | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A setting's value, and the source that has it; `key` is what names it there: `url` for an engine, too."""

    setting: Declared
    source: Source
    key: str
    value: Value | None = field(repr=False)

    @property
    def shown(self) -> str:
        """The value as it may be shown."""
        return self.setting.shown(self.value)

    @property
    def plain(self) -> str | bool | list[str] | None:
        """The same for JSON, None where there is no value."""
        if self.value is None or isinstance(self.value, bool):
            return self.value
        if self.setting.secret:
            return self.shown
        return [str(one) for one in self.value] if isinstance(self.value, tuple) else self.shown

    @property
    def file(self) -> Path | None:
        return None if self.source.file is None else self.source.file.path

    @property
    def line(self) -> int | None:
        """The line of the file."""
        return None if self.source.file is None else self.source.file.line(self.key)

    @property
    def where(self) -> str:
        """The flag, the variable, or the file and its line; nothing for a default."""
        line = self.line
        return self.place if line is None else f"{self.place}:{line}"

    @property
    def place(self) -> str:
        """The flag, the variable or the file; nothing for a default."""
        setting = BY_NAME[self.key]
        if self.source.origin is Origin.flag:
            return setting.flag
        if self.source.origin is Origin.environment:
            return setting.variable
        return "" if self.file is None else str(self.file)

    @property
    def chosen_by(self) -> str:
        """What set it, in the middle of a sentence."""
        if self.source.origin is Origin.default:
            return "default"
        return f"{self.key} in {self.file}" if self.file is not None else self.place
