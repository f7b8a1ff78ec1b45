"""The client of a model that judges: an HTTP endpoint of the OpenAI chat form, or a command.

    POST {url}/chat/completions   {"model": ..., "messages": [{"role": "user", "content": PROMPT}], ...}
    200                           {"choices": [{"message": {"content": ANSWER}, "finish_reason": ...}], "usage": ...}

A command reads one JSON object per line, {"index": 0, "topic": {...}, "document": {...}, "grades": [...],
"guidelines": ...}. The answer, and each line that a command writes, is {"grade": 2, "reason": "..."}.

Each answer is stored before the next request begins: nothing is asked again that has an answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from searchapp.config.settings import JUDGE_KEY
from searchapp.embeddings.access import Access, Budget, estimated_tokens
from searchapp.embeddings.cache import AnswerCache, text_key
from searchapp.embeddings.command import command_answers
from searchapp.embeddings.endpoint import Endpoint, InvalidAnswerError, RejectedRequestError, used_tokens
from searchapp.embeddings.source import Price
from searchapp.errors import DataError, UsageError
from searchapp.files import digest_json, digest_text, parse_json
from searchapp.formats.problems import shown
from searchapp.judging.events import grade_label
from searchapp.judging.guidelines import Guidelines
from searchapp.judging.model_answers import ModelAnswer, ModelVerdict, read_verdict
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Topic
from searchapp.progress import Notify, Progress
from searchapp.ranking.templates import TextTemplate
from searchapp.resources import JUDGE_PROMPTS, read_utf8
from searchapp.tasks.base import Task, TaskInfo
from searchapp.text import suggestion

# The prompt of tasks without one of their own, and the number of grades of prompts that do not read the task's.
GENERAL, SCALES = "general", {"relevance-0-3": 4}

# An estimate of the length of an answer in tokens, unless a parameter limits it.
ANSWER_TOKENS = 300


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
class JudgeQuestion:
    """A document of a topic as the model receives it."""

    topic_id: str
    document_id: str
    text: str  # the rendered prompt, or the object for a command
    cut: Mapping[str, int]  # the lengths of fields that were cut, in characters

    @property
    def key(self) -> bytes:
        return text_key(self.text)


class JudgeClient:
    """Renders the questions to a model, asks them, and stores the answers.

    Args:
        task: the task of the topics
        source: an endpoint or a command
        prompt: the prompt of an endpoint; a command has none
        options: the scale, the length of texts, and the greatest cost
        guidelines: those of the task
        cache: the stored answers
    """

    def __init__(
        self,
        task: Task,
        source: JudgeSource,
        prompt: JudgePrompt | None,
        options: ModelJudgingOptions,
        guidelines: Guidelines | None,
        cache: AnswerCache,
    ) -> None:
        self.source = source
        self.prompt = prompt
        self.options = options
        self.budget = Budget(options.max_cost)
        # The names of the fields that the model receives.
        self.fields: tuple[str, ...] = ()
        self._task = task
        self._guidelines = guidelines
        self._cache = cache

    # Questions

    def choose_fields(self, topics: Iterable[Topic], documents: Collection[Mapping[str, Any]]) -> None:
        """Set the fields that the model receives, given the topics and documents of all questions.

        Raises:
            UsageError: the prompt has a variable without values.
        """
        of_topics = {f"topic.{name}" for topic in topics for name in topic.variables()}
        of_documents = {f"document.{name}" for document in documents for name in document}
        if self.prompt is None:
            self.fields = tuple(sorted(of_topics | of_documents))
            return
        template = self.prompt.template
        indexed = self._task.index_mapping().get("mappings", {}).get("properties", {})
        known = of_topics | of_documents | {f"document.{name}" for name in indexed} | _OF_TASK
        if documents and (unknown := sorted(template.variables - known)):
            raise UsageError(
                f"{template.name}: there is no variable {{{{{unknown[0]}}}}}{suggestion(unknown[0], known)}: "
                f"this task has {', '.join(sorted(known))}"
            )
        self.fields = tuple(sorted(template.variables - _OF_TASK))

    def question(self, topic: Topic, document: Mapping[str, Any]) -> JudgeQuestion:
        """Return the question on a document, whose fields include its `id`."""
        cut: dict[str, int] = {}
        parts = {
            kind: {name: self._cut(value, f"{kind}.{name}", cut) for name, value in values.items()}
            for kind, values in (("topic", topic.variables()), ("document", document))
        }
        labels = self._task.info.grades
        guidelines = None if self._guidelines is None else self._guidelines.text
        if self.prompt is None:
            question = {**parts, "grades": list(labels), "guidelines": guidelines}
            return JudgeQuestion(topic.id, document["id"], json.dumps(question, sort_keys=True), cut)
        variables = {
            **{
                f"{kind}.{name}": _text_of(value)
                for kind, values in parts.items()
                for name, value in values.items()
            },
            "grades": "\n".join(grade_label(number, labels) for number in range(len(labels))),
            "guidelines": (guidelines or "").strip() or "(none)",
        }
        sent = {name: length for name, length in cut.items() if name in self.fields}
        return JudgeQuestion(topic.id, document["id"], self.prompt.template.render(variables), sent)

    def _cut(self, value: Any, name: str, cut: dict[str, int]) -> Any:
        """Return a value whose text has at most `max_characters`."""
        text = value if isinstance(value, str) else _text_of(value)
        if len(text) <= self.options.max_characters:
            return value
        cut[name] = len(text)
        return text[: self.options.max_characters]

    # Answers

    def stored(self, keys: Iterable[bytes]) -> dict[bytes, ModelAnswer]:
        """Return the stored answers to those questions that have one."""
        return {key: ModelAnswer.from_json(answer) for key, answer in self._cache.answers(keys).items()}

    def ask(
        self, questions: Sequence[JudgeQuestion], access: Access, progress: Progress, notify: Notify
    ) -> Iterator[tuple[JudgeQuestion, ModelAnswer]]:
        """Ask questions, and store each answer before it is yielded."""
        by_key = {question.key: question for question in questions}
        if not by_key:
            return
        answers = (
            self._command_answers(by_key)
            if self.source.command
            else self._chat_answers(by_key, access, notify)
        )
        with progress.stage("judging", len(by_key)) as advance:
            for key, answer in answers:
                self._cache.store([(key, answer.to_json())])
                yield by_key[key], answer
                advance(1)

    def verdict(self, answer: ModelAnswer) -> ModelVerdict:
        return read_verdict(answer, self.options.scale)

    def estimate(self, questions: Iterable[JudgeQuestion]) -> tuple[int, float]:
        """Return an estimate of the tokens of questions and answers, and their cost."""
        texts = [question.text for question in questions]
        tokens, written = estimated_tokens(texts), len(texts) * self.source.answer_tokens
        return tokens + written, float(self.source.price.cost(tokens, 0, written))

    def _chat_answers(
        self, questions: Mapping[bytes, JudgeQuestion], access: Access, notify: Notify
    ) -> Iterator[tuple[bytes, ModelAnswer]]:
        source = self.source
        assert source.url is not None
        endpoint = Endpoint(
            f"{source.url.rstrip('/')}/chat/completions",
            place="--model-url, --model or --parameter",
            key=JUDGE_KEY,
            timeout=source.timeout,
            price=source.price,
            access=access,
            budget=self.budget,
            notify=notify,
        )

        def answer(key: bytes) -> ModelAnswer:
            text = questions[key].text
            message = {"role": "user", "content": text}
            body = {**source.parameters, "model": source.model, "messages": [message]}
            started = time.monotonic()
            try:
                received = endpoint.ask(body, estimated_tokens([text]), _read_chat, source.answer_tokens)
            except RejectedRequestError as error:
                # Some providers answer 400 to texts that they filter.
                if "content_filter" not in error.answer:
                    first = questions[key]
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

        return endpoint.answers(list(questions), answer, source.concurrency)

    def _command_answers(
        self, questions: Mapping[bytes, JudgeQuestion]
    ) -> Iterator[tuple[bytes, ModelAnswer]]:
        keys, objects = list(questions), [parse_json(question.text) for question in questions.values()]
        last = time.monotonic()

        def read(row: dict[str, Any]) -> ModelAnswer:
            nonlocal last
            last, before = time.monotonic(), last
            text = json.dumps({name: value for name, value in row.items() if name != "index"})
            return ModelAnswer(text, _now(), seconds=round(last - before, 3))

        for batch in command_answers(
            self.source.command, Path.cwd(), "--command", objects, read, 1, in_order=True
        ):
            yield from ((keys[index], answer) for index, answer in batch)


# The variables of a prompt that are neither of the topic nor of the document.
_OF_TASK = frozenset({"grades", "guidelines"})


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
