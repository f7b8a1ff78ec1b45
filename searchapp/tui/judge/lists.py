"""The lists of the judging screen: topics, ranking, what was judged; how documents begin, fetched ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen

from searchapp.app.inspection.pages import RunPages
from searchapp.errors import SearchappError
from searchapp.judging.events import Action, grade_label
from searchapp.judging.judgments import JudgmentFilter, ListedJudgment, list_judgments
from searchapp.judging.session import JudgingSession, Session
from searchapp.tui.kit.content import AS_WRITTEN, Content, Form, Notation, Plain
from searchapp.tui.kit.descriptions import CANT_TELL, NOTED, SKIPPED, UNSCORED, opinion_sign
from searchapp.tui.kit.dialogs import Dialog
from searchapp.tui.kit.widgets import RowList, RowPart, TextLine, fitted, one_line

_ID_CELLS = 12
_BLOCK = 1000
_IDS_FROM = 44
"""Ids are shown in a list that is at least so wide."""


class TopicRows(RowList):
    """The topics, or those that the filter leaves."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done"}

    def __init__(self, judging: JudgingSession, run_pages: RunPages) -> None:
        super().__init__(id="topics")
        self._judging = judging
        self._run_pages = run_pages
        self.notation = Notation(run_pages.task.info.markup, Form.written)
        self.current = -1
        self.places: Sequence[int] = range(len(judging.topics))

    def parts(self, place: int, width: int) -> Sequence[RowPart]:
        number = self.places[place]
        topic = self._judging.topics[number]
        mark, look, count = self._progress(topic)
        words = one_line(self._run_pages.topic(topic).text, self.notation) or topic
        pointer = "▶" if number == self.current else " "
        return [
            (pointer, "rows--begun"),
            (f"{mark} ", look),
            (fitted(words, width - 3 - len(count)), "rows--text"),
            (count, look),
        ]

    def redraw_topic(self, topic: str) -> None:
        """Draw the line of a topic again, if it is there."""
        if topic in self._judging.topics:
            number = self._judging.topics.index(topic)
            if number in self.places:
                self.redraw(self.places.index(number))

    def _progress(self, topic: str) -> tuple[str, str, str]:
        """How far a topic is: its mark, the look of the mark, and how many of its documents are judged."""
        try:
            judged = self._judging.judged(topic)
            if not judged:  # of which nothing needs to be read
                return "○", "rows--faint", ""
            total = self._judging.length(topic)
        except SearchappError:
            return "✗", "rows--aside", ""  # why is said when it is opened
        done = judged >= total
        return ("●" if done else "◐"), ("rows--done" if done else "rows--begun"), f" {judged}/{total}"


class RankingRows(RowList):
    """A topic's documents: what was said of each, its rank, and how it begins."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--zero", "rows--some", "rows--most", "rows--aside", "rows--selected", "rows--matching", "rows--rank",
    }  # fmt: skip

    def __init__(
        self, judging: JudgingSession, run_pages: RunPages, top_grade: int, text: Callable[[str], str | None]
    ) -> None:
        super().__init__(id="ranking")
        self._judging = judging
        self._run_pages = run_pages
        self._top_grade = top_grade
        self._mark_cells = len(str(top_grade))
        self._text = text
        self.topic = ""
        self.documents: Sequence[str] = ()
        self._id_cells = 0
        self.selected: set[int] = set()
        self.matching: frozenset[int] = frozenset()
        self._scored: int | None = None

    def open(self, topic: str, documents: Sequence[str], cursor: int, scored: int | None) -> None:
        """Show a topic's documents, of which the first ones have a score; None where that is not to be seen."""
        self.topic, self.documents, self._scored = topic, documents, scored
        self.selected.clear()
        self._id_cells = min(_ID_CELLS, max((len(document) for document in documents[:_BLOCK]), default=0))
        self.show(len(documents), cursor)

    def parts(self, place: int, width: int) -> Sequence[RowPart]:
        document = self.documents[place]
        mark, look = self._mark(document)
        digits = len(str(len(self.documents)))
        pointer = "▶" if place == self.cursor else " "
        selected = "+" if place in self.selected else " "
        parts = [
            (pointer + selected, "rows--begun"),
            (f"{mark:>{self._mark_cells}} ", look),
            (f"{place + 1:>{digits}} ", "rows--rank"),
        ]
        left = width - 4 - self._mark_cells - digits
        if width >= _IDS_FROM:
            parts.append((fitted(document, self._id_cells) + "  ", "rows--faint"))
            left -= self._id_cells + 2
        unscored = self._scored is not None and place >= self._scored
        if unscored:
            parts.append((UNSCORED, "rows--faint"))
            left -= len(UNSCORED)
        text = self._text(document)
        noted = f" {NOTED}" if self._is_noted(document) else ""
        look = "rows--matching" if place in self.matching else "rows--faint" if unscored else "rows--text"
        parts.append((fitted(document if text is None else text, left - len(noted)) + noted, look))
        return parts

    def row_class(self, place: int) -> str:
        return "rows--selected" if place in self.selected else ""

    def redraw_documents(self, documents: Iterable[str]) -> None:
        """Draw the lines of some documents again, those that are visible."""
        wanted = set(documents)
        for place in self.visible_places:
            if self.documents[place] in wanted:
                self.redraw(place)

    def _mark(self, document: str) -> RowPart:
        return opinion_sign(self._judging.opinion(self.topic, document), self._top_grade)

    def _is_noted(self, document: str) -> bool:
        return bool(self._judging.words(self.topic, document))


