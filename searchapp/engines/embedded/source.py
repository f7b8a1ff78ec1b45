"""`_source`: which parts of a document's JSON come with a hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchapp.engines.embedded import parameters
from searchapp.engines.embedded.names import objects
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
            includes, excludes = (given.get(key, ()) for key in ("includes", "excludes"))
            for name in (*_listed(includes), *_listed(excludes)):
                if not isinstance(name, str):
                    raise invalid(f"`_source` must name properties, not {name!r}")
            return cls(_names(includes) or None, _names(excludes))
        return cls(_names(given) or None)

    def apply(self, source: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value
            for name, value in source.items()
            if (self.includes is None or _names_it(self.includes, name))
            and not _names_it(self.excludes, name)
        }


def _names_it(names: tuple[str, ...], property_name: str) -> bool:
    """Whether one of the names is that of a property, or of an object that the property lies in by its dots."""
    return property_name in names or any(above in names for above in objects(property_name))


def _listed(given: Any) -> Sequence[Any]:
    if not isinstance(given, str | list | tuple):
        raise invalid(f"`_source` must name properties, not {given!r}")
    return [given] if isinstance(given, str) else given


def _names(given: Any) -> tuple[str, ...]:
    names = tuple(parameters.raw_text(name, "a name in `_source`") for name in _listed(given))
    for name in names:
        if "*" in name or "." in name:
            raise unsupported(f"the pattern or path `{name}` in `_source`")
    return names
