"""The list of what an annotator has said: all of it, or what was graded, skipped, marked "can't tell" or noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical

from searchapp.app.run_pages import RunPages
from searchapp.judging.events import Action
from searchapp.judging.listing import Filter, ListedJudgment, listed
from searchapp.judging.session import Session
from searchapp.judging.words import graded
from searchapp.tui.content import Content, Plain
from searchapp.tui.drawing import Dialog
from searchapp.tui.judge.lists import CANT_TELL, NOTED, SKIPPED
from searchapp.tui.judge.snippets import Fetching, Snippets
from searchapp.tui.line import Line
from searchapp.tui.notation import AS_WRITTEN
from searchapp.tui.rows import Part, Rows, fitted, one_line

TOPIC_SHARE = 0.35
"""The share of a line that the beginning of the topic may take."""


class JudgedRows(Rows):
    """What was said of documents, one line each."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--zero", "rows--some", "rows--most", "rows--aside"}

    def __init__(self, run_pages: RunPages, snippets: Snippets, labels: Sequence[str]) -> None:
        super().__init__(id="judged")
        self._run_pages = run_pages
        self._snippets = snippets
        self._labels = labels
        self.said: Sequence[ListedJudgment] = ()

    def parts(self, place: int, width: int) -> Sequence[Part]:
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

    def _mark(self, said: ListedJudgment) -> Part:
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
        self._words = Line(lambda _words: self._choose(), lambda _words: self._filter(), hint="words")
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

    @on(Rows.Picked)
    def _picked(self, event: Rows.Picked) -> None:
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
        for one in listed(session.view, Filter(annotators=[session.author.annotator], topics=topics))
        if one.action is not Action.adjudicate
    ]
    found = {
        "all": own,
        **{graded(grade, labels): [one for one in own if one.grade == grade] for grade in range(len(labels))},
        "skipped": [one for one in own if one.action is Action.skip],
        "can't tell": [one for one in own if one.action is Action.cant_tell],
        "noted": [one for one in own if one.words],
    }
    return {name: said for name, said in found.items() if said or name == "all"}
