"""The panes of the judging screen: topics, ranking, topic and document, figures; the search and the
prefetching."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen

from searchapp.app.inspection.pages import RunPages
from searchapp.errors import SearchappError
from searchapp.judging.events import Action, grade_label
from searchapp.judging.judgments import JudgmentFilter, ListedJudgment, duration, list_judgments
from searchapp.judging.session import JudgingSession, NearDuplicate, NearDuplicates, Session
from searchapp.text import counted
from searchapp.tui.kit import descriptions
from searchapp.tui.kit.content import AS_WRITTEN, Content, Notation, Plain, entitle
from searchapp.tui.kit.descriptions import (
    CANT_TELL,
    NOTED,
    SKIPPED,
    UNSCORED,
    grade_sign,
    has_words,
    opinion_sign,
)
from searchapp.tui.kit.dialogs import Dialog
from searchapp.tui.kit.keys import KeyMap
from searchapp.tui.kit.screen import SessionBanner
from searchapp.tui.kit.widgets import (
    LONGEST_ID,
    RowList,
    RowPart,
    TextLine,
    TextPane,
    fitted,
    id_column,
    id_column_cells,
    one_line,
    shortened_id,
)

_MOST_ID_CELLS = 12
# Least width of a list that shows ids.
_IDS_FROM = 44


JUDGED = "judged"


class RunTopicRows(RowList):
    """The topics that match the filter."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done"}

    def __init__(self, judging: JudgingSession, run_pages: RunPages) -> None:
        super().__init__(id="topics", empty="No topic has these words: esc clears the filter.")
        self._judging = judging
        self._run_pages = run_pages
        self.notation = Notation(run_pages.task.info.markup)
        # The index of the open topic.
        self.current = -1
        # The indexes of the topics in the list.
        self.indexes: Sequence[int] = range(len(judging.topics))

    def filter(self, words: str) -> None:
        wanted = words.lower().split()
        names = self._judging.topics
        self.indexes = [
            index
            for index, topic in enumerate(names)
            if has_words(f"{topic} {self._run_pages.topic(topic).text}", wanted)
        ]
        entitle(self, "Topics" if not wanted else f"Topics · {len(self.indexes)} of {len(names)}")
        self.show(len(self.indexes), self.indexes.index(self.current) if self.current in self.indexes else 0)

    def mark_current(self, index: int) -> None:
        self.current = index
        if index in self.indexes:
            self.move(self.indexes.index(index))
        self.refresh()

    @property
    def chosen(self) -> int | None:
        return self.indexes[self.cursor] if self.count else None

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        number = self.indexes[index]
        topic = self._judging.topics[number]
        sign, look, count = self._progress(topic)
        words = one_line(self._run_pages.topic(topic).text, self.notation) or topic
        pointer = "▶" if number == self.current else " "
        return [
            (pointer, "rows--begun"),
            (f"{sign} ", look),
            (fitted(words, width - 3 - len(count)), "rows--text"),
            (count, look),
        ]

    def head(self, width: int) -> Sequence[str]:
        return fitted("   topic", width - len(JUDGED)), JUDGED

    def redraw_topic(self, topic: str) -> None:
        if topic in self._judging.topics:
            number = self._judging.topics.index(topic)
            if number in self.indexes:
                self.redraw(self.indexes.index(number))

    def _progress(self, topic: str) -> tuple[str, str, str]:
        try:
            judged = self._judging.judged(topic)
            if not judged:  # avoids reading the ranking
                return "○", "rows--faint", ""
            total = self._judging.length(topic)
        except SearchappError:
            return "✗", "rows--aside", ""  # opening the topic reports the error
        is_done = judged >= total
        return ("●" if is_done else "◐"), ("rows--done" if is_done else "rows--begun"), f" {judged}/{total}"


