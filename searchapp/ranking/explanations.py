"""A score's explanation, shortened to what a person wants to know: which term gave how much, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from searchapp.engines.base import Explanation

_WEIGHT = re.compile(r"weight\((?P<term>.*) in \d+\) \[.*\], result of:", re.DOTALL)

# The leaves of a BM25 explanation that differ from term to term, by the first word of their description.
_SHOWN = {
    "boost": "boost",
    "freq": "tf",
    "phraseFreq=": "tf",
    "n": "df",
    "N": "N",
    "dl": "length",
    "avgdl": "average length",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a shortened explanation; `depth` is its indentation, 0 for the score itself."""

    depth: int
    value: float
    text: str


def shortened(explanation: Explanation) -> list[Line]:
    """The sums and maxima of a score, and one line for each term in it, the greatest first."""
    return list(_lines(explanation, 0))


def _lines(node: Explanation, depth: int) -> Iterator[Line]:
    match = _WEIGHT.fullmatch(node.description)
    if match:
        found: dict[str, list[str]] = {}
        for name, value in _figures(node):
            found.setdefault(name, []).append(f"{value:g}")
        # A phrase has a df for each of its words, and the N of the field as often.
        figures = ", ".join(f"{name} {'+'.join(dict.fromkeys(values))}" for name, values in found.items())
        yield Line(depth, node.value, f"{match['term'].replace(':', ': ', 1)}  ({figures})")
        return
    yield Line(depth, node.value, node.description.rstrip(":"))
    for child in sorted(node.details, key=lambda child: -child.value):
        if child.value != 0:
            yield from _lines(child, depth + 1)


def _figures(node: Explanation) -> Iterator[tuple[str, float]]:
    name = _SHOWN.get(re.split(r"[, ]|(?<==)", node.description, maxsplit=1)[0])
    if name and not node.details:
        yield name, node.value
    for child in node.details:
        yield from _figures(child)
