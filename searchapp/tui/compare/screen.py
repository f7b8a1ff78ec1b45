"""The screen that compares two runs: differences by topic, and the rankings of a topic side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from searchapp.app.compare import CompareRequest, compared_pairs
from searchapp.app.comparison import Comparison, Measured, Pair, TopicDifference, number, p_value, signed
from searchapp.app.inspection.explanation import RankExplanation
from searchapp.app.inspection.pages import RunPages
from searchapp.app.inspection.topic_comparison import Comparing, Sorting, open_comparing
from searchapp.app.inspection.topics import TopicRanking
from searchapp.app.sessions import grading_session, judged_by_now
from searchapp.config.settings import Settings
from searchapp.files import distinct_names
from searchapp.judging.judgments import Aggregation
from searchapp.judging.session import Session
from searchapp.progress import Notify, Progress, TextProgress, WorkStopped
from searchapp.runs.directory import read_manifest
from searchapp.text import visible_line
from searchapp.tui.gold.lists import GoldRankingRows, GoldTopicRows, MissedRows, shown_figure
from searchapp.tui.gold.screen import SHARED, GoldScreen, QuestionKind, RunSide
from searchapp.tui.kit.background import BackgroundQueue
from searchapp.tui.kit.content import Content, Plain
from searchapp.tui.kit.descriptions import error_text
from searchapp.tui.kit.dialogs import Choice, Picking, TextDialog
from searchapp.tui.kit.explanation import DIALOG_ID_CELLS, bar, explained, sentence, shares
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
from searchapp.tui.kit.widgets import (
    DOWN,
    LONGEST_ID,
    SAME,
    UP,
    WIDE_FROM,
    RowPart,
    chip,
    fitted,
    move_label,
    shortened,
    shortened_id,
)

_RANKING = (
    "The documents of the topic in the order of this run. An arrow shows by how many ranks the second run ranks a "
    "document higher (↑) or lower (↓) than the first; = means the same rank, + that only this run has it."
)
_MISSED = "Relevant documents that are not in this ranking, each with its rank further down or the reason."
_RANKING_ACTIONS = ("next", "next_gold", "next_missed", "other", "why", "judge", "next_topic", "jump")
_MISSED_ACTIONS = ("next_missed", "other", "why", "jump")

PANES = {
    "first": PaneHelp("The ranking of the first run", _RANKING, (), _RANKING_ACTIONS),
    "first-missed": PaneHelp("The missed gold of the first run", _MISSED, (), _MISSED_ACTIONS),
    "second": PaneHelp("The ranking of the second run", _RANKING, (), _RANKING_ACTIONS),
    "second-missed": PaneHelp("The missed gold of the second run", _MISSED, (), _MISSED_ACTIONS),
    "topics": PaneHelp(
        "The differences by topic",
        "Each topic with the difference second − first. A bar to the right means that the second run is better.",
        (),
        ("open", "order", "measure", "compare", "filter", "jump"),
    ),
    "topic": TOPIC_PANE,
    "document": DOCUMENT_PANE,
    "filter": TOPICS_FILTER,
}

SECTION = "compare"

KEY_ACTIONS = screen_actions(
    *SHARED,
    "measure",
    "other",
    "next_gold",
    "previous_gold",
    compare=("Choose the two runs to compare", "runs"),
    next=("Moved documents, the most important move first", "next moved"),
    previous="Previous moved document",
    order="Sort topics: largest gains, losses or differences first, run order",
    worst_topic=("Go to the first topic in this order", "first topic"),
    why="Explain the document's rank in each run, or why it is missed",
    next_pane="Next pane: topics, both rankings and their missed gold, topic, document",
    clear="Clear the filter, and go to the ranking",
)

IN_LAST_LINE = ("next", "other", "next_topic", "why", "measure", "judge", "help", "quit")

SORTED = {
    Sorting.gains: "largest gains first",
    Sorting.losses: "largest losses first",
    Sorting.changes: "largest differences first",
    Sorting.file: "as in the first run",
}

# The ids of the two rankings.
RUNS = ("first", "second")

COLUMNS = {
    "topics": "left",
    **{f"{run}{list_}": f"{run}-run" for run in RUNS for list_ in ("", "-missed")},
    "topic": "right",
    "document": "right",
}

LISTS = ("second", "second-missed", "first", "first-missed", "topics")

# Longer names of runs are cut, so that the other name and the status stay visible.
NAME_CELLS = 24

# Kinds of requests, the most urgent first.
_COMPARE, _DIFFERENCES, _JUDGED = range(3)


BETWEEN = "  "

# Before figures based on judgments.
BY_JUDGMENTS = "judged: "


class FigureLines(Plain):
    """The figures of a pair by gold, and by judgments."""

    def __init__(self) -> None:
        super().__init__(id="figures")
        self._by_gold: tuple[Measured, Pair] | Content = Content("")
        self._by_judgments: tuple[Measured, Pair, str] | Content | None = None

    def tell(self, words: str, look: str = "$faint") -> None:
        self._by_gold = Content.styled(words, look)
        self.draw()

    def show(self, measured: Measured, pair: Pair) -> None:
        self._by_gold = measured, pair
        self.draw()

    def show_judged(self, measured: Measured, pair: Pair, judged: str) -> None:
        self._by_judgments = measured, pair, judged
        self.draw()

    def tell_judged(self, words: str | None, look: str = "$faint") -> None:
        self._by_judgments = None if words is None else Content.styled(f"{BY_JUDGMENTS}{words}", look)
        self.draw()

    def draw(self) -> None:
        room = self.size.width or self.app.size.width - 2
        gold, judged = self._by_gold, self._by_judgments
        lines = [figure_line(*gold, room) if isinstance(gold, tuple) else gold]
        if isinstance(judged, tuple):
            measured, pair, words = judged
            lines.append(figure_line(measured, pair, room, BY_JUDGMENTS, words))
        elif judged is not None:
            lines.append(judged)
        self.update(Content("\n").join(lines))

    def on_resize(self) -> None:
        self.draw()


def figure_line(measured: Measured, pair: Pair, room: int, prefix: str = "", suffix: str = "") -> Content:
    """Return the most important figures of a pair that fit `room` cells."""
    parts: list[str | tuple[str, str]] = []
    used = 0
    for words, look in _figures(measured, pair, prefix, suffix, is_wide=room >= WIDE_FROM):
        cells = cell_len(visible_line(words)) + (len(BETWEEN) if parts else 0)
        if used + cells > room and parts:
            break
        parts += [BETWEEN, (words, look)] if parts else [(words, look)]
        used += cells
    return Content.assemble(*parts)


def _figures(
    measured: Measured, pair: Pair, prefix: str, suffix: str, *, is_wide: bool
) -> Iterator[tuple[str, str]]:
    tests, plain = pair.tests, "$foreground"
    yield f"{prefix}{measured.name}", "bold"
    yield f"{number(tests.first)} → {number(tests.second)}", plain
    yield (
        signed(tests.mean),
        plain if not tests.mean else "bold $success" if tests.mean > 0 else "bold $error",
    )
    if not math.isnan(tests.interval.low):
        low, high = signed(tests.interval.low), signed(tests.interval.high)
        yield f"{'95% ' if is_wide else ''}[{low}, {high}]", plain
    randomisation = pair.corrected["randomisation"]
    yield f"{'randomisation ' if is_wide else ''}p {p_value(randomisation.p)}", plain
    if randomisation.holm != randomisation.p:
        yield f"Holm {p_value(randomisation.holm)}", plain
    won = tests.outcomes
    if is_wide:
        yield f"{won.wins:,} won · {won.ties:,} tied · {won.losses:,} lost", plain
    else:
        yield f"{won.wins}/{won.ties}/{won.losses}", plain
    if suffix:
        yield suffix, "$faint"
    elif is_wide and not math.isnan(tests.effect):
        yield f"d_z {tests.effect:.2f}", plain


BAR_CELLS = 5
WIDE_BAR_CELLS = 9
# Cells of half a bar, and the width of lists with longer ones.
WIDE_BARS_FROM = 56

# Wider lists show the figures of both runs before their difference.
VALUES_FROM = 64
VALUES_CELLS = 12

# The middle of a bar.
ZERO = "│"

# Smaller differences count as none, as in the tests.
TIE = 5e-10


def shown_difference(value: float) -> str:
    """Return a difference in five cells.

    >>> shown_difference(0.1602), shown_difference(-1.0), shown_difference(0.0)
    ('+.160', '-1.00', '  =  ')
    """
    if abs(value) <= TIE:
        return f"  {SAME}  "
    return f"{'+' if value > 0 else '-'}{shown_figure(abs(value))}"


def half_bar(share: float, cells: int) -> str:
    """Draw a share of some cells as a bar that grows to the left, to half a cell.

    >>> half_bar(0.5, 3), half_bar(1.0, 3), half_bar(0.01, 3)
    (' ▐█', '███', '   ')
    """
    full, rest = divmod(round(max(0.0, min(1.0, share)) * cells * 2), 2)
    return ("▐" * rest + "█" * full).rjust(cells)


class DifferenceRows(GoldTopicRows):
    """The topics of two runs: second − first figure, with a bar."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--won", "rows--fell", "rows--rank"}

    def __init__(self, pages: RunPages) -> None:
        super().__init__(pages)
        # By topic; empty until they are computed.
        self.differences: Mapping[str, TopicDifference] = {}
        self._greatest = 1.0

    def set_differences(self, topics: Sequence[TopicDifference]) -> None:
        self.differences = {topic.topic_id: topic for topic in topics}
        self._greatest = max((abs(topic.difference) for topic in topics), default=0.0) or 1.0

    def figures_of(self, topic: str, width: int) -> Sequence[RowPart]:
        if not self.differences:
            return ()
        own = self.differences.get(topic)
        cells = WIDE_BAR_CELLS if width >= WIDE_BARS_FROM else BAR_CELLS
        if own is None:
            return ((f"  –   {'':{cells}}{ZERO}{'':{cells}} ", "rows--faint"),)
        share = own.difference / self._greatest
        look = "rows--rank" if abs(own.difference) <= TIE else "rows--won" if share > 0 else "rows--fell"
        values = f"{shown_figure(own.first)} → {shown_figure(own.second)} " if width >= VALUES_FROM else ""
        return (
            (values, "rows--rank"),
            (f"{shown_difference(own.difference)} ", look),
            (half_bar(-share, cells), look),
            (ZERO, "rows--faint"),
            (f"{bar(share, cells)} ", look),
        )

    def figure_heads(self, width: int) -> Sequence[str]:
        if not self.differences:
            return (" ",)
        values = fitted("the two runs", VALUES_CELLS) if width >= VALUES_FROM else ""
        bars = WIDE_BAR_CELLS if width >= WIDE_BARS_FROM else BAR_CELLS
        return " ", values, fitted("difference", 2 * bars + 8)


