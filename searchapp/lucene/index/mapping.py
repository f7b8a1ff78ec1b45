"""Mappings: the fields of a create-index body, names of properties, and values of documents.

A *field* has postings: `text` and its sub-field `text.prose` are two fields with one source. A dot in a name
separates an object from its property. Objects of the type `nested` are documents of their own (`Block`), which only
`nested` queries find.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from searchapp.lucene import geography, parameters, vectors
from searchapp.lucene.analysis.characters import utf16_length
from searchapp.lucene.analysis.options import JAVA_WHITESPACE, LIMITS
from searchapp.lucene.analysis.registry import NORMALIZER, SHINGLES, AnalysisRegistry
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import (
    BadSettings,
    ErrorCollector,
    NotSupported,
    invalid,
    known_only,
    unsupported,
)
from searchapp.lucene.index import addresses
from searchapp.lucene.index.dates import DEFAULT_FORMAT, date_formats
from searchapp.lucene.index.index_settings import canonical
from searchapp.lucene.similarity import BM25, DEFAULT_B, DEFAULT_K1, BooleanSimilarity

# Elasticsearch's defaults of `index.mapping.total_fields.limit` and `index.mapping.depth.limit`.
MOST_FIELDS = 1_000
DEEPEST = 20

# Elasticsearch's defaults of `index.mapping.nested_fields.limit` and `index.mapping.nested_objects.limit`.
MOST_NESTED_FIELDS = 100
MOST_NESTED_OBJECTS = 10_000

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
SCALED = "scaled_float"  # stored as an integer of 64 bits
FLOATS: Mapping[str, type[np.floating[Any]]] = {
    "double": np.float64,
    "float": np.float32,
    "half_float": np.float16,
}
DATE = "date"
GEO_POINT = "geo_point"
DENSE_VECTOR = "dense_vector"
RANGES = {  # the types of their bounds
    "integer_range": "integer",
    "long_range": "long",
    "float_range": "float",
    "double_range": "double",
    "date_range": DATE,
}

# Elasticsearch's limits for the `meta` of a field, in entries and in characters.
MOST_META, LONGEST_META_KEY, LONGEST_META_VALUE = 5, 20, 50

MOST_DECIMALS = 19  # Elasticsearch reads a text with more decimals as 0 in a field of type long

# Elasticsearch's default of `index.max_result_window`.
RESULT_WINDOW = 10_000

# Settings without an effect on hits and scores, also because an index on a server gets other values of `highlight` and
# `number_of_shards`; their values are not checked.
_WITHOUT_EFFECT = frozenset([
    "number_of_shards", "number_of_replicas", "auto_expand_replicas", "refresh_interval", "codec",
    "number_of_routing_shards", "highlight", "routing", "merge", "translog", "store", "priority",
    "unassigned", "lifecycle", "gc_deletes", "hidden", "max_inner_result_window", "max_rescore_window",
    "max_docvalue_fields_search", "max_script_fields", "search", "indexing", "analyze", "soft_deletes",
    "requests",
])  # fmt: skip

# Types whose values are stored and neither checked nor searched. Elasticsearch does not return the values of vectors.
UNSEARCHED = frozenset([
    "aggregate_metric_double", "annotated_text", "binary", "completion", "date_nanos",
    "geo_shape", "histogram",
    "icu_collation_keyword", "ip_range", "join", "murmur3", "percolator",
    "point", "rank_feature", "rank_features", "shape", "token_count", "version",
])  # fmt: skip

# The values of `index_options`: each includes the ones before it.
DOCS, FREQUENCIES, POSITIONS, OFFSETS = INDEX_OPTIONS = ("docs", "freqs", "positions", "offsets")

IP = "ip"

# Its values are also in fields of shingles, such as `NAME._2gram`, and in one of prefixes, which is not searched.
TYPED = "search_as_you_type"
PREFIXES = "._index_prefix"

# Its values are in two fields: all of them in the field itself, and with their keys in the field `NAME._keyed`.
FLATTENED = "flattened"
KEYED = "._keyed"
KEY_END = "\0"

ID = "id"  # the property that hits of equal scores are sorted by
BOOLEAN = "boolean"
ALIAS = "alias"
OBJECT = "object"
NESTED = "nested"

ROOT = ""  # the path of documents that are not inside a nested object

# fmt: off
_ANY_TYPE = {"type", "fields", "meta", "copy_to", "index", "store"}
_OF_VALUES = _ANY_TYPE | {"doc_values", "null_value"}
PARAMETERS = {
    TEXT: _ANY_TYPE | {
        "analyzer", "search_analyzer", "search_quote_analyzer", "similarity", "term_vector",
        "eager_global_ordinals", "fielddata", "index_options", "norms", "position_increment_gap",
    },
    TYPED: _ANY_TYPE | {
        "analyzer", "search_analyzer", "search_quote_analyzer", "similarity", "term_vector", "index_options", "norms",
        "max_shingle_size", "doc_values",
    },
    KEYWORD: _OF_VALUES | {
        "ignore_above", "eager_global_ordinals", "index_options", "normalizer", "norms", "similarity",
        "split_queries_on_whitespace",
    },
    BOOLEAN: _OF_VALUES | {"ignore_malformed"},
    SCALED: _OF_VALUES | {"ignore_malformed", "coerce", "scaling_factor"},
    DATE: _OF_VALUES | {"ignore_malformed", "format", "locale"},
    IP: _OF_VALUES | {"ignore_malformed"},
    FLATTENED: {
        "type", "meta", "index", "doc_values", "null_value", "depth_limit", "eager_global_ordinals", "ignore_above",
        "index_options", "similarity", "split_queries_on_whitespace",
    },
    GEO_POINT: _OF_VALUES | {"ignore_malformed", "ignore_z_value"},
    DENSE_VECTOR: {"type", "meta", "index", "dims", "element_type", "similarity", "index_options"},
    **dict.fromkeys(RANGES, (_OF_VALUES - {"null_value"}) | {"coerce", "format", "locale"}),
    **dict.fromkeys((*INTEGERS, *FLOATS), _OF_VALUES | {"ignore_malformed", "coerce"}),
}
_TERM_VECTORS = (
    "no", "yes", "with_positions", "with_offsets", "with_positions_offsets", "with_positions_payloads",
    "with_positions_offsets_payloads",
)
_OF_ROOT = {
    "dynamic", "_meta", "properties", "date_detection", "numeric_detection", "dynamic_date_formats",
    "dynamic_templates", "_source",
}
# fmt: on
_DYNAMIC = ("true", "false", "strict", "runtime")
_LOCALES = ("en", "en_US", "en-US", "root", "ROOT", "")  # without an effect on dates


def objects(name: str) -> Iterator[str]:
    """Yield the names of the objects that contain a property.

    >>> list(objects("a.b.c"))
    ['a', 'a.b']
    """
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts)))


def _scope(name: str, nested: Container[str]) -> str:
    return next((path for path in reversed([*objects(name)]) if path in nested), ROOT)


def _owner(member: BlockMember, name: str) -> BlockMember:
    """Return the innermost member around a nested object that can have a property."""
    while member.parent is not None and not name.startswith(f"{member.path}."):
        member = member.parent
    return member


def check_name(name: str) -> None:
    """Reject a name that Elasticsearch rejects or interprets otherwise."""
    parts = name.split(".")
    if len(parts) > 1 and not parts[-1]:
        raise unsupported(f"the name {name!r} of a field, which ends in a dot,")
    if not all(part.strip(JAVA_WHITESPACE) for part in parts):
        raise invalid(f"the name of the field {name!r}, or a part of it, is blank")
    if parts[0] in METADATA:
        raise invalid(f"{parts[0]} is the name of a metadata field of Elasticsearch")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an index."""

    name: str
    type: str
    source: str  # the property that contains its values
    # Analyzers of text, or the normalizer of keywords; otherwise None.
    analyzer: str | None = None
    search_analyzer: str | None = None
    quote_analyzer: str | None = None  # for phrases
    position_increment_gap: int | None = None  # replaces that of the analyzer
    normalize: Callable[[str], str] | None = field(default=None, compare=False)  # see `bound`
    # None for numbers, which have no scores; keywords are scored without lengths.
    similarity: BM25 | None = None
    has_own_similarity: bool = False  # whether the mapping names another one than the default
    null_value: Any = None  # replaces null
    ignore_above: int | None = None  # longer keywords, in UTF-16 code units, are not indexed
    has_doc_values: bool = True  # for text: lengths (`norms`)
    has_norms: bool = False  # whether scores depend on lengths
    index_options: str = DOCS  # what the postings contain; for text and keywords only
    is_stored: bool = False
    scaling_factor: float = 1.0  # of a `scaled_float`
    typed: str = ""  # the field of the type `search_as_you_type` that this one belongs to
    depth_limit: int = DEEPEST  # of the objects in a flattened value
    format: str = DEFAULT_FORMAT  # of dates
    ignores_malformed: bool = False  # whether values that are no dates, points or addresses are left out
    ignores_height: bool = True  # whether points may have a third coordinate
    dims: int = 0  # elements of a vector
    vector_similarity: str = ""  # see `vectors`
    path: str = ""  # JSON path in the create-index body

    def indexed(self, values: Iterable[Any]) -> list[Any]:
        """Return the values to index of those of the property, which may include null."""
        if self.type == FLATTENED:
            return [*self._flattened_terms(values)]
        present: list[Any] = []
        for value in values:
            if value is None or (value == "" and self.is_number and self.type != DATE):
                value = self.null_value
            if value is not None and not self.ignores(value):
                present.append(value)
        return present

    def _flattened_terms(self, values: Iterable[Any]) -> Iterator[str]:
        """Yield the terms of objects (`FlattenedFieldParser`)."""
        for value in values:
            if value is None:
                continue
            if not isinstance(value, Mapping):
                raise TypeError(f"{self.name} is a flattened field, but its value is {_short(value)}")
            for key, leaf in _keyed_leaves(value, (), self.depth_limit):
                leaf = self.null_value if leaf is None else leaf
                if leaf is None:
                    continue
                text = indexed_text(leaf, self)
                if KEY_END in key:
                    raise TypeError(f"{self.name} has a key with the character 0")
                if self.ignore_above is None or utf16_length(text) <= self.ignore_above:
                    yield f"{key}{KEY_END}{text}" if self.is_keyed else text

    def with_key(self, key: str) -> Field:
        """Return the field for the values with a key of a flattened field, without its name in the mapping."""
        return replace(self, normalize=lambda text: f"{key}{KEY_END}{text}")

    def ignores(self, value: Any) -> bool:
        """Whether a value is too long to be indexed, or a text or number that is no address."""
        if self.type == IP and self.ignores_malformed and not isinstance(value, Mapping):
            return not _is_address(value)
        return self.ignore_above is not None and utf16_length(indexed_text(value, self)) > self.ignore_above

    def bound(self, analyzers: AnalysisRegistry) -> Field:
        """Return the field with the function of its normalizer, if it has one."""
        if self.is_text or self.analyzer is None:
            return self
        return replace(self, normalize=analyzers.analyzer(self.analyzer).normalize)

    def normalized(self, text: str) -> str:
        return text if self.normalize is None else self.normalize(text)

    @property
    def is_keyed(self) -> bool:
        return self.type == FLATTENED and self.name.endswith(KEYED)

    @property
    def has_terms(self) -> bool:
        """Whether queries such as `prefix` can search for its terms."""
        return self.type in (TEXT, KEYWORD, FLATTENED)

    @property
    def is_text(self) -> bool:
        return self.type == TEXT

    @property
    def has_positions(self) -> bool:
        return self.index_options in (POSITIONS, OFFSETS)

    @property
    def is_counted(self) -> bool:
        """Whether its postings are stored with frequencies and length codes."""
        return self.is_text or self.has_norms or self.index_options == FREQUENCIES

    @property
    def is_integer(self) -> bool:
        return self.type in INTEGERS or self.type in (DATE, SCALED)

    @property
    def is_number(self) -> bool:
        """Whether its values are stored as numbers, such as milliseconds of dates."""
        return self.is_integer or self.type in FLOATS

    @property
    def is_geometry(self) -> bool:
        """Whether it has points, which only queries of their own search."""
        return self.type == GEO_POINT

    @property
    def is_range(self) -> bool:
        """Whether it has ranges of numbers or dates."""
        return self.type in RANGES

    @property
    def is_vector(self) -> bool:
        """Whether it has vectors, which only the section `knn` of a search body compares."""
        return self.type == DENSE_VECTOR

    @property
    def vector_bytes(self) -> int:
        """The size of a vector."""
        return self.dims // 8 if self.vector_similarity == vectors.HAMMING else self.dims

    @property
    def of_bounds(self) -> Field:
        """The field of the bounds of ranges."""
        return replace(self, type=RANGES[self.type])

    @property
    def has_postings(self) -> bool:
        """Whether its values are stored as terms."""
        return not (self.is_number or self.is_geometry or self.is_range or self.is_vector)


