"""Walking topics on the screen: what the keys do.

The screen holds its parts and lets them do their work: `walking` lists the topics, `lists`, `documents` and `reading`
show, `figuring` computes the figures, `gold` goes to relevant documents, `judging` grades, `taking` copies. What these
may ask of the screen is in `parts`. What takes time is asked in the background, and an answer that comes too late is
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from searchapp.app.topics import MissedGold, RunTopics, TopicRanking
from searchapp.errors import EngineError
from searchapp.tui.background import Background
from searchapp.tui.bars import KeyLine
from searchapp.tui.content import entitle
from searchapp.tui.head import Banner
from searchapp.tui.keys import KeyMap
from searchapp.tui.line import Line
from searchapp.tui.rows import Rows
from searchapp.tui.screen import KeyScreen
from searchapp.tui.status import no_such_grade, said_by
from searchapp.tui.topics import about
from searchapp.tui.topics.actions import GRADING, IN_LAST_LINE
from searchapp.tui.topics.documents import Documents
from searchapp.tui.topics.figuring import Figuring
from searchapp.tui.topics.gold import Gold
from searchapp.tui.topics.judging import Judging
from searchapp.tui.topics.lists import DocumentRows, MissedRows, RankingRows, TopicRows
from searchapp.tui.topics.parts import Kind, Opened
from searchapp.tui.topics.reading import Reading
from searchapp.tui.topics.taking import Taking
from searchapp.tui.topics.walking import Walking

COLUMNS = {"topics": "left", "ranking": "middle", "missed": "middle", "topic": "right", "document": "right"}

NEAR = 60
"""Documents of a ranking whose beginnings are fetched with it."""

RETRY_SECONDS = 2.0
"""After which an engine that failed is asked again."""


class TopicsScreen(KeyScreen):
    """Somebody walks the topics of a run."""

    CSS_PATH = Path(__file__).with_name("topics.tcss")
    AUTO_FOCUS = "#ranking"
    ABOUT = about.ABOUT

    def __init__(self, opened: Opened, keys: KeyMap) -> None:
        super().__init__(keys, Banner(opened.title), COLUMNS, ("ranking", "missed", "topics"))
        self.opened = opened
        self.topics = opened.topics
        self.ranked: TopicRanking | None = None
        self.sought = opened.start or opened.topics.topics[0]
        self.in_missed = False
        self.quick = Background("topics", lambda: opened.topics, self._later)
        self.slow = Background("missed gold", lambda: opened.topics, self._later)
        labels = opened.topics.task.info.grades
        self.reading = Reading(opened.topics.pages.task.info, keys.shown("pager"))
        self.judging = Judging(self, opened.topics, opened.session)
        self.documents = Documents(self, self.judging)
        self.topic_rows = TopicRows(opened.topics.pages)
        self.ranking = RankingRows(self.documents.beginning, id="ranking")
        self.missed = MissedRows(self.documents.beginning, id="missed")
        self.ranking.is_graded = self.missed.is_graded = len(labels) > 2
        self.walking = Walking(self, opened.order)
        self.filter_line = Line(
            lambda _words: self.panes.focus(self.topic_rows),
            lambda _words: self.walking.list_topics(),
            hint="words or id, then ↵",
            id="filter",
        )
        self.figuring = Figuring(
            opened.topics,
            self._later,
            self.walking.so_far,
            self.walking.figures_came,
            self.walking.no_figures,
        )
        self.gold = Gold(self)
        self.taking = Taking(self)

    def compose(self) -> ComposeResult:
        yield self.head
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield self.filter_line
                yield self.topic_rows
            with Vertical(id="middle"):
                yield self.ranking
                yield self.missed
            yield self.reading
        yield KeyLine(self._grade_entries(self.judging.labels, *GRADING), 2, id="grades")
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def begin(self) -> None:
        entitle(self.ranking, "Ranking")
        self.missed.entitle(0, is_known=False)
        self.walking.list_topics()
        self.open_topic(self.sought)

    def begun(self) -> None:
        self.figuring.begin()

    def on_unmount(self) -> None:
        for one in (self.quick, self.slow, self.figuring):
            one.close()

    def leave(self) -> None:
        leaving = self.judging.leaving
        if leaving is None:
            self.go_back()
        else:
            leaving.leave()

    def last_words(self) -> str | None:
        leaving = self.judging.leaving
        return None if leaving is None else leaving.last_words()

    def _later(self, what: Callable[[], object]) -> None:
        """Have something done here, whichever thread asks for it."""
        self.call_later(self._take_in, what)

    def _take_in(self, what: Callable[[], object]) -> None:
        with self.app.batch_update():
            what()

    # A topic

    def open_topic(self, topic: str) -> None:
        self.sought = topic
        self.topic_rows.mark(topic)

        def work(topics: RunTopics) -> TopicRanking:
            found = topics.ranking(topic)
            self.documents.prepare([*found.documents[:NEAR], *(one.document_id for one in found.missed)])
            return found

        def again() -> None:
            if self.sought == topic:
                self.open_topic(topic)

        self.quick.ask(Kind.topic, work, self._topic_came, lambda error: self.tell_failure(error, again))

    def _topic_came(self, found: TopicRanking) -> None:
        if found.topic_id != self.sought:
            return
        self.ranked = found
        self.ranking.relevant = self.missed.relevant = found.relevant
        self.ranking.scored = found.scored
        self.ranking.offer(found.documents, 0)
        self.missed.offer_missed(found.missed, 0)
        self.missed.entitle(len(found.relevant), is_known=found.no_gold is None)
        gold = "" if found.no_gold else f" · {len(found.relevant):,} relevant"
        entitle(self.ranking, f"Ranking · {len(found.documents):,} documents{gold}")
        topic = self.topics.pages.topic(found.topic_id)
        self.reading.show_topic(topic, self.walking.of_topic(found.topic_id))
        if self.in_missed and not found.missed:
            self.focus_rows(self.ranking)
        else:
            self.show_document()
        if any(one.why is None for one in found.missed):
            self.slow.ask(
                Kind.missed,
                lambda topics: topics.look_for_missed(found.topic_id),
                lambda missed: self._missed_came(found.topic_id, missed),
                lambda error: self.head.tell(said_by(error), "$error"),
            )

    def _missed_came(self, topic: str, found: MissedGold) -> None:
        if self.ranked is None or topic != self.ranked.topic_id:
            return
        here = self.missed.document if self.in_missed else None
        ids = [one.document_id for one in found.documents]
        self.missed.offer_missed(found.documents, ids.index(here) if here in ids else 0)
        if found.differs:
            self.head.tell(
                "the recipe ranks otherwise now than for the run: ranks of missed gold are those of now"
            )
        if self.in_missed:
            self.show_document()

    def tell_failure(self, error: Exception, again: Callable[[], object]) -> None:
        self.head.tell(said_by(error), "$error")
        if isinstance(error, EngineError):
            self.set_timer(RETRY_SECONDS, again)

    # Its documents

    @property
    def topic_id(self) -> str:
        return self.sought if self.ranked is None else self.ranked.topic_id

    @property
    def rows(self) -> DocumentRows:
        return self.missed if self.in_missed else self.ranking

    @property
    def document_id(self) -> str | None:
        return self.rows.document

    def watch_focused(self, focused: Widget | None) -> None:
        # At once: a grade may be pressed before the message that a list has the focus comes.
        if focused in (self.ranking, self.missed) and self.in_missed != (focused is self.missed):
            self.in_missed = focused is self.missed
            self.show_document()

    def cursor_moved(self, rows: Rows) -> None:
        if rows is self.topic_rows:
            topic = self.topic_rows.topics[rows.cursor]
            if topic != self.sought:
                self.open_topic(topic)
        elif rows is self.rows:
            self.show_document()

    @on(Rows.Picked)
    def _picked(self, event: Rows.Picked) -> None:
        event.stop()
        if event.rows is self.topic_rows:
            self._leave_topics()
        else:
            self.focus_rows(event.rows)

    def focus_rows(self, rows: Rows) -> None:
        self.in_missed = rows is self.missed
        self.panes.focus(rows)
        self.show_document()

    def show_document(self) -> None:
        self.documents.show()
        opinion = None if self.document_id is None else self.judging.opinion(self.document_id)
        name = "" if opinion is None else opinion.action.value
        if opinion is not None and opinion.grade is not None:
            name = f"grade_{opinion.grade}"
        self.query_one("#grades", KeyLine).choose(name)

    # Judging, which is the affair of `judging`

    def _toggle_judging(self) -> None:
        self.judging.toggle()
        self.set_class(self.judging.is_on, "-judging")
        for rows in (self.ranking, self.missed):
            rows.judged = self.judging.mark if self.judging.is_on else None
            rows.refresh()
        self.show_document()

    def redraw(self, documents: Iterable[str] | None) -> None:
        for rows in (self.ranking, self.missed):
            if documents is None:
                rows.refresh()
            else:
                rows.redraw_documents(documents)
        self.show_document()

    def refuse(self, event: events.Key) -> None:
        if event.key.isdecimal():
            self.head.tell(no_such_grade(event.key, self.judging.labels), "$warning")
        else:
            super().refuse(event)

    def act(self, name: str) -> None:
        if name.startswith("grade_"):
            self.judging.give(int(name.removeprefix("grade_")))
        else:
            super().act(name)

    # All else

    def _to_topics(self) -> None:
        if self.focused is self.topic_rows or self.has_class("-topics"):
            self._leave_topics()
        else:
            self.add_class("-topics")
            self.panes.focus(self.topic_rows)

    def _leave_topics(self) -> None:
        self.remove_class("-topics")
        self.focus_rows(self.ranking)

    def _to_filter(self) -> None:
        self.add_class("-topics")
        self.panes.focus(self.topic_rows)  # with which the line for words comes into sight
        self.set_focus(self.filter_line)

    def leave_line(self, line: Line) -> None:
        line.value = ""
        self.walking.list_topics()
        self._leave_topics()

    def _clear(self) -> None:
        self.leave_line(self.filter_line)
        self.clear_selection()
        self.head.tell("")

    def _toggle_maths(self) -> None:
        self.reading.notation = self.reading.notation.next
        self.topic_rows.show_in(self.reading.notation)
        self.head.tell(self.reading.notation.about)
        self.documents.forget_beginnings()
        self.ranking.refresh()
        self.missed.refresh()
        topic = self.topics.pages.topic(self.topic_id)
        self.reading.show_topic(topic, self.walking.of_topic(self.topic_id))
        self.show_document()

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            "next_topic": lambda: self.walking.walk(1),
            "previous_topic": lambda: self.walking.walk(-1),
            "order": self.walking.next_order,
            "worst_topic": self.walking.to_worst,
            "topics": self._to_topics,
            "open": lambda: self._leave_topics() if self.focused is self.topic_rows else None,
            "filter": self._to_filter,
            "clear": self._clear,
            "next_gold": lambda: self.gold.next(1),
            "previous_gold": lambda: self.gold.next(-1),
            "next_missed": self.gold.next_missed,
            "why": self.gold.why,
            "document": self.gold.ask_document,
            "judge": self._toggle_judging,
            "undo": self.judging.undo,
            "redo": self.judging.redo,
            "skip": self.judging.skip,
            "cant_tell": self.judging.cant_tell,
            "note": self.judging.note,
            "maths": self._toggle_maths,
            "copy_id": self.taking.copy_id,
            "copy_text": self.taking.copy_text,
            "copy_command": self.taking.copy_command,
            "pager": self.taking.pager,
        }
