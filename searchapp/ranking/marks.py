"""Texts with marks around what matched, as engines give them."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from searchapp.model import Token

Span = tuple[int, int]
"""A range of characters, the end not included."""

OPEN, CLOSE = "\ue000", "\ue001"
"""What a match is put between. Private-use characters: no text has them."""


def unmarked(marked: str) -> tuple[str, list[Span]]:
    """A text without its marks, and the ranges that were marked."""
    spans, parts, length, start = [], [], 0, 0
    for piece in _pieces(marked):
        if piece == OPEN:
            start = length
        elif piece == CLOSE:
            if length > start:
                spans.append((start, length))
        else:
            parts.append(piece)
            length += len(piece)
    return "".join(parts), spans


@dataclass(frozen=True, slots=True)
class Weighty:
    """What is marked of a query: the chosen terms of each field, and the words of phrases where a phrase stands.

    `tokens` gives what a field's analyzer makes of a text.
    """

    chosen: Mapping[str, Collection[str]]
    phrases: Mapping[str, Sequence[Sequence[Token]]]
    tokens: Callable[[str, str], Sequence[Token]]

    def narrowed(self, highlights: Mapping[str, Sequence[str]]) -> dict[str, list[str]] | None:
        """Highlights in which more terms are marked, with the marks of these alone.

        The highlighter marks tokens that overlap as one: None where that is so, or anything else makes it uncertain
        what it would have marked.
        """
        left: dict[str, list[str]] = {}
        for field, texts in highlights.items():
            for marked in texts:
                text, spans = unmarked(marked)
                tokens = self.tokens(field, text)
                wanted = self._wanted(field, tokens)
                if max(text, default="") > "\uffff" or not {*spans} <= _apart(
                    tokens
                ):  # there offsets count otherwise
                    return None
                kept = [span for span in spans if span in wanted]
                if kept:
                    left.setdefault(field, []).append(_marked(text, kept))
        return left

    def _wanted(self, field: str, tokens: Sequence[Token]) -> set[Span]:
        """Where something is marked."""
        chosen = self.chosen.get(field, ())
        found = {(token.start, token.end) for token in tokens if token.term in chosen}
        for phrase in self.phrases.get(field, ()):
            terms = {word.term for word in phrase}
            for first, last in _occurrences(phrase, tokens):
                inside = (token for token in tokens if first <= token.position <= last)
                found |= {(token.start, token.end) for token in inside if token.term in terms}
        return found


def _occurrences(phrase: Sequence[Token], tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """First and last position of each place where the words of a phrase stand in order.

    There the highlighter allows as many words between as the analyzer left out of the phrase, wherever they are.
    """
    where: defaultdict[str, list[int]] = defaultdict(list)
    for token in tokens:
        where[token.term].append(token.position)
    left_out = phrase[-1].position - phrase[0].position - len(phrase) + 1
    for first in where[phrase[0].term]:
        last, between = first, 0
        for word in phrase[1:]:
            following = next((position for position in where[word.term] if position > last), None)
            if following is None:
                return
            between += following - last - 1
            last = following
        if between <= left_out:
            yield first, last


def _apart(tokens: Sequence[Token]) -> set[Span]:
    """The places of a text at which a token stands, and that none overlaps which stands elsewhere."""
    places = sorted({(token.start, token.end) for token in tokens})
    overlapping: set[Span] = set()
    reach, widest = 0, (0, 0)
    for place in places:
        if place[0] < reach:
            overlapping |= {place, widest}
        if place[1] > reach:
            reach, widest = place[1], place
    return {*places} - overlapping


def _marked(text: str, spans: Sequence[Span]) -> str:
    pieces, done = [], 0
    for start, end in spans:
        pieces += [text[done:start], OPEN, text[start:end], CLOSE]
        done = end
    return "".join([*pieces, text[done:]])


def _pieces(marked: str) -> Iterator[str]:
    for is_mark, characters in itertools.groupby(marked, key=lambda character: character in (OPEN, CLOSE)):
        if is_mark:
            yield from characters
        else:
            yield "".join(characters)
