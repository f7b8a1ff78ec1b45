"""How far a recipe is that learns from solved topics, in the first line of the screen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from searchapp.progress import Advance
from searchapp.tui.head import Banner

EVERY_SECONDS = 0.1


class Learning:
    """A `Progress` that says how far it is; `post` has that done in the thread of the screen."""

    def __init__(self, post: Callable[[Callable[[], object]], object], head: Banner) -> None:
        self._post = post
        self._head = head

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        done = 0
        told = 0.0

        def advance(further: int) -> None:
            nonlocal done, told
            done += further
            now = time.monotonic()
            if now - told >= EVERY_SECONDS:
                told = now
                self._tell(_said(label, done, total, in_bytes=in_bytes))

        self._tell(f"{label} …")
        yield advance

    def _tell(self, words: str) -> None:
        self._post(lambda: self._head.tell(words))


def _said(label: str, done: int, total: int | None, *, in_bytes: bool) -> str:
    """How far a stage is, in words.

    >>> _said("indexing", 500, 2000, in_bytes=False)
    'indexing 25%'
    """
    if total:
        return f"{label} {min(done, total) / total:.0%}"
    return f"{label} …" if in_bytes else f"{label} {done:,}"
