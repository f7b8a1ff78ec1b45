"""Tunes a recipe: tries values of its parameters, and of the similarities of its mappings, by cross-validation.

Every trial is the recipe with other values, ranked for the same topics in the same folds (`app.cross_validation`), and
each that is done is appended to a log, from which a tuning goes on that was ended. What it comes to depends on what is
asked alone: not on how many processes are at work, nor on how often it was ended.

The best of many trials looks better than it is, for it was chosen on the topics that it is scored on. So the choice
itself is validated too: for each fold the trial is taken that is best on the others (`tune_result.TuneResult.chosen`).

    S. Varma, R. Simon, Bias in error estimation when using cross-validation for model selection, BMC Bioinformatics 7,
        2006 (why, and the nested validation)
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import searchapp
from searchapp.app import tune_log
from searchapp.app.cross_validation import CrossValidation, is_training, training_splits
from searchapp.app.tune_log import Done, TuneLog
from searchapp.app.tune_names import Names
from searchapp.app.tune_result import SHIPPED, Tried, TuneRequest, TuneResult
from searchapp.app.tune_space import Dimension, Rung, Search, Values, of_kinds, proposed, rungs
from searchapp.digests import data_digests, digest_json
from searchapp.errors import DataError, QueryRefused, UsageError
from searchapp.evaluation.significance import (
    SEED,
    bootstrap_interval,
    mean,
    pair_tests,
    paired,
)
from searchapp.processes import spread
from searchapp.progress import Progress
from searchapp.settings import Settings

FOLDER = "tunings"
"""Where logs are kept in the home folder, each in a folder of its own."""

PERMUTATIONS = 10_000
"""Sign vectors of each randomisation test."""

TESTED = 10
"""How many of the best trials have intervals and tests."""


def tune(request: TuneRequest, settings: Settings, progress: Progress) -> TuneResult:
    """Carry a tuning out, or go on with it.

    Raises:
        UsageError: a parameter or a value is not one that there is, or a split is reported, and `reported` is not set.
        SearchappError: another process is at the same tuning, or its log can't be written.
        DataError: the log is of another tuning, or damaged.
        as `CrossValidation` does.
    """
    validation, task = request.validation, request.validation.task
    reported = tuple(one for one in validation.splits if not is_training(validation.collection, one))
    if reported and not request.reported:
        training = training_splits(task, validation.collection)
        choice = f"tune on {', '.join(training)}" if training else "tune on solved topics that are not"
        raise UsageError(
            f"{', '.join(reported)} is what figures are reported for, which would be too good afterwards: {choice}, or "
            "take that into account with --on-reported, which runs and tables will say"
        )
    names = Names(task, request.recipe, request.set)
    usual = [replace(one, name=names.usual(one.name)) for one in request.over]
    over = of_kinds(usual, {one.name: names.whole(one.name) for one in usual})
    for dimension in over:
        for value in dimension.bounds:
            names.trial({dimension.name: value})
    plan: list[Values] = [{}, *proposed(over, request.search, request.trials, validation.seed)]
    if request.search is Search.halving and task.official.scorer.files_make_one:
        raise UsageError(
            f"halving tries on some topics first, and the scorer of {task.reference} takes all or none: search with "
            "--search random or --search grid"
        )
    with CrossValidation(validation, settings, progress) as opened:
        tuning = _Tuning(request, over, names, plan, opened)
        about = tuning.about()
        folder = request.log or settings.home / FOLDER / f"{task.name}-{digest_json(about)[:16]}"
        with tune_log.opened(folder, about, restart=request.restart) as log:
            tuning.carry_out(log, progress)
            with progress.stage("testing"):
                return tuning.result(log, reported)


class _Tuning:
    """A tuning at work: `plan` has the values of each trial by its number, the first those of the recipe as it was."""

    def __init__(
        self,
        request: TuneRequest,
        over: Sequence[Dimension],
        names: Names,
        plan: Sequence[Values],
        validation: CrossValidation,
    ) -> None:
        self._request = request
        self._over = over
        self._names = names
        self._plan = plan
        self._validation = validation
        topics = validation.topics
        self._rungs = [Rung(len(plan) - 1, len(topics))]
        if request.search is Search.halving:
            self._rungs = rungs(len(plan) - 1, len(topics))
        # Which topics a rung has follows from their ids: those of a rung are among those of the next.
        seed = request.validation.seed
        self._shuffled = sorted(topics, key=lambda id_: hashlib.sha256(f"{seed}/{id_}".encode()).digest())

    def about(self) -> dict[str, Any]:
        """What the trials depend on."""
        request, validation = self._request, self._request.validation
        task, collection = validation.task, validation.collection
        return {
            "searchapp": searchapp.__version__,
            "task": task.name,
            "splits": list(validation.splits),
            "recipe": self._names.recipe.manifest(),
            "over": [one.to_json() for one in self._over],
            "search": request.search.value,
            "plan": digest_json(list(self._plan)),
            "seed": validation.seed,
            "folds": len(self._validation.sizes),
            "measure": self._validation.measure,
            "depth": validation.depth or task.info.default_depth,
            "lenient": validation.lenient,
            "options": {key: str(value) for key, value in asdict(validation.options).items() if value},
            "mappings": {part: digest_json(mapping) for part, mapping in self._names.mappings.items()},
            "data_digests": data_digests(collection.folder, self._validation.files),
        }

    # Trials

    def carry_out(self, log: TuneLog, progress: Progress) -> None:
        """Do what is not done yet."""
        total = 1 + sum(rung.trials for rung in self._rungs)
        self._validation.prepare([self._names.trial(values).recipe for values in self._plan[:2]])
        with progress.stage("trials", total) as advance:
            # The first one here: what it searches is known to processes that are forked later.
            if (SHIPPED, 0) not in log.done:
                values = self._values(SHIPPED, None)
                if not values:
                    raise DataError(
                        "no topic has a value under the measure: choose another one with --measure"
                    )
                log.append(Done(SHIPPED, 0, values))
            advance(1)
            alive = list(range(1, len(self._plan)))
            before: set[str] = set()
            for place, rung in enumerate(self._rungs):
                alive = alive[: rung.trials]
                topics = set(self._shuffled[: rung.topics])
                new = topics - before
                waiting = [number for number in alive if (number, place) not in log.done]
                advance(len(alive) - len(waiting))
                work = _Work(self, None if len(self._rungs) == 1 else frozenset(new))
                # In their order, whoever is done first: the log is the same for any number of processes.
                for done in spread(
                    work, [(number, place) for number in waiting], self._request.workers, worth_it=2
                ):
                    log.append(done)
                    advance(1)
                before = topics
                alive = [number for number in alive if log.done[number, place].error is None]
                alive.sort(key=lambda number: (-mean(list(self._known(log, number).values())), number))

    def tried(self, number: int, rung: int, only: frozenset[str] | None) -> Done:
        """What a trial comes to on some topics; one that can't be ranked has failed, and the others go on."""
        try:
            return Done(number, rung, self._values(number, only))
        except (DataError, UsageError, QueryRefused) as error:
            return Done(number, rung, {}, str(error))

    def _values(self, number: int, only: frozenset[str] | None) -> Mapping[str, float]:
        trial = self._names.trial(self._plan[number])
        return self._validation.scores(trial.recipe, only, trial.scoring)

    def _known(self, log: TuneLog, number: int) -> dict[str, float]:
        """The values that a trial has so far, in the order of the topics."""
        found: dict[str, float] = {}
        for place in range(len(self._rungs)):
            if (number, place) in log.done:
                found |= log.done[number, place].values
        return {topic: found[topic] for topic in self._validation.topics if topic in found}

    # What came of it

    def result(self, log: TuneLog, reported: tuple[str, ...]) -> TuneResult:
        """The trials, best first, the best of them with intervals and tests."""
        last = len(self._rungs) - 1
        shipped = self._known(log, SHIPPED)
        values = {number: self._known(log, number) for number in range(len(self._plan))}
        complete = {
            number: found
            for number, found in values.items()
            if found
            and (number == SHIPPED or ((number, last) in log.done and not log.done[number, last].error))
        }
        tried = [
            Tried(
                number,
                dict(self._plan[number]),
                len(found),
                number in complete,
                mean(list(found.values())),
                error=next(
                    (one.error for one in log.done.values() if one.trial == number and one.error), None
                ),
            )
            for number, found in values.items()
        ]
        # Equal figures: the recipe as it was, then what was tried first.
        tried.sort(
            key=lambda one: (one.error is not None, not one.complete, -one.topics, -one.value, one.number)
        )
        tested = tuple(
            self._tested(one, complete[one.number], shipped)
            if one.number == SHIPPED or (place < TESTED and one.complete)
            else one
            for place, one in enumerate(tried)
        )
        request = self._request
        best = self._names.trial(self._plan[tested[0].number])
        return TuneResult(
            request=replace(request, over=self._over),
            measure=self._validation.measure,
            folds=len(self._validation.sizes),
            topics=len(shipped),
            trials=tested,
            chosen=self._chosen(complete),
            reported=reported,
            data_digests=data_digests(request.validation.collection.folder, self._validation.files),
            log=log.path,
            best=best,
            mappings=self._names.mappings_of(best.scoring),
            present_mappings=self._names.mappings,
        )

    def _tested(self, one: Tried, values: Mapping[str, float], shipped: Mapping[str, float]) -> Tried:
        tests = None
        if one.number != SHIPPED:
            tests = pair_tests(paired(shipped, values), permutations=PERMUTATIONS, seed=SEED)
        return replace(one, interval=bootstrap_interval(list(values.values())), tests=tests)

    def _chosen(self, complete: Mapping[int, Mapping[str, float]]) -> float | None:
        """The mean over topics, each under the trial that is best on the other folds."""
        count = len(self._validation.sizes)
        if count < 2:
            return None
        fold_of = self._validation.fold_of
        found: list[float] = []
        for fold in range(count):
            means = {
                number: mean([value for topic, value in values.items() if fold_of(topic) != fold])
                for number, values in complete.items()
            }
            best = min(means, key=lambda number: (-means[number], number))
            found += [value for topic, value in complete[best].items() if fold_of(topic) == fold]
        return mean(found)


@dataclass(frozen=True, slots=True)
class _Work:
    """What a process does with the number of a trial and that of a rung."""

    tuning: _Tuning
    only: frozenset[str] | None

    def __call__(self, item: tuple[int, int]) -> Done:
        number, rung = item
        return self.tuning.tried(number, rung, self.only)
