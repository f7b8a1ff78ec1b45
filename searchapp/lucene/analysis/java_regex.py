"""Translation of Java's regular expressions into patterns of Python's `re`.

Source: the documentation of `java.util.regex.Pattern`. Syntax with another meaning is translated (ASCII classes for
digits, spaces and words; more line ends for `$` and `.`; quotations; named groups), or rejected by name. Character
classes and properties use the tables of `characters`, independent of Python's Unicode version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

from searchapp.lucene.analysis.characters import CATEGORIES, category_set, has_astral
from searchapp.lucene.analysis.java_pattern import (
    BEHIND,
    NOT_BOUNDARY,
    UNCERTAIN_GROUP,
    WORD_BOUNDARY,
    JavaRegex,
)
from searchapp.lucene.analysis.options import Options
from searchapp.lucene.dataclass import dataclass

# Optimisations of a translated source, in which a character is a letter, a digit or an escape by its code.
_CHARACTER = r"(?:[A-Za-z0-9]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})"
_ELEMENT = re.compile(
    rf"""(?P<open>\((?:\?(?:[:=!>]|<[=!]|-?i:|P<\w+>))?)
    | (?P<close>\))
    | (?P<or>\|)
    | \[(?P<set>(?:\\.|[^\]\\])*)\]
    | (?P<character>{_CHARACTER})
    | \\.
    | .""",
    re.VERBOSE | re.DOTALL,
)
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?")
_CASES: Final = {
    "(?i:": True,
    "(?-i:": False,
}  # whether a group ignores the case of ASCII letters (see `re.ASCII`)
_PLAIN_GROUPS = ("(", "(?:", "(?>", *_CASES)

# First characters of alternatives, as the content of brackets, and whether they are a set; None if unknown.
_Beginnings = list[tuple[str, bool]] | None


def with_first_characters(source: str) -> str:
    """Add a look-ahead at the first character, if it is known and saves time."""
    beginnings = _FirstCharacters(source).alternatives(ignores_case=False)
    if beginnings is None or len(beginnings) < 2 or not any(is_set for _, is_set in beginnings):
        return source
    return f"(?=[{''.join(inside for inside, _ in beginnings)}])(?:{source})"


class _FirstCharacters:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def alternatives(self, ignores_case: bool) -> _Beginnings:
        """Return the beginnings of all alternatives up to the end of the group or the source."""
        beginnings = self._alternative(ignores_case)
        while self._source.startswith("|", self._at):
            self._at += 1
            more = self._alternative(ignores_case)
            beginnings = None if beginnings is None or more is None else beginnings + more
        return beginnings

    def _alternative(self, ignores_case: bool) -> _Beginnings:
        elements = []
        while self._at < len(self._source) and self._source[self._at] not in "|)":
            elements.append(self._element(ignores_case))
        return elements[0] if elements else None

    def _element(self, ignores_case: bool) -> _Beginnings:
        element = _ELEMENT.match(self._source, self._at)
        assert element is not None  # any character is an element
        self._at = element.end()
        beginnings: _Beginnings = None
        if opening := element["open"]:
            inside = self.alternatives(_CASES.get(opening, ignores_case))
            self._at += 1
            if opening in _PLAIN_GROUPS or opening.startswith("(?P<"):
                beginnings = inside
        elif element["set"] is not None:
            if not element["set"].startswith("^") and not ignores_case:
                beginnings = [(element["set"], True)]
        elif character := element["character"]:
            has_cases = ignores_case and len(character) == 1
            beginnings = [(character.upper() + character.lower() if has_cases else character, False)]
        if quantifier := _QUANTIFIER.match(self._source, self._at):
            self._at = quantifier.end()
            if quantifier[0].startswith(("*", "?", "{0")):
                return None
        return beginnings


_FEWEST = 3  # number of words from which a tree saves time
_WORDS = re.compile(rf"{_CHARACTER}+(?:\|{_CHARACTER}+){{{_FEWEST - 1},}}(?=[|)]|\Z)")


def with_word_trees(source: str, ignores_case: bool) -> str:
    """Convert each run of words among alternatives to a prefix tree: `the|there|which` to `the(?:|re)|which`.

    Args:
        source: a translated source.
        ignores_case: whether the pattern ignores case, unless a group overrides it.
    """
    out: list[str] = []
    scopes = [ignores_case]
    at = 0
    is_alternative_start = True
    while at < len(source):
        if is_alternative_start and (run := _WORDS.match(source, at)):
            words = [tuple(re.findall(_CHARACTER, word)) for word in run[0].split("|")]
            tree = "|".join(_alternatives(dict.fromkeys(words), scopes[-1]))
            # Sets of both cases let `re` reject an alternative by its first character.
            out.append(f"(?-i:{tree})" if scopes[-1] else f"(?:{tree})")
            at = run.end()
            is_alternative_start = False
            continue
        element = _ELEMENT.match(source, at)
        assert element is not None  # any character is an element
        if opening := element["open"]:
            scopes.append(_CASES.get(opening, scopes[-1]))
        elif element["close"]:
            scopes.pop()
        is_alternative_start = bool(opening or element["or"])
        out.append(element[0])
        at = element.end()
    return "".join(out)


_Word = tuple[str, ...]  # the sources of a word's characters


def _alternatives(words: Iterable[_Word], ignores_case: bool) -> Iterator[str]:
    groups: dict[str, list[_Word]] = {}
    for word in words:
        if word:
            first = word[0].lower() if ignores_case and len(word[0]) == 1 else word[0]
            groups.setdefault(first, []).append(word[1:])
        else:
            yield from _branches(groups, ignores_case)
            yield ""
            groups = {}
    yield from _branches(groups, ignores_case)


def _branches(groups: dict[str, list[_Word]], ignores_case: bool) -> Iterator[str]:
    for first, rests in groups.items():
        alternatives = list(_alternatives(rests, ignores_case))
        rest = alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"
        yield (f"[{first.upper()}{first}]" if ignores_case and first.isalpha() else first) + rest


_LAZY_END = re.compile(
    rf"""\[\\s\\S\]\*\?
    (?P<end> {_CHARACTER}+ | \(\?: {_CHARACTER}+ (?:\|{_CHARACTER}+)* (?:\|\(\?:\\Z\))? \) )
    \Z""",
    re.VERBOSE,
)
_WORD_START = re.compile(rf"(?:\A|\(\?:|\|)({_CHARACTER})")


def with_skipping_end(source: str) -> str:
    r"""Let a pattern that ends with `[\s\S]*?` and words skip to the first characters of the words.

    The loop would try the words at each character.
    """
    match = _LAZY_END.search(source)
    if not match:
        return source
    end = match["end"]
    first = "".join(dict.fromkeys(_WORD_START.findall(end)))
    return f"{source[: match.start()]}[^{first}]*+(?:(?!{end})[{first}][^{first}]*+)*+{end}"


# Translation

_FLAGS: Final = frozenset({"CASE_INSENSITIVE", "DOTALL", "MULTILINE", "LITERAL"})
_REFUSED_FLAGS: Final = frozenset(
    {"CANON_EQ", "COMMENTS", "UNICODE_CASE", "UNICODE_CHARACTER_CLASS", "UNICODE_CHAR_CLASS", "UNIX_LINES"}
)
_INLINE_FLAGS: Final = {"i": "CASE_INSENSITIVE", "s": "DOTALL", "m": "MULTILINE"}

_NAMED_SETS: Final = {
    **{letter: f"\\{letter}" for letter in "dDsSwW"},  # the same as in Java under `re.ASCII`
    "h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n\x0b\f\r\x85\u2028\u2029",
}
_POSIX: Final = {  # ASCII characters only
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
# Properties that match letters of any case under CASE_INSENSITIVE in Java.
_CASED: Final = frozenset({"Lower", "Upper", "Lu", "Ll", "Lt", "LC"})

_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CODED = re.compile(
    r"\\(?:u+([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|0([0-3]?[0-7]{1,2}))", re.ASCII
)
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|([A-Z]))")

_START = r"(?:\A)"
_LINE_ENDS = r"\n\r\u0085\u2028\u2029"
_END = r"(?:(?=\r\n\Z)|(?<!\r)(?=\n\Z)|(?=[\r\u0085\u2028\u2029]?\Z))"
_LINE_START = r"(?:(?=[\s\S])(?:\A|(?<=[\n\u0085\u2028\u2029])|(?<=\r)(?!\n)))"
_LINE_END = r"(?:(?=[\r\u0085\u2028\u2029]|\Z)|(?<!\r)(?=\n))"
_ANCHORS: Final = {"A": _START, "z": r"(?:\Z)", "Z": _END, "b": WORD_BOUNDARY, "B": NOT_BOUNDARY}

_GROUP_START = re.compile(r"\(\?(?:[:=!>]|<[=!])")
_NAMED_GROUP = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_FLAG_GROUP = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_ESCAPED_ASTRAL = re.compile(r"\\x\{0*[1-9a-fA-F][0-9a-fA-F]{4,}\}")
_ESCAPED_BEHIND = "an escaped character above U+FFFF in a look-behind"
_LOOK_BEHINDS = ("(?<=", "(?<!")
_LOOKS = ("(?=", "(?!", *_LOOK_BEHINDS)


class _Unsupported(Exception):
    """Python has no equivalent of a part of the pattern."""


class _Invalid(Exception):
    """Java rejects the pattern too."""


def compile_java(
    options: Options, setting: str = "pattern", default: str | None = None, *, has_flags: bool = True
) -> JavaRegex:
    """Compile the pattern of a piece's settings, with its `flags` if the piece has that setting.

    Raises:
        NotSupported: Python has no equivalent of a part of the pattern.
        BadSettings: Java rejects the pattern too.
    """
    pattern = options.text(setting, default)
    flag_names = options.text("flags", "") if has_flags else ""
    flags = {name.upper() for name in flag_names.split("|") if name}
    if refused := sorted(flags & _REFUSED_FLAGS):
        raise options.not_supported(f"flag {refused[0]}")
    if unknown := sorted(flags - _FLAGS):
        raise options.bad(f"unknown flag {unknown[0]}")
    try:
        return _compiled(pattern, frozenset(flags))
    except _Unsupported as error:
        raise options.not_supported(str(error)) from None
    except _Invalid as error:
        raise options.bad(str(error)) from None


@lru_cache(maxsize=512)  # compiling the patterns of its mapping takes most of the time to open an index
def _compiled(pattern: str, flags: frozenset[str]) -> JavaRegex:
    return _Translator(pattern, flags).compile()


@dataclass
class _Group:
    opening: str = ""
    captures: int = 0  # capturing groups before it
    may_match_empty: bool = False
    so_far_empty: bool = True  # whether the current alternative, without its last element, may match nothing
    last_empty: bool = True

    def add(self, may_be_empty: bool) -> None:
        self.so_far_empty = self.so_far_empty and self.last_empty
        self.last_empty = may_be_empty

    def end_alternative(self) -> None:
        self.add(True)
        self.may_match_empty |= self.so_far_empty
        self.so_far_empty = True

    def close(self) -> None:
        self.end_alternative()
        self.may_match_empty |= self.opening in _LOOKS

    @property
    def is_capturing(self) -> bool:
        return self.opening == "(" or self.opening.startswith("(?P")


class _Translator:
    def __init__(self, pattern: str, flags: Iterable[str]) -> None:
        self._pattern = pattern
        self._flags = set(flags)
        self._at = 0
        self._groups = 0
        self._out: list[str] = []
        self._is_repeatable = False
        self._open_groups = [_Group()]
        self._closed: _Group | None = None  # the group that ends here
        self._groups_certain = True
        self._has_reference = False
        # Whether Java expects characters beyond U+FFFF in matches, and skips their low surrogates.
        self._beyond_bmp = has_astral(pattern)

    def compile(self) -> JavaRegex:
        if "LITERAL" in self._flags:
            self._literals(self._pattern)
        else:
            self._leading_flags()
            while self._at < len(self._pattern):
                self._step()
        ignores_case = "CASE_INSENSITIVE" in self._flags
        source = with_skipping_end("".join(self._out))
        source = with_first_characters(with_word_trees(source, ignores_case))
        pattern = self._open_groups[0]
        pattern.close()
        if self._has_reference and not self._groups_certain:
            raise _Unsupported(UNCERTAIN_GROUP)
        compiled = JavaRegex(
            self._groups,
            source,
            re.ASCII | (re.IGNORECASE if ignores_case else 0),
            pattern.may_match_empty,
            self._groups_certain,
            not self._beyond_bmp,
            self._pattern,
        )
        try:
            _ = compiled.names
        except re.error as error:
            if "look-behind" in str(error):
                raise self._unsupported("a look-behind of variable length") from None
            raise self._unsupported(f"what Python calls {error.msg!r}") from None
        return compiled

    def _leading_flags(self) -> None:
        # `(?i)` is supported at the beginning only; Java's scope has no equivalent elsewhere.
        while (match := _FLAG_GROUP.match(self._pattern, self._at)) and match[3] == ")" and not match[2]:
            for letter in match[1]:
                if letter not in _INLINE_FLAGS:
                    raise self._unsupported(f"the inline flag {letter}")
                self._flags.add(_INLINE_FLAGS[letter])
            self._at = match.end()

    def _step(self) -> None:
        char = self._pattern[self._at]
        multiline = "MULTILINE" in self._flags
        step: Callable[[], None] | None = {
            "\\": self._escape,
            "[": self._class,
            "(": self._open,
            **dict.fromkeys("*+?{", self._quantifier),
        }.get(char)
        if step:
            step()
            return
        self._at += 1
        match char:
            case ".":
                self._beyond_bmp = True
                self._emit(r"[\s\S]" if "DOTALL" in self._flags else f"[^{_LINE_ENDS}]")
            case "^":
                self._emit(_LINE_START if multiline else _START, may_be_empty=True)
            case "$":
                self._emit(_LINE_END if multiline else _END, may_be_empty=True)
            case "|":
                self._out.append(char)
                self._open_groups[-1].end_alternative()
                self._is_repeatable = False
            case ")":
                self._close()
            case _:
                self._literals(char)

    def _quantifier(self) -> None:
        match = _QUANTIFIER.match(self._pattern, self._at)
        if match and not self._is_repeatable and match[0].startswith("{"):
            self._at = match.end()  # in Java it repeats the preceding empty text
            return
        if not match or not self._is_repeatable:
            raise self._invalid(f"nothing to repeat at {self._pattern[self._at :]!r}")
        quantifier = match[0]
        self._at = match.end()
        is_possessive = len(quantifier) > 1 and quantifier.endswith("+")
        group, around = self._closed, self._open_groups[-1]
        if group and self._groups > group.captures:
            is_single = self._groups == group.captures + 1 and group.is_capturing
            if not is_single or is_possessive or group.may_match_empty:
                self._groups_certain = False
        self._out.append(quantifier)
        self._is_repeatable = False
        if quantifier.startswith(("*", "?", "{0")):
            around.last_empty = True

    def _open(self) -> None:
        pattern = self._pattern
        opening = "("
        if match := _GROUP_START.match(pattern, self._at):
            opening = match[0]
        elif match := _NAMED_GROUP.match(pattern, self._at):
            opening = f"(?P<{match[1]}>"
        elif match := _FLAG_GROUP.match(pattern, self._at):
            if match[0] != "(?i:" or "CASE_INSENSITIVE" in self._flags:
                raise self._unsupported(f"the inline flag {match[0]}")
            opening = match[0]
        elif pattern.startswith("(?", self._at):
            raise self._unsupported(f"the group {pattern[self._at : self._at + 4]}")
        self._at += len(match[0]) if match else 1
        self._out.append(opening)
        group = _Group(opening, self._groups)
        self._groups += group.is_capturing
        self._open_groups.append(group)
        self._is_repeatable = False

    def _close(self) -> None:
        if len(self._open_groups) == 1:
            raise self._invalid("an unmatched )")
        group = self._open_groups.pop()
        group.close()
        if self._out[-2:] == ["(?!", r"[\s\S]"]:  # Java's `\z` in patterns of older syntax
            del self._out[-2:]
            self._emit(r"(?:\Z)", may_be_empty=True)  # quicker in `re`
        else:
            self._emit(")", may_be_empty=group.may_match_empty)
        self._closed = group
        if self._groups > group.captures and group.opening in ("(?!", "(?<!", "(?>"):
            self._groups_certain = False

    def _class(self) -> None:
        if self._in_look_behind and "\\p" in self._pattern.lower():
            raise self._unsupported(r"\p{..} beside a class in a look-behind")
        start = self._at
        self._at += 1
        out = ["["]
        if self._peek() == "^":
            out.append("^")
            self._at += 1
            self._beyond_bmp = True
        if self._peek() == "]":
            raise self._unsupported("] as the first character of a class")
        while self._peek() != "]":
            out.append(self._class_item())
        self._at += 1
        self._emit("".join([*out, "]"]))
        if self._in_look_behind and _ESCAPED_ASTRAL.search(self._pattern, start, self._at):
            raise self._unsupported(_ESCAPED_BEHIND)

    def _class_item(self) -> str:
        low = self._class_element()
        if self._peek() != "-" or self._peek(1) == "]":
            return low if len(low) > 1 else _quoted(low)
        if self._peek(1) == "[" or len(low) > 1:
            raise self._unsupported("a - after a set in a class")
        self._at += 1
        high = self._class_element()
        if len(high) > 1:
            raise self._unsupported("a - before a set in a class")
        self._beyond_bmp |= self._folds or low <= "\udfff" <= high or high > "\uffff"
        if high < low:
            raise self._invalid(f"range {low}-{high}")
        return f"{_quoted(low)}-{_quoted(high)}"

    def _class_element(self) -> str:
        """Return a single character in brackets, or the longer source of a named set."""
        char = self._peek()
        if char == "[":
            raise self._unsupported("a class inside a class")
        if char == "&" and self._peek(1) == "&":
            raise self._unsupported("&& in a class")
        if char != "\\":
            self._at += 1
            self._beyond_bmp |= char > "\uffff"
            return char
        letter = self._peek(1)
        if letter in _NAMED_SETS:
            return self._named_set(letter)
        if letter in ("p", "P"):
            return self._property()
        if letter in ("Q", "E"):
            raise self._unsupported(r"\Q..\E in a class")
        return self._escaped_character()

    def _peek(self, ahead: int = 0) -> str:
        if self._at + ahead < len(self._pattern):
            return self._pattern[self._at + ahead]
        raise self._invalid("a class without ]")

    @property
    def _folds(self) -> bool:
        return "CASE_INSENSITIVE" in self._flags or "(?i:" in self._out

    @property
    def _in_look_behind(self) -> bool:
        return any(group.opening in _LOOK_BEHINDS for group in self._open_groups)

    def _escape(self) -> None:
        letter = self._pattern[self._at + 1 : self._at + 2]
        if letter == "Q":
            end = self._pattern.find("\\E", self._at + 2)
            self._literals(self._pattern[self._at + 2 : end if end >= 0 else len(self._pattern)])
            self._at = end + 2 if end >= 0 else len(self._pattern)
        elif letter == "b" and self._pattern.startswith("{", self._at + 2):
            raise self._unsupported(r"\b{..}")
        elif letter in _ANCHORS:
            self._at += 2
            self._emit(_ANCHORS[letter], may_be_empty=True)
        elif letter in _NAMED_SETS:
            self._emit(f"[{self._named_set(letter)}]")
        elif letter in ("p", "P"):
            if self._in_look_behind:
                raise self._unsupported(r"\p{..} in a look-behind")
            self._emit(f"[{self._property()}]")
        elif letter.isdigit() and letter != "0":
            self._reference()
        elif letter == "k":
            raise self._unsupported(r"\k<name>")
        elif letter in ("G", "R", "X", "N"):
            raise self._unsupported(f"\\{letter}")
        else:
            char = self._escaped_character()
            if char > "\uffff" and self._in_look_behind:
                raise self._unsupported(_ESCAPED_BEHIND)
            self._beyond_bmp |= char > "\uffff"
            self._literals(char)

    def _named_set(self, letter: str) -> str:
        self._at += 2
        self._beyond_bmp |= letter.isupper()
        return _NAMED_SETS[letter]

    def _property(self) -> str:
        match = _PROPERTY.match(self._pattern, self._at)
        refused = _Unsupported(f"the property {(match or self._pattern[self._at :])[0]} in the pattern")
        if not match or match[2]:
            raise refused
        is_negative = match[1] == "P"
        self._beyond_bmp |= is_negative or match[3] not in _POSIX
        self._at = match.end()
        name = match[3] or match[4]
        category = name.removeprefix("Is")
        if self._folds and category in _CASED:
            raise refused
        if name in _POSIX:
            if is_negative:
                raise refused
            return _POSIX[name]
        if len(category) > 2 or not any(key.startswith(category) for key in CATEGORIES):
            raise refused
        return category_set(*(key for key in CATEGORIES if key.startswith(category) != is_negative))

    def _escaped_character(self) -> str:
        if match := _CODED.match(self._pattern, self._at):
            code = int(match[4], 8) if match[4] else int(match[1] or match[2] or match[3], 16)
            if 0xD800 <= code < 0xE000:
                raise self._unsupported("half a surrogate pair")
            if code > 0x10FFFF:
                raise self._invalid(f"no character {match[0]}")
            self._at = match.end()
            return chr(code)
        letter = self._pattern[self._at + 1 : self._at + 2]
        if letter not in _CONTROL and (not letter or (letter.isascii() and letter.isalnum())):
            raise self._unsupported(f"the escape \\{letter}")
        self._at += 2
        return _CONTROL.get(letter, letter)

    def _reference(self) -> None:
        r"""Translate `\1`; further digits belong to the number if there are that many groups."""
        end = self._at + 2
        number = int(self._pattern[self._at + 1])
        if number > self._groups:
            raise self._unsupported(f"\\{number} before the group it refers to")
        while end < len(self._pattern) and self._pattern[end] in "0123456789":
            longer = number * 10 + int(self._pattern[end])
            if longer > self._groups:
                break
            number, end = longer, end + 1
        self._at = end
        self._has_reference = True
        self._emit(f"(?:\\{number})", may_be_empty=True)

    def _literals(self, text: str) -> None:
        for char in text:
            self._emit(_quoted(char))

    def _emit(self, source: str, may_be_empty: bool = False) -> None:
        """Write an element; `may_be_empty`: whether it may match nothing."""
        if self._in_look_behind and not may_be_empty:
            source = f"(?:{BEHIND}{source})"
        self._out.append(source)
        self._open_groups[-1].add(may_be_empty)
        self._is_repeatable = True
        self._closed = None

    def _invalid(self, problem: str) -> _Invalid:
        return _Invalid(f"the pattern {self._pattern!r} is not valid: {problem}")

    def _unsupported(self, construct: str) -> _Unsupported:
        return _Unsupported(f"{construct} in the pattern {self._pattern!r}")


def _quoted(char: str) -> str:
    if char.isascii() and char.isalnum():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
