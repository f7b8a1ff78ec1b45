r"""Where formulas stand in a text: between `$`, `$$`, `\( \)` and `\[ \]`, and as environments.

A text of any length takes time in proportion to it, whatever is not closed in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from searchapp.formats.rewriting import Span

_OPENING = re.compile(r"\$\$|(?<!\\)\$|\\\(|\\\[|\\begin\{(\w{1,30}\*?)\}")
_ENDING = re.compile(r"\\end\{(\w{1,30}\*?)\}")
_CLOSING = {"$$": "$$", r"\(": r"\)", r"\[": r"\]"}

# A paragraph ends no formula but a diagram: `$` of two paragraphs are not one formula.
_INSIDE = re.compile(r"(?:\\.|[^$\\\n]++|\n(?![ \t]*+\n))++\$", re.DOTALL)
_DIAGRAM = re.compile(r"(?=\\begin)(?:\\.|[^$\\]++)++\$", re.DOTALL)


def formulas(text: str) -> Iterator[Span]:
    r"""The formulas of a text with their delimiters, from the first to the last.

    >>> text = r"Let $x$ be \(y\), \$5."
    >>> [text[start:end] for start, end in formulas(text)]
    ['$x$', '\\(y\\)']
    """
    endings: defaultdict[str, list[int]] = defaultdict(list)
    for match in _ENDING.finditer(text):
        endings[match[1]].append(match.end())
    never_closed: set[str] = set()
    place = 0
    while opening := _OPENING.search(text, place):
        sign, begin, inside = opening[0], opening.start(), opening.end()
        if sign == "$":
            closed = _INSIDE.match(text, inside) or _DIAGRAM.match(text, inside)
            end = closed.end() if closed else None
        elif sign in _CLOSING:
            found = -1 if sign in never_closed else text.find(_CLOSING[sign], inside + 1)
            if found < 0:
                never_closed.add(sign)
            end = found + 2 if found >= 0 else None
        else:
            ends = endings[opening[1]]
            next_end = bisect_left(ends, inside + 1)
            end = ends[next_end] if next_end < len(ends) else None
        if end is not None:
            yield begin, end
            place = end
        else:
            place = begin + 1 if sign == "$$" else inside
