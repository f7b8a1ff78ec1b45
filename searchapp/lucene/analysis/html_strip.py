"""The `html_strip` char filter: remove the tags of HTML and resolve its character references.

Tags are recognised as by Lucene's `HTMLStripCharFilter`, which follows neither HTML nor XML: a tag with an unknown
name is a tag too, a reference needs its semicolon unless the text ends there, and constructs without an end stay in
the text. Corrections of offsets are Lucene's as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from html.entities import name2codepoint

from searchapp.lucene.analysis.characters import (
    Corrections,
    as_set,
    lower,
    parse_ranges,
    read_table,
    utf16_length,
)
from searchapp.lucene.analysis.options import Options

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


_ENTITIES = {name: chr(code) for name, code in name2codepoint.items()} | {
    "AMP": "&",
    "COPY": "©",
    "GT": ">",
    "LT": "<",
    "QUOT": '"',
    "REG": "®",
    "apos": "'",
    "nbsp": " ",  # a plain one, so that every tokenizer cuts there
}
# fmt: off
_INLINE = frozenset([
    "a", "abbr", "acronym", "b", "basefont", "bdo", "big", "cite", "code", "dfn", "em", "font", "i", "img", "input",
    "kbd", "label", "q", "s", "samp", "select", "small", "span", "strike", "strong", "sub", "sup", "textarea", "tt",
    "u", "var",
])
# fmt: on
_MARKUP = re.compile("[&<]")
_REFERENCE = re.compile(
    r"&(?:#(?:[xX](?P<hex>[0-9a-fA-F]{1,5})|(?P<decimal>[0-9]{1,7}))|(?P<name>[A-Za-z][A-Za-z0-9]*))(?:;|\Z)"
)
# Decimal digits of other scripts count here (`\d`), but not in a single reference.
_SURROGATES = re.compile(
    r"&#(?:[xX](?P<high_hex>[dD][89abAB][0-9a-fA-F]{2})|(?P<high>5[56]\d{3}));"
    r"&#(?:[xX](?P<low_hex>[dD][c-fC-F][0-9a-fA-F]{2})|(?P<low>5[67]\d{3}));"
)
_START = re.compile(f"<{BLANK}*(?P<name>{NAME})")
_END = re.compile(f"</{BLANK}*(?P<name>{NAME})")
_CLOSE = re.compile(f"{BLANK}*>")
# ASCII, since the long s of "ſcript" would otherwise be an s.
_END_OF_BR = re.compile(f"</{BLANK}*br{BLANK}*>", re.IGNORECASE | re.ASCII)
_SPECIAL = re.compile(f"<{BLANK}*(br|(?:script|style)(?=>|{BLANK}))", re.IGNORECASE | re.ASCII)
_END_OF_CODE = {
    name: re.compile(f"<!--|</{BLANK}*{name}{BLANK}*>", re.IGNORECASE | re.ASCII)
    for name in ("script", "style")
}
_SPECIAL_NAMES = frozenset({"br", *_END_OF_CODE})
_CDATA = "<![CDATA["


@dataclass(frozen=True, slots=True)
class _Escaped:
    """The names of the tags that stay, in lower case."""

    tags: frozenset[str]
    special: frozenset[str]
    """Those among `br`, `script` and `style`."""


class HtmlStripFilter:
    """Takes tags out of HTML; a tag that parts blocks becomes a newline.

    Args:
        escaped: names of the tags that stay, in upper or lower case
    """

    def __init__(self, escaped: Iterable[str] = ()) -> None:
        special = {name: _special(name) for name in escaped}
        self._escaped = _Escaped(
            frozenset(lower(name) for name, is_special in special.items() if not is_special),
            frozenset(is_special for is_special in special.values() if is_special),
        )

    def replace(self, text: str) -> str:
        if "<" not in text and "&" not in text:
            return text
        return _Stripping(text, self._escaped).run()

    def replace_tracked(self, text: str) -> tuple[str, Corrections]:
        corrections = Corrections()
        return _Stripping(text, self._escaped, corrections).run(), corrections


class _Stripping:
    """One text on its way through the filter.

    The methods that read a piece of markup take the index of its first character and give the index at which
    reading goes on.
    """

    def __init__(self, text: str, escaped: _Escaped, corrections: Corrections | None = None) -> None:
        self._text = text
        self._escaped = escaped
        self._corrections = corrections
        self._out: list[str] = []
        self._written = self._lost = 0  # in UTF-16 code units

    def run(self) -> str:
        at = 0
        while markup := _MARKUP.search(self._text, at):
            self._keep(at, markup.start())
            at = markup.start()
            at = self._reference(at) if markup[0] == "&" else self._angle_bracket(at)
        self._keep(at, len(self._text))
        return "".join(self._out)

    def _keep(self, start: int, end: int) -> int:
        kept = self._text[start:end]
        self._out.append(kept)
        if self._corrections is not None:
            self._written += utf16_length(kept)
        return end

    def _replace(self, start: int, end: int, new: str) -> int:
        self._out.append(new)
        if self._corrections is not None:
            length = utf16_length(new)
            self._written += length
            self._lost += utf16_length(self._text[start:end]) - length
            self._corrections.add(self._written, self._lost, removed=not new)
        return end

    def _reference(self, at: int) -> int:
        pair = _SURROGATES.match(self._text, at)
        char = _paired(pair) if pair else None
        if pair and char:
            return self._replace(at, pair.end(), char)
        match = _REFERENCE.match(self._text, at)
        char = _referenced(match) if match else None
        if match and char:
            return self._replace(at, match.end(), char)
        return self._keep(at, at + 1)

    def _angle_bracket(self, at: int) -> int:
        text = self._text
        match text[at + 1 : at + 2]:
            case "!":
                return self._declaration(at)
            case "/":
                return self._end_tag(at)
            case "?":
                return self._instruction(at)
        special = _SPECIAL.match(text, at)
        end = tag_end(text, special.end()) if special else None
        if special and end is not None:
            name = special[1].lower()
            return self._break(at, end) if name == "br" else self._code(at, end, name)
        start = _START.match(text, at)
        if not start:
            return self._keep(at, at + 1)
        if start.end() == len(text):
            return self._unfinished(start)
        end = tag_end(text, start.end())
        return self._keep(at, start.end()) if end is None else self._tag(at, end, start["name"])

    def _instruction(self, at: int) -> int:
        """A processing instruction, `<?xml ... ?>`, which may also end in `/>`."""
        end = self._text.find(">", at)
        if end > at + 2 and self._text[end - 1] in "/?":
            return self._replace(at, end + 1, "")
        return self._keep(at, at + 1)

    def _end_tag(self, at: int) -> int:
        end_of_br = _END_OF_BR.match(self._text, at)
        if end_of_br:
            return self._break(at, end_of_br.end())
        start = _END.match(self._text, at)
        if not start:
            return self._keep(at, at + 2)
        if start.end() == len(self._text):
            return self._unfinished(start)
        close = _CLOSE.match(self._text, start.end())
        if not close:
            return self._keep(at, start.end())
        return self._tag(at, close.end(), start["name"])

    def _break(self, at: int, end: int) -> int:
        return self._keep(at, end) if "br" in self._escaped.special else self._replace(at, end, "\n")

    def _tag(self, at: int, end: int, name: str) -> int:
        if lower(name) in self._escaped.tags:
            return self._keep(at, end)
        return self._replace(at, end, "" if name.isascii() and name.lower() in _INLINE else "\n")

    def _unfinished(self, start: re.Match[str]) -> int:
        """A tag of which only the name has come when the text ends; for Lucene it is a tag even so."""
        if lower(start["name"]) in self._escaped.tags:
            return self._keep(start.start(), start.end())
        return self._replace(start.start(), start.end(), "")

    def _code(self, at: int, content: int, name: str) -> int:
        """A script or a style sheet, of which only the tags may stay."""
        stays = name in self._escaped.special
        if stays:
            self._keep(at, content)
        end_tag = code_end(self._text, content, _END_OF_CODE[name])
        if end_tag is None:
            return self._replace(content if stays else at, len(self._text), "")
        if stays:
            self._replace(content, end_tag.start(), "")
            return self._keep(end_tag.start(), end_tag.end())
        return self._replace(at, end_tag.end(), "\n")

    def _declaration(self, at: int) -> int:
        text = self._text
        if text.startswith("<!--", at):
            return self._replace(at, comment_end(text, at + 4) or len(text), "")
        if text.startswith(_CDATA, at):
            begin = self._replace(at, at + len(_CDATA), "")
            end = text.find("]]>", begin)
            if end < 0:
                return self._keep(begin, len(text))
            return self._replace(self._keep(begin, end), end + 3, "")
        end = text.find(">", at)
        return self._replace(at, end + 1, "") if end >= 0 else self._keep(at, len(text))


def html_strip_filter(options: Options) -> HtmlStripFilter:
    """A char filter of type `html_strip`."""
    return HtmlStripFilter(options.strings("escaped_tags", []))


def _special(name: str) -> str | None:
    """The one of `br`, `script` and `style` that a name is; as to Java's `equalsIgnoreCase`, `ſ` is an `s`."""
    for special in _SPECIAL_NAMES:
        if len(name) == len(special) and all(map(_same, name, special)):
            return special
    return None


def _same(first: str, second: str) -> bool:
    return lower(first.upper()) == lower(second.upper())


def _paired(match: re.Match[str]) -> str | None:
    """The character of two references to its surrogates; None if they aren't a pair."""
    high = int(match["high_hex"], 16) if match["high_hex"] else int(match["high"])
    low = int(match["low_hex"], 16) if match["low_hex"] else int(match["low"])
    if not (0xD800 <= high < 0xDC00 <= low < 0xE000) or max(match[0]) > "\uffff":
        return None
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _referenced(match: re.Match[str]) -> str | None:
    """The character of a reference; None if there is none."""
    if match["name"]:
        return _ENTITIES.get(match["name"])
    code = int(match["hex"], 16) if match["hex"] else int(match["decimal"])
    if code > 0x10FFFF:
        return None
    return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
