"""Who has a log open to judge: so that nobody judges in two windows without knowing.

Every window beats in the log's file, in a table of its own. A window that was killed beats no more, and is known to be
gone: at once where its process can be asked for, else once its last beat is old.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType

from searchapp.errors import SearchappError
from searchapp.judging.log import JudgmentLog
from searchapp.judging.records import Window

BEAT_SECONDS = 5.0
STALE_SECONDS = 3 * BEAT_SECONDS
"""A window whose last beat is older is gone."""
PATIENCE_SECONDS = 2.0
"""How long a beat waits for others that write the log; the next one comes anyway."""
LEAVING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class OtherWindow:
    """Another window in which the same annotator judges the same task, on the same log."""

    host: str
    process: int
    opened: float

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.opened).astimezone()
        return f"process {self.process} on {self.host}, since {since:%H:%M}"


class Presence:
    """One window's beats, and what it hears of others; a context, in which it beats in the background."""

    def __init__(self, path: Path, task: str, annotator: str) -> None:
        now = time.time()
        self.others: tuple[OtherWindow, ...] = ()
        """The other windows of the same annotator on the same task that are open, as of the last beat."""
        self._path = path
        self._window = Window(
            uuid.uuid4().hex, annotator, task, platform.node(), os.getpid(), opened=now, beat=now
        )
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="presence in the log", daemon=True)

    def __enter__(self) -> Presence:
        self._beat()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        self._thread.join(LEAVING_SECONDS)

    def _run(self) -> None:
        while not self._leaving.wait(BEAT_SECONDS):
            self._beat()
        with suppress(SearchappError), JudgmentLog(self._path, PATIENCE_SECONDS) as log:
            log.leave(self._window)

    def _beat(self) -> None:
        # Whatever keeps a beat from being written, such as a full disk, is reported where judgments are written.
        with suppress(SearchappError), JudgmentLog(self._path, PATIENCE_SECONDS) as log:
            self._exchange(log)

    def _exchange(self, log: JudgmentLog) -> None:
        now = time.time()
        self._window = replace(self._window, beat=now)
        log.beat(self._window, now - STALE_SECONDS)
        self.others = tuple(
            OtherWindow(one.host, one.process, one.opened)
            for one in log.windows(self._window.task, self._window.annotator, now - STALE_SECONDS)
            if one.id != self._window.id and not _is_gone(one)
        )


def _is_gone(window: Window) -> bool:
    """Whether the window's process is known to have ended."""
    if os.name != "posix" or window.host != platform.node():
        return False
    try:
        os.kill(window.process, 0)  # asks, and sends nothing
    except ProcessLookupError:
        return True
    except OSError:
        return False  # another user's
    return False
