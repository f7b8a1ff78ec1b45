"""The adjudication screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical

from searchapp.app.inspection.pages import Pages
from searchapp.errors import SearchappError
from searchapp.judging.events import Event, Kind, grade_label
from searchapp.judging.log import Presence
from searchapp.judging.session import Adjudication, Dispute, Outcome
from searchapp.judging.view import Key, Opinion
from searchapp.text import counted
from searchapp.tui.kit import descriptions
from searchapp.tui.kit.content import Content, Notation, Plain, entitle
from searchapp.tui.kit.descriptions import (
    FAINT,
    document_label,
    grade_sign,
    has_words,
    named_document,
    opinion_label,
    with_chip,
)
from searchapp.tui.kit.judging import WorkScreen
from searchapp.tui.kit.keys import EDITING, EVERYWHERE, FILTERING, KeyMap, PaneHelp
from searchapp.tui.kit.screen import Pane
from searchapp.tui.kit.widgets import (
    LONGEST_ID,
    KeyLine,
    RowList,
    RowPart,
    TextLine,
    TextPane,
    fitted,
    one_line,
    shortened_id,
)

PANES = {
    "disputes": PaneHelp(
        "The disagreements",
        "Documents with different grades. A grade key decides, and goes to the next one.",
        (),
        ("next", "reason", "note", "undo", "filter", "jump"),
    ),
    "opinions": PaneHelp(
        "Opinions", "The grades, reasons and notes of each annotator.", (), ("zoom", "next_pane")
    ),
    "topic": PaneHelp(
        "The topic", "The topic that the document was judged for.", (), ("markup", "zoom", "next_pane")
    ),
    "document": PaneHelp(
        "The document",
        "The document whose grades disagree.",
        (),
        ("markup", "zoom", "scroll_down", "next_pane"),
    ),
    "filter": PaneHelp(
        "The filter",
        "Enter goes to the matching disagreements; escape clears the filter.",
        (FILTERING, *EDITING),
        ("jump",),
        line=True,
    ),
}


IN_LAST_LINE = ("undo", "redo", "next", "filter", "markup", "palette", "help", "quit")

OPEN = "○"

NO_DISPUTES = "No document has different grades: there is nothing to decide."

_MOST_IDS_CELLS = 26


class DisputeRows(RowList):
    """The disagreements that match the filter, with decision, spread and ids."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done", "rows--aside"}

    def __init__(self, adjudication: Adjudication, run_pages: Pages, top_grade: int) -> None:
        super().__init__(id="disputes", empty=NO_DISPUTES)
        self._adjudication = adjudication
        self._run_pages = run_pages
        self._top_grade = top_grade
        self._mark_cells = len(str(top_grade))
        self.notation = Notation(run_pages.task.info.markup)
        self.indexes: Sequence[int] = range(len(adjudication.disputes))
        self._ids_cells = 0

    def show(self, count: int, cursor: int) -> None:
        ids = (_ids(dispute, _MOST_IDS_CELLS) for dispute in self._adjudication.disputes)
        self._ids_cells = max(map(cell_len, ids), default=0)
        super().show(count, cursor)

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        dispute = self._adjudication.disputes[self.indexes[index]]
        decision = self._adjudication.decision(dispute)
        grade = ("", "") if decision is None else grade_sign(decision.grade or 0, self._top_grade)
        pointer = "▶" if index == self.cursor else " "
        spread = f"↔{dispute.spread} "
        cells = self._mark_cells + 1
        left = width - 2 - cells - len(spread)
        ids = min(self._ids_cells, left)
        words = one_line(self._run_pages.topic(dispute.topic_id).text, self.notation)
        return [
            (pointer, "rows--begun"),
            (OPEN, "rows--faint") if decision is None else ("✓", "rows--done"),
            grade,
            (" " * (cells - len(grade[0])), "rows--text"),
            (spread, "rows--aside"),
            (fitted(_ids(dispute, ids), ids), "rows--text"),
            (fitted(f"  {words}", left - ids), "rows--faint"),
        ]

    def head(self, width: int) -> Sequence[str]:  # noqa: ARG002
        return (
            fitted(" ✓", self._mark_cells + 3),
            "↔  ",
            fitted("topic · document", self._ids_cells),
            "  topic",
        )


