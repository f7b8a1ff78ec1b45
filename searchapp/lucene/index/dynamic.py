"""Dynamic mapping: the types of fields that documents have and the mapping lacks.

The first value of a field decides, in the order of the documents. Source:
`org.elasticsearch.index.mapper.DynamicFieldsBuilder` and `DynamicTemplate`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from searchapp.lucene import parameters
from searchapp.lucene.analysis.characters import utf16_length
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import Refused, invalid, known_only, unsupported
from searchapp.lucene.index.dates import DEFAULT_FORMAT, date_formats
from searchapp.lucene.index.mapping import GEO_POINT, NESTED, OBJECT, Schema, check_name, leaves_of, objects
from searchapp.lucene.records import Document

Described = Mapping[str, Any]  # a field as mappings describe it

Added = Mapping[
    str, Described
]  # new fields and objects by their full names, objects before what they contain

# By the type that a template matches.
_DEFAULTS: Mapping[str, Described] = {
    "string": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
    "long": {"type": "long"},
    "double": {"type": "float"},
    "boolean": {"type": "boolean"},
    "date": {"type": "date"},
    "object": {"type": OBJECT},
    "binary": {"type": "binary"},
}

_DATE_FORMATS = (DEFAULT_FORMAT, "yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis")

_OF_LISTS = (GEO_POINT, "geo_shape", "point", "shape", "completion")  # types whose parsers read whole lists

# Numbers in the list of a new field that becomes a `dense_vector`.
_VECTOR_SIZES = range(128, 4097)

_MOST_LONG, _LONG_DIGITS = 2**63, 19

_PATTERNS = ("match", "unmatch", "path_match", "path_unmatch", "match_mapping_type", "unmatch_mapping_type")


def completed(mapping: Mapping[str, Any], added: Added) -> dict[str, Any]:
    """Return a create-index body with further fields.

    >>> completed({"mappings": {"properties": {"a": {"type": "object"}}}}, {"a.b": {"type": "long"}})
    {'mappings': {'properties': {'a': {'type': 'object', 'properties': {'b': {'type': 'long'}}}}}}
    """
    if not added:
        return dict(mapping)
    mappings = copy.deepcopy(dict(mapping.get("mappings", {})))
    containers: dict[str, dict[str, Any]] = {}

    def read(described: dict[str, Any], path: str) -> None:
        if described.get("type", OBJECT) in (OBJECT, NESTED):
            containers[path] = described
            for name, inner in described.get("properties", {}).items():
                read(inner, f"{path}.{name}".lstrip("."))

    read(mappings, "")
    for name, described in added.items():
        path = next(part for part in (*reversed([*objects(name)]), "") if part in containers)
        inner = copy.deepcopy(dict(described))
        containers[path].setdefault("properties", {})[name[len(path) :].lstrip(".")] = inner
        read(inner, name)
    return {**mapping, "mappings": mappings}


def added_fields(mapping: Mapping[str, Any], documents: Iterable[Document]) -> Added:
    """Return the fields of documents that a mapping lacks; read no document if it is not dynamic.

    Raises:
        Refused: see `FieldGuesser`.
    """
    guesser = FieldGuesser(mapping)
    guesser.read_all(documents)
    return guesser.added


class FieldGuesser:
    """Finds the fields of documents that a mapping lacks, if it is dynamic."""

    def __init__(self, mapping: Mapping[str, Any]) -> None:
        """Read the options of dynamic mapping.

        Raises:
            Refused: the mapping or an option is invalid or unsupported.
        """
        self._mapping = mapping
        self.added: dict[str, Described] = {}
        self._read_schema()
        self.is_active = "true" in self._dynamic.values()
        if self.is_active:
            mappings = mapping.get("mappings", {})
            self._finds_dates, self._finds_numbers = (
                parameters.flag(mappings.get(name, default), f"`{name}` of a mapping")
                for name, default in (("date_detection", True), ("numeric_detection", False))
            )
            self._formats = _date_formats(mappings.get("dynamic_date_formats", _DATE_FORMATS))
            self._templates = _templates(mappings.get("dynamic_templates", ()))

    def read_all(self, documents: Iterable[Document]) -> None:
        """Read documents, if the mapping is dynamic.

        Raises:
            Refused: a document has an invalid name or an unsupported value.
        """
        for document in documents if self.is_active else ():
            try:
                self.read(document.source())
            except Refused as error:
                raise Refused(f"the document {document.id}: {error}; nothing was changed") from error
            if len(self.added) > self._most_fields:
                return  # the mapping will be rejected

    def read(self, properties: Mapping[str, Any], prefix: str = "") -> None:
        """Add the new fields of a document, or of an object at a path with a dot at its end."""
        for key, value in properties.items():
            if prefix + key not in self._leaves:
                self._property(prefix, key, value)

    def _read_schema(self) -> None:
        schema = Schema.of(completed(self._mapping, self.added))
        self._leaves = {*schema.sources, *schema.stored, *schema.aliases}
        self._objects = {*schema.objects}
        self._dynamic = schema.dynamic
        self._most_fields = schema.most_fields
        self._schema = schema

    def _property(self, prefix: str, key: str, value: Any) -> None:
        name = prefix + key
        if name not in self._objects:
            for part in (*objects(name), name):
                if part in self._leaves:
                    return  # the writer rejects it, or the mapping stores it
                if part in self._objects:
                    continue
                if self._schema.dynamic_of(part) != "true":
                    return
                check_name(name)
                if part != name:
                    self._add(part, "object", self._template(part, "object"))
                    if part in self._leaves:
                        return
        for leaf in self._values(name, value):
            if isinstance(leaf, Mapping):
                if name not in self._objects and name not in self._leaves:
                    self._add(name, "object", self._template(name, "object"))
                if name in self._objects and name not in self._leaves:
                    self.read(leaf, f"{name}.")
            elif leaf is not None and name not in self._objects and name not in self._leaves:
                self._add_leaf(name, leaf, value)

    def _values(self, name: str, value: Any) -> Sequence[Any]:
        """Return the values of a property; none of a list that its template reads as a whole."""
        if isinstance(value, list | tuple) and name not in self._objects:
            described = self._template(name, "object")
            if described is not None and described.get("type") in _OF_LISTS:
                self._add(name, "object", described)
                return ()
        return leaves_of(value)

    def _add_leaf(self, name: str, leaf: Any, value: Any) -> None:
        kind, format_ = self._kind(leaf)
        described = self._template(name, kind)
        if described is None:
            if kind == "double" and isinstance(value, list | tuple) and len(value) in _VECTOR_SIZES:
                raise unsupported(
                    f"the type `dense_vector`, which a list of {len(value)} numbers has, in the new field {name}"
                )
            if format_ is not None:
                described = {"type": "date", "format": format_}
        elif format_ is not None and described["type"] == "date":
            described = {"format": format_, **described}
        self._add(name, kind, described)

    def _add(self, name: str, kind: str, described: Described | None) -> None:
        self.added[name] = _DEFAULTS[kind] if described is None else described
        if described is not None and (kind == "object" or described.get("type") in (OBJECT, NESTED)):
            self._read_schema()
        else:
            (self._objects if kind == "object" else self._leaves).add(name)

    def _kind(self, value: Any) -> tuple[str, str | None]:
        """Return the type of a value that templates match, and the format of a date."""
        if isinstance(value, bool):
            return "boolean", None
        if isinstance(value, int | float):
            return ("long" if isinstance(value, int) else "double"), None
        is_long, is_double = _is_long(value), _is_double(value)
        if self._finds_numbers and (is_long or is_double):
            return ("long" if is_long else "double"), None
        if self._finds_dates and not (is_long or is_double):
            for format_, read in self._formats.items():
                try:
                    read(value)
                except ValueError:
                    continue
                return "date", format_
        return "string", None

    def _template(self, name: str, kind: str) -> Described | None:
        """Return the description of a field by the first template that matches; None without one."""
        return next(
            (template.described(name, kind) for template in self._templates if template.matches(name, kind)),
            None,
        )


def _is_long(text: str) -> bool:
    """Whether Java's `Long.parseLong` reads a text."""
    if not re.fullmatch(r"[+-]?\d+", text) or utf16_length(text) != len(text):
        return False
    digits = text.lstrip("+-0")
    return len(digits) < _LONG_DIGITS or (
        len(digits) == _LONG_DIGITS and -_MOST_LONG <= int(text) < _MOST_LONG
    )


