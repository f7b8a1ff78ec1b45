"""Collect how the judgments of a task were made, for `judgments audit` and `judgments report`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from searchapp.app.index import open_index
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import EngineError
from searchapp.judging.agreement import Agreement, agreement
from searchapp.judging.audit import JudgingAudit, audit
from searchapp.judging.guidelines import GUIDELINES
from searchapp.judging.judgments import ReadingTime
from searchapp.judging.log import JudgmentLog
from searchapp.judging.view import JudgmentView
from searchapp.progress import Notify
from searchapp.ranking.paging import sources
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
    warn: Notify,
) -> JudgmentAudit:
    """Return how the judgments of a task were made.

    If the texts of the documents can't be read, `warn` gets the reason, and the least time alone shows which judgments
    are too fast.

    Raises:
        DataError: the log can't be read.
    """
    reading = request.reading
    try:
        reading = replace(reading, words=_word_counts(view, task, settings))
    except EngineError as error:
        warn(
            f"only judgments below {reading.least_seconds:g} s count as too fast, because the texts of the documents "
            f"can't be read: {error}"
        )
    digests = {detail.event: str(detail.value.get("digest")) for detail in log.details(task.name, GUIDELINES)}
    return JudgmentAudit(
        task.name,
        audit(view, request.annotators, reading, request.window),
        agreement(view, request.annotators, digests),
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
