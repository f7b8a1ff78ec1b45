"""The piece of a document that a result list shows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from searchapp.ranking.marks import Span

ELLIPSIS = "…"

_TO_SQUEEZE = re.compile(r"\A\s|\s\s|[^\S ]|\s\Z")
"""White space that is no single blank between words."""


def squeezed(text: str, matches: Sequence[Span]) -> tuple[str, list[Span]]:
    r"""The text on one line, every run of white space one blank, and the matches where they are then.

    >>> squeezed("Let  $G$\nbe a group.", [(14, 19)])
    ('Let $G$ be a group.', [(13, 18)])
    """
    if not _TO_SQUEEZE.search(text):
        return text, list(matches)
    kept: list[str] = []
    places = []  # of each character of the text, and of its end, in the squeezed text
    for character in text:
        places.append(len(kept))
        if not character.isspace():
            kept.append(character)
        elif kept and kept[-1] != " ":
            kept.append(" ")
    places.append(len(kept))
    return "".join(kept).rstrip(), [(places[start], places[end]) for start, end in matches]


def snippet(text: str, matches: Sequence[Span], length: int) -> tuple[str, list[Span]]:
    """At most about `length` characters of the text on one line, chosen to hold as many matches as possible.

    A text that fits is shown whole. A longer one is shown from its beginning if that holds the most matches,
    else from a word somewhat before the first match of the best window. The ranges are those inside the piece.
    """
    line, spans = squeezed(text, matches)
    if len(line) <= length:
        return line, spans
    start = _best_start(line, spans, length)
    end = start + length
    if end < len(line):
        end = max(line.rfind(" ", start, end), start + length // 2)
    end = start + len(line[start:end].rstrip())
    head = ELLIPSIS if start > 0 else ""
    tail = ELLIPSIS if end < len(line) else ""
    shift = len(head) - start
    inside = [(max(a, start) + shift, min(b, end) + shift) for a, b in spans if a < end and b > start]
    return head + line[start:end] + tail, inside


def _best_start(line: str, spans: Sequence[Span], length: int) -> int:
    """Where the window with the most matches begins; the earliest of equals, and the beginning above all."""
    lead = length // 6  # some words before the first match, to read it in its sentence
    best, most = 0, sum(end <= length for _start, end in spans)
    for first, _end in spans:
        begin = max(0, first - lead)
        covered = sum(begin <= start and end <= begin + length for start, end in spans)
        if covered > most:
            best, most = begin, covered
    return line.find(" ", best) + 1 if best else 0
