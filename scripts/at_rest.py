"""Waits until a screen is at rest: what is drawn of it then is the same on every machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.timer import Timer

from searchapp.tui.compare.screen import CompareScreen
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.kit.screen import KeyScreen
from searchapp.tui.search.screen import SearchScreen
from searchapp.tui.topics.screen import TopicsScreen

PATIENCE_SECONDS = 60
IDLE_LOOKS = 3
SOON_SECONDS = 1.0


async def still(pilot: Pilot[None]) -> None:
    """Wait until everything that was begun is done and drawn, on every screen, and the picture does not change.

    Nothing is asked or worked on in the background, no drawing and nothing that comes after one is put off, and no
    timer of less than a second runs.
    """
    looks, before = 0, None
    for _try in range(100 * PATIENCE_SECONDS):
        # Textual's own `pause` has the screen drawn before its turn.
        await pilot._wait_for_screen()
        await pilot._wait_for_screen()
        # An answer is handed over before it is shown, and may be a reason to ask for more.
        now = pilot.app.screen._compositor.render_strips() if is_at_rest(pilot.app) else None
        looks = looks + 1 if now is not None and now == before else 0
        if looks == IDLE_LOOKS:
            return
        before = now
        await asyncio.sleep(0.01)
    raise TimeoutError("the screen does not come to rest")


def is_at_rest(app: App[None]) -> bool:
    """Whether nothing more comes by itself, but for what is looked at again and again."""
    if any(not worker.is_finished for worker in app.workers):
        return False
    for screen in app.screen_stack:
        asked = _askers(screen) if isinstance(screen, KeyScreen) else ()
        if _is_to_be_drawn(screen) or not all(one.is_idle for one in asked):
            return False
        if any(_fires_soon(timer) for node in screen.walk_children(with_self=True) for timer in node._timers):
            return False
    return True


def _is_to_be_drawn(screen: Screen[Any]) -> bool:
    """Whether a screen, or what can be seen of it below others, is about to be laid out or drawn."""
    if not screen.is_current:
        return False  # which it is when it is seen again
    changed = screen._layout_required or screen._scroll_required
    if screen is screen.app.screen:  # those below are marked as long as they stand there
        changed = changed or screen._repaint_required
    return changed or bool(screen._dirty_widgets) or bool(screen._callbacks)


def _fires_soon(timer: Timer) -> bool:
    """Whether a timer calls something once, and before long."""
    is_running = timer._task is not None and not timer._task.done()
    return is_running and timer._repeat == 0 and timer._interval < SOON_SECONDS


class Asks(Protocol):
    """Something that is asked in the background."""

    @property
    def is_idle(self) -> bool: ...


def _askers(screen: KeyScreen) -> Sequence[Asks]:
    """What a screen asks in the background."""
    if isinstance(screen, SearchScreen):
        return screen.quick, screen.slow, screen.solved
    if isinstance(screen, TopicsScreen | CompareScreen):
        return *screen.sides, screen.figure_queue
    if isinstance(screen, HomeScreen):
        return screen.monitor, screen.opener
    return ()
