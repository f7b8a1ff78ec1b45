"""Options and output of `searchapp judge` with a model as the annotator."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

from searchapp.cli.output import for_person, print_json, say, show, warn, warn_all
from searchapp.config.settings import Settings
from searchapp.errors import UsageError
from searchapp.lucene.dataclass import dataclass
from searchapp.options import flag, option
from searchapp.text import be, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchapp.app.judge_client import JudgePrompt, JudgeSource, ModelJudgingOptions
    from searchapp.app.model_judging import ModelJudged
    from searchapp.app.probing import ProbeReport
    from searchapp.app.sessions import JudgingRequest
    from searchapp.embeddings.access import Budget
    from searchapp.tasks.base import TaskInfo

_PANEL = {"rich_help_panel": "Judging by a model"}

_OF_ENDPOINTS = (
    *("model_url", "prompt", "parameter", "price", "output_price", "max_cost", "concurrency", "timeout"),
)

# Keys of requests that searchapp sets.
_RESERVED = ("model", "messages", "stream", "n")


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of a model that judges instead of a person."""

    command: str | None = option(
        "Command that judges: it reads a JSON object per line, and writes one with the grade for each.",
        **_PANEL,
    )
    model_url: str | None = option(
        "Address of an endpoint of the OpenAI form that judges, such as http://localhost:11434/v1; other machines "
        "than this one need the setting model_hosts.",
        metavar="URL",
        **_PANEL,
    )
    model: str | None = option(
        "Name of the model; `judge` also gives it to the annotator, unless --annotator is given.",
        show_default="the command",
        **_PANEL,
    )
    prompt: str | None = option(
        "Prompt for --model-url: a file with placeholders such as {{topic.text}}, or the name of one that searchapp "
        "has.",
        metavar="FILE|NAME",
        show_default="the task's, or general",
        **_PANEL,
    )
    parameter: list[str] | None = option(
        "Further key of the requests to --model-url, as JSON or text; repeatable. `temperature` is 0 unless given; "
        "null leaves a key out.",
        metavar="KEY=VALUE",
        **_PANEL,
    )
    grade_map: str | None = option(
        "The task's grades for the grades 0, 1, ... of the model, such as 0,0,1,1.",
        metavar="GRADES",
        show_default="the same grades",
        **_PANEL,
    )
    max_characters: int = option(
        "Cut each field of a topic or document to this number of characters.", default=8000, min=1, **_PANEL
    )
    limit: int | None = option("Ask at most this number of questions now.", min=1, **_PANEL)
    price: float = option("Price of a million tokens that the model reads.", default=0.0, min=0, **_PANEL)
    output_price: float = option(
        "Price of a million tokens that the model writes.", default=0.0, min=0, **_PANEL
    )
    max_cost: float | None = option(
        "Send no request that could make this command cost more, by the prices.", min=0, **_PANEL
    )
    concurrency: int = option("Number of simultaneous requests.", default=2, min=1, max=64, **_PANEL)
    timeout: int = option(
        "Seconds without an answer after which a request has failed.", default=120, min=1, max=3600, **_PANEL
    )
    dry_run: bool = flag(
        "Ask nothing; print what would be sent, with an example, and estimate tokens and cost.", **_PANEL
    )
    as_json: Annotated[bool, flag("Print one JSON document on stdout.", "--json", **_PANEL)] = False

    @property
    def is_given(self) -> bool:
        return self.command is not None or self.model_url is not None

    def require_none(self) -> None:
        """Check that no option is given, for a person who judges.

        Raises:
            UsageError: one is given.
        """
        if given := self._given():
            raise UsageError(
                f"{given[0]} is for judging by a model: add --command or --model-url, or leave it out"
            )

    def _given(self, *names: str) -> list[str]:
        """Return the options, of these or of all, that have other values than by default."""
        return [
            "--json" if each.name == "as_json" else f"--{each.name.replace('_', '-')}"
            for each in fields(self)
            if (not names or each.name in names) and getattr(self, each.name) not in (None, each.default)
        ]

    def source(self) -> JudgeSource:
        """Return the model.

        Raises:
            UsageError: options are missing, invalid, or contradict each other.
        """
        from searchapp.app.judge_client import JudgeSource
        from searchapp.embeddings.source import Price, is_address

        price = Price(tokens=self.price, written=self.output_price)
        if self.command is not None:
            if given := self._given(*_OF_ENDPOINTS):
                raise UsageError(f"--command and {given[0]} exclude each other: give one of them")
            try:
                words = shlex.split(self.command)
            except ValueError as error:
                raise UsageError(f"--command {self.command}: {error}: correct the quotes") from None
            if not words:
                raise UsageError("--command is empty: give a program and its arguments")
            return JudgeSource(model=self.model or self.command, command=tuple(words))
        assert self.model_url is not None
        if not is_address(self.model_url):
            raise UsageError(
                f"--model-url {self.model_url.rpartition('@')[2]} is no address such as http://localhost:11434/v1, "
                "without a password"
            )
        if not self.model:
            raise UsageError("--model-url needs the name of the model: add --model NAME")
        if self.max_cost is not None and not self.price and not self.output_price:
            raise UsageError("--max-cost needs the prices of tokens: add --price and --output-price")
        return JudgeSource(
            model=self.model,
            url=self.model_url,
            parameters=_parameters(self.parameter or ()),
            price=price,
            concurrency=self.concurrency,
            timeout=self.timeout,
        )

    def prompt_and_limits(self, info: TaskInfo) -> tuple[JudgePrompt | None, ModelJudgingOptions]:
        """Return the prompt of an endpoint, and how it judges a task.

        Raises:
            UsageError: there is no such prompt, or its scale does not fit the task.
            DataError: the prompt can't be read.
        """
        from searchapp.app.judge_client import SCALES, ModelJudgingOptions, read_prompt

        prompt = None if self.command is not None else read_prompt(info, self.prompt)
        scale = self._scale(info.name, len(info.grades))
        if prompt is not None and len(scale) != SCALES.get(prompt.name, len(scale)):
            raise UsageError(
                f"the prompt {prompt.name} has {SCALES[prompt.name]} grades and {info.name} has "
                f"{len(info.grades)}: say with --grade-map which stands for which, such as 0,0,1,1"
            )
        return prompt, ModelJudgingOptions(
            scale, self.max_characters, self.limit, self.max_cost, self.dry_run
        )

    def _scale(self, task: str, grades: int) -> tuple[int, ...]:
        """Return the task's grade for each grade of the model.

        Raises:
            UsageError: --grade-map has other texts than grades of the task.
        """
        if self.grade_map is None:
            return tuple(range(grades))
        words = [word.strip() for word in self.grade_map.split(",")]
        if not all(word.isascii() and word.isdecimal() and int(word) < grades for word in words):
            raise UsageError(
                f"--grade-map {self.grade_map}: give grades of {task}, from 0 to {grades - 1}, separated by commas"
            )
        return tuple(map(int, words))


