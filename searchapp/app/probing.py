"""Probe a model that judges: ask it about documents that people graded, with texts inserted into them.

Nothing is written into the log of judgments. The answers are stored as those of `judge`: the same command asks nothing
again, and the question on a document without an insertion is the one that `judge` asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field
from pathlib import Path
from typing import Any

from searchapp.app.inspection.pages import LocalFirst, topics_of
from searchapp.app.judge_client import (
    JudgeClient,
    JudgePrompt,
    JudgeQuestion,
    JudgeSource,
    ModelJudgingOptions,
)
from searchapp.config.settings import Settings
from searchapp.embeddings.access import Access, Budget
from searchapp.embeddings.cache import ANSWERS_FILE, open_answers
from searchapp.errors import DataError, UsageError
from searchapp.judging.guidelines import read_guidelines
from searchapp.judging.judgments import Aggregation, Rule, aggregate
from searchapp.judging.model_answers import ModelVerdict
from searchapp.judging.probes import (
    INSTRUCTIONS,
    KINDS,
    ProbedDocument,
    ProbeEffects,
    ProbeKind,
    draw_documents,
    insert,
    inserted_texts,
    instruction_of,
    probe_effects,
)
from searchapp.judging.trust import Resampling
from searchapp.judging.view import JudgmentView, Key
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Topic
from searchapp.progress import Notify, Progress
from searchapp.ranking.highlighting import TEXT
from searchapp.ranking.paging import sources
from searchapp.tasks.base import Task
from searchapp.tasks.folders import data_folder
from searchapp.text import be, counted


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """The documents to probe a model with."""

    task: Task
    people: tuple[str, ...] | None = None  # by default all people, and every decision
    rule: Rule = Rule.majority
    documents: int = 20  # that people graded 0
    relevant: int = 5  # that people graded above 0
    instructions: Sequence[str] = INSTRUCTIONS
    data: Path | None = None  # the folder of the topics
    resampling: Resampling = field(default_factory=Resampling)


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The effects of probes, and the work that it took to measure them."""

    not_relevant: ProbeEffects
    relevant: ProbeEffects
    questions: int
    reused: int  # with a stored answer
    asked: int
    remaining: int  # without an answer
    budget: Budget
    estimated_tokens: int  # of the questions without an answer before
    estimated_cost: float
    example: str  # the first question with an insertion
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _ProbeQuestions:
    """The questions on a document: as it is under None, and with each insertion."""

    key: Key
    people: int
    instruction: int
    questions: Mapping[ProbeKind | None, JudgeQuestion]


def probe_model(
    request: ProbeRequest,
    source: JudgeSource,
    prompt: JudgePrompt | None,
    options: ModelJudgingOptions,
    view: JudgmentView,
    settings: Settings,
    progress: Progress,
    say: Notify,
) -> ProbeReport:
    """Ask a model about documents with and without insertions, and measure how its grades change.

    Args:
        request: the documents
        source: an endpoint or a command
        prompt: the prompt of an endpoint; a command has none
        options: the scale, and limits
        view: the judgments of the task
        settings: the engine with the documents, the home directory, and what the user allows
        progress: receives the stages of the work
        say: receives a sentence before each further attempt of a request

    Raises:
        UsageError: the user has not allowed the endpoint, or the prompt does not contain the document's text.
        DataError: people graded no document 0, topics have no text, or answers are invalid.
        EngineError: the documents can't be read.
        OverBudget: the cost would exceed the greatest one.
        SearchappError: the model fails.
    """
    task = request.task
    if prompt is not None and f"document.{TEXT}" not in prompt.template.variables:
        raise UsageError(
            f"the prompt {prompt.name} has no {{{{document.{TEXT}}}}}, the text that probes change: use another prompt"
        )
    grades = aggregate(view, Aggregation(request.rule, request.people)).grades
    drawn = _draw(request, grades)
    with open_answers(settings.home, ANSWERS_FILE, source.digest) as cache:
        client = JudgeClient(task, source, prompt, options, read_guidelines(task.info.guidelines), cache)
        warnings: list[str] = []
        with progress.stage("reading documents"):
            topics, documents = _texts(request, drawn, settings, progress, warnings)
        client.choose_fields(topics.values(), documents.values())
        probed = [
            _questions(request, client, number, topics[key[0]], documents[key[1]], grades[key[0]][key[1]])
            for number, key in enumerate(key for key in drawn if key[1] in documents)
        ]
        by_key = {question.key: question for each in probed for question in each.questions.values()}
        answers = client.stored(by_key)
        waiting = [question for key, question in by_key.items() if key not in answers]
        tokens, cost = client.estimate(waiting)
        reused = len(answers)
        if not options.dry_run:
            asked = client.ask(waiting[: options.limit], Access.of(settings), progress, say)
            answers |= {question.key: answer for question, answer in asked}
        verdicts = {key: client.verdict(answer) for key, answer in answers.items()}
    with progress.stage("measuring effects"):
        not_relevant, relevant = (
            probe_effects(
                [_probed(each, verdicts) for each in probed if (each.people > 0) is is_relevant],
                options.scale,
                request.instructions,
                request.resampling,
            )
            for is_relevant in (False, True)
        )
    return ProbeReport(
        not_relevant,
        relevant,
        len(by_key),
        reused,
        len(answers) - reused,
        len(by_key) - len(answers),
        client.budget,
        tokens,
        cost,
        probed[0].questions[KINDS[0]].text if probed else "",
        tuple(warnings),
    )


