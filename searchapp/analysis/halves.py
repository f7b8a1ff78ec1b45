"""Where Java looks for a pattern between the two halves of a character beyond U+FFFF.

Texts are UTF-16 in Java. After a match of nothing it looks on at the next code unit, which may be the second half of an
emoji, and a pattern that names no character beyond U+FFFF in any way is looked for at every code unit from the start.
At such a place the halves count as characters of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from searchapp.analysis.offsets import utf16_length, utf16_places, utf16_units


@dataclass(frozen=True, slots=True)
class Found:
    """A match and where it stands, in code units."""

    start: int
    end: int
    match: re.Match[str]

    def span(self, group: int) -> tuple[int, int]:
        """Where a group stands, in code units; -1 twice for one that took no part."""
        start, end = self.match.span(group)
        return (start, end) if start < 0 else (self._unit(start), self._unit(end))

    def _unit(self, index: int) -> int:
        """The place of an index of the text that was matched."""
        text, first = self.match.string, self.match.start()
        return self.start + (
            utf16_length(text[first:index]) if index >= first else -utf16_length(text[index:first])
        )


class HalvesFinder:
    """Finds the matches of a pattern in one text that has characters beyond U+FFFF.

    Args:
        pattern: for the text as it is
        between: for the text with one character split, looked for at the second half
        everywhere: whether every code unit is a place to look at, and not just those after a match of nothing
    """

    def __init__(
        self, pattern: re.Pattern[str], between: re.Pattern[str], text: str, everywhere: bool
    ) -> None:
        self._pattern = pattern
        self._between = between
        self._text = text
        self._everywhere = everywhere
        places = utf16_places(text)
        self._places = places or list(range(len(text) + 1))
        self._characters = {place: index for index, place in enumerate(self._places)}

    def __iter__(self) -> Iterator[Found]:
        at = 0
        while at <= self._places[-1] and (found := self._next(at)):
            yield found
            at = found.end + (found.end == found.start)

    def _next(self, at: int) -> Found | None:
        """The first match at this code unit or behind it."""
        if at not in self._characters:
            if inside := self._inside(self._characters[at - 1]):
                return inside
            at += 1
        index = self._characters[at]
        match = self._pattern.search(self._text, index)
        if self._everywhere:
            for place in range(index, match.start() if match else len(self._text)):
                if self._text[place] > "\uffff" and (inside := self._inside(place)):
                    return inside
        return Found(self._places[match.start()], self._places[match.end()], match) if match else None

    def _inside(self, index: int) -> Found | None:
        """A match that begins between the halves of the character at this index."""
        text = self._text
        split = text[:index] + utf16_units(text[index]) + text[index + 1 :]
        match = self._between.match(split, index + 1)
        if not match:
            return None
        half = self._places[index] + 1
        end = half if match.end() == index + 1 else self._places[match.end() - 1]
        return Found(half, end, match)
