"""Score runs and official files: the official figures, and honest ones beside them; validate official files.

All figures of `evaluate`, `compare`, `bench`, reports and screens are computed here, from the organisers'
gold or from judgments. Judgments are incomplete. Unjudged documents count as not relevant (as in trec_eval),
are left out (condensed lists), or yield bounds: all of them irrelevant, and all of them as relevant as can
be. Judged@k is the share of judged documents among the first k.

    T. Sakai, Alternatives to bpref, SIGIR 2007 (condensed lists).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from searchapp import tasks
from searchapp.errors import DataError, NotScorable, UsageError
from searchapp.evaluation import measures
from searchapp.evaluation.base import (
    Breakdown,
    GoldFiles,
    OfficialScore,
    Qrels,
    Scored,
    Scorer,
    ScorerOptions,
)
from searchapp.evaluation.measures import Measures
from searchapp.files import data_name, digest_file
from searchapp.formats.problems import Problems
from searchapp.judging.judgments import Unjudged
from searchapp.model import Ranking, Run
from searchapp.runs import directory
from searchapp.runs import directory as learned
from searchapp.runs.directory import RANKINGS, GivenRun, StoredRun
from searchapp.tasks.base import Collection, Grades, OfficialFile, OfficialFormat, P, Part, Submission, Task
from searchapp.tasks.folders import data_folder
from searchapp.text import choices_hint, counted


def official_figures(scorer: Scorer[P], predictions: P, gold: GoldFiles) -> Scored:
    """The figures of the organisers' scorer, and what those of the field are computed from.

    Raises:
        NotScorable: their script stops or refuses.
        DataError: a gold file is missing or can't be read.
    """
    return scorer.score(predictions, gold)


def field_figures(rankings: Mapping[str, Sequence[str]], qrels: Qrels, names: Sequence[str]) -> Measures:
    """The field's measures of these names, computed by ir-measures.

    Raises:
        UsageError: a name is not one of a measure that can be computed here.
    """
    return measures.measure(rankings, qrels, names)


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
    if manifest.layout and manifest.split in task.info.splits:
        layout = task.collection(Path(manifest.data)).layout(manifest.split, solved=False)
        warnings += [
            f"{task.info.file}: {key} has changed since the run {path} was made"
            for key, value in layout.items()
            if value != manifest.layout.get(key)
        ]
    for file in files:
        digest = manifest.data_digests.get(data_name(gold.data or Path(), file))
        if digest and file.is_file() and digest_file(file) != digest:
            warnings.append(f"{file} has changed since the run {path} was made from it")
    if digest_file(path / RANKINGS) != manifest.files.get(RANKINGS):
        warnings.append(f"{path / RANKINGS} has changed since the run was written")
    try:
        found = _scored_run(str(path), stored.run, task, task.official, gold, files, tuple(warnings))
    except NotScorable as error:
        raise error.of(str(path)) from error
    notes = []
    ranked = [ranking.topic_id for ranking in stored.run]
    left = len(ranked) - found.topics
    if left > 0 and task.info.file is None:  # the scorer of a task of one's own says it
        notes.append(
            f"{counted(len(ranked), 'topic')} {'is' if len(ranked) == 1 else 'are'} ranked and {found.topics:,} "
            "scored: "
            f"the gold has nothing on the other {left:,}"
        )
    names: Mapping[str, float] = next(iter(found.measures.per_topic.values()), {})
    scored = [topic for topic in ranked if topic in names] or ranked
    told = learned.judged_warning(path, manifest, scored, "--per-topic --json has the figures of the others")
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
    described = manifest.task_file
    if given is None:
        if described and not Path(described).is_file():
            raise UsageError(
                f"{stored.path} was made with the task file {described}, which is gone: "
                "name the file with --task"
            )
        varied = manifest.variant  # if it is gone, the task itself has the same gold and scorer
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
    against = GoldFiles(files, options, gold.folder(task))
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
        breakdowns=tuple(_measured_breakdown(one, measures) for one in breakdowns)
        if gold.measures
        else breakdowns,
        also=field_figures(scored.rankings, scored.qrels, gold.also),
    )


def _measured_breakdown(breakdown: Breakdown, measures: Measures) -> Breakdown:
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
            choice = choices_hint(name, (*known, ALL)) if known else f"{name!r}: this task has none"
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


JUDGED = ("Judged@10", "Judged@100")
ALSO = ("AP", "nDCG@10")
"""Measured beside the task's own measures."""
OF_NO_TASK = ("AP", "nDCG@10", "RR", "P@10", "R@100")
"""Measured where no task says what to measure."""


