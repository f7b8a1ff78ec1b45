"""The judging screen: what the keys do, and what is said of the document that the cursor is on, or of those selected.

Nothing that stands is changed unasked by a key too many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeGuard

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from searchapp.app.inspection.pages import RunPages
from searchapp.errors import SearchappError
from searchapp.judging.events import Action, Event, grade_label
from searchapp.judging.judgments import ListedJudgment
from searchapp.judging.log import Presence
from searchapp.judging.session import JudgingSession, Outcome
from searchapp.judging.view import Opinion
from searchapp.tui.judge.lists import Fetching, JudgmentList, RankingRows, Snippets, TopicRows
from searchapp.tui.judge.panes import Figures, Finder, Reading
from searchapp.tui.kit.content import entitle
from searchapp.tui.kit.descriptions import change_label, document_label, judged_label, opinion_label
from searchapp.tui.kit.dialogs import WordsDialog
from searchapp.tui.kit.judging import WorkApp, WorkScreen
from searchapp.tui.kit.keys import EDITING, TOPICS_FILTER, KeyMap, PaneHelp, ScreenSettings
from searchapp.tui.kit.widgets import KeyLine, RowList, TextLine

PANES = {
    "ranking": PaneHelp(
        "The ranking",
        "The documents of the topic in the order of the run, with what you said of each before its rank.",
        (),
        ("skip", "cant_tell", "note", "reason", "undo", "select", "next_unjudged", "next_unjudged_topic",
         "search", "document", "jump"),
    ),
    "topics": PaneHelp(
        "The topics",
        "The topics of the run with how much of each is judged. The ranking of a topic is shown once it is opened.",
        (),
        ("open", "filter", "topics", "next_unjudged_topic", "jump"),
    ),
    "topic": PaneHelp(
        "The topic", "What the documents are judged for. The arrows scroll it.", (), ("maths", "zoom", "next_pane")
    ),
    "document": PaneHelp(
        "The document",
        "The document that is graded, whole. The arrows scroll it; grade keys grade it from here as well.",
        (),
        ("maths", "zoom", "reading", "scroll_down", "note", "next_pane"),
    ),
    "filter": TOPICS_FILTER,
    "search": PaneHelp(
        "The search in the topic's documents",
        "Enter goes to the first document that has all the words, escape goes back.",
        EDITING,
        ("jump",),
        line=True,
    ),
}  # fmt: skip


class Selection:
    """The selected lines of a ranking; `tell` says how many there are."""

    def __init__(self, rows: RankingRows, tell: Callable[[str], object]) -> None:
        self._rows = rows
        self._tell = tell

    def places(self) -> list[int]:
        """The lines that a grade is for: those selected, else the one that the cursor is on."""
        rows = self._rows
        return sorted(rows.selected) if rows.selected else [rows.cursor] if rows.documents else []

    def toggle(self) -> None:
        """Select the line that the cursor is on, or no longer, and go on."""
        rows = self._rows
        if rows.documents:
            rows.selected ^= {rows.cursor}
            rows.redraw(rows.cursor)
            self._move(1)

    def extend(self, step: int) -> None:
        """Select the line that the cursor is on and the next one, above or below."""
        rows = self._rows
        if rows.documents:
            rows.selected.add(rows.cursor)
            self._move(step)
            rows.selected.add(rows.cursor)
            rows.redraw(rows.cursor)
            self._say()

    def clear(self) -> None:
        """Select nothing."""
        self._rows.selected.clear()
        self._rows.refresh()

    def _move(self, step: int) -> None:
        self._rows.move(self._rows.cursor + step)
        self._say()

    def _say(self) -> None:
        count = len(self._rows.selected)
        self._tell(f"{count} selected: a grade is given to all of them" if count else "")


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


def _stands(opinion: Opinion | None) -> TypeGuard[Opinion]:
    """Whether something was said that to put the document off would take back."""
    return opinion is not None and opinion.action is not Action.skip


IN_LAST_LINE = ("undo", "redo", "select", "next_unjudged", "next_unjudged_topic", "topics", "search", "filter",
                "judged", "document", "zoom", "maths", "theme", "quit", "help")  # fmt: skip

COLUMNS = {"topics": "left", "ranking": "middle", "topic": "right", "document": "right"}


class JudgeScreen(WorkScreen):
    """An annotator at work on a run."""

    CSS_PATH = Path(__file__).with_name("judge.tcss")
    AUTO_FOCUS = "#ranking"
    ABOUT = PANES

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
        self._rests_since: int | None = None
        """The cursor has not moved since it stayed on a document that was just judged, for want of another to go to."""

    def compose(self) -> ComposeResult:
        yield self.head
        with Horizontal(id="body"):
            with Vertical(id="left"):
                to_topics = lambda _words: self.panes.focus(self.topics)  # noqa: E731  # the filter is in force already
                yield TextLine(to_topics, self._topic_list.filter, hint="words or id, then ↵", id="filter")
                yield self.topics
            with Vertical(id="middle"):
                yield self.ranking
            yield self._reading
        yield TextLine(self._search, hint="search the documents of this topic: words, then ↵", id="search")
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

    def cursor_moved(self, rows: RowList) -> None:
        if rows is self.ranking:
            self.show_document()

    @on(RowList.Picked)
    def _picked(self, event: RowList.Picked) -> None:
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
        self.leave_line(self.query_one("#search", TextLine))
        self._finder.find(words)

    def leave_line(self, line: TextLine) -> None:
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

        self.app.push_screen(WordsDialog("Jump to the document with the id"), jump)

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
        self.query_one("#filter", TextLine).value = ""
        self._topic_list.filter("")
        self._selection.clear()
        self._finder.forget()
        self.clear_selection()
        self.ranking.refresh()
        self.show_document()
        self.head.tell("")

    # Judging

    def give(self, grade: int, reason: str = "") -> None:
        """Give the document, or after a question the selected ones, a grade."""
        places = self._selection.places()
        if not places:
            return
        documents = [self.ranking.documents[place] for place in places]
        what = grade_label(grade, self.labels)
        if len(places) > 1:
            already = judged_label([self.opinion(one) for one in documents], self.labels)
            question = f"Grade {len(places)} documents {what}?{f' {already}.' if already else ''}"
            self.ask(question, lambda: self._give(places, grade, reason))
        elif not self._asks_first(documents[0], what, lambda: self._give(places, grade, reason)):
            self._give(places, grade, reason)

    def _skip(self) -> None:
        """Put the document off, after a question if that takes back what was said of it."""
        document = self.document_id
        if document is None:
            return
        before = self.opinion(document)

        def skip() -> None:
            outcome = self.judging.skip(self.topic_id, document)
            self._judged(outcome, change_label("skipped", before, self.labels), document, before)

        if _stands(before):
            name, said = self.begin_of(document), opinion_label(before, self.labels)
            self.ask(f"{name} has {said}. Skip it, which undoes that?", skip)
        elif not self._rests:
            skip()
        else:
            self.head.tell(f"it is skipped already: {self._on_words()}", "$warning")

    def _cant_tell(self, reason: str = "") -> None:
        """Say that the document can't be judged."""
        document = self.document_id
        if document is None:
            return

        def say() -> None:
            before = self.opinion(document)
            outcome = self.judging.cant_tell(self.topic_id, document, reason)
            self._judged(outcome, change_label("can't tell", before, self.labels), document, before)

        if not self._asks_first(document, "can't tell", say):
            say()

    def _note(self) -> None:
        """Ask for a note on the document."""
        topic, document = self.topic_id, self.document_id
        if document is None:
            return

        def write(words: str) -> None:
            self._done(self.judging.note(topic, document, words), "a note", document)
            self.show_document()

        self.ask_note(self.begin_of(document), self.judging.words(topic, document), write)

    def _reason(self) -> None:
        """Ask for a grade together with a reason."""
        if self.document_id is not None:
            self.ask_grade("Which grade, with a reason?", {"cant_tell": self._cant_tell})

    def _give(self, places: Sequence[int], grade: int, reason: str) -> None:
        ranking = self.ranking
        documents = [ranking.documents[place] for place in places]
        before = self.opinion(documents[-1])
        what = grade_label(grade, self.labels)
        outcome = self.judging.grade(self.topic_id, documents, grade, reason)
        if len(documents) == 1:
            self._judged(outcome, change_label(what, before, self.labels), documents[0], before)
            return
        self._selection.clear()
        ranking.put(places[-1])
        self._judged(outcome, f"{len(documents)} documents {what}", None, before)

    def _asks_first(self, document: str, what: str, do: Callable[[], object]) -> bool:
        """Whether the cursor only rests on a document that was just judged: then a question comes before a change."""
        before = self.opinion(document)
        if not self._rests or not _stands(before):
            return False
        was = opinion_label(before, self.labels)
        if was == what:
            self.head.tell(f"it has {was} already: {self._on_words()}", "$warning")
        else:
            question = f"{self.begin_of(document)} has {was}. Change it to {what}?"
            self.ask(question, do, others={"next_unjudged_topic": "Go on with the next topic"})
        return True

    def _judged(self, outcome: Outcome, what: str, document: str | None, before: Opinion | None) -> None:
        """Say what was done, and go on: to the next document not judged, or from a changed one to the one below."""
        ranking, topic = self.ranking, self.topic_id
        cursor = ranking.cursor
        if _stands(before) and cursor + 1 < len(ranking.documents):
            following: int | None = cursor + 1
        else:
            following = self.judging.next_unjudged(topic, cursor)
        stays = following is None or following == cursor
        self._done(outcome, what, document, self._on_words() if stays else "")
        self.go(cursor if following is None else following)
        if stays:
            self._rests_since = ranking.moves

    @property
    def _rests(self) -> bool:
        return self._rests_since == self.ranking.moves

    def _on_words(self) -> str:
        """Where to go from a document after which nothing of the topic is left."""
        if self.judging.next_unjudged(self.topic_id) is None:
            return self.done_words()
        key = self.keys.shown("next_unjudged_topic")
        return f"only what was skipped is left here: {key} goes on"

    def _again(self, outcome: Outcome | None, what: str) -> None:
        if outcome is None:
            self.head.tell(f"there is nothing to {what}")
            return
        event, count = outcome.events[0], len(outcome.events)
        if count > 1:
            self._done(outcome, f"{what}ne: {count} documents", None)
        else:
            self._done(outcome, f"{what}ne", event.document_id)
        topic, document = event.topic_id, event.document_id
        if topic in self.judging.topics and document in self.judging.order(topic).places:
            self.jump_to(topic, document)
        else:
            self.show_document()

    def _done(self, outcome: Outcome, what: str, document: str | None, further: str = "") -> None:
        """Say what an action came to, and draw all that it changes but the document, which is shown next."""
        name = None if document is None else self.begin_of(document)
        parts = filter(None, (what, further, name))
        self.control.tell(outcome, ("   " if further else ": ").join(parts))
        self.redraw(outcome.events)

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
        return document_label(document, self.run_pages.known_text(document), self._reading.notation)

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
            "undo": lambda: self._again(self.judging.undo(), "undo"),
            "redo": lambda: self._again(self.judging.redo(), "redo"),
            "skip": self._skip,
            "cant_tell": self._cant_tell,
            "note": self._note,
            "reason": self._reason,
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


class JudgeApp(WorkApp):
    """Shows the judging screen until the annotator leaves it."""

    def __init__(
        self,
        judging: JudgingSession,
        run_pages: RunPages,
        settings: ScreenSettings,
        title: str,
        start: str | None = None,
        presence: Presence | None = None,
    ) -> None:
        super().__init__(JudgeScreen(judging, run_pages, settings.keys, start, title, presence), settings)
