"""A Rich console for hostile text: the tables of commands, and output after a screen has closed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from searchapp.text import visible


class HarmlessConsole(Console):
    """Makes every text harmless after the layout; interprets no markup. Takes the options of Rich's console."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # commands handle it; Rich would end the process
