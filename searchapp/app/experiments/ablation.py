"""Ablation study of a recipe: without each signal, with each signal alone, and tests of the gain of each part.

Every signal answers every topic once; variants are fusions of these answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from enum import StrEnum
from functools import partial
from typing import Any

from searchapp.app.comparison import (
    Measured,
    Pair,
    ScoredRun,
    Scoring,
    measure_names,
    measured,
    spread_if_large,
)
from searchapp.app.evaluate import GoldSource
from searchapp.app.experiments.cross_validation import CrossValidation, CrossValidationRequest
from searchapp.config.settings import Settings
from searchapp.errors import NotScorable, UsageError
from searchapp.evaluation.measures import require_measures
from searchapp.evaluation.significance import PERMUTATIONS, SEED
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Ranking
from searchapp.progress import Progress
from searchapp.ranking.ranker import SignalAnswers, WorkTime, dependencies
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import Signal, TrainedLinear


class VariantKind(StrEnum):
    """The difference between a variant and the recipe."""

    full = "full"  # no difference: all others are compared with it
    without = "without"  # without one of its signals
    only = "only"  # one of its signals alone
    sum = "sum"  # with the weighted sum instead of the learned fusion
    without_feature = "without_feature"  # with a model that was trained without a kind of features


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of the recipe."""

    kind: VariantKind
    signal: str = ""
    feature: str = ""  # the kind of features that its model lacks
    cpu_seconds: float = 0.0  # processor seconds of its signals and of fusion, without indexing and training
    wall_seconds: float = 0.0  # seconds of ranking
    # Whether documents of other signals follow, because the official scorer needs longer rankings.
    completed: bool = False

    @property
    def name(self) -> str:
        return {
            VariantKind.full: "full recipe",
            VariantKind.without: f"without {self.signal}",
            VariantKind.only: f"{self.signal} alone",
            VariantKind.sum: "fused by sum",
            VariantKind.without_feature: f"{self.signal} without {self.feature}",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class SignalCost:
    """The seconds that a signal takes to answer all topics."""

    name: str
    kind: str
    weight: float
    cpu_seconds: float
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class Ablation:
    """The variants of a recipe, compared on some splits."""

    task: str
    splits: tuple[str, ...]
    recipe: Mapping[str, Any]
    depth: int
    topics: int
    folds: int  # 1 if the topics are no training topics
    # Signals that receive the first documents of other signals, the same in every variant.
    dependent: tuple[str, ...]
    learned: bool  # whether the fusion is trained, again for each set of signals
    signals: tuple[SignalCost, ...]
    variants: tuple[Variant, ...]  # the first one is the unchanged recipe
    # Figures of the variants; a pair is recipe − variant; p-values are corrected among variants of a kind.
    measures: tuple[Measured, ...]
    permutations: int
    seed: int
    warnings: tuple[str, ...] = ()

    def rows(self, measured: Measured) -> Iterator[tuple[Variant, float, Pair | None]]:
        pairs = {pair.first: pair for pair in measured.pairs}
        for number, variant in enumerate(self.variants):
            yield variant, measured.means[number], pairs.get(number)

    def saved(self, variant: Variant) -> float:
        return self.variants[0].cpu_seconds - variant.cpu_seconds

    def to_json(self) -> dict[str, Any]:
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "signals": [asdict(signal) for signal in self.signals],
            "variants": [
                {"name": variant.name, **asdict(variant), "cpu_seconds_saved": self.saved(variant)}
                for variant in self.variants
            ],
            "measures": [
                {
                    "measure": measured.name,
                    "official": measured.is_official,
                    "topics": measured.topics,
                    "variants": [
                        {
                            "name": variant.name,
                            "figure": figure,
                            "tests": None if pair is None else asdict(pair.tests),
                            "corrected": {} if pair is None else asdict(pair)["corrected"],
                        }
                        for variant, figure, pair in self.rows(measured)
                    ],
                }
                for measured in self.measures
            ],
        }


TAG = "ablation"


@dataclass(frozen=True, slots=True)
class AblationRequest:
    """A recipe, and the topics that its variants rank: all splits of `validation`."""

    validation: CrossValidationRequest
    recipe: Recipe
    measures: tuple[str, ...] = ()  # measures beside the official one
    features: bool = False  # whether models are also trained without each kind of features
    permutations: int = PERMUTATIONS
    seed: int = SEED


def ablate(request: AblationRequest, settings: Settings, progress: Progress) -> Ablation:
    """Rank and score every variant of a recipe, and test its difference from the recipe.

    Raises:
        UsageError: the recipe has a single part, or a split or a measure is unknown.
        DataError: files are invalid, or no figure has a value for each topic.
        NotScorable: the official scorer rejects the rankings of the recipe.
        EngineError: the engine failed.
    """
    recipe = request.recipe
    if request.features and not any(features_of(signal) for signal in recipe.signals):
        raise UsageError(f"the recipe {recipe.name} has no model with features: leave out --features")
    if len(recipe.signals) == 1 and not request.features:
        raise UsageError(
            f"the recipe {recipe.name} has only the signal {recipe.signals[0].name}: choose a recipe with "
            "several signals"
        )
    require_measures(Scoring(GoldSource(measures=request.measures)).measures(request.validation.task))
    with CrossValidation(request.validation, settings, progress) as validation:
        validation.prepare([recipe])
        return _AblationStudy(request, validation, progress).run(progress)


