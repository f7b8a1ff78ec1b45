"""The widgets of the panes: a list of any length, a text of any length, a line of keys.

`Rows` and `TextPane` are drawn line by line, so that another text does not lay out the screen again. Widths are in
cells. Imports no `textual.app`: prompts use the functions that cut texts to cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget

from searchapp.text import visible_line
from searchapp.tui.kit.content import Content, Notation

READ, SHOWN = 1_500, 600
"""Characters at the beginning of a text: what is looked at for a line, and what is shown at most of that."""

Part = tuple[str, str]
"""Text, and the component class that says what it looks like."""


def one_line(text: str, notation: Notation) -> str:
    """The beginning of a text on one line."""
    begin = notation.rewritten(text[:READ]).text
    return visible_line(" ".join(begin[:SHOWN].split()))


def fitted(text: str, cells: int) -> str:
    """A text in exactly this many cells, cut with an ellipsis or filled up with blanks.

    >>> fitted("topology", 5), fitted("top", 5)
    ('topo…', 'top  ')
    """
    if cells <= 0:
        return ""
    text = visible_line(text)
    if cell_len(text) > cells:
        return set_cell_size(text, cells - 1) + "…"
    return set_cell_size(text, cells)


def shortened(text: str, cells: int) -> str:
    """A text on one line in at most this many cells, cut with an ellipsis.

    >>> shortened("topology", 5), shortened("top", 5)
    ('topo…', 'top')
    """
    text = visible_line(text)
    return text if cell_len(text) <= cells else fitted(text, cells)


@runtime_checkable
class FollowsCursors(Protocol):
    """A screen that shows what the cursor of a list is on."""

    def cursor_moved(self, rows: Rows) -> None:
        """The cursor is on another line; called at once, so that both are drawn together and once."""


class Rows(ScrollView, can_focus=True, inherit_bindings=False):
    """A list with a cursor; a subclass says what each line shows.

    The keys are the screen's: it calls `move`.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--text",
        "rows--faint",
        "rows--begun",
        "rows--cursor",
        "rows--here",
    }

    class Picked(Message):
        """A line was clicked."""

        def __init__(self, rows: Rows, place: int) -> None:
            self.rows = rows
            self.place = place
            super().__init__()

        @property
        def control(self) -> Rows:
            return self.rows

    # Not laid out again with the whole screen when its length changes: only its scroll bar depends on that.
    virtual_size = Reactive(Size(0, 0))

    ALLOW_SELECT = False  # a line is clicked to go to it; what it is the beginning of can be selected

    def __init__(self, *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self.count = 0
        self.cursor = 0
        self.moves = 0
        """How often the cursor has gone elsewhere."""
        self._looks: dict[str, Style] = {}

    # For subclasses

    def parts(self, place: int, width: int) -> Sequence[Part]:
        """What a line shows, from the left; it is cut at the width."""
        raise NotImplementedError

    def row_class(self, place: int) -> str:  # noqa: ARG002  # for subclasses
        """The component class of a whole line, or nothing."""
        return ""

    # For the screen

    def show(self, count: int, cursor: int) -> None:
        """Show another list."""
        self.count = count
        self.moves += 1
        self.cursor = max(0, min(cursor, count - 1))
        self.virtual_size = Size(self.size.width, count)
        self._keep_in_sight(force=True)
        self.refresh()

    def move(self, place: int) -> None:
        """Put the cursor on a line, and have the screen follow."""
        if self.put(place) and isinstance(self.screen, FollowsCursors):
            self.screen.cursor_moved(self)

    def put(self, place: int) -> bool:
        """Put the cursor on a line; whether it was on another one."""
        place = max(0, min(place, self.count - 1))
        if place == self.cursor or not self.count:
            return False
        self.moves += 1
        old, self.cursor = self.cursor, place
        self.redraw(old)
        self.redraw(place)
        self._keep_in_sight()
        return True

    def redraw(self, place: int) -> None:
        """Draw a line again."""
        line = place - self.scroll_offset.y
        if 0 <= line < self.size.height:
            self.refresh(Region(0, line, self.size.width, 1))

    @property
    def page(self) -> int:
        """The number of visible lines."""
        return max(1, self.size.height)

    @property
    def visible_places(self) -> range:
        top = self.scroll_offset.y
        return range(top, min(self.count, top + self.page))

    def _keep_in_sight(self, force: bool = False) -> None:
        top, height = self.scroll_offset.y, self.page
        margin = min(2, (height - 1) // 2)
        lowest = max(0, self.count - height)
        if self.cursor < top + margin:
            target = max(0, self.cursor - margin)
        elif self.cursor >= top + height - margin:
            target = min(lowest, self.cursor - height + 1 + margin)
        else:
            target = min(top, lowest)
        if target != top or force:
            self.scroll_to(y=target, animate=False, force=True, immediate=True)

    # Drawing and the mouse

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        place = y + self.scroll_offset.y
        base = self._look("")
        if not 0 <= place < self.count:
            return Strip.blank(width, base)
        row = self.row_class(place)
        if row:
            base += self._look(row)
        is_chosen = place == self.cursor and self.has_focus
        if place == self.cursor:
            base += self._look("rows--cursor" if is_chosen else "rows--here")
        # Where text and background of the line are exchanged, all of its text is in one colour.
        look = self._attributes if is_chosen and self.app.native_ansi_color else self._look
        segments = [
            Segment(visible_line(text), base + look(component))
            for text, component in self.parts(place, width)
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def _look(self, component: str) -> Style:
        """The style of a component class, or of the list itself; to ask Textual for it takes long."""
        if component not in self._looks:
            style = self.get_component_rich_style(component, partial=True) if component else self.rich_style
            self._looks[component] = style
        return self._looks[component]

    def _attributes(self, component: str) -> Style:
        """The style of a component class without its colours; what is bold then is underlined, as all is bold."""
        look = self._look(component)
        return Style(underline=True) if look.bold else Style.null()

    def watch_virtual_size(self, size: Size) -> None:
        self._scroll_update(size)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._looks.clear()

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, self.count)
        self._keep_in_sight()

    def on_show(self) -> None:
        self.refresh()  # changes while the list was hidden were not drawn

    def on_click(self, event: events.Click) -> None:
        inside = event.get_content_offset(self)  # None on the border
        place = -1 if inside is None else inside.y + self.scroll_offset.y
        if 0 <= place < self.count:
            with self.app.batch_update():
                self.move(place)
            self.post_message(self.Picked(self, place))
        event.stop()


class TextPane(ScrollView, can_focus=True, inherit_bindings=False):
    """A pane with a text of any length; its keys are the screen's."""

    # Not laid out again with the whole screen when its length changes: only its scroll bar depends on that.
    virtual_size = Reactive(Size(0, 0))

    def __init__(self, *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self.text = Content("")
        self._lines: list[Strip] = []
        self._look = Style.null()

    def show(self, text: Content, *, changed: bool = True) -> None:
        """Show a text from its beginning; one that is not `changed` but updated stays where it is scrolled to."""
        if not self.is_attached:  # a dialog that was left before it was drawn
            self.text = text
            return
        if changed and self.text_selection is not None:
            self.screen.clear_selection()  # it was one of the other text
        self.text = text
        self._lay_out()
        if changed:
            self.scroll_to(y=0, animate=False, force=True, immediate=True)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract(self.text.plain), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002  # Textual's
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        place = y + self.scroll_offset.y
        line = self._lines[place] if place < len(self._lines) else Strip.blank(width, self._look)
        return line.adjust_cell_length(width, self._look)

    def watch_virtual_size(self, size: Size) -> None:
        self._scroll_update(size)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._lay_out()  # the colours of the lines are those of the theme

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0 or not self.is_attached:
            return
        self._look = self.rich_style
        self._lines = Visual.to_strips(self, self.text, width, None, self.visual_style)
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()


LONGEST_WORD = 40
"""In cells: a longer one, the name of a grade for instance, is cut so that the keys beside it stay visible."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key, what it does in a word or two, and the action's name."""

    name: str
    key: str
    word: str

    @property
    def cells(self) -> int:
        return cell_len(self.key) + cell_len(self.shown) + 2

    @property
    def shown(self) -> str:
        """The word as it is shown."""
        return shortened(self.word, LONGEST_WORD)


class KeyLine(Widget):
    """Keys with their meanings, on as many lines as they need but at most `lines`; the last entry is always there."""

    class Pressed(Message):
        """An entry was clicked."""

        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__()

    def __init__(self, entries: Sequence[Entry], lines: int, *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self._entries = list(entries)
        self._lines = lines
        self.chosen = ""

    def choose(self, name: str) -> None:
        """Mark the entry that holds for the document that is shown."""
        if name != self.chosen:
            self.chosen = name
            self.refresh()

    def render(self) -> Content:
        lines = []
        for line in self._laid_out(self.size.width):
            parts: list[tuple[str, str]] = []
            for entry in line:
                chosen = entry.name == self.chosen
                parts.append((f" {entry.key}", "bold reverse $primary" if chosen else "bold $primary"))
                parts.append((f" {entry.shown} ", "bold reverse $primary" if chosen else "$foreground"))
            lines.append(Content.assemble(*parts))
        return Content("\n").join(lines)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self._laid_out(width)) or 1

    def places(self) -> Iterator[tuple[tuple[int, int], str]]:
        """The column and the line at which each entry that is in sight has its key, and its name."""
        for y, line in enumerate(self._laid_out(self.size.width)):
            left = 0
            for entry in line:
                yield (left + 1, y), entry.name
                left += entry.cells + 1

    def on_click(self, event: events.Click) -> None:
        line = self._laid_out(self.size.width)
        left = event.x
        for entry in line[event.y] if 0 <= event.y < len(line) else ():
            if 0 <= left < entry.cells + 1:
                self.post_message(self.Pressed(entry.name))
                return
            left -= entry.cells + 1

    def _laid_out(self, width: int) -> list[list[Entry]]:
        lines: list[list[Entry]] = [[]]
        used = 0
        for entry in self._entries[:-1]:
            room = width - (self._entries[-1].cells + 1 if len(lines) == self._lines else 0)
            if used + entry.cells + 1 > room:
                if len(lines) == self._lines:
                    break
                lines.append([])
                used = 0
                room = width - (self._entries[-1].cells + 1 if len(lines) == self._lines else 0)
                if entry.cells + 1 > room:
                    break
            lines[-1].append(entry)
            used += entry.cells + 1
        if used + self._entries[-1].cells + 1 > width and len(lines) < self._lines:
            lines.append([])
        lines[-1].append(self._entries[-1])
        return lines
