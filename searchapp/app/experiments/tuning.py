"""Tune the parameters of a recipe, and k1 and b of its mappings, by cross-validation; write the best recipe.

An interrupted tuning continues from the log of finished trials. The choice of the best trial is validated too: each
fold counts with the trial that is best on the other folds (`TuneResult.chosen`).

    S. Varma, R. Simon, Bias in error estimation when using cross-validation for model selection, BMC Bioinformatics 7,
        2006 (nested validation)
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, field, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import searchapp
from searchapp.app.experiments.cross_validation import (
    CrossValidation,
    CrossValidationRequest,
    SimilarityNumbers,
    TopicValues,
    is_training,
    training_splits,
)
from searchapp.app.experiments.tuning_space import (
    Dimension,
    ParameterValues,
    Rung,
    SearchMethod,
    propose_values,
    rungs,
    with_kinds,
)
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
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.index_settings import NUMBERS, Similarities, similarities, with_similarities
from searchapp.processes import map_in_processes
from searchapp.progress import Progress
from searchapp.ranking import recipes
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.templates import WHOLE
from searchapp.tasks.base import Task, TaskInfo
from searchapp.text import counted, key_suggestion, visible_line

MAPPING, TRAINING = "mapping", "training"

SHIPPED = 0  # the number of the trial that is the unchanged recipe


@dataclass(frozen=True, slots=True)
class Trial:
    """A recipe and the similarities of the indexes, with the values of a trial."""

    recipe: Recipe
    scoring: SimilarityNumbers


class TunableParameters:
    """The parameters of a recipe of a task, and the numbers of its similarities."""

    def __init__(self, task: Task, recipe: str, overrides: Mapping[str, Any]) -> None:
        self._task = task
        self._book = task.recipe_book()
        self._overrides = dict(overrides)
        self.recipe = recipes.load(self._book, recipe, overrides)
        self._settable = {
            parameter.name: parameter for parameter in recipes.settable(self._book, self.recipe)
        }
        documents, examples = task.index_mapping(), task.examples_index_mapping()
        self._one_mapping = examples is None or examples == documents
        self.mappings = {MAPPING: documents} | (
            {} if examples is None or self._one_mapping else {TRAINING: examples}
        )
        self._similarities = {part: similarities(mapping) for part, mapping in self.mappings.items()}

    def usual_name(self, name: str) -> str:
        full = {parameter.full: parameter.name for parameter in self._settable.values()}
        similarity = f"{MAPPING}.{name}" if name in NUMBERS and name not in self._settable else name
        return full.get(similarity, similarity)

    def is_whole(self, name: str) -> bool:
        return name in self._settable and self._settable[name].kind == WHOLE

    def trial(self, values: Mapping[str, Any]) -> Trial:
        """Return a recipe with these values.

        Raises:
            UsageError: a parameter is unknown, or has an invalid value.
        """
        of_recipe: dict[str, Any] = {}
        numbers: dict[str, dict[str, dict[str, float]]] = {part: {} for part in self.mappings}
        for name, value in values.items():
            if name in self._settable:
                of_recipe[name] = value
                continue
            part, names, key = self._similarity(name)
            for similarity in names:
                numbers[part].setdefault(similarity, {})[key] = _number(name, key, value)
        recipe = recipes.load(self._book, self.recipe.name, {**self._overrides, **of_recipe})
        return Trial(recipe, SimilarityNumbers(numbers[MAPPING], numbers.get(TRAINING, numbers[MAPPING])))

    def mappings_of(self, scoring: SimilarityNumbers) -> dict[str, dict[str, Any]]:
        numbers: dict[str, Similarities] = {MAPPING: scoring.documents, TRAINING: scoring.examples}
        return {
            part: with_similarities(mapping, numbers[part])
            for part, mapping in self.mappings.items()
            if numbers[part]
        }

    def _similarity(self, name: str) -> tuple[str, list[str], str]:
        part, *middle, key = name.split(".") if "." in name else (MAPPING, name)
        known = self._similarities.get(part, {})
        if key in NUMBERS and known and len(middle) <= 1 and (not middle or middle[0] in known):
            return part, middle or list(known), key
        names = list(self._settable)
        names += [f"{part}.{key}" for part, known in self._similarities.items() if known for key in NUMBERS]
        names += [
            f"{part}.{similarity}.{key}"
            for part, known in self._similarities.items()
            for similarity in known
            for key in NUMBERS
        ]
        raise UsageError(
            f"the recipe {self.recipe.name} of {self._task.reference} has no parameter "
            f"{name!r}{key_suggestion(name, names)}: choose from {', '.join(names)}"
        )


def _number(name: str, key: str, value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if not is_number or not 0 <= float(value) <= (1 if key == "b" else float("inf")):  # type: ignore[arg-type]
        kind = "a number from 0 to 1" if key == "b" else "a number that is not negative"
        raise UsageError(f"{name} must be {kind}, not {value!r}")
    return float(value)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """A recipe and the parameters that are tuned."""

    validation: CrossValidationRequest
    recipe: str
    params: Sequence[Dimension]  # the parameters with their possible values
    set: Mapping[str, Any] = field(default_factory=dict)  # values of parameters that stay the same
    search: SearchMethod = SearchMethod.random
    trials: int | None = None
    workers: int = 1
    reported: bool = False  # whether splits with reported figures may be tuned on
    # The folder of the trial log; by default in the home directory, named by a digest of the request.
    trials_dir: Path | None = None
    restart: bool = False  # whether the trials of an existing log are dropped


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The mean of a trial over `topics`."""

    trial: int
    set: ParameterValues
    topics: int
    complete: bool  # whether these are all topics
    value: float
    interval: Interval | None = None  # of the mean; only the best complete trials have intervals and tests
    tests: PairTests | None = None  # trial − unchanged recipe
    error: str | None = None  # why the trial failed; then there is no value

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "value": None if self.error else self.value}


