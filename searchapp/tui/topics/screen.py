"""The screen of a run's topics, with their figures and failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from searchapp.app.inspection.topics import RunTopics, TopicsRequest
from searchapp.app.topic_figures import FiguresByTopic, Order
from searchapp.config.settings import Settings
from searchapp.judging.session import Session
from searchapp.model import Run
from searchapp.tasks.base import Task
from searchapp.tui.gold.lists import GoldRankingRows, GoldTopicRows, MissedRows, shown_figure
from searchapp.tui.gold.screen import KEY_ACTIONS, GoldScreen, RunSide
from searchapp.tui.kit.background import BackgroundQueue
from searchapp.tui.kit.content import entitle
from searchapp.tui.kit.descriptions import error_text
from searchapp.tui.kit.keys import DOCUMENT_PANE, TOPIC_PANE, TOPICS_FILTER, KeyMap, PaneHelp, load
from searchapp.tui.kit.widgets import RowPart

SECTION = "topics"

PANES = {
    "ranking": PaneHelp(
        "The ranking",
        "The documents of the topic in the order of the run or recipe. Relevant ones are marked.",
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
        "The topics with their scores. Enter opens the ranking of a topic.",
        (),
        ("open", "order", "worst_topic", "failures", "filter", "jump"),
    ),
    "topic": TOPIC_PANE,
    "document": DOCUMENT_PANE,
    "filter": TOPICS_FILTER,
}

IN_LAST_LINE = ("next_gold", "next_missed", "next_topic", "order", "why", "judge", "topics", "failures", "worst_topic",
                "filter", "maths", "zoom", "document", "copy_id", "copy_command", "pager", "theme", "quit",
                "help")  # fmt: skip

COLUMNS = {"topics": "left", "ranking": "middle", "missed": "middle", "topic": "right", "document": "right"}

NO_FIGURE = "  – "

ORDERS = {Order.file: "as in the run", Order.worst: "worst first", Order.missed: "most missed first"}

# The interval of progress reports.
PROGRESS_SECONDS = 0.2

# Ranks of relevant documents in a title, before a number for the others.
NAMED_RANKS = 5


class FigureRows(GoldTopicRows):
    """The topics of a run with figures and missed gold."""

    figures: FiguresByTopic | None = None

    def figures_of(self, topic: str, width: int) -> Sequence[RowPart]:  # noqa: ARG002
        figures = None if self.figures is None else self.figures.topics.get(topic)
        if figures is None:
            return ()
        value = NO_FIGURE if figures.value is None else shown_figure(figures.value)
        if not figures.relevant:
            return (f"{value} ", "rows--rank"), (f"{'–':>6} ", "rows--faint")
        look = "rows--lost" if figures.missed else "rows--done"
        return (f"{value} ", "rows--rank"), (f"{f'{figures.missed}/{figures.relevant}':>6} ", look)


class TopicsScreen(GoldScreen):
    """The topics of a run beside their gold."""

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
        # List only topics that fail.
        self.failing = failing
        text = self.documents.beginning
        ranking, missed = GoldRankingRows(text, id="ranking"), MissedRows(text, id="missed")
        self.sides = [RunSide(topics, ranking, missed, self.later)]
        self.topic_rows = FigureRows(topics.pages)
        self.figure_queue = BackgroundQueue("figures", lambda: topics, self.later)

    def compose(self) -> ComposeResult:
        yield self.head
        with Horizontal(id="body"):
            yield from self.compose_topics()
            with Vertical(id="middle"):
                yield self.ranking
                yield self.missed
            yield self.reading
        yield from self.compose_keys(*IN_LAST_LINE)

    def start_work(self) -> None:
        self.figure_queue.ask(0, self.compute_figures, self._show_figures, self._show_no_figures)

    # Figures

    def compute_figures(self, topics: RunTopics) -> FiguresByTopic | None:
        """Compute the figures in a thread; return None if the screen is closed."""
        if not topics.gold:  # without gold, no rankings are needed
            return None
        total, reported = len(topics.topics), time.monotonic()
        rankings = []
        for done, ranking in enumerate(topics.rankings(), start=1):
            if self.figure_queue.is_closed:
                return None
            rankings.append(ranking)
            if time.monotonic() - reported >= PROGRESS_SECONDS:
                reported = time.monotonic()
                self.later(partial(self.tell_progress, f" · scoring {done / total:.0%}"))
            time.sleep(0)  # lets keys take precedence
        return topics.figures(Run(topics.pages.name, tuple(rankings)))

    def _show_figures(self, figures: FiguresByTopic | None) -> None:
        if figures is None:
            return
        self.topic_rows.figures = figures
        if self.is_untouched and (self.order is not Order.file or self.failing):
            self._to_worst()
        else:
            self.list_topics()
        self.entitle_topic()
        if figures.instead_of is not None:
            measure = self.topics.task.info.official_measure
            self.head.tell(f"{figures.name} instead of {measure}: {figures.instead_of}", "$warning")

    def _show_no_figures(self, error: Exception) -> None:
        self.tell_progress("")
        self.head.tell(error_text(error), "$warning")

    def _has_figures(self) -> bool:
        if self.topic_rows.figures is None:
            self.head.tell(
                "the topics can't be sorted yet: their scores are still being computed", "$warning"
            )
            return False
        return True

    # The list of topics

    def ordered_topics(self) -> Sequence[str]:
        figures = self.topic_rows.figures
        ordered = self.topics.in_order(self.order, figures)
        if not self.failing or figures is None:
            return ordered
        return [topic for topic in ordered if topic in figures.topics and figures.topics[topic].fails]

    def list_title(self) -> str:
        figures = self.topic_rows.figures
        heading = "Topics" if figures is None else f"{figures.name}, missed gold"
        if self.failing:
            heading = f"Failures · {heading}"
        return heading if self.order is Order.file else f"{heading} · {ORDERS[self.order]}"

    def figures_of(self, topic: str) -> str:
        figures = self.topic_rows.figures
        own = None if figures is None else figures.topics.get(topic)
        if figures is None or own is None:
            return ""
        value = "no score" if own.value is None else shown_figure(own.value)
        return f" · {figures.name} {value} · {own.missed} of {own.relevant} missed"

    def next_order(self) -> None:
        if self._has_figures():
            orders = list(Order)
            self.order = orders[(orders.index(self.order) + 1) % len(orders)]
            self.list_topics()
            self.head.tell(f"topics {ORDERS[self.order]}")

    def _to_worst(self) -> None:
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
        if not self._has_figures():
            return
        self.failing = not self.failing
        if not self.failing:
            self.list_topics()
            self.show_side(self.side)
            self.show_document()
            self.head.tell("showing all topics and all documents")
        elif not self.ordered_topics():
            self.failing = False
            self.head.tell("no topic fails: every ranking begins with all of its gold")
        else:
            self._to_worst()
            self.head.tell("failures: non-relevant documents of the ranking, and the missed gold below")

    def show_side(self, side: RunSide) -> None:
        ranked = side.ranked
        if ranked is None or not self.failing or ranked.no_gold is not None:
            super().show_side(side)
            return
        side.ranking.offer_ranking(ranked.documents, ranked.not_relevant)
        gold = [
            f"{rank:,}" for rank, document in enumerate(ranked.documents, 1) if document in ranked.relevant
        ]
        more = f" and {len(gold) - NAMED_RANKS:,} more" if len(gold) > NAMED_RANKS else ""
        where = f"gold at {', '.join(gold[:NAMED_RANKS])}{more}" if gold else "no gold in the ranking"
        entitle(side.ranking, f"Not relevant · {where}")

    def actions(self) -> dict[str, Callable[[], object]]:
        return {**super().actions(), "worst_topic": self._to_worst, "failures": self._toggle_failing}


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
    """Return the screen of the topics of a request.

    Raises:
        UsageError: the topic `start` is unknown, or there are no topics.
        DataError: the settings file has invalid keys for the screen.
    """
    topics.require(start)
    keys = load(settings.of_user, topics.task.info.grades, SECTION, KEY_ACTIONS).keys
    again = command(topics.task, request)
    return TopicsScreen(topics, keys, session, again, start, order, failing=failing)


def title(topics: RunTopics) -> str:
    """Return the title of the first line."""
    pages = topics.pages
    name, _at, _digest = pages.name.rpartition("@")
    return f"{topics.task.name} {pages.split or ''} · {name or pages.name}"


def command(task: Task, request: TopicsRequest) -> Sequence[str]:
    """Return the words of the command that opens the same screen."""
    options = {
        "--run": request.run,
        "--recipe": request.recipe,
        "--split": request.split,
        "--data": request.data,
        "--depth": request.depth,
    }
    given = [str(word) for name, value in options.items() if value is not None for word in (name, value)]
    return ("searchapp", "topics", task.reference, *given)
