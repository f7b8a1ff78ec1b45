"""A compiled Java pattern: its matches as Java returns them, with a time limit.

`re` cannot be interrupted. `regex` can, but takes two to five times as long, so only patterns and texts with possibly
long backtracking use it (`backtracking`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from searchapp.lucene.analysis.backtracking import ALWAYS_SHORT, SearchLimit, search_limit
from searchapp.lucene.analysis.characters import (
    category_set,
    has_astral,
    joined_units,
    utf16_length,
    utf16_offsets,
    utf16_units,
)
from searchapp.lucene.analysis.options import Options
from searchapp.lucene.analysis.syntax_tree import SyntaxTree
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import PatternTimeout

if TYPE_CHECKING:
    from searchapp.lucene.analysis.adjacency import Adjacency

SECONDS = 10.0  # processor time for one search of one text

# Java and Python may capture different groups in this construct.
UNCERTAIN_GROUP = "a group inside a repeated, atomic or negative group"


@dataclass(frozen=True, slots=True)
class _LimitedPattern:
    """The methods of `re.Pattern` that analyzers use, with a time limit; `written` is the pattern in the settings."""

    pattern: Any
    written: str

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        with self._limit(text):
            yield from self.pattern.finditer(text, timeout=SECONDS)

    def findall(self, text: str) -> list[Any]:
        with self._limit(text):
            return list(self.pattern.findall(text, timeout=SECONDS))

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        with self._limit(text):
            return cast("re.Match[str] | None", self.pattern.search(text, start, timeout=SECONDS))

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        with self._limit(text):
            return cast("re.Match[str] | None", self.pattern.match(text, start, timeout=SECONDS))

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
                f"the pattern {self.written!r} takes longer than {SECONDS:g} s on a text of "
                f"{len(text):,} characters: rewrite it without nested repetitions"
            ) from error


@dataclass(frozen=True, slots=True)
class JavaMatch:
    """A match and its span; `in_units`: the span counts code units, while the span of `match` counts characters."""

    start: int
    end: int
    match: re.Match[str]
    in_units: bool = False

    def span(self, group: int) -> tuple[int, int]:
        """Return the span of a group; (-1, -1) for a group without match."""
        start, end = self.match.span(group)
        return (self._unit(start), self._unit(end)) if self.in_units and start >= 0 else (start, end)

    def _unit(self, index: int) -> int:
        text, first = self.match.string, self.match.start()
        if index >= first:
            return self.start + utf16_length(text[first:index])
        return self.start - utf16_length(text[index:first])

    def expand(self, template: str) -> str:
        return self.match.expand(template) if "\\" in template else template


# Java texts are UTF-16. After an empty match Java continues at the next code unit, which may be a low surrogate, and it
# tries a pattern without characters beyond U+FFFF at every code unit; there surrogates count as characters.
class _HalvesFinder:
    """Finds the matches of a pattern in a text with characters beyond U+FFFF.

    Args:
        pattern: the pattern for the text.
        between: the pattern for the text with one character split, tried at its low surrogate.
        everywhere: whether matches may begin at every code unit, not only after an empty match.
    """

    def __init__(
        self, pattern: re.Pattern[str], between: re.Pattern[str], text: str, everywhere: bool
    ) -> None:
        self._pattern = pattern
        self._between = between
        self._text = text
        self._everywhere = everywhere
        self._units = utf16_offsets(text) or list(range(len(text) + 1))
        self._indices = {unit: index for index, unit in enumerate(self._units)}

    def __iter__(self) -> Iterator[JavaMatch]:
        start = 0
        while start <= self._units[-1] and (match := self._next(start)):
            yield match
            start = match.end + (match.end == match.start)

    def _next(self, unit: int) -> JavaMatch | None:
        if unit not in self._indices:
            if match_in_pair := self._match_in_pair(self._indices[unit - 1]):
                return match_in_pair
            unit += 1
        index = self._indices[unit]
        match = self._pattern.search(self._text, index)
        if self._everywhere:
            for candidate in range(index, match.start() if match else len(self._text)):
                if self._text[candidate] > "\uffff" and (match_in_pair := self._match_in_pair(candidate)):
                    return match_in_pair
        return JavaMatch(self._units[match.start()], self._units[match.end()], match, True) if match else None

    def _match_in_pair(self, index: int) -> JavaMatch | None:
        """Return a match that begins inside the surrogate pair of the character at this index."""
        text = self._text
        split = text[:index] + utf16_units(text[index]) + text[index + 1 :]
        match = self._between.match(split, index + 1)
        if not match:
            return None
        start = self._units[index] + 1
        end = start if match.end() == index + 1 else self._units[match.end() - 1]
        return JavaMatch(start, end, match, True)


# Placeholders in a translated source: private-use characters, which the translation escapes elsewhere.
WORD_BOUNDARY = "\ue000"
NOT_BOUNDARY = "\ue001"
BEHIND = "\ue002"  # precedes each character in a look-behind


@dataclass(frozen=True)
class JavaRegex:
    """A compiled Java pattern."""

    groups: int
    _source: str
    _flags: int
    _may_be_empty: bool
    _groups_certain: bool  # whether Java and Python always capture the same groups
    _in_halves: bool  # whether Java tries the pattern at low surrogates
    _written: str = ""

    @property
    def leaves_halves(self) -> bool:
        return self._may_be_empty

    def check_groups(self, options: Options) -> None:
        """Reject the use of groups that Java and Python may capture differently.

        Raises:
            NotSupported: a group is in a repeated, possessive or negative group, or may match nothing repeatedly.
        """
        if not self._groups_certain:
            raise options.not_supported(UNCERTAIN_GROUP)

    def find(self, text: str) -> Iterator[re.Match[str]]:
        pattern = self._pattern_for(text)
        if not self._may_be_empty:
            yield from pattern.finditer(text)
            return
        start = 0  # after an empty match Java advances; Python first tries a longer match at the same index
        while start <= len(text) and (match := pattern.search(text, start)):
            yield match
            start = match.end() + (match.end() == match.start())

    def splits(self, text: str) -> bool:
        """Return whether a match may begin inside a surrogate pair of the text."""
        return self._may_be_empty and has_astral(text)

    def find_in_units(self, text: str) -> tuple[str, Iterable[JavaMatch]]:
        """Return the text, in code units if the pattern `splits` it, and its matches."""
        if not self.splits(text):
            return text, (JavaMatch(*match.span(), match) for match in self.find(text))
        finder = _HalvesFinder(self._pattern_for(text), self._between_halves, text, self._in_halves)
        return utf16_units(text), finder

    def text_finder(self, group: int) -> Callable[[str], list[str]]:
        """Return the function from a text to what a group matches in it, without empty strings."""
        if self._may_be_empty or not group == self.groups <= 1:
            return lambda text: [part for match in self.find(text) if (part := match[group])]
        pattern_for = self._pattern_for
        longest = -1 if self._has_boundary else self._limit.longest
        quick = self._quick.findall

        def find(text: str) -> list[str]:
            return quick(text) if len(text) <= longest else pattern_for(text).findall(text)

        return (lambda text: list(filter(None, find(text)))) if group else find

    def substitute(self, template: str, text: str, count: int = 0) -> str:
        """Replace matches (the first `count` of them, if not 0) by Python's template."""
        if not self._may_be_empty:
            return self._pattern_for(text).sub(template, text, count)
        matches: Iterable[tuple[int, int, re.Match[str]]]
        if self.splits(text):
            text, in_units = self.find_in_units(text)
            matches = ((match.start, match.end, match.match) for match in in_units)
        else:
            matches = ((*match.span(), match) for match in self.find(text))
        out: list[str] = []
        end = 0
        for begin, stop, match in islice(matches, count or None):
            out += text[end:begin], match.expand(template) if "\\" in template else template
            end = stop
        return joined_units("".join([*out, text[end:]]))

    def substitution(self, template: str, count: int = 0) -> Callable[[str], str]:
        """Return `substitute` with a template, as the plain `re` function for texts where that is equivalent."""
        substitute = partial(self.substitute, template, count=count)
        if self._has_boundary or (self._may_be_empty and self.groups):
            return substitute
        search, quick = self._quick.search, partial(self._quick.sub, template, count=count)
        longest, allows = self._limit.longest, self._limit.allows
        if self._may_be_empty:  # Python continues in another way only after empty matches
            find_all = self._quick.findall
            return lambda text: (
                quick(text)
                if len(text) <= longest and not has_astral(text) and "" not in find_all(text)
                else substitute(text)
            )
        if "\\" in template:  # `re` looks it up for each text, also for one without a match
            return lambda text: (
                (quick(text) if search(text) else text)
                if len(text) <= longest or allows(text)
                else substitute(text)
            )
        if longest == ALWAYS_SHORT:
            return quick
        return lambda text: quick(text) if len(text) <= longest or allows(text) else substitute(text)

    def match(self, text: str) -> re.Match[str] | None:
        return self._pattern_for(text).match(text)

    def matches(self, text: str) -> bool:
        return self._pattern_for(text).fullmatch(text) is not None

    # Several Python patterns: deciding `\b` next to combining marks is slow, and few texts have such marks.
    def _pattern_for(self, text: str) -> re.Pattern[str]:
        # Compiling the thousands of ranges of the exact pattern takes longer than analyzing most texts.
        if self._has_boundary and not text.isascii() and _mark().search(text):
            return self._exact
        return self._quick if self._limit.allows(text) else self._limited

    @property
    def names(self) -> dict[str, int]:
        return dict(self._quick.groupindex)

    @cached_property
    def _has_boundary(self) -> bool:
        return WORD_BOUNDARY in self._source or NOT_BOUNDARY in self._source

    @cached_property
    def _quick(self) -> re.Pattern[str]:
        source = self._source.replace(WORD_BOUNDARY, r"(?:\b)").replace(NOT_BOUNDARY, r"(?:\B|\A\Z)")
        return re.compile(source.replace(BEHIND, ""), self._flags)

    @cached_property
    def tree(self) -> SyntaxTree:
        return SyntaxTree.of(self._quick.pattern, self._flags)

    @cached_property
    def adjacency(self) -> Adjacency | None:
        """Which characters a search of ASCII text can read one after the other; None if that does not limit it."""
        from searchapp.lucene.analysis.adjacency import adjacency  # for indexing only

        return adjacency(self.tree)

    @cached_property
    def is_run(self) -> bool:
        """Whether the matches are the longest runs of characters of one kind."""
        from searchapp.lucene.analysis.adjacency import is_run

        return is_run(self.tree)

    @cached_property
    def _limit(self) -> SearchLimit:
        """Which texts are searched without a time limit."""
        return search_limit(self.tree)

    @cached_property
    def _limited(self) -> re.Pattern[str]:
        return self._with_limit(self._quick.pattern)

    @cached_property
    def _exact(self) -> re.Pattern[str]:
        return self._looking_behind("")

    @cached_property
    def _between_halves(self) -> re.Pattern[str]:
        # In a text with one split character, a look-behind at its high surrogate also reads the low one.
        return self._looking_behind("(?![\ud800-\udbff][\udc00-\udfff])")

    def _looking_behind(self, guard: str) -> re.Pattern[str]:
        r"""Return the pattern with `\b` as in Java, and with a condition for each character in a look-behind."""
        # `re` has no look-behind over any number of combining marks.
        source = self._source.replace(WORD_BOUNDARY, _boundary("")).replace(NOT_BOUNDARY, _boundary("!"))
        return self._with_limit(source.replace(BEHIND, guard))

    def _with_limit(self, source: str) -> re.Pattern[str]:
        import regex  # slow to import

        flags = regex.VERSION0 | regex.ASCII | (regex.IGNORECASE if self._flags & re.IGNORECASE else 0)
        return cast("re.Pattern[str]", _LimitedPattern(regex.compile(source, flags), self._written))


@cache
def _mark() -> re.Pattern[str]:
    return re.compile(f"[{category_set('Mn')}]")


def _boundary(negation: str) -> str:
    r"""Return Java's `\b` for texts with combining marks: a mark after a letter or digit counts as a word character.

    Java searches that letter by code units, and finds none beyond U+FFFF.
    """
    base = f"[{category_set('L', 'Nd', last=0xFFFF)}]"
    mark = f"[{category_set('Mn', last=0xFFFF)}]"
    left = f"(?:(?<=[A-Za-z0-9_])|(?<={base}{mark}+))"
    right = f"(?:(?=[A-Za-z0-9_])|(?=[{category_set('Mn')}])(?<={base}{mark}*))"
    not_left, not_right = f"(?!{left})", f"(?!{right})"
    if negation:
        return f"(?:{left}{right}|{not_left}{not_right})"
    return f"(?:{left}{not_right}|{not_left}{right})"
