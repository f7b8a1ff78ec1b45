"""Scores a run against what people have judged, with judgments in the place of the organisers' gold.

Judgments are never complete. What a run retrieves and nobody has judged can be taken for not relevant, as trec_eval
does; it can be left out of the ranking (condensed lists); or both extremes can be computed, all of it irrelevant and
all of it as relevant as can be, between which the truth lies. Judged@k, the share of the first k documents that are
judged, says how much there is to doubt.

    T. Sakai, Alternatives to bpref, SIGIR 2007 (condensed lists).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from searchapp.errors import DataError, NotScorable
from searchapp.evaluation.base import OfficialScore, ScorerOptions
from searchapp.evaluation.evaluate import Evaluation, task_of
from searchapp.evaluation.measures import Measures, measure
from searchapp.judging.treatment import Unjudged
from searchapp.model import Ranking, Run
from searchapp.runs import directory
from searchapp.tasks.base import Grades, Task

JUDGED = ("Judged@10", "Judged@100")
ALSO = ("AP", "nDCG@10")
"""Measured beside the task's own measures."""


def evaluate_judged(
    path: Path,
    grades: Grades,
    unjudged: Unjudged = Unjudged.nonrelevant,
    options: ScorerOptions | None = None,
    task_name: str | None = None,
) -> Evaluation:
    """Score a run directory on the topics that have grades.

    The official figures are those of the organisers' scorer with the grades as gold; they exist only where unjudged
    documents count as not relevant, since their scorer has no other notion.

    Raises:
        DataError: the run ranks none of the judged topics.
        NotScorable: the organisers' scorer would not score the run against this gold.
    """
    stored = directory.read(path)
    task = task_of(stored, task_name)
    rankings = [ranking for ranking in stored.run if grades.get(ranking.topic_id)]
    if not rankings:
        raise DataError(
            f"{path} ranks no topic that has been judged: `searchapp judge {task.reference} --run {path}`"
        )
    known = {ranking.topic_id: grades[ranking.topic_id] for ranking in rankings}
    names = tuple(dict.fromkeys((*task.measures, *ALSO, *JUDGED)))
    measures = _measured(rankings, known, unjudged, names, len(task.grades) - 1)
    try:
        official, warnings = _official(task, stored, rankings, known, unjudged, options or ScorerOptions())
    except NotScorable as error:
        raise error.of(str(path)) from error
    return Evaluation(
        source=str(path),
        task=task.name,
        split=stored.manifest.split,
        topics=len(known),
        official=official,
        measures=measures,
        warnings=warnings,
        judged=_described(rankings, known, unjudged),
    )


def _measured(
    rankings: Sequence[Ranking], grades: Grades, unjudged: Unjudged, names: Sequence[str], best: int
) -> Measures:
    lists = {ranking.topic_id: list(ranking.document_ids()) for ranking in rankings}
    if unjudged is Unjudged.condensed:
        lists = {
            topic: [document for document in documents if document in grades[topic]]
            for topic, documents in lists.items()
        }
    found = measure(lists, grades, names)
    if unjudged is not Unjudged.bounds:
        return found
    as_good_as_can_be = {
        topic: {**dict.fromkeys(documents, best), **grades[topic]} for topic, documents in lists.items()
    }
    bounded = [name for name in names if name not in JUDGED]
    upper = measure(lists, as_good_as_can_be, bounded)
    values = {name: found.values[name] for name in JUDGED}
    for name in bounded:
        # More relevant documents can lower a measure that divides by their number: the bounds are ordered.
        low, high = sorted((found.values[name], upper.values[name]))
        values |= {f"{name} lower": low, f"{name} upper": high}
    return Measures(values, found.per_topic)


def _official(
    task: Task,
    stored: directory.StoredRun,
    rankings: Sequence[Ranking],
    grades: Grades,
    unjudged: Unjudged,
    options: ScorerOptions,
) -> tuple[OfficialScore, tuple[str, ...]]:
    manifest = stored.manifest
    if unjudged is not Unjudged.nonrelevant:
        none = OfficialScore(task.official_measure, {})
        return none, (f"there is no official figure: unjudged documents are taken as {unjudged.value}",)
    run = Run(stored.run.tag, tuple(rankings))
    with tempfile.TemporaryDirectory(prefix="searchapp-gold-") as folder:
        files = []
        for name, write in task.judged_gold(grades, Path(manifest.data), manifest.split).items():
            files.append(Path(folder) / name)
            with files[-1].open("wb") as file:
                write(file)
        scored = task.scorer.score(task.scorer.predictions(run), files, options)
    return scored.official, scored.official.warnings


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