@dataclass(frozen=True, slots=True)
class NestedType:
    """The objects of a path, of the type `nested`."""

    parent: str  # path of the nested objects that contain them, or `ROOT`
    in_parent: bool  # whether their values are also values of the parent
    in_root: bool  # whether their values are also values of the document


@dataclass(slots=True)
class BlockMember:
    """A nested object or a document, with the values of each property, including null."""

    path: str
    parent: BlockMember | None
    values: defaultdict[str, list[Any]]


# A document with its nested objects in Lucene's order: each after the objects inside it, the document last.
Block = list[BlockMember]


@dataclass(frozen=True)
class Schema:
    """The fields of an index by name, in the order of the mapping, and its analysis settings."""

    fields: Mapping[str, Field]
    analysis: Mapping[str, Any]
    limits: Mapping[str, int] = field(default_factory=dict)  # of gram sizes
    stored: frozenset[str] = frozenset()  # properties that are stored and not read
    # Why queries reject a field, such as "the type geo_point"; the index has no postings of it.
    unsearched: Mapping[str, str] = field(default_factory=dict)
    unindexed: Mapping[str, Field] = field(default_factory=dict)  # those of them whose values are checked
    aliases: Mapping[str, str] = field(default_factory=dict)
    objects: frozenset[str] = frozenset()
    dynamic: Mapping[str, str] = field(default_factory=dict)  # by object; the root is ""
    copies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # targets of `copy_to` by property
    default_fields: tuple[str, ...] = ("*",)  # of queries that name no fields, with boosts
    nested: Mapping[str, NestedType] = field(
        default_factory=dict
    )  # by path, parents first; also in `objects`
    most_nested: int = MOST_NESTED_OBJECTS  # of a document
    most_fields: int = MOST_FIELDS
    hides_vectors: bool = True  # whether hits show the vectors of their sources on request only

    def block(self, source: Mapping[str, Any]) -> Block:
        """Return a document and its nested objects with their values in Elasticsearch's order.

        Raises:
            TypeError: the mapping lacks a property, or an object has another value.
            Refused: Elasticsearch would add a property to the mapping.
        """
        block: Block = []
        self._complete(source, "", BlockMember(ROOT, None, defaultdict(list)), block)
        return block

    def _complete(
        self, properties: Mapping[str, Any], prefix: str, member: BlockMember, block: Block
    ) -> None:
        """Read a member and append it to the block, after the members inside it."""
        self._collect(properties, prefix, member, block)
        if member.parent is not None:
            self._include(member, member.parent)
            if len(block) == self.most_nested:
                raise TypeError(f"it has more than {self.most_nested:,} nested objects")
        block.append(member)

    def _collect(self, properties: Mapping[str, Any], prefix: str, member: BlockMember, block: Block) -> None:
        """Add the values of a member's object; append nested objects inside to the block."""
        values = member.values
        for key, value in properties.items():
            if "." in key and (self.nested or self._of_objects):
                key, value = self._without_dots(prefix, key, value)
            name = prefix + key
            if name in self.sources:
                leaves = [value] if name in self._whole else leaves_of(value)
                values[name] += leaves
                for target in self.copies.get(name, ()):
                    _owner(member, target).values[target] += leaves
            elif name in self.objects and name not in self.stored:
                for inner in filter(lambda inner: inner is not None, leaves_of(value)):
                    if not isinstance(inner, Mapping):
                        raise TypeError(f"{name} is an object, but its value is {_short(inner)}")
                    if name in self.nested:
                        self._complete(inner, f"{name}.", BlockMember(name, member, defaultdict(list)), block)
                    else:
                        self._collect(inner, f"{name}.", member, block)
            elif name not in self.aliases or leaves_of(value):  # an empty list has no value
                self._require_ignored(name, value)

    def _without_dots(self, prefix: str, key: str, value: Any) -> tuple[str, Any]:
        """Split a key with dots that leads into a nested object or into the value of a field."""
        for path in objects(prefix + key):
            if len(path) > len(prefix) and (path in self.nested or path in self._of_objects):
                inner = (prefix + key)[len(path) + 1 :]
                for part in reversed(inner.split(".") if path in self._of_objects else [inner]):
                    value = {part: value}
                return path[len(prefix) :], value
        return key, value

    def _include(self, member: BlockMember, parent: BlockMember) -> None:
        """Add the values of a nested object to its parent or the document, if the mapping says so."""
        type_, targets = self.nested[member.path], []
        if type_.in_parent:
            targets.append(parent)
        if type_.in_root and not (type_.in_parent and parent.parent is None):
            targets.append(_owner(parent, ""))
        for target in targets:
            for name, values in member.values.items():
                target.values[name] += values

    def scope(self, name: str) -> str:
        """Return the path of the nested objects that have a property, or `ROOT`."""
        return _scope(name, self.nested) if self.nested else ROOT

    def fields_of(self, path: str) -> dict[str, Field]:
        """Return the fields that nested objects of a path can have, or the document."""
        return {name: field for name, field in self.fields.items() if path in self._paths(field.source)}

    def _paths(self, name: str) -> set[str]:
        """Return the paths whose nested objects can have the values of a property."""
        path = self.scope(name)
        paths = {path}
        while path != ROOT:
            type_ = self.nested[path]
            paths |= {ROOT} if type_.in_root else set()
            if not type_.in_parent:
                break
            path = type_.parent
            paths.add(path)
        return paths

    def dynamic_of(self, name: str) -> str:
        """Return what the mapping says about a property that it lacks, one of `DYNAMIC`."""
        return next(self.dynamic[part] for part in (*reversed([*objects(name)]), "") if part in self.dynamic)

    def _require_ignored(self, name: str, value: Any) -> None:
        """Reject a property that is not read, except one that the mapping ignores."""
        if name in self.stored:
            return
        check_name(name)
        for part in (*objects(name), name):
            if part in self.stored:
                return
            if part in self.sources:
                raise TypeError(f"{part} is a field, but {name} makes it an object")
            if part in self.aliases:
                raise TypeError(f"{part} is an alias, which documents can't have")
        dynamic = self.dynamic_of(name)
        if dynamic == "strict":
            raise TypeError(f"the mapping has no field {name}")
        if dynamic != "false" and any(leaf is not None for leaf in leaves_of(value)):
            kind = "runtime field" if dynamic == "runtime" else "field"
            raise unsupported(
                f"adding the {kind} {name} to the mapping (define it, or set `dynamic: false` to ignore it)"
            )

    @cached_property
    def sources(self) -> frozenset[str]:
        """The properties whose values are read."""
        return frozenset(field.source for field in (*self.fields.values(), *self.unindexed.values()))

    @cached_property
    def _of_objects(self) -> frozenset[str]:
        """The properties whose values may be objects."""
        indexed = (*self.fields.values(), *self.unindexed.values())
        return frozenset(
            field.source
            for field in indexed
            if field.type == FLATTENED or field.is_geometry or field.is_range
        )

    @cached_property
    def _whole(self) -> frozenset[str]:
        """The properties for which a list may be one value, a point or a vector."""
        return frozenset(
            field.source
            for field in (*self.fields.values(), *self.unindexed.values())
            if field.is_geometry or field.is_vector
        )

    @cached_property
    def vectors(self) -> Mapping[str, Field]:
        """The fields of vectors, by name."""
        fields = (*self.fields.values(), *self.unindexed.values())
        return {field.name: field for field in fields if field.is_vector}

    def shown_source(self, source: Any, shows_vectors: bool, prefix: str = "") -> Any:
        """Return a source, or a part of it whose path is `prefix`, as Elasticsearch does if it stores vectors apart."""
        if not self.vectors:
            return source
        if isinstance(source, list | tuple):
            return [self.shown_source(part, shows_vectors, prefix) for part in source]
        if not isinstance(source, Mapping):
            return source
        shown = {}
        for key, value in source.items():
            field = self.vectors.get(prefix + key)
            if field is None:
                shown[key] = self.shown_source(value, shows_vectors, f"{prefix}{key}.")
            elif shows_vectors and field.name in self.unindexed:
                shown[key] = value
            elif shows_vectors and value is not None:
                shown[key] = np.frombuffer(vector_of([value], field), np.int8).tolist()
        return shown

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
        limits: Mapping[str, int] = {}
        default_fields: tuple[str, ...] = ("*",)
        limits_of_mapping = {
            "total_fields": MOST_FIELDS,
            "nested_fields": MOST_NESTED_FIELDS,
            "nested_objects": MOST_NESTED_OBJECTS,
        }
        similarities = {"default": BM25(), "BM25": BM25(), "boolean": BooleanSimilarity()}
        with problems.at():
            known_only(mapping, {"settings", "mappings"}, "a mapping")
        with problems.at("settings"):
            try:
                settings = _object(canonical(mapping), "settings")
            except BadSettings as error:
                raise invalid(str(error)) from error
            known = {
                *("analysis", "similarity", "mapping", "max_result_window", "query"),
                *LIMITS,
                *_WITHOUT_EFFECT,
            }
            known_only(settings, known, "the settings of an index")
            window = _natural(settings.get("max_result_window", RESULT_WINDOW), "`max_result_window`")
            if window < RESULT_WINDOW:
                raise unsupported(f"`max_result_window: {window}`, only {RESULT_WINDOW:,} or more")
            limits = gram_limits(settings)
        with problems.at("settings.query"):
            known_only(_object(settings, "query"), {"default_field"}, "the settings `index.query`")
            default_fields = _default_fields(_object(settings, "query"))
        hides_vectors = True
        with problems.at("settings.mapping"):
            options = dict(_object(settings, "mapping"))
            hides_vectors = _boolean(options.pop("exclude_source_vectors", True), "`exclude_source_vectors`")
            known_only(options, set(limits_of_mapping), "the settings of a mapping")
            for name in options:
                known_only(_object(options, name), {"limit"}, f"the settings `index.mapping.{name}`")
                limit = _object(options, name).get("limit", limits_of_mapping[name])
                limits_of_mapping[name] = _natural(limit, f"`{name}.limit`")
        with problems.at("settings.analysis"):
            analysis = _object(settings, "analysis")
            _object(analysis, "analyzer")
        with problems.at("settings.similarity"):
            for name, options in _object(settings, "similarity").items():
                with problems.at(f"settings.similarity.{name}"):
                    similarities |= _similarity(name, options)
        reader = _FieldParser(analysis, similarities, problems)
        with problems.at("mappings"):
            mappings = _object(mapping, "mappings")
            properties = _object(mappings, "properties")
            known_only(mappings, _OF_ROOT, "`mappings`")
            _object(mappings, "_meta")
            _require_whole_source(_object(mappings, "_source"))
            reader.dynamic[""] = _dynamic(mappings.get("dynamic", True))
        reader.read(properties, "", "mappings.properties")
        with problems.at("mappings.properties"):
            reader.check(limits_of_mapping["total_fields"], limits_of_mapping["nested_fields"])
        schema = cls(
            reader.fields,
            analysis,
            limits,
            frozenset(reader.stored),
            reader.unsearched,
            reader.unindexed,
            reader.aliases,
            frozenset(reader.objects),
            reader.dynamic,
            reader.copies,
            default_fields,
            reader.nested_types(),
            limits_of_mapping["nested_objects"],
            limits_of_mapping["total_fields"],
            hides_vectors,
        )
        return schema, problems


