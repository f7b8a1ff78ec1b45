"""Sessions: one annotator at work on one task, judging a run or deciding between annotators who disagree.

Every interface calls these classes; none of them counts or scores anything itself.

An action returns once its events are in the log. When the log can't take them, because the disk is full for instance,
they wait here and count, and are written with the next action that can be: `waiting` says how many there are, and the
interface must say so too.

Agreement means something only as far as annotators judge independently. So others' opinions on a document are hidden
until the annotator's own stands, unless they want to see them always, or, when they judge blind, never.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from searchapp.errors import SearchappError
from searchapp.judging.assignment import shuffled
from searchapp.judging.event_log import NotSaved
from searchapp.judging.events import Action, Author, Event
from searchapp.judging.judgments import (
    Folding,
    Judgment,
    Key,
    Opinion,
    Pace,
    TopicScores,
    View,
    mean_topic_scores,
    seconds_each,
    tells_pace,
    topic_scores,
)
from searchapp.judging.log import JudgmentLog
from searchapp.judging.snapshot import compact
from searchapp.judging.team import Synchronizer


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

    @property
    def undone(self) -> tuple[Event, ...]:
        """The events of the action that `redo` does again; none where there is none."""
        return self._undone[-1] if self._undone else ()

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


JUDGED = (Action.grade, Action.cant_tell)
"""What makes others' opinions visible."""


class Show(StrEnum):
    """When others' opinions on a document are shown."""

    always = "always"
    after_own = "after one's own"
    never = "never"


class OthersOpinions:
    """What one annotator sees of what others say."""

    def __init__(self, session: Session, show: Show = Show.after_own) -> None:
        self.show = show
        self._session = session
        self._shown: set[Key] = set()

    def others(self, topic_id: str, document_id: str) -> list[Opinion]:
        """What others say of a document, as far as it is to be shown now; it counts as seen from now on."""
        opinions = self._others(topic_id, document_id) if self._is_open(topic_id, document_id) else []
        if opinions:
            self._shown.add((topic_id, document_id))
        return opinions

    def saw_others(self, topic_id: str, document_id: str) -> bool | None:
        """Whether the next judgment of a document is made in view of others' opinions; None: that is not known.

        It is once they could be seen, whatever happens to the annotator's own opinion afterwards. What was given and
        taken back without being looked at again, as after a wrong key, has opened nobody's eyes; of what was taken
        back in an earlier session that is not known, and it is taken to have been looked at.
        """
        view, mine = self._session.view, self._session.author.annotator
        if all(name == mine for name in view.annotators_of(topic_id, document_id)):
            return False
        own = view.said_by(mine, topic_id, document_id)
        if (topic_id, document_id) in self._shown or any(event.saw_others for event in own):
            return True
        if self.show is not Show.never and self._others(topic_id, document_id):
            earlier = any(event.action in JUDGED and not self._session.made(event) for event in own)
            if earlier or self._is_open(topic_id, document_id):
                return True
        return None if any(event.saw_others is None for event in own) else False

    def _is_open(self, topic_id: str, document_id: str) -> bool:
        return self.show is Show.always or (
            self.show is Show.after_own and self._session.is_judged(topic_id, document_id)
        )

    def _others(self, topic_id: str, document_id: str) -> list[Opinion]:
        mine = self._session.author.annotator
        opinions = self._session.view.opinions(topic_id, document_id)
        return [opinion for opinion in opinions if opinion.annotator != mine]


KEPT_TOPICS = 256
"""Topics whose order of documents is kept: a run may have a million of them in all."""


@dataclass(frozen=True, slots=True)
class Order:
    """A topic's documents in the order in which they are shown, and the rank of each document of the whole ranking."""

    documents: tuple[str, ...]
    ranks: dict[str, int]
    places: dict[str, int]


def own_seed(annotator: str) -> int:
    """The seed of an annotator who names none: always the same one, and another one than everybody else's."""
    return int.from_bytes(hashlib.sha256(annotator.encode()).digest()[:4])


