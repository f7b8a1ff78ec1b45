"""`searchapp topics` without a terminal: figures of topics, and what became of the gold of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLE, Cli

pytestmark = pytest.mark.shared_indexes

DEPTH = 4
GOLD = {
    topic: [str(premise) for premise in entry["premises"]]
    for topic, entry in json.loads((SAMPLE / "dev_set.json").read_text(encoding="utf-8")).items()
}


def ranked(run: Path) -> dict[str, list[str]]:
    rankings: dict[str, list[str]] = {}
    for line in (run / "run.trec").read_text().splitlines():
        rankings.setdefault(line.split()[0], []).append(line.split()[2])
    return rankings


def test_topics_are_printed_with_figures_in_the_order_asked_for(indexed: Cli, run: Path) -> None:
    result = indexed("topics", "nlps", "--run", run, "--depth", DEPTH, "--order", "missed", "--json")
    assert result.code == 0, result.stderr
    described = json.loads(result.stdout)
    missed = {
        topic: len(set(GOLD[topic]) - set(documents[:DEPTH])) for topic, documents in ranked(run).items()
    }
    assert {topic["id"]: (topic["relevant"], topic["missed"]) for topic in described["topics"]} == {
        topic: (len(GOLD[topic]), missed[topic]) for topic in missed
    }
    counts = [topic["missed"] for topic in described["topics"]]
    assert counts == sorted(counts, reverse=True)
    assert (described["split"], described["measure"]) == ("dev", "AP")
    assert "AP instead of MAP@500" in result.stderr
    plain = indexed("topics", "nlps", "--run", run, "--depth", DEPTH, "--order", "missed")
    lines = plain.stdout.splitlines()
    assert lines[0].split() == ["topic", "AP", "missed"]
    first = described["topics"][0]
    assert lines[1].split()[:3] == [
        first["id"], f"{first['value']:.4f}", f"{first['missed']}/{first['relevant']}"
    ]  # fmt: skip


def test_a_topic_is_printed_with_the_ranks_of_its_gold(indexed: Cli, run: Path) -> None:
    documents = ranked(run)
    topic = next(one for one in GOLD if set(GOLD[one]) - set(documents[one][:DEPTH]))
    places = {one: documents[topic].index(one) + 1 for one in GOLD[topic]}
    result = indexed("topics", "nlps", "--run", run, "--depth", DEPTH, "--topic", topic, "--json")
    described = json.loads(result.stdout)
    assert {one["id"]: one["rank"] for one in (*described["gold"], *described["missed"])} == places
    assert {one["id"] for one in described["missed"]} == {one for one, rank in places.items() if rank > DEPTH}
    plain = indexed("topics", "nlps", "--run", run, "--depth", DEPTH, "--topic", topic)
    assert plain.code == 0
    for document, rank in places.items():
        assert (
            f"{'missed: ' * (rank > DEPTH)}rank {rank} " in plain.stdout and f" {document} " in plain.stdout
        )


def test_only_failures_are_printed_with_what_is_not_relevant(indexed: Cli, run: Path) -> None:
    documents = ranked(run)
    fails = {topic for topic, gold in GOLD.items() if set(documents[topic][: len(gold)]) != set(gold)}
    result = indexed("topics", "nlps", "--run", run, "--failures", "--json")
    topics = json.loads(result.stdout)["topics"]
    assert {topic["id"] for topic in topics} == fails and 0 < len(fails) < len(GOLD)
    values = [topic["value"] for topic in topics]
    assert values == sorted(values)
    topic = topics[0]["id"]
    asked = ("topics", "nlps", "--run", run, "--failures", "--topic", topic)
    described = json.loads(indexed(*asked, "--json").stdout)
    others = [(rank, one) for rank, one in enumerate(documents[topic], 1) if one not in GOLD[topic]][:10]
    assert [(one["rank"], one["id"]) for one in described["not_relevant"]] == others
    plain = indexed(*asked).stdout
    for rank, one in others:
        assert any(
            f"not relevant: rank {rank} " in line and f" {one} " in line for line in plain.splitlines()
        )


def test_what_a_recipe_ranks_now_is_the_same_as_its_run(indexed: Cli, run: Path) -> None:
    now = indexed("topics", "nlps", "--data", SAMPLE, "--recipe", "bm25", "--json")
    of_run = indexed("topics", "nlps", "--run", run, "--json")
    assert json.loads(now.stdout)["topics"] == json.loads(of_run.stdout)["topics"]
    assert json.loads(now.stdout)["run"] == "search bm25"


def test_a_depth_that_raises_a_window_is_warned_of_as_by_rank(
    indexed: Cli, run: Path, tmp_path: Path
) -> None:
    now = ("topics", "nlps", "--data", SAMPLE, "--recipe", "neighbours", "--json")
    for depth in (500, 501):
        result = indexed(*now, "--depth", depth)
        assert result.code == 0, result.stderr
        assert ("the depth 501 raises the window 500 of the signal direct" in result.stderr) == (depth == 501)
    of_run = indexed("topics", "nlps", "--run", run, "--depth", 501, "--json")  # which is ranked already
    assert of_run.code == 0 and "window" not in of_run.stderr


def test_requests_that_make_no_sense_are_refused(indexed: Cli, run: Path, tmp_path: Path) -> None:
    for options, code, told in (
        (["--run", run, "--recipe", "bm25"], 2, "exclude each other"),
        (["--run", run, "--topic", "x"], 2, "has no topic 'x'"),
        (["--run", tmp_path / "none"], 2, "there is no run"),
        (["--recipe", "none"], 2, "none"),
        (["--data", tmp_path], 4, "has no topics of nlps"),
    ):
        refused = indexed("topics", "nlps", *options)
        assert refused.code == code and told in refused.stderr, refused.stderr
