"""The lists of the compare screen: topics with their differences as bars, and rankings with what has moved."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from searchapp.app.comparison import TopicDifference
from searchapp.app.run_pages import RunPages
from searchapp.tui.rows import Part
from searchapp.tui.search.why import bar
from searchapp.tui.topics.lists import RankingRows, TopicRows, shown_figure

BAR_CELLS = 5
WIDE_BAR_CELLS = 9
WIDE_FROM = 56
"""Cells of a bar to either side, and the width of a list from which on there is room for longer ones."""

VALUES_FROM = 64
"""The width of a list from which on the figures of both runs stand before their difference."""

ZERO = "│"
"""Where a bar begins."""

UP, DOWN, SAME = "↑", "↓", "="
NOT_THERE = "+"
"""What stands before a document that only this run has."""

TIE = 5e-10
"""Differences that are not greater are none, as in the tests."""


def shown_difference(value: float) -> str:
    """A difference in five cells.

    >>> shown_difference(0.1602), shown_difference(-1.0), shown_difference(0.0)
    ('+.160', '-1.00', '  =  ')
    """
    if abs(value) <= TIE:
        return f"  {SAME}  "
    return f"{'+' if value > 0 else '-'}{shown_figure(abs(value))}"


def half_bar(share: float, cells: int) -> str:
    """A bar to the left of where it begins, as long as a share of so many cells, to half a cell.

    >>> half_bar(0.5, 3), half_bar(1.0, 3), half_bar(0.01, 3)
    (' ▐█', '███', '   ')
    """
    halves = round(max(0.0, min(1.0, share)) * cells * 2)
    full, rest = divmod(halves, 2)
    return ("▐" * rest + "█" * full).rjust(cells)


class DifferenceRows(TopicRows):
    """The topics of two runs: the figure of the second less that of the first, with a bar."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--won", "rows--fell", "rows--rank"}

    def __init__(self, pages: RunPages) -> None:
        super().__init__(pages)
        self._differences: Mapping[str, TopicDifference] = {}
        self._greatest = 1.0

    @property
    def differences(self) -> Mapping[str, TopicDifference]:
        """The differences by topic; nothing until they are known."""
        return self._differences

    @differences.setter
    def differences(self, found: Mapping[str, TopicDifference]) -> None:
        self._differences = found
        self._greatest = max((abs(one.difference) for one in found.values()), default=0.0) or 1.0

    def figures_of(self, topic: str, width: int) -> Sequence[Part]:
        if not self._differences:
            return ()
        found = self._differences.get(topic)
        cells = WIDE_BAR_CELLS if width >= WIDE_FROM else BAR_CELLS
        if found is None:
            return ((f"  –   {'':{cells}}{ZERO}{'':{cells}} ", "rows--faint"),)
        share = found.difference / self._greatest
        look = "rows--rank" if abs(found.difference) <= TIE else "rows--won" if share > 0 else "rows--fell"
        parts: list[Part] = []
        if width >= VALUES_FROM:
            values = f"{shown_figure(found.first)} → {shown_figure(found.second)} "
            parts.append((values, "rows--rank"))
        return (
            *parts,
            (f"{shown_difference(found.difference)} ", look),
            (half_bar(-share, cells), look),
            (ZERO, "rows--faint"),
            (f"{bar(share, cells)} ", look),
        )


class ComparedRows(RankingRows):
    """A topic's ranking in one run, with how far each document has moved between it and the other run.

    An arrow says where the second run has it, whichever of the two the list is of.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--won", "rows--fell"}

    def __init__(self, text: Callable[[str], str | None], *, is_second: bool, id: str) -> None:  # noqa: A002
        super().__init__(text, id=id)
        self._is_second = is_second
        self._others: Mapping[str, int] | None = None
        self._cells = 0
        self._by_weight: Sequence[int] = ()
        self._gone_to = -1

    @property
    def others(self) -> Mapping[str, int] | None:
        """The ranks of the topic's documents in the other run; None as long as they are not known."""
        return self._others

    @others.setter
    def others(self, ranks: Mapping[str, int] | None) -> None:
        self._others = ranks
        moves = [self.move_of(place) or 0 for place in range(len(self.documents))]
        self._cells = 0 if ranks is None else 1 + len(str(max(map(abs, moves), default=0)))
        moved = [place for place in range(len(self.documents)) if self.move_of(place) != 0]
        self._by_weight = sorted(moved, key=self._weight, reverse=True)
        self._gone_to = -1
        self.refresh()

    def move_of(self, place: int) -> int | None:
        """By how many ranks the document on a line is higher in the second run; None where only one run has it."""
        other = None if self._others is None else self._others.get(self.documents[place])
        if other is None:
            return None
        here = self.rank(place)
        return other - here if self._is_second else here - other

    def next_moved(self, step: int) -> int | None:
        """The place of the document whose move counts most, from there of the next one, or of that before it.

        None if there is none. How much a move counts is the difference that it makes to nDCG's discount, 1 / log2(1 +
        rank): nearly every document moves by a rank or two where one is put in above it.
        """
        gone_to = self._gone_to
        if not 0 <= gone_to < len(self._by_weight) or self._by_weight[gone_to] != self.cursor:
            gone_to = -1 if step > 0 else len(self._by_weight)
        if not 0 <= gone_to + step < len(self._by_weight):
            return None
        self._gone_to = gone_to + step
        return self._by_weight[self._gone_to]

    def _weight(self, place: int) -> float:
        other = (self._others or {}).get(self.documents[place])
        return abs(_discount(self.rank(place)) - (0.0 if other is None else _discount(other)))

    def _beside(self, place: int) -> Sequence[Part]:
        if self._others is None:
            return ()
        moved = self.move_of(place)
        if moved is None:
            sign, is_higher = f"{NOT_THERE:<{self._cells}} ", self._is_second
        elif moved:
            sign, is_higher = f"{UP if moved > 0 else DOWN}{abs(moved):<{self._cells - 1}} ", moved > 0
        else:
            return ((f"{SAME:<{self._cells}} ", "rows--faint"),)
        # Of a document that is not relevant nobody can say whether its move is for the better.
        is_gold = self.documents[place] in self.relevant
        return ((sign, "rows--faint" if not is_gold else "rows--won" if is_higher else "rows--fell"),)


def _discount(rank: int) -> float:
    return 1 / math.log2(1 + rank)
