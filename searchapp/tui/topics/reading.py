"""What is read on the right: the topic with its figures, and the document that the cursor is on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Vertical

from searchapp.app.pages import Page
from searchapp.judging.fold import Opinion
from searchapp.model import Topic
from searchapp.tasks.base import TaskInfo
from searchapp.tui import pages
from searchapp.tui.content import Content, Plain, entitle
from searchapp.tui.notation import Notation
from searchapp.tui.rows import shortened
from searchapp.tui.screen import Pane
from searchapp.tui.text import TextPane

LONGEST = 100_000
"""Characters of a text that are laid out: a longer one is cut, and all of it is a key away."""

LONGEST_ID = 24
"""In cells: a longer one is cut, so that the figures behind it stay in sight."""


class Reading(Vertical):
    """The panes with a topic and one of its documents; `whole` is how the key is called that shows all of a text."""

    def __init__(self, info: TaskInfo, whole: str) -> None:
        super().__init__(id="right")
        self._labels = info.grades
        self._whole = whole
        self._topic = Pane(id="topic")
        self._topic_text = Plain(id="topic-text")
        self._pane = TextPane(id="document")
        self._shown: object = None
        self.notation = Notation(info.markup)

    def compose(self) -> ComposeResult:
        with self._topic:
            yield self._topic_text
        yield self._pane

    def show_topic(self, topic: Topic, figures: str) -> None:
        """Show a topic from its beginning, with its figures in the border."""
        entitle(self._topic, f"Topic {shortened(topic.id, LONGEST_ID)}{figures}")
        self._topic_text.update(pages.topic_page(topic, self.notation))
        self._topic.scroll_home(animate=False)

    def entitle_topic(self, topic: str, figures: str) -> None:
        """Write a topic's figures into the border, once they are known."""
        entitle(self._topic, f"Topic {shortened(topic, LONGEST_ID)}{figures}")

    def show_none(self, why: str, look: str = "$faint", title: str = "") -> None:
        """Say why there is no document."""
        self._shown = None
        entitle(self._pane, title or "Document")
        self._pane.show(Content.styled(why, look))

    def show(
        self,
        topic: object,
        page: Page,
        title: str,
        others: Sequence[Opinion] = (),
        words: str = "",
    ) -> None:
        """Show a document, from its beginning unless it is in sight already, of the same topic."""
        key = topic, page.document_id
        changed, self._shown = key != self._shown, key
        entitle(self._pane, title)
        self._pane.show(self._content(page, others, words), changed=changed)

    def _content(self, page: Page, others: Sequence[Opinion], words: str) -> Content:
        match = "bold $match underline" if os.environ.get("NO_COLOR") else "bold $match"
        rest = len(page.text) - LONGEST
        if rest > 0:
            spans = tuple((start, min(end, LONGEST)) for start, end in page.matches if start < LONGEST)
            page = replace(page, text=page.text[:LONGEST], matches=spans)
        text = pages.document_page(page, others, words, self._labels, self.notation, match, ())
        if rest > 0:
            note = f"… {rest:,} more characters: {self._whole} opens all of it"
            text = Content("\n\n").join([text, Content.styled(note, "$warning")])
        return text
