"""The line below the words: what is wrong with them, and where; or by what the documents are filtered."""

from __future__ import annotations

from rich.cells import cell_len

from searchapp.ranking.language import BrokenQuery, Filter
from searchapp.tui.content import Content, Plain
from searchapp.tui.rows import shortened
from searchapp.visible import visible_line

HINT = '"a phrase"   +must   -without   begin*   field:value   +(groups)'

PADDING = 1
"""Blank cells on both sides, as its looks say."""


class Note(Plain):
    """Explains a broken query at its place, else shows the filters, else how more than words are typed."""

    def __init__(self) -> None:
        super().__init__(id="note")

    @property
    def left(self) -> int:
        """The column where its text begins, also while it is hidden."""
        return self.content_region.x or PADDING

    def show_broken(self, error: BrokenQuery, text: str, offset: int) -> None:
        """A caret below the character that is wrong, and why; the line of words begins at the cell `offset`."""
        self.remove_class("-hint")
        column = max(0, offset + cell_len(visible_line(text[: error.at])))
        words = visible_line(error.what)
        width = self.size.width or self.screen.size.width - 2 * PADDING
        if column + 2 + cell_len(words) <= width:
            line = Content.assemble(" " * column, ("▲ ", "bold $error"), (words, "$error"))
        elif cell_len(words) + 1 <= column < width:
            gap = " " * (column - cell_len(words) - 1)
            line = Content.assemble(gap, (f"{words} ", "$error"), ("▲", "bold $error"))
        else:
            line = Content.styled(shortened(f"▲ character {error.at + 1}: {words}", width), "$error")
        self.update(line, layout=False)

    def show_error(self, words: str) -> None:
        """Why there is no ranking of these words."""
        self.remove_class("-hint")
        self.update(Content.styled(f"▲ {visible_line(words)}", "$error"), layout=False)

    def show_filters(self, filters: tuple[Filter, ...], keys: str, topic: str) -> None:
        """The topic that is judged, if one is, and the filters that hold; else the signs that say more than words."""
        self.set_class(not filters and not topic, "-hint")
        if not filters and not topic:
            self.update(Content.styled(f"  {HINT}", "$faint"), layout=False)
            return
        parts: list[str | tuple[str, str]] = ["  "]
        if topic:
            parts += [(f" judging topic {shortened(topic, 40)} ", "bold reverse $primary"), " "]
        for one in filters:
            parts += [(f" {one.field}: {shortened(one.value, 40)} ", "$foreground on $picked"), " "]
        if filters:
            parts.append((f" {keys} changes them", "$faint"))
        self.update(Content.assemble(*parts), layout=False)
