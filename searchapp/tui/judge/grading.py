"""What is said of documents on the judging screen: grades, skips, "can't tell", notes. Nothing that stands is changed
unasked by a key too many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeGuard

from searchapp.judging.events import Action
from searchapp.judging.fold import Opinion
from searchapp.judging.session import Outcome
from searchapp.judging.words import graded
from searchapp.tui.judge.selection import Selection
from searchapp.tui.status import instead_of, judged_already, standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from searchapp.judging.events import Event
    from searchapp.judging.judging_session import JudgingSession
    from searchapp.tui.head import Head
    from searchapp.tui.judge.lists import RankingRows
    from searchapp.tui.keys import KeyMap


class Judging(Protocol):
    """The screen that documents are judged on, as far as `Grading` asks it."""

    judging: JudgingSession
    keys: KeyMap
    labels: Sequence[str]
    ranking: RankingRows

    @property
    def head(self) -> Head: ...
    @property
    def topic_id(self) -> str: ...
    @property
    def document_id(self) -> str | None: ...
    def opinion(self, document: str) -> Opinion | None: ...
    def begin_of(self, document: str) -> str: ...
    def done_words(self) -> str: ...
    def show_document(self) -> None: ...
    def go(self, place: int) -> None: ...
    def jump_to(self, topic: str, document: str) -> None: ...
    def redraw(self, changed: Iterable[Event]) -> None: ...
    def ask(
        self, question: str, yes: Callable[[], object], *, others: Mapping[str, str] | None = None
    ) -> None: ...
    def ask_note(self, document: str, said: str, write: Callable[[str], None]) -> None: ...
    def ask_grade(self, question: str, others: Mapping[str, Callable[[str], None]]) -> None: ...


class Grading:
    """Says something of the document that the cursor is on, or of those selected, and moves on."""

    def __init__(self, screen: Judging, selection: Selection) -> None:
        self._screen = screen
        self._judging = screen.judging
        self._head = screen.head
        self._labels = screen.labels
        self._selection = selection
        self._rests_since: int | None = None
        """The cursor has not moved since it stayed on a document that was just judged, for want of another to go to."""

    def give(self, grade: int, reason: str = "") -> None:
        """Give the document, or after a question the selected ones, a grade."""
        places = self._selection.places()
        if not places:
            return
        documents = [self._screen.ranking.documents[place] for place in places]
        what = graded(grade, self._labels)
        if len(places) > 1:
            already = judged_already([self._screen.opinion(one) for one in documents], self._labels)
            question = f"Grade {len(places)} documents {what}?{f' {already}.' if already else ''}"
            self._screen.ask(question, lambda: self._give(places, grade, reason))
        elif not self._asks_first(documents[0], what, lambda: self._give(places, grade, reason)):
            self._give(places, grade, reason)

    def skip(self) -> None:
        """Put the document off, after a question if that takes back what was said of it."""
        document = self._screen.document_id
        if document is None:
            return
        before = self._screen.opinion(document)

        def skip() -> None:
            outcome = self._judging.skip(self._screen.topic_id, document)
            self._judged(outcome, instead_of("skipped", before, self._labels), document, before)

        if _stands(before):
            name, said = self._screen.begin_of(document), standing(before, self._labels)
            self._screen.ask(f"{name} has {said}. Skip it, which undoes that?", skip)
        elif not self._rests:
            skip()
        else:
            self._head.tell(f"it is skipped already: {self._on_words()}", "$warning")

    def cant_tell(self, reason: str = "") -> None:
        """Say that the document can't be judged."""
        document = self._screen.document_id
        if document is None:
            return

        def say() -> None:
            before = self._screen.opinion(document)
            outcome = self._judging.cant_tell(self._screen.topic_id, document, reason)
            self._judged(outcome, instead_of("can't tell", before, self._labels), document, before)

        if not self._asks_first(document, "can't tell", say):
            say()

    def note(self) -> None:
        """Ask for a note on the document."""
        topic, document = self._screen.topic_id, self._screen.document_id
        if document is None:
            return

        def write(words: str) -> None:
            self._done(self._judging.note(topic, document, words), "a note", document)
            self._screen.show_document()

        self._screen.ask_note(
            self._screen.begin_of(document), self._judging.said_in_words(topic, document), write
        )

    def reason(self) -> None:
        """Ask for a grade together with a reason."""
        if self._screen.document_id is not None:
            self._screen.ask_grade("Which grade, with a reason?", {"cant_tell": self.cant_tell})

    def undo(self) -> None:
        """Take the last action back."""
        self._again(self._judging.undo(), "undo")

    def redo(self) -> None:
        """Redo what was undone last."""
        self._again(self._judging.redo(), "redo")

    def _give(self, places: Sequence[int], grade: int, reason: str) -> None:
        ranking = self._screen.ranking
        documents = [ranking.documents[place] for place in places]
        before = self._screen.opinion(documents[-1])
        what = graded(grade, self._labels)
        outcome = self._judging.grade(self._screen.topic_id, documents, grade, reason)
        if len(documents) == 1:
            self._judged(outcome, instead_of(what, before, self._labels), documents[0], before)
            return
        self._selection.clear()
        ranking.put(places[-1])
        self._judged(outcome, f"{len(documents)} documents {what}", None, before)

    def _asks_first(self, document: str, what: str, do: Callable[[], object]) -> bool:
        """Whether the cursor only rests on a document that was just judged: then a question comes before a change."""
        before = self._screen.opinion(document)
        if not self._rests or not _stands(before):
            return False
        was = standing(before, self._labels)
        if was == what:
            self._head.tell(f"it has {was} already: {self._on_words()}", "$warning")
        else:
            question = f"{self._screen.begin_of(document)} has {was}. Change it to {what}?"
            self._screen.ask(question, do, others={"next_unjudged_topic": "Go on with the next topic"})
        return True

    def _judged(self, outcome: Outcome, what: str, document: str | None, before: Opinion | None) -> None:
        """Say what was done, and go on: to the next document not judged, or from a changed one to the one below."""
        ranking, topic = self._screen.ranking, self._screen.topic_id
        cursor = ranking.cursor
        if _stands(before) and cursor + 1 < len(ranking.documents):
            following: int | None = cursor + 1
        else:
            following = self._judging.next_unjudged(topic, cursor)
        stays = following is None or following == cursor
        self._done(outcome, what, document, self._on_words() if stays else "")
        self._screen.go(cursor if following is None else following)
        if stays:
            self._rests_since = ranking.moves

    @property
    def _rests(self) -> bool:
        return self._rests_since == self._screen.ranking.moves

    def _on_words(self) -> str:
        """Where to go from a document after which nothing of the topic is left."""
        if self._judging.next_unjudged(self._screen.topic_id) is None:
            return self._screen.done_words()
        key = self._screen.keys.shown("next_unjudged_topic")
        return f"only what was skipped is left here: {key} goes on"

    def _again(self, outcome: Outcome | None, what: str) -> None:
        if outcome is None:
            self._head.tell(f"there is nothing to {what}")
            return
        event, count = outcome.events[0], len(outcome.events)
        if count > 1:
            self._done(outcome, f"{what}ne: {count} documents", None)
        else:
            self._done(outcome, f"{what}ne", event.document_id)
        topic, document = event.topic_id, event.document_id
        if topic in self._judging.topics and document in self._judging.order(topic).places:
            self._screen.jump_to(topic, document)
        else:
            self._screen.show_document()

    def _done(self, outcome: Outcome, what: str, document: str | None, further: str = "") -> None:
        """Say what an action came to, and draw all that it changes but the document, which is shown next."""
        name = None if document is None else self._screen.begin_of(document)
        if further:
            self._head.tell_outcome(outcome, "   ".join(filter(None, (what, further, name))))
        else:
            self._head.tell_outcome(outcome, ": ".join(filter(None, (what, name))))
        self._screen.redraw(outcome.events)


def _stands(opinion: Opinion | None) -> TypeGuard[Opinion]:
    """Whether something was said that to put the document off would take back."""
    return opinion is not None and opinion.action is not Action.skip
