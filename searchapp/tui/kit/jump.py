"""Jump mode: everything in sight that can be gone to gets a label, and typing it goes there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from string import ascii_lowercase
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.geometry import Offset
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from searchapp.tui.kit.dialogs import Dialog
from searchapp.tui.kit.widgets import KeyLine, Rows

HOME_ROW = "asdfghjkl"
LETTERS = HOME_ROW + "".join(letter for letter in ascii_lowercase if letter not in HOME_ROW)
"""Those that labels are made of, the nearest to the fingers first."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something to jump to: where its label stands on the screen, and what going there is."""

    at: Offset
    go: Callable[[], object]


def targets(screen: Screen[None], focus: Callable[[Widget], object]) -> list[Target]:
    """Everything in sight on a screen: lines of lists, panes and lines for words, keys; in reading order."""
    found: list[Target] = []
    for widget in screen.query("*"):
        if not widget.region.area or not _in_sight(widget):
            continue
        if isinstance(widget, Rows):
            found += _lines(widget, focus)
        elif isinstance(widget, KeyLine):
            found += _keys(widget)
        elif widget.can_focus:
            found.append(Target(widget.region.offset, lambda widget=widget: focus(widget)))  # type: ignore[misc]
    found = [one for one in found if screen.region.contains_point(one.at)]
    return sorted(found, key=lambda one: (one.at.y, one.at.x))


def _in_sight(widget: Widget) -> bool:
    return all(one.display and one.visible for one in widget.ancestors_with_self if isinstance(one, Widget))


def _lines(rows: Rows, focus: Callable[[Widget], object]) -> Iterator[Target]:
    left, top = rows.content_region.offset

    def go(place: int) -> None:
        focus(rows)
        rows.move(place)

    seen = rows.visible_places
    for place in seen:
        yield Target(Offset(left, top + place - seen.start), lambda place=place: go(place))  # type: ignore[misc]
    if not seen:
        yield Target(rows.region.offset, lambda: focus(rows))


def _keys(line: KeyLine) -> Iterator[Target]:
    left, top = line.content_region.offset
    for (x, y), name in line.places():
        go = lambda name=name: line.post_message(KeyLine.Pressed(name))  # noqa: E731
        yield Target(Offset(left + x, top + y), go)


def labels(count: int) -> list[str]:
    """Labels for so many targets: one letter each, or two for the last of them; none begins another.

    >>> labels(3), labels(27)[-3:], len(set(labels(600)))
    (['a', 's', 'd'], ['y', 'za', 'zs'], 600)
    """
    pairs = max(0, -(-(count - len(LETTERS)) // (len(LETTERS) - 1)))
    singles = LETTERS[: len(LETTERS) - pairs]
    both = ("".join(pair) for pair in product(LETTERS[len(singles) :], LETTERS))
    return [*singles[:count], *islice(both, max(0, count - len(singles)))]


MOST = len(LETTERS) ** 2
"""Targets that can have a label."""


class Labels(Widget):
    """A screen as it was drawn, with labels over it: one widget, for a widget each would take a third of a second."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"labels--label"}
    ALLOW_SELECT = False

    def __init__(self, drawn: Sequence[Strip], at: Mapping[str, Offset]) -> None:
        super().__init__()
        self._drawn = drawn
        self._at = at
        self.begun = ""
        """What is typed: labels that begin otherwise are not shown any more."""

    def render_line(self, y: int) -> Strip:
        line = self._drawn[y] if y < len(self._drawn) else Strip.blank(self.size.width)
        style = self.get_component_rich_style("labels--label")
        for label, at in self._at.items():
            if at.y == y and label.startswith(self.begun):
                end = at.x + len(label)
                shown = Strip([Segment(label, style)], len(label))
                line = Strip.join([line.crop(0, at.x), shown, line.crop(end)])
        return line


class Jumping(Dialog[None]):
    """The labels, over the screen that they are of; a key that begins none of them takes them away."""

    def __init__(self, screen: Screen[None], found: Sequence[Target]) -> None:
        super().__init__()
        found = found[:MOST]
        self._targets = dict(zip(labels(len(found)), found, strict=True))
        self._size = screen.size
        drawn = screen._compositor.render_strips()
        self._labels = Labels(drawn, {label: target.at for label, target in self._targets.items()})

    def compose(self) -> ComposeResult:
        yield self._labels

    def take(self, event: events.Key) -> bool:
        begun = self._labels.begun
        typed = begun[:-1] if event.key == "backspace" and begun else begun + event.key
        going = self._targets.get(typed)
        if going is not None:
            self.dismiss(None)
            going.go()
        elif any(label.startswith(typed) for label in self._targets):
            self._labels.begun = typed
            self._labels.refresh()
        else:
            self.dismiss(None)
        return True

    def on_click(self) -> None:
        self.dismiss(None)

    def on_resize(self, event: events.Resize) -> None:
        """What the labels stand on is elsewhere now."""
        if event.size != self._size:
            self.dismiss(None)