@dataclass(frozen=True, slots=True)
class Judgments:
    """What runs are scored against, and how.

    `grades` are by topic and document, `unjudged` says what counts that has none. With `unseen` only topics count that
    a run has not learned from.
    """

    grades: Grades
    unjudged: Unjudged = Unjudged.nonrelevant
    unseen: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """A run that is scored, with what is known of it: its task, and the split and folder that it is of."""

    given: GivenRun
    task: Task | None = None
    split: str | None = None
    data: Path | None = None

    @classmethod
    def of(cls, path: Path, source: GoldSource) -> Subject:
        """A run directory, which knows all that, or a TREC run, of which `source` may say it.

        Raises:
            UsageError: there is no run, or it is another task's.
            DataError: it can't be read.
        """
        read = directory.read_given(path)
        if read.manifest is not None:
            return cls.stored(StoredRun(path, read.manifest, read.run), source)
        task = source.loaded_task()
        return cls(read, task, source.split, None if task is None else source.folder(task))

    @classmethod
    def stored(cls, run: StoredRun, source: GoldSource) -> Subject:
        """A run directory that has been read.

        Raises:
            UsageError: it is another task's.
        """
        manifest, own = run.manifest, task_of(run, source.task)
        read = GivenRun(run.path, run.run, manifest, manifest.digest)
        return cls(read, own, manifest.split, source.data or Path(manifest.data))

    @property
    def path(self) -> Path:
        return self.given.path


def evaluate_judged(
    subject: Subject, judgments: Judgments, source: GoldSource, *, official_too: bool = True
) -> Evaluation:
    """Score a run on the topics that it ranks and that have grades.

    The official figures are those of the organisers' scorer with the grades as gold; they exist only where unjudged
    documents count as not relevant, since their scorer has no other notion, and where the task is known. Without a
    task the field's measures are all there is, and the first of them is what `official.measure` names. Without
    `official_too` their scorer is not asked.

    Raises:
        UsageError: a measure can't be computed, or it isn't known what the run has learned from.
        DataError: the run ranks none of the judged topics, or has learned from all of them.
        NotScorable: the organisers' scorer would not score the run against this gold.
    """
    path, task = subject.path, subject.task
    judged = [ranking for ranking in subject.given.run if judgments.grades.get(ranking.topic_id)]
    if not judged:
        advice = "" if task is None else f": `searchapp judge {task.reference} --run {path}`"
        raise DataError(f"{path} ranks no topic that has been judged{advice}")
    rankings, notes = _unseen(subject, judged, unseen=judgments.unseen)
    known = {ranking.topic_id: judgments.grades[ranking.topic_id] for ranking in rankings}
    if task is None:
        names = source.measures or (*OF_NO_TASK, *JUDGED)
        best = max((grade for grades in known.values() for grade in grades.values()), default=1)
    else:
        names = source.measures or tuple(dict.fromkeys((*task.info.measures, *ALSO, *JUDGED)))
        best = len(task.info.grades) - 1
    measures = _judged_measures(rankings, known, judgments.unjudged, names, best)
    try:
        official, warnings = (
            _official(subject, rankings, known, judgments.unjudged, source.options, names)
            if official_too
            else (OfficialScore("" if task is None else task.info.official_measure, {}), ())
        )
    except NotScorable as error:
        raise error.of(str(path)) from error
    said = (subject.given.note, _counted(subject.given.run, judged, judgments.grades))
    return Evaluation(
        source=str(path),
        task=None if task is None else task.name,
        split=subject.split,
        topics=len(known),
        official=official,
        measures=measures,
        warnings=(*filter(None, said), *notes, *warnings),
        judged=_described(rankings, known, judgments.unjudged),
        also=_judged_measures(rankings, known, judgments.unjudged, source.also, best)
        if source.also
        else Measures.none(),
    )


