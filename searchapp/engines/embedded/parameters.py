"""Values of the DSL, checked one by one.

JSON comes to Elasticsearch as tokens, and the parameter decides what its token is read as: as a float, an integer,
a boolean, as the text that stands in the JSON, or as an object of Java that is printed later on. `5`, `"5"` and
`"5.0"` are the same to some and not to others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from searchapp.engines.embedded import java_numbers
from searchapp.engines.embedded.refusals import invalid, unsupported

_EXACT = 1 << 24
"""Up to here every integer is a float32."""

_SMALLEST, _LARGEST = 1e-30, 1e30
"""Between these, every number is a float32 that is neither 0 nor infinite."""

LARGEST_INTEGER = 2**31 - 1

LONGEST_TERM = 32_766
"""Bytes of UTF-8: no index of Lucene has a longer term."""


def mapping(value: Any, place: str) -> Mapping[str, Any]:
    """A value that must be an object."""
    if type(value) is not dict and not isinstance(value, Mapping):  # the first question is quicker by far
        raise invalid(f"{place} must be an object, not {value!r}")
    return value


def single(value: Any, place: str) -> tuple[str, Any]:
    """The only entry of an object, such as a query's field."""
    entries = mapping(value, place)
    if len(entries) > 1 and any(one is None or isinstance(one, list | tuple) for one in entries.values()):
        raise unsupported(f"null or a list in {place}, beside something else,")
    if len(entries) != 1:
        raise invalid(f"{place} must name one thing, not {', '.join(entries) or 'nothing'}")
    (entry,) = entries.items()
    return entry


def any_number(value: Any, place: str) -> float:
    """A number of the DSL's as a float32; as text it may also be infinite or `NaN`."""
    if type(value) is int and -_EXACT < value < _EXACT:  # most are, and every query has some
        return float(value)
    if type(value) is float and _SMALLEST < value < _LARGEST:
        rounded = float(np.float32(value))
        return rounded if rounded == value else java_numbers.float32_of_json(value)
    try:
        if isinstance(value, str):
            return java_numbers.float32_of_text(value)
        if is_number(value):
            return java_numbers.float32_of_json(value)
    except (ValueError, OverflowError) as error:
        raise invalid(f"{place}: {error}") from error
    raise invalid(f"{place} must be a number, not {value!r}")


def number(value: Any, place: str) -> float:
    """A finite number of the DSL's, rounded to float32 as Elasticsearch keeps boosts and weights."""
    return finite(signless(value, place), place)


def signless(value: Any, place: str) -> float:
    """A number of the DSL's that is not -0.0: scores of it rank below those of 0.0."""
    rounded = any_number(value, place)
    if rounded == 0 and math.copysign(1, rounded) < 0:
        raise unsupported(f"-0.0 as {place}")
    return rounded


def finite(given: float, place: str) -> float:
    """The number, which must be one."""
    if not math.isfinite(given):
        raise invalid(f"{place} is {given}, which is too great or no number")
    return given


def no_nan(given: float, place: str) -> float:
    """The number, which must not be NaN here; Elasticsearch takes NaN too."""
    if math.isnan(given):
        raise unsupported(f"NaN as {place}")
    return given


def is_number(value: Any) -> bool:
    """Whether a value is a number of JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)


def _is_finite(number: int | float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def integer(value: Any, place: str) -> int:
    """An integer of 32 bits; of a number with decimals they are cut off."""
    if isinstance(value, str):
        try:
            given: int | float = java_numbers.double(value)
        except ValueError as error:
            raise invalid(f"{place}: {error}") from error
    elif is_number(value):
        given = value
    else:
        raise invalid(f"{place} must be a number, not {value!r}")
    if given != given:  # NaN; an integer may be too great for `math.isnan`
        return 0
    if not -LARGEST_INTEGER - 1 <= given <= LARGEST_INTEGER:
        raise invalid(f"{place} is {shown(value)}, which is no integer of 32 bits")
    return int(given)


def flag(value: Any, place: str) -> bool:
    """Yes or no, also as text."""
    if isinstance(value, str) and value in ("true", "false", ""):
        return value == "true"
    if not isinstance(value, bool):
        raise invalid(f"{place} must be true or false, not {value!r}")
    return value


def name(value: Any, place: str) -> str:
    """The name of a field or of an analyzer, which can't be empty."""
    given = raw_text(value, place)
    if not given:
        raise invalid(f"{place} must be a name, not {value!r}")
    return given


def listed(value: Any, place: str) -> Sequence[Any]:
    """A list."""
    if not isinstance(value, list | tuple):
        raise invalid(f"{place} must be a list, not {value!r}")
    return value


def boost(value: Any, place: str) -> float:
    """A boost: a number that is not negative; it may be infinite or `NaN` where it boosts nothing."""
    given = signless(value, f"the boost of {place}")
    if given < 0:
        raise invalid(f"the boost of {place} is {given:g}, but must not be negative")
    return given


def share(value: Any, place: str) -> float:
    """A number from 0 to 1."""
    given = no_nan(signless(value, place), place)
    if not 0 <= given <= 1:
        raise invalid(f"{place} is {given:g}, but must be from 0 to 1")
    return given


def text(value: Any, place: str) -> str:
    """A scalar as Java prints it: what is searched for, and so is a number or `true`."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return java_numbers.printed(value, np.float64)
    return raw_text(value, place)


def term(value: Any, place: str) -> str:
    """A text that is searched for as one term, which can't be longer than any term of an index."""
    given = text(value, place)
    if len(given) * 3 > LONGEST_TERM and len(given.encode("utf-8", "surrogatepass")) > LONGEST_TERM:
        raise invalid(f"{place} has more than {LONGEST_TERM:,} bytes")
    return given


def raw_text(value: Any, place: str) -> str:
    """A scalar as it stands in JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value):
        try:
            return java_numbers.json_text(value)
        except OverflowError as error:
            raise invalid(f"{place}: {error}") from error
    raise invalid(f"{place} must be text, not {value!r}")


def choice(value: Any, choices: Mapping[str, Any] | tuple[str, ...], place: str) -> str:
    """One of several words, in lower case."""
    given = raw_text(value, place).upper().lower()
    if given not in choices:
        raise invalid(f"{place} must be {' or '.join(choices)}, not {value!r}")
    return given


def without_lists(given: Mapping[str, Any], names: Sequence[str], place: str) -> None:
    """Refuse parameters that are null or lists, where Elasticsearch passes over them or looks into them."""
    for parameter in names:
        if parameter in given and (given[parameter] is None or isinstance(given[parameter], list | tuple)):
            raise unsupported(f"`{parameter}` of {place} that is {given[parameter]!r}")


def without_null(given: Mapping[str, Any], names: Sequence[str], place: str) -> None:
    """Refuse parameters that are null, where Elasticsearch does not take that for a parameter left out."""
    for parameter in names:
        if parameter in given and given[parameter] is None:
            raise invalid(f"`{parameter}` of {place} is null")


def shown(value: Any) -> str:
    """A value in a message: of long ones the beginning."""
    try:
        text = str(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a number of thousands of digits"
    return text if len(text) <= 40 else f"{text[:40]}…"
