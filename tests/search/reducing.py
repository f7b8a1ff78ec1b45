"""Reduce a case to a smaller one that still shows a difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

MOST_STEPS = 2_000


def smallest(case: Any, differs: Callable[[Any], bool], steps: int = MOST_STEPS) -> Any:
    """Return a smaller case that still differs.

    Args:
        case: A case that differs, as JSON.
        differs: Whether a case differs; it is called with arbitrary parts of `case`, and False for invalid ones.
        steps: The maximum number of cases to try.
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
    """Yield the values that are one step smaller, the smallest first."""
    if isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
        for key, item in value.items():
            for smaller in _smaller(item):
                yield {**value, key: smaller}
    elif isinstance(value, list):
        yield from _shorter(value)
        for position, item in enumerate(value):
            for smaller in _smaller(item):
                yield [*value[:position], smaller, *value[position + 1 :]]
    elif isinstance(value, str):
        yield from _shorter(value)


def _shorter(value: Any) -> Iterator[Any]:
    """Yield a list or text without a part: without everything, without each half, each quarter and so on."""
    size = len(value)
    while size > 0:
        for start in range(0, len(value), size):
            yield value[:start] + value[start + size :]
        size //= 2