@dataclass(frozen=True, slots=True)
class TuneResult:
    """The trials of a tuning, complete ones first, best first."""

    request: TuneRequest
    measure: str
    folds: int
    topics: int
    trials: tuple[TrialResult, ...]
    # The mean over topics, each by the trial that is best on the other folds; None with one fold.
    chosen: float | None
    reported: tuple[str, ...]  # the splits whose figures are reported
    data_digests: Mapping[str, str]
    trials_file: Path
    best: Trial
    mappings: Mapping[str, Mapping[str, Any]]  # the mappings whose similarities the best trial changes
    present_mappings: Mapping[str, Mapping[str, Any]]
    warnings: tuple[str, ...]  # warnings of the unchanged recipe and the best one

    @property
    def shipped(self) -> TrialResult:
        return next(result for result in self.trials if result.trial == SHIPPED)

    def provenance(self) -> dict[str, Any]:
        validation, first = self.request.validation, self.trials[0]
        before = self.best.recipe.tuned  # earlier tunings on reported splits stay recorded
        splits = before.get("splits")
        provenance: dict[str, Any] = {
            "splits": list(
                dict.fromkeys([*(splits if isinstance(splits, list) else ()), *validation.splits])
            ),
            "reported": bool(self.reported or before.get("reported")),
            "measure": self.measure,
            "value": first.value,
            "baseline": self.shipped.value,
            "search": self.request.search.value,
            "trials": len(self.trials) - 1,
            "folds": self.folds,
            "seed": validation.seed,
            "topics": self.topics,
            "data_digests": dict(self.data_digests),
        }
        if first.interval is not None:
            provenance["interval"] = [first.interval.low, first.interval.high]
        return provenance

    def to_json(self) -> dict[str, Any]:
        return {
            "task": self.request.validation.task.name,
            "recipe": self.request.recipe,
            "params": [dimension.to_json() for dimension in self.request.params],
            **self.provenance(),
            "cross_validated": self.chosen,
            "best": self.trials[0].to_json(),
            "baseline_trial": self.shipped.to_json(),
            "trials": [result.to_json() for result in self.trials],
            "trials_file": str(self.trials_file),
        }


TRIALS_FILE = "trials.jsonl"
TRIALS_FORMAT = 1

BUSY = "process {process} is running this tuning in %s: wait until it ends"


@dataclass(frozen=True, slots=True)
class TrialValues:
    """The values of topics in a trial at a rung, or the error of the trial."""

    trial: int
    rung: int
    values: TopicValues
    error: str | None = None