def _is_double(text: str) -> bool:
    try:
        parameters.double(text)
    except ValueError:
        return False
    return True


def _date_formats(value: Any) -> dict[str, Callable[[str], int]]:
    """Return the functions that read dates by their formats."""
    label = "`dynamic_date_formats` of a mapping"
    if value == "none":
        return {}
    formats = [parameters.text(item, label) for item in _listed(value)]
    for format_ in formats:
        if format_.startswith("epoch_"):
            raise invalid(f"{label} has {format_}, which is not possible there")
    return {format_: date_formats(format_).milliseconds for format_ in formats}


@dataclass(frozen=True, slots=True)
class _FieldTemplate:
    """A dynamic template: patterns of names and paths, types that it matches, and the mapping of such a field."""

    patterns: Mapping[str, Sequence[Callable[[str], object]]]
    kinds: frozenset[str]
    mapping: Described

    def matches(self, path: str, kind: str) -> bool:
        if kind not in self.kinds:
            return False
        name = path.rpartition(".")[2]

        def any_of(parameter: str, value: str) -> bool:
            return any(matches(value) for matches in self.patterns[parameter])

        return not (
            (self.patterns["path_match"] and not any_of("path_match", path))
            or (self.patterns["match"] and not any_of("match", name))
            or any_of("path_unmatch", path)
            or any_of("unmatch", name)
        )

    def described(self, path: str, kind: str) -> Described:
        name, type_ = path.rpartition(".")[2], str(_DEFAULTS[kind]["type"])
        described: dict[str, Any] = _filled(
            self.mapping, {"{dynamic_type}": type_, "{dynamicType}": type_, "{name}": name}
        )
        return {**described, "type": described.get("type", type_)}


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {_filled(key, variables): _filled(inner, variables) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(inner, variables) for inner in value]
    if isinstance(value, str):
        for variable, text in variables.items():
            value = value.replace(variable, text)
    return value


