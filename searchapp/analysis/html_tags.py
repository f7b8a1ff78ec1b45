"""Where a tag, a server side include or a script ends in HTML, for the `html_strip` char filter.

The tags follow a regular grammar in which a quote may begin the value of an attribute or be a character like any
other; Lucene takes whichever reading makes the tag longest, so all of them are followed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import heappop, heappush

from searchapp.analysis.unicode_tables import as_set, parse_ranges, read_table

BLANK = r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""Unicode's white space: Python's `\\s` has four control characters more."""

_NAME_STARTS, _NAME_GOES_ON = (as_set(parse_ranges(values)) for _key, values in read_table("html_names.txt"))
NAME = f"[{_NAME_STARTS}][{_NAME_STARTS}{_NAME_GOES_ON}]*"
"""A name of a tag or an attribute, as a regular expression."""

_SIMPLE = re.compile(rf"""/?>|(?:=|{BLANK})[^<>"']*>""")
_OPENS = re.compile(f"=|{BLANK}")
_BRACKET = re.compile("[<>]")
# An attribute may follow any character, but its name is looked for only once in a row of characters of names.
_ATTRIBUTE = re.compile(f"(?<![{_NAME_STARTS}{_NAME_GOES_ON}])[{_NAME_GOES_ON}]*{NAME}{BLANK}*={BLANK}*[\"']")
_QUOTE = re.compile("[\"']")
_QUOTED = {quote: re.compile(rf"(?s:\\.|[^\\{quote}])*{quote}") for quote in "'\""}
_INCLUDE = "<!--#"
_IN_COMMENT = re.compile("-->|<!--#")
_IN_INCLUDE = re.compile("-->|[\"']")
_IN_CODE_COMMENT = re.compile("-->|<!--#|[\"']")


def tag_end(text: str, at: int) -> int | None:
    """The index after the `>` that closes a tag of which the name ends at `at`; None if none does.

    Anything but `>` and `/>` must begin with a blank or `=`. Values of attributes may have `<` and `>` if they are
    quoted, and a server side include may stand in a tag.
    """
    simple = _SIMPLE.match(text, at)
    if simple:
        return simple.end()
    if not _OPENS.match(text, at):
        return None
    best = None
    open_at = [at + 1]  # where the inside of the tag may go on, as a heap
    done = -1
    while open_at:
        start = heappop(open_at)
        if start <= done:
            continue  # an earlier start has come to the same bracket, and by more readings
        bracket = _BRACKET.search(text, start)
        done = bracket.start() if bracket else len(text)
        if bracket and bracket[0] == ">":
            best = bracket.end()
        for attribute in _ATTRIBUTE.finditer(text, start, done):
            for end in _quote_ends(text, attribute.end() - 1):
                heappush(open_at, end)
        if text.startswith(_INCLUDE, done):
            for end in _include_ends(text, done + len(_INCLUDE)):
                heappush(open_at, end)
    return best


def comment_end(text: str, at: int) -> int | None:
    """The index after the end of a comment whose text begins at `at`; None if it has none."""
    while match := _IN_COMMENT.search(text, at):
        if match[0] == "-->":
            return match.end()
        end = _skipped_include(text, match.end())
        if end is None:
            return None
        at = end
    return None


def code_end(text: str, at: int, end_tag: re.Pattern[str]) -> re.Match[str] | None:
    """The end tag of the script or style whose content begins at `at`; None if there is none.

    The pattern matches the end tag, and `<!--`: in a comment no end tag counts.
    """
    while match := end_tag.search(text, at):
        if match[0] != "<!--":
            return match
        end = _code_comment_end(text, match.end())
        if end is None:
            return None
        at = end
    return None


def _code_comment_end(text: str, at: int) -> int | None:
    """The index after a comment in a script, where quotes hide its end, unlike in a comment of the page."""
    while match := _IN_CODE_COMMENT.search(text, at):
        if match[0] == "-->":
            return match.end()
        end = (
            _skipped_include(text, match.end())
            if match[0] == _INCLUDE
            else _skipped_quote(text, match.end(), match[0])
        )
        if end is None:
            return None
        at = end
    return None


def _skipped_include(text: str, at: int) -> int | None:
    while match := _IN_INCLUDE.search(text, at):
        if match[0] == "-->":
            return match.end()
        end = _skipped_quote(text, match.end(), match[0])
        if end is None:
            return None
        at = end
    return None


def _skipped_quote(text: str, at: int, quote: str) -> int | None:
    match = _QUOTED[quote].match(text, at)
    return match.end() if match else None


def _include_ends(text: str, at: int) -> Iterator[int]:
    """The indices at which a server side include inside a tag may end, whose text begins at `at`."""
    open_at = [at]
    done = -1
    while open_at:
        start = heappop(open_at)
        if start <= done:
            continue
        quote = _QUOTE.search(text, start)
        done = quote.start() if quote else len(text)
        arrow = text.find("-->", start, done)
        while arrow >= 0:
            yield arrow + 3
            arrow = text.find("-->", arrow + 3, done)
        if quote:
            for end in _quote_ends(text, done):
                heappush(open_at, end)


def _quote_ends(text: str, opening: int) -> Iterator[int]:
    """The indices at which quoted text may end: a backslash before a quote may belong to it or not."""
    at = opening
    while (at := text.find(text[opening], at + 1)) >= 0:
        yield at + 1
        if text[at - 1] != "\\" or at - 1 == opening:
            return