def _ids(dispute: Dispute, cells: int) -> str:
    """Return the ids of topic and document in at most `cells` cells."""
    separator = " · "
    left = cells - len(separator)
    document = shortened_id(dispute.document_id, max(left // 2, left - cell_len(dispute.topic_id)))
    return f"{shortened_id(dispute.topic_id, left - cell_len(document))}{separator}{document}"


def opinions_page(
    opinions: Sequence[Opinion], decision: Event | None, own_words: str, labels: Sequence[str]
) -> Content:
    """Return decision and opinions with their sources."""
    parts: list[Content] = []
    if decision is not None:
        grade = decision.grade or 0
        verdict = with_chip(grade_label(grade, labels), grade, labels)
        line = Content.assemble(("✓ ", "bold $success"), verdict, f"  decided by {decision.annotator}")
        parts += [line, *_below(decision.text, decision)]
        parts.append(Content(""))
    for opinion in opinions:
        kind = (" a model ", "reverse $accent") if opinion.kind is Kind.model else ("a person", FAINT)
        verdict = with_chip(opinion_label(opinion, labels), opinion.grade, labels)
        name = (f"{opinion.annotator}  ", "bold")
        parts += [Content.assemble(name, verdict, "  ", kind), *_below(opinion.note, opinion.event)]
    if own_words:
        parts += [Content(""), Content.assemble(("✎ ", "$accent"), (own_words, "italic"))]
    return Content("\n").join(parts)


def opinions_title(opinions: Sequence[Opinion]) -> str:
    """Return the title of opinions, with the numbers of people and models, as a low pane does not show all at once."""
    models = sum(opinion.kind is Kind.model for opinion in opinions)
    people = len(opinions) - models
    of_models = f" and {counted(models, 'model')}" if models else ""
    return f"Opinions of {people} {'person' if people == 1 else 'people'}{of_models}"


def _below(words: str, event: Event) -> list[Content]:
    source = (
        f"  {event.channel.value}, {datetime.fromisoformat(event.time).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    )
    lines = [Content.assemble("  ", (words, "italic"))] if words else []
    return [*lines, Content.styled(source, FAINT)]


# Number of fetched documents below the cursor.
AHEAD = 3

# Actions of the judging screen with another meaning here: help and label.
OTHER = {
    "reason": ("Decide with a reason", "reason"),
    "clear": ("Clear the filter", ""),
    "next": ("Next undecided disagreement", "next open"),
    "previous": ("Previous undecided disagreement", ""),
    "next_topic": ("Next disagreement, from every pane", ""),
    "previous_topic": ("Previous disagreement, from every pane", ""),
    "filter": ("Filter by words of the topic, ids, or annotators", "filter"),
    "next_pane": ("Next pane: disagreements, opinions, topic, document", ""),
}

# Actions with the same meaning.
SAME = (*EVERYWHERE, "undo", "redo", "note", "guidelines", "reading", "wider", "narrower", "markup")

COLUMNS = {"disputes": "left", "opinions": "middle", "topic": "right", "document": "right"}


class AdjudicateScreen(WorkScreen):
    """The screen on which an adjudicator decides."""

    CSS_PATH = Path(__file__).with_name("adjudicate.tcss")
    AUTO_FOCUS = "#disputes"
    ABOUT = PANES

    def __init__(
        self,
        adjudication: Adjudication,
        run_pages: Pages,
        keys: KeyMap,
        title: str,
        presence: Presence | None = None,
    ) -> None:
        own, labels = keys.subset(OTHER, *SAME), run_pages.task.info.grades
        super().__init__(
            adjudication.session, run_pages, own, labels, title, COLUMNS, ("disputes",), presence
        )
        self.adjudication = adjudication
        self.run_pages = run_pages
        self._notation = Notation(run_pages.task.info.markup)
        self._shown: Key | None = None
        # `RowList.moves` when the cursor stayed on a decided document because there is no other to go to.
        self._moves_at_rest: int | None = None
        # The disagreement decided last, and `RowList.moves` after it: a note that follows belongs to it.
        self._decided: tuple[Dispute, int] | None = None

    def compose(self) -> ComposeResult:
        yield self.head
        with Horizontal(id="body"):
            with Vertical(id="left"):
                to_disputes = lambda _words: self.panes.focus(self.disputes)  # noqa: E731
                yield TextLine(to_disputes, self.filtered, hint="words or id, then ↵", id="filter")
                yield DisputeRows(self.adjudication, self.run_pages, len(self.labels) - 1)
            with Container(id="rest"):
                with Vertical(id="middle"), Pane(id="opinions"):
                    yield Plain(id="opinions-text")
                with Vertical(id="right"):
                    with Pane(id="topic"):
                        yield Plain(id="topic-text")
                    yield TextPane(id="document")
        yield KeyLine(self._grade_entries(self.labels, "note", "reason"), 2, id="grades")
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def begin(self) -> None:
        open_lines = self._open_lines()
        self.disputes.show(len(self.disputes.indexes), open_lines[0] if open_lines else 0)
        self._show()

    @property
    def disputes(self) -> DisputeRows:
        return self.query_one(DisputeRows)

    @property
    def dispute(self) -> Dispute | None:
        rows = self.disputes
        return self.adjudication.disputes[rows.indexes[rows.cursor]] if rows.count else None

    # Drawing

    def _show(self) -> None:
        total = len(self.adjudication.disputes)
        left = f" · {self.disputes.count} shown" if self.disputes.count < total else ""
        entitle(self.disputes, f"{self.adjudication.decided} of {total} decided{left}")
        dispute = self.dispute
        key = None if dispute is None else dispute.key
        changed, self._shown = key is None or key != self._shown, key
        opinions, topic = self.query_one("#opinions-text", Plain), self.query_one("#topic-text", Plain)
        document = self.query_one("#document", TextPane)
        entitle(self.query_one("#opinions"), "Opinions")
        if dispute is None:
            opinions.update("")
            topic.update("")
            document.show(Content.styled("No disagreement to decide.", "$faint"))
            for name in ("topic", "document"):
                entitle(self.query_one(f"#{name}"), name.capitalize())
            self.query_one("#grades", KeyLine).choose("")
            return
        decision = self.adjudication.decision(dispute)
        note = self.adjudication.words(dispute)
        given = self.adjudication.opinions(dispute)
        entitle(self.query_one("#opinions"), opinions_title(given))
        opinions.update(opinions_page(given, decision, note, self.labels))
        topic.update(descriptions.topic_page(self.run_pages.topic(dispute.topic_id), self._notation))
        for name, id_ in (("topic", dispute.topic_id), ("document", dispute.document_id)):
            title = f"{name.capitalize()} {shortened_id(id_, LONGEST_ID)}"
            entitle(self.query_one(f"#{name}"), title)
        for name in ("#opinions", "#topic") if changed else ():
            self.query_one(name).scroll_home(animate=False)
        document.show(self._document(dispute), changed=changed)
        self.query_one("#grades", KeyLine).choose("" if decision is None else f"grade_{decision.grade}")
        self._prefetch()

    def _document(self, dispute: Dispute) -> Content:
        try:
            page = self.run_pages.page(*dispute.key)
        except SearchappError as error:
            return Content.styled(str(error), "$error")
        return descriptions.document_page(page, (), "", self.labels, self._notation)

    def _prefetch(self) -> None:
        rows = self.disputes
        following = rows.indexes[rows.cursor + 1 : rows.cursor + 1 + AHEAD]
        keys = [self.adjudication.disputes[index].key for index in following]
        keys = [key for key in keys if not self.run_pages.has_page(*key)]

        def fetch() -> None:
            for topic, document in keys:
                self.run_pages.prepare(topic, [document])

        if keys:
            name = "fetching the next documents"
            self.run_worker(fetch, name, "pages", thread=True, exclusive=True, exit_on_error=False)

    # Navigation

    def cursor_moved(self, rows: RowList) -> None:  # noqa: ARG002  # there is one list
        self._show()

    def _go(self, line: int) -> None:
        self.disputes.put(line)
        self._show()

    def _open_lines(self) -> list[int]:
        disputes = self.adjudication.disputes
        return [
            line
            for line, index in enumerate(self.disputes.indexes)
            if self.adjudication.decision(disputes[index]) is None
        ]

    def _next_open(self, step: int = 1) -> None:
        """Go to the next undecided disagreement, or with step -1 to the previous one; wraps around."""
        cursor, lines = self.disputes.cursor, self._open_lines()[::step]
        if lines:
            self._go(next((line for line in lines if (line - cursor) * step > 0), lines[0]))
            return
        self.head.show_state(self._done_message(), "$success", holds=lambda: not self._open_lines())
        self._show()

    def _done_message(self) -> str:
        hidden = self.disputes.count < len(self.adjudication.disputes)
        return f"✓ all {'shown ' if hidden else ''}are decided"

    def _filter(self) -> None:
        self.panes.focus(self.disputes)  # makes the line visible
        self.set_focus(self.query_one("#filter"))

    def filtered(self, words: str) -> None:
        self._list(words, self.dispute)

    def _list(self, words: str, present: Dispute | None) -> None:
        wanted = words.lower().split()
        rows = self.disputes
        rows.indexes = [
            index
            for index, dispute in enumerate(self.adjudication.disputes)
            if has_words(self._text(dispute), wanted)
        ]
        index = None if present is None else self.adjudication.index_of(present.key)
        rows.show_empty(
            NO_DISPUTES if not wanted else "No disagreement has these words: esc clears the filter."
        )
        rows.show(len(rows.indexes), rows.indexes.index(index) if index in rows.indexes else rows.cursor)
        self._show()

    def _text(self, dispute: Dispute) -> str:
        topic = self.run_pages.topic(dispute.topic_id).text
        return f"{dispute.topic_id} {dispute.document_id} {' '.join(dispute.grades)} {topic}"

    def leave_line(self, line: TextLine) -> None:
        line.value = ""
        self.filtered("")
        self.panes.focus(self.disputes)

    def take_in(self) -> Sequence[Event]:
        present = self.dispute
        events = self.adjudication.refresh()
        if events:
            self._list(self.query_one("#filter", TextLine).value, present)
        return events

    # Decisions

    def give(self, grade: int, reason: str = "") -> None:
        dispute = self.dispute
        if dispute is None:
            return
        self.run_pages.require_as_ranked(dispute.document_id)
        before, label = self.adjudication.decision(dispute), grade_label(grade, self.labels)
        if self._moves_at_rest != self.disputes.moves or before is None:
            self._give(dispute, grade, reason)
        elif before.grade == grade:
            self.head.tell(f"already decided {label}: {self._done_message()}", "$warning")
        else:
            was = grade_label(before.grade or 0, self.labels)
            question = f"{self._begin_of(dispute.document_id)} is decided: {was}. Change it to {label}?"
            self.ask(question, lambda: self._give(dispute, grade, reason))

    def _give(self, dispute: Dispute, grade: int, reason: str) -> None:
        before = self.adjudication.decision(dispute)
        label = grade_label(grade, self.labels)
        if before is not None and before.grade != grade:
            label += f", was {grade_label(before.grade or 0, self.labels)}"
        outcome = self.adjudication.decide(dispute, grade, reason)
        self._done(outcome, f"decided {label}: {self._begin_of(dispute.document_id)}")
        # After a changed decision, go to the disagreement below it.
        if before is not None and self.disputes.cursor + 1 < self.disputes.count:
            self._go(self.disputes.cursor + 1)
        else:
            self._next_open()
            if self.dispute is not None and self.dispute.key == dispute.key:
                self._moves_at_rest = self.disputes.moves
        self._decided = dispute, self.disputes.moves

    def _begin_of(self, document: str) -> str:
        return document_label(document, self.run_pages.known_text(document), self._notation)

    def _reason(self) -> None:
        if self.dispute is not None:
            self.ask_grade("Which grade, with a reason?", {})

    def _note(self) -> None:
        dispute = self.dispute
        if self._decided is not None and self._decided[1] == self.disputes.moves:
            dispute = self._decided[0]
        if dispute is None:
            return

        def write(words: str) -> None:
            self._done(
                self.adjudication.note(dispute, words), f"a note: {self._begin_of(dispute.document_id)}"
            )
            self._show()

        name = named_document(dispute.document_id, None, self._begin_of(dispute.document_id))
        self.ask_note(name, self.adjudication.words(dispute), write)

    def _repeat(self, outcome: Outcome | None, action: str) -> None:
        if outcome is None:
            self.head.tell(f"nothing to {action}")
            return
        event = outcome.events[0]
        self._done(outcome, f"{action}ne: {self._begin_of(event.document_id)}")
        index = self.adjudication.index_of((event.topic_id, event.document_id))
        if index is not None and index in self.disputes.indexes:
            self.disputes.put(self.disputes.indexes.index(index))
        self._show()

    def _done(self, outcome: Outcome, label: str) -> None:
        self.control.tell(outcome, label)
        self.disputes.refresh()

    # Keys

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            "undo": lambda: self._repeat(self.adjudication.session.undo(), "undo"),
            "redo": lambda: self._repeat(self.adjudication.session.redo(), "redo"),
            "note": self._note,
            "reason": self._reason,
            "guidelines": self.show_guidelines,
            "clear": lambda: self.leave_line(self.query_one("#filter", TextLine)),
            "next": lambda: self._next_open(1),
            "previous": lambda: self._next_open(-1),
            "next_topic": lambda: self._go(self.disputes.cursor + 1),
            "previous_topic": lambda: self._go(self.disputes.cursor - 1),
            "filter": self._filter,
            "markup": self._toggle_maths,
        }

    def _toggle_maths(self) -> None:
        self._notation = self.disputes.notation = self._notation.next
        self.head.tell(self._notation.about)
        self.disputes.refresh()
        self._show()
