"""Solved topics on the search screen: read in the background, and shown with their gold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from searchapp.app.search import Searcher
from searchapp.app.solved import SolvedTopic, SolvedTopics, solved_topics
from searchapp.judging.words import graded
from searchapp.tui import pages
from searchapp.tui.background import Background, Post
from searchapp.tui.content import Content
from searchapp.tui.notation import Notation
from searchapp.tui.rows import one_line, shortened
from searchapp.tui.search.asking import Kind
from searchapp.tui.status import said_by
from searchapp.tui.texts import TextDialog

ANSWERS = 50
"""Documents of a solved topic whose texts are shown."""


class Solved:
    """The solved topics of a task, read once, in a thread of their own, when they are wanted first.

    Args:
        searcher: knows the task's files
        post: has the answer taken in, in the thread of the screen
    """

    def __init__(self, searcher: Searcher, post: Post) -> None:
        self.topics: SolvedTopics | None = None
        """None while they are not there."""

        self.trouble = ""
        """Why there are none."""

        self._asker = Background("solved topics", lambda: searcher, post)
        self._is_wanted = False
        self._waiting: list[Callable[[], object]] = []
        self._once: list[Callable[[], object]] = []

    def want(self, then: Callable[[], object]) -> None:
        """Read them, unless that was done; `then` is called when they come."""
        if self.topics is not None:
            return
        self._waiting = [then]
        if not self._is_wanted:
            self._is_wanted = True
            self._asker.ask(Kind.topics, _read, self._came, self._failed)

    def once(self, there: Callable[[], object]) -> None:
        """Do something when they come, besides; they were wanted before."""
        self._once.append(there)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being read."""
        return self._asker.is_idle

    def close(self) -> None:
        """Wait for nothing any more."""
        self._asker.close()

    def _came(self, found: SolvedTopics | None) -> None:
        if found is None:
            self._take(SolvedTopics(), "the task's files are not at hand: name their folder with --data")
        else:
            self._take(found, "" if len(found) else "no topic of the task's files is solved")

    def _failed(self, error: Exception) -> None:
        self._take(SolvedTopics(), f"the solved topics can't be read: {said_by(error)}")

    def _take(self, found: SolvedTopics, trouble: str) -> None:
        self.topics, self.trouble = found, trouble
        for then in (*self._waiting, *self._once):
            then()
        self._once.clear()


def _read(searcher: Searcher) -> SolvedTopics | None:
    collection = searcher.collection
    return None if collection is None else solved_topics(searcher.task, collection)


class SolvedPage(TextDialog):
    """A solved topic with the documents of its gold; `here` is the document that led to it."""

    IS_FULL = True

    def __init__(self, solved: SolvedTopic, labels: Sequence[str], notation: Notation, here: str) -> None:
        super().__init__(f"Solved topic {shortened(solved.topic.id, 60)} of {solved.split}")
        self._solved = solved
        self._labels = labels
        self._notation = notation
        self._here = here
        self._texts: Mapping[str, str] = {}

    @property
    def answers(self) -> list[str]:
        """The documents whose texts are wanted."""
        return [document for document, _grade in self._solved.answers[:ANSWERS]]

    def show_texts(self, texts: Mapping[str, str]) -> None:
        """Show what the documents say."""
        self._texts = texts
        if self.is_attached:
            self.draw(changed=False)

    def text(self) -> Content:
        answers = self._solved.answers
        count = f"{len(answers):,} document{'s' * (len(answers) != 1)} of its gold"
        lines = [pages.topic_page(self._solved.topic, self._notation), Content("")]
        lines.append(Content.styled(count, "bold $accent"))
        for document, grade in answers[:ANSWERS]:
            look = "bold $match" if document == self._here else ""
            said = f"  {grade_said(grade, self._labels)}  " if len(self._labels) > 2 else "  "
            name = shortened(document, 32)
            text = one_line(self._texts.get(document, ""), self._notation)
            left = max(10, self.room - len(name) - len(said))
            lines.append(
                Content.assemble((name, look or "$primary"), (said, "$faint"), shortened(text, left))
            )
        if len(answers) > ANSWERS:
            lines.append(Content.styled(f"… and {len(answers) - ANSWERS:,} more", "$faint"))
        return Content("\n").join(lines)


def grade_said(grade: float, labels: Sequence[str]) -> str:
    """A grade of gold in words, as far as the task has words for it.

    >>> grade_said(1.0, ("not relevant", "relevant")), grade_said(6.0, ("no", "yes")), grade_said(0.5, ())
    ('1 relevant', '6', '0.5')
    """
    whole = int(grade)
    return graded(whole, labels) if whole == grade and whole < len(labels) else f"{grade:g}"
