"""Lists of what was said: documents that somebody graded, skipped, could not tell of, noted or decided on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from searchapp.judging.events import Action, Event, Kind
from searchapp.judging.fold import View


@dataclass(frozen=True, slots=True)
class ListedJudgment:
    """What somebody says of a document now.

    `action` is grade, skip, cant_tell or adjudicate, or note where words are all there is; `words` are the note or
    the reason. `time`, `run`, `rank` and `saw_others` are those of the event that says it.
    """

    annotator: str
    kind: Kind
    topic_id: str
    document_id: str
    action: Action
    grade: int | None
    words: str
    time: str
    run: str
    rank: int | None
    saw_others: bool | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which of it is listed; None, and nothing, leave out nothing."""

    annotators: Collection[str] | None = None
    topics: Collection[str] | None = None
    actions: Collection[Action] | None = None
    grades: Collection[int] | None = None
    noted: bool = False
    """Only what has words."""

    def takes(self, said: ListedJudgment) -> bool:
        """Whether something is listed."""
        return (
            (self.annotators is None or said.annotator in self.annotators)
            and (self.topics is None or said.topic_id in self.topics)
            and (self.actions is None or said.action in self.actions)
            and (self.grades is None or said.grade in self.grades)
            and (not self.noted or bool(said.words))
        )


def listed(view: View, wanted: Filter | None = None) -> list[ListedJudgment]:
    """What holds now of everything that was said, in the order of the time when it was said."""
    wanted = wanted or Filter()
    found = [(event.order, said) for event, said in _everything(view, wanted) if wanted.takes(said)]
    # What was said at once of several documents comes in the order of their ranks.
    found.sort(key=lambda one: (one[0][0], one[1].rank or 0, one[0][1]))
    return [said for _, said in found]


def _everything(view: View, wanted: Filter) -> Iterator[tuple[Event, ListedJudgment]]:
    """Whatever was said; topics and annotators that can't be wanted are passed over."""
    topics: Iterable[str] = view.topics()
    if wanted.annotators is not None:
        topics = dict.fromkeys(topic for name in wanted.annotators for topic in view.topics_of(name))
    if wanted.topics is not None:
        topics = [topic for topic in topics if topic in wanted.topics]
    for topic_id, document_id in view.judged_documents(topics):
        for annotator in view.annotators_of(topic_id, document_id):
            if wanted.annotators is not None and annotator not in wanted.annotators:
                continue
            words = view.words(annotator, topic_id, document_id)
            for event in view.standing(annotator, topic_id, document_id):
                own_words = event.text if event.action is Action.adjudicate else words
                said = ListedJudgment(
                    annotator,
                    event.kind,
                    topic_id,
                    document_id,
                    event.action,
                    event.grade,
                    own_words,
                    event.time,
                    event.run,
                    event.rank,
                    event.saw_others,
                )
                yield event, said
