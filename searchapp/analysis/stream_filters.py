"""Token filters that look at several tokens at once or make several of one: unique, shingle, n-grams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from searchapp.analysis.offsets import has_halves, joined_units
from searchapp.analysis.options import Options
from searchapp.analysis.tokens import Span, StreamFilter, Tokens

_PLACES = list(range(10_000))
"""The positions of a stream without holes, as far as they are compared quickly."""

MAX_SHINGLE_DIFF = 3
MAX_NGRAM_DIFF = 1
"""Elasticsearch's defaults of `index.max_shingle_diff` and `index.max_ngram_diff`."""


class UniqueFilter(StreamFilter):
    """Each term once: in the whole text, or among the tokens of one position (Elasticsearch's own filter)."""

    def __init__(self, only_on_same_position: bool) -> None:
        self.only_on_same_position = only_on_same_position

    def apply(self, tokens: Tokens) -> Tokens:
        if not self.only_on_same_position and len(set(tokens.terms)) == len(tokens.terms):
            return tokens
        seen: set[object] = set()
        chosen = []
        if (
            not self.only_on_same_position
            and tokens.spans is None
            and tokens.keywords is None
            and tokens.lengths is None
        ):
            return _firsts(tokens)
        keys: Iterable[object] = tokens.terms
        if self.only_on_same_position:
            keys = zip(tokens.terms, tokens.positions, strict=True)
        for i, key in enumerate(keys):
            if key not in seen:
                seen.add(key)
                chosen.append(i)
        return tokens.keep(chosen)


def _firsts(tokens: Tokens) -> Tokens:
    """The first token of each term, from a stream of which nothing but positions is kept."""
    terms, positions = tokens.terms, tokens.positions
    first = dict(zip(reversed(terms), reversed(positions), strict=True))  # the last entry of a key stays
    kept = list(dict.fromkeys(terms))
    at = [first[term] for term in kept]
    return Tokens(kept, at, None, None, None, tokens.trailing + positions[-1] - at[-1], tokens.end_offset)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A token in a shingle's window; `index` is the token whose marks it has."""

    term: str
    filler: bool
    span: Span | None
    keyword: bool


class ShingleFilter(StreamFilter):
    """Runs of neighbouring tokens as one token (Lucene's `ShingleFilter`).

    Positions that are empty count as filler tokens, at most one fewer than the longest shingle in a row; a
    shingle of fillers alone is not given. All shingles that begin with the same token share its position.
    """

    branches: ClassVar[bool] = False
    """Elasticsearch makes no graphs of shingles, of which there would be too many paths."""

    def __init__(self, options: Options) -> None:
        self._shortest = options.integer("min_shingle_size", 2)
        self._longest = options.integer("max_shingle_size", 2)
        self._unigrams = options.boolean("output_unigrams", True)
        self._unigrams_if_alone = options.boolean("output_unigrams_if_no_shingles", False)
        self.separator = options.text("token_separator", " ")
        self._halves = (
            False  # whether there are halves of characters in the stream, which may meet in a shingle
        )
        self._filler = options.text("filler_token", "_")
        if not 2 <= self._shortest <= self._longest:
            raise options.bad("shingle sizes must be at least 2, the minimum at most the maximum")
        self.gives_pairs = self._longest == 2 and not self._unigrams and not self._unigrams_if_alone
        if self._longest - self._shortest + self._unigrams > MAX_SHINGLE_DIFF:
            raise options.bad(f"shingle sizes may differ by {MAX_SHINGLE_DIFF} (index.max_shingle_diff)")

    def apply(self, tokens: Tokens) -> Tokens:
        count = len(tokens.terms)
        plain = tokens.spans is None and not tokens.trailing
        self._halves = has_halves(tokens.terms)
        if plain and not self._halves and self.gives_pairs and tokens.positions == _PLACES[:count]:
            return self._neighbours(tokens)
        window = list(self._pieces(tokens))
        sizes = list(range(self._shortest, self._longest + 1))
        if self._unigrams or (self._unigrams_if_alone and len(window) < self._shortest):
            sizes.insert(0, 1)
        out = Tokens([], [], None if tokens.spans is None else [], [], [], tokens.trailing, tokens.end_offset)
        position = -1
        for first in range(len(window)):
            shingles = [
                window[first : first + size]
                for size in sizes
                if first + size <= len(window) and not all(p.filler for p in window[first : first + size])
            ]
            if not shingles:
                break  # Lucene's filter stops at the first place where it has nothing to give
            position += 1
            for shingle in shingles:
                self._add(out, shingle, position)
        return out

    def _neighbours(self, tokens: Tokens) -> Tokens:
        """Just pairs, from a stream without holes: the common case, without the bookkeeping."""
        if len(tokens.terms) < 2:
            return Tokens([], [])
        pairs = zip(tokens.terms, tokens.terms[1:], strict=False)
        terms = list(map(self.separator.join, pairs))
        keywords = None if tokens.keywords is None else tokens.keywords[:-1]
        return Tokens(terms, list(range(len(terms))), keywords=keywords)

    def _add(self, out: Tokens, shingle: list[_Piece], position: int) -> None:
        term = self.separator.join([piece.term for piece in shingle])
        out.terms.append(joined_units(term) if self._halves else term)
        out.positions.append(position)
        if out.spans is not None and shingle[0].span and shingle[-1].span:
            out.spans.append((shingle[0].span[0], shingle[-1].span[1]))
        if out.keywords is not None:
            out.keywords.append(shingle[0].keyword)
        if out.lengths is not None:
            size = len(shingle)
            out.lengths.append(size if self._unigrams else max(1, size - self._shortest + 1))

    def _pieces(self, tokens: Tokens) -> Iterator[_Piece]:
        """The tokens and the fillers between and after them."""
        most = self._longest - 1
        before = -1
        spans, keywords = tokens.spans, tokens.keywords
        for i, (term, at) in enumerate(zip(tokens.terms, tokens.positions, strict=True)):
            span = spans[i] if spans is not None else None
            keyword = keywords is not None and keywords[i]
            filler_span = (span[0], span[0]) if span is not None else None
            for _ in range(min(at - before - 1, most)):
                yield _Piece(self._filler, True, filler_span, keyword)
            yield _Piece(term, False, span, keyword)
            before = at
        end = (tokens.end_offset, tokens.end_offset) if spans is not None else None
        for _ in range(min(tokens.trailing, most)):
            yield _Piece(self._filler, True, end, False)


