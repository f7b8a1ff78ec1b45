"""Run an action after the n-th request of a kind while a command runs."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Commands replace the handlers of the logger `searchapp.requests`, but not of its parent.
PARENT_LOGGER = logging.getLogger("searchapp")


class RequestTrigger(logging.Handler):
    """Run an action after a logged request.

    Args:
        path: A regular expression that is searched in a request's path.
        number: The number of the request among those with a matching path, from 1.
        action: The action.
        at_once: Whether requests wait until the action is done.
    """

    def __init__(self, path: str, number: int, action: Callable[[], None], *, at_once: bool) -> None:
        super().__init__()
        self._path = re.compile(path)
        self._remaining = number
        self._action = action
        self._at_once = at_once
        self._thread = threading.Thread(target=self._act)
        self.done: float | None = None
        """When the action ended, on the monotonic clock."""
        self.answered: float | None = None
        """Seconds until the first request sent after the action was answered."""

    def emit(self, record: logging.LogRecord) -> None:
        path, outcome, milliseconds = _parse(record)
        if not self._path.search(path):
            return
        if self.done is not None:
            end = time.monotonic()
            if self.answered is None and outcome == "200" and end - milliseconds / 1000 > self.done:
                self.answered = end - self.done
            return
        self._remaining -= 1
        if self._remaining == 0:
            self._thread.start()
            if self._at_once:
                self._thread.join()

    def _act(self) -> None:
        self._action()
        self.done = time.monotonic()

    def join(self) -> None:
        """Wait until the action has ended.

        Raises:
            AssertionError: There were too few requests.
        """
        assert self._remaining <= 0, f"{self._remaining} more requests to {self._path.pattern} were expected"
        self._thread.join()


def _parse(record: logging.LogRecord) -> tuple[str, str, float]:
    """Return path, outcome and milliseconds of a request that `searchapp.engines.elasticsearch.client` logged."""
    assert isinstance(record.args, tuple)
    _method, path, _address, outcome, milliseconds, *_ = record.args
    assert isinstance(path, str) and isinstance(outcome, str) and isinstance(milliseconds, float)
    return path, outcome, milliseconds


@contextmanager
def after(
    number: int, path: str, action: Callable[[], None], *, at_once: bool = False
) -> Iterator[RequestTrigger]:
    """Run an action after the n-th request to a matching path; the block must send at least n."""
    requests = RequestTrigger(path, number, action, at_once=at_once)
    level = PARENT_LOGGER.level
    PARENT_LOGGER.addHandler(requests)
    PARENT_LOGGER.setLevel(logging.INFO)
    try:
        yield requests
    finally:
        PARENT_LOGGER.removeHandler(requests)
        PARENT_LOGGER.setLevel(level)
    requests.join()
