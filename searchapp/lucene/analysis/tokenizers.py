"""Tokenizers: cut a text into tokens.

A tokenizer returns spans in the characters of its text; `terms` is the fast path without spans. All of Lucene's
tokenizers here give each token a position of its own.

`StandardTokenizer` follows UAX #29, "Unicode Text Segmentation", section 4 (WB4 to WB13b), in the form of Lucene's
grammar: a token is the longest text that fits one of the rules. Beyond UAX #29, each ideograph and each Hiragana
character is a token, so is a run of a Southeast Asian script, and an emoji by UTS #51. Code points have at most one
class each, in `data/word_break.txt`. The rules are regular expressions; in texts beyond ASCII they match a letter
for the class of each character, because expressions with all of Unicode would take half a second to compile. Lucene
looks at no more than `max_token_length` code units from the beginning of a token; a longer word is split there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from searchapp.lucene.analysis.characters import (
    as_set,
    category_set,
    has_astral,
    has_halves,
    joined_units,
    lower,
    parse_ranges,
    read_table,
    utf16_length,
    utf16_units,
)
from searchapp.lucene.analysis.java_pattern import JavaRegex
from searchapp.lucene.analysis.java_regex import compile_java
from searchapp.lucene.analysis.options import JAVA_WHITESPACE, Options

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


class StandardTokenizer(SpanTokenizer):
    """Words, numbers, ideographs, emoji; `limit` is the length of the longest token in code units."""

    def __init__(self, limit: int) -> None:
        self._limit = self.stops_after = limit

    def terms(self, text: str) -> list[str]:
        if not text.isascii():
            return super().terms(text)
        found = [term for term in _RULES.scan_ascii.findall(text) if term]
        return found if self._all_short(map(len, found)) else super().terms(text)

    def spans(self, text: str) -> Spans:
        is_ascii = text.isascii()
        classes = text if is_ascii else text.translate(_RULES.classes)
        if is_ascii or not _RULES.has_emoji.search(classes):  # then it is enough to look for words
            scan = _RULES.scan_ascii if is_ascii else _RULES.scan
            found = [match.span(1) for match in scan.finditer(classes) if match[1]]
            if self._all_short(end - start for start, end in found):
                return found
        return self._longest_matches(text, text.translate(_RULES.classes))

    def _all_short(self, lengths: Iterable[int]) -> bool:
        """Whether nothing needs to be cut, even if each character should be two code units."""
        return max(lengths, default=0) * 2 <= self._limit

    def _longest_matches(self, text: str, classes: str) -> Spans:
        """The spans where a word and an emoji may begin at one place, or a word may be too long."""
        spans = []
        at = 0
        while next_start := _RULES.start.search(classes, at):
            at = next_start.start()
            stop = code_units_end(text, at, self._limit)
            rules = (_RULES.word, _RULES.emoji)
            found = (rule.match(classes, at, stop) for rule in rules)
            end = max((match.end() for match in found if match), default=at)
            if end > at:
                spans.append((at, end))
            at = max(end, at + 1)
        return spans


_EXTENDING = (
    "extend",
    "zwj",
    "keycap",
    "text_style",
    "emoji_style",
    "emoji_modifier",
    "complex_context_extend",
)
_NO_START = ("mid_letter", "mid_num_let", "single_quote", "double_quote", "mid_num", "extend")
_EMOJI = ("emoji", "letter_emoji", "emoji_modifier", "regional_indicator", "keycap")


class _Classes(dict[int, str]):
    """By code point the letter that stands for its class, found when it is asked for first."""

    NONE = " "

    def __init__(self, table: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        super().__init__()
        self.letters = {name: chr(ord("A") + number) for number, name in enumerate(table)}
        self._ranges = sorted(
            (low, high, self.letters[name]) for name, ranges in table.items() for low, high in ranges
        )
        self._begins = [low for low, _high, _letter in self._ranges]

    def __missing__(self, code: int) -> str:
        place = bisect_right(self._begins, code) - 1
        _low, high, letter = self._ranges[place] if place >= 0 else (0, -1, self.NONE)
        self[code] = letter if code <= high else self.NONE
        return self[code]


class _Alphabet:
    """Bracket expressions for classes of characters.

    Args:
        inside: what stands between the brackets for each class, nothing where it has no characters
    """

    def __init__(self, inside: Mapping[str, str]) -> None:
        self.classes = inside

    def any_of(self, *names: str) -> str:
        """One character of these classes."""
        inside = "".join(self.classes[name] for name in names)
        return f"[{inside}]" if inside else "(?!)"

    def extended(self, *names: str) -> str:
        """One character of these classes and what extends it (WB4)."""
        extending = any(self.classes[name] for name in _EXTENDING)
        return self.any_of(*names) + (f"{self.any_of(*_EXTENDING)}*" if extending else "")


def _word_rule(alphabet: _Alphabet) -> str:
    """UAX #29, WB4 to WB13b, and the scripts that it leaves to dictionaries."""
    some = alphabet.extended
    letter = some("letter", "letter_emoji", "hebrew_letter")
    plain, hebrew = some("letter", "letter_emoji"), some("hebrew_letter")
    number = some("numeric", "ascii_digit")
    katakana = some("katakana")
    connector = some("extend_num_let")
    in_word = some("mid_letter", "mid_num_let", "single_quote")
    in_number = some("mid_num", "mid_num_let", "single_quote")

    part = (
        rf"(?:{hebrew}{some('double_quote')}{hebrew}"  # WB7b, WB7c
        rf"|{hebrew}{some('single_quote')}"  # WB7a
        rf"|{letter}(?:{in_word}{letter}|{plain})*"  # WB5, WB6, WB7
        rf"|{number}(?:{in_number}{number}|{number})*)"  # WB8, WB11, WB12
    )
    # WB9, WB10, WB13: neighbours; WB13a, WB13b: connectors before, between and after
    run = rf"(?:{katakana}(?:(?:{connector})*{katakana})*|{part}(?:(?:{connector})*{part})*)"
    word = rf"(?:{connector})*{run}(?:(?:{connector})+{run})*(?:{connector})*"
    southeast_asian = rf"(?:{some('complex_context', 'complex_context_extend')})+"
    return rf"{word}|{southeast_asian}|{some('ideographic', 'hiragana')}"


