"""Mappings: the fields of a create-index body, names of properties, and values of documents.

A *field* has postings: `text` and its sub-field `text.prose` are two fields with one source. A dot in a name
separates an object from its property.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from searchapp.lucene import parameters
from searchapp.lucene.analysis.options import JAVA_WHITESPACE
from searchapp.lucene.errors import BadSettings, ErrorCollector, invalid, known_only, unsupported
from searchapp.lucene.index.index_settings import NOT_INDEXED, canonical
from searchapp.lucene.similarity import BM25, DEFAULT_B, DEFAULT_K1

# Elasticsearch's defaults of `index.mapping.total_fields.limit` and `index.mapping.depth.limit`.
MOST_FIELDS = 1_000
DEEPEST = 20

# Names of Elasticsearch's own properties of a document.
# fmt: off
METADATA = frozenset([
    "_data_stream_timestamp", "_doc_count", "_field_names", "_id", "_ignored", "_ignored_source", "_index",
    "_inference_fields", "_nested_path", "_routing", "_seq_no", "_source", "_tier", "_version",
])
# fmt: on

TEXT = "text"
KEYWORD = "keyword"
INTEGERS = {"long": 63, "integer": 31, "short": 15, "byte": 7}  # bits of the absolute value
FLOATS = ("double", "float")

# Elasticsearch's limits for the `meta` of a field, in entries and in characters.
MOST_META, LONGEST_META_KEY, LONGEST_META_VALUE = 5, 20, 50

MOST_DECIMALS = 19  # Elasticsearch reads a text with more decimals as 0 in a field of type long

# Settings without an effect on rankings.
_WITHOUT_EFFECT = ("number_of_replicas", "auto_expand_replicas", "refresh_interval")

_PARAMETERS = {
    TEXT: {"type", "fields", "analyzer", "search_analyzer", "similarity", "meta"},
    **{kind: {"type", "fields", "meta"} for kind in (KEYWORD, *INTEGERS, *FLOATS)},
}


def objects(name: str) -> Iterator[str]:
    """Yield the names of the objects that contain a property.

    >>> list(objects("a.b.c"))
    ['a', 'a.b']
    """
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts)))


def _check_names(properties: Collection[str], stored: Collection[str]) -> None:
    """Reject names that Elasticsearch rejects or interprets otherwise; `stored` are not indexed."""
    for name in properties:
        parts = name.split(".")
        if len(parts) > 1 and not parts[-1]:
            raise unsupported(f"the name {name!r} of a field, which ends in a dot,")
        if not all(part.strip(JAVA_WHITESPACE) for part in parts):
            raise invalid(f"the name of the field {name!r}, or a part of it, is blank")
        if parts[0] in METADATA:
            raise invalid(f"{parts[0]} is the name of a metadata field of Elasticsearch")
        if len(parts) > DEEPEST:
            raise invalid(f"the name of the field {name!r} has more than {DEEPEST} nested objects")
        for parent in objects(name):
            if parent in stored:
                raise unsupported(f"the field {name} below {parent}, which is not indexed,")
            if parent in properties:
                raise invalid(f"{parent} is a field, but {name} makes it an object")


def _check_number(properties: Collection[str], fields: int) -> None:
    count = fields + len({parent for name in properties for parent in objects(name)})
    if count > MOST_FIELDS:
        raise invalid(
            f"the mapping has {count:,} fields and objects, and at most {MOST_FIELDS:,} are allowed"
        )


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an index."""

    name: str
    type: str
    source: str  # the property that contains its values
    analyzer: str | None = None  # like `search_analyzer`, None except for text
    search_analyzer: str | None = None
    # None for numbers, which have no scores; keywords are scored without lengths.
    similarity: BM25 | None = None

    @property
    def is_text(self) -> bool:
        return self.type == TEXT

    @property
    def is_number(self) -> bool:
        return self.type in INTEGERS or self.type in FLOATS


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of an index by name, in the order of the mapping, and its analysis settings."""

    fields: Mapping[str, Field]
    analysis: Mapping[str, Any]
    stored: frozenset[str] = frozenset()  # properties that are stored but not indexed

    @classmethod
    def of(cls, mapping: Mapping[str, Any]) -> Schema:
        """Read a create-index body.

        Raises:
            Refused: parts are invalid or unsupported; a line for each.
        """
        schema, problems = cls.read(mapping)
        problems.raise_if_any()
        return schema

    @classmethod
    def read(cls, mapping: Mapping[str, Any]) -> tuple[Schema, ErrorCollector]:
        """Return the valid parts of a create-index body, and the errors of the others with JSON paths."""
        problems = ErrorCollector()
        settings: Mapping[str, Any] = {}
        analysis: Mapping[str, Any] = {}
        properties: Mapping[str, Any] = {}
        similarities = {"default": BM25(), "BM25": BM25()}
        with problems.at():
            known_only(mapping, {"settings", "mappings"}, "a mapping")
        with problems.at("settings"):
            try:
                settings = _object(canonical(mapping), "settings")
            except BadSettings as error:
                raise invalid(str(error)) from error
            one_shard = {"number_of_shards"} if str(settings.get("number_of_shards")) == "1" else set()
            known = {"analysis", "similarity", *_WITHOUT_EFFECT, *one_shard}
            known_only(settings, known, "the settings of an index")
        with problems.at("settings.analysis"):
            analysis = _object(settings, "analysis")
            _object(analysis, "analyzer")
        with problems.at("settings.similarity"):
            for name, options in _object(settings, "similarity").items():
                with problems.at(f"settings.similarity.{name}"):
                    similarities |= _similarity(name, options)
        with problems.at("mappings"):
            mappings = _object(mapping, "mappings")
            properties = _object(mappings, "properties")
            known_only(mappings, {"dynamic", "_meta", "properties"}, "`mappings`")
            if mappings.get("dynamic", "strict") != "strict":
                raise unsupported(f"`dynamic: {mappings['dynamic']}`, only `strict`")
            _object(mappings, "_meta")
        stored = frozenset(name for name, described in properties.items() if described == NOT_INDEXED)
        with problems.at("mappings.properties"):
            _check_names(properties, stored)
        reader = _FieldParser(analysis, similarities, problems)
        indexed = {name: described for name, described in properties.items() if name not in stored}
        fields = {field.name: field for field in reader.fields(indexed)}
        with problems.at("mappings.properties"):
            _check_number(properties, len(fields) + len(stored))
        return cls(fields, analysis, stored), problems


def _object(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return parameters.mapping(parent.get(name, {}), f"`{name}` of a mapping")


class _FieldParser:
    def __init__(
        self, analysis: Mapping[str, Any], similarities: Mapping[str, BM25], problems: ErrorCollector
    ) -> None:
        analyzers = analysis.get("analyzer")
        self._analyzers = analyzers if isinstance(analyzers, Mapping) else {}
        self._similarities = similarities
        self._problems = problems

    def fields(self, properties: Mapping[str, Any]) -> Iterator[Field]:
        for name, described in properties.items():
            path = f"mappings.properties.{name}"
            with self._problems.at(path):
                yield self._field(name, name, parameters.mapping(described, f"the field {name}"))
            if not isinstance(described, Mapping):
                continue
            with self._problems.at(path):
                for inner, inner_described in _object(described, "fields").items():
                    with self._problems.at(f"{path}.fields.{inner}"):
                        yield self._sub_field(name, inner, inner_described)

    def _sub_field(self, name: str, inner: str, described: Any) -> Field:
        if not inner:
            raise unsupported(f"a sub-field of {name} without a name")
        if "." in inner:
            raise invalid(f"the sub-field {name}.{inner} has a dot in its name")
        if "fields" in parameters.mapping(described, f"the sub-field {name}.{inner}"):
            raise invalid(f"the sub-field {name}.{inner} has sub-fields of its own")
        return self._field(f"{name}.{inner}", name, described)

    def _field(self, name: str, source: str, described: Mapping[str, Any]) -> Field:
        kind = str(described.get("type", "object"))
        if kind not in _PARAMETERS:
            raise unsupported(f"the type `{kind}` of the field {name}")
        known_only(described, _PARAMETERS[kind], f"the field {name}")
        _check_meta(_object(described, "meta"), name)
        if kind == KEYWORD:
            return Field(name, kind, source, similarity=self._similarities["default"])
        if kind != TEXT:
            return Field(name, kind, source)
        similarity = str(described.get("similarity") or "default")
        if similarity not in self._similarities:
            raise unsupported(f"the similarity `{similarity}` of the field {name}")
        default = self._default("default", "standard")
        for parameter in ("analyzer", "search_analyzer"):
            if parameter in described:
                parameters.name(described[parameter], f"`{parameter}` of the field {name}")
        searching = described.get("analyzer") or self._default("default_search", default)
        return Field(
            name,
            kind,
            source,
            analyzer=described.get("analyzer", default),
            search_analyzer=described.get("search_analyzer", searching),
            similarity=self._similarities[similarity],
        )

    def _default(self, name: str, otherwise: str) -> str:
        return name if name in self._analyzers else otherwise


def _check_meta(meta: Mapping[str, Any], name: str) -> None:
    if len(meta) > MOST_META:
        raise invalid(f"`meta` of the field {name} has more than {MOST_META} entries")
    for key, value in meta.items():
        if not isinstance(value, str) or len(key) > LONGEST_META_KEY or len(value) > LONGEST_META_VALUE:
            raise invalid(
                f"`meta` of the field {name} must have keys of at most {LONGEST_META_KEY} characters and values that "
                f"are text of at most {LONGEST_META_VALUE}, unlike {key!r}"
            )


def _similarity(name: str, options: Any) -> dict[str, BM25]:
    """Return the similarity by its name; empty if Elasticsearch ignores it."""
    label = f"the similarity {name}"
    settings = {key: value for key, value in parameters.mapping(options, label).items() if value is not None}
    if not settings:
        return {}
    if name in ("BM25", "boolean") or "." in name:
        raise invalid(f"{label} has a name that is taken or has a dot")
    if "type" not in settings:
        raise invalid(f"{label} has no `type`")
    if parameters.raw_text(settings["type"], f"the type of {label}") != "BM25":
        raise unsupported(f"the type `{settings['type']}` of {label}")
    known_only(settings, {"type", "k1", "b", "discount_overlaps"}, label)
    if not parameters.flag(settings.get("discount_overlaps", True), f"`discount_overlaps` of {label}"):
        raise unsupported(f"`discount_overlaps: false` of {label}")
    k1, b = (
        # Elasticsearch keeps the numbers of settings as text.
        parameters.any_number(
            parameters.raw_text(settings.get(key, default), f"{key} of {label}"), f"{key} of {label}"
        )
        for key, default in (("k1", DEFAULT_K1), ("b", DEFAULT_B))
    )
    if not (0 <= k1 < float("inf") and 0 <= b <= 1):
        raise invalid(f"{label} has k1 {k1:g} and b {b:g}, but k1 must not be negative and b be from 0 to 1")
    return {name: BM25(k1, b)}


# Values


def flatten(value: Any) -> list[Any]:
    """Return the values of a property, depth first, without nulls."""
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flatten(item)]
    return [] if value is None else [value]


def by_depth(value: Any) -> Iterator[Any]:
    """Yield the values of a property, breadth first, as Elasticsearch highlights them."""
    waiting = deque([value])
    while waiting:
        item = waiting.popleft()
        if isinstance(item, list | tuple):
            waiting += item
        elif item is not None:
            yield item


def indexed_text(value: Any, field: Field) -> str:
    """Return the text of a value for a text or keyword field."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return parameters.json_text(value)
    raise TypeError(f"{field.name} is a {field.type} field, but its value is {value!r}")


