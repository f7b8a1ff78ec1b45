"""The lists of the compare screen: topics with bars of differences, rankings with moves; and its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len

from searchapp.app.comparison import Measured, Pair, TopicDifference, number, p_value, signed
from searchapp.app.inspection.pages import RunPages
from searchapp.text import visible_line
from searchapp.tui.gold.lists import RankingRows, TopicRows, shown_figure
from searchapp.tui.kit.content import Content, Plain
from searchapp.tui.kit.explanation import bar
from searchapp.tui.kit.widgets import WIDE_FROM, RowPart

BETWEEN = "  "

BY_JUDGMENTS = "judged: "
"""The words before the figures by people's judgments."""


class FigureLines(Plain):
    """The figures of a pair under a measure: by the gold, and below it by people's judgments."""

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
        """Show the figures by judgments, and in words how much is judged."""
        self._by_judgments = measured, pair, judged
        self.draw()

    def tell_judged(self, words: str | None, look: str = "$faint") -> None:
        """Show why there are no figures by judgments; None removes the line."""
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


def figure_line(measured: Measured, pair: Pair, room: int, before: str = "", behind: str = "") -> Content:
    """Return a measure of two runs in a line of so many cells: the most important figures, as long as they fit."""
    parts: list[str | tuple[str, str]] = []
    used = 0
    for words, look in _figures(measured, pair, before, behind, is_wide=room >= WIDE_FROM):
        cells = cell_len(visible_line(words)) + (len(BETWEEN) if parts else 0)
        if used + cells > room and parts:
            break
        parts += [BETWEEN, (words, look)] if parts else [(words, look)]
        used += cells
    return Content.assemble(*parts)


def _figures(
    measured: Measured, pair: Pair, before: str, behind: str, *, is_wide: bool
) -> Iterator[tuple[str, str]]:
    tests, plain = pair.tests, "$foreground"
    yield f"{before}{measured.name}", "bold"
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
    if behind:
        yield behind, "$faint"
    elif is_wide and not math.isnan(tests.effect):
        yield f"d_z {tests.effect:.2f}", plain


BAR_CELLS = 5
WIDE_BAR_CELLS = 9
WIDE_BARS_FROM = 56
"""The cells of half a bar, and the width of a list from which on it has longer ones."""

VALUES_FROM = 64
"""The width of a list from which on it shows the figures of both runs before their difference."""

ZERO = "│"
"""The middle of a bar."""

UP, DOWN, SAME = "↑", "↓", "="
NOT_THERE = "+"
"""The sign of a document that only this run has."""

TIE = 5e-10
"""The greatest difference that counts as none, as in the tests."""


def shown_difference(value: float) -> str:
    """Return a difference in five cells.

    >>> shown_difference(0.1602), shown_difference(-1.0), shown_difference(0.0)
    ('+.160', '-1.00', '  =  ')
    """
    if abs(value) <= TIE:
        return f"  {SAME}  "
    return f"{'+' if value > 0 else '-'}{shown_figure(abs(value))}"


def half_bar(share: float, cells: int) -> str:
    """Return a bar of a share of so many cells that grows to the left, to half a cell.

    >>> half_bar(0.5, 3), half_bar(1.0, 3), half_bar(0.01, 3)
    (' ▐█', '███', '   ')
    """
    full, rest = divmod(round(max(0.0, min(1.0, share)) * cells * 2), 2)
    return ("▐" * rest + "█" * full).rjust(cells)


class DifferenceRows(TopicRows):
    """The topics of two runs: second − first figure, with a bar."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--won", "rows--fell", "rows--rank"}

    def __init__(self, pages: RunPages) -> None:
        super().__init__(pages)
        self.differences: Mapping[str, TopicDifference] = {}
        """The differences by topic; empty until they are known."""
        self._greatest = 1.0

    def set_differences(self, topics: Sequence[TopicDifference]) -> None:
        """Take the differences of all topics, without drawing them."""
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


class ComparedRows(RankingRows):
    """A topic's ranking in one run, with the distance of each document's move to the other run.

    An arrow shows whether the second run ranks it higher or lower, in the lists of both runs.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--won", "rows--fell"}

    def __init__(self, text: Callable[[str], str | None], *, is_second: bool, id: str) -> None:  # noqa: A002
        super().__init__(text, id=id)
        self._is_second = is_second
        self.other_ranks: Mapping[str, int] | None = None
        """The ranks of the topic's documents in the other run; None until they are known."""
        self._cells = 0
        self._by_weight: Sequence[int] = ()
        """The lines of the moved documents, those with the most important moves first."""
        self._visited = -1
        """The place in `_by_weight` that `next_moved` returned last."""

    def set_other_ranks(self, ranks: Mapping[str, int] | None) -> None:
        """Take the ranks in the other run, and show the moves."""
        self.other_ranks = ranks
        moves = [self._move_of(place) for place in range(len(self.documents))]
        self._cells = 0 if ranks is None else 1 + len(str(max((abs(one or 0) for one in moves), default=0)))
        moved = [place for place, move in enumerate(moves) if move != 0]
        self._by_weight = sorted(moved, key=self._weight, reverse=True)
        self._visited = -1
        self.refresh()

    def next_moved(self, step: int) -> int | None:
        """Return the line with the most important move, from there the next one, or with step -1 the one before.

        Return None if there is none. The importance is the change of nDCG's discount, 1 / log2(1 + rank): one document
        inserted above moves nearly all others by a rank.
        """
        last, order = self._visited, self._by_weight
        if not 0 <= last < len(order) or order[last] != self.cursor:
            last = -1 if step > 0 else len(order)
        if not 0 <= last + step < len(order):
            return None
        self._visited = last + step
        return order[self._visited]

    def _move_of(self, place: int) -> int | None:
        """Return first − second rank of the document on a line; None where only one run has it."""
        other = None if self.other_ranks is None else self.other_ranks.get(self.documents[place])
        if other is None:
            return None
        return other - self.rank(place) if self._is_second else self.rank(place) - other

    def _weight(self, place: int) -> float:
        other = (self.other_ranks or {}).get(self.documents[place])
        return abs(_discount(self.rank(place)) - (0.0 if other is None else _discount(other)))

    def _before_rank(self, place: int) -> Sequence[RowPart]:
        if self.other_ranks is None:
            return ()
        move = self._move_of(place)
        if move is None:
            sign, is_higher = f"{NOT_THERE:<{self._cells}} ", self._is_second
        elif move:
            sign, is_higher = f"{UP if move > 0 else DOWN}{abs(move):<{self._cells - 1}} ", move > 0
        else:
            return ((f"{SAME:<{self._cells}} ", "rows--faint"),)
        # Only the move of a relevant document is an improvement or a loss.
        is_gold = self.documents[place] in self.relevant
        return ((sign, "rows--faint" if not is_gold else "rows--won" if is_higher else "rows--fell"),)


def _discount(rank: int) -> float:
    return 1 / math.log2(1 + rank)
