"""Jump mode: every visible target gets a label, and typing the label goes there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product
from string import ascii_lowercase
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.geometry import Offset
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from searchapp.lucene.dataclass import dataclass
from searchapp.tui.kit.dialogs import Dialog
from searchapp.tui.kit.widgets import KeyLine, RowList

HOME_ROW = "asdfghjkl"
# The letters of labels, home row first.
LETTERS = HOME_ROW + "".join(letter for letter in ascii_lowercase if letter not in HOME_ROW)

# Maximum targets with a label.
MOST = len(LETTERS) ** 2


@dataclass(frozen=True, slots=True)
class Target:
    """A position to jump to; its label is drawn at `at`."""

    at: Offset

    go: Callable[[], object]


def targets(screen: Screen[None], focus: Callable[[Widget], object]) -> list[Target]:
    """Return all visible targets of a screen in reading order."""
    result: list[Target] = []
    for widget in screen.query("*"):
        if not widget.region.area or not all(
            node.display and node.visible for node in widget.ancestors_with_self if isinstance(node, Widget)
        ):
            continue
        if isinstance(widget, RowList):
            result += _line_targets(widget, focus)
        elif isinstance(widget, KeyLine):
            left, top = widget.content_region.offset
            for x, y, entry in widget.positions():
                message = KeyLine.Pressed(entry.name)
                behind_key = Offset(left + x + 1 + cell_len(entry.key), top + y)
                result.append(Target(behind_key, partial(widget.post_message, message)))
        elif widget.can_focus:
            result.append(Target(widget.region.offset, partial(focus, widget)))
    result = [target for target in result if screen.region.contains_point(target.at)]
    return sorted(result, key=lambda target: (target.at.y, target.at.x))


def _line_targets(rows: RowList, focus: Callable[[Widget], object]) -> Iterator[Target]:
    left, top = rows.content_region.offset

    def go(index: int) -> None:
        focus(rows)
        rows.move(index)

    indexes = rows.visible_rows
    for index in indexes:
        line = max(0, index * rows.row_height - rows.scroll_offset.y)
        yield Target(Offset(left, top + line), partial(go, index))
    if not indexes:
        yield Target(rows.region.offset, partial(focus, rows))


def labels(count: int) -> list[str]:
    """Return prefix-free labels for `count` targets: one letter each, or two for the last ones.

    >>> labels(3), labels(27)[-3:], len(set(labels(600)))
    (['a', 's', 'd'], ['y', 'za', 'zs'], 600)
    """
    pairs = max(0, -(-(count - len(LETTERS)) // (len(LETTERS) - 1)))
    singles = LETTERS[: len(LETTERS) - pairs]
    both = ("".join(pair) for pair in product(LETTERS[len(singles) :], LETTERS))
    return [*singles[:count], *islice(both, max(0, count - len(singles)))]


class JumpLabels(Widget):
    """A drawn screen with labels over it; a widget per label would take a third of a second."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"labels--label"}
    ALLOW_SELECT = False

    def __init__(self, drawn: Sequence[Strip], at: Mapping[str, Offset]) -> None:
        super().__init__()
        self._drawn = drawn
        self._at = at
        # The typed letters; labels that do not begin with them are hidden.
        self.typed = ""

    def render_line(self, y: int) -> Strip:
        line = self._drawn[y] if y < len(self._drawn) else Strip.blank(self.size.width)
        style = self.get_component_rich_style("labels--label")
        for label, at in self._at.items():
            if at.y == y and label.startswith(self.typed):
                end = at.x + len(label)
                shown = Strip([Segment(label, style)], len(label))
                line = Strip.join([line.crop(0, at.x), shown, line.crop(end)])
        return line


class Jumping(Dialog[None]):
    """Labels over a screen; any other key closes them."""

    def __init__(self, screen: Screen[None], jump_targets: Sequence[Target]) -> None:
        super().__init__()
        jump_targets = jump_targets[:MOST]
        self._targets = dict(zip(labels(len(jump_targets)), jump_targets, strict=True))
        self._size = screen.size
        drawn = screen._compositor.render_strips()
        self._labels = JumpLabels(drawn, {label: target.at for label, target in self._targets.items()})

    def compose(self) -> ComposeResult:
        yield self._labels

    def take(self, event: events.Key) -> bool:
        typed = self._labels.typed
        typed = typed[:-1] if event.key == "backspace" and typed else typed + event.key
        target = self._targets.get(typed)
        if target is not None:
            self.dismiss(None)
            target.go()
        elif any(label.startswith(typed) for label in self._targets):
            self._labels.typed = typed
            self._labels.refresh()
        else:
            self.dismiss(None)
        return True

    def on_click(self) -> None:
        self.dismiss(None)

    def on_resize(self, event: events.Resize) -> None:
        if event.size != self._size:
            self.dismiss(None)
