"""Computes the figures of all topics in the background, while somebody looks at the first ones."""

from __future__ import annotations

import time
from collections.abc import Callable

from searchapp.app.topic_figures import Figures
from searchapp.app.topics import RunTopics
from searchapp.model import Run
from searchapp.tui.background import Background, Post

EVERY_SECONDS = 0.2
"""How often it is said how far it is."""


class Figuring:
    """The figures, once they are there.

    Args:
        topics: the topics
        post: has something done in the thread of the screen
        so_far: is told the share of topics whose rankings are read
        came: is given the figures
        failed: is given the error, if there are none
    """

    def __init__(
        self,
        topics: RunTopics,
        post: Post,
        so_far: Callable[[float], object],
        came: Callable[[Figures], object],
        failed: Callable[[Exception], object],
    ) -> None:
        self._background = Background("figures", lambda: topics, post)
        self._post = post
        self._so_far = so_far
        self._came = came
        self._failed = failed
        self._is_closed = False

    def begin(self) -> None:
        """Compute them."""
        self._background.ask(0, self._work, self._take, self._failed)

    @property
    def is_idle(self) -> bool:
        return self._background.is_idle

    def close(self) -> None:
        """Compute no further."""
        self._is_closed = True
        self._background.close()

    def _work(self, topics: RunTopics) -> Figures | None:
        if not topics.gold:  # without which nothing need be read
            return None
        total, told = len(topics.topics), time.monotonic()
        rankings = []
        for done, ranking in enumerate(topics.rankings(), start=1):
            if self._is_closed:
                return None
            rankings.append(ranking)
            if time.monotonic() - told >= EVERY_SECONDS:
                told = time.monotonic()
                self._tell(done / total)
            time.sleep(0)  # keys come first
        return topics.figures(Run(topics.pages.name, tuple(rankings)))

    def _tell(self, share: float) -> None:
        self._post(lambda: self._so_far(share))

    def _take(self, figures: Figures | None) -> None:
        if figures is not None:
            self._came(figures)
