"""Char filters, which rewrite the text before it is divided into tokens.

The corrections of offsets are those of the Lucene classes named below, including their peculiarities, which
highlighting shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Protocol

from searchapp.lucene.analysis.characters import Corrections, from_utf16_units, joined_units, utf16_length
from searchapp.lucene.analysis.java_pattern import JavaRegex
from searchapp.lucene.analysis.java_regex import compile_java
from searchapp.lucene.analysis.options import TRIMMED, Options


class CharFilter(Protocol):
    """Rewrites text."""

    def replace(self, text: str) -> str: ...

    def replace_tracked(self, text: str) -> tuple[str, Corrections]:
        """Return the new text, and the corrections of its offsets."""


class MappingFilter:
    """Replaces fixed strings, the longest possible first (Lucene's `MappingCharFilter`)."""

    def __init__(self, rules: tuple[tuple[str, str], ...]) -> None:
        self._mapping = dict(rules)
        self._changes_ascii = any(map(str.isascii, self._mapping))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:  # slow to compile, and not needed for most queries
        longest_first = sorted(self._mapping, key=len, reverse=True)
        # `(?!)` never matches: a filter without rules changes nothing.
        return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def replace(self, text: str) -> str:
        if text.isascii() and not self._changes_ascii:
            return text
        return self._pattern.sub(lambda match: self._mapping[match[0]], text)

    def replace_tracked(self, text: str) -> tuple[str, Corrections]:
        corrections = Corrections()
        out: list[str] = []
        start = consumed = 0  # in characters, and in code units
        for match in self._pattern.finditer(text):
            replacement = self._mapping[match[0]]
            out += text[start : match.start()], replacement
            consumed += utf16_length(text[start : match.end()])
            start = match.end()
            shift = corrections.total
            saved = utf16_length(match[0]) - utf16_length(replacement)
            if saved > 0:
                corrections.add(consumed - saved - shift, shift + saved, removed=not replacement)
            for extra in range(-saved):  # all additional units map to the end of the old text
                corrections.add(consumed - shift + extra, shift - extra - 1)
        return "".join([*out, text[start:]]), corrections


class PatternReplaceFilter:
    """Replaces the matches of a pattern (Lucene's `PatternReplaceCharFilter`)."""

    def __init__(self, pattern: JavaRegex, template: str) -> None:
        self._pattern = pattern
        self._template = template
        self.leaves_halves = pattern.leaves_halves

    @cached_property
    def replace(self) -> Callable[[str], str]:  # compiles the pattern at the first use
        return self._pattern.substitution(self._template)

    def replace_tracked(self, text: str) -> tuple[str, Corrections]:
        corrections = Corrections()
        text, matches = self._pattern.find_in_units(text)
        out: list[str] = []
        end = written = shift = 0
        for match in matches:
            skipped, replacement = text[end : match.start], match.expand(self._template)
            out += skipped, replacement
            start = written + utf16_length(skipped)
            old, new = utf16_length(text[match.start : match.end]), utf16_length(replacement)
            end, written = match.end, start + new
            if new < old:
                shift += old - new
                corrections.add(written, shift)
            for extra in range(old, new):
                shift -= 1
                corrections.add(start + extra, shift)
        return joined_units("".join([*out, text[end:]])), corrections


_REPLACEMENT_PART = re.compile(
    r"\\(?P<escaped>[\s\S])|\$(?P<digits>[0-9]+)|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}|[^\\$]+"
)


def replacement_template(options: Options, pattern: JavaRegex) -> str:
    r"""Convert the setting `replacement` from Java's syntax (`$1`, `${name}`, `\$`) to a template for `Match.expand`.

    Digits after `$1` belong to the number if the pattern has that many groups.
    """
    source = options.text("replacement", "")
    parts: list[str] = []
    start = 0
    if "$" in source:
        pattern.check_groups(options)
    while start < len(source):
        match = _REPLACEMENT_PART.match(source, start)
        if not match:
            raise options.not_supported(f"the replacement {source!r}, which Java rejects at a match")
        start = match.end()
        if digits := match["digits"]:
            length = 1
            while length < len(digits) and int(digits[: length + 1]) <= pattern.groups:
                length += 1
            is_group = int(digits[:length]) <= pattern.groups
            parts += f"\\g<{int(digits[:length])}>", digits[length:]
        elif match["name"]:
            is_group = match["name"] in pattern.names
            parts.append(f"\\g<{match['name']}>")
        else:
            is_group = True
            parts.append((match["escaped"] or match[0]).replace("\\", "\\\\"))
        if not is_group:
            raise options.not_supported(f"the replacement {source!r}, which refers to a missing group,")
    return "".join(parts)


_RULE = re.compile(r"([^\n\r\u0085\u2028\u2029]*)[ \t\n\x0b\f\r]*=>[ \t\n\x0b\f\r]*"
                   r"([^\n\r\u0085\u2028\u2029]*)[ \t\n\x0b\f\r]*[\u0085\u2028\u2029]?\Z")  # fmt: skip
LONGEST_SIDE = 256  # code units of a side of a rule in Elasticsearch
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\s\S]?))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


# A reopened index has the same rules, and their pattern is slow to compile.
_compiled_rules = lru_cache(maxsize=64)(MappingFilter)


def mapping_filter(options: Options) -> MappingFilter:
    """Make a char filter of type `mapping`: rules such as `ﬁ => fi`, with escapes."""
    options.refuse("mappings_path")
    return _compiled_rules(tuple(_rules(options.strings("mappings"), options).items()))


def _rules(lines: Sequence[str], options: Options) -> dict[str, str]:
    rules: dict[str, str] = {}
    for line in lines:
        left, right = rule_sides(line, options)
        if not left:
            raise options.bad(f"the rule {line!r} has nothing to replace")
        if left in rules:
            raise options.bad(f"two rules replace {left!r}")
        rules[left] = right
    return rules


def rule_sides(line: str, options: Options) -> tuple[str, str]:
    """Return both sides of a rule `a => b` without spaces around them, with their escapes replaced."""
    match = _RULE.search(line)
    if not match:
        raise options.bad(f"the rule {line!r} has no =>")
    left, right = (_unescaped(side.strip(TRIMMED), options) for side in match.groups())
    return left, right


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


def pattern_replace_filter(options: Options) -> PatternReplaceFilter:
    """Make a char filter of type `pattern_replace`."""
    pattern = compile_java(options)
    if not options.text("pattern"):
        raise options.bad("`pattern` is empty")
    return PatternReplaceFilter(pattern, replacement_template(options, pattern))
