"""The two lists of the judging screen: topics with their progress, and a topic's ranking with what was said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from searchapp.app.run_pages import RunPages
from searchapp.errors import SearchappError
from searchapp.judging.events import Action
from searchapp.judging.fold import Opinion
from searchapp.judging.judging_session import JudgingSession
from searchapp.tui.notation import Form, Notation
from searchapp.tui.rows import Part, Rows, fitted, one_line

UNJUDGED, SKIPPED, CANT_TELL, NOTED = "·", "»", "?", "✎"
"""How what was said of a document is shown, besides by its grade; none of these is grade 0."""

UNSCORED = "– "
"""What stands before a document without a score."""

_ID_CELLS = 12
_BLOCK = 1000
_IDS_FROM = 44
"""Ids are shown in a list that is at least so wide."""


class TopicRows(Rows):
    """The topics, or those that the filter leaves."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done"}

    def __init__(self, judging: JudgingSession, run_pages: RunPages) -> None:
        super().__init__(id="topics")
        self._judging = judging
        self._run_pages = run_pages
        self.notation = Notation(run_pages.task.info.markup, Form.written)
        self.current = -1
        self.places: Sequence[int] = range(len(judging.topics))

    def parts(self, place: int, width: int) -> Sequence[Part]:
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


class RankingRows(Rows):
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

    def parts(self, place: int, width: int) -> Sequence[Part]:
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

    def _mark(self, document: str) -> Part:
        return mark(self._judging.opinion(self.topic, document), self._top_grade)

    def _is_noted(self, document: str) -> bool:
        return bool(self._judging.said_in_words(self.topic, document))


def mark(opinion: Opinion | None, top_grade: int) -> Part:
    """What was said of a document, in a sign."""
    if opinion is None:
        return UNJUDGED, "rows--faint"
    if opinion.action is Action.skip:
        return SKIPPED, "rows--aside"
    if opinion.grade is None:
        return CANT_TELL, "rows--aside"
    look = "zero" if opinion.grade == 0 else "most" if opinion.grade == top_grade else "some"
    return str(opinion.grade), f"rows--{look}"
