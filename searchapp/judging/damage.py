"""What is found to be wrong with the events of a judgment log, as far as they are looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

TOLD = 10
"""How many damaged events are reported one by one."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is wrong: the place of the event, None where it is none's, and a sentence."""

    place: int | None
    words: str


class Damages:
    """Everything that was found in a log so far; each thing is reported once, and no more than some of them.

    `report` is called with a sentence. It may be replaced at any time.
    """

    def __init__(self, report: Callable[[str], None] | None = None) -> None:
        self.report = report
        self._found: dict[Damage, None] = {}

    def add(self, damage: Damage) -> None:
        """Take note of something, and report it unless that was done before."""
        if damage in self._found:
            return
        self._found[damage] = None
        if self.report is not None and len(self._found) <= TOLD:
            self.report(damage.words)
        elif self.report is not None and len(self._found) == TOLD + 1:
            self.report("more events are damaged: `searchapp judgments verify` lists them all")

    @property
    def found(self) -> tuple[Damage, ...]:
        """Everything that was found, in the order in which it was."""
        return tuple(self._found)

    @property
    def places(self) -> list[int]:
        """The places of damaged events."""
        return [damage.place for damage in self._found if damage.place is not None]
