"""Queries on fields of ranges, such as `date_range`.

Sources: `RangeType` and `BinaryDocValuesRangeQuery` of Elasticsearch, and org.apache.lucene.document.RangeFieldQuery.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index import dates
from searchapp.lucene.index.mapping import DATE, INTEGERS, Field, Schema, next_value, value_limits
from searchapp.lucene.index.reader import IndexReader, Mask
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.match_all import MatchNone
from searchapp.lucene.queries.number_range import NumberValue, date_bounds
from searchapp.lucene.queries.query import Leaf, Parser, Query

RELATIONS = ("intersects", "contains", "within")


@dataclass(frozen=True, slots=True)
class RangeRelation(Leaf):
    """Documents with a range that intersects, contains or is within the one from `low` to `high`, with the score 1."""

    field: str
    low: float
    high: float
    relation: str

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        def accepts(lows: NDArray[Any], highs: NDArray[Any]) -> Mask:
            if self.relation == "intersects":
                return np.asarray((lows <= self.high) & (highs >= self.low))
            if self.relation == "within":
                return np.asarray((lows >= self.low) & (highs <= self.high))
            return np.asarray((lows <= self.low) & (highs >= self.high))

        return reader.fields[self.field].documents_with_ranges(accepts)

    def notation(self, schema: Schema) -> str:
        by_values = self.constant_notation(schema)
        if not schema.fields[self.field].has_doc_values:
            return by_values
        return f"IndexOrDocValuesQuery(indexQuery={self._by_index(schema)}, dvQuery={by_values})"

    def constant_notation(self, schema: Schema) -> str:
        if not schema.fields[self.field].has_doc_values:
            return self._by_index(schema)
        low, high = self._printed(schema)
        return f"BinaryDocValuesRangeQuery(fieldName=,from={low},to={high})"

    def _by_index(self, schema: Schema) -> str:
        low, high = self._printed(schema)
        return f"{self.field}:<ranges:[{low} : {high}]>"

    def _printed(self, schema: Schema) -> tuple[str, str]:
        field = schema.fields[self.field].of_bounds
        if field.is_integer:
            return str(self.low), str(self.high)
        precision = np.float32 if field.type == "float" else np.float64
        return printed(self.low, precision), printed(self.high, precision)


def between(
    parser: Parser,
    field: Field,
    bounds: Mapping[str, Any],
    low: str,
    high: str,
    formats: dates.DateFormats | None,
    zone: dates.Zone | None,
    relation: str,
) -> Query:
    """Return the query for the ranges in a relation to a range, see `number_range.of_dates`."""
    values = field.of_bounds
    is_open = low == "gt", high == "lt"
    lower, upper = bounds.get(low), bounds.get(high)
    begin: float
    end: float
    if values.type == DATE:
        formats = formats or dates.date_formats(field.format)
        options: Mapping[str, Any] = {"formats": formats, "zone": zone, "now": lambda: parser.now}
        begin, end = date_bounds(values, lower, upper, is_open=is_open, **options)
        begin -= is_open[0] and lower is not None
        end += is_open[1] and upper is not None
    else:
        begin, end = value_limits(values)
        begin = begin if lower is None else _number(lower, values)
        end = end if upper is None else _number(upper, values)
    if begin > end:
        raise invalid(f"the range for {field.name} ends before it begins")
    # A missing bound is open too if the parameter's name says so.
    first = next_value(begin, values, 1) if is_open[0] else begin
    last = next_value(end, values, -1) if is_open[1] else end
    return MatchNone(late=True) if first > last else RangeRelation(field.name, first, last, relation)


def _number(value: Any, field: Field) -> float:
    parsed = NumberValue.read(value, f"a bound for {field.name}")
    if field.type in INTEGERS:
        if parsed.has_decimals:
            raise invalid(f"a bound for {field.name} has decimals")
        return parsed.required_integer(field)
    number = parsed.in_type(field)
    if not math.isfinite(number) or number == 0:  # Lucene distinguishes -0.0
        raise unsupported(f"{number} as a bound for {field.name}")
    return number
