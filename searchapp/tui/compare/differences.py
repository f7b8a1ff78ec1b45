"""Differences of two runs: their figures, the topics with a bar each, the rankings with moves.

Figures are computed in the background.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import ClassVar

from rich.cells import cell_len

from searchapp.app.comparison import Comparison, Measured, Pair, TopicDifference, number, p_value, signed
from searchapp.app.inspection.pages import RunPages
from searchapp.app.inspection.topic_comparison import Comparing
from searchapp.progress import TextProgress, WorkStopped
from searchapp.text import visible_line
from searchapp.tui.gold.lists import RankingRows, TopicRows, shown_figure
from searchapp.tui.kit.background import BackgroundQueue, Post
from searchapp.tui.kit.content import Content, Plain
from searchapp.tui.kit.explanation import bar
from searchapp.tui.kit.widgets import RowPart

BETWEEN = "  "
WIDE_FROM = 110
"""Cells from which on the figures stand with the words for them."""

BY_JUDGMENTS = "judged: "
"""What stands before the figures by what people judge."""


class _Kind(IntEnum):
    """What is asked, the most urgent first."""

    compare = 0
    differences = 1
    judged = 2


class Figuring:
    """Compares the runs in the background.

    Args:
        comparing: the runs
        post: has something done in the thread of the screen
        so_far: is told in words how far it is
        came: is given what comes of it
        failed: is given the error, if nothing does
    """

    def __init__(
        self,
        comparing: Comparing,
        post: Post,
        so_far: Callable[[str], object],
        came: Callable[[Comparison], object],
        failed: Callable[[Exception], object],
    ) -> None:
        self._background = BackgroundQueue("compare", lambda: comparing, post)
        self._post = post
        self._so_far = so_far
        self._came = came
        self._failed = failed
        self._is_closed = False

    def begin(self) -> None:
        """Compare the runs, or compare them again after somebody has judged."""
        self._background.ask(_Kind.compare, self._compare, self._came, self._failed)

    def differences(
        self,
        found: Comparison,
        pair: tuple[int, int],
        measure: int,
        then: Callable[[Sequence[TopicDifference]], object],
    ) -> None:
        """Find how topics differ in a pair of runs under a measure."""
        self._background.ask(
            _Kind.differences,
            lambda comparing: comparing.differences(found, pair, measure),
            then,
            self._failed,
        )

    def judged(
        self, then: Callable[[Comparison | None], object], failed: Callable[[Exception], object]
    ) -> None:
        """Compare the runs by what people have judged by now."""
        self._background.ask(_Kind.judged, lambda comparing: comparing.compare_judged(), then, failed)

    @property
    def is_idle(self) -> bool:
        return self._background.is_idle

    def close(self) -> None:
        """Compare no further."""
        self._is_closed = True
        self._background.close()

    def _compare(self, comparing: Comparing) -> Comparison:
        return comparing.compare(TextProgress(self._tell))

    def _tell(self, words: str) -> None:
        if self._is_closed:
            raise WorkStopped
        self._post(lambda: self._so_far(words))


class FigureLines(Plain):
    """The figures of a pair under a measure: by the gold, and below it by what people judge."""

    def __init__(self) -> None:
        super().__init__(id="figures")
        self._first: tuple[Measured, Pair] | None = None
        self._so_far = Content("")
        self._judged: tuple[Measured, Pair, str] | None = None
        self._about_judged: Content | None = None

    def tell(self, words: str, look: str = "$faint") -> None:
        """Say why there are no figures yet."""
        self._first, self._so_far = None, Content.styled(words, look)
        self.draw()

    def show(self, measured: Measured, pair: Pair) -> None:
        """Show the figures of a pair."""
        self._first = measured, pair
        self.draw()

    def show_judged(self, measured: Measured, pair: Pair, judged: str) -> None:
        """Show those by what people judge; `judged` says how much that is."""
        self._judged, self._about_judged = (measured, pair, judged), None
        self.draw()

    def tell_judged(self, words: str | None, look: str = "$faint") -> None:
        """Say in their place why there are none; None takes the line away."""
        self._judged = None
        self._about_judged = None if words is None else Content.styled(f"{BY_JUDGMENTS}{words}", look)
        self.draw()

    def draw(self) -> None:
        """Show both for the room that there is."""
        room = self.size.width or self.app.size.width - 2
        lines = [self._so_far if self._first is None else figure_line(*self._first, room)]
        if self._judged is not None:
            measured, pair, judged = self._judged
            lines.append(figure_line(measured, pair, room, BY_JUDGMENTS, judged))
        elif self._about_judged is not None:
            lines.append(self._about_judged)
        self.update(Content("\n").join(lines))

    def on_resize(self) -> None:
        self.draw()


def figure_line(measured: Measured, pair: Pair, room: int, before: str = "", behind: str = "") -> Content:
    """A measure of two runs in a line of so many cells: what matters most is said as long as there is room."""
    parts: list[str | tuple[str, str]] = []
    used = 0
    for words, look in _said(measured, pair, before, behind, is_wide=room >= WIDE_FROM):
        cells = cell_len(visible_line(words)) + (len(BETWEEN) if parts else 0)
        if used + cells > room and parts:
            break
        parts += [BETWEEN, (words, look)] if parts else [(words, look)]
        used += cells
    return Content.assemble(*parts)


def _said(
    measured: Measured, pair: Pair, before: str, behind: str, *, is_wide: bool
) -> Iterator[tuple[str, str]]:
    tests = pair.tests
    look = "$foreground" if not tests.mean else "bold $success" if tests.mean > 0 else "bold $error"
    yield f"{before}{measured.name}", "bold"
    yield f"{number(tests.first)} → {number(tests.second)}", "$foreground"
    yield signed(tests.mean), look
    if not math.isnan(tests.interval.low):
        low, high = signed(tests.interval.low), signed(tests.interval.high)
        yield f"{'95% ' if is_wide else ''}[{low}, {high}]", "$foreground"
    at_random = pair.corrected["randomisation"]
    several = at_random.holm != at_random.p
    yield f"{'randomisation ' if is_wide else ''}p {p_value(at_random.p)}", "$foreground"
    if several:
        yield f"Holm {p_value(at_random.holm)}", "$foreground"
    won = tests.outcomes
    if is_wide:
        yield f"{won.wins:,} won · {won.ties:,} tied · {won.losses:,} lost", "$foreground"
    else:
        yield f"{won.wins}/{won.ties}/{won.losses}", "$foreground"
    if behind:
        yield behind, "$faint"
    elif is_wide and not math.isnan(tests.effect):
        yield f"d_z {tests.effect:.2f}", "$foreground"


BAR_CELLS = 5
WIDE_BAR_CELLS = 9
WIDE_BARS_FROM = 56
"""Cells of a bar to either side, and the width of a list from which on there is room for longer ones."""

VALUES_FROM = 64
"""The width of a list from which on the figures of both runs stand before their difference."""

ZERO = "│"
"""Where a bar begins."""

UP, DOWN, SAME = "↑", "↓", "="
NOT_THERE = "+"
"""What stands before a document that only this run has."""

TIE = 5e-10
"""Differences that are not greater are none, as in the tests."""


def shown_difference(value: float) -> str:
    """A difference in five cells.

    >>> shown_difference(0.1602), shown_difference(-1.0), shown_difference(0.0)
    ('+.160', '-1.00', '  =  ')
    """
    if abs(value) <= TIE:
        return f"  {SAME}  "
    return f"{'+' if value > 0 else '-'}{shown_figure(abs(value))}"


def half_bar(share: float, cells: int) -> str:
    """A bar to the left of where it begins, as long as a share of so many cells, to half a cell.

    >>> half_bar(0.5, 3), half_bar(1.0, 3), half_bar(0.01, 3)
    (' ▐█', '███', '   ')
    """
    halves = round(max(0.0, min(1.0, share)) * cells * 2)
    full, rest = divmod(halves, 2)
    return ("▐" * rest + "█" * full).rjust(cells)


class DifferenceRows(TopicRows):
    """The topics of two runs: the figure of the second less that of the first, with a bar."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--won", "rows--fell", "rows--rank"}

    def __init__(self, pages: RunPages) -> None:
        super().__init__(pages)
        self._differences: Mapping[str, TopicDifference] = {}
        self._greatest = 1.0

    @property
    def differences(self) -> Mapping[str, TopicDifference]:
        """The differences by topic; nothing until they are known."""
        return self._differences

    @differences.setter
    def differences(self, found: Mapping[str, TopicDifference]) -> None:
        self._differences = found
        self._greatest = max((abs(one.difference) for one in found.values()), default=0.0) or 1.0

    def figures_of(self, topic: str, width: int) -> Sequence[RowPart]:
        if not self._differences:
            return ()
        found = self._differences.get(topic)
        cells = WIDE_BAR_CELLS if width >= WIDE_BARS_FROM else BAR_CELLS
        if found is None:
            return ((f"  –   {'':{cells}}{ZERO}{'':{cells}} ", "rows--faint"),)
        share = found.difference / self._greatest
        look = "rows--rank" if abs(found.difference) <= TIE else "rows--won" if share > 0 else "rows--fell"
        parts: list[RowPart] = []
        if width >= VALUES_FROM:
            values = f"{shown_figure(found.first)} → {shown_figure(found.second)} "
            parts.append((values, "rows--rank"))
        return (
            *parts,
            (f"{shown_difference(found.difference)} ", look),
            (half_bar(-share, cells), look),
            (ZERO, "rows--faint"),
            (f"{bar(share, cells)} ", look),
        )


