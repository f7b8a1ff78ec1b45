"""Wait until a screen is at rest, so that its picture is the same on all machines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.timer import Timer

from searchapp.tui.kit.screen import KeyScreen

TIMEOUT_SECONDS = 60
EQUAL_PICTURES = 3
SOON_SECONDS = 1.0


async def wait_for_rest(pilot: Pilot[None]) -> None:
    """Wait until no screen works in the background, has pending drawing or a timer below a second, and the picture of
    the front screen has stopped changing.
    """
    equal, before = 0, None
    for _ in range(100 * TIMEOUT_SECONDS):
        # Textual's own `pause` draws the screen early.
        await pilot._wait_for_screen()
        await pilot._wait_for_screen()
        # An answer arrives before it is shown, and may start further work.
        now = pilot.app.screen._compositor.render_strips() if is_at_rest(pilot.app) else None
        equal = equal + 1 if now is not None and now == before else 0
        if equal == EQUAL_PICTURES:
            return
        before = now
        await asyncio.sleep(0.01)
    raise TimeoutError("the screen does not come to rest")


def is_at_rest(app: App[None]) -> bool:
    """Return whether nothing will change by itself, except by timers that repeat."""
    if any(not worker.is_finished for worker in app.workers):
        return False
    for screen in app.screen_stack:
        if _will_be_drawn(screen):
            return False
        if isinstance(screen, KeyScreen) and not all(work.is_idle for work in _background_work(screen)):
            return False
        if any(_fires_soon(timer) for node in screen.walk_children(with_self=True) for timer in node._timers):
            return False
    return True


def _will_be_drawn(screen: Screen[Any]) -> bool:
    """Return whether a visible screen is about to be laid out or drawn."""
    if not screen.is_current:
        return False  # Textual draws it when it becomes visible
    changed = screen._layout_required or screen._scroll_required
    if screen is screen.app.screen:  # screens below keep this mark
        changed = changed or screen._repaint_required
    return changed or bool(screen._dirty_widgets) or bool(screen._callbacks)


def _fires_soon(timer: Timer) -> bool:
    """Return whether a timer calls something once, within `SOON_SECONDS`."""
    is_running = timer._task is not None and not timer._task.done()
    return is_running and timer._repeat == 0 and timer._interval < SOON_SECONDS


def _background_work(screen: KeyScreen) -> Iterator[Any]:
    """Yield the attributes of a screen that work in the background: they have `is_idle`."""
    for value in vars(screen).values():
        yield from (
            part
            for part in (value if isinstance(value, list | tuple) else [value])
            if hasattr(part, "is_idle")
        )
