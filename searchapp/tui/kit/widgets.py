"""Screens that take keys in order, and the widgets of their panes. Widths are in cells.

`RowList` and `TextPane` draw line by line, so that new text does not require a new layout of the screen.
Imports no `textual.app`, because prompts use the functions that cut texts.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual._time import get_time
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.screen import Screen, ScreenResultType
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget
from textual.widgets import Input

from searchapp.lucene.dataclass import dataclass
from searchapp.text import Span, visible_line
from searchapp.tui.kit.content import Content, Notation

# Maximum characters of a text that are read for a line, and that the line shows.
READ, SHOWN = 1_500, 600

# Text, and the component class of its style.
RowPart = tuple[str, str]


def one_line(text: str, notation: Notation) -> str:
    """Return the beginning of a text on one line."""
    begin = notation.rewritten(text[:READ]).text
    return visible_line(" ".join(begin[:SHOWN].split()))


def fitted(text: str, cells: int) -> str:
    """Cut or pad a text to exactly this number of cells.

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
    """Cut a text to at most this number of cells on one line.

    >>> shortened("topology", 5), shortened("top", 5)
    ('topo…', 'top')
    """
    text = visible_line(text)
    return text if cell_len(text) <= cells else fitted(text, cells)


def shortened_id(id_: str, cells: int) -> str:
    """Cut the middle of an id: ids of a collection often differ only at the beginning or the end.

    >>> shortened_id("valley_governors:16", 11), shortened_id("7", 3)
    ('valle…rs:16', '7')
    """
    shown = visible_line(id_)
    if cell_len(shown) <= cells:
        return shown
    begin = shown[: cells // 2]
    while cell_len(begin) > cells // 2:
        begin = begin[:-1]
    end = shown[len(begin) + 1 :]
    while end and cell_len(end) >= cells - cell_len(begin):
        end = end[1:]
    return f"{begin}…{end}" if cells > 0 else ""


# In titles and messages.
LONGEST_ID = 24


def id_column(id_: str, cells: int) -> str:
    """Return an id in exactly `cells` cells with two blanks behind it; nothing for a column of 0 cells."""
    return f"{fitted(shortened_id(id_, cells), cells)}  " if cells else ""


# Running numbers, hexadecimal digests and UUIDs.
_MEANINGLESS_ID = re.compile(r"\d+|(?=.*\d)[0-9a-f]{8,}|[0-9a-f]{4,}(-[0-9a-f]{4,}){2,}", re.IGNORECASE)

# The number of ids that determine the width of their column.
_SAMPLED_IDS = 500


def id_column_cells(ids: Sequence[str], most: int) -> int:
    """Return the width of a column of ids beside texts; 0 if the ids tell a reader nothing.

    >>> id_column_cells(["dbo:City", "dbo:Place"], 12), id_column_cells(["17", "18"], 12)
    (9, 0)
    """
    sampled = [visible_line(id_) for id_ in ids[:_SAMPLED_IDS]]
    if all(_MEANINGLESS_ID.fullmatch(id_) for id_ in sampled):
        return 0
    return min(most, max(map(cell_len, sampled)))


def chip(words: str, look: str = "$faint") -> tuple[str, str]:
    """Return a state as a styled part of a line: in reverse video, so that its ends are visible without colours."""
    return f" {visible_line(words)} ", f"reverse {look}"


# A chip cuts longer names of annotators: a line omits chips for which it has no room.
ANNOTATOR_CELLS = 24


def judging_chip(annotator: str) -> tuple[str, str]:
    """Return the chip of a screen on which documents are graded."""
    return chip(f"judging as {shortened(annotator, ANNOTATOR_CELLS)}", "bold $primary")


UP, DOWN, SAME = "↑", "↓", "="
# The sign of a document that the other ranking lacks.
NOT_THERE = "+"


def move_label(move: int | None, cells: int) -> str:
    """Return by how many ranks a second ranking ranks a document higher, in `cells` cells; None: it lacks it.

    >>> [move_label(move, 3) for move in (12, -1, 0, None)]
    ['↑12', '↓1 ', '=  ', '+  ']
    """
    if move is None:
        return f"{NOT_THERE:<{cells}}"
    return f"{f'{UP if move > 0 else DOWN}{abs(move)}' if move else SAME:<{cells}}"


# Screens with at least this number of columns are wide; with fewer than `SLIM_BELOW`, panes are below each other.
WIDE_FROM, SLIM_BELOW = 110, 60

# Screens with at least this number of lines are high, with fewer than `LOW_BELOW` low.
HIGH_FROM, LOW_BELOW = 36, 20


class OrderedScreen(Screen[ScreenResultType]):
    """A screen that acts on keys in the order of typing."""

    _painted: float | None = None
    _held_back: Sequence[Callable[[], object]] = ()

    def take(self, event: events.Key) -> bool:  # noqa: ARG002  # for subclasses
        return False

    def cursor_moved(self, rows: RowList) -> None:
        """Show the details of the line under the cursor, so that both are drawn together."""

    def when_in_front(self, do: Callable[[], object]) -> None:
        """Call a function when no other screen covers this one.

        A late answer must not open a dialog while the user is typing on another screen.
        """
        if self.is_active:
            do()
        else:
            self._held_back = [*self._held_back, do]

    @on(events.ScreenResume)
    def _came_to_front(self) -> None:
        while self._held_back and self.is_active:
            do, *self._held_back = self._held_back
            do()

    def await_paint(self) -> None:
        self._painted = None
        self.refresh()

    def is_painted_before(self, event: events.Event) -> bool:
        return self._painted is not None and self._painted <= event.time

    @property
    def is_painted(self) -> bool:
        return self._painted is not None

    def on_compose(self) -> None:
        # Before the panes exist: later, Textual would restyle every pane.
        self._classify(self.app.size)

    @on(events.Resize)
    def _resized(self, event: events.Resize) -> None:
        self._classify(event.size)

    def _classify(self, size: Size) -> None:
        is_wide = size.width >= WIDE_FROM
        self.update_classes(
            {
                "-wide": is_wide,
                "-narrow": not is_wide,
                "-slim": size.width < SLIM_BELOW,
                "-high": size.height >= HIGH_FROM,
                "-low": size.height < LOW_BELOW,
            }
        )

    @on(events.ScreenResume)
    def _resumed(self, event: events.ScreenResume) -> None:
        if self.app.screen_stack[0] is self and not self.stack_updates:
            event.refresh_styles = False  # the panes already have their styles

    def _compositor_refresh(self) -> None:
        super()._compositor_refresh()
        is_shown = self.is_mounted and self is self.app.screen and not self.app._batch_count
        if self._painted is None and is_shown:
            self._painted = get_time()


class TextLine(Input):
    """A line of text.

    Args:
        submitted: receives the text when the user presses Enter
        changed: receives the text after each change
    """

    # Avoids Textual's layout of the screen after each letter; the screen determines the line's width.
    virtual_size = Reactive(Size(0, 0))

    def __init__(
        self,
        submitted: Callable[[str], object],
        changed: Callable[[str], object] = lambda _text: None,
        *,
        text: str = "",
        hint: str = "",
        id: str | None = None,  # noqa: A002  # Textual's name
    ) -> None:
        super().__init__(visible_line(text), placeholder=visible_line(hint), select_on_focus=False, id=id)
        self.cursor_blink = False
        self._submitted = submitted
        self._changed = changed

    def take(self, event: events.Key) -> bool:
        """Act on a key; return whether it has an effect in a line."""
        edits: dict[str, Callable[[], None]] = {
            "backspace": self.action_delete_left,
            "delete": self.action_delete_right,
            "left": self.action_cursor_left,
            "right": self.action_cursor_right,
            "home": self.action_home,
            "end": self.action_end,
            "ctrl+a": self.action_home,
            "ctrl+e": self.action_end,
            "ctrl+w": self.action_delete_left_word,
            "ctrl+u": self.action_delete_left_all,
            "ctrl+k": self.action_delete_right_all,
        }
        if event.key == "enter":
            self._submitted(self.value)
            return True
        if event.key in edits:
            edits[event.key]()
        elif event.is_printable and event.character and not event.key.startswith("alt+"):
            self.replace(event.character, *self.selection)
        else:
            return False
        self._changed(self.value)
        return True

    # These three cover all input, so that no text in the line acts on the terminal.

    def validate_value(self, value: str) -> str:
        return visible_line(value)

    def insert(self, text: str, position: int) -> None:
        super().insert(visible_line(text), position)

    def replace(self, text: str, start: int, end: int) -> None:
        super().replace(visible_line(text), start, end)

    def paste(self, text: str) -> None:
        """Insert a text; blanks join its lines."""
        lines = text.splitlines()
        if len(lines) > 1:
            lines = [line for line in map(str.strip, lines) if line]
        self.replace(" ".join(lines), *self.selection)
        self._changed(self.value)


class LinePane(ScrollView, can_focus=True, inherit_bindings=False):
    """A focusable, scrolling pane of lines; the screen acts on its keys."""

    # Avoids Textual's layout of the screen when the length changes; only the scroll bar depends on it.
    virtual_size = Reactive(Size(0, 0))

    def watch_virtual_size(self, size: Size) -> None:
        self._scroll_update(size)


class RowList(LinePane):
    """A list with a cursor; a subclass supplies the text of each line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--text",
        "rows--faint",
        "rows--head",
        "rows--grade-zero",
        "rows--grade-some",
        "rows--grade-most",
        "rows--begun",
        "rows--cursor",
        "rows--here",
    }

    class Picked(Message):
        """The user clicked a line."""

        def __init__(self, rows: RowList, index: int) -> None:
            self.rows = rows
            self.index = index
            super().__init__()

        @property
        def control(self) -> RowList:
            return self.rows

    ALLOW_SELECT = False  # a click chooses the line; its text can be selected in another pane

    def __init__(self, *, id: str, empty: str = "") -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self.count = 0
        # The text of a list without lines: why it has none, and what to do.
        self._empty = empty
        self.cursor = 0
        # Number of changes of the cursor or the list.
        self.moves = 0
        # Number of lines of each row.
        self.row_height = 1
        # Whether the cursor is visible in a list without the focus.
        self.shows_cursor = True
        self._looks: dict[str, Style] = {}

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        """Return the text of a line from the left."""
        raise NotImplementedError

    def second_line(self, index: int, width: int) -> Sequence[RowPart]:  # noqa: ARG002  # for subclasses
        """Return the text of a row's second line from the left, if rows have two."""
        return ()

    def head(self, width: int) -> Sequence[str]:  # noqa: ARG002  # for subclasses
        """Return the heads of the columns, each as wide as its column; the last one may have any width."""
        return ()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the heads of the columns in the padding above the rows, if the screen gives the list one."""
        strips = super().render_lines(crop)
        y = self.gutter.top - 1
        if self.styles.padding.top and crop.y <= y < crop.bottom:
            width = self.scrollable_content_region.width
            text = fitted("".join(self.head(width)), width)
            strip = Strip([Segment(text, self._look("") + self._look("rows--head"))])
            for line_filter in self.get_line_filters():
                strip = strip.apply_filter(line_filter, self.background_colors[1])
            strip = strip.adjust_cell_length(self.region.width, self._look(""))
            strips[y - crop.y] = strip.crop(crop.x, crop.right)
        return strips

    def show_empty(self, words: str) -> bool:
        """Show why the list has no lines, and what to do; return whether the words changed."""
        is_new = words != self._empty
        if is_new:
            self._empty = words
            self.refresh()
        return is_new

    def empty_lines(self, width: int) -> list[str]:
        return textwrap.wrap(visible_line(self._empty), max(1, width - 2))

    def row_class(self, index: int) -> str:  # noqa: ARG002  # for subclasses
        return ""

    def show(self, count: int, cursor: int) -> None:
        self.count = count
        self.moves += 1
        self.cursor = max(0, min(cursor, count - 1))
        self._measure()
        self._keep_in_sight(force=True)
        self.refresh()

    def scroll_to_row(self, index: int) -> None:
        """Show a row at the top, as far as the list is long enough, and keep the cursor in sight."""
        self.scroll_to(y=max(0, index) * self.row_height, animate=False, force=True, immediate=True)
        self._keep_in_sight()

    def set_row_height(self, lines: int) -> None:
        """Give each row this number of lines, and keep the cursor in sight."""
        top, self.row_height = self.visible_rows.start, lines
        self._measure()
        self.scroll_to_row(top)
        self.refresh()

    def _measure(self) -> None:
        # Blank lines below the last row, so that the last scroll position begins with a row, too.
        blank = self.size.height % self.row_height
        self.virtual_size = Size(self.size.width, self.count * self.row_height + blank)

    def is_here(self, index: int) -> bool:
        """Return whether the cursor is visible on a row."""
        return index == self.cursor and (self.shows_cursor or self.has_focus)

    def moves_by_key(self) -> dict[str, Callable[[], object]]:
        return {
            "down": lambda: self.move(self.cursor + 1),
            "up": lambda: self.move(self.cursor - 1),
            "pagedown": lambda: self.move(self.cursor + self.page),
            "pageup": lambda: self.move(self.cursor - self.page),
        }

    def move(self, index: int) -> None:
        if self.put(index) and isinstance(self.screen, OrderedScreen):
            self.screen.cursor_moved(self)

    def put(self, index: int) -> bool:
        """Put the cursor on a line; return whether it moved."""
        index = max(0, min(index, self.count - 1))
        if index == self.cursor or not self.count:
            return False
        self.moves += 1
        old, self.cursor = self.cursor, index
        self.redraw(old)
        self.redraw(index)
        self._keep_in_sight()
        return True

    def redraw(self, index: int) -> None:
        line = index * self.row_height - self.scroll_offset.y
        if -self.row_height < line < self.size.height:
            self.refresh(Region(0, max(0, line), self.size.width, self.row_height))

    @property
    def page(self) -> int:
        """The number of rows that fit."""
        return max(1, self.size.height // self.row_height)

    @property
    def visible_rows(self) -> range:
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + max(1, self.size.height)
        return range(top // self.row_height, min(self.count, -(-bottom // self.row_height)))

    def _keep_in_sight(self, force: bool = False) -> None:
        top, height = self.scroll_offset.y // self.row_height, self.page
        margin = min(2, (height - 1) // 2)
        lowest = max(0, self.count - height)
        if self.cursor < top + margin:
            target = max(0, self.cursor - margin)
        elif self.cursor >= top + height - margin:
            target = min(lowest, self.cursor - height + 1 + margin)
        else:
            target = min(top, lowest)
        if target != top or force:
            self.scroll_to(y=target * self.row_height, animate=False, force=True, immediate=True)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index, line = divmod(y + self.scroll_offset.y, self.row_height)
        base = self._look("")
        if not self.count and self._empty:
            lines = self.empty_lines(width)
            words = f" {lines[y]}" if y < len(lines) else ""
            return Strip([Segment(words, base + self._look("rows--faint"))]).adjust_cell_length(width, base)
        if not 0 <= index < self.count:
            return Strip.blank(width, base)
        row = self.row_class(index)
        if row:
            base += self._look(row)
        is_chosen = index == self.cursor and self.has_focus
        if self.is_here(index):
            base += self._look("rows--cursor" if is_chosen else "rows--here")
        # In the terminal's colours the line is reversed, so all of its text has one colour.
        look = self._attributes if is_chosen and self.app.native_ansi_color else self._look
        segments = [
            Segment(visible_line(text), base + look(component))
            for text, component in (self.second_line if line else self.parts)(index, width)
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def _look(self, component: str) -> Style:
        if component not in self._looks:  # Textual's own look-up is slow
            style = self.get_component_rich_style(component, partial=True) if component else self.rich_style
            self._looks[component] = style
        return self._looks[component]

    def _attributes(self, component: str) -> Style:
        look = self._look(component)
        if look.reverse:
            return Style(reverse=False)
        return Style(underline=True) if look.bold else Style.null()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._looks.clear()

    def on_resize(self) -> None:
        self._measure()
        self._keep_in_sight()

    def on_show(self) -> None:
        self.refresh()  # Textual does not draw changes of a hidden list

    def on_click(self, event: events.Click) -> None:
        inside = event.get_content_offset(self)  # None on the border
        index = -1 if inside is None else (inside.y + self.scroll_offset.y) // self.row_height
        if 0 <= index < self.count:
            with self.app.batch_update():
                self.move(index)
            self.post_message(self.Picked(self, index))
        event.stop()


class TextPane(LinePane):
    """A pane with a text of any length."""

    def __init__(self, *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self.text = Content("")
        self._lines: list[Strip] = []
        # The width of `_lines`.
        self._width = 0
        # A range of characters that stays visible when the size changes.
        self._revealed: Span | None = None
        self._look = Style.null()

    def show(self, text: Content, *, changed: bool = True, reveal: Span | None = None) -> None:
        """Show a text, from its beginning if it has `changed`, but so that the range `reveal` is visible."""
        self._revealed = reveal
        if not self.is_attached:  # the user closed the dialog before it was drawn
            self.text = text
            return
        if changed and self.text_selection is not None:
            self.screen.clear_selection()  # it belongs to the previous text
        self.text = text
        self._lay_out()
        if changed:
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
            self._reveal()

    @property
    def needed_height(self) -> int:
        """The number of lines that show the whole text, with the border."""
        if self._width != self.scrollable_content_region.width:
            self._lay_out()
        return len(self._lines) + self.gutter.height

    def _reveal(self) -> None:
        if self._revealed is None or not self._lines:
            return
        start, end = self._revealed
        first = max(0, self._count_lines(start + 1) - 1)
        last = self._count_lines(end)
        top = self.scroll_offset.y
        target = min(max(top, last - self.size.height), first)
        self.scroll_to(y=target, animate=False, force=True, immediate=True)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract(self.text.plain), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002  # Textual's
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        line = self._lines[index] if index < len(self._lines) else Strip.blank(width, self._look)
        return line.adjust_cell_length(width, self._look)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._lay_out()  # the lines have the colours of the theme

    def on_resize(self) -> None:
        self._lay_out()
        self._reveal()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0 or not self.is_attached:
            return
        self._look = self.rich_style
        self._lines = Visual.to_strips(self, self.text, width, None, self.visual_style)
        self._width = width
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    def _count_lines(self, end: int) -> int:
        """Return the number of lines up to a character."""
        begin = Content(self.text.plain[:end])
        return len(Visual.to_strips(self, begin, self._width, None, self.visual_style))


# Longer words, such as names of grades, are cut, so that the other keys stay visible; those of grades to the first of
# the smaller lengths with which every grade has room.
LONGEST_WORD = 40
GRADE_WORDS = (LONGEST_WORD, 12, 8, 5)


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """An entry of a line of keys; `name` is the action, `word` its effect."""

    name: str

    key: str
    word: str

    @property
    def shown(self) -> str:
        return shortened(self.word, LONGEST_WORD)

    @property
    def is_grade(self) -> bool:
        return self.name.startswith("grade_")

    @property
    def cells(self) -> int:
        return cell_len(self.key) + cell_len(self.shown) + 3


class KeyLine(Widget):
    """Keys and their effects; the last entry, and the one of the help, are always visible."""

    class Pressed(Message):
        """The user clicked an entry."""

        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__()

    def __init__(self, entries: Sequence[KeyEntry], lines: int, *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self._entries = list(entries)
        self._lines = lines
        self.chosen = ""

    def choose(self, name: str) -> None:
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

    def positions(self) -> Iterator[tuple[int, int, KeyEntry]]:
        """Yield the visible entries with column and line."""
        for y, line in enumerate(self._laid_out(self.size.width)):
            left = 0
            for entry in line:
                yield left, y, entry
                left += entry.cells

    def on_click(self, event: events.Click) -> None:
        for left, y, entry in self.positions():
            if y == event.y and left <= event.x < left + entry.cells:
                self.post_message(self.Pressed(entry.name))

    def _laid_out(self, width: int) -> list[list[KeyEntry]]:
        for longest in GRADE_WORDS:
            entries = [
                replace(entry, word=shortened(entry.word, longest)) if entry.is_grade else entry
                for entry in self._entries
            ]
            lines = self._lay_out(entries, width)
            shown = [entry for line in lines for entry in line]
            if all(entry in shown for entry in entries if entry.is_grade):
                break
        return lines

    def _lay_out(self, entries: Sequence[KeyEntry], width: int) -> list[list[KeyEntry]]:
        last = entries[-1]
        kept = [entry for entry in entries if entry is last or entry.name == "help"]
        others = [entry for entry in entries if entry not in kept]
        lines: list[list[KeyEntry]] = [[]]
        used = 0

        def has_room(entry: KeyEntry) -> bool:
            is_reserved = len(lines) == self._lines and entry not in kept
            reserved = sum(each.cells for each in kept) if is_reserved else 0
            return used + entry.cells <= width - reserved

        for entry in (*others, *kept):
            if not has_room(entry) and len(lines) < self._lines:
                lines.append([])
                used = 0
            if entry in kept or (has_room(entry)):
                lines[-1].append(entry)
                used += entry.cells
        return lines
