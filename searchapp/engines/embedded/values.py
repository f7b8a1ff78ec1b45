"""The values of a document's properties: what Elasticsearch indexes of JSON, and what it highlights.

Arrays may be nested, null is no value. A text or keyword field takes a number or `true` as they stand in the JSON, a
field of numbers takes numbers as text; of decimals in a field of integers the whole part counts.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from searchapp.engines.embedded import java_numbers
from searchapp.engines.embedded.schema import FLOATS, INTEGERS, Field

MOST_PLACES = 19
"""Decimals of a text for a field of type long; a text with more is 0 to Elasticsearch, whatever its digits."""


def flat(value: Any) -> Iterator[Any]:
    """The values of a property, one after the other."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from flat(one)
    elif value is not None:
        yield value


def listed(value: Any) -> list[Any]:
    """As `flat`, in a list; most properties have one text."""
    return [value] if isinstance(value, str) else list(flat(value))


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
        return java_numbers.json_text(value)
    raise TypeError(f"{field.name} is a {field.type} field, but its value is {value!r}")


def shown_text(value: Any, field: Field) -> str:
    """A value that was indexed as text, as Elasticsearch marks matches in it: it reads the document's JSON again."""
    if isinstance(value, float):
        return java_numbers.printed(value, np.float64)
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
            return (
                float(java_numbers.big_decimal(value)) if field.type == "long" else java_numbers.double(value)
            )
        if isinstance(value, int) and not isinstance(value, bool):
            return java_numbers.of_int(value)
        if isinstance(value, float) and math.isfinite(value):
            return value
    except ValueError:
        pass
    raise TypeError(f"{field.name} is a {field.type} field, but its value is {_short(value)}")


def _float(value: str | int | float) -> float:
    if isinstance(value, str):
        return java_numbers.float32_of_text(value)
    return java_numbers.float32_of_json(value)


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
    digits = java_numbers.big_decimal(value)
    exponent = digits.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent > MOST_PLACES:
        return None
    return 0 if exponent < -MOST_PLACES else int(digits)


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 4000 else "a very long number"
    return text if len(text) <= 60 else f"{text[:60]}…"
