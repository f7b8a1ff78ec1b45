"""The `standard` tokenizer: words by Unicode's rules, as Lucene's `StandardTokenizer` reads them.

The rules are those of UAX #29, "Unicode Text Segmentation", section 4 (WB4 to WB13b), in the form that Lucene's
grammar gives them: a token is the longest text from a place on that fits one of the rules below, and what fits
none stands between the words. Beyond UAX #29, each ideograph and each Hiragana character is a token, so is a run
of a Southeast Asian script, and an emoji by UTS #51 (with modifiers, joined by ZWJ, keycaps, flags).

Code points have classes in `data/word_break.txt`, each of them one at most. The rules are regular expressions; where a
text is not of ASCII, they are matched against the classes of its characters, a letter each, for expressions with all
of Unicode in them would take half a second to compile. Lucene looks at no more than `max_token_length` code units
from where a token begins; a longer word falls apart there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from searchapp.analysis.options import Options
from searchapp.analysis.tokenizers import Spans, SpanTokenizer, Tokenizer, code_units_end, token_limit
from searchapp.analysis.unicode_tables import as_set, parse_ranges, read_table


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
