"""Measure how far the judgments of a model can replace people's: agreement, self-agreement and rankings of systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from searchapp.app.evaluate import GoldSource, Judgments, Subject, evaluate_judged
from searchapp.app.inspection.pages import LocalFirst, topics_of
from searchapp.app.model_judging import DETAIL
from searchapp.config.settings import Settings
from searchapp.engines.base import Index
from searchapp.errors import DataError, EngineError, UsageError
from searchapp.judging.agreement import confusion, percentile_interval
from searchapp.judging.events import Kind
from searchapp.judging.judgments import Aggregation, Rule, aggregate
from searchapp.judging.trust import (
    Coefficient,
    GradeAgreement,
    GradePairs,
    GroupAgreement,
    JudgeSettings,
    Resampling,
    SelfAgreement,
    TrustCoverage,
    agreement_by_grade,
    agreement_by_topic,
    agreement_by_value,
    coverage,
    group_agreement,
    self_agreement,
)
from searchapp.judging.view import JudgmentView, Key
from searchapp.lucene.dataclass import dataclass
from searchapp.progress import Progress
from searchapp.ranking.highlighting import TEXT, TextAnalyzer, search_analyzer
from searchapp.ranking.paging import sources
from searchapp.runs.directory import Manifest
from searchapp.tasks.base import Task
from searchapp.tasks.folders import data_folder
from searchapp.text import be, counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from searchapp.evaluation.significance import Values
    from searchapp.judging.log import JudgmentLog

# The keys of a run's record that name a model, or the folder of one.
_MODEL_KEYS = frozenset({"model", "cross_encoder", "model_folder"})


@dataclass(frozen=True, slots=True)
class TrustRequest:
    """A model, the people that it is compared with, and the runs to rank."""

    task: Task
    model: str  # the annotator
    people: tuple[str, ...] | None = None  # by default all people, and every decision
    rule: Rule = Rule.majority
    runs: tuple[Path, ...] = ()
    measure: str = "AP"
    data: Path | None = None  # the folder of the topics
    split: str | None = None  # of the topics of TREC runs
    resampling: Resampling = field(default_factory=Resampling)


@dataclass(frozen=True, slots=True)
class JudgedSystem:
    """The mean of a measure for a run under both sets of judgments."""

    path: Path
    people: float
    model: float


@dataclass(frozen=True, slots=True)
class SystemAgreement:
    """The agreement of the rankings of systems under both sets of judgments."""

    measure: str
    topics: int
    systems: tuple[JudgedSystem, ...]
    tau_b: Coefficient
    # The ranking under people's judgments is the reference.
    tau_ap: Coefficient


@dataclass(frozen=True, slots=True)
class ModelTrust:
    """The agreement of a model with people."""

    model: str
    coverage: TrustCoverage
    # Numbers of documents by people's and the model's grade.
    confusion: Mapping[int, Mapping[int, int]]
    overall: GroupAgreement
    grades: tuple[GradeAgreement, ...]
    topics: tuple[GroupAgreement, ...]
    # By the number of characters of the document's text.
    lengths: tuple[GroupAgreement, ...]
    # By the share of the topic's terms that the document's text has.
    overlaps: tuple[GroupAgreement, ...]
    settings: tuple[JudgeSettings, ...]
    self_agreement: tuple[SelfAgreement, ...]
    systems: SystemAgreement | None
    warnings: tuple[str, ...]


def measure_trust(
    request: TrustRequest, log: JudgmentLog, view: JudgmentView, settings: Settings, progress: Progress
) -> ModelTrust:
    """Compare the judgments of a model with people's.

    Args:
        request: the model, and what is measured
        log: the log with the judgments
        view: the judgments of the task
        settings: the engine with the documents, and the home directory
        progress: receives the stages of the work

    Raises:
        UsageError: the annotator is a person or one of the people, there is one run only, or a run or the measure is
            unknown.
        DataError: no document has a grade of both, or a run is invalid.
    """
    name, task = request.model, request.task
    if view.work[name].kind != Kind.model:
        raise UsageError(f"{name} is a person: name an annotator of the kind model, see `judgments stats`")
    if name in (request.people or ()):
        raise UsageError(f"{name} is the model itself: name other annotators with --annotator")
    if len(request.runs) == 1:
        raise UsageError("--runs requires at least two runs, whose rankings are compared")
    people = aggregate(view, Aggregation(request.rule, request.people)).grades
    covered, pairs = coverage(view, name, people)
    if not pairs:
        raise DataError(
            f"no document of {task.name} has a grade of {name} and of people: judge the same documents with "
            f"`searchapp judge {task.reference}`"
        )
    subjects = [Subject.of(run, _source(request)) for run in request.runs]
    values = {detail.event: detail.value for detail in log.details(task.name, DETAIL)}
    warnings = [*_shared_models(view, name, values, subjects)]
    with progress.stage("measuring agreement"):
        lengths, overlaps = _texts(request, pairs, settings, progress, warnings)
        resampling = request.resampling
        own_settings, own_agreement = self_agreement(
            view, (event for _, event in log.events(task.name)), values, name, resampling
        )
        return ModelTrust(
            name,
            covered,
            confusion(pairs.values()),
            group_agreement("all", pairs, resampling),
            tuple(agreement_by_grade(pairs, resampling)),
            tuple(agreement_by_topic(pairs, resampling)),
            tuple(agreement_by_value(pairs, lengths, ",.0f", resampling)),
            tuple(agreement_by_value(pairs, overlaps, ".2f", resampling)),
            tuple(own_settings),
            tuple(own_agreement),
            _systems(request, subjects, pairs) if subjects else None,
            tuple(warnings),
        )


def _source(request: TrustRequest) -> GoldSource:
    return GoldSource(
        task=request.task.reference, data=request.data, split=request.split, measures=(request.measure,)
    )


# Texts


def _texts(
    request: TrustRequest, pairs: GradePairs, settings: Settings, progress: Progress, warnings: list[str]
) -> tuple[dict[Key, float], dict[Key, float]]:
    """Return the length of each document in characters, and the share of the topic's terms that it has.

    Documents and topics that can't be read are missing; `warnings` gets the reason.
    """
    task, lengths, overlaps = request.task, dict[Key, float](), dict[Key, float]()
    unknown: str | None = None
    with closing(LocalFirst(settings, progress, warnings.append, copy=False)) as documents:
        try:
            folder = data_folder(task, settings.home, request.data)
            topics = topics_of(task, task.collection(folder), {topic for topic, _ in pairs})
        except DataError as error:
            folder, topics = None, {}
            warnings.append(f"no agreement by lexical overlap: {error}")
        remaining = dict.fromkeys(document for _, document in pairs)
        for name in task.info.index_names:
            try:
                index = documents.index(task, folder, name)
                known = sources(index, remaining)
                terms = _terms_of(task, index)
                for (topic, document), _ in pairs.items():
                    if document not in known:
                        continue
                    text = str(known[document].get(TEXT, ""))
                    lengths[topic, document] = len(text)
                    if topic in topics and (wanted := terms(topics[topic].text)):
                        overlaps[topic, document] = len(wanted & terms(text)) / len(wanted)
            except EngineError as error:
                unknown = str(error)
                continue
            remaining = {document: None for document in remaining if document not in known}
    if len(remaining) == len({document for _, document in pairs}) and unknown is not None:
        warnings.append(f"no agreement by length and lexical overlap: {unknown}")
    elif remaining:
        number = len(remaining)
        warnings.append(
            f"{counted(number, 'document')} {be(number)} not in the index, and left out of the agreement by length and "
            "lexical overlap"
        )
    return lengths, overlaps


def _terms_of(task: Task, index: Index) -> Any:
    """Return a function from a text to its terms."""
    mapping = task.index_mapping()
    field_ = mapping.get("mappings", {}).get("properties", {}).get(TEXT, {})
    analyzer, tokens = search_analyzer(mapping, field_), TextAnalyzer(index, mapping)
    return lambda text: {token.term for token in tokens.tokens(analyzer, text)}


# Systems


def _systems(request: TrustRequest, subjects: Sequence[Subject], pairs: GradePairs) -> SystemAgreement:
    """Rank systems under the grades of people and of the model, both of the documents that both graded."""

    from searchapp.evaluation.rank_correlation import kendall_tau_b, tau_ap
    from searchapp.evaluation.significance import blocks

    grades: tuple[dict[str, dict[str, int]], ...] = ({}, {})
    for (topic, document), both in pairs.items():
        for of_judge, grade in zip(grades, both, strict=True):
            of_judge.setdefault(topic, {})[document] = grade
    source, measure = _source(request), request.measure
    scored = [
        evaluate_judged(subject, Judgments(of_judge), source, official_too=False).of_topics(measure)
        for of_judge in grades
        for subject in subjects
    ]
    topics, values = blocks(scored)
    if not topics:
        raise DataError("the runs of --runs rank no judged topic in common: give runs of the same topics")
    means = values.mean(axis=0)
    systems = (
        JudgedSystem(subject.path, float(means[number]), float(means[len(subjects) + number]))
        for number, subject in enumerate(subjects)
    )
    tau_b, of_top = (correlation_of_systems(values, of, request.resampling) for of in (kendall_tau_b, tau_ap))
    ordered = sorted(systems, key=lambda system: -system.people)
    return SystemAgreement(measure, len(topics), tuple(ordered), tau_b, of_top)


def correlation_of_systems(
    values: Values, correlation: Callable[[Values, Values], float], resampling: Resampling
) -> Coefficient:
    """Correlate the rankings of systems by their means under people's and under the model's judgments.

    Args:
        values: of a measure by topic (rows) and system (columns), first under people's judgments, then the model's
        correlation: returns the correlation of two sequences of means
        resampling: of topics
    """
    topics, columns = values.shape

    def of_resample(multiplicities: NDArray[np.int64]) -> float:
        means = multiplicities @ values / topics
        return correlation(means[: columns // 2], means[columns // 2 :])

    interval = percentile_interval(topics, of_resample, resampling.resamples, resampling.seed)
    means = values.mean(axis=0)
    return Coefficient(correlation(means[: columns // 2], means[columns // 2 :]), *interval)


def _shared_models(
    view: JudgmentView, name: str, values: Mapping[str, Mapping[str, Any]], subjects: Sequence[Subject]
) -> Iterator[str]:
    """Yield a warning for each run that a model of the judge has ranked."""
    judges = {_model_name(name)}
    for topic in view.topics_of(name):
        for document in view.judgments(name, topic):
            opinion = view.opinion(name, topic, document)
            value = {} if opinion is None else values.get(opinion.event.id, {})
            judges |= {_model_name(str(value.get(key) or name)) for key in ("model", "answered_by")}
    for subject in subjects:
        if subject.given.manifest is not None:
            for model in sorted(_models_of(subject.given.manifest)):
                if _model_name(model) in judges:
                    yield (
                        f"{subject.path} was ranked with the model {model}, which also judges as {name}: its value "
                        "under the model's judgments is circular"
                    )


def _models_of(manifest: Manifest) -> set[str]:
    """Return the names of models, and of the folders of local ones, that a run records."""

    def names(value: Any) -> Iterator[str]:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                if key in _MODEL_KEYS and isinstance(inner, str) and inner:
                    yield inner
                else:
                    yield from names(inner)
        elif isinstance(value, list):
            yield from chain.from_iterable(map(names, value))

    return {*names(manifest.recipe)}


def _model_name(model: str) -> str:
    """Return the name without the organisation or folder: meta/Llama-3 and llama-3 are the same model."""
    return PurePosixPath(model).name.casefold()
