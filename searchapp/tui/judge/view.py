"""What the judging screen shows: topics on the left, the ranking in the middle, topic and document on the right."""

from __future__ import annotations

import os
from collections.abc import Sequence

from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from searchapp.errors import SearchappError
from searchapp.judging.desk import Desk
from searchapp.runs.material import Material
from searchapp.tui import pages
from searchapp.tui.bars import KeyLine
from searchapp.tui.content import Content, Plain, entitle
from searchapp.tui.judge.lists import RankingRows, TopicRows
from searchapp.tui.keys import KeyMap
from searchapp.tui.line import Line
from searchapp.tui.rows import one_line
from searchapp.tui.text import TextPane
from searchapp.tui.work import Pane, WorkScreen

AHEAD = 3
"""Documents that are fetched before anybody asks for them."""

IN_LAST_LINE = ("undo", "redo", "select", "next_unjudged", "next_unjudged_topic", "topics", "search", "filter",
                "document", "maths", "theme", "quit", "help")  # fmt: skip

_BLOCK = 150
_SLICE = 20


class JudgeView(WorkScreen):
    """An annotator's work on a run, as it is seen; what keys do is in the classes that follow."""

    AUTO_FOCUS = "#ranking"

    def __init__(
        self,
        desk: Desk,
        material: Material,
        keys: KeyMap,
        start: str | None,
        title: str,
    ) -> None:
        super().__init__(desk.session, keys, material.task.grades, title)
        self.desk = desk
        self.material = material
        self.place_of_topic = desk.topics.index(start) if start else desk.next_unjudged_topic() or 0
        self._maths = False
        self._sought: tuple[str, ...] = ()
        self._snippets: dict[str, str] = {}

    # What there is to see

    def compose(self) -> ComposeResult:
        yield Plain(id="head")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield Line(self.filter_chosen, self.filtered, hint="words or id, then ↵", id="filter")
                yield TopicRows(self.desk, self.material)
            with Vertical(id="middle"):
                yield RankingRows(self.desk, self.material, len(self.labels) - 1, self._snippet)
            with Vertical(id="right"):
                with Pane(id="topic"):
                    yield Plain(id="topic-text")
                yield TextPane(id="document")
        yield Line(self.search, hint="search the documents of this topic: words, then ↵", id="search")
        with Horizontal(id="figures"):
            yield Plain(id="scores")
            yield Plain(id="progress")
        yield KeyLine(self._grade_entries("skip", "cant_tell", "note", "reason"), 2, id="grades")
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def _entitle(self) -> None:
        entitle(self.topics, "Topics")
        entitle(self.ranking, "Documents" if self.desk.is_blind else "Ranking")
        for pane, name in (("#topic", "Topic"), ("#document", "Document")):
            entitle(self.query_one(pane), name)
        if self.desk.is_blind:
            self._tell("blind: ranks, scores and other people's grades are hidden")

    @property
    def topics(self) -> TopicRows:
        return self.query_one(TopicRows)

    @property
    def ranking(self) -> RankingRows:
        return self.query_one(RankingRows)

    @property
    def topic_id(self) -> str:
        return self.desk.topics[self.place_of_topic]

    @property
    def document_id(self) -> str | None:
        """The document that the cursor is on."""
        ranking = self.ranking
        return ranking.documents[ranking.cursor] if ranking.documents else None

    def panes(self) -> list[Widget]:
        return [self.topics, self.ranking, self.query_one("#topic"), self.query_one("#document")]

    # What the lines are for

    def filter_chosen(self, words: str) -> None:
        """The topics are filtered by these words."""
        raise NotImplementedError

    def filtered(self, words: str) -> None:
        """The topics are to be filtered by these words."""
        raise NotImplementedError

    def search(self, words: str) -> None:
        """The documents of the topic are to be searched for these words."""
        raise NotImplementedError

    # Drawing

    def _show_document(self) -> None:
        document = self.document_id
        pane = self.query_one("#document", TextPane)
        if document is None:
            pane.show(Content.styled("This topic has no documents.", "$faint"))
            return
        topic = self.topic_id
        try:
            page = self.material.page(topic, document)
        except SearchappError as error:
            pane.show(Content.styled(str(error), "$error"))
            return
        others, words = self.desk.others(topic, document), self.desk.said_in_words(topic, document)
        match = "bold $match underline" if os.environ.get("NO_COLOR") else "bold $match"
        pane.show(pages.document_page(page, others, words, self.labels, self._maths, match, self._sought))
        entitle(pane, self._document_title(document))
        self._mark_grade(document)
        ranking = self.ranking
        ahead = ranking.documents[ranking.cursor + 1 : ranking.cursor + 1 + AHEAD]
        if not all(self.material.has_page(topic, one) for one in ahead):
            self._prepare(topic, tuple(ahead))
        self._fetch_rows_ahead()

    def _document_title(self, document: str) -> str:
        title = f"Document {document}"
        if self.desk.is_blind:
            return title
        order = self.desk.order(self.topic_id)
        score = self.material.score(self.topic_id, document)
        return f"{title} · rank {order.ranks[document]:,}{f' · {score:.4f}' if score is not None else ''}"

    def _mark_grade(self, document: str) -> None:
        opinion = self.desk.opinion(self.topic_id, document)
        name = "" if opinion is None else opinion.action.value
        if opinion is not None and opinion.grade is not None:
            name = f"grade_{opinion.grade}"
        self.query_one("#grades", KeyLine).choose(name)

    # Fetching

    @work(thread=True, exclusive=True, group="pages", exit_on_error=False)
    def _prepare(self, topic: str, documents: Sequence[str]) -> None:
        for document in documents:  # one by one: somebody may be waiting for another one
            self.material.prepare(topic, [document])

    def _snippet(self, document: str) -> str | None:
        """How a document begins, if it is known by now."""
        snippet = self._snippets.get(document)
        if snippet is None:
            text = self.material.known_text(document)
            if text is None:
                return None
            snippet = self._snippets[document] = one_line(text, self._maths)
        return snippet

    def _fetch_block(self, documents: Sequence[str], around: int) -> None:
        """Fetch what is about to be in sight."""
        begin = max(0, around - _SLICE)
        try:
            self.material.texts(documents[begin : begin + 3 * _SLICE])
        except SearchappError as error:
            self._tell(str(error), "$error")

    def _fetch_rows_ahead(self) -> None:
        ranking = self.ranking
        begin = max(0, ranking.cursor - ranking.page)
        near = ranking.documents[begin : ranking.cursor + 2 * ranking.page]
        if not all(self.material.is_fetched(one) for one in near):
            self._fetch_rows(ranking.documents[begin : begin + _BLOCK])

    @work(thread=True, exclusive=True, group="rows", exit_on_error=False)
    def _fetch_rows(self, documents: Sequence[str]) -> None:
        for start in range(0, len(documents), _SLICE):
            self.material.texts(documents[start : start + _SLICE])
        self.app.call_from_thread(self.ranking.refresh)

    def _score_the_rest(self) -> None:
        """Score graded topics whose rankings are not read yet, a few at a time, so that keys are not kept waiting."""
        for topic in self.desk.unscored()[:_SLICE]:
            self.desk.scores(topic)
        self._show_figures()
        if self.desk.unscored():
            self.set_timer(0.01, self._score_the_rest)

    def _show_figures(self) -> None:
        topic = self.topic_id
        total = len(self.desk.order(topic).documents)
        judged = self.desk.judged(topic)
        share = 1 - judged / total if total else 0.0
        if not self.desk.is_blind:
            here = pages.scores_line("this topic", self.desk.scores(topic))
            overall, topics = self.desk.mean_scores()
            all_of_them = pages.scores_line(f"{topics:,} topic{'s' * (topics != 1)}", overall)
            self.query_one("#scores", Plain).update(Content("\n").join([here, all_of_them]), layout=False)
        full = round((1 - share) * 12)
        self.query_one("#progress", Plain).update(
            Content.assemble(
                ("━" * full, "$success"), ("━" * (12 - full), "$line"), f" {judged:,}/{total:,}\n",
                (f"{share:.1%} unjudged", "$faint"),
            ),
            layout=False,
        )  # fmt: skip