def _templates(value: Any) -> list[_FieldTemplate]:
    templates: dict[str, _FieldTemplate] = {}
    for item in parameters.listed(value, "`dynamic_templates` of a mapping"):
        name, described = parameters.single(item, "a dynamic template")
        templates[name] = _template(
            parameters.mapping(described, f"the dynamic template {name}"), f"the dynamic template {name}"
        )
    return list(templates.values())


def _template(described: Mapping[str, Any], label: str) -> _FieldTemplate:
    known_only(described, {*_PATTERNS, "match_pattern", "mapping", "runtime"}, label)
    if "runtime" in described:
        raise unsupported(f"`runtime` in {label}")
    if "mapping" not in described:
        raise invalid(f"{label} has no `mapping`")
    mode = described.get("match_pattern", "simple")
    if mode not in ("simple", "default"):
        raise unsupported(f"`match_pattern: {mode}` in {label}")
    given = {
        name: [parameters.text(item, f"`{name}` of {label}") for item in _listed(described[name])]
        for name in _PATTERNS
        if name in described
    }
    kinds, others = given.get("match_mapping_type", []), given.get("unmatch_mapping_type", [])
    if kinds == ["*"] or (
        not kinds and any(given.get(name) for name in ("match", "path_match", "unmatch_mapping_type"))
    ):
        kinds = [*_DEFAULTS]
    for kind in (*kinds, *others):
        if kind not in _DEFAULTS:
            raise invalid(f"{label} has the type {kind!r}, but must have {', '.join(_DEFAULTS)}")
    return _FieldTemplate(
        {name: [_wildcard(pattern) for pattern in given.get(name, ())] for name in _PATTERNS[:4]},
        frozenset(kinds) - frozenset(others),
        parameters.mapping(described["mapping"], f"`mapping` of {label}"),
    )


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _wildcard(pattern: str) -> Callable[[str], object]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL).fullmatch
