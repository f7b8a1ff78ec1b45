"""Bulk analysis for indexing: each component runs on all texts before the next one.

After the tokenizer, terms are numbers, so that filters process each distinct term, not each token.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import native
from searchapp.lucene.analysis.char_filters import CharFilter
from searchapp.lucene.analysis.characters import has_halves
from searchapp.lucene.analysis.token_filters import (
    AnyFilter,
    NGramFilter,
    ShingleFilter,
    StreamFilter,
    TermFilter,
    term_outcome,
)
from searchapp.lucene.analysis.tokenizers import AsciiRule, Tokenizer
from searchapp.lucene.dataclass import dataclass

Int32s = NDArray[np.int32]

# Above these numbers of terms or characters, the numbering starts again with the next texts.
NUMBERED_TERMS = 500_000
NUMBERED_CHARACTERS = 20_000_000

# If the pieces of the current texts are repeated less often on average, the texts are divided as a whole.
FEWEST_REPETITIONS = 4

_UNKNOWN, _REMOVED = -2, -1

_TEXTS = struct.Struct("=11q")  # `Texts` of native/tokens.c


@dataclass(frozen=True, slots=True)
class BulkTokens:
    """Tokens of texts, text by text."""

    vocabulary: list[str]  # distinct terms
    terms: Int32s  # index of each token's term in the vocabulary
    positions: Int32s  # position of each token in its text
    counts: Int32s  # number of tokens of each text
    lengths: Int32s  # number of positions with tokens of each text


@dataclass(frozen=True, slots=True)
class BulkAnalysis:
    """The components of an analyzer, and the work shared with other analyzers."""

    work: BulkWork
    char_filters: tuple[CharFilter, ...]
    tokenizer: Tokenizer
    filters: tuple[TermFilter, ...]
    last: ShingleFilter | NGramFilter | None
    leaves_halves: bool  # whether a component may leave a lone surrogate

    @classmethod
    def of(
        cls,
        work: BulkWork,
        char_filters: tuple[CharFilter, ...],
        tokenizer: Tokenizer,
        filters: Sequence[AnyFilter],
        *,
        leaves_halves: bool,
    ) -> BulkAnalysis | None:
        """Return the bulk analysis; None if a component processes the tokens of one text at a time."""
        *singles, last = filters or (None,)
        if not isinstance(last, (ShingleFilter, NGramFilter)):
            singles, last = list(filters), None
        if any(isinstance(filter_, StreamFilter) for filter_ in singles):
            return None
        if isinstance(last, ShingleFilter) and last.unigrams_if_alone:
            return None
        return cls(work, char_filters, tokenizer, tuple(singles), last, leaves_halves)  # type: ignore[arg-type]

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code divides most texts, so that other processes would hardly save time."""
        rule = self.tokenizer.ascii_rule
        return not (self.char_filters or rule is None or rule.following) and native.library() is not None

    def tokens(self, texts: Sequence[str]) -> BulkTokens | None:
        """Return the tokens of texts; None if a text must be analyzed separately."""
        work = self.work
        work.take(texts)
        cut = work.cut(self.char_filters, self.tokenizer)
        tokens = work.filtered(cut, self.filters)
        if (self.last or self.leaves_halves) and work.have_halves(tokens):
            return None  # a shingle may join surrogates
        match self.last:
            case NGramFilter():
                tokens = work.split(tokens, self.last)
            case ShingleFilter():
                return _shingled(_with_own_vocabulary(tokens), cut.counts, self.last)
        return _with_own_vocabulary(tokens)


class _TermNumbers(dict[str, int]):
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.characters = 0
        self.with_halves: list[int] = []  # terms with a lone surrogate

    def __missing__(self, term: str) -> int:
        self[term] = number = len(self.texts)
        self.texts.append(term)
        self.characters += len(term)
        if has_halves((term,)):
            self.with_halves.append(number)
        return number


class _Parts(dict[str, int]):
    """Numbers of pieces of texts (see `AsciiRule`), or of terms that are divided into n-grams, and their terms."""

    def __init__(self, numbers: _TermNumbers, divide: Callable[[str], Iterable[str]]) -> None:
        self._number = numbers.__getitem__
        self._divide = divide
        self._terms = array("i")
        self._starts = array("i", [0])  # of the terms of each part, and the end
        self.characters = 0

    def __missing__(self, part: str) -> int:
        terms = list(map(self._number, self._divide(part)))  # first, because a tokenizer may raise an error
        self[part] = number = len(self)
        self._terms.extend(terms)
        self._starts.append(len(self._terms))
        self.characters += len(part)
        return number

    def expanded(self, parts: Sequence[str], places: Int32s) -> tuple[Int32s, Int32s]:
        """Return the terms of the parts at these places, one after the other, and the number of each."""
        numbers = np.fromiter(map(self.__getitem__, parts), np.int32, len(parts))
        terms, starts = np.frombuffer(self._terms, np.int32), np.frombuffer(self._starts, np.int32)
        library = native.library()
        if library is None:
            numbers = numbers[places]
            sizes = np.diff(starts)[numbers]
            shifts = starts[numbers] - (np.cumsum(sizes) - sizes)
            return terms[np.repeat(shifts, sizes) + np.arange(int(sizes.sum()))], sizes
        sizes = np.empty(len(places), np.int32)
        arguments = [values.ctypes.data for values in (places, numbers, starts, terms, sizes)]
        expanded = np.empty(library.searchapp_expand(len(places), *arguments, None), np.int32)
        library.searchapp_expand(len(places), *arguments, expanded.ctypes.data)
        return expanded, sizes