class TrialLog:
    """The durable log of a tuning.

    The first line describes the tuning, each other line has the values of a trial; each line ends with its SHA-256. A
    last line without a digest, from a crash, is dropped.

    Raises:
        DataError: the log is of another tuning, or damaged.
        SearchappError: it can't be written.
    """

    def __init__(self, folder: Path, tuning: Mapping[str, Any]) -> None:
        self.path = folder / TRIALS_FILE
        self.done: dict[tuple[int, int], TrialValues] = {}  # finished trials by trial and rung
        try:
            self._file = self.path.open("a+b", buffering=0)
        except OSError as error:
            raise SearchappError(f"{self.path} can't be written: {reason(error)}") from error
        try:
            self._load({"format": TRIALS_FORMAT, **tuning})
        except BaseException:
            self.close()
            raise

    def append(self, done: TrialValues) -> None:
        """Store the values of a trial durably.

        Raises:
            SearchappError: that failed; earlier lines are unchanged.
        """
        line = {"trial": done.trial, "rung": done.rung, "values": dict(done.values)}
        self._write(line if done.error is None else {**line, "error": done.error})
        self.done[done.trial, done.rung] = done

    def close(self) -> None:
        self._file.close()

    def _load(self, head: Mapping[str, Any]) -> None:
        try:
            lines = self._lines()
        except OSError as error:
            raise SearchappError(f"{self.path} can't be read: {reason(error)}") from error
        if not lines:
            self._write(head)
            with suppress(OSError):
                sync_folder(self.path.parent)
            return
        if lines[0] != parse_json(json.dumps(head)):
            raise DataError(
                f"{self.path} is the log of another tuning, or of this tuning with other data: choose "
                "another folder with --trials-dir, or start over with --restart"
            )
        for line in lines[1:]:
            self.done[line["trial"], line["rung"]] = TrialValues(**line)

    def _write(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=True).encode()
        unwritten = memoryview(text + b" " + hashlib.sha256(text).hexdigest().encode() + b"\n")
        end = self._file.seek(0, os.SEEK_END)
        try:
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(end)
            raise SearchappError(
                f"{self.path} could not be written: {reason(error)}; run the same command again to continue "
                "after the stored trials"
            ) from error

    def _lines(self) -> list[Any]:
        """Return the lines of the file without their digests; remove a last line that a crash truncated."""
        self._file.seek(0)
        *lines, torn = self._file.read().split(b"\n")
        values = []
        for number, line in enumerate(lines, 1):
            text, _, digest = line.rpartition(b" ")
            if hashlib.sha256(text).hexdigest().encode() != digest:
                if number == len(lines) and not torn:
                    torn = line + b"\n"
                    break
                raise DataError(
                    f"{self.path}: line {number} was changed after it was written: start over with --restart"
                )
            values.append(parse_json(text.decode()))
        if torn:
            self._file.truncate(self._file.seek(0, os.SEEK_END) - len(torn))
        return values


@contextmanager
def open_log(folder: Path, tuning: Mapping[str, Any], *, restart: bool = False) -> Iterator[TrialLog]:
    """Open the log in a folder exclusively; with `restart` an empty one."""
    with exclusive_folder(folder, BUSY % folder):
        if restart:
            try:
                (folder / TRIALS_FILE).unlink(missing_ok=True)
            except OSError as error:
                raise SearchappError(f"{folder / TRIALS_FILE} can't be removed: {reason(error)}") from error
        log = TrialLog(folder, tuning)
        try:
            yield log
        finally:
            log.close()


FOLDER = "tunings"  # of logs in the home directory

PERMUTATIONS = 10_000  # sign vectors of each randomisation test

TESTED = 10  # how many of the best trials have intervals and tests


