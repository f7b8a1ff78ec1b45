"""Values of the DSL, checked one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from searchapp.engines.embedded.refusals import invalid


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
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise invalid(f"{place} must be a number, not {value!r}")
    try:
        return float(np.float32(value))
    except ValueError:
        raise invalid(f"{place} must be a number, not {value!r}") from None


def boost(value: Any, place: str) -> float:
    """A boost: a number that is not negative."""
    given = number(value, f"the boost of {place}")
    if not given >= 0:
        raise invalid(f"the boost of {place} is {given:g}, but must not be negative")
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
