"""Tokenizers, which divide a text into tokens.

A tokenizer returns spans in the characters of its text; `terms` is the fast path without spans. Each token has its
own position.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from searchapp.lucene.analysis.characters import (
    as_set,
    category_set,
    code_units_end,
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
from searchapp.lucene.analysis.options import JAVA_WHITESPACE, TRIMMED, Options
from searchapp.lucene.analysis.syntax_tree import ASCII

Spans = list[tuple[int, int]]


LETTER, DIGIT, CONNECTOR, IN_WORD, IN_NUMBER = (1 << bit for bit in range(5))


class AsciiRule(NamedTuple):
    """The rule by which compiled code divides ASCII texts into tokens, which `Tokenizer.normalize` changes.

    With `following`, it divides them into pieces, of which `Tokenizer.terms` makes the tokens.
    """

    classes: bytes  # of each character, as bits, see native/tokens.c
    limit: int = sys.maxsize  # the maximum length of a token
    following: bytes | None = None  # a bit for each pair of characters that may be adjacent in a piece
    has_spaces: bool = False  # whether a token may contain a space, or a piece next to any character


class Tokenizer:
    """Divides a text into tokens; a subclass defines `cut` or `spans`."""

    # Maximum length of a token in code units, at which the tokenizer stops reading; None if it always reads on.
    stops_after: int | None = None

    # Whether empty terms stand for tokens that it skips, with their positions.
    skips_tokens = False

    @cached_property
    def ascii_rule(self) -> AsciiRule | None:
        """The rule by which ASCII texts can be divided without this object; None if there is none."""
        return None

    def terms(self, text: str) -> list[str]:
        text, spans = self.cut(text)
        return [joined_units(text[start:end]) for start, end in spans]

    def cut(self, text: str) -> tuple[str, Spans]:
        """Return the text and the spans of its tokens.

        The returned text is in code units if a token may begin inside a surrogate pair.
        """
        return text, self.spans(text)

    def spans(self, text: str) -> Spans:
        raise NotImplementedError

    def types(self, _text: str, spans: Spans) -> list[str]:
        """Return the types of the tokens at these spans, as Lucene's filters read them."""
        return ["word"] * len(spans)

    def normalize(self, term: str) -> str:
        return term


class KeywordTokenizer(Tokenizer):
    """Returns the text as one token, even if it is empty (Lucene's `KeywordTokenizer`)."""

    def spans(self, text: str) -> Spans:
        return [(0, len(text))]


