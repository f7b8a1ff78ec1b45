"""Values of documents for aggregations: doc values by document, formats of keys, documents that match."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import NotSupported, invalid, unsupported
from searchapp.lucene.index import dates
from searchapp.lucene.index.arrays import Int64s, Mask
from searchapp.lucene.index.mapping import BOOLEAN, DATE, FLOATS, INTEGERS, KEYWORD, ROOT, Field
from searchapp.lucene.index.reader import DirectoryReader, FieldReader, IndexReader
from searchapp.lucene.queries.query import Parser, Query
from searchapp.lucene.queries.scores import ScoreRows

MOST_BUCKETS = 65_536 // 2  # half of Elasticsearch's default of `search.max_buckets`

_TYPES = frozenset({KEYWORD, BOOLEAN, DATE, *INTEGERS, "double", "float"})

EMPTY: Int64s = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a field by document: numbers, or ordinals of `terms`; a document's values are ascending."""

    starts: Int64s  # of each document's values, followed by the end of the last; shape (documents + 1,)
    values: NDArray[Any]
    terms: Sequence[bytes] = ()  # of keywords, in bytewise order

    @classmethod
    def of(cls, readers: Sequence[IndexReader], firsts: Int64s, name: str) -> Column:
        """Read a field; `firsts` has the first number of each reader, and the number after the last one."""
        fields = [reader.fields[name] for reader in readers]
        terms: Sequence[bytes] = ()
        if fields[0].field.type == KEYWORD:
            by_segment = [_live_terms(field) for field in fields]
            terms = sorted({term for part in by_segment for term in part})
            ordinals = {term: ordinal for ordinal, term in enumerate(terms)}
            pairs = [
                (field.all_postings().documents, _repeated(part, ordinals, field))
                for part, field in zip(by_segment, fields, strict=True)
            ]
        elif fields[0].field.type == BOOLEAN:
            pairs = [
                (
                    field.all_postings().documents,
                    np.repeat([term == b"T" for term in field.terms], np.diff(field.starts)),
                )
                for field in fields
            ]
            pairs = [(documents, values.astype(np.int64)) for documents, values in pairs]
        else:
            pairs = [field.live_numbers() for field in fields]
        documents = np.concatenate(
            [first + own for first, (own, _values) in zip(firsts[:-1], pairs, strict=True)]
        )
        values = np.concatenate([own for _documents, own in pairs])
        order = np.argsort(documents, kind="stable")
        return cls(_starts(documents, firsts), values[order], terms)

    def pairs(self, documents: Int64s) -> tuple[Int64s, NDArray[Any]]:
        """Return each value of documents, with its document."""
        begins = self.starts[documents]
        counts = self.starts[documents + 1] - begins
        ends = np.cumsum(counts)
        indices = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - ends + counts, counts)
        return np.repeat(documents, counts), self.values[indices]

    def is_missing(self, documents: Int64s) -> Mask:
        return np.asarray(self.starts[documents] == self.starts[documents + 1])


def _starts(documents: Int64s, firsts: Int64s) -> Int64s:
    return np.append(0, np.cumsum(np.bincount(documents, minlength=int(firsts[-1]))))


def _live_terms(field: FieldReader) -> list[bytes]:
    counts = np.diff(field.starts)
    return [term for term, count in zip(field.terms, counts.tolist(), strict=True) if count]


def _repeated(terms: Sequence[bytes], ordinals: Mapping[bytes, int], field: FieldReader) -> Int64s:
    counts = np.diff(field.starts)
    return np.repeat(np.array([ordinals[term] for term in terms], np.int64), counts[counts > 0])