class BulkWork:
    """Results of an index's analyzers for the current texts."""

    def __init__(self) -> None:
        self._forget()
        self._start([])

    def _forget(self) -> None:
        self.terms = _TermNumbers()
        self._pieces: dict[Tokenizer, _Parts] = {}
        self._outcomes: dict[tuple[TermFilter, ...], Int32s] = {}
        self._grams: dict[NGramFilter, _Parts] = {}

    def _start(self, texts: list[str]) -> None:
        self._texts = texts
        self._replaced: dict[tuple[CharFilter, ...], list[str]] = {(): texts}
        self._cut: dict[tuple[tuple[CharFilter, ...], Tokenizer], BulkTokens] = {}

    def take(self, texts: Sequence[str]) -> None:
        if texts == self._texts:
            return
        remembered: tuple[_TermNumbers | _Parts, ...] = self.terms, *self._pieces.values()
        if (
            sum(map(len, remembered)) > NUMBERED_TERMS
            or sum(terms.characters for terms in remembered) > NUMBERED_CHARACTERS
        ):
            self._forget()
        self._start(list(texts))

    def _text(self, char_filters: tuple[CharFilter, ...]) -> list[str]:
        if char_filters not in self._replaced:
            previous = self._text(char_filters[:-1])
            self._replaced[char_filters] = list(map(char_filters[-1].replace, previous))
        return self._replaced[char_filters]

    def cut(self, char_filters: tuple[CharFilter, ...], tokenizer: Tokenizer) -> BulkTokens:
        path = char_filters, tokenizer
        if path not in self._cut:
            term_numbers, counts = self._tokens(self._text(char_filters), tokenizer)
            self._cut[path] = BulkTokens(self.terms.texts, term_numbers, _positions(counts), counts, counts)
        return self._cut[path]

    def _tokens(self, texts: list[str], tokenizer: Tokenizer) -> tuple[Int32s, Int32s]:
        """Return the number of each token's term, text by text, and the number of tokens of each text."""
        library, rule = native.library(), tokenizer.ascii_rule
        if library is None or rule is None:
            return self._python_tokens(texts, tokenizer)
        if all(map(str.isascii, texts)) or rule.has_spaces:
            return self._mixed_tokens(library, texts, tokenizer, rule)
        words: list[str] = []  # no token contains a space, so only words that are not ASCII need Python
        sizes: list[int] = []
        for text in texts:
            parts = [text] if text.isascii() else text.split(" ")
            words += parts
            sizes.append(len(parts))
        terms, counts = self._mixed_tokens(library, words, tokenizer, rule)
        return terms, np.add.reduceat(counts, np.cumsum([0, *sizes[:-1]], dtype=np.int64), dtype=np.int32)

    def _mixed_tokens(
        self, library: ctypes.CDLL, texts: list[str], tokenizer: Tokenizer, rule: AsciiRule
    ) -> tuple[Int32s, Int32s]:
        """Do the same; texts that are not ASCII or have long tokens are divided in Python."""
        is_ascii = np.fromiter(map(str.isascii, texts), bool, len(texts))
        ascii_texts = texts if is_ascii.all() else list(compress(texts, is_ascii))
        terms, counts = self._compiled_tokens(library, ascii_texts, tokenizer, rule)
        is_done = is_ascii
        if (counts < 0).any():
            is_done = is_ascii.copy()
            is_done[is_ascii] = counts >= 0
            counts = counts[counts >= 0]
        if is_done.all():
            return terms, counts
        other_terms, other_counts = self._python_tokens(list(compress(texts, ~is_done)), tokenizer)
        all_counts = np.empty(len(texts), np.int32)
        all_counts[is_done], all_counts[~is_done] = counts, other_counts
        is_compiled = np.repeat(is_done, all_counts)
        all_terms = np.empty(len(is_compiled), np.int32)
        all_terms[is_compiled], all_terms[~is_compiled] = terms, other_terms
        return all_terms, all_counts

    def _python_tokens(self, texts: list[str], tokenizer: Tokenizer) -> tuple[Int32s, Int32s]:
        terms = list(map(tokenizer.terms, texts))
        counts = np.fromiter(map(len, terms), np.int32, len(terms))
        numbers = map(self.terms.__getitem__, chain.from_iterable(terms))
        return np.fromiter(numbers, np.int32, int(counts.sum())), counts

    def _compiled_tokens(
        self, library: ctypes.CDLL, texts: list[str], tokenizer: Tokenizer, rule: AsciiRule
    ) -> tuple[Int32s, Int32s]:
        """Do the same for ASCII texts; a text with a token beyond the limit has the number -1, and no tokens."""
        text = "".join(texts)
        encoded = text.encode("ascii")
        ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
        # Tokens of a text are not adjacent; pieces may be.
        most = len(encoded) + 1 if rule.following else (len(encoded) + len(texts)) // 2 + 1
        slots = np.full(1 << most.bit_length(), -1, np.int32)
        terms, counts = np.empty(most, np.int32), np.empty(len(texts), np.int32)
        spans = np.empty((most, 2), np.int64)
        request = _TEXTS.pack(
            *(_address(encoded), ends.ctypes.data, len(texts), _address(rule.classes)),
            *(_address(rule.following) if rule.following else 0, rule.limit),
            *(len(slots), slots.ctypes.data, counts.ctypes.data, terms.ctypes.data, spans.ctypes.data),
        )
        found = library.searchapp_tokens(request)
        terms = terms[: int(counts.clip(min=0).sum())]
        if rule.following and len(terms) + len(texts) < FEWEST_REPETITIONS * found:
            return self._python_tokens(texts, tokenizer)
        distinct = list(map(text.__getitem__, map(slice, *spans[:found].T.tolist())))
        if rule.following:
            if tokenizer not in self._pieces:
                self._pieces[tokenizer] = _Parts(self.terms, tokenizer.terms)
            numbers, sizes = self._pieces[tokenizer].expanded(distinct, terms)
            return numbers, _sums(sizes, counts)
        normalized = map(tokenizer.normalize, distinct)
        return np.fromiter(map(self.terms.__getitem__, normalized), np.int32, found)[terms], counts

    def filtered(self, tokens: BulkTokens, filters: tuple[TermFilter, ...]) -> BulkTokens:
        if not filters:
            return tokens
        terms = self._outcomes_of(filters, tokens.terms)[tokens.terms]
        is_kept = terms != _REMOVED
        if is_kept.all():
            return BulkTokens(self.terms.texts, terms, tokens.positions, tokens.counts, tokens.lengths)
        counts = _sums(is_kept, tokens.counts)
        return BulkTokens(self.terms.texts, terms[is_kept], tokens.positions[is_kept], counts, counts)

    def split(self, tokens: BulkTokens, filter_: NGramFilter) -> BulkTokens:
        """Replace each token by its n-grams."""
        if filter_ not in self._grams:
            self._grams[filter_] = _Parts(self.terms, filter_.grams)
        own = _with_own_vocabulary(tokens)
        grams, sizes = self._grams[filter_].expanded(own.vocabulary, own.terms)
        return BulkTokens(
            self.terms.texts,
            grams,
            np.repeat(tokens.positions, sizes),
            _sums(sizes, tokens.counts),
            _sums(sizes > 0, tokens.counts),
        )

    def _outcomes_of(self, filters: tuple[TermFilter, ...], terms: Int32s) -> Int32s:
        outcomes = self._outcomes.get(filters, np.empty(0, np.int32))
        if len(outcomes) < len(self.terms):
            unknown = np.full(2 * len(self.terms) - len(outcomes), _UNKNOWN, np.int32)
            outcomes = self._outcomes[filters] = np.concatenate([outcomes, unknown])
        is_new = np.zeros(len(outcomes), bool)  # `np.unique` would import `numpy.ma`
        is_new[terms] = True
        is_new &= outcomes == _UNKNOWN
        for number in np.flatnonzero(is_new).tolist():
            term = term_outcome(filters, self.terms.texts[number])
            outcomes[number] = _REMOVED if term is None else self.terms[term]
        return outcomes

    def have_halves(self, tokens: BulkTokens) -> bool:
        return bool(self.terms.with_halves) and bool(np.isin(tokens.terms, self.terms.with_halves).any())