def shown_text(value: Any, field: Field) -> str:
    """Return an indexed value as Elasticsearch highlights it, after parsing the JSON again."""
    return parameters.printed(value, np.float64) if isinstance(value, float) else indexed_text(value, field)


def number(value: Any, field: Field) -> Any:
    """Return a value of a numeric field as an int, or a float in the field's precision; None for no value."""
    if value == "":
        return None
    double = _double(value, field)
    converted: int | float | None
    if field.type in FLOATS:
        converted = _float32(value) if field.type == "float" else double
        fits = math.isfinite(converted)
    else:
        limit = 1 << INTEGERS[field.type]
        if field.type == "long":
            converted = _long(value, double)
        elif field.type == "short" and isinstance(value, str):
            converted = _truncated(double, limit)
        else:  # Elasticsearch reads bytes, and shorts given as numbers, as integers of 32 bits first
            converted = _truncated(double, 1 << 31)
        fits = converted is not None and -limit <= converted < limit
    if not fits:
        raise OverflowError(f"{_short(value)} does not fit into {field.name}, a {field.type} field")
    return converted


def _double(value: Any, field: Field) -> float:
    """Return the double of a value; for type long, `_long` reads the digits of text."""
    try:
        if isinstance(value, str):
            return float(parameters.big_decimal(value)) if field.type == "long" else parameters.double(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return parameters.of_int(value)
        if isinstance(value, float) and math.isfinite(value):
            return value
    except ValueError:
        pass
    raise TypeError(f"{field.name} is a {field.type} field, but its value is {_short(value)}")


def _float32(value: str | int | float) -> float:
    if isinstance(value, str):
        return parameters.float32_of_text(value)
    return parameters.float32_of_json(value)


def _truncated(double: float, limit: int) -> int | None:
    """Drop the decimals of a double; 0 for NaN, None beyond the limit."""
    if math.isnan(double):
        return 0
    return int(double) if -limit <= double <= limit - 1 else None


def _long(value: str | int | float, double: float) -> int | None:
    """Return an integer of 64 bits: from the digits of text, or the maximum for 2.0**63."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return min(int(double), 2**63 - 1) if abs(double) <= 2.0**63 else None
    digits = parameters.big_decimal(value)
    exponent = digits.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent > MOST_DECIMALS:
        return None
    return 0 if exponent < -MOST_DECIMALS else int(digits)


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 4000 else "a very long number"
    return text if len(text) <= 60 else f"{text[:60]}…"