def _default_fields(settings: Mapping[str, Any]) -> tuple[str, ...]:
    value = settings.get("default_field", "*")
    named = value if isinstance(value, list | tuple) else str(value).split(",")
    return tuple(parameters.name(name, "`index.query.default_field`") for name in named) or ("*",)


def gram_limits(settings: Mapping[str, Any]) -> dict[str, int]:
    """Return the settings of an index that limit the sizes of grams.

    Raises:
        Refused: a limit is not an integer from 0.
    """
    return {name: _natural(settings[name], f"`{name}`") for name in LIMITS if name in settings}


def analyzers_of(mapping: Mapping[str, Any]) -> AnalysisRegistry:
    """Return the analyzers of a create-index body.

    Raises:
        BadSettings: they are invalid.
        Refused: a setting that limits the sizes of grams is invalid.
    """
    settings = canonical(mapping).get("settings", {})
    return AnalysisRegistry(settings.get("analysis", {}), gram_limits(settings))


def _natural(value: Any, label: str) -> int:
    number_ = parameters.integer(value, label)
    if number_ < 0 or str(number_) != str(value):
        raise invalid(f"{label} must be an integer from 0, not {value!r}")
    return number_


def _dynamic(value: Any) -> str:
    word = parameters.choice(value, _DYNAMIC, "`dynamic`")
    if word in ("true", "false"):
        _boolean(value, "`dynamic`")  # only these two are case-sensitive
    return word


