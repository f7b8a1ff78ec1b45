"""Making a case smaller as long as it still differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

MOST_STEPS = 2_000


def smallest(case: Any, differs: Callable[[Any], bool], steps: int = MOST_STEPS) -> Any:
    """A smaller case that differs too; `differs` must answer for any part of a case.

    Args:
        case: what differs, as JSON
        differs: whether a case differs; one that makes no sense does not
        steps: how many cases are tried at most
    """
    while True:
        for smaller in _smaller(case):
            steps -= 1
            if steps < 0:
                return case
            if differs(smaller):
                case = smaller
                break
        else:
            return case


def _smaller(value: Any) -> Iterator[Any]:
    """The values that are one step smaller: large steps first."""
    if isinstance(value, dict):
        for key in value:
            yield {name: one for name, one in value.items() if name != key}
        for key, one in value.items():
            for less in _smaller(one):
                yield {**value, key: less}
    elif isinstance(value, list):
        yield from _shorter(value)
        for place, one in enumerate(value):
            for less in _smaller(one):
                yield [*value[:place], less, *value[place + 1 :]]
    elif isinstance(value, str):
        yield from _shorter(value)


def _shorter(value: Any) -> Iterator[Any]:
    """A list or a text without some of it: without all, without a half, without a quarter, and so on."""
    size = len(value)
    while size > 0:
        for start in range(0, len(value), size):
            yield value[:start] + value[start + size :]
        size //= 2
