"""What is asked of a hit while another ranking is waited for."""

from __future__ import annotations

from collections.abc import Callable

OF_HIT = {
    "why",
    "compare",
    "citing",
    "analysis",
    "document",
    "like",
    "copy_id",
    "copy_text",
    "copy_command",
    "pager",
}
"""What is done with a hit, or with the ranking as it is."""

AFTER_IT = {"down", "up", "page_down", "page_up", "first", "last", "undo"}
"""What is put off too where one of these is: it goes on from there, or takes that back."""


class PuttingOff:
    """Keeps what is to be done with a hit until the ranking is there that somebody sees coming."""

    def __init__(self, do: Callable[[str], object]) -> None:
        self._do = do
        self._names: list[str] = []

    def takes(self, name: str) -> bool:
        """Whether something is done with a hit, or comes after that, and so is put off now."""
        is_of_hit = name in OF_HIT or name.startswith("grade_") or (bool(self._names) and name in AFTER_IT)
        if is_of_hit:
            self._names.append(name)
        return is_of_hit

    def catch_up(self) -> None:
        """Do what was put off."""
        names, self._names = self._names, []
        for name in names:
            self._do(name)

    def give_up(self) -> None:
        """Do none of it: there is no such ranking."""
        self._names.clear()