def _draw(request: ProbeRequest, grades: Mapping[str, Mapping[str, int]]) -> list[Key]:
    """Draw documents that are not relevant, and then some that are.

    Raises:
        DataError: people graded no document 0.
    """
    keys = [(topic, document) for topic in sorted(grades) for document in sorted(grades[topic])]
    seed = request.resampling.seed

    def draw(*, is_relevant: bool, count: int) -> Iterator[Key]:
        chosen = (
            (topic, document) for topic, document in keys if (grades[topic][document] > 0) is is_relevant
        )
        yield from draw_documents(chosen, count, seed)

    not_relevant = list(draw(is_relevant=False, count=request.documents))
    if not not_relevant:
        raise DataError(
            f"people have graded no document of {request.task.name} 0, and such documents show whether an insertion "
            f"raises a grade: judge some with `searchapp judge {request.task.reference}`"
        )
    return [*not_relevant, *draw(is_relevant=True, count=request.relevant)]


def _texts(
    request: ProbeRequest,
    drawn: Sequence[Key],
    settings: Settings,
    progress: Progress,
    warnings: list[str],
) -> tuple[dict[str, Topic], dict[str, Mapping[str, Any]]]:
    """Return the topics, and the fields of the documents that the index has.

    Raises:
        DataError: a topic has no text, or no document is in the index.
        EngineError: the documents can't be read.
    """
    task = request.task
    folder = data_folder(task, settings.home, request.data)
    topics = topics_of(task, task.collection(folder), {topic for topic, _ in drawn})
    for topic, _ in drawn:
        if topic not in topics or not topics[topic].text.strip():
            raise DataError(f"topic {topic} has no text: give the folder of the topics with --data")
    wanted = list(dict.fromkeys(document for _, document in drawn))
    documents: dict[str, Mapping[str, Any]] = {}
    with closing(LocalFirst(settings, progress, warnings.append, copy=False)) as indexes:
        for name in task.info.index_names:
            fields = sources(indexes.index(task, folder, name), wanted)
            documents |= {document: {"id": document, **values} for document, values in fields.items()}
    if missing := len(wanted) - len(documents):
        warnings.append(f"{counted(missing, 'document')} {be(missing)} not in the index, and left out")
    if not documents:
        raise DataError(
            f"no document that people judged is in the index: index {task.name} with `searchapp index {task.reference}`"
        )
    return topics, documents


def _questions(
    request: ProbeRequest,
    client: JudgeClient,
    number: int,
    topic: Topic,
    document: Mapping[str, Any],
    people: int,
) -> _ProbeQuestions:
    """Return the questions on the document of a number in the order of the draw."""
    key = topic.id, str(document["id"])
    options = client.options
    instruction = instruction_of(number, len(request.instructions))
    texts = inserted_texts(
        request.instructions[instruction], len(options.scale) - 1, topic.text, key, request.resampling.seed
    )
    own_text = str(document.get(TEXT, ""))
    questions: dict[ProbeKind | None, JudgeQuestion] = {None: client.question(topic, document)}
    for insertion, place in KINDS:
        text = insert(own_text, texts[insertion], place, options.max_characters)
        questions[insertion, place] = client.question(topic, {**document, TEXT: text})
    return _ProbeQuestions(key, people, instruction, questions)


def _probed(asked: _ProbeQuestions, verdicts: Mapping[bytes, ModelVerdict]) -> ProbedDocument:
    answered = {
        kind: verdicts[question.key] for kind, question in asked.questions.items() if question.key in verdicts
    }
    unchanged = answered.pop(None, None)
    probes = {kind: verdict for kind, verdict in answered.items() if kind is not None}
    return ProbedDocument(asked.key, asked.people, asked.instruction, unchanged, probes)
