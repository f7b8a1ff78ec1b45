"""The list of topics of two runs: the greatest differences first, once these are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from searchapp.app.comparing import Comparing, Sorting
from searchapp.tui.compare.lists import DifferenceRows, shown_difference
from searchapp.tui.topics.lists import shown_figure
from searchapp.tui.topics.parts import GoldView
from searchapp.tui.topics.walking import TopicList

SORTED = {
    Sorting.gains: "greatest gains first",
    Sorting.losses: "greatest losses first",
    Sorting.changes: "greatest differences first",
    Sorting.file: "as in the first run",
}


class DifferencesView(GoldView, Protocol):
    """The compare screen, as far as the list of its topics asks it; `measured` names the measure in sight."""

    comparing: Comparing

    @property
    def difference_rows(self) -> DifferenceRows: ...
    @property
    def measured(self) -> str: ...


class Differences(TopicList):
    """Lists the topics, and goes from one to the next."""

    def __init__(self, screen: DifferencesView) -> None:
        super().__init__(screen)
        self._screen = screen
        self.order = Sorting.gains

    def every(self) -> Sequence[str]:
        return self._screen.comparing.in_order(self.order, self._screen.difference_rows.differences)

    def title(self) -> str:
        measured = self._screen.measured
        return f"{measured} by topic · {SORTED[self.order]}" if measured else "Topics"

    def of_topic(self, topic: str) -> str:
        found = self._screen.difference_rows.differences.get(topic)
        if found is None:
            return ""
        said = [
            f"{len(moves):,} {word}"
            for word, moves in (("gained", found.gained), ("lost", found.lost), ("moved", found.moved))
            if moves
        ]
        values = f"{shown_figure(found.first)} → {shown_figure(found.second)}"
        behind = f" · {', '.join(said)}" if said else ""
        return f" · {values} {shown_difference(found.difference).strip()}{behind}"

    def next_order(self) -> None:
        if self._are_there():
            orders = list(Sorting)
            self.order = orders[(orders.index(self.order) + 1) % len(orders)]
            self.list_topics()
            self._screen.head.tell(f"topics: {SORTED[self.order]}")

    def to_first(self) -> None:
        """Open the first topic in the order that was asked for."""
        if self._are_there():
            self.go_to_first()

    def _are_there(self) -> bool:
        if not self._screen.difference_rows.differences:
            self._screen.head.tell("there are no differences to order the topics by yet", "$warning")
            return False
        return True
