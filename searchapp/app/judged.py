"""Scores a run against what people have judged, with judgments in the place of the organisers' gold.

Judgments are never complete. What a run retrieves and nobody has judged can be taken for not relevant, as trec_eval
does; it can be left out of the ranking (condensed lists); or both extremes can be computed, all of it irrelevant and
all of it as relevant as can be, between which the truth lies. Judged@k, the share of the first k documents that are
judged, says how much there is to doubt.

    T. Sakai, Alternatives to bpref, SIGIR 2007 (condensed lists).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from searchapp.app.evaluate import Evaluation, GoldSource, task_of
from searchapp.app.scoring import field_figures, official_figures
from searchapp.errors import DataError, NotScorable, UsageError
from searchapp.evaluation.base import GoldFiles, OfficialScore, Scored, ScorerOptions
from searchapp.evaluation.measures import Measures
from searchapp.judging.treatment import Unjudged
from searchapp.model import Ranking, Run
from searchapp.runs import given, learned
from searchapp.runs.directory import StoredRun
from searchapp.runs.given import GivenRun
from searchapp.tasks.base import Collection, Grades, OfficialFormat, P, Part, Submission, Task

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
        read = given.read(path)
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
    measures = _measured(rankings, known, judgments.unjudged, names, best)
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
        also=_measured(rankings, known, judgments.unjudged, source.also, best)
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
        told = learned.warning(path, manifest, topics, "--unseen scores the others alone")
        return judged, tuple(filter(None, (told, learned.tuned_warning(path, manifest))))
    seen = learned.topics_of(path, manifest)
    left = [ranking for ranking in judged if ranking.topic_id not in seen]
    if not left:
        raise DataError(
            f"{path} has learned from every judged topic that it ranks, so that --unseen leaves none: judge others"
        )
    if len(left) == len(judged):
        return left, ()
    out = len(judged) - len(left)
    return left, (
        f"{out:,} of {len(judged):,} judged topics are left out, because the run has learned from them",
    )


def _counted(run: Run, judged: Sequence[Ranking], grades: Grades) -> str | None:
    """Why not all topics are scored, in a sentence; None when they are."""
    without = len(run) - len(judged)
    unranked = sum(map(bool, grades.values())) - len(judged)
    reasons = []
    if without:
        reasons.append(
            f"{without:,} of the {len(run):,} ranked topics {'has' if without == 1 else 'have'} no grades"
        )
    if unranked:
        of = "1 topic with grades is" if unranked == 1 else f"{unranked:,} topics with grades are"
        reasons.append(f"{of} not ranked")
    scored = "1 is" if len(judged) == 1 else f"{len(judged):,} are"
    return f"{' and '.join(reasons)}: {scored} scored" if reasons else None


def _measured(
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
