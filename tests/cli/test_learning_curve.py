"""`searchapp learning-curve` on the samples: judged topics become training topics, and the same topics are scored."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from searchapp import tasks
from searchapp.app.experiments.learning_curve import CURVE_SEED
from searchapp.formats import trec
from searchapp.tasks.base import DataSplit
from tests.cli.conftest import SAMPLES, Cli

pytestmark = pytest.mark.shared_indexes

NLPS = ("nlps", "--split", "dev", "--recipe", "neighbours", "--cutoff", 50)


@pytest.fixture
def indexed_nlps(offline: Cli) -> Cli:
    assert offline("index", "nlps", "--data", SAMPLES / "nlps").code == 0
    return offline


def curve(run: Cli, *options: object) -> Any:
    result = run("learning-curve", *(options or NLPS), "--json")
    assert result.code == 0, result.stderr
    return result.json


def gold() -> dict[str, dict[str, int]]:
    task = tasks.load("nlps")
    collection = task.collection(SAMPLES / "nlps")
    grades = task.official.grades(collection.gold_files("dev"), DataSplit(collection, "dev"))
    return {topic: dict(of_topic) for topic, of_topic in grades.items()}


def test_a_point_is_the_figure_of_a_run_with_judgments_of_that_many_topics(
    indexed_nlps: Cli, tmp_path: Path
) -> None:
    """Import the gold of half of the topics as judgments, rank with them, and score the other topics."""
    output = curve(indexed_nlps, *NLPS, "--points", "0,5")
    assert output["test_topics"] == output["pool_topics"] == 5 and output["training_topics"] == 12
    assert [point["judged"] for point in output["points"]] == [0, 5]
    assert [len(point["values"]) for point in output["points"]] == [1, 1]
    log, qrels = tmp_path / "log.sqlite", tmp_path / "judged.qrels"
    grades = gold()
    topics = list(grades)
    random.Random(CURVE_SEED).shuffle(topics)
    scored = topics[: len(topics) // 2]
    judged = {topic: of_topic for topic, of_topic in grades.items() if topic not in scored}
    with qrels.open("wb") as file:
        trec.write_qrels(file, judged)
    options = ("--format", "qrels", "--annotator", "gold", "--log", log)
    assert indexed_nlps("judgments", "import", "nlps", qrels, *options).code == 0
    for name, more in (("plain", ()), ("judged", ("--with-judgments", "--log", log))):
        out = tmp_path / name
        ranked = indexed_nlps("rank", "nlps", "--split", "dev", "--recipe", "neighbours", "--out", out, *more)
        assert ranked.code == 0, ranked.stderr
    for name, point in zip(("plain", "judged"), output["points"], strict=True):
        evaluated = indexed_nlps("evaluate", tmp_path / name, "--cutoff", 50, "--json", "--per-topic").json
        values = [evaluated["official"]["per_topic"][topic] for topic in scored]
        assert point["score"] == pytest.approx(sum(values) / len(values), abs=1e-12)
    assert output["points"][1]["judgments"] == sum(map(len, judged.values()))
    # With the same judgments from the log, all topics without judgments are scored.
    by_people = curve(indexed_nlps, *NLPS, "--judgments", "--log", log, "--points", "0,5")
    assert by_people["judgments"] == "people" and by_people["test_topics"] == 5
    assert [point["score"] for point in by_people["points"]] == pytest.approx(
        [point["score"] for point in output["points"]], abs=1e-12
    )


def test_the_seed_determines_the_sample(indexed_nlps: Cli) -> None:
    options = (*NLPS, "--points", "0,2,5", "--repetitions", 3)
    first = curve(indexed_nlps, *options)
    assert first == curve(indexed_nlps, *options)
    assert [len(point["values"]) for point in first["points"]] == [1, 3, 1]
    other = curve(indexed_nlps, *options, "--seed", 7)
    assert other["seed"] == 7 and other["points"] != first["points"]


def test_judgments_only_learns_from_judged_topics_alone(indexed_nlps: Cli) -> None:
    output = curve(indexed_nlps, *NLPS, "--judgments-only")
    assert output["training_topics"] == 0 and output["points"][0]["judged"] == 0
    options = ("smart-types-dbpedia", "--split", "fold0", "--judgments-only")
    assert indexed_nlps("index", "smart-types-dbpedia", "--data", SAMPLES / "smart-types-dbpedia").code == 0
    refused = indexed_nlps("learning-curve", *options)
    assert refused.code == 2 and "give --points of at least 1" in refused.stderr


def test_a_trained_recipe_has_a_learning_curve(offline: Cli, tmp_path: Path) -> None:
    task = "smart-types-dbpedia"
    assert offline("index", task, "--data", SAMPLES / task).code == 0
    output = curve(offline, task, "--split", "fold0", "--points", "0,4", "--test-topics", 8)
    assert output["recipe"]["name"] == "best" and output["test_topics"] == 8
    assert [point["judged"] for point in output["points"]] == [0, 4]
    assert not (tmp_path / "home" / "models").exists()  # models of parts of the topics are not stored


def test_the_chart_is_a_file_with_every_point(indexed_nlps: Cli, tmp_path: Path) -> None:
    out = tmp_path / "curve.svg"
    result = indexed_nlps("learning-curve", *NLPS, "--points", "0,2,5", "--out", out, "--json")
    assert result.code == 0 and "wrote the curve to" in result.stderr
    svg = out.read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    titles = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}title")]
    for point in result.json["points"]:
        assert f"{point['judged']} judged topics: {point['score']:.4f}" in titles
    assert sum(title.startswith("a sample of 2 judged topics") for title in titles) == 5
    assert "nlps dev, recipe neighbours: MAP@50 (official) of 5 test topics" in svg
    assert "script" not in svg and svg.count("http") == 1
    again = indexed_nlps("learning-curve", *NLPS, "--points", "0,2,5", "--out", out)
    assert again.code == 2 and "--overwrite" in again.stderr
    assert indexed_nlps("learning-curve", *NLPS, "--points", "0,2,5", "--out", out, "--overwrite").code == 0
    assert out.read_text(encoding="utf-8") == svg


def test_other_layouts_have_the_same_figures(indexed_nlps: Cli) -> None:
    output = curve(indexed_nlps, *NLPS, "--points", "0,5")
    rows = list(
        csv.DictReader(io.StringIO(indexed_nlps("learning-curve", *NLPS, "--points", "0,5", "--csv").stdout))
    )
    assert [float(row["score"]) for row in rows] == [point["score"] for point in output["points"]]
    for layout in ((), ("--markdown",)):
        text = indexed_nlps("learning-curve", *NLPS, "--points", "0,5", *layout).stdout
        assert all(f"{point['score']:.4f}" in text for point in output["points"])
        assert "judged by the official gold" in text


@pytest.mark.own_indexes
def test_a_topic_of_both_splits_becomes_a_training_topic_only_when_judged(
    offline: Cli, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(SAMPLES / "nlps", tmp_path / "data"))
    train, dev = (json.loads((data / f"{name}_set.json").read_text()) for name in ("train", "dev"))
    (data / "dev_set.json").write_text(json.dumps({**dev, **dict(list(train.items())[:1])}))
    assert offline("index", "nlps", "--data", data).code == 0
    output = curve(offline, *NLPS, "--points", "0", "--data", data)
    assert (
        output["training_topics"] == len(train) - 1
        and output["test_topics"] + output["pool_topics"] == len(dev) + 1
    )


def test_usage_errors_are_reported(indexed_nlps: Cli, tmp_path: Path) -> None:
    for options, message in (
        (("--recipe", "bm25"), "does not learn from training topics"),
        (("--split", "train"), "are training topics themselves"),
        (("--points", "0,6"), "only 5 topics can be judged, fewer than 6"),
        (("--points", "0,many"), "give whole numbers"),
        (("--test-topics", 10), "lower --test-topics"),
        (("--measure", "Guess@3"), "Guess@3"),
        (("--csv", "--json"), "give one of them"),
    ):
        refused = indexed_nlps("learning-curve", *NLPS, *options)
        assert refused.code == 2 and message in refused.stderr, refused.stderr
    log = tmp_path / "log.sqlite"
    assert indexed_nlps("learning-curve", *NLPS, "--judgments", "--log", log).code == 4
