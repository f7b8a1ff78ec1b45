"""`searchapp topics` without a terminal: figures of topics, and ranks of the gold of one topic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLE, Cli, read_rankings

pytestmark = pytest.mark.shared_indexes

DEPTH = 4
GOLD = {
    topic: [str(premise) for premise in entry["premises"]]
    for topic, entry in json.loads((SAMPLE / "dev_set.json").read_text(encoding="utf-8")).items()
}


def test_topics_are_printed_with_figures_in_the_chosen_order(indexed: Cli, run: Path) -> None:
    result = indexed("topics", "nlps", "--run", run, "--depth", DEPTH, "--order", "missed", "--json")
    assert result.code == 0, result.stderr
    output = result.json
    missed = {
        topic: len(set(GOLD[topic]) - set(documents[:DEPTH]))
        for topic, documents in read_rankings(run).items()
    }
    assert {topic["id"]: (topic["relevant"], topic["missed"]) for topic in output["topics"]} == {
        topic: (len(GOLD[topic]), missed[topic]) for topic in missed
    }
    counts = [topic["missed"] for topic in output["topics"]]
    assert counts == sorted(counts, reverse=True)
    assert (output["split"], output["measure"]) == ("dev", "AP")
    assert "AP instead of MAP@500" in result.stderr
    plain = indexed("topics", "nlps", "--run", run, "--depth", DEPTH, "--order", "missed")
    lines = plain.stdout.splitlines()
    assert lines[0].split() == ["topic", "AP", "missed"]
    first = output["topics"][0]
    assert lines[1].split()[:3] == [
        first["id"], f"{first['value']:.4f}", f"{first['missed']}/{first['relevant']}"
    ]  # fmt: skip


def test_a_topic_is_printed_with_the_ranks_of_its_gold(indexed: Cli, run: Path) -> None:
    rankings = read_rankings(run)
    topic = next(topic for topic, gold in GOLD.items() if set(gold) - set(rankings[topic][:DEPTH]))
    ranks = {document: rankings[topic].index(document) + 1 for document in GOLD[topic]}
    command = ("topics", "nlps", "--run", run, "--depth", DEPTH, "--topic", topic)
    output = indexed(*command, "--json").json
    assert {document["id"]: document["rank"] for document in (*output["gold"], *output["missed"])} == ranks
    assert {document["id"] for document in output["missed"]} == {
        document for document, rank in ranks.items() if rank > DEPTH
    }
    plain = indexed(*command)
    assert plain.code == 0
    for document, rank in ranks.items():
        assert f"{'missed: ' * (rank > DEPTH)}rank {rank} " in plain.stdout
        assert f" {document} " in plain.stdout


def test_failures_are_printed_with_documents_that_are_not_relevant(indexed: Cli, run: Path) -> None:
    rankings = read_rankings(run)
    failures = {topic for topic, gold in GOLD.items() if set(rankings[topic][: len(gold)]) != set(gold)}
    topics = indexed("topics", "nlps", "--run", run, "--failures", "--json").json["topics"]
    assert {topic["id"] for topic in topics} == failures and 0 < len(failures) < len(GOLD)
    values = [topic["value"] for topic in topics]
    assert values == sorted(values)
    topic = topics[0]["id"]
    command = ("topics", "nlps", "--run", run, "--failures", "--topic", topic)
    ranked = enumerate(rankings[topic], 1)
    expected = [(rank, document) for rank, document in ranked if document not in GOLD[topic]][:10]
    documents = indexed(*command, "--json").json["not_relevant"]
    assert [(document["rank"], document["id"]) for document in documents] == expected
    lines = indexed(*command).stdout.splitlines()
    for rank, document in expected:
        assert any(f"not relevant: rank {rank} " in line and f" {document} " in line for line in lines)


def test_a_live_ranking_has_the_figures_of_a_run_of_its_recipe(indexed: Cli, run: Path) -> None:
    live = indexed("topics", "nlps", "--data", SAMPLE, "--recipe", "bm25", "--json").json
    of_run = indexed("topics", "nlps", "--run", run, "--json").json
    assert live["topics"] == of_run["topics"]
    assert live["run"] == "search bm25"


def test_a_depth_that_raises_a_window_has_the_warning_of_rank(indexed: Cli, run: Path) -> None:
    live = ("topics", "nlps", "--data", SAMPLE, "--recipe", "neighbours", "--json")
    for depth in (500, 501):
        result = indexed(*live, "--depth", depth)
        assert result.code == 0, result.stderr
        assert ("the depth 501 raises the window 500 of the signal direct" in result.stderr) == (depth == 501)
    of_run = indexed("topics", "nlps", "--run", run, "--depth", 501, "--json")  # a run is not ranked again
    assert of_run.code == 0 and "window" not in of_run.stderr


def test_usage_errors_are_reported(indexed: Cli, run: Path, tmp_path: Path) -> None:
    for options, code, message in (
        (["--run", run, "--recipe", "bm25"], 2, "exclude each other"),
        (["--run", run, "--topic", "x"], 2, "has no topic 'x'"),
        (["--run", tmp_path / "none"], 2, "there is no run"),
        (["--recipe", "none"], 2, "none"),
        (["--data", tmp_path], 4, "has no topics of nlps"),
    ):
        refused = indexed("topics", "nlps", *options)
        assert refused.code == code and message in refused.stderr, refused.stderr