def _address(content: bytes) -> int:
    """Return the address of the content, which the caller must keep."""
    return ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value or 0


def _with_own_vocabulary(tokens: BulkTokens) -> BulkTokens:
    used = np.zeros(len(tokens.vocabulary), bool)
    used[tokens.terms] = True
    numbers = np.flatnonzero(used)
    new_numbers = np.empty(len(used), np.int32)
    new_numbers[numbers] = np.arange(len(numbers), dtype=np.int32)
    vocabulary = list(map(tokens.vocabulary.__getitem__, numbers.tolist()))
    return BulkTokens(vocabulary, new_numbers[tokens.terms], tokens.positions, tokens.counts, tokens.lengths)


def _shingled(tokens: BulkTokens, all_counts: Int32s, filter_: ShingleFilter) -> BulkTokens:
    """Replace tokens, given the numbers of tokens before some were removed, by their shingles.

    See `ShingleFilter.apply`, the reference.
    """
    parts, counts = _with_fillers(tokens, all_counts, filter_.longest - 1)
    words = [*tokens.vocabulary, filter_.filler]
    is_filler = parts == len(tokens.vocabulary)
    text_ends = np.cumsum(counts, dtype=np.int64)
    room = np.repeat(text_ends, counts) - np.arange(len(parts))  # parts from each to the end of its text
    firsts, numbers, is_empty, grams = np.arange(len(parts)), parts, is_filler, words
    all_firsts, all_numbers, vocabulary = [], [], dict[str, int]()
    for size in range(1, filter_.longest + 1):
        if size > 1:
            fits = room[firsts] >= size
            firsts = firsts[fits]
            following = parts[firsts + size - 1]
            is_empty = is_empty[fits] & is_filler[firsts + size - 1]
            keys, numbers = np.unique(numbers[fits].astype(np.int64) << 32 | following, return_inverse=True)
            pairs = zip((keys >> 32).tolist(), (keys & 0xFFFFFFFF).tolist(), strict=True)
            grams = [f"{grams[left]}{filter_.separator}{words[right]}" for left, right in pairs]
        if filter_.unigrams if size == 1 else size >= filter_.shortest:
            # Different shingles may be the same term.
            renumbered = np.array([vocabulary.setdefault(gram, len(vocabulary)) for gram in grams], np.int32)
            all_firsts.append(firsts[~is_empty])
            all_numbers.append(renumbered[numbers[~is_empty]])
    begins, terms = np.concatenate(all_firsts), np.concatenate(all_numbers)
    order = np.argsort(begins, kind="stable")
    begins, terms = begins[order], terms[order]
    # Each text ends at its first position without a shingle.
    has_shingle = np.zeros(len(parts), bool)
    has_shingle[begins] = True
    text_starts = text_ends - counts
    missing = np.append(np.flatnonzero(~has_shingle), len(parts))
    lengths = np.minimum(missing[np.searchsorted(missing, text_starts)], text_ends) - text_starts
    texts = np.repeat(np.arange(len(counts)), counts)[begins]
    positions = begins - text_starts[texts]
    is_kept = positions < lengths[texts]
    return _with_own_vocabulary(
        BulkTokens(
            list(vocabulary),
            terms[is_kept],
            positions[is_kept].astype(np.int32),
            np.bincount(texts[is_kept], minlength=len(counts)).astype(np.int32),
            lengths.astype(np.int32),
        )
    )


