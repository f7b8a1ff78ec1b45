"""Runs side by side, topic by topic, for the compare screen.

Apart from `inspection.topics`, which needs no NumPy when it is imported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

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
from searchapp.app.inspection.pages import RunPages
from searchapp.app.inspection.topics import RunTopics, TopicsRequest, open_topics
from searchapp.config.settings import Settings
from searchapp.judging.judgments import Unjudged
from searchapp.model import Hits, Ranking, Run
from searchapp.progress import Progress, SilentProgress
from searchapp.runs.directory import StoredRun
from searchapp.tasks.base import Grades


class Sorting(StrEnum):
    """In which order the topics of two runs are gone through."""

    gains = "gains"
    """Where the second run is better by most first."""

    losses = "losses"
    """Where it is worse by most first."""

    changes = "changes"
    """Where they differ most first, whichever is better."""

    file = "file"
    """As the first run has them."""


class Against:
    """The grades that runs are compared against, read once; `read_again` takes in what was judged since.

    Args:
        request: what is compared
        judged: reads the grades that people have given by now
        follows: whether these are the grades of the request
    """

    def __init__(self, request: CompareRequest, judged: Callable[[], Grades], *, follows: bool) -> None:
        self.follows = follows
        self.judged = judged
        self._request = request
        self._lock = threading.Lock()
        self._grades: Grades | None = None if request.judgments is None else request.judgments.grades

    def grades(self) -> Grades:
        """The grades by topic and document.

        Raises:
            SearchappError: they can't be read.
        """
        with self._lock:
            if self._grades is None:
                request = self._request
                self._grades = Scoring(request.source, request.judgments).grades(*gold_of(request))
            return self._grades

    def read_again(self) -> None:
        """Let what was judged since count, where the runs are compared by it."""
        if self.follows:
            found = self.judged()
            with self._lock:
                self._grades = found


class Comparing:
    """Runs beside each other; its methods may be called from several threads, one of them comparing.

    Args:
        request: what is compared
        topics: the topics of each run of the request, in its order
        against: the grades that they are compared against
    """

    def __init__(self, request: CompareRequest, topics: Sequence[RunTopics], against: Against) -> None:
        self.request = request
        self.topics = tuple(topics)
        self._against = against
        self._stored: Sequence[StoredRun] = ()
        self._rankings: list[Mapping[str, Sequence[str]]] = []

    @property
    def follows(self) -> bool:
        """Whether the runs are compared by what people judge, so that every figure follows it."""
        return self._against.follows

    def compare(self, progress: Progress) -> Comparison:
        """What `compare` says of the runs, by the grades that there are now.

        Raises:
            as `compare` does.
        """
        request = self.request
        if request.judgments is not None:
            self._against.read_again()
            request = replace(request, judgments=replace(request.judgments, grades=self._against.grades()))
        return compare_read(request, self._read(progress), progress)

    def compare_judged(self) -> Comparison | None:
        """The same by what people have judged by now; None where that is nothing of these topics.

        Raises:
            as `compare` does.
        """
        grades = self._against.judged()
        # Of big runs only the rankings that have grades, which are all that counts here.
        stored = [
            replace(one, run=Run(one.run.tag, tuple(each for each in one.run if grades.get(each.topic_id))))
            for one in self._read(SilentProgress())
        ]
        if not all(len(one.run) for one in stored):
            return None
        source = replace(self.request.source, by=(), gold=())
        request = replace(
            self.request, source=source, judgments=Judgments(grades, Unjudged.nonrelevant), depth=None
        )
        return compare_read(request, stored)

    def differences(
        self, found: Comparison, pair: tuple[int, int], measure: int
    ) -> Sequence[TopicDifference]:
        """The topics of a pair of runs under the measure of a number, the greatest gain first.

        Raises:
            SearchappError: the grades can't be read.
        """
        if measure == 0:
            known = [one.topics for one in found.topics if (one.first, one.second) == pair]
            if known:
                return known[0]
        first, second = pair
        values = found.measures[measure].values
        if not self._rankings:
            self._rankings = [
                {one.topic_id: one.document_ids() for one in stored.run} for stored in self._stored
            ]
        rankings = self._rankings
        return topic_differences(
            pair,
            (values[first], values[second]),
            (rankings[first], rankings[second]),
            self._against.grades(),
            found.depth,
        ).topics

    def in_order(self, order: Sorting, differences: Mapping[str, TopicDifference]) -> list[str]:
        """The topics of the first run in an order; those without a difference last."""
        topics = list(self.topics[0].topics)
        if order is Sorting.file or not differences:
            return topics

        def key(topic: str) -> tuple[bool, float]:
            found = differences.get(topic)
            if found is None:
                return True, 0.0
            by = {
                Sorting.gains: -found.difference,
                Sorting.losses: found.difference,
                Sorting.changes: -abs(found.difference),
            }
            return False, by[order]

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
    """Runs beside each other with their topics; what is opened for them is closed with `opened`.

    `judged` and `follows` are those of `Against`. The runs are not read yet.

    Raises:
        UsageError: the request makes no sense.
        DataError: the runs can't be compared, or files can't be read.
        EngineError: the documents can't be had.
    """
    baseline_of(request)
    task, _gold = gold_of(request)
    against = Against(request, judged, follows=follows)
    topics = [
        open_topics(
            opened,
            task,
            TopicsRequest(path, data=request.source.data, depth=request.depth),
            settings,
            progress,
            warn,
            against.grades,
        )
        for path in request.runs
    ]
    require_comparable(
        [_without_documents(path, one.pages) for path, one in zip(request.runs, topics, strict=True)],
        anyway=request.anyway,
    )
    return Comparing(request, topics, against)


def _without_documents(path: Path, pages: RunPages) -> StoredRun:
    """A run with its topics alone, by which it is known in no time whether it can be compared."""
    assert pages.manifest is not None  # a run directory has one
    return StoredRun(path, pages.manifest, Run("", tuple(Ranking(topic, Hits()) for topic in pages.topics)))
