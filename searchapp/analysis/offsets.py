"""Where a token stands in the text as it was before the char filters.

Offsets count UTF-16 code units, as Java's do and Elasticsearch reports them: an emoji counts two. A char filter
that changes the length of the text notes from which place of its output on the offsets move by how much; the
list and its use follow Lucene's `BaseCharFilter`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_HALF = re.compile("[\ud800-\udfff]")


def utf16_length(text: str) -> int:
    """Number of UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text) + len(_ASTRAL.findall(text))


def utf16_units(text: str) -> str:
    """The text with each character beyond U+FFFF as its two surrogates; see `from_utf16_units`."""
    return _ASTRAL.sub(lambda match: _surrogates(ord(match[0]) - 0x10000), text)


def _surrogates(code: int) -> str:
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))


def from_utf16_units(units: str) -> str:
    """The text of which these are the code units; halves without partner become U+FFFD, as in a Lucene term."""
    if not _HALF.search(units):
        return units
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def joined_units(units: str) -> str:
    """The text of which these are the code units; halves without partner stay as they are."""
    if not _HALF.search(units):
        return units
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def whole(term: str) -> str:
    """A term as it is indexed: with U+FFFD in the place of half a character."""
    return term if term.isascii() or not _HALF.search(term) else from_utf16_units(term)


def has_halves(terms: Iterable[str]) -> bool:
    """Whether some term has half of a character that takes two code units."""
    text = "".join(terms)
    return not text.isascii() and _HALF.search(text) is not None


def has_astral(text: str) -> bool:
    """Whether a text has a character that takes two code units."""
    return not text.isascii() and _ASTRAL.search(text) is not None


def utf16_places(text: str) -> list[int] | None:
    """For each index of the text, its end included, the UTF-16 offset; None where both are the same."""
    if text.isascii() or not _ASTRAL.search(text):
        return None
    return list(accumulate((2 if char > "\uffff" else 1 for char in text), initial=0))


class Corrections:
    """What one char filter did to the offsets: from output offset `places[i]` on, add `shifts[i]`.

    A filter works while its output is read. Who stops reading at a place does not know yet what is removed there.
    """

    def __init__(self) -> None:
        self._places: list[int] = []
        self._shifts: list[int] = []
        self._before_removal: dict[int, int] = {}

    @property
    def total(self) -> int:
        """The shift that holds at the end of the output so far."""
        return self._shifts[-1] if self._shifts else 0

    def add(self, place: int, shift: int, *, removed: bool = False) -> None:
        """From this output offset on, the shift is this; places come in ascending order.

        `removed` says that something stood there of which nothing is left.
        """
        if removed:
            self._before_removal.setdefault(place, self.total)
        if self._places and self._places[-1] == place:
            self._shifts[-1] = shift
        else:
            self._places.append(place)
            self._shifts.append(shift)

    def correct(self, offset: int, *, unread: bool = False) -> int:
        """The offset in the filter's input that an offset in its output stands for.

        `unread` asks for the answer before the output was read further.
        """
        if unread and offset in self._before_removal:
            return max(0, offset + self._before_removal[offset])
        index = bisect_right(self._places, offset) - 1
        # What a pattern inserts at the very beginning would otherwise stand before the text.
        return max(0, offset + self._shifts[index]) if index >= 0 else offset
