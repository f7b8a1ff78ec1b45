"""The screen of a run's topics: their figures in the background, the failures, and how it is opened."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from searchapp.app.inspection.topics import RunTopics, TopicsRequest
from searchapp.app.topic_figures import Figures, Order
from searchapp.config.settings import SPACINGS, Settings
from searchapp.judging.session import Session
from searchapp.model import Run
from searchapp.tasks.base import Task
from searchapp.tui.gold.actions import GRADING, IN_LAST_LINE, KEY_ACTIONS, SECTION
from searchapp.tui.gold.lists import FigureRows, MissedRows, RankingRows, shown_figure
from searchapp.tui.gold.screen import GoldScreen, Side
from searchapp.tui.kit.background import BackgroundQueue, Post
from searchapp.tui.kit.content import entitle
from searchapp.tui.kit.keys import DOCUMENT_PANE, TOPIC_PANE, TOPICS_FILTER, KeyMap, PaneHelp, load
from searchapp.tui.kit.screen import KeyApp
from searchapp.tui.kit.status import error_text
from searchapp.tui.kit.widgets import KeyLine

PANES = {
    "ranking": PaneHelp(
        "The ranking",
        "The documents of the topic in the order of the run or recipe, with what is relevant marked.",
        (),
        ("next_gold", "previous_gold", "next_missed", "why", "document", "judge", "next_topic", "jump"),
    ),
    "missed": PaneHelp(
        "The missed gold",
        "Relevant documents that are not in the ranking, each with its rank further down or the reason.",
        (),
        ("next_missed", "why", "next_gold", "jump"),
    ),
    "topics": PaneHelp(
        "The topics",
        "The topics with their figures. The ranking of a topic is shown once it is opened.",
        (),
        ("open", "order", "worst_topic", "failures", "filter", "jump"),
    ),
    "topic": TOPIC_PANE,
    "document": DOCUMENT_PANE,
    "filter": TOPICS_FILTER,
}


EVERY_SECONDS = 0.2
"""How often it is said how far it is."""


class Figuring:
    """The figures, once they are there.

    Args:
        topics: the topics
        post: has something done in the thread of the screen
        so_far: is told the share of topics whose rankings are read
        came: is given the figures
        failed: is given the error, if there are none
    """

    def __init__(
        self,
        topics: RunTopics,
        post: Post,
        so_far: Callable[[float], object],
        came: Callable[[Figures], object],
        failed: Callable[[Exception], object],
    ) -> None:
        self._background = BackgroundQueue("figures", lambda: topics, post)
        self._post = post
        self._so_far = so_far
        self._came = came
        self._failed = failed
        self._is_closed = False

    def begin(self) -> None:
        """Compute them."""
        self._background.ask(0, self._work, self._take, self._failed)

    @property
    def is_idle(self) -> bool:
        return self._background.is_idle

    def close(self) -> None:
        """Compute no further."""
        self._is_closed = True
        self._background.close()

    def _work(self, topics: RunTopics) -> Figures | None:
        if not topics.gold:  # without which nothing need be read
            return None
        total, told = len(topics.topics), time.monotonic()
        rankings = []
        for done, ranking in enumerate(topics.rankings(), start=1):
            if self._is_closed:
                return None
            rankings.append(ranking)
            if time.monotonic() - told >= EVERY_SECONDS:
                told = time.monotonic()
                self._tell(done / total)
            time.sleep(0)  # keys come first
        return topics.figures(Run(topics.pages.name, tuple(rankings)))

    def _tell(self, share: float) -> None:
        self._post(lambda: self._so_far(share))

    def _take(self, figures: Figures | None) -> None:
        if figures is not None:
            self._came(figures)


NAMED = 5
"""Ranks of relevant documents that a title names before it counts the others."""

ORDERS = {Order.file: "as in the run", Order.worst: "worst first", Order.missed: "most missed first"}

COLUMNS = {"topics": "left", "ranking": "middle", "missed": "middle", "topic": "right", "document": "right"}


class TopicsScreen(GoldScreen):
    """Somebody walks the topics of a run."""

    CSS_PATH = Path(__file__).with_name("topics.tcss")
    AUTO_FOCUS = "#ranking"
    ABOUT = PANES

    topic_rows: FigureRows

    def __init__(
        self,
        topics: RunTopics,
        keys: KeyMap,
        session: Callable[[], Session],
        command: Sequence[str],
        start: str | None,
        order: Order,
        *,
        failing: bool,
    ) -> None:
        lists = "ranking", "missed", "topics"
        super().__init__(keys, title(topics), COLUMNS, lists, topics, session, command, start)
        self.order = order
        self.failing = failing
        """Whether only topics are listed that something is wrong with."""
        text = self.documents.beginning
        ranking, missed = RankingRows(text, id="ranking"), MissedRows(text, id="missed")
        self.sides = [Side(topics, ranking, missed, self.later)]
        self.topic_rows = FigureRows(topics.pages)
        self.figuring = Figuring(
            topics,
            self.later,
            lambda share: self.tell_progress(f" · figures {share:.0%}"),
            self._figures_came,
            self._no_figures,
        )

    def compose(self) -> ComposeResult:
        yield self.head
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield self.filter_line
                yield self.topic_rows
            with Vertical(id="middle"):
                yield self.ranking
                yield self.missed
            yield self.reading
        yield KeyLine(self._grade_entries(self.judging.labels, *GRADING), 2, id="grades")
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def begun(self) -> None:
        self.figuring.begin()

    def on_unmount(self) -> None:
        super().on_unmount()
        self.figuring.close()

    # The list of topics

    def ordered_topics(self) -> Sequence[str]:
        figures = self.topic_rows.figures
        every = self.topics.in_order(self.order, figures)
        if not self.failing or figures is None:
            return every
        return [one for one in every if one in figures.topics and figures.topics[one].fails]

    def list_title(self) -> str:
        figures = self.topic_rows.figures
        what = "Topics" if figures is None else f"{figures.name}, missed gold"
        if self.failing:
            what = f"Failures · {what}"
        return what if self.order is Order.file else f"{what} · {ORDERS[self.order]}"

    def figures_of(self, topic: str) -> str:
        figures = self.topic_rows.figures
        found = None if figures is None else figures.topics.get(topic)
        if figures is None or found is None:
            return ""
        value = "no figure" if found.value is None else shown_figure(found.value)
        return f" · {figures.name} {value} · {found.missed} of {found.relevant} missed"

    def next_order(self) -> None:
        if self._has_figures():
            orders = list(Order)
            self.order = orders[(orders.index(self.order) + 1) % len(orders)]
            self.list_topics()
            self.head.tell(f"topics {ORDERS[self.order]}")

    def _figures_came(self, figures: Figures) -> None:
        """Show the figures, and let them order the topics."""
        self.topic_rows.figures = figures
        if self.is_untouched and (self.order is not Order.file or self.failing):
            self._to_worst()
        else:
            self.list_topics()
        self.entitle_topic()
        if figures.instead_of is not None:
            measure = self.topics.task.info.official_measure
            self.head.tell(f"{figures.name} in place of {measure}: {figures.instead_of}", "$warning")

    def _no_figures(self, error: Exception) -> None:
        """Say why there are none."""
        self.tell_progress("")
        self.head.tell(error_text(error), "$warning")

    def _has_figures(self) -> bool:
        if self.topic_rows.figures is None:
            self.head.tell("there are no figures to order the topics by yet", "$warning")
            return False
        return True

    def _to_worst(self) -> None:
        """Open the worst topic, or where the topics with most missed gold come first the first of these."""
        if not self._has_figures():
            return
        if self.order is Order.file:
            self.order = Order.worst
        self.go_to_first()

    # Failures

    @property
    def command(self) -> Sequence[str]:
        return (*super().command, "--failures") if self.failing else super().command

    def _toggle_failing(self) -> None:
        """Leave the topics that fail, the worst first, and of their rankings what is not relevant; or all again."""
        if not self._has_figures():
            return
        self.failing = not self.failing
        if not self.failing:
            self.list_topics()
            self.show_side(self.side)
            self.show_document()
            self.head.tell("all topics, and all documents")
            return
        if not self.ordered_topics():
            self.failing = False
            self.head.tell("no topic fails: nothing is missed, and no other document is before the gold")
            return
        self._to_worst()
        self.head.tell("failures: what is not relevant in the ranking, what is missed below it")

    def show_side(self, side: Side) -> None:
        found = side.ranked
        if found is None or not self.failing or found.no_gold is not None:
            super().show_side(side)
            return
        ranks = found.not_relevant
        side.ranking.offer_ranking(found.documents, ranks, 0)
        gold = [f"{rank:,}" for rank, one in enumerate(found.documents, 1) if one in found.relevant]
        more = f" and {len(gold) - NAMED:,} more" if len(gold) > NAMED else ""
        where = f"gold at {', '.join(gold[:NAMED])}{more}" if gold else "no gold in the ranking"
        entitle(side.ranking, f"Not relevant · {where}")

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            **super().actions(),
            "worst_topic": self._to_worst,
            "failures": self._toggle_failing,
        }


class TopicsApp(KeyApp):
    """Shows the screen of topics until it is left."""

    def __init__(self, topics: TopicsScreen, theme: str, spacing: str = SPACINGS[0]) -> None:
        super().__init__(topics, theme, spacing)
        self.topics = topics


def topics_screen(
    topics: RunTopics,
    request: TopicsRequest,
    settings: Settings,
    session: Callable[[], Session],
    start: str | None = None,
    order: Order = Order.file,
    *,
    failing: bool = False,
) -> TopicsScreen:
    """The screen of the topics that a request has opened.

    `session` opens that of whoever judges there, if somebody does. `start` is the topic to begin with; with `failing`
    only topics are listed that something is wrong with.

    Raises:
        UsageError: there is no topic `start`, or none at all.
        DataError: the settings file gives the screen's keys what they can't be.
    """
    topics.require(start)
    keys = load(settings.of_user, topics.task.info.grades, SECTION, KEY_ACTIONS).keys
    again = command(topics.task, request)
    return TopicsScreen(topics, keys, session, again, start, order, failing=failing)


def title(topics: RunTopics) -> str:
    """What the first line calls the topics of a run."""
    pages = topics.pages
    name, _at, _digest = pages.name.rpartition("@")
    return f"{topics.task.name} {pages.split or ''} · {name or pages.name}"


def command(task: Task, request: TopicsRequest) -> Sequence[str]:
    """The command that opens the same screen, up to the topic."""
    options = {
        "--run": request.run,
        "--recipe": request.recipe,
        "--split": request.split,
        "--data": request.data,
        "--depth": request.depth,
    }
    given = [str(one) for name, value in options.items() if value is not None for one in (name, value)]
    return ("searchapp", "topics", task.reference, *given)
