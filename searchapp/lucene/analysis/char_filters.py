r"""Char filters: they rewrite the text before it is cut into tokens.

Each gives the new text, and on request the corrections by which offsets in it become offsets in the old one.
The corrections are those of the Lucene classes named below, with their peculiarities: highlighting shows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from searchapp.lucene.analysis.characters import (
    Corrections,
    from_utf16_units,
    joined_units,
    utf16_length,
    utf16_units,
)
from searchapp.lucene.analysis.java_pattern import Found, JavaRegex
from searchapp.lucene.analysis.java_regex import compile_java
from searchapp.lucene.analysis.options import TRIMMED, Options


class CharFilter(Protocol):
    """Rewrites text."""

    def replace(self, text: str) -> str:
        """The new text."""

    def replace_tracked(self, text: str) -> tuple[str, Corrections]:
        """The new text, and how its offsets relate to the old one's."""


class MappingFilter:
    """Replaces fixed strings, the longest that fits at a place first (Lucene's `MappingCharFilter`)."""

    def __init__(self, mapping: Mapping[str, str]) -> None:
        self._mapping = dict(mapping)
        longest_first = sorted(self._mapping, key=len, reverse=True)
        # `(?!)` matches nowhere: a filter without rules changes nothing.
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._changes_ascii = any(key.isascii() for key in mapping)

    def replace(self, text: str) -> str:
        if text.isascii() and not self._changes_ascii:
            return text
        return self._pattern.sub(self._replacement, text)

    def replace_tracked(self, text: str) -> tuple[str, Corrections]:
        corrections = Corrections()
        out: list[str] = []
        at = consumed = 0  # in characters, and in code units
        for match in self._pattern.finditer(text):
            replacement = self._mapping[match[0]]
            out += text[at : match.start()], replacement
            consumed += utf16_length(text[at : match.end()])
            at = match.end()
            shift = corrections.total
            saved = utf16_length(match[0]) - utf16_length(replacement)
            if saved > 0:
                corrections.add(consumed - saved - shift, shift + saved, removed=not replacement)
            for extra in range(-saved):  # what is longer all stands for the end of what was there
                corrections.add(consumed - shift + extra, shift - extra - 1)
        out.append(text[at:])
        return "".join(out), corrections

    def _replacement(self, match: re.Match[str]) -> str:
        return self._mapping[match[0]]


class PatternReplaceFilter:
    """Replaces what a pattern matches (Lucene's `PatternReplaceCharFilter`)."""

    def __init__(self, pattern: JavaRegex, replacement: Replacement) -> None:
        self._pattern = pattern
        self._replacement = replacement
        self.leaves_halves = pattern.leaves_halves

    def replace(self, text: str) -> str:
        return self._substituted(text)

    @cached_property
    def _substituted(self) -> Callable[[str], str]:
        return self._pattern.substitution(self._replacement.template)  # compiled when it is used first

    def replace_tracked(self, text: str) -> tuple[str, Corrections]:
        corrections = Corrections()
        between = self._pattern.find_between_halves(text)
        if between is None:
            found: Iterable[Found] = (Found(*match.span(), match) for match in self._pattern.find(text))
        else:
            found, text = between, utf16_units(text)
        template = self._replacement.template
        out: list[str] = []
        at = written = shift = 0
        for one in found:
            skipped = text[at : one.start]
            replacement = one.match.expand(template) if "\\" in template else template
            out += skipped, replacement
            start = written + utf16_length(skipped)
            old, new = utf16_length(text[one.start : one.end]), utf16_length(replacement)
            at = one.end
            written = start + new
            if new < old:
                shift += old - new
                corrections.add(written, shift)
            for extra in range(old, new):
                shift -= 1
                corrections.add(start + extra, shift)
        out.append(text[at:])
        return joined_units("".join(out)), corrections


