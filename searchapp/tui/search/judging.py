"""Judging what is found: the topic that it is judged for, grades, and taking them back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from searchapp.app.inspection.live_ranking import seen_in
from searchapp.app.inspection.pages import every_topic
from searchapp.errors import SearchappError
from searchapp.judging.events import graded
from searchapp.judging.judgments import Opinion
from searchapp.judging.session import OthersOpinions, Outcome, SeenDocument, Session
from searchapp.model import Topic
from searchapp.ranking.search_results import SearchResult
from searchapp.tui.kit.background import Kind
from searchapp.tui.kit.dialogs import Choice, Picking
from searchapp.tui.kit.judging import Leaving
from searchapp.tui.kit.palette import Offer
from searchapp.tui.kit.status import beginning, came_in, instead_of, mark, unsaved
from searchapp.tui.kit.widgets import Part, one_line
from searchapp.tui.search.panes import Said, SearchView
from searchapp.tui.search.requests import RETRY_SECONDS


class Judging:
    """What an annotator says of hits, for the topic that they chose.

    Args:
        session: opens the annotator's session, when the first topic is chosen
        labels: the names of the grades
    """

    def __init__(self, session: Callable[[], Session], labels: Sequence[str]) -> None:
        self.topic: Topic | None = None
        self.labels = labels
        self._open = session
        self._session: Session | None = None
        self._others_opinions: OthersOpinions | None = None
        self._given = 0

    @property
    def session(self) -> Session | None:
        """The annotator's session; None before a topic was chosen."""
        return self._session

    def choose(self, topic: Topic | None) -> None:
        """Judge for a topic from now on, or for none.

        Raises:
            SearchappError: the log can't be opened.
        """
        if topic is not None and self._session is None:
            self._session = self._open()
            self._others_opinions = OthersOpinions(self._session)
        self.topic = topic

    @property
    def mark_cells(self) -> int:
        """The cells of a mark; 0 while nothing is judged."""
        return 0 if self.topic is None else len(str(len(self.labels) - 1))

    def mark(self, document: str) -> Part:
        """What was said of a document, in a sign."""
        return mark(self.opinion(document), len(self.labels) - 1)

    def opinion(self, document: str) -> Opinion | None:
        """What the annotator says of a document."""
        if self._session is None or self.topic is None:
            return None
        return self._session.opinion(self.topic.id, document)

    def others(self, document: str) -> Sequence[Opinion]:
        """What others say of a document, once the annotator has judged it."""
        if self._others_opinions is None or self.topic is None:
            return ()
        return self._others_opinions.others(self.topic.id, document)

    def words(self, document: str) -> str:
        """The annotator's words on a document."""
        if self._session is None or self.topic is None:
            return ""
        return self._session.view.words(self._session.author.annotator, self.topic.id, document)

    def said(self, document: str) -> Said:
        """What is said of a document for the topic that was chosen."""
        return Said(self.topic, self.opinion(document), self.others(document), self.words(document))

    def grade(self, result: SearchResult, recipe: str, grade: int) -> Outcome:
        """Give a hit of a recipe's ranking a grade."""
        assert self._session is not None and self._others_opinions is not None and self.topic is not None
        document = result.hit.document_id
        seen = self._others_opinions.saw_others(self.topic.id, document)
        place = SeenDocument(self.topic.id, document, seen_in(recipe), result.rank, seen)
        self._given += 1
        return self._session.grade([place], grade)

    def undo(self) -> Outcome | None:
        """Take the last grade back that was given here; None when there is none."""
        if self._session is None or not self._given:
            return None
        self._given -= 1
        return self._session.undo()


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
        self.awaits_hits = False
        """Whether no hits of the topic were shown yet: grades are discarded until then."""

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
        self.awaits_hits = topic is not None
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
