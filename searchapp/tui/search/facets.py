"""The filters: the values of fields with their numbers, each chosen and dropped with a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from searchapp.app.facets import Facet
from searchapp.ranking.language import Filter
from searchapp.tui.picking import Choice, Picking

CHOSEN, NOT_CHOSEN = "●", "○"


class Filtering(Picking):
    """Chooses values; `toggle` is called with each, and what it changes comes with `show`."""

    def __init__(self, toggle: Callable[[Filter], object], clear: Callable[[], object]) -> None:
        super().__init__("Only documents with", [])
        self._toggle = toggle
        self._clear = clear
        self._filters: list[Filter] = []

    @property
    def hint(self) -> str:
        return "↵ choose, and again: drop    ^x drop all    esc done"

    def show(self, found: Sequence[Facet]) -> None:
        """Show values; those that are chosen are marked."""
        self._filters = [Filter(one.field, value) for one in found for value, _count in one.values]
        width = max((len(f"{count:,}") for one in found for _value, count in one.values), default=0)
        self.replace(
            [
                Choice(
                    f"{one.field}: {value}",
                    f"{count:>{width},}",
                    CHOSEN if value in one.chosen else NOT_CHOSEN,
                )
                for one in found
                for value, count in one.values
            ]
        )

    def chosen(self, place: int) -> None:
        self._toggle(self._filters[place])

    def further(self) -> dict[str, Callable[[], object]]:
        return {"ctrl+x": self._clear}
