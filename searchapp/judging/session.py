"""Sessions of an annotator on a task: judging a run, and adjudication.

If the log can't be written, events wait in the session, count at once, and are written with the next action. The
interface must show the number of `waiting` events.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import chain, islice

from searchapp.errors import SearchappError
from searchapp.judging.assignment import shuffled
from searchapp.judging.event_log import NotSaved
from searchapp.judging.events import Action, Author, Detail, Event, is_timed
from searchapp.judging.guidelines import Guidelines
from searchapp.judging.judgments import (
    Aggregation,
    Pace,
    TopicScores,
    mean_topic_scores,
    seconds_each,
    topic_scores,
)
from searchapp.judging.log import JudgmentLog
from searchapp.judging.team import Synchronizer
from searchapp.judging.view import (
    VERDICTS,
    Judgment,
    JudgmentView,
    Key,
    Opinion,
    has_verdict,
    open_view,
    people_first,
)
from searchapp.lucene.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SeenDocument:
    """A document as the annotator sees it; `run`, `rank` and `saw_others` go into its events."""

    topic_id: str
    document_id: str
    run: str = ""
    rank: int | None = None
    saw_others: bool | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The events of an action, and the error if they are not in the log yet."""

    events: tuple[Event, ...]
    not_saved: NotSaved | None = None

    @property
    def is_saved(self) -> bool:
        return self.not_saved is None


JUDGING = (Action.grade, Action.skip, Action.cant_tell, Action.note)  # the actions of a judging session


