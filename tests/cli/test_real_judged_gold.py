"""On real data, judgments with the grades of the gold have its figures and improve rankings of other topics."""

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
"""The split of every task with gold."""

JUDGED = (
    list(SPLITS) if FULL else ["nlps", "explanation-2021", "smart-types-dbpedia", "smart-relations-dbpedia"]
)
"""The short profile omits tasks with similar scorers and tasks whose few topics take long; their samples are in
tests/cli/test_judged_gold.py."""

DEPTHS = {"explanation-2021": ("--depth", "1000")}
"""Ranking every fact for every question takes minutes, and the comparison does not depend on the depth."""

EVERY = 1 if FULL else 5
MANY = 100
"""Of more than MANY topics every EVERY-th is judged; figures of the split are then not compared."""

SPARED = 1 if FULL else 3
"""Of the topics of nlps that are not judged, every SPARED-th is ranked, which suffices for the mean."""

CUTOFF = 500 if FULL else 100
"""The depth of these rankings and the cut-off of MAP; judgments mostly change the first ranks."""

LENIENT = {"smart-types-wikidata", "checkthat"}
"""The official scripts stop on some labels, and on a debate of 44 lines."""

NOT_GRADES = {"smart-relations-dbpedia": {"Recall", "F1"}}
"""Figures that depend on more than grades: on interchangeable and on repeated relations."""


def gold_of(task: str) -> Grades:
    loaded, data, split = tasks.load(task), real_data(task), SPLITS[task]
    return loaded.official.grades(
        loaded.collection(data).gold_files(split), DataSplit(loaded.collection(data), split)
    )


def import_grades(run: Cli, task: str, grades: Grades, log: Path) -> None:
    qrels = log.with_suffix(".qrels")
    with qrels.open("wb") as file:
        trec.write_qrels(file, grades)
    options = ("--format", "qrels", "--annotator", "gold", "--log", log)
    result = run("judgments", "import", task, qrels, *options)
    assert result.code == 0, result.stderr


def evaluate(run: Cli, path: Path, *options: object) -> Any:
    result = run("evaluate", path, "--json", "--per-topic", *options)
    assert result.code == 0, result.stderr
    return result.json


@pytest.mark.parametrize("task", JUDGED)
def test_the_figures_are_those_of_the_gold(
    offline: Cli, real_runs: RealRuns, task: str, tmp_path: Path
) -> None:
    all_gold, log = gold_of(task), tmp_path / "log.sqlite"
    gold = dict(list(all_gold.items())[:: EVERY if len(all_gold) > MANY else 1])
    run_options = (task, SPLITS[task], "bm25", *DEPTHS.get(task, ()))
    import_grades(offline, task, gold, log)
    by_gold = real_runs.scored(*run_options, lenient=task in LENIENT)
    lenient = ["--lenient"] if task in LENIENT else []
    judged = evaluate(offline, real_runs.run(*run_options), *lenient, "--judgments", "--log", log)
    assert judged["judged"]["documents"] == sum(map(len, gold.values()))
    of_gold, of_judged = by_gold["official"]["per_topic"], judged["official"]["per_topic"]
    # Topics without relevant documents have no grades to import.
    barren = len(gold) - sum(map(bool, gold.values()))
    scorable = len(of_gold) if gold == all_gold else len(gold)
    assert set(of_judged) <= set(of_gold) and len(of_judged) == scorable - barren > 10
    compared = 0
    for topic, figures in of_judged.items():
        expected = of_gold[topic]
        if isinstance(figures, dict):
            figures = {key: value for key, value in figures.items() if key not in NOT_GRADES.get(task, ())}
            expected = {key: expected[key] for key in figures}
        assert figures == pytest.approx(expected, abs=1e-12), topic
        compared += 1
    if gold == all_gold and not barren:
        values = {
            key: value
            for key, value in by_gold["official"]["values"].items()
            if key not in NOT_GRADES.get(task, ())
        }
        official = {key: judged["official"]["values"][key] for key in values}
        assert official == pytest.approx(values, abs=1e-12)
    print(f"{task}: {compared:,} topics, {judged['judged']['documents']:,} judgments")


def with_topics(chosen: Collection[str], folder: Path) -> Path:
    """Make a folder with documents and training topics of nlps, and with the chosen topics of dev."""
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
    import_grades(offline, "nlps", {topic: gold[topic] for topic in half}, log)
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
        per_topic = evaluate(offline, run, "--cutoff", CUTOFF)["official"]["per_topic"]
        figures.append(sum(per_topic[topic] for topic in others) / len(others))
    print(f"MAP@{CUTOFF} of {len(others):,} topics: {figures[0]:.4f} before, {figures[1]:.4f} after")
    assert figures[1] > figures[0] + (0.004 if FULL else 0.002)
