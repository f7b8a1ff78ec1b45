"""The endings that stemmers look for: the longest one that a word has."""

from __future__ import annotations

from collections.abc import Iterable

REMEMBERED_STEMS = 1 << 15
"""How many stems an algorithm remembers, for all analyzers: some megabytes, and indexes share most of their words."""


def longest_first(endings: Iterable[str]) -> tuple[str, ...]:
    """Endings in the order in which `longest` takes them."""
    return tuple(sorted(endings, key=len, reverse=True))


def longest(word: str, endings: tuple[str, ...]) -> str:
    """The longest of some endings, which come longest first, that a word has; empty if it has none.

    >>> longest("rationally", longest_first(["ly", "ally", "y"]))
    'ally'
    """
    if not word.endswith(endings):
        return ""
    return next(ending for ending in endings if word.endswith(ending))
