"""What analyzers that begin alike do only once for a text.

The fields of a document mostly have one source, and a topic is matched against all of them: the same text then
goes through analyzers that differ in their last steps only. So the char filters, and the tokenizer after them,
remember what they made of the last few texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

from searchapp.analysis.char_filters import CharFilter
from searchapp.analysis.tokenizers import Tokenizer

REMEMBERED_TEXTS = 64
LONGEST_REMEMBERED = 20_000
"""Characters; longer texts are not remembered, which bounds the memory of all steps together."""

R = TypeVar("R")


class _Remembering(Generic[R]):
    """A function of a text that remembers its last results."""

    def __init__(self, function: Callable[[str], R]) -> None:
        self._function = function
        self._remembered = lru_cache(REMEMBERED_TEXTS)(function)

    def __call__(self, text: str) -> R:
        return self._remembered(text) if len(text) <= LONGEST_REMEMBERED else self._function(text)


Front = Callable[[str], Sequence[str]]
"""Char filters and a tokenizer: the terms of a text before any token filter. They must not be changed."""


class Fronts:
    """The fronts of the analyzers of one index, which share whatever they begin with."""

    def __init__(self) -> None:
        self._filtered: dict[tuple[CharFilter, ...], Callable[[str], str]] = {(): _unfiltered}
        self._tokenized: dict[tuple[tuple[CharFilter, ...], Tokenizer], Front] = {}

    def front(self, char_filters: Sequence[CharFilter], tokenizer: Tokenizer) -> Front:
        """The front of these pieces; they are the same if they are the same objects."""
        key = tuple(char_filters), tokenizer
        if key not in self._tokenized:
            filtered, terms = self._filter(key[0]), tokenizer.terms
            self._tokenized[key] = _Remembering(lambda text: terms(filtered(text)))
        return self._tokenized[key]

    def _filter(self, char_filters: tuple[CharFilter, ...]) -> Callable[[str], str]:
        if char_filters not in self._filtered:
            before, replace = self._filter(char_filters[:-1]), char_filters[-1].replace
            self._filtered[char_filters] = _Remembering(lambda text: replace(before(text)))
        return self._filtered[char_filters]


def _unfiltered(text: str) -> str:
    return text