class JudgingSession:
    """One annotator's work on a run.

    Args:
        session: the annotator's session
        topics: the ids of the topics in the order in which they are shown
        ranking: gives the ids of a topic's documents, best first
        length: gives the number of those that may be judged, the first ones, which may take less time
        run: what the log calls the run
        depth: how many documents of each ranking are judged; None means all that may be
        seed: shuffles each topic's documents and is written into every event, and others' opinions are never shown;
            None shows documents as they are ranked
        see_others: show others' opinions always, and not only once the annotator's own stands
        require: raises an error that names the document if one must not be graded
    """

    def __init__(
        self,
        session: Session,
        topics: Sequence[str],
        ranking: Callable[[str], Sequence[str]],
        length: Callable[[str], int],
        run: str,
        depth: int | None = None,
        seed: int | None = None,
        *,
        see_others: bool = False,
        require: Callable[[str], object] = lambda _document: None,
    ) -> None:
        self.session = session
        self._require = require
        always = Show.always if see_others else Show.after_own
        self._others_opinions = OthersOpinions(session, always if seed is None else Show.never)
        self.topics = tuple(topics)
        self.seed = seed
        self.run = run if seed is None else f"{run} shuffled with seed {seed}"
        self._ranking = ranking
        self._length = length
        self._depth = depth
        self._known = frozenset(topics)
        self._orders: OrderedDict[str, Order] = OrderedDict()
        self._stocks: OrderedDict[str, dict[str, Judgment]] = OrderedDict()
        self._ungraded: set[str] = set()
        """Topics of which it is known that this annotator has given no document a grade."""
        self._lengths: dict[str, int] = {}
        self._scores: dict[str, TopicScores] = {}
        self._counts: dict[str, int] = {}

    @property
    def is_blind(self) -> bool:
        return self.seed is not None

    # What there is to judge

    def order(self, topic_id: str) -> Order:
        """A topic's documents."""
        if topic_id not in self._orders:
            ranking = list(dict.fromkeys(self._ranking(topic_id)))
            documents = ranking[: self.length(topic_id)]
            if self.seed is not None:
                documents = shuffled(documents, self.seed, topic_id)
            places = {document: place for place, document in enumerate(documents)}
            ranks = {document: rank for rank, document in enumerate(ranking, 1)}
            self._orders[topic_id] = Order(tuple(documents), ranks, places)
            self._lengths[topic_id] = len(documents)  # fewer than were counted, where the run has some twice
            if len(self._orders) > KEPT_TOPICS:
                self._orders.popitem(last=False)
        self._orders.move_to_end(topic_id)
        return self._orders[topic_id]

    def place(self, topic_id: str, document_id: str) -> SeenDocument:
        """A document as the log is to know it, with its rank even where that is not shown."""
        rank = self.order(topic_id).ranks.get(document_id)
        return SeenDocument(
            topic_id, document_id, self.run, rank, self._others_opinions.saw_others(topic_id, document_id)
        )

    def opinion(self, topic_id: str, document_id: str) -> Opinion | None:
        """What this annotator says of a document."""
        return self.session.opinion(topic_id, document_id)

    def others(self, topic_id: str, document_id: str) -> list[Opinion]:
        """What everybody else says of a document, as far as it is to be shown now; it counts as seen from now on."""
        return self._others_opinions.others(topic_id, document_id)

    def said_in_words(self, topic_id: str, document_id: str) -> str:
        """This annotator's note on a document, or the reason for its grade."""
        return self.session.view.words(self.session.author.annotator, topic_id, document_id)

    # How far it is

    def length(self, topic_id: str) -> int:
        """How many documents of a topic are to be judged."""
        if topic_id not in self._lengths:
            length = self._length(topic_id)
            self._lengths[topic_id] = length if self._depth is None else min(length, self._depth)
        return self._lengths[topic_id]

    def judged(self, topic_id: str) -> int:
        """How many of a topic's documents are judged."""
        if topic_id not in self._counts:
            said = self._judged(topic_id)
            if not said:
                return 0  # of which nothing needs to be read
            self._counts[topic_id] = len(said & self.order(topic_id).places.keys())
        return self._counts[topic_id]

    def next_unjudged(self, topic_id: str, after: int = -1) -> int | None:
        """The place of the next document that is not judged, from the beginning again after the last one."""
        documents = self.order(topic_id).documents
        said = self._judged(topic_id)
        order = [*range(after + 1, len(documents)), *range(min(after + 1, len(documents)))]
        return next((place for place in order if documents[place] not in said), None)

    def next_unjudged_topic(self, after: int = -1) -> int | None:
        """The place of the next topic that has a document to judge, from the first again after the last one."""
        order = chain(range(after + 1, len(self.topics)), range(min(after + 1, len(self.topics))))
        # By numbers, for which no ranking of a topic has to be read that nothing was said of.
        return next((place for place in order if not self.is_done(self.topics[place])), None)

    def is_done(self, topic_id: str) -> bool:
        """Whether no document of a topic is left to judge."""
        if topic_id not in self._counts and len(self._judged(topic_id)) < self.length(topic_id):
            return False  # for which its ranking need not be read
        return self.judged(topic_id) >= self.length(topic_id)

    # What it scores

    def scores(self, topic_id: str) -> TopicScores | None:
        """The scores of a topic's whole ranking by this annotator's grades; None when there is no grade."""
        if topic_id in self._scores:
            return self._scores[topic_id]
        stock = self._stock(topic_id)
        grades = {document: said.grade for document, said in stock.items() if said.grade is not None}
        if not grades:
            self._ungraded.add(topic_id)
            return None
        if topic_id not in self._scores:
            self._scores[topic_id] = topic_scores(self.order(topic_id).ranks, grades)
            self.judged(topic_id)  # is known from now on, without reading the ranking once more
        return self._scores[topic_id]

    def unscored(self) -> list[str]:
        """Graded topics whose scores nobody has asked for yet: their rankings have to be read for that."""
        return [
            topic
            for topic in self.session.view.topics_of(self.session.author.annotator)
            if topic in self._known and topic not in self._scores and topic not in self._ungraded
        ]

    def mean_scores(self) -> tuple[TopicScores | None, int]:
        """The means over all graded topics that are scored by now, and how many topics these are."""
        return mean_topic_scores(self._scores.values()), len(self._scores)

    # Actions, each of which returns what it came to

    def grade(self, topic_id: str, documents: Sequence[str], grade: int, reason: str = "") -> Outcome:
        """Give one or several documents a grade, which is one action to undo.

        Raises:
            SearchappError: one of them is not as it was ranked; nothing is saved.
        """
        for document in documents:
            self._require(document)
        return self._after(
            self.session.grade([self.place(topic_id, one) for one in documents], grade, reason)
        )

    def skip(self, topic_id: str, document: str) -> Outcome:
        """Put a document off."""
        return self._after(self.session.skip(self.place(topic_id, document)))

    def cant_tell(self, topic_id: str, document: str, reason: str = "") -> Outcome:
        """Say that a document can't be judged."""
        return self._after(self.session.cant_tell(self.place(topic_id, document), reason))

    def note(self, topic_id: str, document: str, words: str) -> Outcome:
        """Attach words to a document."""
        return self._after(self.session.note(self.place(topic_id, document), words))

    def undo(self) -> Outcome | None:
        """Take the last action back; None when there is none left."""
        return self._after_any(self.session.undo())

    def redo(self) -> Outcome | None:
        """Do the last undone action again; None when there is none.

        Raises:
            SearchappError: it is a grade for a document that is no longer as it was ranked; nothing is saved.
        """
        for event in self.session.undone:
            if event.action is Action.grade:
                self._require(event.document_id)
        return self._after_any(self.session.redo())

    def save_waiting(self) -> Outcome:
        """Try to write what waits."""
        return self.session.save_waiting()

    def refresh(self) -> tuple[Event, ...]:
        """Read what others have written since, or the same annotator elsewhere; returns these events."""
        came = self.session.refresh()
        if any(event.action is Action.retract for event in came):
            self._take_stock()  # what is taken back may be another document's: only its id is named
        else:
            self._look_at({(event.topic_id, event.document_id) for event in came})
        return came

    def _after_any(self, outcome: Outcome | None) -> Outcome | None:
        return None if outcome is None else self._after(outcome)

    def _after(self, outcome: Outcome) -> Outcome:
        self._look_at({(event.topic_id, event.document_id) for event in outcome.events})
        return outcome

    def _take_stock(self) -> None:
        for known in (self._stocks, self._scores, self._counts, self._ungraded):
            known.clear()

    def _look_at(self, keys: Iterable[tuple[str, str]]) -> None:
        """Read again what is said of these documents."""
        for topic, document in keys:
            stock = self._stocks.get(topic)
            if stock is not None:
                opinion = self.session.opinion(topic, document)
                stock.pop(document, None)
                if opinion is not None:
                    stock[document] = Judgment(opinion.action, opinion.grade)
            self._scores.pop(topic, None)
            self._counts.pop(topic, None)
            self._ungraded.discard(topic)

    def _stock(self, topic_id: str) -> dict[str, Judgment]:
        """What this annotator says of the documents of a topic."""
        if topic_id not in self._stocks:
            self._stocks[topic_id] = dict(self.session.said(topic_id))
            if len(self._stocks) > KEPT_TOPICS:
                self._stocks.popitem(last=False)
        return self._stocks[topic_id]

    def _judged(self, topic_id: str) -> frozenset[str]:
        """Those that are judged; what was skipped waits."""
        return frozenset(
            document for document, said in self._stock(topic_id).items() if said.action is not Action.skip
        )