class Replacement:
    r"""A replacement in Java's syntax (`$1`, `${name}`, `\$`), as a template for Python's `Match.expand`.

    Digits after `$1` belong to the number as long as the pattern has that many groups.
    """

    _PART = re.compile(
        r"\\(?P<escaped>[\s\S])|\$(?P<digits>[0-9]+)|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}|[^\\$]+"
    )

    def __init__(self, source: str, pattern: JavaRegex, options: Options) -> None:
        parts: list[str] = []
        at = 0
        if "$" in source:
            pattern.check_groups(options)
        while at < len(source):
            match = self._PART.match(source, at)
            if not match:
                raise options.not_supported(
                    f"the replacement {source!r}, which Java refuses when it replaces something"
                )
            at = match.end()
            if match["digits"]:
                number, rest = _group_number(match["digits"], pattern.groups)
                if number > pattern.groups:
                    raise options.not_supported(
                        f"the replacement {source!r}, which names a group that is not there,"
                    )
                parts += f"\\g<{number}>", rest
            elif match["name"]:
                if match["name"] not in pattern.names:
                    raise options.not_supported(
                        f"the replacement {source!r}, which names a group that is not there,"
                    )
                parts.append(f"\\g<{match['name']}>")
            else:
                parts.append((match["escaped"] or match[0]).replace("\\", "\\\\"))
        self.template = "".join(parts)


def _group_number(digits: str, groups: int) -> tuple[int, str]:
    """The group that the digits mean, and the digits that are text after it."""
    length = 1
    while length < len(digits) and int(digits[: length + 1]) <= groups:
        length += 1
    return int(digits[:length]), digits[length:]


_RULE = re.compile(r"([^\n\r\u0085\u2028\u2029]*)[ \t\n\x0b\f\r]*=>[ \t\n\x0b\f\r]*"
                   r"([^\n\r\u0085\u2028\u2029]*)[ \t\n\x0b\f\r]*[\u0085\u2028\u2029]?\Z")  # fmt: skip
LONGEST_SIDE = 256
"""Code units of one side of a rule: Elasticsearch reads it into an array of this length."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\s\S]?))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


REMEMBERED = 64
"""How many mapping filters are kept: an index that is opened has the same rules as when it was opened before."""

_mapping_filters: dict[tuple[str, ...], MappingFilter] = {}
"""Filters by their rules; what is refused is not kept, for it is told with its setting."""


def mapping_filter(options: Options) -> MappingFilter:
    """A char filter of type `mapping`: rules such as `ﬁ => fi`, with escapes for space and the like."""
    options.refuse("mappings_path")
    rules = tuple(options.strings("mappings"))
    if (made := _mapping_filters.get(rules)) is None:
        made = MappingFilter(_mapping(rules, options))
        if len(_mapping_filters) >= REMEMBERED:
            _mapping_filters.clear()
        _mapping_filters[rules] = made
    return made


def _mapping(rules: Sequence[str], options: Options) -> dict[str, str]:
    """What rules replace, and by what."""
    mapping: dict[str, str] = {}
    for rule in rules:
        match = _RULE.search(rule)
        if not match:
            raise options.bad(f"the rule {rule!r} has no =>")
        left, right = (_unescaped(side.strip(TRIMMED), options) for side in match.groups())
        if not left:
            raise options.bad(f"the rule {rule!r} has nothing to replace")
        if left in mapping:
            raise options.bad(f"two rules replace {left!r}")
        mapping[left] = right
    return mapping


def pattern_replace_filter(options: Options) -> PatternReplaceFilter:
    """A char filter of type `pattern_replace`."""
    pattern = compile_java(options)
    if not options.text("pattern"):
        raise options.bad("`pattern` is empty")
    return PatternReplaceFilter(pattern, Replacement(options.text("replacement", ""), pattern, options))


def _unescaped(side: str, options: Options) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if not match[2] or match[2] == "u":
            raise options.bad(f"an escape in {side!r} is not complete")
        return _ESCAPES.get(match[2], match[2])

    units = _ESCAPE.sub(character, side) if "\\" in side else side
    if utf16_length(units) > LONGEST_SIDE:
        raise options.bad(f"a side of a rule has more than {LONGEST_SIDE} characters: {units[:20]!r}…")
    text = from_utf16_units(units)
    if "\ufffd" in text and "\ufffd" not in units:
        raise options.not_supported(f"half a surrogate pair in {side!r}")
    return text
