"""The `sort` of search bodies: keys that order the documents of a segment, and the sort values of hits.

    org.elasticsearch.search.sort.{FieldSortBuilder, ScoreSortBuilder}
    org.elasticsearch.search.MultiValueMode
    org.elasticsearch.index.fielddata.fieldcomparator

A key is an integer of 64 bits, which orders like the value, also in descending clauses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field as dataclass_field
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import geography, parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import ErrorCollector, invalid, known_only, unsupported
from searchapp.lucene.geography import Point
from searchapp.lucene.index.arrays import Int64s, Mask
from searchapp.lucene.index.dates import date_formats, printed
from searchapp.lucene.index.doc_values import as_longs, of_sortable, one_of_each, sortable
from searchapp.lucene.index.mapping import (
    BOOLEAN,
    DATE,
    FLOATS,
    ID,
    INTEGERS,
    KEYED,
    KEYWORD,
    ROOT,
    Field,
    Schema,
    objects,
)
from searchapp.lucene.index.reader import FieldReader, SegmentReader
from searchapp.lucene.index.term_dictionary import Terms
from searchapp.lucene.queries import decay
from searchapp.lucene.queries.nested import may_match_others
from searchapp.lucene.queries.query import Parser, Query, rewrite
from searchapp.lucene.queries.scores import ScoreRows, Scores

SCORE = "_score"

# Keys of missing values, beyond all ranks of terms.
_FIRST, _LAST = -(1 << 62), 1 << 62

_SORTED_TYPES = frozenset({KEYWORD, BOOLEAN, DATE, *INTEGERS, "double", "float"})

_NARROW: Mapping[str, Any] = {"integer": np.int32, "float": np.float32}

_MODES = ("min", "max", "sum", "avg", "median")
_DISTANCE_MODES = ("min", "max", "avg", "median")
_FIELD_OPTIONS = {"order", "mode", "missing", "unmapped_type", "numeric_type", "format", "nested"}
_DISTANCE_OPTIONS = ("order", "unit", "mode", "distance_type", "ignore_unmapped")
_OTHER_SORTS = ("_script", "_doc", "_shard_doc")


class SortClause(Protocol):
    """A clause of a sort; `keys` and `after` are ascending, and the caller reverses descending clauses."""

    @property
    def descending(self) -> bool: ...

    def keys(self, reader: SegmentReader, scores: Scores | None) -> Int64s:
        """Return the key of each document of a segment, shape `(documents,)`."""

    def values(self, keys: Int64s, reader: SegmentReader) -> list[Any]:
        """Return the sort values of keys as JSON; texts of several segments order like their keys."""

    def after(self, value: Any, reader: SegmentReader) -> int:
        """Return the key of a value of `search_after`."""


@dataclass(frozen=True, slots=True)
class ScoreClause:
    """Sorts by score."""

    descending: bool

    def keys(self, reader: SegmentReader, scores: Scores | None) -> Int64s:  # noqa: ARG002
        assert scores is not None
        return sortable(scores.values)

    def values(self, keys: Int64s, reader: SegmentReader) -> list[Any]:  # noqa: ARG002
        return [parameters.decimal(value) for value in of_sortable(keys).tolist()]

    def after(self, value: Any, reader: SegmentReader) -> int:  # noqa: ARG002
        return _float_key(np.float32(_number(value, SCORE)))


@dataclass(frozen=True, slots=True)
class DocumentClause:
    """Sorts by the numbers of documents, as Elasticsearch does without a sort; `_doc` would show them."""

    descending: bool = False

    def keys(self, reader: SegmentReader, scores: Scores | None) -> Int64s:  # noqa: ARG002
        return np.arange(reader.first, reader.first + reader.count)

    def values(self, keys: Int64s, reader: SegmentReader) -> list[Any]:  # noqa: ARG002
        return list(keys.tolist())

    def after(self, value: Any, reader: SegmentReader) -> int:  # noqa: ARG002
        raise unsupported("`search_after` without a sort")


@dataclass(frozen=True, slots=True)
class NestedObjects:
    """The nested objects of a path whose values sort the documents around them."""

    path: str
    filters: tuple[tuple[str, Query], ...]  # for the objects of the path and of outer ones, by path
    most: int  # the number of objects with values that count in a document

    def documents_of(self, objects: NDArray[Any], reader: SegmentReader) -> tuple[NDArray[Any], Mask]:
        """Return the document of each of the objects that values belong to, and whether the value counts."""
        nested = reader.nested[self.path]
        rows, documents = ScoreRows(reader), nested.parents(ROOT)
        matches = np.ones(nested.count, bool)
        for path, query in self.filters:
            mask = query.matching(rows.nested(path))
            matches &= mask if path == self.path else mask[nested.parents(path)]
        counted = np.unique(objects[matches[objects]])
        places = np.arange(len(counted)) - np.searchsorted(documents[counted], documents[counted])
        return documents[objects], np.isin(objects, counted[places < self.most])


@dataclass(frozen=True, slots=True)
class FieldClause:
    """Sorts by a field."""

    descending: bool
    name: str
    nested: NestedObjects | None = dataclass_field(default=None, kw_only=True)

    def _field(self, reader: SegmentReader) -> FieldReader | None:
        return (reader.nested[self.nested.path] if self.nested else reader).fields.get(self.name)

    def _doc_values(
        self, reader: SegmentReader, *, ascending: bool = True
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the document of each value, and the values ascending, or those of nested objects by object."""
        field = self._field(reader)
        if field is None:
            return np.empty(0, np.int32), np.empty(0, np.int64)
        owners, values = field.doc_values()
        if self.nested is None:
            return owners, values
        if not ascending:
            order = np.argsort(owners, kind="stable")
            owners, values = owners[order], values[order]
        documents, counts = self.nested.documents_of(owners, reader)
        return documents[counts], values[counts]

    def value_counts(self, reader: SegmentReader) -> NDArray[np.intp]:
        """Return the number of values of each document."""
        if self.name == ID:
            return np.ones(reader.count, np.intp)
        return np.bincount(self._doc_values(reader)[0], minlength=reader.count)


