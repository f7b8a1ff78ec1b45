"""Token filters: change, mark, remove or combine tokens.

A term filter is a function of one term and its keyword mark, so the result of a whole chain for a term is computed
once and remembered (`TermChain`). A stream filter sees several tokens or makes several of one: unique, shingle,
n-grams. One function for each filter type reads its settings.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from searchapp.lucene.analysis.char_filters import Replacement
from searchapp.lucene.analysis.characters import (
    fold,
    has_halves,
    joined_units,
    lower,
    utf16_length,
    utf16_units,
)
from searchapp.lucene.analysis.java_regex import compile_java
from searchapp.lucene.analysis.options import JAVA_WHITESPACE, TRIMMED, Options
from searchapp.lucene.analysis.stemmers import minimal_english, porter, porter2, possessive_english

Span = tuple[int, int]
"""Start and end of a token in the text, in UTF-16 code units."""


@dataclass(slots=True)
class Tokens:
    """A stream of tokens as parallel lists, which is much faster in Python than an object a token.

    `spans` is None when nobody asked for offsets. `keywords` says which tokens stemmers must leave alone (None:
    no token), `lengths` over how many positions a token reaches (None: one each). `trailing` is the number of
    positions after the last token whose tokens were removed.
    """

    terms: list[str]
    positions: list[int]
    spans: list[Span] | None = None
    keywords: list[bool] | None = None
    lengths: list[int] | None = None
    trailing: int = 0
    end_offset: int = 0

    @property
    def past_end(self) -> int:
        """The position after all tokens, those included that were removed at the end."""
        return (self.positions[-1] if self.positions else -1) + 1 + self.trailing

    def copy(self) -> Tokens:
        """The same stream, to which a filter may be applied; the lists are shared."""
        return Tokens(
            self.terms,
            self.positions,
            self.spans,
            self.keywords,
            self.lengths,
            self.trailing,
            self.end_offset,
        )

    def keep(self, chosen: Sequence[int]) -> Tokens:
        """The tokens at these indices; the positions of the others become holes."""
        last = self.positions[-1] if self.positions else -1
        kept = self.pick(chosen)
        kept.trailing += last - (kept.positions[-1] if kept.positions else -1)
        return kept

    def pick(self, chosen: Sequence[int]) -> Tokens:
        """The tokens at these indices, each as often as it is named, with the position it had."""
        return Tokens(
            [self.terms[i] for i in chosen],
            [self.positions[i] for i in chosen],
            None if self.spans is None else [self.spans[i] for i in chosen],
            None if self.keywords is None else [self.keywords[i] for i in chosen],
            None if self.lengths is None else [self.lengths[i] for i in chosen],
            self.trailing,
            self.end_offset,
        )


TermFilter = Callable[[str, bool], tuple[str, bool] | None]
"""Maps a term and whether it is a keyword to the same, changed; None removes the token."""


class StreamFilter(ABC):
    """A token filter that looks at more than one token at a time, or makes several of one."""

    @abstractmethod
    def apply(self, tokens: Tokens) -> Tokens:
        """The filtered tokens; the argument must not be used afterwards."""


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


REMEMBERED_TERMS = 500_000
"""A chain forgets all terms when it knows this many, so that memory stays bounded whatever is indexed."""

# fmt: off
ENGLISH_STOPWORDS = (
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not",
    "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was",
    "will", "with",
)  # Lucene's list
# fmt: on

NO_WORDS = "_none_"

Outcome = tuple[str, bool] | None


class _Memory(dict[str, Outcome]):
    """What becomes of each term that starts with the given keyword mark."""

    def __init__(self, filters: Sequence[TermFilter], keyword: bool) -> None:
        self._filters = filters
        self._keyword = keyword

    def __missing__(self, term: str) -> Outcome:
        if len(self) >= REMEMBERED_TERMS:
            self.clear()
        self[term] = found = outcome(self._filters, term, self._keyword)
        return found


class _Terms(dict[str, str | None]):
    """What becomes of each term that is no keyword, but for its mark; None where it is removed."""

    def __init__(self, filters: Sequence[TermFilter]) -> None:
        self._filters = filters

    def __missing__(self, term: str) -> str | None:
        if len(self) >= REMEMBERED_TERMS:
            self.clear()
        found = outcome(self._filters, term, keyword=False)
        self[term] = becomes = None if found is None else found[0]
        return becomes


def outcome(filters: Sequence[TermFilter], term: str, keyword: bool) -> Outcome:
    """What filters in a row make of a term and its keyword mark; None if one removes it."""
    found: Outcome = (term, keyword)
    for filter_ in filters:
        if found is None:
            break
        found = filter_(*found)
    return found


class TermChain(StreamFilter):
    """Several term filters in a row, as one stream filter.

    `keeps_marks` says whether somebody looks at the marks of keywords behind it; without, there are none.
    """

    def __init__(self, filters: Sequence[TermFilter], keeps_marks: bool = True) -> None:
        self._plain = _Memory(filters, keyword=False)
        self._marked = _Memory(filters, keyword=True)
        self._terms = _Terms(filters)
        self._keeps_marks = keeps_marks

    @property
    def unmarked(self) -> Callable[[str], str | None]:
        """What becomes of a term that is no keyword, but for its mark; None where it is removed."""
        return self._terms.__getitem__

    def apply(self, tokens: Tokens) -> Tokens:
        if tokens.keywords is None and not self._keeps_marks:
            return self._unmarked(tokens)
        if tokens.keywords is None:
            plain = self._plain
            outcomes = [plain[term] for term in tokens.terms]
        else:
            pairs = zip(tokens.terms, tokens.keywords, strict=True)
            outcomes = [self._marked[term] if marked else self._plain[term] for term, marked in pairs]
        if None in outcomes:
            tokens = tokens.keep([i for i, outcome in enumerate(outcomes) if outcome is not None])
        kept = [outcome for outcome in outcomes if outcome is not None]
        tokens.terms = [term for term, _ in kept]
        tokens.keywords = [marked for _, marked in kept] if any(marked for _, marked in kept) else None
        return tokens

    def _unmarked(self, tokens: Tokens) -> Tokens:
        """The same where no mark comes in and none goes out, as at the end of most analyzers."""
        becomes = self._terms
        terms = [becomes[term] for term in tokens.terms]
        if all(terms) or None not in terms:  # a term may also become empty
            tokens.terms = terms  # type: ignore[assignment]
            return tokens
        if tokens.spans is not None or tokens.lengths is not None:
            tokens = tokens.keep([i for i, term in enumerate(terms) if term is not None])
        else:
            last = tokens.positions[-1]
            kept = [at for at, term in zip(tokens.positions, terms, strict=True) if term is not None]
            tokens.positions = kept
            tokens.trailing += last - (kept[-1] if kept else -1)
        tokens.terms = [term for term in terms if term is not None]
        return tokens


def changing(change: Callable[[str], str]) -> TermFilter:
    """A filter that changes every term."""
    return lambda term, keyword: (change(term), keyword)


def stemming(stem: Callable[[str], str]) -> TermFilter:
    """A filter that changes every term but keywords."""
    return lambda term, keyword: (term if keyword else stem(term), keyword)


@dataclass(frozen=True, slots=True)
class LeavingHalves:
    """A filter that may leave half of a character beyond U+FFFF; the filters behind it see just that."""

    filter: TermFilter
    leaves_halves: ClassVar[bool] = True

    def __call__(self, term: str, keyword: bool) -> tuple[str, bool] | None:
        return self.filter(term, keyword)


def keeping(wanted: Callable[[str], bool]) -> TermFilter:
    """A filter that removes the terms that are not wanted."""
    return lambda term, keyword: (term, keyword) if wanted(term) else None


def marking(words: Sequence[str]) -> TermFilter:
    """A filter that marks these words as keywords."""
    marked = frozenset(words)
    return lambda term, keyword: (term, keyword or term in marked)


def lowercase(options: Options) -> TermFilter:
    """A filter of type `lowercase` (Lucene's `LowerCaseFilter`)."""
    options.refuse("language")
    return changing(lower)


def asciifolding(options: Options) -> TermFilter:
    """A filter of type `asciifolding` (Lucene's `ASCIIFoldingFilter`)."""
    if options.boolean("preserve_original", False):
        raise options.not_supported("`preserve_original`")
    return changing(fold)


def trim(_options: Options) -> TermFilter:
    """Without white space at both ends (Lucene's `TrimFilter`)."""
    return changing(lambda term: term.strip(JAVA_WHITESPACE))


def stop(options: Options) -> TermFilter:
    """A filter of type `stop` (Lucene's `StopFilter`)."""
    options.refuse("stopwords_path")
    if not options.boolean("remove_trailing", True):
        raise options.not_supported("`remove_trailing` false")
    words = stopword_list(options, "_english_")
    ignore_case = options.boolean("ignore_case", False)
    return stop_words(words, ignore_case and "stopwords" in options)  # the default words have their case


def stop_words(words: Sequence[str], ignore_case: bool = False) -> TermFilter:
    """A filter that removes these words."""
    if ignore_case:
        lowered = frozenset(map(lower, words))
        return keeping(lambda term: lower(term) not in lowered)
    exact = frozenset(words)
    return keeping(lambda term: term not in exact)


def stopword_list(options: Options, default: str) -> list[str]:
    """The setting `stopwords`, with the names of lists such as `_english_` replaced by their words.

    `_none_` alone, not in a list, stands for no words; beside others it is a word.
    """
    given = options.strings("stopwords", []) if "stopwords" in options else [default]
    if given == [NO_WORDS] and not options.is_list("stopwords"):
        return []
    words: list[str] = []
    for word in given:
        if word == "_english_":
            words += ENGLISH_STOPWORDS
        elif re.fullmatch("_[a-z]+_", word) and word != NO_WORDS:
            raise options.not_supported(f"the stop words {word}")
        else:
            words.append(word)
    return words


def length(options: Options) -> TermFilter:
    """Terms from `min` to `max` code units (Lucene's `LengthFilter`)."""
    low, high = options.integer("min", 0), options.integer("max", 2**31 - 1)
    if not 0 <= low <= high:
        raise options.bad(f"`min` {low} and `max` {high} are no range")
    return keeping(lambda term: low <= utf16_length(term) <= high)


def truncate(options: Options) -> TermFilter:
    """The first `length` code units (Lucene's `TruncateTokenFilter`, which leaves keywords alone)."""
    units = options.integer("length")
    if units < 1:
        raise options.bad(f"`length` must be positive, not {units}")
    return LeavingHalves(stemming(lambda term: joined_units(utf16_units(term)[:units])))


def snowball_english() -> TermFilter:
    """Porter's second English stemmer (Lucene's `SnowballFilter`)."""
    return stemming(porter2)


def porter_stem(_options: Options) -> TermFilter:
    """Porter's first stemmer (Lucene's `PorterStemFilter`)."""
    return stemming(porter)


def stemmer(options: Options) -> TermFilter:
    """A filter of type `stemmer`; the older name of `language` is `name`."""
    language = options.text("language", options.text("name", "porter"))
    match language.lower():
        case "english" | "porter":
            return stemming(porter)
        case "porter2":
            return snowball_english()
        case "minimal_english" | "minimalenglish":
            return stemming(minimal_english)
        case "possessive_english" | "possessiveenglish":
            return changing(possessive_english)
    raise options.not_supported(f"the language {language}")


def snowball(options: Options) -> TermFilter:
    """A filter of type `snowball`; the one language here is English."""
    language = options.text("language", "English")
    if language.lower() != "english":
        raise options.not_supported(f"the language {language}")
    return snowball_english()


def keyword_marker(options: Options) -> TermFilter:
    """A filter of type `keyword_marker`: stemmers leave the terms that it marks as they are."""
    options.refuse("keywords_path")
    ignore_case = options.boolean("ignore_case", False)
    if "keywords_pattern" in options:
        if "keywords" in options:
            raise options.bad("`keywords` and `keywords_pattern` exclude each other")
        pattern = compile_java(options, "keywords_pattern", has_flags=False)
        return lambda term, keyword: (term, keyword or pattern.matches(term))
    words = options.strings("keywords")
    if ignore_case:
        lowered = frozenset(map(lower, words))
        return lambda term, keyword: (term, keyword or lower(term) in lowered)
    return marking(words)


def stemmer_override(options: Options) -> TermFilter:
    """A filter of type `stemmer_override`: rules `a, b => c`, which make c a keyword; the first rule wins."""
    options.refuse("rules_path")
    overrides: dict[str, str] = {}
    for rule in options.strings("rules"):
        sides = rule.split("=>")
        keys = [key.strip(TRIMMED) for key in sides[0].split(",")]
        stem = sides[-1].strip(TRIMMED)
        if len(sides) != 2 or not stem or "," in stem or not all(keys):
            raise options.bad(f"the rule {rule!r} is not of the form: word, word => stem")
        for key in keys:
            overrides.setdefault(key, stem)

    def override(term: str, keyword: bool) -> tuple[str, bool]:
        if keyword or term not in overrides:
            return term, keyword
        return overrides[term], True

    return override


def pattern_replace(options: Options) -> TermFilter:
    """A filter of type `pattern_replace` (Lucene's `PatternReplaceFilter`)."""
    pattern = compile_java(options)
    template = Replacement(options.text("replacement", ""), pattern, options).template
    count = 0 if options.boolean("all", True) else 1
    change = changing(lambda term: pattern.substitute(template, term, count))
    return LeavingHalves(change) if pattern.leaves_halves else change
