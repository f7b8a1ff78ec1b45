"""What is bold, in italics or an aside in a text in wiki markup, by apostrophes and by tags."""

from __future__ import annotations

import re
from collections.abc import Sequence

from searchapp.formats.rewriting import Rewriter
from searchapp.formats.wiki.templates import ASIDE, BOLD, ITALIC
from searchapp.formats.wiki.tokens import Token

_TAG = re.compile(
    r"<(?P<closes>/?)(?P<name>b|i|u|s|em|strong|small|big|su[bp]|span|div|p|center|[bh]r|ref|references|math|tt|code"
    r"|blockquote|section|onlyinclude|includeonly|noinclude|table|t[rdh]|caption|gallery|poem|nowiki|pre)\b",
    re.IGNORECASE,
)
_TAG_SHOWS = {"br": "\n", "sup": "^", "sub": "_", "hr": "────────"}
_TAG_STYLES = {"b": BOLD, "strong": BOLD, "i": ITALIC, "em": ITALIC, "ref": ASIDE}


class Quotes:
    """The apostrophes of a line: two of them for italics, three for bold."""

    def __init__(self, tokens: Sequence[Token], out: Rewriter) -> None:
        self._styles = _styles_of(tokens)
        self._begun: dict[str, int] = {}
        self._out = out

    def show(self, token: Token) -> None:
        """Begin or end what is bold or in italics; apostrophes that do neither are text."""
        styles = self._styles[token.start]
        signs = sum(3 if style == BOLD else 2 for style in styles)
        self._out.keep(token.start, token.end - signs)
        for style in styles:
            if style in self._begun:
                self._out.style(self._begun.pop(style), style)
            else:
                self._begun[style] = self._out.length


class Tags:
    """The tags of a text, which may begin in one line and end in another."""

    def __init__(self, text: str, out: Rewriter) -> None:
        self._text = text
        self._out = out
        self._open: list[tuple[str, int]] = []

    def show(self, token: Token) -> None:
        """Show a tag that begins or ends something, or stands for a sign."""
        tag = _TAG.match(self._text, token.start)
        if tag is None:
            self._out.keep(token.start, token.end)
            return
        name = tag["name"].lower()
        is_closed = self._text[token.end - 2] == "/"
        if tag["closes"]:
            if name == "ref" and self._open and self._open[-1][0] == name:
                self._out.insert("]")
            while self._open and name in _TAG_STYLES:
                open_name, begin = self._open.pop()
                if open_name == name:
                    self._out.style(begin, _TAG_STYLES[name])
                    break
            return
        if name in _TAG_STYLES and not is_closed:
            self._open.append((name, self._out.length))
        if name == "ref" and not is_closed:
            self._out.insert(" [")
        if name in _TAG_SHOWS:
            self._out.replace(token.start, token.end, _TAG_SHOWS[name])


def _styles_of(tokens: Sequence[Token]) -> dict[int, tuple[str, ...]]:
    """What the apostrophes of a line begin and end, by where they stand."""
    styles: dict[int, tuple[str, ...]] = {}
    begun: dict[str, int] = {}
    for token in tokens:
        wanted = {2: (ITALIC,), 3: (BOLD,), 4: (BOLD,), 5: (BOLD, ITALIC)}[min(5, token.end - token.start)]
        styles[token.start] = wanted
        for style in wanted:
            if style in begun:
                begun.pop(style)
            else:
                begun[style] = token.start
    for style, start in begun.items():  # what is not closed is text
        styles[start] = tuple(one for one in styles[start] if one != style)
    return styles
