"""A screen on which topics are walked beside their gold: of one run, or of two side by side.

`Side` is what there is of each run; rankings, documents and the reasons for missed gold are asked for in the
background, and an answer that comes too late is dropped.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from textual import events, on
from textual.widget import Widget

from searchapp.app.inspection import explanation
from searchapp.app.inspection.pages import Page, RunPages
from searchapp.app.inspection.topics import MissedGold, RunTopics, TopicRanking
from searchapp.errors import EngineError
from searchapp.judging.events import Action, grade_label
from searchapp.judging.session import Outcome, SeenDocument, Session
from searchapp.text import counted, visible
from searchapp.tui.gold.lists import (
    LONGEST_ID,
    DocumentRows,
    Kind,
    MissedRows,
    RankingRows,
    Reading,
    TopicRows,
)
from searchapp.tui.kit.background import BackgroundQueue, Post
from searchapp.tui.kit.content import Notation, entitle
from searchapp.tui.kit.dialogs import WordsDialog
from searchapp.tui.kit.explanation import Explained
from searchapp.tui.kit.judging import TopicJudging
from searchapp.tui.kit.keys import KeyMap
from searchapp.tui.kit.screen import Banner, KeyScreen, saves, show_in_pager
from searchapp.tui.kit.status import beginning, error_text, instead_of, no_such_grade
from searchapp.tui.kit.widgets import KeyLine, RowList, TextLine, one_line, shortened


class Side:
    """A run on a screen; `post` has answers taken in there.

    `quick` is asked what is read, `slow` what the recipe of the run must rank for. `ranked` is its ranking of the topic
    in sight, `in_missed` says whether the cursor is in the missed gold.
    """

    def __init__(self, topics: RunTopics, ranking: RankingRows, missed: MissedRows, post: Post) -> None:
        self.topics = topics
        self.ranking = ranking
        self.missed = missed
        self.ranked: TopicRanking | None = None
        self.in_missed = False
        self.quick = BackgroundQueue("topics", lambda: topics, post)
        self.slow = BackgroundQueue("missed gold", lambda: topics, post)

    @property
    def rows(self) -> DocumentRows:
        """The list that the cursor is in."""
        return self.missed if self.in_missed else self.ranking

    @property
    def lists(self) -> Sequence[DocumentRows]:
        return self.ranking, self.missed

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being asked."""
        return self.quick.is_idle and self.slow.is_idle

    def close(self) -> None:
        """Take no answers any more."""
        self.quick.close()
        self.slow.close()


AT_ONCE = 200
"""Beginnings that are fetched together."""

PATIENCE_SECONDS = 0.15
"""After which the document before is no longer shown, if the next one has not come."""


Seen = tuple[str, str, str]
"""A document by the run that it is seen in, its topic and its id."""