def _require_whole_source(options: Mapping[str, Any]) -> None:
    """Reject a `_source` of a mapping that stores less than the whole documents."""
    label = "`_source` of a mapping"
    known_only(options, {"enabled", "includes", "excludes"}, label)
    if not parameters.flag(options.get("enabled", True), f"`enabled` in {label}"):
        raise unsupported(f"`enabled: false` in {label}")
    for name in ("includes", "excludes"):
        if options.get(name):
            raise unsupported(f"`{name}` in {label}")


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
        self.fields: dict[str, Field] = {}
        self.stored: set[str] = set()
        self.unsearched: dict[str, str] = {}
        self.unindexed: dict[str, Field] = {}
        self.aliases: dict[str, str] = {}
        self.objects: set[str] = set()
        self.dynamic: dict[str, str] = {"": "true"}
        self.copies: dict[str, tuple[str, ...]] = {}
        self._nested: dict[str, tuple[bool, bool]] = {}  # `include_in_parent` and `include_in_root` by path
        self._plain: set[str] = set()  # objects that are not of the type `nested`
        self._names: set[str] = set()

    def read(self, properties: Mapping[str, Any], prefix: str, path: str) -> None:
        for key, described in properties.items():
            name = f"{prefix}{key}"
            with self._problems.at(f"{path}.{key}"):
                check_name(name)
                self.objects.update(objects(name))
                self._plain.update(part for part in objects(name) if len(part) > len(prefix))
                self._property(name, parameters.mapping(described, f"the field {name}"), f"{path}.{key}")

    def _property(self, name: str, described: Mapping[str, Any], path: str) -> None:
        type_ = _type(name, described)
        is_object = type_ in (OBJECT, NESTED)
        if name.count(".") + 1 + is_object > DEEPEST:
            raise invalid(f"{name} is inside more than {DEEPEST} objects, with the document")
        includes: set[str] = set()
        if type_ == NESTED:
            if name in self._nested:
                raise unsupported(f"two definitions of the field {name}")
            includes = {"include_in_parent", "include_in_root"}
            in_parent, in_root = (_flag(described, flag, False, name) for flag in sorted(includes))
            self._nested[name] = in_parent, in_root
        elif is_object:
            self._plain.add(name)
        if is_object and _flag(described, "enabled", True, name):
            self._object(name, described, path, includes)
            return
        if name in self._names:
            raise unsupported(f"two definitions of the field {name}")
        self._names.add(name)
        if is_object:
            known = {"type", "enabled", "dynamic", *includes}
            known_only(described, known, f"the object {name}, which is not indexed")
            self.stored.add(name)
        elif type_ == ALIAS:
            known_only(described, {"type", "path"}, f"the alias {name}")
            self.aliases[name] = parameters.raw_text(described.get("path"), f"`path` of the alias {name}")
        elif type_ in UNSEARCHED or (
            type_ in (GEO_POINT, *RANGES) and described.keys() & {"fields", "copy_to", "script"}
        ):
            if "copy_to" in described:
                raise unsupported(f"`copy_to` of the field {name}, whose type is {type_}")
            self.stored.add(name)
            inner_names = (f"{name}.{inner}" for inner in _object(described, "fields"))
            self.unsearched |= dict.fromkeys((name, *inner_names), f"the type {type_}")
        else:
            self._copy_to(name, described)
            with self._problems.at(path):
                self._add(name, name, described, path)
            for inner, inner_described in _object(described, "fields").items():
                with self._problems.at(inner_path := f"{path}.fields.{inner}"):
                    _check_sub_field(name, inner, inner_described)
                    self._add(f"{name}.{inner}", name, inner_described, inner_path)

    def _add(self, name: str, source: str, described: Mapping[str, Any], path: str) -> None:
        """Read a field or a sub-field of the property `source`."""
        type_ = _type(name, described)
        if type_ in UNSEARCHED or (type_ in (GEO_POINT, *RANGES) and name != source):
            self.unsearched[name] = f"the type {type_}"
            return
        if type_ == TYPED:
            self._add_typed(name, source, described, path)
            return
        read = replace(self._field(name, source, type_, described), path=path)
        if reason := _unread_date(read, described):
            if "copy_to" in described:
                raise unsupported(f"`copy_to` of the field {name} with {reason}")
            self.stored.add(source)
            self.unsearched[name] = reason
            return
        null_value = described.get("null_value")
        if null_value is not None:
            read = replace(read, null_value=_null_value(null_value, read))
        if _flag(described, "index", True, name):
            self.fields[name] = read
            if type_ == FLATTENED:
                self.fields[name + KEYED] = replace(read, name=name + KEYED)
        else:
            self.unindexed[name] = read
            self.unsearched[name] = "`index: false`"

    def _add_typed(self, name: str, source: str, described: Mapping[str, Any], path: str) -> None:
        """Read a field of the type `search_as_you_type` as several text fields."""
        known_only(described, PARAMETERS[TYPED], f"the field {name}")
        size = _natural(described.get("max_shingle_size", 3), f"`max_shingle_size` of {name}")
        if not 2 <= size <= 4:
            raise invalid(f"`max_shingle_size` of {name} is {size}, but must be from 2 to 4")
        if not _flag(described, "index", True, name) or described.get("index_options", POSITIONS) not in (
            POSITIONS,
            OFFSETS,
        ):
            raise unsupported(f"the type `{TYPED}` without positions of the field {name}")
        others = {
            key: value for key, value in described.items() if key not in ("max_shingle_size", "doc_values")
        }
        read = replace(self._field(name, source, TEXT, {**others, "type": TEXT}), path=path, typed=name)
        self.fields[name] = read
        for length in range(2, size + 1):
            analyzer, search_analyzer, quote_analyzer = (
                f"{SHINGLES}{length} {analyzer}"
                for analyzer in (read.analyzer, read.search_analyzer, read.quote_analyzer)
            )
            inner = f"{name}._{length}gram"
            self.fields[inner] = replace(
                read,
                name=inner,
                analyzer=analyzer,
                search_analyzer=search_analyzer,
                quote_analyzer=quote_analyzer,
                is_stored=False,
            )
        self.unsearched[name + PREFIXES] = f"the prefixes of the type {TYPED}"

    def _object(self, name: str, described: Mapping[str, Any], path: str, known: Iterable[str]) -> None:
        known_only(described, {"type", "properties", "dynamic", "enabled", *known}, f"the object {name}")
        self.objects.add(name)
        if "dynamic" in described:
            self.dynamic[name] = _dynamic(described["dynamic"])
        self.read(_object(described, "properties"), f"{name}.", f"{path}.properties")

    def _copy_to(self, name: str, described: Mapping[str, Any]) -> None:
        targets = described.get("copy_to", ())
        named = targets if isinstance(targets, list | tuple) else [targets]
        if named:
            self.copies[name] = tuple(parameters.raw_text(target, f"`copy_to` of {name}") for target in named)

    def nested_types(self) -> dict[str, NestedType]:
        """Return the nested types by path, parents first, without redundant inclusions.

        Source: `org.elasticsearch.index.mapper.RootObjectMapper.fixRedundantIncludes`.
        """
        types: dict[str, NestedType] = {}
        reaching_root = {ROOT}  # the paths whose values are also values of the document
        for path in sorted(self._nested, key=lambda path: path.count(".")):
            in_parent, in_root = self._nested[path]
            parent = _scope(path, types)
            if path.rpartition(".")[0] == parent:  # Elasticsearch does not look inside other objects
                via_parent = in_parent and parent in reaching_root
                reaching_root |= {path} if via_parent or in_root else set()
                in_root = in_root and not via_parent
            types[path] = NestedType(parent, in_parent, in_root)
        return types

    def check(self, most_fields: int, most_nested: int) -> None:
        """Check the names of all properties together."""
        if both := self._plain & self._nested.keys():
            raise invalid(f"{min(both)} is defined both as an object and as nested")
        if len(self._nested) > most_nested:
            raise invalid(
                f"the mapping has {len(self._nested):,} nested objects, and at most {most_nested:,} are allowed"
            )
        for name in sorted(self._names & self.objects):
            if name in self.stored:
                raise unsupported(f"a field below {name}, which is not indexed,")
            raise invalid(f"{name} is a field, but a field below it makes it an object")
        indexed = (*self.fields.values(), *self.unindexed.values())
        # Values of other types are not checked, so copies of them aren't either.
        sources = {field.source for field in indexed} | (self.unsearched.keys() & self.stored)
        for vector in indexed:
            if vector.is_vector:
                sources.discard(vector.name)
                if _scope(vector.name, self._nested) != ROOT:
                    raise unsupported(f"the vectors of {vector.name}, which are in nested objects,")
        for name, targets in self.copies.items():
            for target in targets:
                if target not in sources - {name, ID}:
                    raise unsupported(f"`copy_to: {target}` of the field {name}, only another field")
                scope = _scope(target, self._nested)
                if scope != ROOT and not name.startswith(f"{scope}."):
                    raise invalid(f"`copy_to: {target}` of the field {name} leads into a nested object")
        for name, target in self.aliases.items():
            if target not in self.fields and target not in self.unsearched:
                raise invalid(f"the alias {name} is for {target}, which is no field")
            if _scope(name, self._nested) != _scope(target, self._nested):
                raise invalid(f"the alias {name} is for {target}, which is in another nested object")
        if ID in self.fields and not self.fields[ID].has_doc_values:
            raise unsupported(f"`doc_values: false` of the field {ID}, by which hits are sorted")
        if ID in self.fields and self.fields[ID].type == KEYWORD and self.fields[ID].analyzer:
            raise unsupported(f"`normalizer` of the field {ID}, by which hits are sorted")
        names = {*self._names, *self.fields, *self.unsearched, *self.objects}
        if len(names) > most_fields:
            raise invalid(
                f"the mapping has {len(names):,} fields and objects, and at most {most_fields:,} are allowed"
            )

    def _field(self, name: str, source: str, kind: str, described: Mapping[str, Any]) -> Field:
        if kind not in PARAMETERS:
            raise unsupported(f"the type `{kind}` of the field {name}")
        known_only(described, PARAMETERS[kind], f"the field {name}")
        _check_meta(_object(described, "meta"), name)
        for flag in ("doc_values", "eager_global_ordinals", "fielddata"):
            _flag(described, flag, True, name)
        for flag, value in (("coerce", True), ("ignore_malformed", False)):
            if _flag(described, flag, value, name) != value and kind not in (DATE, GEO_POINT, IP):
                raise unsupported(f"`{flag}: {str(not value).lower()}` of the field {name}")
        if kind == DENSE_VECTOR:
            return _vector_field(name, source, described)
        if kind != TEXT:
            return self._exact(name, source, kind, described)
        if described.get("term_vector", "no") not in _TERM_VECTORS:
            raise invalid(f"`term_vector` of {name} must be {' or '.join(_TERM_VECTORS)}")
        default = self._default("default", "standard")
        for parameter in ("analyzer", "search_analyzer", "search_quote_analyzer"):
            if parameter in described:
                parameters.name(described[parameter], f"`{parameter}` of the field {name}")
        searching = described.get("analyzer") or self._default("default_search", default)
        searching = described.get("search_analyzer", searching)
        quoting = searching
        if not described.keys() & {"analyzer", "search_analyzer"}:
            quoting = self._default("default_search_quoted", searching)
        gap = described.get("position_increment_gap")
        if gap is not None:
            gap = _natural(gap, f"`position_increment_gap` of {name}")
        index_options = _index_options(described, POSITIONS, INDEX_OPTIONS, name)
        if gap is not None and index_options in (DOCS, FREQUENCIES):
            raise invalid(f"`position_increment_gap` of {name}, whose `index_options` are {index_options}")
        return Field(
            name,
            kind,
            source,
            analyzer=described.get("analyzer", default),
            search_analyzer=searching,
            quote_analyzer=described.get("search_quote_analyzer", quoting),
            position_increment_gap=gap,
            similarity=self._similarity(name, described),
            has_own_similarity=described.get("similarity", "default") != "default",
            has_doc_values=_flag(described, "norms", True, name),
            has_norms=_flag(described, "norms", True, name),
            index_options=index_options,
            is_stored=_flag(described, "store", False, name),
        )

    def _similarity(self, name: str, described: Mapping[str, Any]) -> BM25:
        similarity = str(described.get("similarity") or "default")
        if similarity not in self._similarities:
            raise unsupported(f"the similarity `{similarity}` of the field {name}")
        return self._similarities[similarity]

    def _exact(self, name: str, source: str, kind: str, described: Mapping[str, Any]) -> Field:
        """Read a field of keywords, booleans, numbers or dates."""
        limit: int | None = None
        if "ignore_above" in described:
            limit = _natural(described["ignore_above"], f"`ignore_above` of {name}")
        index_options = _index_options(described, DOCS, (DOCS, FREQUENCIES), name)
        normalizer = described.get("normalizer")
        if normalizer is not None:
            normalizer = NORMALIZER + parameters.name(normalizer, f"`normalizer` of the field {name}")
        searching = normalizer
        if _flag(described, "split_queries_on_whitespace", False, name):
            if normalizer is not None:
                raise unsupported(
                    f"`split_queries_on_whitespace` of the field {name}, which has a normalizer,"
                )
            searching = "whitespace"
        similarity = self._similarity(name, described) if kind in (KEYWORD, BOOLEAN, FLATTENED) else None
        return Field(
            name,
            kind,
            source,
            analyzer=normalizer,
            search_analyzer=searching,
            quote_analyzer=searching,
            # Elasticsearch ignores the similarity and the index options of flattened fields.
            similarity=self._similarities["default"] if kind == FLATTENED else similarity,
            ignore_above=limit,
            has_doc_values=_flag(described, "doc_values", True, name),
            has_norms=_flag(described, "norms", False, name),
            index_options=DOCS if kind == FLATTENED else index_options,
            is_stored=_flag(described, "store", False, name),
            scaling_factor=_scaling_factor(described, name) if kind == SCALED else 1.0,
            depth_limit=_natural(described.get("depth_limit", DEEPEST), f"`depth_limit` of {name}"),
            format=parameters.text(described.get("format", DEFAULT_FORMAT), f"`format` of {name}"),
            ignores_malformed=_flag(described, "ignore_malformed", False, name),
            ignores_height=_flag(described, "ignore_z_value", True, name),
        )

    def _default(self, name: str, otherwise: str) -> str:
        return name if name in self._analyzers else otherwise


