"""Collect how the judgments of a task were made, for `judgments audit` and `judgments report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from searchapp.app.experiments.bench_result import from_json
from searchapp.app.index import open_index
from searchapp.app.trust import ModelTrust, TrustRequest, measure_trust
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import DataError, EngineError
from searchapp.judging.agreement import Agreement, AnnotatorProgress, agreement
from searchapp.judging.agreement import progress as annotators_progress
from searchapp.judging.audit import JudgingAudit, audit
from searchapp.judging.calibration import Concordance
from searchapp.judging.events import Kind
from searchapp.judging.guidelines import GUIDELINES
from searchapp.judging.judgments import Aggregation, ReadingTime, aggregate
from searchapp.judging.log import JudgmentLog
from searchapp.judging.trust import coverage
from searchapp.judging.view import JudgmentView, Key
from searchapp.lucene.dataclass import dataclass
from searchapp.progress import Progress
from searchapp.ranking.paging import sources
from searchapp.resources import read_json
from searchapp.tasks.base import Task

BATCH = 500  # documents whose texts are in memory at the same time


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What to audit."""

    annotators: Sequence[str] | None  # whose judgments count; None means people, and models against them
    reading: ReadingTime
    window: int  # number of documents of each window of the agreement over time


@dataclass(frozen=True, slots=True)
class JudgmentAudit:
    """How the judgments of a task were made."""

    task: str
    audit: JudgingAudit
    # Of the same annotators, models included.
    agreement: Agreement
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        guidelines = self.agreement.guidelines
        return {
            "task": self.task,
            **asdict(self.audit),
            "guidelines": {
                "changed": self.agreement.guidelines_changed,
                "versions": [asdict(use) for use in guidelines],
            },
        }


def audit_judgments(
    log: JudgmentLog,
    view: JudgmentView,
    task: Task,
    request: AuditRequest,
    settings: Settings,
) -> JudgmentAudit:
    """Return how the judgments of a task were made.

    If the texts of the documents can't be read, a warning has the reason, and the least time alone shows which
    judgments are too fast.

    Raises:
        DataError: the log can't be read.
    """
    reading, warnings = request.reading, list[str]()
    try:
        reading = replace(reading, words=_word_counts(view, task, settings))
    except EngineError as error:
        warnings.append(
            f"only judgments below {reading.least_seconds:g} s count as too fast, because the texts of the documents "
            f"can't be read: {error}"
        )
    digests = {detail.event: str(detail.value.get("digest")) for detail in log.details(task.name, GUIDELINES)}
    compared = agreement(view, request.annotators, digests)
    return JudgmentAudit(
        task.name,
        audit(view, request.annotators, reading, request.window),
        compared,
        (*warnings, *compared.warnings),
    )


def _word_counts(view: JudgmentView, task: Task, settings: Settings) -> dict[str, int]:
    """Return the number of words of each judged document in the task's index.

    Raises:
        EngineError: there is no index, or it can't be read.
    """
    documents = list(dict.fromkeys(document for _, document in view.judged_documents()))
    words: dict[str, int] = {}
    with closing(open_engine(settings)) as engine:
        index = open_index(task, engine)
        for start in range(0, len(documents), BATCH):
            found = sources(index, documents[start : start + BATCH])
            words |= {
                document: len(str(source.get("text", "")).split()) for document, source in found.items()
            }
    return words


@dataclass(frozen=True, slots=True)
class CalibratedAnnotator:
    """An annotator's result in a `CalibrationFile`."""

    annotator: str
    # With the known grades, and of the first and the second grades of repeated documents.
    gold: Concordance
    repeated: Concordance
    bias: float
    # None without a pass mark.
    passed: bool | None


@dataclass(frozen=True, slots=True)
class CalibrationFile:
    """The results that `judgments calibrate --results --json` prints."""

    documents: int
    pass_mark: float | None
    annotators: tuple[CalibratedAnnotator, ...]


