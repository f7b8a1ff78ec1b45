"""The screen of a run's topics, with their figures and failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from searchapp.app.inspection.topics import (
    AnnotatorGold,
    RunTopics,
    TopicRanking,
    TopicsRequest,
    open_topics,
)
from searchapp.app.sessions import grading_session
from searchapp.app.topic_figures import FiguresByTopic, Order
from searchapp.config.settings import Settings
from searchapp.judging.session import Session
from searchapp.model import Run
from searchapp.progress import Notify, Progress
from searchapp.tasks.base import Task
from searchapp.tui.gold.lists import GoldRankingRows, GoldTopicRows, MissedRows, shown_figure
from searchapp.tui.gold.screen import SHARED, GoldScreen, RunSide
from searchapp.tui.kit.background import BackgroundQueue
from searchapp.tui.kit.content import entitle
from searchapp.tui.kit.descriptions import error_text
from searchapp.tui.kit.keys import (
    DOCUMENT_PANE,
    TOPIC_PANE,
    TOPICS_FILTER,
    KeyMap,
    PaneHelp,
    load,
    screen_actions,
)
from searchapp.tui.kit.screen import Part
from searchapp.tui.kit.widgets import RowPart, chip

SECTION = "topics"

PANES = {
    "ranking": PaneHelp(
        "The ranking",
        "The documents of the topic in the order of the run or recipe. Relevant ones are marked.",
        (),
        ("next", "previous", "next_missed", "why", "document", "judge", "next_topic", "jump"),
    ),
    "missed": PaneHelp(
        "The missed gold",
        "Relevant documents that are not in the ranking, each with its rank further down or the reason.",
        (),
        ("next_missed", "why", "next", "jump"),
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

KEY_ACTIONS = screen_actions(
    *SHARED,
    "worst_topic",
    "failures",
    next=("Next relevant document in the ranking", "next gold"),
    previous="Previous relevant document in the ranking",
    why="Explain the document's rank, or why it is missed",
    next_pane="Next pane: topics, ranking, missed gold, topic, document",
    clear="Clear the filter, and go to the ranking",
)

IN_LAST_LINE = ("next", "next_missed", "next_topic", "why", "order", "judge", "help", "quit")

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

    def figure_heads(self, width: int) -> Sequence[str]:  # noqa: ARG002
        return (" ",) if self.figures is None else ("score ", "missed ")


class TopicsScreen(GoldScreen):
    """The topics of a run beside their gold."""

    CSS_PATH = Path(__file__).with_name("topics.tcss")
    AUTO_FOCUS = "#ranking"
    ABOUT = PANES

    topic_rows: FigureRows

    def __init__(
        self,
        topics: RunTopics,
        title: str,
        keys: KeyMap,
        session: Callable[[], Session],
        command: Sequence[str],
        start: str | None,
        order: Order,
        *,
        failing: bool,
        judged_by: str | None,
    ) -> None:
        lists = "ranking", "missed", "topics"
        super().__init__(keys, title, COLUMNS, lists, topics, session, command, start)
        self.order = order
        # Why there are no figures.
        self._no_figures = ""
        # List only topics that fail.
        self.failing = failing
        # The annotator whose judgments are the gold.
        self._judged_by = judged_by
        text = self.documents.beginning
        ranking, missed = GoldRankingRows(text, id="ranking"), MissedRows(text, id="missed")
        self.sides = [RunSide(topics, ranking, missed, self.later)]
        self.topic_rows = FigureRows(topics.pages)
        self.figure_queue = BackgroundQueue("figures", lambda: topics, self.later)

    def mode_chips(self) -> Iterator[Part]:
        yield from super().mode_chips()
        if self.failing:
            yield chip("failures", "bold $warning")
        if self._judged_by is not None:
            yield chip(f"judgments of {self._judged_by} as gold", "$secondary")

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
        if topics.judged is not None:
            topics.judged.forget()
        elif not topics.gold:  # without gold, no rankings are needed
            return None
        total, reported = len(topics.scored_topics), time.monotonic()
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
        is_first, self.topic_rows.figures = self.topic_rows.figures is None, figures
        if not is_first:  # judgments have changed the gold
            self.show_gold()
        if self.judging.is_on:  # keeps the order of topics while the annotator judges
            self.topic_rows.refresh()
            self.entitle_topics()
        elif self.is_untouched and (self.order is not Order.file or self.failing):
            self._to_worst()
        else:
            self.list_topics()
        self.entitle_topic()
        self.head.clear_ended()
        if figures.instead_of is not None:
            measure = self.topics.task.info.official_measure
            self.head.tell(f"{figures.name} instead of {measure}: {figures.instead_of}", "$warning")

    def _show_no_figures(self, error: Exception) -> None:
        self._no_figures = error_text(error)
        self.tell_progress("")
        self.head.tell(self._no_figures, "$warning")

    def _has_figures(self) -> bool:
        if self.topic_rows.figures is None:
            why = self._no_figures or "their scores are still being computed"
            is_missing = lambda: self.topic_rows.figures is None  # noqa: E731
            self.head.tell(f"the topics can't be sorted: {why}", "$warning", holds=is_missing)
            return False
        return True

    def redraw(self, documents: Sequence[str] | None) -> None:
        super().redraw(documents)
        if self.topics.judged is not None:
            self.start_work()

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
        self.head.show_chips(*self.mode_chips())
        if not self.failing:
            self.list_topics()
            self.show_side(self.side)
            self.show_document()
            self.head.tell("showing all topics and all documents")
        elif not self.ordered_topics():
            self.failing = False
            self.head.show_chips(*self.mode_chips())
            self.head.tell("no topic fails: every ranking begins with all of its gold")
        else:
            self._to_worst()
            self.head.tell("failures: non-relevant documents of the ranking, and the missed gold below")

    def entitle_ranking(self, side: RunSide, ranked: TopicRanking) -> None:
        if not self.failing:  # `show_side` names the ranks of the gold
            super().entitle_ranking(side, ranked)

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
    return TopicsScreen(
        *(topics, title(topics), keys, session, again, start, order),
        failing=failing,
        judged_by=request.annotator,
    )


@contextmanager
def open_topics_screen(
    task: Task,
    request: TopicsRequest,
    gold: AnnotatorGold | None,
    settings: Settings,
    progress: Progress,
    warn: Notify,
    *,
    annotator: str | None = None,
    start: str | None = None,
    order: Order = Order.file,
    failing: bool = False,
) -> Iterator[TopicsScreen]:
    """Open the screen of a request, in any thread; raises the errors of `open_topics` and `topics_screen`."""
    with ExitStack() as stack:
        with progress.stage("loading the topics"):
            topics = open_topics(stack, task, request, settings, progress, warn, gold)
        for note in topics.pages.notes:
            warn(note)

        def session() -> Session:
            log = request.log or settings.judgments
            return grading_session(stack, log, task, annotator or settings.annotator)

        yield topics_screen(topics, request, settings, session, start, order, failing=failing)


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
        "--annotator": request.annotator,
        "--log": request.log,
    }
    given = [str(word) for name, value in options.items() if value is not None for word in (name, value)]
    judged = ["--judgments"] if request.annotator is not None else []
    return ("searchapp", "topics", task.reference, *given, *judged)
