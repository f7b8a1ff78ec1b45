"""The canonical form of index settings.

    {"analysis": {"analyzer": {"mine": {"tokenizer": "standard"}}}}
    {"index": {"analysis": {"analyzer": {"mine": {"tokenizer": "standard"}}}}}
    {"index.analysis.analyzer.mine.tokenizer": "standard"}

Elasticsearch flattens settings to dotted names, with or without the prefix `index.`; lists may be written as
`filter.0`, `filter.1`. The first form above is canonical.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from searchapp.lucene.errors import BadSettings

INDEX = "index"

NOT_INDEXED = {"type": "object", "enabled": False}  # a property that is stored but not searched

SIMILARITY = "similarity"
NUMBERS = {"k1": 1.2, "b": 0.75}  # parameters of BM25, with Lucene's defaults

SettingPath = tuple[str, ...]  # the parts of a setting's name

Similarities = Mapping[str, Mapping[str, float]]  # parameters by name of the similarity


class MappedField(NamedTuple):
    """A field in the `properties` of a mapping, by its full name."""

    name: str
    source: str  # the property with its values: itself, except for a sub-field
    described: Mapping[str, Any]
    is_nested: bool  # whether only `nested` queries match it

    @property
    def type(self) -> str:
        return str(self.described.get("type", "object"))


def mapped_fields(
    properties: Mapping[str, Any], prefix: str = "", *, is_nested: bool = False
) -> Iterator[MappedField]:
    """Yield the fields, sub-fields and objects of a mapping's `properties`, each before its inner ones.

    >>> [field.name for field in mapped_fields({"a": {"properties": {"b": {"type": "text", "fields": {"c": {}}}}}})]
    ['a', 'a.b', 'a.b.c']
    """
    for short, described in properties.items():
        if not isinstance(described, Mapping):
            continue
        field = MappedField(prefix + short, prefix + short, described, is_nested)
        yield field
        for inner in mapped_fields(described.get("fields", {}), f"{field.name}.", is_nested=is_nested):
            yield inner._replace(source=field.name)
        is_inside = is_nested or field.type == "nested"
        yield from mapped_fields(described.get("properties", {}), f"{field.name}.", is_nested=is_inside)


def canonical(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return a create-index body with its settings in canonical form.

    >>> canonical({"settings": {"index.similarity.default": {"k1": 1}, "index": {"similarity.default.b": 0}}})
    {'settings': {'similarity': {'default': {'k1': 1, 'b': 0}}}}

    Raises:
        BadSettings: settings are not objects, a name has an empty part, or a setting has two values.
    """
    if "settings" not in mapping:
        return dict(mapping)
    settings = mapping["settings"]
    if not isinstance(settings, Mapping):
        raise BadSettings("`settings` of a mapping must be an object")
    if INDEX not in settings and _is_canonical(settings):
        return dict(mapping)
    flat: dict[SettingPath, Any] = {}
    for path, value in _flattened(settings, ()):
        if path[0] == INDEX:
            path = path[1:]
            if not path and value != {}:
                raise BadSettings("`index` in the settings of a mapping must be an object")
        if path and flat.setdefault(path, value) != value:
            raise _conflict(path)
    return {**mapping, "settings": _nested(flat)}


def similarities(mapping: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return k1 and b of each BM25 similarity that a text field uses, by name.

    >>> similarities({"mappings": {"properties": {"text": {"type": "text"}}}})
    {'default': {'k1': 1.2, 'b': 0.75}}
    """
    described = canonical(mapping).get("settings", {}).get(SIMILARITY, {})
    used = {
        field.described.get(SIMILARITY) or "default"
        for field in mapped_fields(mapping.get("mappings", {}).get("properties", {}))
        if field.type == "text"
    }
    return {
        name: {key: float(described.get(name, {}).get(key, default)) for key, default in NUMBERS.items()}
        for name in sorted(used)
        if name != "boolean" and described.get(name, {}).get("type", "BM25") == "BM25"
    }


def with_similarities(mapping: Mapping[str, Any], numbers: Similarities) -> dict[str, Any]:
    """Return the canonical mapping with other parameters of similarities."""
    if not numbers:
        return dict(mapping)
    changed = canonical(mapping)
    settings = changed.get("settings", {})
    described = dict(settings.get(SIMILARITY, {}))
    for name, values in numbers.items():
        described[name] = {"type": "BM25", **described.get(name, {}), **values}
    return {**changed, "settings": {**settings, SIMILARITY: described}}


def without_similarities(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the canonical mapping without similarities."""
    changed = canonical(mapping)
    settings = {key: value for key, value in changed.get("settings", {}).items() if key != SIMILARITY}
    return {**changed, "settings": settings}


def _is_canonical(value: object) -> bool:
    # Most settings are canonical, and rebuilding them is slow.
    if not isinstance(value, dict):
        return not isinstance(value, Mapping)
    return "0" not in value and all(
        name and "." not in name and _is_canonical(inner) for name, inner in value.items()
    )


def _flattened(settings: Mapping[str, Any], prefix: SettingPath) -> Iterator[tuple[SettingPath, Any]]:
    """Yield every value with its path; an empty object is a value."""
    for name, value in settings.items():
        path = (*prefix, *name.split("."))
        if not all(path):
            raise BadSettings(f"the setting {name!r} of a mapping has an empty part in its name")
        if isinstance(value, Mapping) and value:
            yield from _flattened(value, path)
        else:
            yield path, dict(value) if isinstance(value, Mapping) else value


def _nested(flat: Mapping[SettingPath, Any]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path, value in flat.items():
        node = root
        for part in path[:-1]:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise _conflict(path)
        present = node.setdefault(path[-1], value)
        if present != value and value != {}:  # `{}` adds no members
            raise _conflict(path)
    return {name: _with_lists(value) for name, value in root.items()}


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict) or not value:
        return value
    indices = [str(index) for index in range(len(value))]
    if set(value) == set(indices) and not any(isinstance(inner, dict) for inner in value.values()):
        return [value[index] for index in indices]
    return {name: _with_lists(inner) for name, inner in value.items()}


def _conflict(path: SettingPath) -> BadSettings:
    return BadSettings(f"the settings of the mapping set {'.'.join(path)} twice, to different values")
