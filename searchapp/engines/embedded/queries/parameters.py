"""Values of the DSL, checked one by one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from searchapp.engines.embedded.refusals import invalid, unsupported

_INTEGER = re.compile("[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

_SMALLEST, _LARGEST = 1e-30, 1e30
"""Between these, every number is a float32 that is neither 0 nor infinite."""


def mapping(value: Any, place: str) -> Mapping[str, Any]:
    """A value that must be an object."""
    if type(value) is not dict and not isinstance(value, Mapping):  # the first question is quicker by far
        raise invalid(f"{place} must be an object, not {value!r}")
    return value


def single(value: Any, place: str) -> tuple[str, Any]:
    """The only entry of an object, such as a query's field."""
    entries = mapping(value, place)
    if len(entries) != 1:
        raise invalid(f"{place} must name one thing, not {', '.join(entries) or 'nothing'}")
    (entry,) = entries.items()
    return entry


def number(value: Any, place: str) -> float:
    """A number of the DSL's, rounded to float32 as Elasticsearch keeps boosts and weights."""
    if type(value) in (int, float) and _SMALLEST < value < _LARGEST:  # most are, and every query has some
        return float(np.float32(value))
    given = exact(value, place)
    with np.errstate(over="ignore"):
        try:
            rounded = np.float32(given)
        except OverflowError:
            rounded = np.float32(np.inf)
    if not np.isfinite(rounded):
        raise invalid(f"{place} is {value}, which is too great")
    if rounded == 0 and np.signbit(rounded):
        raise unsupported(f"-0.0 as {place}")  # scores of -0.0 rank below those of 0.0
    return float(rounded)


def exact(value: Any, place: str) -> int | float:
    """A finite number as it stands, also as text: an int keeps all its digits."""
    number = value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        # "-0" is not 0 where floats are read.
        number = int(value) if _INTEGER.fullmatch(value) and int(value) else float(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not _is_finite(number):
        raise invalid(f"{place} must be a number, not {value!r}")
    return number


def _is_finite(number: int | float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def flag(value: Any, place: str) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        raise invalid(f"{place} must be true or false, not {value!r}")
    return value


def name(value: Any, place: str) -> str:
    """The name of a field or of an analyzer, which can't be empty."""
    if not isinstance(value, str) or not value:
        raise invalid(f"{place} must be a name, not {value!r}")
    return value


def listed(value: Any, place: str) -> Sequence[Any]:
    """A list."""
    if not isinstance(value, list | tuple):
        raise invalid(f"{place} must be a list, not {value!r}")
    return value


def boost(value: Any, place: str) -> float:
    """A boost: a number that is not negative."""
    given = number(value, f"the boost of {place}")
    if not given >= 0:
        raise invalid(f"the boost of {place} is {given:g}, but must not be negative")
    return given


def share(value: Any, place: str) -> float:
    """A number from 0 to 1."""
    given = number(value, place)
    if not 0 <= given <= 1:
        raise invalid(f"{place} is {given:g}, but must be from 0 to 1")
    return given


def text(value: Any, place: str) -> str:
    """A scalar as Elasticsearch prints it when it needs text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise invalid(f"{place} must be text, not {value!r}")


def choice(value: Any, choices: Mapping[str, Any] | tuple[str, ...], place: str) -> str:
    """One of several words, in lower case."""
    given = str(value).lower()
    if given not in choices:
        raise invalid(f"{place} must be {' or '.join(choices)}, not {value!r}")
    return given
