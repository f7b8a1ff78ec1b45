"""Boundaries of sentences and words as of `java.text.BreakIterator`, which differ from those of Unicode's annex 29.

Source: sun.text.RuleBasedBreakIterator (Java 25)

The JDK compiles its rules into two finite automata over categories of characters. The forward automaton finds the
next boundary. The backward automaton finds a position to start from, which is not always a boundary; the result of
`preceding` may therefore depend on earlier calls, and both automata are needed.

All offsets are of UTF-16 code units.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from searchapp.lucene.analysis.characters import category_set, utf16_units
from searchapp.lucene.dataclass import dataclass

DONE = -1

_STOP, _START = 0, 1  # states
_IGNORED = -1  # the category of characters that leave the state as it is
_MISTAKEN = 0  # the category that the JDK gives some ignored characters by mistake
_NO_CHARACTER = -2  # the category of U+FFFF, Java's mark for the end of a text

_IDEOGRAPHS = "\U00020000-\U0002ee5d\U0002f800-\U000323af"  # with unassigned code points


@dataclass(frozen=True)
class _BreakRules:
    """Automata over categories; a row of a table has the next state for each category, in base 36."""

    ignored: str  # the content of brackets
    categories: Sequence[str]  # the content of brackets; a character belongs to the first that has it
    order: Sequence[int]  # their columns in the tables
    forward: Sequence[str]
    final: frozenset[int]  # states in which a boundary follows
    lookahead: frozenset[int]  # states in which a boundary may follow; final ones confirm it
    backward: Sequence[str]


@cache
def _sentence_rules() -> _BreakRules:
    blank = "\\t\\r\\f\\n\u2028" + category_set("Zs")
    categories = [
        *(",", "\u2029", ".\uff0e", "\"'", "!?\u3002\uff01\uff1f", "\u0964\u0965", blank),
        *(category_set(*names) for names in (["Ps", "Pi"], ["Pe", "Pf"], ["N"], ["Ll"])),
        *(category_set("L") + _IDEOGRAPHS, "\\s\\S"),
    ]
    return _BreakRules(
        category_set("Mn", "Me", "Cf"),
        categories,
        (0, 1, 2, 3, 4, 7, 12, 11, 10, 9, 6, 5, 8),
        (
            *(
                "0000000000000",
                "1251b11311111",
                "0000000000000",
                "0000000000003",
                "0000000000000",
                "1259b11881586",
            ),
            *(
                "1258b41881187",
                "125ab44aa11a7",
                "1258b44881181",
                "1259b44aa15a6",
                "0008044880080",
                "02bbb00000b0c",
            ),
            "020000000000c",
        ),
        frozenset([1, 2, 3, 4, 11, 12]),
        frozenset([4, 5, 6, 7, 9]),
        (
            *(
                "0000000000000",
                "9aaaa93443a9a",
                "0000000000000",
                "9aa3293443735",
                "9a24293443846",
                "9aa7293443795",
            ),
            *("9a28293443896", "9aa729344379a", "9a2829344389a", "90aa093443a9a", "90aaa93443a9a"),
        ),
    )


@cache
def _word_rules() -> _BreakRules:
    categories = [
        *(
            "\u3099-\u309a",
            ".",
            "\u3005\u4e00-\u9fa5\uf900-\ufa2d",
            "\u0964\u0965",
            "%&\u00a2\u066a\u2030\u2031",
        ),
        *("\\r", "\"'", f"#{category_set('Sc')}", "\u309b\u309c\u30fb\u30fc", category_set("Mn", "Me")),
        *(category_set("N"), category_set("Zs"), "\u3041-\u3094\u309d\u309e", "\u30a1-\u30fa\u30fd\u30fe"),
        *("\\n\\f\u2028\u2029", "\\t", "\u00ad", ",\u066b", f"\u2027{category_set('Pd', 'Pc')}"),
        *(category_set("L", "Mc") + _IDEOGRAPHS, category_set("Cc"), "\\s\\S"),
    ]
    return _BreakRules(
        category_set("Cf").replace("\\U000000ad", ""),
        categories,
        (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 4, 0, 20),
        (
            *("0000000000000000000000", "2cef3gg9geh268ij282ggg", "0000000000000000000000"),
            *("0340350040036000004004", "0000300000000000000000", "0000000000006000000000"),
            *("0670302070066000000700", "0000000000006000000000", "0800000900080800280000"),
            *("0000000000000000200000", "0a00000000a0000a000000", "0b00000000b000b0000000"),
            *("0c00000000c000ba000000", "000d000000000000000000", "0g000000000g6000000000"),
            *("0g0d0000000g0000000000", "0g000000000g0000000000", "0h00000000cg00ba000000"),
            *("0i00000000bg00b0000000", "0j00000000ag000a000000"),
        ),
        frozenset({*range(1, 20)} - {4, 7}),
        frozenset(),
        (
            *("0000000000000000000000", "2345678942a3b9cde97827", "0000000000000000000000"),
            *("0345678042a3b9cd090827", "030060000003b000000000", "0005000000000000000000"),
            *("034060004003b000007007", "0300600000030000000000", "030000000003b000000000"),
            *("0300000000030900090000", "0300000000a000cd000000", "034067004203b000000800"),
            *("0300000000a000c0000000", "0300000000a0000d000000", "0300000900030900090000"),
        ),
    )


class _Automata:
    """Rules prepared for use, with the category of each known character."""

    def __init__(self, rules: _BreakRules) -> None:
        self._rules = rules
        self._ignored = re.compile(f"[{rules.ignored}]")
        self._patterns = [re.compile(f"[{content}]") for content in rules.categories]
        self._known: dict[str, int] = {"\uffff": _NO_CHARACTER}
        self.forward = [[int(state, 36) for state in row] for row in rules.forward]
        self.backward = [[int(state, 36) for state in row] for row in rules.backward]
        self.final = rules.final
        self.lookahead = rules.lookahead

    def category(self, character: str) -> int:
        known = self._known.get(character)
        if known is None:
            known = self._known[character] = self._find(character)
        return known

    def _find(self, character: str) -> int:
        rules = self._rules
        if self._ignored.match(character):
            return _MISTAKEN if character > "\uffff" and self._is_mistaken(ord(character)) else _IGNORED
        number = next(number for number, pattern in enumerate(self._patterns) if pattern.match(character))
        return rules.order[number]

    def _is_mistaken(self, code: int) -> bool:
        """Whether a character beyond U+FFFF is the last of adjacent ignored ones, except of exactly two."""
        before, previous, following = (
            self._ignored.match(chr(code + step)) is not None for step in (-2, -1, 1)
        )
        return not following and (before or not previous)


@cache
def _automata(kind: str) -> _Automata:
    return _Automata(_sentence_rules() if kind == "sentence" else _word_rules())


class BreakIterator:
    """Finds the boundaries of a text next to an offset; `kind` is `sentence` or `word`.

    Later results depend on earlier ones, as in Java.
    """

    def __init__(self, kind: str, text: str) -> None:
        self._automata = _automata(kind)
        self._units = utf16_units(text)
        self.end = len(self._units)
        self._last = DONE  # the last boundary that was found

    def following(self, offset: int) -> int:
        """Return the first boundary after an offset, `DONE` at the end."""
        if not offset:
            self._last = self._next(0)
            return self._last
        result = self._last
        if result >= offset or result <= DONE:
            result = self._previous(offset)
        while result != DONE and result <= offset:
            result = self._next(result)
        self._last = result
        return result

    def preceding(self, offset: int) -> int:
        """Return the last boundary before an offset, `DONE` at the beginning."""
        if not offset:
            return DONE
        last = self._last
        if last >= offset or last <= DONE:
            last = self._previous(self._before(offset))
        result = last
        while result != DONE and result < offset:
            last = result
            result = self._next(result)
        self._last = last
        return last

    def _next(self, index: int) -> int:
        """Return the first boundary after a boundary."""
        if index == self.end:
            return DONE
        automata = self._automata
        result, candidate, state = self._after(index), 0, _START
        category = _NO_CHARACTER
        while index < self.end and state != _STOP:
            category, after = self._category(index), self._after(index)
            if category == _NO_CHARACTER:
                break
            if category != _IGNORED:
                state = automata.forward[state][category]
            if state in automata.lookahead:
                if state in automata.final:
                    result = candidate
                else:
                    candidate = after
            elif state in automata.final:
                result = after
            index = after
        if candidate == self.end and (index == self.end or category == _NO_CHARACTER):
            result = candidate
        return result

    def _previous(self, index: int) -> int:
        """Return a position at or before an index from which the boundaries can be found."""
        if index == self.end:
            return index
        state, last, category, current = _START, 0, 0, self._category(index)
        is_done = current == _NO_CHARACTER
        while not is_done and state != _STOP:
            last, category = category, current
            if category != _IGNORED:
                state = self._automata.backward[state][category]
            is_done = not index
            if not is_done:
                before = self._before(index)
                # From inside a surrogate pair, Java steps back to its first half alone.
                current = self._category(before, alone=before == index - 1 and self._is_pair(before))
                index, is_done = before, current == _NO_CHARACTER
        if not is_done:
            for _step in range(1 if last == _IGNORED else 2):
                index = self._after(index) if self._after(index) < self.end else index
        return index

    def _is_pair(self, index: int) -> bool:
        """Whether a surrogate pair begins at an index."""
        return (
            index + 1 < self.end
            and "\ud800" <= self._units[index] <= "\udbff"
            and "\udc00" <= self._units[index + 1] <= "\udfff"
        )

    def _after(self, index: int) -> int:
        return index + (2 if self._is_pair(index) else 1)

    def _before(self, index: int) -> int:
        return index - (2 if index > 1 and self._is_pair(index - 2) else 1)

    def _category(self, index: int, *, alone: bool = False) -> int:
        if not alone and self._is_pair(index):
            high, low = map(ord, self._units[index : index + 2])
            return self._automata.category(chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00))
        return self._automata.category(self._units[index])