class Documents:
    """The documents of an index, then its nested objects of each path, by consecutive numbers; caches their values."""

    def __init__(self, reader: DirectoryReader, rows: Sequence[ScoreRows]) -> None:
        nested = {path: [segment.nested(path) for segment in rows] for path in reader.schema.nested}
        self._rows = {ROOT: rows, **nested}
        self._readers = [segment.reader for segments in self._rows.values() for segment in segments]
        self._firsts = np.append(0, np.cumsum([part.count for part in self._readers]))
        self._first = dict(zip(self._rows, self._firsts[:: len(rows)].tolist(), strict=False))
        self._columns: dict[str, Column] = {}
        self._parents: dict[tuple[str, str], Int64s] = {}
        self._objects: dict[tuple[str, str], Column] = {}
        self._masks: dict[tuple[int, str], tuple[Query, Mask]] = {}  # of the present request
        self._buckets = 0  # of the present request

    def column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = Column.of(self._readers, self._firsts, name)
        return self._columns[name]

    @cached_property
    def live(self) -> Int64s:
        """The documents and nested objects that are not deleted."""
        return np.flatnonzero(np.concatenate([reader.live_mask() for reader in self._readers]))

    @property
    def live_documents(self) -> Int64s:
        return self.live[: np.searchsorted(self.live, self._firsts[len(self._rows[ROOT])])]

    def parents(self, path: str, outer: str) -> Int64s:
        """Return the document or the object of an outer path around each nested object of a path; ascending."""
        if (path, outer) not in self._parents:
            begin = list(self._rows).index(outer) * len(self._rows[ROOT])
            parents = [
                first + segment.reader.nested[path].parents(outer)
                for first, segment in zip(self._firsts[begin:], self._rows[ROOT], strict=False)
            ]
            self._parents[path, outer] = np.concatenate(parents)
        return self._parents[path, outer]

    def objects(self, path: str, outer: str, documents: Int64s) -> Int64s:
        """Return the nested objects of a path in documents, or in objects of an outer path."""
        if (path, outer) not in self._objects:
            parents = self.parents(path, outer)
            numbers = self._first[path] + np.arange(len(parents))
            self._objects[path, outer] = Column(_starts(parents, self._firsts), numbers)
        return self._objects[path, outer].pairs(documents)[1]

    def containers(self, path: str, outer: str, objects: Int64s) -> Int64s:
        """Return the documents, or the objects of an outer path, around nested objects of a path."""
        return np.unique(self.parents(path, outer)[objects - self._first[path]])

    def matching(self, query: Query, documents: Int64s) -> Mask:
        """Return which of several documents, or nested objects of one path, match a query of the request."""
        number = documents[0] if len(documents) else 0
        path = next(path for path, first in reversed(self._first.items()) if first <= number)
        if (id(query), path) not in self._masks:
            mask = np.concatenate([query.matching(rows) for rows in self._rows[path]])
            self._masks[id(query), path] = query, mask
        return np.asarray(self._masks[id(query), path][1][documents - self._first[path]])

    def begin_request(self) -> None:
        self._masks.clear()
        self._buckets = 0

    def count_buckets(self, count: int) -> None:
        """Reject a request with too many buckets, which Elasticsearch counts when it fills gaps and at the end."""
        self._buckets += count
        if self._buckets > MOST_BUCKETS:
            raise unsupported(f"aggregations with more than {MOST_BUCKETS:,} buckets")


# Formats


