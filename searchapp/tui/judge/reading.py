"""What is read on the right of the judging screen: the topic, and the document that the cursor is on."""

from __future__ import annotations

import os

from textual.app import ComposeResult
from textual.containers import Vertical

from searchapp.app.run_pages import RunPages
from searchapp.errors import SearchappError
from searchapp.judging.judging_session import JudgingSession
from searchapp.tui import pages
from searchapp.tui.content import Content, Plain, entitle
from searchapp.tui.judge.finding import Finder
from searchapp.tui.notation import Form, Notation
from searchapp.tui.screen import Pane
from searchapp.tui.text import TextPane


class Reading(Vertical):
    """The panes with a topic and one of its documents."""

    def __init__(self, judging: JudgingSession, run_pages: RunPages) -> None:
        super().__init__(id="right")
        self._judging = judging
        self._run_pages = run_pages
        self._topic = Pane(id="topic")
        self._topic_text = Plain(id="topic-text")
        self._document = TextPane(id="document")
        self._shown: tuple[str, str] | None = None
        self.notation = Notation(run_pages.task.info.markup, Form.written)

    def compose(self) -> ComposeResult:
        with self._topic:
            yield self._topic_text
        yield self._document

    def show_topic(self, topic: str) -> None:
        """Show a topic from its beginning."""
        self._topic_text.update(pages.topic_page(self._run_pages.topic(topic), self.notation))
        self._topic.scroll_home(animate=False)
        entitle(self._topic, f"Topic {topic}")

    def show_document(self, topic: str, document: str | None, finder: Finder) -> None:
        """Show a document with what was said of it: from its beginning, unless it is the one shown already."""
        pane, key = self._document, (topic, document or "")
        changed, self._shown = key != self._shown, key
        if document is None:
            entitle(pane, "Document")
            pane.show(Content.styled(self._why_none(topic), "$faint"))
            return
        entitle(pane, self._title(topic, document))
        try:
            page = self._run_pages.page(topic, document)
        except SearchappError as error:
            pane.show(Content.styled(str(error), "$error"))
            return
        others, words = self._judging.others(topic, document), self._judging.said_in_words(topic, document)
        match = "bold $match underline" if os.environ.get("NO_COLOR") else "bold $match"
        labels = self._run_pages.task.info.grades
        text = pages.document_page(page, others, words, labels, self.notation, match, finder.words)
        pane.show(text, changed=changed)

    def _why_none(self, topic: str) -> str:
        if self._run_pages.ranking(topic):
            return "No document of this topic has a score: `--depth all` offers those without one too."
        return "This topic has no documents."

    def _title(self, topic: str, document: str) -> str:
        title = f"Document {document}"
        if self._judging.is_blind:
            return title
        rank, score = self._judging.order(topic).ranks[document], self._run_pages.score(topic, document)
        if score is None:
            return f"{title} · rank {rank:,}"
        known = rank <= self._run_pages.scored(topic)
        return f"{title} · rank {rank:,} · {f'{score:.4f}' if known else 'no score'}"
