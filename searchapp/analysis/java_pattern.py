r"""A pattern of Java's, translated and compiled: its matches, as Java gives them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import islice

import regex

from searchapp.analysis.halves import Found, HalvesFinder
from searchapp.analysis.offsets import has_astral, joined_units, utf16_units
from searchapp.analysis.options import Options
from searchapp.analysis.unicode_tables import category_set

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
        if self._may_be_empty or self._has_boundary:
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
            return self._quick
        return self._exact

    @cached_property
    def names(self) -> dict[str, int]:
        return dict(self._quick.groupindex)

    @cached_property
    def _quick(self) -> re.Pattern[str]:
        source = self._source.replace(WORD_BOUNDARY, r"(?:\b)").replace(NOT_BOUNDARY, r"(?:\B|\A\Z)")
        return re.compile(source.replace(BEHIND, ""), self._flags)

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
        flags = regex.VERSION0 | regex.ASCII | (regex.IGNORECASE if self._flags & re.IGNORECASE else 0)
        compiled: re.Pattern[str] = regex.compile(source, flags)
        return compiled


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
