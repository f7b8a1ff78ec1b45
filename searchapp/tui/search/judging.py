"""Judging hits for a chosen topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from searchapp.app.inspection.live_ranking import seen_in
from searchapp.app.inspection.pages import every_topic
from searchapp.app.pool import QueuedHits, queue_hits
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.errors import SearchappError
from searchapp.judging.events import grade_label
from searchapp.judging.session import Session
from searchapp.model import Hits, Topic
from searchapp.text import counted
from searchapp.tui.kit.background import SearchRequestKind
from searchapp.tui.kit.descriptions import change_label, document_label
from searchapp.tui.kit.dialogs import Choice, Picking, WordsDialog
from searchapp.tui.kit.judging import TopicJudging
from searchapp.tui.kit.palette import Offer
from searchapp.tui.kit.widgets import one_line, shortened
from searchapp.tui.search.panes import LONGEST_ID, SearchView, Statements

NO_TOPIC = "no topic"

# Hits that are added to the judging queue by default, and at most.
QUEUED, MOST_QUEUED = 20, 1_000


class SearchJudging(TopicJudging):
    """Grades hits for the topic that the annotator chose."""

    def __init__(
        self, screen: SearchView, labels: Sequence[str], open_session: Callable[[], Session]
    ) -> None:
        super().__init__(screen, labels, open_session)
        self._search = screen
        self.topic: Topic | None = None
        # The last chosen topic.
        self._last: Topic | None = None
        # No hits of the topic have been shown yet, so grades are discarded.
        self.awaits_hits = False

    @property
    def topic_id(self) -> str | None:
        return None if self.topic is None else self.topic.id

    def redraw(self, documents: Sequence[str] | None) -> None:  # noqa: ARG002  # few lines are visible
        for loader in self._search.loaders:
            loader.rows.refresh()
        self._search.show_document()

    @property
    def mark_cells(self) -> int:
        return 0 if self.topic is None else len(str(len(self.labels) - 1))

    def statements(self, document: str) -> Statements:
        return Statements(self.topic, self.opinion(document), self.others(document), self.words(document))

    def toggle(self) -> None:
        if self.topic is None and self._last is None:
            self.choose_topic()
            return
        self.topic = self._last if self.topic is None else None
        self._screen.set_class(self.topic is not None, "-judging")
        self._search.seek(self._search.loader.query, self._search.hits.cursor)

    def choose_topic(self) -> None:
        collection = self._search.searcher.collection
        if collection is None:
            self._screen.head.tell(
                f"the topics of {self._search.searched.name} were not found: name their folder with --data",
                "$warning",
            )
            return
        self._screen.head.wait("reading the topics …")
        self._search.quick.ask(
            SearchRequestKind.topics,
            lambda _searcher: every_topic(self._search.searched, collection),
            self._offer_topics,
            self._screen.tell_error,
        )

    def _offer_topics(self, topics: Sequence[Topic]) -> None:
        self._screen.head.end_wait()
        choices = [
            Choice(NO_TOPIC),
            *(Choice(topic.id, one_line(topic.text, self._search.hits.notation)) for topic in topics),
        ]
        dialog = Picking("Judge documents for the topic", choices)
        begin = lambda index: self.begin_topic(topics[index - 1] if index else None)  # noqa: E731
        self._screen.when_in_front(lambda: self._screen.pick(dialog, begin))

    def offers(self) -> Iterator[Offer]:
        collection = self._search.searcher.collection
        if collection is None or not collection.folder.is_dir():
            return
        for topic in every_topic(self._search.searched, collection):
            words = f"{topic.id} {one_line(topic.text, self._search.hits.notation)}"
            yield Offer(words, partial(self.begin_topic, topic), "topic")

    def begin_topic(self, topic: Topic | None) -> None:
        """Judge for a topic, and search for its text literally."""
        try:
            if topic is not None:
                self.open()
        except SearchappError as error:
            self._screen.tell_error(error)
            return
        self.topic = self._last = topic
        self.awaits_hits = topic is not None
        self._screen.set_class(topic is not None, "-judging")
        if topic is None:
            self._search.seek(self._search.loader.query)
            return
        text = " ".join(topic.text.split())
        self._search.leave_for(replace(self._search.loader.query, text=text, like=None, literal=True))
        self._search.panes.focus(self._search.hits)

    def give(self, grade: int) -> None:
        session = self.session
        if session is None or self.topic is None:
            self._tell_no_topic()
            return
        result, hits = self._search.result(), self._search.hits
        if result is None:
            return
        document = result.hit.document_id
        if self._search.searched.info.topics_are_documents and document == self.topic.id:
            self._screen.head.tell("this document is the topic itself and can't be graded", "$warning")
            return
        label = change_label(grade_label(grade, self.labels), self.opinion(document), self.labels)
        outcome = session.grade([self.seen(document, seen_in(self._search.recipe), result.rank)], grade)
        self.done(outcome, f"{label}: {document_label(document, result.text, hits.notation)}")
        hits.redraw(hits.cursor)
        if hits.cursor + 1 < hits.count:
            hits.move(hits.cursor + 1)
        else:
            self._search.show_document()

    def next_ungraded(self, step: int) -> None:
        """Go to the next hit without a grade of the annotator, or with step -1 to the previous one.

        It stops at a hit that is not loaded yet.
        """
        hits = self._search.hits
        if self.topic is None:
            self._tell_no_topic()
            return
        index = hits.cursor + step
        while 0 <= index < hits.count:
            result = hits.listing.hit(index)
            if result is None or self.opinion(result.hit.document_id) is None:
                hits.move(index)
                return
            index += step
        where = "below" if step > 0 else "above"
        self._screen.head.tell(f"every hit {where} has your grade", "$warning")

    def queue(self, home: Path) -> None:
        """Ask how many of the first hits to add to the judging queue of the topic in the home directory."""
        topic, listing = self.topic, self._search.loader.listing
        if topic is None:
            self._tell_no_topic("the judging queue")
            return
        if listing is None:
            return

        def add(number: str | None) -> None:
            if not number:
                return
            if not number.isdecimal() or not 1 <= int(number) <= MOST_QUEUED:
                self._screen.head.tell(f"not a number from 1 to {MOST_QUEUED:,}: {number}", "$warning")
                return
            self._queue(home, topic, replace(listing.request, size=int(number)))

        question = (
            f"How many of the first hits are to be judged for the topic {shortened(topic.id, LONGEST_ID)}?"
        )
        dialog = WordsDialog(question, str(min(QUEUED, listing.total)), action="add them")
        self._screen.app.push_screen(dialog, add)

    def _queue(self, home: Path, topic: Topic, request: SearchRequest) -> None:
        task = self._search.searched

        def work(searcher: TaskSearcher) -> QueuedHits:
            if (collection := searcher.collection) is None:
                raise SearchappError(
                    f"the files of {task.name} were not found: name their folder with --data"
                )
            hits = searcher.ranking(request, request.size)
            is_itself = task.info.topics_are_documents
            others = Hits.of(*(hit for hit in hits if not is_itself or hit.document_id != topic.id))
            if not others:
                raise SearchappError("no hits to judge")
            return queue_hits(task, searcher.engine, collection, home, topic.id, others)

        def receive(queued: QueuedHits) -> None:
            command = f"searchapp judge {task.reference} --run {queued.path}"
            self._screen.head.tell(
                f"queued {counted(queued.new, 'new hit')} in {queued.path.name}: {command}", "$success"
            )

        self._screen.head.wait("adding to the judging queue …")
        self._search.loader.queue.ask(SearchRequestKind.queue, work, receive, self._screen.tell_error)

    def _tell_no_topic(self, what: str = "a grade") -> None:
        key = self._screen.keys.shown("judge")
        self._screen.head.tell(f"{what} needs a topic: {key} chooses one", "$warning")

    def undo(self) -> None:
        outcome = self.take_back()
        if outcome is None:
            self._screen.head.tell("no grade of this session to undo")
            return
        self.tell(outcome, f"undone: {', '.join(event.document_id for event in outcome.events)}")
        self.redraw(None)
