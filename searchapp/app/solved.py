"""The solved topics of a task, by the documents that are their answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from searchapp.errors import SearchappError
from searchapp.formats.problems import Problems
from searchapp.model import Topic
from searchapp.tasks.base import Collection, Part, Task


@dataclass(frozen=True, slots=True)
class SolvedTopic:
    """A topic of a split, with the grade of each document that its gold has."""

    topic: Topic
    split: str
    gold: Mapping[str, float]

    @property
    def answers(self) -> list[tuple[str, float]]:
        """The documents that are relevant, the best grades first."""
        relevant = [(document, grade) for document, grade in self.gold.items() if grade > 0]
        return sorted(relevant, key=lambda one: -one[1])


class SolvedTopics:
    """Solved topics, each once, in the order in which they are given."""

    def __init__(self, solved: Iterable[SolvedTopic] = ()) -> None:
        self._topics: dict[str, SolvedTopic] = {}
        self._citing: defaultdict[str, list[tuple[float, SolvedTopic]]] = defaultdict(list)
        for one in solved:
            if one.topic.id not in self._topics:
                self._topics[one.topic.id] = one
                for document, grade in one.answers:
                    self._citing[document].append((grade, one))

    def __len__(self) -> int:
        return len(self._topics)

    def topic(self, topic_id: str) -> SolvedTopic | None:
        """A topic; None if it is not solved."""
        return self._topics.get(topic_id)

    def citing(self, document_id: str) -> Sequence[SolvedTopic]:
        """The topics that a document is an answer to, those first for which it has the best grade."""
        found = self._citing.get(document_id, [])
        return [one for _grade, one in sorted(found, key=lambda each: -each[0])]


def solved_topics(task: Task, collection: Collection) -> SolvedTopics:
    """The topics of all splits whose gold is at hand; what can't be read is left out."""
    return SolvedTopics(_solved(task, collection))


def _solved(task: Task, collection: Collection) -> Iterable[SolvedTopic]:
    for split in task.info.splits:
        with suppress(SearchappError):
            grades = task.official.grades(collection.gold_files(split), Part(collection, split))
            topics = {one.id: one for one in collection.topics(split, Problems(lenient=True))}
            for topic_id, gold in grades.items():
                topic = topics.get(topic_id, Topic(topic_id, ""))
                yield SolvedTopic(topic, split, {name: float(grade) for name, grade in gold.items()})
