"""On the real data: judging as the gold does gives the figures of the gold, and helps to rank the rest."""

from __future__ import annotations

import json
import random
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from searchapp import tasks
from searchapp.formats import trec
from searchapp.tasks.base import DataSplit, Grades
from tests.cli.conftest import Cli
from tests.profile import FULL
from tests.real import RealRuns, real_data

pytestmark = pytest.mark.data

SPLITS = {
    "nlps": "dev",
    "explanation-2019": "dev",
    "explanation-2021": "dev",
    "checkthat": "training",
    "smart-types-dbpedia": "fold0",
    "smart-types-wikidata": "fold0",
    "smart-relations-dbpedia": "fold0",
}
"""The split of every task whose gold is there."""

JUDGED = (
    list(SPLITS) if FULL else ["nlps", "explanation-2021", "smart-types-dbpedia", "smart-relations-dbpedia"]
)
"""The short profile leaves out a task whose scorer differs little from another's, or that few topics take long with;
the sample of each is judged in tests/cli/test_judged_gold.py."""

ENOUGH = {"explanation-2021": ("--depth", "1000")}
"""Every fact for every question takes minutes; what is compared is the same at any depth."""

EVERY = 1 if FULL else 5
MANY = 100
"""Of more than MANY topics the gold of every EVERY-th is judged; the figures of the split ask for that of all."""

SPARED = 1 if FULL else 3
"""After half of the topics of nlps were judged, every SPARED-th of the others is ranked: enough for the mean."""

CUTOFF = 500 if FULL else 100
"""The depth of these rankings, and the cut-off of MAP: most of what judgments give is at the front."""

LENIENT = {"smart-types-wikidata", "checkthat"}
"""The official scripts stop on some labels, and on a debate of 44 lines."""

NOT_GRADES = {"smart-relations-dbpedia": {"Recall", "F1"}}
"""Figures for which gold says more than grades can: which relations are interchangeable, and repeats of one."""


def gold_of(task: str) -> Grades:
    loaded, data, split = tasks.load(task), real_data(task), SPLITS[task]
    return loaded.official.grades(
        loaded.collection(data).gold_files(split), DataSplit(loaded.collection(data), split)
    )


def imported(run: Cli, task: str, grades: Grades, log: Path) -> None:
    qrels = log.with_suffix(".qrels")
    with qrels.open("wb") as file:
        trec.write_qrels(file, grades)
    whose = ("--format", "qrels", "--annotator", "gold", "--log", log)
    result = run("judgments", "import", task, qrels, *whose)
    assert result.code == 0, result.stderr


def scored(run: Cli, where: Path, *more: object) -> Any:
    result = run("evaluate", where, "--json", "--per-topic", *more)
    assert result.code == 0, result.stderr
    return result.json


@pytest.mark.parametrize("task", JUDGED)
def test_the_figures_are_those_of_the_gold(
    offline: Cli, real_runs: RealRuns, task: str, tmp_path: Path
) -> None:
    whole, log = gold_of(task), tmp_path / "log.sqlite"
    gold = dict(list(whole.items())[:: EVERY if len(whole) > MANY else 1])
    chosen = (task, SPLITS[task], "bm25", *ENOUGH.get(task, ()))
    imported(offline, task, gold, log)
    by_gold = real_runs.scored(*chosen, lenient=task in LENIENT)
    lenient = ["--lenient"] if task in LENIENT else []
    judged = scored(offline, real_runs.run(*chosen), *lenient, "--judgments", "--log", log)
    assert judged["judged"]["documents"] == sum(map(len, gold.values()))
    of_gold, of_judged = by_gold["official"]["per_topic"], judged["official"]["per_topic"]
    # What has no relevant document can't be judged: nobody can grade nothing.
    barren = len(gold) - sum(map(bool, gold.values()))
    scorable = len(of_gold) if gold == whole else len(gold)
    assert set(of_judged) <= set(of_gold) and len(of_judged) == scorable - barren > 10
    compared = 0
    for topic, figures in of_judged.items():
        expected = of_gold[topic]
        if isinstance(figures, dict):
            figures = {key: value for key, value in figures.items() if key not in NOT_GRADES.get(task, ())}
            expected = {key: expected[key] for key in figures}
        assert figures == pytest.approx(expected, abs=1e-12), topic
        compared += 1
    if gold == whole and not barren:
        values = {
            key: value
            for key, value in by_gold["official"]["values"].items()
            if key not in NOT_GRADES.get(task, ())
        }
        found = {key: judged["official"]["values"][key] for key in values}
        assert found == pytest.approx(values, abs=1e-12)
    print(f"{task}: {compared:,} topics, {judged['judged']['documents']:,} judgments")


def with_topics(chosen: Collection[str], folder: Path) -> Path:
    """A folder with the documents and examples of nlps, and these of its dev topics."""
    data = real_data("nlps")
    folder.mkdir()
    for name in ("knowledge_base.json", "train_set.json"):
        (folder / name).symlink_to(data / name)
    topics = json.loads((data / "dev_set.json").read_text(encoding="utf-8"))
    part = {id_: topic for id_, topic in topics.items() if id_ in chosen}
    (folder / "dev_set.json").write_text(json.dumps(part, ensure_ascii=False), encoding="utf-8")
    return folder


def test_half_of_the_topics_judged_raises_map_on_the_other_half(
    offline: Cli, real_runs: RealRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold, log = gold_of("nlps"), tmp_path / "log.sqlite"
    topics = random.Random(1).sample(sorted(gold), len(gold))
    half, others = topics[: len(topics) // 2], topics[len(topics) // 2 :: SPARED]
    imported(offline, "nlps", {topic: gold[topic] for topic in half}, log)
    before, after = tmp_path / "before", tmp_path / "after"
    monkeypatch.setenv("SEARCHAPP_HOME", str(real_runs.home("nlps")))
    options = ["--split", SPLITS["nlps"], "--recipe", "neighbours", "--depth", CUTOFF]
    data = with_topics(frozenset(others), tmp_path / "others")
    assert offline("rank", "nlps", "--data", data, *options, "--out", before).code == 0
    data = with_topics(frozenset([*half, *others]), tmp_path / "all")
    judged = ["--with-judgments", "--log", log, "--out", after]
    assert offline("rank", "nlps", "--data", data, *options, *judged).code == 0
    figures = []
    for run in (before, after):
        per_topic = scored(offline, run, "--cutoff", CUTOFF)["official"]["per_topic"]
        figures.append(sum(per_topic[topic] for topic in others) / len(others))
    print(f"MAP@{CUTOFF} of {len(others):,} topics: {figures[0]:.4f} before, {figures[1]:.4f} after")
    assert figures[1] > figures[0] + (0.004 if FULL else 0.002)
