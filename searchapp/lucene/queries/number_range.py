"""Queries on numbers and dates: a range, a single number, a set of numbers.

`NumberValue` reads a number of a query as Elasticsearch's `NumberFieldMapper` does for the field's type.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import NotSupported, invalid, unsupported
from searchapp.lucene.index import dates
from searchapp.lucene.index.mapping import DATE, FLOATS, INTEGERS, SCALED, Field, Schema, rounded
from searchapp.lucene.index.reader import IndexReader
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.match_all import Exists, MatchAll, MatchNone
from searchapp.lucene.queries.query import Constant, Leaf, Parser, Query

LONG = 64


@dataclass(frozen=True, slots=True)
class NumberValue:
    """A value in a query on a numeric field."""

    label: str
    double: float
    text: str  # the number as printed
    exact: int | None = None  # a value given as an integer of at most 64 bits
    is_text: bool = False

    @classmethod
    def read(cls, value: Any, label: str) -> NumberValue:
        """Read a JSON value, or a token of an analyzed text."""
        if isinstance(value, float) and parameters.is_number(value):
            return cls(label, value, printed(value, np.float64))
        text = parameters.raw_text(value, label)
        if isinstance(value, bool):
            raise invalid(f"{label} must be a number, not {value!r}")
        if isinstance(value, int) and _fits(value, LONG):
            return cls(label, float(value), text, value)
        try:
            return cls(label, parameters.double(text), text, is_text=True)
        except ValueError as error:
            raise invalid(f"{label} must be a number, not {parameters.shown(value)!r}") from error

    @property
    def has_decimals(self) -> bool:
        """Whether it has decimals, or is infinite or NaN."""
        return self.exact is None and not (math.isfinite(self.double) and self.double == int(self.double))

    def in_type(self, field: Field) -> float:
        """Return the number as the type of a field, but not rounded to a half float."""
        if field.type == "double":
            return self.double
        if self.is_text:
            return parameters.float32_of_text(self.text)
        return (
            parameters.to_float32(self.double)
            if self.exact is None
            else parameters.float32_of_json(self.exact)
        )

    def truncated(self, bits: int) -> int | None:
        """Drop the decimals; None if the integer does not fit into this many bits."""
        if bits < LONG:
            if math.isnan(self.double):
                return 0
            return int(self.double) if _fits(self.double, bits) else None
        digits = int(self.digits())
        return digits if _fits(digits, LONG) else None

    def digits(self) -> Any:
        if self.exact is not None:
            return self.exact
        try:
            return parameters.big_decimal(self.text)
        except ValueError as error:
            raise invalid(f"{self.label} must be a number, not {parameters.shown(self.text)!r}") from error

    def required_integer(self, field: Field) -> int:
        bits = _bits(field)
        # Elasticsearch rejects doubles beyond 64 bits in any notation.
        number = None if bits == LONG and abs(self.double) > 2.0**63 else self.truncated(bits)
        if number is None:
            raise invalid(f"{self.label} is {parameters.shown(self.text)}, which no {field.type} can be")
        return number


def _bits(field: Field) -> int:
    return LONG if field.type == "long" else 32


def _fits(number: Any, bits: int) -> bool:
    return bool(-(1 << bits - 1) <= number <= (1 << bits - 1) - 1)


def _signed(*numbers: float) -> tuple[tuple[float, float], ...]:
    """Return a key that distinguishes 0.0 and -0.0, as in Lucene."""
    return tuple((number, math.copysign(1, number)) for number in numbers)


def _printed_number(number: float, field: Field) -> str:
    if field.is_integer:
        return str(number)
    return printed(number, np.float64 if field.type == "double" else np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class NumberRange(Leaf):
    """Documents with a number from `low` to `high`, inclusive, with the score 1.

    Integer ranges always have bounds.
    """

    field: str
    low: float
    high: float
    covers_field: bool = False  # whether the range includes all numbers of the field
    is_point: bool = False  # whether the query is a single integer, which Elasticsearch looks up differently
    has_now: bool = False  # whether a bound depends on the time of the request

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberRange) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.field, self.covers_field, self.is_point, _signed(self.low, self.high)

    def resolved(self, reader: IndexReader) -> Leaf:
        """Follow `PointRangeQuery.rewrite` and `IndexOrDocValuesQuery.rewrite`."""
        covers_field, none = reader.fields[self.field].compare_range(self.low, self.high)
        if covers_field and reader.in_all(self.field):
            return MatchAll()
        if self.is_point:
            return self
        return MatchNone() if none else replace(self, covers_field=covers_field)

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return reader.fields[self.field].documents_between(self.low, self.high)

    def notation(self, schema: Schema) -> str:
        # Lucene chooses the faster of two queries while it searches.
        by_values = self.constant_notation(schema)
        has_doc_values = schema.fields[self.field].has_doc_values
        if self.is_point or not has_doc_values:
            return by_values
        by_index = Exists(self.field).notation(schema) if self.covers_field else self._by_index(schema)
        return f"IndexOrDocValuesQuery(indexQuery={by_index}, dvQuery={by_values})"

    def constant_notation(self, schema: Schema) -> str:
        # Lucene's explanation shows the query on doc values, which are sortable integers, if the field has them.
        field = schema.fields[self.field]
        if not field.has_doc_values:
            return self._by_index(schema)
        low, high = (
            end if field.is_integer else _sortable(FLOATS[field.type](end)) for end in (self.low, self.high)
        )
        return f"{self.field}:[{low} TO {high}]"

    def _by_index(self, schema: Schema) -> str:
        low, high = (_printed_number(end, schema.fields[self.field]) for end in (self.low, self.high))
        return f"{self.field}:[{low} TO {high}]"


def _sortable(value: np.floating[Any]) -> int:
    """Return the bits of a number as an integer of the same order (`NumericUtils.doubleToSortableLong`)."""
    size = 8 * value.itemsize
    bits = int.from_bytes(value.tobytes(), sys.byteorder, signed=True)
    return bits ^ (bits >> size - 1) & (1 << size - 1) - 1


def of_number(field: Field, value: Any) -> Query:
    """Return the query for documents with a number, or with a date of an incomplete one, such as of one day."""
    if field.type == DATE:
        return NumberRange(field.name, *date_bounds(field, value, value))
    parsed = NumberValue.read(value, f"the number for {field.name}")
    if field.type == SCALED:
        scaled = rounded(_scaled(parsed, field))
        return NumberRange(field.name, scaled, scaled, is_point=field.has_doc_values)
    if field.type not in INTEGERS:
        number = parsed.in_type(field)
        if field.type == "half_float":
            number = parameters.to_half(number)
        return NumberRange(field.name, number, number) if math.isfinite(number) else MatchNone(late=True)
    type_bits, bits = INTEGERS[field.type] + 1, _bits(field)
    # Small integers are checked in their own type, the others when the number is read.
    in_type = type_bits > 16 or math.isnan(parsed.double) or _fits(parsed.double, type_bits)
    if (
        not in_type
        or parsed.has_decimals
        or not _fits(parsed.digits() if bits == LONG else parsed.double, bits)
    ):
        return MatchNone(late=True)
    integer = parsed.truncated(bits)
    assert integer is not None
    return NumberRange(field.name, integer, integer, is_point=field.has_doc_values)


@dataclass(frozen=True, slots=True, eq=False)
class NumberInSet(Leaf):
    """Documents with one of the numbers, with the score 1."""

    field: str
    numbers: tuple[float, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberInSet) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.field, _signed(*self.numbers)

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        field = reader.fields[self.field]
        return np.concatenate([field.documents_between(number, number) for number in self.numbers])

    def notation(self, schema: Schema) -> str:
        field = schema.fields[self.field]
        return f"{self.field}:{{{' '.join(_printed_number(number, field) for number in self.numbers)}}}"


def of_numbers(field: Field, values: Iterable[Any]) -> Query:
    """Return the query for documents with one of several numbers."""
    parsed = [NumberValue.read(value, f"a number for {field.name}") for value in values]
    if field.type in INTEGERS:
        numbers: list[float] = [value.required_integer(field) for value in parsed if not value.has_decimals]
    elif field.type == SCALED:
        numbers = [rounded(_scaled(value, field)) for value in parsed]
    else:
        numbers = [value.in_type(field) for value in parsed]
        if field.type == "half_float":
            numbers = list(map(parameters.to_half, numbers))
        if not all(map(math.isfinite, numbers)):
            raise invalid(f"a number for {field.name} is not a finite {field.type}")
    if not numbers:
        return MatchNone(late=True)
    return NumberInSet(field.name, tuple(number for number, _sign in sorted(set(_signed(*numbers)))))


def between(field: Field, bounds: Mapping[str, Any], low: str, high: str) -> Query:
    """Return the query for the numbers between two bounds, of which one may be missing or null.

    Args:
        field: a numeric field
        bounds: by the names of the DSL
        low: the name of the lower bound, `gt` or `gte`
        high: `lt` or `lte`
    """
    if field.type == SCALED:
        return _scaled_range(field, bounds, low, high)
    return (_integer_range if field.type in INTEGERS else _decimal_range)(field, bounds, low, high)


def _bound(field: Field, bounds: Mapping[str, Any], name: str) -> NumberValue | None:
    value = bounds.get(name)
    return None if value is None else NumberValue.read(value, f"a bound for {field.name}")


def _integer_range(field: Field, bounds: Mapping[str, Any], low: str, high: str) -> Query:
    smallest, greatest = -(1 << _bits(field) - 1), (1 << _bits(field) - 1) - 1
    first, last = smallest, greatest
    if bound := _bound(field, bounds, low):
        first = bound.required_integer(field)
        first += bound.double > 0 if bound.has_decimals else low == "gt"
        if first > greatest:
            return MatchNone(late=True)  # Elasticsearch does not read the other bound
    if bound := _bound(field, bounds, high):
        last = bound.required_integer(field)
        last -= bound.double < 0 if bound.has_decimals else high == "lt"
        if last < smallest:
            return MatchNone(late=True)
    return NumberRange(field.name, first, last)


def _decimal_range(field: Field, bounds: Mapping[str, Any], low: str, high: str) -> Query:
    first, last = -math.inf, math.inf
    lower, upper = _bound(field, bounds, low), _bound(field, bounds, high)
    precision = FLOATS[field.type]
    # To include a bound, Elasticsearch steps to the previous number and back, unless it is a double.
    steps = field.type != "double"
    if lower:
        first = lower.in_type(field)
        if low == "gte" and steps:
            first = _next(first, -math.inf, precision)
        if low == "gt" or steps:
            first = _next(first, math.inf, precision)
    if upper:
        last = upper.in_type(field)
        if high == "lte" and steps:
            last = _next(last, math.inf, precision)
        if high == "lt" or steps:
            last = _next(last, -math.inf, precision)
    if math.isnan(first) or math.isnan(last):
        raise unsupported(f"NaN as a bound for {field.name}")
    return NumberRange(field.name, first, last)


def _next(value: float, towards: float, precision: type[np.floating[Any]]) -> float:
    """Return the next number of a precision; -0.0 precedes 0.0, as in Lucene."""
    if value == towards or math.isnan(value):
        return value
    with np.errstate(over="ignore", under="ignore"):
        nearest = float(precision(value))  # NumPy would compare in this precision
        if nearest != value and (nearest > value) == (towards > value):
            return nearest
        if nearest == 0 and (math.copysign(1, nearest) < 0) == (towards > 0):
            return -nearest
        return float(np.nextafter(precision(nearest), precision(towards)))


def _scaled(value: NumberValue, field: Field) -> float:
    """Return a number times the scaling factor, rounded once."""
    if not math.isfinite(value.double):
        raise invalid(f"{value.label} is {value.double}, which is not finite")
    number, factor = (Fraction(Decimal(repr(part))) for part in (value.double, field.scaling_factor))
    try:
        return float(number * factor)
    except OverflowError:
        return math.copysign(math.inf, value.double)


def _scaled_range(field: Field, bounds: Mapping[str, Any], low: str, high: str) -> Query:
    first, last = -(1 << LONG - 1), (1 << LONG - 1) - 1
    if bound := _bound(field, bounds, low):
        least = _scaled(bound, field)
        first = rounded(_ceiling(least if low == "gte" else math.nextafter(least, math.inf)))
    if bound := _bound(field, bounds, high):
        most = _scaled(bound, field)
        last = rounded(-_ceiling(-(most if high == "lte" else math.nextafter(most, -math.inf))))
    return NumberRange(field.name, first, last)


def _ceiling(value: float) -> float:
    return float(math.ceil(value)) if math.isfinite(value) else value


# Dates


def of_dates(
    parser: Parser,
    field: Field,
    bounds: Mapping[str, Any],
    low: str,
    high: str,
    formats: dates.DateFormats | None,
    zone: dates.Zone | None,
) -> Query:
    """Return the query for the dates between two bounds, of which each may be missing or null.

    Elasticsearch compares the bounds with the first and last date of the index before it creates a query
    (`DateFieldType.isFieldWithinQuery`).

    Args:
        parser: knows the time of the request
        field: a date field
        bounds: by the names of the DSL
        low: the name of the lower bound, `gt` or `gte`
        high: `lt` or `lte`
        formats: None for those of the field
        zone: of bounds without one
    """
    known = parser.reader.fields[field.name].extremes
    if known is None:
        return MatchNone()
    first, last = bounds_of_dates(parser, field, bounds, low, high, formats, zone)
    if first <= known[0] and known[1] <= last:
        return Constant(Exists(field.name))
    if known[1] < first or last < known[0]:
        return MatchNone()
    has_now = any(str(bounds.get(name)).startswith("now") for name in (low, high))
    return NumberRange(field.name, first, last, has_now=has_now)


def bounds_of_dates(
    parser: Parser,
    field: Field,
    bounds: Mapping[str, Any],
    low: str,
    high: str,
    formats: dates.DateFormats | None,
    zone: dates.Zone | None,
) -> tuple[int, int]:
    """Return the first and the last date between two bounds, see `of_dates`."""
    return date_bounds(
        field,
        bounds.get(low),
        bounds.get(high),
        is_open=(low == "gt", high == "lt"),
        formats=formats,
        zone=zone,
        now=lambda: parser.now,
    )


def date_bounds(
    field: Field,
    low: Any,
    high: Any,
    *,
    is_open: tuple[bool, bool] = (False, False),
    formats: dates.DateFormats | None = None,
    zone: dates.Zone | None = None,
    now: Callable[[], int] | None = None,
) -> tuple[int, int]:
    """Return the first and the last date between two values, None for no bound."""
    if formats is None:
        has_number = any(type(value) in (int, float) for value in (low, high))
        formats = dates.date_formats(dates.EPOCH_MILLIS if has_number else field.format)

    def read(value: Any, *, round_up: bool) -> int:
        text = parameters.text(value, f"a date for {field.name}")
        if now is None and text.startswith("now"):
            raise unsupported(f"`{parameters.shown(text)}` for {field.name} outside the query `range`")
        try:
            return formats.calculate(text, now or int, zone, round_up=round_up)
        except ValueError as error:
            raise invalid(f"{parameters.shown(value)!r} is no date for {field.name}: {error}") from error

    first, last = -(1 << 63), (1 << 63) - 1
    if low is not None:
        first = read(low, round_up=is_open[0]) + is_open[0]
    if high is not None:
        last = read(high, round_up=not is_open[1]) - is_open[1]
    return first, last


def date_of(parser: Parser, field: Field, value: Any, *, round_up: bool = False) -> int:
    """Return the date of a value that may have date math, in the format of a field."""
    text = parameters.raw_text(value, f"a date for {field.name}")
    try:
        return dates.date_formats(field.format).calculate(text, lambda: parser.now, None, round_up=round_up)
    except ValueError as error:
        raise invalid(f"{parameters.shown(value)!r} is no date for {field.name}: {error}") from error


def date_format(options: Mapping[str, Any]) -> dates.DateFormats | None:
    """Return the `format` of a range, None without one."""
    if "format" not in options:
        return None
    pattern = parameters.raw_text(options["format"], "`format` of the query `range`")
    try:
        return dates.date_formats(pattern)
    except NotSupported as error:
        raise unsupported(error.piece) from error


def time_zone(options: Mapping[str, Any], query: str = "range") -> dates.Zone | None:
    """Return the `time_zone` of a query, None without one."""
    if "time_zone" not in options:
        return None
    text = parameters.raw_text(options["time_zone"], f"`time_zone` of the query `{query}`")
    try:
        return dates.time_zone(text)
    except ValueError as error:
        raise unsupported(f"`time_zone` of the query `{query}` ({error})") from error
