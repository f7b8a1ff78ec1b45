"""Calibrate annotators: draw documents with known grades from a run, judge them, and measure the agreement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from searchapp.app.inspection.pages import RunPages
from searchapp.app.inspection.topics import RunTopics, TopicsRequest, open_topics
from searchapp.app.sessions import PATIENCE_SECONDS, exchanging, usual_depth
from searchapp.config.settings import Settings
from searchapp.judging.assignment import shuffled
from searchapp.judging.calibration import (
    CalibrationJudging,
    CalibrationResult,
    CalibrationSet,
    draw,
    evaluate_calibration,
)
from searchapp.judging.events import Author
from searchapp.judging.guidelines import read_guidelines
from searchapp.judging.judgments import Aggregation, aggregate
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Session
from searchapp.judging.view import open_view, require_annotators
from searchapp.lucene.dataclass import dataclass
from searchapp.progress import Notify, Progress
from searchapp.tasks.base import Grades, Task


@dataclass(frozen=True, slots=True)
class CalibrationRequest:
    """A calibration of a task; everybody with the same request gets the same documents."""

    task: Task
    topics: TopicsRequest  # the run or recipe whose documents are drawn
    experts: Sequence[str] = ()  # whose judgments are the known grades, instead of the official gold
    size: int = 20
    repeats: int = 4
    depth: int | None = None  # documents of each ranking to draw from, by default the usual number
    seed: int = 0
    log: Path | None = None  # the log of judgments, if it is not the usual one


@dataclass(frozen=True, slots=True)
class Calibration:
    """An open calibration."""

    task: Task
    pages: RunPages
    documents: CalibrationSet
    log: JudgmentLog
    seed: int

    def judging(self, author: Author, *, again: bool = False) -> CalibrationJudging:
        """Return a session on the documents, or on those that are judged again."""
        name = self.documents.name_of_repeats if again else self.documents.name
        guidelines = read_guidelines(self.task.info.guidelines)
        session = Session(self.log, name, author, guidelines=guidelines)
        return CalibrationJudging(session, self.documents, self.seed, again=again)

    def result(self) -> CalibrationResult:
        return evaluate_calibration(self.log, self.documents)


@contextmanager
def open_calibration(
    request: CalibrationRequest, settings: Settings, progress: Progress, warn: Notify
) -> Iterator[Calibration]:
    """Draw the documents of a calibration, and open the log.

    A team that shares judgments exchanges those of the calibration, too.

    Args:
        request: the documents to draw from
        settings: the engine, the home directory, and whether judgments are shared
        progress: receives the stages of the work
        warn: receives warnings

    Raises:
        UsageError: the run, the split or an expert does not exist, or there are too few documents.
        DataError: a file is invalid, or the topics have no gold.
        EngineError: the documents cannot be read.
    """
    task = request.task
    with ExitStack() as stack:
        path = request.log or settings.judgments
        log = stack.enter_context(closing(JudgmentLog(path, PATIENCE_SECONDS, warn)))
        topics = open_topics(stack, task, request.topics, settings, progress, warn)
        for note in topics.pages.notes:
            warn(note)
        with progress.stage("drawing documents with known grades"):
            gold = _experts_grades(request, log) if request.experts else topics.gold
            known = _known_grades(request, topics, gold)
            documents = draw(task.name, known, request.size, request.repeats, request.seed)
        if settings.shared and request.log is None:
            for name in (documents.name, documents.name_of_repeats):
                stack.enter_context(exchanging(settings, log, name, warn))
        yield Calibration(task, topics.pages, documents, log, request.seed)


def _experts_grades(request: CalibrationRequest, log: JudgmentLog) -> Grades:
    view = open_view(log, request.task.name)
    require_annotators(view, request.task.name, request.experts)
    return aggregate(view, Aggregation(annotators=tuple(request.experts))).grades


def _known_grades(request: CalibrationRequest, topics: RunTopics, gold: Grades) -> dict[str, dict[str, int]]:
    """Return the known grades of ranked documents of some topics with gold.

    Official gold lists the relevant documents, so that a ranked document without a grade has the grade 0; of experts'
    judgments only the documents that they graded are known.
    """
    depth = request.depth or usual_depth(topics.pages)
    # As many topics as documents are enough, and a recipe ranks each of them now.
    with_gold = [topic for topic in topics.topics if any(gold.get(topic, {}).values())]
    drawn = shuffled(with_gold, request.seed, "calibration topics")[: request.size]
    known = {}
    for topic in drawn:
        ranked = topics.pages.ranking(topic)[:depth]
        grades = gold[topic]
        known[topic] = {
            document: grades.get(document, 0)
            for document in ranked
            if document in grades or not request.experts
        }
    return known
