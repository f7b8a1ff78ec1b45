"""The panes of topics beside their gold: topics, rankings, missed gold, and the text of topic and document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size

from searchapp.app.inspection.pages import Page, RunPages
from searchapp.app.inspection.topics import Missed, TopicRanking, short_status
from searchapp.judging.view import Opinion
from searchapp.model import Topic
from searchapp.tasks.base import TaskInfo
from searchapp.tui.kit import descriptions
from searchapp.tui.kit.content import Content, Notation, Plain, entitle
from searchapp.tui.kit.descriptions import UNSCORED, grade_sign
from searchapp.tui.kit.screen import Pane
from searchapp.tui.kit.widgets import (
    LONGEST_ID,
    RowList,
    RowPart,
    TextPane,
    fitted,
    id_column,
    id_column_cells,
    one_line,
    shortened_id,
)

# The chip of a relevant document, before its grade in tasks with more than two grades.
GOLD = "G"

LOADING = "Loading the ranking …"

# Longer ids are cut.
ID_CELLS = 12

# Wider lists show ids.
IDS_FROM = 40

# Width of the rank of a missed document, or the reason without one.
WHAT_CELLS = 14


class GoldTopicRows(RowList):
    """The topics that match the filter; a subclass supplies their figures."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done", "rows--lost", "rows--rank"}

    def __init__(self, pages: RunPages) -> None:
        super().__init__(id="topics", empty="No topic has these words: esc clears the filter.")
        self._pages = pages
        self._notation = Notation(pages.task.info.markup)
        self._words: dict[str, str] = {}
        # The open topic.
        self.current = ""
        self.topics: Sequence[str] = ()

    def figures_of(self, topic: str, width: int) -> Sequence[RowPart]:
        raise NotImplementedError

    def figure_heads(self, width: int) -> Sequence[str]:
        """Return the heads of the columns with figures, which begin in the line's first cell."""
        raise NotImplementedError

    def head(self, width: int) -> Sequence[str]:
        return *self.figure_heads(width), "topic"

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        topic = self.topics[index]
        if topic not in self._words:
            self._words[topic] = one_line(self._pages.topic(topic).text, self._notation) or topic
        parts = [("▶" if topic == self.current else " ", "rows--begun"), *self.figures_of(topic, width)]
        left = width - sum(cell_len(text) for text, _look in parts)
        return [*parts, (fitted(self._words[topic], left), "rows--text")]

    def mark(self, topic: str) -> None:
        before, self.current = self.current, topic
        for changed in (before, topic):
            if changed in self.topics:
                self.redraw(self.topics.index(changed))
        if topic in self.topics:
            self.put(self.topics.index(topic))

    def show_in(self, notation: Notation) -> None:
        self._notation = notation
        self._words.clear()
        self.refresh()


def shown_figure(value: float) -> str:
    """Return a figure in four cells.

    >>> shown_figure(0.1602), shown_figure(1.0)
    ('.160', '1.00')
    """
    return f"{value:.2f}" if value >= 0.9995 or value < 0 else f"{value:.3f}".removeprefix("0")