class Documents:
    """Shows the document of the cursor's line, as soon as it is there."""

    def __init__(self, screen: GoldScreen) -> None:
        self._screen = screen
        self._page: tuple[Seen, Page] | None = None
        self._wanted: Seen | None = None
        self._beginnings: dict[str, str] = {}
        self._missing: set[str] = set()

    def show(self) -> None:
        """Show the document that the cursor is on."""
        screen, pages = self._screen, self._screen.topics.pages
        topic, document = screen.topic_id, screen.document_id
        if document is None:
            self._wanted = None
            screen.reading.show_none("" if screen.ranked is None else "No document here.")
            return
        self._wanted = wanted = pages.name, topic, document
        if self._is_here(wanted):
            self._show_page()
        elif pages.has_page(topic, document):
            self._came(wanted, pages.page(topic, document))
        else:
            screen.set_timer(PATIENCE_SECONDS, lambda: self._await(wanted))
            screen.quick.ask(
                Kind.document,
                lambda topics: topics.pages.page(topic, document),
                lambda page: self._came(wanted, page),
                lambda error: self._failed(error, wanted),
            )

    def _is_here(self, wanted: Seen) -> bool:
        return self._page is not None and self._page[0] == wanted

    def _await(self, wanted: Seen) -> None:
        """Show that a document is still to come."""
        if wanted == self._wanted and not self._is_here(wanted):
            self._screen.reading.show_none("…", title=self._title(wanted[-1]))

    def _came(self, seen: Seen, page: Page) -> None:
        if seen == self._wanted:
            self._page = seen, page
            self._show_page()
        news = self._screen.topics.pages.news
        while news:
            self._screen.head.tell(news.pop(0), "$warning")

    def _failed(self, error: Exception, wanted: Seen) -> None:
        if wanted == self._wanted:
            self._screen.reading.show_none(error_text(error), "$error", self._title(wanted[-1]))
            self._screen.tell_failure(error, lambda: self.show() if wanted == self._wanted else None)

    def _show_page(self) -> None:
        assert self._page is not None
        seen, page = self._page
        document = page.document_id
        others, words = self._screen.judging.others(document), self._screen.judging.words(document)
        self._screen.reading.show(seen, page, self._title(document), others, words)

    def _title(self, document: str) -> str:
        """A document's id, what the gold says of it, its rank and score."""
        screen, ranked = self._screen, self._screen.ranked
        title = f"Document {shortened(document, LONGEST_ID)}"
        if ranked is None:
            return title
        if document in ranked.relevant:
            graded = len(self._screen.judging.labels) > 2
            title += f" · gold {ranked.relevant[document]}" if graded else " · relevant"
        if screen.in_missed:
            why = screen.missed.missed[screen.missed.cursor].why
            return title if why is None or why.rank is None else f"{title} · rank {why.rank:,}"
        rank = screen.ranking.rank(screen.ranking.cursor)
        score = f"{ranked.scores[rank - 1]:.4f}" if rank <= ranked.scored else "no score"
        return f"{title} · rank {rank:,} · {score}"

    # Beginnings

    def prepare(self, pages: RunPages, documents: Sequence[str]) -> None:
        """Fetch how documents of a run begin, in whichever thread: to read formulas takes a while.

        Raises:
            EngineError: they can't be had.
        """
        notation = self._screen.reading.notation
        for document, text in zip(documents, pages.texts(documents), strict=True):
            if document not in self._beginnings:
                found = one_line(text, notation)
                if notation == self._screen.reading.notation:  # nobody has asked for another form meanwhile
                    self._beginnings[document] = found

    def beginning(self, document: str) -> str | None:
        """How a document begins; None while that is not known, which it will be soon."""
        found = self._beginnings.get(document)
        if found is not None:
            return found
        pages = self._screen.topics.pages
        if pages.is_fetched(document):
            text = one_line(pages.known_text(document) or "", self._screen.reading.notation)
            self._beginnings[document] = text
            return text
        if not self._missing:
            self._screen.call_later(self._fetch)
        self._missing.add(document)
        return None

    def forget_beginnings(self) -> None:
        """Make them again, as formulas are to be shown now."""
        self._beginnings.clear()

    def _fetch(self) -> None:
        wanted = list(self._missing)[:AT_ONCE]
        self._missing.clear()

        def draw() -> None:
            for rows in self._screen.lists:
                rows.refresh()

        self._screen.quick.ask(
            Kind.texts,
            lambda topics: self.prepare(topics.pages, wanted),
            lambda _none: draw(),
            lambda error: self._screen.tell_failure(error, draw),
        )


NEAR = 60
"""Documents of a ranking whose beginnings are fetched with it."""


