"""Screens that are drawn once, and given their looks once, where several things change one after the other.

Textual draws a screen whenever it has laid it out: three times before the first key, twice for a dialog or another size
of the terminal, and then again with the next turn of its timer. Each time the terminal is sent all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events, on
from textual.screen import ModalScreen, Screen, ScreenResultType

WIDE_FROM = 110
"""Screens of so many columns are wide, others narrow."""

WIDTHS = [(0, "-narrow"), (WIDE_FROM, "-wide")]
"""The classes of screens, each with the columns from which on they have it."""


class SteadyScreen(Screen[ScreenResultType]):
    """A screen that is drawn by its timer alone, and once for each of its turns."""

    _is_put_off = False
    _held_back: Sequence[Callable[[], object]] = ()

    def when_in_front(self, do: Callable[[], object]) -> None:
        """Do something now, or as soon as nothing stands on the screen any more.

        What comes of a question that took long puts nothing under the fingers of whoever types elsewhere by then.
        """
        if self.is_active:
            do()
        else:
            self._held_back = [*self._held_back, do]

    @on(events.ScreenResume)
    def _came_to_front(self) -> None:
        while self._held_back and self.is_active:
            do, *self._held_back = self._held_back
            do()

    @property
    def is_drawn(self) -> bool:
        """Whether no drawing is put off."""
        return not self._is_put_off

    def on_compose(self) -> None:
        """Be narrow or wide before the panes are there, which would have to be given all of their looks again."""
        is_wide = self.app.size.width >= WIDE_FROM
        self.update_classes({"-wide": is_wide, "-narrow": not is_wide})

    @on(events.ScreenResume)
    def _resumed(self, event: events.ScreenResume) -> None:
        if self.app.screen_stack[0] is self and not self.stack_updates:
            event.refresh_styles = False  # the panes have just been given their looks

    def _compositor_refresh(self) -> None:
        if self is self.app.screen:
            self._is_put_off = True  # the compositor keeps what has changed
            self._update_timer.resume()
        else:
            super()._compositor_refresh()

    def _on_timer_update(self) -> None:
        super()._on_timer_update()
        if self.app._batch_count:
            self._update_timer.resume()  # nothing tells the screen when the batch ends
        elif self._is_put_off:
            self._is_put_off = False
            self._update_timer.pause()
            super()._compositor_refresh()

    async def _invoke_and_clear_callbacks(self) -> None:
        if self._is_put_off:
            self._update_timer.resume()  # what is called after drawing is called after its turn
        else:
            await super()._invoke_and_clear_callbacks()


class Dialog(ModalScreen[ScreenResultType], SteadyScreen[ScreenResultType]):
    """A question, a list or a text that stands on a screen; it looks as Textual's, which so comes first."""
