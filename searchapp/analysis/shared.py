"""What analyzers that begin alike do only once for a text.

The fields of a document mostly have one source, and a topic is matched against all of them: the same text then goes
through analyzers that share their char filters, their tokenizer, and often their first token filters. The analyzers of
an index are paths in one tree of pieces. Where paths part, what came out of the last few texts is remembered; pieces
between two such places run one after the other without anything in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from searchapp.analysis.char_filters import CharFilter
from searchapp.analysis.term_filters import TermChain
from searchapp.analysis.tokenizers import Tokenizer
from searchapp.analysis.tokens import StreamFilter, TermFilter, Tokens

REMEMBERED_TEXTS = 64
LONGEST_REMEMBERED = 20_000
"""Characters; longer texts are not remembered, which bounds the memory of all steps together."""

R = TypeVar("R")
AnyFilter = TermFilter | StreamFilter
Path = tuple[object, ...]
"""Char filters, a tokenizer and token filters in a row, or the beginning of that; pieces are the same by identity."""

Analysis = Callable[[str], Tokens]
"""The tokens of a text, without offsets. Their lists must not be changed."""


class Shared:
    """The analyzers of one index, which share whatever they begin with.

    All of them are to be added before the first one is used: one that comes later shares what it finds.
    """

    def __init__(self) -> None:
        from searchapp.analysis.bulk import BulkWork  # NumPy, see `Analyzer`

        self.bulk = BulkWork()
        self._followers: dict[Path, set[object]] = defaultdict(set)
        """What stands behind each beginning: further pieces, and the ends of analyzers."""
        self._marks_used: set[Path] = set()
        """Beginnings behind which a filter looks at one term at a time, and so at whether it is a keyword."""
        self._steps: dict[Path, Callable[[str], object]] = {}
        self._chains: dict[tuple[tuple[TermFilter, ...], bool], TermChain] = {}

    def analysis(
        self, char_filters: Sequence[CharFilter], tokenizer: Tokenizer, filters: Sequence[AnyFilter]
    ) -> Analysis:
        """The analysis by these pieces; what it shares is settled when it is used first."""
        pieces: Path = (*char_filters, tokenizer, *filters)
        end = object()
        for length, piece in enumerate((*pieces, end)):
            self._followers[pieces[:length]].add(piece)
        front = len(char_filters) + 1
        for place, filter_ in enumerate(filters, front):
            if not isinstance(filter_, StreamFilter):
                self._marks_used.update(pieces[:length] for length in range(front, place + 1))
        made: list[Analysis] = []

        def analyze(text: str) -> Tokens:
            if not made:
                made.append(self._tokens(tuple(char_filters), tokenizer, tuple(filters)))
            return made[0](text)

        return analyze

    def _parts(self, path: Path) -> bool:
        """Whether paths part behind this beginning."""
        return len(self._followers[path]) > 1

    def _step(self, path: Path, function: Callable[[str], R]) -> Callable[[str], R]:
        """What is called for this beginning of a path: it remembers where paths part."""
        step = _remembering(function) if self._parts(path) else function
        self._steps[path] = step
        return step

    def _text(self, char_filters: tuple[CharFilter, ...]) -> Callable[[str], str]:
        """The text behind some char filters."""
        if char_filters in self._steps:
            return self._steps[char_filters]  # type: ignore[return-value]
        if not char_filters:
            return _unchanged
        length = len(char_filters) - 1
        while length and not self._parts(char_filters[:length]):
            length -= 1
        before = self._text(char_filters[:length])
        replacing = [char_filter.replace for char_filter in char_filters[length:]]

        def text(of: str) -> str:
            filtered = before(of)
            for replace in replacing:
                filtered = replace(filtered)
            return filtered

        return self._step(char_filters, text)

    def terms(self, char_filters: tuple[CharFilter, ...], tokenizer: Tokenizer) -> Callable[[str], list[str]]:
        """The tokens before any token filter."""
        path = (*char_filters, tokenizer)
        if path in self._steps:
            return self._steps[path]  # type: ignore[return-value]
        text, cut = self._text(char_filters), tokenizer.terms
        return self._step(path, lambda of: cut(text(of)))

    def _tokens(
        self, char_filters: tuple[CharFilter, ...], tokenizer: Tokenizer, filters: tuple[AnyFilter, ...]
    ) -> Analysis:
        """The tokens behind some token filters, which may be none."""
        front = (*char_filters, tokenizer)
        path = (*front, *filters)
        if filters and path in self._steps:
            return self._steps[path]  # type: ignore[return-value]
        length = len(filters) - 1
        while length > 0 and not self._parts((*front, *filters[:length])):
            length -= 1
        if length > 0:
            before = self._tokens(char_filters, tokenizer, filters[:length])
            stages = self._stages(filters[length:], path in self._marks_used)

            def behind(of: str) -> Tokens:
                tokens = before(of).copy()
                for stage in stages:
                    tokens = stage.apply(tokens)
                return tokens

            return self._step(path, behind)
        terms = self.terms(char_filters, tokenizer)
        stages = self._stages(filters, path in self._marks_used)

        def analyzed(of: str) -> Tokens:
            found = terms(of)
            tokens = Tokens(found, list(range(len(found))))
            for stage in stages:
                tokens = stage.apply(tokens)
            return tokens

        return self._step(path, analyzed) if filters else analyzed

    def _stages(self, filters: Sequence[AnyFilter], marks_used: bool) -> list[StreamFilter]:
        """The filters as stream filters; `marks_used` says whether marks of keywords are looked at behind them."""
        return fused(filters, self.chain, marks_used)

    def chain(self, filters: tuple[TermFilter, ...], keeps_marks: bool) -> TermChain:
        """The chain of some filters, which remembers its terms for all that have it."""
        key = filters, keeps_marks
        if key not in self._chains:
            self._chains[key] = TermChain(filters, keeps_marks)
        return self._chains[key]


def fused(
    filters: Sequence[AnyFilter],
    chain: Callable[[tuple[TermFilter, ...], bool], TermChain] = TermChain,
    marks_used: bool = True,
) -> list[StreamFilter]:
    """The filters as stream filters; neighbours that look at one term at a time become one chain."""
    stages: list[StreamFilter] = []
    singles: list[TermFilter] = []
    for filter_ in reversed(filters):
        if not isinstance(filter_, StreamFilter):
            singles.insert(0, filter_)
            continue
        if singles:
            stages.insert(0, chain(tuple(singles), marks_used))
            marks_used, singles = True, []
        stages.insert(0, filter_)
    if singles:
        stages.insert(0, chain(tuple(singles), marks_used))
    return stages


def _remembering(function: Callable[[str], R]) -> Callable[[str], R]:
    """A function of a text that remembers its last results."""
    remembered = lru_cache(REMEMBERED_TEXTS)(function)

    def step(text: str) -> R:
        return remembered(text) if len(text) <= LONGEST_REMEMBERED else function(text)

    return step


def _unchanged(text: str) -> str:
    return text
