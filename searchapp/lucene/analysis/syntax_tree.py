"""The syntax tree of a pattern, and the characters of its elements.

Sets of characters are integers with a bit for each ASCII character and one for all others. They are supersets.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

OTHER: Final = 1 << 128  # all characters beyond ASCII
ASCII: Final = OTHER - 1
ALL: Final = ASCII | OTHER

Items = Iterable[tuple[Any, Any]]  # operations of the parser with their arguments


class SyntaxTree(NamedTuple):
    """A parsed pattern."""

    items: Items
    ignores_case: bool

    @classmethod
    def of(cls, source: str, flags: int) -> SyntaxTree:
        # The parser is not public, but `re` and `regex` offer no other access to the syntax tree.
        items = importlib.import_module("re._parser").parse(source, flags)
        return cls(items, bool(flags & re.IGNORECASE) or "(?i:" in source)

    def characters(self, operation: str, argument: Any) -> int | None:
        """Return the characters that an element of one character matches; None for another element."""
        match operation:
            case "LITERAL":
                return self._with_cases(_range(argument, argument))
            case "NOT_LITERAL":
                return ALL & ~_range(argument, argument) | OTHER
            case "ANY":
                return ALL
            case "IN":
                is_negative = str(argument[0][0]) == "NEGATE"
                characters = 0
                for kind, value in argument[is_negative:]:
                    match str(kind):
                        case "LITERAL":
                            characters |= _range(value, value)
                        case "RANGE":
                            characters |= _range(*value)
                        case "CATEGORY":
                            characters |= _CATEGORIES[str(value)]
                return ALL & ~characters | OTHER if is_negative else self._with_cases(characters)
        return None

    def _with_cases(self, characters: int) -> int:
        if not self.ignores_case:
            return characters
        letters = (characters >> ord("A") | characters >> ord("a")) & ((1 << 26) - 1)
        return characters | letters << ord("A") | letters << ord("a")


def as_content(characters: int) -> str:
    """Return the content of brackets that match the characters."""
    ascii_characters = [f"\\x{code:02x}" for code in range(128) if characters >> code & 1]
    return "".join([*ascii_characters, "\\x80-\U0010ffff" * (characters >= OTHER)])


def _range(low: int, high: int) -> int:
    last = min(high, 128)
    return (1 << last + 1) - (1 << min(low, 128))


DIGIT: Final = _range(ord("0"), ord("9"))
SPACE: Final = _range(ord("\t"), ord("\r")) | _range(ord(" "), ord(" "))
WORD: Final = DIGIT | _range(ord("A"), ord("Z")) | _range(ord("a"), ord("z")) | _range(ord("_"), ord("_"))
_CATEGORIES: Final = {  # under `re.ASCII`
    "CATEGORY_DIGIT": DIGIT,
    "CATEGORY_NOT_DIGIT": ALL & ~DIGIT,
    "CATEGORY_SPACE": SPACE,
    "CATEGORY_NOT_SPACE": ALL & ~SPACE,
    "CATEGORY_WORD": WORD,
    "CATEGORY_NOT_WORD": ALL & ~WORD,
}
