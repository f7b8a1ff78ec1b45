"""`searchapp explain`: why a document is at its rank for a topic."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLE, SAMPLES, Cli

pytestmark = pytest.mark.shared_indexes

TOPIC = "605"


@pytest.mark.parametrize("recipe", ["bm25", "neighbours"])
def test_the_score_is_that_of_the_run_and_what_signals_gave_comes_to_it(
    indexed: Cli, tmp_path: Path, recipe: str
) -> None:
    chosen = ["--data", SAMPLE, "--split", "dev", "--recipe", recipe]
    assert indexed("rank", "nlps", *chosen, "--out", tmp_path / "run").code == 0
    lines = [line.split() for line in (tmp_path / "run" / "run.trec").read_text().splitlines()]
    _, _, document, rank, score, _ = [line for line in lines if line[0] == TOPIC][1]
    output = indexed("explain", "nlps", document, "--topic", TOPIC, *chosen, "--json").json
    assert (output["split"], output["topic"], output["document_id"]) == ("dev", TOPIC, document)
    assert (output["status"], output["rank"]) == ("ranked", int(rank))
    assert output["score"] == pytest.approx(float(score), rel=1e-6)
    assert [share["signal"] for share in output["signals"]] == (
        ["direct", "neighbours"] if recipe == "neighbours" else []
    )
    if output["signals"]:
        given = [share["value"] or 0.0 for share in output["signals"]]
        assert sum(given) == pytest.approx(output["score"], rel=1e-6)
    first, *rest = indexed("explain", "nlps", document, "--topic", TOPIC, *chosen).stdout.splitlines()
    assert (
        first
        == f"{document} is at rank {rank} for the topic {TOPIC} (nlps dev), with the score {float(score):.4f}"
    )
    said = [line.strip() for line in rest]
    assert ("Scores of the signals:" in said) == (recipe == "neighbours")
    for share in output["signals"]:
        assert any(line.startswith(f"{share['value']:.4f}  {share['signal']}") for line in said)


def test_a_topic_is_found_in_its_split_and_a_document_that_is_not_ranked_is_accounted_for(
    indexed: Cli,
) -> None:
    asked = ("--topic", TOPIC, "--data", SAMPLE)
    hits = indexed("explain", "nlps", "x", *asked, "--json").json
    assert (hits["split"], hits["status"], hits["recipe"]) == ("dev", "unknown", "bm25")
    knowledge = json.loads((SAMPLE / "knowledge_base.json").read_text(encoding="utf-8"))
    whole = {
        document: indexed("explain", "nlps", document, *asked, "--json").json
        for document in list(knowledge)[:4]
    }
    for document, told in whole.items():
        assert (told["status"], told["extended_depth"]) == ("ranked", None)
        short = indexed("explain", "nlps", document, *asked, "--depth", 1, "--json").json
        if told["score"]:
            assert (short["rank"], short["extended_depth"]) == (
                told["rank"],
                None if told["rank"] == 1 else 10_000,
            )
        else:  # behind the depth it's not said of one document which of those without a score it is
            assert (short["status"], short["extended_depth"]) == ("no match", None)
    last = max((one for one in whole if whole[one]["score"]), key=lambda one: whole[one]["rank"])
    behind = indexed("explain", "nlps", last, *asked, "--depth", 1).stdout.splitlines()[0]
    assert behind.endswith(", in a ranking of 10,000 documents")
    told = indexed("explain", "nlps", TOPIC, *asked)  # a topic is no hit of its own
    assert (told.code, told.stdout) == (0, f"{TOPIC} matches, but a filter excludes it\n")


def test_a_depth_that_raises_a_window_is_warned_of_as_by_rank(indexed: Cli) -> None:
    asked = ("explain", "nlps", "601", "--topic", TOPIC, "--data", SAMPLE, "--recipe", "neighbours")
    for depth in (500, 501):
        result = indexed(*asked, "--depth", depth)
        assert result.code == 0, result.stderr
        assert ("the depth 501 raises the window 500 of the signal direct" in result.stderr) == (depth == 501)


def test_a_debate_is_explained_although_nobody_could_type_it(indexed: Cli) -> None:
    assert indexed("index", "checkthat", "--data", SAMPLES / "checkthat").code == 0
    asked = ("--topic", "farm_speech", "--data", SAMPLES / "checkthat", "--recipe", "neighbours")
    result = indexed("explain", "checkthat", "farm_speech:1", *asked, "--json")
    assert result.code == 0, result.stderr
    assert (result.json["status"], result.json["split"]) == ("ranked", "training")
    assert {share["signal"] for share in result.json["signals"]} == {"direct", "labelled"}


def test_a_topic_that_there_is_not_is_refused(indexed: Cli) -> None:
    for options, where in (
        ((), "no split of nlps has the topic"),
        (("--split", "dev"), "nlps dev has no topic"),
    ):
        refused = indexed("explain", "nlps", "1", "--topic", "none", "--data", SAMPLE, *options)
        assert refused.code == 2 and where in refused.stderr


@pytest.mark.parametrize("document", ["", "\udcff\udcfe", "x" * 9_000])
def test_what_can_be_no_id_is_not_indexed(indexed: Cli, document: str) -> None:
    result = indexed("explain", "nlps", document, "--topic", TOPIC, "--data", SAMPLE, "--json")
    assert (result.code, result.json["status"]) == (0, "unknown")
    result = indexed("explain", "nlps", document, "--topic", TOPIC, "--data", SAMPLE)
    assert "is not indexed: no document of nlps has this id" in result.stdout
    assert "is not indexed" in indexed("search", "nlps", "ring", "--explain-document", document).stdout


@pytest.mark.own_indexes
def test_an_index_of_other_documents_is_refused_as_rank_does(offline: Cli, tmp_path: Path) -> None:
    task = Path(shutil.copytree(SAMPLES / "own", tmp_path / "own")) / "cooking.toml"
    assert offline("index", task).code == 0
    asked = ("explain", task, "r01", "--topic", "q1")
    assert offline(*asked).code == 0
    recipes = task.with_name("recipes.jsonl")
    recipes.write_text(recipes.read_text().replace("Simmer", "Boil"))
    refused = offline(*asked)
    assert refused.code == 4 and "build it again with `searchapp index" in refused.stderr
    assert offline("index", task).code == 0
    assert offline(*asked).code == 0
