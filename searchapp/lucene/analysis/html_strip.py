"""The `html_strip` char filter, which removes the tags of HTML and resolves its character references.

It follows Lucene's `HTMLStripCharFilter`, not HTML: unknown tags are tags, a reference requires its semicolon except
at the end of the text, and unfinished constructs stay in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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

# Unicode's white space; Python's `\s` has four additional control characters.
BLANK = r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"

_NAME_STARTS, _NAME_GOES_ON = (as_set(parse_ranges(values)) for _key, values in read_table("html_names.txt"))
NAME = f"[{_NAME_STARTS}][{_NAME_STARTS}{_NAME_GOES_ON}]*"  # the name of a tag or an attribute

_SIMPLE = re.compile(rf"""/?>|(?:=|{BLANK})[^<>"']*>""")
_OPENS = re.compile(f"=|{BLANK}")
_BRACKET = re.compile("[<>]")
# An attribute may follow any character, but a run of name characters is searched only once.
_ATTRIBUTE = re.compile(f"(?<![{_NAME_STARTS}{_NAME_GOES_ON}])[{_NAME_GOES_ON}]*{NAME}{BLANK}*={BLANK}*[\"']")
_QUOTE = re.compile("[\"']")
_QUOTED = {quote: re.compile(rf"(?s:\\.|[^\\{quote}])*{quote}") for quote in "'\""}
_INCLUDE = "<!--#"
_IN_COMMENT = re.compile("-->|<!--#")
_IN_INCLUDE = re.compile("-->|[\"']")
_IN_CODE_COMMENT = re.compile("-->|<!--#|[\"']")  # quotes hide the end of a comment in a script


def _tag_end(text: str, at: int) -> int | None:
    """Return the index after the `>` of a tag whose name ends at `at`; None if the tag does not end.

    After the name, only `>`, `/>`, a blank or `=` may follow. Quoted values may contain `<` and `>`, and a tag may
    contain a server-side include.
    """
    simple = _SIMPLE.match(text, at)
    if simple:
        return simple.end()
    if not _OPENS.match(text, at):
        return None
    best = None
    starts = [at + 1]  # heap of the indices at which the content of the tag may continue
    done = -1
    while starts:
        start = heappop(starts)
        if start <= done:
            continue  # an earlier start has found the same bracket
        bracket = _BRACKET.search(text, start)
        done = bracket.start() if bracket else len(text)
        if bracket and bracket[0] == ">":
            best = bracket.end()
        for attribute in _ATTRIBUTE.finditer(text, start, done):
            for end in _quote_ends(text, attribute.end() - 1):
                heappush(starts, end)
        if text.startswith(_INCLUDE, done):
            for end in _include_ends(text, done + len(_INCLUDE)):
                heappush(starts, end)
    return best


def _comment_end(text: str, at: int, tokens: re.Pattern[str] = _IN_COMMENT) -> int | None:
    """Return the index after the `-->` of a comment or include whose text begins at `at`; None without an end.

    `tokens` matches `-->` and the beginnings of includes and quotations, inside which `-->` does not count.
    """
    while match := tokens.search(text, at):
        token, at = match[0], match.end()
        if token == "-->":
            return at
        if token == _INCLUDE:
            end = _comment_end(text, at, _IN_INCLUDE)
        else:
            quoted = _QUOTED[token].match(text, at)
            end = quoted and quoted.end()
        if end is None:
            return None
        at = end
    return None


def _code_end(text: str, at: int, end_tag: re.Pattern[str]) -> re.Match[str] | None:
    """Return the end tag of a script or style whose content begins at `at`; None without an end tag.

    `end_tag` also matches `<!--`, because end tags in comments do not count.
    """
    while match := end_tag.search(text, at):
        if match[0] != "<!--":
            return match
        end = _comment_end(text, match.end(), _IN_CODE_COMMENT)
        if end is None:
            return None
        at = end
    return None


def _include_ends(text: str, at: int) -> Iterator[int]:
    """Yield the indices at which a server-side include inside a tag, whose text begins at `at`, may end."""
    starts = [at]
    done = -1
    while starts:
        start = heappop(starts)
        if start <= done:
            continue
        quote = _QUOTE.search(text, start)
        done = quote.start() if quote else len(text)
        yield from (start + match.end() for match in re.finditer("-->", text[start:done]))
        if quote:
            for end in _quote_ends(text, done):
                heappush(starts, end)


