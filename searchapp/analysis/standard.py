"""The `standard` tokenizer: words by Unicode's rules, as Lucene's `StandardTokenizer` reads them.

The rules are those of UAX #29, "Unicode Text Segmentation", section 4 (WB4 to WB13b), in the form that Lucene's
grammar gives them: a token is the longest text from a place on that fits one of the rules below, and what fits
none stands between the words. Beyond UAX #29, each ideograph and each Hiragana character is a token, so is a run
of a Southeast Asian script, and an emoji by UTS #51 (with modifiers, joined by ZWJ, keycaps, flags).

Code points have classes in `data/word_break.txt`. Lucene looks at no more than `max_token_length` code units from
where a token begins; a longer word falls apart there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, cached_property

from searchapp.analysis.options import Options
from searchapp.analysis.tokenizers import Spans, SpanTokenizer, Tokenizer, code_units_end, token_limit
from searchapp.analysis.unicode_tables import as_set, merged, parse_ranges, read_table


class StandardTokenizer(SpanTokenizer):
    """Words, numbers, ideographs, emoji; `limit` is the length of the longest token in code units."""

    def __init__(self, limit: int) -> None:
        self._limit = self.stops_after = limit

    def terms(self, text: str) -> list[str]:
        scan = self._scan(text)
        if scan is None:
            return super().terms(text)
        found = [term for term in scan.findall(text) if term]
        return found if self._all_short(map(len, found)) else super().terms(text)

    def spans(self, text: str) -> Spans:
        if scan := self._scan(text):
            found = [match.span(1) for match in scan.finditer(text) if match[1]]
            if self._all_short(end - start for start, end in found):
                return found
        return self._longest_matches(text)

    def _scan(self, text: str) -> re.Pattern[str] | None:
        """The rule that is enough for this text, if it is enough to look for words."""
        if text.isascii():
            return _RULES.scan_ascii
        return None if _RULES.has_emoji.search(text) else _RULES.scan

    def _all_short(self, lengths: Iterable[int]) -> bool:
        """Whether nothing needs to be cut, even if each character should be two code units."""
        return max(lengths, default=0) * 2 <= self._limit

    def _longest_matches(self, text: str) -> Spans:
        """The spans where a word and an emoji may begin at one place, or a word may be too long."""
        spans = []
        at = 0
        while next_start := _RULES.start.search(text, at):
            at = next_start.start()
            stop = code_units_end(text, at, self._limit)
            rules = (_RULES.word, _RULES.emoji)
            end = max((match.end() for rule in rules if (match := rule.match(text, at, stop))), default=at)
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


class _Alphabet:
    """Bracket expressions for classes of code points, of all of Unicode or of ASCII alone.

    Most text is ASCII, and the rules for it are much shorter: nothing extends a character.
    """

    def __init__(self, ascii_only: bool = False) -> None:
        last = 0x7F if ascii_only else 0x10FFFF
        self.classes = {
            name: [(low, min(high, last)) for low, high in parse_ranges(ranges) if low <= last]
            for name, ranges in read_table("word_break.txt")
        }

    def any_of(self, *names: str) -> str:
        """One character of these classes."""
        ranges = merged([pair for name in names for pair in self.classes[name]])
        return f"[{as_set(ranges)}]" if ranges else "(?!)"

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


class _Rules:
    """The rules, each compiled when a text first needs it: that takes a fifth of a second, and most texts are ASCII.

    The `scan` rules also run over connectors without a word; group 1 is the word.
    """

    @cached_property
    def word(self) -> re.Pattern[str]:
        return re.compile(_word_rule(_unicode()))

    @cached_property
    def scan(self) -> re.Pattern[str]:
        connectors = _unicode().any_of("extend_num_let")
        return re.compile(rf"(?={_start(_unicode())})({_word_rule(_unicode())})|{connectors}+")

    @cached_property
    def scan_ascii(self) -> re.Pattern[str]:
        return re.compile(rf"(?=[A-Za-z0-9_])({_word_rule(_Alphabet(ascii_only=True))})|_+")

    @cached_property
    def emoji(self) -> re.Pattern[str]:
        return re.compile(_emoji_rule(_unicode()))

    @cached_property
    def has_emoji(self) -> re.Pattern[str]:
        return re.compile(_unicode().any_of(*_EMOJI))

    @cached_property
    def start(self) -> re.Pattern[str]:
        return re.compile(_start(_unicode()))


def _start(alphabet: _Alphabet) -> str:
    return alphabet.any_of(*(name for name in alphabet.classes if name not in _NO_START))


@cache
def _unicode() -> _Alphabet:
    return _Alphabet()


_RULES = _Rules()


def standard_tokenizer(options: Options) -> Tokenizer:
    """A tokenizer of type `standard`."""
    limit = token_limit(options)
    if limit == 1:  # a character beyond U+FFFF takes two code units, and Lucene's scanner stops at it
        raise options.not_supported("`max_token_length` 1")
    return StandardTokenizer(limit)
