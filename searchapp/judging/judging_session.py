"""One annotator's judging of a run: which documents of which topics are to be judged, how many are, and the scores.

This is what the full-screen interface and the prompts have in common; neither counts or scores anything itself.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from searchapp.judging.assignment import shuffled
from searchapp.judging.events import Action, Event
from searchapp.judging.fold import Judgment, Opinion
from searchapp.judging.others import OthersOpinions, Show
from searchapp.judging.scores import TopicScores, mean, score
from searchapp.judging.session import Outcome, SeenDocument, Session

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
    ) -> None:
        self.session = session
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
            self._scores[topic_id] = score(self.order(topic_id).ranks, grades)
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
        return mean(self._scores.values()), len(self._scores)

    # Actions, each of which returns what it came to

    def grade(self, topic_id: str, documents: Sequence[str], grade: int, reason: str = "") -> Outcome:
        """Give one or several documents a grade, which is one action to undo."""
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
        """Do the last undone action again; None when there is none."""
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
