"""How far the judgments of a model agree with people's, and with the model's own under other settings.

Intervals are bootstrap intervals over topics, because the documents of a topic are not independent.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

from searchapp.judging.agreement import (
    RESAMPLES,
    GradeTable,
    Weights,
    agreement_interval,
    bias,
    cohen_kappa,
    krippendorff_alpha,
    share_of_equal,
)
from searchapp.judging.events import Action, Event
from searchapp.judging.view import JudgmentView, Key
from searchapp.lucene.dataclass import dataclass

# The grades of people and of the model by topic and document.
GradePairs = Mapping[Key, tuple[int, int]]

# The number of groups of documents by length and by lexical overlap.
GROUPS = 3


@dataclass(frozen=True, slots=True)
class Resampling:
    """The resamples of bootstrap intervals."""

    resamples: int = RESAMPLES
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient of agreement with its 95 % interval; NaN if undefined."""

    value: float
    low: float
    high: float

    @classmethod
    def of(
        cls, tables: Sequence[GradeTable], formula: Callable[[GradeTable], float], resampling: Resampling
    ) -> Coefficient:
        """Compute a coefficient of the sum of the tables of topics."""
        total: Counter[tuple[int, int]] = Counter()
        for table in tables:
            total.update(table)
        interval = agreement_interval(tables, formula, resampling.resamples, resampling.seed)
        return cls(formula(total), *interval)


@dataclass(frozen=True, slots=True)
class GroupAgreement:
    """The agreement with people on a group of documents."""

    name: str
    topics: int
    documents: int
    # The share of equal grades.
    share: float
    # The mean of the model's minus the people's grade: above 0 for a lenient model.
    bias: float
    # Cohen's, unweighted.
    kappa: Coefficient
    # Cohen's, with quadratic weights.
    quadratic: Coefficient
    # Krippendorff's, ordinal.
    alpha: Coefficient


@dataclass(frozen=True, slots=True)
class GradeAgreement:
    """The agreement on one grade: whether a document has it or another one."""

    grade: int
    # Numbers of documents: with the grade from people, from the model, and from both.
    people: int
    model: int
    both: int
    # Cohen's.
    kappa: Coefficient


@dataclass(frozen=True, slots=True)
class TrustCoverage:
    """What the model did with the documents that people graded."""

    documents: int
    graded: int
    # "Can't tell".
    abstained: int
    skipped: int
    # Without a judgment of the model.
    missing: int


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """The questions and parameters of a model, under any name of an annotator."""

    # The settings that differ from the model's others, and the annotators.
    name: str
    documents: int


@dataclass(frozen=True, slots=True)
class SelfAgreement:
    """The agreement of a model with itself under other settings, on the documents that both graded."""

    settings: tuple[str, str]
    agreement: GroupAgreement


def tables_of(pairs: GradePairs) -> list[GradeTable]:
    """Return the table of each topic, by the topics' ids."""
    tables: defaultdict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for (topic, _), pair in pairs.items():
        tables[topic][pair] += 1
    return [tables[topic] for topic in sorted(tables)]


def group_agreement(name: str, pairs: GradePairs, resampling: Resampling) -> GroupAgreement:
    """Return the agreement on a group of documents."""
    tables = tables_of(pairs)
    return GroupAgreement(
        name,
        len(tables),
        len(pairs),
        share_of_equal(pairs.values()),
        bias(pairs.values()),
        Coefficient.of(tables, cohen_kappa, resampling),
        Coefficient.of(tables, lambda table: cohen_kappa(table, Weights.quadratic), resampling),
        Coefficient.of(tables, krippendorff_alpha, resampling),
    )


def agreement_by_topic(pairs: GradePairs, resampling: Resampling) -> list[GroupAgreement]:
    """Return the agreement on each topic; one topic has no interval over topics."""
    of_topics: defaultdict[str, dict[Key, tuple[int, int]]] = defaultdict(dict)
    for key, pair in pairs.items():
        of_topics[key[0]][key] = pair
    return [group_agreement(topic, of_topics[topic], resampling) for topic in sorted(of_topics)]


def agreement_by_grade(pairs: GradePairs, resampling: Resampling) -> list[GradeAgreement]:
    """Return the agreement on each grade that people or the model gave."""
    tables = tables_of(pairs)
    result = []
    for grade in sorted({grade for pair in pairs.values() for grade in pair}):
        of_grade: list[GradeTable] = []
        for table in tables:
            counts: Counter[tuple[int, int]] = Counter()
            for (people, model), count in table.items():
                counts[int(people == grade), int(model == grade)] += count
            of_grade.append(counts)
        total = sum(map(Counter, of_grade), Counter[tuple[int, int]]())
        result.append(
            GradeAgreement(
                grade,
                total[1, 0] + total[1, 1],
                total[0, 1] + total[1, 1],
                total[1, 1],
                Coefficient.of(of_grade, cohen_kappa, resampling),
            )
        )
    return result


