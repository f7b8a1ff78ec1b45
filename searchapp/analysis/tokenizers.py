"""Tokenizers: they cut a text into tokens.

A tokenizer gives spans in the characters of the text that it is given; `terms` is the quick way when nobody asks
for them. All of Lucene's tokenizers here give each token a position of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from searchapp.analysis.java_pattern import JavaRegex
from searchapp.analysis.java_regex import compile_java
from searchapp.analysis.offsets import has_astral, has_halves, joined_units, utf16_length, utf16_units
from searchapp.analysis.options import JAVA_WHITESPACE, Options
from searchapp.analysis.unicode_tables import category_set, lower

Spans = list[tuple[int, int]]

FIRST_HALF, SECOND_HALF = 0xD800, 0xDC00
"""Where the code units begin that are the first and the second half of a character."""


class Tokenizer(Protocol):
    """Cuts text into tokens.

    `stops_after` is the length in code units of a token behind which it does not look before it gives the token; None
    if it always knows what follows.
    """

    stops_after: int | None

    def terms(self, text: str) -> list[str]:
        """The tokens' texts."""

    def cut(self, text: str) -> tuple[str, Spans]:
        """The text and where the tokens stand in it, start and end.

        It comes as its code units where a token may begin between the two halves of a character.
        """

    def normalize(self, term: str) -> str:
        """What becomes of a token's text: most tokenizers leave it as it is."""


class SpanTokenizer:
    """A tokenizer that is defined by its spans."""

    stops_after: int | None = None

    def spans(self, text: str) -> Spans:
        raise NotImplementedError

    def terms(self, text: str) -> list[str]:
        text, spans = self.cut(text)
        return [joined_units(text[start:end]) for start, end in spans]

    def cut(self, text: str) -> tuple[str, Spans]:
        return text, self.spans(text)

    def normalize(self, term: str) -> str:
        return term


class KeywordTokenizer(SpanTokenizer):
    """The whole text as one token, an empty one too (Lucene's `KeywordTokenizer`)."""

    def spans(self, text: str) -> Spans:
        return [(0, len(text))]


