"""Judging on the screen: what the keys do.

The screen holds its parts and lets them do their work: the lists, the filter of the topics, the search, the selection,
the panes that are read, the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from searchapp.app.run_pages import RunPages
from searchapp.errors import SearchappError
from searchapp.judging.events import Event
from searchapp.judging.fold import Opinion
from searchapp.judging.judging_session import JudgingSession
from searchapp.judging.listing import ListedJudgment
from searchapp.judging.presence import Presence
from searchapp.tui.bars import KeyLine
from searchapp.tui.content import entitle
from searchapp.tui.dialogs import Words
from searchapp.tui.judge import about
from searchapp.tui.judge.figures import Figures
from searchapp.tui.judge.finding import Finder
from searchapp.tui.judge.grading import Grading
from searchapp.tui.judge.judged import JudgmentList
from searchapp.tui.judge.lists import RankingRows, TopicRows
from searchapp.tui.judge.reading import Reading
from searchapp.tui.judge.selection import Selection
from searchapp.tui.judge.snippets import Fetching, Snippets
from searchapp.tui.judge.topics import TopicList
from searchapp.tui.keys import KeyMap
from searchapp.tui.line import Line
from searchapp.tui.rows import Rows
from searchapp.tui.status import beginning
from searchapp.tui.work import WorkScreen

IN_LAST_LINE = ("undo", "redo", "select", "next_unjudged", "next_unjudged_topic", "topics", "search", "filter",
                "judged", "document", "zoom", "maths", "theme", "quit", "help")  # fmt: skip

COLUMNS = {"topics": "left", "ranking": "middle", "topic": "right", "document": "right"}


class JudgeScreen(WorkScreen):
    """An annotator at work on a run."""

    CSS_PATH = Path(__file__).with_name("judge.tcss")
    AUTO_FOCUS = "#ranking"
    ABOUT = about.ABOUT

    def __init__(
        self,
        judging: JudgingSession,
        run_pages: RunPages,
        keys: KeyMap,
        start: str | None,
        title: str,
        presence: Presence | None = None,
    ) -> None:
        labels = run_pages.task.info.grades
        super().__init__(
            judging.session, run_pages, keys, labels, title, COLUMNS, ("ranking", "topics"), presence
        )
        self.judging = judging
        self.run_pages = run_pages
        self.place_of_topic = judging.topics.index(start) if start else judging.next_unjudged_topic() or 0
        self._snippets = Snippets(run_pages)
        self._fetching = Fetching(self, run_pages)
        self.topics = TopicRows(judging, run_pages)
        self.ranking = RankingRows(judging, run_pages, len(labels) - 1, self._snippets.of)
        self._topic_list = TopicList(self.topics, judging, run_pages)
        self._selection = Selection(self.ranking, self.head.tell)
        self._finder = Finder(self, self.ranking, run_pages, self.head, keys, self.go)
        self._reading = Reading(judging, run_pages)
        self._figures = Figures(judging)
        self._grading = Grading(self, self._selection)

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
        yield KeyLine(self._grade_entries(self.labels, "skip", "cant_tell", "note", "reason"), 2, id="grades")
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def begin(self) -> None:
        entitle(self.ranking, "Documents" if self.judging.is_blind else "Ranking")
        if self.judging.is_blind:
            self.head.tell("blind: ranks, scores and other people's grades are hidden")
        self.topics.current = self.place_of_topic
        self._topic_list.filter("")
        self.open_topic(self.place_of_topic)
        self.call_after_refresh(self._figures.score_the_rest)

    @property
    def topic_id(self) -> str:
        return self.judging.topics[self.place_of_topic]

    @property
    def document_id(self) -> str | None:
        """The document that the cursor is on."""
        ranking = self.ranking
        return ranking.documents[ranking.cursor] if ranking.documents else None

    # Moving

    def open_topic(self, place: int, document: str | None = None) -> None:
        """Show a topic, at a document or else at the first that is not judged."""
        topic = self.judging.topics[place]
        try:
            order = self.judging.order(topic)
        except SearchappError as error:
            self.head.tell(str(error), "$error")  # and everything stays as it was
            return
        cursor = order.places.get(document) if document else self.judging.next_unjudged(topic)
        self.place_of_topic = place
        self._finder.forget()
        self._topic_list.opened(place)
        try:
            self._fetching.around(order.documents, cursor or 0)
        except SearchappError as error:
            self.head.tell(str(error), "$error")
        scored = None if self.judging.is_blind else self.run_pages.scored(topic)
        self.ranking.open(topic, order.documents, cursor or 0, scored)
        self._reading.show_topic(topic)
        self.show_document()
        self._figures.show(topic)

    def cursor_moved(self, rows: Rows) -> None:
        if rows is self.ranking:
            self.show_document()

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

    def go(self, place: int) -> None:
        """Put the cursor on a document and draw what belongs to it."""
        self.ranking.put(place)
        self.show_document()

    def _next_unjudged(self) -> None:
        place = self.judging.next_unjudged(self.topic_id, self.ranking.cursor)
        if place is None:
            self.head.tell(self.done_words())
        else:
            self.go(place)

    def _next_unjudged_topic(self) -> None:
        place = self.judging.next_unjudged_topic(self.place_of_topic)
        if place is None:
            self.head.tell(self.done_words(), "$success")
        else:
            self.open_topic(place)

    def done_words(self) -> str:
        """What is said when a topic is done."""
        if self.judging.next_unjudged_topic(self.place_of_topic) is None:
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
                self.jump_to(self.topic_id, id_)

        self.app.push_screen(Words("Jump to the document with the id"), jump)

    def _list_judged(self) -> None:
        def jump(said: ListedJudgment | None) -> None:
            if said is not None:
                self.jump_to(said.topic_id, said.document_id)

        topics = frozenset(self.judging.topics)
        judged = JudgmentList(self.session, topics, self.run_pages, self._snippets, self.labels)
        self.app.push_screen(judged, jump)

    def jump_to(self, topic: str, document: str) -> None:
        """Go to a document of a topic, or say that it is not among those offered."""
        try:
            places = self.judging.order(topic).places
        except SearchappError as error:
            self.head.tell(str(error), "$error")
            return
        if document not in places:
            self.head.tell(f"the document {document} is not among those of this topic", "$error")
        elif topic != self.topic_id:
            self.open_topic(self.judging.topics.index(topic), document)
        else:
            self.go(places[document])

    def _clear(self) -> None:
        if self.has_class("-topics"):
            self._leave_topics()
        self.query_one("#filter", Line).value = ""
        self._topic_list.filter("")
        self._selection.clear()
        self._finder.forget()
        self.clear_selection()
        self.ranking.refresh()
        self.show_document()
        self.head.tell("")

    # Judging, which is the affair of `grading`

    def give(self, grade: int, reason: str = "") -> None:
        self._grading.give(grade, reason)

    def take_in(self) -> Sequence[Event]:
        came = self.judging.refresh()
        if came:
            self.ranking.refresh()
            self.topics.refresh()
            self.show_document()
            self._figures.score_the_rest()
        return came

    # Drawing

    def redraw(self, changed: Iterable[Event]) -> None:
        """Draw the lines and figures that these events change."""
        events = list(changed)
        self.ranking.redraw_documents(one.document_id for one in events if one.topic_id == self.topic_id)
        for topic in {one.topic_id for one in events}:
            self.topics.redraw_topic(topic)
        self._figures.score_the_rest()

    def show_document(self) -> None:
        """Show the document that the cursor is on, as it is now."""
        document = self.document_id
        self._reading.show_document(self.topic_id, document, self._finder)
        self._mark_grade(document)
        if document is not None:
            self._fetching.ahead(self.topic_id, self.ranking)

    def _mark_grade(self, document: str | None) -> None:
        opinion = None if document is None else self.opinion(document)
        name = "" if opinion is None else opinion.action.value
        if opinion is not None and opinion.grade is not None:
            name = f"grade_{opinion.grade}"
        self.query_one("#grades", KeyLine).choose(name)

    def opinion(self, document: str) -> Opinion | None:
        """What the annotator says of a document of the topic that is open."""
        return self.judging.opinion(self.topic_id, document)

    def begin_of(self, document: str) -> str:
        """How a document begins, for what is said of it."""
        return beginning(document, self.run_pages.known_text(document), self._reading.notation)

    def _toggle_maths(self) -> None:
        notation = self._reading.notation.next
        self._reading.notation = self.topics.notation = notation
        self._snippets.show_in(notation)
        self.head.tell(notation.about)
        self._reading.show_topic(self.topic_id)
        self.show_document()
        self.topics.refresh()
        self.ranking.refresh()

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            "undo": self._grading.undo,
            "redo": self._grading.redo,
            "skip": self._grading.skip,
            "cant_tell": self._grading.cant_tell,
            "note": self._grading.note,
            "reason": self._grading.reason,
            "select": self._selection.toggle,
            "select_down": lambda: self._selection.extend(1),
            "select_up": lambda: self._selection.extend(-1),
            "clear": self._clear,
            "next_unjudged": self._next_unjudged,
            "next_topic": lambda: self.open_topic(min(self.place_of_topic + 1, len(self.judging.topics) - 1)),
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
