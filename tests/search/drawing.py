"""Values by chance, from a seeded generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


class Draw:
    """Draws values; the same seed draws the same."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def one(self, options: Sequence[T]) -> T:
        """One of several values."""
        return options[int(self._random.random() * len(options))]

    def any_of(self, *makers: Callable[[], T]) -> T:
        """What one of several functions makes."""
        return self.one(makers)()

    def chance(self, share: float) -> bool:
        """Yes, in this share of the cases."""
        return self._random.random() < share

    def number(self, low: int, high: int) -> int:
        """An integer, both bounds included."""
        return low + int(self._random.random() * (high - low + 1))

    def fraction(self, low: float, high: float) -> float:
        """A number between two others."""
        return self._random.uniform(low, high)

    def several(self, make: Callable[[], T], most: int, least: int = 0) -> list[T]:
        """A list of values; short ones are more likely."""
        count = self.number(least, self.number(least, most))
        return [make() for _ in range(count)]

    def some_of(self, options: Mapping[str, Callable[[], Any]], share: float = 0.5) -> dict[str, Any]:
        """Some of several settings."""
        return {name: make() for name, make in options.items() if self.chance(share)}
