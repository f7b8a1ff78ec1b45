"""A compiled Java pattern: its matches as Java returns them, with a time limit.

Texts are UTF-16 in Java. After an empty match Java goes on at the next code unit, which may be the second half of a
surrogate pair, and a pattern without characters beyond U+FFFF is tried at every code unit; there the halves count
as characters (`HalvesFinder`).

Time limit: `re` cannot be interrupted. `regex` can, but takes two to five times as long, so only patterns and texts
whose backtracking may take long are given to it (`longest_text`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import islice
from typing import Any, cast

import regex

from searchapp.lucene.analysis.characters import (
    category_set,
    has_astral,
    joined_units,
    utf16_length,
    utf16_places,
    utf16_units,
)
from searchapp.lucene.analysis.options import Options
from searchapp.lucene.errors import PatternTimeout

SECONDS = 10.0
"""Processor time for one search of one text."""

ALWAYS_SHORT = sys.maxsize
_LONGEST = {0: ALWAYS_SHORT, 1: 20_000, 2: 2_000}
"""The longest text that a pattern with so many loops searches in about a second."""
_MOST_OPTIONS = 15


def longest_text(loops: int, options: int, *, nested: bool) -> int:
    """Return the greatest length of a text that `re` searches within seconds.

    Args:
        loops: unbounded quantifiers one after the other: the time grows with the power of their number
        options: quantifiers `?` one after the other: the time doubles with each
        nested: whether something that may match in several ways is repeated: the time grows exponentially
    """
    return 0 if nested or options > _MOST_OPTIONS else _LONGEST.get(loops, 0)


def limited(source: str, flags: int, written: str) -> re.Pattern[str]:
    """Compile a pattern whose searches raise `PatternTimeout` after `SECONDS`; `written` is how people know it."""
    options = regex.VERSION0 | regex.ASCII | (regex.IGNORECASE if flags & re.IGNORECASE else 0)
    return cast("re.Pattern[str]", _Limited(regex.compile(source, options), written))


@dataclass(frozen=True, slots=True)
class _Limited:
    """What the analyzers use of `re.Pattern`, with a time limit."""

    pattern: Any
    written: str

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        with self._limit(text):
            yield from self.pattern.finditer(text, timeout=SECONDS)

    def findall(self, text: str) -> list[Any]:
        with self._limit(text):
            return list(self.pattern.findall(text, timeout=SECONDS))

    def search(self, text: str, at: int = 0) -> re.Match[str] | None:
        with self._limit(text):
            return cast("re.Match[str] | None", self.pattern.search(text, at, timeout=SECONDS))

    def match(self, text: str, at: int = 0) -> re.Match[str] | None:
        with self._limit(text):
            return cast("re.Match[str] | None", self.pattern.match(text, at, timeout=SECONDS))

    def fullmatch(self, text: str) -> re.Match[str] | None:
        with self._limit(text):
            return cast("re.Match[str] | None", self.pattern.fullmatch(text, timeout=SECONDS))

    def sub(self, template: str, text: str, count: int = 0) -> str:
        with self._limit(text):
            return str(self.pattern.sub(template, text, count, timeout=SECONDS))

    @contextmanager
    def _limit(self, text: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise PatternTimeout(
                f"the pattern {self.written!r} takes longer than {SECONDS:g} s on a text of {len(text):,} characters: "
                "rewrite it without repetitions inside one another"
            ) from error


@dataclass(frozen=True, slots=True)
class Found:
    """A match and where it stands, in code units."""

    start: int
    end: int
    match: re.Match[str]

    def span(self, group: int) -> tuple[int, int]:
        """Where a group stands, in code units; -1 twice for one that took no part."""
        start, end = self.match.span(group)
        return (start, end) if start < 0 else (self._unit(start), self._unit(end))

    def _unit(self, index: int) -> int:
        """The place of an index of the text that was matched."""
        text, first = self.match.string, self.match.start()
        return self.start + (
            utf16_length(text[first:index]) if index >= first else -utf16_length(text[index:first])
        )


class HalvesFinder:
    """Finds the matches of a pattern in one text that has characters beyond U+FFFF.

    Args:
        pattern: for the text as it is
        between: for the text with one character split, looked for at the second half
        everywhere: whether every code unit is a place to look at, and not just those after a match of nothing
    """

    def __init__(
        self, pattern: re.Pattern[str], between: re.Pattern[str], text: str, everywhere: bool
    ) -> None:
        self._pattern = pattern
        self._between = between
        self._text = text
        self._everywhere = everywhere
        places = utf16_places(text)
        self._places = places or list(range(len(text) + 1))
        self._characters = {place: index for index, place in enumerate(self._places)}

    def __iter__(self) -> Iterator[Found]:
        at = 0
        while at <= self._places[-1] and (found := self._next(at)):
            yield found
            at = found.end + (found.end == found.start)

    def _next(self, at: int) -> Found | None:
        """The first match at this code unit or behind it."""
        if at not in self._characters:
            if inside := self._inside(self._characters[at - 1]):
                return inside
            at += 1
        index = self._characters[at]
        match = self._pattern.search(self._text, index)
        if self._everywhere:
            for place in range(index, match.start() if match else len(self._text)):
                if self._text[place] > "\uffff" and (inside := self._inside(place)):
                    return inside
        return Found(self._places[match.start()], self._places[match.end()], match) if match else None

    def _inside(self, index: int) -> Found | None:
        """A match that begins between the halves of the character at this index."""
        text = self._text
        split = text[:index] + utf16_units(text[index]) + text[index + 1 :]
        match = self._between.match(split, index + 1)
        if not match:
            return None
        half = self._places[index] + 1
        end = half if match.end() == index + 1 else self._places[match.end() - 1]
        return Found(half, end, match)


# Placeholders in `_source`: private characters, which the translation writes as escapes everywhere else.
WORD_BOUNDARY = "\ue000"
NOT_BOUNDARY = "\ue001"
BEHIND = "\ue002"
"""Stands before each character in a look-behind."""


@dataclass(frozen=True)
class JavaRegex:
    r"""A compiled Java pattern.

    There can be two Python patterns behind it, because `\b` treats combining marks in a way that takes long to
    decide, and few texts have any.
    """

    groups: int
    _source: str
    _flags: int
    _has_boundary: bool
    _may_be_empty: bool
    _groups_certain: bool
    _in_halves: bool
    _written: str = ""
    _longest: int = ALWAYS_SHORT
    """The length of a text from which on searches have a time limit, see `longest_text`."""

    @property
    def leaves_halves(self) -> bool:
        """Whether it may match between the two halves of a character beyond U+FFFF."""
        return self._may_be_empty

    def check_groups(self, options: Options) -> None:
        """To be called where groups are used: in some places Java and Python keep different ones.

        Raises:
            NotSupported: a group stands in a repeated, possessive or negative one, or may match nothing often
        """
        if not self._groups_certain:
            raise options.not_supported("a group inside of a repeated, atomic or negative one")

    def find(self, text: str) -> Iterator[re.Match[str]]:
        """The matches one after the other, as Java's `Matcher.find` gives them.

        After an empty match Java looks on at the next character; Python would first look for a longer match at
        the same place.
        """
        pattern = self._on(text)
        if not self._may_be_empty:
            yield from pattern.finditer(text)
            return
        at = 0
        while at <= len(text) and (match := pattern.search(text, at)):
            yield match
            at = match.end() + (match.end() == match.start())

    def find_between_halves(self, text: str) -> Iterable[Found] | None:
        """The matches in a text in which that makes a difference, None for any other text, see `halves`."""
        if not self._may_be_empty or not has_astral(text):
            return None
        return HalvesFinder(self._on(text), self._between_halves, text, self._in_halves)

    def find_texts(self, text: str, group: int) -> list[str]:
        """What one group matched, each time that this was not nothing."""
        if not self._may_be_empty and self.groups == 0:
            return self._on(text).findall(text)
        if not self._may_be_empty and group == self.groups == 1:
            return list(filter(None, self._on(text).findall(text)))
        return [found for match in self.find(text) if (found := match[group])]

    def substitute(self, template: str, text: str, count: int = 0) -> str:
        """The text with matches (the first `count` of them, if not 0) replaced by Python's template."""
        if not self._may_be_empty:
            return self._on(text).sub(template, text, count)
        between = self.find_between_halves(text)
        if between is not None:
            return self._substituted(between, template, text, count)
        out: list[str] = []
        at = 0
        is_text = "\\" not in template
        for match in islice(self.find(text), count or None):
            out += text[at : match.start()], template if is_text else match.expand(template)
            at = match.end()
        return "".join([*out, text[at:]])

    def substitution(self, template: str) -> Callable[[str], str]:
        """`substitute` with a template, without looking each time at what depends on the pattern alone."""
        if self._may_be_empty or self._has_boundary or self._longest < ALWAYS_SHORT:
            return partial(self.substitute, template)
        return partial(self._quick.sub, template)

    def _substituted(self, between: Iterable[Found], template: str, text: str, count: int) -> str:
        units = utf16_units(text)
        out: list[str] = []
        at = 0
        for found in islice(between, count or None):
            out += units[at : found.start], found.match.expand(template)
            at = found.end
        return joined_units("".join([*out, units[at:]]))

    def match(self, text: str) -> re.Match[str] | None:
        """The match at the beginning of a text."""
        return self._on(text).match(text)

    def matches(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        return self._on(text).fullmatch(text) is not None

    def _on(self, text: str) -> re.Pattern[str]:
        # The exact pattern has thousands of ranges, which take longer to compile than most texts to analyze.
        if not self._has_boundary or text.isascii() or _mark().search(text) is None:
            return self._quick if len(text) <= self._longest else self._limited
        return self._exact

    @cached_property
    def names(self) -> dict[str, int]:
        return dict(self._quick.groupindex)

    @cached_property
    def _quick(self) -> re.Pattern[str]:
        source = self._source.replace(WORD_BOUNDARY, r"(?:\b)").replace(NOT_BOUNDARY, r"(?:\B|\A\Z)")
        return re.compile(source.replace(BEHIND, ""), self._flags)

    @cached_property
    def _limited(self) -> re.Pattern[str]:
        """The same as `_quick` with a time limit."""
        return limited(self._quick.pattern, self._flags, self._written)

    @cached_property
    def _exact(self) -> re.Pattern[str]:
        return self._looking_behind("")

    @cached_property
    def _between_halves(self) -> re.Pattern[str]:
        """For a text in which one character was split: looking back on its first half sees both."""
        return self._looking_behind("(?![\ud800-\udbff][\udc00-\udfff])")

    def _looking_behind(self, guard: str) -> re.Pattern[str]:
        r"""The pattern with `\b` as in Java, and with a condition for each character that is looked back on."""
        # `regex` because looking back over any number of combining marks takes more than `re` can do.
        source = self._source.replace(WORD_BOUNDARY, _boundary("")).replace(NOT_BOUNDARY, _boundary("!"))
        source = source.replace(BEHIND, guard)
        return limited(source, self._flags, self._written)


@cache
def _mark() -> re.Pattern[str]:
    """A combining mark."""
    return re.compile(f"[{category_set('Mn')}]")


def _boundary(negation: str) -> str:
    r"""Java's `\b` where there may be combining marks: one after a letter or digit counts as a word character.

    Java looks for that letter in steps of code units, so it finds none beyond U+FFFF.
    """
    base = f"[{category_set('L', 'Nd', last=0xFFFF)}]"
    mark = f"[{category_set('Mn', last=0xFFFF)}]"
    left = f"(?:(?<=[A-Za-z0-9_])|(?<={base}{mark}+))"
    right = f"(?:(?=[A-Za-z0-9_])|(?=[{category_set('Mn')}])(?<={base}{mark}*))"
    not_left, not_right = f"(?!{left})", f"(?!{right})"
    if negation:
        return f"(?:{left}{right}|{not_left}{not_right})"
    return f"(?:{left}{not_right}|{not_left}{right})"
