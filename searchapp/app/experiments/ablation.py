"""Ablation study of a recipe: without each signal, with each signal alone, and tests of what each part gains.

Every signal answers every topic once; variants are fusions of these answers (`ranking.apart`). Solved topics
of the same file are divided into folds as in cross-validation. Figures are those of `evaluate`, tests those
of `compare`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from itertools import chain
from typing import Any, NamedTuple

from searchapp.app.comparison import (
    Measured,
    Pair,
    ScoredRun,
    Scoring,
    Testing,
    measure_names,
    measured,
    scored_rankings,
    spread_if_large,
)
from searchapp.app.evaluate import GoldSource
from searchapp.app.experiments.cross_validation import CrossValidation, CrossValidationRequest
from searchapp.config.settings import Settings
from searchapp.errors import NotScorable, UsageError
from searchapp.evaluation.measures import Measures, require_measures
from searchapp.evaluation.significance import PERMUTATIONS, SEED
from searchapp.model import Ranking, Run
from searchapp.progress import Progress
from searchapp.ranking.fusion import Fusion
from searchapp.ranking.ranker import SignalAnswers, WorkTime, dependencies
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import Signal, Trained


class Kind(StrEnum):
    """What a variant of a recipe is."""

    whole = "whole"
    """The recipe as it is, which all others are compared with."""

    without = "without"
    """Without one of its signals."""

    alone = "alone"
    """One of its signals alone."""

    summed = "summed"
    """With the weighted sum in place of the learned fusion."""

    unseen = "unseen"
    """With a model that was trained without a kind of features."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of the recipe: without, or with nothing but, a signal; `feature` is the kind that its model lacks.

    `cpu` and `clock` are seconds that ranking with it takes: of its signals and of fusing them; without indexing and
    training. Of a `completed` one the organisers' scorer asks for more documents than its signals retrieve: those of
    the other signals follow by their ids.
    """

    kind: Kind
    signal: str
    feature: str
    cpu: float
    clock: float
    completed: bool = False

    @property
    def name(self) -> str:
        """What people read."""
        return {
            Kind.whole: "as it is",
            Kind.without: f"without {self.signal}",
            Kind.alone: f"{self.signal} alone",
            Kind.summed: "fused by sum",
            Kind.unseen: f"{self.signal} without {self.feature}",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class SignalCost:
    """Seconds that a signal takes to answer all topics, of processors and by the clock."""

    name: str
    kind: str
    weight: float
    cpu: float
    clock: float


@dataclass(frozen=True, slots=True)
class Ablation:
    """A recipe taken apart on some splits.

    The first of `variants` is the recipe as it is. Of each of `measures` the values and means are those of the
    variants in their order, and the pairs are of each other variant with the recipe as it is: a difference is what the
    recipe as it is has more, so that it is what the missing part gains. p-values are corrected among the variants of
    one kind. `folds` is in how many parts the topics were ranked, each by what is solved in the others; 1 where solved
    topics are others anyway. Signals that are `told` what others rank highest are told the same in every variant.
    A fusion that is `learned` is trained anew for the signals that are left.
    """

    task: str
    splits: tuple[str, ...]
    recipe: Mapping[str, Any]
    depth: int
    topics: int
    folds: int
    told: tuple[str, ...]
    learned: bool
    signals: tuple[SignalCost, ...]
    variants: tuple[Variant, ...]
    measures: tuple[Measured, ...]
    permutations: int
    seed: int
    warnings: tuple[str, ...] = ()

    def rows(self, measured: Measured) -> Iterator[tuple[Variant, float, Pair | None]]:
        """Each variant with its figure and its comparison under a measure; the recipe as it is has none."""
        pairs = {pair.first: pair for pair in measured.pairs}
        for place, variant in enumerate(self.variants):
            yield variant, measured.means[place], pairs.get(place)

    def saved(self, variant: Variant) -> float:
        """What the variant takes less than the recipe as it is, in seconds of processors: what its part costs."""
        return self.variants[0].cpu - variant.cpu

    def to_json(self) -> dict[str, Any]:
        """What `ablate --json` prints."""
        return {
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "signals": [asdict(one) for one in self.signals],
            "variants": [
                {"name": one.name, **asdict(one), "cpu_saved": self.saved(one)} for one in self.variants
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
    """Which recipe to take apart, and by what.

    The topics of all splits of `validation` are ranked together. `measures` are tested beside the official one. With
    `features` models are trained without each kind of features too.
    """

    validation: CrossValidationRequest
    recipe: Recipe
    measures: tuple[str, ...] = ()
    features: bool = False
    permutations: int = PERMUTATIONS
    seed: int = SEED


def ablate(request: AblationRequest, settings: Settings, progress: Progress) -> Ablation:
    """Take a recipe apart.

    Raises:
        UsageError: it has one part alone; or there is no such split or measure.
        DataError: files are not what they should be, or no figure has a value for each topic.
        NotScorable: the organisers' scorer would not score a ranking.
        EngineError: the engine failed.
    """
    named = [name for signal in request.recipe.signals for name in features_of(signal)]
    if request.features and not named:
        raise UsageError(
            f"the recipe {request.recipe.name} has no model whose features could be left out: leave out --features"
        )
    if len(request.recipe.signals) == 1 and not request.features:
        raise UsageError(
            f"the recipe {request.recipe.name} is the signal {request.recipe.signals[0].name} alone, so that nothing "
            "can be left out: choose a recipe of several signals"
        )
    require_measures(Scoring(GoldSource(measures=request.measures)).measures(request.validation.task))
    with CrossValidation(request.validation, settings, progress) as validation:
        validation.prepare([request.recipe])
        return _Ablating(request, validation, progress).result(progress)


class _Part(NamedTuple):
    """What a variant ranks by: `only` the signals at these places, all of them without any."""

    kind: Kind
    signal: str = ""
    feature: str = ""
    only: tuple[int, ...] = ()


_Made = tuple[Variant, ScoredRun]


class _Ablating:
    """The answers of all signals for the topics of all folds, which variants are made of."""

    def __init__(self, request: AblationRequest, validation: CrossValidation, progress: Progress) -> None:
        self._request = request
        self._validation = validation
        recipe = request.recipe
        self._task = validation.request.task
        self._apart: list[SignalAnswers] = []
        with progress.stage("ranking", len(validation.topics)) as advance:
            for fold in validation.folds:
                self._apart.append(SignalAnswers(recipe, fold.inputs, fold.topics, validation.depth, advance))
        self._scoring = {
            split: Scoring(validation.source(split, request.measures)) for split in validation.request.splits
        }

    def result(self, progress: Progress) -> Ablation:
        """Make and score every variant, and test what each is worse by."""
        request, validation = self._request, self._validation
        parts = list(self._parts())
        with progress.stage("fusing and scoring", len(parts)) as advance:
            ranked = len(validation.topics) * validation.depth * len(parts)
            made = spread_if_large(lambda place: self._variant(parts[place]), len(parts), ranked)
            advance(len(made))
        variants, scored = zip(*made, strict=True)
        names = measure_names(scored, request.measures)
        if not request.measures:
            names = names[:1]
        testing = Testing(request.permutations, request.seed, jointly=False)
        signals = [
            (signal, sum((apart.seconds[place] for apart in self._apart), WorkTime()))
            for place, signal in enumerate(request.recipe.signals)
        ]
        return Ablation(
            task=self._task.name,
            splits=validation.request.splits,
            recipe=request.recipe.manifest(),
            depth=validation.depth,
            topics=len(validation.topics),
            folds=len(validation.sizes),
            told=tuple(
                signal.name
                for place, signal in enumerate(request.recipe.signals)
                if dependencies(request.recipe.signals, place)
            ),
            learned=request.recipe.is_learned,
            signals=tuple(
                SignalCost(one.name, one.kind, one.weight, taken.cpu, taken.clock) for one, taken in signals
            ),
            variants=variants,
            measures=tuple(_tested(name, scored, variants, testing) for name in names),
            permutations=request.permutations,
            seed=request.seed,
            warnings=scored[0].evaluation.warnings,
        )

    def _parts(self) -> Iterator[_Part]:
        signals = self._request.recipe.signals
        yield _Part(Kind.whole)
        places = range(len(signals))
        if self._request.recipe.is_learned:
            yield _Part(Kind.summed)
        if self._request.features:
            for place in places:
                for feature in features_of(signals[place]):
                    yield _Part(Kind.unseen, signals[place].name, feature)
        if len(signals) == 1:
            return
        for place in places:
            yield _Part(Kind.without, signals[place].name, only=tuple(one for one in places if one != place))
        for place in places:
            yield _Part(Kind.alone, signals[place].name, only=(place,))

    def _variant(self, part: _Part) -> _Made:
        """A variant with its figures.

        Where the organisers' scorer asks for more documents than its signals retrieve, those of the others follow.
        """
        try:
            return self._made(part)
        except NotScorable:
            if part.kind is Kind.whole:
                raise
            return self._made(part, whole=True)

    def _made(self, part: _Part, *, whole: bool = False) -> _Made:
        every = self._without_feature(part) if part.feature else self._apart
        taken = self._taken(every, part.only)
        rankings: dict[str, Ranking] = {}
        for apart in every:
            run, fusing = apart.run(TAG, part.only, self._fusion(part), whole=whole)
            taken += fusing
            rankings |= {one.topic_id: one for one in run}
        variant = Variant(part.kind, part.signal, part.feature, taken.cpu, taken.clock, completed=whole)
        found = []
        for split, scoring in self._scoring.items():
            grades = self._validation.grades[split]
            of_split = Run(TAG, tuple(one for topic, one in rankings.items() if topic in grades))
            found.append(scored_rankings(variant.name, of_split, scoring, self._task, grades))
        return variant, _together(found)

    def _fusion(self, part: _Part) -> Fusion | None:
        """What fuses a variant, None for the fusion of the recipe; a learned one is a sum without its model."""
        return self._request.recipe.fusion if part.kind is Kind.summed else None

    def _without_feature(self, part: _Part) -> list[SignalAnswers]:
        """The same answers but for those of a signal whose model is trained without a kind of features."""
        recipe = self._request.recipe
        place = [signal.name for signal in recipe.signals].index(part.signal)
        signals = list(recipe.signals)
        signal = signals[place]
        assert isinstance(signal, Trained)
        signals[place] = replace(signal, without=(*signal.without, part.feature))
        changed = replace(recipe, signals=tuple(signals))
        return [
            SignalAnswers(
                changed, fold.inputs, fold.topics, self._validation.depth, before=apart, again=[place]
            )
            for fold, apart in zip(self._validation.folds, self._apart, strict=True)
        ]

    def _taken(self, every: Sequence[SignalAnswers], only: Sequence[int] = ()) -> WorkTime:
        """What the signals of a variant take, with those that they are told of."""
        signals = self._request.recipe.signals
        counted = set(only or range(len(signals)))
        for place in sorted(counted, reverse=True):
            counted.update(dependencies(signals, place))
        return sum((apart.seconds[place] for apart in every for place in sorted(counted)), WorkTime())


def features_of(signal: Signal) -> Sequence[str]:
    """The kinds of features that the model of a signal can be trained without; none of a signal that has no model."""
    return signal.features if isinstance(signal, Trained) else ()


def _tested(
    name: str, scored: Sequence[ScoredRun], variants: Sequence[Variant], testing: Testing
) -> Measured:
    """All variants under a measure; p-values are corrected among those of one kind."""
    found = measured(name, scored, [], testing)
    pairs: list[Pair] = []
    for kind in Kind:
        places = [place for place, one in enumerate(variants) if one.kind is kind and place]
        if places:
            pairs += measured(name, scored, [(place, 0) for place in places], testing).pairs
    return replace(found, pairs=tuple(pairs))


def _together(found: Sequence[ScoredRun]) -> ScoredRun:
    """The topics of several splits as one; a figure is then the mean over all of them."""
    first = found[0]
    if len(found) == 1:
        return first
    official = replace(first.evaluation.official, values={}, honest={}, per_topic={})
    warnings = dict.fromkeys(chain.from_iterable(one.evaluation.warnings for one in found))
    evaluation = replace(
        first.evaluation, official=official, measures=Measures.none(), warnings=tuple(warnings)
    )
    names = [name for name in first.values if all(name in one.values for one in found)]
    return ScoredRun(
        evaluation,
        {name: dict(chain.from_iterable(one.values[name].items() for one in found)) for name in names},
    )
