"""What is listed and read: topics, rankings, missed gold, and the panes with a topic and a document.

`TopicList` orders and filters the topics and goes from one to the next. `GoldView` is what these may ask of the
screen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import ClassVar, Protocol

from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.geometry import Size
from textual.timer import Timer

from searchapp.app.inspection.pages import Page, RunPages
from searchapp.app.inspection.topics import Missed, RunTopics, TopicRanking, what_became
from searchapp.app.topic_figures import Figures, Order
from searchapp.judging.judgments import Opinion
from searchapp.judging.session import Session
from searchapp.model import Topic
from searchapp.tasks.base import TaskInfo
from searchapp.text import counted, visible_line
from searchapp.tui.kit import pages
from searchapp.tui.kit.background import Background
from searchapp.tui.kit.content import Content, Notation, Plain, entitle
from searchapp.tui.kit.keys import KeyMap
from searchapp.tui.kit.line import Line
from searchapp.tui.kit.screen import Banner, Pane
from searchapp.tui.kit.status import UNSCORED, said_by
from searchapp.tui.kit.widgets import Part, Rows, TextPane, fitted, one_line, shortened

GOLD = "●"
"""What stands before a relevant document, where grades say no more than that."""

NO_FIGURE = "  – "
ID_CELLS = 12
IDS_FROM = 40
"""Ids are cut to so many cells, and shown in a list that is at least so wide."""

WHAT_CELLS = 14
"""Of what became of a missed document."""


class TopicRows(Rows):
    """The topics, or those that a filter leaves, in an order; a subclass says what stands before the words of each."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done", "rows--lost", "rows--rank"}

    def __init__(self, pages: RunPages) -> None:
        super().__init__(id="topics")
        self._pages = pages
        self._notation = Notation(pages.task.info.markup)
        self._words: dict[str, str] = {}
        self.current = ""
        self.topics: Sequence[str] = ()

    def figures_of(self, topic: str, width: int) -> Sequence[Part]:
        """The figures of a topic in a list of so many cells; nothing until they are known."""
        raise NotImplementedError

    def parts(self, place: int, width: int) -> Sequence[Part]:
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

    def figures_of(self, topic: str, width: int) -> Sequence[Part]:  # noqa: ARG002
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


