"""What is listed and read: topics, rankings, missed gold, and the panes with a topic and a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size

from searchapp.app.inspection.pages import Page, RunPages
from searchapp.app.inspection.topics import Missed, what_became
from searchapp.app.topic_figures import Figures
from searchapp.judging.view import Opinion
from searchapp.model import Topic
from searchapp.tasks.base import TaskInfo
from searchapp.text import counted, visible_line
from searchapp.tui.kit import pages
from searchapp.tui.kit.content import Content, Notation, Plain, entitle
from searchapp.tui.kit.screen import Pane
from searchapp.tui.kit.status import UNSCORED
from searchapp.tui.kit.widgets import RowList, RowPart, TextPane, fitted, one_line, shortened

GOLD = "●"
"""What stands before a relevant document, where grades say no more than that."""

NO_FIGURE = "  – "
ID_CELLS = 12
IDS_FROM = 40
"""Ids are cut to so many cells, and shown in a list that is at least so wide."""

WHAT_CELLS = 14
"""Of what became of a missed document."""


class TopicRows(RowList):
    """The topics, or those that a filter leaves, in an order; a subclass says what stands before the words of each."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done", "rows--lost", "rows--rank"}

    def __init__(self, pages: RunPages) -> None:
        super().__init__(id="topics")
        self._pages = pages
        self._notation = Notation(pages.task.info.markup)
        self._words: dict[str, str] = {}
        self.current = ""
        self.topics: Sequence[str] = ()

    def figures_of(self, topic: str, width: int) -> Sequence[RowPart]:
        """The figures of a topic in a list of so many cells; nothing until they are known."""
        raise NotImplementedError

    def parts(self, place: int, width: int) -> Sequence[RowPart]:
        topic = self.topics[place]
        words = self._words.get(topic)
        if words is None:
            words = self._words[topic] = one_line(self._pages.topic(topic).text, self._notation) or topic
        parts = [("▶" if topic == self.current else " ", "rows--begun"), *self.figures_of(topic, width)]
        left = width - sum(cell_len(text) for text, _look in parts)
        return [*parts, (fitted(words, left), "rows--text")]

    def mark(self, topic: str) -> None:
        """Mark the topic that is open, and put the cursor there if it is in the list."""
        old, self.current = self.current, topic
        for one in (old, topic):
            if one in self.topics:
                self.redraw(self.topics.index(one))
        if topic in self.topics:
            self.put(self.topics.index(topic))

    def show_in(self, notation: Notation) -> None:
        """Show texts in another form."""
        self._notation = notation
        self._words.clear()
        self.refresh()


class FigureRows(TopicRows):
    """The topics of a run: the figure of each, and how much of its gold is missed."""

    def __init__(self, pages: RunPages) -> None:
        super().__init__(pages)
        self.figures: Figures | None = None

    def figures_of(self, topic: str, width: int) -> Sequence[RowPart]:  # noqa: ARG002
        found = None if self.figures is None else self.figures.topics.get(topic)
        if found is None:
            return ()
        value = NO_FIGURE if found.value is None else shown_figure(found.value)
        if not found.relevant:
            return (f"{value} ", "rows--rank"), (f"{'–':>6} ", "rows--faint")
        look = "rows--lost" if found.missed else "rows--done"
        return (f"{value} ", "rows--rank"), (f"{f'{found.missed}/{found.relevant}':>6} ", look)


def shown_figure(value: float) -> str:
    """A figure in four cells.

    >>> shown_figure(0.1602), shown_figure(1.0)
    ('.160', '1.00')
    """
    return f"{value:.2f}" if value >= 0.9995 or value < 0 else f"{value:.3f}".removeprefix("0")


class DocumentRows(RowList):
    """Documents of a topic; a subclass says what stands between the mark of the gold and the text.

    `text` gives how a document begins, `judged` what was said of it in a sign, None while nobody judges.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--zero", "rows--some", "rows--most", "rows--aside", "rows--rank", "rows--gold", "rows--lost",
    }  # fmt: skip

    def __init__(
        self,
        text: Callable[[str], str | None],
        judged: Callable[[str], RowPart] | None = None,
        *,
        id: str,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._text = text
        self.judged = judged
        self.documents: Sequence[str] = ()
        self.relevant: Mapping[str, int] = {}
        self.is_graded = False
        """Whether grades say more than that a document is relevant."""
        self._id_cells = 0

    @property
    def document(self) -> str | None:
        """The document that the cursor is on."""
        return self.documents[self.cursor] if self.documents else None

    def offer(self, documents: Sequence[str], cursor: int) -> None:
        """Show documents."""
        self.documents = documents
        ids = (cell_len(visible_line(one)) for one in documents[:500])
        self._id_cells = min(ID_CELLS, max(ids, default=0))
        self.show(len(documents), cursor)

    def redraw_documents(self, documents: Iterable[str]) -> None:
        """Draw the lines of some documents again, those that are visible."""
        wanted = set(documents)
        for place in self.visible_places:
            if self.documents[place] in wanted:
                self.redraw(place)

    def _line(
        self, place: int, width: int, where: Sequence[RowPart], look: str = "rows--text"
    ) -> Sequence[RowPart]:
        document = self.documents[place]
        parts: list[RowPart] = [("▶" if place == self.cursor else " ", "rows--begun")]
        if self.judged is not None:
            sign, sign_look = self.judged(document)
            parts.append((f"{sign} ", sign_look))
        parts.append((f"{self._gold(document)} ", "rows--gold"))
        parts += where
        left = width - sum(cell_len(text) for text, _look in parts)
        if width >= IDS_FROM:
            parts.append((fitted(document, self._id_cells) + "  ", "rows--faint"))
            left -= self._id_cells + 2
        text = self._text(document)
        parts.append((fitted("…" if text is None else text or document, left), look))
        return parts

    def _gold(self, document: str) -> str:
        grade = self.relevant.get(document)
        if grade is None:
            return " "
        return str(grade) if self.is_graded and grade < 10 else GOLD


class RankingRows(DocumentRows):
    """A topic's ranking, or some documents of it, with the gold marked at its ranks."""

    scored = 0
    """How many documents have a score: the first ones."""

    _ranks: Sequence[int] = ()
    _longest = 1

    def offer_ranking(self, documents: Sequence[str], ranks: Sequence[int], cursor: int) -> None:
        """Show those documents of a ranking that are at some ranks, in their order."""
        self._ranks = ranks
        self._longest = len(str(len(documents)))
        self.offer([documents[rank - 1] for rank in ranks], cursor)

    def rank(self, place: int) -> int:
        """The rank of the document on a line."""
        return self._ranks[place]

    def parts(self, place: int, width: int) -> Sequence[RowPart]:
        unscored = self.rank(place) > self.scored
        where = f"{self.rank(place):>{self._longest}} {UNSCORED if unscored else ''}"
        is_gold = self.documents[place] in self.relevant
        look = "rows--faint" if unscored and not is_gold else "rows--gold" if is_gold else "rows--text"
        return self._line(place, width, (*self._beside(place), (where, "rows--rank")), look)

    def _beside(self, place: int) -> Sequence[RowPart]:  # noqa: ARG002  # for subclasses
        """What stands before a rank."""
        return ()

    def next_gold(self, step: int) -> int | None:
        """The place of the next relevant document, or of the one before; None if there is none."""
        places = range(self.cursor + step, len(self.documents) if step > 0 else -1, step)
        return next((place for place in places if self.documents[place] in self.relevant), None)


