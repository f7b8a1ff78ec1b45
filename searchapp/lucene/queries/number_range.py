"""The `range` query: numbers between two bounds; a single number is a range too.

`NumberValue`: a number of a query, read as by Elasticsearch's `NumberFieldMapper` for the type of its field.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index.mapping import INTEGERS, Field, Schema
from searchapp.lucene.index.reader import IndexReader
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries import match_all
from searchapp.lucene.queries.match_all import MatchAll, MatchNone
from searchapp.lucene.queries.parser import Parser
from searchapp.lucene.queries.query import Constant, Leaf, Query, boosted

LONG = 64


@dataclass(frozen=True, slots=True)
class NumberValue:
    """A value of a query on a field of numbers: the double that it comes to, and what it is printed as.

    `exact` is the integer of a value that comes as an integer of at most 64 bits; `is_text` says that the value comes
    as text.
    """

    place: str
    double: float
    text: str
    exact: int | None
    is_text: bool

    @classmethod
    def read(cls, value: Any, place: str) -> NumberValue:
        """Read a value of JSON, or a token of an analyzed text.

        Raises:
            Refused: the value is no number.
        """
        if isinstance(value, float) and parameters.is_number(value):
            return cls(place, value, parameters.printed(value, np.float64), None, False)
        text = parameters.raw_text(value, place)
        if isinstance(value, bool):
            raise invalid(f"{place} must be a number, not {value!r}")
        if isinstance(value, int) and fits(value, LONG):
            return cls(place, float(value), text, value, False)
        try:
            return cls(place, parameters.double(text), text, None, True)
        except ValueError as error:
            raise invalid(f"{place} must be a number, not {parameters.shown(value)!r}") from error

    @property
    def has_decimals(self) -> bool:
        """What is infinite or no number counts as a value with decimals."""
        return self.exact is None and not (math.isfinite(self.double) and self.double == int(self.double))

    def float32(self) -> float:
        if self.is_text:
            return parameters.float32_of_text(self.text)
        return (
            parameters.to_float32(self.double)
            if self.exact is None
            else parameters.float32_of_json(self.exact)
        )

    def whole(self, bits: int) -> int | None:
        """The integer with the decimals cut off; None if an integer type of this many bits has no such integer."""
        if bits < LONG:
            if math.isnan(self.double):
                return 0
            return int(self.double) if fits(self.double, bits) else None
        digits = int(self.digits())
        return digits if fits(digits, LONG) else None

    def digits(self) -> Any:
        """The number as it is printed, exactly.

        Raises:
            Refused: the number is printed in a way that only doubles are read.
        """
        if self.exact is not None:
            return self.exact
        try:
            return parameters.big_decimal(self.text)
        except ValueError as error:
            raise invalid(f"{self.place} must be a number, not {parameters.shown(self.text)!r}") from error


def required_integer(given: NumberValue, field: Field) -> int:
    """The integer of a value whose decimals are cut off.

    Raises:
        Refused: no field of the type can have it.
    """
    # What is beyond the doubles of 64 bits is no integer however it is printed.
    found = None if bits(field) == LONG and abs(given.double) > 2.0**63 else given.whole(bits(field))
    if found is None:
        raise invalid(f"{given.place} is {parameters.shown(given.text)}, which no {field.type} can be")
    return found


def in_type(given: NumberValue, field: Field) -> bool:
    """Whether a field of small integers can have the number; the other types find out when the number is read."""
    bits = INTEGERS[field.type] + 1
    return bits > 16 or math.isnan(given.double) or fits(given.double, bits)


def compared(given: NumberValue, field: Field) -> Any:
    """What of a number is compared with the bounds of the field's type."""
    return given.digits() if field.type == "long" else given.double


def bits(field: Field) -> int:
    """The bits of the integers that Lucene keeps for the type."""
    return LONG if field.type == "long" else 32


def fits(number: Any, bits: int) -> bool:
    """Whether an integer type of this many bits has the number."""
    return bool(-(1 << bits - 1) <= number <= (1 << bits - 1) - 1)


def signed(numbers: Iterable[float]) -> tuple[tuple[float, float], ...]:
    """Numbers of which 0.0 and -0.0 differ, as they do to Lucene."""
    return tuple((number, math.copysign(1, number)) for number in numbers)


@dataclass(frozen=True, slots=True, eq=False)
class NumberRange(Leaf):
    """Documents that have a number from `low` to `high`, both included, with the score 1.

    Integers have bounds even where a query names none. `whole` says that the range takes in all numbers of the field.
    `is_point` marks one integer asked for as such, which Elasticsearch looks up in another way than a range.
    """

    field: str
    low: float
    high: float
    whole: bool = False
    is_point: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberRange) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.field, self.whole, self.is_point, signed((self.low, self.high))

    def resolved(self, reader: IndexReader) -> Leaf:
        """As `PointRangeQuery.rewrite` and `IndexOrDocValuesQuery.rewrite`."""
        whole, none = reader.fields[self.field].extent(self.low, self.high)
        if whole and reader.in_all(self.field):
            return MatchAll()
        if self.is_point:
            return self
        return MatchNone() if none else replace(self, whole=whole)

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return reader.fields[self.field].between(self.low, self.high)

    def notation(self, schema: Schema) -> str:
        """Lucene decides while it searches which of two ways takes less time."""
        by_values = self.constant_notation(schema)
        if self.is_point:
            return by_values
        by_index = match_all.exists_description(self.field) if self.whole else self._by_index(schema)
        return f"IndexOrDocValuesQuery(indexQuery={by_index}, dvQuery={by_values})"

    def _by_index(self, schema: Schema) -> str:
        kind = schema.fields[self.field].type
        if kind in INTEGERS:
            return self.constant_notation(schema)
        precision = np.float32 if kind == "float" else np.float64
        return f"{self.field}:[{printed(self.low, precision)} TO {printed(self.high, precision)}]"

    def constant_notation(self, schema: Schema) -> str:
        """The query that looks at a document's numbers, with which Lucene explains the range."""
        kind = schema.fields[self.field].type
        if kind in INTEGERS:
            return f"{self.field}:[{self.low} TO {self.high}]"
        sortable = _sortable_float if kind == "float" else _sortable
        return f"{self.field}:[{sortable(self.low)} TO {sortable(self.high)}]"


