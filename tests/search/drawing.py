"""Random values from a seeded generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


class Draw:
    """Draw random values; a seed always gives the same values."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def choice(self, options: Sequence[T]) -> T:
        """Return one of several values."""
        return options[int(self._random.random() * len(options))]

    def any_of(self, *makers: Callable[[], T]) -> T:
        """Return the result of one of several functions."""
        return self.choice(makers)()

    def chance(self, share: float) -> bool:
        """Return True in this share of the cases."""
        return self._random.random() < share

    def number(self, low: int, high: int) -> int:
        """Return an integer between two bounds, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def fraction(self, low: float, high: float) -> float:
        """Return a number between two bounds."""
        return self._random.uniform(low, high)

    def several(self, make: Callable[[], T], maximum: int, minimum: int = 0) -> list[T]:
        """Return a list of values; short lists are more likely."""
        count = self.number(minimum, self.number(minimum, maximum))
        return [make() for _ in range(count)]

    def some_of(self, options: Mapping[str, Callable[[], Any]], share: float = 0.5) -> dict[str, Any]:
        """Return a random selection of settings."""
        return {name: make() for name, make in options.items() if self.chance(share)}
