"""One annotator at work on one task: what an interface calls, whichever it is.

An action returns once its events are in the log. When the log can't take them, because the disk is full for instance,
they wait here and count, and are written with the next action that can be: `waiting` says how many there are, and the
interface must say so too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from searchapp.judging.events import Action, Author, Event
from searchapp.judging.fold import Judgment, Opinion, View
from searchapp.judging.log import JudgmentLog, NotSaved
from searchapp.judging.pace import Pace
from searchapp.judging.shared import Synchronizer
from searchapp.judging.snapshot import compact


@dataclass(frozen=True, slots=True)
class SeenDocument:
    """A document as it is judged: of which topic, where it was seen, and whether in view of others' opinions.

    `saw_others` is that of the events.
    """

    topic_id: str
    document_id: str
    run: str = ""
    rank: int | None = None
    saw_others: bool | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an action came to: its events, and why they are not in the log yet (None: they are)."""

    events: tuple[Event, ...]
    not_saved: NotSaved | None = None

    @property
    def is_saved(self) -> bool:
        return self.not_saved is None


JUDGING = (Action.grade, Action.skip, Action.cant_tell, Action.note)
"""What an annotator does with a document of a ranking."""


class Session:
    """An annotator's actions on a task, with everything in the log so far.

    Undoing knows no limit, but of what was done in earlier sessions it undoes the `earlier` actions only: undo during
    adjudication leaves one's own judgments alone, and the other way round.
    """

    def __init__(
        self, log: JudgmentLog, task: str, author: Author, earlier: Collection[Action] = JUDGING
    ) -> None:
        self.task = task
        self.author = author
        self.synchronizer: Synchronizer | None = None
        """Exchanges the log with a team's, when judgments are shared."""
        self.news: list[str] = []
        """Sentences on damage to the log found since: the interface shows them and removes them."""
        self._base = compact(log, task)
        self.view = View(base=self._base)
        self.pace = Pace(self._base.moments(author.annotator))
        """How fast this annotator judges the task."""
        self._log = log
        self._seen: set[str] = set()
        self._made: dict[str, Event] = {}
        self._last = self._base.last
        self._waiting: list[Event] = []
        self._why = ""
        self._done: list[tuple[Event, ...]] = []
        self._undone: list[tuple[Event, ...]] = []
        self._earlier = earlier
        self._places: list[int] | None = None
        """Where this annotator's actions of earlier sessions are; None as long as nobody has asked."""

    # What has been said

    def refresh(self) -> tuple[Event, ...]:
        """Read what others have written since, or the same annotator elsewhere; returns these events."""
        came = []
        for sequence, event in self._log.events(after=self._last):
            self._last = sequence
            if event.task == self.task and self._take_in(event):
                came.append(event)
        return tuple(came)

    def made(self, event: Event) -> bool:
        """Whether an event was made here."""
        return event.id in self._made

    @property
    def made_here(self) -> tuple[Event, ...]:
        """The events that were made here, in their order."""
        return tuple(self._made.values())

    def opinion(self, topic_id: str, document_id: str) -> Opinion | None:
        """What this annotator says of a document."""
        return self.view.opinion(self.author.annotator, topic_id, document_id)

    def said(self, topic_id: str) -> Mapping[str, Judgment]:
        """What this annotator says of each document of a topic, as far as they do."""
        return self.view.said(self.author.annotator, topic_id)

    def is_judged(self, topic_id: str, document_id: str) -> bool:
        """Whether this annotator has said something: a grade, or that they can't tell. What was skipped waits."""
        opinion = self.opinion(topic_id, document_id)
        return opinion is not None and opinion.action is not Action.skip

    @property
    def waiting(self) -> int:
        """Events that could not be written yet."""
        return len(self._waiting)

    @property
    def waiting_events(self) -> tuple[Event, ...]:
        """Those events, in their order."""
        return tuple(self._waiting)

    @property
    def not_saved(self) -> str | None:
        """Why events are waiting; None when there are none."""
        return self._why if self._waiting else None

    @property
    def unsent(self) -> int:
        """Events that are saved, and that the team's cluster is still to get; 0 when nothing is shared."""
        return (
            0
            if self.synchronizer is None
            else self._log.waiting(self.synchronizer.address, self.synchronizer.task)
        )

    # Actions

    def grade(self, places: Sequence[SeenDocument], grade: int, reason: str = "") -> Outcome:
        """Give one or several documents a grade, which is one action to undo."""
        return self._act(self._event(place, Action.grade, grade=grade, text=reason) for place in places)

    def skip(self, place: SeenDocument) -> Outcome:
        """Put a document off."""
        return self._act([self._event(place, Action.skip)])

    def cant_tell(self, place: SeenDocument, reason: str = "") -> Outcome:
        """Say that a document can't be judged."""
        return self._act([self._event(place, Action.cant_tell, text=reason)])

    def note(self, place: SeenDocument, words: str) -> Outcome:
        """Attach words to a document."""
        return self._act([self._event(place, Action.note, text=words)])

    def adjudicate(self, place: SeenDocument, grade: int, reason: str = "") -> Outcome:
        """Decide between the annotators."""
        return self._act([self._event(place, Action.adjudicate, grade=grade, text=reason)])

    def undo(self) -> Outcome | None:
        """Take the last action back that still holds; None when there is none left."""
        while undone := self._last_done():
            # What the same annotator has taken back elsewhere can't be taken back once more.
            standing = tuple(event for event in undone if self.view.holds(event.id))
            if standing:
                self._undone.append(standing)
                return self._write(tuple(self._retraction(event) for event in standing))
        return None

    def redo(self) -> Outcome | None:
        """Do the last undone action again; None when there is none."""
        if not self._undone:
            return None
        again = tuple(self._again(event) for event in self._undone.pop())
        self._done.append(again)
        return self._write(again)

    def save_waiting(self) -> Outcome:
        """Try to write what waits."""
        return self._write(())

    # How

    def _act(self, events: Iterable[Event]) -> Outcome:
        made = tuple(events)
        self._done.append(made)
        self._undone.clear()
        return self._write(made)

    def _write(self, events: tuple[Event, ...]) -> Outcome:
        for event in events:
            self._made[event.id] = event
            self._take_in(event)
        self._waiting += events
        if not self._waiting:
            return Outcome(events)
        try:
            self._log.append(self._waiting)
        except NotSaved as error:
            self._why = str(error)
            return Outcome(events, error)
        self._waiting.clear()
        return Outcome(events)

    def _take_in(self, event: Event) -> bool:
        """Let an event count; whether it is a new one."""
        if event.id in self._seen:
            return False
        self._seen.add(event.id)
        self.view.add(event)
        if event.annotator == self.author.annotator:
            self.pace.add(event)
        return True

    def _last_done(self) -> tuple[Event, ...]:
        """The last action that may be undone, which is taken out; those of earlier sessions are read one by one."""
        if self._done:
            return self._done.pop()
        if self._places is None:
            self._places = self._base.own_places(self.author.annotator, self._earlier)
        while self._places:
            if found := self._log.at([self._places.pop()]):
                return tuple(found)
        return ()

    def _event(
        self, place: SeenDocument, action: Action, *, grade: int | None = None, text: str = ""
    ) -> Event:
        return self.author.event(
            self.task,
            place.topic_id,
            place.document_id,
            action,
            grade=grade,
            text=text,
            run=place.run,
            rank=place.rank,
            saw_others=place.saw_others,
            after=self.view.latest(place.topic_id, place.document_id),
        )

    def _retraction(self, event: Event) -> Event:
        return self.author.event(
            self.task,
            event.topic_id,
            event.document_id,
            Action.retract,
            run=event.run,
            rank=event.rank,
            refers=event.id,
        )

    def _again(self, event: Event) -> Event:
        place = SeenDocument(event.topic_id, event.document_id, event.run, event.rank, event.saw_others)
        return self._event(place, event.action, grade=event.grade, text=event.text)