class NGramFilter(StreamFilter):
    """Parts of each term, in characters: all of them, or those at its beginning.

    Lucene's `NGramTokenFilter` and `EdgeNGramTokenFilter`; each part keeps the position and the offsets of the
    whole term.
    """

    def __init__(self, options: Options, edge: bool) -> None:
        self._low = options.integer("min_gram", 1)
        self._high = options.integer("max_gram", 2)
        self._original = options.boolean("preserve_original", False)
        self._edge = edge
        if edge and options.text("side", "front") != "front":
            raise options.not_supported("`side`")
        if not 1 <= self._low <= self._high:
            raise options.bad(f"`min_gram` {self._low} and `max_gram` {self._high} are no range")
        if not edge and self._high - self._low > MAX_NGRAM_DIFF:
            raise options.bad(f"gram sizes may differ by {MAX_NGRAM_DIFF} (index.max_ngram_diff)")

    def apply(self, tokens: Tokens) -> Tokens:
        grams = [self._grams(term) for term in tokens.terms]
        out = tokens.keep([i for i, parts in enumerate(grams) for _ in parts])
        out.terms = [part for parts in grams for part in parts]
        out.trailing -= tokens.trailing  # Lucene's filters forget the holes at the end of what they are given
        return out

    def _grams(self, term: str) -> list[str]:
        starts = range(1) if self._edge else range(len(term))
        grams = [
            term[start : start + size]
            for start in starts
            for size in range(self._low, self._high + 1)
            if start + size <= len(term)
        ]
        if self._original and not self._low <= len(term) <= self._high:
            grams.append(term)
        return grams


def unique(options: Options) -> StreamFilter:
    """A filter of type `unique`."""
    return UniqueFilter(options.boolean("only_on_same_position", False))


def shingle(options: Options) -> StreamFilter:
    """A filter of type `shingle`."""
    return ShingleFilter(options)


def ngram(options: Options) -> StreamFilter:
    """A filter of type `ngram`."""
    return NGramFilter(options, edge=False)


def edge_ngram(options: Options) -> StreamFilter:
    """A filter of type `edge_ngram`."""
    return NGramFilter(options, edge=True)