class Judging(TopicJudging):
    """Judging beside the gold, in the log of all judging, once the annotator asks for it."""

    def __init__(
        self, screen: GoldScreen, labels: Sequence[str], open_session: Callable[[], Session]
    ) -> None:
        super().__init__(screen, labels, open_session)
        self._gold_screen = screen
        self.is_on = False

    @property
    def topic_id(self) -> str:
        return self._gold_screen.topic_id

    def redraw(self, documents: Sequence[str] | None) -> None:
        self._gold_screen.redraw(documents)

    def toggle(self) -> None:
        """Judge from now on, or no longer.

        Raises:
            SearchappError: the log can't be opened.
        """
        session = self.open()
        self.is_on = not self.is_on
        key = self._screen.keys.shown("judge")
        self._screen.head.tell(
            f"judging: a grade key grades the document, {key} ends that; who judges is {session.author.annotator}"
            if self.is_on
            else "",
            "$primary",
        )

    def give(self, grade: int) -> None:
        """Grade the document, and go on to the next line."""
        topics = self._gold_screen.topics

        def write(session: Session, seen: SeenDocument) -> Outcome:
            topics.pages.require_as_ranked(seen.document_id)
            return session.grade([seen], grade)

        self._say(grade_label(grade, self.labels), write)

    def skip(self) -> None:
        self._say("skipped", Session.skip)

    def cant_tell(self) -> None:
        self._say("can't tell", Session.cant_tell)

    def _say(self, what: str, write: Callable[[Session, SeenDocument], Outcome]) -> None:
        document = self._to_judge()
        if self.session is None or document is None:
            return
        what = instead_of(what, self.opinion(document), self.labels)
        outcome = write(self.session, self._seen_here(document))
        self.done(outcome, f"{what}: {self._name(document)}")
        self.redraw([document])
        rows = self._gold_screen.rows
        if rows.cursor + 1 < rows.count:
            rows.move(rows.cursor + 1)
            self._gold_screen.show_document()

    def note(self) -> None:
        document, session = self._to_judge(), self.session
        if session is None or document is None:
            return
        seen = self._seen_here(document)

        def write(words: str | None) -> None:
            if words:
                self.done(session.note(seen, words), f"a note: {self._name(document)}")
                self.redraw([document])

        self._screen.app.push_screen(
            WordsDialog(f"Note on {self._name(document)}", self.words(document)), write
        )

    def undo(self) -> None:
        outcome = self.take_back()
        if outcome is None:
            self._screen.head.tell("there is no judgment of this session to undo")
        else:
            self._again(outcome, "undone")

    def redo(self) -> None:
        session = self.session
        for event in () if session is None else session.undone:
            if event.action is Action.grade:
                self._gold_screen.topics.pages.require_as_ranked(event.document_id)
        outcome = None if session is None else session.redo()
        if outcome is None:
            self._screen.head.tell("there is nothing to redo")
            return
        self._undoable += 1
        self._again(outcome, "redone")

    def _again(self, outcome: Outcome, what: str) -> None:
        events = outcome.events
        here = [one.document_id for one in events if one.topic_id == self.topic_id]
        names = ", ".join(self._name(one.document_id) for one in events)
        elsewhere = "" if here else f", of topic {events[0].topic_id}"
        self.tell(outcome, f"{what}: {names}{elsewhere}")
        self.redraw(here)

    def _to_judge(self) -> str | None:
        """The document to judge; says why, if there is none."""
        screen = self._gold_screen
        document = screen.document_id
        if not self.is_on:
            screen.head.tell(f"{screen.keys.shown('judge')} begins judging", "$warning")
            return None
        if document is None:
            screen.head.tell("there is no document here", "$warning")
        elif screen.topics.task.info.topics_are_documents and document == screen.topic_id:
            screen.head.tell("this document is the topic itself, which is not graded", "$warning")
            return None
        return document

    def _seen_here(self, document: str) -> SeenDocument:
        ranked = self._gold_screen.ranked
        documents = () if ranked is None else dict.fromkeys(ranked.documents)
        rank = next((rank for rank, one in enumerate(documents, 1) if one == document), None)
        return self.seen(document, self._gold_screen.topics.pages.name, rank)

    def _name(self, document: str) -> str:
        pages = self._gold_screen.topics.pages
        return beginning(document, pages.known_text(document), Notation(pages.task.info.markup))


NEAR = 60
"""Documents of a ranking whose beginnings are fetched with it."""

RETRY_SECONDS = 2.0
"""After which an engine that failed is asked again."""


