"""The scorer of a task without organisers: one of the field's measures, computed by ir-measures, is the official one.

Exactly the topics of the gold count, as everywhere in `searchapp.evaluation.measures`; what that leaves out is
told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from searchapp.evaluation.base import GoldFiles, OfficialScore, Qrels, Scored
from searchapp.evaluation.measures import measure
from searchapp.formats import trec
from searchapp.formats.problems import Problems
from searchapp.model import Run

Rankings = Mapping[str, Sequence[str]]

ReadGold = Callable[[Path, str | None, Problems], Mapping[str, Mapping[str, int]]]
"""Reads a gold file, that of a split if one is named: grades by topic and document."""


class GradedScorer:
    """Scores TREC runs against grades by one measure, named as ir-measures does."""

    files_make_one = False

    def __init__(self, measure_name: str, read_gold: ReadGold) -> None:
        self._measure = measure_name
        self._read_gold = read_gold

    def read(self, files: Sequence[Path]) -> Rankings:
        (path,) = files
        problems = Problems()
        run = trec.read_run(path, problems)
        if problems and all(problem.kind in trec.OF_RANKS for problem in problems):
            run = trec.read_by_score(
                path
            ).run  # of another system, whose ranks begin with 0, or whose lines are mixed
        else:
            problems.raise_if_any()
        return self.predictions(run)

    def predictions(self, run: Run) -> Rankings:
        return {ranking.topic_id: ranking.document_ids() for ranking in run}

    def qrels(self, gold: GoldFiles) -> Qrels:
        qrels: dict[str, dict[str, int]] = {}
        problems = Problems()
        for path in gold.files:
            for topic, grades in self._read_gold(path, gold.options.split, problems).items():
                qrels.setdefault(topic, {}).update(grades)
        problems.raise_if_any()
        return qrels

    def score(self, predictions: Rankings, gold: GoldFiles) -> Scored:
        qrels = self.qrels(gold)
        figures = measure(predictions, qrels, [self._measure])
        official = OfficialScore(
            self._measure,
            dict(figures.values),
            dict(figures.per_topic[self._measure]),
            tuple(_warnings(predictions, qrels)),
        )
        return Scored(official, len(qrels), predictions, qrels)


def _warnings(predictions: Rankings, qrels: Mapping[str, Mapping[str, int]]) -> Iterable[str]:
    missing = sum(1 for topic in qrels if topic not in predictions)
    if missing:
        yield f"{missing} of the {len(qrels)} topics of the gold have no ranking and count as 0"
    barren = sum(1 for grades in qrels.values() if not any(grade > 0 for grade in grades.values()))
    if barren:
        yield f"{barren} of the {len(qrels)} topics of the gold have no relevant document and count as 0"
    others = sum(1 for topic in predictions if topic not in qrels)
    if others:
        yield f"{others} of the {len(predictions)} rankings are of topics without gold, and count nowhere"
