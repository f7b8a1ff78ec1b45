"""How documents begin, for the lists, and what is fetched before anybody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual.screen import Screen

from searchapp.app.run_pages import RunPages
from searchapp.tui.judge.lists import RankingRows
from searchapp.tui.notation import Form, Notation
from searchapp.tui.rows import one_line

AHEAD = 3
"""Documents below the cursor that are fetched whole."""
BLOCK = 150
SLICE = 20
"""How many beginnings are fetched in the background, and how many at a time."""


class Snippets:
    """The beginnings of documents that are known by now."""

    def __init__(self, run_pages: RunPages) -> None:
        self._run_pages = run_pages
        self._known: dict[str, str] = {}
        self._notation = Notation(run_pages.task.info.markup, Form.written)

    def of(self, document: str) -> str | None:
        """How a document begins; None while that is not known."""
        snippet = self._known.get(document)
        if snippet is None:
            text = self._run_pages.known_text(document)
            if text is None:
                return None
            snippet = self._known[document] = one_line(text, self._notation)
        return snippet

    def show_in(self, notation: Notation) -> None:
        """Show texts in another form."""
        self._notation = notation
        self._known.clear()


class Fetching:
    """Fetches in the background what is about to be shown; the screen reports a failure."""

    def __init__(self, screen: Screen[Any], run_pages: RunPages) -> None:
        self._screen = screen
        self._run_pages = run_pages

    def around(self, documents: Sequence[str], place: int) -> None:
        """Fetch the visible beginnings first, at once.

        Raises:
            SearchappError: they can't be had.
        """
        begin = max(0, place - SLICE)
        self._run_pages.texts(documents[begin : begin + 3 * SLICE])

    def ahead(self, topic: str, rows: RankingRows) -> None:
        """Fetch what is below the cursor."""
        following = tuple(rows.documents[rows.cursor + 1 : rows.cursor + 1 + AHEAD])
        if not all(self._run_pages.has_page(topic, one) for one in following):
            self._begin(lambda: self._pages(topic, following), "fetching the next documents", "pages")
        begin = max(0, rows.cursor - rows.page)
        near = rows.documents[begin : rows.cursor + 2 * rows.page]
        if not all(self._run_pages.is_fetched(one) for one in near):
            self.beginnings(rows.documents[begin : begin + BLOCK], rows.refresh)

    def beginnings(self, documents: Sequence[str], then: Callable[[], object]) -> None:
        """Fetch the beginnings of some documents, a few at a time; `then` is called when all are there."""

        def fetch() -> None:
            for start in range(0, len(documents), SLICE):
                self._run_pages.texts(documents[start : start + SLICE])
            self._screen.app.call_from_thread(then)

        self._begin(fetch, "fetching the beginnings of documents", "rows")

    def _pages(self, topic: str, documents: Sequence[str]) -> None:
        for document in documents:  # one by one: somebody may be waiting for another one
            self._run_pages.prepare(topic, [document])

    def _begin(self, work: Callable[[], None], name: str, group: str) -> None:
        self._screen.run_worker(work, name, group, thread=True, exclusive=True, exit_on_error=False)