AHEAD = 3
"""Documents below the cursor that are fetched whole."""
BLOCK = 150
SLICE = 20
"""How many beginnings are fetched in the background, and how many at a time."""


class Snippets:
    """The beginnings of documents that are known by now."""

    def __init__(self, run_pages: RunPages) -> None:
        self._run_pages = run_pages
        self._known: dict[str, str] = {}
        self._notation = Notation(run_pages.task.info.markup, Form.written)

    def of(self, document: str) -> str | None:
        """How a document begins; None while that is not known."""
        snippet = self._known.get(document)
        if snippet is None:
            text = self._run_pages.known_text(document)
            if text is None:
                return None
            snippet = self._known[document] = one_line(text, self._notation)
        return snippet

    def show_in(self, notation: Notation) -> None:
        """Show texts in another form."""
        self._notation = notation
        self._known.clear()


class Fetching:
    """Fetches in the background what is about to be shown; the screen reports a failure."""

    def __init__(self, screen: Screen[Any], run_pages: RunPages) -> None:
        self._screen = screen
        self._run_pages = run_pages

    def around(self, documents: Sequence[str], place: int) -> None:
        """Fetch the visible beginnings first, at once.

        Raises:
            SearchappError: they can't be had.
        """
        begin = max(0, place - SLICE)
        self._run_pages.texts(documents[begin : begin + 3 * SLICE])

    def ahead(self, topic: str, rows: RankingRows) -> None:
        """Fetch what is below the cursor."""
        following = tuple(rows.documents[rows.cursor + 1 : rows.cursor + 1 + AHEAD])
        if not all(self._run_pages.has_page(topic, one) for one in following):
            self._begin(lambda: self._pages(topic, following), "fetching the next documents", "pages")
        begin = max(0, rows.cursor - rows.page)
        near = rows.documents[begin : rows.cursor + 2 * rows.page]
        if not all(self._run_pages.is_fetched(one) for one in near):
            self.beginnings(rows.documents[begin : begin + BLOCK], rows.refresh)

    def beginnings(self, documents: Sequence[str], then: Callable[[], object]) -> None:
        """Fetch the beginnings of some documents, a few at a time; `then` is called when all are there."""

        def fetch() -> None:
            for start in range(0, len(documents), SLICE):
                self._run_pages.texts(documents[start : start + SLICE])
            self._screen.app.call_from_thread(then)

        self._begin(fetch, "fetching the beginnings of documents", "rows")

    def _pages(self, topic: str, documents: Sequence[str]) -> None:
        for document in documents:  # one by one: somebody may be waiting for another one
            self._run_pages.prepare(topic, [document])

    def _begin(self, work: Callable[[], None], name: str, group: str) -> None:
        self._screen.run_worker(work, name, group, thread=True, exclusive=True, exit_on_error=False)


TOPIC_SHARE = 0.35
"""The share of a line that the beginning of the topic may take."""


