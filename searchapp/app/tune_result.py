"""What is asked of a tuning, and what comes of it: the trials with their figures, and how the best one was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from searchapp.app.cross_validation import CrossValidationRequest
from searchapp.app.tune_names import Trial
from searchapp.app.tune_space import Dimension, Search, Values
from searchapp.evaluation.significance import Interval, PairTests

SHIPPED = 0
"""The number of the trial that is the recipe as it was."""


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """What is tuned and how: the parameters `over`, of the recipe with some parameters `set` before.

    With `reported` splits may be tuned on whose figures are reported. `log` is the folder of the log, by default one
    in the home folder that follows from what is asked; with `restart` trials that it has are forgotten.
    """

    validation: CrossValidationRequest
    recipe: str
    over: Sequence[Dimension]
    set: Mapping[str, Any] = field(default_factory=dict)
    search: Search = Search.random
    trials: int | None = None
    workers: int = 1
    reported: bool = False
    log: Path | None = None
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial and what it came to: its mean over `topics`, all of them where it is `complete`.

    `interval` is that of the mean, `tests` compare it with the recipe as it was; the best complete ones have them.
    A trial with an `error` has no figure.
    """

    number: int
    set: Values
    topics: int
    complete: bool
    value: float
    interval: Interval | None = None
    tests: PairTests | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As `tune --json` has it."""
        return {
            "trial": self.number,
            "set": dict(self.set),
            "topics": self.topics,
            "complete": self.complete,
            "value": None if self.error else self.value,
            "interval": None if self.interval is None else asdict(self.interval),
            "tests": None if self.tests is None else self.tests.to_json(),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What a tuning came to: the trials, best first, the complete ones before the others.

    `mappings` are those whose similarities the best one changes, of the `present_mappings`. `chosen` is the figure of
    the choice: each topic by the trial that is best on the other folds; None with one fold.
    """

    request: TuneRequest
    measure: str
    folds: int
    topics: int
    trials: tuple[Tried, ...]
    chosen: float | None
    reported: tuple[str, ...]
    data_digests: Mapping[str, str]
    log: Path
    best: Trial
    mappings: Mapping[str, Mapping[str, Any]]
    present_mappings: Mapping[str, Mapping[str, Any]]

    @property
    def shipped(self) -> Tried:
        """The recipe as it was."""
        return next(one for one in self.trials if one.number == SHIPPED)

    def provenance(self) -> dict[str, Any]:
        """How the best recipe was found, which its file and the manifests of its runs have."""
        validation, first = self.request.validation, self.trials[0]
        before = self.best.recipe.tuned  # what was learned from a reported split stays learned
        splits = before.get("splits")
        found: dict[str, Any] = {
            "splits": list(
                dict.fromkeys([*(splits if isinstance(splits, list) else ()), *validation.splits])
            ),
            "reported": bool(self.reported or before.get("reported")),
            "measure": self.measure,
            "value": first.value,
            "before": self.shipped.value,
            "search": self.request.search.value,
            "trials": len(self.trials) - 1,
            "folds": self.folds,
            "seed": validation.seed,
            "topics": self.topics,
            "data_digests": dict(self.data_digests),
        }
        if first.interval is not None:
            found["interval"] = [first.interval.low, first.interval.high]
        return found

    def to_json(self) -> dict[str, Any]:
        """What `tune --json` prints."""
        validation = self.request.validation
        return {
            "task": validation.task.name,
            "recipe": self.request.recipe,
            "over": [one.to_json() for one in self.request.over],
            **self.provenance(),
            "chosen_on_other_folds": self.chosen,
            "best": self.trials[0].to_json(),
            "shipped": self.shipped.to_json(),
            "trials": [one.to_json() for one in self.trials],
            "log": str(self.log),
        }
