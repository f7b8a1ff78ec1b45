"""From one relevant document to the next, to what is missed, to any document, and why it is where it is."""

from __future__ import annotations

from searchapp.app import explain
from searchapp.tui.dialogs import Words
from searchapp.tui.rows import shortened
from searchapp.tui.search.why import Explained
from searchapp.tui.status import said_by
from searchapp.tui.topics.parts import GoldView, Kind
from searchapp.tui.topics.reading import LONGEST_ID


class Gold:
    """Goes to documents of the topic in sight, and asks why they are where they are."""

    def __init__(self, screen: GoldView) -> None:
        self._screen = screen

    def next(self, step: int) -> None:
        """To the next relevant document of the ranking, or to the one before."""
        screen = self._screen
        place = screen.ranking.next_gold(step)
        screen.focus_rows(screen.ranking)
        if place is not None:
            screen.ranking.move(place)
            screen.show_document()
        elif step > 0 and screen.missed.count:
            key = screen.keys.shown("next_missed")
            screen.head.tell(f"no further gold in the ranking: {key} goes to what is missed")
        else:
            screen.head.tell("no further gold in the ranking")

    def next_missed(self) -> None:
        """To the missed gold, or from there to the next of it."""
        screen = self._screen
        if not screen.missed.count:
            screen.head.tell("no gold of this topic is missed")
        elif screen.in_missed:
            screen.missed.move((screen.missed.cursor + 1) % screen.missed.count)
            screen.show_document()
        else:
            screen.focus_rows(screen.missed)

    def ask_document(self) -> None:
        """Ask for an id, and go there, or say why it is not there."""

        def go(document: str | None) -> None:
            if document and not self.go_to(document):
                self._why(document)

        self._screen.app.push_screen(Words("Go to the document with the id"), go)

    def go_to(self, document: str) -> bool:
        """Go to a document of the ranking, or of the missed gold; whether it is there."""
        for rows in (self._screen.ranking, self._screen.missed):
            if document in rows.documents:
                rows.put(list(rows.documents).index(document))
                self._screen.focus_rows(rows)
                return True
        return False

    def why(self) -> None:
        """Why the document that the cursor is on is at its rank, or is missed."""
        document = self._screen.document_id
        if document is None:
            self._screen.head.tell("there is no document here", "$warning")
        else:
            self._why(document)

    def _why(self, document: str) -> None:
        screen, topic = self._screen, self._screen.topic_id

        def came(found: explain.Explained) -> None:
            screen.head.came()
            dialog = Explained(found.why, found.said(screen.topics.task.name))
            screen.when_in_front(lambda: screen.app.push_screen(dialog))

        screen.head.wait(f"looking for {shortened(document, LONGEST_ID)} …")
        screen.slow.ask(
            Kind.why,
            lambda topics: topics.why(topic, document),
            came,
            lambda error: screen.head.tell(said_by(error), "$error"),
        )