class ComparedRows(RankingRows):
    """A topic's ranking in one run, with how far each document has moved between it and the other run.

    An arrow says where the second run has it, whichever of the two the list is of.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--won", "rows--fell"}

    def __init__(self, text: Callable[[str], str | None], *, is_second: bool, id: str) -> None:  # noqa: A002
        super().__init__(text, id=id)
        self._is_second = is_second
        self._others: Mapping[str, int] | None = None
        self._cells = 0
        self._by_weight: Sequence[int] = ()
        self._gone_to = -1

    @property
    def others(self) -> Mapping[str, int] | None:
        """The ranks of the topic's documents in the other run; None as long as they are not known."""
        return self._others

    @others.setter
    def others(self, ranks: Mapping[str, int] | None) -> None:
        self._others = ranks
        moves = [self.move_of(place) or 0 for place in range(len(self.documents))]
        self._cells = 0 if ranks is None else 1 + len(str(max(map(abs, moves), default=0)))
        moved = [place for place in range(len(self.documents)) if self.move_of(place) != 0]
        self._by_weight = sorted(moved, key=self._weight, reverse=True)
        self._gone_to = -1
        self.refresh()

    def move_of(self, place: int) -> int | None:
        """By how many ranks the document on a line is higher in the second run; None where only one run has it."""
        other = None if self._others is None else self._others.get(self.documents[place])
        if other is None:
            return None
        here = self.rank(place)
        return other - here if self._is_second else here - other

    def next_moved(self, step: int) -> int | None:
        """The place of the document whose move counts most, from there of the next one, or of that before it.

        None if there is none. How much a move counts is the difference that it makes to nDCG's discount, 1 / log2(1 +
        rank): nearly every document moves by a rank or two where one is put in above it.
        """
        gone_to = self._gone_to
        if not 0 <= gone_to < len(self._by_weight) or self._by_weight[gone_to] != self.cursor:
            gone_to = -1 if step > 0 else len(self._by_weight)
        if not 0 <= gone_to + step < len(self._by_weight):
            return None
        self._gone_to = gone_to + step
        return self._by_weight[self._gone_to]

    def _weight(self, place: int) -> float:
        other = (self._others or {}).get(self.documents[place])
        return abs(_discount(self.rank(place)) - (0.0 if other is None else _discount(other)))

    def _beside(self, place: int) -> Sequence[RowPart]:
        if self._others is None:
            return ()
        moved = self.move_of(place)
        if moved is None:
            sign, is_higher = f"{NOT_THERE:<{self._cells}} ", self._is_second
        elif moved:
            sign, is_higher = f"{UP if moved > 0 else DOWN}{abs(moved):<{self._cells - 1}} ", moved > 0
        else:
            return ((f"{SAME:<{self._cells}} ", "rows--faint"),)
        # Of a document that is not relevant nobody can say whether its move is for the better.
        is_gold = self.documents[place] in self.relevant
        return ((sign, "rows--faint" if not is_gold else "rows--won" if is_higher else "rows--fell"),)


def _discount(rank: int) -> float:
    return 1 / math.log2(1 + rank)
