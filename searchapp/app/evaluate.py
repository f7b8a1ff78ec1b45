"""Scores a run directory or official files: the official figures, and the honest ones beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from searchapp import tasks
from searchapp.app.scoring import field_figures, official_figures
from searchapp.digests import data_name, digest_file
from searchapp.errors import DataError, NotScorable, UsageError
from searchapp.evaluation.base import Breakdown, GoldFiles, OfficialScore, ScorerOptions
from searchapp.evaluation.measures import Measures
from searchapp.model import Run
from searchapp.names import refused
from searchapp.runs import directory, learned
from searchapp.runs.directory import StoredRun
from searchapp.tasks.base import Collection, OfficialFormat, P, Part, Submission, Task
from searchapp.tasks.folders import data_folder

ALL = "all"
"""The name that stands for every breakdown of a task."""


@dataclass(frozen=True, slots=True)
class GoldSource:
    """Where the gold comes from, as far as the person has said, and what else the scorer is given.

    `gold` are files; without them the gold is that of `split` in the folder `data`. A run directory knows its
    task, split and folder; what is said here comes before that. `by` names the breakdowns to compute, `measures`
    what is measured beside the official figures, by default what the task says. `also` are measures of which only the
    curves of a report are made: no breakdown has them.
    """

    task: str | None = None
    data: Path | None = None
    split: str | None = None
    gold: tuple[Path, ...] = ()
    home: Path | None = None
    options: ScorerOptions = field(default_factory=ScorerOptions)
    by: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    def loaded_task(self) -> Task | None:
        """The task that is named, if one is."""
        return None if self.task is None else tasks.load(self.task)

    def folder(self, task: Task) -> Path | None:
        """The folder with the task's files, if it is known."""
        if self.data is not None or (self.home is None and task.info.file is None):
            return self.data
        folder = data_folder(task, self.home)
        return folder if folder.is_dir() else None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures of one submission, as fractions.

    `task` is None where grades alone say what is right. `topics` is the number of topics with gold. `official` is
    what the organisers' scorer yields, `measures` has the field's own, in ir-measures' notation. `warnings` say where a
    figure misleads. `judged` says what the judgments cover that were the gold, None where the gold was the organisers'.
    `files` are the official files that were scored, none for a run. `also` has what the source asked for besides.
    """

    source: str
    task: str | None
    split: str | None
    topics: int
    official: OfficialScore
    measures: Measures
    warnings: tuple[str, ...]
    breakdowns: tuple[Breakdown, ...] = ()
    judged: Mapping[str, Any] | None = None
    files: tuple[str, ...] = ()
    also: Measures = field(default_factory=Measures.none)

    def of_topics(self, name: str) -> Mapping[str, float | None]:
        """What a figure is the mean of: a value a topic, by the names that the scorer has for topics.

        `name` is that of the official figure, of another one that the scorer has for topics, or of a measure. None
        where a topic is left out of the figure; nothing where there are no such values.
        """
        return self.official.of_topics(name) or self.measures.per_topic.get(name, {})

    def to_json(self, *, per_topic: bool = False) -> dict[str, Any]:
        """The JSON that `evaluate --json` prints; with `per_topic` the figures of each topic too."""
        official: dict[str, Any] = {
            "measure": self.official.measure,
            "value": self.official.values.get(self.official.measure),
            "values": dict(self.official.values),
            "honest": dict(self.official.honest),
        }
        described: dict[str, Any] = {
            "source": self.source,
            "task": self.task,
            "split": self.split,
            "topics": self.topics,
            "official": official,
            "measures": dict(self.measures.values),
            "breakdowns": {breakdown.name: breakdown.to_json() for breakdown in self.breakdowns},
            "judged": None if self.judged is None else dict(self.judged),
            "warnings": list(self.warnings),
        }
        if per_topic:
            official["per_topic"] = {
                topic: dict(figures) if isinstance(figures, Mapping) else figures
                for topic, figures in self.official.per_topic.items()
            }
            described["per_topic"] = {name: dict(values) for name, values in self.measures.per_topic.items()}
        return described


def evaluate(sources: Sequence[Path], gold: GoldSource) -> list[Evaluation]:
    """Score run directories, official files, or folders of them; files that make one submission together are one.

    Raises:
        NotScorable: the organisers' scorer stops on a file or refuses it.
        UsageError: it isn't said what the gold is.
        DataError: a run or the gold is not what it should be, or the gold is masked.
    """
    evaluations = []
    files: list[Path] = []
    for source in sources:
        if (source / directory.MANIFEST).is_file():
            evaluations.append(evaluate_run(directory.read(source), gold))
        elif source.is_dir():
            files += _files_in(source, gold)
        elif source.exists():
            files.append(source)
        else:
            raise UsageError(
                f"there is no run directory or file {source}: `searchapp rank` makes a run directory"
            )
    if not files:
        return evaluations
    if gold.task is None:
        raise UsageError(
            f"{files[0]} is a file: name its task with --task, and its gold with --split or --gold"
        )
    task = tasks.load(gold.task)
    submissions = [files] if task.official.scorer.files_make_one else [[file] for file in files]
    return evaluations + [
        _evaluate_files(task, task.official, submission, gold) for submission in submissions
    ]


def _files_in(folder: Path, gold: GoldSource) -> list[Path]:
    """The official files in a folder; those that make one submission in the order of the gold files of their names.

    Raises:
        UsageError: it isn't said which task they are of, or there are none, or which belongs to which gold.
    """
    if gold.task is None:
        raise UsageError(
            f"{folder} is not a run directory (it has no {directory.MANIFEST}): `searchapp rank` makes one; if it has "
            "official files, name their task with --task"
        )
    task = tasks.load(gold.task)
    found = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if task.official.scorer.files_make_one:
        wanted = [file.name for file in gold_files(task, gold)]
        kinds = {Path(name).suffix for name in wanted}
        found = [path for path in found if path.suffix in kinds]
        found.sort(key=lambda path: wanted.index(path.name) if path.name in wanted else len(wanted))
        missing = [name for name in wanted if not (folder / name).exists()]
        if missing and len(found) == len(wanted):  # of another number the scorer says what is missing
            raise UsageError(
                f"{folder} has no {', '.join(missing)}: name its files one by one, in the order of the gold files"
            )
    if not found:
        raise UsageError(f"{folder} has no official file of {task.name}: `searchapp export` writes them")
    return found


def _evaluate_files(
    task: Task, official: OfficialFormat[P, Collection], files: Sequence[Path], gold: GoldSource
) -> Evaluation:
    against = gold_files(task, gold)
    predictions = official.scorer.read(files)  # whose errors name the file themselves
    try:
        scored = _scored(", ".join(map(str, files)), task, gold, against, official, predictions)
    except NotScorable as error:
        raise error.of(str(files[0]) if len(files) == 1 else f"{len(files)} files") from error
    return replace(scored, files=tuple(map(str, files)))


def evaluate_run(stored: StoredRun, given: GoldSource) -> Evaluation:
    """Score a run directory that has been read.

    Raises:
        as `evaluate` does.
    """
    path, manifest = stored.path, stored.manifest
    task, gold = of_run(stored, given)
    files = gold_files(task, gold)
    warnings = []
    if task.info.file and manifest.task_file and digest_file(task.info.file) != manifest.task_file["digest"]:
        warnings.append(f"{task.info.file} has changed since the run {path} was made with it")
    for file in files:
        digest = manifest.data_digests.get(data_name(gold.data or Path(), file))
        if digest and file.is_file() and digest_file(file) != digest:
            warnings.append(f"{file} has changed since the run {path} was made from it")
    if digest_file(path / manifest.rankings) != manifest.files.get(manifest.rankings):
        warnings.append(f"{path / manifest.rankings} has changed since the run was written")
    try:
        found = _scored_run(str(path), stored.run, task, task.official, gold, files, tuple(warnings))
    except NotScorable as error:
        raise error.of(str(path)) from error
    notes = []
    ranked = [ranking.topic_id for ranking in stored.run]
    left = len(ranked) - found.topics
    if left > 0 and task.info.file is None:  # the scorer of a task of one's own says it
        notes.append(
            f"{len(ranked):,} topics are ranked and {found.topics:,} scored: the gold has nothing on the other {left:,}"
        )
    names: Mapping[str, float] = next(iter(found.measures.per_topic.values()), {})
    scored = [topic for topic in ranked if topic in names] or ranked
    told = learned.warning(path, manifest, scored, "--per-topic --json has the figures of the others")
    notes += filter(None, (told, learned.tuned_warning(path, manifest)))
    return replace(found, warnings=(*found.warnings, *notes))


def evaluate_rankings(name: str, run: Run, task: Task, gold: GoldSource) -> Evaluation:
    """Score rankings that stand in no run directory, under a name; `gold` says what their split is and where.

    Raises:
        as `evaluate` does.
    """
    try:
        return _scored_run(name, run, task, task.official, gold, gold_files(task, gold))
    except NotScorable as error:
        raise error.of(name) from error


def task_of(stored: StoredRun, given: str | None = None) -> Task:
    """The task of a run; `given` names it too, for a task file that has been moved since.

    Raises:
        UsageError: what is given is another task, or the run's task file is not where it was.
    """
    manifest = stored.manifest
    described = manifest.task_file.get("path")
    if given is None:
        if described and not Path(described).is_file():
            raise UsageError(
                f"{stored.path} was made with the task file {described}, which is gone: "
                "name the file with --task"
            )
        varied = manifest.variant.get("path")  # if it is gone, the task itself has the same gold and scorer
        return tasks.load(varied if varied and Path(varied).is_file() else described or manifest.task)
    task = tasks.load(given)
    if (task.name, task.info.file is None) != (manifest.task, not described):
        raise UsageError(f"{stored.path} is a run of {manifest.task}, not of {given}: leave out --task")
    return task


def of_run(stored: StoredRun, given: GoldSource) -> tuple[Task, GoldSource]:
    """The task of a run, and where its gold comes from: what is given comes before what the run knows.

    Raises:
        UsageError: the run is of another task than the given one, or its task file is gone.
    """
    task, manifest = task_of(stored, given.task), stored.manifest
    data, split = given.data or Path(manifest.data), given.split or manifest.split
    return task, replace(given, data=data, split=split, task=task.name)


def gold_files(task: Task, gold: GoldSource) -> Sequence[Path]:
    """The files with the gold.

    Raises:
        UsageError: it isn't said what the gold is.
        DataError: it is masked.
    """
    if gold.gold:
        return gold.gold
    if gold.split is None:
        raise UsageError(f"name the gold to score {task.reference} against: --split with --data, or --gold")
    folder = gold.folder(task) or Path()
    collection = task.collection(folder)
    if collection.is_masked(gold.split):
        files = ", ".join(map(str, collection.split_files(gold.split)))
        raise DataError(
            f"{files}: the gold is masked, so nothing can be scored: choose another split, or name gold with --gold"
        )
    return collection.gold_files(gold.split)


def _scored_run(
    source: str,
    run: Run,
    task: Task,
    official: OfficialFormat[P, Collection],
    gold: GoldSource,
    files: Sequence[Path],
    warnings: tuple[str, ...] = (),
) -> Evaluation:
    folder = gold.folder(task)
    if folder is None or gold.split is None:  # then nobody knows the task's other files
        predictions = official.scorer.predictions(run)
    else:
        predictions = official.predictions(Submission(run, Part(task.collection(folder), gold.split)))
    return _scored(source, task, gold, files, official, predictions, warnings)


def _scored(
    source: str,
    task: Task,
    gold: GoldSource,
    files: Sequence[Path],
    official: OfficialFormat[P, Collection],
    predictions: P,
    warnings: tuple[str, ...] = (),
) -> Evaluation:
    # Gold files that somebody names are scored whole, as the organisers' script does.
    options = gold.options if gold.gold else replace(gold.options, split=gold.split)
    against = GoldFiles(files, options)
    scored = official_figures(official.scorer, predictions, against)
    measures = field_figures(scored.rankings, scored.qrels, gold.measures or task.info.measures)
    breakdowns = _breakdowns(task, gold, against, official, predictions)
    return Evaluation(
        source=source,
        task=task.name,
        split=gold.split,
        topics=scored.topics,
        official=scored.official,
        measures=measures,
        warnings=(*warnings, *scored.official.warnings),
        breakdowns=tuple(_measured(one, measures) for one in breakdowns) if gold.measures else breakdowns,
        also=field_figures(scored.rankings, scored.qrels, gold.also),
    )


def _measured(breakdown: Breakdown, measures: Measures) -> Breakdown:
    """A breakdown with measures beside its own figures, where its groups are groups of topics."""
    rows = (replace(row, values={**row.values, **measures.of(row.topics)}) for row in breakdown.rows)
    return replace(breakdown, rows=tuple(rows))


def _breakdowns(
    task: Task,
    gold: GoldSource,
    against: GoldFiles,
    official: OfficialFormat[P, Collection],
    predictions: P,
) -> tuple[Breakdown, ...]:
    if not gold.by:
        return ()
    known = task.breakdowns
    for name in gold.by:
        if name not in (*known, ALL):
            choice = refused(name, (*known, ALL)) if known else f"{name!r}: this task has none"
            raise UsageError(f"{task.reference} has no breakdown {choice}")
    wanted = known if ALL in gold.by else gold.by
    folder = gold.folder(task)
    if folder is None or gold.split is None:
        raise UsageError(
            f"a breakdown of {task.reference} needs its other files: name them with --data and --split"
        )
    if official.breakdowns is None:  # `all` of none
        return ()
    return tuple(official.breakdowns.breakdown(predictions, replace(against, folder=folder), wanted))
