"""What learning from judgments comes to: the score of unjudged topics at each number of judged ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from searchapp.evaluation.significance import PairTests, mean


@dataclass(frozen=True, slots=True)
class LearningPoint:
    """So many judged topics, with so many `judgments` on average.

    `values` has the score of each sample of so many topics. `gain` tests the scores of topics, each the mean over the
    samples, against those of the first point: None for the first point itself.
    """

    judged: int
    judgments: float
    values: tuple[float, ...]
    gain: PairTests | None = None

    @property
    def score(self) -> float:
        """The mean over the samples."""
        return mean(self.values)


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """The score of `unjudged` topics by the number of judged ones, of which there can be `can_be_judged`.

    `solved` topics are so from the beginning. `by_people` says that the judgments are those of people; otherwise gold
    stands in for them.
    """

    task: str
    split: str
    recipe: Mapping[str, Any]
    depth: int
    measure: str
    is_official: bool
    unjudged: int
    can_be_judged: int
    solved: int
    by_people: bool
    repetitions: int
    seed: int
    points: tuple[LearningPoint, ...]

    def to_json(self) -> dict[str, Any]:
        """What `learning-curve --json` prints."""
        return {
            "task": self.task,
            "split": self.split,
            "recipe": dict(self.recipe),
            "depth": self.depth,
            "measure": self.measure,
            "official": self.is_official,
            "unjudged": self.unjudged,
            "can_be_judged": self.can_be_judged,
            "solved": self.solved,
            "judgments": "people" if self.by_people else "gold",
            "repetitions": self.repetitions,
            "seed": self.seed,
            "points": [
                {
                    "judged": one.judged,
                    "judgments": one.judgments,
                    "score": one.score,
                    "values": list(one.values),
                    "gain": None if one.gain is None else one.gain.to_json(),
                }
                for one in self.points
            ],
        }