def _type(name: str, described: Mapping[str, Any]) -> str:
    """Return the type of a property, which objects may omit."""
    type_ = described.get("type")
    if type_ is None:
        if described.get("properties") is None and described.keys() != {"enabled"}:
            raise invalid(f"the field {name} has no `type`")
        return OBJECT
    return str(type_)


def _check_sub_field(name: str, inner: str, described: Any) -> None:
    if not inner:
        raise unsupported(f"a sub-field of {name} without a name")
    if "." in inner:
        raise invalid(f"the sub-field {name}.{inner} has a dot in its name")
    for parameter in ("fields", "copy_to"):
        if parameter in parameters.mapping(described, f"the sub-field {name}.{inner}"):
            raise invalid(f"the sub-field {name}.{inner} has `{parameter}`")


def _vector_field(name: str, source: str, described: Mapping[str, Any]) -> Field:
    """Read a field of vectors (`DenseVectorFieldMapper`)."""
    label = f"of the field {name}"
    if name != source:
        raise invalid(f"{name} is a sub-field, which can't have the type {DENSE_VECTOR}")
    parameters.without_null(described, ("dims", "element_type", "index"), f"the field {name}")
    is_indexed = _flag(described, "index", True, name)
    options, similarity = described.get("index_options"), described.get("similarity")
    if not is_indexed and (options is not None or similarity is not None):
        raise invalid(f"`index_options` and `similarity` {label} need `index: true`")
    element = described.get("element_type", "float")
    if element in ("float", "bfloat16"):
        raise unsupported(
            f"`element_type: {element}` {label}, whose scores depend on the processor (write `element_type: byte` "
            "or `bit`, and round the vectors to integers)"
        )
    if element not in ("byte", "bit"):
        raise invalid(f"`element_type` {label} must be byte or bit, not {element!r}")
    if is_indexed:
        kind = parameters.mapping({} if options is None else options, f"`index_options` {label}").get("type")
        if kind != "flat":
            raise unsupported(
                f"`index_options` {label} of the type {kind or 'hnsw, the default'}, whose hits are approximate "
                '(write `"index_options": {"type": "flat"}`)'
            )
        known_only(options or {}, {"type"}, f"`index_options` {label}")
    dims, size = described.get("dims"), 8 if element == "bit" else 1
    if dims is None:
        raise unsupported(f"the missing `dims` {label}, the number of elements,")
    if type(dims) is not int or not size <= dims <= vectors.MOST_DIMENSIONS * size or dims % size:
        most = vectors.MOST_DIMENSIONS * size
        multiple = f" and a multiple of {size}" if size > 1 else ""
        raise invalid(f"`dims` {label} must be an integer from {size} to {most:,}{multiple}, not {dims!r}")
    if element == "bit":
        if described.get("similarity", vectors.L2_NORM) != vectors.L2_NORM and is_indexed:
            raise invalid(f"`similarity` {label} must be {vectors.L2_NORM}, the only one of bits")
        similarity = vectors.HAMMING
    elif similarity is None:  # without an index, vectors of zeros are allowed
        similarity = vectors.COSINE if is_indexed else vectors.DOT_PRODUCT
    elif similarity not in vectors.SIMILARITIES:
        raise invalid(f"`similarity` {label} must be {' or '.join(vectors.SIMILARITIES)}, not {similarity!r}")
    return Field(name, DENSE_VECTOR, source, dims=dims, vector_similarity=similarity)


