"""Shows a text in wiki markup as what it means."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from searchapp.formats.rewriting import Rewriter, Rewritten
from searchapp.formats.wiki.styles import Quotes, Tags
from searchapp.formats.wiki.templates import (
    ASIDE,
    BOLD,
    EQUATIONS,
    HEADING,
    IN_WORDS,
    LINK,
    PARTS,
    SHOWN,
    WORDS,
)
from searchapp.formats.wiki.tokens import Kind, Token, tokens_of

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
