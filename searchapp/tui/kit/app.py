"""The app that shows screens: it paints a first frame before a screen is opened, and orders keys.

Imports little, because nothing is visible before the first frame.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import events, on
from textual.app import App, ComposeResult
from textual.screen import ModalScreen, Screen

from searchapp.config.settings import SPACINGS
from searchapp.console import HarmlessConsole
from searchapp.progress import Progress, TextProgress, WorkStopped
from searchapp.text import counted, visible_line
from searchapp.tui.kit.content import Content, Plain
from searchapp.tui.kit.keys import types_nothing
from searchapp.tui.kit.themes import dress
from searchapp.tui.kit.widgets import KeyEntry, KeyLine, TextLine

if TYPE_CHECKING:
    from searchapp.tui.kit.screen import KeyScreen

COPY_SECONDS = 2.0

# Clipboard commands in order of preference, and the variable that each needs.
COPY_COMMANDS: Sequence[tuple[Sequence[str], str]] = (
    (("wl-copy",), "WAYLAND_DISPLAY"),
    (("xclip", "-selection", "clipboard"), "DISPLAY"),
    (("xsel", "--clipboard", "--input"), "DISPLAY"),
    (("pbcopy",), ""),
    # tmux may filter OSC 52 of programs, but sends its own to the terminal (-w, since tmux 3.2).
    (("tmux", "load-buffer", "-w", "-"), "TMUX"),
)


def copy_with_program(text: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Copy a text with the first clipboard command that succeeds; return its name, or None."""
    for command, needed in COPY_COMMANDS:
        path = shutil.which(command[0], path=environment.get("PATH"))
        if path is None or (needed and not environment.get(needed)):
            continue
        try:
            # Its output is discarded: such a program stays in the background to serve the copied text.
            subprocess.run(
                [path, *command[1:]],
                input=text.encode("utf-8", "replace"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=COPY_SECONDS,
                check=True,
                env=dict(environment),
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return command[0]
    return None


# Opens a screen in a background thread, and closes its resources in the main thread after the user has left. None
# shows nothing.
Opening = Callable[[Progress], "AbstractContextManager[KeyScreen | None]"]

# Keys that end the program while it loads; those of the screen may be others.
QUIT_KEY, INTERRUPT_KEY = "ctrl+q", "ctrl+c"

# How long leaving waits for the thread that opens the screen, so that it can close its resources.
LEAVING_SECONDS = 2.0


class LoadingScreen(Screen[None]):
    """The first frame: a title and the progress, until the real screen is open.

    Args:
        title: the first line
        opening: opens the real screen
        resources: receives the resources of the real screen
    """

    def __init__(self, title: str, opening: Opening, resources: ExitStack) -> None:
        super().__init__()
        # Why the program ends without the real screen.
        self.error: BaseException | None = None
        self._title = title
        self._opening = opening
        self._resources = resources
        self._progress = "loading …"
        self._begin = time.monotonic()
        self._thread: threading.Thread | None = None
        self._is_stopped = False

    def compose(self) -> ComposeResult:
        yield Plain(Content.styled(visible_line(self._title), "bold"), id="head")
        yield Plain(id="loading")
        yield KeyLine([KeyEntry("quit", "^q", "quit")], 1, id="keys")

    def on_mount(self) -> None:
        self._draw()
        self.set_interval(1, self._draw)
        # Imports would delay the first frame.
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        from searchapp.tui.kit.background import in_background

        self._thread = in_background("opening", self._open, self._show, self._leave, self.call_later)

    def _open(self) -> KeyScreen | None:
        def tell(words: str) -> None:
            if self._is_stopped and threading.current_thread() is self._thread:
                raise WorkStopped
            self._progress = words
            self.call_later(self._draw)

        return self._resources.enter_context(self._opening(TextProgress(tell)))

    def _show(self, screen: KeyScreen | None) -> None:
        if screen is None:
            self._leave()
        elif isinstance(self.app, KeyApp) and not self.app._exit:
            self.app.replace_main(screen)

    def _leave(self, error: BaseException | None = None) -> None:
        if not self.app._exit:  # which has an exit code
            self.error = error
            self.app.exit()

    def take(self, key: str) -> None:
        if key == INTERRUPT_KEY:
            self._leave(KeyboardInterrupt())
        elif key == QUIT_KEY:
            self._leave()

    @on(KeyLine.Pressed)
    def _pressed(self) -> None:
        self._leave()

    def stop(self) -> None:
        """Stop opening, after the end of the app.

        Raises:
            BaseException: the screen could not be opened, or the user interrupted that.
        """
        self._is_stopped = True
        if self._thread is not None:
            self._thread.join(LEAVING_SECONDS)
        if self.error is not None:
            raise self.error

    def _draw(self) -> None:
        seconds = int(time.monotonic() - self._begin)
        words = f"{visible_line(self._progress)}{f'  {seconds} s' * (seconds > 0)}"
        self.query_one("#loading", Plain).update(words, layout=False)


# Keys that copy the selected text of a dialog.
COPY_KEYS = ("ctrl+c", "super+c")


class KeyApp(App[None]):
    """Shows a screen, and others above it; handles keys in the order of typing.

    Textual delivers keys over several queues, so the first letters of a note, typed before its dialog opens,
    would become grades. Therefore the app passes each key to the front screen directly, and keys wait until
    that screen is mounted.
    """

    ENABLE_COMMAND_PALETTE = False
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, main: KeyScreen | LoadingScreen, theme: str, spacing: str = SPACINGS[0]) -> None:
        # Textual reads the style sheet of a screen that is pushed, but not of the first one.
        super().__init__(css_path=[Path(__file__).with_name("app.tcss"), *main.css_path])
        self.animation_level = "none"
        # Prints exit messages and errors, which may quote texts from files.
        self.error_console = HarmlessConsole(stderr=True)
        dress(self, theme, spacing)
        # The first screen, of any class.
        self.main: Any = main
        self._keys: deque[events.Key | events.Paste] = deque()

    def get_default_screen(self) -> Screen[None]:
        screen: Screen[None] = self.main
        return screen

    def on_mount(self) -> None:
        for name in ("SIGTERM", "SIGHUP"):
            # Some systems lack one of these signals, or handlers for it.
            with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
                number = getattr(signal, name)
                asyncio.get_running_loop().add_signal_handler(number, self._leave, number)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.AppBlur) and self.is_web:
            return  # Textual sends it first in a browser, and no widget would have the focus
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._keys.append(event)
            if isinstance(event, events.Key) and isinstance(self.screen, LoadingScreen):
                self.screen.take(event.key)
            await self.take_keys()
        else:
            await super().on_event(event)

    async def take_keys(self) -> None:
        """Act on waiting keys and pastes, up to one that opens a screen."""
        while self._keys:
            if self._exit:
                self._keys.clear()
                return
            screen = self.screen
            if isinstance(screen, LoadingScreen):  # the keys wait for the screen that it opens
                return
            if not screen.is_mounted:
                screen.call_later(self.call_later, self.take_keys)  # runs once the screen is mounted
                return
            event = self._keys.popleft()
            if isinstance(event, events.Paste):
                if isinstance(self.focused, TextLine):
                    self.focused.paste(event.text)
                else:
                    await super().on_event(event)
                continue
            if isinstance(screen, ModalScreen) and self._leaves(event.key):
                continue
            copies = isinstance(screen, ModalScreen) and event.key in COPY_KEYS
            if copies and (text := screen.get_selected_text()):
                self.copy_to_clipboard(text)
            else:
                take = getattr(screen, "take", None)  # of ordered screens and the palette
                if not (take and take(event)):
                    await super().on_event(event)

    def replace_main(self, screen: KeyScreen) -> None:
        """Show a screen instead of the first one, and let it act on the keys typed so far."""
        # Textual takes a callback from a screen that it replaces, and gives its first screen none.
        self.screen._push_result_callback(self.screen, None)
        self.switch_screen(screen)
        self.call_later(self.take_keys)

    def _leaves(self, key: str) -> bool:
        """Close the dialogs and leave their screen, if the key does that from every pane."""
        from searchapp.tui.kit.screen import front

        below = front(self)
        if below is None or not types_nothing(key) or below.keys.action(key) != "quit":
            return False
        while isinstance(self.screen, ModalScreen):
            self.pop_screen()
        below.do("quit")
        return True

    def copy_to_clipboard(self, text: str) -> None:
        if self.is_web:  # the browser may run on another system than the program
            self._report_copy(text, None)
            return

        def copy() -> None:
            self.call_from_thread(self._report_copy, text, copy_with_program(text))

        self.run_worker(copy, "to copy", thread=True, exit_on_error=False, group="copy")

    def _report_copy(self, text: str, program: str | None) -> None:
        from searchapp.tui.kit.screen import key_screens

        size = counted(len(text), "character")
        head = key_screens(self)[0].head
        if program is not None:
            head.tell(f"copied {size} with {program}", "$success")
        else:
            super().copy_to_clipboard(text)
            where = (
                "browser's clipboard, if it allows that"
                if self.is_web
                else "terminal's clipboard (OSC 52), if it has one"
            )
            head.tell(f"sent {size} to the {where}")

    def _leave(self, number: int) -> None:
        from searchapp.tui.kit.screen import key_screens

        messages = [text for screen in key_screens(self) if (text := screen.last_words()) is not None]
        self.exit(return_code=128 + number, message="\n".join(messages) or None)