def tune(request: TuneRequest, settings: Settings, progress: Progress) -> TuneResult:
    """Run or continue a tuning.

    Raises:
        UsageError: a parameter or a value is invalid, or a split is reported and `reported` is not set.
        SearchappError: another process runs the same tuning, or its log can't be written.
        DataError: the log is of another tuning, or damaged.
        as `CrossValidation` does.
    """
    validation, task = request.validation, request.validation.task
    reported = tuple(split for split in validation.splits if not is_training(validation.collection, split))
    if reported and not request.reported:
        training = training_splits(task, validation.collection)
        choice = f"tune on {', '.join(training)}" if training else "tune on training topics of another split"
        raise UsageError(
            f"results are reported for {', '.join(reported)}, and tuning on it would make them too "
            f"optimistic: {choice}, or use --allow-reported, which runs and tables record"
        )
    parameters = TunableParameters(task, request.recipe, request.set)
    usual = [replace(dimension, name=parameters.usual_name(dimension.name)) for dimension in request.params]
    params = with_kinds(usual, {dimension.name: parameters.is_whole(dimension.name) for dimension in usual})
    for dimension in params:
        for value in dimension.bounds:
            parameters.trial({dimension.name: value})
    plan: list[ParameterValues] = [
        {},
        *propose_values(params, request.search, request.trials, validation.seed),
    ]
    if request.search is SearchMethod.halving and task.official.scorer.files_make_one:
        raise UsageError(
            f"halving scores subsets of the topics, but the official scorer of {task.reference} requires all "
            "topics: use --search random or --search grid"
        )
    with CrossValidation(validation, settings, progress) as opened:
        tuning = _Tuning(replace(request, params=params), parameters, plan, opened)
        inputs = tuning.inputs()
        folder = request.trials_dir or settings.home / FOLDER / f"{task.name}-{digest_json(inputs)[:16]}"
        with open_log(folder, inputs, restart=request.restart) as log:
            tuning.run_trials(log, progress)
            with progress.stage("testing"):
                return tuning.result(log, reported)