def _quote_ends(text: str, opening: int) -> Iterator[int]:
    """Yield the indices at which a quotation may end; a backslash before a quote may escape it or not."""
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
    "nbsp": " ",  # a plain space, at which every tokenizer splits
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
_CDATA = "<![CDATA["


class HtmlStripFilter:
    """Removes the tags of HTML; block tags become newlines.

    The setting `escaped_tags` lists the tags to keep, in any case.
    """

    def __init__(self, options: Options) -> None:
        special = {name: _special(name) for name in options.strings("escaped_tags", [])}
        self.tags = frozenset(lower(name) for name, is_special in special.items() if not is_special)
        self.special = frozenset(filter(None, special.values()))  # of `br`, `script` and `style`

    def replace(self, text: str) -> str:
        if "<" not in text and "&" not in text:
            return text
        return _Stripping(text, self).run()

    def replace_tracked(self, text: str) -> tuple[str, Corrections]:
        corrections = Corrections()
        return _Stripping(text, self, corrections).run(), corrections


class _Stripping:
    """The removal of markup from one text.

    Methods for a piece of markup take its index, and return the index after it.
    """

    def __init__(self, text: str, escaped: HtmlStripFilter, corrections: Corrections | None = None) -> None:
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
        copied = self._text[start:end]
        self._out.append(copied)
        if self._corrections is not None:
            self._written += utf16_length(copied)
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
        end = _tag_end(text, special.end()) if special else None
        if special and end is not None:
            name = special[1].lower()
            return self._break(at, end) if name == "br" else self._code(at, end, name)
        start = _START.match(text, at)
        if not start:
            return self._keep(at, at + 1)
        if start.end() == len(text):
            return self._unfinished(start)
        end = _tag_end(text, start.end())
        return self._keep(at, start.end()) if end is None else self._tag(at, end, start["name"])

    def _instruction(self, at: int) -> int:
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
        """Remove an unfinished tag at the end of the text, as Lucene does."""
        if lower(start["name"]) in self._escaped.tags:
            return self._keep(start.start(), start.end())
        return self._replace(start.start(), start.end(), "")

    def _code(self, at: int, content: int, name: str) -> int:
        """Remove a script or a style sheet, except its tags if they are escaped."""
        keeps_tags = name in self._escaped.special
        if keeps_tags:
            self._keep(at, content)
        end_tag = _code_end(self._text, content, _END_OF_CODE[name])
        if end_tag is None:
            return self._replace(content if keeps_tags else at, len(self._text), "")
        if keeps_tags:
            self._replace(content, end_tag.start(), "")
            return self._keep(end_tag.start(), end_tag.end())
        return self._replace(at, end_tag.end(), "\n")

    def _declaration(self, at: int) -> int:
        text = self._text
        if text.startswith("<!--", at):
            return self._replace(at, _comment_end(text, at + 4) or len(text), "")
        if text.startswith(_CDATA, at):
            begin = self._replace(at, at + len(_CDATA), "")
            end = text.find("]]>", begin)
            if end < 0:
                return self._keep(begin, len(text))
            return self._replace(self._keep(begin, end), end + 3, "")
        end = text.find(">", at)
        return self._replace(at, end + 1, "") if end >= 0 else self._keep(at, len(text))


def _special(name: str) -> str | None:
    """Return `br`, `script` or `style` if it equals the name by Java's `equalsIgnoreCase` (`ſ` equals `s`)."""
    folded = [lower(char.upper()) for char in name]
    return next((special for special in ("br", *_END_OF_CODE) if folded == list(special)), None)


def _paired(match: re.Match[str]) -> str | None:
    high = int(match["high_hex"], 16) if match["high_hex"] else int(match["high"])
    low = int(match["low_hex"], 16) if match["low_hex"] else int(match["low"])
    if not (0xD800 <= high < 0xDC00 <= low < 0xE000) or max(match[0]) > "\uffff":
        return None
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _referenced(match: re.Match[str]) -> str | None:
    if match["name"]:
        return _ENTITIES.get(match["name"])
    code = int(match["hex"], 16) if match["hex"] else int(match["decimal"])
    if code > 0x10FFFF:
        return None
    return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
