"""The document that the cursor is on, as it is read on the search screen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from textual.app import ComposeResult
from textual.containers import Vertical

from searchapp.app.pages import Page, page_of, stands_in_text, with_neighbours
from searchapp.judging.fold import Opinion
from searchapp.ranking.search import SearchResult
from searchapp.tui import pages
from searchapp.tui.content import Content, entitle
from searchapp.tui.rows import shortened
from searchapp.tui.search.asking import Asker, Kind
from searchapp.tui.text import TextPane
from searchapp.visible import visible_spans

LONGEST = 100_000
"""Characters of a text that are laid out: a longer one is cut, and all of it is a key away."""


LONGEST_ID = 32
"""In cells: a longer one is cut, so that rank and score stay in sight."""


class Form(Enum):
    """How a text is shown."""

    maths = "LaTeX as Unicode"
    written = "LaTeX as it is written"
    stored = "the text as it stands"


class Reading(Vertical):
    """The pane with a document; `whole` is how a key that shows all of a long one is called."""

    def __init__(self, context: tuple[str, str] | None, labels: Sequence[str], whole: str) -> None:
        super().__init__(id="text")
        self._texts = context
        self._labels = labels
        self._whole = whole
        self._pane = TextPane(id="document")
        self._shown: tuple[object, ...] | None = None
        self._near: tuple[str, Page] | None = None
        """The page with its neighbours of the document that was looked at last."""
        self.form = Form.maths

    def compose(self) -> ComposeResult:
        yield self._pane

    def show_none(self, why: str, look: str = "$faint") -> None:
        """Say why there is no document."""
        self._shown = None
        entitle(self._pane, "Document")
        self._pane.show(Content.styled(why, look))

    def show(
        self, result: SearchResult, asker: Asker, opinions: Sequence[Opinion] = (), words: str = ""
    ) -> None:
        """Show a hit from its beginning, unless it is in sight already; its neighbours come when they are there."""
        document = result.hit.document_id
        key = document, result.matches
        changed, self._shown = key != self._shown, key
        name = shortened(document, LONGEST_ID)
        entitle(self._pane, f"Document {name} · rank {result.rank:,} · {result.hit.score:.4f}")
        page = page_of(document, result.source, result.matches)
        if self._near is not None and self._near[0] == document:
            near = self._near[1]
            page = replace(page, before=near.before, behind=near.behind)
        elif self._texts is not None and stands_in_text(result.source, self._texts):
            self._ask_neighbours(page, result, asker, opinions, words)
        self._pane.show(self._content(page, opinions, words), changed=changed)

    def _ask_neighbours(
        self, page: Page, result: SearchResult, asker: Asker, opinions: Sequence[Opinion], words: str
    ) -> None:
        context = self._texts
        assert context is not None

        def came(whole: Page) -> None:
            self._near = page.document_id, whole
            if self._shown == (page.document_id, page.matches):
                self._pane.show(self._content(whole, opinions, words), changed=False)

        asker.ask(
            Kind.document,
            lambda searcher: with_neighbours(page, searcher.index, result.source, context),
            came,
            lambda _error: None,  # the document is there without them
        )

    def _content(self, page: Page, opinions: Sequence[Opinion], words: str) -> Content:
        match = "bold $match underline" if os.environ.get("NO_COLOR") else "bold $match"
        rest = len(page.text) - LONGEST
        if rest > 0:
            spans = tuple((start, min(end, LONGEST)) for start, end in page.matches if start < LONGEST)
            page = replace(page, text=page.text[:LONGEST], matches=spans)
        if self.form is Form.stored:
            text = _stored(page, match)
        else:
            maths = self.form is Form.maths
            text = pages.document_page(page, opinions, words, self._labels, maths, match, ())
        if rest > 0:
            note = f"… {rest:,} more characters: {self._whole} opens all of it"
            text = Content("\n\n").join([text, Content.styled(note, "$warning")])
        return text


def _stored(page: Page, match: str) -> Content:
    """A document's text with every blank and line end that it has, and its fields as they were indexed."""
    shown, spans = visible_spans(page.text, page.matches)
    text = Content(shown)
    for start, end in spans:
        text = text.stylize(match, start, end)
    fields = [Content.assemble((f"{name}: ", "$faint"), repr(value)) for name, value in page.fields]
    return Content("\n").join([text, *([Content("")] if fields else []), *fields])
