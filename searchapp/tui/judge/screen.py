"""Judging on the screen: what the keys do.

The screen holds its parts and lets them do their work: the lists, the filter of the topics, the search, the selection,
the panes that are read, the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from searchapp.errors import SearchappError
from searchapp.judging.desk import Desk
from searchapp.judging.events import Action, Event
from searchapp.judging.fold import Opinion
from searchapp.judging.listing import Said
from searchapp.judging.presence import Presence
from searchapp.judging.session import Outcome
from searchapp.judging.words import graded
from searchapp.runs.material import Material
from searchapp.tui.bars import KeyLine
from searchapp.tui.content import entitle
from searchapp.tui.dialogs import Words
from searchapp.tui.judge.figures import Figures
from searchapp.tui.judge.finding import Finder
from searchapp.tui.judge.judged import Judged
from searchapp.tui.judge.lists import RankingRows, TopicRows
from searchapp.tui.judge.reading import Reading
from searchapp.tui.judge.selection import Selection
from searchapp.tui.judge.snippets import Fetching, Snippets
from searchapp.tui.judge.topics import TopicList
from searchapp.tui.keys import KeyMap
from searchapp.tui.line import Line
from searchapp.tui.rows import Rows
from searchapp.tui.telling import beginning, instead_of, judged_already, standing
from searchapp.tui.work import WorkScreen

IN_LAST_LINE = ("undo", "redo", "select", "next_unjudged", "next_unjudged_topic", "topics", "search", "filter",
                "judged", "document", "zoom", "maths", "theme", "quit", "help")  # fmt: skip

COLUMNS = {"topics": "left", "ranking": "middle", "topic": "right", "document": "right"}


class JudgeScreen(WorkScreen):
    """An annotator at work on a run."""

    AUTO_FOCUS = "#ranking"

    def __init__(
        self,
        desk: Desk,
        material: Material,
        keys: KeyMap,
        start: str | None,
        title: str,
        presence: Presence | None = None,
    ) -> None:
        labels = material.task.grades
        super().__init__(desk.session, keys, labels, title, COLUMNS, ("ranking", "topics"), presence)
        self.desk = desk
        self.material = material
        self.place_of_topic = desk.topics.index(start) if start else desk.next_unjudged_topic() or 0
        self._snippets = Snippets(material)
        self._fetching = Fetching(self, material)
        self.topics = TopicRows(desk, material)
        self.ranking = RankingRows(desk, material, len(labels) - 1, self._snippets.of)
        self._topic_list = TopicList(self.topics, desk, material)
        self._selection = Selection(self.ranking, self.head.tell)
        self._finder = Finder(self, self.ranking, material, self.head, keys, self._go)
        self._reading = Reading(desk, material)
        self._figures = Figures(desk)
        self._rests_on: str | None = None
        """The document that was just judged, and that the cursor is still on because there is no other to go to."""

    def compose(self) -> ComposeResult:
        yield self.head
        with Horizontal(id="body"):
            with Vertical(id="left"):
                to_topics = lambda _words: self.panes.focus(self.topics)  # noqa: E731  # the filter is in force already
                yield Line(to_topics, self._topic_list.filter, hint="words or id, then ↵", id="filter")
                yield self.topics
            with Vertical(id="middle"):
                yield self.ranking
            yield self._reading
        yield Line(self._search, hint="search the documents of this topic: words, then ↵", id="search")
        yield self._figures
        yield KeyLine(self._grade_entries("skip", "cant_tell", "note", "reason"), 2, id="grades")
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def begin(self) -> None:
        entitle(self.ranking, "Documents" if self.desk.is_blind else "Ranking")
        if self.desk.is_blind:
            self.head.tell("blind: ranks, scores and other people's grades are hidden")
        self.topics.current = self.place_of_topic
        self._topic_list.filter("")
        self.open_topic(self.place_of_topic)
        self.call_after_refresh(self._figures.score_the_rest)

    @property
    def topic_id(self) -> str:
        return self.desk.topics[self.place_of_topic]

    @property
    def document_id(self) -> str | None:
        """The document that the cursor is on."""
        ranking = self.ranking
        return ranking.documents[ranking.cursor] if ranking.documents else None

    # Moving

    def open_topic(self, place: int, document: str | None = None) -> None:
        """Show a topic, at a document or else at the first that is not judged."""
        topic = self.desk.topics[place]
        try:
            order = self.desk.order(topic)
        except SearchappError as error:
            self.head.tell(str(error), "$error")  # and everything stays as it was
            return
        cursor = order.places.get(document) if document else self.desk.next_unjudged(topic)
        self.place_of_topic = place
        self._rests_on = None
        self._finder.forget()
        self._topic_list.opened(place)
        try:
            self._fetching.around(order.documents, cursor or 0)
        except SearchappError as error:
            self.head.tell(str(error), "$error")
        scored = None if self.desk.is_blind else self.material.scored(topic)
        self.ranking.open(topic, order.documents, cursor or 0, scored)
        self._reading.show_topic(topic)
        self._show_document()
        self._figures.show(topic)

    @on(Rows.Moved)
    def _moved(self, event: Rows.Moved) -> None:
        event.stop()
        if event.rows is self.ranking:
            self._rests_on = None
            self._show_document()

    @on(Rows.Picked)
    def _picked(self, event: Rows.Picked) -> None:
        event.stop()
        if event.rows is self.topics:
            self._open_line()

    def _open_line(self) -> None:
        place = self._topic_list.chosen
        if place is not None:
            self.open_topic(place)
        self._leave_topics()

    def _go(self, place: int) -> None:
        """Put the cursor on a document and draw what belongs to it."""
        self._rests_on = None
        self.ranking.put(place)
        self._show_document()

    def _next_unjudged(self) -> None:
        place = self.desk.next_unjudged(self.topic_id, self.ranking.cursor)
        if place is None:
            self.head.tell(self._done_words())
        else:
            self._go(place)

    def _next_unjudged_topic(self) -> None:
        place = self.desk.next_unjudged_topic(self.place_of_topic)
        if place is None:
            self.head.tell(self._done_words(), "$success")
        else:
            self.open_topic(place)

    def _done_words(self) -> str:
        """What is said when a topic is done."""
        if self.desk.next_unjudged_topic(self.place_of_topic) is None:
            return f"✓ every document of every topic is judged: {self.keys.shown('quit')} leaves"
        return f"topic done: {self.keys.shown('next_unjudged_topic')} goes on"

    def _to_topics(self) -> None:
        if self.focused is self.topics or self.has_class("-topics"):
            self._leave_topics()
        else:
            self.add_class("-topics")
            self.panes.focus(self.topics)

    def _leave_topics(self) -> None:
        self.remove_class("-topics")
        self.panes.focus(self.ranking)

    def _to_filter(self) -> None:
        self.add_class("-topics")
        self.panes.focus(self.topics)  # with which the line for words comes into sight
        self.set_focus(self.query_one("#filter"))

    def _to_search(self) -> None:
        self.add_class("-searching")
        self.set_focus(self.query_one("#search"))

    def _search(self, words: str) -> None:
        self.leave_line(self.query_one("#search", Line))
        self._finder.find(words)

    def leave_line(self, line: Line) -> None:
        self.remove_class("-searching")
        if line.id == "filter":
            line.value = ""
            self._topic_list.filter("")
            self._leave_topics()
        else:
            self.panes.focus(self.ranking)

    def _ask_document(self) -> None:
        def jump(id_: str | None) -> None:
            if id_:
                self._jump(self.topic_id, id_)

        self.app.push_screen(Words("Jump to the document with the id"), jump)

    def _list_judged(self) -> None:
        def jump(said: Said | None) -> None:
            if said is not None:
                self._jump(said.topic_id, said.document_id)

        topics = frozenset(self.desk.topics)
        judged = Judged(self.session, topics, self.material, self._snippets, self.labels)
        self.app.push_screen(judged, jump)

    def _jump(self, topic: str, document: str) -> None:
        try:
            places = self.desk.order(topic).places
        except SearchappError as error:
            self.head.tell(str(error), "$error")
            return
        if document not in places:
            self.head.tell(f"the document {document} is not among those of this topic", "$error")
        elif topic != self.topic_id:
            self.open_topic(self.desk.topics.index(topic), document)
        else:
            self._go(places[document])

    def _clear(self) -> None:
        if self.has_class("-topics"):
            self._leave_topics()
        self.query_one("#filter", Line).value = ""
        self._topic_list.filter("")
        self._selection.clear()
        self._finder.forget()
        self.clear_selection()
        self.ranking.refresh()
        self._show_document()
        self.head.tell("")

    # Judging

    def give(self, grade: int, reason: str = "") -> None:
        """Give the document, or after a question the selected ones, a grade, and move on."""
        places = self._selection.places()
        if not places:
            return
        documents = [self.ranking.documents[place] for place in places]
        what = graded(grade, self.labels)
        if len(places) > 1:
            already = judged_already([self._opinion(one) for one in documents], self.labels)
            question = f"Grade {len(places)} documents {what}?{f' {already}.' if already else ''}"
            self.ask(question, lambda: self._give(places, grade, reason))
        elif not self._asks_first(documents[0], what, lambda: self._give(places, grade, reason)):
            self._give(places, grade, reason)

    def _give(self, places: Sequence[int], grade: int, reason: str) -> None:
        ranking = self.ranking
        documents = [ranking.documents[place] for place in places]
        before = self._opinion(documents[-1])
        what = graded(grade, self.labels)
        outcome = self.desk.grade(self.topic_id, documents, grade, reason)
        if len(documents) == 1:
            self._judged(outcome, instead_of(what, before, self.labels), documents[0], before)
            return
        self._selection.clear()
        ranking.put(places[-1])
        self._judged(outcome, f"{len(documents)} documents {what}", None, before)

    def _skip(self) -> None:
        document = self.document_id
        if document is None:
            return
        before = self._opinion(document)

        def skip() -> None:
            outcome = self.desk.skip(self.topic_id, document)
            self._judged(outcome, instead_of("skipped", before, self.labels), document, before)

        if before is not None and before.action is not Action.skip:
            said = standing(before, self.labels)
            self.ask(f"{self._begin(document)} has {said}. Skip it, which takes that back?", skip)
        elif self._rests_on != document:
            skip()
        else:
            self.head.tell(f"it is skipped already: {self._on_words()}", "$warning")

    def _cant_tell(self, reason: str = "") -> None:
        document = self.document_id
        if document is None:
            return

        def say() -> None:
            before = self._opinion(document)
            outcome = self.desk.cant_tell(self.topic_id, document, reason)
            self._judged(outcome, instead_of("can't tell", before, self.labels), document, before)

        if not self._asks_first(document, "can't tell", say):
            say()

    def _asks_first(self, document: str, what: str, do: Callable[[], object]) -> bool:
        """Whether the cursor only rests on a document that was just judged: then a question comes before a change."""
        before = self._opinion(document)
        if self._rests_on != document or before is None or before.action is Action.skip:
            return False
        was = standing(before, self.labels)
        if was == what:
            self.head.tell(f"it has {was} already: {self._on_words()}", "$warning")
        else:
            on = {"next_unjudged_topic": "Go on with the next topic"}
            self.ask(f"{self._begin(document)} has {was}. Change it to {what}?", do, others=on)
        return True

    def _note(self) -> None:
        document = self.document_id
        if document is None:
            return
        topic = self.topic_id

        def write(words: str) -> None:
            self._done(self.desk.note(topic, document, words), "a note", document)
            self._show_document()

        self._ask_note(self._begin(document), self.desk.said_in_words(topic, document), write)

    def _reason(self) -> None:
        if self.document_id is not None:
            self._ask_grade("Which grade, with a reason?", {"cant_tell": self._cant_tell})

    def _judged(self, outcome: Outcome, what: str, document: str | None, before: Opinion | None) -> None:
        """Say what was done, and go on: to the next document not judged, or from a changed one to the one below."""
        ranking = self.ranking
        cursor = ranking.cursor
        changed = before is not None and before.action is not Action.skip
        if changed and cursor + 1 < len(ranking.documents):
            following: int | None = cursor + 1
        else:
            following = self.desk.next_unjudged(self.topic_id, cursor)
        stays = following is None or following == cursor
        self._done(outcome, what, document, self._on_words() if stays else "")
        self._go(cursor if following is None else following)
        if stays:
            self._rests_on = self.document_id

    def _on_words(self) -> str:
        """How to go on from a document after which nothing of the topic is left."""
        if self.desk.next_unjudged(self.topic_id) is None:
            return self._done_words()
        return f"only what was skipped is left here: {self.keys.shown('next_unjudged_topic')} goes on"

    def _again(self, outcome: Outcome | None, what: str) -> None:
        if outcome is None:
            self.head.tell(f"there is nothing to {what}")
            return
        event = outcome.events[0]
        count = len(outcome.events)
        document = event.document_id if count == 1 else None
        self._done(outcome, f"{what}ne" if count == 1 else f"{what}ne: {count} documents", document)
        if event.topic_id in self.desk.topics and event.document_id in self.desk.order(event.topic_id).places:
            self._jump(event.topic_id, event.document_id)
        else:
            self._show_document()

    def _done(self, outcome: Outcome, what: str, document: str | None, further: str = "") -> None:
        """Say what an action came to, and draw all that it changes but the document, which is shown next."""
        of = "" if document is None else f": {self._begin(document)}"
        self.head.tell_outcome(outcome, f"{what}   {further}   {of[2:]}" if further else f"{what}{of}")
        self._redraw(outcome.events)

    def take_in(self) -> Sequence[Event]:
        came = self.desk.refresh()
        if came:
            self.ranking.refresh()
            self.topics.refresh()
            self._show_document()
            self._figures.score_the_rest()
        return came

    # Drawing

    def _redraw(self, changed: Iterable[Event]) -> None:
        """Draw the lines and figures that these events change."""
        events = list(changed)
        self.ranking.redraw_documents(one.document_id for one in events if one.topic_id == self.topic_id)
        for topic in {one.topic_id for one in events}:
            self.topics.redraw_topic(topic)
        self._figures.score_the_rest()

    def _show_document(self) -> None:
        document = self.document_id
        self._reading.show_document(self.topic_id, document, self._finder)
        if document is not None:
            self._mark_grade(document)
            self._fetching.ahead(self.topic_id, self.ranking)

    def _mark_grade(self, document: str) -> None:
        opinion = self._opinion(document)
        name = "" if opinion is None else opinion.action.value
        if opinion is not None and opinion.grade is not None:
            name = f"grade_{opinion.grade}"
        self.query_one("#grades", KeyLine).choose(name)

    def _opinion(self, document: str) -> Opinion | None:
        return self.desk.opinion(self.topic_id, document)

    def _begin(self, document: str) -> str:
        return beginning(document, self.material.known_text(document), self._reading.maths)

    def _toggle_maths(self) -> None:
        maths = not self._reading.maths
        self._reading.maths = self.topics.maths = maths
        self._snippets.show_maths(maths)
        self._reading.show_topic(self.topic_id)
        self._show_document()
        self.topics.refresh()
        self.ranking.refresh()

    def doings(self) -> dict[str, Callable[[], object]]:
        return {
            "undo": lambda: self._again(self.desk.undo(), "undo"),
            "redo": lambda: self._again(self.desk.redo(), "redo"),
            "skip": self._skip,
            "cant_tell": self._cant_tell,
            "note": self._note,
            "reason": self._reason,
            "select": self._selection.toggle,
            "select_down": lambda: self._selection.extend(1),
            "select_up": lambda: self._selection.extend(-1),
            "clear": self._clear,
            "next_unjudged": self._next_unjudged,
            "next_topic": lambda: self.open_topic(min(self.place_of_topic + 1, len(self.desk.topics) - 1)),
            "previous_topic": lambda: self.open_topic(max(self.place_of_topic - 1, 0)),
            "next_unjudged_topic": self._next_unjudged_topic,
            "topics": self._to_topics,
            "open": lambda: self._open_line() if self.focused is self.topics else None,
            "filter": self._to_filter,
            "search": self._to_search,
            "next_match": lambda: self._finder.next(1),
            "previous_match": lambda: self._finder.next(-1),
            "document": self._ask_document,
            "judged": self._list_judged,
            "maths": self._toggle_maths,
        }
