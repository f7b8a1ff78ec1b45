"""Documents whose annotators disagree, and the decisions between them: what both interfaces for adjudicating call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from searchapp.judging.events import Event
from searchapp.judging.judgments import Folding, Key, Opinion, View
from searchapp.judging.session import Outcome, SeenDocument, Session


@dataclass(frozen=True, slots=True)
class Dispute:
    """A document of a topic with the different grades that annotators whose opinions count give it, by their names."""

    topic_id: str
    document_id: str
    grades: Mapping[str, int]

    @property
    def key(self) -> Key:
        return self.topic_id, self.document_id

    @property
    def apart(self) -> int:
        """How far the grades lie apart, from the lowest to the highest."""
        return max(self.grades.values()) - min(self.grades.values())


def disputes(view: View, folding: Folding | None = None) -> list[Dispute]:
    """The documents whose annotators disagree, decided or not, those farthest apart first."""
    folding = folding or Folding()
    found = []
    for key in view.judged_documents():
        grades = {
            opinion.annotator: opinion.grade
            for opinion in view.opinions(*key)
            if opinion.grade is not None and folding.counts(opinion)
        }
        if len(set(grades.values())) > 1:
            found.append(Dispute(*key, grades))
    return sorted(found, key=lambda one: (-one.apart, one.key))


class Adjudication:
    """Somebody deciding between annotators.

    Args:
        session: the adjudicator's session
        annotators: between whom; None means all people. Models are decided on only if they are named
        topic: only disputes of this topic, if one is given
        document: only disputes on this document, if one is given
    """

    def __init__(
        self,
        session: Session,
        annotators: Collection[str] | None = None,
        topic: str | None = None,
        document: str | None = None,
    ) -> None:
        self.session = session
        self._folding = Folding(annotators=annotators)
        self._wanted = topic, document
        self.disputes: list[Dispute] = []
        self._take_stock()

    def opinions(self, dispute: Dispute) -> list[Opinion]:
        """What everybody says of the document, also those whose opinions don't count here, and those who can't tell."""
        return self.session.view.opinions(*dispute.key)

    def decision(self, dispute: Dispute) -> Event | None:
        """The decision that holds, by any annotator."""
        return self.session.view.decision(*dispute.key)

    def note_on(self, dispute: Dispute) -> str:
        """The adjudicator's last note on the document."""
        return self.session.view.words(self.session.author.annotator, *dispute.key)

    @property
    def decided(self) -> int:
        """How many disputes are decided."""
        return sum(self.decision(dispute) is not None for dispute in self.disputes)

    def place(self, key: Key) -> int | None:
        """Which of the disputes is on this document; None if none is."""
        return next((place for place, dispute in enumerate(self.disputes) if dispute.key == key), None)

    def next_open(self, after: int = -1) -> int | None:
        """The place of the next dispute that is not decided, from the first again after the last one; None: all are."""
        order = [*range(after + 1, len(self.disputes)), *range(min(after + 1, len(self.disputes)))]
        return next((place for place in order if self.decision(self.disputes[place]) is None), None)

    # Actions, each of which returns what it came to

    def decide(self, dispute: Dispute, grade: int, reason: str = "") -> Outcome:
        """Give the document the grade that holds from now on."""
        return self.session.adjudicate(_in_sight(dispute), grade, reason)

    def note(self, dispute: Dispute, words: str) -> Outcome:
        """Attach words to the document."""
        return self.session.note(_in_sight(dispute), words)

    def undo(self) -> Outcome | None:
        """Take the last decision or note back; None when there is none left."""
        return self.session.undo()

    def redo(self) -> Outcome | None:
        """Redo what was undone last; None when there is nothing."""
        return self.session.redo()

    def refresh(self) -> tuple[Event, ...]:
        """Read what others have written since; returns these events."""
        came = self.session.refresh()
        if came:
            self._take_stock()
        return came

    def _take_stock(self) -> None:
        topic, document = self._wanted
        self.disputes = [
            dispute
            for dispute in disputes(self.session.view, self._folding)
            if topic in (None, dispute.topic_id) and document in (None, dispute.document_id)
        ]


def _in_sight(dispute: Dispute) -> SeenDocument:
    """The document of a dispute: the adjudicator sees everybody's opinion."""
    return SeenDocument(*dispute.key, saw_others=True)