def _unseen(
    subject: Subject, judged: Sequence[Ranking], *, unseen: bool
) -> tuple[Sequence[Ranking], Sequence[str]]:
    """The rankings that count, and sentences on them; only those `unseen` that the run has not learned from."""
    manifest, path = subject.given.manifest, subject.path
    if manifest is None:
        if unseen:
            raise UsageError(
                f"{path} is a TREC run, which does not record what it has learned from: leave out --unseen"
            )
        return judged, ()
    topics = [ranking.topic_id for ranking in judged]
    if not unseen:
        told = directory.judged_warning(path, manifest, topics, "--unseen scores the others alone")
        return judged, tuple(filter(None, (told, directory.tuned_warning(path, manifest))))
    seen = directory.judged_topics(path, manifest)
    left = [ranking for ranking in judged if ranking.topic_id not in seen]
    if not left:
        raise DataError(
            f"{path} has learned from every judged topic that it ranks, so that --unseen leaves none: judge others"
        )
    if len(left) == len(judged):
        return left, ()
    out = len(judged) - len(left)
    are, them = ("is", "it") if out == 1 else ("are", "them")
    return left, (
        f"{out:,} of {counted(len(judged), 'judged topic')} {are} left out, because the run has learned from {them}",
    )


def _counted(run: Run, judged: Sequence[Ranking], grades: Grades) -> str | None:
    """Why not all topics are scored, in a sentence; None when they are."""
    without = len(run) - len(judged)
    unranked = sum(map(bool, grades.values())) - len(judged)
    reasons = []
    if without:
        reasons.append(
            f"{without:,} of the {counted(len(run), 'ranked topic')} {'has' if without == 1 else 'have'} no grades"
        )
    if unranked:
        of = "1 topic with grades is" if unranked == 1 else f"{unranked:,} topics with grades are"
        reasons.append(f"{of} not ranked")
    scored = "1 is" if len(judged) == 1 else f"{len(judged):,} are"
    return f"{' and '.join(reasons)}: {scored} scored" if reasons else None


def _judged_measures(
    rankings: Sequence[Ranking], grades: Grades, unjudged: Unjudged, names: Sequence[str], best: int
) -> Measures:
    lists = {ranking.topic_id: list(ranking.document_ids()) for ranking in rankings}
    if unjudged is Unjudged.condensed:
        lists = {
            topic: [document for document in documents if document in grades[topic]]
            for topic, documents in lists.items()
        }
    found = field_figures(lists, grades, names)
    if unjudged is not Unjudged.bounds:
        return found
    as_good_as_can_be = {
        topic: {**dict.fromkeys(documents, best), **grades[topic]} for topic, documents in lists.items()
    }
    bounded = [name for name in names if name not in JUDGED]
    upper = field_figures(lists, as_good_as_can_be, bounded)
    values = {name: found.values[name] for name in JUDGED}
    for name in bounded:
        # More relevant documents can lower a measure that divides by their number: the bounds are ordered.
        low, high = sorted((found.values[name], upper.values[name]))
        values |= {f"{name} lower": low, f"{name} upper": high}
    return Measures(values, found.per_topic)


