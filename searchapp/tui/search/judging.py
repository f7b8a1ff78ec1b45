"""Judging what is found: grades of the hits for a topic of the task, in the same log as those of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from searchapp.app.ranked_now import seen_in
from searchapp.judging.fold import Opinion
from searchapp.judging.others import OthersOpinions
from searchapp.judging.session import Outcome, SeenDocument, Session
from searchapp.model import Topic
from searchapp.ranking.search import SearchResult
from searchapp.tui.judge.lists import mark
from searchapp.tui.rows import Part
from searchapp.tui.search.reading import Said


class Judging:
    """What an annotator says of hits, for the topic that they chose.

    Args:
        session: opens the annotator's session, when the first topic is chosen
        labels: the names of the grades
    """

    def __init__(self, session: Callable[[], Session], labels: Sequence[str]) -> None:
        self.topic: Topic | None = None
        self.labels = labels
        self._open = session
        self._session: Session | None = None
        self._others_opinions: OthersOpinions | None = None
        self._given = 0

    @property
    def session(self) -> Session | None:
        """The annotator's session; None before a topic was chosen."""
        return self._session

    def choose(self, topic: Topic | None) -> None:
        """Judge for a topic from now on, or for none.

        Raises:
            SearchappError: the log can't be opened.
        """
        if topic is not None and self._session is None:
            self._session = self._open()
            self._others_opinions = OthersOpinions(self._session)
        self.topic = topic

    @property
    def mark_cells(self) -> int:
        """The cells of a mark; 0 while nothing is judged."""
        return 0 if self.topic is None else len(str(len(self.labels) - 1))

    def mark(self, document: str) -> Part:
        """What was said of a document, in a sign."""
        return mark(self.opinion(document), len(self.labels) - 1)

    def opinion(self, document: str) -> Opinion | None:
        """What the annotator says of a document."""
        if self._session is None or self.topic is None:
            return None
        return self._session.opinion(self.topic.id, document)

    def others(self, document: str) -> Sequence[Opinion]:
        """What others say of a document, once the annotator has judged it."""
        if self._others_opinions is None or self.topic is None:
            return ()
        return self._others_opinions.others(self.topic.id, document)

    def words(self, document: str) -> str:
        """The annotator's words on a document."""
        if self._session is None or self.topic is None:
            return ""
        return self._session.view.words(self._session.author.annotator, self.topic.id, document)

    def said(self, document: str) -> Said:
        """What is said of a document for the topic that was chosen."""
        return Said(self.topic, self.opinion(document), self.others(document), self.words(document))

    def grade(self, result: SearchResult, recipe: str, grade: int) -> Outcome:
        """Give a hit of a recipe's ranking a grade."""
        assert self._session is not None and self._others_opinions is not None and self.topic is not None
        document = result.hit.document_id
        seen = self._others_opinions.saw_others(self.topic.id, document)
        place = SeenDocument(self.topic.id, document, seen_in(recipe), result.rank, seen)
        self._given += 1
        return self._session.grade([place], grade)

    def undo(self) -> Outcome | None:
        """Take the last grade back that was given here; None when there is none."""
        if self._session is None or not self._given:
            return None
        self._given -= 1
        return self._session.undo()
