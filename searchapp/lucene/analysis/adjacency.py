r"""Which characters a search with a pattern can read one after the other, from the pattern's syntax tree.

A search that begins at a character reads on only while each next character is one that some element of the pattern,
directly after the element that read the previous one, accepts: in a match or in a look-ahead. At any other character
it ends as at the end of the text. So the matches in a text are those in its *pieces*, each of which begins with a
possible first character and ends before the first character that can't be read after the previous one. A text has few
distinct pieces, because they are hardly longer than matches. (Without memory of more than one character, this is the
local language of Glushkov's automaton, which contains the language of the pattern.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from searchapp.lucene.analysis.syntax_tree import ALL, OTHER, WORD, SyntaxTree

_START = ALL + 1  # instead of the previous character at the beginning of a search


class Adjacency(NamedTuple):
    """Supersets of the characters that a search reads; see `syntax_tree`."""

    first: int  # with which a piece begins
    following: tuple[int, ...]  # after each ASCII character, and after any other


def adjacency(tree: SyntaxTree) -> Adjacency | None:
    """Return the adjacency of a pattern; None if a search may read other text too, or may match nothing."""
    walk = _Walk(tree)
    try:
        last = walk.sequence(tree.items, _START)
    except _Unbounded:
        return None
    if last & _START:
        return None
    first = walk.after(_START)
    if walk.has_boundaries:
        # They also read the character before the first one, and any character after the previous one.
        first |= WORD
        walk.steps.append((WORD, first))
    return Adjacency(first, tuple(walk.after(1 << code) for code in range(OTHER.bit_length())))


def is_run(tree: SyntaxTree) -> bool:
    r"""Return whether a pattern repeats characters of one kind as often as possible, such as `\W+`."""
    match [(str(operation), argument) for operation, argument in tree.items]:
        case [("MAX_REPEAT" | "POSSESSIVE_REPEAT", (1, most, [(kind, content)]))]:
            return str(most) == "MAXREPEAT" and tree.characters(str(kind), content) is not None
    return False


class _Unbounded(Exception):
    """A search may read text that is not adjacent."""


class _Walk:
    def __init__(self, tree: SyntaxTree) -> None:
        self._characters = tree.characters
        self.steps: list[tuple[int, int]] = []  # characters, and those that may be read after them
        self.has_boundaries = False

    def after(self, character: int) -> int:
        following = 0
        for characters, next_characters in self.steps:
            if characters & character:
                following |= next_characters
        return following

    def sequence(self, items: Sequence[Any] | Any, last: int) -> int:
        """Return the characters that may be the last before what follows the items, given those before the items.

        Raises:
            _Unbounded: an element may read text that is not adjacent.
        """
        for operation, argument in items:
            last = self._element(str(operation), argument, last)
        return last

    def _element(self, operation: str, argument: Any, last: int) -> int:
        characters = self._characters(operation, argument)
        if characters is not None:
            self.steps.append((last, characters))
            return characters
        match operation:
            case "SUBPATTERN":
                return self.sequence(argument[-1], last)
            case "ATOMIC_GROUP":
                return self.sequence(argument, last)
            case "BRANCH":
                ends = 0
                for items in argument[1]:
                    ends |= self.sequence(items, last)
                return ends
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                fewest, most, items = argument
                end = self.sequence(items, last)
                if most > 1:
                    end |= self.sequence(items, end)
                return end | last if fewest == 0 else end
            case "ASSERT" | "ASSERT_NOT" if argument[0] > 0:
                self.sequence(argument[1], last)
                return last
            case "AT" if str(argument) == "AT_BOUNDARY":
                self.has_boundaries = True
                self.steps.append((last, WORD))
                return last
            case "FAILURE":
                return last
        raise _Unbounded