class JudgedRows(RowList):
    """What was said of documents, one line each."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--zero", "rows--some", "rows--most", "rows--aside"}

    def __init__(self, run_pages: RunPages, snippets: Snippets, labels: Sequence[str]) -> None:
        super().__init__(id="judged")
        self._run_pages = run_pages
        self._snippets = snippets
        self._labels = labels
        self.said: Sequence[ListedJudgment] = ()

    def parts(self, place: int, width: int) -> Sequence[RowPart]:
        said = self.said[place]
        sign, look = self._mark(said)
        topic = one_line(self._run_pages.topic(said.topic_id).text, AS_WRITTEN) or said.topic_id
        document = self._snippets.of(said.document_id)
        words = f"  {NOTED} {one_line(said.words, AS_WRITTEN)}" if said.words else ""
        left = width - 4
        topic_cells = int(left * TOPIC_SHARE)
        left -= topic_cells
        words = fitted(words, min(cell_len(words), left // 2))
        text = said.document_id if document is None else document
        return [
            ("▶" if place == self.cursor else " ", "rows--begun"),
            (f"{sign:>2} ", look),
            (fitted(topic, topic_cells - 2) + "  ", "rows--faint"),
            (fitted(text, left - cell_len(words)), "rows--text"),
            (words, "rows--text"),
        ]

    def _mark(self, said: ListedJudgment) -> RowPart:
        signs = {Action.skip: SKIPPED, Action.cant_tell: CANT_TELL, Action.note: NOTED}
        if said.grade is None:
            return signs[said.action], "rows--aside"
        top = len(self._labels) - 1
        look = "zero" if said.grade == 0 else "most" if said.grade == top else "some"
        return str(said.grade), f"rows--{look}"


class JudgmentList(Dialog[ListedJudgment | None]):
    """Lists what an annotator has said, filtered by kind and by words; gives the one that is chosen."""

    def __init__(
        self,
        session: Session,
        topics: frozenset[str],
        run_pages: RunPages,
        snippets: Snippets,
        labels: Sequence[str],
    ) -> None:
        super().__init__()
        self._kinds = kinds(session, topics, labels)
        self._kind = next(iter(self._kinds))
        self._run_pages = run_pages
        self._words = TextLine(lambda _words: self._choose(), lambda _words: self._filter(), hint="words")
        self._rows = JudgedRows(run_pages, snippets, labels)
        self._fetching = Fetching(self, run_pages)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog judged"):
            yield Plain(id="kinds", classes="question")
            yield self._words
            yield self._rows
            yield Plain("tab graded, skipped, …    ↵ go there    esc back", classes="hint")

    def on_mount(self) -> None:
        self._filter()
        documents = list(dict.fromkeys(one.document_id for one in self._kinds[self._kind]))
        self._fetching.beginnings(documents, self._fetched)

    def take(self, event: events.Key) -> bool:
        rows = self._rows
        moves: dict[str, Callable[[], object]] = {
            "escape": lambda: self.dismiss(None),
            "enter": self._choose,
            "tab": lambda: self._turn(1),
            "shift+tab": lambda: self._turn(-1),
            "down": lambda: rows.move(rows.cursor + 1),
            "up": lambda: rows.move(rows.cursor - 1),
            "pagedown": lambda: rows.move(rows.cursor + rows.page),
            "pageup": lambda: rows.move(rows.cursor - rows.page),
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
            self.dismiss(self._rows.said[self._rows.cursor])

    def _filter(self) -> None:
        sought = self._words.value.lower().split()
        of_kind = self._kinds[self._kind]
        rows = self._rows
        rows.said = [one for one in of_kind if all(word in self._text(one) for word in sought)]
        rows.show(len(rows.said), len(rows.said) - 1)
        parts: list[str | tuple[str, str]] = []
        for name, said in self._kinds.items():
            look = "bold reverse $primary" if name == self._kind else "$faint"
            parts += [(f" {name} {len(said):,} ", look), " "]
        self.query_one("#kinds", Plain).update(Content.assemble(*parts))

    def _fetched(self) -> None:
        """The documents are there: what begins with them is shown, and their words are sought too."""
        if self.is_attached and self._words.value:
            rows = self._rows
            here = rows.said[rows.cursor] if rows.cursor < rows.count - 1 else None
            self._filter()
            if here in rows.said:  # which somebody has gone to
                rows.put(rows.said.index(here))
        self._rows.refresh()

    def _text(self, said: ListedJudgment) -> str:
        """What the words are sought in."""
        topic, document = (
            self._run_pages.topic(said.topic_id).text,
            self._run_pages.known_text(said.document_id),
        )
        return f"{said.topic_id} {topic} {said.document_id} {document or ''} {said.words}".lower()


def kinds(
    session: Session, topics: frozenset[str], labels: Sequence[str]
) -> Mapping[str, Sequence[ListedJudgment]]:
    """What an annotator says of documents of these topics, by kind; all of it first, empty kinds left out."""
    own = [
        one
        for one in list_judgments(
            session.view, JudgmentFilter(annotators=[session.author.annotator], topics=topics)
        )
        if one.action is not Action.adjudicate
    ]
    found = {
        "all": own,
        **{
            grade_label(grade, labels): [one for one in own if one.grade == grade]
            for grade in range(len(labels))
        },
        "skipped": [one for one in own if one.action is Action.skip],
        "can't tell": [one for one in own if one.action is Action.cant_tell],
        "noted": [one for one in own if one.words],
    }
    return {name: said for name, said in found.items() if said or name == "all"}
