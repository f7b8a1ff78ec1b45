"""Tune the parameters of a recipe, and k1 and b of its mappings, by cross-validation; write the best recipe.

Every trial is the recipe with other values, ranked for the same topics in the same folds. Each finished trial
is appended to a log, from which an interrupted tuning continues. The result depends on the request alone, not
on the number of processes or interruptions. The first line of the log describes the tuning, each other line a
trial on some topics; each ends with the SHA-256 of what precedes it. A last line without its digest was being
written at a crash and is dropped; any other mismatch is an error.

The best of many trials is chosen on the topics that it is scored on, so the choice itself is validated too:
for each fold the trial counts that is best on the others (`TuneResult.chosen`).

    S. Varma, R. Simon, Bias in error estimation when using cross-validation for model selection, BMC Bioinformatics 7,
        2006 (why, and the nested validation)
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import searchapp
from searchapp.app.experiments.cross_validation import (
    CrossValidation,
    CrossValidationRequest,
    SimilarityNumbers,
    is_training,
    training_splits,
)
from searchapp.app.experiments.tuning_space import Dimension, Rung, Search, Values, of_kinds, proposed, rungs
from searchapp.config.settings import Settings
from searchapp.errors import DataError, QueryRefused, SearchappError, UsageError
from searchapp.evaluation.significance import (
    SEED,
    Interval,
    PairTests,
    bootstrap_interval,
    mean,
    pair_tests,
    paired,
)
from searchapp.files import (
    STDOUT,
    atomic_file,
    data_digests,
    digest_json,
    exclusive_folder,
    parse_json,
    reason,
    require_folder,
    require_place,
    sync_folder,
)
from searchapp.formats.toml_files import assignments, inline
from searchapp.lucene.index.index_settings import NUMBERS, Similarities, similarities, with_similarities
from searchapp.processes import map_in_processes
from searchapp.progress import Progress
from searchapp.ranking import recipes
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.templates import WHOLE
from searchapp.tasks.base import Task, TaskInfo
from searchapp.text import counted, suggestion, visible_line

MAPPING, EXAMPLES = "mapping", "examples"


@dataclass(frozen=True, slots=True)
class Trial:
    """A recipe and the similarities of the indexes, with the values of a trial."""

    recipe: Recipe
    scoring: SimilarityNumbers


class TunableNames:
    """What can be tuned of a recipe of a task, some of whose parameters were set before."""

    def __init__(self, task: Task, recipe: str, overrides: Mapping[str, Any]) -> None:
        self._task = task
        self._book = task.recipe_book()
        self._overrides = dict(overrides)
        self.recipe = recipes.load(self._book, recipe, overrides)
        self._settable = {one.name: one for one in recipes.settable(self._book, self.recipe)}
        documents, examples = task.index_mapping(), task.examples_index_mapping()
        self._alike = examples is None or examples == documents
        self.mappings = {MAPPING: documents} | (
            {} if examples is None or self._alike else {EXAMPLES: examples}
        )
        self._similarities = {part: similarities(mapping) for part, mapping in self.mappings.items()}

    def usual(self, name: str) -> str:
        """The name under which a parameter is listed, of which it has several."""
        full = {one.full: one.name for one in self._settable.values()}
        similarity = f"{MAPPING}.{name}" if name in NUMBERS and name not in self._settable else name
        return full.get(similarity, similarity)

    def whole(self, name: str) -> bool:
        """Whether a parameter takes whole numbers."""
        return name in self._settable and self._settable[name].kind == WHOLE

    def trial(self, values: Mapping[str, Any]) -> Trial:
        """A recipe with these values.

        Raises:
            UsageError: there is no such parameter, or a value is not one that it can have.
        """
        of_recipe: dict[str, Any] = {}
        of_parts: dict[str, dict[str, dict[str, float]]] = {part: {} for part in self.mappings}
        for name, value in values.items():
            if name in self._settable:
                of_recipe[name] = value
                continue
            part, of_similarities, key = self._place(name)
            number = _number(name, key, value)
            for one in of_similarities:
                of_parts[part].setdefault(one, {})[key] = number
        recipe = recipes.load(self._book, self.recipe.name, {**self._overrides, **of_recipe})
        return Trial(recipe, self._scoring(of_parts))

    def mappings_of(self, scoring: SimilarityNumbers) -> dict[str, dict[str, Any]]:
        """The mappings with these similarities, of those that differ."""
        numbers: dict[str, Similarities] = {MAPPING: scoring.documents}
        if not self._alike:
            numbers[EXAMPLES] = scoring.examples
        return {
            part: with_similarities(self.mappings[part], found) for part, found in numbers.items() if found
        }

    def _scoring(self, of_parts: Mapping[str, Similarities]) -> SimilarityNumbers:
        documents = of_parts[MAPPING]
        return SimilarityNumbers(documents, documents if self._alike else of_parts[EXAMPLES])

    def _place(self, name: str) -> tuple[str, list[str], str]:
        """Of which mapping and which of its similarities a name is a number, and of which number."""
        part, *middle, key = name.split(".") if "." in name else (MAPPING, name)
        known = self._similarities.get(part, {})
        if key in NUMBERS and known and len(middle) <= 1 and (not middle or middle[0] in known):
            return part, middle or list(known), key
        there = [*self._settable, *self._listed()]
        raise UsageError(
            f"{self._task.reference} with the recipe {self.recipe.name} has no parameter "
            f"{name!r}{suggestion(name, there)} to tune: it has {', '.join(there)}"
        )

    def _listed(self) -> list[str]:
        """The names of numbers of similarities."""
        of_all = [f"{part}.{key}" for part, known in self._similarities.items() if known for key in NUMBERS]
        of_one = [
            f"{part}.{one}.{key}"
            for part, known in self._similarities.items()
            for one in known
            for key in NUMBERS
        ]
        return [*of_all, *of_one]


def _number(name: str, key: str, value: object) -> float:
    right = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if not right or not 0 <= float(value) <= (1 if key == "b" else float("inf")):  # type: ignore[arg-type]
        kind = "a number from 0 to 1" if key == "b" else "a number that is not negative"
        raise UsageError(f"{name} must be {kind}, not {value!r}")
    return float(value)  # type: ignore[arg-type]


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

    trial: int
    set: Values
    topics: int
    complete: bool
    value: float
    interval: Interval | None = None
    tests: PairTests | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As `tune --json` has it."""
        return {**asdict(self), "value": None if self.error else self.value}


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What a tuning came to: the trials, best first, the complete ones before the others.

    `mappings` are those whose similarities the best one changes, of the `present_mappings`. `chosen` is the figure of
    the choice: each topic by the trial that is best on the other folds; None with one fold. `warnings` are sentences
    about the recipe as it was and the best one.
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
    warnings: tuple[str, ...]

    @property
    def shipped(self) -> Tried:
        """The recipe as it was."""
        return next(one for one in self.trials if one.trial == SHIPPED)

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