def _parameters(given: Sequence[str]) -> dict[str, Any]:
    from searchapp.files import parse_json

    parameters: dict[str, Any] = {"temperature": 0}
    for each in given:
        name, equals, text = each.partition("=")
        if not equals or not name or name in _RESERVED:
            raise UsageError(
                f"--parameter {each}: use the form KEY=VALUE, such as max_tokens=500, without {', '.join(_RESERVED)}"
            )
        try:
            parameters[name] = parse_json(text)
        except json.JSONDecodeError:
            parameters[name] = text
    return {name: value for name, value in parameters.items() if value is not None}


def judge_and_report(
    request: JudgingRequest, source: JudgeSource, options: ModelOptions, settings: Settings
) -> None:
    """Judge by a model, and print what was done."""
    from searchapp.app.model_judging import judge_by_model

    prompt, how = options.prompt_and_limits(request.task.info)
    judged = judge_by_model(
        request,
        source,
        prompt,
        how,
        settings,
        for_person(settings),
        warn,
        lambda sentence: say(settings, sentence),
    )
    warn_all(judged.left_out)
    name = request.author.annotator
    judge = source.model if name == source.model else f"{source.model} as {name}"
    named = "" if prompt is None else f", prompt {prompt.name} ({prompt.digest[:12]})"
    cut = f"; {counted(judged.cut, 'document')} {be(judged.cut)} cut" if judged.cut else ""
    say(
        settings,
        f"{request.task.name}: {judge}{named}; sends "
        f"{', '.join(judged.fields)}, of each at most {options.max_characters:,} characters{cut}",
    )
    known = (
        f"{counted(judged.documents, 'document')}: {judged.before:,} judged before, {judged.reused:,} with a stored "
        "answer"
    )
    if options.dry_run:
        say(settings, f"{known}, {to_ask(judged)}")
        if not options.as_json:
            show(judged.example)
    else:
        _report_answers(settings, judged, known)
    if options.as_json:
        print_json(_record(request, source, prompt, judged))


