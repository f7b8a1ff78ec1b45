"""The list of topics: filtered by words, and opened."""

from __future__ import annotations

from searchapp.app.run_pages import RunPages
from searchapp.judging.judging_session import JudgingSession
from searchapp.tui.content import entitle
from searchapp.tui.judge.lists import TopicRows


class TopicList:
    """Leaves the topics with some words in the list."""

    def __init__(self, rows: TopicRows, judging: JudgingSession, run_pages: RunPages) -> None:
        self._rows = rows
        self._judging = judging
        self._run_pages = run_pages

    def filter(self, words: str) -> None:
        """Leave the topics with these words in their text or id; the cursor goes to the one that is open."""
        sought = words.lower().split()
        rows, names = self._rows, self._judging.topics
        rows.places = [
            place
            for place, topic in enumerate(names)
            if all(word in f"{topic} {self._run_pages.topic(topic).text}".lower() for word in sought)
        ]
        here = rows.places.index(rows.current) if rows.current in rows.places else 0
        entitle(rows, "Topics" if not sought else f"Topics · {len(rows.places)} of {len(names)}")
        rows.show(len(rows.places), here)

    def opened(self, place: int) -> None:
        """Mark the topic that is open."""
        rows = self._rows
        rows.current = place
        if place in rows.places:
            rows.move(rows.places.index(place))
        rows.refresh()

    @property
    def chosen(self) -> int | None:
        """The topic that the cursor is on; None if the filter leaves none."""
        rows = self._rows
        return rows.places[rows.cursor] if rows.count else None
