"""What an ablation comes to: a recipe without each of its parts, each signal alone, what each part gains and costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from searchapp.app.comparison import Measured, Pair


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
    signals: tuple[SignalCost, ...]
    variants: tuple[Variant, ...]
    measures: tuple[Measured, ...]
    permutations: int
    seed: int
    told: tuple[str, ...] = ()
    learned: bool = False
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
            "task": self.task,
            "splits": list(self.splits),
            "recipe": dict(self.recipe),
            "depth": self.depth,
            "topics": self.topics,
            "folds": self.folds,
            "told": list(self.told),
            "learned": self.learned,
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
                            "tests": None if pair is None else pair.tests.to_json(),
                            "corrected": {}
                            if pair is None
                            else {test: asdict(held) for test, held in pair.corrected.items()},
                        }
                        for variant, figure, pair in self.rows(measured)
                    ],
                }
                for measured in self.measures
            ],
            "permutations": self.permutations,
            "seed": self.seed,
            "warnings": list(self.warnings),
        }
