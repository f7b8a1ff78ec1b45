"""Translate Java's regular expressions into patterns of Python's `re`.

Source of the rules: the documentation of `java.util.regex.Pattern`. Syntax that both share is passed on, the rest
is translated (the classes for digits, spaces and words have only ASCII in Java; `$` and `.` know more line ends
than in Python; quotations; named groups), and constructs without an exact counterpart are rejected by name.
Character classes and properties come from the tables of `characters`, so they don't depend on Python's Unicode
version.

Two optimisations keep the matches the same: alternatives that are words become a tree by their first characters
(`the|there|which` becomes `the(?:|re)|which`), and a look-ahead names the characters that a match can begin with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from searchapp.lucene.analysis.characters import CATEGORIES, category_set, has_astral
from searchapp.lucene.analysis.java_pattern import (
    BEHIND,
    NOT_BOUNDARY,
    WORD_BOUNDARY,
    JavaRegex,
    longest_text,
)
from searchapp.lucene.analysis.options import Options
from searchapp.lucene.errors import BadSettings, NotSupported

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


_ELEMENT = re.compile(
    r"""(?P<open>\((?:\?(?:[:=!>]|<[=!]|-?i:|P<\w+>))?)
    | \[(?P<set>(?:\\.|[^\]\\])*)\]
    | (?P<character>[A-Za-z0-9]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})
    | \\.
    | .""",
    re.VERBOSE | re.DOTALL,
)
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?")
_PLAIN_GROUPS = ("(", "(?:", "(?>", "(?i:", "(?-i:")


def with_first_characters(source: str) -> str:
    """The source of a translated pattern behind a look at the next character, where that is known and pays."""
    found = _First(source).alternatives()
    if found is None or len(found) < 2 or not any(one.is_set for one in found):
        return source
    return f"(?=[{''.join(one.inside for one in found)}])(?:{source})"


class _Begin:
    """What an alternative begins with: what stands for it between brackets, and whether it is a set of characters."""

    def __init__(self, inside: str, is_set: bool) -> None:
        self.inside = inside
        self.is_set = is_set


_Begins = list[_Begin] | None
"""What a part of a pattern begins with; None if that is not known, or it may be empty."""


class _First:
    """Reads a translated pattern from `_at` on. ASCII letters alone have two cases, see `re.ASCII`."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._ignores_case = [False]

    def alternatives(self) -> _Begins:
        """What the alternatives begin with, up to the end of the group or of the pattern."""
        found = self._alternative()
        while self._source.startswith("|", self._at):
            self._at += 1
            more = self._alternative()
            found = None if found is None or more is None else found + more
        return found

    def _alternative(self) -> _Begins:
        first: _Begins = None
        begins = True
        while self._at < len(self._source) and self._source[self._at] not in "|)":
            element = self._element()
            if begins:
                first, begins = element, False
        return first

    def _element(self) -> _Begins:
        piece = _ELEMENT.match(self._source, self._at)
        assert piece is not None  # an element is any one character
        self._at = piece.end()
        found: _Begins = None
        if opening := piece["open"]:
            self._ignores_case.append({"(?i:": True, "(?-i:": False}.get(opening, self._ignores_case[-1]))
            found = self.alternatives()
            self._at += 1
            self._ignores_case.pop()
            if opening not in _PLAIN_GROUPS and not opening.startswith("(?P<"):
                found = None
        elif piece["set"] is not None:
            if not piece["set"].startswith("^") and not self._ignores_case[-1]:
                found = [_Begin(piece["set"], is_set=True)]
        elif character := piece["character"]:
            has_cases = self._ignores_case[-1] and len(character) == 1
            found = [_Begin(character.upper() + character.lower() if has_cases else character, is_set=False)]
        quantifier = _QUANTIFIER.match(self._source, self._at)
        if quantifier is not None:
            self._at = quantifier.end()
            if quantifier[0].startswith(("*", "?", "{0")):
                return None
        return found