class RunTokenizer(SpanTokenizer):
    """Runs of characters of one kind, cut after `limit` code units (Lucene's `CharTokenizer`)."""

    def __init__(self, kind: str, limit: int, lowercase: bool = False) -> None:
        self._pattern = re.compile(f"{kind}+")
        self._limit = limit
        self._lowercase = lowercase

    def terms(self, text: str) -> list[str]:
        found: list[str] = self._pattern.findall(text)
        if max(map(len, found), default=0) * 2 > self._limit:
            found = super().terms(text)
        return [lower(term) for term in found] if self._lowercase else found

    def spans(self, text: str) -> Spans:
        return [piece for match in self._pattern.finditer(text) for piece in self._cut(text, *match.span())]

    def normalize(self, term: str) -> str:
        return lower(term) if self._lowercase else term

    def _cut(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        while utf16_length(text[start:end]) > self._limit:
            cut = code_units_end(text, start, self._limit)
            if utf16_length(text[start:cut]) < self._limit:
                cut += 1  # a surrogate pair that begins before the limit is taken whole
            yield start, cut
            start = cut
        if start < end:
            yield start, end


class MatchTokenizer(SpanTokenizer):
    """What a pattern, or one group of it, matches (Lucene's `PatternTokenizer` with a group)."""

    def __init__(self, pattern: JavaRegex, group: int) -> None:
        self._pattern = pattern
        self._group = group
        self.leaves_halves = pattern.leaves_halves

    def terms(self, text: str) -> list[str]:
        if self._pattern.find_between_halves(text) is not None:
            return super().terms(text)
        return self._pattern.find_texts(text, self._group)

    def cut(self, text: str) -> tuple[str, Spans]:
        between = self._pattern.find_between_halves(text)
        if between is None:
            return super().cut(text)
        spans = (found.span(self._group) for found in between)
        return utf16_units(text), [(start, end) for start, end in spans if start < end]

    def spans(self, text: str) -> Spans:
        matches = (match.span(self._group) for match in self._pattern.find(text))
        return [(start, end) for start, end in matches if start < end]


class SplitTokenizer(SpanTokenizer):
    """What stands between the matches of a pattern (Lucene's `PatternTokenizer` without a group)."""

    def __init__(self, pattern: JavaRegex) -> None:
        self._pattern = pattern
        self.leaves_halves = pattern.leaves_halves

    def cut(self, text: str) -> tuple[str, Spans]:
        between = self._pattern.find_between_halves(text)
        if between is None:
            return super().cut(text)
        units = utf16_units(text)
        return units, _apart(((found.start, found.end) for found in between), len(units))

    def spans(self, text: str) -> Spans:
        return _apart((match.span() for match in self._pattern.find(text)), len(text))


class SimplePatternTokenizer(SpanTokenizer):
    """The longest matches of a row of characters and classes (Lucene's `SimplePatternTokenizer`).

    Args:
        pattern: the whole row, of which the last one may be repeated
        first: the first of it
    """

    def __init__(self, pattern: JavaRegex, first: JavaRegex) -> None:
        self._pattern = pattern
        self._first = first
        self.leaves_halves = True

    def cut(self, text: str) -> tuple[str, Spans]:
        if text.isascii() or not (has_astral(text) or has_halves(text)):
            return text, self.spans(text)
        units = utf16_units(text)
        return units, self._in_units(units)

    def spans(self, text: str) -> Spans:
        return [match.span() for match in self._pattern.find(text)]

    def _in_units(self, units: str) -> Spans:
        """The spans by Lucene's way through the code units of a text.

        A first half takes the next code unit with it, whatever that is; after a beginning that came to nothing the
        search goes on at the second code unit, whatever it belongs to.
        """
        spans = []
        at = 0
        while at < len(units):
            text, ends = _paired(units, at)
            match = self._pattern.match(text)
            if match and match.end():
                spans.append((at, ends[match.end() - 1]))
                at = spans[-1][1]
            else:
                at = at + 1 if self._first.match(text) else ends[0]
        return spans


def _paired(units: str, start: int) -> tuple[str, list[int]]:
    """The characters from a code unit on, each first half paired with what follows, and where each of them ends."""
    characters: list[str] = []
    ends: list[int] = []
    at = start
    while at < len(units):
        unit = ord(units[at])
        at += 1
        if FIRST_HALF <= unit < SECOND_HALF:
            follows = ord(units[at]) if at < len(units) else 0xFFFF
            unit = 0x10000 + ((unit - FIRST_HALF) << 10) + follows - SECOND_HALF
            at = min(at + 1, len(units))
        characters.append(chr(min(unit, 0x10FFFF)))
        ends.append(at)
    return "".join(characters), ends


def _apart(separators: Iterable[tuple[int, int]], length: int) -> Spans:
    """What stands between separators in a text, if there is anything."""
    spans = []
    begin = 0
    for start, end in separators:
        if start > begin:
            spans.append((begin, start))
        begin = end
    if begin < length:
        spans.append((begin, length))
    return spans


def code_units_end(text: str, start: int, units: int) -> int:
    """The last index at which `text[start:index]` has no more than this many UTF-16 code units."""
    end = min(start + units, len(text))
    while (excess := utf16_length(text[start:end]) - units) > 0:
        end -= (excess + 1) // 2
    return end


def java_letters() -> str:
    """Java's `Character.isLetter`, as a bracket expression."""
    return f"[{category_set('L')}]"


LARGEST_LIMIT = 1 << 20


def token_limit(options: Options) -> int:
    """The setting `max_token_length`, in code units."""
    limit = options.integer("max_token_length", 255)
    if not 1 <= limit <= LARGEST_LIMIT:
        raise options.bad(f"`max_token_length` must be from 1 to {LARGEST_LIMIT}, not {limit}")
    return limit


def whitespace_tokenizer(options: Options) -> Tokenizer:
    """A tokenizer of type `whitespace`."""
    return RunTokenizer(f"[^{JAVA_WHITESPACE}]", token_limit(options))


def letter_tokenizer(_options: Options) -> Tokenizer:
    """A tokenizer of type `letter`."""
    return RunTokenizer(java_letters(), 255)


def lowercase_tokenizer(_options: Options) -> Tokenizer:
    """A tokenizer of type `lowercase`: letters, in lower case."""
    return RunTokenizer(java_letters(), 255, lowercase=True)


def keyword_tokenizer(options: Options) -> Tokenizer:
    """A tokenizer of type `keyword`."""
    size = options.integer("buffer_size", 256)  # how much is read at once; the token is the same
    if not 1 <= size <= LARGEST_LIMIT:
        raise options.bad(f"`buffer_size` must be from 1 to {LARGEST_LIMIT}, not {size}")
    return KeywordTokenizer()


def pattern_tokenizer(options: Options) -> Tokenizer:
    """A tokenizer of type `pattern`: without a group the pattern is what separates."""
    group = options.integer("group", -1)
    pattern = compile_java(options, default=r"\W+")
    if group > pattern.groups:
        raise options.bad(f"`group` is {group}, but the pattern has {pattern.groups}")
    if group > 0:
        pattern.check_groups(options)
    return MatchTokenizer(pattern, group) if group >= 0 else SplitTokenizer(pattern)


# One element of Lucene's RegExp syntax that is the same in Java's: a character, an escaped one, or a class.
_SIMPLE_ELEMENT = (
    r"(?:[A-Za-z0-9 _,;:!%=/'-]|\\[^A-Za-z0-9\s]"
    r"|\[\^?(?:[A-Za-z0-9 _]-[A-Za-z0-9 _]|[A-Za-z0-9 _.,;:!?])+\])"
)
_FIRST = re.compile(_SIMPLE_ELEMENT)
_SIMPLE_PATTERN = re.compile(rf"(?:{_SIMPLE_ELEMENT})+(?:\+|\{{[1-9][0-9]*(?:,[0-9]*)?\}})?")


def simple_pattern_tokenizer(options: Options) -> Tokenizer:
    """A tokenizer of type `simple_pattern`: the longest matches of a Lucene `RegExp`.

    Characters and classes in a row, of which the last may be repeated, mean the same in all dialects; the rest of
    Lucene's syntax is refused.
    """
    options.refuse("flags")
    source = options.text("pattern", "")
    if not _SIMPLE_PATTERN.fullmatch(source):
        raise options.not_supported(f"the pattern {source!r}")
    first = Options(options.piece, {"pattern": _FIRST.match(source)[0]})  # type: ignore[index]
    return SimplePatternTokenizer(compile_java(options), compile_java(first))
