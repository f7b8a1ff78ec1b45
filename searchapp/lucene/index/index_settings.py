"""The settings of an index in one form, whichever of those that Elasticsearch accepts they are written in.

    {"analysis": {"analyzer": {"mine": {"tokenizer": "standard"}}}}
    {"index": {"analysis": {"analyzer": {"mine": {"tokenizer": "standard"}}}}}
    {"index.analysis.analyzer.mine.tokenizer": "standard"}

Elasticsearch flattens settings to dotted names, with or without `index.` before them; lists may be written as
`filter.0`, `filter.1`. Here they become what stands first above, so that an index is the same, and has the same
digest, however its settings are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from searchapp.lucene.errors import BadSettings

INDEX = "index"

NOT_INDEXED = {"type": "object", "enabled": False}
"""A property whose value, whatever it is, is kept with the document and never looked at."""

Path = tuple[str, ...]
"""The parts of a setting's name."""


def canonical(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """A create-index body with its settings in the one form; one that has it already says the same afterwards.

    >>> canonical({"settings": {"index.similarity.default": {"k1": 1}, "index": {"similarity.default.b": 0}}})
    {'settings': {'similarity': {'default': {'k1': 1, 'b': 0}}}}

    Raises:
        BadSettings: settings are no objects, a name has an empty part, or one thing is set to two values, of which
            Elasticsearch would choose one without a word.
    """
    if "settings" not in mapping:
        return dict(mapping)
    settings = mapping["settings"]
    if not isinstance(settings, Mapping):
        raise BadSettings("`settings` of a mapping must be an object")
    if INDEX not in settings and _is_canonical(settings):
        return dict(mapping)
    flat: dict[Path, Any] = {}
    for path, value in _flattened(settings, ()):
        if path[0] == INDEX:
            path = path[1:]
            if not path and value != {}:
                raise BadSettings("`index` in the settings of a mapping must be an object")
        if path and flat.setdefault(path, value) != value:
            raise _twice(path)
    return {**mapping, "settings": _nested(flat)}


SIMILARITY = "similarity"
NUMBERS = {"k1": 1.2, "b": 0.75}
"""What can be chosen of a similarity, with Lucene's defaults."""

Similarities = Mapping[str, Mapping[str, float]]
"""Numbers of similarities by their names."""


def similarities(mapping: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """k1 and b of each similarity by BM25 that the texts of a mapping have, by its name.

    >>> similarities({"mappings": {"properties": {"text": {"type": "text"}}}})
    {'default': {'k1': 1.2, 'b': 0.75}}
    """
    described = canonical(mapping).get("settings", {}).get(SIMILARITY, {})
    used = {
        field.get(SIMILARITY) or "default"
        for field in _fields(mapping.get("mappings", {}).get("properties", {}))
        if field.get("type") == "text"
    }
    return {
        name: {key: float(described.get(name, {}).get(key, default)) for key, default in NUMBERS.items()}
        for name in sorted(used)
        if described.get(name, {}).get("type", "BM25") == "BM25"
    }


def with_similarities(mapping: Mapping[str, Any], numbers: Similarities) -> dict[str, Any]:
    """The mapping with other numbers for some similarities, in the one form."""
    if not numbers:
        return dict(mapping)
    changed = canonical(mapping)
    settings = dict(changed.get("settings", {}))
    described = dict(settings.get(SIMILARITY, {}))
    for name, values in numbers.items():
        described[name] = {"type": "BM25", **described.get(name, {}), **values}
    return {**changed, "settings": {**settings, SIMILARITY: described}}


def without_similarities(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping without what its similarities are, in the one form."""
    changed = canonical(mapping)
    settings = {key: value for key, value in changed.get("settings", {}).items() if key != SIMILARITY}
    return {**changed, "settings": settings}


def _fields(properties: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All fields and sub-fields."""
    for field in properties.values():
        if isinstance(field, Mapping):
            yield field
            yield from _fields(field.get("fields", {}))


def _is_canonical(value: object) -> bool:
    """Whether a setting is in the one form as it stands: most are, and to put one together anew takes long."""
    if not isinstance(value, dict):
        return not isinstance(value, Mapping)
    return "0" not in value and all(
        name and "." not in name and _is_canonical(one) for name, one in value.items()
    )


def _flattened(settings: Mapping[str, Any], above: Path) -> Iterator[tuple[Path, Any]]:
    """Every value under its whole name; an object without members is a value."""
    for name, value in settings.items():
        path = (*above, *name.split("."))
        if not all(path):
            raise BadSettings(f"the setting {name!r} of a mapping has an empty part in its name")
        if isinstance(value, Mapping) and value:
            yield from _flattened(value, path)
        else:
            yield path, dict(value) if isinstance(value, Mapping) else value


def _nested(flat: Mapping[Path, Any]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path, value in flat.items():
        place = root
        for part in path[:-1]:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise _twice(path)
        held = place.setdefault(path[-1], value)
        if held != value and value != {}:  # `{}` adds nothing to the members that there are
            raise _twice(path)
    return {name: _with_lists(value) for name, value in root.items()}


def _with_lists(value: Any) -> Any:
    """A value whose objects with the names 0, 1, 2, ... are lists, as `filter.0` and `filter.1` make one."""
    if not isinstance(value, dict) or not value:
        return value
    places = [str(place) for place in range(len(value))]
    if set(value) == set(places) and not any(isinstance(one, dict) for one in value.values()):
        return [value[place] for place in places]
    return {name: _with_lists(one) for name, one in value.items()}


def _twice(path: Path) -> BadSettings:
    return BadSettings(f"the settings of the mapping say what {'.'.join(path)} is twice, and not the same")