def _unread_date(field: Field, described: Mapping[str, Any]) -> str:
    """Return why the values of a date field are stored and not searched; empty if they are searched."""
    if field.type not in (DATE, "date_range"):
        return ""
    locale = parameters.raw_text(described.get("locale", "en"), f"`locale` of {field.name}")
    if locale not in _LOCALES:
        return f"the locale {locale}"
    try:
        date_formats(field.format)
    except NotSupported as error:
        return error.piece
    return ""


def _null_value(value: Any, field: Field) -> Any:
    label = f"`null_value` of {field.name}"
    if field.type == GEO_POINT:
        try:
            point = geography.read_point(value, ignores_height=field.ignores_height)
        except ValueError as error:
            raise invalid(f"{label}: {error}") from error
        if not point.is_valid and not field.ignores_malformed:
            raise invalid(f"{label} is not on the earth")
        return list(reversed(point.normalized()))
    if isinstance(value, list | tuple | Mapping):
        raise unsupported(f"a list or an object as {label}")
    if field.type in (KEYWORD, FLATTENED):
        return parameters.text(value, label)
    if field.type == IP:
        try:
            indexed_text(value, field)
        except TypeError as error:
            raise invalid(f"{label}: {error}") from error
        return value
    if field.type == BOOLEAN:
        return _boolean(value, label)
    if field.type == DATE:
        value = parameters.text(value, label)
        field = replace(field, ignores_malformed=False)
    try:
        if value == "" or (field.type in INTEGERS and _double(value, field) % 1):
            raise TypeError(f"{value!r} is no {field.type}")
        converted = number(value, field)
        return value if field.type == DATE else converted
    except (TypeError, OverflowError) as error:
        raise invalid(f"{label}: {error}") from error