class _Tuning:
    """A running tuning; `plan` has the values of each trial by its number."""

    def __init__(
        self,
        request: TuneRequest,
        parameters: TunableParameters,
        plan: Sequence[ParameterValues],
        validation: CrossValidation,
    ) -> None:
        self._request = request
        self._parameters = parameters
        self._plan = plan
        self._validation = validation
        topics = validation.topics
        self._rungs = [Rung(len(plan) - 1, len(topics))]
        if request.search is SearchMethod.halving:
            self._rungs = rungs(len(plan) - 1, len(topics))
        # Ids and seed determine the topics of a rung, which the next rung includes.
        seed = request.validation.seed
        self._shuffled = sorted(topics, key=lambda id_: hashlib.sha256(f"{seed}/{id_}".encode()).digest())

    def inputs(self) -> dict[str, Any]:
        request, validation = self._request, self._request.validation
        return {
            "searchapp": searchapp.__version__,
            "task": validation.task.name,
            "splits": list(validation.splits),
            "recipe": self._parameters.recipe.manifest(),
            "params": [dimension.to_json() for dimension in request.params],
            "search": request.search.value,
            "plan": digest_json(list(self._plan)),
            "seed": validation.seed,
            "folds": len(self._validation.sizes),
            "measure": self._validation.measure,
            "depth": self._validation.depth,
            "lenient": validation.lenient,
            "options": {key: str(value) for key, value in asdict(validation.options).items() if value},
            "mappings": {part: digest_json(mapping) for part, mapping in self._parameters.mappings.items()},
            "data_digests": self._data_digests(),
        }

    def _data_digests(self) -> dict[str, str]:
        return data_digests(self._request.validation.collection.folder, self._validation.files)

    def run_trials(self, log: TrialLog, progress: Progress) -> None:
        self._validation.prepare([self._parameters.trial(values).recipe for values in self._plan[:2]])
        with progress.stage("trials", 1 + sum(rung.trials for rung in self._rungs)) as advance:
            # The first trial runs in this process: those forked later share the hits that it caches.
            if (SHIPPED, 0) not in log.done:
                values = self._values(SHIPPED, None)
                if not values:
                    raise DataError("the measure has no value for any topic: choose another with --measure")
                log.append(TrialValues(SHIPPED, 0, values))
            advance(1)
            alive = list(range(1, len(self._plan)))
            before: set[str] = set()
            for number, rung in enumerate(self._rungs):
                alive = alive[: rung.trials]
                topics = set(self._shuffled[: rung.topics])
                only = None if len(self._rungs) == 1 else frozenset(topics - before)
                before = topics
                waiting = [trial for trial in alive if (trial, number) not in log.done]
                advance(len(alive) - len(waiting))
                work = partial(self._run_trial, rung=number, only=only)
                # `map_in_processes` returns results in order, so that the log is the same for any number of processes.
                for done in map_in_processes(work, waiting, self._request.workers, worth_it=2):
                    log.append(done)
                    advance(1)
                alive = [trial for trial in alive if log.done[trial, number].error is None]
                alive.sort(key=lambda trial: (-mean(list(self._known(log, trial).values())), trial))

    def _run_trial(self, trial: int, rung: int, only: frozenset[str] | None) -> TrialValues:
        try:
            return TrialValues(trial, rung, self._values(trial, only))
        except (DataError, UsageError, QueryRefused) as error:
            return TrialValues(trial, rung, {}, str(error))

    def _values(self, number: int, only: frozenset[str] | None) -> TopicValues:
        trial = self._parameters.trial(self._plan[number])
        return self._validation.scores(trial.recipe, only, trial.scoring)

    def _known(self, log: TrialLog, trial: int) -> dict[str, float]:
        values: dict[str, float] = {}
        for rung in range(len(self._rungs)):
            if (trial, rung) in log.done:
                values |= log.done[trial, rung].values
        return {topic: values[topic] for topic in self._validation.topics if topic in values}

    def result(self, log: TrialLog, reported: tuple[str, ...]) -> TuneResult:
        request, last = self._request, len(self._rungs) - 1
        values = {trial: self._known(log, trial) for trial in range(len(self._plan))}
        errors = {done.trial: done.error for done in log.done.values() if done.error}
        complete = {
            trial: of_trial
            for trial, of_trial in values.items()
            if of_trial and (trial == SHIPPED or ((trial, last) in log.done and trial not in errors))
        }
        results = [
            TrialResult(
                trial,
                dict(self._plan[trial]),
                len(of_trial),
                trial in complete,
                mean(list(of_trial.values())),
                error=errors.get(trial),
            )
            for trial, of_trial in values.items()
        ]
        # Of equal figures the unchanged recipe comes first, then the earlier trial.
        results.sort(
            key=lambda result: (
                result.error is not None,
                not result.complete,
                -result.topics,
                -result.value,
                result.trial,
            )
        )
        for rank, result in enumerate(results):
            if result.trial == SHIPPED or (rank < TESTED and result.complete):
                of_trial, tests = complete[result.trial], None
                if result.trial != SHIPPED:
                    pairs = paired(values[SHIPPED], of_trial)
                    tests = pair_tests(pairs, permutations=PERMUTATIONS, seed=SEED)
                interval = bootstrap_interval(list(of_trial.values()))
                results[rank] = replace(result, interval=interval, tests=tests)
        best = self._parameters.trial(self._plan[results[0].trial])
        warnings = [
            warning
            for recipe in (self._parameters.recipe, best.recipe)
            for warning in recipe.raised(self._validation.depth)
        ]
        return TuneResult(
            request=request,
            measure=self._validation.measure,
            folds=len(self._validation.sizes),
            topics=len(values[SHIPPED]),
            trials=tuple(results),
            chosen=self._chosen(complete),
            reported=reported,
            data_digests=self._data_digests(),
            trials_file=log.path,
            best=best,
            mappings=self._parameters.mappings_of(best.scoring),
            present_mappings=self._parameters.mappings,
            warnings=tuple(dict.fromkeys(warnings)),
        )

    def _chosen(self, complete: Mapping[int, TopicValues]) -> float | None:
        count = len(self._validation.sizes)
        if count < 2:
            return None
        fold_of = self._validation.fold_of
        chosen: list[float] = []
        for fold in range(count):
            means = {
                trial: mean([value for topic, value in values.items() if fold_of(topic) != fold])
                for trial, values in complete.items()
            }
            best = min(means, key=lambda trial: (-means[trial], trial))
            chosen += [value for topic, value in complete[best].items() if fold_of(topic) == fold]
        return mean(chosen)


NAME = "tuned"  # of the written recipe


def require_places(out: Path, *, overwrite: bool) -> None:
    """Check that the file of a recipe can be written.

    Raises:
        UsageError: it exists, its folder does not, or its name does not end in .toml.
    """
    if out.suffix.lower() != ".toml" and out != STDOUT:
        raise UsageError(f"{out}: the name of a recipe file must end in .toml")
    require_place(out, replace=overwrite)


