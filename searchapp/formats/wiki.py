"""Rendering of wiki markup (https://www.mediawiki.org/wiki/Help:Formatting) with the templates of ProofWiki.

The common parser mwparserfromhell takes braces of LaTeX for templates, does not report positions, and takes quadratic
time for unclosed signs. Here the time is proportional to the text, and unclosed markup is text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from searchapp.formats.markup import Rewriter, Rewritten, formulas

# The styles; asides are references and unknown templates.
BOLD, ITALIC, HEADING, LINK, ASIDE = "bold", "italic", "heading", "link", "aside"

# The words of templates, by their names in lower case.
WORDS = {
    "iff": "if and only if",
    "wrt": "with respect to",
    "wlog": "without loss of generality",
    "wff": "well-formed formula",
    "lhs": "left hand side",
    "rhs": "right hand side",
    "aka": "also known as",
    "=": "=",
    "!": "|",
    "qed": "∎",
    "proofwiki": "ProofWiki",
    "euclidsaid": "In the words of Euclid:",
    "begin-eqn": "",
    "end-eqn": "",
    "begin-axiom": "",
    "end-axiom": "",
}


_NAMED_FOR = ("This entry was named for ", ("1",), ".")
_EQUIVALENT = ("The following definitions of the concept of ", ("view", "def"), " are equivalent:")

# Templates that show one argument, by name in lower case: words before it, its names by priority, words after
# it. An unnamed argument has its number from 1, or 0 for the last one.
ARGUMENT_TEMPLATES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "defof": ("", ("2", "1"), ""),
    "authorref": ("", ("2", "1"), ""),
    "bookreference": ("", ("1",), ""),
    "booklink": ("", ("1",), ""),
    "wp": ("", ("0",), ""),
    "eucliddefrefnocat": ("", ("3",), ""),
    "euclidpropstatement": ("", ("body",), ""),
    "hypsiclespropstatement": ("", ("body",), ""),
    "namedfor": _NAMED_FOR,
    "namedfordef": _NAMED_FOR,
    "oeis": ("", ("1",), " in the OEIS"),
    "tfae": _EQUIVALENT,
    "tfaenocat": _EQUIVALENT,
}

EQUATIONS = {"eqn", "axiom"}  # templates of a line of aligned formulas

# The arguments of equations, from left to right.
EQUATION_PARTS = (
    "n",
    "lc",
    "q",
    "ll",
    "ml",
    "l",
    "lo",
    "mo",
    "o",
    "ro",
    "mr",
    "r",
    "rr",
    "m",
    "t",
    "rc",
    "c",
)

# The arguments that are text; the others are formulas without delimiters.
TEXT_PARTS = {"lc", "rc", "c", "t"}

MAX_NESTING = 20  # depth of templates and links within each other; a deeper one is text


class WikiToken(NamedTuple):
    """A sign and its characters; the kinds are the groups in `_SIGNS`, "formula" and "verbatim"."""

    kind: str
    start: int
    end: int


_SIGNS = re.compile(
    r"""
      (?P<many>\{{3,}|\}{3,})
    | (?P<template>\{\{)
    | (?P<template_end>\}\})
    | (?P<link>\[\[)
    | (?P<link_end>\]\])
    | (?P<address>\[https?://[^\s\[\]]++)
    | (?P<address_end>\])
    | (?P<bar>\|)
    | (?P<quotes>'{2,})
    | (?P<line_end>\n)
    | (?P<comment><!--)
    | (?P<tag></?[A-Za-z]++[^<>\n]*+>)
    | (?P<entity>&(?:[A-Za-z]{2,31}|\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6});)
    | (?P<switch>__[A-Z]{3,20}__)
    """,
    re.VERBOSE,
)
_VERBATIM = re.compile(r"<(nowiki|pre)\b", re.IGNORECASE)
_VERBATIM_END = re.compile(r"</(nowiki|pre)\s{0,9}>", re.IGNORECASE)
_CLOSES = {"template_end": "template", "link_end": "link", "address_end": "address"}


def _tokens(text: str) -> Iterator[WikiToken]:
    inside = formulas(text)
    formula = next(inside, None)
    verbatim_ends = [(match[1].lower(), match.end()) for match in _VERBATIM_END.finditer(text)][::-1]
    has_comment_end = True
    position = 0
    match = _SIGNS.search(text)
    while True:
        if match is not None and match.start() < position:
            match = _SIGNS.search(text, position)
        while formula is not None and formula[0] < position:
            formula = next(inside, None)  # it began in verbatim text or a comment
        if formula is not None and (match is None or formula[0] <= match.start()):
            yield WikiToken("formula", *formula)
            position = formula[1]
            continue
        if match is None:
            return
        name, start, end = str(match.lastgroup), match.start(), match.end()
        if name == "comment":
            comment_end = text.find("-->", end) if has_comment_end else -1
            has_comment_end = comment_end >= 0
            if has_comment_end:
                end = comment_end + 3
                yield WikiToken("comment", start, end)
        elif name == "many":
            if text[start] == "}":  # closing braces close open templates; further braces are text
                yield from (WikiToken("template_end", at, at + 2) for at in range(start, end - 1, 2))
        elif name == "tag" and (verbatim := _VERBATIM.match(text, start)) and text[end - 2] != "/":
            while verbatim_ends and verbatim_ends[-1][1] <= end:
                verbatim_ends.pop()
            if verbatim_ends and verbatim_ends[-1][0] == verbatim[1].lower():
                end = verbatim_ends.pop()[1]
                yield WikiToken("verbatim", start, end)
        else:
            yield WikiToken(name, start, end)
        position = end


def _closing_tokens(tokens: list[WikiToken]) -> dict[int, int]:
    ends: dict[int, int] = {}
    opened: list[tuple[str, int]] = []
    counts = dict.fromkeys(_CLOSES.values(), 0)
    for index, token in enumerate(tokens):
        if token.kind in counts:
            opened.append((token.kind, index))
            counts[token.kind] += 1
        elif token.kind in _CLOSES and counts[_CLOSES[token.kind]]:
            kind = ""
            while kind != _CLOSES[token.kind]:  # unclosed opening signs in between are text
                kind, begin = opened.pop()
                counts[kind] -= 1
            ends[begin] = index
        elif token.kind == "line_end":
            while opened and opened[-1][0] == "address":  # which ends with its line
                counts[opened.pop()[0]] -= 1
    shallow: dict[int, int] = {}
    enclosing: list[int] = []
    for begin, end in sorted(ends.items()):
        while enclosing and enclosing[-1] < begin:
            enclosing.pop()
        if len(enclosing) < MAX_NESTING:
            enclosing.append(end)
            shallow[begin] = end
    return shallow


_TAG = re.compile(
    r"<(?P<closes>/?)(?P<name>b|i|u|s|em|strong|small|big|su[bp]|span|div|p|center|[bh]r|ref|references|math|tt|code"
    r"|blockquote|section|onlyinclude|includeonly|noinclude|table|t[rdh]|caption|gallery|poem|nowiki|pre)\b",
    re.IGNORECASE,
)
# The kinds of tokens that are not text and do not enclose other tokens.
_SHOWN_ALONE = {"quotes", "formula", "comment", "switch", "entity", "verbatim", "tag"}

_TAG_SHOWS = {"br": "\n", "sup": "^", "sub": "_", "hr": "────────"}
_TAG_STYLES = {"b": BOLD, "strong": BOLD, "i": ITALIC, "em": ITALIC, "ref": ASIDE}


def _styles_of(tokens: Sequence[WikiToken]) -> dict[int, tuple[str, ...]]:
    """Return the styles that the apostrophes of a line begin or end, by position."""
    styles: dict[int, tuple[str, ...]] = {}
    begun: dict[str, int] = {}
    for token in tokens:
        names = {2: (ITALIC,), 3: (BOLD,), 4: (BOLD,), 5: (BOLD, ITALIC)}[min(5, token.end - token.start)]
        styles[token.start] = names
        for style in names:
            if begun.pop(style, None) is None:
                begun[style] = token.start
    for style, start in begun.items():  # unclosed apostrophes are text
        styles[start] = tuple(name for name in styles[start] if name != style)
    return styles


Formula = Callable[[str], str]  # renders a formula in LaTeX, with its delimiters or without

_NAME = re.compile(r"\s*+(?P<name>[^\s|{}\[\]<>$\\](?:[^|{}\[\]<>$\\\n]{0,60}[^\s|{}\[\]<>$\\])?+)\s*+")
_ARGUMENT_NAME = re.compile(r"\s*+(?P<name>[A-Za-z][\w-]{0,30}+)\s*+=")
_HEADING = re.compile(r"(={2,6})[ \t]*+(?=[^=\s])")
_PICTURE = re.compile(r"\s*+(?:File|Image)\s*+:", re.IGNORECASE)
_PREFIX = re.compile(r"[*#:;]+[ \t]*+")
_CELL_ATTRIBUTES = re.compile(r"(?:\s*+[\w-]++\s*+=\s*+(?:\"[^\"\n|]*+\"|[^\s\"|]++))++\s*+\Z")


class Argument(NamedTuple):
    """An argument of a template or link."""

    name: str
    # Indexes of its tokens.
    first: int
    last: int
    # Positions of its name, of its text, and of its end.
    begin: int
    start: int
    end: int


def rendered(text: str, formula: Formula | None = None) -> Rewritten:
    """Render a text in wiki markup; formulas unchanged, or as `formula` renders them."""
    rendering = _Rendering(text, formula or (lambda latex: latex))
    rendering.block(0, len(rendering.tokens), 0, len(text))
    return rendering.out.done()


class _Rendering:
    def __init__(self, text: str, formula: Formula) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.ends = _closing_tokens(self.tokens)
        self.formula = formula
        self.out = Rewriter(text)
        # Tags with a style that may end in another line, with the position of the output at which they begin.
        self._open_tags: list[tuple[str, int]] = []
        self._items: dict[str, int] = {}
        self._table_ends = [
            index
            for index, token in enumerate(self.tokens)
            if token.kind == "bar"
            and text.startswith("|}", token.start)
            and text[token.start - 1 : token.start] == "\n"
        ]
        self._in_table = False
        self._row_began = False

    # Lines

    def block(self, first: int, last: int, start: int, end: int) -> None:
        """Show the characters from `start` to `end`, line by line; `first` and `last` index their tokens."""
        begin, index, line_first = start, first, first
        while index < last:
            token = self.tokens[index]
            if token.kind != "line_end":
                index = self.ends.get(index, index) + 1
                continue
            length = self.out.length
            self._line(line_first, index, begin, token.start)
            shows_nothing = length == self.out.length and begin < token.start
            index += 1
            line_first, begin = index, token.end
            if not shows_nothing and not (self._in_table and self._is_cell(begin)):
                self.out.keep(token.start, token.end)
        self._line(line_first, last, begin, end)

    def _line(self, first: int, last: int, start: int, end: int) -> None:
        text, begin = self.text, self.out.length
        if text.startswith("{|", start) and self._table_ends and self._table_ends[-1] >= first:
            self._in_table, self._row_began = True, False
            return
        if self._in_table:
            self._table_line(first, last, start, end)
            return
        if heading := _HEADING.match(text, start, end):
            signs = heading[1]
            stop = start + len(text[start:end].rstrip())
            if text.endswith(signs, heading.end(), stop):
                inside = stop - len(signs)
                while last > first and self.tokens[last - 1].start >= inside:
                    last -= 1
                self._inline(
                    first, last, heading.end(), heading.end() + len(text[heading.end() : inside].rstrip())
                )
                self.out.style(begin, HEADING)
                return
        prefix = _PREFIX.match(text, start, end)
        if prefix is None:
            self._items.clear()
            self._inline(first, last, start, end)
            return
        self.out.replace(start, prefix.end(), self._prefix(prefix[0].rstrip()))
        begin = self.out.length
        self._inline(first, last, prefix.end(), end)
        if ";" in prefix[0]:
            self.out.style(begin, BOLD)

    def _prefix(self, signs: str) -> str:
        """Return the rendered signs before an item of a list, or an indented line."""
        indent = "  " * (len(signs) - 1)
        if signs.endswith("#"):
            self._items = {name: count for name, count in self._items.items() if len(name) <= len(signs)}
            self._items[signs] = self._items.get(signs, 0) + 1
            return f"{indent}{self._items[signs]}. "
        return f"{indent}• " if signs.endswith("*") else f"{indent}{'' if signs.endswith(';') else '  '}"

    # Tables

    def _is_cell(self, start: int) -> bool:
        is_cell = self.text[start : start + 1] in ("|", "!")
        return self._row_began and is_cell and self.text[start + 1 : start + 2] not in ("-", "}", "+")

    def _table_line(self, first: int, last: int, start: int, end: int) -> None:
        text = self.text
        if text.startswith("|}", start):
            self._in_table = False
            self._inline(first + 1, last, start + 2, end)
        elif text.startswith("|-", start):
            self._row_began = False
        elif text[start : start + 1] not in ("|", "!"):
            self._inline(first, last, start, end)
        else:
            is_caption = text.startswith("|+", start)
            if self._row_began:
                self.out.insert("  │ ")
            self._row_began = not is_caption
            begin = self.out.length
            self._cells(first, last, start + 1 + is_caption, end)
            if text[start] == "!" or is_caption:
                self.out.style(begin, BOLD)

    def _cells(self, first: int, last: int, start: int, end: int) -> None:
        may_have_attributes = True
        for index in self._outer(first, last):
            token = self.tokens[index]
            if token.kind != "bar" or token.start < start:
                continue
            if self.text.startswith("|", token.end):
                self._inline(first, index, start, token.start)
                first, start, may_have_attributes = index + 1, token.end + 1, True
                if start < end:
                    self.out.insert("  │ ")
            elif may_have_attributes:
                may_have_attributes = False
                if _CELL_ATTRIBUTES.match(self.text, start, token.start):
                    first, start = index + 1, token.end
        self._inline(first, last, start, end)

    def _outer(self, first: int, last: int) -> Iterator[int]:
        while first < last:
            yield first
            first = self.ends.get(first, first) + 1

    # Within a line

    def _inline(self, first: int, last: int, start: int, end: int) -> None:
        outer = list(self._outer(first, last))
        quotes = [self.tokens[index] for index in outer if self.tokens[index].kind == "quotes"]
        styles = _styles_of([token for token in quotes if token.start >= start])
        begun: dict[str, int] = {}
        for index in outer:
            token = self.tokens[index]
            if token.start < start or (token.kind not in _SHOWN_ALONE and index not in self.ends):
                continue
            self.out.keep(start, token.start)
            start = token.end
            written = self.text[token.start : token.end]
            if index in self.ends:
                start = self.tokens[self.ends[index]].end
                self._enclosed(index, self.ends[index])
            elif token.kind == "quotes":
                self._quotes(token, styles[token.start], begun)
            elif token.kind == "tag":
                self._tag(token)
            elif token.kind == "verbatim":
                inside = self.text.index(">", token.start) + 1
                self.out.keep(inside, self.text.rindex("<", token.start, token.end))
            elif token.kind == "formula":
                self.out.replace(token.start, token.end, self.formula(written))
            elif token.kind == "entity":
                self.out.replace(token.start, token.end, html.unescape(written))
        self.out.keep(start, end)

    def _quotes(self, token: WikiToken, styles: tuple[str, ...], begun: dict[str, int]) -> None:
        signs = sum(3 if style == BOLD else 2 for style in styles)
        self.out.keep(token.start, token.end - signs)
        for style in styles:
            if style in begun:
                self.out.style(begun.pop(style), style)
            else:
                begun[style] = self.out.length

    def _tag(self, token: WikiToken) -> None:
        """Show a tag that begins or ends a style, or is rendered as a sign."""
        tag = _TAG.match(self.text, token.start)
        if tag is None:
            self.out.keep(token.start, token.end)
            return
        name = tag["name"].lower()
        is_closed = self.text[token.end - 2] == "/"
        if tag["closes"]:
            if name == "ref" and self._open_tags and self._open_tags[-1][0] == name:
                self.out.insert("]")
            while self._open_tags and name in _TAG_STYLES:
                open_name, begin = self._open_tags.pop()
                if open_name == name:
                    self.out.style(begin, _TAG_STYLES[name])
                    break
            return
        if name in _TAG_STYLES and not is_closed:
            self._open_tags.append((name, self.out.length))
        if name == "ref" and not is_closed:
            self.out.insert(" [")
        if name in _TAG_SHOWS:
            self.out.replace(token.start, token.end, _TAG_SHOWS[name])

    # Templates and links

    def _enclosed(self, first: int, last: int) -> None:
        opening, closing = self.tokens[first], self.tokens[last]
        if opening.kind == "address":
            begin = self.out.length
            if self.text[opening.end : closing.start].strip():
                stripped = opening.end + (self.text[opening.end] == " ")
                self._inline(first + 1, last, stripped, closing.start)
            else:
                self.out.keep(opening.start + 1, closing.start)
            self.out.style(begin, LINK)
            return
        arguments = list(self._arguments(first, last))
        if opening.kind == "link":
            self._link(arguments)
        elif not self._template(arguments, opening.start, closing.end):
            self.out.keep(opening.start, opening.end)
            self.block(first + 1, last, opening.end, closing.start)
            self.out.keep(closing.start, closing.end)

    def _link(self, arguments: list[Argument]) -> None:
        """Show the words of a link, after its first bar; for a picture its last argument."""
        begin, target, words = self.out.length, arguments[0], arguments[1:]
        if words and _PICTURE.match(self.text, target.start, target.end):
            words = words[-1:]
        if not words or not self.text[words[0].begin : words[-1].end].strip():
            words = [target]
        self._stripped(words[0].first, words[-1].last, words[0].begin, words[-1].end)
        self.out.style(begin, LINK)

    def _arguments(self, first: int, last: int) -> Iterator[Argument]:
        begin, start = first + 1, self.tokens[first].end
        bars = [index for index in self._outer(begin, last) if self.tokens[index].kind == "bar"]
        for number, index in enumerate([*bars, last]):
            end = self.tokens[index].start
            named = _ARGUMENT_NAME.match(self.text, start, end) if number else None
            name = named["name"].lower() if named else ""
            yield Argument(name, begin, index, start, named.end() if named else start, end)
            begin, start = index + 1, self.tokens[index].end

    def _argument(self, argument: Argument) -> None:
        self._stripped(argument.first, argument.last, argument.start, argument.end)

    def _stripped(self, first: int, last: int, start: int, end: int) -> None:
        text = self.text[start:end]
        begin = start + len(text) - len(text.lstrip())
        end = max(begin, start + len(text.rstrip()))
        while first < last and self.tokens[first].start < begin:
            first += 1
        while first < last and self.tokens[last - 1].start >= end:
            last -= 1
        self.block(first, last, begin, end)

    def _template(self, arguments: list[Argument], start: int, end: int) -> bool:
        """Show a template; return False for braces that are not a template."""
        title, given = arguments[0], arguments[1:]
        matched = _NAME.fullmatch(self.text, title.start, title.end)
        if matched is None:
            return False
        name = " ".join(matched["name"].replace("_", " ").lower().split())
        named = self._named(given)
        if name in WORDS:
            self._word(start, end, WORDS[name], given)
        elif name in EQUATIONS:
            self._equation(given, is_equation=name == "eqn")
        elif name in ARGUMENT_TEMPLATES and named.keys() & ARGUMENT_TEMPLATES[name][1]:
            before, keys, behind = ARGUMENT_TEMPLATES[name]
            self.out.insert(before)
            self._argument(next(named[key] for key in keys if key in named))
            self.out.insert(behind)
        elif len(name) == 1:
            return False  # {{x}} is a formula without delimiters
        else:
            self._unknown(matched.span("name"), given)
        return True

    def _named(self, given: list[Argument]) -> Mapping[str, Argument]:
        unnamed = [argument for argument in given if not argument.name]
        numbered = {str(number): argument for number, argument in enumerate(unnamed, start=1)}
        last = {"0": unnamed[-1]} if unnamed else {}
        return {**numbered, **last, **{argument.name: argument for argument in given if argument.name}}

    def _word(self, start: int, end: int, word: str, given: list[Argument]) -> None:
        self.out.replace(start, given[0].start - 1 if given and word else end, word)
        for argument in given if word else ():
            self.out.insert(" (")
            self._argument(argument)
            self.out.insert(")")

    def _equation(self, given: list[Argument], *, is_equation: bool) -> None:
        given = [argument for argument in given if self.text[argument.start : argument.end].strip()]
        named = {argument.name: argument for argument in given if argument.name in EQUATION_PARTS}
        self.out.insert("   ")
        for name in EQUATION_PARTS:
            if name == "o" and is_equation and "o" not in named and "r" in named:
                self.out.insert(" =")
            elif name in named and name in TEXT_PARTS:
                self.out.insert("   ")
                self._argument(named[name])
            elif name in named:
                self.out.insert(" (" if name == "n" else " ")
                self._formula(named[name])
                self.out.insert(")" if name == "n" else ":" if name == "q" else "")
        for argument in given:
            if argument is not named.get(argument.name):  # the rest of a formula with a bar
                self.out.insert(" | ")
                self._stripped(argument.first, argument.last, argument.begin, argument.end)

    def _formula(self, argument: Argument) -> None:
        """Show an argument that is a formula without delimiters."""
        written = self.text[argument.start : argument.end]
        start = argument.start + len(written) - len(written.lstrip())
        written = written.strip()
        self.out.replace(start, start + len(written), self.formula(written))

    def _unknown(self, title: tuple[int, int], given: list[Argument]) -> None:
        begin = self.out.length
        self.out.insert("(")
        self.out.keep(*title)
        for number, argument in enumerate(given):
            self.out.insert(" · " if number else ": ")
            self._stripped(argument.first, argument.last, argument.begin, argument.end)
        self.out.insert(")")
        self.out.style(begin, ASIDE)
