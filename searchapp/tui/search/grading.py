"""Grading what is found, on the search screen: for which topic, grades, and taking them back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from searchapp.app.pages import every_topic
from searchapp.errors import SearchappError
from searchapp.judging.session import Outcome
from searchapp.judging.words import graded
from searchapp.model import Topic
from searchapp.tui.leaving import Leaving
from searchapp.tui.palette import Offer
from searchapp.tui.picking import Choice, Picking
from searchapp.tui.rows import one_line
from searchapp.tui.search.asking import Kind
from searchapp.tui.search.judging import Judging
from searchapp.tui.search.parts import SearchView
from searchapp.tui.search.searching import RETRY_SECONDS
from searchapp.tui.status import beginning, came_in, instead_of, unsaved

REFRESH_SECONDS = 5.0
"""How often what others have judged is taken in."""

NO_TOPIC = "no topic"


class Grading:
    """Grades the hit that the cursor is on, for the topic that somebody chose."""

    def __init__(self, screen: SearchView, judging: Judging) -> None:
        self._screen = screen
        self._judging = judging
        self._last: Topic | None = None
        """The topic that was judged last; None before one was chosen."""

    @property
    def leaving(self) -> Leaving | None:
        """The way out for grades that are not saved; None while nobody judges."""
        session = self._judging.session
        return None if session is None else Leaving(self._screen, session, self._screen.head.draw)

    def toggle(self) -> None:
        """Judge no longer, or again for the topic of before; without one a topic is chosen."""
        if self._judging.topic is None and self._last is None:
            self.choose_topic()
            return
        self._judging.choose(self._last if self._judging.topic is None else None)
        self._screen.set_class(self._judging.topic is not None, "-judging")
        self._screen.seek(self._screen.searching.sought, self._screen.hits.cursor)

    def choose_topic(self) -> None:
        collection = self._screen.searcher.collection
        if collection is None:
            self._screen.head.tell(
                f"the topics of {self._screen.searched.name} are not at hand: name their folder with --data",
                "$warning",
            )
            return
        self._screen.head.wait("reading the topics …")
        self._screen.quick.ask(
            Kind.topics,
            lambda _searcher: every_topic(self._screen.searched, collection),
            self._offer_topics,
            self._screen.tell_error,
        )

    def _offer_topics(self, topics: Sequence[Topic]) -> None:
        self._screen.head.came()
        choices = [
            Choice(NO_TOPIC),
            *(Choice(one.id, one_line(one.text, self._screen.hits.notation)) for one in topics),
        ]

        def chosen(place: int | None) -> None:
            if place is not None:
                self.begin_topic(topics[place - 1] if place else None)

        dialog = Picking("Judge documents for the topic", choices)
        self._screen.when_in_front(lambda: self._screen.app.push_screen(dialog, chosen))

    def offers(self) -> Iterator[Offer]:
        """The topics of the task, where its files are at hand, for the palette; reading them takes a while."""
        collection = self._screen.searcher.collection
        if collection is None or not collection.folder.is_dir():
            return
        for topic in every_topic(self._screen.searched, collection):
            words = f"{topic.id} {one_line(topic.text, self._screen.hits.notation)}"
            yield Offer(words, partial(self.begin_topic, topic), "topic")

    def begin_topic(self, topic: Topic | None) -> None:
        """Judge for a topic, and search for its text; a text is words alone, whatever signs are in it."""
        is_first = self._judging.session is None
        try:
            self._judging.choose(topic)
        except SearchappError as error:
            self._screen.head.tell(str(error), "$error")
            return
        if is_first and topic is not None:
            self._screen.set_interval(REFRESH_SECONDS, self.take_in)
        self._last = topic
        self._screen.set_class(topic is not None, "-judging")
        if topic is None:
            self._screen.seek(self._screen.searching.sought)
            return
        text = " ".join(topic.text.split())
        self._screen.leave_for(replace(self._screen.searching.sought, text=text, like=None, literal=True))
        self._screen.panes.focus(self._screen.hits)

    def give(self, grade: int) -> None:
        """Grade the hit that the cursor is on, and go on to the next one."""
        if self._judging.topic is None:
            self._screen.head.tell(
                f"grades are for a topic: {self._screen.keys.shown('judge')} chooses one", "$warning"
            )
            return
        result = self._screen.result()
        if result is None:
            return
        document, labels = result.hit.document_id, self._judging.labels
        if self._screen.searched.info.topics_are_documents and document == self._judging.topic.id:
            self._screen.head.tell("this document is the topic itself, which is not graded", "$warning")
            return
        what = instead_of(graded(grade, labels), self._judging.opinion(document), labels)
        outcome = self._judging.grade(result, self._screen.recipe, grade)
        self._tell_outcome(outcome, f"{what}: {beginning(document, result.text, self._screen.hits.notation)}")
        self._screen.hits.redraw(self._screen.hits.cursor)
        if self._screen.hits.cursor + 1 < self._screen.hits.count:
            self._screen.hits.move(self._screen.hits.cursor + 1)
        else:
            self._screen.show_document()

    def undo(self) -> None:
        outcome = self._judging.undo()
        if outcome is None:
            self._screen.head.tell("there is no grade of this session to undo")
            return
        self._tell_outcome(outcome, f"undone: {', '.join(one.document_id for one in outcome.events)}")
        self._screen.hits.refresh()
        self._screen.show_document()

    def take_in(self) -> None:
        """Take in and show what was written elsewhere meanwhile."""
        session = self._judging.session
        if session is None or session.waiting:
            return
        try:
            came = session.refresh()
        except SearchappError as error:
            self._screen.tell_error(error)
            return
        if came:
            self._screen.head.tell(came_in(came, session.author.annotator), "$primary")
            self._screen.hits.refresh()
            self._screen.show_document()

    def _tell_outcome(self, outcome: Outcome, what: str) -> None:
        """Say that a grade is saved, or that it waits to be."""
        if outcome.is_saved:
            self._screen.head.tell(f"✓ saved  {what}", "$success")
        else:
            session = self._judging.session
            waiting = 1 if session is None else session.waiting
            self._screen.head.tell(unsaved(waiting, str(outcome.not_saved)), "bold $error")
            self._screen.set_timer(RETRY_SECONDS, self._save_waiting)

    def _save_waiting(self) -> None:
        session = self._judging.session
        if session is not None and session.waiting:
            self._tell_outcome(session.save_waiting(), "everything that was waiting")
