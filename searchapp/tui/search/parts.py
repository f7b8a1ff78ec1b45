"""What the parts of the search screen may ask of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from textual.app import App
from textual.timer import Timer

from searchapp.app.search import Searcher
from searchapp.ranking.search import SearchResult
from searchapp.tasks.base import Task
from searchapp.tui.head import Banner
from searchapp.tui.keys import KeyMap
from searchapp.tui.panes import Panes
from searchapp.tui.search.asking import Asker
from searchapp.tui.search.hits import HitRows
from searchapp.tui.search.reading import Reading
from searchapp.tui.search.searching import Searching, Sought
from searchapp.tui.search.solved import Solved


class SearchView(Protocol):
    """The screen that somebody searches on, as far as its parts ask it."""

    searcher: Searcher
    searched: Task
    searching: Searching
    quick: Asker
    hits: HitRows
    reading: Reading
    solved: Solved
    panes: Panes
    keys: KeyMap

    @property
    def app(self) -> App[None]: ...
    @property
    def head(self) -> Banner: ...
    @property
    def program(self) -> Sequence[str]:
        """How the program was called, up to the task and the words."""

    @property
    def recipe(self) -> str:
        """The name of the recipe that ranks."""

    def seek(self, sought: Sought, cursor: int = 0) -> None:
        """Seek something else, and show it beside the words."""

    def leave_for(self, sought: Sought) -> None:
        """Seek something else, from which one can walk back to here."""

    def result(self) -> SearchResult | None:
        """The hit that the cursor is on, of which something is wanted; says so if there is none."""

    def show_document(self) -> None:
        """Show the document that the cursor is on, as it is now."""

    def tell_error(self, error: Exception) -> None:
        """Say that something failed."""

    def when_in_front(self, do: Callable[[], object]) -> None:
        """Do something now, or as soon as nothing stands on the screen any more."""

    def go_back(self, message: str | None = None) -> None: ...
    def call_after_refresh(self, callback: Callable[[], object]) -> bool: ...
    def set_timer(self, delay: float, callback: Callable[[], object] | None = None) -> Timer: ...
    def set_interval(self, interval: float, callback: Callable[[], object] | None = None) -> Timer: ...
    def set_class(self, add: bool, *class_names: str) -> object: ...
