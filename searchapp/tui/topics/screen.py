"""Walking the topics of a run on the screen; what it has in common with that of two runs is in `base`.

`figuring` computes the figures of all topics in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from searchapp.app.topic_figures import Figures
from searchapp.tui.bars import KeyLine
from searchapp.tui.content import entitle
from searchapp.tui.keys import KeyMap
from searchapp.tui.topics import about
from searchapp.tui.topics.actions import GRADING, IN_LAST_LINE
from searchapp.tui.topics.base import GoldScreen
from searchapp.tui.topics.figuring import Figuring
from searchapp.tui.topics.lists import FigureRows, MissedRows, RankingRows
from searchapp.tui.topics.parts import Opened
from searchapp.tui.topics.side import Side
from searchapp.tui.topics.walking import Walking

NAMED = 5
"""Ranks of relevant documents that a title names before it counts the others."""

COLUMNS = {"topics": "left", "ranking": "middle", "missed": "middle", "topic": "right", "document": "right"}


class TopicsScreen(GoldScreen):
    """Somebody walks the topics of a run."""

    CSS_PATH = Path(__file__).with_name("topics.tcss")
    AUTO_FOCUS = "#ranking"
    ABOUT = about.ABOUT

    topic_rows: FigureRows
    walking: Walking

    def __init__(self, opened: Opened, keys: KeyMap) -> None:
        super().__init__(
            keys,
            opened.title,
            COLUMNS,
            ("ranking", "missed", "topics"),
            opened.topics,
            opened.session,
            opened.command,
            opened.start,
        )
        text = self.documents.beginning
        ranking, missed = RankingRows(text, id="ranking"), MissedRows(text, id="missed")
        self.sides = [Side(opened.topics, ranking, missed, self.later)]
        self.topic_rows = FigureRows(opened.topics.pages)
        self.walking = Walking(self, opened.order, failing=opened.failing)
        self.figuring = Figuring(
            opened.topics,
            self.later,
            lambda share: self.walking.so_far(f" · figures {share:.0%}"),
            self.walking.figures_came,
            self.walking.no_figures,
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

    @property
    def figures(self) -> Figures | None:
        return self.topic_rows.figures

    def take_figures(self, figures: Figures) -> None:
        self.topic_rows.figures = figures

    # Failures

    @property
    def command(self) -> Sequence[str]:
        return (*super().command, "--failures") if self.walking.failing else super().command

    def show_side(self, side: Side) -> None:
        found = side.ranked
        if found is None or not self.walking.failing or found.no_gold is not None:
            super().show_side(side)
            return
        ranks = found.not_relevant
        side.ranking.offer_ranking(found.documents, ranks, 0)
        gold = [f"{rank:,}" for rank, one in enumerate(found.documents, 1) if one in found.relevant]
        more = f" and {len(gold) - NAMED:,} more" if len(gold) > NAMED else ""
        where = f"gold at {', '.join(gold[:NAMED])}{more}" if gold else "no gold in the ranking"
        entitle(side.ranking, f"Not relevant · {where}")

    def show_ranking(self) -> None:
        """Show those documents of the ranking that are asked for."""
        self.show_side(self.side)
        self.show_document()

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            **super().actions(),
            "worst_topic": self.walking.to_worst,
            "failures": self.walking.toggle_failing,
        }
