"""Judging on the screen: what the keys do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from searchapp.judging.session import Outcome
from searchapp.tui import pages
from searchapp.tui.dialogs import Choose
from searchapp.tui.judge.moves import JudgeMoves


class JudgeScreen(JudgeMoves):
    """An annotator at work on a run."""

    def begin(self) -> None:
        self._entitle()
        self.open_topic(self.place_of_topic)
        self.topics.show(len(self.topics.places), self.place_of_topic)
        self.call_after_refresh(self._score_the_rest)

    def _places(self) -> list[int]:
        ranking = self.ranking
        return sorted(ranking.selected) if ranking.selected else [ranking.cursor] if ranking.documents else []

    def give(self, grade: int, reason: str = "") -> None:
        """Give the document, or after a question the selected ones, a grade, and move on."""
        places = self._places()
        if not places:
            return
        if len(places) == 1:
            self._give(places, grade, reason)
            return
        what = pages.graded(grade, self.labels)
        self.app.push_screen(
            Choose(f"Grade {len(places)} documents {what}?", [("y", "Yes"), ("n", "No")]),
            lambda answer: self._give(places, grade, reason) if answer == "y" else None,
        )

    def _give(self, places: Sequence[int], grade: int, reason: str) -> None:
        ranking = self.ranking
        documents = [ranking.documents[place] for place in places]
        was_judged = self.desk.session.is_judged(self.topic_id, documents[-1])
        outcome = self.desk.grade(self.topic_id, documents, grade, reason)
        what = documents[0] if len(documents) == 1 else f"{len(documents)} documents"
        self._done(outcome, f"{what}: {pages.graded(grade, self.labels)}")
        if len(places) > 1:
            ranking.selected.clear()
            ranking.cursor = places[-1]
            ranking.refresh()
        self._move_on(was_judged)

    def _skip(self) -> None:
        if self.document_id is not None:
            self._done(self.desk.skip(self.topic_id, self.document_id), f"{self.document_id}: skipped")
            self._move_on(True)

    def _cant_tell(self, reason: str = "") -> None:
        if self.document_id is not None:
            was_judged = self.desk.session.is_judged(self.topic_id, self.document_id)
            outcome = self.desk.cant_tell(self.topic_id, self.document_id, reason)
            self._done(outcome, f"{self.document_id}: can't tell")
            self._move_on(was_judged)

    def _note(self) -> None:
        document = self.document_id
        if document is None:
            return
        topic = self.topic_id

        def write(words: str) -> None:
            self._done(self.desk.note(topic, document, words), f"{document}: a note")
            self._show_document()

        self._ask_note(document, self.desk.said_in_words(topic, document), write)

    def _reason(self) -> None:
        if self.document_id is not None:
            self._ask_grade("Which grade, with a reason?", {"cant_tell": self._cant_tell})

    def _move_on(self, was_judged: bool) -> None:
        """To the next document that is not judged; from one that was judged before, to the one below it."""
        ranking = self.ranking
        if was_judged:
            following: int | None = min(ranking.cursor + 1, len(ranking.documents) - 1)
        else:
            following = self.desk.next_unjudged(self.topic_id, ranking.cursor)
        if following is None:
            key = self.keys.shown("next_unjudged_topic")
            self._tell(f"topic done: {key} goes on", "$success", add=True)
            following = ranking.cursor
        self._go(following)

    def _again(self, outcome: Outcome | None, what: str) -> None:
        if outcome is None:
            self._tell(f"there is nothing to {what}")
            return
        event = outcome.events[0]
        self._done(outcome, f"{what}ne: {event.document_id}" if len(outcome.events) == 1 else
                   f"{what}ne: {len(outcome.events)} documents")  # fmt: skip
        if event.topic_id in self.desk.topics:
            place = self.desk.topics.index(event.topic_id)
            places = self.desk.order(event.topic_id).places
            if place != self.place_of_topic:
                self.open_topic(place, event.document_id)
            elif event.document_id in places:
                self._go(places[event.document_id])

    def _done(self, outcome: Outcome, what: str) -> None:
        self._tell_outcome(outcome, what)
        self._show_figures()
        self.topics.redraw(self.topics.cursor)

    def take_in(self) -> None:
        if self.desk.refresh():
            self._score_the_rest()
            self.topics.refresh()
            self.ranking.refresh()
            self._show_document()

    def doings(self) -> dict[str, Callable[[], object]]:
        return {
            "undo": lambda: self._again(self.desk.undo(), "undo"),
            "redo": lambda: self._again(self.desk.redo(), "redo"),
            "skip": self._skip,
            "cant_tell": self._cant_tell,
            "note": self._note,
            "reason": self._reason,
            "select": self._select,
            "select_down": lambda: self._select_on(1),
            "select_up": lambda: self._select_on(-1),
            "clear": self._clear,
            "next_unjudged": self._next_unjudged,
            "next_topic": lambda: self.open_topic(min(self.place_of_topic + 1, len(self.desk.topics) - 1)),
            "previous_topic": lambda: self.open_topic(max(self.place_of_topic - 1, 0)),
            "next_unjudged_topic": self._next_unjudged_topic,
            "topics": self._to_topics,
            "open": lambda: self._open_line() if self.focused is self.topics else None,
            "filter": self._filter,
            "search": self._search,
            "next_match": lambda: self._next_match(1),
            "previous_match": lambda: self._next_match(-1),
            "document": self._ask_document,
            "maths": self._toggle_maths,
        }
