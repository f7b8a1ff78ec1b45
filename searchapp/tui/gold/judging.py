"""Judging beside the gold: what grade keys, skips and notes do while it is on, in the log of all judging."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from searchapp.errors import SearchappError
from searchapp.judging.events import Event, graded
from searchapp.judging.judgments import Opinion
from searchapp.judging.session import JudgingSession, Outcome, Session
from searchapp.tui.gold.lists import GoldView
from searchapp.tui.kit.content import Notation
from searchapp.tui.kit.dialogs import Words
from searchapp.tui.kit.judging import Leaving
from searchapp.tui.kit.status import beginning, came_in, instead_of, mark, unsaved
from searchapp.tui.kit.widgets import Part

REFRESH_SECONDS = 5.0
RETRY_SECONDS = 2.0
"""How often what others have judged is taken in, and after which what was not saved is tried again."""


class Judging:
    """Says something of the document that the cursor is on, once somebody has asked for it.

    Args:
        screen: the screen
        labels: the names of the grades
        session: opens the annotator's session, when judging begins
    """

    def __init__(self, screen: GoldView, labels: Sequence[str], session: Callable[[], Session]) -> None:
        self._screen = screen
        self._open = session
        self._session: Session | None = None
        self._of_runs: dict[str, JudgingSession] = {}
        self._given = 0
        self.is_on = False
        self.labels = labels

    @property
    def _judging(self) -> JudgingSession | None:
        """The annotator's work on the run in sight; None until judging begins. All runs are judged in one session."""
        if self._session is None:
            return None
        pages = self._screen.topics.pages
        if pages.name not in self._of_runs:
            self._of_runs[pages.name] = JudgingSession(
                self._session,
                pages.topics,
                pages.ranking,
                pages.rankings.length,
                pages.name,
                require=pages.require_as_ranked,
            )
        return self._of_runs[pages.name]

    @property
    def leaving(self) -> Leaving | None:
        """The way out for judgments that are not saved; None while nobody judges."""
        if self._session is None:
            return None
        return Leaving(self._screen, self._session, self._screen.head.draw)

    def toggle(self) -> None:
        """Judge from now on, or no longer.

        Raises:
            SearchappError: the log can't be opened.
        """
        if self._session is None:
            self._session = self._open()
            self._screen.set_interval(REFRESH_SECONDS, self.take_in)
        self.is_on = not self.is_on
        name = self._session.author.annotator
        key = self._screen.keys.shown("judge")
        self._screen.head.tell(
            f"judging: a grade key grades the document, {key} ends that; who judges is {name}"
            if self.is_on
            else "",
            "$primary",
        )

    # What was said

    def opinion(self, document: str) -> Opinion | None:
        """What the annotator says of a document of the topic that is open."""
        return None if self._judging is None else self._judging.opinion(self._screen.topic_id, document)

    def mark(self, document: str) -> Part:
        """What was said of a document, in a sign."""
        return mark(self.opinion(document), len(self.labels) - 1)

    def others(self, document: str) -> Sequence[Opinion]:
        """What others say of a document, once the annotator has judged it."""
        return [] if self._judging is None else self._judging.others(self._screen.topic_id, document)

    def words(self, document: str) -> str:
        """The annotator's words on a document."""
        return "" if self._judging is None else self._judging.said_in_words(self._screen.topic_id, document)

    # What is said

    def give(self, grade: int) -> None:
        """Grade the document, and go on to the next line."""
        self._say(graded(grade, self.labels), lambda judging, topic, one: judging.grade(topic, [one], grade))

    def skip(self) -> None:
        self._say("skipped", lambda judging, topic, one: judging.skip(topic, one))

    def cant_tell(self) -> None:
        self._say("can't tell", lambda judging, topic, one: judging.cant_tell(topic, one))

    def _say(self, what: str, say: Callable[[JudgingSession, str, str], Outcome]) -> None:
        judging, document = self._ready()
        if judging is None or document is None:
            return
        topic = self._screen.topic_id
        what = instead_of(what, self.opinion(document), self.labels)
        outcome = say(judging, topic, document)
        self._given += 1
        self._tell(outcome, f"{what}: {self._name(document)}")
        self._screen.redraw([document])
        rows = self._screen.rows
        if rows.cursor + 1 < rows.count:
            rows.move(rows.cursor + 1)
            self._screen.show_document()

    def note(self) -> None:
        judging, document = self._ready()
        if judging is None or document is None:
            return
        topic = self._screen.topic_id

        def write(words: str | None) -> None:
            if words:
                self._given += 1
                self._tell(judging.note(topic, document, words), f"a note: {self._name(document)}")
                self._screen.redraw([document])

        self._screen.app.push_screen(Words(f"Note on {self._name(document)}", self.words(document)), write)

    def undo(self) -> None:
        judging = self._judging
        if judging is None or not self._given or (outcome := judging.undo()) is None:
            self._screen.head.tell("there is no judgment of this session to undo")
            return
        self._given -= 1
        self._again(outcome, "undone")

    def redo(self) -> None:
        judging = self._judging
        outcome = None if judging is None else judging.redo()
        if outcome is None:
            self._screen.head.tell("there is nothing to redo")
            return
        self._given += 1
        self._again(outcome, "redone")

    def _again(self, outcome: Outcome, what: str) -> None:
        events: tuple[Event, ...] = outcome.events
        here = [one.document_id for one in events if one.topic_id == self._screen.topic_id]
        names = ", ".join(self._name(one.document_id) for one in events)
        elsewhere = "" if here else f", of topic {events[0].topic_id}"
        self._tell(outcome, f"{what}: {names}{elsewhere}")
        self._screen.redraw(here)

    def _ready(self) -> tuple[JudgingSession | None, str | None]:
        """The session and the document to judge; says why, if there is nothing to judge."""
        document = self._screen.document_id
        if self._judging is None or not self.is_on:
            self._screen.head.tell(f"{self._screen.keys.shown('judge')} begins judging", "$warning")
            return None, None
        if document is None:
            self._screen.head.tell("there is no document here", "$warning")
        elif self._screen.topics.task.info.topics_are_documents and document == self._screen.topic_id:
            self._screen.head.tell("this document is the topic itself, which is not graded", "$warning")
            document = None
        return self._judging, document

    def take_in(self) -> None:
        """Take in and show what was written elsewhere meanwhile."""
        judging = self._judging
        if judging is None or judging.session.waiting:
            return
        try:
            came = judging.refresh()
        except SearchappError as error:
            self._screen.head.tell(str(error), "$error")
            return
        if came:
            self._screen.head.tell(came_in(came, judging.session.author.annotator), "$primary")
            self._screen.redraw(None)

    def _name(self, document: str) -> str:
        pages = self._screen.topics.pages
        return beginning(document, pages.known_text(document), Notation(pages.task.info.markup))

    def _tell(self, outcome: Outcome, what: str) -> None:
        """Say that a judgment is saved, or that it waits to be."""
        if outcome.is_saved:
            self._screen.head.tell(f"✓ saved  {what}", "$success")
            return
        waiting = 1 if self._session is None else self._session.waiting
        self._screen.head.tell(unsaved(waiting, str(outcome.not_saved)), "bold $error")
        self._screen.set_timer(RETRY_SECONDS, self._save_waiting)

    def _save_waiting(self) -> None:
        if self._session is not None and self._session.waiting:
            self._tell(self._session.save_waiting(), "everything that was waiting")
            self._screen.redraw(())