def _flag(described: Mapping[str, Any], name: str, default: bool, field_name: str) -> bool:
    return _boolean(described.get(name, default), f"`{name}` of the field {field_name}")


def _scaling_factor(described: Mapping[str, Any], name: str) -> float:
    label = f"`scaling_factor` of the field {name}"
    try:
        factor = parameters.double(parameters.raw_text(described.get("scaling_factor"), label))
    except ValueError as error:
        raise invalid(f"{label}: {error}") from error
    if not 0 < factor < math.inf:
        raise invalid(f"{label} is {factor:g}, but must be positive")
    return factor


def _index_options(described: Mapping[str, Any], default: str, choices: Sequence[str], name: str) -> str:
    value = described.get("index_options")
    value = default if value is None else parameters.raw_text(value, f"`index_options` of {name}")
    if value not in choices:
        raise invalid(f"`index_options` of {name} must be {' or '.join(choices)}, not {value!r}")
    return value


def _boolean(value: Any, label: str) -> bool:
    if value == "":  # which stands for false in search bodies only
        raise invalid(f"{label} must be true or false, not {value!r}")
    return parameters.flag(value, label)


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


def leaves_of(value: Any) -> list[Any]:
    """Return the values of a property, depth first, with nulls."""
    return (
        [leaf for item in value for leaf in leaves_of(item)] if isinstance(value, list | tuple) else [value]
    )


def _keyed_leaves(value: Mapping[str, Any], path: tuple[str, ...], most: int) -> Iterator[tuple[str, Any]]:
    """Yield the values in an object with their dotted keys."""
    if len(path) + 1 > most and path:
        raise TypeError(f"a flattened value has more than {most} nested objects")
    for key, inner in value.items():
        for leaf in leaves_of(inner):
            if isinstance(leaf, Mapping):
                yield from _keyed_leaves(leaf, (*path, key), most)
            else:
                yield ".".join((*path, key)), leaf