def of_number(field: Field, value: Any) -> Query:
    """The documents that have a number."""
    given = NumberValue.read(value, f"the number for {field.name}")
    if field.type not in INTEGERS:
        number = given.float32() if field.type == "float" else given.double
        if not math.isfinite(number):
            return MatchNone(late=True)
        return NumberRange(field.name, number, number)
    if not in_type(given, field) or given.has_decimals or not fits(compared(given, field), bits(field)):
        return MatchNone(late=True)
    found = given.whole(bits(field))
    assert found is not None
    return NumberRange(field.name, found, found, is_point=True)


def read_range(parser: Parser, content: Any) -> Query:
    """Numbers between bounds; without bounds, whatever has a value."""
    name, given = parameters.single(content, "the query `range`")
    given = parser.options(given, "range", ("gt", "gte", "lt", "lte"))
    bounds = {bound: value for bound, value in given.items() if bound != "boost"}
    for bound, value in bounds.items():
        if value is not None:
            place = f"`{bound}` for {name}"
            parameters.term(value, place)
    field = parser.field(name)
    if field is None:
        return MatchNone()
    if field.is_number:
        found = _between(field, bounds)
    elif all(value is None for value in bounds.values()):
        found = None
    else:
        raise unsupported(f"the query `range` on {name}, a {field.type} field, only on numbers")
    return boosted(Constant(match_all.Exists(name)) if found is None else found, given, "range")


def _between(field: Field, given: Mapping[str, Any]) -> Query | None:
    """The documents that have a number between the bounds of a `range`; None if there are no bounds.

    Of two bounds on one side the one that was written last counts, even if it is null.
    """
    low: tuple[Any, bool] = (None, True)
    high: tuple[Any, bool] = (None, True)
    for bound, value in given.items():
        if bound in ("gt", "gte"):
            low = value, bound == "gte"
        elif bound in ("lt", "lte"):
            high = value, bound == "lte"
    if low[0] is None and high[0] is None:
        return None
    read = _whole_range if field.type in INTEGERS else _decimal_range
    return read(field, *(None if end[0] is None else _Bound(field, *end) for end in (low, high)))


@dataclass(frozen=True, slots=True)
class _Bound:
    """One end of a range; `inside` says whether it belongs to the range."""

    field: Field
    value: Any
    inside: bool

    @property
    def given(self) -> NumberValue:
        """The value, read only when Elasticsearch would: what nothing can lie above needs no other end."""
        return NumberValue.read(self.value, f"a bound for {self.field.name}")


def _whole_range(field: Field, low: _Bound | None, high: _Bound | None) -> Query:
    smallest, greatest = -(1 << bits(field) - 1), (1 << bits(field) - 1) - 1
    first, last = smallest, greatest
    if low is not None:
        given = low.given
        first = required_integer(given, field)
        first += given.double > 0 if given.has_decimals else not low.inside
        if first > greatest:
            return MatchNone(late=True)
    if high is not None:
        given = high.given
        last = required_integer(given, field)
        last -= given.double < 0 if given.has_decimals else not high.inside
        if last < smallest:
            return MatchNone(late=True)
    return NumberRange(field.name, first, last)


def _decimal_range(field: Field, low: _Bound | None, high: _Bound | None) -> Query:
    is_float = field.type == "float"
    first, last = -math.inf, math.inf
    if low is not None:
        first = low.given.float32() if is_float else low.given.double
        first = first if low.inside else _next(first, math.inf, is_float)
    if high is not None:
        last = high.given.float32() if is_float else high.given.double
        last = last if high.inside else _next(last, -math.inf, is_float)
    if math.isnan(first) or math.isnan(last):
        raise unsupported(f"NaN as a bound for {field.name}")
    if is_float and low is not None and first == -math.inf:
        first = float(np.finfo(np.float32).min)  # Lucene goes one number down and up again
    if is_float and high is not None and last == math.inf:
        last = float(np.finfo(np.float32).max)
    return NumberRange(field.name, first, last)


def _next(value: float, towards: float, is_float: bool) -> float:
    """The next number of the field's; Lucene has -0.0 beside 0.0, the next smaller number."""
    if value == 0 and (math.copysign(1, value) < 0) == (towards > 0):
        return -value
    if is_float:
        return float(np.nextafter(np.float32(value), np.float32(towards)))
    return math.nextafter(value, towards)


def _sortable(value: float) -> int:
    """The bits of a double, changed so that they order as the number does (`NumericUtils.doubleToSortableLong`)."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits ^ (bits >> 63) & 0x7FFFFFFFFFFFFFFF)


def _sortable_float(value: float) -> int:
    """The same of a float32 (`NumericUtils.floatToSortableInt`)."""
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    return int(bits ^ (bits >> 31) & 0x7FFFFFFF)
