"""Something that is done when the n-th request of a kind has been answered, while a command runs."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# The commands set up the logger `searchapp.requests` anew; what stands above it is left alone.
ABOVE = logging.getLogger("searchapp")


class Requests(logging.Handler):
    """Sees the line of each request that is logged.

    Args:
        path: a regular expression that is searched in a request's path
        number: which of the requests with such a path (from 1)
        action: what is done then
        at_once: whether the requests stand still meanwhile
    """

    def __init__(self, path: str, number: int, action: Callable[[], None], *, at_once: bool) -> None:
        super().__init__()
        self._path = re.compile(path)
        self._left = number
        self._action = action
        self._at_once = at_once
        self._thread = threading.Thread(target=self._act)
        self.done: float | None = None
        """When the action was done, on the monotonic clock."""
        self.answered: float | None = None
        """How many seconds later the first request was answered that was sent after it."""

    def emit(self, record: logging.LogRecord) -> None:
        path, outcome, milliseconds = _told(record)
        if not self._path.search(path):
            return
        if self.done is not None:
            now = time.monotonic()
            if self.answered is None and outcome == "200" and now - milliseconds / 1000 > self.done:
                self.answered = now - self.done
            return
        self._left -= 1
        if self._left == 0:
            self._thread.start()
            if self._at_once:
                self._thread.join()

    def _act(self) -> None:
        self._action()
        self.done = time.monotonic()

    def join(self) -> None:
        """Wait until the action is over.

        Raises:
            AssertionError: there were too few requests
        """
        assert self._left <= 0, f"there were {self._left} requests to {self._path.pattern} too few"
        self._thread.join()


def _told(record: logging.LogRecord) -> tuple[str, str, float]:
    """Path, outcome and milliseconds of a request, as `searchapp.engines.elasticsearch.client` logs them."""
    assert isinstance(record.args, tuple)
    _method, path, _address, outcome, milliseconds, *_ = record.args
    assert isinstance(path, str) and isinstance(outcome, str) and isinstance(milliseconds, float)
    return path, outcome, milliseconds


@contextmanager
def after(number: int, path: str, action: Callable[[], None], *, at_once: bool = False) -> Iterator[Requests]:
    """Do something when the n-th request to such a path has been answered in the block, which must come to that."""
    requests = Requests(path, number, action, at_once=at_once)
    level = ABOVE.level
    ABOVE.addHandler(requests)
    ABOVE.setLevel(logging.INFO)
    try:
        yield requests
    finally:
        ABOVE.removeHandler(requests)
        ABOVE.setLevel(level)
    requests.join()
