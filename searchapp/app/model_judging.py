"""Let a model judge the documents of a run: an HTTP endpoint of the OpenAI chat form, or a command.

    POST {url}/chat/completions   {"model": ..., "messages": [{"role": "user", "content": PROMPT}], ...}
    200                           {"choices": [{"message": {"content": ANSWER}, "finish_reason": ...}], "usage": ...}

A command reads one JSON object per line, {"index": 0, "topic": {...}, "document": {...}, "grades": [...],
"guidelines": ...}. The answer, and each line that a command writes, is {"grade": 2, "reason": "..."}.

Each answer is stored before the next request begins, and its judgment is written after that: a job that was killed
asks nothing again that has an answer.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import searchapp
from searchapp.app.inspection.pages import RunPages
from searchapp.app.sessions import JudgingRequest, open_judging
from searchapp.config.settings import JUDGE_KEY, Settings
from searchapp.embeddings.access import Access, Budget, estimated_tokens
from searchapp.embeddings.cache import ANSWERS_FILE, AnswerCache, open_answers, text_key
from searchapp.embeddings.command import command_answers
from searchapp.embeddings.endpoint import Endpoint, InvalidAnswerError, RejectedRequestError, used_tokens
from searchapp.embeddings.source import Price
from searchapp.errors import DataError, UsageError
from searchapp.files import digest_json, digest_text, parse_json
from searchapp.formats.problems import shown
from searchapp.judging.events import Action, Detail, Event, Kind, grade_label
from searchapp.judging.model_answers import AnswerOutcome, ModelAnswer, ModelVerdict, read_verdict
from searchapp.judging.session import JudgingSession
from searchapp.model import Topic
from searchapp.progress import Notify, Progress
from searchapp.ranking.templates import TextTemplate
from searchapp.resources import JUDGE_PROMPTS, read_utf8
from searchapp.tasks.base import Task, TaskInfo
from searchapp.text import counted, suggestion

# The name of the details of judgments of models in the log.
DETAIL = "model"

# The prompt of tasks without one of their own, and the number of grades of prompts that do not read the task's.
GENERAL, SCALES = "general", {"relevance-0-3": 4}

# An estimate of the length of an answer in tokens, unless a parameter limits it.
ANSWER_TOKENS = 300

# The events that are written at once.
_EVENTS_AT_ONCE = 500

LONGEST_REASON = 2000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSource:
    """A model that judges: one of `url` and `command`."""

    # The name of the model.
    model: str
    # The base address of an endpoint of the OpenAI form, to which `/chat/completions` is appended.
    url: str | None = None
    # A program and its arguments.
    command: tuple[str, ...] = ()
    # Further keys of requests to an endpoint.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    price: Price = field(default_factory=Price)
    # The number of simultaneous requests.
    concurrency: int = 2
    # After so many seconds of silence a request has failed.
    timeout: int = 120

    @property
    def digest(self) -> str:
        """The digest of everything that an answer depends on, except the question."""
        return digest_json(
            {
                "url": self.url,
                "command": list(self.command),
                "model": self.model,
                "parameters": dict(self.parameters),
            }
        )

    @property
    def answer_tokens(self) -> int:
        """An estimate of the length of an answer in tokens, or its limit."""
        limits = [self.parameters.get(name) for name in ("max_tokens", "max_completion_tokens")]
        return next((limit for limit in limits if type(limit) is int), ANSWER_TOKENS)


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """The text that an endpoint receives for each document."""

    name: str
    template: TextTemplate

    @property
    def digest(self) -> str:
        return digest_text(self.template.text)


def read_prompt(info: TaskInfo, given: str | None = None) -> JudgePrompt:
    """Return the prompt of a name or of a file, by default that of the task.

    Raises:
        UsageError: there is no such prompt or file.
        DataError: it can't be read.
    """
    shipped = {path.stem: path for path in sorted(JUDGE_PROMPTS.glob("*.txt"))}
    if given is None:
        # Tasks on DBpedia and Wikidata share a prompt, and so do samples.
        own = (name for name in shipped if f"{info.name}-".startswith(f"{name}-"))
        given = GENERAL if info.file is not None else max(own, key=len, default=GENERAL)
    path = shipped.get(given, Path(given))
    if given not in shipped and not path.exists():
        raise UsageError(
            f"there is no prompt {given!r}{suggestion(given, shipped)}: give a file, or one of "
            f"{', '.join(shipped)}"
        )
    template = TextTemplate(read_utf8(path).strip(), str(path))
    return JudgePrompt(given if given in shipped else path.name, template)


@dataclass(frozen=True, slots=True)
class ModelJudgingOptions:
    """How a model judges, and the limits of the work."""

    # The task's grade for each grade 0, 1, ... of the model.
    scale: Sequence[int]
    # Each field of a topic or document is cut to this number of characters.
    max_characters: int
    limit: int | None = None  # the greatest number of new questions
    max_cost: float | None = None
    dry_run: bool = False


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


@dataclass(frozen=True, slots=True)
class _Question:
    topic_id: str
    document_id: str
    rank: int
    text: str  # the rendered prompt, or the object for a command
    cut: Mapping[str, int]  # the lengths of fields that were cut, in characters

    @property
    def key(self) -> bytes:
        return text_key(self.text)


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
        job = _ModelJob(request.task, judging, source, prompt, options, cache, Budget(options.max_cost))
        job.read(pages, progress)
        if not options.dry_run:
            job.record_stored()
            job.ask(Access.of(settings), progress, say)
        return job.judged()


class _ModelJob:
    """The questions on a run, and their answers."""

    def __init__(
        self,
        task: Task,
        judging: JudgingSession,
        source: JudgeSource,
        prompt: JudgePrompt | None,
        options: ModelJudgingOptions,
        cache: AnswerCache,
        budget: Budget,
    ) -> None:
        self._task = task
        self._judging = judging
        self._session = judging.session
        self._source = source
        self._prompt = prompt
        self._options = options
        self._cache = cache
        self._budget = budget
        self._guidelines = judging.session.guidelines
        self._fields: tuple[str, ...] = ()
        self._questions: list[_Question] = []
        self._left_out: list[str] = []
        # Documents of equal texts share a question.
        self._open: dict[bytes, list[_Question]] = {}
        self._stored: dict[bytes, str] = {}
        self._asked = self._replaced = 0
        self._outcomes: Counter[AnswerOutcome] = Counter()
        name = self._session.author.annotator
        work = self._session.view.work.get(name)
        if work is not None and work.kind != Kind.model:
            raise UsageError(
                f"{name} is a {work.kind} who has judged {task.name}: give the model another name with --annotator"
            )

    # Questions

    def read(self, pages: RunPages, progress: Progress) -> None:
        """Make the questions, and look up which have a judgment or an answer."""
        topics: dict[str, Topic] = {}
        documents: dict[str, Mapping[str, Any]] = {}
        ranked: list[tuple[str, str, int]] = []
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
                    ranked.append((topic_id, document_id, order.ranks[document_id]))
                advance(1)
        for number, state in ((missing, "not in the index"), (changed, "changed since the run was ranked")):
            if number:
                self._left_out.append(f"{counted(number, 'document')} left out: {state}")
        self._fields = self._sent_fields(topics, documents)
        self._questions = [
            self._question(topics[topic_id], documents[document_id], rank)
            for topic_id, document_id, rank in ranked
        ]
        requests = {
            detail.event: (detail.value.get("request"), detail.value.get("scale"))
            for detail in self._session.log.details(self._task.name, DETAIL)
        }
        for question in self._questions:
            opinion = self._session.opinion(question.topic_id, question.document_id)
            wanted = self._request(question.key), list(self._options.scale)
            if opinion is None or requests.get(opinion.event.id) != wanted:
                self._open.setdefault(question.key, []).append(question)
        self._stored = self._cache.answers(self._open)

    def _sent_fields(
        self, topics: Mapping[str, Topic], documents: Mapping[str, Mapping[str, Any]]
    ) -> tuple[str, ...]:
        """Return the names of the fields that the model receives.

        Raises:
            UsageError: the prompt has a variable without values.
        """
        of_topics = {f"topic.{name}" for topic in topics.values() for name in topic.variables()}
        of_documents = {f"document.{name}" for document in documents.values() for name in document}
        if self._prompt is None:
            return tuple(sorted(of_topics | of_documents))
        template = self._prompt.template
        indexed = self._task.index_mapping().get("mappings", {}).get("properties", {})
        known = of_topics | of_documents | {f"document.{name}" for name in indexed} | _OF_TASK
        if documents and (unknown := sorted(template.variables - known)):
            raise UsageError(
                f"{template.name}: there is no variable {{{{{unknown[0]}}}}}{suggestion(unknown[0], known)}: "
                f"this task has {', '.join(sorted(known))}"
            )
        return tuple(sorted(template.variables - _OF_TASK))

    def _question(self, topic: Topic, document: Mapping[str, Any], rank: int) -> _Question:
        cut: dict[str, int] = {}
        parts = {
            kind: {name: self._cut(value, f"{kind}.{name}", cut) for name, value in values.items()}
            for kind, values in (("topic", topic.variables()), ("document", document))
        }
        labels = self._task.info.grades
        guidelines = None if self._guidelines is None else self._guidelines.text
        if self._prompt is None:
            question = {**parts, "grades": list(labels), "guidelines": guidelines}
            return _Question(topic.id, document["id"], rank, json.dumps(question, sort_keys=True), cut)
        variables = {
            **{
                f"{kind}.{name}": _text_of(value)
                for kind, values in parts.items()
                for name, value in values.items()
            },
            "grades": "\n".join(grade_label(number, labels) for number in range(len(labels))),
            "guidelines": (guidelines or "").strip() or "(none)",
        }
        sent = {name: length for name, length in cut.items() if name in self._fields}
        return _Question(topic.id, document["id"], rank, self._prompt.template.render(variables), sent)

    def _cut(self, value: Any, name: str, cut: dict[str, int]) -> Any:
        """Return a value whose text has at most `max_characters`."""
        text = value if isinstance(value, str) else _text_of(value)
        if len(text) <= self._options.max_characters:
            return value
        cut[name] = len(text)
        return text[: self._options.max_characters]

    # Answers

    def record_stored(self) -> None:
        """Write the judgments of stored answers."""
        records = (
            record
            for key in self._open
            if key in self._stored
            for record in self._records(key, ModelAnswer.from_json(self._stored[key]), is_reused=True)
        )
        while batch := list(islice(records, _EVENTS_AT_ONCE)):
            self._append(batch)

    def ask(self, access: Access, progress: Progress, notify: Notify) -> None:
        """Ask the questions without an answer, store each answer, and write its judgments."""
        keys = [key for key in self._open if key not in self._stored][: self._options.limit]
        if not keys:
            return
        source = self._source
        answers = self._command_answers(keys) if source.command else self._chat_answers(keys, access, notify)
        with progress.stage("judging", len(keys)) as advance:
            for key, answer in answers:
                self._cache.store([(key, answer.to_json())])
                self._asked += len(self._open[key])
                self._append(list(self._records(key, answer)))
                advance(1)

    def _chat_answers(
        self, keys: Sequence[bytes], access: Access, notify: Notify
    ) -> Iterator[tuple[bytes, ModelAnswer]]:
        source = self._source
        assert source.url is not None
        endpoint = Endpoint(
            f"{source.url.rstrip('/')}/chat/completions",
            place="--model-url, --model or --parameter",
            key=JUDGE_KEY,
            timeout=source.timeout,
            price=source.price,
            access=access,
            budget=self._budget,
            notify=notify,
        )

        def answer(key: bytes) -> ModelAnswer:
            text = self._open[key][0].text
            message = {"role": "user", "content": text}
            body = {**source.parameters, "model": source.model, "messages": [message]}
            started = time.monotonic()
            try:
                received = endpoint.ask(body, estimated_tokens([text]), _read_chat, source.answer_tokens)
            except RejectedRequestError as error:
                # Some providers answer 400 to texts that they filter.
                if "content_filter" not in error.answer:
                    first = self._open[key][0]
                    asked = f"document {shown(first.document_id)} of topic {shown(first.topic_id)}"
                    raise DataError(f"{asked}: {error}") from error
                received = ModelAnswer(error.answer, _now(), is_refusal=True)
            tokens = received.tokens_read, received.tokens_written
            return replace(
                received,
                seconds=round(time.monotonic() - started, 3),
                attempts=endpoint.attempts,
                cost=float(source.price.cost(tokens[0] or 0, 1, tokens[1] or 0)),
            )

        return endpoint.answers(keys, answer, source.concurrency)

    def _command_answers(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, ModelAnswer]]:
        questions = [parse_json(self._open[key][0].text) for key in keys]
        last = time.monotonic()

        def read(row: dict[str, Any]) -> ModelAnswer:
            nonlocal last
            last, before = time.monotonic(), last
            text = json.dumps({name: value for name, value in row.items() if name != "index"})
            return ModelAnswer(text, _now(), seconds=round(last - before, 3))

        for batch in command_answers(
            self._source.command, Path.cwd(), "--command", questions, read, 1, in_order=True
        ):
            yield from ((keys[index], answer) for index, answer in batch)

    # Judgments

    def _records(
        self, key: bytes, answer: ModelAnswer, *, is_reused: bool = False
    ) -> Iterator[tuple[Event, Detail]]:
        """Yield the judgments of an answer; an answer without a grade or an abstention is none."""
        verdict = read_verdict(answer, self._options.scale)
        for question in self._open[key]:
            self._outcomes[verdict.outcome] += 1
            if verdict.outcome not in _ACTIONS:
                continue
            self._replaced += self._session.is_judged(question.topic_id, question.document_id)
            event = self._session.author.event(
                self._task.name,
                question.topic_id,
                question.document_id,
                _ACTIONS[verdict.outcome],
                grade=verdict.grade,
                text=verdict.reason[:LONGEST_REASON],
                run=self._judging.run,
                rank=question.rank,
                saw_others=False,  # no question has judgments
                after=self._session.view.latest(question.topic_id, question.document_id),
            )
            yield event, Detail(event.id, DETAIL, self._detail(question, answer, verdict, is_reused))

    def _append(self, records: Sequence[tuple[Event, Detail]]) -> None:
        events, details = [event for event, _ in records], [detail for _, detail in records]
        if events:
            self._session.log.append(events, [*details, *self._session.details(events)])

    def _request(self, key: bytes) -> dict[str, str]:
        return {"source": self._source.digest, "question": key.hex()}

    def _detail(
        self, question: _Question, answer: ModelAnswer, verdict: ModelVerdict, is_reused: bool
    ) -> dict[str, Any]:
        source, prompt = self._source, self._prompt
        answered = asdict(answer)
        return {
            "model": source.model,
            "url": source.url,
            "command": list(source.command),
            "parameters": dict(source.parameters),
            "prompt": None if prompt is None else {"name": prompt.name, "digest": prompt.digest},
            "request": self._request(question.key),
            "scale": list(self._options.scale),
            "fields": list(self._fields),
            "max_characters": self._options.max_characters,
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
        missing = [question[0].text for key, question in self._open.items() if key not in self._stored]
        tokens, written = estimated_tokens(missing), len(missing) * self._source.answer_tokens
        reused = sum(len(self._open[key]) for key in self._stored)
        waiting = sum(map(len, self._open.values()))
        return ModelJudged(
            run=self._judging.run,
            fields=self._fields,
            documents=len(self._questions),
            cut=sum(bool(question.cut) for question in self._questions),
            left_out=tuple(self._left_out),
            before=len(self._questions) - waiting,
            reused=reused,
            asked=self._asked,
            remaining=waiting - reused - self._asked,
            replaced=self._replaced,
            outcomes={outcome: self._outcomes[outcome] for outcome in AnswerOutcome},
            budget=self._budget,
            estimated_tokens=tokens + written,
            estimated_cost=float(self._source.price.cost(tokens, 0, written)),
            example=self._questions[0].text if self._questions else "",
        )


# The variables of a prompt that are neither of the topic nor of the document.
_OF_TASK = frozenset({"grades", "guidelines"})

_ACTIONS = {AnswerOutcome.graded: Action.grade, AnswerOutcome.abstained: Action.cant_tell}


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _read_chat(answer: Any) -> ModelAnswer:
    """Return the answer in the JSON of an endpoint.

    Raises:
        InvalidAnswerError: it is not of the OpenAI chat form.
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
        if not isinstance(content, str | None):
            raise TypeError(content)
    except (TypeError, LookupError, AttributeError) as error:
        raise InvalidAnswerError("answers without choices[0].message.content") from error
    reason, model = choice.get("finish_reason"), answer.get("model")
    tokens = used_tokens(answer) or (None, None)
    return ModelAnswer(
        content or (refusal if isinstance(refusal, str) else ""),
        _now(),
        is_refusal=bool(refusal) or reason == "content_filter",
        finish_reason=reason if isinstance(reason, str) else "",
        model=model if isinstance(model, str) else "",
        tokens_read=tokens[0],
        tokens_written=tokens[1],
    )
