"""The first line of the home screen."""

from __future__ import annotations

from searchapp.app.overview import Overview
from searchapp.tui.content import Content
from searchapp.tui.head import Banner
from searchapp.tui.paths import with_tilde
from searchapp.tui.rows import shortened

LONGEST_PATH = 60
"""In cells: a longer one is cut."""


class HomeHead(Banner):
    """Says which engine is in use, and whether it answers; behind it what was just done, or else where it is."""

    def __init__(self, engine: str) -> None:
        super().__init__("searchapp")
        self._engine = Content.styled(f"○ {engine}  ", "$faint")
        self._more = Content.styled("looking whether it answers …", "$faint")

    def show_engine(self, name: str, overview: Overview) -> None:
        """Show what the engine in use is like."""
        engine = overview.engine
        if engine is None:
            self._engine = Content.styled(f"▲ {name} does not answer  ", "bold $error")
            self._more = Content.styled(overview.trouble, "$error")
        else:
            self._engine = Content.assemble(("● ", "$success"), f"{engine.name} answers  ")
            place = shortened(with_tilde(engine.location), LONGEST_PATH)
            self._more = Content.styled(f"version {engine.version} at {place}", "$faint")
        self.draw()

    def draw(self) -> None:
        behind = self._status if self._status.plain else self._more
        title = Content.styled("searchapp  ", "bold")
        self.update(Content("").join([title, self._engine, behind]), layout=False)
