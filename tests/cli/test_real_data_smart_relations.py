"""Relation prediction on the real vocabularies and questions: figures, and the same bytes on both engines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.real import real_data

pytestmark = pytest.mark.data


@pytest.fixture
def data() -> Path:
    """The folder of the real SMART data."""
    return real_data("smart-relations-dbpedia")


def test_a_fold_of_dbpedia_has_the_expected_figures(offline: Cli, data: Path, tmp_path: Path) -> None:
    indexed = offline("index", "smart-relations-dbpedia", "--data", data, "--json")
    assert indexed.code == 0, indexed.stderr
    assert indexed.json["documents"] == 717
    for recipe, minimum in (("bm25", 0.43), ("neighbours", 0.65)):
        run, options = tmp_path / recipe, ["--split", "fold2", "--recipe", recipe]
        assert offline("rank", "smart-relations-dbpedia", "--data", data, *options, "--out", run).code == 0
        scored = offline("evaluate", run, "--json").json
        assert scored["topics"] == 763
        assert scored["official"]["value"] >= minimum
        assert scored["warnings"] == []
        (official,) = run.glob("*predictions.json")
        of_file = [official, "--task", "smart-relations-dbpedia", "--data", data, "--split", "fold2"]
        assert offline("validate", *of_file).code == 0
        assert offline("evaluate", *of_file, "--json").json["official"] == scored["official"]


@pytest.mark.parametrize("task", ["smart-relations-dbpedia", "smart-relations-wikidata"])
def test_both_engines_rank_the_real_vocabulary_the_same(
    server: Cli, data: Path, task: str, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    kb = task.rpartition("-")[2]
    shutil.copy(data / f"smart-2021-rl-{kb}-relation-vocabulary.json", folder)
    train = json.loads((data / "smart-2021-rl-dbpedia-train.json").read_text())
    questions = [{"id": entry["id"], "question": entry["question"]} for entry in train[:40]]
    (folder / f"smart-2021-rl-{kb}-test-questions.json").write_text(json.dumps(questions))
    rankings = []
    for engine in ("embedded", "elasticsearch"):
        assert server("index", task, "--data", folder, "--engine", engine).code == 0
        run, options = tmp_path / engine, ["--split", "test", "--recipe", "bm25", "--depth", 5000]
        ranked = server("rank", task, "--data", folder, *options, "--engine", engine, "--out", run)
        assert ranked.code == 0, ranked.stderr
        rankings.append((run / "run.trec").read_bytes())
    assert rankings[0] == rankings[1]
    assert len(rankings[0].splitlines()) == 40 * (717 if kb == "dbpedia" else 3639)
