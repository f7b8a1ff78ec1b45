"""`searchapp learning-curve` on the samples: what is judged counts as solved, and the same topics are scored."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from searchapp import tasks
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
    return {topic: dict(held) for topic, held in grades.items()}


def test_a_point_is_the_run_that_people_make_who_judge_so_many_topics(
    indexed_nlps: Cli, tmp_path: Path
) -> None:
    """Judged by hand: half of the topics by their gold, ranked with these judgments, and the others scored."""
    found = curve(indexed_nlps, *NLPS, "--points", "0,5")
    assert found["test_topics"] == found["pool_topics"] == 5 and found["training_topics"] == 12
    assert [point["judged"] for point in found["points"]] == [0, 5]
    assert [len(point["values"]) for point in found["points"]] == [1, 1]
    # Which topics are judged is known by who learns from whom: the log has those.
    log = tmp_path / "log.sqlite"
    grades = gold()
    for scored in [_scored(indexed_nlps, grades)]:
        judged = {topic: held for topic, held in grades.items() if topic not in scored}
        qrels = tmp_path / "judged.qrels"
        with qrels.open("wb") as file:
            trec.write_qrels(file, judged)
        whose = ("--format", "qrels", "--annotator", "gold", "--log", log)
        assert indexed_nlps("judgments", "import", "nlps", qrels, *whose).code == 0
        for name, more in (("plain", ()), ("judged", ("--with-judgments", "--log", log))):
            out = tmp_path / name
            ranked = indexed_nlps(
                "rank", "nlps", "--split", "dev", "--recipe", "neighbours", "--out", out, *more
            )
            assert ranked.code == 0, ranked.stderr
        for name, point in zip(("plain", "judged"), found["points"], strict=True):
            per_topic = indexed_nlps(
                "evaluate", tmp_path / name, "--cutoff", 50, "--json", "--per-topic"
            ).json["official"]["per_topic"]
            values = [per_topic[topic] for topic in scored]
            assert point["score"] == pytest.approx(sum(values) / len(values), abs=1e-12)
        assert found["points"][1]["judgments"] == sum(map(len, judged.values()))
        # The same judgments from the log: all that is not in it is scored.
        by_people = curve(indexed_nlps, *NLPS, "--judgments", "--log", log, "--points", "0,5")
        assert by_people["judgments"] == "people" and by_people["test_topics"] == 5
        assert [point["score"] for point in by_people["points"]] == pytest.approx(
            [point["score"] for point in found["points"]], abs=1e-12
        )


def _scored(run: Cli, grades: dict[str, dict[str, int]]) -> list[str]:
    """The topics that are scored, as the seed divides them."""
    import random

    from searchapp.app.experiments.learning_curve import SEED

    topics = list(grades)
    random.Random(SEED).shuffle(topics)
    return topics[: len(topics) // 2]


def test_the_seed_decides_what_is_drawn(indexed_nlps: Cli) -> None:
    options = (*NLPS, "--points", "0,2,5", "--repetitions", 3)
    first = curve(indexed_nlps, *options)
    assert first == curve(indexed_nlps, *options)
    assert [len(point["values"]) for point in first["points"]] == [1, 3, 1]
    other = curve(indexed_nlps, *options, "--seed", 7)
    assert other["seed"] == 7 and other["points"] != first["points"]


def test_judged_topics_alone_can_be_what_is_learned_from(indexed_nlps: Cli) -> None:
    found = curve(indexed_nlps, *NLPS, "--judgments-only")
    assert found["training_topics"] == 0 and found["points"][0]["judged"] == 0
    options = ("smart-types-dbpedia", "--split", "fold0", "--judgments-only")
    assert indexed_nlps("index", "smart-types-dbpedia", "--data", SAMPLES / "smart-types-dbpedia").code == 0
    refused = indexed_nlps("learning-curve", *options)
    assert refused.code == 2 and "give --points of at least 1" in refused.stderr


def test_trained_recipes_learn_too(offline: Cli, tmp_path: Path) -> None:
    task = "smart-types-dbpedia"
    assert offline("index", task, "--data", SAMPLES / task).code == 0
    found = curve(offline, task, "--split", "fold0", "--points", "0,4", "--test-topics", 8)
    assert found["recipe"]["name"] == "best" and found["test_topics"] == 8
    assert [point["judged"] for point in found["points"]] == [0, 4]
    assert not (tmp_path / "home" / "models").exists()  # models of samples are nobody's


def test_the_picture_is_one_file_with_every_point(indexed_nlps: Cli, tmp_path: Path) -> None:
    out = tmp_path / "curve.svg"
    result = indexed_nlps("learning-curve", *NLPS, "--points", "0,2,5", "--out", out, "--json")
    assert result.code == 0 and "wrote the curve to" in result.stderr
    drawn = out.read_text(encoding="utf-8")
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    titles = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}title")]
    for point in result.json["points"]:
        assert f"{point['judged']} judged topics: {point['score']:.4f}" in titles
    assert sum(title.startswith("a sample of 2 judged topics") for title in titles) == 5
    assert "nlps dev, recipe neighbours: MAP@50 (official) of 5 test topics" in drawn
    assert "script" not in drawn and drawn.count("http") == 1
    again = indexed_nlps("learning-curve", *NLPS, "--points", "0,2,5", "--out", out)
    assert again.code == 2 and "--overwrite" in again.stderr
    assert indexed_nlps("learning-curve", *NLPS, "--points", "0,2,5", "--out", out, "--overwrite").code == 0
    assert out.read_text(encoding="utf-8") == drawn


def test_other_layouts_have_the_same_figures(indexed_nlps: Cli) -> None:
    found = curve(indexed_nlps, *NLPS, "--points", "0,5")
    rows = list(
        csv.DictReader(io.StringIO(indexed_nlps("learning-curve", *NLPS, "--points", "0,5", "--csv").stdout))
    )
    assert [float(row["score"]) for row in rows] == [point["score"] for point in found["points"]]
    for layout in ((), ("--markdown",)):
        shown = indexed_nlps("learning-curve", *NLPS, "--points", "0,5", *layout).stdout
        assert all(f"{point['score']:.4f}" in shown for point in found["points"])
        assert "judged by the official gold" in shown


@pytest.mark.own_indexes
def test_a_topic_that_train_has_too_is_learned_from_only_when_it_is_judged(
    offline: Cli, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(SAMPLES / "nlps", tmp_path / "data"))
    train, dev = (json.loads((data / f"{name}_set.json").read_text()) for name in ("train", "dev"))
    (data / "dev_set.json").write_text(json.dumps({**dev, **dict(list(train.items())[:1])}))
    assert offline("index", "nlps", "--data", data).code == 0
    found = curve(offline, *NLPS, "--points", "0", "--data", data)
    assert (
        found["training_topics"] == len(train) - 1
        and found["test_topics"] + found["pool_topics"] == len(dev) + 1
    )


def test_what_can_t_be_learned_is_a_mistake(indexed_nlps: Cli, tmp_path: Path) -> None:
    for options, said in (
        (("--recipe", "bm25"), "does not learn from training topics"),
        (("--split", "train"), "are training topics themselves"),
        (("--points", "0,6"), "only 5 topics can be judged, fewer than 6"),
        (("--points", "0,many"), "give whole numbers"),
        (("--test-topics", 10), "lower --test-topics"),
        (("--measure", "Guess@3"), "Guess@3"),
        (("--csv", "--json"), "give one of them"),
    ):
        refused = indexed_nlps("learning-curve", *NLPS, *options)
        assert refused.code == 2 and said in refused.stderr, refused.stderr
    log = tmp_path / "log.sqlite"
    assert indexed_nlps("learning-curve", *NLPS, "--judgments", "--log", log).code == 4