def source_value(source: Any, path: Sequence[str], null_value: Any = None) -> Any:
    """Return the value of a property as Elasticsearch highlights it, a list if it is in several objects.

    Source: `XContentMapValues.extractValue`.
    """
    if isinstance(source, list | tuple):
        values: list[Any] = []
        for item in source:
            value = source_value(item, path, null_value)
            if isinstance(value, list | tuple) and path:  # lists of objects are joined
                values += value
            elif value is not None:
                values.append(value)
        return values
    if not path:
        return null_value if source is None else source
    if not isinstance(source, Mapping):
        return None
    found = []
    for end in range(1, len(path) + 1):
        key = ".".join(path[:end])
        if key in source:
            value = source[key]
            inner = null_value if value is None else source_value(value, path[end:], null_value)
            if value is None or inner is not None:
                found.append(inner)
    return found[0] if len(found) == 1 else found or None


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
    """Return the text of a value for a text or keyword field, or the term of a boolean."""
    if field.type == BOOLEAN:
        if not isinstance(value, bool) and value not in ("true", "false", ""):
            raise TypeError(f"{field.name} is a boolean field, but its value is {_short(value)}")
        return "T" if value is True or value == "true" else "F"
    if field.type == IP:
        try:
            return addresses.term_of(addresses.number_of(str(value)))
        except ValueError as error:
            raise TypeError(f"{field.name} is an ip field, but its value is {_short(value)}") from error
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return parameters.json_text(value)
    raise TypeError(f"{field.name} is a {field.type} field, but its value is {value!r}")


def _is_address(value: Any) -> bool:
    try:
        addresses.number_of(str(value))
    except ValueError:
        return False
    return True


def shown_text(value: Any, field: Field) -> str:
    """Return an indexed value as Elasticsearch highlights it, after parsing the JSON again."""
    return parameters.printed(value, np.float64) if isinstance(value, float) else indexed_text(value, field)


def number(value: Any, field: Field) -> Any:
    """Return a value of a numeric field as an int, or a float in the field's precision; None for no value.

    A date becomes milliseconds since 1970.
    """
    if field.type == DATE:
        return _milliseconds(value, field)
    if value == "":
        return None
    double = _double(value, field)
    converted: int | float | None
    if field.type in FLOATS:
        converted = double if field.type == "double" else _float32(value)
        if field.type == "half_float":
            converted = parameters.to_half(converted)
        fits = math.isfinite(converted)
    elif field.type == SCALED:
        product = double * field.scaling_factor
        converted = rounded(product)
        fits = math.isfinite(double)
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


def _milliseconds(value: Any, field: Field) -> int | None:
    try:
        return date_formats(field.format).milliseconds(indexed_text(value, field))
    except (TypeError, ValueError) as error:
        if field.ignores_malformed:
            return None
        problem = f"{field.name} is a date field, but its value is {_short(value)}: {error}"
        raise TypeError(problem) from error


def points(value: Any, field: Field) -> list[int]:
    """Return the encoded points of the value of a property, a point or a list of points and nulls."""
    encoded = []
    for item in _listed_points(value, field):
        if (written := field.null_value if item is None else item) is None:
            continue
        try:
            point = geography.read_point(written, ignores_height=field.ignores_height)
            if field.ignores_malformed:
                point = point.normalized()
            if not point.is_valid:
                raise ValueError("it is not on the earth")
            encoded.append(geography.encoded(point))
        except ValueError as error:
            if not field.ignores_malformed:
                problem = f"{field.name} is a geo_point field, but its value is {_short(item)}: {error}"
                raise TypeError(problem) from error
    return encoded


def vector_of(values: Sequence[Any], field: Field) -> bytes:
    """Return the bytes of the vector of a document, its only value in a field."""
    if len(values) > 1:
        raise TypeError(f"{field.name} is a {field.type} field, which can't have several vectors")
    try:
        vector = vectors.read_vector(values[0], field.vector_bytes)
    except NotImplementedError as error:
        raise unsupported(f"{error} in {field.name}") from error
    except ValueError as error:
        raise TypeError(f"{field.name} is a {field.type} field: {error}") from error
    if field.vector_similarity == vectors.COSINE and not any(vector):
        raise TypeError(f"{field.name} has a vector of zeros, which has no cosine")
    return vector


def range_of(value: Any, field: Field) -> tuple[Any, Any]:
    """Return the first and the last value of a range (`RangeFieldMapper.parseRange`)."""
    bounds = field.of_bounds
    if not isinstance(value, Mapping) or value.keys() - {"gt", "gte", "lt", "lte"}:
        raise TypeError(f"{field.name} is a {field.type} field, but its value is {_short(value)}")
    low, high = value_limits(bounds)
    for name, bound in value.items():
        if bound is None:
            continue
        if bounds.type == DATE:
            end = _date_bound(bound, bounds, round_up=name in ("gt", "lte"))
        elif (end := number(bound, bounds)) is None:
            raise TypeError(f"{field.name} is a {field.type} field, but has an empty bound")
        if name in ("gt", "gte"):
            low = next_value(end, bounds, 1) if name == "gt" else end
        else:
            high = next_value(end, bounds, -1) if name == "lt" else end
    if low > high:
        raise TypeError(f"{field.name} has a range that ends before it begins")
    return low, high


def value_limits(field: Field) -> tuple[Any, Any]:
    """Return the least and the greatest number of a field."""
    if field.type in FLOATS:
        return -math.inf, math.inf
    bits = INTEGERS.get(field.type, 63)
    return -(1 << bits), (1 << bits) - 1


def next_value(value: Any, field: Field, step: int) -> Any:
    """Return the next number of a field, upwards with the step 1 and downwards with -1."""
    if field.type in FLOATS:
        if field.type == "float":
            return float(np.nextafter(np.float32(value), np.float32(step * math.inf)))
        return math.nextafter(value, step * math.inf)
    if value == value_limits(field)[step > 0]:
        raise unsupported(f"the open bound {value} for {field.name}")  # Elasticsearch's integers overflow
    return value + step


def _date_bound(value: Any, field: Field, *, round_up: bool) -> int:
    def no_time() -> int:
        raise ValueError("`now` is not possible in a document")

    try:
        return date_formats(field.format).calculate(
            indexed_text(value, field), no_time, None, round_up=round_up
        )
    except (TypeError, ValueError) as error:
        problem = f"{field.name} is a range of dates, but a bound is {_short(value)}: {error}"
        raise TypeError(problem) from error


def _listed_points(value: Any, field: Field) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        return [value]
    if not value or not parameters.is_number(value[0]):
        return value
    try:  # Elasticsearch checks these coordinates also with `ignore_malformed`
        point = [value[0], *map(geography.coordinate, value[1:2]), *value[2:3]]
    except ValueError:
        point = []
    most = 3 if field.ignores_height else 2
    if not 2 <= len(point) <= most or not all(parameters.is_number(part) for part in point[1:]):
        raise TypeError(
            f"{field.name} is a geo_point field, but its value {_short(value)} has no two coordinates"
        )
    return [point, *value[3:]]


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


def rounded(double: float) -> int:
    """Return the integer of 64 bits nearest to a double, as Java's `Math.round`."""
    if not math.isfinite(double):
        return 0 if math.isnan(double) else (2**63 - 1 if double > 0 else -(2**63))
    return max(-(2**63), min(math.floor(Fraction(double) + Fraction(1, 2)), 2**63 - 1))


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
