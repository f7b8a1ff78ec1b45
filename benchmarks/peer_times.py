"""How long `peers.py` will take: from what its steps took before, and until they have, from rough figures."""

from __future__ import annotations

from collections.abc import Sequence

BUILD = {
    "embedded": 60.0,
    "lucene": 40.0,
    "elasticsearch-dfs": 150.0,
    "tantivy": 15.0,
    "bm25s-numba": 60.0,
    "pisa-ranked-or": 60.0,
}
"""Seconds that a million documents take to be indexed on two cores at rest, about."""

ROUND = {
    "embedded": (7.0, 8.0),
    "lucene": (8.0, 4.0),
    "elasticsearch-dfs": (25.0, 15.0),
    "elasticsearch": (20.0, 15.0),
    "tantivy": (6.0, 4.0),
    "bm25s-numba": (14.0, 7.0),
    "bm25s-numpy": (7.0, 25.0),
    "pisa-ranked-or": (7.0, 20.0),
    "pisa-maxscore": (7.0, 4.0),
    "pisa-bmw": (7.0, 5.0),
}
"""Seconds of a round whatever the size, most of them to warm up, and those that each million documents adds, about."""

COLLECTION = 8.0
"""Seconds that a million documents take to be drawn and written, about."""


class Times:
    """What steps have taken, or are likely to take, for a number of documents."""

    def __init__(self, documents: int) -> None:
        self._millions = documents / 1e6
        self._taken: dict[tuple[str, str], float] = {}

    def took(self, step: str, system: str, seconds: float) -> None:
        """Remember what a step took."""
        self._taken[step, system] = seconds

    def of(self, step: str, system: str) -> float:
        """Seconds that a step took last, or is likely to take."""
        if (step, system) in self._taken:
            return self._taken[step, system]
        if step == "build":
            return BUILD.get(system, 0.0) * self._millions
        fixed, million = ROUND[system]
        return fixed + million * self._millions

    def round(self, systems: Sequence[str]) -> float:
        """Seconds of a round of all systems."""
        return sum(self.of("measure", name) for name in systems)


def said(seconds: float) -> str:
    """About how long that is.

    >>> said(20), said(600)
    ('less than a minute', 'about 10 minutes')
    """
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes:,} minute{'s' * (minutes != 1)}"
