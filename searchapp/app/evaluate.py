"""Score runs and official files with the official figures and corrected ones; validate official files.

Unjudged documents count as not relevant (as in trec_eval), are left out (condensed lists), or yield bounds. Judged@k
is the share of judged documents among the first k.

    T. Sakai, Alternatives to bpref, SIGIR 2007 (condensed lists).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchapp import tasks
from searchapp.app.pooling import Sample, sampled_topics
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
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Ranking, Run
from searchapp.runs import directory
from searchapp.runs.directory import RANKINGS, GivenRun, StoredRun
from searchapp.tasks.base import Collection, DataSplit, Grades, P, Task
from searchapp.tasks.folders import data_folder
from searchapp.text import choices_hint, counted, have, html_table

if TYPE_CHECKING:
    from searchapp.evaluation.sampling import SampledTopic

ALL = "all"  # the name of all breakdowns of a task

JUDGED = ("Judged@10", "Judged@100")
ALSO = ("AP", "nDCG@10")  # measured with the task's own measures if judgments are the gold
OF_NO_TASK = ("AP", "nDCG@10", "RR", "P@10", "R@100")  # measured without a task


def official_figures(scorer: Scorer[P], predictions: P, gold: GoldFiles) -> Scored:
    """Return the figures of the official scorer, with the rankings and qrels of other measures.

    Raises:
        NotScorable: the official script stops or rejects the predictions.
        DataError: a gold file is missing or can't be read.
    """
    return scorer.score(predictions, gold)


def field_figures(rankings: Mapping[str, Sequence[str]], qrels: Qrels, names: Sequence[str]) -> Measures:
    """Return the measures of these names, computed by ir-measures.

    Raises:
        UsageError: a name is unknown.
    """
    return measures.measure(rankings, qrels, names)


@dataclass(frozen=True, slots=True)
class GoldSource:
    """The gold and options of the scorer, as far as the user names them; a run directory has the rest."""

    task: str | None = None
    data: Path | None = None
    split: str | None = None
    gold: tuple[Path, ...] = ()  # gold files; by default the files of `split` in the folder `data`
    home: Path | None = None
    options: ScorerOptions = field(default_factory=ScorerOptions)
    by: tuple[str, ...] = ()  # breakdowns to compute
    measures: tuple[str, ...] = ()  # measures beside the official figures; by default the task's
    also: tuple[str, ...] = ()  # measures for the curves of a report, which breakdowns lack

    def loaded_task(self) -> Task | None:
        return None if self.task is None else tasks.load(self.task)

    def folder(self, task: Task) -> Path | None:
        if self.data is not None or (self.home is None and task.info.file is None):
            return self.data
        folder = data_folder(task, self.home)
        return folder if folder.is_dir() else None

    def part(self, task: Task) -> DataSplit[Collection] | None:
        folder = self.folder(task)
        return (
            None if folder is None or self.split is None else DataSplit(task.collection(folder), self.split)
        )


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The figures of one submission, as fractions."""

    source: str
    task: str | None  # None if only grades are known
    split: str | None
    topics: int  # number of topics with gold
    official: OfficialScore
    measures: Measures  # the measures of ir-measures
    warnings: tuple[str, ...]  # messages on misleading figures
    breakdowns: tuple[Breakdown, ...] = ()
    judged: Mapping[str, Any] | None = None  # the coverage of the judgments; None for the official gold
    files: tuple[str, ...] = ()  # the official files that were scored; empty for a run
    also: Measures = field(default_factory=Measures.none)  # the measures of `GoldSource.also`

    def of_topics(self, name: str) -> Mapping[str, float | None]:
        """Return the values, by the scorer's names of topics, whose mean is an official figure or a measure.

        None for a topic that does not count; empty without such values.
        """
        return self.official.of_topics(name) or self.measures.per_topic.get(name, {})

    def __repr__(self) -> str:
        return f"<searchapp.Evaluation of {self.source}: {counted(self.topics, 'topic')}>"

    def _repr_html_(self) -> str:
        figures = {**self.official.values, **self.measures.values}
        rows = ((name, f"{value:.4f}") for name, value in figures.items())
        return html_table(("measure", "value"), rows, f"{self.source}: {counted(self.topics, 'topic')}")

    def to_json(self, *, per_topic: bool = False) -> dict[str, Any]:
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
    """Score run directories, official files, or folders of them.

    Raises:
        NotScorable: the official scorer stops on a file or rejects it.
        UsageError: the gold is not named.
        DataError: a run or the gold is invalid, or the gold is masked.
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
            f"{files[0]} is a file: give its task with --task, and its gold with --split or --gold"
        )
    task = tasks.load(gold.task)
    submissions = [files] if task.official.scorer.files_make_one else [[file] for file in files]
    return evaluations + [_evaluate_files(task, submission, gold) for submission in submissions]


def _files_in(folder: Path, gold: GoldSource) -> list[Path]:
    """Return the official files in a folder; files of one submission in the order of their gold files.

    Raises:
        UsageError: their task is not named, there are none, or their gold files are unknown.
    """
    if gold.task is None:
        raise UsageError(
            f"{folder} is not a run directory (it has no {directory.MANIFEST}): `searchapp rank` makes one; "
            "if it has official files, give their task with --task"
        )
    task = tasks.load(gold.task)
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if task.official.scorer.files_make_one:
        wanted = [file.name for file in gold_files(task, gold)]
        kinds = {Path(name).suffix for name in wanted}
        files = [path for path in files if path.suffix in kinds]
        files.sort(key=lambda path: wanted.index(path.name) if path.name in wanted else len(wanted))
        missing = [name for name in wanted if not (folder / name).exists()]
        if missing and len(files) == len(wanted):  # otherwise the scorer reports the missing files
            raise UsageError(
                f"{folder} has no {', '.join(missing)}: give its files one by one, in the order of the gold files"
            )
    if not files:
        raise UsageError(f"{folder} has no official file of {task.name}: `searchapp export` writes them")
    return files


def _evaluate_files(task: Task, files: Sequence[Path], gold: GoldSource) -> Evaluation:
    against = gold_files(task, gold)
    predictions = task.official.scorer.read(files)  # its errors name the file
    try:
        evaluation = _evaluate_predictions(", ".join(map(str, files)), task, gold, against, predictions)
    except NotScorable as error:
        raise error.of(str(files[0]) if len(files) == 1 else f"{len(files)} files") from error
    return replace(evaluation, files=tuple(map(str, files)))


def evaluate_run(stored: StoredRun, given: GoldSource) -> Evaluation:
    """Score a run directory that has been read.

    Raises:
        as `evaluate` does.
    """
    path, manifest = stored.path, stored.manifest
    task, gold = of_run(stored, given)
    files = gold_files(task, gold)
    changes = list(_changes(stored, task, gold, files))
    evaluation = evaluate_rankings(str(path), stored.run, task, gold)
    notes = []
    ranked = [ranking.topic_id for ranking in stored.run]
    left = len(ranked) - evaluation.topics
    if left > 0 and task.info.file is None:  # the scorer of an own task reports it itself
        notes.append(
            f"{evaluation.topics:,} of {counted(len(ranked), 'ranked topic')} scored: "
            f"{counted(left, 'topic')} without gold"
        )
    names: Mapping[str, float] = next(iter(evaluation.measures.per_topic.values()), {})
    scored = [topic for topic in ranked if topic in names] or ranked
    notes += directory.learning_warnings(
        path, manifest, scored, "--per-topic --json prints the figures of other topics"
    )
    return replace(evaluation, warnings=(*changes, *evaluation.warnings, *notes))


def _changes(stored: StoredRun, task: Task, gold: GoldSource, files: Sequence[Path]) -> Iterator[str]:
    path, manifest = stored.path, stored.manifest
    if manifest.layout and manifest.split in task.info.splits:
        layout = task.collection(Path(manifest.data)).layout(manifest.split, training=False)
        for key, value in layout.items():
            if value != manifest.layout.get(key):
                yield f"{task.info.file}: the key {key} has changed since the run {path} was made"
    for file in files:
        digest = manifest.data_digests.get(data_name(gold.data or Path(), file))
        if digest and file.is_file() and digest_file(file) != digest:
            yield f"{file} has changed since the run {path} was made from it"
    # The manifest of a run that is not saved has no files.
    if manifest.files and digest_file(path / RANKINGS) != manifest.files.get(RANKINGS):
        yield f"{path / RANKINGS} has changed since the run was written"


def evaluate_rankings(name: str, run: Run, task: Task, gold: GoldSource) -> Evaluation:
    """Score rankings under a name; `gold` has their split and folder.

    Raises:
        as `evaluate` does.
    """
    part, files = gold.part(task), gold_files(task, gold)
    try:
        official = task.official
        predictions = official.scorer.predictions(run) if part is None else official.predictions(run, part)
        return _evaluate_predictions(name, task, gold, files, predictions)
    except NotScorable as error:
        raise error.of(name) from error


def task_of(stored: StoredRun, given: str | None = None) -> Task:
    """Return the task of a run; `given` is the path of a task file that has been moved.

    Raises:
        UsageError: the given one is another task, or the run's task file is gone.
    """
    manifest = stored.manifest
    file = manifest.task_file
    if given is None:
        if file and not Path(file).is_file():
            raise UsageError(
                f"{stored.path} was made with the task file {file}, which no longer exists: give its present "
                "path with --task"
            )
        # Without the file of a variant, the task itself has the same gold and scorer.
        has_variant = manifest.variant and Path(manifest.variant).is_file()
        return tasks.load(manifest.variant if has_variant else file or manifest.task)
    task = tasks.load(given)
    if (task.name, task.info.file is None) != (manifest.task, not file):
        raise UsageError(f"{stored.path} is a run of {manifest.task}, not of {given}: leave out --task")
    return task


def of_run(stored: StoredRun, given: GoldSource) -> tuple[Task, GoldSource]:
    """Return the task of a run, and its gold; given parts take precedence.

    Raises:
        UsageError: the run is of another task than the given one, or its task file is gone.
    """
    task, manifest = task_of(stored, given.task), stored.manifest
    data, split = given.data or Path(manifest.data), given.split or manifest.split
    return task, replace(given, data=data, split=split, task=task.name)


def gold_files(task: Task, gold: GoldSource) -> Sequence[Path]:
    """Return the files with the gold.

    Raises:
        UsageError: the gold is not named.
        DataError: it is masked.
    """
    if gold.gold:
        return gold.gold
    if not gold.split:
        raise UsageError(f"no gold to score {task.reference} against: give --split with --data, or --gold")
    collection = task.collection(gold.folder(task) or Path())
    if collection.is_masked(gold.split):
        files = ", ".join(map(str, collection.split_files(gold.split)))
        raise DataError(f"{files}: the gold is masked: choose another split, or give gold with --gold")
    return collection.gold_files(gold.split)


def _evaluate_predictions(
    source: str, task: Task, gold: GoldSource, files: Sequence[Path], predictions: Any
) -> Evaluation:
    # Gold files that the user names are scored as a whole, as the official script does.
    options = gold.options if gold.gold else replace(gold.options, split=gold.split)
    against = GoldFiles(files, options, gold.folder(task))
    scored = official_figures(task.official.scorer, predictions, against)
    measured = field_figures(scored.rankings, scored.qrels, gold.measures or task.info.measures)
    breakdowns = _breakdowns(task, gold, against, predictions)
    if gold.measures:
        breakdowns = tuple(_with_measures(breakdown, measured) for breakdown in breakdowns)
    return Evaluation(
        source=source,
        task=task.name,
        split=gold.split,
        topics=scored.topics,
        official=scored.official,
        measures=measured,
        warnings=scored.official.warnings,
        breakdowns=breakdowns,
        also=field_figures(scored.rankings, scored.qrels, gold.also),
    )


def _with_measures(breakdown: Breakdown, measured: Measures) -> Breakdown:
    rows = (replace(row, values={**row.values, **measured.of(row.topics)}) for row in breakdown.rows)
    return replace(breakdown, rows=tuple(rows))


def _breakdowns(task: Task, gold: GoldSource, against: GoldFiles, predictions: Any) -> tuple[Breakdown, ...]:
    if not gold.by:
        return ()
    known, breakdowns = task.breakdowns, task.official.breakdowns
    for name in gold.by:
        if name not in (*known, ALL):
            choice = choices_hint(name, (*known, ALL)) if known else f"{name!r}: this task has none"
            raise UsageError(f"{task.reference} has no breakdown {choice}")
    if against.folder is None or gold.split is None:
        raise UsageError(
            f"a breakdown of {task.reference} needs the task's other files: give --data and --split"
        )
    if breakdowns is None:  # `all` of a task without breakdowns
        return ()
    return tuple(breakdowns.breakdown(predictions, against, known if ALL in gold.by else gold.by))


@dataclass(frozen=True, slots=True)
class Judgments:
    """Judgments that runs are scored against."""

    grades: Grades  # by topic and document
    unjudged: Unjudged = Unjudged.nonrelevant  # how documents without a grade count
    held_out: bool = False  # whether only topics count that a run has not learned from


@dataclass(frozen=True, slots=True)
class Subject:
    """A run that is scored, with its task, split and folder as far as they are known."""

    given: GivenRun
    task: Task | None = None
    split: str | None = None
    data: Path | None = None

    @classmethod
    def of(cls, path: Path, source: GoldSource) -> Subject:
        """Read a run directory, or a TREC run that `source` describes.

        Raises:
            UsageError: there is no run, or it is of another task.
            DataError: it can't be read.
        """
        given = directory.read_given(path)
        if given.manifest is not None:
            return cls.stored(StoredRun(path, given.manifest, given.run), source)
        task = source.loaded_task()
        return cls(given, task, source.split, None if task is None else source.folder(task))

    @classmethod
    def stored(cls, run: StoredRun, source: GoldSource) -> Subject:
        """Return the subject of a run directory that has been read.

        Raises:
            UsageError: it is of another task.
        """
        manifest, task = run.manifest, task_of(run, source.task)
        given = GivenRun(run.path, run.run, manifest, manifest.digest)
        return cls(given, task, manifest.split, source.data or Path(manifest.data))

    @property
    def path(self) -> Path:
        return self.given.path


def evaluate_judged(
    subject: Subject, judgments: Judgments, source: GoldSource, *, official_too: bool = True
) -> Evaluation:
    """Score a run on the topics that it ranks and that have grades.

    There are official figures only if unjudged documents count as not relevant and the task is known. Without a task
    `official.measure` is the first measure.

    Raises:
        UsageError: a measure is unknown, or the topics that the run has learned from are.
        DataError: the run ranks none of the judged topics, or has learned from all of them.
        NotScorable: the official scorer rejects the run with this gold.
    """
    path, task, unjudged = subject.path, subject.task, judgments.unjudged
    judged = [ranking for ranking in subject.given.run if judgments.grades.get(ranking.topic_id)]
    if not judged:
        advice = "" if task is None else f": `searchapp judge {task.reference} --run {path}`"
        raise DataError(f"{path} ranks no judged topic{advice}")
    rankings, notes = _counted_rankings(subject, judged, held_out=judgments.held_out)
    grades = {ranking.topic_id: judgments.grades[ranking.topic_id] for ranking in rankings}
    if task is None:
        names = source.measures or (*OF_NO_TASK, *JUDGED)
        best = max((grade for of_topic in grades.values() for grade in of_topic.values()), default=1)
    else:
        names = source.measures or tuple(dict.fromkeys((*task.info.measures, *ALSO, *JUDGED)))
        best = len(task.info.grades) - 1
    measured = _judged_measures(rankings, grades, unjudged, names, best)
    official = OfficialScore(names[0] if task is None else task.info.official_measure, {})
    warnings: tuple[str, ...] = ()
    if task is not None and official_too:
        if unjudged is not Unjudged.nonrelevant:
            warnings = (f"no official figure: it requires --unjudged nonrelevant, not {unjudged.value}",)
        elif subject.data is None or subject.split is None:
            warnings = (f"no official figure of {path}: give the task's files with --data and --split",)
        else:
            part = DataSplit(task.collection(subject.data), subject.split)
            try:
                official = _official(subject, task, part, rankings, grades, source.options)
            except NotScorable as error:
                raise error.of(str(path)) from error
            warnings = official.warnings
    return Evaluation(
        source=str(path),
        task=None if task is None else task.name,
        split=subject.split,
        topics=len(grades),
        official=official,
        measures=measured,
        warnings=(
            *filter(None, (subject.given.note, _coverage(subject.given.run, judged, judgments.grades))),
            *notes,
            *warnings,
        ),
        judged={
            "topics": len(grades),
            "documents": sum(map(len, grades.values())),
            "retrieved": sum(len(ranking.hits) for ranking in rankings),
            "retrieved_judged": sum(
                document in grades[ranking.topic_id]
                for ranking in rankings
                for document in ranking.document_ids()
            ),
            "unjudged": unjudged.value,
        },
        also=_judged_measures(rankings, grades, unjudged, source.also, best)
        if source.also
        else Measures.none(),
    )


# Relevant documents per topic in strata that are not judged completely; with fewer, intervals cover too seldom.
ENOUGH_RELEVANT = 1


def evaluate_sampled(
    subject: Subject, grades: Grades, sample: Sample, *, held_out: bool = False
) -> Evaluation:
    """Estimate xinfAP and infNDCG of a run, with intervals, from the judged documents of a sampled pool.

    Topics count that the run ranks and that have a judged document in each stratum. Grades of documents that were not
    sampled do not count. There are no official figures.

    Raises:
        UsageError: the topics that the run has learned from are unknown.
        DataError: no topic counts, or the run has learned from all of them.
    """
    from searchapp.evaluation.sampling import SampledTopic, mean_estimate
    from searchapp.evaluation.significance import mean

    path, topics = subject.path, sampled_topics(sample, grades)
    ranked = [ranking for ranking in subject.given.run if ranking.topic_id in topics]
    if not ranked:
        raise DataError(
            f"{path} ranks no topic of the sample with a judged document in each stratum: judge the sample with "
            "`searchapp judge --run`"
        )
    rankings, notes = _counted_rankings(subject, ranked, held_out=held_out)
    counted_topics = {ranking.topic_id: topics[ranking.topic_id] for ranking in rankings}
    values: dict[str, float] = {}
    per_topic: dict[str, Mapping[str, float]] = {}
    for name, method in (("xinfAP", SampledTopic.xinfap), ("infNDCG", SampledTopic.infndcg)):
        estimates = {
            ranking.topic_id: method(topics[ranking.topic_id], ranking.document_ids()) for ranking in rankings
        }
        estimated = mean_estimate(list(estimates.values()))
        values |= {name: estimated.value, f"{name} low": estimated.low, f"{name} high": estimated.high}
        values[f"{name} uncorrected"] = mean([estimate.uncorrected for estimate in estimates.values()])
        per_topic[name] = {topic: estimate.value for topic, estimate in estimates.items()}
    judged = sum(int(topic.judged.sum()) for topic in counted_topics.values())
    return Evaluation(
        source=str(path),
        task=None if subject.task is None else subject.task.name,
        split=subject.split,
        topics=len(rankings),
        official=OfficialScore("xinfAP", {}),
        measures=Measures(values, per_topic),
        warnings=(
            *filter(None, (subject.given.note,)),
            *notes,
            *_sample_warnings(sample, counted_topics, {ranking.topic_id for ranking in subject.given.run}),
        ),
        judged={
            "topics": len(rankings),
            "documents": judged,
            "retrieved": sum(len(ranking.hits) for ranking in rankings),
            "retrieved_judged": sum(
                topics[ranking.topic_id].is_judged(document)
                for ranking in rankings
                for document in ranking.document_ids()
            ),
            "unjudged": "estimated",
        },
    )


def _sample_warnings(sample: Sample, topics: Mapping[str, SampledTopic], ranked: Set[str]) -> Iterator[str]:
    if left := len(sample.keys() | ranked) - len(topics):
        yield (
            f"{counted(left, 'topic')} {have(left)} no estimate: the run or the sample lacks them, or a stratum has no "
            "judged document"
        )
    drawn = sum(len(stratum.sampled) for topic in topics for stratum in sample[topic])
    if unjudged := drawn - sum(int(topic.judged.sum()) for topic in topics.values()):
        yield (
            f"{unjudged:,} of {counted(drawn, 'sampled document')} {have(unjudged)} no grade: the estimates suppose "
            "that they are a random part of the sample, as when the pool is judged in its order"
        )
    relevant = sum(topic.relevant_in_samples for topic in topics.values()) / len(topics)
    if any((topic.judged < topic.sizes).any() for topic in topics.values()) and relevant < ENOUGH_RELEVANT:
        yield (
            f"the samples have {relevant:.2f} relevant documents per topic: with fewer than {ENOUGH_RELEVANT} the "
            "intervals may be too narrow; draw larger shares with --strata"
        )


def _counted_rankings(
    subject: Subject, judged: Sequence[Ranking], *, held_out: bool
) -> tuple[Sequence[Ranking], Sequence[str]]:
    manifest, path = subject.given.manifest, subject.path
    if manifest is None:
        if held_out:
            raise UsageError(
                f"{path} is a TREC run, which does not record its training topics: leave out --held-out"
            )
        return judged, ()
    topics = [ranking.topic_id for ranking in judged]
    if not held_out:
        return judged, directory.learning_warnings(
            path, manifest, topics, "--held-out scores only the other topics"
        )
    seen = directory.judged_topics(path, manifest)
    counted_rankings = [ranking for ranking in judged if ranking.topic_id not in seen]
    if not counted_rankings:
        raise DataError(
            f"{path} was trained on every judged topic that it ranks, so --held-out leaves none: judge other topics"
        )
    if len(counted_rankings) == len(judged):
        return counted_rankings, ()
    out = len(judged) - len(counted_rankings)
    are, them = ("is", "it") if out == 1 else ("are", "them")
    return counted_rankings, (
        f"{out:,} of {counted(len(judged), 'judged topic')} {are} left out, because the run was trained on {them}",
    )


def _coverage(run: Run, judged: Sequence[Ranking], grades: Grades) -> str | None:
    without = len(run) - len(judged)
    unranked = sum(map(bool, grades.values())) - len(judged)
    reasons = []
    if without:
        reasons.append(f"{without:,} of the {counted(len(run), 'ranked topic')} {have(without)} no grades")
    if unranked:
        of = "1 topic with grades is" if unranked == 1 else f"{unranked:,} topics with grades are"
        reasons.append(f"{of} not ranked")
    scored = "1 is" if len(judged) == 1 else f"{len(judged):,} are"
    return f"{' and '.join(reasons)}: {scored} scored" if reasons else None


def _judged_measures(
    rankings: Sequence[Ranking], grades: Grades, unjudged: Unjudged, names: Sequence[str], best: int
) -> Measures:
    lists = {
        ranking.topic_id: [
            document
            for document in ranking.document_ids()
            if unjudged is not Unjudged.condensed or document in grades[ranking.topic_id]
        ]
        for ranking in rankings
    }
    lower = field_figures(lists, grades, names)
    if unjudged is not Unjudged.bounds:
        return lower
    best_grades = {
        topic: {**dict.fromkeys(documents, best), **grades[topic]} for topic, documents in lists.items()
    }
    bounded = [name for name in names if name not in JUDGED]
    upper = field_figures(lists, best_grades, bounded)
    values = {name: lower.values[name] for name in names if name in JUDGED}
    for name in bounded:
        # More relevant documents can lower a measure that divides by their number: the bounds are ordered.
        low, high = sorted((lower.values[name], upper.values[name]))
        values |= {f"{name} lower": low, f"{name} upper": high}
    return Measures(values, lower.per_topic)


def _official(
    subject: Subject,
    task: Task,
    part: DataSplit[Collection],
    rankings: Sequence[Ranking],
    grades: Grades,
    options: ScorerOptions,
) -> OfficialScore:
    run = Run(subject.given.run.tag, tuple(rankings))
    try:
        return judged_figures(task, part, run, grades, options).official
    except ValueError as error:
        raise DataError(
            f"{subject.path}: the run or the grades contain topics or documents that {task.name} does "
            f"not have ({error}): score them without --task, or score a run of the task"
        ) from error


def judged_figures(
    task: Task,
    part: DataSplit[Collection],
    run: Run,
    grades: Grades,
    options: ScorerOptions,
) -> Scored:
    """Return the figures of the official scorer with grades instead of gold.

    Raises:
        NotScorable: the official script stops or rejects the run with these grades.
        ValueError: an id is not a number, although the task's ids are.
    """
    with tempfile.TemporaryDirectory(prefix="searchapp-gold-") as folder:
        gold = task.official.gold(grades, part)
        predictions = task.official.predictions(run, part)
        files = []
        for name, write in gold.items():
            files.append(Path(folder) / name)
            with files[-1].open("wb") as file:
                write(file)
        return official_figures(task.official.scorer, predictions, GoldFiles(files, options))


def validate(task: Task, path: Path, part: DataSplit[Collection] | None = None) -> Problems:
    """Return all problems of an official file; a valid file is scored, to detect what stops the scorer.

    Args:
        task: the task whose format the file has
        path: the official file, or the folder of a task with several
        part: the split that it answers; without it the file is validated alone

    Raises:
        UsageError: the task's files can be validated only with their split, which is not named.
        DataError: the file, or the task's own files, can't be read.
    """
    problems, official = Problems(), task.official
    try:
        official.validate(path, part, problems)
        if part is not None and not len(problems):
            _require_scorable(official.scorer, path, part)
    except NotScorable as error:
        detail = f"{error.problem.removeprefix(f'{path}: ')} (the official scorer: {error.official})"
        problems.add(path, "not scorable", detail=detail, skippable=False)
    return problems


def _require_scorable(scorer: Scorer[P], path: Path, part: DataSplit[Collection]) -> None:
    """Score a file, if there is gold.

    Raises:
        NotScorable: the official scorer stops.
    """
    if part.collection.is_masked(part.name):
        return
    try:
        gold = part.collection.gold_files(part.name)
    except UsageError:  # a split of an own task without gold
        return
    if scorer.files_make_one and len(gold) > 1:
        gold = [file for file in gold if file.name == path.name]
    official_figures(scorer, scorer.read([path]), part.gold(gold))
