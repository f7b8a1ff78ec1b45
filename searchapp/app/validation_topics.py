"""The topics that are cross-validated, their gold, and the value of each topic's ranking under a measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite

from searchapp.app.scoring import field_figures, official_figures
from searchapp.app.topic_figures import topic_ids
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import GoldFiles, ScorerOptions
from searchapp.formats.problems import Problems
from searchapp.model import Ranking, Run, Topic
from searchapp.progress import Progress
from searchapp.tasks.base import Collection, Grades, Part, Submission, Task

TAG = "cross-validation"


class GoldTopics:
    """The topics of some splits that have gold, by their splits: `by_split`.

    `measure` is a name that the official scorer or ir-measures knows; without one it is the task's official measure.
    """

    def __init__(
        self, task: Task, collection: Collection, measure: str | None, options: ScorerOptions
    ) -> None:
        self.by_split: dict[str, list[Topic]] = {}
        self._task = task
        self._collection = collection
        self._given = measure
        self._options = options
        self._grades: dict[str, Grades] = {}

    @property
    def measure(self) -> str:
        """The name of the measure, with the cut-off that the official scorer is given."""
        if self._given is not None:
            return self._given
        kind, at, cutoff = self._task.info.official_measure.partition("@")
        return f"{kind}{at}{self._options.nearest or cutoff}" if at else kind

    def read(self, split: str, problems: Problems, progress: Progress) -> None:
        """Read the topics of a split that have gold, and the gold; what is wrong in the files goes to `problems`.

        Raises:
            DataError: the gold is masked, or can't be read.
        """
        task, collection = self._task, self._collection
        if collection.is_masked(split):
            raise DataError(f"the gold of {split} is masked, so nothing can be validated by it")
        found = Problems(lenient=problems.lenient)
        with progress.stage(f"reading {split}") as advance:
            topics = collection.topics(split, found)
            advance(len(topics))
        problems.add_all(found)
        if found.stopped:
            return
        grades = task.official.grades(collection.gold_files(split), Part(collection, split))
        self._grades[split] = grades
        self.by_split[split] = [topic for topic in topics if topic.id in grades]

    def values(self, split: str, rankings: Mapping[str, Ranking]) -> dict[str, float]:
        """The values of a split's topics; those of topics without a ranking mean nothing.

        Raises:
            UsageError: the measure has no value a topic, or the scorer takes all topics or none.
            NotScorable: the official scorer refuses the rankings.
        """
        task, collection, grades = self._task, self._collection, self._grades[split]
        ranked = [rankings[topic.id] for topic in self.by_split[split] if topic.id in rankings]
        if not ranked:
            return {}
        lacking = [topic for topic in grades if topic not in rankings]
        if lacking and task.official.scorer.files_make_one:
            raise UsageError(
                f"the scorer of {task.reference} takes all topics of {split} or none: rank all of them"
            )
        # The official scorers stop at a topic that has no ranking: any one will do, and its value is left out.
        run = Run(TAG, (*ranked, *(replace(ranked[0], topic_id=topic) for topic in lacking)))
        options = replace(self._options, split=split)
        files = GoldFiles(collection.gold_files(split), options)
        predictions = task.official.predictions(Submission(run, Part(collection, split), options))
        scored = official_figures(task.official.scorer, predictions, files)
        measure = self._given
        values: Mapping[str, float | None] = scored.official.of_topics(measure)
        if not values:
            if measure is None or measure in scored.official.values:
                raise UsageError(
                    f"{self.measure} has no value for each topic: choose another one with --measure"
                )
            measured = field_figures(scored.rankings, scored.qrels, [measure])
            values = next(iter(measured.per_topic.values()), {})
        ids = topic_ids(list(scored.qrels), grades)  # some topics may have no value
        return {
            ids.get(name, name): value
            for name, value in values.items()
            if value is not None and isfinite(value)
        }