class RunDocumentRows(RowList):
    """A topic's documents with verdict, rank and beginning."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--aside", "rows--selected", "rows--matching", "rows--rank"}

    def __init__(
        self, judging: JudgingSession, top_grade: int, beginning: Callable[[str], str | None]
    ) -> None:
        super().__init__(id="ranking")
        self._judging = judging
        self._top_grade = top_grade
        self._mark_cells = len(str(top_grade))
        self._beginning = beginning
        self.topic = ""
        self.documents: Sequence[str] = ()
        self._id_cells = 0
        self.selected: set[int] = set()
        self.matching: frozenset[int] = frozenset()
        self._scored: int | None = None

    def open(self, topic: str, documents: Sequence[str], cursor: int, scored: int | None) -> None:
        """Show documents; the first `scored` ones have a score, None hides this."""
        self.topic, self.documents, self._scored = topic, documents, scored
        self.selected.clear()
        self.show_empty("No document to judge: the document pane says why.")
        self._id_cells = id_column_cells(documents, _MOST_ID_CELLS)
        self.show(len(documents), cursor)

    @property
    def document(self) -> str | None:
        return self.documents[self.cursor] if self.documents else None

    @property
    def chosen(self) -> list[int]:
        """The selected lines, or else the line under the cursor."""
        return sorted(self.selected) if self.selected else [self.cursor] if self.documents else []

    def toggle_selected(self) -> None:
        self.selected ^= {self.cursor}
        self.redraw(self.cursor)
        self.move(self.cursor + 1)

    def extend_selection(self, step: int) -> None:
        self.selected.add(self.cursor)
        self.move(self.cursor + step)
        self.selected.add(self.cursor)
        self.redraw(self.cursor)

    def deselect(self) -> None:
        self.selected.clear()
        self.refresh()

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        document = self.documents[index]
        sign, look = opinion_sign(self._judging.opinion(self.topic, document), self._top_grade)
        digits = len(str(len(self.documents)))
        pointer = "▶" if index == self.cursor else " "
        selected = "+" if index in self.selected else " "
        parts = [
            (pointer + selected, "rows--begun"),
            (f"{sign:>{self._mark_cells}}", look),
            (f" {index + 1:>{digits}} ", "rows--rank"),
        ]
        left = width - 4 - self._mark_cells - digits
        if width >= _IDS_FROM:
            column = id_column(document, self._id_cells)
            parts.append((column, "rows--faint"))
            left -= cell_len(column)
        is_unscored = self._scored is not None and index >= self._scored
        if is_unscored:
            parts.append((UNSCORED, "rows--faint"))
            left -= len(UNSCORED)
        text = self._beginning(document)
        noted = f" {NOTED}" if self._judging.words(self.topic, document) else ""
        look = "rows--matching" if index in self.matching else "rows--faint" if is_unscored else "rows--text"
        parts.append((fitted(document if text is None else text, left - len(noted)) + noted, look))
        return parts

    def head(self, width: int) -> Sequence[str]:
        id_ = id_column("id", self._id_cells) if width >= _IDS_FROM else ""
        digits = len(str(len(self.documents)))
        return f"{'me':>{self._mark_cells + 2}}", f" {'#':>{digits}} ", id_, "document"

    def row_class(self, index: int) -> str:
        return "rows--selected" if index in self.selected else ""

    def redraw_documents(self, documents: Iterable[str]) -> None:
        wanted = set(documents)
        for index in self.visible_rows:
            if self.documents[index] in wanted:
                self.redraw(index)


# Number of fetched documents below the cursor.
AHEAD = 3
BLOCK = 150
# Number of beginnings that are fetched in the background, and at a time.
SLICE = 20


class Snippets:
    """The beginnings of fetched documents."""

    def __init__(self, run_pages: RunPages) -> None:
        self._run_pages = run_pages
        self._known: dict[str, str] = {}
        self._notation = Notation(run_pages.task.info.markup)

    def of(self, document: str) -> str | None:
        snippet = self._known.get(document)
        if snippet is None:
            text = self._run_pages.known_text(document)
            if text is None:
                return None
            snippet = self._known[document] = one_line(text, self._notation)
        return snippet

    def show_in(self, notation: Notation) -> None:
        self._notation = notation
        self._known.clear()


class Prefetcher:
    """Fetches documents in the background, and renders the next ones in `notation`."""

    def __init__(
        self, screen: Screen[Any], run_pages: RunPages, notation: Callable[[], Notation] | None = None
    ) -> None:
        self._screen = screen
        self._run_pages = run_pages
        self._notation = notation

    def around(self, documents: Sequence[str], index: int) -> None:
        """Fetch the visible beginnings now.

        Raises:
            SearchappError: the documents cannot be read.
        """
        begin = max(0, index - SLICE)
        self._run_pages.texts(documents[begin : begin + 3 * SLICE])

    def ahead(self, topic: str, rows: RunDocumentRows) -> None:
        following = tuple(rows.documents[rows.cursor + 1 : rows.cursor + 1 + AHEAD])

        def fetch() -> None:
            for document in following:  # one by one, so that other requests do not wait for all
                self._run_pages.prepare(topic, [document])
                text = self._run_pages.known_text(document)
                if text is not None and self._notation is not None:
                    self._notation().rewritten(text)  # keeps the formulas in memory

        if not all(self._run_pages.has_page(topic, document) for document in following):
            self._start(fetch, "fetching the next documents", "pages")
        begin = max(0, rows.cursor - rows.page)
        near = rows.documents[begin : rows.cursor + 2 * rows.page]
        if not all(self._run_pages.is_fetched(document) for document in near):
            self.beginnings(rows.documents[begin : begin + BLOCK], rows.refresh)

    def beginnings(self, documents: Sequence[str], then: Callable[[], object]) -> None:

        def fetch() -> None:
            for start in range(0, len(documents), SLICE):
                self._run_pages.texts(documents[start : start + SLICE])
            self._screen.app.call_from_thread(then)

        self._start(fetch, "fetching the beginnings of documents", "rows")

    def texts(self, documents: Sequence[str], then: Callable[[], object]) -> None:
        def fetch() -> None:
            self._run_pages.texts(documents)
            self._screen.app.call_from_thread(then)

        if documents:
            self._start(fetch, "fetching judged documents", "judged")

    def _start(self, work: Callable[[], None], name: str, group: str) -> None:
        self._screen.run_worker(work, name, group, thread=True, exclusive=True, exit_on_error=False)


# The share of a line for the beginning of the topic.
TOPIC_SHARE = 0.35

_SIGNS = {Action.skip: SKIPPED, Action.cant_tell: CANT_TELL, Action.note: NOTED}


class JudgmentRows(RowList):
    """Judgments, one per line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--aside"}

    def __init__(self, run_pages: RunPages, snippets: Snippets, top_grade: int) -> None:
        super().__init__(id="judged")
        self._run_pages = run_pages
        self._snippets = snippets
        self._top_grade = top_grade
        self.judgments: Sequence[ListedJudgment] = ()

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        judgment = self.judgments[index]
        sign, look = self._mark(judgment)
        topic = one_line(self._run_pages.topic(judgment.topic_id).text, AS_WRITTEN) or judgment.topic_id
        text = self._snippets.of(judgment.document_id)
        words = f"  {NOTED} {one_line(judgment.words, AS_WRITTEN)}" if judgment.words else ""
        topic_cells = self._topic_cells(width)
        left = width - 4 - topic_cells
        words = fitted(words, min(cell_len(words), left // 2))
        return [
            ("▶" if index == self.cursor else " ", "rows--begun"),
            (f"{sign:>2}", look),
            (f" {fitted(topic, topic_cells - 2)}  ", "rows--faint"),
            (fitted(judgment.document_id if text is None else text, left - cell_len(words)), "rows--text"),
            (words, "rows--text"),
        ]

    def head(self, width: int) -> Sequence[str]:
        return " me ", fitted("topic", self._topic_cells(width)), "document"

    def _topic_cells(self, width: int) -> int:
        return int((width - 4) * TOPIC_SHARE)

    def _mark(self, judgment: ListedJudgment) -> RowPart:
        if judgment.grade is None:
            return _SIGNS[judgment.action], "rows--aside"
        return grade_sign(judgment.grade, self._top_grade)


class JudgmentList(Dialog[ListedJudgment | None]):
    """Lists an annotator's judgments; returns the chosen one."""

    def __init__(
        self,
        session: Session,
        topics: frozenset[str],
        run_pages: RunPages,
        snippets: Snippets,
        labels: Sequence[str],
    ) -> None:
        super().__init__()
        self._kinds = judgments_by_kind(session, topics, labels)
        self._kind = next(iter(self._kinds))
        self._run_pages = run_pages
        self._words = TextLine(lambda _words: self._choose(), lambda _words: self._filter(), hint="words")
        self._rows = JudgmentRows(run_pages, snippets, len(labels) - 1)
        self._prefetcher = Prefetcher(self, run_pages)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog judged"):
            yield Plain(id="kinds", classes="question")
            yield self._words
            yield self._rows
            yield Plain("tab graded, skipped, …    ↵ go there    esc back", classes="hint")

    def on_mount(self) -> None:
        self._filter()
        documents = list(dict.fromkeys(judgment.document_id for judgment in self._kinds[self._kind]))
        self._prefetcher.beginnings(documents, self._fetched)

    def take(self, event: events.Key) -> bool:
        rows = self._rows
        moves: dict[str, Callable[[], object]] = {
            "escape": lambda: self.dismiss(None),
            "enter": self._choose,
            "tab": lambda: self._turn(1),
            "shift+tab": lambda: self._turn(-1),
            **rows.moves_by_key(),
        }
        if event.key in moves:
            moves[event.key]()
        else:
            self._words.take(event)
        return True

    @on(RowList.Picked)
    def _picked(self, event: RowList.Picked) -> None:
        event.stop()
        self._choose()

    def _turn(self, step: int) -> None:
        names = list(self._kinds)
        self._kind = names[(names.index(self._kind) + step) % len(names)]
        self._filter()

    def _choose(self) -> None:
        if self._rows.count:
            self.dismiss(self._rows.judgments[self._rows.cursor])

    def _filter(self) -> None:
        words = self._words.value.lower().split()
        rows = self._rows
        rows.judgments = [
            judgment for judgment in self._kinds[self._kind] if has_words(self._text(judgment), words)
        ]
        rows.show_empty(
            "No judgment of this kind has these words."
            if words
            else "You have judged none of these topics yet: esc goes back to the documents."
        )
        rows.show(len(rows.judgments), len(rows.judgments) - 1)
        parts: list[str | tuple[str, str]] = []
        for name, judgments in self._kinds.items():
            look = "bold reverse $primary" if name == self._kind else "$faint"
            parts += [(f" {name} {len(judgments):,} ", look), " "]
        self.query_one("#kinds", Plain).update(Content.assemble(*parts))

    def _fetched(self) -> None:
        if self.is_attached and self._words.value:
            rows = self._rows
            # If the user has moved the cursor, it stays on its judgment.
            present = rows.judgments[rows.cursor] if rows.cursor < rows.count - 1 else None
            self._filter()
            if present in rows.judgments:
                rows.put(rows.judgments.index(present))
        self._rows.refresh()

    def _text(self, judgment: ListedJudgment) -> str:
        topic, document = judgment.topic_id, judgment.document_id
        topic_text, text = self._run_pages.topic(topic).text, self._run_pages.known_text(document)
        return f"{topic} {topic_text} {document} {text or ''} {judgment.words}"


def judgments_by_kind(
    session: Session, topics: frozenset[str], labels: Sequence[str]
) -> Mapping[str, Sequence[ListedJudgment]]:
    """Return an annotator's judgments by kind; the first kind is "all"."""
    wanted = JudgmentFilter(annotators=[session.author.annotator], topics=topics)
    own = [
        judgment
        for judgment in list_judgments(session.view, wanted)
        if judgment.action is not Action.adjudicate
    ]
    kinds = {"all": own}
    for grade in range(len(labels)):
        kinds[grade_label(grade, labels)] = [judgment for judgment in own if judgment.grade == grade]
    kinds["skipped"] = [judgment for judgment in own if judgment.action is Action.skip]
    kinds["can't tell"] = [judgment for judgment in own if judgment.action is Action.cant_tell]
    kinds["noted"] = [judgment for judgment in own if judgment.words]
    return {name: judgments for name, judgments in kinds.items() if judgments or name == "all"}


class Finder:
    """Searches the topic's documents for words in the background, and goes from match to match."""

    def __init__(
        self,
        screen: Screen[None],
        rows: RunDocumentRows,
        run_pages: RunPages,
        head: SessionBanner,
        keys: KeyMap,
        go: Callable[[int], object],
    ) -> None:
        # In lower case.
        self.words: tuple[str, ...] = ()
        # Steps requested during a search; None without a search.
        self._steps: list[int] | None = None
        self._screen = screen
        self._rows = rows
        self._run_pages = run_pages
        self._head = head
        self._keys = keys
        self._go = go

    def find(self, words: str) -> None:
        self.words = tuple(words.lower().split())
        if not self.words:
            self.forget()
            return
        self._steps = []
        # Not `wait`: a grade is for the document on screen, also during the search.
        self._head.show_state("searching …", holds=lambda: self._steps is not None)
        topic, documents, wanted = self._rows.topic, self._rows.documents, self.words

        def work() -> None:
            matching = self._search(documents, wanted)
            self._screen.app.call_from_thread(self._show, topic, wanted, matching)

        self._screen.run_worker(
            work, "the search", "search", thread=True, exclusive=True, exit_on_error=False
        )

    def forget(self) -> None:
        self.words = ()
        self._rows.matching = frozenset()
        if self._steps is not None:
            self._steps = None
            self._head.clear_ended()

    def next(self, step: int) -> None:
        rows = self._rows
        if self._steps is not None:
            self._steps.append(step)
            return
        if not rows.matching:
            if words := self.words:
                message = f"no document has {' and '.join(words)}"
                self._head.show_state(message, holds=lambda: self.words == words)
            else:
                self._head.tell(f"search with {self._keys.shown('search')} first")
            return
        matches = sorted(rows.matching, reverse=step < 0)
        self._go(next((index for index in matches if (index - rows.cursor) * step > 0), matches[0]))
        self._report()

    def _search(self, documents: Sequence[str], words: Sequence[str]) -> list[int]:
        texts = self._run_pages.texts(documents)
        return [
            index
            for index, (document, text) in enumerate(zip(documents, texts, strict=True))
            if has_words(f"{document} {text}", words)
        ]

    def _show(self, topic: str, words: tuple[str, ...], matching: list[int]) -> None:
        rows = self._rows
        if topic != rows.topic or words != self.words:
            return  # a later search or topic replaced this one
        steps, self._steps = self._steps or [], None
        self._head.clear_ended()
        rows.matching = frozenset(matching)
        rows.refresh()
        if rows.cursor in rows.matching:
            self._go(rows.cursor)
            self._report()
        else:
            self.next(1)
        for step in steps:
            self.next(step)

    def _report(self) -> None:
        matches = sorted(self._rows.matching)
        number = matches.index(self._rows.cursor) + 1 if self._rows.cursor in matches else 0
        keys = f"{self._keys.shown('previous_match')} {self._keys.shown('next_match')}"
        words, moves = self.words, self._rows.moves
        self._head.show_state(
            f"“{' '.join(words)}”: {number} of {counted(len(matches), 'document')} ({keys})",
            holds=lambda: self.words == words and self._rows.moves == moves,
        )


# The least share of the lines for the topic, if it needs them.
TOPIC_LINES_SHARE = 0.34


class TopicAndDocument(Vertical):
    """The panes with a topic and one of its documents.

    A topic that needs more than its share also gets the lines that the document does not need.
    """

    def __init__(self, judging: JudgingSession, run_pages: RunPages) -> None:
        super().__init__(id="right")
        self.near_duplicates = NearDuplicates(judging, run_pages.known_text)
        self._judging = judging
        self._run_pages = run_pages
        self._topic = TextPane(id="topic")
        self._document = TextPane(id="document")
        self._shown: tuple[str, str] | None = None
        self.notation = Notation(run_pages.task.info.markup)

    def compose(self) -> ComposeResult:
        yield self._topic
        yield self._document

    def on_resize(self) -> None:
        self.divide()

    def show_topic(self, topic: str) -> None:
        page = descriptions.topic_page(self._run_pages.topic(topic), self.notation)
        self._topic.show(page, reveal=descriptions.right_option(page))
        entitle(self._topic, f"Topic {shortened_id(topic, LONGEST_ID)}")

    def divide(self) -> None:
        """Divide the lines between topic and document, unless one of them is alone."""
        if self.screen.has_class("-zoom-topic") or self.screen.has_class("-zoom-document"):
            self._topic.styles.height = None
        elif self.size.height:
            share = math.ceil(self.size.height * TOPIC_LINES_SHARE)
            unused = self.size.height - self._document.needed_height
            self._topic.styles.height = min(self._topic.needed_height, max(share, unused))

    def show_document(self, topic: str, document: str | None, words: Sequence[str]) -> None:
        """Show a document with its opinions, from its beginning if it is another one."""
        pane, key = self._document, (topic, document or "")
        changed, self._shown = key != self._shown, key
        if document is None:
            entitle(pane, "Document")
            unscored = (
                "No document of this topic has a score: `--depth all` also offers documents without a score."
            )
            reason = unscored if self._run_pages.ranking(topic) else "This topic has no documents."
            pane.show(Content.styled(reason, "$faint"))
            return
        entitle(pane, self._title(topic, document))
        try:
            page = self._run_pages.page(topic, document)
        except SearchappError as error:
            pane.show(Content.styled(str(error), "$error"))
            return
        others, note = self._judging.others(topic, document), self._judging.words(topic, document)
        labels = self._run_pages.task.info.grades
        text = descriptions.document_page(page, others, note, labels, self.notation, words)
        duplicates = self.near_duplicates.of(topic, document)
        pane.show(Content("\n").join([*map(self._near_duplicate, duplicates), text]), changed=changed)
        self.divide()

    def _near_duplicate(self, duplicate: NearDuplicate) -> Content:
        text, labels = self._run_pages.known_text(duplicate.document_id), self._run_pages.task.info.grades
        words = descriptions.near_duplicate_label(duplicate, text, labels, self.notation)
        return Content.styled(f"≈ {words}", "$warning")

    def _title(self, topic: str, document: str) -> str:
        title = f"Document {shortened_id(document, LONGEST_ID)}"
        if not self._judging.shows_ranks:
            return title
        rank, score = self._judging.order(topic).ranks[document], self._run_pages.score(topic, document)
        if score is None:
            return f"{title} · rank {rank:,}"
        is_scored = rank <= self._run_pages.scored(topic)
        return f"{title} · rank {rank:,} · {f'{score:.4f}' if is_scored else 'no score'}"


TOPICS_AT_ONCE = 20
# Rankings are read in batches of TOPICS_AT_ONCE, with this pause for keys between them.
LATER_SECONDS = 0.01

BAR_CELLS = 12


class FigureLine(Horizontal):
    """Scores and progress."""

    def __init__(self, judging: JudgingSession) -> None:
        super().__init__(id="figures")
        self._judging = judging
        self._topic = ""
        self._unreadable: set[str] = set()
        self._scores = Plain(id="scores")
        self._progress = TopicProgress(judging)

    def compose(self) -> ComposeResult:
        yield self._scores
        yield self._progress

    def show(self, topic: str) -> None:
        self._topic = topic
        judging = self._judging
        if judging.shows_ranks:
            of_topic = descriptions.scores_line("this topic", judging.scores(topic))
            overall, topics = judging.mean_scores()
            of_all = descriptions.scores_line(f"{topics:,} topic{'s' * (topics != 1)}", overall)
            self._scores.update(Content("\n").join([of_topic, of_all]), layout=False)
        self._progress.show(topic)

    def score_the_rest(self) -> None:
        """Score further topics in batches, so that keys do not wait."""
        for topic in self._unscored()[:TOPICS_AT_ONCE]:
            try:
                self._judging.scores(topic)
            except SearchappError:
                self._unreadable.add(topic)  # opening the topic reports the error
        if self._topic:
            self.show(self._topic)
        if self._unscored():
            self.set_timer(LATER_SECONDS, self.score_the_rest)

    def _unscored(self) -> list[str]:
        return [topic for topic in self._judging.unscored() if topic not in self._unreadable]


class TopicProgress(Plain):
    """The judged share of a topic and the time for the rest."""

    def __init__(self, judging: JudgingSession) -> None:
        super().__init__(id="progress")
        self._judging = judging
        self._topic = ""

    def show(self, topic: str) -> None:
        self._topic = topic
        self.update(self._lines(topic), layout=False)

    def on_resize(self) -> None:
        if self._topic:
            self.show(self._topic)

    def _lines(self, topic: str) -> Content:
        total, judged = self._judging.length(topic), self._judging.judged(topic)
        share = judged / total if total else 1.0
        count = f"{judged:,}/{total:,} · {1 - share:.1%} unjudged"
        cells = max(0, min(BAR_CELLS, self.size.width - len(count) - 1))
        full = round(share * cells)
        bar: list[str | tuple[str, str]]
        bar = [("━" * full, "$success"), ("━" * (cells - full), "$line"), " "] if cells else []
        seconds = self._judging.session.pace.seconds
        left = (total - judged) * (seconds or 0)
        pace = "" if seconds is None else f"{duration(seconds)} each"
        if left:
            pace += f" · {duration(left)} left"
            pace += " here" if len(pace) + len(" here") <= self.size.width else ""
        return Content.assemble(*bar, f"{count}\n", (pace, "$faint"))
