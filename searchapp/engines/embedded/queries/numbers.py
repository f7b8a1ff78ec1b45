"""Numbers in queries, as Elasticsearch's `NumberFieldMapper` reads them for a field.

JSON's integers and doubles come as numbers of Java, everything else as text: so do integers of more than 64 bits. Most
is decided by the double that a value comes to, an integer of 64 bits by its digits, and those of a double are the ones
that Java prints: 1.152921504606847E18 is 1152921504606847000 and not 2 to the 60th.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from searchapp.engines.embedded import java_numbers, parameters
from searchapp.engines.embedded.queries.nodes import Between, MatchNone, OneOf, Query
from searchapp.engines.embedded.refusals import invalid, unsupported
from searchapp.engines.embedded.schema import INTEGERS, Field

LONG = 64


@dataclass(frozen=True, slots=True)
class Given:
    """A value of a query on a field of numbers: the double that it comes to, and what it is printed as.

    `exact` is its integer if it comes as one of at most 64 bits, `is_text` says that it comes as text.
    """

    place: str
    double: float
    text: str
    exact: int | None
    is_text: bool

    @classmethod
    def read(cls, value: Any, place: str) -> Given:
        """Read a value of JSON, or a token of an analyzed text.

        Raises:
            EngineRefused: it is no number.
        """
        if isinstance(value, float) and parameters.is_number(value):
            return cls(place, value, java_numbers.printed(value, np.float64), None, False)
        text = parameters.raw_text(value, place)
        if isinstance(value, bool):
            raise invalid(f"{place} must be a number, not {value!r}")
        if isinstance(value, int) and _fits(value, LONG):
            return cls(place, float(value), text, value, False)
        try:
            return cls(place, java_numbers.double(text), text, None, True)
        except ValueError as error:
            raise invalid(f"{place} must be a number, not {parameters.shown(value)!r}") from error

    @property
    def has_decimals(self) -> bool:
        """What is infinite or no number counts as one with decimals."""
        return self.exact is None and not (math.isfinite(self.double) and self.double == int(self.double))

    def float32(self) -> float:
        if self.is_text:
            return java_numbers.float32_of_text(self.text)
        return java_numbers.to_float32(self.double) if self.exact is None else _nearest_float32(self.exact)

    def whole(self, bits: int) -> int | None:
        """The integer with the decimals cut off; None if the type of so many bits has no such integer."""
        if bits < LONG:
            if math.isnan(self.double):
                return 0
            return int(self.double) if _fits(self.double, bits) else None
        digits = int(self.digits())
        return digits if _fits(digits, LONG) else None

    def digits(self) -> Any:
        """The number as it is printed, exactly.

        Raises:
            EngineRefused: it is printed in a way that only doubles are read.
        """
        if self.exact is not None:
            return self.exact
        try:
            return java_numbers.big_decimal(self.text)
        except ValueError as error:
            raise invalid(f"{self.place} must be a number, not {parameters.shown(self.text)!r}") from error


def of_number(field: Field, value: Any) -> Query:
    """The documents that have a number."""
    given = Given.read(value, f"the number for {field.name}")
    if field.type not in INTEGERS:
        number = given.float32() if field.type == "float" else given.double
        if not math.isfinite(number):
            return MatchNone(late=True)
        return Between(field.name, number, number)
    if not _in_type(given, field) or given.has_decimals or not _fits(_compared(given, field), _bits(field)):
        return MatchNone(late=True)
    found = given.whole(_bits(field))
    assert found is not None
    return Between(field.name, found, found, is_point=True)


def any_of_numbers(field: Field, values: Iterable[Any]) -> Query:
    """The documents that have one of several numbers."""
    every = [Given.read(value, f"a number for {field.name}") for value in values]
    if field.type not in INTEGERS:
        numbers = [given.float32() if field.type == "float" else given.double for given in every]
        if not all(map(math.isfinite, numbers)):
            raise invalid(f"a number for {field.name} is no finite {field.type}")
    else:
        numbers = [_required(given, field) for given in every if not given.has_decimals]
    if not numbers:
        return MatchNone(late=True)
    # -0.0 is a number of its own to Lucene.
    different = {(number, math.copysign(1, number)): number for number in numbers}
    return OneOf(field.name, tuple(different[key] for key in sorted(different)))


def between(field: Field, given: Mapping[str, Any]) -> Query | None:
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
    def given(self) -> Given:
        """The value, read only when Elasticsearch would: what nothing can lie above needs no other end."""
        return Given.read(self.value, f"a bound for {self.field.name}")


def _whole_range(field: Field, low: _Bound | None, high: _Bound | None) -> Query:
    smallest, greatest = -(1 << _bits(field) - 1), (1 << _bits(field) - 1) - 1
    first, last = smallest, greatest
    if low is not None:
        given = low.given
        first = _required(given, field)
        first += given.double > 0 if given.has_decimals else not low.inside
        if first > greatest:
            return MatchNone(late=True)
    if high is not None:
        given = high.given
        last = _required(given, field)
        last -= given.double < 0 if given.has_decimals else not high.inside
        if last < smallest:
            return MatchNone(late=True)
    return Between(field.name, first, last)


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
    return Between(field.name, first, last)


def _next(value: float, towards: float, is_float: bool) -> float:
    """The next number of the field's; Lucene has -0.0 beside 0.0, the next smaller number."""
    if value == 0 and (math.copysign(1, value) < 0) == (towards > 0):
        return -value
    if is_float:
        return float(np.nextafter(np.float32(value), np.float32(towards)))
    return math.nextafter(value, towards)


def _required(given: Given, field: Field) -> int:
    """The integer of a value whose decimals are cut off.

    Raises:
        EngineRefused: no field of the type can have it.
    """
    # What is beyond the doubles of 64 bits is no integer however it is printed.
    found = None if _bits(field) == LONG and abs(given.double) > 2.0**63 else given.whole(_bits(field))
    if found is None:
        raise invalid(f"{given.place} is {parameters.shown(given.text)}, which no {field.type} can be")
    return found


def _in_type(given: Given, field: Field) -> bool:
    """Whether a field of small integers can have the number; others find out as they read it."""
    bits = INTEGERS[field.type] + 1
    return bits > 16 or math.isnan(given.double) or _fits(given.double, bits)


def _compared(given: Given, field: Field) -> Any:
    """What of a number is compared with the bounds of the field's type."""
    return given.digits() if field.type == "long" else given.double


def _bits(field: Field) -> int:
    """The bits of the integers that Lucene keeps for the type."""
    return LONG if field.type == "long" else 32


def _fits(number: Any, bits: int) -> bool:
    return bool(-(1 << bits - 1) <= number <= (1 << bits - 1) - 1)


def _nearest_float32(number: int) -> float:
    """The float32 nearest to an integer of 64 bits."""
    return java_numbers.float32_of_json(number)