FEWEST = 3
"""Words from which on a tree pays."""

# In the source that the translator writes, what is neither a letter nor a digit is an escape by its code.
_CHARACTER = r"(?:[A-Za-z0-9]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})"
_RUN = re.compile(rf"{_CHARACTER}+(?:\|{_CHARACTER}+){{{FEWEST - 1},}}(?=[|)]|\Z)")
_PIECE = re.compile(
    r"""(?P<open>\((?:\?(?:[:=!>]|<[=!]|-?i:|P<\w+>))?)
    | (?P<close>\))
    | (?P<or>\|)
    | \[(?:\\.|[^\]\\])*\]
    | \\.
    | .""",
    re.VERBOSE | re.DOTALL,
)


def with_word_trees(source: str, ignores_case: bool) -> str:
    """The source of a translated pattern, in which each run of words among alternatives is a tree.

    `ignores_case` says whether the pattern does so as a whole; parts may do so by themselves. ASCII letters alone have
    two cases, see `re.ASCII`.
    """
    out: list[str] = []
    scopes = [ignores_case]
    at = 0
    begins = True  # whether an alternative begins here
    while at < len(source):
        if begins and (run := _RUN.match(source, at)):
            words = [tuple(re.findall(_CHARACTER, word)) for word in run[0].split("|")]
            out.append(_Trees(scopes[-1]).source(words))
            at = run.end()
            begins = False
            continue
        piece = _PIECE.match(source, at)
        assert piece is not None  # a piece is any one character
        if piece["open"]:
            scopes.append({"(?i:": True, "(?-i:": False}.get(piece["open"], scopes[-1]))
        elif piece["close"]:
            scopes.pop()
        begins = bool(piece["open"] or piece["or"])
        out.append(piece[0])
        at = piece.end()
    return "".join(out)


Word = tuple[str, ...]
"""The sources of a word's characters."""


class _Trees:
    """Writes words as trees; letters of either case are written as sets, which are looked at before they are tried."""

    def __init__(self, ignores_case: bool) -> None:
        self._ignores_case = ignores_case

    def source(self, words: Iterable[Word]) -> str:
        tree = "|".join(self._alternatives(list(dict.fromkeys(words))))
        return f"(?-i:{tree})" if self._ignores_case else f"(?:{tree})"

    def _alternatives(self, words: Sequence[Word]) -> Iterator[str]:
        """The words by their first characters; what stands before and behind an empty word stays there."""
        groups: dict[str, list[Word]] = {}
        for word in words:
            if word:
                first = word[0].lower() if self._ignores_case and len(word[0]) == 1 else word[0]
                groups.setdefault(first, []).append(word[1:])
            else:
                yield from self._branches(groups)
                yield ""
                groups = {}
        yield from self._branches(groups)

    def _branches(self, groups: dict[str, list[Word]]) -> Iterator[str]:
        for first, rests in groups.items():
            alternatives = list(self._alternatives(rests))
            rest = alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"
            yield self._character(first) + rest

    def _character(self, character: str) -> str:
        both = self._ignores_case and character.isalpha()
        return f"[{character.upper()}{character}]" if both else character


FLAGS: Final = frozenset({"CASE_INSENSITIVE", "DOTALL", "MULTILINE", "LITERAL"})
REFUSED_FLAGS: Final = frozenset(
    {"CANON_EQ", "COMMENTS", "UNICODE_CASE", "UNICODE_CHARACTER_CLASS", "UNICODE_CHAR_CLASS", "UNIX_LINES"}
)

REMEMBERED: Final = 512
"""How many compiled patterns are kept: to compile those of its mapping takes most of what opening an index does."""

_compiled: dict[tuple[str, frozenset[str]], JavaRegex] = {}
"""Compiled patterns by what was given and its flags; what is refused is not kept, for it is told with its setting."""

_FEW: Final = 20
"""A quantifier with a greater bound counts as unbounded."""

