"""Tokenizers: they cut a text into tokens.

A tokenizer gives spans in the characters of the text that it is given; `terms` is the quick way when nobody asks
for them. All of Lucene's tokenizers here give each token a position of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from searchapp.analysis.java_regex import JavaRegex, compile_java
from searchapp.analysis.offsets import utf16_length
from searchapp.analysis.options import Options
from searchapp.analysis.unicode_tables import category_set, lower

Spans = list[tuple[int, int]]


class Tokenizer(Protocol):
    """Cuts text into tokens."""

    def terms(self, text: str) -> list[str]:
        """The tokens' texts."""

    def spans(self, text: str) -> Spans:
        """Where the tokens stand, start and end, in characters."""

    def normalize(self, term: str) -> str:
        """What becomes of a token's text: most tokenizers leave it as it is."""


class SpanTokenizer:
    """A tokenizer that is defined by its spans."""

    def spans(self, text: str) -> Spans:
        raise NotImplementedError

    def terms(self, text: str) -> list[str]:
        return [text[start:end] for start, end in self.spans(text)]

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

    def terms(self, text: str) -> list[str]:
        return self._pattern.find_texts(text, self._group)

    def spans(self, text: str) -> Spans:
        matches = (match.span(self._group) for match in self._pattern.find(text))
        return [(start, end) for start, end in matches if start < end]


class SplitTokenizer(SpanTokenizer):
    """What stands between the matches of a pattern (Lucene's `PatternTokenizer` without a group)."""

    def __init__(self, pattern: JavaRegex) -> None:
        self._pattern = pattern

    def spans(self, text: str) -> Spans:
        spans = []
        begin = 0
        for match in self._pattern.find(text):
            if match.start() > begin:
                spans.append((begin, match.start()))
            begin = match.end()
        if begin < len(text):
            spans.append((begin, len(text)))
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


JAVA_WHITESPACE = "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680\u2028\u2029\u205f\u3000" + "".join(
    chr(code) for code in range(0x2000, 0x200B) if code != 0x2007
)
"""Java's `Character.isWhitespace`: the no-break spaces are no white space to it."""


def token_limit(options: Options) -> int:
    """The setting `max_token_length`, in code units."""
    limit = options.integer("max_token_length", 255)
    if not 1 <= limit <= 1024 * 1024:
        raise options.bad(f"`max_token_length` must be from 1 to 1048576, not {limit}")
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
    options.integer("buffer_size", 256)  # how much is read at once; the token is the same
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
    return MatchTokenizer(compile_java(options), 0)
