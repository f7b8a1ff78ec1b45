"""How far a recipe is that learns from solved topics, in the first line of the screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from searchapp.progress import Advance, InWords
from searchapp.tui.background import Post
from searchapp.tui.head import Banner


class Learning:
    """A `Progress` that says how far it is; `post` has that done in the thread of the screen."""

    def __init__(self, post: Post, head: Banner) -> None:
        self._words = InWords(lambda words: post(lambda: head.tell(words, lasts=False)))
        self.is_at_work = False

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        with self._words.stage(label, total, in_bytes=in_bytes) as advance:
            self.is_at_work = True
            try:
                yield advance
            finally:
                self.is_at_work = False
