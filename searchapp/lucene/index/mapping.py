"""Mappings: the fields of a create-index body, the names of properties, and the values of a document's JSON.

A *field* has postings: `text` and its sub-field `text.prose` are two fields with one source. A dot in a name stands
for an object, and the number and depth of names are limited, as in Elasticsearch. In a document arrays may be
nested and null is no value; a text or keyword field takes a number or `true` as written in the JSON, a field of
numbers takes numbers as text; a field of integers takes the whole part of decimals.
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

MOST_FIELDS = 1_000
DEEPEST = 20
"""Elasticsearch's defaults of `index.mapping.total_fields.limit` and `index.mapping.depth.limit`."""

# fmt: off
METADATA = frozenset([
    "_data_stream_timestamp", "_doc_count", "_field_names", "_id", "_ignored", "_ignored_source", "_index",
    "_inference_fields", "_nested_path", "_routing", "_seq_no", "_source", "_tier", "_version",
])
# fmt: on
"""Names of what Elasticsearch itself keeps of a document."""


def check(properties: Collection[str], stored: Collection[str]) -> None:
    """Refuse names that Elasticsearch refuses, and those whose meaning there is another one than here.

    `stored` are the properties that are kept and not indexed.

    Raises:
        Refused: a name is empty, blank, taken, or stands for a field and for an object.
    """
    for name in properties:
        parts = name.split(".")
        if len(parts) > 1 and not parts[-1]:
            raise unsupported(f"the name {name!r} of a field, which ends in a dot,")
        if not all(part.strip(JAVA_WHITESPACE) for part in parts):
            raise invalid(f"the name of the field {name!r} is blank, or a part of it")
        if parts[0] in METADATA:
            raise invalid(f"{parts[0]} is the name of something that Elasticsearch itself keeps")
        if len(parts) > DEEPEST:
            raise invalid(
                f"the name of the field {name!r} stands for more than {DEEPEST} objects inside one another"
            )
        for above in objects(name):
            if above in stored:
                raise unsupported(f"the field {name} below {above}, which is not indexed,")
            if above in properties:
                raise invalid(f"{above} is a field, and an object because of {name}")


def check_inner(name: str, inner: str) -> None:
    """Refuse names of sub-fields in the same way."""
    if not inner:
        raise unsupported(f"a sub-field of {name} without a name")
    if "." in inner:
        raise invalid(f"the sub-field {name}.{inner} has a dot in its name")


def check_number(properties: Collection[str], fields: int) -> None:
    """Refuse a mapping that is larger than Elasticsearch's limit; `fields` come with objects by their names' dots."""
    count = fields + len({above for name in properties for above in objects(name)})
    if count > MOST_FIELDS:
        raise invalid(
            f"the mapping has {count:,} fields and objects, and at most {MOST_FIELDS:,} are allowed"
        )


def objects(name: str) -> Iterator[str]:
    """The names of the objects that a property lies in.

    >>> list(objects("a.b.c"))
    ['a', 'a.b']
    """
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts)))


TEXT = "text"
KEYWORD = "keyword"
INTEGERS = {"long": 63, "integer": 31, "short": 15, "byte": 7}
"""Bits that the absolute value of a number of the type may have."""
FLOATS = ("double", "float")

_WITHOUT_EFFECT = ("number_of_replicas", "auto_expand_replicas", "refresh_interval")
"""Settings of a server's indexes that no ranking depends on."""

MOST_META, LONGEST_META_KEY, LONGEST_META_VALUE = 5, 20, 50
"""What Elasticsearch keeps of the `meta` of a field, in entries and in characters."""