class MissedRows(DocumentRows):
    """The missed gold of a topic, with its rank or the reason why it has none."""

    missed: Sequence[Missed] = ()

    def offer_missed(self, missed: Sequence[Missed], cursor: int) -> None:
        """Show missed documents; the list is as high as it must be."""
        if len(missed) != len(self.missed):
            self.refresh(layout=True)
        self.missed = missed
        self.offer([one.document_id for one in missed], cursor)

    def parts(self, place: int, width: int) -> Sequence[RowPart]:
        what = what_became(self.missed[place].why)
        cells = max((len(what_became(one.why)) for one in self.missed), default=0)
        return self._line(place, width, [(f"{what:<{min(cells, WHAT_CELLS)}} ", "rows--lost")])

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self.missed) or 1

    def entitle(self, relevant: int, *, is_known: bool) -> None:
        """Say in the border how much of the gold is missed."""
        if not is_known:
            entitle(self, "Missed gold")
        elif not relevant:
            entitle(self, "Missed gold · the topic has no gold")
        elif not self.missed:
            entitle(self, f"Missed gold · none of {relevant:,}")
        else:
            entitle(self, f"Missed gold · {len(self.missed):,} of {relevant:,}")


LONGEST = 100_000
"""Characters of a text that are laid out: a longer one is cut, and all of it is a key away."""

LONGEST_ID = 24
"""In cells: a longer one is cut, so that the figures behind it stay in sight."""


class Reading(Vertical):
    """The panes with a topic and one of its documents; `whole` is how the key is called that shows all of a text."""

    def __init__(self, info: TaskInfo, whole: str) -> None:
        super().__init__(id="right")
        self._labels = info.grades
        self._whole = whole
        self._topic = Pane(id="topic")
        self._topic_text = Plain(id="topic-text")
        self._pane = TextPane(id="document")
        self._shown: object = None
        self.notation = Notation(info.markup)

    def compose(self) -> ComposeResult:
        with self._topic:
            yield self._topic_text
        yield self._pane

    def show_topic(self, topic: Topic, figures: str) -> None:
        """Show a topic from its beginning, with its figures in the border."""
        entitle(self._topic, f"Topic {shortened(topic.id, LONGEST_ID)}{figures}")
        self._topic_text.update(pages.topic_page(topic, self.notation))
        self._topic.scroll_home(animate=False)

    def entitle_topic(self, topic: str, figures: str) -> None:
        """Write a topic's figures into the border, once they are known."""
        entitle(self._topic, f"Topic {shortened(topic, LONGEST_ID)}{figures}")

    def show_none(self, why: str, look: str = "$faint", title: str = "") -> None:
        """Say why there is no document."""
        self._shown = None
        entitle(self._pane, title or "Document")
        self._pane.show(Content.styled(why, look))

    def show(
        self,
        topic: object,
        page: Page,
        title: str,
        others: Sequence[Opinion] = (),
        words: str = "",
    ) -> None:
        """Show a document, from its beginning unless it is in sight already, of the same topic."""
        key = topic, page.document_id
        changed, self._shown = key != self._shown, key
        entitle(self._pane, title)
        self._pane.show(self._content(page, others, words), changed=changed)

    def _content(self, page: Page, others: Sequence[Opinion], words: str) -> Content:
        rest = len(page.text) - LONGEST
        if rest > 0:
            spans = tuple((start, min(end, LONGEST)) for start, end in page.matches if start < LONGEST)
            page = replace(page, text=page.text[:LONGEST], matches=spans)
        text = pages.document_page(page, others, words, self._labels, self.notation)
        if rest > 0:
            note = f"… {counted(rest, 'more character')}: {self._whole} opens all of it"
            text = Content("\n\n").join([text, Content.styled(note, "$warning")])
        return text


class Kind(IntEnum):
    """What is asked in the background, the most urgent first."""

    topic = 0
    document = 1
    why = 2
    missed = 3
    texts = 4
