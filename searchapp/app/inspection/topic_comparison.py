"""Compare runs topic by topic; separate from `inspection.topics`, which does not import NumPy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum

from searchapp.app.compare import (
    CompareRequest,
    baseline_of,
    compare_read,
    gold_of,
    read_runs,
    require_comparable,
    topic_differences,
)
from searchapp.app.comparison import Comparison, Scoring, TopicDifference
from searchapp.app.evaluate import Judgments
from searchapp.app.inspection.topics import RunTopics, TopicsRequest, open_topics
from searchapp.config.settings import Settings
from searchapp.judging.judgments import Unjudged
from searchapp.model import Hits, Ranking, Run
from searchapp.progress import Progress, SilentProgress
from searchapp.runs.directory import StoredRun
from searchapp.tasks.base import Grades


class Sorting(StrEnum):
    """The order of the topics of two runs."""

    gains = "gains"  # the greatest gains of the second run first
    losses = "losses"  # its greatest losses first
    changes = "changes"  # the greatest differences first
    file = "file"  # the order of the first run


class Comparing:
    """Runs beside each other; thread-safe, except that only one thread compares.

    Args:
        judged: reads the present judgments
        follows: whether these are the gold
    """

    def __init__(self, request: CompareRequest, judged: Callable[[], Grades], *, follows: bool) -> None:
        self.request = request
        self.follows = follows
        self.topics: tuple[RunTopics, ...] = ()  # the topics of each run of the request
        self._judged = judged
        self._lock = threading.Lock()
        self._grades: Grades | None = None if request.judgments is None else request.judgments.grades
        self._stored: Sequence[StoredRun] = ()
        self._rankings: list[Mapping[str, Sequence[str]]] = []

    def grades(self) -> Grades:
        """Return the grades of the gold by topic and document, read once.

        Raises:
            SearchappError: they can't be read.
        """
        with self._lock:
            if self._grades is None:
                request = self.request
                self._grades = Scoring(request.source, request.judgments).grades(*gold_of(request))
            return self._grades

    def compare(self, progress: Progress) -> Comparison:
        """Compare the runs by the present grades.

        Raises:
            as `compare` does.
        """
        request = self.request
        if request.judgments is not None:
            if self.follows:
                grades = self._judged()
                with self._lock:
                    self._grades = grades
            request = replace(request, judgments=replace(request.judgments, grades=self.grades()))
        return compare_read(request, self._read(progress), progress)

    def compare_judged(self) -> Comparison | None:
        """Compare the runs by the present judgments; None if these topics have none.

        Raises:
            as `compare` does.
        """
        grades = self._judged()
        # Only rankings with grades count, which are few of a large run.
        stored = [
            replace(
                stored,
                run=Run(
                    stored.run.tag, tuple(ranking for ranking in stored.run if grades.get(ranking.topic_id))
                ),
            )
            for stored in self._read(SilentProgress())
        ]
        if not all(len(judged.run) for judged in stored):
            return None
        source = replace(self.request.source, by=(), gold=())
        request = replace(
            self.request, source=source, judgments=Judgments(grades, Unjudged.nonrelevant), depth=None
        )
        return compare_read(request, stored)

    def differences(
        self, comparison: Comparison, pair: tuple[int, int], measure: int
    ) -> Sequence[TopicDifference]:
        """Return the topics of a pair of runs under a measure, the greatest gain first.

        Raises:
            SearchappError: the grades can't be read.
        """
        for known in comparison.topics:
            if measure == 0 and (known.first, known.second) == pair:
                return known.topics
        first, second = pair
        values = comparison.measures[measure].values
        if not self._rankings:
            self._rankings = [
                {ranking.topic_id: ranking.document_ids() for ranking in stored.run}
                for stored in self._stored
            ]
        rankings = self._rankings
        return topic_differences(
            pair,
            (values[first], values[second]),
            (rankings[first], rankings[second]),
            self.grades(),
            comparison.depth,
        ).topics

    def in_order(self, order: Sorting, differences: Mapping[str, TopicDifference]) -> list[str]:
        """Return the topics of the first run in an order."""
        topics = list(self.topics[0].topics)
        if order is Sorting.file or not differences:
            return topics

        def key(topic: str) -> tuple[bool, float]:
            if topic not in differences:
                return True, 0.0
            gain = differences[topic].difference
            return False, {Sorting.gains: -gain, Sorting.losses: gain, Sorting.changes: -abs(gain)}[order]

        return sorted(topics, key=key)

    def _read(self, progress: Progress) -> Sequence[StoredRun]:
        if not self._stored:
            self._stored = read_runs(self.request, progress)
        return self._stored


def open_comparing(
    opened: ExitStack,
    request: CompareRequest,
    settings: Settings,
    progress: Progress,
    warn: Callable[[str], None],
    judged: Callable[[], Grades],
    *,
    follows: bool = False,
) -> Comparing:
    """Open the topics of runs, which are read later; `opened` closes their resources.

    Raises:
        UsageError: the request is invalid.
        DataError: the runs can't be compared, or files can't be read.
        EngineError: the documents can't be fetched.
    """
    baseline_of(request)
    task, _gold = gold_of(request)
    comparing = Comparing(request, judged, follows=follows)
    comparing.topics = tuple(
        open_topics(
            opened,
            task,
            TopicsRequest(path, data=request.source.data, depth=request.depth),
            settings,
            progress,
            warn,
            comparing.grades,
        )
        for path in request.runs
    )
    stored = []  # without documents, which takes no time to read
    for path, of_run in zip(request.runs, comparing.topics, strict=True):
        assert of_run.pages.manifest is not None  # a run directory has one
        rankings = tuple(Ranking(topic, Hits()) for topic in of_run.topics)
        stored.append(StoredRun(path, of_run.pages.manifest, Run("", rankings)))
    require_comparable(stored, force=request.force)
    return comparing