def to_ask(result: ModelJudged | ProbeReport) -> str:
    """Describe the questions without an answer."""
    return (
        f"{result.remaining:,} to ask: about {counted(result.estimated_tokens, 'token')}, cost "
        f"{result.estimated_cost:.4g}"
    )


def spent(budget: Budget) -> str:
    """Describe the requests that were sent."""
    return f"{counted(budget.requests, 'request')}, {counted(budget.tokens, 'token')}, cost {budget.cost:.4g}"


def describe_model(source: JudgeSource, prompt: JudgePrompt | None) -> dict[str, object]:
    """Return the JSON of a model and its prompt."""
    return {
        "model": source.model,
        "prompt": None if prompt is None else prompt.name,
        "prompt_digest": None if prompt is None else prompt.digest,
    }


def describe_budget(budget: Budget) -> dict[str, object]:
    """Return the JSON of the requests that were sent."""
    return {"requests": budget.requests, "tokens": budget.tokens, "cost": budget.cost}


def _report_answers(settings: Settings, judged: ModelJudged, known: str) -> None:
    say(settings, f"{known}, {judged.asked:,} asked in {spent(judged.budget)}")
    say(
        settings,
        "answers: " + ", ".join(f"{count:,} {outcome.value}" for outcome, count in judged.outcomes.items()),
    )
    if judged.replaced:
        say(
            settings,
            f"{counted(judged.replaced, 'earlier judgment')} of the annotator, of another model, prompt or scale, "
            f"{be(judged.replaced)} replaced",
        )
    judgments = ("graded", "abstained")
    without = sum(count for outcome, count in judged.outcomes.items() if outcome.value not in judgments)
    if without:
        warn(
            f"{counted(without, 'document')} got no judgment: the answer was refused, unparsable or truncated"
        )
    if judged.remaining:
        say(settings, f"{counted(judged.remaining, 'document')} without an answer: the same command goes on")


def _record(
    request: JudgingRequest, source: JudgeSource, prompt: JudgePrompt | None, judged: ModelJudged
) -> dict[str, object]:
    return {
        "task": request.task.name,
        "run": judged.run,
        "annotator": request.author.annotator,
        **describe_model(source, prompt),
        "fields": list(judged.fields),
        "documents": judged.documents,
        "cut": judged.cut,
        "judged_before": judged.before,
        "reused": judged.reused,
        "asked": judged.asked,
        "remaining": judged.remaining,
        "replaced": judged.replaced,
        "outcomes": {outcome.value: count for outcome, count in judged.outcomes.items()},
        **describe_budget(judged.budget),
        "estimated_tokens": judged.estimated_tokens,
        "estimated_cost": judged.estimated_cost,
    }