def _with_fillers(tokens: BulkTokens, all_counts: Int32s, most: int) -> tuple[Int32s, Int32s]:
    """Return the tokens' terms, with at most so many fillers in a row in empty positions, and each text's number.

    The filler's number is the size of the vocabulary.
    """
    texts = np.repeat(np.arange(len(tokens.counts)), tokens.counts)
    ends = np.cumsum(tokens.counts)
    has_tokens = tokens.counts > 0
    previous = np.append(-1, tokens.positions)[:-1]
    previous[(ends - tokens.counts)[has_tokens]] = -1
    before = (tokens.positions - previous - 1).clip(max=most)
    last = np.full(len(tokens.counts), -1)
    last[has_tokens] = tokens.positions[ends[has_tokens] - 1]
    behind = (all_counts - last - 1).clip(max=most)
    places = np.arange(len(texts)) + np.cumsum(before) + (np.cumsum(behind) - behind)[texts]
    counts = tokens.counts + _sums(before, tokens.counts) + behind
    parts = np.full(int(counts.sum()), len(tokens.vocabulary), np.int32)
    parts[places] = tokens.terms
    return parts, counts


def _sums(values: NDArray[Any], counts: Int32s) -> Int32s:
    """Return the sum of each text's values, one for each of its tokens."""
    sums = np.concatenate([[0], np.cumsum(values)])[np.cumsum(counts)]
    return np.diff(sums, prepend=0).astype(np.int32)


def _positions(counts: Int32s) -> Int32s:
    starts = np.cumsum(counts) - counts
    return np.arange(int(counts.sum()), dtype=np.int32) - np.repeat(starts, counts).astype(np.int32)
