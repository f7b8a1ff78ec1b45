"""The line of what is sought: what stands before the words, the words, and what was found."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Horizontal

from searchapp.tui.content import Plain
from searchapp.tui.line import Line
from searchapp.tui.rows import shortened
from searchapp.tui.search.reading import LONGEST_ID

PROMPT = "› "


class Words(Line):
    """The words; `laid_out` is called when the line is longer or shorter, and so its letters may stand elsewhere."""

    def __init__(
        self,
        submitted: Callable[[str], object],
        changed: Callable[[str], object],
        laid_out: Callable[[], object],
    ) -> None:
        super().__init__(submitted, changed, hint="what to search for", id="words")
        self._laid_out = laid_out

    def on_resize(self) -> None:
        self._laid_out()


class Asked(Horizontal):
    """Holds the words, and says beside them what else there is of a search."""

    def __init__(self, words: Line) -> None:
        super().__init__(id="ask")
        self._words = words
        self._prompt = Plain(PROMPT, id="prompt")
        self._count = Plain(id="count")
        self._like: str | None = None

    def compose(self) -> ComposeResult:
        yield self._prompt
        yield self._words
        yield self._count

    def show(self, title: str, like: str | None) -> None:
        """Show what the ranking is, and which document is sought by if one is."""
        self._count.update(title, layout=False)
        if like != self._like:  # which lays out the whole screen again
            self._like = like
            self._prompt.update(
                f"like {shortened(like, LONGEST_ID)} {PROMPT}" if like is not None else PROMPT
            )
