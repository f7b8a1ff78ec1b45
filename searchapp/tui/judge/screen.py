"""The judging screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from searchapp.app.inspection.pages import RunPages
from searchapp.app.sessions import JudgingRequest, open_judging
from searchapp.config.settings import Settings
from searchapp.errors import SearchappError
from searchapp.judging.events import Event, grade_label
from searchapp.judging.judgments import ListedJudgment
from searchapp.judging.log import Presence
from searchapp.judging.session import JudgingSession, Outcome
from searchapp.judging.view import Opinion, has_verdict
from searchapp.progress import Notify, Progress
from searchapp.tui.judge.panes import (
    FigureLine,
    Finder,
    JudgmentList,
    Prefetcher,
    RunDocumentRows,
    RunTopicRows,
    Snippets,
    TopicAndDocument,
)
from searchapp.tui.kit.content import Content, entitle
from searchapp.tui.kit.descriptions import (
    RANKS_HIDDEN,
    change_label,
    document_label,
    feedback_lines,
    formatted_guidelines,
    judged_label,
    named_document,
    opinion_action,
    opinion_label,
)
from searchapp.tui.kit.dialogs import ReportDialog, WordsDialog
from searchapp.tui.kit.judging import WorkScreen
from searchapp.tui.kit.keys import EDITING, TOPICS_FILTER, KeyMap, PaneHelp, load
from searchapp.tui.kit.widgets import KeyLine, RowList, TextLine, chip

PANES = {
    "ranking": PaneHelp(
        "The ranking",
        "The documents of the topic in the order of the run, each with your judgment before its rank.",
        (),
        ("skip", "cant_tell", "note", "reason", "undo", "select", "next", "next_unjudged_topic",
         "search", "document", "jump"),
    ),
    "topics": PaneHelp(
        "The topics",
        "The topics of the run with their progress. Enter opens the ranking of a topic.",
        (),
        ("open", "filter", "topics", "next_unjudged_topic", "jump"),
    ),
    "topic": PaneHelp(
        "The topic",
        "The topic that documents are judged for. The arrow keys scroll it.",
        (),
        ("markup", "zoom", "next_pane"),
    ),
    "document": PaneHelp(
        "The document",
        "The full document to grade. The arrow keys scroll it; grade keys work here too.",
        (),
        ("markup", "zoom", "reading", "scroll_down", "note", "next_pane"),
    ),
    "filter": TOPICS_FILTER,
    "search": PaneHelp(
        "The search in the documents of the topic",
        "Enter goes to the first document with all the words; escape goes back.",
        EDITING,
        ("jump",),
        line=True,
    ),
}  # fmt: skip


IN_LAST_LINE = ("undo", "next", "next_unjudged_topic", "topics", "search", "judged", "help", "quit")

COLUMNS = {"topics": "left", "ranking": "middle", "topic": "right", "document": "right"}


class JudgeScreen(WorkScreen):
    """The screen on which an annotator judges a run."""

    CSS_PATH = Path(__file__).with_name("judge.tcss")
    AUTO_FOCUS = "#ranking"
    ABOUT = PANES

    def __init__(
        self,
        judging: JudgingSession,
        run_pages: RunPages,
        keys: KeyMap,
        title: str,
        start: str | None = None,
        presence: Presence | None = None,
        *,
        goal: int | None = None,
        next_topic: bool = False,
    ) -> None:
        labels = run_pages.task.info.grades
        super().__init__(
            judging.session, run_pages, keys, labels, title, COLUMNS, ("ranking", "topics"), presence
        )
        self.judging = judging
        self.run_pages = run_pages
        self.head.goal = goal
        self._goes_to_next_topic = next_topic
        self.topic_index = judging.topics.index(start) if start else judging.next_unjudged_topic() or 0
        self._snippets = Snippets(run_pages)
        self._prefetcher = Prefetcher(self, run_pages, lambda: self._reading.notation)
        self.topics = RunTopicRows(judging, run_pages)
        self.ranking = RunDocumentRows(judging, len(labels) - 1, self._snippets.of)
        self._finder = Finder(self, self.ranking, run_pages, self.head, keys, self.go)
        self._reading = TopicAndDocument(judging, run_pages)
        self._figures = FigureLine(judging)
        # `RowList.moves` when the cursor stayed on a judged document because the topic has no other to go to.
        self._moves_at_rest: int | None = None
        # The topic and document graded last, and `RowList.moves` after it: a note that follows belongs to it.
        self._graded: tuple[str, str, int] | None = None

    def compose(self) -> ComposeResult:
        yield self.head
        with Horizontal(id="body"):
            with Vertical(id="left"):
                to_topics = lambda _words: self.panes.focus(self.topics)  # noqa: E731  # the filter is active already
                yield TextLine(to_topics, self.topics.filter, hint="words or id, then ↵", id="filter")
                yield self.topics
            with Vertical(id="middle"):
                yield self.ranking
            yield self._reading
        yield TextLine(self._search, hint="search the documents of this topic: words, then ↵", id="search")
        yield self._figures
        yield KeyLine(self._grade_entries(self.labels, "skip", "cant_tell", "note", "reason"), 2, id="grades")
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def begin(self) -> None:
        entitle(self.ranking, "Ranking" if self.judging.shows_ranks else "Documents")
        if self.judging.is_blind:
            self.head.show_chips(chip("blind", "bold $primary"))
            self.head.tell("ranks, scores and other people's grades are hidden")
        elif not self.judging.shows_ranks:
            self.head.tell(RANKS_HIDDEN)
        self.topics.current = self.topic_index
        self.topics.filter("")
        self.open_topic(self.topic_index)
        self.call_after_refresh(self._figures.score_the_rest)

    @property
    def topic_id(self) -> str:
        return self.judging.topics[self.topic_index]

    @property
    def document_id(self) -> str | None:
        return self.ranking.document

    def act(self, name: str) -> None:
        super().act(name)
        self._reading.divide()  # the action may have changed which panes are shown

    # Navigation

    def open_topic(self, index: int, document: str | None = None) -> None:
        topic = self.judging.topics[index]
        try:
            order = self.judging.order(topic)
        except SearchappError as error:
            self.head.tell(str(error), "$error")
            return
        cursor = order.places.get(document) if document else self.judging.next_unjudged(topic)
        self.topic_index = index
        self._finder.forget()
        self.topics.mark_current(index)
        try:
            self._prefetcher.around(order.documents, cursor or 0)
        except SearchappError as error:
            self.head.tell(str(error), "$error")
        scored = self.run_pages.scored(topic) if self.judging.shows_ranks else None
        self.ranking.open(topic, order.documents, cursor or 0, scored)
        self._reading.show_topic(topic)
        self.show_document()
        self._figures.show(topic)
        self._fetch_judged()

    def _fetch_judged(self) -> None:
        topic = self.topic_id

        def show() -> None:
            if self.is_attached and self.topic_id == topic:
                self.show_document()

        self._prefetcher.texts(self._reading.near_duplicates.unknown(topic), show)

    def cursor_moved(self, rows: RowList) -> None:
        if rows is self.ranking:
            self.show_document()
            self.head.clear_ended()

    @on(RowList.Picked)
    def _picked(self, event: RowList.Picked) -> None:
        event.stop()
        if event.rows is self.topics:
            self._open_chosen()

    def _open_chosen(self) -> None:
        index = self.topics.chosen
        if index is not None:
            self.open_topic(index)
        self._leave_topics()

    def go(self, index: int) -> None:
        self.ranking.put(index)
        self.show_document()

    def _next(self, step: int) -> None:
        """Go to a neighbouring match of the search, or without one to a neighbouring unjudged document."""
        if self._finder.words:
            self._finder.next(step)
            return
        index = self.judging.next_unjudged(self.topic_id, self.ranking.cursor, step)
        if index is None:
            self._show_rest()
        else:
            self.go(index)

    def _next_unjudged_topic(self) -> None:
        index = self.judging.next_unjudged_topic(self.topic_index)
        if index is None:
            self._show_rest()
        else:
            self.open_topic(index)

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
        self.panes.focus(self.topics)  # makes the line visible
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
            self.topics.filter("")
            self._leave_topics()
        else:
            self.panes.focus(self.ranking)

    def _ask_document(self) -> None:
        self.app.push_screen(
            WordsDialog("Go to the document with this id", action="go there"),
            lambda document: self.jump_to(self.topic_id, document) if document else None,
        )

    def _list_judgments(self) -> None:
        def jump(judgment: ListedJudgment | None) -> None:
            if judgment is not None:
                self.jump_to(judgment.topic_id, judgment.document_id)

        topics = frozenset(self.judging.topics)
        judgments = JudgmentList(self.session, topics, self.run_pages, self._snippets, self.labels)
        self.app.push_screen(judgments, jump)

    def jump_to(self, topic: str, document: str) -> None:
        try:
            places = self.judging.order(topic).places
        except SearchappError as error:
            self.head.tell(str(error), "$error")
            return
        if document not in places:
            self.head.tell(f"this topic has no document {document}", "$error")
        elif topic != self.topic_id:
            self.open_topic(self.judging.topics.index(topic), document)
        else:
            self.go(places[document])

    def _select(self, change: Callable[[], object]) -> None:
        if self.ranking.documents:
            change()
            count = len(self.ranking.selected)
            words = f"{count} selected: a grade key grades all of them" if count else ""
            self.head.show_state(words, holds=lambda: len(self.ranking.selected) == count)

    def _clear(self) -> None:
        if self.has_class("-topics"):
            self._leave_topics()
        self.query_one("#filter", TextLine).value = ""
        self.topics.filter("")
        self._finder.forget()
        self.clear_selection()
        self.ranking.deselect()
        self.show_document()

    # Judging

    def give(self, grade: int, reason: str = "") -> None:
        indexes = self.ranking.chosen
        if not indexes:
            return
        documents = [self.ranking.documents[index] for index in indexes]
        label = grade_label(grade, self.labels)
        if len(indexes) > 1:
            already = judged_label([self.opinion(document) for document in documents], self.labels)
            question = f"Grade {len(indexes)} documents {label}?{f' {already}.' if already else ''}"
            self.ask(question, lambda: self._give(indexes, grade, reason))
        else:
            self._confirm_change(documents[0], label, lambda: self._give(indexes, grade, reason))

    def _give(self, indexes: Sequence[int], grade: int, reason: str) -> None:
        ranking = self.ranking
        documents = [ranking.documents[index] for index in indexes]
        opinions = [self.opinion(document) for document in documents]
        before = next((opinion for opinion in opinions if not has_verdict(opinion)), opinions[-1])
        label = grade_label(grade, self.labels)
        outcome = self.judging.grade(self.topic_id, documents, grade, reason)
        if len(documents) == 1:
            self._go_on(outcome, change_label(label, before, self.labels), documents[0], before)
            return
        ranking.deselect()
        ranking.put(indexes[-1])
        self._go_on(outcome, f"{len(documents)} documents {label}", None, before)

    def _skip(self) -> None:
        document = self.document_id
        if document is None:
            return
        before = self.opinion(document)

        def skip() -> None:
            outcome = self.judging.skip(self.topic_id, document)
            self._go_on(outcome, change_label("skipped", before, self.labels), document, before)

        if has_verdict(before):
            verdict = opinion_label(before, self.labels)
            self.ask(
                f"{self.begin_of(document)} is judged {verdict}. Skip it and remove that judgment?", skip
            )
        elif self._is_at_rest:
            self.head.tell("already skipped", "$warning")
            self._show_rest()
        else:
            skip()

    def _cant_tell(self, reason: str = "") -> None:
        document = self.document_id
        if document is None:
            return

        def save() -> None:
            before = self.opinion(document)
            outcome = self.judging.cant_tell(self.topic_id, document, reason)
            self._go_on(outcome, change_label("can't tell", before, self.labels), document, before)

        self._confirm_change(document, "can't tell", save)

    def _note(self) -> None:
        topic, document = self.topic_id, self.document_id
        if self._graded is not None and self._graded[2] == self.ranking.moves:
            topic, document, _moves = self._graded
        if document is None:
            return

        def write(words: str) -> None:
            self._done(self.judging.note(topic, document, words), "a note", document)
            self.show_document()

        rank = self.judging.order(topic).places[document] + 1 if self.judging.shows_ranks else None
        name = named_document(document, rank, self.begin_of(document))
        self.ask_note(name, self.judging.words(topic, document), write)

    def _reason(self) -> None:
        if self.document_id is not None:
            self.ask_grade("Which grade, with a reason?", {"cant_tell": self._cant_tell})

    def _confirm_change(self, document: str, label: str, save: Callable[[], object]) -> None:
        """Save a verdict; ask first if the cursor stayed on the document after its last one.

        An accidental extra key must not change the grade just given.
        """
        before = self.opinion(document)
        if not self._is_at_rest or not has_verdict(before):
            save()
            return
        verdict = opinion_label(before, self.labels)
        if verdict == label:
            self.head.tell(f"already judged {verdict}", "$warning")
            self._show_rest()
        else:
            question = f"{self.begin_of(document)} is judged {verdict}. Change it to {label}?"
            self.ask(question, save, others={"next_unjudged_topic": "Go to the next topic"})

    def _go_on(self, outcome: Outcome, label: str, document: str | None, before: Opinion | None) -> None:
        """Report a verdict, and go to the next unjudged document, or from a changed one to the one below.

        After the first verdict on the last document of a topic, go to the next topic if the annotator wants this.
        """
        ranking, topic = self.ranking, self.topic_id
        cursor = ranking.cursor
        if has_verdict(before) and cursor + 1 < len(ranking.documents):
            following: int | None = cursor + 1
        else:
            following = self.judging.next_unjudged(topic, cursor)
        next_topic = None
        if self._goes_to_next_topic and following is None and not has_verdict(before):
            next_topic = self.judging.next_unjudged_topic(self.topic_index)
        if next_topic is not None:
            self._done(outcome, f"{label}, topic done", document)
            self.open_topic(next_topic)
        else:
            stays = following is None or following == cursor
            self._done(outcome, label, None if stays else document)
            self.go(cursor if following is None else following)
            if stays:
                self._moves_at_rest = ranking.moves
                self._show_rest()
        self._graded = None if document is None else (topic, document, ranking.moves)
        if document is not None and not has_verdict(before):
            self._give_feedback(topic, document)

    def _give_feedback(self, topic: str, document: str) -> None:
        feedback = self.judging.feedback(topic, document)
        if feedback is not None:
            sentence, guideline = feedback_lines(feedback, self.labels)
            text = Content.styled(sentence, "bold $success" if feedback.is_right else "bold $warning")
            if guideline:
                text = Content("\n\n").join([text, formatted_guidelines(guideline)])
            self.app.push_screen(ReportDialog(self.begin_of(document), text))

    @property
    def _is_at_rest(self) -> bool:
        return self._moves_at_rest == self.ranking.moves

    def _show_rest(self) -> None:
        topic, rest = self.topic_id, self._rest_message()
        holds = lambda: self.topic_id == topic and self._rest_message() == rest  # noqa: E731
        self.head.show_state(rest, "$success", holds=holds)

    def _rest_message(self) -> str:
        if self.judging.next_unjudged_topic(self.topic_index) is None:
            return f"✓ every document of every topic is judged: {self.keys.shown('quit')} leaves"
        is_done = self.judging.next_unjudged(self.topic_id) is None
        state = "topic done" if is_done else "only skipped documents are left"
        return f"{state}: {self.keys.shown('next_unjudged_topic')} goes on"

    def _repeat(self, outcome: Outcome | None, action: str) -> None:
        if outcome is None:
            self.head.tell(f"nothing to {action}")
            return
        event, count = outcome.events[0], len(outcome.events)
        if count > 1:
            self._done(outcome, f"{action}ne: {count} documents", None)
        else:
            self._done(outcome, f"{action}ne", event.document_id)
        topic, document = event.topic_id, event.document_id
        if topic in self.judging.topics and document in self.judging.order(topic).places:
            self.jump_to(topic, document)
        else:
            self.show_document()

    def _done(self, outcome: Outcome, label: str, document: str | None) -> None:
        self.control.tell(outcome, label if document is None else f"{label}: {self.begin_of(document)}")
        self.redraw(outcome.events)

    def take_in(self) -> Sequence[Event]:
        events = self.judging.refresh()
        if events:
            self.ranking.refresh()
            self.topics.refresh()
            self.show_document()
            self._fetch_judged()
            self._figures.score_the_rest()
        return events

    # Drawing

    def redraw(self, events: Iterable[Event]) -> None:
        events = list(events)
        self.ranking.redraw_documents(
            event.document_id for event in events if event.topic_id == self.topic_id
        )
        for topic in {event.topic_id for event in events}:
            self.topics.redraw_topic(topic)
        self._figures.score_the_rest()

    def show_document(self) -> None:
        document = self.document_id
        self._reading.show_document(self.topic_id, document, self._finder.words)
        opinion = None if document is None else self.opinion(document)
        self.query_one("#grades", KeyLine).choose(opinion_action(opinion))
        if document is not None:
            self._prefetcher.ahead(self.topic_id, self.ranking)

    def opinion(self, document: str) -> Opinion | None:
        return self.judging.opinion(self.topic_id, document)

    def begin_of(self, document: str) -> str:
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
            "undo": lambda: self._repeat(self.judging.undo(), "undo"),
            "redo": lambda: self._repeat(self.judging.redo(), "redo"),
            "skip": self._skip,
            "cant_tell": self._cant_tell,
            "note": self._note,
            "reason": self._reason,
            "guidelines": self.show_guidelines,
            "select": lambda: self._select(self.ranking.toggle_selected),
            "select_down": lambda: self._select(lambda: self.ranking.extend_selection(1)),
            "select_up": lambda: self._select(lambda: self.ranking.extend_selection(-1)),
            "clear": self._clear,
            "next": lambda: self._next(1),
            "previous": lambda: self._next(-1),
            "next_topic": lambda: self.open_topic(min(self.topic_index + 1, len(self.judging.topics) - 1)),
            "previous_topic": lambda: self.open_topic(max(self.topic_index - 1, 0)),
            "next_unjudged_topic": self._next_unjudged_topic,
            "topics": self._to_topics,
            "open": lambda: self._open_chosen() if self.focused is self.topics else None,
            "filter": self._to_filter,
            "search": self._to_search,
            "next_match": lambda: self._finder.next(1),
            "previous_match": lambda: self._finder.next(-1),
            "document": self._ask_document,
            "judged": self._list_judgments,
            "markup": self._toggle_maths,
        }


@contextmanager
def open_judge_screen(
    request: JudgingRequest,
    settings: Settings,
    progress: Progress,
    warn: Notify,
    say: Notify,
    goal: int | None = None,
) -> Iterator[JudgeScreen]:
    """Open the judging screen, in any thread.

    Raises:
        as `open_judging` does.
    """
    own = load(settings.of_user, request.task.info.grades)
    with ExitStack() as stack:
        with progress.stage("loading topics and judgments"):
            opened = stack.enter_context(open_judging(request, settings, progress, warn, say))
        judging, pages, title, presence = opened
        yield JudgeScreen(
            *(judging, pages, own.keys, title, request.topic, presence),
            goal=goal or own.goal,
            next_topic=own.next_topic,
        )