class ComparedRows(GoldRankingRows):
    """A topic's ranking in one run; arrows show the moves of documents from the first to the second run."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--won", "rows--fell"}

    def __init__(self, text: Callable[[str], str | None], *, is_second: bool, id: str) -> None:  # noqa: A002
        super().__init__(text, id=id)
        self._is_second = is_second
        # The ranks of the topic's documents in the other run, once they are read.
        self.other_ranks: Mapping[str, int] | None = None
        self._cells = 0
        # Lines of moved documents, the most important moves first.
        self._by_weight: Sequence[int] = ()
        # The index in `_by_weight` of the last result of `next_moved`.
        self._visited = -1

    def set_other_ranks(self, ranks: Mapping[str, int] | None) -> None:
        self.other_ranks = ranks
        moves = [self._move_of(index) for index in range(len(self.documents))]
        self._cells = 0 if ranks is None else 1 + len(str(max((abs(move or 0) for move in moves), default=0)))
        moved = [index for index, move in enumerate(moves) if move != 0]
        self._by_weight = sorted(moved, key=self._weight, reverse=True)
        self._visited = -1
        self.refresh()

    def next_moved(self, step: int) -> int | None:
        """Return the line of the next or previous important move, or None.

        The importance is the change of nDCG's discount 1 / log2(1 + rank): inserting a document at the top
        moves nearly all others by one rank.
        """
        last, order = self._visited, self._by_weight
        if not 0 <= last < len(order) or order[last] != self.cursor:
            last = -1 if step > 0 else len(order)
        if not 0 <= last + step < len(order):
            return None
        self._visited = last + step
        return order[self._visited]

    def _move_of(self, index: int) -> int | None:
        """Return first − second rank, or None if only one run has the document."""
        other = None if self.other_ranks is None else self.other_ranks.get(self.documents[index])
        if other is None:
            return None
        return other - self.rank(index) if self._is_second else self.rank(index) - other

    def _weight(self, index: int) -> float:
        other = (self.other_ranks or {}).get(self.documents[index])
        return abs(_discount(self.rank(index)) - (0.0 if other is None else _discount(other)))

    def _before_rank(self, index: int) -> Sequence[RowPart]:
        if self.other_ranks is None:
            return ()
        move = self._move_of(index)
        is_higher = self._is_second if move is None else move > 0
        # Only the move of a relevant document is an improvement or a loss.
        is_gold = move != 0 and self.documents[index] in self.relevant
        look = "rows--faint" if not is_gold else "rows--won" if is_higher else "rows--fell"
        return ((f"{move_label(move, self._cells)} ", look),)

    @property
    def _head_before_rank(self) -> str:
        return "" if self.other_ranks is None else fitted(f"{UP}{DOWN}", self._cells + 1)


def _discount(rank: int) -> float:
    return 1 / math.log2(1 + rank)


class ExplainedTwice(TextDialog):
    """Explains the rank of a document in two runs."""

    def __init__(
        self, document: str, results: Sequence[tuple[str, RankExplanation | Exception]], task: str
    ) -> None:
        super().__init__(f"{shortened_id(document, DIALOG_ID_CELLS)} in both runs")
        self._results = results
        self._task_name = task

    def text(self) -> Content:
        lines: list[Content] = []
        for name, result in self._results:
            lines += [Content("")] if lines else []
            lines.append(Content.styled(name, "bold $accent"))
            if isinstance(result, Exception):
                lines.append(Content.styled(error_text(result), "$error"))
                continue
            why = result.reason
            lines.append(Content.styled(sentence(why.document_id, result.sentence(self._task_name)), "bold"))
            if why.explanation is not None:
                lines += [*shares(why, self.room), explained(why.explanation, self.room)]
        return Content("\n").join(lines)


class CompareScreen(GoldScreen):
    """Two runs side by side."""

    CSS_PATH = Path(__file__).with_name("compare.tcss")
    AUTO_FOCUS = "#second"
    ABOUT = PANES

    topic_rows: DifferenceRows

    def __init__(
        self, comparing: Comparing, keys: KeyMap, session: Callable[[], Session], start: str | None
    ) -> None:
        topics = comparing.topics[0]
        super().__init__(keys, "", COLUMNS, LISTS, topics, session, command(comparing), start)
        self.comparing = comparing
        self.order = Sorting.gains
        # The figures, once they are computed.
        self.comparison: Comparison | None = None
        self._pairs = compared_pairs(comparing.request)
        self._run_names = distinct_names(comparing.request.runs)
        self._pair = self._pairs[0]
        self._measure_number = 0
        # The side with the cursor.
        self._side_number = 1
        self._picking: Picking | None = None
        text = self.documents.beginning
        self._rankings = [ComparedRows(text, is_second=name == "second", id=name) for name in RUNS]
        self._missed = [MissedRows(text, id=f"{name}-missed") for name in RUNS]
        self.sides = self._make_sides()
        self.topic_rows = DifferenceRows(topics.pages)
        self.figure_lines = FigureLines()
        self.figure_queue = BackgroundQueue("compare", lambda: comparing, self.later)

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.figure_lines
        with Horizontal(id="body"):
            yield from self.compose_topics()
            with Vertical(id="main"):
                with Horizontal(id="runs"):
                    for ranking, missed in zip(self._rankings, self._missed, strict=True):
                        with Vertical(id=f"{ranking.id}-run"):
                            yield ranking
                            yield missed
                yield self.reading
        yield from self.compose_keys(*IN_LAST_LINE)

    def mode_chips(self) -> Iterator[Part]:
        yield from super().mode_chips()
        if self.comparing.follows:
            yield chip("judgments as gold", "$secondary")

    def begin(self) -> None:
        self.head.retitle(self._heading)
        super().begin()

    def start_work(self) -> None:
        self._compute_figures()

    # The two runs

    @property
    def _heading(self) -> str:
        pages = self.comparing.topics[0].pages
        return f"{pages.task.name} {pages.split or ''} · {self.names[0]} → {self.names[1]}"

    @property
    def names(self) -> tuple[str, str]:
        first, second = self._pair
        return shortened(self._run_names[first], NAME_CELLS), shortened(self._run_names[second], NAME_CELLS)

    def _make_sides(self) -> list[RunSide]:
        return [
            RunSide(self.comparing.topics[run], ranking, missed, self.later)
            for run, ranking, missed in zip(self._pair, self._rankings, self._missed, strict=True)
        ]

    @property
    def side(self) -> RunSide:
        return self.sides[self._side_number]

    def go_into(self, side: RunSide, in_missed: bool) -> None:
        super().go_into(side, in_missed)
        self._side_number = self.sides.index(side)

    def ranking_title(self, side: RunSide) -> str:
        return self.names[self.sides.index(side)]

    def _choose_runs(self) -> None:
        if len(self._pairs) == 1:
            self.head.tell(f"there are only two runs: {self.names[0]} and {self.names[1]}")
            return

        def chosen(index: int | None) -> None:
            if index is not None:
                with self.app.batch_update():
                    self._compare(self._pairs[index])

        self._picking = Picking("Which runs?", self._choices(), self._pairs.index(self._pair))
        self.app.push_screen(self._picking, chosen)

    def _choices(self) -> list[Choice]:
        choices, comparison = [], self.comparison
        for index, (first, second) in enumerate(self._pairs):
            words = ""
            if comparison is not None:
                measured = comparison.measures[self._measure_number]
                words = figure_line(measured, measured.pairs[index], self.size.width).plain
            choices.append(Choice(f"{self._run_names[first]} → {self._run_names[second]}", words))
        return choices

    def _compare(self, pair: tuple[int, int]) -> None:
        if pair == self._pair:
            return
        self._pair = pair
        self.head.end_wait()  # the runs closed here don't answer
        for side in self.sides:
            side.close()
        self.sides = self._make_sides()
        self.head.retitle(self._heading)
        self.open_topic(self.target_topic)
        self._show_figures()
        self._follow_judgments()

    # Documents in both runs

    def _next_moved(self, step: int) -> None:
        ranking = self._rankings[self._side_number]
        index = ranking.next_moved(step)
        self.focus_rows(ranking)
        if index is None:
            self.head.tell("no more moved documents in this ranking")
        else:
            ranking.move(index)
            self.show_document()

    def _go_across(self) -> None:
        document, name = self.document_id, self.names[1 - self._side_number]
        other_side = self.sides[1 - self._side_number]
        if document is None:
            self.focus_rows(other_side.ranking)
        elif not self.go_to(document, [other_side]):
            own, key = self.names[self._side_number], self.keys.shown("why")
            self.focus_rows(other_side.ranking)
            self.head.tell(
                f"{shortened_id(document, LONGEST_ID)} is not in {name}: {key} on it in {own} explains why"
            )

    def explain(self, document: str) -> None:
        topic, names = self.topic_id, self.names
        results: dict[int, RankExplanation | Exception] = {}

        def show(index: int, result: RankExplanation | Exception) -> None:
            results[index] = result
            if len(results) == len(names):
                self.head.end_wait()
                both = [(name, results[index]) for index, name in enumerate(names)]
                dialog = ExplainedTwice(document, both, self.topics.task.name)
                self.when_in_front(lambda: self.app.push_screen(dialog))

        self.head.wait(f"looking for {shortened_id(document, LONGEST_ID)} …")
        for index, side in enumerate(self.sides):
            receive = partial(show, index)
            side.slow.ask(QuestionKind.why, lambda topics: topics.why(topic, document), receive, receive)

    # The list of topics

    def ordered_topics(self) -> Sequence[str]:
        return self.comparing.in_order(self.order, self.topic_rows.differences)

    def list_title(self) -> str:
        measure = self.measure
        return f"{measure} by topic · {SORTED[self.order]}" if measure else "Topics"

    def figures_of(self, topic: str) -> str:
        own = self.topic_rows.differences.get(topic)
        if own is None:
            return ""
        moves = {"gained": own.gained, "lost": own.lost, "moved": own.moved}
        counts = ", ".join(f"{len(documents):,} {word}" for word, documents in moves.items() if documents)
        values = f"{shown_figure(own.first)} → {shown_figure(own.second)}"
        suffix = f" · {counts}" if counts else ""
        return f" · {values} {shown_difference(own.difference).strip()}{suffix}"

    def next_order(self) -> None:
        if self._has_differences():
            orders = list(Sorting)
            self.order = orders[(orders.index(self.order) + 1) % len(orders)]
            self.list_topics()
            self.head.tell(f"topics: {SORTED[self.order]}")

    def _has_differences(self) -> bool:
        if not self.topic_rows.differences:
            self.head.tell(
                "the topics can't be sorted yet: the runs are still being compared",
                "$warning",
                holds=lambda: not self.topic_rows.differences,
            )
            return False
        return True

    # Figures

    @property
    def measure(self) -> str:
        return "" if self.comparison is None else self.comparison.measures[self._measure_number].name

    def _compute_figures(self) -> None:

        def work(comparing: Comparing) -> Comparison:
            return comparing.compare(TextProgress(report))

        def report(words: str) -> None:
            if self.figure_queue.is_closed:
                raise WorkStopped
            self.later(partial(self._show_progress, words))

        self.figure_queue.ask(_COMPARE, work, self._show_comparison, self._show_failure)

    def _show_progress(self, words: str) -> None:
        if self.comparison is None:
            self.figure_lines.tell(words)
            self.tell_progress(f" · {words}")

    def _show_failure(self, error: Exception) -> None:
        self.figure_lines.tell(error_text(error), "$error")
        self.entitle_topics()
        self.entitle_topic()

    def _show_comparison(self, comparison: Comparison) -> None:
        is_first, self.comparison = self.comparison is None, comparison
        self.head.clear_ended()
        if is_first and comparison.warnings:
            self.head.tell("   ".join(comparison.warnings), "$warning")
        self._show_figures(is_first=is_first)
        if self._picking is not None and self._picking.is_attached:
            self._picking.replace(self._choices())
        if not is_first:
            self.show_gold()

    def _show_figures(self, *, is_first: bool = False) -> None:
        comparison, pair, measure = self.comparison, self._pair, self._measure_number
        if comparison is None:
            return
        measured = comparison.measures[measure]
        self.figure_lines.show(measured, measured.pairs[self._pairs.index(pair)])

        def show(topics: Sequence[TopicDifference]) -> None:
            if pair == self._pair and comparison is self.comparison:
                self._show_differences(topics, is_first=is_first)

        work = lambda comparing: comparing.differences(comparison, pair, measure)  # noqa: E731
        self.figure_queue.ask(_DIFFERENCES, work, show, self._show_failure)

    def _show_differences(self, topics: Sequence[TopicDifference], *, is_first: bool) -> None:
        self.topic_rows.set_differences(topics)
        self.head.clear_ended()
        if self.judging.is_on:  # keeps the order of topics while the annotator judges
            self.topic_rows.refresh()
            self.entitle_topics()
        elif is_first and self.is_untouched:
            self.go_to_first()
        else:
            self.list_topics()
        self.entitle_topic()

    def _next_measure(self) -> None:
        comparison = self.comparison
        if comparison is None:
            words = "the runs are still being compared"
            self.head.tell(words, "$warning", holds=lambda: self.comparison is None)
            return
        self._measure_number = (self._measure_number + 1) % len(comparison.measures)
        self.head.tell(f"measure {self._measure_number + 1} of {len(comparison.measures)}: {self.measure}")
        self._show_figures()
        self._follow_judgments()

    # Figures by judgments

    def toggle_judging(self) -> None:
        super().toggle_judging()
        if not self.judging.is_on:
            self.figure_lines.tell_judged(None)
        self._follow_judgments()

    def redraw(self, documents: Sequence[str] | None) -> None:
        super().redraw(documents)
        self._follow_judgments()

    def _follow_judgments(self) -> None:
        if not self.judging.is_on:
            return
        if self.comparing.follows:
            self._compute_figures()
            return

        def show(comparison: Comparison | None) -> None:
            if self.judging.is_on:
                self._show_judged(comparison)

        def fail(error: Exception) -> None:
            if self.judging.is_on:
                self.figure_lines.tell_judged(error_text(error), "$warning")

        self.figure_queue.ask(_JUDGED, lambda comparing: comparing.compare_judged(), show, fail)

    def _show_judged(self, comparison: Comparison | None) -> None:
        if comparison is None:
            self.figure_lines.tell_judged("no judgments on these topics yet")
            return
        names = [measured.name for measured in comparison.measures]
        measured = comparison.measures[names.index(self.measure) if self.measure in names else 0]
        pair = measured.pairs[self._pairs.index(self._pair)]
        topics = f"{measured.topics:,} topic{'s' * (measured.topics != 1)}"
        shares = [
            f"{cut} {' → '.join(f'{comparison.runs[run].judged[cut]:.0%}' for run in self._pair)}"
            for cut in list(comparison.runs[0].judged)[:1]
        ]
        self.figure_lines.show_judged(measured, pair, " · ".join([topics, *shares]))

    # A topic

    def show_ranking(self, side: RunSide, ranked: TopicRanking) -> None:
        super().show_ranking(side, ranked)
        first, second = (side.ranked for side in self.sides)
        if first is None or second is None or first.topic_id != second.topic_id:
            return
        for rows, other in zip(self._rankings, (second, first), strict=True):
            rows.set_other_ranks({document: rank for rank, document in enumerate(other.documents, 1)})
        self.show_document()

    def show_side(self, side: RunSide) -> None:
        self._rankings[self.sides.index(side)].set_other_ranks(None)
        super().show_side(side)

    def show_document(self) -> None:
        super().show_document()
        # Move the cursor of the other ranking to the same document.
        document, ranks = self.document_id, self._rankings[self._side_number].other_ranks
        rank = None if document is None or ranks is None else ranks.get(document)
        if rank is not None:
            self._rankings[1 - self._side_number].put(rank - 1)

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            **super().actions(),
            "compare": self._choose_runs,
            "measure": self._next_measure,
            "other": self._go_across,
            "next": lambda: self._next_moved(1),
            "previous": lambda: self._next_moved(-1),
            "next_gold": lambda: self.next_gold(1),
            "previous_gold": lambda: self.next_gold(-1),
            "worst_topic": lambda: self.go_to_first() if self._has_differences() else None,
        }


def compare_screen(
    comparing: Comparing, settings: Settings, session: Callable[[], Session], start: str | None = None
) -> CompareScreen:
    """Return the screen of compared runs.

    Raises:
        UsageError: the topic `start` is unknown, or there are no topics.
        DataError: the settings file has invalid keys for the screen.
    """
    for topics in comparing.topics:
        topics.require(start)
    labels = comparing.topics[0].task.info.grades
    keys = load(settings.of_user, labels, SECTION, KEY_ACTIONS).keys
    return CompareScreen(comparing, keys, session, start)


@contextmanager
def open_compare_screen(
    request: CompareRequest,
    settings: Settings,
    progress: Progress,
    warn: Notify,
    *,
    log: Path | None = None,
    aggregation: Aggregation | None = None,
    follows: bool = False,
    start: str | None = None,
) -> Iterator[CompareScreen]:
    """Open the screen of a request, in any thread; raises the errors of `open_comparing` and `compare_screen`."""
    log = log or settings.judgments
    with ExitStack() as stack:
        with progress.stage("loading the runs"):
            task = read_manifest(request.runs[0]).task
            judged = partial(judged_by_now, log, task, aggregation)
            comparing = open_comparing(stack, request, settings, progress, warn, judged, follows=follows)
        for note in dict.fromkeys(note for topics in comparing.topics for note in topics.pages.notes):
            warn(note)
        session = partial(grading_session, stack, log, comparing.topics[0].task, settings.annotator)
        yield compare_screen(comparing, settings, session, start)


def command(comparing: Comparing) -> Sequence[str]:
    """Return the words of the command that opens the same screen."""
    request = comparing.request
    options = {"--baseline": request.baseline, "--data": request.source.data, "--depth": request.depth}
    given = [str(word) for name, value in options.items() if value is not None for word in (name, value)]
    given += [word for name in request.source.measures for word in ("--measure", name)]
    given += [str(word) for path in request.source.gold for word in ("--gold", path)]
    given += ["--force"] if request.force else []
    given += ["--judgments"] if comparing.follows else []
    return ("searchapp", "compare", *map(str, request.runs), "--screen", *given)
