"""Strings with which every match of a pattern begins, from the pattern's syntax tree.

A text without any of them has no match; to look for strings takes less time than to search with a pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from searchapp.lucene.analysis.syntax_tree import SyntaxTree

_MOST: Final = 6  # strings; more of them take as long as the pattern

_Heads = dict[str, bool]  # beginnings of matches, and whether what follows the items may extend them


def beginnings(tree: SyntaxTree) -> tuple[str, ...]:
    """Return strings of which every match begins with one; none if they are unknown or too many."""
    if tree.ignores_case:
        return ()
    heads = sorted(_sequence(tree.items, {"": True}), key=len)
    shortest: list[str] = []
    for head in heads:
        if not head.startswith(tuple(shortest)):
            shortest.append(head)
    return tuple(shortest) if "" not in heads else ()


def _sequence(items: Sequence[Any] | Any, heads: _Heads) -> _Heads:
    for operation, argument in items:
        extensible = [head for head, is_open in heads.items() if is_open]
        longer = {head: False for head, is_open in heads.items() if not is_open}
        for head in extensible:
            for extended, is_open in _element(str(operation), argument, head).items():
                longer[extended] = is_open and longer.get(extended, True)
        if len(longer) > _MOST:
            return dict.fromkeys(heads, False)
        heads = longer
    return heads


def _element(operation: str, argument: Any, head: str) -> _Heads:
    match operation:
        case "LITERAL":
            return {head + chr(argument): True}
        case "IN" if len(argument) <= _MOST and all(str(kind) == "LITERAL" for kind, _ in argument):
            return {head + chr(value): True for _, value in argument}
        case "SUBPATTERN":
            return _sequence(argument[-1], {head: True})
        case "ATOMIC_GROUP":
            return _sequence(argument, {head: True})
        case "BRANCH":
            ends: _Heads = {}
            for items in argument[1]:
                for extended, is_open in _sequence(items, {head: True}).items():
                    ends[extended] = is_open and ends.get(extended, True)
            return ends
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if argument[0] > 0:
            return dict.fromkeys(_sequence(argument[-1], {head: True}), False)
        case "ASSERT" | "ASSERT_NOT" | "AT":
            return {head: True}
    return {head: False}