class ValueFormat(NamedTuple):
    """How values become text (`DocValueFormat`)."""

    pattern: str | None = None  # of dates
    zone: dates.Zone = 0
    is_boolean: bool = False

    def text(self, value: float) -> str | None:
        """Return a number as text; None if it is shown only as a number."""
        if self.is_boolean:
            return "true" if value else "false"
        if self.pattern is None:
            return None
        if not math.isfinite(value):
            raise unsupported(f"printing {value} as a date")
        return dates.printed(self.pattern, int(value), self.zone)

    def key(self, value: float) -> str:
        """Return a number as the key of an object."""
        plain = str(value) if isinstance(value, int) else parameters.printed(value, np.float64)
        return self.text(value) or plain

    def as_string(self, name: str, value: float) -> dict[str, str]:
        """Return an entry of an answer with the text of a value, none if it is shown only as a number."""
        text = self.text(value)
        return {} if text is None else {f"{name}_as_string": text}

    def number(self, parser: Parser, text: str, label: str) -> float:
        """Read a number or a date, which may have date math."""
        try:
            if self.is_boolean and text in ("true", "false"):
                return float(text == "true")
            if self.is_boolean or self.pattern is None:
                return parameters.double(text)
            return dates.date_formats(self.pattern).calculate(
                text, lambda: parser.now, self.zone, round_up=False
            )
        except NotSupported as error:
            raise unsupported(error.piece) from error
        except ValueError as error:
            raise invalid(f"{label} is {parameters.shown(text)!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class ValueSource:
    """The values that an aggregation reads (`ValuesSource`)."""

    field: Field | None  # None if the mapping lacks it
    format: ValueFormat
    missing: Any = None  # the value of documents without one: a number, or bytes of a keyword

    @property
    def is_keyword(self) -> bool:
        return self.field is not None and self.field.type == KEYWORD

    @property
    def is_decimal(self) -> bool:
        return self.field is not None and self.field.type in FLOATS

    @property
    def is_boolean(self) -> bool:
        return self.field is not None and self.field.type == BOOLEAN

    def column(self, index: Documents) -> Column:
        assert self.field is not None
        return index.column(self.field.name)

    def pairs(self, index: Documents, documents: Int64s) -> tuple[Int64s, NDArray[Any]]:
        """Return each value of documents, with its document, by document and value."""
        if self.field is None:
            return EMPTY, EMPTY
        column = self.column(index)
        with_value, values = column.pairs(documents)
        if self.missing is None:
            return with_value, values
        without = documents[column.is_missing(documents)]
        missing = self.ordinal(column) if self.is_keyword else self.missing
        if self.is_keyword and not self._is_known(column):
            values = values + (values >= missing)
        all_documents = np.concatenate([with_value, without])
        order = np.argsort(all_documents, kind="stable")
        return all_documents[order], np.concatenate([values, np.full(len(without), missing, values.dtype)])[
            order
        ]

    def terms(self, column: Column) -> Sequence[bytes]:
        """Return the terms of the ordinals of `pairs`."""
        if self.missing is None or self._is_known(column):
            return column.terms
        ordinal = self.ordinal(column)
        return [*column.terms[:ordinal], self.missing, *column.terms[ordinal:]]

    def ordinal(self, column: Column) -> int:
        from bisect import bisect_left

        return bisect_left(column.terms, self.missing)

    def _is_known(self, column: Column) -> bool:
        ordinal = self.ordinal(column)
        return ordinal < len(column.terms) and column.terms[ordinal] == self.missing


def read_source(
    parser: Parser, options: Mapping[str, Any], kind: str, *, keywords: bool = False, has_zone: bool = False
) -> ValueSource:
    """Read `field`, `missing`, `format` and `time_zone` of an aggregation."""
    if options.get("field") is None:
        raise invalid(f"the aggregation `{kind}` lacks `field`")
    name = options["field"]
    if not isinstance(name, str):
        raise invalid(f"`field` of the aggregation `{kind}` must be the name of a field, not {name!r}")
    field = parser.field(name) if name else None
    if field is not None and field.is_text:
        raise unsupported(f"aggregations on {name}, which is text,")
    if field is not None and field.type not in _TYPES:
        raise unsupported(f"aggregations on {name}, which is {field.type},")
    if field is not None and not field.has_doc_values:
        raise invalid(f"{name} has no doc values, which the aggregation `{kind}` reads")
    if field is not None and field.type == KEYWORD and not keywords:
        raise invalid(f"{name} is {field.type}, which the aggregation `{kind}` can't read")
    zone: dates.Zone = 0
    if field is not None and field.is_number and field.type != DATE and options.get("time_zone") is not None:
        raise invalid(f"`time_zone` of the aggregation `{kind}` on {name}, which is {field.type}")
    if has_zone and options.get("time_zone") is not None:
        text = parameters.raw_text(options["time_zone"], f"`time_zone` of the aggregation `{kind}`")
        try:
            zone = dates.time_zone(text)
        except ValueError as error:
            raise unsupported(f"`time_zone` of the aggregation `{kind}` ({error})") from error
    pattern = _pattern(field, options, kind)
    format_ = ValueFormat(pattern, zone, field is not None and field.type == BOOLEAN)
    source = ValueSource(field, format_)
    if options.get("missing") is None:
        return source
    return ValueSource(field, format_, _missing(parser, source, options["missing"], kind))


def _pattern(field: Field | None, options: Mapping[str, Any], kind: str) -> str | None:
    if options.get("format") is not None:
        if field is None or field.type != DATE:
            raise unsupported(f"`format` of the aggregation `{kind}` on a field that is no date")
        pattern = parameters.raw_text(options["format"], f"`format` of the aggregation `{kind}`")
        try:
            dates.date_formats(pattern)
        except NotSupported:  # may still be printed
            dates.printed(pattern, 0)
        return pattern
    return field.format if field is not None and field.type == DATE else None


def _missing(parser: Parser, source: ValueSource, value: Any, kind: str) -> Any:
    label = f"`missing` of the aggregation `{kind}`"
    text = parameters.text(value, label)
    if source.field is None:
        raise unsupported(f"{label} on a field that the mapping lacks")
    if source.is_keyword:
        return text.encode("utf-8", "surrogatepass")
    is_number = parameters.is_number(value)  # also of dates: milliseconds
    number = parameters.double(text) if is_number else source.format.number(parser, text, label)
    if not source.is_decimal:
        if not (abs(number) < 2**53 and number == int(number)):
            raise unsupported(f"{label} that is no integer of the field {source.field.name}")
        return int(number)
    if not math.isfinite(number):
        raise unsupported(f"{number} as {label}")
    return number
