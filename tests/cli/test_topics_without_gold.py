"""`searchapp topics` with an annotator's grades instead of gold, and without both."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLES, Cli, read_rankings
from tests.cli.test_topics import GOLD

pytestmark = pytest.mark.shared_indexes

TOPIC, OTHER = list(GOLD)[:2]


@pytest.fixture
def judged(indexed: Cli, run: Path, tmp_path: Path) -> dict[str, int]:
    """What ann has judged of a topic: ranks 1 and 3 of its ranking are relevant, rank 2 is not; bob disagrees."""
    documents = read_rankings(run)[TOPIC][:3]
    grades = dict(zip(documents, (1, 0, 1), strict=True))
    for name, own in (("ann", grades), ("bob", dict.fromkeys(documents, 0))):
        qrels = tmp_path / f"{name}.qrels"
        qrels.write_text("".join(f"{TOPIC} 0 {one} {grade}\n" for one, grade in own.items()))
        imported = indexed("judgments", "import", "nlps", qrels, "--format", "qrels", "--annotator", name)
        assert imported.code == 0, imported.stderr
    return grades


def test_the_annotators_grades_replace_the_gold(indexed: Cli, run: Path, judged: dict[str, int]) -> None:
    asked = ("topics", "nlps", "--run", run, "--judgments", "--annotator", "ann")
    described = indexed(*asked, "--json").json
    figures = {topic["id"]: topic for topic in described["topics"]}
    assert described["no_gold"] is None and figures.keys() == GOLD.keys()
    assert (figures[TOPIC]["relevant"], figures[TOPIC]["missed"]) == (2, 0)
    assert figures[OTHER] == {"id": OTHER, "value": None, "relevant": 0, "missed": 0}
    assert figures[TOPIC]["value"] == pytest.approx((1 + 2 / 3) / 2)
    of_topic = indexed(*asked, "--topic", TOPIC, "--json").json
    assert {one["id"]: one["rank"] for one in of_topic["gold"]} == {
        document: rank for rank, (document, grade) in enumerate(judged.items(), 1) if grade
    }
    failures = indexed(*asked, "--failures", "--json").json["topics"]
    assert [topic["id"] for topic in failures] == [TOPIC]
    plain = indexed(*asked).stdout.splitlines()
    assert [line.split()[:3] for line in plain if line.startswith(f"{TOPIC} ")] == [[TOPIC, "0.8333", "0/2"]]


def test_an_annotator_without_grades_is_reported(indexed: Cli, run: Path, judged: dict[str, int]) -> None:
    result = indexed("topics", "nlps", "--run", run, "--judgments", "--annotator", "anna")
    assert result.code == 2 and "has no annotator 'anna' (did you mean ann?)" in result.stderr


@pytest.fixture
def goldless(cli: Cli, tmp_path: Path) -> Path:
    """An own task without gold, which is indexed."""
    task = Path(shutil.copytree(SAMPLES / "own", tmp_path / "own")) / "cooking.toml"
    task.write_text(task.read_text().replace('gold = "gold.txt"\n', ""))
    assert cli("index", task).code == 0
    assert cli("rank", task, "--split", "dev", "--out", tmp_path / "run").code == 0
    return task


@pytest.mark.own_indexes
def test_topics_without_gold_are_printed_without_figures(cli: Cli, goldless: Path, tmp_path: Path) -> None:
    asked = ("topics", goldless, "--run", tmp_path / "run")
    result = cli(*asked, "--json")
    described = result.json
    assert result.code == 0 and "the split dev of cooking has no gold" in described["no_gold"]
    assert described["measure"] is None and {one["value"] for one in described["topics"]} == {None}
    plain = cli(*asked)
    lines = plain.stdout.splitlines()
    assert plain.code == 0 and lines[0] == "topic" and len(lines) == len(described["topics"]) + 1
    assert plain.stderr == f"warning: {described['no_gold']}\n"
    topic = described["topics"][0]["id"]
    documents = read_rankings(tmp_path / "run")[topic][:10]
    of_topic = cli(*asked, "--topic", topic, "--json").json
    assert [(one["rank"], one["id"]) for one in of_topic["ranking"]] == list(enumerate(documents, 1))
    printed = cli(*asked, "--topic", topic).stdout.splitlines()[1:]
    assert [line.split()[:3] for line in printed] == [
        ["rank", str(rank), document] for rank, document in enumerate(documents, 1)
    ]
    for options in (["--failures"], ["--order", "worst"], ["--failures", "--topic", topic]):
        refused = cli(*asked, *options)
        assert refused.code == 2 and "--judgments" in refused.stderr


@pytest.mark.own_indexes
def test_topics_without_gold_have_figures_by_judgments(cli: Cli, goldless: Path, tmp_path: Path) -> None:
    topic, (first, second, *_) = next(iter(read_rankings(tmp_path / "run").items()))
    qrels = tmp_path / "ann.qrels"
    qrels.write_text(f"{topic} 0 {first} 0\n{topic} 0 {second} 2\n")
    imported = cli("judgments", "import", goldless, qrels, "--format", "qrels", "--annotator", "ann")
    assert imported.code == 0, imported.stderr
    asked = ("topics", goldless, "--run", tmp_path / "run", "--judgments", "--annotator", "ann")
    described = cli(*asked, "--json").json
    (own,) = [one for one in described["topics"] if one["relevant"]]
    assert described["measure"] == "nDCG@10" and own["id"] == topic and 0 < own["value"] < 1