class GoldScreen(KeyScreen):
    """Topics beside their gold, in one run or several; a subclass makes `sides` and `topic_rows`, and orders topics.

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

    SAVES_GRADES = True

    sides: Sequence[Side]
    topic_rows: TopicRows

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
        self.documents = Documents(self)
        self.filter_line = TextLine(
            lambda _words: self.panes.focus(self.topic_rows),
            lambda _words: self.list_topics(),
            hint="words or id, then ↵",
            id="filter",
        )

    def begin(self) -> None:
        for side in self.sides:
            entitle(side.ranking, self.ranking_title(side))
            side.missed.entitle(0, is_known=False)
            side.ranking.is_graded = side.missed.is_graded = len(self.judging.labels) > 2
        self.list_topics()
        self.open_topic(self.sought)

    def on_unmount(self) -> None:
        for side in self.sides:
            side.close()

    def leave(self) -> None:
        self.judging.leave()

    def last_words(self) -> str | None:
        return self.judging.last_words()

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
    def quick(self) -> BackgroundQueue[RunTopics]:
        return self.side.quick

    @property
    def slow(self) -> BackgroundQueue[RunTopics]:
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

    # The list of topics

    def ordered_topics(self) -> Sequence[str]:
        """The topics in the order that was asked for."""
        raise NotImplementedError

    def list_title(self) -> str:
        """What the list is called."""
        raise NotImplementedError

    def figures_of(self, topic: str) -> str:
        """The figures of a topic, for its border; nothing until they are known."""
        raise NotImplementedError

    def next_order(self) -> None:
        """Order the topics otherwise; the one in sight stays."""
        raise NotImplementedError

    def list_topics(self) -> None:
        """List the topics that the filter leaves, in the order that was asked for."""
        sought = self.filter_line.value.lower().split()
        rows, pages = self.topic_rows, self.topics.pages
        every = self.ordered_topics()
        left = [
            one for one in every if all(word in f"{one} {pages.topic(one).text}".lower() for word in sought)
        ]
        rows.topics, rows.current = left, self.sought
        rows.show(len(left), left.index(self.sought) if self.sought in left else 0)
        self.entitle_topics(f" · {len(left):,} of {len(every):,}" if sought else "")

    def entitle_topics(self, words: str = "") -> None:
        """Say in the border what the list is."""
        entitle(self.topic_rows, f"{self.list_title()}{words}")

    def tell_progress(self, words: str) -> None:
        """Say how far the figures are."""
        self.entitle_topics(words)
        if self.ranked is not None:  # where the list is out of sight
            self.reading.entitle_topic(self.ranked.topic_id, words)

    def entitle_topic(self) -> None:
        """Write the figures of the topic in sight into its border."""
        if self.ranked is not None:
            self.reading.entitle_topic(self.ranked.topic_id, self.figures_of(self.ranked.topic_id))

    def go_to_first(self) -> None:
        """Open the first topic in the order that was asked for."""
        self.filter_line.value = ""
        every = self.ordered_topics()
        if every:
            self.sought = every[0]
            self.list_topics()
            self.open_topic(every[0])

    def walk(self, step: int) -> None:
        """Open the next topic of the list, or the one before."""
        topics = self.topic_rows.topics
        here = topics.index(self.sought) if self.sought in topics else -1 if step > 0 else len(topics)
        if 0 <= here + step < len(topics):
            self.open_topic(topics[here + step])
        else:
            self.head.tell(f"this is the {'last' if step > 0 else 'first'} topic of the list")

    # A topic

    def open_topic(self, topic: str) -> None:
        self.sought = topic
        self.topic_rows.mark(topic)
        for side in self.sides:
            self._ask_ranking(side, topic)

    def _ask_ranking(self, side: Side, topic: str) -> None:
        """Ask for a topic's ranking; an engine that failed is asked again as long as the topic is in sight."""

        def work(topics: RunTopics) -> TopicRanking:
            found = topics.ranking(topic)
            near = [*found.documents[:NEAR], *(one.document_id for one in found.missed)]
            self.documents.prepare(topics.pages, near)
            return found

        def again() -> None:
            if self.sought == topic:
                self._ask_ranking(side, topic)

        side.quick.ask(
            Kind.topic, work, partial(self._topic_came, side), lambda error: self.tell_failure(error, again)
        )

    def _topic_came(self, side: Side, found: TopicRanking) -> None:
        if found.topic_id != self.sought or side not in self.sides:
            return
        if side.ranked is None:
            self.await_paint()  # keys that were read before the first document is seen are discarded
        side.ranked = found
        side.ranking.relevant = side.missed.relevant = found.relevant
        side.ranking.scored = found.scored
        self.show_side(side)
        side.missed.offer_missed(found.missed, 0)
        side.missed.entitle(len(found.relevant), is_known=found.no_gold is None)
        topic = side.topics.pages.topic(found.topic_id)
        self.reading.show_topic(topic, self.figures_of(found.topic_id))
        if side is self.side:
            if side.in_missed and not found.missed:
                self.focus_rows(side.ranking)
            else:
                self.show_document()
        else:
            side.in_missed = False
        if any(one.why is None for one in found.missed):
            side.slow.ask(
                Kind.missed,
                lambda topics: topics.look_for_missed(found.topic_id),
                partial(self._missed_came, side, found.topic_id),
                self.tell_error,
            )

    def show_side(self, side: Side) -> None:
        """Show the ranking of the topic in sight in one of the runs."""
        found = side.ranked
        if found is not None:
            side.ranking.offer_ranking(found.documents, range(1, len(found.documents) + 1), 0)
            gold = "" if found.no_gold else f" · {len(found.relevant):,} relevant"
            title = self.ranking_title(side)
            entitle(side.ranking, f"{title} · {counted(len(found.documents), 'document')}{gold}")

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
        self.head.tell(error_text(error), "$error")
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

    def cursor_moved(self, rows: RowList) -> None:
        if rows is self.topic_rows:
            topic = self.topic_rows.topics[rows.cursor]
            if topic != self.sought:
                self.open_topic(topic)
        elif rows is self.rows:
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
        if saves(name) and self.head.is_waiting:
            return  # no grade is saved while a dialog that was asked for opens
        if name.startswith("grade_"):
            self.judging.give(int(name.removeprefix("grade_")))
        else:
            super().act(name)

    # Documents of the topic, and why they are where they are

    def next_gold(self, step: int) -> None:
        """To the next relevant document of the ranking, or to the one before."""
        place = self.ranking.next_gold(step)
        self.focus_rows(self.ranking)
        if place is not None:
            self.ranking.move(place)
            self.show_document()
        elif step > 0 and self.missed.count:
            key = self.keys.shown("next_missed")
            self.head.tell(f"no further gold in the ranking: {key} goes to what is missed")
        else:
            self.head.tell("no further gold in the ranking")

    def _next_missed(self) -> None:
        """To the missed gold, or from there to the next of it."""
        if not self.missed.count:
            self.head.tell("no gold of this topic is missed")
        elif self.in_missed:
            self.missed.move((self.missed.cursor + 1) % self.missed.count)
            self.show_document()
        else:
            self.focus_rows(self.missed)

    def _ask_document(self) -> None:
        """Ask for an id, and go there, or say why it is not there."""

        def go(document: str | None) -> None:
            nearest = sorted(self.sides, key=lambda side: side is not self.side)
            if document and not self.go_to(document, nearest):
                self.explain(document)

        self.app.push_screen(WordsDialog("Go to the document with the id"), go)

    def go_to(self, document: str, sides: Iterable[Side]) -> bool:
        """Go to a document of the first of some runs that ranks or misses it; whether one does."""
        for rows in (rows for side in sides for rows in side.lists):
            if document in rows.documents:
                rows.put(list(rows.documents).index(document))
                self.focus_rows(rows)
                return True
        return False

    def _why(self) -> None:
        """Why the document that the cursor is on is at its rank, or is missed."""
        document = self._document_here()
        if document is not None:
            self.explain(document)

    def explain(self, document: str) -> None:
        """Show why a document is at its rank, or is missed."""
        topic = self.topic_id

        def came(found: explanation.Explained) -> None:
            self.head.came()
            dialog = Explained(found.why, found.said(self.topics.task.name))
            self.when_in_front(lambda: self.app.push_screen(dialog))

        self.head.wait(f"looking for {shortened(document, LONGEST_ID)} …")
        self.slow.ask(Kind.why, lambda topics: topics.why(topic, document), came, self.tell_error)

    def _document_here(self) -> str | None:
        """The document that the cursor is on; says so if there is none."""
        if self.document_id is None:
            self.head.tell("there is no document here", "$warning")
        return self.document_id

    def _text_here(self) -> str | None:
        """The text of that document, as far as it has come already."""
        document = self._document_here()
        text = None if document is None else self.topics.pages.known_text(document)
        if document is not None and text is None:
            self.head.tell("the text of this document is not there", "$warning")
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
        """Back to the ranking, where the list of topics hides it."""
        self.remove_class("-topics")
        self.focus_rows(self.ranking)

    def _to_filter(self) -> None:
        self.add_class("-topics")
        self.panes.focus(self.topic_rows)  # with which the line for words comes into sight
        self.set_focus(self.filter_line)

    def leave_line(self, line: TextLine) -> None:
        line.value = ""
        self.list_topics()
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
        self.reading.show_topic(topic, self.figures_of(self.topic_id))
        self.show_document()

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            "next_topic": lambda: self.walk(1),
            "previous_topic": lambda: self.walk(-1),
            "order": self.next_order,
            "topics": self._to_topics,
            "open": lambda: self.leave_topics() if self.focused is self.topic_rows else None,
            "filter": self._to_filter,
            "clear": self._clear,
            "next_gold": lambda: self.next_gold(1),
            "previous_gold": lambda: self.next_gold(-1),
            "next_missed": self._next_missed,
            "why": self._why,
            "document": self._ask_document,
            "judge": self.toggle_judging,
            "undo": self.judging.undo,
            "redo": self.judging.redo,
            "skip": self.judging.skip,
            "cant_tell": self.judging.cant_tell,
            "note": self.judging.note,
            "maths": self._toggle_maths,
            "copy_id": lambda: self._copy_text(self._document_here()),
            "copy_text": lambda: self._copy_text(self._text_here()),
            "copy_command": lambda: self._copy_text(shlex.join([*self.command, "--topic", self.topic_id])),
            "pager": self._page,
        }