COUNTING_SECONDS = 1.0
"""How long it may take to count how many documents are left, for which each ranking may have to be looked at."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What one annotator said in a sitting, as far as it holds at its end.

    `grades` counts documents by their grades. `seconds` is the median time from one judgment to the next, None without
    two in a row. `left` is how many documents of the run are still to be judged, and `topics_left` of how many topics;
    None where to count them takes too long.
    """

    topics: int
    grades: Mapping[int, int]
    cant_tell: int
    skipped: int
    noted: int
    seconds: float | None
    left: int | None
    topics_left: int | None

    @property
    def judged(self) -> int:
        """Documents with a grade, and those marked "can't tell"."""
        return sum(self.grades.values()) + self.cant_tell


def summary(judging: JudgingSession) -> Summary:
    """What was judged in this session since it was opened."""
    session = judging.session
    made = session.made_here
    opinions = {
        key: opinion
        for event in made
        if event.action is not Action.retract
        and (opinion := session.opinion(*(key := (event.topic_id, event.document_id)))) is not None
        and session.made(opinion.event)
    }
    actions = Counter(opinion.action for opinion in opinions.values())
    grades = Counter(opinion.grade for opinion in opinions.values() if opinion.grade is not None)
    noted = {
        (event.topic_id, event.document_id)
        for event in made
        if event.action is Action.note and session.view.holds(event.id)
    }
    left = _left(judging)
    return Summary(
        topics=len({topic for (topic, _), opinion in opinions.items() if opinion.action is not Action.skip}),
        grades=dict(sorted(grades.items())),
        cant_tell=actions[Action.cant_tell],
        skipped=actions[Action.skip],
        noted=len(noted),
        seconds=seconds_each(event.order[0] for event in made if tells_pace(event)),
        left=None if left is None else sum(left),
        topics_left=None if left is None else sum(1 for one in left if one),
    )


def _left(judging: JudgingSession) -> list[int] | None:
    """How many documents of each topic are still to be judged; None if that takes too long, or can't be read."""
    until = time.monotonic() + COUNTING_SECONDS
    left = []
    with suppress(SearchappError):
        for topic in judging.topics:
            if time.monotonic() > until:
                return None
            left.append(judging.length(topic) - judging.judged(topic))
        return left
    return None


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
