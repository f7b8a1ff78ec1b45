r"""Java's regular expressions, as patterns of Python's `re`.

The source of the rules is the documentation of `java.util.regex.Pattern`. What means the same in both is passed
on, what is written differently is translated (`\s`, `\d`, `\w` know ASCII only in Java; `$` and `.` know more line
ends than Python; `\Q..\E`; `(?<name>..)`), and what has no exact counterpart is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from searchapp.analysis.errors import BadSettings
from searchapp.analysis.first_characters import with_first_characters
from searchapp.analysis.java_classes import (
    NAMED_SETS,
    ClassParser,
    beyond_bmp,
    escaped_character,
    property_set,
    quoted,
)
from searchapp.analysis.java_pattern import BEHIND, NOT_BOUNDARY, WORD_BOUNDARY, JavaRegex
from searchapp.analysis.offsets import has_astral
from searchapp.analysis.options import Options
from searchapp.analysis.word_trees import with_word_trees

FLAGS: Final = frozenset({"CASE_INSENSITIVE", "DOTALL", "MULTILINE", "LITERAL"})
REFUSED_FLAGS: Final = frozenset(
    {"CANON_EQ", "COMMENTS", "UNICODE_CASE", "UNICODE_CHARACTER_CLASS", "UNICODE_CHAR_CLASS", "UNIX_LINES"}
)

REMEMBERED: Final = 512
"""How many compiled patterns are kept: to compile those of its mapping takes most of what opening an index does."""

_compiled: dict[tuple[str, frozenset[str]], JavaRegex] = {}
"""Compiled patterns by what was given and its flags; what is refused is not kept, for it is told with its setting."""

_START = r"(?:\A)"
_LINE_ENDS = r"\n\r\u0085\u2028\u2029"
_END = r"(?:(?=\r\n\Z)|(?<!\r)(?=\n\Z)|(?=[\r\u0085\u2028\u2029]?\Z))"
_LINE_START = r"(?:(?=[\s\S])(?:\A|(?<=[\n\u0085\u2028\u2029])|(?<=\r)(?!\n)))"
_LINE_END = r"(?:(?=[\r\u0085\u2028\u2029]|\Z)|(?<!\r)(?=\n))"
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?")
_GROUP_START = re.compile(r"\(\?(?:[:=!>]|<[=!])")
_NAMED_GROUP = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_FLAG_GROUP = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")


def compile_java(
    options: Options, setting: str = "pattern", default: str | None = None, *, has_flags: bool = True
) -> JavaRegex:
    """The pattern of a piece's settings, with its `flags` if the piece has that setting.

    Raises:
        NotSupported: the pattern uses something that Python can't do in the same way.
        BadSettings: the pattern is not one in Java either.
    """
    pattern = options.text(setting, default)
    given = options.text("flags", "") if has_flags else ""
    flags = {name.upper() for name in given.split("|") if name}
    if refused := sorted(flags & REFUSED_FLAGS):
        raise options.not_supported(f"flag {refused[0]}")
    if unknown := sorted(flags - FLAGS):
        raise options.bad(f"unknown flag {unknown[0]}")
    known = pattern, frozenset(flags)
    if (compiled := _compiled.get(known)) is None:
        compiled = _Translator(pattern, flags, options).compile()
        if len(_compiled) >= REMEMBERED:
            _compiled.clear()
        _compiled[known] = compiled
    return compiled


_LOOKS = ("(?=", "(?!", "(?<=", "(?<!")


@dataclass
class _Group:
    """A group that is being read: whether what it matches may be empty."""

    opening: str = ""
    captures: int = 0
    alternatives: list[bool] = field(default_factory=list)
    so_far_empty: bool = True
    last_empty: bool = True
    may_match_empty: bool = True

    def add(self, empty: bool) -> None:
        """One more element, to which a quantifier may follow."""
        self.settle()
        self.last_empty = empty

    def settle(self) -> None:
        self.so_far_empty = self.so_far_empty and self.last_empty
        self.last_empty = True

    def alternative(self) -> None:
        self.settle()
        self.alternatives.append(self.so_far_empty)
        self.so_far_empty = True

    def close(self) -> bool:
        """Whether what the group matched may be empty, now that it is read."""
        self.alternative()
        self.may_match_empty = self.opening in _LOOKS or any(self.alternatives)
        return self.may_match_empty

    @property
    def captures_itself(self) -> bool:
        return self.opening == "(" or self.opening.startswith("(?P")


class _Translator:
    """One pass over a Java pattern."""

    def __init__(self, pattern: str, flags: set[str], options: Options) -> None:
        self._pattern = pattern
        self._options = options
        self._flags = set(flags)
        self._at = 0
        self._groups = 0
        self._out: list[str] = []
        self._repeatable = False
        self._open_groups = [_Group()]
        self._closed: _Group | None = None  # the group that ends just here
        self._groups_certain = True
        self._refers = False
        # Whether Java takes the pattern for one that may meet characters beyond U+FFFF, and skips their second halves.
        self._beyond_bmp = has_astral(pattern)

    def compile(self) -> JavaRegex:
        if "LITERAL" in self._flags:
            self._literals(self._pattern)
        else:
            self._leading_flags()
            while self._at < len(self._pattern):
                self._step()
        source = with_word_trees("".join(self._out), "CASE_INSENSITIVE" in self._flags)
        source = with_first_characters(source)
        flags = re.ASCII | (re.IGNORECASE if "CASE_INSENSITIVE" in self._flags else 0)
        has_boundary = WORD_BOUNDARY in source or NOT_BOUNDARY in source
        may_be_empty = self._open_groups[0].close()
        compiled = JavaRegex(
            self._groups,
            source,
            flags,
            has_boundary,
            may_be_empty,
            self._groups_certain,
            not self._beyond_bmp,
        )
        if self._refers:
            compiled.check_groups(self._options)
        try:
            _ = compiled.names
        except re.error as error:
            if "look-behind" in str(error):
                raise self._not_supported("a look-behind of variable length") from None
            raise self._not_supported(f"what Python calls {error.msg!r}") from None
        return compiled

    def _leading_flags(self) -> None:
        """`(?i)` is understood where the pattern begins; further on, Java's scope has no counterpart."""
        known = {"i": "CASE_INSENSITIVE", "s": "DOTALL", "m": "MULTILINE"}
        while (match := _FLAG_GROUP.match(self._pattern, self._at)) and match[3] == ")" and not match[2]:
            for letter in match[1]:
                if letter not in known:
                    raise self._not_supported(f"the inline flag {letter}")
                self._flags.add(known[letter])
            self._at = match.end()

    def _step(self) -> None:
        char = self._pattern[self._at]
        step: Callable[[], None] | None = {
            "\\": self._escape,
            "[": self._class,
            "(": self._open,
            "*": self._quantifier,
            "+": self._quantifier,
            "?": self._quantifier,
            "{": self._quantifier,
        }.get(char)
        if step:
            step()
            return
        self._at += 1
        multiline = "MULTILINE" in self._flags
        if char == ".":
            self._beyond_bmp = True
            self._emit(r"[\s\S]" if "DOTALL" in self._flags else f"[^{_LINE_ENDS}]")
        elif char == "^":
            self._emit(_LINE_START if multiline else _START, empty=True)
        elif char == "$":
            self._emit(_LINE_END if multiline else _END, empty=True)
        elif char == "|":
            self._out.append(char)
            self._open_groups[-1].alternative()
            self._repeatable = False
        elif char == ")":
            if len(self._open_groups) == 1:
                raise self._bad("a ) too many")
            self._close()
        else:
            self._emit(quoted(char))

    def _quantifier(self) -> None:
        match = _QUANTIFIER.match(self._pattern, self._at)
        if not match or not self._repeatable:
            raise self._bad(f"nothing to repeat at {self._pattern[self._at :]!r}")
        self._at = match.end()
        group = self._closed
        if group and self._groups > group.captures:
            only_itself = self._groups == group.captures + 1 and group.captures_itself
            possessive = len(match[0]) > 1 and match[0].endswith("+")
            if not only_itself or possessive or group.may_match_empty:
                self._groups_certain = False
        self._out.append(match[0])
        self._repeatable = False
        if match[0].startswith(("*", "?", "{0")):
            self._open_groups[-1].last_empty = True

    def _open(self) -> None:
        rest = self._pattern
        opened = "("
        if match := _GROUP_START.match(rest, self._at):
            opened = match[0]
        elif match := _NAMED_GROUP.match(rest, self._at):
            opened = f"(?P<{match[1]}>"
        elif match := _FLAG_GROUP.match(rest, self._at):
            if match[0] != "(?i:" or "CASE_INSENSITIVE" in self._flags:
                raise self._not_supported(f"the inline flag {match[0]}")
            opened = match[0]
        elif rest.startswith("(?", self._at):
            raise self._not_supported(f"the group {rest[self._at : self._at + 4]}")
        self._at += len(match[0]) if match else 1
        self._out.append(opened)
        captures = self._groups
        self._groups += opened == "(" or opened.startswith("(?P")
        self._open_groups.append(_Group(opened, captures))
        self._repeatable = False

    def _looks_behind(self) -> bool:
        return any(group.opening in ("(?<=", "(?<!") for group in self._open_groups)

    def _close(self) -> None:
        group = self._open_groups.pop()
        self._emit(")", empty=group.close())
        self._closed = group
        if self._groups > group.captures and group.opening in ("(?!", "(?<!", "(?>"):
            self._groups_certain = False

    def _class(self) -> None:
        if self._looks_behind() and "\\p" in self._pattern.lower():
            raise self._not_supported(r"\p{..} beside a class in a look-behind")
        parser = ClassParser(self._pattern, self._at, self._folds(), self._options)
        self._emit(parser.parse())
        self._at = parser.at
        self._beyond_bmp |= parser.beyond_bmp

    def _folds(self) -> bool:
        return "CASE_INSENSITIVE" in self._flags or "(?i:" in self._out

    def _escape(self) -> None:
        """A backslash outside of a character class."""
        letter = self._pattern[self._at + 1 : self._at + 2]
        anchors = {
            "A": _START,
            "z": r"(?:\Z)",
            "Z": _END,
            "b": WORD_BOUNDARY,
            "B": NOT_BOUNDARY,
        }
        if letter == "Q":
            end = self._pattern.find("\\E", self._at + 2)
            self._literals(self._pattern[self._at + 2 : end if end >= 0 else len(self._pattern)])
            self._at = end + 2 if end >= 0 else len(self._pattern)
        elif letter == "b" and self._pattern.startswith("{", self._at + 2):
            raise self._not_supported(r"\b{..}")
        elif letter in anchors:
            self._at += 2
            self._emit(anchors[letter], empty=True)
        elif letter in NAMED_SETS:
            self._at += 2
            self._beyond_bmp |= letter.isupper()
            self._emit(f"[{NAMED_SETS[letter]}]")
        elif letter in ("p", "P"):
            if self._looks_behind():
                raise self._not_supported(r"\p{..} in a look-behind")
            self._beyond_bmp |= beyond_bmp(self._pattern, self._at)
            found, self._at = property_set(self._pattern, self._at, self._folds(), self._options)
            self._emit(f"[{found}]")
        elif letter.isdigit() and letter != "0":
            self._reference()
        elif letter == "k":
            raise self._not_supported(r"\k<name>")
        elif letter in ("G", "R", "X", "N"):
            raise self._not_supported(f"\\{letter}")
        else:
            char, self._at = escaped_character(self._pattern, self._at, self._options)
            self._beyond_bmp |= char > "\uffff"
            self._literals(char)

    def _reference(self) -> None:
        r"""`\1`; further digits belong to the number as long as there are that many groups."""
        end = self._at + 2
        number = int(self._pattern[self._at + 1])
        if number > self._groups:
            raise self._not_supported(f"\\{number} before the group it refers to")
        while end < len(self._pattern) and self._pattern[end] in "0123456789":
            longer = number * 10 + int(self._pattern[end])
            if longer > self._groups:
                break
            number, end = longer, end + 1
        self._at = end
        self._refers = True
        self._emit(f"(?:\\{number})", empty=True)

    def _literals(self, text: str) -> None:
        for char in text:
            self._emit(quoted(char))

    def _emit(self, source: str, empty: bool = False) -> None:
        """Write an element; `empty` says whether it may match without taking a character."""
        if self._looks_behind() and not empty:
            source = f"(?:{BEHIND}{source})"
        self._out.append(source)
        self._open_groups[-1].add(empty)
        self._repeatable = True
        self._closed = None

    def _bad(self, what: str) -> BadSettings:
        return self._options.bad(f"the pattern {self._pattern!r} is not valid: {what}")

    def _not_supported(self, what: str) -> Exception:
        return self._options.not_supported(f"{what} in the pattern {self._pattern!r}")
