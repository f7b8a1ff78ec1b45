"""A run on a screen: its topics, its two lists of the topic in sight, and what is asked of it in the background."""

from __future__ import annotations

from collections.abc import Sequence

from searchapp.app.topics import RunTopics, TopicRanking
from searchapp.tui.background import Background, Post
from searchapp.tui.topics.lists import DocumentRows, MissedRows, RankingRows


class Side:
    """A run on a screen; `post` has answers taken in there.

    `quick` is asked what is read, `slow` what the recipe of the run must rank for. `ranked` is its ranking of the topic
    in sight, `in_missed` says whether the cursor is in the missed gold.
    """

    def __init__(self, topics: RunTopics, ranking: RankingRows, missed: MissedRows, post: Post) -> None:
        self.topics = topics
        self.ranking = ranking
        self.missed = missed
        self.ranked: TopicRanking | None = None
        self.in_missed = False
        self.quick = Background("topics", lambda: topics, post)
        self.slow = Background("missed gold", lambda: topics, post)

    @property
    def rows(self) -> DocumentRows:
        """The list that the cursor is in."""
        return self.missed if self.in_missed else self.ranking

    @property
    def lists(self) -> Sequence[DocumentRows]:
        return self.ranking, self.missed

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being asked."""
        return self.quick.is_idle and self.slow.is_idle

    def close(self) -> None:
        """Take no answers any more."""
        self.quick.close()
        self.slow.close()
