"""A score's explanation, shortened to what a person wants to know: which term gave how much, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from searchapp.engines.base import Explanation

_WEIGHT = re.compile(r"weight\((?P<term>.*) in \d+\) \[.*\], result of:", re.DOTALL)

IDF = "idf"
"""The figure that follows from df and N."""

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
    """One line of a shortened explanation; `depth` is its indentation, 0 for the score itself.

    `figures` are those that a term's score was computed from, by their names: tf, df, idf, N, length and so on.
    """

    depth: int
    value: float
    what: str
    figures: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """What it is, with its figures but for those that others say."""
        if not self.figures:
            return self.what
        said = ", ".join(f"{name} {value}" for name, value in self.figures if name != IDF)
        return f"{self.what}  ({said})"


def shortened(explanation: Explanation) -> list[Line]:
    """The sums and maxima of a score, and one line for each term in it, the greatest first."""
    return list(_lines(explanation, 0))


def _lines(node: Explanation, depth: int) -> Iterator[Line]:
    match = _WEIGHT.fullmatch(node.description)
    if match:
        found: dict[str, list[str]] = {}
        for name, value in _figures(node):
            found.setdefault(name, []).append(f"{value:g}")
        # A phrase has a df for each of its words, and the N of the field as often; its idf is the sum of theirs.
        figures = tuple(
            (name, values[0] if name == IDF else "+".join(dict.fromkeys(values)))
            for name, values in found.items()
        )
        yield Line(depth, node.value, match["term"].replace(":", ": ", 1), figures)
        return
    yield Line(depth, node.value, node.description.rstrip(":"))
    for child in sorted(node.details, key=lambda child: -child.value):
        if child.value != 0:
            yield from _lines(child, depth + 1)


def _figures(node: Explanation) -> Iterator[tuple[str, float]]:
    first = re.split(r"[, ]|(?<==)", node.description, maxsplit=1)[0]
    name = _SHOWN.get(first)
    if first == IDF:
        yield IDF, node.value
    elif name and not node.details:
        yield name, node.value
    for child in node.details:
        yield from _figures(child)