def _official(
    subject: Subject,
    rankings: Sequence[Ranking],
    grades: Grades,
    unjudged: Unjudged,
    options: ScorerOptions,
    names: Sequence[str],
) -> tuple[OfficialScore, tuple[str, ...]]:
    task = subject.task
    if task is None:
        return OfficialScore(names[0], {}), ()
    none = OfficialScore(task.info.official_measure, {})
    if unjudged is not Unjudged.nonrelevant:
        return none, (f"there is no official figure: unjudged documents are taken as {unjudged.value}",)
    if subject.data is None or subject.split is None:
        return none, (
            f"there is no official figure of {subject.path}: name the task's files with --data and --split",
        )
    run = Run(subject.given.run.tag, tuple(rankings))
    with tempfile.TemporaryDirectory(prefix="searchapp-gold-") as folder:
        try:
            part = Part(task.collection(subject.data), subject.split)
            gold = task.official.gold(grades, part)
            score = _scoring(task.official, Submission(run, part))
        except (
            ValueError
        ) as error:  # an id that is no number, where the task's are: of another task, or of none
            raise DataError(
                f"{subject.path}: the run or the grades name topics or documents that are not of {task.name} "
                f"({error}): score them without --task, or with a run of the task"
            ) from error
        files = []
        for name, write in gold.items():
            files.append(Path(folder) / name)
            with files[-1].open("wb") as file:
                write(file)
        scored = score(GoldFiles(files, options))
    return scored.official, scored.official.warnings


def _scoring(
    official: OfficialFormat[P, Collection], submission: Submission[Collection]
) -> Callable[[GoldFiles], Scored]:
    """What scores a run against gold; that its ids are of the task is known once this is there."""
    predictions = official.predictions(submission)
    return lambda gold: official_figures(official.scorer, predictions, gold)


def _described(rankings: Sequence[Ranking], grades: Grades, unjudged: Unjudged) -> dict[str, object]:
    """What `evaluate --json` says of the judgments."""
    retrieved = sum(len(ranking.hits) for ranking in rankings)
    judged = sum(
        document in grades[ranking.topic_id] for ranking in rankings for document in ranking.document_ids()
    )
    return {
        "topics": len(grades),
        "documents": sum(map(len, grades.values())),
        "retrieved": retrieved,
        "retrieved_judged": judged,
        "unjudged": unjudged.value,
    }


@dataclass(frozen=True, slots=True)
class ValidateRequest:
    """An official file of a task; `part` is the split that it answers, without which it is looked at by itself."""

    task: Task
    path: Path
    part: Part[Collection] | None = None
    options: ScorerOptions = field(default_factory=ScorerOptions)


def validate(request: ValidateRequest) -> Problems:
    """Everything that is wrong with an official file, as `OfficialFormat.validate` finds it.

    A file that their scorer stops on always has a problem: where nothing else is wrong with it, and the gold is
    there, it is scored, and what stops that is the problem.

    Raises:
        UsageError: the task's files show nothing alone, and it isn't said which split they answer.
        DataError: the file, or the task's own files, can't be read.
    """
    problems = Problems()
    path, part, official = request.path, request.part, request.task.official
    try:
        official.validate(OfficialFile(path, part, request.options), problems)
        if part is not None and not len(problems):
            _score(official.scorer, path, part, request.options)
    except NotScorable as error:
        detail = f"{error.problem.removeprefix(f'{path}: ')} (the official scorer: {error.official})"
        problems.add(path, "not scorable", detail=detail, skippable=False)
    return problems


def _score(scorer: Scorer[P], path: Path, part: Part[Collection], options: ScorerOptions) -> None:
    """Score a file that answers a split; where there is no gold, there is nothing to stop at.

    Raises:
        NotScorable: the official scorer stops.
    """
    if part.collection.is_masked(part.split):
        return
    try:
        gold = part.collection.gold_files(part.split)
    except UsageError:  # a split of a user's own task without gold
        return
    if scorer.files_make_one and len(gold) > 1:
        gold = [file for file in gold if file.name == path.name]
    official_figures(scorer, scorer.read([path]), GoldFiles(gold, replace(options, split=part.split)))