def agreement_by_value(
    pairs: GradePairs, values: Mapping[Key, float], shown: str, resampling: Resampling
) -> list[GroupAgreement]:
    """Return the agreement in three groups of about equal size, by ascending values; equal values share a group.

    Documents without a value are left out; `shown` is the format of a value in the groups' names.
    """
    ordered = sorted(values[key] for key in pairs if key in values)
    if not ordered:
        return []
    limits = [ordered[len(ordered) * number // GROUPS - 1] for number in range(1, GROUPS)]
    bounds = sorted({-math.inf, *limits, math.inf})
    groups = []
    for low, high in pairwise(bounds):
        chosen = {key: pair for key, pair in pairs.items() if key in values and low < values[key] <= high}
        if chosen:
            inside = [values[key] for key in chosen]
            limits_shown = dict.fromkeys((format(min(inside), shown), format(max(inside), shown)))
            groups.append(group_agreement(" to ".join(limits_shown), chosen, resampling))
    return groups


def coverage(
    view: JudgmentView, model: str, people: Mapping[str, Mapping[str, int]]
) -> tuple[TrustCoverage, dict[Key, tuple[int, int]]]:
    """Return what a model did with the documents that people graded, and the grades of both."""
    actions: Counter[Action] = Counter()
    pairs = {}
    for topic, grades in people.items():
        judgments = view.judgments(model, topic)
        for document, grade in grades.items():
            judgment = judgments.get(document)
            if judgment is None:
                continue
            actions[judgment.action] += 1
            if judgment.grade is not None:
                pairs[topic, document] = grade, judgment.grade
    total = sum(map(len, people.values()))
    return TrustCoverage(
        total, len(pairs), actions[Action.cant_tell], actions[Action.skip], total - actions.total()
    ), pairs


def self_agreement(
    view: JudgmentView,
    events: Iterable[Event],
    details: Mapping[str, Mapping[str, Any]],
    model: str,
    resampling: Resampling,
) -> tuple[list[JudgeSettings], list[SelfAgreement]]:
    """Return the settings under which a model has judged, and its agreement under each two of them.

    The model is that of the annotator `model`; other annotators count if their details name the same model. Replaced
    judgments count, retracted ones don't. A document on which both used the same stored answer is left out. `details`
    has the details of judgments of models by the ids of events.
    """
    judged = sorted(
        (
            event
            for event in events
            if event.id in details and event.grade is not None and view.holds(event.id)
        ),
        key=lambda event: event.order,
    )
    names = {details[event.id].get("model") for event in judged if event.annotator == model}
    grades: defaultdict[str, dict[Key, tuple[int, str]]] = defaultdict(dict)
    described: dict[str, dict[str, Any]] = {}
    annotators: defaultdict[str, set[str]] = defaultdict(set)
    for event in judged:
        value = details[event.id]
        if value.get("model") not in names:
            continue
        settings = _settings(value)
        name = repr(sorted(settings.items()))
        described[name] = settings
        annotators[name].add(event.annotator)
        assert event.grade is not None  # selected above
        request = value.get("request") or {}
        answer = f"{request.get('source')} {request.get('question')}"
        grades[name][event.topic_id, event.document_id] = event.grade, answer
    labels = _labels(described, annotators)
    agreements = []
    for first, second in combinations(grades, 2):
        pairs = {
            key: (grade, grades[second][key][0])
            for key, (grade, answer) in grades[first].items()
            if key in grades[second] and grades[second][key][1] != answer
        }
        if pairs:
            both = labels[first], labels[second]
            agreements.append(SelfAgreement(both, group_agreement(" and ".join(both), pairs, resampling)))
    return [JudgeSettings(labels[name], len(grades[name])) for name in grades], agreements


def _settings(value: Mapping[str, Any]) -> dict[str, str]:
    prompt = value.get("prompt") or {}
    parameters = value.get("parameters") or {}
    return {
        "address": str(value.get("url") or " ".join(value.get("command") or ())),
        "prompt": f"{prompt['name']} {str(prompt['digest'])[:8]}" if prompt else "",
        "scale": ",".join(map(str, value.get("scale") or ())),
        "characters": str(value.get("max_characters", "")),
        **{key: str(parameter) for key, parameter in parameters.items()},
    }


def _labels(described: Mapping[str, Mapping[str, str]], annotators: Mapping[str, set[str]]) -> dict[str, str]:
    """Return the annotators of each settings, and the settings that are not the same in all."""
    keys = dict.fromkeys(key for settings in described.values() for key in settings)
    differing = [key for key in keys if len({settings.get(key, "") for settings in described.values()}) > 1]
    return {
        name: ", ".join(
            [*sorted(annotators[name]), *(f"{key} {settings[key]}" for key in differing if settings.get(key))]
        )
        for name, settings in described.items()
    }
