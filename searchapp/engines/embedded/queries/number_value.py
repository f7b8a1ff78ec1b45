"""Numbers in queries, as Elasticsearch's `NumberFieldMapper` reads them for a field.

JSON's integers and doubles come as numbers of Java, everything else as text: so do integers of more than 64 bits. Most
is decided by the double that a value comes to, an integer of 64 bits by its digits, and those of a double are the ones
that Java prints: 1.152921504606847E18 is 1152921504606847000 and not 2 to the 60th.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from searchapp.engines.embedded import java_numbers, parameters
from searchapp.engines.embedded.refusals import invalid
from searchapp.engines.embedded.schema import INTEGERS, Field

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
            EngineRefused: the value is no number.
        """
        if isinstance(value, float) and parameters.is_number(value):
            return cls(place, value, java_numbers.printed(value, np.float64), None, False)
        text = parameters.raw_text(value, place)
        if isinstance(value, bool):
            raise invalid(f"{place} must be a number, not {value!r}")
        if isinstance(value, int) and fits(value, LONG):
            return cls(place, float(value), text, value, False)
        try:
            return cls(place, java_numbers.double(text), text, None, True)
        except ValueError as error:
            raise invalid(f"{place} must be a number, not {parameters.shown(value)!r}") from error

    @property
    def has_decimals(self) -> bool:
        """What is infinite or no number counts as a value with decimals."""
        return self.exact is None and not (math.isfinite(self.double) and self.double == int(self.double))

    def float32(self) -> float:
        if self.is_text:
            return java_numbers.float32_of_text(self.text)
        return (
            java_numbers.to_float32(self.double)
            if self.exact is None
            else java_numbers.float32_of_json(self.exact)
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
            EngineRefused: the number is printed in a way that only doubles are read.
        """
        if self.exact is not None:
            return self.exact
        try:
            return java_numbers.big_decimal(self.text)
        except ValueError as error:
            raise invalid(f"{self.place} must be a number, not {parameters.shown(self.text)!r}") from error


def required_integer(given: NumberValue, field: Field) -> int:
    """The integer of a value whose decimals are cut off.

    Raises:
        EngineRefused: no field of the type can have it.
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
