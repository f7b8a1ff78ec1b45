"""The token filters `word_delimiter_graph` and `word_delimiter`, which split words: "Wi-Fi500" is Wi, Fi, 500.

    org.apache.lucene.analysis.miscellaneous.{WordDelimiterIterator, WordDelimiterGraphFilter, WordDelimiterFilter}

Words are split in UTF-16 code units. Concatenations of subwords are added to them, or replace them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import ClassVar, NamedTuple

from searchapp.lucene.analysis.char_filters import rule_sides
from searchapp.lucene.analysis.characters import category_ranges, joined_units, utf16_length, utf16_units
from searchapp.lucene.analysis.options import Options
from searchapp.lucene.analysis.token_filters import (
    Span,
    StreamFilter,
    TermMemo,
    TokenRow,
    TokenStream,
    word_set,
)
from searchapp.lucene.dataclass import dataclass

# Types of characters, as bits.
_LOWER, _UPPER, _DIGIT, _DELIMITER = 1, 2, 4, 8
_LETTER = _LOWER | _UPPER
_TYPES = {
    "LOWER": _LOWER,
    "UPPER": _UPPER,
    "ALPHA": _LETTER,
    "DIGIT": _DIGIT,
    "ALPHANUM": _LETTER | _DIGIT,
    "SUBWORD_DELIM": _DELIMITER,
}
_CATEGORIES = {
    "Lu": _UPPER,
    "Ll": _LOWER,
    **dict.fromkeys(("Lt", "Lm", "Lo", "Mn", "Me", "Mc"), _LETTER),
    **dict.fromkeys(("Nd", "Nl", "No"), _DIGIT),
    "Cs": _LETTER | _DIGIT,
}


@cache
def _types_by_category() -> bytes:
    types = bytearray([_DELIMITER]) * 0x10000
    for category, type_ in _CATEGORIES.items():
        for low, high in category_ranges(category):
            if low < len(types):
                end = min(high + 1, len(types))
                types[low:end] = bytes([type_]) * (end - low)
    return bytes(types)


def _type_table(options: Options) -> bytes:
    """Return the type of each code unit; without `type_table`, Latin-1 has other numbers and small letters."""
    types = bytearray(_types_by_category())
    if "type_table" not in options:
        for code in (0xAA, 0xBA):
            types[code] = _LOWER
        for code in (0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE):
            types[code] = _DELIMITER
        return bytes(types)
    for rule in options.strings("type_table"):
        character, type_ = rule_sides(rule, options)
        if utf16_length(character) != 1 or type_ not in _TYPES:
            raise options.bad(f"the rule {rule!r} is not of the form: character => {' or '.join(_TYPES)}")
        types[ord(character)] = _TYPES[type_]
    return bytes(types)


class _Subword(NamedTuple):
    start: int
    end: int
    type: int


class _Part(NamedTuple):
    """A subword or a concatenation of them."""

    text: str
    start: int  # in the term, in code units
    end: int
    first: int = 0  # position of the first subword
    last: int = 1  # position after the last subword
    is_concatenation: bool = False
    is_alone: bool = False  # whether the term has only delimiters besides


@dataclass(slots=True)
class _Concatenation:
    type: int
    start: int
    first: int
    text: str = ""
    end: int = 0
    count: int = 0

    def part(self, last: int) -> _Part:
        return _Part(self.text, self.start, self.end, self.first, last, True)


class _WordDelimiter(StreamFilter):
    """Settings of both filters, and the division of a term into subwords."""

    def __init__(self, options: Options) -> None:
        self._types = _type_table(options)
        self._splits_case = options.boolean("split_on_case_change", True)
        self._splits_numbers = options.boolean("split_on_numerics", True)
        self._drops_possessive = options.boolean("stem_english_possessive", True)
        self._keeps_original = options.boolean("preserve_original", False)
        self._catenates_all = options.boolean("catenate_all", False)
        self._generated = self._selected(options, "generate_word_parts", "generate_number_parts", True)
        self._catenated = self._selected(options, "catenate_words", "catenate_numbers", False)
        self._is_protected = word_set(options, "protected_words", [])
        # The parts of each term; None for a term that stays.
        self._parts = TermMemo(self._parts_of)

    @staticmethod
    def _selected(options: Options, words: str, numbers: str, default: bool) -> int:
        types = _LETTER if options.boolean(words, default) else 0
        return types | (_DIGIT if options.boolean(numbers, default) else 0)

    def _parts_of(self, term: str) -> Sequence[_Part | None] | None:
        units = utf16_units(term)
        subwords, is_single = self._subwords(units)
        if self._is_protected(term) or (subwords and subwords[0][:2] == (0, len(units))):
            return None
        parts: Sequence[_Part | None] = []
        if is_single:
            start, end, _type = subwords[0]
            parts = [_Part(units[start:end], start, end, is_alone=True)]
        elif subwords:
            parts = self._combined(units, subwords)
        if subwords:
            parts = self._completed(units, parts)
        return [part and part._replace(text=joined_units(part.text)) for part in parts]

    def _completed(self, units: str, parts: Sequence[_Part | None]) -> Sequence[_Part | None]:  # noqa: ARG002
        return parts

    @abstractmethod
    def _combined(self, units: str, subwords: Sequence[_Subword]) -> Sequence[_Part | None]:
        """Return the parts of a term of several subwords."""

    def _subwords(self, units: str) -> tuple[list[_Subword], bool]:
        """Return the subwords, and whether there is one with only delimiters around it."""
        types = [self._types[ord(unit)] for unit in units]
        first, stop = 0, len(units)
        while first < stop and types[first] & _DELIMITER:
            first += 1
        while stop > first and types[stop - 1] & _DELIMITER:
            stop -= 1

        def ends_possessive(end: int) -> bool:
            return (
                self._drops_possessive
                and end > 2
                and units[end - 2] == "'"
                and units[end - 1] in "sS"
                and types[end - 3] & _LETTER > 0
                and (end == stop or types[end] & _DELIMITER > 0)
            )

        subwords: list[_Subword] = []
        start = first
        while start < stop:
            if types[start] & _DELIMITER:
                start += 1
                continue
            end = start + 1
            while end < stop and not self._is_break(types[end - 1], types[end]):
                end += 1
            type_ = types[start]
            subwords.append(_Subword(start, end, _LETTER if type_ in (_LOWER, _UPPER) else type_))
            start = end + 2 if end < stop - 1 and ends_possessive(end + 2) else end
        single_end = stop - 2 if ends_possessive(stop) else stop
        return subwords, bool(subwords) and subwords[0][:2] == (first, single_end)

    def _is_break(self, before: int, type_: int) -> bool:
        if type_ & before:
            return False
        if before & _LETTER and type_ & _LETTER:
            return self._splits_case and not before & _UPPER
        if (before & _LETTER and type_ & _DIGIT) or (before & _DIGIT and type_ & _LETTER):
            return self._splits_numbers
        return True

    @staticmethod
    def _extend(
        concatenation: _Concatenation | None, units: str, subword: _Subword, position: int
    ) -> _Concatenation:
        concatenation = concatenation or _Concatenation(subword.type, subword.start, position)
        concatenation.text += units[subword.start : subword.end]
        concatenation.end = subword.end
        concatenation.count += 1
        return concatenation


class WordDelimiterGraphFilter(_WordDelimiter):
    """Split words; a concatenation or the original word spans the positions of its subwords."""

    branches: ClassVar[bool] = True

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._adjusts_offsets = options.boolean("adjust_offsets", True)
        self._skips_keywords = options.boolean("ignore_keywords", False)

    def _combined(self, units: str, subwords: Sequence[_Subword]) -> Sequence[_Part]:
        parts: list[_Part] = []
        run: _Concatenation | None = None
        whole: _Concatenation | None = None
        position = last_count = 0

        def flush(run: _Concatenation) -> None:
            nonlocal position, last_count
            position += position == run.first  # its subwords are no parts
            last_count = run.count
            if run.count > 1 or not run.type & self._generated:
                parts.append(run.part(position))

        for subword in subwords:
            start, end, type_ = subword
            if run and not run.type & type_:
                flush(run)
                run = None
            if type_ & self._catenated:
                run = self._extend(run, units, subword, position)
            if self._catenates_all:
                whole = self._extend(whole, units, subword, position)
            if type_ & self._generated:
                parts.append(_Part(units[start:end], start, end, position, position + 1))
                position += 1
        if run:
            flush(run)
        if whole and whole.count > last_count:
            position += position == whole.first
            parts.append(whole.part(position))
        return sorted(parts, key=lambda part: (part.start, -part.end))

    def _completed(self, units: str, parts: Sequence[_Part | None]) -> Sequence[_Part | None]:
        """Add the original word."""
        if not self._keeps_original:
            return parts
        last = max((part.last for part in parts if part), default=1)
        return [_Part(units, 0, len(units), 0, last), *parts]

    def apply(self, tokens: TokenStream) -> TokenStream:
        rows: list[TokenRow] = []
        gap = last_start = 0
        position = previous = -1
        for term, old_position, length, span, marked in tokens.rows():
            increment = old_position - previous
            previous = old_position
            if self._skips_keywords and marked:
                position += increment
                rows.append((term, position, length, span, marked))
                continue
            gap += increment
            parts = self._parts[term]
            if not parts:
                if parts is None or self._keeps_original:
                    position += gap if parts is None else increment
                    rows.append((term, position, length, span, marked))
                    gap = 0
                continue
            adjusts = self._adjusts_offsets and span[1] - span[0] == utf16_length(term)
            position += gap
            for part in filter(None, parts):
                start, end = (span[0] + part.start, span[0] + part.end) if adjusts else span
                start, end = max(start, last_start), max(end, last_start)
                last_start = start
                rows.append((part.text, position + part.first, part.last - part.first, (start, end), marked))
            position = rows[-1][1]
            gap = 0
        return tokens.with_rows(rows)


class WordDelimiterFilter(_WordDelimiter):
    """Split words; a concatenation has the position of its first or last subword, and spans one."""

    # The order of subwords depends on whether the offsets of a token have the length of its term.
    needs_offsets: ClassVar[bool] = True

    def _combined(self, units: str, subwords: Sequence[_Subword]) -> Sequence[_Part | None]:
        """Return the parts in Lucene's order, with None where a run of subwords of one kind ends."""
        parts: list[_Part | None] = []
        run: _Concatenation | None = None
        whole: _Concatenation | None = None
        last_count = 0

        def flush(run: _Concatenation) -> None:
            nonlocal last_count
            last_count = run.count
            if run.count > 1 or not run.type & self._generated:
                parts.append(run.part(1))

        for subword in subwords:
            start, end, type_ = subword
            if run and not run.type & type_:
                flush(run)
                parts.append(None)
                run = None
            if type_ & self._catenated:
                run = self._extend(run, units, subword, 0)
            if self._catenates_all:
                whole = self._extend(whole, units, subword, 0)
            if type_ & self._generated:
                parts.append(_Part(units[start:end], start, end))
        if run:
            flush(run)
        if whole and whole.count > last_count:
            parts.append(whole.part(1))
        return parts or [None]

    def apply(self, tokens: TokenStream) -> TokenStream:
        rows: list[TokenRow] = []
        gap = 0
        position = previous = -1
        for term, old_position, length, span, marked in tokens.rows():
            increment = old_position - previous
            previous = old_position
            gap += increment
            parts = self._parts[term]
            if parts is None or self._keeps_original:
                position += gap
                gap = 0
                rows.append((term, position, length, span, marked))
            elif not parts:
                gap -= increment == 1 and bool(rows)
            for part, step, part_span in self._placed(term, parts or (), span, gap):
                position += step or not rows
                rows.append((part, position, 1, part_span, False))
            if parts and any(parts):
                gap = 0
        return tokens.with_rows(rows)

    def _placed(
        self, term: str, parts: Sequence[_Part | None], span: Span, gap: int
    ) -> list[tuple[str, int, Span]]:
        """Return the parts of a term with their distances from the previous token, in order."""
        placed: list[tuple[str, int, Span]] = []
        is_shifted = span[1] - span[0] != utf16_length(term)
        has_output, follows_original = False, self._keeps_original
        for part in parts:
            if part is None:
                has_output = False
                continue
            step = 0 if has_output and part.is_concatenation else max(1, gap)
            if not has_output and follows_original:
                step, follows_original = 0, False
            else:
                gap = 0
            has_output = True
            gap = 0 if part.is_concatenation else gap
            part_span = span if is_shifted else (span[0] + part.start, span[0] + part.end)
            if is_shifted and part.is_alone and span[0] + part.start <= span[1]:
                part_span = span[0] + part.start, span[1]
            placed.append((part.text, step, part_span))
        return sorted(placed, key=lambda row: (row[2][0], -row[1]))
