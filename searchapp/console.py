"""A console of rich for foreign text: the tables of the commands, and the output of a screen after it closes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from searchapp.text import visible


class HarmlessConsole(Console):
    """Makes every piece of text harmless after the layout, so that no text is missed; none is markup.

    The options are those of rich's own console.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # the commands know what that means; rich would end the process