class _AblationStudy:
    def __init__(self, request: AblationRequest, validation: CrossValidation, progress: Progress) -> None:
        self._request = request
        self._validation = validation
        self._signals = request.recipe.signals
        with progress.stage("ranking", len(validation.topics)) as advance:
            self._answers = [
                SignalAnswers(request.recipe, fold.inputs, fold.topics, validation.depth, advance)
                for fold in validation.folds
            ]

    def run(self, progress: Progress) -> Ablation:
        request, validation, recipe = self._request, self._validation, self._request.recipe
        all_variants = list(self._variants())
        with progress.stage("fusing and scoring", len(all_variants)) as advance:
            ranked = len(validation.topics) * validation.depth * len(all_variants)
            results = spread_if_large(
                lambda number: self._score(all_variants[number]), len(all_variants), ranked
            )
            advance(len(results))
        variants, scored = zip(*results, strict=True)
        names = measure_names(scored, request.measures)
        if not request.measures:
            names = names[:1]
        costs = [self._seconds(self._answers, [index]) for index in range(len(self._signals))]
        return Ablation(
            task=validation.request.task.name,
            splits=validation.request.splits,
            recipe=recipe.manifest(),
            depth=validation.depth,
            topics=len(validation.topics),
            folds=len(validation.sizes),
            dependent=tuple(
                signal.name
                for index, signal in enumerate(self._signals)
                if dependencies(self._signals, index)
            ),
            learned=recipe.is_learned,
            signals=tuple(
                SignalCost(signal.name, signal.kind, signal.weight, seconds.cpu, seconds.clock)
                for signal, seconds in zip(self._signals, costs, strict=True)
            ),
            variants=variants,
            measures=tuple(self._test_variants(name, scored, variants) for name in names),
            permutations=request.permutations,
            seed=request.seed,
            warnings=scored[0].evaluation.warnings,
        )

    def _variants(self) -> Iterator[Variant]:
        yield Variant(VariantKind.full)
        if self._request.recipe.is_learned:
            yield Variant(VariantKind.sum)
        if self._request.features:
            for signal in self._signals:
                for feature in features_of(signal):
                    yield Variant(VariantKind.without_feature, signal.name, feature)
        if len(self._signals) > 1:
            for kind in (VariantKind.without, VariantKind.only):
                for signal in self._signals:
                    yield Variant(kind, signal.name)

    def _score(self, variant: Variant) -> tuple[Variant, ScoredRun]:
        try:
            return self._score_as_is(variant)
        except NotScorable:
            if variant.kind is VariantKind.full:
                raise
            # The official scorer needs more documents than the signals of the variant retrieve.
            return self._score_as_is(replace(variant, completed=True))

    def _score_as_is(self, variant: Variant) -> tuple[Variant, ScoredRun]:
        answers = self._without_feature(variant) if variant.feature else self._answers
        indices = [
            index
            for index, signal in enumerate(self._signals)
            if variant.kind not in (VariantKind.without, VariantKind.only)
            or (signal.name == variant.signal) is (variant.kind is VariantKind.only)
        ]
        # A learned fusion without its model is a sum.
        fusion = self._request.recipe.fusion if variant.kind is VariantKind.sum else None
        counted = set(indices)
        for index in reversed(indices):
            counted.update(dependencies(self._signals, index))
        seconds = self._seconds(answers, sorted(counted))
        rankings: dict[str, Ranking] = {}
        for of_fold in answers:
            run, fusing = of_fold.run(TAG, indices, fusion, whole=variant.completed)
            seconds += fusing
            rankings |= {ranking.topic_id: ranking for ranking in run}
        variant = replace(variant, cpu_seconds=seconds.cpu, wall_seconds=seconds.clock)
        return variant, self._validation.scored(variant.name, rankings, self._request.measures)

    def _without_feature(self, variant: Variant) -> list[SignalAnswers]:
        signals = list(self._signals)
        index = [signal.name for signal in signals].index(variant.signal)
        signal = signals[index]
        assert isinstance(signal, TrainedLinear)
        signals[index] = replace(signal, without=(*signal.without, variant.feature))
        changed = replace(self._request.recipe, signals=tuple(signals))
        return [
            SignalAnswers(
                changed, fold.inputs, fold.topics, self._validation.depth, before=before, again=[index]
            )
            for fold, before in zip(self._validation.folds, self._answers, strict=True)
        ]

    def _test_variants(self, name: str, scored: Sequence[ScoredRun], variants: Sequence[Variant]) -> Measured:
        """Return all variants under a measure, with p-values that are corrected among variants of a kind."""
        test = partial(
            measured, name, scored, permutations=self._request.permutations, seed=self._request.seed
        )
        pairs: list[Pair] = []
        for kind in VariantKind:
            indices = [index for index, variant in enumerate(variants) if variant.kind is kind and index]
            if indices:
                pairs += test([(index, 0) for index in indices]).pairs
        return replace(test([]), pairs=tuple(pairs))

    def _seconds(self, answers: Sequence[SignalAnswers], indices: Sequence[int]) -> WorkTime:
        return sum((of_fold.seconds[index] for of_fold in answers for index in indices), WorkTime())


def features_of(signal: Signal) -> Sequence[str]:
    """Return the kinds of features without which the model of a signal can be trained."""
    return signal.features if isinstance(signal, TrainedLinear) else ()
