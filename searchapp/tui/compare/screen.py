"""Comparing two runs on the screen: differences by topic, and the rankings of one of them side by side.

What it has in common with the screen of topics is in `topics.base`. `figures` computes and shows the figures, `walking`
lists the topics by their differences, `moves` goes to documents that have moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from searchapp.app.compare import compared_pairs, run_names
from searchapp.app.comparing import Comparing
from searchapp.app.comparison import Comparison, Pair, TopicDifference
from searchapp.app.topics import TopicRanking
from searchapp.judging.session import Session
from searchapp.tui.bars import KeyLine
from searchapp.tui.compare import about
from searchapp.tui.compare.actions import IN_LAST_LINE
from searchapp.tui.compare.figures import FigureLines, Figuring, figure_line
from searchapp.tui.compare.lists import ComparedRows, DifferenceRows
from searchapp.tui.compare.moves import Moves
from searchapp.tui.compare.walking import Differences
from searchapp.tui.keys import KeyMap
from searchapp.tui.picking import Choice, Picking
from searchapp.tui.rows import shortened
from searchapp.tui.status import said_by
from searchapp.tui.topics.actions import GRADING
from searchapp.tui.topics.base import GoldScreen
from searchapp.tui.topics.lists import MissedRows
from searchapp.tui.topics.side import Side

COLUMNS = {
    "topics": "left",
    "first": "first-run",
    "first-missed": "first-run",
    "second": "second-run",
    "second-missed": "second-run",
    "topic": "right",
    "document": "right",
}

RUNS = ("first", "second")
"""The ids of the two rankings; those of their missed gold have more behind them."""

NAME_CELLS = 24
"""Of the name of a run: a longer one is cut, so that the other one and what was just done stay in sight."""

LISTS = ("second", "second-missed", "first", "first-missed", "topics")


@dataclass(frozen=True)
class Opened:
    """What the screen is opened with; `session`, `command` and `start` are those of `GoldScreen`."""

    comparing: Comparing
    session: Callable[[], Session]
    command: Sequence[str]
    start: str | None = None


class CompareScreen(GoldScreen):
    """Somebody compares two runs."""

    CSS_PATH = Path(__file__).with_name("compare.tcss")
    AUTO_FOCUS = "#second"
    ABOUT = about.ABOUT

    walking: Differences

    def __init__(self, opened: Opened, keys: KeyMap) -> None:
        comparing = opened.comparing
        topics = comparing.topics[0]
        super().__init__(keys, "", COLUMNS, LISTS, topics, opened.session, opened.command, opened.start)
        self.comparing = comparing
        self.found: Comparison | None = None
        self._pairs = compared_pairs(comparing.request)
        self._run_names = run_names(comparing.request.runs)
        self._pair = self._pairs[0]
        self._measure_number = 0
        self._at = 1
        self._choosing: Picking | None = None
        self.moves = self.gold = Moves(self)
        text = self.documents.beginning
        self._rankings = [ComparedRows(text, is_second=bool(at), id=name) for at, name in enumerate(RUNS)]
        self._missed = [MissedRows(text, id=f"{rows.id}-missed") for rows in self._rankings]
        self.sides = self._made_sides()
        self.topic_rows: DifferenceRows = DifferenceRows(topics.pages)
        self.walking = Differences(self)
        self.figure_lines = FigureLines()
        self.figuring = Figuring(comparing, self.later, self._so_far, self._came, self._failed)

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.figure_lines
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield self.filter_line
                yield self.topic_rows
            with Vertical(id="main"):
                with Horizontal(id="runs"):
                    for ranking, missed in zip(self._rankings, self._missed, strict=True):
                        with Vertical(id=f"{ranking.id}-run"):
                            yield ranking
                            yield missed
                yield self.reading
        yield KeyLine(self._grade_entries(self.judging.labels, *GRADING), 2, id="grades")
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def begin(self) -> None:
        self.head.retitle(self._heading)
        super().begin()

    def begun(self) -> None:
        self.figuring.begin()

    def on_unmount(self) -> None:
        super().on_unmount()
        self.figuring.close()

    # The two runs

    @property
    def _heading(self) -> str:
        pages = self.comparing.topics[0].pages
        return f"{pages.task.name} {pages.split or ''} · {self.names[0]} → {self.names[1]}"

    @property
    def names(self) -> tuple[str, str]:
        """What distinguishes the two runs that are compared, each on one line."""
        first, second = self._pair
        return shortened(self._run_names[first], NAME_CELLS), shortened(self._run_names[second], NAME_CELLS)

    def _made_sides(self) -> list[Side]:
        return [
            Side(self.comparing.topics[number], ranking, missed, self.later)
            for number, ranking, missed in zip(self._pair, self._rankings, self._missed, strict=True)
        ]

    @property
    def pair(self) -> tuple[Side, Side]:
        """The first run and the second."""
        first, second = self.sides
        return first, second

    @property
    def side(self) -> Side:
        return self.sides[self._at]

    @property
    def beside(self) -> Side:
        """The run that the cursor is not in."""
        return self.sides[1 - self._at]

    @property
    def difference_rows(self) -> DifferenceRows:
        """The list of topics."""
        return self.topic_rows

    def go_into(self, side: Side, in_missed: bool) -> None:
        super().go_into(side, in_missed)
        self._at = self.sides.index(side)

    def ranking_title(self, side: Side) -> str:
        return self.names[self.sides.index(side)]

    def _choose_runs(self) -> None:
        """Ask which two of the runs are compared."""
        if len(self._pairs) == 1:
            self.head.tell(f"two runs are compared: {self.names[0]} and {self.names[1]}")
            return

        def chosen(place: int | None) -> None:
            if place is not None:
                with self.app.batch_update():
                    self._compare(self._pairs[place])

        here = self._pairs.index(self._pair)
        self._choosing = Picking("Which runs?", self._choices(), here)
        self.app.push_screen(self._choosing, chosen)

    def _choices(self) -> list[Choice]:
        """The pairs of runs, each with its figures once they are known."""
        choices, found = [], self.found
        for place, (first, second) in enumerate(self._pairs):
            words = ""
            if found is not None:
                measured = found.measures[self._measure_number]
                words = figure_line(measured, measured.pairs[place], self.size.width).plain
            choices.append(Choice(f"{self._run_names[first]} → {self._run_names[second]}", words))
        return choices

    def _compare(self, pair: tuple[int, int]) -> None:
        """Compare two others of the runs."""
        if pair == self._pair:
            return
        self._pair = pair
        for side in self.sides:
            side.close()
        self.sides = self._made_sides()
        self.head.retitle(self._heading)
        self.open_topic(self.sought)
        self._show_figures()
        if self.judging.is_on:
            self._judge_again()

    # Figures

    @property
    def measured(self) -> str:
        """The measure that topics are looked at by; nothing as long as it is not known."""
        return "" if self.found is None else self.found.measures[self._measure_number].name

    def _so_far(self, words: str) -> None:
        if self.found is None:
            self.figure_lines.tell(words)
            self.walking.so_far(f" · {words}")

    def _came(self, found: Comparison) -> None:
        is_first, self.found = self.found is None, found
        for warning in found.warnings if is_first else ():
            self.head.tell(warning, "$warning", add=True)
        self._show_figures(is_first=is_first)
        if self._choosing is not None and self._choosing.is_attached:
            self._choosing.replace(self._choices())
        if not is_first:  # of a topic that is open more may be relevant now
            for side in self.sides:
                if side.ranked is not None:
                    side.ranking.relevant = side.missed.relevant = side.topics.relevant(side.ranked.topic_id)
                    side.ranking.refresh()

    def _failed(self, error: Exception) -> None:
        self.figure_lines.tell(said_by(error), "$error")
        self.walking.entitle()
        self.walking.entitle_topic()

    def _show_figures(self, *, is_first: bool = False) -> None:
        """Show the figures of the pair in sight, and then its differences by topic."""
        found = self.found
        if found is None:
            return
        measured = found.measures[self._measure_number]
        self.figure_lines.show(measured, measured.pairs[self._pairs.index(self._pair)])
        pair = self._pair

        def came(topics: Sequence[TopicDifference]) -> None:
            if pair == self._pair and found is self.found:
                self._differences_came(topics, is_first=is_first)

        self.figuring.differences(found, pair, self._measure_number, came)

    def _differences_came(self, topics: Sequence[TopicDifference], *, is_first: bool) -> None:
        self.topic_rows.differences = {one.topic_id: one for one in topics}
        if is_first and self.is_untouched and not self.judging.is_on:
            self.walking.go_to_first()
        elif self.judging.is_on:  # who judges finds the topics where they were
            self.topic_rows.refresh()
            self.walking.entitle()
        else:
            self.walking.list_topics()
        self.walking.entitle_topic()

    def _next_measure(self) -> None:
        """Look at the topics by the next measure."""
        found = self.found
        if found is None:
            self.head.tell("the runs are still being compared", "$warning")
            return
        self._measure_number = (self._measure_number + 1) % len(found.measures)
        self.head.tell(f"by {self.measured}, {self._measure_number + 1} of {len(found.measures)} measures")
        self._show_figures()
        if self.judging.is_on:
            self._judge_again()

    # Judging, which figures follow

    def toggle_judging(self) -> None:
        super().toggle_judging()
        if self.judging.is_on:
            self._judge_again()
        else:
            self.figure_lines.tell_judged(None)

    def redraw(self, documents: Iterable[str] | None) -> None:
        super().redraw(documents)
        if self.judging.is_on:
            self._judge_again()

    def _judge_again(self) -> None:
        """Let the figures follow what was judged."""
        if self.comparing.follows:
            self.figuring.begin()
        else:
            self.figuring.judged(self._judged_came, self._not_judged)

    def _not_judged(self, error: Exception) -> None:
        if self.judging.is_on:
            self.figure_lines.tell_judged(said_by(error), "$warning")

    def _judged_came(self, found: Comparison | None) -> None:
        if not self.judging.is_on:
            return
        if found is None:
            self.figure_lines.tell_judged("nothing of these topics yet")
            return
        here = self._pairs.index(self._pair)
        names = [one.name for one in found.measures]
        measured = found.measures[names.index(self.measured) if self.measured in names else 0]
        pair: Pair = measured.pairs[here]
        topics = f"{measured.topics:,} topic{'s' * (measured.topics != 1)}"
        shares = [
            f"{cut} {' → '.join(f'{found.runs[number].judged[cut]:.0%}' for number in self._pair)}"
            for cut in list(found.runs[0].judged)[:1]
        ]
        self.figure_lines.show_judged(measured, pair, " · ".join([topics, *shares]))

    # A topic

    def _topic_came(self, side: Side, found: TopicRanking) -> None:
        super()._topic_came(side, found)
        first, second = (one.ranked for one in self.sides)
        if first is None or second is None or first.topic_id != second.topic_id:
            return
        ranks = [
            {document: rank for rank, document in enumerate(one.documents, 1)} for one in (first, second)
        ]
        for rows, of_other in zip(self._rankings, reversed(ranks), strict=True):
            rows.others = of_other
        self.show_document()

    def show_side(self, side: Side) -> None:
        self._rankings[self.sides.index(side)].others = None
        super().show_side(side)

    def show_document(self) -> None:
        super().show_document()
        # The other list stands on the same document, if it has it.
        document, rows = self.document_id, self._rankings[self._at]
        place = None if document is None or rows.others is None else rows.others.get(document)
        if place is not None:
            self._rankings[1 - self._at].put(place - 1)

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            **super().actions(),
            "runs": self._choose_runs,
            "measure": self._next_measure,
            "other": self.moves.across,
            "next_moved": lambda: self.moves.next_moved(1),
            "previous_moved": lambda: self.moves.next_moved(-1),
            "first_topic": self.walking.to_first,
        }
