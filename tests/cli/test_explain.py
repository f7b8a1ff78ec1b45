"""`searchapp explain`: why a document is at its rank for a topic."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLE, SAMPLES, Cli, Result

pytestmark = pytest.mark.shared_indexes

TOPIC = "605"


@pytest.mark.parametrize("recipe", ["bm25", "neighbours"])
def test_the_scores_of_signals_add_up_to_the_score_of_the_run(
    indexed: Cli, tmp_path: Path, recipe: str
) -> None:
    options = ["--data", SAMPLE, "--split", "dev", "--recipe", recipe]
    assert indexed("rank", "nlps", *options, "--out", tmp_path / "run").code == 0
    lines = [line.split() for line in (tmp_path / "run" / "run.trec").read_text().splitlines()]
    _, _, document, rank, score, _ = [line for line in lines if line[0] == TOPIC][1]
    output = indexed("explain", "nlps", document, "--topic", TOPIC, *options, "--json").json
    assert (output["split"], output["topic"], output["document_id"]) == ("dev", TOPIC, document)
    assert (output["status"], output["rank"]) == ("ranked", int(rank))
    assert output["score"] == pytest.approx(float(score), rel=1e-6)
    assert [share["signal"] for share in output["signals"]] == (
        ["direct", "neighbours"] if recipe == "neighbours" else []
    )
    if output["signals"]:
        total = sum(share["value"] or 0.0 for share in output["signals"])
        assert total == pytest.approx(output["score"], rel=1e-6)
    first, *rest = indexed("explain", "nlps", document, "--topic", TOPIC, *options).stdout.splitlines()
    assert (
        first
        == f"{document} is at rank {rank} for the topic {TOPIC} (nlps dev), with the score {float(score):.4f}"
    )
    shares = [line.strip() for line in rest]
    assert ("Scores of the signals:" in shares) == (recipe == "neighbours")
    for share in output["signals"]:
        assert any(line.startswith(f"{share['value']:.4f}  {share['signal']}") for line in shares)


def test_the_split_of_the_topic_is_found_and_documents_below_the_depth_have_a_rank(indexed: Cli) -> None:
    def explain(document: str, *options: object) -> Result:
        return indexed("explain", "nlps", document, "--topic", TOPIC, "--data", SAMPLE, *options)

    unknown = explain("x", "--json").json
    assert (unknown["split"], unknown["status"], unknown["recipe"]) == ("dev", "unknown", "bm25")
    knowledge = json.loads((SAMPLE / "knowledge_base.json").read_text(encoding="utf-8"))
    ranked = {document: explain(document, "--json").json for document in list(knowledge)[:4]}
    for document, deep in ranked.items():
        assert (deep["status"], deep["extended_depth"]) == ("ranked", None)
        shallow = explain(document, "--depth", 1, "--json").json
        if deep["score"]:
            extended_depth = None if deep["rank"] == 1 else 10_000
            assert (shallow["rank"], shallow["extended_depth"]) == (deep["rank"], extended_depth)
        else:  # documents without a score have no rank below the depth
            assert (shallow["status"], shallow["extended_depth"]) == ("no match", None)
    _rank, last = max((deep["rank"], document) for document, deep in ranked.items() if deep["score"])
    first_line = explain(last, "--depth", 1).stdout.splitlines()[0]
    assert first_line.endswith(", in a ranking of 10,000 documents")
    filtered = explain(TOPIC)  # a topic is no hit of itself
    assert (filtered.code, filtered.stdout) == (0, f"{TOPIC} matches, but a filter excludes it\n")


def test_a_depth_that_raises_a_window_has_the_warning_of_rank(indexed: Cli) -> None:
    command = ("explain", "nlps", "601", "--topic", TOPIC, "--data", SAMPLE, "--recipe", "neighbours")
    for depth in (500, 501):
        result = indexed(*command, "--depth", depth)
        assert result.code == 0, result.stderr
        assert ("the depth 501 raises the window 500 of the signal direct" in result.stderr) == (depth == 501)


def test_a_debate_can_be_explained(indexed: Cli) -> None:
    assert indexed("index", "checkthat", "--data", SAMPLES / "checkthat").code == 0
    options = ("--topic", "farm_speech", "--data", SAMPLES / "checkthat", "--recipe", "neighbours")
    result = indexed("explain", "checkthat", "farm_speech:1", *options, "--json")
    assert result.code == 0, result.stderr
    assert (result.json["status"], result.json["split"]) == ("ranked", "training")
    assert {share["signal"] for share in result.json["signals"]} == {"direct", "labelled"}


def test_an_unknown_topic_is_refused(indexed: Cli) -> None:
    for options, message in (
        ((), "no split of nlps has the topic"),
        (("--split", "dev"), "nlps dev has no topic"),
    ):
        refused = indexed("explain", "nlps", "1", "--topic", "none", "--data", SAMPLE, *options)
        assert refused.code == 2 and message in refused.stderr


@pytest.mark.parametrize("document", ["", "\udcff\udcfe", "x" * 9_000])
def test_an_impossible_id_is_reported_as_not_indexed(indexed: Cli, document: str) -> None:
    result = indexed("explain", "nlps", document, "--topic", TOPIC, "--data", SAMPLE, "--json")
    assert (result.code, result.json["status"]) == (0, "unknown")
    result = indexed("explain", "nlps", document, "--topic", TOPIC, "--data", SAMPLE)
    assert "is not indexed: no document of nlps has this id" in result.stdout
    assert "is not indexed" in indexed("search", "nlps", "ring", "--explain-document", document).stdout


@pytest.mark.own_indexes
def test_an_index_of_other_documents_is_refused_as_by_rank(offline: Cli, tmp_path: Path) -> None:
    task = Path(shutil.copytree(SAMPLES / "own", tmp_path / "own")) / "cooking.toml"
    assert offline("index", task).code == 0
    command = ("explain", task, "r01", "--topic", "q1")
    assert offline(*command).code == 0
    recipes = task.with_name("recipes.jsonl")
    recipes.write_text(recipes.read_text().replace("Simmer", "Boil"))
    refused = offline(*command)
    assert refused.code == 4 and "build it again with `searchapp index" in refused.stderr
    assert offline("index", task).code == 0
    assert offline(*command).code == 0