class DocumentRows(Rows):
    """Documents of a topic; a subclass says what stands between the mark of the gold and the text.

    `text` gives how a document begins, `judged` what was said of it in a sign, None while nobody judges.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--zero", "rows--some", "rows--most", "rows--aside", "rows--rank", "rows--gold", "rows--lost",
    }  # fmt: skip

    def __init__(
        self,
        text: Callable[[str], str | None],
        judged: Callable[[str], Part] | None = None,
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
        self, place: int, width: int, where: Sequence[Part], look: str = "rows--text"
    ) -> Sequence[Part]:
        document = self.documents[place]
        parts: list[Part] = [("▶" if place == self.cursor else " ", "rows--begun")]
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

    def parts(self, place: int, width: int) -> Sequence[Part]:
        unscored = self.rank(place) > self.scored
        where = f"{self.rank(place):>{self._longest}} {UNSCORED if unscored else ''}"
        is_gold = self.documents[place] in self.relevant
        look = "rows--faint" if unscored and not is_gold else "rows--gold" if is_gold else "rows--text"
        return self._line(place, width, (*self._beside(place), (where, "rows--rank")), look)

    def _beside(self, place: int) -> Sequence[Part]:  # noqa: ARG002  # for subclasses
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

    def parts(self, place: int, width: int) -> Sequence[Part]:
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
        match = "bold $match underline" if os.environ.get("NO_COLOR") else "bold $match"
        rest = len(page.text) - LONGEST
        if rest > 0:
            spans = tuple((start, min(end, LONGEST)) for start, end in page.matches if start < LONGEST)
            page = replace(page, text=page.text[:LONGEST], matches=spans)
        text = pages.document_page(page, others, words, self._labels, self.notation, match, ())
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


@dataclass(frozen=True)
class Opened:
    """What the screen is opened with.

    `session` opens that of whoever judges. `command` is how the program was called, up to the topic. `start` is the
    topic to begin with.
    """

    topics: RunTopics
    title: str
    session: Callable[[], Session]
    command: Sequence[str]
    start: str | None = None
    order: Order = Order.file
    failing: bool = False


class GoldView(Protocol):
    """A screen with the rankings of a topic beside its gold, as far as its parts ask it.

    Of the runs on it `topics` is the one in sight, the one whose lists the cursor is in; its lists are `ranking` and
    `missed`, `lists` are those of all runs. `quick` is asked what is read, `slow` what its recipe must rank for.
    `ranked` is its ranking of the topic in sight; `in_missed` says whether the document that is shown is that of the
    missed gold's list. `command` is how the program was called, up to the topic.
    """

    keys: KeyMap
    reading: Reading
    sought: str
    """The topic that is to be in sight."""

    @property
    def topics(self) -> RunTopics: ...
    @property
    def command(self) -> Sequence[str]: ...
    @property
    def quick(self) -> Background[RunTopics]: ...
    @property
    def slow(self) -> Background[RunTopics]: ...
    @property
    def ranking(self) -> RankingRows: ...
    @property
    def missed(self) -> MissedRows: ...
    @property
    def lists(self) -> Sequence[DocumentRows]: ...
    @property
    def ranked(self) -> TopicRanking | None: ...
    @property
    def in_missed(self) -> bool: ...
    @property
    def topic_rows(self) -> TopicRows: ...
    @property
    def filter_line(self) -> Line: ...
    @property
    def app(self) -> App[None]: ...
    def when_in_front(self, do: Callable[[], object]) -> None:
        """Do something now, or as soon as nothing stands on the screen any more."""

    def go_back(self, message: str | None = None) -> None: ...
    @property
    def head(self) -> Banner: ...
    @property
    def topic_id(self) -> str:
        """The topic that is in sight, or the one that is to be."""

    @property
    def document_id(self) -> str | None:
        """The document that the cursor is on."""

    @property
    def rows(self) -> DocumentRows:
        """The list whose document is shown."""

    def open_topic(self, topic: str) -> None:
        """Show a topic, as soon as its rankings are there."""

    def focus_rows(self, rows: Rows) -> None:
        """Give a list the focus; of a list of documents that under the cursor is shown."""

    def show_document(self) -> None:
        """Show the document that the cursor is on, as soon as it is there."""

    def redraw(self, documents: Iterable[str] | None) -> None:
        """Draw again what was said of some documents, or of all."""

    def tell_failure(self, error: Exception, again: Callable[[], object]) -> None:
        """Say that something failed; an engine that does not answer is asked again after a while."""

    def set_timer(self, delay: float, callback: Callable[[], object] | None = None) -> Timer: ...
    def set_interval(self, interval: float, callback: Callable[[], object] | None = None) -> Timer: ...
    def call_later(self, callback: Callable[[], object]) -> bool: ...


class TopicsView(GoldView, Protocol):
    """The screen that somebody walks the topics of one run on."""

    @property
    def is_untouched(self) -> bool:
        """Whether nobody has gone anywhere, nor asked for a topic."""

    @property
    def figures(self) -> Figures | None:
        """The figures of the topics, once they are known."""

    def take_figures(self, figures: Figures) -> None:
        """Let the figures be known."""

    def show_ranking(self) -> None:
        """Show those documents of the ranking that are asked for."""


ORDERS = {Order.file: "as in the run", Order.worst: "worst first", Order.missed: "most missed first"}


class TopicList:
    """Lists topics, and goes from one to the next; a subclass has their order and their figures."""

    def __init__(self, screen: GoldView) -> None:
        self._gold_view = screen

    # For subclasses

    def every(self) -> Sequence[str]:
        """The topics in the order that was asked for."""
        raise NotImplementedError

    def title(self) -> str:
        """What the list is called."""
        raise NotImplementedError

    def of_topic(self, topic: str) -> str:
        """The figures of a topic, for its border; nothing until they are known."""
        raise NotImplementedError

    def next_order(self) -> None:
        """Order the topics otherwise; the one in sight stays."""
        raise NotImplementedError

    # For the screen

    def list_topics(self) -> None:
        """List the topics that the filter leaves, in the order that was asked for."""
        screen = self._gold_view
        sought = screen.filter_line.value.lower().split()
        rows, pages = screen.topic_rows, screen.topics.pages
        every = self.every()
        left = [
            one for one in every if all(word in f"{one} {pages.topic(one).text}".lower() for word in sought)
        ]
        rows.topics, rows.current = left, screen.sought
        rows.show(len(left), left.index(screen.sought) if screen.sought in left else 0)
        self.entitle(f" · {len(left):,} of {len(every):,}" if sought else "")

    def entitle(self, words: str = "") -> None:
        """Say in the border what the list is."""
        entitle(self._gold_view.topic_rows, f"{self.title()}{words}")

    def so_far(self, words: str) -> None:
        """Say how far the figures are."""
        self.entitle(words)
        ranked = self._gold_view.ranked
        if ranked is not None:  # where the list is out of sight
            self._gold_view.reading.entitle_topic(ranked.topic_id, words)

    def entitle_topic(self) -> None:
        """Write the figures of the topic in sight into its border."""
        ranked = self._gold_view.ranked
        if ranked is not None:
            self._gold_view.reading.entitle_topic(ranked.topic_id, self.of_topic(ranked.topic_id))

    def go_to_first(self) -> None:
        """Open the first topic in the order that was asked for."""
        screen = self._gold_view
        screen.filter_line.value = ""
        every = self.every()
        if every:
            screen.sought = every[0]
            self.list_topics()
            screen.open_topic(every[0])

    def walk(self, step: int) -> None:
        """Open the next topic of the list, or the one before."""
        screen, topics = self._gold_view, self._gold_view.topic_rows.topics
        here = topics.index(screen.sought) if screen.sought in topics else -1 if step > 0 else len(topics)
        if 0 <= here + step < len(topics):
            screen.open_topic(topics[here + step])
        else:
            screen.head.tell(f"this is the {'last' if step > 0 else 'first'} topic of the list")


class Walking(TopicList):
    """The topics of a run; with `failing` only those that something is wrong with."""

    def __init__(self, screen: TopicsView, order: Order, *, failing: bool = False) -> None:
        super().__init__(screen)
        self._screen = screen
        self.order = order
        self.failing = failing

    def every(self) -> Sequence[str]:
        figures = self._screen.figures
        every = self._screen.topics.in_order(self.order, figures)
        if not self.failing or figures is None:
            return every
        return [one for one in every if one in figures.topics and figures.topics[one].fails]

    def title(self) -> str:
        figures = self._screen.figures
        what = "Topics" if figures is None else f"{figures.name}, missed gold"
        if self.failing:
            what = f"Failures · {what}"
        return what if self.order is Order.file else f"{what} · {ORDERS[self.order]}"

    # Figures

    def figures_came(self, figures: Figures) -> None:
        """Show the figures, and let them order the topics."""
        screen = self._screen
        screen.take_figures(figures)
        if screen.is_untouched and (self.order is not Order.file or self.failing):
            self.to_worst()
        else:
            self.list_topics()
        self.entitle_topic()
        if figures.instead_of is not None:
            measure = screen.topics.task.info.official_measure
            screen.head.tell(f"{figures.name} in place of {measure}: {figures.instead_of}", "$warning")

    def no_figures(self, error: Exception) -> None:
        """Say why there are none."""
        self.entitle()
        if self._screen.ranked is not None:
            self._screen.reading.entitle_topic(self._screen.ranked.topic_id, "")
        self._screen.head.tell(said_by(error), "$warning")

    def of_topic(self, topic: str) -> str:
        figures = self._screen.figures
        found = None if figures is None else figures.topics.get(topic)
        if figures is None or found is None:
            return ""
        value = "no figure" if found.value is None else shown_figure(found.value)
        return f" · {figures.name} {value} · {found.missed} of {found.relevant} missed"

    # Orders

    def next_order(self) -> None:
        if self._are_there():
            orders = list(Order)
            self.order = orders[(orders.index(self.order) + 1) % len(orders)]
            self.list_topics()
            self._screen.head.tell(f"topics {ORDERS[self.order]}")

    def to_worst(self) -> None:
        """Open the worst topic, or where the topics with most missed gold come first the first of these."""
        if not self._are_there():
            return
        if self.order is Order.file:
            self.order = Order.worst
        self.go_to_first()

    def toggle_failing(self) -> None:
        """Leave the topics that fail, the worst first, and of their rankings what is not relevant; or all again."""
        if not self._are_there():
            return
        self.failing = not self.failing
        if not self.failing:
            self.list_topics()
            self._screen.show_ranking()
            self._screen.head.tell("all topics, and all documents")
            return
        if not self.every():
            self.failing = False
            self._screen.head.tell(
                "no topic fails: nothing is missed, and no other document is before the gold"
            )
            return
        self.to_worst()
        self._screen.head.tell("failures: what is not relevant in the ranking, what is missed below it")

    def _are_there(self) -> bool:
        if self._screen.figures is None:
            self._screen.head.tell("there are no figures to order the topics by yet", "$warning")
            return False
        return True
