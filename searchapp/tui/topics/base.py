"""What the screens have in common on which topics are walked beside their gold: of one run, or of two side by side.

The screen holds its parts and lets them do their work: `walking` lists the topics, `fetching` asks for rankings,
`lists`, `documents` and `reading` show, `gold` goes to relevant documents, `judging` grades, `taking` copies; `side` is
what there is of each run. What these may ask of the screen is in `parts`. What takes time is asked in the background,
and an answer that comes too late is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from textual import events, on
from textual.widget import Widget

from searchapp.app.topics import MissedGold, RunTopics, TopicRanking
from searchapp.errors import EngineError
from searchapp.judging.session import Session
from searchapp.tui.background import Background
from searchapp.tui.bars import KeyLine
from searchapp.tui.content import entitle
from searchapp.tui.head import Banner
from searchapp.tui.keys import KeyMap
from searchapp.tui.line import Line
from searchapp.tui.rows import Rows
from searchapp.tui.screen import KeyScreen
from searchapp.tui.status import no_such_grade, said_by
from searchapp.tui.topics.documents import Documents
from searchapp.tui.topics.fetching import Fetching
from searchapp.tui.topics.gold import Gold
from searchapp.tui.topics.judging import Judging
from searchapp.tui.topics.lists import DocumentRows, MissedRows, RankingRows, TopicRows
from searchapp.tui.topics.reading import Reading
from searchapp.tui.topics.side import Side
from searchapp.tui.topics.taking import Taking
from searchapp.tui.topics.walking import TopicList

RETRY_SECONDS = 2.0
"""After which an engine that failed is asked again."""


class GoldScreen(KeyScreen):
    """Topics beside their gold, in one run or several; a subclass makes `sides`, `topic_rows` and `walking`.

    Args:
        keys: what keys do
        title: what the first line says
        columns: the panes and their columns, see `Panes`
        lists: those of them that are lists, the main one first
        topics: those of the first run
        session: opens that of whoever judges
        command: how the program was called, up to the topic
        start: the topic to begin with, the first one by default
    """

    sides: Sequence[Side]
    topic_rows: TopicRows
    walking: TopicList

    def __init__(
        self,
        keys: KeyMap,
        title: str,
        columns: Mapping[str, str],
        lists: Sequence[str],
        topics: RunTopics,
        session: Callable[[], Session],
        command: Sequence[str],
        start: str | None,
    ) -> None:
        super().__init__(keys, Banner(title), columns, lists)
        self._command = command
        self.start = start
        self.sought = start or topics.topics[0]
        self.reading = Reading(topics.task.info, keys.shown("pager"))
        self.judging = Judging(self, topics.task.info.grades, session)
        self.documents = Documents(self, self.judging)
        self.fetching = Fetching(self, self.documents)
        self.filter_line = Line(
            lambda _words: self.panes.focus(self.topic_rows),
            lambda _words: self.walking.list_topics(),
            hint="words or id, then ↵",
            id="filter",
        )
        self.gold = Gold(self)
        self.taking = Taking(self)

    def begin(self) -> None:
        for side in self.sides:
            entitle(side.ranking, self.ranking_title(side))
            side.missed.entitle(0, is_known=False)
            side.ranking.is_graded = side.missed.is_graded = len(self.judging.labels) > 2
        self.walking.list_topics()
        self.open_topic(self.sought)

    def on_unmount(self) -> None:
        for side in self.sides:
            side.close()

    def leave(self) -> None:
        leaving = self.judging.leaving
        if leaving is None:
            self.go_back()
        else:
            leaving.leave()

    def last_words(self) -> str | None:
        leaving = self.judging.leaving
        return None if leaving is None else leaving.last_words()

    def later(self, what: Callable[[], object]) -> None:
        """Have something done here, whichever thread asks for it."""
        self.call_later(self._take_in, what)

    def _take_in(self, what: Callable[[], object]) -> None:
        with self.app.batch_update():
            what()

    @property
    def command(self) -> Sequence[str]:
        """How the program was called, up to the topic."""
        return self._command

    # The run in sight

    @property
    def side(self) -> Side:
        """The run whose lists the cursor is in."""
        return self.sides[0]

    @property
    def topics(self) -> RunTopics:
        return self.side.topics

    @property
    def quick(self) -> Background[RunTopics]:
        return self.side.quick

    @property
    def slow(self) -> Background[RunTopics]:
        return self.side.slow

    @property
    def ranking(self) -> RankingRows:
        return self.side.ranking

    @property
    def missed(self) -> MissedRows:
        return self.side.missed

    @property
    def ranked(self) -> TopicRanking | None:
        return self.side.ranked

    @property
    def in_missed(self) -> bool:
        return self.side.in_missed

    @property
    def lists(self) -> Sequence[DocumentRows]:
        return [rows for side in self.sides for rows in side.lists]

    def ranking_title(self, side: Side) -> str:  # noqa: ARG002  # for subclasses
        """What a ranking is called."""
        return "Ranking"

    # A topic

    def open_topic(self, topic: str) -> None:
        self.sought = topic
        self.topic_rows.mark(topic)
        for side in self.sides:
            self.fetching.ranking(side, topic, partial(self._topic_came, side))

    def _topic_came(self, side: Side, found: TopicRanking) -> None:
        if found.topic_id != self.sought or side not in self.sides:
            return
        side.ranked = found
        side.ranking.relevant = side.missed.relevant = found.relevant
        side.ranking.scored = found.scored
        self.show_side(side)
        side.missed.offer_missed(found.missed, 0)
        side.missed.entitle(len(found.relevant), is_known=found.no_gold is None)
        topic = side.topics.pages.topic(found.topic_id)
        self.reading.show_topic(topic, self.walking.of_topic(found.topic_id))
        if side is self.side:
            if side.in_missed and not found.missed:
                self.focus_rows(side.ranking)
            else:
                self.show_document()
        else:
            side.in_missed = False
        self.fetching.missed(side, found, partial(self._missed_came, side, found.topic_id))

    def show_side(self, side: Side) -> None:
        """Show the ranking of the topic in sight in one of the runs."""
        found = side.ranked
        if found is not None:
            side.ranking.offer_ranking(found.documents, range(1, len(found.documents) + 1), 0)
            gold = "" if found.no_gold else f" · {len(found.relevant):,} relevant"
            title = self.ranking_title(side)
            entitle(side.ranking, f"{title} · {len(found.documents):,} documents{gold}")

    def _missed_came(self, side: Side, topic: str, found: MissedGold) -> None:
        if side.ranked is None or topic != side.ranked.topic_id or side not in self.sides:
            return
        here = side.missed.document if side.in_missed or side.missed.cursor else None
        ids = [one.document_id for one in found.documents]
        side.missed.offer_missed(found.documents, ids.index(here) if here in ids else 0)
        if found.differs:
            self.head.tell(
                "the recipe ranks otherwise now than for the run: ranks of missed gold are those of now"
            )
        if side is self.side and side.in_missed:
            self.show_document()

    def tell_failure(self, error: Exception, again: Callable[[], object]) -> None:
        self.head.tell(said_by(error), "$error")
        if isinstance(error, EngineError):
            self.set_timer(RETRY_SECONDS, again)

    @property
    def is_untouched(self) -> bool:
        """Whether nobody has gone anywhere, nor asked for a topic: another one can come into sight by itself."""
        is_at_first = self.start is None and self.sought == self.topics.topics[0] and self.is_active
        return is_at_first and not any(side.in_missed or side.rows.cursor for side in self.sides)

    # Its documents

    @property
    def topic_id(self) -> str:
        return self.sought if self.ranked is None else self.ranked.topic_id

    @property
    def rows(self) -> DocumentRows:
        return self.side.rows

    @property
    def document_id(self) -> str | None:
        return self.rows.document

    def watch_focused(self, focused: Widget | None) -> None:
        # At once: a grade may be pressed before the message that a list has the focus comes.
        for side in self.sides:
            if focused in side.lists and not (side is self.side and focused is side.rows):
                self.go_into(side, focused is side.missed)
                self.show_document()

    def go_into(self, side: Side, in_missed: bool) -> None:
        """Let the document be the one under the cursor of a list."""
        side.in_missed = in_missed

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
            self.leave_topics()
        else:
            self.focus_rows(event.rows)

    def focus_rows(self, rows: Rows) -> None:
        for side in self.sides:
            if rows in side.lists:
                self.go_into(side, rows is side.missed)
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

    def toggle_judging(self) -> None:
        """Judge from now on, or no longer."""
        self.judging.toggle()
        self.set_class(self.judging.is_on, "-judging")
        for rows in self.lists:
            rows.judged = self.judging.mark if self.judging.is_on else None
            rows.refresh()
        self.show_document()

    def redraw(self, documents: Iterable[str] | None) -> None:
        wanted = None if documents is None else list(documents)
        for rows in self.lists:
            if wanted is None:
                rows.refresh()
            else:
                rows.redraw_documents(wanted)
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
            self.leave_topics()
        else:
            self.add_class("-topics")
            self.panes.focus(self.topic_rows)

    def leave_topics(self) -> None:
        """Back to the ranking, where the list of topics hides it."""
        self.remove_class("-topics")
        self.focus_rows(self.ranking)

    def _to_filter(self) -> None:
        self.add_class("-topics")
        self.panes.focus(self.topic_rows)  # with which the line for words comes into sight
        self.set_focus(self.filter_line)

    def leave_line(self, line: Line) -> None:
        line.value = ""
        self.walking.list_topics()
        self.leave_topics()

    def _clear(self) -> None:
        self.leave_line(self.filter_line)
        self.clear_selection()
        self.head.tell("")

    def _toggle_maths(self) -> None:
        self.reading.notation = self.reading.notation.next
        self.topic_rows.show_in(self.reading.notation)
        self.head.tell(self.reading.notation.about)
        self.documents.forget_beginnings()
        for rows in self.lists:
            rows.refresh()
        topic = self.topics.pages.topic(self.topic_id)
        self.reading.show_topic(topic, self.walking.of_topic(self.topic_id))
        self.show_document()

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            "next_topic": lambda: self.walking.walk(1),
            "previous_topic": lambda: self.walking.walk(-1),
            "order": self.walking.next_order,
            "topics": self._to_topics,
            "open": lambda: self.leave_topics() if self.focused is self.topic_rows else None,
            "filter": self._to_filter,
            "clear": self._clear,
            "next_gold": lambda: self.gold.next(1),
            "previous_gold": lambda: self.gold.next(-1),
            "next_missed": self.gold.next_missed,
            "why": self.gold.why,
            "document": self.gold.ask_document,
            "judge": self.toggle_judging,
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
