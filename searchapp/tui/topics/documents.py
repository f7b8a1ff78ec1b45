"""The document that the cursor is on, and how the documents of the lists begin: fetched in the background."""

from __future__ import annotations

from collections.abc import Sequence

from searchapp.app.pages import Page
from searchapp.app.run_pages import RunPages
from searchapp.tui.rows import one_line, shortened
from searchapp.tui.status import said_by
from searchapp.tui.topics.judging import Judging
from searchapp.tui.topics.parts import GoldView, Kind
from searchapp.tui.topics.reading import LONGEST_ID

AT_ONCE = 200
"""Beginnings that are fetched together."""

PATIENCE_SECONDS = 0.15
"""After which the document before is no longer shown, if the next one has not come."""


Seen = tuple[str, str, str]
"""A document by the run that it is seen in, its topic and its id."""


class Documents:
    """Shows the document of the cursor's line, as soon as it is there."""

    def __init__(self, screen: GoldView, judging: Judging) -> None:
        self._screen = screen
        self._judging = judging
        self._page: tuple[Seen, Page] | None = None
        self._wanted: Seen | None = None
        self._beginnings: dict[str, str] = {}
        self._missing: set[str] = set()

    def show(self) -> None:
        """Show the document that the cursor is on."""
        screen, pages = self._screen, self._screen.topics.pages
        topic, document = screen.topic_id, screen.document_id
        if document is None:
            self._wanted = None
            screen.reading.show_none("" if screen.ranked is None else "No document here.")
            return
        self._wanted = wanted = pages.name, topic, document
        if self._is_here(wanted):
            self._show_page()
        elif pages.has_page(topic, document):
            self._came(wanted, pages.page(topic, document))
        else:
            screen.set_timer(PATIENCE_SECONDS, lambda: self._await(wanted))
            screen.quick.ask(
                Kind.document,
                lambda topics: topics.pages.page(topic, document),
                lambda page: self._came(wanted, page),
                lambda error: self._failed(error, wanted),
            )

    def _is_here(self, wanted: Seen) -> bool:
        return self._page is not None and self._page[0] == wanted

    def _await(self, wanted: Seen) -> None:
        """Show that a document is still to come."""
        if wanted == self._wanted and not self._is_here(wanted):
            self._screen.reading.show_none("…", title=self._title(wanted[-1]))

    def _came(self, seen: Seen, page: Page) -> None:
        if seen == self._wanted:
            self._page = seen, page
            self._show_page()
        news = self._screen.topics.pages.news
        while news:
            self._screen.head.tell(news.pop(0), "$warning")

    def _failed(self, error: Exception, wanted: Seen) -> None:
        if wanted == self._wanted:
            self._screen.reading.show_none(said_by(error), "$error", self._title(wanted[-1]))
            self._screen.tell_failure(error, lambda: self.show() if wanted == self._wanted else None)

    def _show_page(self) -> None:
        assert self._page is not None
        seen, page = self._page
        document = page.document_id
        others, words = self._judging.others(document), self._judging.words(document)
        self._screen.reading.show(seen, page, self._title(document), others, words)

    def _title(self, document: str) -> str:
        """A document's id, what the gold says of it, its rank and score."""
        screen, ranked = self._screen, self._screen.ranked
        title = f"Document {shortened(document, LONGEST_ID)}"
        if ranked is None:
            return title
        if document in ranked.relevant:
            graded = len(self._judging.labels) > 2
            title += f" · gold {ranked.relevant[document]}" if graded else " · relevant"
        if screen.in_missed:
            why = screen.missed.missed[screen.missed.cursor].why
            return title if why is None or why.rank is None else f"{title} · rank {why.rank:,}"
        rank = screen.ranking.rank(screen.ranking.cursor)
        score = f"{ranked.scores[rank - 1]:.4f}" if rank <= ranked.scored else "no score"
        return f"{title} · rank {rank:,} · {score}"

    # Beginnings

    def prepare(self, pages: RunPages, documents: Sequence[str]) -> None:
        """Fetch how documents of a run begin, in whichever thread: to read formulas takes a while.

        Raises:
            EngineError: they can't be had.
        """
        notation = self._screen.reading.notation
        for document, text in zip(documents, pages.texts(documents), strict=True):
            if document not in self._beginnings:
                found = one_line(text, notation)
                if notation == self._screen.reading.notation:  # nobody has asked for another form meanwhile
                    self._beginnings[document] = found

    def beginning(self, document: str) -> str | None:
        """How a document begins; None while that is not known, which it will be soon."""
        found = self._beginnings.get(document)
        if found is not None:
            return found
        pages = self._screen.topics.pages
        if pages.is_fetched(document):
            text = one_line(pages.known_text(document) or "", self._screen.reading.notation)
            self._beginnings[document] = text
            return text
        if not self._missing:
            self._screen.call_later(self._fetch)
        self._missing.add(document)
        return None

    def forget_beginnings(self) -> None:
        """Make them again, as formulas are to be shown now."""
        self._beginnings.clear()

    def _fetch(self) -> None:
        wanted = list(self._missing)[:AT_ONCE]
        self._missing.clear()

        def draw() -> None:
            for rows in self._screen.lists:
                rows.refresh()

        self._screen.quick.ask(
            Kind.texts,
            lambda topics: self.prepare(topics.pages, wanted),
            lambda _none: draw(),
            lambda error: self._screen.tell_failure(error, draw),
        )