TRIALS_FILE = "trials.jsonl"
TRIALS_FORMAT = 1

BUSY = "process {process} is at this tuning in %s: wait until it is done"


@dataclass(frozen=True, slots=True)
class Done:
    """What a trial came to on some topics: their values by their ids or, where it failed, why."""

    trial: int
    rung: int
    values: Mapping[str, float]
    error: str | None = None


class TuneLog:
    """The log in a folder, which one process has for itself; `about` says what is tuned and how.

    Raises:
        DataError: there is a log of something else, or it is damaged.
        SearchappError: another process is at it, or it can't be written.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.path = folder / TRIALS_FILE
        self.done: dict[tuple[int, int], Done] = {}
        try:
            self._file = self.path.open("a+b", buffering=0)
        except OSError as error:
            raise SearchappError(f"{self.path} can't be written: {reason(error)}") from error
        try:
            self._begin({"format": TRIALS_FORMAT, **about})
        except BaseException:
            self.close()
            raise

    def _begin(self, head: Mapping[str, Any]) -> None:
        """Read what is done, or write what is tuned into a new file."""
        try:
            held = self._whole_lines()
        except OSError as error:
            raise SearchappError(f"{self.path} can't be read: {reason(error)}") from error
        if not held:
            self._append(head)
            with suppress(OSError):
                sync_folder(self.path.parent)
            return
        if held[0] != parse_json(json.dumps(head)):
            raise DataError(
                f"{self.path} is the log of another tuning, or of the same with other data: name another folder with "
                "--log, or begin anew with --restart"
            )
        for line in held[1:]:
            one = Done(line["trial"], line["rung"], line["values"], line.get("error"))
            self.done[one.trial, one.rung] = one

    def append(self, done: Done) -> None:
        """Keep what a trial came to; it is on the disk when this returns.

        Raises:
            SearchappError: it can't be; what was there before is still there.
        """
        line: dict[str, Any] = {"trial": done.trial, "rung": done.rung, "values": dict(done.values)}
        self._append(line if done.error is None else {**line, "error": done.error})
        self.done[done.trial, done.rung] = done

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=True).encode()
        left = memoryview(text + b" " + hashlib.sha256(text).hexdigest().encode() + b"\n")
        end = self._file.seek(0, os.SEEK_END)
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(end)
            raise SearchappError(
                f"{self.path} could not be written: {reason(error)}; the same command goes on from the trials before"
            ) from error

    def _whole_lines(self) -> list[Any]:
        """What stands in the file; a last line that was not written whole is removed."""
        self._file.seek(0)
        lines = self._file.read().split(b"\n")
        torn = lines.pop()
        found = []
        for number, line in enumerate(lines, 1):
            text, _, digest = line.rpartition(b" ")
            if hashlib.sha256(text).hexdigest().encode() != digest:
                if number == len(lines) and not torn:
                    torn = line + b"\n"
                    break
                raise DataError(
                    f"{self.path}: line {number} was changed since it was written: begin anew with --restart"
                )
            found.append(parse_json(text.decode()))
        if torn:
            self._file.truncate(self._file.seek(0, os.SEEK_END) - len(torn))
        return found


@contextmanager
def open_log(folder: Path, about: Mapping[str, Any], *, restart: bool = False) -> Iterator[TuneLog]:
    """The log in a folder, for this process alone; with `restart` what is there is forgotten."""
    with exclusive_folder(folder, BUSY % folder):
        if restart:
            try:
                (folder / TRIALS_FILE).unlink(missing_ok=True)
            except OSError as error:
                raise SearchappError(f"{folder / TRIALS_FILE} can't be removed: {reason(error)}") from error
        log = TuneLog(folder, about)
        try:
            yield log
        finally:
            log.close()


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
    names = TunableNames(task, request.recipe, request.set)
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
        with open_log(folder, about, restart=request.restart) as log:
            tuning.carry_out(log, progress)
            with progress.stage("testing"):
                return tuning.result(log, reported)


class _Tuning:
    """A tuning at work: `plan` has the values of each trial by its number, the first those of the recipe as it was."""

    def __init__(
        self,
        request: TuneRequest,
        over: Sequence[Dimension],
        names: TunableNames,
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
            "depth": self._validation.depth,
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
                only = None if len(self._rungs) == 1 else frozenset(new)
                work = partial(self.tried, rung=place, only=only)
                # In their order, whoever is done first: the log is the same for any number of processes.
                for done in map_in_processes(work, waiting, self._request.workers, worth_it=2):
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
            key=lambda one: (one.error is not None, not one.complete, -one.topics, -one.value, one.trial)
        )
        tested = tuple(
            self._tested(one, complete[one.trial], shipped)
            if one.trial == SHIPPED or (place < TESTED and one.complete)
            else one
            for place, one in enumerate(tried)
        )
        request = self._request
        best = self._names.trial(self._plan[tested[0].trial])
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
            warnings=tuple(
                dict.fromkeys(
                    warning
                    for recipe in (self._names.recipe, best.recipe)
                    for warning in recipe.raised(self._validation.depth)
                )
            ),
        )

    def _tested(self, one: Tried, values: Mapping[str, float], shipped: Mapping[str, float]) -> Tried:
        tests = None
        if one.trial != SHIPPED:
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


NAME = "tuned"
"""What the recipe is called."""


def require_places(out: Path, *, overwrite: bool) -> None:
    """Make sure, before anything is tuned, that the file can be written.

    Raises:
        UsageError: it exists, or its folder does not, or it is no TOML file's name.
    """
    if out.suffix.lower() != ".toml" and out != STDOUT:
        raise UsageError(f"{out}: the name of a file with a recipe must end in .toml")
    require_place(out, replace=overwrite)


def write_recipe(result: TuneResult, out: Path, *, overwrite: bool) -> list[Path]:
    """Write the best recipe of a tuning, and the mappings that go with it; returns the files.

    Raises:
        SearchappError: a file can't be written.
    """
    info = result.request.validation.task.info
    mappings = dict(result.mappings)
    if info.variant is not None and ".json" in (info.mapping + str(info.examples_mapping)):
        mappings = {**result.present_mappings, **mappings}  # what it varies, this one has to vary too
    written = []
    names = {}
    if mappings:
        require_folder(out)
    for part, mapping in mappings.items():
        path = out.with_name(f"{out.stem}.{part}.json")
        names["mapping" if part == "mapping" else "examples_mapping"] = path.name
        with atomic_file(path, replace=True) as file:
            file.write((json.dumps(mapping, indent=2, ensure_ascii=False) + "\n").encode())
        written.append(path)
    with atomic_file(out, replace=overwrite) as file:
        file.write(recipe_text(result, out, names).encode("utf-8", "backslashreplace"))
    return [out, *written]


def recipe_text(result: TuneResult, out: Path, mappings: Mapping[str, str]) -> str:
    """The file with the recipe; `mappings` are the names of the files beside it."""
    return "\n".join(_lines(result, out, mappings)) + "\n"


def _lines(result: TuneResult, out: Path, mappings: Mapping[str, str]) -> Iterator[str]:
    request, validation = result.request, result.request.validation
    info = validation.task.info
    yield from (f"# {visible_line(line)}".rstrip() for line in _comments(result, out, mappings))
    yield ""
    yield f"extends = {inline(_extended(info, out))}"
    yield f"recipe = {inline(NAME)}"
    yield from (f"{key} = {inline(name)}" for key, name in mappings.items())
    yield ""
    yield f"[recipes.{NAME}]"
    written = dict(result.best.recipe.written)
    written["about"] = f"{request.recipe}, tuned on {', '.join(validation.splits)}."
    written.pop("tuned", None)
    signals = [_in_order(_with_place(info, out, signal)) for signal in written.pop("signals")]
    if len(signals) == 1:
        written.pop("fusion", None)
    written = {key: value for key, value in _with_place(info, out, written).items() if value != {}}
    yield from assignments(written)
    yield "signals = ["
    yield from (f"  {inline(signal)}," for signal in signals)
    yield "]"
    yield ""
    yield f"[recipes.{NAME}.tuned]"
    yield from assignments(result.provenance())


def _comments(result: TuneResult, out: Path, mappings: Mapping[str, str]) -> Iterator[str]:
    """How the recipe was found, and what to do with it."""
    request, first, shipped = result.request, result.trials[0], result.shipped
    validation = request.validation
    name = "FILE" if out == STDOUT else out.name
    yield f"The recipe {validation.task.name}/{request.recipe}, tuned by `searchapp tune`: rank with"
    yield ""
    if mappings:
        yield f"    searchapp index {name}"
    yield f"    searchapp rank {name} --split SPLIT --recipe {NAME} --out DIR"
    yield ""
    yield (
        f"{counted(len(result.trials) - 1, 'trial')}, {request.search.value}, seed {validation.seed}; "
        f"{counted(result.folds, 'fold')} of {counted(result.topics, 'topic')} of {', '.join(validation.splits)}."
    )
    if result.reported:
        named = ", ".join(result.reported)
        yield f"{named} is what figures are reported for: those of this recipe there are too good."
    yield f"{result.measure} {first.value:.6f}{_interval(first.interval)}, trial {first.trial}."
    if first.trial == shipped.trial:
        yield "No trial was better than the recipe as it was."
    else:
        yield f"The recipe as it was: {shipped.value:.6f}{_interval(shipped.interval)}."
        if first.tests is not None:
            tests = first.tests
            yield (
                f"Difference {tests.mean:+z.6f}{_interval(tests.interval)}; randomisation test p = "
                f"{tests.randomisation.p:.4g}, t-test p = {tests.t_test.p:.4g}."
            )
    if result.chosen is not None:
        yield f"Each topic by the trial that is best on the other folds: {result.chosen:.6f}."


def _in_order(signal: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a signal, its kind and name first; the name is left out where it is the kind."""
    kind, name = signal["signal"], signal.get("name")
    first = {"signal": kind} | ({} if name in (kind, None) else {"name": name})
    return first | {key: value for key, value in signal.items() if key not in ("signal", "name")}


def _interval(interval: Any) -> str:
    return "" if interval is None else f" ({interval.low:.6f} to {interval.high:.6f})"


def _extended(info: TaskInfo, out: Path) -> str:
    """What the file extends: the task, or the file of a user's own by its path from there."""
    return info.name if info.file is None else _from(out, info.file)


def _with_place(info: TaskInfo, out: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    """A table whose template is found from the new file, if it lies beside the variant that was tuned."""
    template = table.get("template")
    if info.variant is None or not isinstance(template, str) or not template.endswith(".json"):
        return dict(table)
    file = info.variant.parent / template
    return {**table, "template": _from(out, file)} if file.exists() else dict(table)


def _from(out: Path, file: Path) -> str:
    return os.path.relpath(file.resolve(), out.resolve().parent)
