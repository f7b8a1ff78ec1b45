"""The tokenizer `classic` and the filter for its tokens.

Source: org.apache.lucene.analysis.classic.{ClassicTokenizer, ClassicTokenizerImpl, ClassicFilter}
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import ClassVar

from searchapp.lucene.analysis.characters import as_set, merge_ranges, parse_ranges
from searchapp.lucene.analysis.options import Options
from searchapp.lucene.analysis.token_filters import StreamFilter, TokenStream
from searchapp.lucene.analysis.tokenizers import Spans, Tokenizer, token_limit

_CHINESE_JAPANESE = "3100-312f 3040-30ff 31f0-31ff 3300-337f 3400-4dbf 4e00-9fff f900-faff ff65-ff9f"
_THAI = "e00-e59"

# Letters of Unicode 3.2 that Unicode 3.0 lacks, which the tokenizer reads.
_NEWER = (
    "220 3d8-3d9 3f4-3f5 48a-48b 4c5-4c6 4c9-4ca 4cd-4ce 500-50f 66e-66f 7b1 b83 10f7-10f8 1700-170c 170e-1711 "
    "1720-1731 1740-1751 1760-176c 176e-1770 17d7 17dc 2071 213d-213f 2145-2149 303b-303c fe73"
)

_ALPHANUM, _APOSTROPHE, _ACRONYM, _HOST, _CJ = "<ALPHANUM>", "<APOSTROPHE>", "<ACRONYM>", "<HOST>", "<CJ>"
_HOST_AND_DOT = "host and a dot"


def _in(ranges: str) -> set[int]:
    return {code for low, high in parse_ranges(ranges) for code in range(low, high + 1)}


def _characters(codes: set[int]) -> str:
    return as_set(merge_ranges([(code, code) for code in codes]))


@cache
def _rules() -> tuple[re.Pattern[str], re.Pattern[str], list[tuple[str, re.Pattern[str]]]]:
    """Return patterns of the start of a token and of a word that is a token, and all rules with their types.

    The longest match counts, and of equal ones the first.
    """
    category = unicodedata.ucd_3_2_0.category
    asian = _in(_CHINESE_JAPANESE)
    letters = {code for code in range(0x10000) if category(chr(code))[0] == "L"} - asian - _in(_NEWER)
    digits = {code for code in range(0x10000) if category(chr(code)) == "Nd"}
    letter, digit, cj = _characters(letters), _characters(digits), f"[{_characters(asian)}]"
    word = _characters(letters | digits | _in(_THAI))
    a, p = f"[{word}]++", "[-_/.,]"  # a part, and punctuation between parts
    d = f"[{letter}{digit}]*[{digit}][{letter}{digit}]*"  # a part with a digit
    rules = [
        (_ALPHANUM, a),
        (_APOSTROPHE, f"[{letter}]++(?:'[{letter}]++)+"),
        (_ACRONYM, rf"[{letter}]\.(?:[{letter}]\.)+"),
        ("<COMPANY>", f"[{letter}]++[&@][{letter}]++"),
        ("<EMAIL>", rf"{a}(?:[-._]{a})*@{a}(?:[-.]{a})+"),
        (_HOST, rf"{a}(?:\.{a})+"),
        *(
            ("<NUM>", rule)
            for rule in (
                *(f"{a}{p}{d}", f"{d}{p}{a}", f"{a}(?:{p}{d}{p}{a})+", f"{d}(?:{p}{a}{p}{d})+"),
                *(f"{a}{p}{d}(?:{p}{a}{p}{d})+", f"{d}{p}{a}(?:{p}{d}{p}{a})+"),
            )
        ),
        (_CJ, cj),
        (_HOST_AND_DOT, rf"{a}\.(?:{a}\.)+"),
    ]
    return (
        re.compile(f"[{word}]|{cj}"),
        re.compile(rf"{a}(?![-'.&@_/,])"),
        [(type_, re.compile(rule)) for type_, rule in rules],
    )


class ClassicTokenizer(Tokenizer):
    """Returns words, acronyms, hosts, addresses and numbers; an empty term for a token longer than `limit`."""

    skips_tokens = True

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def terms(self, text: str) -> list[str]:
        return [self.normalize(text[start:end]) for start, end in self.spans(text)]

    def spans(self, text: str) -> Spans:
        return [(start, end) for start, end, _type in self._matches(text)]

    def types(self, text: str, spans: Spans) -> list[str]:  # noqa: ARG002
        return [_HOST if type_ == _HOST_AND_DOT else type_ for _start, _end, type_ in self._matches(text)]

    def normalize(self, term: str) -> str:
        if len(term) > self._limit:
            return ""
        return term[:-1] if term.endswith(".") and not dict(_rules()[2])[_ACRONYM].fullmatch(term) else term

    def _matches(self, text: str) -> Iterator[tuple[int, int, str]]:
        starts, words, rules = _rules()
        end = 0
        while match := starts.search(text, end):
            start = match.start()
            if word := words.match(text, start):
                end, type_ = word.end(), _ALPHANUM
            else:
                ends: Sequence[tuple[int, str]] = [
                    (match.end(), type_) for type_, rule in rules if (match := rule.match(text, start))
                ]
                end, type_ = max(ends, key=lambda found: found[0])
            yield start, end, type_


def classic_tokenizer(options: Options) -> Tokenizer:
    """Make a tokenizer of type `classic`."""
    return ClassicTokenizer(token_limit(options))


class ClassicFilter(StreamFilter):
    """Remove `'s` from words and dots from acronyms."""

    keeps_types: ClassVar[bool] = True
    needs_types: ClassVar[bool] = True

    def __init__(self, _options: Options) -> None:
        pass

    def apply(self, tokens: TokenStream) -> TokenStream:
        assert tokens.types is not None
        for index, (term, type_) in enumerate(zip(tokens.terms, tokens.types, strict=True)):
            if type_ == _APOSTROPHE and term.endswith(("'s", "'S")):
                tokens.terms[index] = term[:-2]
            elif type_ == _ACRONYM:
                tokens.terms[index] = term.replace(".", "")
        return tokens