def read_calibration(path: Path, task: str) -> CalibrationFile:
    """Read the results of a calibration of a task.

    Raises:
        DataError: the file is not such a result, or is of another task.
    """
    described = read_json(path)
    try:
        of_task = str(described["task"])
        result: CalibrationFile = from_json(CalibrationFile, {**described, "pass_mark": described["pass"]})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{path}: not the results of a calibration ({error!r}): write them with `searchapp judgments calibrate "
            f"{task} --results --json`"
        ) from error
    if of_task != task:
        raise DataError(f"{path}: the calibration is of the task {of_task!r}, not {task!r}")
    return result


@dataclass(frozen=True, slots=True)
class JudgmentReport:
    """The content of a report of judgments."""

    audit: JudgmentAudit
    request: AuditRequest
    # The number of events, and the time of the last one.
    events: int
    last: str
    progress: tuple[AnnotatorProgress, ...]
    kinds: Mapping[str, Kind]
    # Of people, or of the named annotators.
    agreement: Agreement
    # The grades on its disputed documents of models that it does not count, by annotator.
    models: Mapping[Key, Mapping[str, int]]
    most_disputed: int
    calibration: CalibrationFile | None
    # Of the models that graded documents which people graded, too.
    trust: tuple[ModelTrust, ...]
    # Options of the commands that print the same numbers: of `audit`, of `agreement`, and for the log alone.
    options: Sequence[str]
    agreement_options: Sequence[str]
    log_options: Sequence[str]
    # The options of `trust` besides the model.
    trust_options: Sequence[str]

    @property
    def warnings(self) -> tuple[str, ...]:
        of_trust = (warning for trust in self.trust for warning in trust.warnings)
        return tuple(dict.fromkeys((*self.audit.warnings, *of_trust)))


def report_judgments(
    log: JudgmentLog,
    view: JudgmentView,
    task: Task,
    audited: JudgmentAudit,
    request: AuditRequest,
    path: Path | None,
    most_disputed: int,
    calibration: CalibrationFile | None,
    settings: Settings,
    progress: Progress,
) -> JudgmentReport:
    """Return the content of a report.

    Args:
        log: the log with the judgments
        view: the judgments of the task
        task: the task
        audited: the audit of the judgments by `request`
        request: what was audited
        path: the path of the log, if it is not the usual one
        most_disputed: number of disputed documents to show
        calibration: the results of a calibration
        settings: the engine with the documents, and the home directory
        progress: receives the stages of the work
    """
    kinds = {name: Kind(work.kind) for name, work in view.work.items()}
    people = [name for name, kind in kinds.items() if kind is Kind.person]
    named = request.annotators
    judges = None if named is None else tuple(name for name in named if kinds[name] is Kind.person) or None
    grades = aggregate(view, Aggregation(annotators=judges)).grades
    models_of_trust = [
        name
        for name, kind in kinds.items()
        if kind is Kind.model and (named is None or name in named) and coverage(view, name, grades)[1]
    ]
    counting = people if request.annotators is None else request.annotators
    compared = audited.agreement if request.annotators is not None else agreement(view, people)
    models = {
        key: {
            opinion.annotator: opinion.grade
            for opinion in view.opinions(*key)
            if opinion.kind is Kind.model and opinion.grade is not None and opinion.annotator not in counting
        }
        for key, _ in compared.disputed
    }
    log_options = [] if path is None else ["--log", str(path)]
    reading = request.reading
    limits = {
        "--window": request.window,
        "--words-per-minute": reading.words_per_minute,
        "--least-seconds": reading.least_seconds,
    }

    def annotators(names: Sequence[str]) -> list[str]:
        return [word for name in names for word in ("--annotator", name)]

    return JudgmentReport(
        audited,
        request,
        view.count,
        max(view.work.values(), key=lambda work: work.last_time).last,
        tuple(
            row
            for row in annotators_progress(view)
            if request.annotators is None or row.annotator in counting
        ),
        kinds,
        compared,
        models,
        most_disputed,
        calibration,
        tuple(
            measure_trust(TrustRequest(task, name, judges), log, view, settings, progress)
            for name in models_of_trust
        ),
        [
            *annotators(named or ()),
            *(word for name, value in limits.items() for word in (name, str(value))),
            *log_options,
        ],
        [*annotators(counting), *log_options],
        log_options,
        [*annotators(judges or ()), *log_options],
    )
