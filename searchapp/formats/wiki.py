"""Wiki markup, and what it means: https://www.mediawiki.org/wiki/Help:Formatting, and the templates of ProofWiki.

mwparserfromhell, the parser that others use, does not serve here: it takes braces of LaTeX for templates, does not say
where in the text its nodes stand, and takes time in proportion to the square of a text with what is not closed.

Reading takes time proportional to the text: no sign is searched for twice, and an opening sign without its closing one
is text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

from searchapp.formats.markup import Rewriter, Rewritten, formulas

BOLD, ITALIC, HEADING, LINK, ASIDE = "bold", "italic", "heading", "link", "aside"
"""The styles; asides are references and templates without a known meaning."""

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
"""Templates that stand for words, by their names in lower case."""


class Shown(NamedTuple):
    """What a template shows: words around one of its arguments, the first that it has of these names.

    An argument without a name has its number, from 1 on; 0 is the last one.
    """

    before: str
    arguments: tuple[str, ...]
    behind: str = ""


SHOWN = {
    "defof": Shown("", ("2", "1")),
    "authorref": Shown("", ("2", "1")),
    "bookreference": Shown("", ("1",)),
    "booklink": Shown("", ("1",)),
    "wp": Shown("", ("0",)),
    "eucliddefrefnocat": Shown("", ("3",)),
    "euclidpropstatement": Shown("", ("body",)),
    "hypsiclespropstatement": Shown("", ("body",)),
    "namedfor": Shown("This entry was named for ", ("1",), "."),
    "namedfordef": Shown("This entry was named for ", ("1",), "."),
    "oeis": Shown("", ("1",), " in the OEIS"),
    "tfae": Shown("The following definitions of the concept of ", ("view", "def"), " are equivalent:"),
    "tfaenocat": Shown("The following definitions of the concept of ", ("view", "def"), " are equivalent:"),
}
"""Templates that show one of their arguments, by their names in lower case."""

EQUATIONS = {"eqn", "axiom"}
"""A line of aligned formulas."""

PARTS = ("n", "lc", "q", "ll", "ml", "l", "lo", "mo", "o", "ro", "mr", "r", "rr", "m", "t", "rc", "c")
"""The arguments of such a line, from left to right."""

IN_WORDS = {"lc", "rc", "c", "t"}
"""Those that are text, the others are formulas without delimiters."""


DEEPEST = 20
"""Templates and links within each other; a deeper one is text."""


class Kind(Enum):
    """What a sign is."""

    formula = auto()
    template = auto()
    template_end = auto()
    link = auto()
    link_end = auto()
    address = auto()
    """An opening bracket with the address of a page elsewhere."""

    address_end = auto()
    bar = auto()
    quotes = auto()
    line_end = auto()
    tag = auto()
    comment = auto()
    verbatim = auto()
    entity = auto()
    switch = auto()
    """A word such as `__NOTOC__`, which shows nothing."""


class Token(NamedTuple):
    """A sign, and the characters that it takes."""

    kind: Kind
    start: int
    end: int


class Tokens(NamedTuple):
    """The signs of a text in order; `ends` has for each that opens something the place of the one that closes it."""

    found: list[Token]
    ends: dict[int, int]


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
_CLOSES = {Kind.template_end: Kind.template, Kind.link_end: Kind.link, Kind.address_end: Kind.address}


def tokens_of(text: str) -> Tokens:
    """The signs of a text."""
    found = list(_tokens(text))
    return Tokens(found, _ends(found))


def _tokens(text: str) -> Iterator[Token]:
    inside = formulas(text)
    formula = next(inside, None)
    verbatim_ends = [(match[1].lower(), match.end()) for match in _VERBATIM_END.finditer(text)][::-1]
    has_comment_end = True
    place = 0
    match = _SIGNS.search(text)
    while True:
        if match is not None and match.start() < place:
            match = _SIGNS.search(text, place)
        while formula is not None and formula[0] < place:
            formula = next(inside, None)  # it began in what is shown as it is
        if formula is not None and (match is None or formula[0] <= match.start()):
            yield Token(Kind.formula, *formula)
            place = formula[1]
            continue
        if match is None:
            return
        name, start, end = str(match.lastgroup), match.start(), match.end()
        if name == "comment":
            found = text.find("-->", end) if has_comment_end else -1
            has_comment_end = found >= 0
            if has_comment_end:
                end = found + 3
                yield Token(Kind.comment, start, end)
        elif name == "many":
            yield from _braces(text, start, end)
        elif name == "tag" and (verbatim := _VERBATIM.match(text, start)) and text[end - 2] != "/":
            while verbatim_ends and verbatim_ends[-1][1] <= end:
                verbatim_ends.pop()
            if verbatim_ends and verbatim_ends[-1][0] == verbatim[1].lower():
                end = verbatim_ends.pop()[1]
                yield Token(Kind.verbatim, start, end)
        else:
            yield Token(Kind[name], start, end)
        place = end


def _braces(text: str, start: int, end: int) -> Iterator[Token]:
    """Three braces and more: closing ones close what they can, the others are text."""
    if text[start] == "}":
        yield from (Token(Kind.template_end, place, place + 2) for place in range(start, end - 1, 2))


def _ends(tokens: list[Token]) -> dict[int, int]:
    ends: dict[int, int] = {}
    opened: list[tuple[Kind, int]] = []
    counts = dict.fromkeys(_CLOSES.values(), 0)
    for place, token in enumerate(tokens):
        if token.kind in counts:
            opened.append((token.kind, place))
            counts[token.kind] += 1
        elif token.kind in _CLOSES and counts[_CLOSES[token.kind]]:
            wanted, kind = _CLOSES[token.kind], None
            while kind is not wanted:  # what was opened in between and is not closed is text
                kind, begin = opened.pop()
                counts[kind] -= 1
            ends[begin] = place
        elif token.kind is Kind.line_end:
            while opened and opened[-1][0] is Kind.address:  # which ends with its line
                counts[opened.pop()[0]] -= 1
    return _without_deep(ends)


def _without_deep(ends: dict[int, int]) -> dict[int, int]:
    """The pairs that stand in few others."""
    kept: dict[int, int] = {}
    around: list[int] = []
    for begin, end in sorted(ends.items()):
        while around and around[-1] < begin:
            around.pop()
        if len(around) < DEEPEST:
            around.append(end)
            kept[begin] = end
    return kept


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


Formula = Callable[[str], str]
"""What is shown for a formula in LaTeX, with its delimiters or without."""

_NAME = re.compile(r"\s*+(?P<name>[^\s|{}\[\]<>$\\](?:[^|{}\[\]<>$\\\n]{0,60}[^\s|{}\[\]<>$\\])?+)\s*+")
_ARGUMENT_NAME = re.compile(r"\s*+(?P<name>[A-Za-z][\w-]{0,30}+)\s*+=")
_HEADING = re.compile(r"(={2,6})[ \t]*+(?=[^=\s])")
_PICTURE = re.compile(r"\s*+(?:File|Image)\s*+:", re.IGNORECASE)
_PREFIX = re.compile(r"[*#:;]+[ \t]*+")
_CELL_LOOKS = re.compile(r"(?:\s*+[\w-]++\s*+=\s*+(?:\"[^\"\n|]*+\"|[^\s\"|]++))++\s*+\Z")


class Argument(NamedTuple):
    """An argument of a template or link: its name, its places among the tokens, and its characters.

    `begin` is where its name begins, `start` where it begins behind that.
    """

    name: str
    first: int
    last: int
    begin: int
    start: int
    end: int


def rendered(text: str, formula: Formula | None = None) -> Rewritten:
    """A text in wiki markup as what it means; formulas as they are written, or as `formula` shows them.

    What is no markup, because it is not closed for instance, is shown as it is. The text may be of any kind and length:
    the time is in proportion to its length.

    >>> rendered("A '''set''' {{iff}} [[Definition:Class|class]]").text
    'A set if and only if class'
    """
    rendering = _Rendering(text, formula or (lambda latex: latex))
    rendering.block(0, len(rendering.tokens), 0, len(text))
    return rendering.out.done()


class _Rendering:
    def __init__(self, text: str, formula: Formula) -> None:
        self.text = text
        self.tokens, self.ends = tokens_of(text)
        self.formula = formula
        self.out = Rewriter(text)
        self._tags = Tags(text, self.out)
        self._items: dict[str, int] = {}
        self._table_ends = [
            place
            for place, token in enumerate(self.tokens)
            if token.kind is Kind.bar
            and text.startswith("|}", token.start)
            and text[token.start - 1 : token.start] == "\n"
        ]
        self._in_table = False
        self._row_began = False

    # Lines

    def block(self, first: int, last: int, start: int, end: int) -> None:
        """Show what stands between two characters, line by line; `first` and `last` are the tokens in it."""
        begin, place, line_first = start, first, first
        while place < last:
            token = self.tokens[place]
            if token.kind is not Kind.line_end:
                place = self._behind(place)
                continue
            length = self.out.length
            self._line(line_first, place, begin, token.start)
            shows_nothing = length == self.out.length and begin < token.start
            place += 1
            line_first, begin = place, token.end
            if not shows_nothing and not (self._in_table and self._is_cell(begin)):
                self.out.keep(token.start, token.end)
        self._line(line_first, last, begin, end)

    def _behind(self, place: int) -> int:
        return self.ends.get(place, place) + 1

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
        """What is shown for the signs before an item of a list, or an indented line."""
        indent = "  " * (len(signs) - 1)
        if signs.endswith("#"):
            self._items = {name: count for name, count in self._items.items() if len(name) <= len(signs)}
            self._items[signs] = self._items.get(signs, 0) + 1
            return f"{indent}{self._items[signs]}. "
        return f"{indent}• " if signs.endswith("*") else f"{indent}{'' if signs.endswith(';') else '  '}"

    # Tables

    def _is_cell(self, start: int) -> bool:
        """Whether a line of a table goes on with the row that is begun."""
        is_cell = self.text[start : start + 1] in ("|", "!") and self.text[start + 1 : start + 2] not in (
            "-",
            "}",
            "+",
        )
        return is_cell and self._row_began

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
        """The cells of a line, without what they look like."""
        may_have_looks = True
        for place in self._own(first, last):
            token = self.tokens[place]
            if token.kind is not Kind.bar or token.start < start:
                continue
            if self.text.startswith("|", token.end):
                self._inline(first, place, start, token.start)
                first, start, may_have_looks = place + 1, token.end + 1, True
                if start < end:
                    self.out.insert("  │ ")
            elif may_have_looks:
                may_have_looks = False
                if _CELL_LOOKS.match(self.text, start, token.start):
                    first, start = place + 1, token.end
        self._inline(first, last, start, end)

    def _own(self, first: int, last: int) -> Iterator[int]:
        """The places of tokens that stand in nothing else."""
        while first < last:
            yield first
            first = self._behind(first)

    # Within a line

    def _inline(self, first: int, last: int, start: int, end: int) -> None:
        """Show what stands between two characters of a line."""
        signs = [self.tokens[place] for place in self._own(first, last)]
        quotes = Quotes([one for one in signs if one.kind is Kind.quotes and one.start >= start], self.out)
        for place in self._own(first, last):
            token = self.tokens[place]
            if token.start < start:
                continue
            if token.kind is Kind.quotes:
                self.out.keep(start, token.start)
                start = token.end
                quotes.show(token)
            elif place in self.ends:
                self.out.keep(start, token.start)
                start = self.tokens[self.ends[place]].end
                self._inner(place, self.ends[place])
            elif (shown := self._single(token)) is not None:
                self.out.keep(start, token.start)
                start = token.end
                self.out.replace(token.start, token.end, shown)
            elif token.kind in (Kind.verbatim, Kind.tag):
                self.out.keep(start, token.start)
                start = token.end
                (self._verbatim if token.kind is Kind.verbatim else self._tags.show)(token)
        self.out.keep(start, end)

    def _single(self, token: Token) -> str | None:
        """What is shown for a sign that stands by itself; None for others, and for those that are text."""
        written = self.text[token.start : token.end]
        if token.kind is Kind.formula:
            return self.formula(written)
        if token.kind in (Kind.comment, Kind.switch):
            return ""
        if token.kind is Kind.entity:
            return html.unescape(written)
        return None

    def _verbatim(self, token: Token) -> None:
        inside, behind = self.text.index(">", token.start) + 1, self.text.rindex("<", token.start, token.end)
        self.out.keep(inside, behind)

    # Templates and links

    def _inner(self, first: int, last: int) -> None:
        """Show a template or a link, from its first to its last token."""
        opening, closing = self.tokens[first], self.tokens[last]
        if opening.kind is Kind.address:
            address_is_all = not self.text[opening.end : closing.start].strip()
            begin = self.out.length
            if address_is_all:
                self.out.keep(opening.start + 1, closing.start)
            else:
                stripped = opening.end + (self.text[opening.end] == " ")
                self._inline(first + 1, last, stripped, closing.start)
            self.out.style(begin, LINK)
            return
        arguments = list(self._arguments(first, last))
        if opening.kind is Kind.link:
            self._link(arguments)
        elif not self._template(arguments, opening.start, closing.end):
            self.out.keep(opening.start, opening.end)
            self.block(first + 1, last, opening.end, closing.start)
            self.out.keep(closing.start, closing.end)

    def _link(self, arguments: list[Argument]) -> None:
        """The words of a link: those of a picture are its last argument, others all behind the first bar."""
        begin, target, words = self.out.length, arguments[0], arguments[1:]
        if words and _PICTURE.match(self.text, target.start, target.end):
            words = words[-1:]
        if not words or not self.text[words[0].begin : words[-1].end].strip():
            words = [target]
        self._block_of(words[0].first, words[-1].last, words[0].begin, words[-1].end)
        self.out.style(begin, LINK)

    def _arguments(self, first: int, last: int) -> Iterator[Argument]:
        begin, start = first + 1, self.tokens[first].end
        bars = [place for place in self._own(begin, last) if self.tokens[place].kind is Kind.bar]
        for number, place in enumerate([*bars, last]):
            end = self.tokens[place].start
            named = _ARGUMENT_NAME.match(self.text, start, end) if number else None
            name = named["name"].lower() if named else ""
            yield Argument(name, begin, place, start, named.end() if named else start, end)
            begin, start = place + 1, self.tokens[place].end

    def _argument(self, one: Argument) -> None:
        self._block_of(one.first, one.last, one.start, one.end)

    def _block_of(self, first: int, last: int, start: int, end: int) -> None:
        """Show what stands between two characters, without blanks at its ends."""
        text = self.text[start:end]
        begin = start + len(text) - len(text.lstrip())
        end = max(begin, start + len(text.rstrip()))
        while first < last and self.tokens[first].start < begin:
            first += 1
        while first < last and self.tokens[last - 1].start >= end:
            last -= 1
        self.block(first, last, begin, end)

    def _template(self, arguments: list[Argument], start: int, end: int) -> bool:
        """Show a template; whether it is one, and no braces of something else."""
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
        elif name in SHOWN and (chosen := [named[key] for key in SHOWN[name].arguments if key in named]):
            self.out.insert(SHOWN[name].before)
            self._argument(chosen[0])
            self.out.insert(SHOWN[name].behind)
        elif len(name) == 1:
            return False  # {{x}} is a formula that nobody has marked as one
        else:
            self._unknown(matched.span("name"), given)
        return True

    def _named(self, given: list[Argument]) -> Mapping[str, Argument]:
        """Argument by their names, those without one by their numbers."""
        unnamed = [one for one in given if not one.name]
        numbered = {str(number): one for number, one in enumerate(unnamed, start=1)}
        last = {"0": unnamed[-1]} if unnamed else {}
        return {**numbered, **last, **{one.name: one for one in given if one.name}}

    def _word(self, start: int, end: int, word: str, given: list[Argument]) -> None:
        self.out.replace(start, given[0].start - 1 if given and word else end, word)
        for one in given if word else ():
            self.out.insert(" (")
            self._argument(one)
            self.out.insert(")")

    def _equation(self, given: list[Argument], *, is_equation: bool) -> None:
        """A line of aligned formulas; where an equation has no other sign between its sides, they are equal."""
        named = {one.name: one for one in given if one.name in PARTS and self._says_something(one)}
        rest = [one for one in given if one is not named.get(one.name) and self._says_something(one)]
        self.out.insert("   ")
        for name in PARTS:
            if name == "o" and is_equation and "o" not in named and "r" in named:
                self.out.insert(" =")
            elif name in named and name in IN_WORDS:
                self.out.insert("   ")
                self._argument(named[name])
            elif name in named:
                self.out.insert(" (" if name == "n" else " ")
                self._formula(named[name])
                self.out.insert(")" if name == "n" else ":" if name == "q" else "")
        for one in rest:  # what a bar in a formula has cut off
            self.out.insert(" | ")
            self._block_of(one.first, one.last, one.begin, one.end)

    def _formula(self, one: Argument) -> None:
        """An argument that is a formula without delimiters."""
        written = self.text[one.start : one.end]
        start = one.start + len(written) - len(written.lstrip())
        written = written.strip()
        self.out.replace(start, start + len(written), self.formula(written))

    def _says_something(self, one: Argument) -> bool:
        return bool(self.text[one.start : one.end].strip())

    def _unknown(self, title: tuple[int, int], given: list[Argument]) -> None:
        """A template whose meaning is not known: its name and its arguments."""
        begin = self.out.length
        self.out.insert("(")
        self.out.keep(*title)
        for number, one in enumerate(given):
            self.out.insert(" · " if number else ": ")
            self._block_of(one.first, one.last, one.begin, one.end)
        self.out.insert(")")
        self.out.style(begin, ASIDE)


__all__ = ["ASIDE", "BOLD", "HEADING", "ITALIC", "LINK", "rendered"]
