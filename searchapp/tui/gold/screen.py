"""Screens with topics beside their gold: of one run, or of two side by side.

Rankings, documents and the reasons for missed gold are read in the background; late answers are dropped.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import partial
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from searchapp.app.inspection import explanation
from searchapp.app.inspection.pages import Page, RunPages
from searchapp.app.inspection.topics import MissedGold, RunTopics, TopicRanking
from searchapp.errors import EngineError
from searchapp.judging.events import Action, grade_label
from searchapp.judging.session import Outcome, SeenDocument, Session
from searchapp.text import counted, visible
from searchapp.tui.gold.lists import (
    DocumentRows,
    GoldRankingRows,
    GoldTopicRows,
    MissedRows,
    Reading,
)
from searchapp.tui.kit.background import BackgroundQueue, Post
from searchapp.tui.kit.content import Notation, entitle
from searchapp.tui.kit.descriptions import (
    change_label,
    document_label,
    error_text,
    has_words,
    named_document,
    opinion_action,
)
from searchapp.tui.kit.dialogs import WordsDialog
from searchapp.tui.kit.explanation import ExplanationDialog
from searchapp.tui.kit.judging import GradingScreen, TopicJudging
from searchapp.tui.kit.keys import KeyMap
from searchapp.tui.kit.screen import Part, SessionBanner, saves, show_in_pager
from searchapp.tui.kit.widgets import (
    LONGEST_ID,
    KeyLine,
    RowList,
    TextLine,
    judging_chip,
    one_line,
    shortened_id,
)

# The actions of the screen of topics and of the compare screen.
SHARED = ("next_topic", "previous_topic", "order", "topics", "open", "filter", "next_missed", "why", "document",
          "judge", "undo", "redo", "skip", "cant_tell", "note", "clear", "reading", "wider", "narrower", "markup",
          "copy_id", "copy_text", "copy_command", "pager")  # fmt: skip


class QuestionKind(IntEnum):
    """The kinds of requests about a run, the most urgent first."""

    topic = 0
    document = 1
    why = 2
    missed = 3
    texts = 4


class RunSide:
    """A run on a screen."""

    def __init__(self, topics: RunTopics, ranking: GoldRankingRows, missed: MissedRows, post: Post) -> None:
        self.topics = topics
        self.ranking = ranking
        self.missed = missed
        self.lists: Sequence[DocumentRows] = (ranking, missed)
        # The displayed ranking, once it is read.
        self.ranked: TopicRanking | None = None
        # The cursor is in the missed gold.
        self.in_missed = False
        # Reads rankings and documents.
        self.quick = BackgroundQueue("topics", lambda: topics, post)
        # Ranks with the run's recipe, for explanations and missed gold.
        self.slow = BackgroundQueue("missed gold", lambda: topics, post)

    @property
    def rows(self) -> DocumentRows:
        return self.missed if self.in_missed else self.ranking

    @property
    def is_idle(self) -> bool:
        return self.quick.is_idle and self.slow.is_idle

    def close(self) -> None:
        self.quick.close()
        self.slow.close()


# Beginnings per request.
AT_ONCE = 200

# Documents of a ranking whose beginnings are read with it.
NEAR = 60

# The previous document stays for this time while the next one is read.
PATIENCE_SECONDS = 0.15

# Delay before retrying after an engine failure.
RETRY_SECONDS = 2.0


class DocumentView:
    """Shows the document under the cursor, and reads the beginnings of documents."""

    def __init__(self, screen: GoldScreen) -> None:
        self._screen = screen
        self._shown: object = None
        # Run, topic and id of the document under the cursor.
        self._wanted: object = None
        self._beginnings: dict[str, str] = {}
        self._missing: set[str] = set()
        self._is_missing_texts = False

    def show(self) -> None:
        screen, pages = self._screen, self._screen.topics.pages
        topic, document = screen.topic_id, screen.document_id
        if document is None:
            self._wanted = self._shown = None
            screen.reading.show_none("" if screen.side.ranked is None else "No document selected.")
            return
        self._wanted = wanted = pages.name, topic, document

        def await_page() -> None:
            if wanted == self._wanted != self._shown:
                screen.reading.show_none("…", title=self._title(document))

        def show_page(page: Page) -> None:
            if wanted == self._wanted:
                self._shown = wanted
                others, words = screen.judging.others(document), screen.judging.words(document)
                screen.reading.show(wanted, page, self._title(document), others, words)
                screen.head.clear_ended()
            news = screen.topics.pages.news
            while news:
                screen.head.tell(news.pop(0), "$warning")

        def fail(error: Exception) -> None:
            if wanted == self._wanted:
                screen.reading.show_none(error_text(error), "$error", self._title(document))
                screen.tell_failure(
                    error,
                    lambda: self.show() if wanted == self._wanted else None,
                    lambda: wanted == self._wanted != self._shown,
                )

        if pages.has_page(topic, document):
            show_page(pages.page(topic, document))
        else:
            screen.set_timer(PATIENCE_SECONDS, await_page)
            work = lambda topics: topics.pages.page(topic, document)  # noqa: E731
            screen.side.quick.ask(QuestionKind.document, work, show_page, fail)

    def _title(self, document: str) -> str:
        side, ranked = self._screen.side, self._screen.side.ranked
        title = f"Document {shortened_id(document, LONGEST_ID)}"
        if ranked is None:
            return title
        if document in ranked.relevant:
            title += f" · gold {ranked.relevant[document]}" if side.ranking.is_graded else " · relevant"
        if side.in_missed:
            why = side.missed.missed[side.missed.cursor].reason
            return title if why is None or why.rank is None else f"{title} · rank {why.rank:,}"
        rank = side.ranking.rank(side.ranking.cursor)
        score = f"{ranked.scores[rank - 1]:.4f}" if rank <= ranked.scored else "no score"
        return f"{title} · rank {rank:,} · {score}"

    def prepare(self, pages: RunPages, documents: Sequence[str]) -> None:
        """Read the beginnings of documents, in any thread.

        Raises:
            EngineError: the documents cannot be read.
        """
        notation = self._screen.reading.notation
        for document, text in zip(documents, pages.texts(documents), strict=True):
            if document not in self._beginnings:
                line = one_line(text, notation)
                if (
                    notation == self._screen.reading.notation
                ):  # the user has not chosen another form meanwhile
                    self._beginnings[document] = line

    def beginning(self, document: str) -> str | None:
        if document not in self._beginnings:
            pages = self._screen.topics.pages
            if not pages.is_fetched(document):
                if not self._missing:
                    self._screen.call_later(self._read_missing)
                self._missing.add(document)
                return None
            text = pages.known_text(document) or ""
            self._beginnings[document] = one_line(text, self._screen.reading.notation)
        return self._beginnings[document]

    def forget_beginnings(self) -> None:
        self._beginnings.clear()

    def _read_missing(self) -> None:
        wanted = list(self._missing)[:AT_ONCE]
        self._missing.clear()

        def draw() -> None:
            for rows in self._screen.lists:
                rows.refresh()

        def receive() -> None:
            self._is_missing_texts = False
            self._screen.head.clear_ended()
            draw()

        def fail(error: Exception) -> None:
            self._is_missing_texts = True
            self._screen.tell_failure(error, draw, lambda: self._is_missing_texts)

        self._screen.side.quick.ask(
            QuestionKind.texts,
            lambda topics: self.prepare(topics.pages, wanted),
            lambda _none: receive(),
            fail,
        )


class GoldJudging(TopicJudging):
    """Judges beside the gold, once the annotator begins."""

    def __init__(
        self, screen: GoldScreen, labels: Sequence[str], open_session: Callable[[], Session]
    ) -> None:
        super().__init__(screen, labels, open_session)
        self._gold_screen = screen
        self.is_on = False
        # The document judged last, its list, and `RowList.moves` after it: a note that follows belongs to it.
        self._judged: tuple[str, RowList, int] | None = None

    @property
    def topic_id(self) -> str:
        return self._gold_screen.topic_id

    def redraw(self, documents: Sequence[str] | None) -> None:
        self._gold_screen.redraw(documents)

    def toggle(self) -> None:
        """Begin or end judging.

        Raises:
            SearchappError: the log cannot be opened.
        """
        self.open()
        self.is_on = not self.is_on
        key = self._screen.keys.shown("judge")
        if self.is_on:
            self._screen.head.tell(f"a grade key grades the document, {key} stops judging", "$primary")

    def give(self, grade: int) -> None:
        pages = self._gold_screen.topics.pages

        def write(session: Session, seen: SeenDocument) -> Outcome:
            pages.require_as_ranked(seen.document_id)
            return session.grade([seen], grade)

        self._judge(grade_label(grade, self.labels), write)

    def skip(self) -> None:
        self._judge("skipped", Session.skip)

    def cant_tell(self) -> None:
        self._judge("can't tell", Session.cant_tell)

    def _judge(self, label: str, write: Callable[[Session, SeenDocument], Outcome]) -> None:
        document, screen = self._document_to_judge(), self._gold_screen
        if self.session is None or document is None:
            return
        label = change_label(label, self.opinion(document), self.labels)
        self.done(write(self.session, self._seen(document)), f"{label}: {self._name(document)}")
        self.redraw([document])
        rows = screen.side.rows
        if rows.cursor + 1 < rows.count:
            rows.move(rows.cursor + 1)
            screen.show_document()
        self._judged = document, rows, rows.moves

    def note(self) -> None:
        judged, session, rows = self._judged, self.session, self._gold_screen.side.rows
        follows = self.is_on and judged is not None and judged[1:] == (rows, rows.moves)
        document = judged[0] if judged is not None and follows else self._document_to_judge()
        if session is None or document is None:
            return
        seen = self._seen(document)

        def write(words: str | None) -> None:
            if words:
                self.done(session.note(seen, words), f"a note: {self._name(document)}")
                self.redraw([document])

        name = named_document(document, seen.rank, self._name(document))
        dialog = WordsDialog(f"Note on {name}", self.words(document))
        self._screen.app.push_screen(dialog, write)

    def undo(self) -> None:
        self._judged = None
        outcome = self.take_back()
        if outcome is None:
            self._screen.head.tell("no judgment of this session to undo")
        else:
            self._tell_again(outcome, "undone")

    def redo(self) -> None:
        session = self.session
        for event in () if session is None else session.undone:
            if event.action is Action.grade:
                self._gold_screen.topics.pages.require_as_ranked(event.document_id)
        outcome = None if session is None else session.redo()
        if outcome is None:
            self._screen.head.tell("nothing to redo")
            return
        self._undoable += 1
        self._tell_again(outcome, "redone")

    def _tell_again(self, outcome: Outcome, label: str) -> None:
        events = outcome.events
        documents = [event.document_id for event in events if event.topic_id == self.topic_id]
        names = ", ".join(self._name(event.document_id) for event in events)
        suffix = "" if documents else f", of topic {events[0].topic_id}"
        self.tell(outcome, f"{label}: {names}{suffix}")
        self.redraw(documents)

    def _document_to_judge(self) -> str | None:
        screen, document = self._gold_screen, self._gold_screen.document_id
        if not self.is_on:
            screen.head.tell(f"{screen.keys.shown('judge')} starts judging", "$warning")
            return None
        if document is None:
            screen.head.tell("no document is selected", "$warning")
        elif screen.topics.task.info.topics_are_documents and document == screen.topic_id:
            screen.head.tell("this document is the topic itself and can't be graded", "$warning")
            return None
        return document

    def _seen(self, document: str) -> SeenDocument:
        ranked = self._gold_screen.side.ranked
        documents = () if ranked is None else dict.fromkeys(ranked.documents)
        rank = next((rank for rank, other in enumerate(documents, 1) if other == document), None)
        return self.seen(document, self._gold_screen.topics.pages.name, rank)

    def _name(self, document: str) -> str:
        pages = self._gold_screen.topics.pages
        return document_label(document, pages.known_text(document), Notation(pages.task.info.markup))


class GoldScreen(GradingScreen):
    """Topics beside their gold; a subclass makes `sides` and `topic_rows`, and orders topics."""

    sides: Sequence[RunSide]
    topic_rows: GoldTopicRows
    # Computes the figures.
    figure_queue: BackgroundQueue[Any]

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
        super().__init__(keys, SessionBanner(title), columns, lists)
        self._command = command
        self.start = start
        # The open topic, whose ranking may still be loading.
        self.target_topic = start or topics.topics[0]
        self.labels = topics.task.info.grades
        self.reading = Reading(topics.task.info, keys.shown("pager"))
        self.judging = GoldJudging(self, self.labels, session)
        self.documents = DocumentView(self)
        self.filter_line = TextLine(
            lambda _words: self.panes.focus(self.topic_rows),
            lambda _words: self.list_topics(),
            hint="words or id, then ↵",
            id="filter",
        )

    def compose_topics(self) -> ComposeResult:
        with Vertical(id="left"):
            yield self.filter_line
            yield self.topic_rows

    def compose_keys(self, *names: str) -> ComposeResult:
        grading = self._grade_entries(self.labels, "undo", "skip", "cant_tell", "note")
        yield KeyLine(grading, 2, id="grades")
        yield KeyLine(self._entries(*names), 1, id="keys")

    def mode_chips(self) -> Iterator[Part]:
        """Yield the chips of the first line, the most important first."""
        session = self.judging.session
        if self.judging.is_on and session is not None:
            yield judging_chip(session.author.annotator)

    def begin(self) -> None:
        self.head.show_chips(*self.mode_chips())
        for side in self.sides:
            entitle(side.ranking, self.ranking_title(side))
            side.missed.entitle(None)
            for rows in side.lists:
                rows.top_grade = len(self.labels) - 1
        self.list_topics()
        self.open_topic(self.target_topic)

    def on_unmount(self) -> None:
        self.figure_queue.close()
        for side in self.sides:
            side.close()

    def leave(self) -> None:
        self.judging.leave()

    def last_words(self) -> str | None:
        return self.judging.last_words()

    @property
    def command(self) -> Sequence[str]:
        return self._command

    # The run with the cursor

    @property
    def side(self) -> RunSide:
        return self.sides[0]

    @property
    def topics(self) -> RunTopics:
        return self.side.topics

    @property
    def ranking(self) -> GoldRankingRows:
        return self.side.ranking

    @property
    def missed(self) -> MissedRows:
        return self.side.missed

    @property
    def lists(self) -> Sequence[DocumentRows]:
        return [rows for side in self.sides for rows in side.lists]

    @property
    def topic_id(self) -> str:
        ranked = self.side.ranked
        return self.target_topic if ranked is None else ranked.topic_id

    @property
    def document_id(self) -> str | None:
        return self.side.rows.document

    def ranking_title(self, side: RunSide) -> str:  # noqa: ARG002  # for subclasses
        return "Ranking"

    # The list of topics

    def ordered_topics(self) -> Sequence[str]:
        raise NotImplementedError

    def list_title(self) -> str:
        raise NotImplementedError

    def figures_of(self, topic: str) -> str:
        raise NotImplementedError

    def next_order(self) -> None:
        raise NotImplementedError

    def list_topics(self) -> None:
        wanted = self.filter_line.value.lower().split()
        rows, pages, target = self.topic_rows, self.topics.pages, self.target_topic
        ordered = self.ordered_topics()
        left = [topic for topic in ordered if has_words(f"{topic} {pages.topic(topic).text}", wanted)]
        rows.topics, rows.current = left, target
        rows.show(len(left), left.index(target) if target in left else 0)
        self.entitle_topics(f" · {len(left):,} of {len(ordered):,}" if wanted else "")

    def entitle_topics(self, words: str = "") -> None:
        entitle(self.topic_rows, f"{self.list_title()}{words}")

    def tell_progress(self, words: str) -> None:
        self.entitle_topics(words)
        if self.side.ranked is not None:
            self.reading.entitle_topic(self.topic_id, words)

    def entitle_topic(self) -> None:
        if self.side.ranked is not None:
            self.reading.entitle_topic(self.topic_id, self.figures_of(self.topic_id))

    def go_to_first(self) -> None:
        self.filter_line.value = ""
        ordered = self.ordered_topics()
        if ordered:
            self.target_topic = ordered[0]
            self.list_topics()
            self.open_topic(ordered[0])

    def walk(self, step: int) -> None:
        topics, target = self.topic_rows.topics, self.target_topic
        index = topics.index(target) if target in topics else -1 if step > 0 else len(topics)
        if 0 <= index + step < len(topics):
            self.open_topic(topics[index + step])
        else:
            self.head.tell(f"this is the {'last' if step > 0 else 'first'} topic of the list")

    # A topic

    def open_topic(self, topic: str) -> None:
        self.target_topic = topic
        self.topic_rows.mark(topic)
        for side in self.sides:
            self._read_ranking(side, topic)

    def _read_ranking(self, side: RunSide, topic: str) -> None:

        def work(topics: RunTopics) -> TopicRanking:
            ranked = topics.ranking(topic)
            near = [*ranked.documents[:NEAR], *(missed.document_id for missed in ranked.missed)]
            self.documents.prepare(topics.pages, near)
            return ranked

        def again() -> None:
            if self.target_topic == topic:
                self._read_ranking(side, topic)

        def is_missing() -> bool:
            return self.target_topic == topic and (side.ranked is None or side.ranked.topic_id != topic)

        side.quick.ask(
            QuestionKind.topic,
            work,
            partial(self.show_ranking, side),
            lambda error: self.tell_failure(error, again, is_missing),
        )

    def show_ranking(self, side: RunSide, ranked: TopicRanking) -> None:
        if ranked.topic_id != self.target_topic or side not in self.sides:
            return
        if side.ranked is None:
            self.await_paint()  # discards keys typed before the first document was visible
        side.ranked = ranked
        self.head.clear_ended()
        side.ranking.scored = ranked.scored
        for rows in side.lists:
            rows.relevant = ranked.relevant
        self.show_side(side)
        side.missed.offer_missed(ranked.missed, 0)
        side.missed.entitle(ranked)
        topic = side.topics.pages.topic(ranked.topic_id)
        self.reading.show_topic(topic, self.figures_of(ranked.topic_id))
        if side is not self.side:
            side.in_missed = False
        elif side.in_missed and not ranked.missed:
            self.focus_rows(side.ranking)
        else:
            self.show_document()
        if any(missed.reason is None for missed in ranked.missed):
            side.slow.ask(
                QuestionKind.missed,
                lambda topics: topics.look_for_missed(ranked.topic_id),
                partial(self.show_missed, side, ranked.topic_id),
                self.tell_error,
            )

    def show_side(self, side: RunSide) -> None:
        ranked = side.ranked
        if ranked is not None:
            side.ranking.offer_ranking(ranked.documents, range(1, len(ranked.documents) + 1))
            self.entitle_ranking(side, ranked)

    def entitle_ranking(self, side: RunSide, ranked: TopicRanking) -> None:
        gold = "" if ranked.no_gold else f" · {len(ranked.relevant):,} relevant"
        title = self.ranking_title(side)
        entitle(side.ranking, f"{title} · {counted(len(ranked.documents), 'document')}{gold}")

    def show_gold(self) -> None:
        """Mark the gold of the open topic, to which judgments have added."""
        for side in self.sides:
            if side.ranked is not None:
                relevant = side.topics.relevant(side.ranked.topic_id)
                side.ranked = replace(side.ranked, relevant=relevant)
                side.ranking.relevant = side.missed.relevant = relevant
                side.ranking.refresh()
                self.entitle_ranking(side, side.ranked)
                side.missed.entitle(side.ranked)

    def show_missed(self, side: RunSide, topic: str, gold: MissedGold) -> None:
        if side.ranked is None or topic != side.ranked.topic_id or side not in self.sides:
            return
        current = side.missed.document if side.in_missed or side.missed.cursor else None
        ids = [missed.document_id for missed in gold.documents]
        side.missed.offer_missed(gold.documents, ids.index(current) if current in ids else 0)
        if gold.differs:
            self.head.show_state(
                "the recipe now ranks differently than in the run: the ranks of missed gold are from the new ranking",
                holds=lambda: self.target_topic == topic,
            )
        if side is self.side and side.in_missed:
            self.show_document()

    def tell_failure(self, error: Exception, again: Callable[[], object], holds: Callable[[], bool]) -> None:
        """Show an error of a background request while it `holds`; repeat the request if the engine failed."""
        self.head.show_state(error_text(error), "$error", holds=holds)
        if isinstance(error, EngineError):
            self.set_timer(RETRY_SECONDS, again)

    @property
    def is_untouched(self) -> bool:
        is_at_first = self.start is None and self.target_topic == self.topics.topics[0] and self.is_active
        return is_at_first and not any(side.in_missed or side.rows.cursor for side in self.sides)

    # Its documents

    def watch_focused(self, focused: Widget | None) -> None:
        # Not in a message handler, because a grade key may arrive before the message about the focus.
        for side in self.sides:
            if focused in side.lists and not (side is self.side and focused is side.rows):
                self.go_into(side, focused is side.missed)
                self.show_document()

    def go_into(self, side: RunSide, in_missed: bool) -> None:
        side.in_missed = in_missed

    def cursor_moved(self, rows: RowList) -> None:
        if rows is self.topic_rows:
            topic = self.topic_rows.topics[rows.cursor]
            if topic != self.target_topic:
                self.open_topic(topic)
        elif rows is self.side.rows:
            self.show_document()

    @on(RowList.Picked)
    def _picked(self, event: RowList.Picked) -> None:
        event.stop()
        if event.rows is self.topic_rows:
            self.leave_topics()
        else:
            self.focus_rows(event.rows)

    def focus_rows(self, rows: RowList) -> None:
        for side in self.sides:
            if rows in side.lists:
                self.go_into(side, rows is side.missed)
        self.panes.focus(rows)
        self.show_document()

    def show_document(self) -> None:
        self.documents.show()
        opinion = None if self.document_id is None else self.judging.opinion(self.document_id)
        self.query_one("#grades", KeyLine).choose(opinion_action(opinion))

    # Judging

    def toggle_judging(self) -> None:
        self.judging.toggle()
        self.head.show_chips(*self.mode_chips())
        self.set_class(self.judging.is_on, "-judging")
        for rows in self.lists:
            rows.judged = self.judging.mark if self.judging.is_on else None
        self.draw_documents(None)

    def redraw(self, documents: Sequence[str] | None) -> None:
        self.draw_documents(documents)

    def draw_documents(self, documents: Sequence[str] | None) -> None:
        for rows in self.lists:
            rows.redraw_documents(documents)
        self.show_document()

    def give(self, grade: int) -> None:
        self.judging.give(grade)

    def act(self, name: str) -> None:
        if not (saves(name) and self.head.is_waiting):  # saves no grade while a requested dialog opens
            super().act(name)

    # Documents of the topic, and why they are where they are

    def next_gold(self, step: int) -> None:
        index = self.ranking.next_gold(step)
        self.focus_rows(self.ranking)
        if index is not None:
            self.ranking.move(index)
            self.show_document()
        elif step > 0 and self.missed.count:
            key = self.keys.shown("next_missed")
            self.head.tell(f"no more gold in the ranking: {key} goes to the missed gold")
        else:
            self.head.tell("no more gold in the ranking")

    def _next_missed(self) -> None:
        if not self.missed.count:
            self.head.tell("no gold of this topic is missed")
        elif self.side.in_missed:
            self.missed.move((self.missed.cursor + 1) % self.missed.count)
            self.show_document()
        else:
            self.focus_rows(self.missed)

    def _ask_document(self) -> None:

        def go(document: str | None) -> None:
            nearest = sorted(self.sides, key=lambda side: side is not self.side)
            if document and not self.go_to(document, nearest):
                self.explain(document)

        self.app.push_screen(WordsDialog("Go to the document with this id", action="go there"), go)

    def go_to(self, document: str, sides: Iterable[RunSide]) -> bool:
        """Go to a document in the first run that ranks or misses it; return whether one does."""
        for rows in (rows for side in sides for rows in side.lists):
            if document in rows.documents:
                rows.put(list(rows.documents).index(document))
                self.focus_rows(rows)
                return True
        return False

    def _why(self) -> None:
        document = self._document_here()
        if document is not None:
            self.explain(document)

    def explain(self, document: str) -> None:
        topic = self.topic_id

        def show(explained: explanation.RankExplanation) -> None:
            self.head.end_wait()
            dialog = ExplanationDialog(explained.reason, explained.sentence(self.topics.task.name))
            self.when_in_front(lambda: self.app.push_screen(dialog))

        self.head.wait(f"looking for {shortened_id(document, LONGEST_ID)} …")
        work = lambda topics: topics.why(topic, document)  # noqa: E731
        self.side.slow.ask(QuestionKind.why, work, show, self.tell_error)

    def _document_here(self) -> str | None:
        if self.document_id is None:
            self.head.tell("no document is selected", "$warning")
        return self.document_id

    def _text_here(self) -> str | None:
        document = self._document_here()
        text = None if document is None else self.topics.pages.known_text(document)
        if document is not None and text is None:
            self.head.tell("the text of this document is not available", "$warning")
        return text

    def _copy_text(self, text: str | None) -> None:
        if text is not None:
            self.app.copy_to_clipboard(visible(text))  # it may be pasted into a shell

    def _page(self) -> None:
        text = self._text_here()
        if text is not None:
            show_in_pager(self.app, f"{self.document_id}\n\n{text}\n")

    # All else

    def _to_topics(self) -> None:
        if self.focused is self.topic_rows or self.has_class("-topics"):
            self.leave_topics()
        else:
            self.add_class("-topics")
            self.panes.focus(self.topic_rows)

    def leave_topics(self) -> None:
        self.remove_class("-topics")
        self.focus_rows(self.ranking)

    def _to_filter(self) -> None:
        self.add_class("-topics")
        self.panes.focus(self.topic_rows)  # makes the line of text visible
        self.set_focus(self.filter_line)

    def leave_line(self, line: TextLine) -> None:
        line.value = ""
        self.list_topics()
        self.leave_topics()

    def _clear(self) -> None:
        self.leave_line(self.filter_line)
        self.clear_selection()

    def _toggle_maths(self) -> None:
        self.reading.notation = self.reading.notation.next
        self.topic_rows.show_in(self.reading.notation)
        self.head.tell(self.reading.notation.about)
        self.documents.forget_beginnings()
        topic = self.topics.pages.topic(self.topic_id)
        self.reading.show_topic(topic, self.figures_of(self.topic_id))
        self.draw_documents(None)

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            "next_topic": lambda: self.walk(1),
            "previous_topic": lambda: self.walk(-1),
            "order": self.next_order,
            "topics": self._to_topics,
            "open": lambda: self.leave_topics() if self.focused is self.topic_rows else None,
            "filter": self._to_filter,
            "clear": self._clear,
            "next": lambda: self.next_gold(1),
            "previous": lambda: self.next_gold(-1),
            "next_missed": self._next_missed,
            "why": self._why,
            "document": self._ask_document,
            "judge": self.toggle_judging,
            "undo": self.judging.undo,
            "redo": self.judging.redo,
            "skip": self.judging.skip,
            "cant_tell": self.judging.cant_tell,
            "note": self.judging.note,
            "markup": self._toggle_maths,
            "copy_id": lambda: self._copy_text(self._document_here()),
            "copy_text": lambda: self._copy_text(self._text_here()),
            "copy_command": lambda: self._copy_text(shlex.join([*self.command, "--topic", self.topic_id])),
            "pager": self._page,
        }
