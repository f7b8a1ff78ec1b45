"""The one door to the screen: text of others is made harmless before a widget shows it.

Only this module knows Textual's own `Content` and `Static`, which draw whatever they are given. All that is shown is a
`Content` of this module, a part of a line in `rows`, or what a person types into a `line`; titles go through `entitle`.
Nothing is ever read as markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from textual import content, widgets
from textual.content import Span as StyleSpan
from textual.style import Style
from textual.visual import VisualType
from textual.widget import Widget

from searchapp.visible import visible_line, visible_spans


class Content(content.Content):
    """Styled text in which nothing acts on a terminal or hides; also that of any text that is put into it."""

    def __init__(
        self,
        text: str = "",
        spans: list[StyleSpan] | None = None,
        cell_length: int | None = None,
        strip_control_codes: bool = True,
    ) -> None:
        shown, places = visible_spans(text, [(span.start, span.end) for span in spans or ()])
        if shown != text:
            cell_length = None
            spans = [
                StyleSpan(start, end, span.style)
                for (start, end), span in zip(places, spans or (), strict=True)
            ]
        super().__init__(shown, spans, cell_length, strip_control_codes)

    # What Textual's methods give is of its own class, but made of what is harmless already.

    @classmethod
    def styled(cls, text: str, style: str | Style = "", *_: object, **__: object) -> Content:
        return cls.assemble((text, style))

    @classmethod
    def assemble(cls, *parts: str | content.Content | tuple[str, str | Style], **_: object) -> Content:
        return cast("Content", super().assemble(*parts))

    def join(self, lines: Iterable[content.Content | str]) -> Content:
        harmless = (line if isinstance(line, content.Content) else Content(line) for line in lines)
        return cast("Content", super().join(harmless))

    def stylize(self, style: Style | str, start: int = 0, end: int | None = None) -> Content:
        return cast("Content", super().stylize(style, start, end))


class Plain(widgets.Static):
    """A piece of text that is shown as it is."""

    def __init__(
        self,
        text: content.Content | str = "",
        *,
        id: str | None = None,  # noqa: A002  # Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(_content(text), id=id, classes=classes)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        if layout and self._layout_required:
            # Textual may have measured the text before this one since it was asked to, and would keep that.
            self._layout_updates += 1
        super().update(_content(content) if isinstance(content, str) else content, layout=layout)


def entitle(widget: Widget, title: str) -> None:
    """Write a title into a widget's border."""
    widget.border_title = Content(visible_line(title))


def _content(text: content.Content | str) -> content.Content:
    return Content(text) if isinstance(text, str) else text
