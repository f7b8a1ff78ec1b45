"""The signs of wiki markup in a text, and which of them belong together.

Reading takes time in proportion to the text: nothing is looked for twice, and what is opened in vain is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from searchapp.formats.latex import formulas

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