def write_recipe(result: TuneResult, out: Path, *, overwrite: bool) -> list[Path]:
    """Write the best recipe of a tuning and its mappings, and return the files.

    Raises:
        SearchappError: a file can't be written.
    """
    info = result.request.validation.task.info
    mappings = dict(result.mappings)
    if info.variant is not None and ".json" in (info.mapping + str(info.training_mapping)):
        mappings = {**result.present_mappings, **mappings}  # a variant's mappings have to be varied again
    written = []
    names = {}
    if mappings:
        require_folder(out)
    for part, mapping in mappings.items():
        path = out.with_name(f"{out.stem}.{part}.json")
        names["mapping" if part == "mapping" else "training_mapping"] = path.name
        with atomic_file(path, replace=True) as file:
            file.write((json.dumps(mapping, indent=2, ensure_ascii=False) + "\n").encode())
        written.append(path)
    with atomic_file(out, replace=overwrite) as file:
        file.write(
            "".join(f"{line}\n" for line in _lines(result, out, names)).encode("utf-8", "backslashreplace")
        )
    return [out, *written]


def _lines(result: TuneResult, out: Path, mappings: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the recipe's file; `mappings` has the mapping files by key."""
    request, validation = result.request, result.request.validation
    info = validation.task.info
    yield from (f"# {visible_line(line)}".rstrip() for line in _comments(result, out, mappings))
    yield ""
    yield f"extends = {inline(info.name if info.file is None else _path_from(out, info.file))}"
    yield f"recipe = {inline(NAME)}"
    yield from (f"{key} = {inline(name)}" for key, name in mappings.items())
    yield ""
    yield f"[recipes.{NAME}]"
    written = dict(result.best.recipe.written)
    written["about"] = f"{request.recipe}, tuned on {', '.join(validation.splits)}."
    written.pop("tuned", None)
    signals = [_signal_table(_with_template_path(info, out, signal)) for signal in written.pop("signals")]
    if len(signals) == 1:
        written.pop("fusion", None)
    written = {key: value for key, value in _with_template_path(info, out, written).items() if value != {}}
    yield from assignments(written)
    yield "signals = ["
    yield from (f"  {inline(signal)}," for signal in signals)
    yield "]"
    yield ""
    yield f"[recipes.{NAME}.tuned]"
    yield from assignments(result.provenance())


def _comments(result: TuneResult, out: Path, mappings: Mapping[str, str]) -> Iterator[str]:
    request, first, shipped = result.request, result.trials[0], result.shipped
    validation = request.validation
    name = "FILE" if out == STDOUT else out.name
    yield f"The recipe {validation.task.name}/{request.recipe}, tuned by `searchapp tune`. To use it:"
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
        yield (
            f"Tuned on a split for which results are reported ({named}): this recipe's figures there are too "
            "optimistic."
        )
    yield f"{result.measure} {first.value:.6f}{_interval(first.interval)}, trial {first.trial}."
    if first.trial == shipped.trial:
        yield "No trial was better than the original recipe."
    else:
        yield f"The original recipe: {shipped.value:.6f}{_interval(shipped.interval)}."
        if first.tests is not None:
            tests = first.tests
            yield (
                f"Difference {tests.mean:+z.6f}{_interval(tests.interval)}; randomisation test p = "
                f"{tests.randomisation.p:.4g}, t-test p = {tests.t_test.p:.4g}."
            )
    if result.chosen is not None:
        yield f"Cross-validated, each topic with the best trial of the other folds: {result.chosen:.6f}."


def _signal_table(signal: Mapping[str, Any]) -> dict[str, Any]:
    kind, name = signal["signal"], signal.get("name")
    first = {"signal": kind} | ({} if name in (kind, None) else {"name": name})
    return first | {key: value for key, value in signal.items() if key not in ("signal", "name")}


def _interval(interval: Any) -> str:
    return "" if interval is None else f" ({interval.low:.6f} to {interval.high:.6f})"


def _with_template_path(info: TaskInfo, out: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table whose template, if beside the tuned variant, has its path from the new file."""
    template = table.get("template")
    if info.variant is None or not isinstance(template, str) or not template.endswith(".json"):
        return dict(table)
    file = info.variant.parent / template
    return {**table, "template": _path_from(out, file)} if file.exists() else dict(table)


def _path_from(out: Path, file: Path) -> str:
    return os.path.relpath(file.resolve(), out.resolve().parent)