def _emoji_rule(alphabet: _Alphabet) -> str:
    """UTS #51 as Lucene reads it: a presentation selector ends an emoji unless a ZWJ and another one follow."""
    any_of = alphabet.any_of
    picture, modifier = any_of("emoji", "letter_emoji"), any_of("emoji_modifier")
    zwj, style = any_of("zwj"), any_of("emoji_style")
    extended = f"{any_of(*(name for name in _EXTENDING if not name.endswith('_style')))}*"
    element = rf"(?:{picture}{extended}{style}?|{modifier}{extended})"
    joined = rf"(?:{element}{zwj}+(?={picture})|{picture}{extended}{style}{zwj}(?={modifier}))*{element}"
    flag = rf"(?:{alphabet.extended('regional_indicator')}){{2}}"
    keycap = rf"{any_of('ascii_digit', 'keycap_base')}{extended}{style}?{any_of('keycap')}{extended}"
    return rf"(?:{zwj}+(?={picture}))?{joined}|{flag}|{keycap}"


_LETTERS = ("letter", "letter_emoji", "hebrew_letter")
_BEHIND_LETTERS = (
    "numeric", "ascii_digit", "katakana", "extend_num_let", "mid_letter", "mid_num_let", "single_quote",
    "double_quote",
)  # fmt: skip
"""With what a word may go on behind a letter."""


class _Rules:
    """The rules, for the letters of classes and, as most texts are ASCII, for such text itself: nothing extends there.

    The `scan` rules also run over connectors without a word; group 1 is the word.
    """

    @cached_property
    def _table(self) -> dict[str, list[tuple[int, int]]]:
        return {name: parse_ranges(ranges) for name, ranges in read_table("word_break.txt")}

    @cached_property
    def classes(self) -> _Classes:
        return _Classes(self._table)

    @cached_property
    def _alphabet(self) -> _Alphabet:
        return _Alphabet(self.classes.letters)

    @cached_property
    def word(self) -> re.Pattern[str]:
        return re.compile(_word_rule(self._alphabet))

    @cached_property
    def scan(self) -> re.Pattern[str]:
        connectors = self._alphabet.any_of("extend_num_let")
        return re.compile(rf"(?={self._start})({_word_rule(self._alphabet)})|{connectors}+")

    @cached_property
    def scan_ascii(self) -> re.Pattern[str]:
        inside = {
            name: as_set([(low, min(high, 0x7F)) for low, high in ranges if low <= 0x7F])
            for name, ranges in self._table.items()
        }
        alphabet = _Alphabet(inside)
        # Most words are letters behind which nothing stands that the rules look at.
        plain = f"{alphabet.any_of(*_LETTERS)}++(?!{alphabet.any_of(*_LETTERS, *_BEHIND_LETTERS)})"
        return re.compile(rf"(?=[A-Za-z0-9_])({plain}|{_word_rule(alphabet)})|_+")

    @cached_property
    def emoji(self) -> re.Pattern[str]:
        return re.compile(_emoji_rule(self._alphabet))

    @cached_property
    def has_emoji(self) -> re.Pattern[str]:
        return re.compile(self._alphabet.any_of(*_EMOJI))

    @cached_property
    def start(self) -> re.Pattern[str]:
        return re.compile(self._start)

    @property
    def _start(self) -> str:
        return self._alphabet.any_of(*(name for name in self.classes.letters if name not in _NO_START))


_RULES = _Rules()


def standard_tokenizer(options: Options) -> Tokenizer:
    """A tokenizer of type `standard`."""
    limit = token_limit(options)
    if limit == 1:  # a character beyond U+FFFF takes two code units, and Lucene's scanner stops at it
        raise options.not_supported("`max_token_length` 1")
    return StandardTokenizer(limit)