class RunTokenizer(Tokenizer):
    """Returns runs of characters of one kind, split after `limit` code units (Lucene's `CharTokenizer`)."""

    def __init__(self, kind: str, limit: int, lowercase: bool = False) -> None:
        self._pattern = re.compile(f"{kind}+")
        self._limit = limit
        self._lowercase = lowercase

    @cached_property
    def ascii_rule(self) -> AsciiRule:
        return _rule_of_runs(self._pattern.match, self._limit // 2)

    def terms(self, text: str) -> list[str]:
        terms: list[str] = self._pattern.findall(text)
        if max(map(len, terms), default=0) * 2 > self._limit:
            terms = super().terms(text)
        return [lower(term) for term in terms] if self._lowercase else terms

    def spans(self, text: str) -> Spans:
        return [span for match in self._pattern.finditer(text) for span in self._split(text, *match.span())]

    def normalize(self, term: str) -> str:
        return lower(term) if self._lowercase else term

    def _split(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        while utf16_length(text[start:end]) > self._limit:
            cut = code_units_end(text, start, self._limit)
            if utf16_length(text[start:cut]) < self._limit:
                cut += 1  # a surrogate pair that begins before the limit stays whole
            yield start, cut
            start = cut
        if start < end:
            yield start, end


class MatchTokenizer(Tokenizer):
    """Returns the matches of a pattern or of one group (Lucene's `PatternTokenizer` with a group)."""

    def __init__(self, pattern: JavaRegex, group: int) -> None:
        self._pattern = pattern
        self._group = group
        self.leaves_halves = pattern.leaves_halves

    @cached_property
    def ascii_rule(self) -> AsciiRule | None:
        if self._pattern.is_run and self._group == 0:
            return _rule_of_runs(self._pattern.match)
        pairs = self._pattern.adjacency
        if pairs is None:
            return None
        return AsciiRule(
            bytes(LETTER if pairs.first >> code & 1 else 0 for code in range(128)),
            following=b"".join((pairs.following[code] & ASCII).to_bytes(16, "little") for code in range(128)),
            has_spaces=any(characters >> ord(" ") & 1 for characters in (pairs.first, *pairs.following)),
        )

    def terms(self, text: str) -> list[str]:
        return super().terms(text) if self._pattern.splits(text) else self._find(text)

    @cached_property
    def _find(self) -> Callable[[str], list[str]]:  # compiles the pattern at the first use
        return self._pattern.text_finder(self._group)

    def cut(self, text: str) -> tuple[str, Spans]:
        text, matches = self._pattern.find_in_units(text)
        spans = (match.span(self._group) for match in matches)
        return text, [(start, end) for start, end in spans if start < end]


class SplitTokenizer(Tokenizer):
    """Returns the text between the matches of a pattern (Lucene's `PatternTokenizer` without a group)."""

    def __init__(self, pattern: JavaRegex) -> None:
        self._pattern = pattern
        self.leaves_halves = pattern.leaves_halves

    @cached_property
    def ascii_rule(self) -> AsciiRule | None:
        return _rule_of_runs(lambda char: not self._pattern.match(char)) if self._pattern.is_run else None

    def cut(self, text: str) -> tuple[str, Spans]:
        text, matches = self._pattern.find_in_units(text)
        spans = []
        start = 0
        for match in matches:
            spans.append((start, match.start))
            start = match.end
        return text, [(start, end) for start, end in (*spans, (start, len(text))) if start < end]


class SimplePatternTokenizer(Tokenizer):
    """Returns the longest matches of a sequence of characters and classes (Lucene's `SimplePatternTokenizer`).

    Args:
        pattern: the sequence, whose last element may be repeated.
        first: its first element.
    """

    leaves_halves = True

    def __init__(self, pattern: JavaRegex, first: JavaRegex) -> None:
        self._pattern = pattern
        self._first = first

    def cut(self, text: str) -> tuple[str, Spans]:
        if text.isascii() or not (has_astral(text) or has_halves(text)):
            return text, [match.span() for match in self._pattern.find(text)]
        units = utf16_units(text)
        return units, self._unit_spans(units)

    def _unit_spans(self, units: str) -> Spans:
        """Return the spans that Lucene finds in code units.

        A high surrogate pairs with any next code unit. After a partial match the search continues at the next code
        unit.
        """
        spans = []
        start = 0
        while start < len(units):
            text, ends = _paired_units(units, start)
            match = self._pattern.match(text)
            if match and match.end():
                spans.append((start, ends[match.end() - 1]))
                start = spans[-1][1]
            else:
                start = start + 1 if self._first.match(text) else ends[0]
        return spans


class GramTokenizer(Tokenizer):
    """Returns substrings, or prefixes with `edge`, of runs of characters (Lucene's `NGramTokenizer`)."""

    def __init__(self, kind: str, low: int, high: int, edge: bool) -> None:
        self._runs = re.compile(f"{kind}+", re.DOTALL)
        self._sizes = range(low, high + 1)
        self._edge = edge

    def spans(self, text: str) -> Spans:
        spans = []
        for run in self._runs.finditer(text):
            starts = range(run.start(), run.start() + 1 if self._edge else run.end())
            spans += [
                (start, start + size) for start in starts for size in self._sizes if start + size <= run.end()
            ]
        return spans


class PathTokenizer(Tokenizer):
    """Returns a path and its ancestors, or the parts at its end with `reverse` (`PathHierarchyTokenizer`)."""

    def __init__(self, delimiter: str, replacement: str, skip: int, reverse: bool) -> None:
        self._delimiter = delimiter
        self._replacement = replacement
        self._skip = skip
        self._reverse = reverse

    def spans(self, text: str) -> Spans:
        if self._reverse:
            ends = [match.end() for match in re.finditer(re.escape(self._delimiter), text)]
            cuts = sorted({0, *ends, len(text)})
            cuts = cuts[: max(len(cuts) - self._skip, 0)]
            return [(start, cuts[-1]) for start in cuts[:-1]]
        # A delimiter at the beginning is a part of the first name.
        delimiters = [
            match.start() for match in re.finditer(re.escape(self._delimiter), text) if match.start()
        ]
        starts = [0, *delimiters]
        if not text or self._skip >= len(starts):
            return []
        return [(starts[self._skip], end) for end in (*delimiters[self._skip :], len(text))]

    def normalize(self, term: str) -> str:
        return term.replace(self._delimiter, self._replacement)

    def terms(self, text: str) -> list[str]:
        return [self.normalize(term) for term in super().terms(text)]


def _rule_of_runs(is_in_token: Callable[[str], object], limit: int = sys.maxsize) -> AsciiRule:
    """Return the rule of tokens that are runs of characters of one kind."""
    classes = bytes(LETTER if is_in_token(chr(code)) else 0 for code in range(128))
    return AsciiRule(classes, limit, has_spaces=classes[ord(" ")] > 0)


def _paired_units(units: str, start: int) -> tuple[str, list[int]]:
    """Return the characters from a code unit on, with high surrogates paired with the next unit, and their ends."""
    characters: list[str] = []
    ends: list[int] = []
    end = start
    while end < len(units):
        unit = ord(units[end])
        end += 1
        if 0xD800 <= unit < 0xDC00:
            second = ord(units[end]) if end < len(units) else 0xFFFF
            unit = 0x10000 + ((unit - 0xD800) << 10) + second - 0xDC00
            end = min(end + 1, len(units))
        characters.append(chr(min(unit, 0x10FFFF)))
        ends.append(end)
    return "".join(characters), ends


_LARGEST_LIMIT = 1 << 20


def token_limit(options: Options, name: str = "max_token_length", default: int = 255) -> int:
    """Read the maximum length of a token in code units."""
    limit = options.integer(name, default)
    if not 1 <= limit <= _LARGEST_LIMIT:
        raise options.bad(f"`{name}` must be from 1 to {_LARGEST_LIMIT}, not {limit}")
    return limit


def whitespace_tokenizer(options: Options) -> Tokenizer:
    """Make a tokenizer of type `whitespace`."""
    return RunTokenizer(f"[^{JAVA_WHITESPACE}]", token_limit(options))


def letter_tokenizer(_options: Options) -> Tokenizer:
    """Make a tokenizer of type `letter`, by Java's `Character.isLetter`."""
    return RunTokenizer(f"[{category_set('L')}]", 255)


def lowercase_tokenizer(_options: Options) -> Tokenizer:
    """Make a tokenizer of type `lowercase`: runs of letters, in lower case."""
    return RunTokenizer(f"[{category_set('L')}]", 255, lowercase=True)


def keyword_tokenizer(options: Options) -> Tokenizer:
    """Make a tokenizer of type `keyword`."""
    token_limit(options, "buffer_size", 256)  # does not affect tokens
    return KeywordTokenizer()


def gram_sizes(options: Options, edge: bool) -> tuple[int, int]:
    """Read the settings `min_gram` and `max_gram`, in characters."""
    low, high = options.integer("min_gram", 1), options.integer("max_gram", 2)
    if not 1 <= low <= high:
        raise options.bad(f"`min_gram` {low} must be at least 1 and at most `max_gram` {high}")
    if not edge:
        options.require_range(low, high, "max_ngram_diff")
    return low, high


# Content of brackets for names of Elasticsearch.
_CHARACTER_CLASSES: Mapping[str, Callable[[], str]] = {
    "letter": lambda: category_set("L"),
    "digit": lambda: category_set("Nd"),
    "whitespace": lambda: JAVA_WHITESPACE,
    "punctuation": lambda: category_set("P"),
    "symbol": lambda: category_set("S"),
}


def gram_tokenizer(options: Options, edge: bool) -> Tokenizer:
    """Make a tokenizer of type `ngram` or `edge_ngram`."""
    low, high = gram_sizes(options, edge)
    kinds = []
    for name in (name.strip(TRIMMED).lower() for name in options.strings("token_chars", [])):
        if name == "custom":
            custom = options.text("custom_token_chars")
            if not custom or has_astral(custom):
                raise options.not_supported(f"`custom_token_chars` {custom!r}")
            kinds.append(re.escape(custom))
        elif name in _CHARACTER_CLASSES:
            kinds.append(_CHARACTER_CLASSES[name]())
        else:
            raise options.not_supported(f"the characters {name!r} in `token_chars`")
    return GramTokenizer(f"[{''.join(kinds)}]" if kinds else ".", low, high, edge)


_ESCAPED = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f", "\\\\": "\\"}


def char_group_tokenizer(options: Options) -> Tokenizer:
    """Make a tokenizer of type `char_group`: the text between some characters."""
    kinds = []
    for name in options.strings("tokenize_on_chars", []):
        if utf16_length(name) == 1 or name in _ESCAPED:
            kinds.append(re.escape(_ESCAPED.get(name, name)))
        elif name in _CHARACTER_CLASSES:
            kinds.append(_CHARACTER_CLASSES[name]())
        else:
            raise options.not_supported(f"the characters {name!r} in `tokenize_on_chars`")
    return RunTokenizer(f"[^{''.join(kinds)}]" if kinds else r"[\s\S]", token_limit(options))


def pattern_tokenizer(options: Options) -> Tokenizer:
    """Make a tokenizer of type `pattern`; without a group, the pattern matches separators."""
    group = options.integer("group", -1)
    pattern = compile_java(options, default=r"\W+")
    if group > pattern.groups:
        raise options.bad(f"`group` is {group}, but the pattern has {pattern.groups}")
    if group > 0:
        pattern.check_groups(options)
    return MatchTokenizer(pattern, group) if group >= 0 else SplitTokenizer(pattern)


def path_tokenizer(options: Options) -> Tokenizer:
    """Make a tokenizer of type `path_hierarchy`."""
    delimiter = options.text("delimiter", "/")
    replacement = options.text("replacement", delimiter)
    for name, character in (("delimiter", delimiter), ("replacement", replacement)):
        if utf16_length(character) != 1:
            raise options.bad(f"`{name}` must be one character, not {character!r}")
    skip = options.integer("skip", 0)
    if skip < 0:
        raise options.bad(f"`skip` must not be negative, but is {skip}")
    token_limit(options, "buffer_size", 1024)  # does not affect tokens
    return PathTokenizer(delimiter, replacement, skip, options.boolean("reverse", False))


# An element with the same meaning in Lucene's RegExp and in Java: a character, an escaped character, or a class.
_SIMPLE_ELEMENT = (
    r"(?:[A-Za-z0-9 _,;:!%=/'-]|\\[^A-Za-z0-9\s]"
    r"|\[\^?(?:[A-Za-z0-9 _]-[A-Za-z0-9 _]|[A-Za-z0-9 _.,;:!?])+\])"
)
_SIMPLE_PATTERN = re.compile(
    rf"({_SIMPLE_ELEMENT})(?:{_SIMPLE_ELEMENT})*(?:\+|\{{[1-9][0-9]*(?:,[0-9]*)?\}})?"
)


def simple_pattern_tokenizer(options: Options) -> Tokenizer:
    """Make a tokenizer of type `simple_pattern`: the longest matches of a Lucene `RegExp`.

    Supports sequences of characters and classes, of which the last may be repeated.
    """
    options.refuse("flags")
    source = options.text("pattern", "")
    match = _SIMPLE_PATTERN.fullmatch(source)
    if not match:
        raise options.not_supported(f"the pattern {source!r}")
    first = Options(options.piece, {"pattern": match[1]})
    return SimplePatternTokenizer(compile_java(options), compile_java(first))


class StandardTokenizer(Tokenizer):
    """Returns the longest words, numbers, ideographs and emoji of at most `limit` code units.

    Source: UAX #29, "Unicode Text Segmentation", section 4 (WB4 to WB13b). Additional tokens are each ideograph and
    Hiragana character, each run of a Southeast Asian script, and each emoji by UTS #51.
    """

    def __init__(self, limit: int) -> None:
        self._limit = self.stops_after = limit

    @cached_property
    def ascii_rule(self) -> AsciiRule | None:
        return AsciiRule(STANDARD_RULES.ascii_classes, self._limit // 2)

    def terms(self, text: str) -> list[str]:
        if not text.isascii():
            return super().terms(text)
        terms = [term for term in STANDARD_RULES.scan_ascii.findall(text) if term]
        return terms if self._are_short(map(len, terms)) else super().terms(text)

    def spans(self, text: str) -> Spans:
        is_ascii = text.isascii()
        classes = text if is_ascii else text.translate(STANDARD_RULES.classes)
        if is_ascii or not STANDARD_RULES.has_emoji.search(classes):  # the word rule suffices
            scan = STANDARD_RULES.scan_ascii if is_ascii else STANDARD_RULES.scan
            spans = [match.span(1) for match in scan.finditer(classes) if match[1]]
            if self._are_short(end - start for start, end in spans):
                return spans
        return self._longest_matches(text, text.translate(STANDARD_RULES.classes))

    def types(self, text: str, spans: Spans) -> list[str]:
        return [STANDARD_RULES.type_of(text[start:end]) for start, end in spans]

    def _are_short(self, lengths: Iterable[int]) -> bool:
        return max(lengths, default=0) * 2 <= self._limit  # a character has at most two code units

    def _longest_matches(self, text: str, classes: str) -> Spans:
        """Return the spans where a word and an emoji may begin at the same index, or a word may be too long."""
        spans = []
        start = 0
        while candidate := STANDARD_RULES.start.search(classes, start):
            start = candidate.start()
            stop = code_units_end(text, start, self._limit)
            end = STANDARD_RULES.longest(classes, start, stop)
            if end > start:
                spans.append((start, end))
            start = max(end, start + 1)
        return spans


# fmt: off
_EXTENDING = (
    "extend", "zwj", "keycap", "text_style", "emoji_style", "emoji_modifier", "complex_context_extend",
)
_HANGUL = (  # letters of the script
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7c6\ud7cb-\ud7fb"
    "\uffa0-\uffbe\uffc2-\uffc7\uffca-\uffcf\uffd2-\uffd7\uffda-\uffdc"
)
_NO_START = ("mid_letter", "mid_num_let", "single_quote", "double_quote", "mid_num", "extend")
_EMOJI = ("emoji", "letter_emoji", "emoji_modifier", "regional_indicator", "keycap")
_LETTERS = ("letter", "letter_emoji", "hebrew_letter")
# Classes that may continue a word after a letter.
_AFTER_LETTERS = (
    "numeric", "ascii_digit", "katakana", "extend_num_let", "mid_letter", "mid_num_let", "single_quote",
    "double_quote",
)
# fmt: on


# Expressions with all of Unicode instead of class letters would take half a second to compile.
class _ClassLetters(dict[int, str]):
    NONE = " "

    def __init__(self, table: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        super().__init__()
        self.letters = {name: chr(ord("A") + number) for number, name in enumerate(table)}
        self._ranges = sorted(
            (*span, self.letters[name]) for name, ranges in table.items() for span in ranges
        )
        self._begins = [low for low, _high, _letter in self._ranges]

    def __missing__(self, code: int) -> str:
        index = bisect_right(self._begins, code) - 1
        _low, high, letter = self._ranges[index] if index >= 0 else (0, -1, self.NONE)
        self[code] = letter if code <= high else self.NONE
        return self[code]


class _Alphabet:
    """Bracket expressions for classes of characters.

    Args:
        contents: the content of the brackets for each class; empty for a class without characters.
    """

    def __init__(self, contents: Mapping[str, str]) -> None:
        self._contents = contents

    def any_of(self, *names: str) -> str:
        contents = "".join(self._contents[name] for name in names)
        return f"[{contents}]" if contents else "(?!)"

    def extended(self, *names: str) -> str:
        """Return the expression for a character of these classes and its extending characters (WB4)."""
        extending = self.any_of(*_EXTENDING)
        return self.any_of(*names) + ("" if extending == "(?!)" else f"{extending}*")


def _word_rule(alphabet: _Alphabet) -> str:
    """Return the rules WB4 to WB13b of UAX #29, and rules for scripts that need a dictionary."""
    extended = alphabet.extended
    letter = extended("letter", "letter_emoji", "hebrew_letter")
    plain, hebrew = extended("letter", "letter_emoji"), extended("hebrew_letter")
    number = extended("numeric", "ascii_digit")
    katakana = extended("katakana")
    connector = extended("extend_num_let")
    in_word = extended("mid_letter", "mid_num_let", "single_quote")
    in_number = extended("mid_num", "mid_num_let", "single_quote")

    part = (
        rf"(?:{hebrew}{extended('double_quote')}{hebrew}"  # WB7b, WB7c
        rf"|{hebrew}{extended('single_quote')}"  # WB7a
        rf"|{letter}(?:{in_word}{letter}|{plain})*"  # WB5, WB6, WB7
        rf"|{number}(?:{in_number}{number}|{number})*)"  # WB8, WB11, WB12
    )
    # WB9, WB10, WB13: adjacent parts; WB13a, WB13b: connectors before, between and after
    run = rf"(?:{katakana}(?:(?:{connector})*{katakana})*|{part}(?:(?:{connector})*{part})*)"
    word = rf"(?:{connector})*{run}(?:(?:{connector})+{run})*(?:{connector})*"
    southeast_asian = rf"(?:{extended('complex_context', 'complex_context_extend')})+"
    return rf"{word}|{southeast_asian}|{extended('ideographic', 'hiragana')}"


def _emoji_rule(alphabet: _Alphabet) -> str:
    """Return UTS #51 as Lucene implements it: a presentation selector ends an emoji unless ZWJ and emoji follow."""
    any_of = alphabet.any_of
    picture, modifier = any_of("emoji", "letter_emoji"), any_of("emoji_modifier")
    zwj, style = any_of("zwj"), any_of("emoji_style")
    extended = f"{any_of(*(name for name in _EXTENDING if not name.endswith('_style')))}*"
    element = rf"(?:{picture}{extended}{style}?|{modifier}{extended})"
    joined = rf"(?:{element}{zwj}+(?={picture})|{picture}{extended}{style}{zwj}(?={modifier}))*{element}"
    flag = rf"(?:{alphabet.extended('regional_indicator')}){{2}}"
    keycap = rf"{any_of('ascii_digit', 'keycap_base')}{extended}{style}?{any_of('keycap')}{extended}"
    return rf"(?:{zwj}+(?={picture}))?{joined}|{flag}|{keycap}"


class _Rules:
    """The rules for class letters, and for ASCII text, in which no character extends another.

    The `scan` rules also match connectors without a word; group 1 is the word.
    """

    @cached_property
    def _table(self) -> dict[str, list[tuple[int, int]]]:
        return {name: parse_ranges(ranges) for name, ranges in read_table("word_break.txt")}

    @cached_property
    def classes(self) -> _ClassLetters:
        return _ClassLetters(self._table)

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
        contents = {
            name: as_set([(low, min(high, 0x7F)) for low, high in ranges if low <= 0x7F])
            for name, ranges in self._table.items()
        }
        alphabet = _Alphabet(contents)
        # Most words are letters, followed by a character that no rule mentions.
        plain = f"{alphabet.any_of(*_LETTERS)}++(?!{alphabet.any_of(*_LETTERS, *_AFTER_LETTERS)})"
        return re.compile(rf"(?=[A-Za-z0-9_])({plain}|{_word_rule(alphabet)})|_+")

    @cached_property
    def ascii_classes(self) -> bytes:
        """The classes of ASCII characters for native/tokens.c."""
        bits = dict.fromkeys(_LETTERS, LETTER) | {"numeric": DIGIT, "ascii_digit": DIGIT}
        bits |= {"extend_num_let": CONNECTOR, "mid_letter": IN_WORD, "mid_num": IN_NUMBER}
        bits |= dict.fromkeys(("mid_num_let", "single_quote"), IN_WORD | IN_NUMBER)
        classes = bytearray(128)
        for name, ranges in self._table.items():
            for low, high in ranges:
                for code in range(low, min(high, 0x7F) + 1):
                    classes[code] |= bits.get(name, 0)
        return bytes(classes)

    @cached_property
    def emoji(self) -> re.Pattern[str]:
        return re.compile(_emoji_rule(self._alphabet))

    @cached_property
    def has_emoji(self) -> re.Pattern[str]:
        return re.compile(self._alphabet.any_of(*_EMOJI))

    @cached_property
    def start(self) -> re.Pattern[str]:
        return re.compile(self._start)

    def longest(self, classes: str, start: int, stop: int) -> int:
        """Return the end of the longest word or emoji at an index; the index if there is none."""
        matches = (rule.match(classes, start, stop) for rule in (self.word, self.emoji))
        return max((match.end() for match in matches if match), default=start)

    @cached_property
    def _types(self) -> dict[str, re.Pattern[str]]:
        """The rules of the types except `<ALPHANUM>`, for class letters; of several that match, the first counts."""
        extended = self._alphabet.extended
        number, connector = extended("numeric", "ascii_digit"), extended("extend_num_let")
        in_number = extended("mid_num", "mid_num_let", "single_quote")
        return {
            "<EMOJI>": self.emoji,
            "<NUM>": re.compile(
                rf"(?:{connector})*{number}(?:(?:(?:{connector})*|{in_number}){number})*(?:{connector})*"
            ),
            "<KATAKANA>": re.compile(rf"(?:{extended('katakana')})+"),
            "<SOUTHEAST_ASIAN>": re.compile(rf"(?:{extended('complex_context', 'complex_context_extend')})+"),
            "<IDEOGRAPHIC>": re.compile(extended("ideographic")),
            "<HIRAGANA>": re.compile(extended("hiragana")),
        }

    @cached_property
    def _hangul(self) -> re.Pattern[str]:
        """The rule of Hangul; class letters do not distinguish it from other letters."""
        extending = "".join(as_set(self._table[name]) for name in _EXTENDING)
        return re.compile(f"(?:[{_HANGUL}][{extending}]*)+")

    def type_of(self, token: str) -> str:
        """Return the type of a token of the standard tokenizer."""
        classes = token.translate(self.classes)
        for type_, rule in self._types.items():
            if rule.fullmatch(classes):
                return type_
        return "<HANGUL>" if not token.isascii() and self._hangul.fullmatch(token) else "<ALPHANUM>"

    @property
    def _start(self) -> str:
        return self._alphabet.any_of(*(name for name in self.classes.letters if name not in _NO_START))


STANDARD_RULES = _Rules()


def standard_tokenizer(options: Options) -> Tokenizer:
    """Make a tokenizer of type `standard`."""
    limit = token_limit(options)
    if limit == 1:  # a character beyond U+FFFF is two code units, at which Lucene's scanner stops
        raise options.not_supported("`max_token_length` 1")
    return StandardTokenizer(limit)
