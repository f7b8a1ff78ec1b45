"""A document and a query on their way through an analyzer, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from itertools import zip_longest

from rich.cells import cell_len, chop_cells

from searchapp.app.analyze import SideBySide
from searchapp.model import AnalysisStep
from searchapp.tui.content import Content
from searchapp.tui.rows import shortened
from searchapp.tui.texts import TextDialog
from searchapp.visible import visible_line

LONGEST = 4_000
"""Characters of a document that are analyzed."""

COMMON = "bold $match"
"""The look of terms that both have."""

Word = tuple[str, str]
"""A term, and what it looks like."""

Ask = Callable[[str, Callable[[SideBySide], object], Callable[[Exception], object]], object]
"""Asks for the analysis in a field, whose name is the first argument."""


class Analyzed(TextDialog):
    """Shows each step for a document and a query, in one field after the other."""

    IS_FULL = True

    def __init__(self, document: str, fields: Sequence[str], ask: Ask) -> None:
        super().__init__(f"Document {shortened(document, 40)} and the query, from text to terms")
        self._fields = fields
        self._place = 0
        self._ask = ask
        self._found: dict[str, SideBySide] = {}
        self._trouble: dict[str, str] = {}

    @property
    def hint(self) -> str:
        return "←→ another field    ↑↓ scroll    esc back"

    @property
    def field(self) -> str:
        """The field whose analyzer is shown."""
        return self._fields[self._place]

    def on_mount(self) -> None:
        self._want()
        super().on_mount()

    def further(self) -> dict[str, Callable[[], object]]:
        return {
            "right": lambda: self._go(1), "tab": lambda: self._go(1),
            "left": lambda: self._go(-1), "shift+tab": lambda: self._go(-1),
        }  # fmt: skip

    def _go(self, step: int) -> None:
        self._place = (self._place + step) % len(self._fields)
        self._want()
        self.draw()

    def _want(self) -> None:
        field = self.field
        if field in self._found:
            return

        def came(found: SideBySide) -> None:
            self._found[field] = found
            if self.is_attached:
                self.draw()

        def failed(error: Exception) -> None:
            self._trouble[field] = str(error)
            if self.is_attached:
                self.draw()

        self._ask(field, came, failed)

    def text(self) -> Content:
        parts: list[tuple[str, str]] = []
        for place, name in enumerate(self._fields):
            parts += [(f" {name} ", "bold reverse $primary" if place == self._place else "$faint"), (" ", "")]
        lines = [Content.assemble(*parts), Content("")]
        found, trouble = self._found.get(self.field), self._trouble.get(self.field)
        if found is not None:
            lines += side_by_side_lines(found, self.room)
        elif trouble is not None:
            lines.append(Content.styled(trouble, "$error"))
        else:
            lines.append(Content.styled("…", "$faint"))
        return Content("\n").join(lines)


def side_by_side_lines(found: SideBySide, room: int) -> list[Content]:
    """The steps, the document's on the left and the query's on the right, in so many cells."""
    cells = max(8, (room - 3) // 2)
    lines = [Content.assemble((f"{'document':<{cells}}", "bold"), (" │ ", "$line"), ("query", "bold"))]
    before: list[list[Word]] = []
    for pair in found.steps:
        common = pair.common
        words = [_words(pair.document, common), _words(pair.query, common)]
        is_same, before = words == before, words
        one_sided = "" if pair.is_of_query else "  documents only"
        note = ("" if pair.is_of_document else "  queries only") or one_sided
        note += "  changes nothing" if is_same else ""
        lines.append(Content.assemble((f"── {visible_line(pair.name)}", "$accent"), (note, "$faint")))
        if is_same:
            continue
        left, right = (list(_wrapped(one, cells)) for one in words)
        for one, other in zip_longest(left, right, fillvalue=()):
            free = cells - sum(cell_len(text) for text, _look in one)
            lines.append(Content.assemble(*one, (" " * free, ""), (" │ ", "$line"), *other))
    if not any(pair.common for pair in found.steps[-1:]):
        lines += [Content(""), Content.styled("They have no term of this field in common.", "$warning")]
    return lines


def _words(step: AnalysisStep | None, common: Set[str]) -> list[Word]:
    if step is None:
        return []
    if step.text is not None:
        return [(visible_line(word), "") for word in step.text.split()]
    if not step.tokens:
        return [("(nothing)", "$faint")]
    return [(visible_line(one.term), COMMON if one.term in common else "") for one in step.tokens]


def _wrapped(words: Sequence[Word], cells: int) -> Iterator[list[Word]]:
    """Words on lines of so many cells, a blank between them; a longer one goes over several lines."""
    line: list[Word] = []
    used = 0
    for text, look in words:
        for piece in chop_cells(text, cells) or [""]:
            width = cell_len(piece)
            if line and used + 1 + width > cells:
                yield line
                line, used = [], 0
            if line:
                line.append((" ", ""))
                used += 1
            line.append((piece, look))
            used += width
    yield line