@dataclass(frozen=True, slots=True)
class TermClause(FieldClause):
    """Sorts by the least or greatest term of a keyword field, or by the id."""

    is_greatest: bool
    missing: str | None  # the term of documents without one
    missing_first: bool

    @property
    def missing_key(self) -> int:
        """The key of a document without a term and without `missing`."""
        return _FIRST if self.missing_first != self.descending else _LAST

    def keys(self, reader: SegmentReader, scores: Scores | None) -> Int64s:  # noqa: ARG002
        if self.name == ID:
            return reader.ranks.astype(np.int64) * 2
        missing = self.missing_key if self.missing is None else self._term_key(self.missing, reader)
        keys = np.full(reader.count, missing, np.int64)
        documents, ranks = self._doc_values(reader)
        end = 1 if self.is_greatest else -1  # the last assignment to a document counts
        keys[documents[::end]] = ranks[::end] * 2
        return keys

    def values(self, keys: Int64s, reader: SegmentReader) -> list[Any]:
        terms = self._terms(reader)
        return [
            (self.missing if key % 2 or abs(key) == _LAST else terms[key // 2].decode())
            for key in keys.tolist()
        ]

    def after(self, value: Any, reader: SegmentReader) -> int:
        if value is None:
            if self.missing is not None:
                raise unsupported("null in `search_after` for a field with `missing`")
            return self.missing_key
        return self._term_key(_term_text(value, "a value of `search_after`"), reader)

    def _terms(self, reader: SegmentReader) -> Terms | tuple[()]:
        field = self._field(reader)
        return reader.ids if self.name == ID else () if field is None else field.terms

    def _term_key(self, term: str, reader: SegmentReader) -> int:
        """Return the key of a term, which is odd for a term that the segment lacks."""
        if not isinstance(terms := self._terms(reader), Terms):
            return 1
        rank = terms.insertion(term, is_after=False)
        return 2 * rank - (rank == len(terms) or terms[rank] != term.encode())


@dataclass(frozen=True, slots=True)
class NumberClause(FieldClause):
    """Sorts by a number of each document, such as milliseconds of dates, and 0 or 1 of booleans."""

    mode: str
    type: str  # the type whose range and precision the values have: integer, long, float or double
    missing: float  # the value of documents without one
    pattern: str  # the format of dates in `search_after`
    format: str  # the format of dates in sort values; empty for milliseconds
    is_boolean: bool = False

    def keys(self, reader: SegmentReader, scores: Scores | None) -> Int64s:  # noqa: ARG002
        dtype: Any = np.int64 if self._is_integer else np.float64
        values: NDArray[Any] = np.full(reader.count, self.missing, dtype)
        documents, numbers = self._doc_values(reader, ascending=self.mode in ("min", "max"))
        if self._is_integer and numbers.dtype == np.float64:
            numbers = as_longs(numbers)
        chosen = one_of_each(self.mode, documents, numbers.astype(dtype), reader.count)
        if self.type in _NARROW:
            with np.errstate(over="ignore"):
                chosen = chosen.astype(_NARROW[self.type])
        values[documents] = chosen[documents]
        return values if self._is_integer else sortable(values)

    @property
    def _is_integer(self) -> bool:
        return self.type in ("integer", "long")

    def values(self, keys: Int64s, reader: SegmentReader) -> list[Any]:  # noqa: ARG002
        if self.format:
            return [
                None
                if value in (_extreme("long", True), _extreme("long", False))
                else printed(self.format, value)
                for value in keys.tolist()
            ]
        if self._is_integer:
            return list(keys.tolist())
        numbers = of_sortable(keys).tolist()
        return [_json_number(value, is_float=self.type == "float") for value in numbers]

    def after(self, value: Any, reader: SegmentReader) -> int:  # noqa: ARG002
        if self.is_boolean and value in ("true", "false", True, False):
            return int(value in ("true", True))
        if self.pattern and isinstance(value, str):
            try:
                return date_formats(self.pattern).milliseconds(value)
            except ValueError as error:
                raise invalid(f"{value!r} in `search_after` is no date: {error}") from error
        if isinstance(value, str) and self._is_integer:
            if not value.removeprefix("-").isascii() or not value.removeprefix("-").isdigit():
                raise unsupported(f"{value!r} in `search_after` for the field {self.name}")
            value = int(value)
        number = _number(value, self.name)
        if not self._is_integer:
            return _float_key(np.float32(number) if self.type == "float" else np.float64(number))
        if not _extreme(self.type, True) <= number <= _extreme(self.type, False):
            raise unsupported(f"{parameters.shown(value)} in `search_after` for the field {self.name}")
        return int(number)


@dataclass(frozen=True, slots=True)
class DistanceClause:
    """Sorts by the distance of the points of each document from origins, infinite without a point.

    Source: org.elasticsearch.search.sort.GeoDistanceSortBuilder.
    """

    descending: bool
    name: str
    origins: tuple[Point, ...]
    mode: str
    unit: float  # in metres

    @property
    def _sorts_by_key(self) -> bool:
        """Whether Lucene sorts, by numbers with the order of distances (`LatLonPointDistanceComparator`)."""
        return (len(self.origins), self.mode, self.unit, self.descending) == (1, "min", 1.0, False)

    def keys(self, reader: SegmentReader, scores: Scores | None) -> Int64s:  # noqa: ARG002
        field = reader.fields.get(self.name)
        if field is None:
            return sortable(np.full(reader.count, np.inf))
        _documents, points = field.doc_values()
        distances = [geography.sort_keys(*geography.decoded(points), origin) for origin in self.origins]
        if not self._sorts_by_key:
            distances = [geography.metres_of_keys(keys) / self.unit for keys in distances]
        numbers = np.maximum.reduce(distances) if self.mode == "max" else np.minimum.reduce(distances)
        return sortable(decay.reduced(field, np.arange(reader.count), numbers, self.mode, np.inf))

    def values(self, keys: Int64s, reader: SegmentReader) -> list[Any]:  # noqa: ARG002
        numbers = of_sortable(keys)
        if self._sorts_by_key:
            is_finite = np.isfinite(numbers)
            numbers[is_finite] = geography.metres_of_keys(numbers[is_finite])
        return [_json_number(value, is_float=False) for value in numbers.tolist()]

    def after(self, value: Any, reader: SegmentReader) -> int:  # noqa: ARG002
        raise unsupported("`search_after` with the sort by `_geo_distance`")


def _number(value: Any, name: str) -> float:
    if isinstance(value, str):
        return parameters.any_number(value, f"a value of `search_after` for {name}")
    if not parameters.is_number(value):
        raise invalid(f"{value!r} in `search_after`, but {name} is a number")
    return value  # type: ignore[no-any-return]


def _json_number(value: float, *, is_float: bool) -> Any:
    if not np.isfinite(value):
        return parameters.printed(value)
    return parameters.decimal(value) if is_float else value


def _float_key(value: np.floating[Any]) -> int:
    return int(sortable(np.array([value]))[0])


def _extreme(type_: str, is_least: bool) -> Any:
    if type_ in ("integer", "long"):
        limit = 1 << (31 if type_ == "integer" else 63)
        return -limit if is_least else limit - 1
    return -np.inf if is_least else np.inf


# Reading


def read_sort(sort: Any, parser: Parser) -> list[SortClause]:
    """Read the `sort` of a search body; the parser reads filters of nested objects.

    Raises:
        Refused: clauses are invalid or unsupported; a line for each, with its JSON path.
    """
    problems = ErrorCollector()
    clauses: list[SortClause] = []
    is_list = isinstance(sort, list | tuple)
    for index, written in enumerate(sort if is_list else [sort]):
        path = f"sort[{index}]" if is_list else "sort"
        if not isinstance(written, str | Mapping):
            with problems.at(path):
                raise invalid(f"a sort must be the name of a field or an object, not {written!r}")
            continue
        for name, options in written.items() if isinstance(written, Mapping) else [(written, {})]:
            with problems.at(path):
                clauses.append(_clause(name, options, parser.reader.schema, parser))
    problems.raise_if_any()
    return clauses


def read_collapse(value: Any, schema: Schema) -> TermClause | NumberClause:
    """Read the `collapse` of a search body: the clause whose values are the groups of hits.

    Source: org.elasticsearch.search.collapse.CollapseBuilder.
    """
    options = parameters.mapping(value, "`collapse`")
    known_only(options, {"field"}, "`collapse`")
    name = parameters.name(options.get("field"), "`field` of `collapse`")
    if name in schema.aliases:
        raise unsupported(f"`collapse` by the alias {name}")
    clause = _clause(name, {}, schema)
    if isinstance(clause, ScoreClause | DistanceClause) or (
        isinstance(clause, NumberClause) and (clause.is_boolean or clause.pattern)
    ):
        raise invalid(f"hits can't be collapsed by {name}, only by a keyword or numeric field")
    if isinstance(clause, NumberClause) and clause.type == "float":
        return replace(clause, type="double")  # as which Elasticsearch writes the groups
    return clause


def _clause(
    name: str, written: Any, schema: Schema, parser: Parser | None = None
) -> ScoreClause | TermClause | NumberClause | DistanceClause:
    options = (
        {"order": written} if isinstance(written, str) else parameters.mapping(written, f"the sort by {name}")
    )
    if name == "_geo_distance":
        return _distance_clause(options, schema)
    if name in _OTHER_SORTS:
        raise unsupported(f"the sort by `{name}`")
    known_only(options, {"order"} if name == SCORE else _FIELD_OPTIONS, f"the sort by {name}")
    default = "desc" if name == SCORE else "asc"
    descending = parameters.choice(options.get("order", default), ("asc", "desc"), "`order`") == "desc"
    if name == SCORE:
        return ScoreClause(descending)
    if name == "_id":
        raise invalid("`_id` can't be sorted by: use the field `id`")
    nested: NestedObjects | None = None
    if "nested" in options and parser is not None:
        nested = _nested_objects(name, options["nested"], parser)
    field = Field(ID, KEYWORD, ID) if name == ID else _field(name, options, schema, nested)
    mode = options.get("mode")
    mode = ("max" if descending else "min") if mode is None else parameters.choice(mode, _MODES, "`mode`")
    missing = options.get("missing")
    missing = "_last" if missing is None else missing
    if field.type not in _SORTED_TYPES:
        raise unsupported(f"sorting by {name}, whose type is {field.type}")
    if nested is not None and (mode == "median" or name == ID):
        raise unsupported(f"`nested` in the sort by {name} with `mode: {mode}`")
    read = _term_clause if field.type == KEYWORD else _number_clause
    return replace(read(field, descending, mode, missing, options), nested=nested)


def _nested_objects(name: str, written: Any, parser: Parser) -> NestedObjects:
    """Read `nested` of a sort, which may have another one inside.

    Source: org.elasticsearch.search.sort.{NestedSortBuilder, SortBuilder}.
    """
    label, schema = f"`nested` in the sort by {name}", parser.reader.schema
    filters: list[tuple[str, Query]] = []
    outer, most = ROOT, parameters.LARGEST_INTEGER
    while True:
        options = parameters.mapping(written, label)
        known_only(options, {"path", "filter", "max_children", "nested"}, label)
        if "path" not in options:
            raise unsupported(f"{label} without a `path`")
        path = parameters.raw_text(options["path"], f"`path` of {label}")
        if path not in schema.nested:
            raise invalid(f"{label}: the mapping has no nested objects at the `path` {path}")
        if outer != ROOT and not path.startswith(f"{outer}."):
            raise unsupported(f"{label} for {path} inside that for {outer}, which does not contain it,")
        if "max_children" in options:
            if outer != ROOT:
                raise invalid(f"`max_children` in the inner {label}")
            most = parameters.integer(options["max_children"], f"`max_children` of {label}")
        if "filter" in options:
            scope, parser.scope = parser.scope, path
            try:
                query = parser.query_at(f"{name}.nested.filter", options["filter"])
            finally:
                parser.scope = scope
            is_elsewhere = any(name in schema.fields_of(other) for other in schema.nested if other != path)
            # Elasticsearch does not restrict the filter to the objects of the path.
            if ("nested" in options or is_elsewhere) and may_match_others(
                parser.unresolved or query, path, schema
            ):
                raise unsupported(f"`filter` of {label}, which may match other objects than those of {path},")
            filters.append((path, rewrite(query)))
        if "nested" not in options:
            return NestedObjects(path, tuple(filters), most)
        written, outer = options["nested"], path


def _distance_clause(options: Mapping[str, Any], schema: Schema) -> DistanceClause:
    label = "the sort by `_geo_distance`"
    fields = [name for name in options if name not in _DISTANCE_OPTIONS]
    if len(fields) != 1:
        raise unsupported(f"{len(fields)} fields or unknown parameters in {label}")
    (written_name,) = fields
    name = schema.aliases.get(written_name, written_name)
    field = schema.fields.get(name)
    ignores_unmapped = parameters.flag(options.get("ignore_unmapped", False), "`ignore_unmapped`")
    if name in schema.unsearched or (field is None and not ignores_unmapped):
        raise unsupported(f"{label} of {name}, which is no searched field")
    if field is not None and not (field.is_geometry and field.has_doc_values):
        raise invalid(f"{label} of {name}, which has no points with doc values")
    descending = parameters.choice(options.get("order", "asc"), ("asc", "desc"), "`order`") == "desc"
    mode = parameters.choice(options.get("mode", "max" if descending else "min"), _DISTANCE_MODES, "`mode`")
    unit = parameters.raw_text(options.get("unit", "m"), "`unit`")
    if unit not in geography.UNITS:
        raise invalid(f"unknown unit of distance {unit!r}")
    value = options[written_name]
    is_list = isinstance(value, list | tuple) and not (value and parameters.is_number(value[0]))
    try:
        points = [
            geography.read_point(point, ignores_height=False) for point in (value if is_list else [value])
        ]
    except ValueError as error:
        raise invalid(f"{label}: {error}") from error
    if not points or not all(point.is_valid for point in points):
        raise invalid(f"{label} has no point, or one that is not on the earth")
    clause = DistanceClause(descending, name, tuple(points), mode, geography.UNITS[unit])
    kind = parameters.choice(options.get("distance_type", "arc"), ("arc", "plane"), "`distance_type`")
    if (kind == "plane" and not clause._sorts_by_key) or (len(points) > 1 and mode not in ("min", "max")):
        raise unsupported(f"`distance_type: {kind}` or several points with `mode: {mode}` in {label}")
    return clause


def _field(name: str, options: Mapping[str, Any], schema: Schema, nested: NestedObjects | None) -> Field:
    """Return the field to sort by: of `unmapped_type` if there is none."""
    name = schema.aliases.get(name, name)
    for part in (name, *objects(name)):
        if part in schema.unsearched:
            raise unsupported(f"sorting by {name} ({schema.unsearched[part]})")
        if schema.aliases.get(part, part) + KEYED in schema.fields:
            raise unsupported(f"sorting by {name}, which is flattened,")
    if schema.scope(name) != ROOT and nested is None:
        raise unsupported(f"sorting by {name}, which is in nested objects, without `nested`")
    field = schema.fields.get(name)
    if field is None:
        type_ = options.get("unmapped_type")
        if type_ is None:
            raise invalid(f"there is no field {name} to sort by (`unmapped_type` allows indexes without it)")
        if type_ not in _SORTED_TYPES:
            raise unsupported(f"`unmapped_type: {type_}` in the sort by {name}")
        return Field(name, type_, name)
    if field.is_text:
        raise invalid(f"{name} is a text field, which can't be sorted by: use a keyword field")
    if field.is_range or field.is_vector:
        raise invalid(f"{name} is a {field.type} field, which can't be sorted by")
    if field.is_geometry:
        raise invalid(f"{name} is a geo_point field: sort by `_geo_distance`")
    if not field.has_doc_values:
        raise invalid(f"{name} can't be sorted by, because it has `doc_values: false`")
    return field


def _term_clause(
    field: Field, descending: bool, mode: str, missing: Any, options: Mapping[str, Any]
) -> TermClause:
    for option in ("numeric_type", "format"):
        if options.get(option) is not None:
            raise invalid(f"`{option}` in the sort by {field.name}, which is no number")
    if mode not in ("min", "max"):
        raise invalid(f"`mode: {mode}` in the sort by {field.name}, which is no number")
    is_end = missing in ("_first", "_last")
    term = None if is_end else _term_text(missing, "`missing`")
    return TermClause(descending, field.name, mode == "max", term, missing == "_first")


def _term_text(value: Any, label: str) -> str:
    """Return the term of a JSON value; a fraction as Java prints the double."""
    return (
        parameters.printed(value, np.float64)
        if isinstance(value, float)
        else parameters.raw_text(value, label)
    )


def _number_clause(
    field: Field, descending: bool, mode: str, missing: Any, options: Mapping[str, Any]
) -> NumberClause:
    if field.type == BOOLEAN and mode not in ("min", "max"):
        raise unsupported(f"`mode: {mode}` in the sort by {field.name}, which is boolean,")
    type_ = field.type if field.type in FLOATS else "integer"
    if field.type in ("long", DATE, BOOLEAN):
        type_ = "long"
    numeric = options.get("numeric_type")
    if numeric is not None:
        if numeric not in ("long", "double") or field.type == BOOLEAN:
            raise unsupported(f"`numeric_type: {numeric}` in the sort by {field.name}")
        type_ = numeric
    pattern = ""
    format_ = options.get("format")
    if field.type == DATE and numeric is None:
        pattern = field.format if format_ is None else parameters.raw_text(format_, "`format`")
        date_formats(pattern)
    elif format_ is not None:
        raise unsupported(f"`format` in the sort by {field.name}, only of dates")
    if missing in ("_first", "_last"):
        value = _extreme(type_, (missing == "_first") != descending)
    else:
        value = _missing(missing, type_, field.name)
    return NumberClause(
        descending,
        field.name,
        mode,
        type_,
        value,
        pattern,
        pattern if format_ is not None else "",
        field.type == BOOLEAN,
    )


def _missing(value: Any, type_: str, name: str) -> float:
    label = f"`missing` in the sort by {name}"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise invalid(f"{label} must be a number, not {value!r}")
    number: float = parameters.any_number(value, label) if isinstance(value, str) else value
    if type_ == "float":
        return float(np.float32(number))
    if type_ == "double" and isinstance(value, str):
        return parameters.double(value)
    if type_ == "double":
        return float(number)
    least, greatest = _extreme(type_, True), _extreme(type_, False)
    if (isinstance(value, str) and str(int(number)) != value) or not least <= number <= greatest:
        raise unsupported(f"{label} that is {parameters.shown(value)}")
    return int(number)


# Selecting


class SortedHits(NamedTuple):
    """Documents in the order of a sort: their segments, their numbers there, and their sort values."""

    segments: NDArray[np.intp]
    documents: NDArray[np.intp]
    values: list[tuple[Any, ...]]
    groups: list[Any]  # the value by which hits are collapsed, None without one


def select(
    clauses: Sequence[SortClause],
    parts: Sequence[tuple[SegmentReader, Scores | None, Mask]],
    end: int,
    after: Sequence[Any] | None = None,
    group: TermClause | NumberClause | None = None,
) -> SortedHits:
    """Return the first `end` documents of the masks of segments, the first of each group."""
    runs = [_select(clauses, *part, end, after, group) for part in parts]
    segments = np.repeat(np.arange(len(runs)), [len(documents) for documents, *_ in runs])
    documents = np.concatenate([documents for documents, *_ in runs])
    columns = [[value for run in runs for value in run[2][index]] for index in range(len(clauses))]
    groups = [value for run in runs for value in run[3]]
    keys = [
        _common_keys(clause, columns[index])
        if isinstance(clause, TermClause)
        else np.concatenate([run[1][index] for run in runs])
        for index, clause in enumerate(clauses)
    ]
    order = np.lexsort(keys[::-1])
    if group is not None:
        seen: dict[Any, int] = {}
        for index in order.tolist():
            seen.setdefault(repr(groups[index]), index)  # 0.0 and -0.0 are two groups
        order = np.array(list(seen.values()), np.intp)
    chosen = order[:end].tolist()
    return SortedHits(
        segments[chosen],
        documents[chosen],
        [tuple(column[index] for column in columns) for index in chosen],
        [groups[index] for index in chosen],
    )


def _select(
    clauses: Sequence[SortClause],
    reader: SegmentReader,
    scores: Scores | None,
    mask: Mask,
    end: int,
    after: Sequence[Any] | None,
    group: TermClause | NumberClause | None,
) -> tuple[NDArray[np.intp], list[Int64s], list[list[Any]], list[Any]]:
    """Return the first documents of a segment, the keys and values of each clause, and the groups."""
    documents = np.flatnonzero(mask)
    keys = [_directed(clause, clause.keys(reader, scores)[documents]) for clause in clauses]
    chosen = np.arange(len(documents))
    if after is not None:
        chosen = chosen[_follow(clauses, keys, after, reader)]
    if group is None and 0 < end < len(chosen):
        first = keys[0][chosen]
        chosen = chosen[first <= np.partition(first, end - 1)[end - 1]]
    chosen = chosen[np.lexsort([key[chosen] for key in reversed(keys)])]
    groups: list[Any] = []
    if group is not None:
        counts = group.value_counts(reader)[documents]
        if (counts > 1).any():
            raise unsupported(f"`collapse` by {group.name}, of which a document has several values,")
        group_keys = group.keys(reader, scores)[documents]
        pairs = np.stack([counts[chosen], group_keys[chosen]])
        chosen = chosen[np.sort(np.unique(pairs, axis=1, return_index=True)[1])]
    chosen = chosen[:end]
    keys = [key[chosen] for key in keys]
    if group is not None:
        values_of_groups = group.values(group_keys[chosen], reader)
        groups = [
            value if has else None
            for value, has in zip(values_of_groups, counts[chosen].tolist(), strict=True)
        ]
    values = [
        clause.values(_directed(clause, key), reader) for clause, key in zip(clauses, keys, strict=True)
    ]
    return documents[chosen], keys, values, groups or [None] * len(chosen)


def _directed(clause: SortClause, keys: Int64s) -> Int64s:
    return ~keys if clause.descending else keys


def _follow(
    clauses: Sequence[SortClause], keys: Sequence[Int64s], after: Sequence[Any], reader: SegmentReader
) -> Mask:
    """Return the mask of the documents that follow a hit with the sort values `after`."""
    follows, is_equal = np.zeros(len(keys[0]), bool), np.ones(len(keys[0]), bool)
    for clause, key, value in zip(clauses, keys, after, strict=True):
        bound = clause.after(value, reader)
        bound = ~bound if clause.descending else bound
        follows |= is_equal & (key > bound)
        is_equal &= key == bound
    return follows


def _common_keys(clause: TermClause, terms: Sequence[str | None]) -> Int64s:
    """Return keys that order the terms of several segments."""
    ranks = {term: rank for rank, term in enumerate(sorted({term for term in terms if term is not None}))}
    keys = [clause.missing_key if term is None else ranks[term] for term in terms]
    return _directed(clause, np.array(keys, np.int64))