class Session:
    """An annotator's actions on a task, with unlimited undo.

    Args:
        earlier: the actions of earlier sessions that `undo` may retract
        guidelines: what the grades mean; their digest is recorded with every judgment
    """

    def __init__(
        self,
        log: JudgmentLog,
        task: str,
        author: Author,
        earlier: Collection[Action] = JUDGING,
        guidelines: Guidelines | None = None,
    ) -> None:
        self.task = task
        self.author = author
        self.guidelines = guidelines
        # Exchanges the log with a team's, when judgments are shared.
        self.synchronizer: Synchronizer | None = None
        # New sentences on damage of the log; the interface shows and removes them.
        self.news: list[str] = []
        self.view = open_view(log, task)
        # The speed of this annotator on the task.
        self.pace = Pace(self.view.judging_times(author.annotator))
        self._log = log
        self._seen: set[str] = set()
        self._made: dict[str, Event] = {}
        self._last = self._opened_at = self.view.last
        self._waiting: list[Event] = []
        self._why = ""
        self._done: list[tuple[Event, ...]] = []
        self._undone: list[tuple[Event, ...]] = []
        self._earlier = earlier
        # This annotator's events of earlier sessions, the last first; None until undo needs them.
        self._earlier_events: Iterator[Event] | None = None
        # `judged_here`, and the number of events for which it was counted.
        self._judged_here = self._counted = 0

    # State

    @property
    def log(self) -> JudgmentLog:
        return self._log

    def refresh(self) -> tuple[Event, ...]:
        """Read the events that other sessions appended; return the task's."""
        new = []
        for sequence, event in self._log.events(after=self._last):
            self._last = sequence
            if event.task == self.task and self._count(event, sequence):
                new.append(event)
        return tuple(new)

    def made(self, event: Event) -> bool:
        return event.id in self._made

    @property
    def made_here(self) -> tuple[Event, ...]:
        return tuple(self._made.values())

    @property
    def judged_here(self) -> int:
        """The number of documents with a judgment of this session that holds."""
        if self._counted != self.view.count:
            self._counted = self.view.count
            verdicts: dict[Key, Action] = {}
            for event in self._made.values():
                if event.action in VERDICTS and self.view.holds(event.id):
                    verdicts[event.topic_id, event.document_id] = event.action
            self._judged_here = sum(action in JUDGED for action in verdicts.values())
        return self._judged_here

    def opinion(self, topic_id: str, document_id: str) -> Opinion | None:
        return self.view.opinion(self.author.annotator, topic_id, document_id)

    def is_judged(self, topic_id: str, document_id: str) -> bool:
        return has_verdict(self.opinion(topic_id, document_id))

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def waiting_events(self) -> tuple[Event, ...]:
        return tuple(self._waiting)

    def details(self, events: Iterable[Event]) -> list[Detail]:
        """Return the side records of own events."""
        return [] if self.guidelines is None else self.guidelines.details(events)

    @property
    def not_saved(self) -> str | None:
        return self._why if self._waiting else None

    @property
    def unsent(self) -> int:
        if self.synchronizer is None:
            return 0
        return self._log.waiting(self.synchronizer.address, self.synchronizer.task)

    # Actions

    def grade(self, documents: Sequence[SeenDocument], grade: int, reason: str = "") -> Outcome:
        return self._act(
            self._event(document, Action.grade, grade=grade, text=reason) for document in documents
        )

    def skip(self, document: SeenDocument) -> Outcome:
        return self._act([self._event(document, Action.skip)])

    def cant_tell(self, document: SeenDocument, reason: str = "") -> Outcome:
        return self._act([self._event(document, Action.cant_tell, text=reason)])

    def note(self, document: SeenDocument, words: str) -> Outcome:
        return self._act([self._event(document, Action.note, text=words)])

    def adjudicate(self, document: SeenDocument, grade: int, reason: str = "") -> Outcome:
        return self._act([self._event(document, Action.adjudicate, grade=grade, text=reason)])

    def undo(self) -> Outcome | None:
        while undone := self._last_done():
            # The same annotator may have undone events in another session.
            standing = tuple(event for event in undone if self.view.holds(event.id))
            if standing:
                self._undone.append(standing)
                return self._write(tuple(self._retraction(event) for event in standing))
        return None

    @property
    def undone(self) -> tuple[Event, ...]:
        return self._undone[-1] if self._undone else ()

    def redo(self) -> Outcome | None:
        if not self._undone:
            return None
        again = tuple(self._repeat(event) for event in self._undone.pop())
        self._done.append(again)
        return self._write(again)

    def save_waiting(self) -> Outcome:
        return self._write(())

    def _act(self, events: Iterable[Event]) -> Outcome:
        made = tuple(events)
        self._done.append(made)
        self._undone.clear()
        return self._write(made)

    def _write(self, events: tuple[Event, ...]) -> Outcome:
        for event in events:
            self._made[event.id] = event
            self._count(event)
        self._waiting += events
        if not self._waiting:
            return Outcome(events)
        try:
            self._log.append(self._waiting, self.details(self._waiting))
        except NotSaved as error:
            self._why = str(error)
            return Outcome(events, error)
        self._waiting.clear()
        return Outcome(events)

    def _count(self, event: Event, sequence: int | None = None) -> bool:
        if event.id in self._seen:
            return False
        self._seen.add(event.id)
        self.view.add(event, sequence)
        if event.annotator == self.author.annotator:
            self.pace.add(event)
        return True

    def _last_done(self) -> tuple[Event, ...]:
        if self._done:
            return self._done.pop()
        if self._earlier_events is None:
            # Read one by one: undo rarely goes back far.
            own = self.view.own_sequences(self.author.annotator, self._earlier)
            sequences = [sequence for sequence in reversed(own) if 0 < sequence <= self._opened_at]
            self._earlier_events = (event for sequence in sequences for event in self._log.at([sequence]))
        return tuple(islice(self._earlier_events, 1))

    def _event(
        self, document: SeenDocument, action: Action, *, grade: int | None = None, text: str = ""
    ) -> Event:
        return self.author.event(
            self.task,
            document.topic_id,
            document.document_id,
            action,
            grade=grade,
            text=text,
            run=document.run,
            rank=document.rank,
            saw_others=document.saw_others,
            after=self.view.latest(document.topic_id, document.document_id),
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

    def _repeat(self, event: Event) -> Event:
        document = SeenDocument(event.topic_id, event.document_id, event.run, event.rank, event.saw_others)
        return self._event(document, event.action, grade=event.grade, text=event.text)


JUDGED = (Action.grade, Action.cant_tell)  # the actions after which others' opinions are shown


class Show(StrEnum):
    """When others' opinions on a document are shown."""

    always = "always"
    after_own = "after one's own"
    never = "never"


class OthersOpinions:
    """The opinions of others that an annotator sees."""

    def __init__(self, session: Session, show: Show = Show.after_own) -> None:
        self.show = show
        self._session = session
        self._shown: set[Key] = set()

    def others(self, topic_id: str, document_id: str) -> list[Opinion]:
        """Return the opinions that are shown now, and record that they were shown."""
        opinions = self._others(topic_id, document_id) if self._is_open(topic_id, document_id) else []
        if opinions:
            self._shown.add((topic_id, document_id))
        return opinions

    def saw_others(self, topic_id: str, document_id: str) -> bool | None:
        """Return whether others' opinions influence the next judgment; None if unknown."""
        view, mine = self._session.view, self._session.author.annotator
        if all(name == mine for name in view.annotators_of(topic_id, document_id)):
            return False
        own = view.events_on(mine, topic_id, document_id)
        if (topic_id, document_id) in self._shown or any(event.saw_others for event in own):
            return True
        if self.show is not Show.never and self._others(topic_id, document_id):
            # Opinions count as seen once they could be seen, even if the annotator's own verdict was
            # retracted. A verdict of this session that was retracted at once, as after a wrong key, showed
            # nothing.
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
        opinions = people_first(self._session.view.opinions(topic_id, document_id))
        return [opinion for opinion in opinions if opinion.annotator != mine]


CACHED_ORDERS = 256  # topics whose documents and verdicts stay in memory: a run may have a million documents


@dataclass(frozen=True, slots=True)
class DocumentOrder:
    """A topic's documents in the order of judging."""

    documents: tuple[str, ...]
    # The rank of each document of the whole ranking, from 1.
    ranks: dict[str, int]
    # The index of each document in `documents`.
    places: dict[str, int]


def own_seed(annotator: str) -> int:
    """Return the default seed of an annotator."""
    return int.from_bytes(hashlib.sha256(annotator.encode()).digest()[:4])


def cyclic_order(length: int, after: int, step: int = 1) -> Iterator[int]:
    """Yield the indices behind `after` to the end, then from 0 to `after`; with step -1, those before it first."""
    if step < 0:
        return chain(range(min(after, length) - 1, -1, -1), range(length - 1, max(after, 0) - 1, -1))
    return chain(range(after + 1, length), range(min(after + 1, length)))


@dataclass(frozen=True, slots=True)
class Feedback:
    """What an annotator learns about a document that was just graded."""

    given: int
    known: int
    # The section of the guidelines on the known grade, with its example; "" if there is none.
    guideline: str

    @property
    def is_right(self) -> bool:
        return self.given == self.known


class JudgingSession:
    """One annotator's work on a run.

    Args:
        topics: the ids of the topics in the order of judging
        ranking: returns the ids of a topic's documents, best first
        length: returns how many documents of a topic may be judged
        run: the name of the run in the log
        depth: how many documents of each ranking are judged; None means all
        seed: shuffles each topic's documents and hides others' opinions; None keeps the order of the ranking
        show_others: show others' opinions before the annotator's own verdict
        hide_ranks: hide ranks, scores and measures, as with a seed, but keep the order
        require: raises an error if the document must not be graded
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
        show_others: bool = False,
        hide_ranks: bool = False,
        require: Callable[[str], object] = lambda _document: None,
    ) -> None:
        self.session = session
        self.shows_ranks = seed is None and not hide_ranks
        self._require = require
        always = Show.always if show_others else Show.after_own
        self._others_opinions = OthersOpinions(session, always if seed is None else Show.never)
        self.topics = tuple(topics)
        self.seed = seed
        self.run = run if seed is None else f"{run} shuffled with seed {seed}"
        self._ranking = ranking
        self._length = length
        self._depth = depth
        self._known = frozenset(topics)
        self._lengths: dict[str, int] = {}
        self._orders: OrderedDict[str, DocumentOrder] = OrderedDict()
        self._judgments: OrderedDict[str, Mapping[str, Judgment]] = OrderedDict()
        self._counts: dict[str, int] = {}
        # None for topics without grades.
        self._scores: dict[str, TopicScores | None] = {}

    @property
    def is_blind(self) -> bool:
        return self.seed is not None

    # Documents

    def order(self, topic_id: str) -> DocumentOrder:
        if topic_id not in self._orders:
            ranking = list(dict.fromkeys(self._ranking(topic_id)))
            documents = ranking[: self.length(topic_id)]
            if self.seed is not None:
                documents = shuffled(documents, self.seed, topic_id)
            indices = {document: index for index, document in enumerate(documents)}
            ranks = {document: rank for rank, document in enumerate(ranking, 1)}
            self._orders[topic_id] = DocumentOrder(tuple(documents), ranks, indices)
            # Less than `_length` returned, if the run repeats documents.
            self._lengths[topic_id] = len(documents)
            if len(self._orders) > CACHED_ORDERS:
                self._orders.popitem(last=False)
        self._orders.move_to_end(topic_id)
        return self._orders[topic_id]

    def seen(self, topic_id: str, document_id: str) -> SeenDocument:
        """Return a document for the log, with its rank even where the screen hides it."""
        rank = self.order(topic_id).ranks.get(document_id)
        return SeenDocument(
            topic_id, document_id, self.run, rank, self._others_opinions.saw_others(topic_id, document_id)
        )

    def opinion(self, topic_id: str, document_id: str) -> Opinion | None:
        return self.session.opinion(topic_id, document_id)

    def others(self, topic_id: str, document_id: str) -> list[Opinion]:
        return self._others_opinions.others(topic_id, document_id)

    def words(self, topic_id: str, document_id: str) -> str:
        return self.session.view.words(self.session.author.annotator, topic_id, document_id)

    def feedback(self, topic_id: str, document_id: str) -> Feedback | None:  # noqa: ARG002
        """Return what the annotator learns about a document after grading it; None outside calibrations."""
        return None

    def judgments(self, topic_id: str) -> Mapping[str, Judgment]:
        """Return the annotator's verdicts on a topic's documents, also on those that the run does not rank."""
        return self._judgments_of(topic_id)

    # Progress

    def length(self, topic_id: str) -> int:
        if topic_id not in self._lengths:
            length = self._length(topic_id)
            self._lengths[topic_id] = length if self._depth is None else min(length, self._depth)
        return self._lengths[topic_id]

    def judged(self, topic_id: str) -> int:
        if topic_id not in self._counts:
            judged = self._judged(topic_id)
            if not judged:
                return 0  # without reading the ranking
            self._counts[topic_id] = len(judged & self.order(topic_id).places.keys())
        return self._counts[topic_id]

    def next_unjudged(self, topic_id: str, after: int = -1, step: int = 1) -> int | None:
        """Return the index of the next unjudged document, or with step -1 of the previous one; wraps around."""
        documents = self.order(topic_id).documents
        judged = self._judged(topic_id)
        indices = cyclic_order(len(documents), after, step)
        return next((index for index in indices if documents[index] not in judged), None)

    def next_unjudged_topic(self, after: int = -1) -> int | None:
        indices = cyclic_order(len(self.topics), after)
        return next((index for index in indices if not self.is_done(self.topics[index])), None)

    def is_done(self, topic_id: str) -> bool:
        if topic_id not in self._counts and len(self._judged(topic_id)) < self.length(topic_id):
            return False  # without reading the ranking
        return self.judged(topic_id) >= self.length(topic_id)

    # Scores

    def scores(self, topic_id: str) -> TopicScores | None:
        """Return the scores of a topic's whole ranking by this annotator's grades; None without grades."""
        if topic_id not in self._scores:
            judgments = self._judgments_of(topic_id).items()
            grades = {
                document: judgment.grade for document, judgment in judgments if judgment.grade is not None
            }
            self._scores[topic_id] = topic_scores(self.order(topic_id).ranks, grades) if grades else None
            if grades:
                self.judged(topic_id)  # while the ranking is in memory
        return self._scores[topic_id]

    def unscored(self) -> list[str]:
        topics = self.session.view.topics_of(self.session.author.annotator)
        return [topic for topic in topics if topic in self._known and topic not in self._scores]

    def mean_scores(self) -> tuple[TopicScores | None, int]:
        scores = [scores for scores in self._scores.values() if scores is not None]
        return mean_topic_scores(scores), len(scores)

    # Actions

    def grade(self, topic_id: str, documents: Sequence[str], grade: int, reason: str = "") -> Outcome:
        """Give documents a grade, as one action.

        Raises:
            SearchappError: a document has changed since it was ranked; nothing is saved.
        """
        for document in documents:
            self._require(document)
        seen = [self.seen(topic_id, document) for document in documents]
        return self._finish(self.session.grade(seen, grade, reason))

    def skip(self, topic_id: str, document: str) -> Outcome:
        return self._finish(self.session.skip(self.seen(topic_id, document)))

    def cant_tell(self, topic_id: str, document: str, reason: str = "") -> Outcome:
        return self._finish(self.session.cant_tell(self.seen(topic_id, document), reason))

    def note(self, topic_id: str, document: str, words: str) -> Outcome:
        return self._finish(self.session.note(self.seen(topic_id, document), words))

    def undo(self) -> Outcome | None:
        outcome = self.session.undo()
        return outcome and self._finish(outcome)

    def redo(self) -> Outcome | None:
        """Repeat the last undone action, if any.

        Raises:
            SearchappError: a graded document has changed since it was ranked; nothing is saved.
        """
        for event in self.session.undone:
            if event.action is Action.grade:
                self._require(event.document_id)
        outcome = self.session.redo()
        return outcome and self._finish(outcome)

    def refresh(self) -> tuple[Event, ...]:
        events = self.session.refresh()
        if any(event.action is Action.retract for event in events):
            for cache in (self._judgments, self._scores, self._counts):
                cache.clear()  # a retraction names only an id, which may be of another topic
        self._forget(events)
        return events

    def _finish(self, outcome: Outcome) -> Outcome:
        self._forget(outcome.events)
        return outcome

    def _forget(self, events: Iterable[Event]) -> None:
        for topic_id in {event.topic_id for event in events}:
            self._judgments.pop(topic_id, None)
            self._scores.pop(topic_id, None)
            self._counts.pop(topic_id, None)

    def _judgments_of(self, topic_id: str) -> Mapping[str, Judgment]:
        if topic_id not in self._judgments:
            self._judgments[topic_id] = self.session.view.judgments(self.session.author.annotator, topic_id)
            if len(self._judgments) > CACHED_ORDERS:
                self._judgments.popitem(last=False)
        return self._judgments[topic_id]

    def _judged(self, topic_id: str) -> frozenset[str]:
        judgments = self._judgments_of(topic_id).items()
        return frozenset(document for document, judgment in judgments if judgment.action is not Action.skip)


# The characters of a text that are compared, and the judged documents of a topic: the latest ones.
COMPARED_CHARACTERS = 4_000
COMPARED_DOCUMENTS = 500
# The least Jaccard coefficient of the distinct words of near-duplicates.
LEAST_OVERLAP = 0.8
# A longer list would hide the document.
LISTED_DUPLICATES = 3


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """A judged document whose text is nearly that of another document."""

    document_id: str
    judgment: Judgment
    # The share of common words, at least `LEAST_OVERLAP`.
    overlap: float
    # Both texts have the same words in the same order.
    is_same: bool


class NearDuplicates:
    """Finds those judged documents of a topic that are nearly equal to another document.

    Only words and mathematical signs count, in any case.

    Args:
        judging: the annotator's judgments
        text: returns the text of a document, or None while it is unknown
    """

    def __init__(self, judging: JudgingSession, text: Callable[[str], str | None]) -> None:
        self._judging = judging
        self._text = text
        # By document: the words in their order, and the distinct words.
        self._words: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {}

    def of(self, topic_id: str, document_id: str) -> list[NearDuplicate]:
        """Return near-duplicates with the highest overlap first, as far as their texts are known."""
        words, distinct = self._words_of(document_id)
        found = []
        for other, judgment in self._compared(topic_id) if words else ():
            other_words, other_distinct = self._words_of(other)
            fewer, more = sorted((len(distinct), len(other_distinct)))
            if other == document_id or fewer < LEAST_OVERLAP * more:
                continue
            common = len(distinct & other_distinct)
            overlap = common / (fewer + more - common)
            if overlap >= LEAST_OVERLAP:
                found.append(NearDuplicate(other, judgment, overlap, words == other_words))
        found.sort(key=lambda duplicate: (not duplicate.is_same, -duplicate.overlap))
        return found[:LISTED_DUPLICATES]

    def unknown(self, topic_id: str) -> list[str]:
        """Return the documents that are compared but whose texts are unknown."""
        return [document for document, _judgment in self._compared(topic_id) if self._text(document) is None]

    def _compared(self, topic_id: str) -> list[tuple[str, Judgment]]:
        judgments = self._judging.judgments(topic_id).items()
        judged = [(document, judgment) for document, judgment in judgments if judgment.action in JUDGED]
        return judged[-COMPARED_DOCUMENTS:]

    def _words_of(self, document: str) -> tuple[tuple[str, ...], frozenset[str]]:
        if document not in self._words:
            text = self._text(document)
            if text is None:
                return (), frozenset()
            words = tuple(_WORDS_AND_SIGNS.findall(text[:COMPARED_CHARACTERS].casefold()))
            if len(self._words) >= CACHED_WORDS:
                self._words.clear()
            self._words[document] = words, frozenset(words)
        return self._words[document]


_WORDS_AND_SIGNS = re.compile(r"\w+|[-+*/^|<=>≠≤≥±×÷∈∉⊂⊆∪∩∧∨¬→⇒⇔∀∃∅∞]")

CACHED_WORDS = 4 * COMPARED_DOCUMENTS  # documents whose words stay in memory


COUNTING_SECONDS = 1.0  # time limit for counting unjudged documents, which may read every ranking


@dataclass(frozen=True, slots=True)
class Summary:
    """The judgments of a session that hold at its end."""

    topics: int
    # Number of documents by grade.
    grades: Mapping[int, int]
    cant_tell: int
    skipped: int
    noted: int
    # The median time from one judgment to the next, see `seconds_each`.
    seconds: float | None
    # Number of unjudged documents of the run; None, like `topics_left`, if counting takes too long.
    left: int | None
    # Number of topics with unjudged documents.
    topics_left: int | None

    @property
    def judged(self) -> int:
        return sum(self.grades.values()) + self.cant_tell


def summary(judging: JudgingSession) -> Summary:
    """Return the judgments of a session since it was opened."""
    session = judging.session
    keys = {
        (event.topic_id, event.document_id)
        for event in session.made_here
        if event.action is not Action.retract
    }
    opinions = {
        key: opinion
        for key in keys
        if (opinion := session.opinion(*key)) is not None and session.made(opinion.event)
    }
    actions = Counter(opinion.action for opinion in opinions.values())
    grades = Counter(opinion.grade for opinion in opinions.values() if opinion.grade is not None)
    noted = {
        (event.topic_id, event.document_id)
        for event in session.made_here
        if event.action is Action.note and session.view.holds(event.id)
    }
    left = _count_unjudged(judging)
    return Summary(
        topics=len({topic for (topic, _), opinion in opinions.items() if opinion.action is not Action.skip}),
        grades=dict(sorted(grades.items())),
        cant_tell=actions[Action.cant_tell],
        skipped=actions[Action.skip],
        noted=len(noted),
        seconds=seconds_each(event.order[0] for event in session.made_here if is_timed(event)),
        left=None if left is None else sum(left),
        topics_left=None if left is None else sum(map(bool, left)),
    )


def _count_unjudged(judging: JudgingSession) -> list[int] | None:
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
    """A document on which annotators disagree, with their grades by name."""

    topic_id: str
    document_id: str
    grades: Mapping[str, int]

    @property
    def key(self) -> Key:
        return self.topic_id, self.document_id

    @property
    def spread(self) -> int:
        return max(self.grades.values()) - min(self.grades.values())

    @property
    def seen(self) -> SeenDocument:
        # The adjudicator sees all opinions.
        return SeenDocument(*self.key, saw_others=True)


def disputes(view: JudgmentView, aggregation: Aggregation | None = None) -> list[Dispute]:
    """Return the documents whose annotators disagree, decided or not, by descending spread."""
    aggregation = aggregation or Aggregation()
    graded = (Dispute(*key, aggregation.grades(view, key)) for key in view.judged_documents())
    disputed = (dispute for dispute in graded if len(set(dispute.grades.values())) > 1)
    return sorted(disputed, key=lambda dispute: (-dispute.spread, dispute.key))


class Adjudication:
    """A session that decides between annotators.

    Args:
        annotators: whose grades count; None means all people. Models count only if named
        topic: restricts disputes to this topic
        document: restricts disputes to this document
    """

    def __init__(
        self,
        session: Session,
        annotators: Collection[str] | None = None,
        topic: str | None = None,
        document: str | None = None,
    ) -> None:
        self.session = session
        self._aggregation = Aggregation(annotators=annotators)
        self._topic, self._document = topic, document
        self.disputes: list[Dispute] = []
        self._find_disputes()

    def opinions(self, dispute: Dispute) -> list[Opinion]:
        """Return all opinions on the document, not only those that count here; people first."""
        return people_first(self.session.view.opinions(*dispute.key))

    def decision(self, dispute: Dispute) -> Event | None:
        return self.session.view.decision(*dispute.key)

    def words(self, dispute: Dispute) -> str:
        return self.session.view.words(self.session.author.annotator, *dispute.key)

    @property
    def decided(self) -> int:
        return sum(self.decision(dispute) is not None for dispute in self.disputes)

    def index_of(self, key: Key) -> int | None:
        return next((index for index, dispute in enumerate(self.disputes) if dispute.key == key), None)

    def next_open(self, after: int = -1) -> int | None:
        indices = cyclic_order(len(self.disputes), after)
        return next((index for index in indices if self.decision(self.disputes[index]) is None), None)

    def decide(self, dispute: Dispute, grade: int, reason: str = "") -> Outcome:
        return self.session.adjudicate(dispute.seen, grade, reason)

    def note(self, dispute: Dispute, words: str) -> Outcome:
        return self.session.note(dispute.seen, words)

    def refresh(self) -> tuple[Event, ...]:
        events = self.session.refresh()
        if events:
            self._find_disputes()
        return events

    def _find_disputes(self) -> None:
        self.disputes = [
            dispute
            for dispute in disputes(self.session.view, self._aggregation)
            if self._topic in (None, dispute.topic_id) and self._document in (None, dispute.document_id)
        ]
