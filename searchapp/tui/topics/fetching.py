"""Asks for the ranking of a topic in a run with the beginnings of documents, and for what became of missed gold."""

from __future__ import annotations

from collections.abc import Callable

from searchapp.app.topics import MissedGold, RunTopics, TopicRanking
from searchapp.tui.status import said_by
from searchapp.tui.topics.documents import Documents
from searchapp.tui.topics.parts import GoldView, Kind
from searchapp.tui.topics.side import Side

NEAR = 60
"""Documents of a ranking whose beginnings are fetched with it."""


class Fetching:
    """Asks in the background; the screen takes the answers, and drops those that come too late."""

    def __init__(self, screen: GoldView, documents: Documents) -> None:
        self._screen = screen
        self._documents = documents

    def ranking(self, side: Side, topic: str, came: Callable[[TopicRanking], object]) -> None:
        """Ask for a topic's ranking; an engine that failed is asked again as long as the topic is in sight."""
        screen = self._screen

        def work(topics: RunTopics) -> TopicRanking:
            found = topics.ranking(topic)
            near = [*found.documents[:NEAR], *(one.document_id for one in found.missed)]
            self._documents.prepare(topics.pages, near)
            return found

        def again() -> None:
            if screen.sought == topic:
                self.ranking(side, topic, came)

        side.quick.ask(Kind.topic, work, came, lambda error: screen.tell_failure(error, again))

    def missed(self, side: Side, found: TopicRanking, came: Callable[[MissedGold], object]) -> None:
        """Ask what became of missed gold, where that is not known."""
        if any(one.why is None for one in found.missed):
            side.slow.ask(
                Kind.missed,
                lambda topics: topics.look_for_missed(found.topic_id),
                came,
                lambda error: self._screen.head.tell(said_by(error), "$error"),
            )