_PARAMETERS = {
    TEXT: {"type", "fields", "analyzer", "search_analyzer", "similarity", "meta"},
    KEYWORD: {"type", "fields", "meta"},
    **{number: {"type", "fields", "meta"} for number in (*INTEGERS, *FLOATS)},
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an index.

    `source` is the property that its values come from. Analyzers and similarity are None where the type has
    none: a keyword is scored by BM25 without lengths, a number not at all.
    """

    name: str
    type: str
    source: str
    analyzer: str | None = None
    search_analyzer: str | None = None
    similarity: BM25 | None = None

    @property
    def is_text(self) -> bool:
        return self.type == TEXT

    @property
    def is_number(self) -> bool:
        return self.type in INTEGERS or self.type in FLOATS


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of an index by name, in the order of the mapping, and its settings for analysis.

    `stored` are the properties that come with a document and are not indexed.
    """

    fields: Mapping[str, Field]
    analysis: Mapping[str, Any]
    stored: frozenset[str] = frozenset()

    @classmethod
    def of(cls, mapping: Mapping[str, Any]) -> Schema:
        """Read a create-index body.

        Raises:
            Refused: the body has something that the embedded engine does not support, or that makes no sense; a
                line for each such part.
        """
        schema, problems = cls.read(mapping)
        problems.raise_if_any()
        return schema

    @classmethod
    def read(cls, mapping: Mapping[str, Any]) -> tuple[Schema, ErrorCollector]:
        """Return what could be read of a create-index body, and what is wrong with the rest, by JSON paths."""
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
            check(properties, stored)
        reader = _Reader(analysis, similarities, problems)
        indexed = {name: described for name, described in properties.items() if name not in stored}
        fields = {field.name: field for field in reader.fields(indexed)}
        with problems.at("mappings.properties"):
            check_number(properties, len(fields) + len(stored))
        return cls(fields, analysis, stored), problems


def _object(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of a mapping that must be an object if it is there."""
    return parameters.mapping(given.get(name, {}), f"`{name}` of a mapping")


class _Reader:
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
                for inner, also in _object(described, "fields").items():
                    with self._problems.at(f"{path}.fields.{inner}"):
                        check_inner(name, inner)
                        if "fields" in parameters.mapping(also, f"the sub-field {name}.{inner}"):
                            raise invalid(f"the sub-field {name}.{inner} has sub-fields of its own")
                        yield self._field(f"{name}.{inner}", name, also)

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
        for given in ("analyzer", "search_analyzer"):
            if given in described:
                parameters.name(described[given], f"`{given}` of the field {name}")
        analyzer = described.get("analyzer", default)
        searching = described.get("analyzer") or self._default("default_search", default)
        return Field(
            name,
            kind,
            source,
            analyzer=analyzer,
            search_analyzer=described.get("search_analyzer", searching),
            similarity=self._similarities[similarity],
        )

    def _default(self, name: str, otherwise: str) -> str:
        return name if name in self._analyzers else otherwise


def _check_meta(meta: Mapping[str, Any], name: str) -> None:
    """Elasticsearch keeps a few short words about a field, and nothing else."""
    if len(meta) > MOST_META:
        raise invalid(f"`meta` of the field {name} has more than {MOST_META} entries")
    for key, value in meta.items():
        if not isinstance(value, str) or len(key) > LONGEST_META_KEY or len(value) > LONGEST_META_VALUE:
            raise invalid(
                f"`meta` of the field {name} must have keys of at most {LONGEST_META_KEY} characters and values that "
                f"are text of at most {LONGEST_META_VALUE}, unlike {key!r}"
            )


def _similarity(name: str, options: Any) -> dict[str, BM25]:
    """Return the similarity by its name; nothing if Elasticsearch takes it for absent."""
    place = f"the similarity {name}"
    given = {key: value for key, value in parameters.mapping(options, place).items() if value is not None}
    if not given:
        return {}
    if name in ("BM25", "boolean") or "." in name:
        raise invalid(f"{place} has a name that is taken or has a dot")
    if "type" not in given:
        raise invalid(f"{place} has no `type`")
    if parameters.raw_text(given["type"], f"the type of {place}") != "BM25":
        raise unsupported(f"the type `{given['type']}` of {place}")
    known_only(given, {"type", "k1", "b", "discount_overlaps"}, place)
    if not parameters.flag(given.get("discount_overlaps", True), f"`discount_overlaps` of {place}"):
        raise unsupported(f"`discount_overlaps: false` of {place}")
    k1, b = (_setting(given, key, default, place) for key, default in (("k1", DEFAULT_K1), ("b", DEFAULT_B)))
    if not (0 <= k1 < float("inf") and 0 <= b <= 1):
        raise invalid(f"{place} has k1 {k1:g} and b {b:g}, but k1 must not be negative and b be from 0 to 1")
    return {name: BM25(k1, b)}


def _setting(given: Mapping[str, Any], key: str, default: float, place: str) -> float:
    """A number among the settings of an index, which Elasticsearch keeps as text."""
    place = f"{key} of {place}"
    return parameters.any_number(parameters.raw_text(given.get(key, default), place), place)


MOST_PLACES = 19
"""Decimals of a text for a field of type long; a text with more is 0 to Elasticsearch, whatever its digits."""


def flatten(value: Any) -> list[Any]:
    """Return the values of a property, depth first, without nulls."""
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flatten(item)]
    return [] if value is None else [value]


def by_depth(value: Any) -> Iterator[Any]:
    """The values of a property, those of inner arrays after those around them, as Elasticsearch highlights them."""
    waiting = deque([value])
    while waiting:
        one = waiting.popleft()
        if isinstance(one, list | tuple):
            waiting += one
        elif one is not None:
            yield one


def indexed_text(value: Any, field: Field) -> str:
    """A value as a text or keyword field takes it.

    Raises:
        TypeError: the value is an object, or a number that JSON does not have.
        OverflowError: the value is a number with too many digits.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return parameters.json_text(value)
    raise TypeError(f"{field.name} is a {field.type} field, but its value is {value!r}")


def shown_text(value: Any, field: Field) -> str:
    """A value that was indexed as text, as Elasticsearch marks matches in it: it reads the document's JSON again."""
    if isinstance(value, float):
        return parameters.printed(value, np.float64)
    return indexed_text(value, field)


def number(value: Any, field: Field) -> Any:
    """A value of a field of numbers as it is kept: an int, or a float of the field's precision; None for no value.

    Raises:
        TypeError: the value is no number.
        OverflowError: the value does not fit the field's type.
    """
    if value == "":
        return None
    given = _given(value, field)
    if field.type in FLOATS:
        kept = _float(value) if field.type == "float" else given
        if not math.isfinite(kept):
            raise OverflowError(f"{_short(value)} does not fit into {field.name}, a {field.type} field")
        return kept
    return _whole(value, given, field)


def _given(value: Any, field: Field) -> float:
    """The double that a value comes to; of text for integers of 64 bits the digits are read."""
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


def _float(value: str | int | float) -> float:
    if isinstance(value, str):
        return parameters.float32_of_text(value)
    return parameters.float32_of_json(value)


def _whole(value: str | int | float, given: float, field: Field) -> int:
    """A value of a field of integers, with decimals cut off."""
    limit = 1 << INTEGERS[field.type]
    whole: int | None
    if field.type == "long":
        whole = _long(value, given)
    elif field.type == "short" and isinstance(value, str):
        whole = _cut(given, limit)
    else:  # bytes, and shorts that come as numbers, are read as integers of 32 bits first
        whole = _cut(given, 1 << 31)
    if whole is None or not -limit <= whole < limit:
        raise OverflowError(f"{_short(value)} does not fit into {field.name}, a {field.type} field")
    return whole


def _cut(given: float, limit: int) -> int | None:
    """A double without its decimals, if it is not beyond the limit with them; what is no number is 0."""
    if math.isnan(given):
        return 0
    return int(given) if -limit <= given <= limit - 1 else None


def _long(value: str | int | float, given: float) -> int | None:
    """An integer of 64 bits: of text from its digits, of a double that is just too great the greatest."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return min(int(given), 2**63 - 1) if abs(given) <= 2.0**63 else None
    digits = parameters.big_decimal(value)
    exponent = digits.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent > MOST_PLACES:
        return None
    return 0 if exponent < -MOST_PLACES else int(digits)


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 4000 else "a very long number"
    return text if len(text) <= 60 else f"{text[:60]}…"