class DocumentRows(RowList):
    """Documents of a topic; a subclass supplies the text before the document."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--aside", "rows--rank", "rows--gold", "rows--lost"}

    def __init__(self, text: Callable[[str], str | None], *, id: str) -> None:  # noqa: A002
        super().__init__(id=id, empty=LOADING)
        self._text = text
        # Returns the sign of the annotator's opinion; None without judging.
        self.judged: Callable[[str], RowPart] | None = None
        self.documents: Sequence[str] = ()
        # The grades of the topic's gold.
        self.relevant: Mapping[str, int] = {}
        self.top_grade = 1
        self._id_cells = 0

    @property
    def document(self) -> str | None:
        return self.documents[self.cursor] if self.documents else None

    @property
    def is_graded(self) -> bool:
        return self.top_grade > 1

    @property
    def _gold_cells(self) -> int:
        return len(f"{GOLD}{self.top_grade}") if self.is_graded else len(GOLD)

    def offer(self, documents: Sequence[str], cursor: int) -> None:
        self.documents = documents
        self._id_cells = id_column_cells(documents, ID_CELLS)
        self.show(len(documents), cursor)

    def redraw_documents(self, documents: Iterable[str] | None) -> None:
        if documents is None:
            self.refresh()
            return
        wanted = set(documents)
        for index in self.visible_rows:
            if self.documents[index] in wanted:
                self.redraw(index)

    def _line(
        self, index: int, width: int, where: Sequence[RowPart], look: str = "rows--text"
    ) -> Sequence[RowPart]:
        document = self.documents[index]
        grade = self.relevant.get(document)
        parts: list[RowPart] = [("▶" if index == self.cursor else " ", "rows--begun")]
        if self.judged is not None:
            sign, sign_look = self.judged(document)
            parts += [(sign, sign_look), (" ", "rows--text")]
        gold = ("", "rows--text") if grade is None else self._gold_sign(grade)
        parts += [gold, (" " * (self._gold_cells + 1 - len(gold[0])), "rows--text"), *where]
        left = width - sum(cell_len(text) for text, _look in parts)
        if width >= IDS_FROM:
            column = id_column(document, self._id_cells)
            parts.append((column, "rows--faint"))
            left -= cell_len(column)
        text = self._text(document)
        return [*parts, (fitted("…" if text is None else text or document, left), look)]

    def _gold_sign(self, grade: int) -> RowPart:
        sign, look = grade_sign(grade, self.top_grade)
        return (GOLD + sign)[: self._gold_cells], look


class GoldRankingRows(DocumentRows):
    """A topic's ranking, complete or in part, with marked gold."""

    # The number of documents with a score, which come first.
    scored = 0

    _ranks: Sequence[int] = ()
    _longest = 1

    def offer_ranking(self, documents: Sequence[str], ranks: Sequence[int]) -> None:
        self.show_empty("The run has no other documents." if documents else "The run ranks no document here.")
        self._ranks = ranks
        self._longest = len(str(len(documents)))
        self.offer([documents[rank - 1] for rank in ranks], 0)

    def rank(self, index: int) -> int:
        return self._ranks[index]

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        unscored = self.rank(index) > self.scored
        where = f"{self.rank(index):>{self._longest}} {UNSCORED if unscored else ''}"
        is_gold = self.documents[index] in self.relevant
        look = "rows--gold" if is_gold else "rows--faint" if unscored else "rows--text"
        return self._line(index, width, (*self._before_rank(index), (where, "rows--rank")), look)

    def head(self, width: int) -> Sequence[str]:
        marks = "me " if self.judged is not None else " "
        rank = f"{self._head_before_rank}{'#':>{self._longest}} "
        id_ = id_column("id", self._id_cells) if width >= IDS_FROM else ""
        return marks, f"{GOLD:<{self._gold_cells + 1}}", rank, id_, "document"

    def _before_rank(self, index: int) -> Sequence[RowPart]:  # noqa: ARG002  # for subclasses
        return ()

    @property
    def _head_before_rank(self) -> str:
        return ""

    def next_gold(self, step: int) -> int | None:
        indexes = range(self.cursor + step, len(self.documents) if step > 0 else -1, step)
        return next((index for index in indexes if self.documents[index] in self.relevant), None)


class MissedRows(DocumentRows):
    """The missed gold of a topic, with its rank or the reason without one."""

    missed: Sequence[Missed] = ()

    def offer_missed(self, missed: Sequence[Missed], cursor: int) -> None:
        if len(missed) != len(self.missed):
            self.refresh(layout=True)
        self.missed = missed
        self.offer([document.document_id for document in missed], cursor)

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        status = short_status(self.missed[index].reason)
        cells = max((len(short_status(document.reason)) for document in self.missed), default=0)
        return self._line(index, width, [(f"{status:<{min(cells, WHAT_CELLS)}} ", "rows--lost")])

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self.missed) or len(self.empty_lines(width))

    def entitle(self, ranked: TopicRanking | None) -> None:
        words, empty = "", LOADING
        if ranked is not None and ranked.no_gold is not None:
            empty = f"There is no gold: {ranked.no_gold}"
        elif ranked is not None and not ranked.relevant:
            empty = "The topic has no gold."
        elif ranked is not None:
            empty = "No gold is missed."
            words = f" · {f'{len(self.missed):,}' if self.missed else 'none'} of {len(ranked.relevant):,}"
        if self.show_empty(empty):
            self.refresh(layout=True)
        entitle(self, f"Missed gold{words}")


class Reading(Vertical):
    """The panes with a topic and one of its documents."""

    def __init__(self, info: TaskInfo, pager: str) -> None:
        super().__init__(id="right")
        self._labels = info.grades
        self._pager = pager
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
        self.entitle_topic(topic.id, figures)
        self._topic_text.update(descriptions.topic_page(topic, self.notation))
        self._topic.scroll_home(animate=False)

    def entitle_topic(self, topic: str, figures: str) -> None:
        entitle(self._topic, f"Topic {shortened_id(topic, LONGEST_ID)}{figures}")

    def show_none(self, why: str, look: str = "$faint", title: str = "") -> None:
        self._shown = None
        entitle(self._pane, title or "Document")
        self._pane.show(Content.styled(why, look))

    def show(self, key: object, page: Page, title: str, others: Sequence[Opinion], words: str) -> None:
        """Show a document, from its beginning if `key` is new."""
        changed, self._shown = key != self._shown, key
        page, note = descriptions.cut_page(page, self._pager)
        text = descriptions.document_page(page, others, words, self._labels, self.notation)
        if note is not None:
            text = Content("\n\n").join([text, note])
        entitle(self._pane, title)
        self._pane.show(text, changed=changed)
