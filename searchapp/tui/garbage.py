"""Python's search for garbage: what it leaves out, and that it is put off while somebody types.

Among all objects it takes as long as three answers.
"""

from __future__ import annotations

import gc
import time

LOOK_SECONDS = 0.5
"""How often it is looked whether somebody is at the keys."""

REST_SECONDS = 0.4
"""After a key from when on nobody is."""

WORTH_IT = 5
"""Searches among the middle-aged objects after which one among all of them pays."""

LATEST = 200
"""Such searches after which it is not put off any more, for the sake of the memory."""


def leave_out(*, after_others: bool) -> None:
    """Leave out what is there by now, which stays: to look for garbage in it would keep keys waiting.

    Where other screens have stood before, `after_others`, what is left of them goes first.
    """
    if after_others:
        gc.collect()
    gc.freeze()


def take_in() -> None:
    """Search everything again."""
    gc.unfreeze()


class Garbage:
    """Searches when nobody is at the keys, from `begin` to `end`."""

    def __init__(self) -> None:
        self._before: tuple[int, int, int] | None = None
        self._last_input = 0.0

    def begin(self) -> None:
        """From now on put searches off."""
        self._before = gc.get_threshold()
        gc.set_threshold(*self._before[:2], LATEST)

    def input_came(self) -> None:
        """Somebody is at the keys, or the mouse."""
        self._last_input = time.monotonic()

    def look(self) -> None:
        """Search, if nobody is and it pays."""
        if time.monotonic() - self._last_input >= REST_SECONDS and gc.get_count()[2] >= WORTH_IT:
            gc.collect()

    def end(self) -> None:
        """Search as before."""
        if self._before is not None:
            gc.set_threshold(*self._before)
            self._before = None
