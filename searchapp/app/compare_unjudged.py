"""Whether a difference between runs can come from documents that nobody has judged, and from nothing else.

A run that finds what the others in the pool did not find is worse off the less of it is judged. What those documents
are, nobody knows; what the difference would be if they were all bad, all good, or good in the one run's favour, can be
computed.

    J. Zobel, How Reliable are the Results of Large-Scale Information Retrieval Experiments?, SIGIR 1998
    A. Moffat, J. Zobel, Rank-Biased Precision for Measurement of Retrieval Effectiveness, ACM TOIS 27, 2008 (residuals)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from searchapp.app.comparison import Doubt
from searchapp.app.evaluate import GoldSource
from searchapp.app.judged import Judgments, Subject, evaluate_judged
from searchapp.evaluation.significance import mean, paired
from searchapp.judging.treatment import Unjudged
from searchapp.runs.directory import StoredRun
from searchapp.tasks.base import Grades

Rankings = Mapping[str, Mapping[str, int]]
"""The rank of each document of each topic."""


def doubts(
    runs: Sequence[StoredRun], judgments: Judgments, source: GoldSource, pairs: Sequence[tuple[int, int]]
) -> dict[tuple[str, tuple[int, int]], Doubt]:
    """What unjudged documents can have to do with the difference of each pair under each measure of the source."""
    subjects = [Subject.stored(run, source) for run in runs]
    bounds = [_bounds(one, judgments, source) for one in subjects]
    seen = [_values(one, judgments, source) for one in subjects]
    ranks = [
        {
            one.topic_id: {document: rank for rank, document in enumerate(one.document_ids(), 1)}
            for one in run.run
        }
        for run in runs
    ]
    best = max((_best(one, judgments.grades) for one in subjects), default=1)
    found = {}
    for first, second in pairs:
        # What would favour either run: which one is behind depends on the measure.
        favouring = {
            winner: replace(judgments, grades=_favouring(judgments.grades, ranks[winner], ranks[loser], best))
            for winner, loser in ((first, second), (second, first))
        }
        favoured = {
            winner: [_values(subjects[number], labelled, source) for number in (first, second)]
            for winner, labelled in favouring.items()
        }
        for name in source.measures:
            difference = _difference(seen[first][name], seen[second][name])
            behind = first if difference > 0 else second
            turned = _difference(*(one[name] for one in favoured[behind]))
            low = bounds[second][name][0] - bounds[first][name][1]
            high = bounds[second][name][1] - bounds[first][name][0]
            due = _due(difference, low, high, turned)
            found[name, (first, second)] = Doubt(
                (bounds[first][name], bounds[second][name]), low, high, turned, due
            )
    return found


def _due(difference: float, low: float, high: float, turned: float) -> str:
    """Whether a difference can be due to unjudged documents alone; "none" where there is none."""
    if difference == 0 or math.isnan(difference):
        return "none"
    if turned == 0 or (turned > 0) != (difference > 0):
        return "yes"
    return "no" if low > 0 or high < 0 else "unknown"


def _bounds(subject: Subject, judgments: Judgments, source: GoldSource) -> dict[str, tuple[float, float]]:
    found = evaluate_judged(
        subject, replace(judgments, unjudged=Unjudged.bounds), _with_judged(source), official_too=False
    ).measures.values
    return {name: (found[f"{name} lower"], found[f"{name} upper"]) for name in source.measures}


def _with_judged(source: GoldSource) -> GoldSource:
    from searchapp.app.judged import JUDGED

    return replace(source, measures=(*source.measures, *JUDGED))


def _values(subject: Subject, judgments: Judgments, source: GoldSource) -> Mapping[str, Mapping[str, float]]:
    return evaluate_judged(subject, judgments, source, official_too=False).measures.per_topic


def _difference(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    return mean(paired(first, second).differences)


def _best(subject: Subject, grades: Grades) -> int:
    """The best grade that a document can have."""
    if subject.task is not None:
        return len(subject.task.info.grades) - 1
    return max((grade for of_topic in grades.values() for grade in of_topic.values()), default=1)


def _favouring(grades: Grades, winner: Rankings, loser: Rankings, best: int) -> Grades:
    """The grades with those unjudged documents relevant that the one run ranks higher than the other, or alone."""
    found = {}
    for topic, known in grades.items():
        here, there = winner.get(topic, {}), loser.get(topic, {})
        higher = {
            document: best
            for document, rank in here.items()
            if document not in known and rank < there.get(document, math.inf)
        }
        found[topic] = {**known, **higher}
    return found
