"""Many texts analyzed at once, as indexing does it: one step for all of them, then the next.

Behind the tokenizer a term is a number, the same in all texts that come. What a chain of token filters makes of a term
is then one look into an array, and so is which pairs of neighbours there are: Python sees each distinct term, not each
token. That goes for most analyzers: filters that look at one term at a time, and behind them at most a shingle filter
that gives just pairs. What the analyzers of an index begin with in common is done once for the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.analysis.char_filters import CharFilter
from searchapp.lucene.analysis.characters import has_halves
from searchapp.lucene.analysis.token_filters import ShingleFilter, StreamFilter, TermFilter, outcome
from searchapp.lucene.analysis.tokenizers import Tokenizer

Int32s = NDArray[np.int32]

NUMBERED_TERMS = 500_000
NUMBERED_CHARACTERS = 20_000_000
"""All terms are forgotten before more texts are analyzed when there are so many, or when they are so long together."""

_UNKNOWN, _REMOVED = -2, -1


@dataclass(frozen=True, slots=True)
class BulkTokens:
    """The tokens of texts, text after text.

    `terms` are numbers of the `vocabulary`, in which each term stands once, and `positions` those in their text: one
    for each token. `counts` says how many tokens each text has; none of them shares its position with another.
    """

    vocabulary: list[str]
    terms: Int32s
    positions: Int32s
    counts: Int32s


@dataclass(frozen=True, slots=True)
class _Stream:
    """Tokens as `BulkTokens` has them; `terms` are numbers of all terms that are known."""

    terms: Int32s
    positions: Int32s
    counts: Int32s


@dataclass(frozen=True, slots=True)
class BulkAnalysis:
    """An analyzer for many texts at once: pieces that follow each other, and what they share with other analyzers."""

    work: BulkWork
    char_filters: tuple[CharFilter, ...]
    tokenizer: Tokenizer
    filters: tuple[TermFilter, ...]
    pairs: ShingleFilter | None
    leaves_halves: bool

    @classmethod
    def of(
        cls,
        work: BulkWork,
        char_filters: Sequence[CharFilter],
        tokenizer: Tokenizer,
        filters: Sequence[TermFilter | StreamFilter],
        *,
        leaves_halves: bool,
    ) -> BulkAnalysis | None:
        """The analysis by these pieces; None where they have to be asked text by text.

        `leaves_halves` says whether some of them may leave half of a character.
        """
        last = filters[-1] if filters else None
        pairs = last if isinstance(last, ShingleFilter) and last.gives_pairs else None
        singles = filters[: len(filters) - 1] if pairs else filters
        if any(isinstance(filter_, StreamFilter) for filter_ in singles):
            return None
        return cls(work, tuple(char_filters), tokenizer, tuple(singles), pairs, leaves_halves)  # type: ignore[arg-type]

    def tokens(self, texts: Sequence[str]) -> BulkTokens | None:
        """The tokens of texts; None for texts which have to be analyzed one by one."""
        work = self.work
        work.take(texts)
        cut = work.cut(self.char_filters, self.tokenizer)
        stream = work.filtered(cut, self.filters)
        if (self.pairs or self.leaves_halves) and work.have_halves(stream):
            return None  # they may meet, or are replaced at the end
        if self.pairs is None:
            return work.named(stream)
        if len(stream.terms) < len(cut.terms):
            return None  # the filter gives pairs with its filler where the stream has holes
        return work.paired(stream, self.pairs.separator)


class _Terms(dict[str, int]):
    """All terms that came, numbered in the order in which they did."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.characters = 0
        self.with_halves: list[int] = []
        """The numbers of terms that have half of a character."""

    def __missing__(self, term: str) -> int:
        self[term] = number = len(self.texts)
        self.texts.append(term)
        self.characters += len(term)
        if has_halves((term,)):
            self.with_halves.append(number)
        return number


