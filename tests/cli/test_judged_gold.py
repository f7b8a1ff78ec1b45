"""A scripted person who judges every sample as its gold does: the official figures must be those of the gold."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp import tasks
from searchapp.demo import OPTIONS, Sample, samples
from searchapp.evaluation.evaluate import GoldSource, evaluate
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Place, Session
from searchapp.runs import directory
from tests.cli.conftest import Cli

SAMPLES = {sample.task.name: sample for sample in samples()}

NOT_GRADES = {"smart-relations-dbpedia": {"Recall", "F1"}, "smart-relations-wikidata": {"Recall", "F1"}}
"""Figures for which gold says more than grades can: which relations are interchangeable, and repeats of one."""


def test_every_task_has_a_sample() -> None:
    assert list(SAMPLES) == tasks.names()


def judge(sample: Sample, run: Path, log: Path) -> int:
    """Grade every document of the run, and every one of the gold, as the gold does; returns how many topics."""
    task = sample.task
    stored = directory.read(run)
    gold = task.gold_grades(task.gold_files(sample.data, sample.split), sample.data, sample.split)
    judged = 0
    with JudgmentLog(log) as opened:
        session = Session(opened, task.name, Author("ann"))
        for ranking in stored.run:
            grades = gold.get(ranking.topic_id)
            if grades is None:
                continue
            judged += 1
            by_grade: dict[int, list[Place]] = {}
            for document in dict.fromkeys([*grades, *ranking.document_ids()]):
                place = Place(ranking.topic_id, document)
                by_grade.setdefault(grades.get(document, 0), []).append(place)
            for grade, places in by_grade.items():
                session.grade(places, grade)
    return judged


@pytest.mark.parametrize("name", SAMPLES)
def test_the_figures_are_those_of_the_gold(offline: Cli, name: str, tmp_path: Path) -> None:
    sample, run, log = SAMPLES[name], tmp_path / "run", tmp_path / "log.sqlite"
    where = (name, "--data", sample.data)
    assert offline("index", *where).code == 0
    assert offline("rank", *where, "--split", sample.split, "--recipe", "bm25", "--out", run).code == 0
    topics = judge(sample, run, log)
    options = ("--nearest", 50, "--json")
    result = offline("evaluate", run, "--judgments", "--log", log, *options)
    assert result.code == 0, result.stderr
    (by_gold,) = evaluate([run], GoldSource(options=OPTIONS))
    assert result.json["topics"] == topics
    official = result.json["official"]["values"]
    expected = {
        key: value for key, value in by_gold.official.values.items() if key not in NOT_GRADES.get(name, ())
    }
    assert {key: official[key] for key in expected} == pytest.approx(expected, abs=1e-12)
    assert expected