_START = r"(?:\A)"
_LINE_ENDS = r"\n\r\u0085\u2028\u2029"
_END = r"(?:(?=\r\n\Z)|(?<!\r)(?=\n\Z)|(?=[\r\u0085\u2028\u2029]?\Z))"
_LINE_START = r"(?:(?=[\s\S])(?:\A|(?<=[\n\u0085\u2028\u2029])|(?<=\r)(?!\n)))"
_LINE_END = r"(?:(?=[\r\u0085\u2028\u2029]|\Z)|(?<!\r)(?=\n))"
_GROUP_START = re.compile(r"\(\?(?:[:=!>]|<[=!])")
_NAMED_GROUP = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_ESCAPED_ASTRAL = re.compile(r"\\x\{0*[1-9a-fA-F][0-9a-fA-F]{4,}\}")
_ESCAPED_BEHIND = "an escaped character above U+FFFF in a look-behind"
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
    """A group that is being read: whether what it matches may be empty, and how often a search may try again.

    `loops` and `options` count unbounded quantifiers and `?` in the alternative that is being read, `most_loops` and
    `most_options` in any; `varies` says whether what the group matches can vary.
    """

    opening: str = ""
    captures: int = 0
    alternatives: list[bool] = field(default_factory=list)
    so_far_empty: bool = True
    last_empty: bool = True
    may_match_empty: bool = True
    loops: int = 0
    options: int = 0
    most_loops: int = 0
    most_options: int = 0
    varies: bool = False

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
        self.most_loops, self.most_options = (
            max(self.loops, self.most_loops),
            max(self.options, self.most_options),
        )
        self.loops = self.options = 0

    def close(self) -> bool:
        """Whether what the group matched may be empty, now that it is read."""
        self.alternative()
        self.may_match_empty = self.opening in _LOOKS or any(self.alternatives)
        self.varies |= len(self.alternatives) > 1
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
        self._nested = False  # whether something that varies is repeated
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
        whole = self._open_groups[0]
        may_be_empty = whole.close()
        compiled = JavaRegex(
            self._groups,
            source,
            flags,
            has_boundary,
            may_be_empty,
            self._groups_certain,
            not self._beyond_bmp,
            self._pattern,
            longest_text(whole.most_loops, whole.most_options, nested=self._nested),
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
        if match and not self._repeatable and match[0].startswith("{"):
            self._at = match.end()  # in Java it repeats the empty text before it
            return
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
        self._count(match[0])
        self._repeatable = False
        if match[0].startswith(("*", "?", "{0")):
            self._open_groups[-1].last_empty = True

    def _count(self, quantifier: str) -> None:
        """Note how often a search may try again for a quantifier."""
        around = self._open_groups[-1]
        if quantifier[0] != "?" and self._closed and self._closed.varies:
            self._nested = True
        if len(quantifier) > 1 and quantifier.endswith("+"):
            return  # what it has matched it keeps
        counted = re.fullmatch(r"\{(\d+)(,?)(\d*)\}\??", quantifier)
        if counted and not counted[2]:
            return
        around.varies = True
        if quantifier[0] == "?":
            around.options += 1
        elif not counted or not counted[3] or int(counted[3]) > _FEW:
            around.loops += 1

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
        around = self._open_groups[-1]
        around.loops += group.most_loops
        around.options += group.most_options
        around.varies |= group.varies
        if self._groups > group.captures and group.opening in ("(?!", "(?<!", "(?>"):
            self._groups_certain = False

    def _class(self) -> None:
        if self._looks_behind() and "\\p" in self._pattern.lower():
            raise self._not_supported(r"\p{..} beside a class in a look-behind")
        parser = ClassParser(self._pattern, self._at, self._folds(), self._options)
        self._emit(parser.parse())
        if self._looks_behind() and _ESCAPED_ASTRAL.search(self._pattern, self._at, parser.at):
            raise self._not_supported(_ESCAPED_BEHIND)
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
            if char > "\uffff" and self._looks_behind():
                raise self._not_supported(_ESCAPED_BEHIND)
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
