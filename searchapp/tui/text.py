"""A text that scrolls, drawn line by line: showing another one does not lay out the whole screen again."""

from __future__ import annotations

from rich.style import Style
from textual.geometry import Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.visual import Visual

from searchapp.tui.content import Content


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
