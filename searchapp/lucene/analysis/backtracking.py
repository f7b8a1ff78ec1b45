r"""An upper bound of the time for which `re` backtracks, from the syntax tree of a pattern.

A search tries every way to match a part of the text. Loops multiply these ways only if a later one can take characters
from an earlier one, as in `\s*-?\s*`, but not in `[a-z]+\s*=`. With d such loops, a search of n characters takes time
in n^(d + 2) (Weber and Seidl 1991, On the degree of ambiguity of finite automata). A repeated expression takes
exponential time unless the next character always decides how to continue. Sets of characters are supersets
(`syntax_tree`), so that the bound may be too high, but not too low.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from searchapp.lucene.analysis.syntax_tree import ALL, Items, SyntaxTree

ALWAYS_SHORT: Final = sys.maxsize

# By degree of ambiguity: the longest text that is searched in about a second.
_LONGEST: Final = {0: 20_000, 1: 2_000, 2: 400}
_MOST_OPTIONS: Final = 15  # time doubles with each consecutive quantifier `?`
_FEW: Final = 20  # a quantifier with a greater bound counts as unbounded

_Live = frozenset[int]  # the sets of earlier loops that may still give characters to a later loop


class _Cost(NamedTuple):
    has_loops: bool = False
    degree: float = 0
    options: int = 0

    def then(self, other: _Cost) -> _Cost:
        return _Cost(
            self.has_loops or other.has_loops, self.degree + other.degree, self.options + other.options
        )


def longest_text(source: str, flags: int) -> int:
    """Return the maximum length of a text that `re` searches with the pattern within seconds."""
    tree = SyntaxTree.of(source, flags)
    _, cost = _Analysis(tree).sequence(tree.items, frozenset())
    if cost.options > _MOST_OPTIONS or cost.degree > max(_LONGEST):
        return 0
    return _LONGEST[int(cost.degree)] if cost.has_loops else ALWAYS_SHORT


class _Undecided(Exception):
    """The next character does not decide how to continue."""


class _Analysis:
    def __init__(self, tree: SyntaxTree) -> None:
        self._characters = tree.characters

    def sequence(self, items: Items, live: _Live) -> tuple[_Live, _Cost]:
        """Return the loops that may give characters to what follows the items, and the cost of the items."""
        cost = _Cost()
        for operation, argument in items:
            live, more = self._element(str(operation), argument, live)
            cost = cost.then(more)
        return live, cost

    def _element(self, operation: str, argument: Any, live: _Live) -> tuple[_Live, _Cost]:
        characters = self._characters(operation, argument)
        if characters is not None:
            return frozenset(loop for loop in live if loop & characters), _Cost()
        match operation:
            case "SUBPATTERN":
                return self.sequence(argument[-1], live)
            case "ATOMIC_GROUP":
                after, cost = self.sequence(argument, live)
                return after & live, cost
            case "ASSERT" | "ASSERT_NOT":  # evaluated at each step
                _, cost = self.sequence(argument[1], frozenset())
                return live, cost._replace(degree=cost.degree + cost.has_loops)
            case "GROUPREF":  # compared at each step, in time that grows with the group
                return live, _Cost(has_loops=True, degree=1)
            case "BRANCH":
                ends, costs = zip(*(self.sequence(items, live) for items in argument[1]), strict=True)
                return frozenset().union(*ends), _Cost(*map(max, zip(*costs, strict=True)))
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                fewest, most, items = argument
                after, cost = self._repeat(fewest, most, items, live)
                return (after & live if operation == "POSSESSIVE_REPEAT" else after), cost
            case "AT" | "FAILURE":
                return live, _Cost()
        return live, _Cost(degree=math.inf)  # unknown

    def _repeat(self, fewest: int, most: int, items: Sequence[Any], live: _Live) -> tuple[_Live, _Cost]:
        through, cost = self.sequence(items, live)
        skipped = live if fewest == 0 else frozenset()
        if most <= 1:
            return through | skipped, cost.then(_Cost(options=1))
        try:
            self._first(items, self._first(items, 0))
        except _Undecided:
            return live, _Cost(has_loops=True, degree=math.inf)
        if not cost.has_loops and (most <= _FEW or fewest == most):
            return through | skipped, cost
        _, inner = self.sequence(items, frozenset())
        characters = self._all(items)
        takes = any(loop & characters for loop in live)
        after = (through & live) | skipped | {characters}
        return after, _Cost(has_loops=True, degree=inner.degree + takes, options=inner.options)

    def _first(self, items: Sequence[Any], following: int) -> int:
        """Return the characters with which the items, or else what follows them, may begin.

        Raises:
            _Undecided: a character allows two ways to continue inside the items.
        """
        for operation, argument in reversed(list(items)):
            characters = self._characters(str(operation), argument)
            match str(operation):
                case _ if characters is not None:
                    following = characters
                case "SUBPATTERN":
                    following = self._first(argument[-1], following)
                case "ATOMIC_GROUP":
                    following = self._first(argument, following)
                case "BRANCH":
                    begins = 0
                    for alternative in argument[1]:
                        begin = self._first(alternative, following)
                        if begin & begins:
                            raise _Undecided
                        begins |= begin
                    following = begins
                case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                    fewest, most, repeated = argument
                    begin = self._first(repeated, 0)
                    gives_back = str(operation) != "POSSESSIVE_REPEAT"
                    if fewest < most and begin & following and gives_back:
                        raise _Undecided
                    begin = self._first(repeated, following | (begin if most > 1 else 0))
                    following = begin | (following if fewest == 0 else 0)
                case "GROUPREF":
                    following = ALL
        return following

    def _all(self, items: Items) -> int:
        """Return all characters that the items may take."""
        characters = 0
        for operation, argument in items:
            single = self._characters(str(operation), argument)
            match str(operation):
                case _ if single is not None:
                    characters |= single
                case "SUBPATTERN" | "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                    characters |= self._all(argument[-1])
                case "ATOMIC_GROUP":
                    characters |= self._all(argument)
                case "BRANCH":
                    for alternative in argument[1]:
                        characters |= self._all(alternative)
                case "GROUPREF":
                    characters = ALL
        return characters
