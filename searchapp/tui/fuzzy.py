"""Choosing from a list by some of the letters: `nsg` leaves `normal subgroups`, behind whatever has it as it stands."""

from __future__ import annotations

from collections.abc import Sequence

from searchapp.tui.picking import Picking

LONGEST = 200
"""Characters of a name that are looked at."""


def spread(letters: str, name: str) -> int | None:
    """The characters of a name from the first of some letters to the last, in their order; None without them.

    Textual has a search of this kind, which tries all places that a letter could have: in a long name that takes for
    ever.

    >>> spread("nsg", "normal subgroups"), spread("sub", "normal subgroups"), spread("gn", "normal subgroups")
    (11, 3, None)
    """
    name = name[:LONGEST].lower()
    end = -1
    for letter in letters.lower():
        end = name.find(letter, end + 1)
        if end < 0:
            return None
    begin = end + 1  # as near to the end as they can begin
    for letter in reversed(letters.lower()):
        begin = name.rfind(letter, 0, begin)
    return end - begin + 1


class FuzzyPicking(Picking):
    """A list that a few letters leave the best of: first what has all the words, then what has the letters in order."""

    def fitting(self, words: str) -> Sequence[int]:
        whole = super().fitting(words)
        letters = "".join(words.split())
        has_words = set(whole)
        spreads = {
            place: found
            for place, one in enumerate(self.choices)
            if place not in has_words and (found := spread(letters, one.name)) is not None
        }
        return [*whole, *sorted(spreads, key=lambda place: spreads[place])]
