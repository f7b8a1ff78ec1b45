"""Let a model judge the documents of a run, and write its judgments into the log.

Each answer is stored before the next request begins, and its judgment is written after that: a job that was killed
asks nothing again that has an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

import searchapp
from searchapp.app.inspection.pages import RunPages
from searchapp.app.judge_client import (
    JudgeClient,
    JudgePrompt,
    JudgeQuestion,
    JudgeSource,
    ModelJudgingOptions,
)
from searchapp.app.sessions import JudgingRequest, open_judging
from searchapp.config.settings import Settings
from searchapp.embeddings.access import Access, Budget
from searchapp.embeddings.cache import ANSWERS_FILE, open_answers
from searchapp.errors import DataError, UsageError
from searchapp.judging.events import Action, Detail, Event, Kind
from searchapp.judging.model_answers import AnswerOutcome, ModelAnswer, ModelVerdict
from searchapp.judging.session import JudgingSession
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Topic
from searchapp.progress import Notify, Progress
from searchapp.text import counted

# The name of the details of judgments of models in the log.
DETAIL = "model"

# The events that are written at once.
_EVENTS_AT_ONCE = 500

LONGEST_REASON = 2000  # characters


@dataclass(frozen=True, slots=True)
class ModelJudged:
    """The outcome of judging by a model."""

    run: str
    fields: tuple[str, ...]  # that the model receives
    documents: int  # of all topics
    cut: int  # of them, with a field that was cut
    left_out: tuple[str, ...]  # sentences on documents that are not judged
    before: int  # documents whose judgment is in the log already
    reused: int  # documents with a stored answer
    asked: int  # documents with a new answer
    remaining: int  # documents without an answer
    replaced: int  # earlier judgments of the annotator, of another model, prompt or parameters
    outcomes: Mapping[AnswerOutcome, int]  # of the reused and new answers
    budget: Budget
    estimated_tokens: int  # of the questions without an answer before
    estimated_cost: float
    example: str  # the first question


def judge_by_model(
    request: JudgingRequest,
    source: JudgeSource,
    prompt: JudgePrompt | None,
    options: ModelJudgingOptions,
    settings: Settings,
    progress: Progress,
    warn: Notify,
    say: Notify,
) -> ModelJudged:
    """Judge the documents of a run that the model has not judged yet, and write the judgments into the log.

    Args:
        request: the topics; its author is of the kind `model`
        source: an endpoint or a command
        prompt: the prompt of an endpoint; a command has none
        options: the scale, and limits
        settings: the home directory, and what the user allows
        progress: receives the stages of the work
        warn: receives warnings
        say: receives a sentence before each further attempt of a request

    Raises:
        UsageError: the user has not allowed the endpoint, or the prompt or the annotator does not fit.
        DataError: documents or answers are invalid.
        OverBudget: the cost would exceed the greatest one.
        SearchappError: the model fails, or the log can't be written.
    """
    with (
        open_judging(request, settings, progress, warn, say) as (judging, pages, _title, presence),
        open_answers(settings.home, ANSWERS_FILE, source.digest) as cache,
    ):
        for other in presence.others:
            warn(f"{request.author.annotator} is already judging in another window ({other})")
        guidelines = judging.session.guidelines
        client = JudgeClient(request.task, source, prompt, options, guidelines, cache)
        job = _ModelJob(request.task.name, judging, client)
        job.read(pages, progress)
        if not options.dry_run:
            job.record_stored()
            job.ask(Access.of(settings), progress, say)
        return job.judged()


class _ModelJob:
    """The questions on a run, and their answers."""

    def __init__(self, task: str, judging: JudgingSession, client: JudgeClient) -> None:
        self._task = task
        self._judging = judging
        self._session = judging.session
        self._client = client
        self._questions: list[JudgeQuestion] = []
        self._left_out: list[str] = []
        # Documents of equal texts share a question.
        self._open: dict[bytes, list[JudgeQuestion]] = {}
        self._stored: dict[bytes, ModelAnswer] = {}
        self._asked = self._replaced = 0
        self._outcomes: Counter[AnswerOutcome] = Counter()
        name = self._session.author.annotator
        work = self._session.view.work.get(name)
        if work is not None and work.kind != Kind.model:
            raise UsageError(
                f"{name} is a {work.kind} who has judged {task}: give the model another name with --annotator"
            )

    # Questions

    def read(self, pages: RunPages, progress: Progress) -> None:
        """Make the questions, and look up which have a judgment or an answer."""
        topics: dict[str, Topic] = {}
        documents: dict[str, Mapping[str, Any]] = {}
        ranked: list[tuple[str, str]] = []
        missing = changed = 0
        with progress.stage("reading documents", len(self._judging.topics)) as advance:
            for topic_id in self._judging.topics:
                topics[topic_id] = pages.topic(topic_id)
                if not topics[topic_id].text.strip():
                    raise DataError(
                        f"topic {topic_id} has no text: give the folder of the topics with --data"
                    )
                order = self._judging.order(topic_id)
                for document_id, source in zip(order.documents, pages.sources(order.documents), strict=True):
                    try:
                        pages.require_as_ranked(document_id)
                    except DataError:
                        missing += source is None
                        changed += source is not None
                        continue
                    assert source is not None  # it is indexed
                    documents[document_id] = {"id": document_id, **source}
                    ranked.append((topic_id, document_id))
                advance(1)
        for number, state in ((missing, "not in the index"), (changed, "changed since the run was ranked")):
            if number:
                self._left_out.append(f"{counted(number, 'document')} left out: {state}")
        self._client.choose_fields(topics.values(), documents.values())
        self._questions = [
            self._client.question(topics[topic_id], documents[document_id])
            for topic_id, document_id in ranked
        ]
        requests = {
            detail.event: (detail.value.get("request"), detail.value.get("scale"))
            for detail in self._session.log.details(self._task, DETAIL)
        }
        for question in self._questions:
            opinion = self._session.opinion(question.topic_id, question.document_id)
            wanted = self._request(question.key), list(self._client.options.scale)
            if opinion is None or requests.get(opinion.event.id) != wanted:
                self._open.setdefault(question.key, []).append(question)
        self._stored = self._client.stored(self._open)

    # Answers

    def record_stored(self) -> None:
        """Write the judgments of stored answers."""
        records = (
            record
            for key in self._open
            if key in self._stored
            for record in self._records(key, self._stored[key], is_reused=True)
        )
        while batch := list(islice(records, _EVENTS_AT_ONCE)):
            self._append(batch)

    def ask(self, access: Access, progress: Progress, notify: Notify) -> None:
        """Ask the questions without an answer, store each answer, and write its judgments."""
        questions = self._without_answer()[: self._client.options.limit]
        for question, answer in self._client.ask(questions, access, progress, notify):
            self._asked += len(self._open[question.key])
            self._append(list(self._records(question.key, answer)))

    def _without_answer(self) -> list[JudgeQuestion]:
        return [questions[0] for key, questions in self._open.items() if key not in self._stored]

    # Judgments

    def _records(
        self, key: bytes, answer: ModelAnswer, *, is_reused: bool = False
    ) -> Iterator[tuple[Event, Detail]]:
        """Yield the judgments of an answer; an answer without a grade or an abstention is none."""
        verdict = self._client.verdict(answer)
        for question in self._open[key]:
            self._outcomes[verdict.outcome] += 1
            if verdict.outcome not in _ACTIONS:
                continue
            self._replaced += self._session.is_judged(question.topic_id, question.document_id)
            event = self._session.author.event(
                self._task,
                question.topic_id,
                question.document_id,
                _ACTIONS[verdict.outcome],
                grade=verdict.grade,
                text=verdict.reason[:LONGEST_REASON],
                run=self._judging.run,
                rank=self._judging.order(question.topic_id).ranks[question.document_id],
                saw_others=False,  # no question has judgments
                after=self._session.view.latest(question.topic_id, question.document_id),
            )
            yield event, Detail(event.id, DETAIL, self._detail(question, answer, verdict, is_reused))

    def _append(self, records: Sequence[tuple[Event, Detail]]) -> None:
        events, details = [event for event, _ in records], [detail for _, detail in records]
        if events:
            self._session.log.append(events, [*details, *self._session.details(events)])

    def _request(self, key: bytes) -> dict[str, str]:
        return {"source": self._client.source.digest, "question": key.hex()}

    def _detail(
        self, question: JudgeQuestion, answer: ModelAnswer, verdict: ModelVerdict, is_reused: bool
    ) -> dict[str, Any]:
        source, prompt = self._client.source, self._client.prompt
        answered = asdict(answer)
        return {
            "model": source.model,
            "url": source.url,
            "command": list(source.command),
            "parameters": dict(source.parameters),
            "prompt": None if prompt is None else {"name": prompt.name, "digest": prompt.digest},
            "request": self._request(question.key),
            "scale": list(self._client.options.scale),
            "fields": list(self._client.fields),
            "max_characters": self._client.options.max_characters,
            "cut": dict(question.cut),
            "answered_by": answered.pop("model"),
            "answer": answered.pop("text"),
            **answered,
            "price": asdict(source.price),
            "outcome": verdict.outcome.value,
            "is_repaired": verdict.is_repaired,
            "is_reused": is_reused,
            "searchapp": searchapp.__version__,
        }

    def judged(self) -> ModelJudged:
        estimated_tokens, estimated_cost = self._client.estimate(self._without_answer())
        reused = sum(len(self._open[key]) for key in self._stored)
        waiting = sum(map(len, self._open.values()))
        return ModelJudged(
            run=self._judging.run,
            fields=self._client.fields,
            documents=len(self._questions),
            cut=sum(bool(question.cut) for question in self._questions),
            left_out=tuple(self._left_out),
            before=len(self._questions) - waiting,
            reused=reused,
            asked=self._asked,
            remaining=waiting - reused - self._asked,
            replaced=self._replaced,
            outcomes={outcome: self._outcomes[outcome] for outcome in AnswerOutcome},
            budget=self._client.budget,
            estimated_tokens=estimated_tokens,
            estimated_cost=estimated_cost,
            example=self._questions[0].text if self._questions else "",
        )


_ACTIONS = {AnswerOutcome.graded: Action.grade, AnswerOutcome.abstained: Action.cant_tell}
