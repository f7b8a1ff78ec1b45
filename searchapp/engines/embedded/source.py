"""`_source`: which parts of a document's JSON come with a hit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from searchapp.engines.embedded.refusals import invalid, known_only, unsupported


@dataclass(frozen=True, slots=True)
class SourceFilter:
    """The properties to give; None stands for all of them."""

    includes: tuple[str, ...] | None
    excludes: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Any) -> SourceFilter:
        """Read the `_source` of a search body: true, false, a name, names, or includes and excludes."""
        if isinstance(given, bool):
            return cls(None if given else ())
        if isinstance(given, Mapping):
            known_only(given, {"includes", "excludes"}, "`_source`")
            return cls(_names(given.get("includes", ())) or None, _names(given.get("excludes", ())))
        return cls(_names(given) or None)

    def apply(self, source: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value
            for name, value in source.items()
            if (self.includes is None or name in self.includes) and name not in self.excludes
        }


def _names(given: Any) -> tuple[str, ...]:
    if not isinstance(given, str | list | tuple):
        raise invalid(f"`_source` must name properties, not {given!r}")
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or not name:
            raise invalid(f"`_source` must name properties, not {name!r}")
        if "*" in name or "." in name:
            raise unsupported(f"the pattern or path `{name}` in `_source`")
    return names
