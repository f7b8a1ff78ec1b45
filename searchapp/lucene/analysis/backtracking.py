r"""An upper bound of the time for which `re` backtracks, from the syntax tree of a pattern.

A search tries every way to match a part of the text. Loops multiply these ways only if a later one can take characters
from an earlier one, as in `\s*-?\s*`, but not in `[a-z]+\s*=`. With d such loops, a search of n characters takes time
in n^(d + 2) (Weber and Seidl 1991, On the degree of ambiguity of finite automata). A repeated expression takes
exponential time unless the next character always decides how to continue. If the characters that loops can take from
each other are in runs of at most r characters, each of the d loops takes at most r, and the time is in n^2 r^d. Sets of
characters are supersets (`syntax_tree`), so that the bound may be too high, but not too low.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from searchapp.lucene.analysis.syntax_tree import ALL, Items, SyntaxTree, as_content

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


class SearchLimit(NamedTuple):
    """The texts that `re` searches with a pattern within seconds."""

    longest: int  # all of at most this length
    degree: int = 0
    shared: re.Pattern[str] | None = None  # runs of characters that loops can take from each other, if known

    def allows(self, text: str) -> bool:
        if len(text) <= self.longest:
            return True
        if self.shared is None:
            return False
        longest_run = max(map(len, self.shared.findall(text)), default=1)
        work: int = len(text) ** 2 * longest_run**self.degree
        return work <= _LONGEST[0] ** 2


def search_limit(tree: SyntaxTree) -> SearchLimit:
    """Return the limit of texts that `re` searches with the pattern within seconds."""
    analysis = _Analysis(tree)
    _, cost = analysis.sequence(tree.items, frozenset())
    if cost.options > _MOST_OPTIONS or cost.degree > max(_LONGEST):
        return SearchLimit(0)
    if not cost.has_loops:
        return SearchLimit(ALWAYS_SHORT)
    degree, shared = int(cost.degree), analysis.shared
    runs = re.compile(f"[{as_content(shared)}]+") if degree and shared != ALL else None
    return SearchLimit(_LONGEST[degree], degree, runs)


class _Undecided(Exception):
    """The next character does not decide how to continue."""


class _Analysis:
    def __init__(self, tree: SyntaxTree) -> None:
        self._characters = tree.characters
        self.shared = 0  # the characters that loops can take from each other

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
                if cost.has_loops:
                    self.shared = ALL
                return live, cost._replace(degree=cost.degree + cost.has_loops)
            case "GROUPREF":  # compared at each step, in time that grows with the group
                self.shared = ALL
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
        taken = 0
        for loop in live:
            taken |= loop & characters
        self.shared |= taken
        after = (through & live) | skipped | {characters}
        return after, _Cost(has_loops=True, degree=inner.degree + (taken > 0), options=inner.options)

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