class BulkWork:
    """What the analyzers of an index have made of the texts that came last, by what it was made with."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._replaced: dict[tuple[CharFilter, ...], list[str]] = {(): self._texts}
        self._cut: dict[tuple[tuple[CharFilter, ...], Tokenizer], _Stream] = {}
        self._forget()

    def _forget(self) -> None:
        self.terms = _Terms()
        self._becomes: dict[tuple[TermFilter, ...], Int32s] = {}

    def take(self, texts: Sequence[str]) -> None:
        """Work on these texts from now on."""
        if texts == self._texts:
            return
        if len(self.terms) > NUMBERED_TERMS or self.terms.characters > NUMBERED_CHARACTERS:
            self._forget()
        self._texts = list(texts)
        self._replaced = {(): self._texts}
        self._cut = {}

    def _text(self, char_filters: tuple[CharFilter, ...]) -> list[str]:
        """The texts behind some char filters."""
        if char_filters not in self._replaced:
            before = self._text(char_filters[:-1])
            self._replaced[char_filters] = list(map(char_filters[-1].replace, before))
        return self._replaced[char_filters]

    def cut(self, char_filters: tuple[CharFilter, ...], tokenizer: Tokenizer) -> _Stream:
        """The tokens before any token filter."""
        path = char_filters, tokenizer
        if path not in self._cut:
            found = list(map(tokenizer.terms, self._text(char_filters)))
            counts = np.fromiter(map(len, found), np.int32, len(found))
            numbers = map(self.terms.__getitem__, chain.from_iterable(found))
            terms = np.fromiter(numbers, np.int32, int(counts.sum()))
            self._cut[path] = _Stream(terms, _places(counts), counts)
        return self._cut[path]

    def filtered(self, stream: _Stream, filters: tuple[TermFilter, ...]) -> _Stream:
        """The tokens behind filters that look at one term at a time."""
        if not filters:
            return stream
        becomes = self._known(filters, stream.terms)
        terms = becomes[stream.terms]
        kept = terms != _REMOVED
        if kept.all():
            return _Stream(terms, stream.positions, stream.counts)
        ends = np.concatenate([[0], np.cumsum(kept)])[np.cumsum(stream.counts)]
        counts = np.diff(ends, prepend=0).astype(np.int32)
        return _Stream(terms[kept], stream.positions[kept], counts)

    def _known(self, filters: tuple[TermFilter, ...], terms: Int32s) -> Int32s:
        """What becomes of each term by number, as far as it is among these or was asked for before."""
        becomes = self._becomes.get(filters, np.empty(0, np.int32))
        if len(becomes) < len(self.terms):
            unknown = np.full(2 * len(self.terms) - len(becomes), _UNKNOWN, np.int32)
            becomes = self._becomes[filters] = np.concatenate([becomes, unknown])
        asked = np.unique(terms[becomes[terms] == _UNKNOWN])
        for number in asked.tolist():
            found = outcome(filters, self.terms.texts[number], keyword=False)
            becomes[number] = _REMOVED if found is None else self.terms[found[0]]
        return becomes

    def have_halves(self, stream: _Stream) -> bool:
        """Whether a term has half of a character, which may meet the other half."""
        return bool(self.terms.with_halves) and bool(np.isin(stream.terms, self.terms.with_halves).any())

    def named(self, stream: _Stream) -> BulkTokens:
        """The tokens with the terms that they have."""
        used = np.zeros(len(self.terms), bool)
        used[stream.terms] = True
        numbers = np.flatnonzero(used)
        place = np.empty(len(used), np.int32)
        place[numbers] = np.arange(len(numbers), dtype=np.int32)
        vocabulary = list(map(self.terms.texts.__getitem__, numbers.tolist()))
        return BulkTokens(vocabulary, place[stream.terms], stream.positions, stream.counts)

    def paired(self, stream: _Stream, separator: str) -> BulkTokens:
        """Each two tokens that follow each other in a text, which has no holes, as one."""
        ends = np.cumsum(stream.counts)
        follows = np.ones(len(stream.terms), bool)
        follows[ends[stream.counts > 0] - 1] = False  # nothing follows the last token of a text
        first = np.flatnonzero(follows)
        keys = (stream.terms[first].astype(np.int64) << 32) | stream.terms[first + 1]
        pairs, terms = np.unique(keys, return_inverse=True)
        texts: Callable[[int], str] = self.terms.texts.__getitem__
        left, right = map(texts, (pairs >> 32).tolist()), map(texts, (pairs & 0xFFFFFFFF).tolist())
        vocabulary = list(map(separator.join, zip(left, right, strict=True)))
        counts = np.maximum(stream.counts - 1, 0)
        if len(set(vocabulary)) == len(vocabulary):
            return BulkTokens(vocabulary, terms.astype(np.int32), _places(counts), counts)
        number = {term: place for place, term in enumerate(dict.fromkeys(vocabulary))}
        merged = np.fromiter(map(number.__getitem__, vocabulary), np.int32, len(vocabulary))
        return BulkTokens(list(number), merged[terms], _places(counts), counts)


def _places(counts: Int32s) -> Int32s:
    """The positions of tokens that follow each other without holes."""
    starts = np.cumsum(counts) - counts
    return np.arange(int(counts.sum()), dtype=np.int32) - np.repeat(starts, counts).astype(np.int32)
