r"""What a match of a pattern can begin with, said before its alternatives.

At every place of a text Python's `re` tries each of the alternatives of `\x5c[a-z]+|[0-9]+|...`, unless all of them
begin with a character rather than a set of them. Behind `(?=[\x5c0-9...])` it tries none where no match begins. What
is found stays the same.
"""

from __future__ import annotations

import re

_ELEMENT = re.compile(
    r"""(?P<open>\((?:\?(?:[:=!>]|<[=!]|-?i:|P<\w+>))?)
    | \[(?P<set>(?:\\.|[^\]\\])*)\]
    | (?P<character>[A-Za-z0-9]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})
    | \\.
    | .""",
    re.VERBOSE | re.DOTALL,
)
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?")
_PLAIN_GROUPS = ("(", "(?:", "(?>", "(?i:", "(?-i:")


def with_first_characters(source: str) -> str:
    """The source of a translated pattern behind a look at the next character, where that is known and pays."""
    found = _First(source).alternatives()
    if found is None or len(found) < 2 or not any(one.is_set for one in found):
        return source
    return f"(?=[{''.join(one.inside for one in found)}])(?:{source})"


class _Begin:
    """What an alternative begins with: what stands for it between brackets, and whether it is a set of characters."""

    def __init__(self, inside: str, is_set: bool) -> None:
        self.inside = inside
        self.is_set = is_set


_Begins = list[_Begin] | None
"""What a part of a pattern begins with; None if that is not known, or it may be empty."""


class _First:
    """Reads a translated pattern from `_at` on. ASCII letters alone have two cases, see `re.ASCII`."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._ignores_case = [False]

    def alternatives(self) -> _Begins:
        """What the alternatives begin with, up to the end of the group or of the pattern."""
        found = self._alternative()
        while self._source.startswith("|", self._at):
            self._at += 1
            more = self._alternative()
            found = None if found is None or more is None else found + more
        return found

    def _alternative(self) -> _Begins:
        first: _Begins = None
        begins = True
        while self._at < len(self._source) and self._source[self._at] not in "|)":
            element = self._element()
            if begins:
                first, begins = element, False
        return first

    def _element(self) -> _Begins:
        piece = _ELEMENT.match(self._source, self._at)
        assert piece is not None  # an element is any one character
        self._at = piece.end()
        found: _Begins = None
        if opening := piece["open"]:
            self._ignores_case.append({"(?i:": True, "(?-i:": False}.get(opening, self._ignores_case[-1]))
            found = self.alternatives()
            self._at += 1
            self._ignores_case.pop()
            if opening not in _PLAIN_GROUPS and not opening.startswith("(?P<"):
                found = None
        elif piece["set"] is not None:
            if not piece["set"].startswith("^") and not self._ignores_case[-1]:
                found = [_Begin(piece["set"], is_set=True)]
        elif character := piece["character"]:
            has_cases = self._ignores_case[-1] and len(character) == 1
            found = [_Begin(character.upper() + character.lower() if has_cases else character, is_set=False)]
        quantifier = _QUANTIFIER.match(self._source, self._at)
        if quantifier is not None:
            self._at = quantifier.end()
            if quantifier[0].startswith(("*", "?", "{0")):
                return None
        return found
