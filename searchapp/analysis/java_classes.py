r"""Character classes and escapes of Java's regular expressions: `[a-z\d]`, `\p{L}`, `\u00e9`.

Each is turned into what Python's `re` accepts between square brackets, with every character that could mean
something there escaped. Properties come from the tables of `unicode_tables`, so they don't depend on the Unicode
version of the Python that runs.
"""

from __future__ import annotations

import re
from typing import Final

from searchapp.analysis.errors import NotSupported
from searchapp.analysis.options import Options
from searchapp.analysis.unicode_tables import CATEGORIES, category_set

NAMED_SETS: Final = {
    **{letter: f"\\{letter}" for letter in "dDsSwW"},  # under `re.ASCII` just as in Java
    "h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n\x0b\f\r\x85\u2028\u2029",
}

# The POSIX names, which mean ASCII characters only.
_POSIX: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "A-Za-z",
    "Digit": "0-9",
    "Alnum": "0-9A-Za-z",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
# Under CASE_INSENSITIVE Java lets each of these mean letters of any case.
_CASED: Final = frozenset({"Lower", "Upper", "Lu", "Ll", "Lt", "LC"})

_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CODED = re.compile(
    r"\\(?:u+([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|0([0-3]?[0-7]{1,2}))", re.ASCII
)
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|([A-Z]))")


def quoted(char: str) -> str:
    """The character as itself, inside of brackets and outside."""
    if char.isascii() and char.isalnum():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escaped_character(pattern: str, at: int, options: Options) -> tuple[str, int]:
    """The one character that the escape at this place stands for, and the place after it."""
    if match := _CODED.match(pattern, at):
        code = int(match[1] or match[2] or match[3] or "0", 16) if not match[4] else int(match[4], 8)
        if 0xD800 <= code < 0xE000:
            raise options.not_supported(f"half a surrogate pair in the pattern {pattern!r}")
        if code > 0x10FFFF:
            raise options.bad(f"the pattern {pattern!r} is not valid: no character {match[0]}")
        return chr(code), match.end()
    letter = pattern[at + 1 : at + 2]
    if letter in _CONTROL:
        return _CONTROL[letter], at + 2
    if not letter or (letter.isascii() and letter.isalnum()):
        raise options.not_supported(f"the escape \\{letter} in the pattern {pattern!r}")
    return letter, at + 2


def property_set(pattern: str, at: int, folds: bool, options: Options) -> tuple[str, int]:
    r"""What stands between the brackets for `\p{..}` at this place, and the place after it."""
    match = _PROPERTY.match(pattern, at)
    refused = NotSupported(f"the property {(match or pattern[at:])[0]} in the pattern of {options.piece}")
    if not match or match[2]:
        raise refused
    name = match[3] or match[4]
    if folds and name.removeprefix("Is") in _CASED:
        raise refused
    negative = match[1] == "P"
    if name in _POSIX:
        if negative:
            raise refused
        return _POSIX[name], match.end()
    wanted = [category for category in CATEGORIES if category.startswith(name.removeprefix("Is"))]
    if not wanted or len(name.removeprefix("Is")) > 2:
        raise refused
    if negative:
        wanted = [category for category in CATEGORIES if category not in wanted]
    return category_set(*wanted), match.end()


def beyond_bmp(pattern: str, at: int) -> bool:
    r"""Whether Java takes the `\p{..}` at this place for one that may have characters beyond U+FFFF."""
    match = _PROPERTY.match(pattern, at)
    return not match or match[1] == "P" or match[3] not in _POSIX


class ClassParser:
    """Reads one bracket expression; `at` is the place after it once `parse` is done.

    `beyond_bmp` says whether Java takes it for one that may have characters beyond U+FFFF.
    """

    def __init__(self, pattern: str, at: int, folds: bool, options: Options) -> None:
        self._pattern = pattern
        self._folds = folds
        self._options = options
        self.at = at + 1
        self.beyond_bmp = False

    def parse(self) -> str:
        """The bracket expression for Python."""
        out = ["["]
        if self._peek() == "^":
            out.append("^")
            self.at += 1
            self.beyond_bmp = True
        if self._peek() == "]":
            raise self._refused("] as the first character of a class")
        while self._peek() != "]":
            out.append(self._item())
        self.at += 1
        return "".join([*out, "]"])

    def _item(self) -> str:
        """One character, range or named set."""
        low = self._element()
        if self._peek() != "-" or self._peek(1) == "]":
            return low if len(low) > 1 else quoted(low)
        if self._peek(1) == "[" or len(low) > 1:
            raise self._refused("a - after a set in a class")
        self.at += 1
        high = self._element()
        if len(high) > 1:
            raise self._refused("a - before a set in a class")
        self.beyond_bmp |= self._folds or low <= "\udfff" <= high or high > "\uffff"
        if high < low:
            raise self._options.bad(f"the pattern {self._pattern!r} is not valid: range {low}-{high}")
        return f"{quoted(low)}-{quoted(high)}"

    def _element(self) -> str:
        """A single character, or the longer source of a named set."""
        char = self._peek()
        if char == "[":
            raise self._refused("a class inside of a class")
        if char == "&" and self._peek(1) == "&":
            raise self._refused("&& in a class")
        if char != "\\":
            self.at += 1
            self.beyond_bmp |= char > "\uffff"
            return char
        letter = self._peek(1)
        if letter in NAMED_SETS:
            self.at += 2
            self.beyond_bmp |= letter.isupper()
            return NAMED_SETS[letter]
        if letter in ("p", "P"):
            self.beyond_bmp |= beyond_bmp(self._pattern, self.at)
            found, self.at = property_set(self._pattern, self.at, self._folds, self._options)
            return found
        if letter in ("Q", "E"):
            raise self._refused(r"\Q..\E in a class")
        char, self.at = escaped_character(self._pattern, self.at, self._options)
        return char

    def _peek(self, ahead: int = 0) -> str:
        if self.at + ahead < len(self._pattern):
            return self._pattern[self.at + ahead]
        raise self._options.bad(f"the pattern {self._pattern!r} is not valid: a class without ]")

    def _refused(self, what: str) -> NotSupported:
        return self._options.not_supported(f"{what} in the pattern {self._pattern!r}")
