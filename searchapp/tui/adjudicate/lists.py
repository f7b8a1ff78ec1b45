"""The list of the adjudicating screen, and what it says of each opinion."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar

from searchapp.app.pages import Pages
from searchapp.judging.disputes import Adjudication, Dispute
from searchapp.judging.events import Action, Event, Kind
from searchapp.judging.fold import Opinion
from searchapp.judging.words import graded
from searchapp.tui.content import Content
from searchapp.tui.notation import Form, Notation
from searchapp.tui.pages import FAINT
from searchapp.tui.rows import Part, Rows, fitted, one_line

OPEN = "○"

_MOST_ID_CELLS = 26


class DisputeRows(Rows):
    """The disagreements, or those that the filter leaves: whether each is decided, how far apart, and on what."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done", "rows--aside"}

    def __init__(self, adjudication: Adjudication, run_pages: Pages, mark_cells: int) -> None:
        super().__init__(id="disputes")
        self._adjudication = adjudication
        self._run_pages = run_pages
        self._mark_cells = mark_cells
        self.notation = Notation(run_pages.task.info.markup, Form.written)
        self.places: Sequence[int] = range(len(adjudication.disputes))
        self._id_cells = 0

    def show(self, count: int, cursor: int) -> None:
        longest = max((len(_ids(dispute)) for dispute in self._adjudication.disputes), default=0)
        self._id_cells = min(_MOST_ID_CELLS, longest)
        super().show(count, cursor)

    def parts(self, place: int, width: int) -> Sequence[Part]:
        dispute = self._adjudication.disputes[self.places[place]]
        decision = self._adjudication.decision(dispute)
        mark, look = (OPEN, "rows--faint") if decision is None else (f"✓{decision.grade}", "rows--done")
        pointer = "▶" if place == self.cursor else " "
        apart = f"↔{dispute.apart} "
        cells = self._mark_cells + 1
        left = width - 2 - cells - len(apart)
        ids = min(self._id_cells, left)
        words = one_line(self._run_pages.topic(dispute.topic_id).text, self.notation)
        return [
            (pointer, "rows--begun"),
            (f"{mark:<{cells}} ", look),
            (apart, "rows--aside"),
            (fitted(_ids(dispute), ids), "rows--text"),
            (fitted(f"  {words}", left - ids), "rows--faint"),
        ]


def _ids(dispute: Dispute) -> str:
    return f"{dispute.topic_id} · {dispute.document_id}"


def opinions_page(
    opinions: Sequence[Opinion], decision: Event | None, own_words: str, labels: Sequence[str]
) -> Content:
    """Who says what: name, whether a model, the grade with its meaning, why, and where it came from and when."""
    parts: list[Content] = []
    if decision is not None:
        grade = graded(decision.grade or 0, labels)
        by = f"  decided by {decision.annotator}"
        parts += [Content.assemble((f"✓ {grade}", "bold $success"), by), *_below(decision.text, decision)]
        parts.append(Content(""))
    for opinion in opinions:
        kind = (" a model ", "reverse $accent") if opinion.kind is Kind.model else ("a person", FAINT)
        said, look = _said(opinion, labels)
        name = (f"{opinion.annotator}  ", "bold")
        parts += [Content.assemble(name, (said, look), "  ", kind), *_below(opinion.note, opinion.event)]
    if own_words:
        parts += [Content(""), Content.assemble(("✎ ", "$accent"), (own_words, "italic"))]
    return Content("\n").join(parts)


def _said(opinion: Opinion, labels: Sequence[str]) -> tuple[str, str]:
    if opinion.grade is None:
        return "skipped" if opinion.action is Action.skip else "can't tell", "$warning"
    look = "$error" if opinion.grade == 0 else "bold $success"
    return graded(opinion.grade, labels), look


def _below(words: str, event: Event) -> list[Content]:
    """Why, if it was said, and where it came from and when."""
    came = f"  {event.channel.value}, {datetime.fromisoformat(event.time).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    lines = [Content.assemble("  ", (words, "italic"))] if words else []
    return [*lines, Content.styled(came, FAINT)]
