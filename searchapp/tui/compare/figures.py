"""The figures of two runs on the compare screen, and what computes them in the background."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum

from rich.cells import cell_len

from searchapp.app.comparing import Comparing
from searchapp.app.comparison import Comparison, Measured, Pair, TopicDifference, number, p_value, signed
from searchapp.progress import InWords, Stopped
from searchapp.tui.background import Background, Post
from searchapp.tui.content import Content, Plain
from searchapp.visible import visible_line

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
        self._background = Background("compare", lambda: comparing, post)
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
        return comparing.compare(InWords(self._tell))

    def _tell(self, words: str) -> None:
        if self._is_closed:
            raise Stopped
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
