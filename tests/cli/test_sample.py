"""Samples are separate tasks, and other documents replace an index only with --replace."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.cli.conftest import SAMPLE, Cli


def test_a_sample_has_its_own_index(offline: Cli, tmp_path: Path) -> None:
    result = offline("index", "nlps-sample", "--json")
    assert result.code == 0, result.stderr
    assert result.json["task"] == "nlps-sample" and "-nlps-sample-" in result.json["index"]
    assert offline("search", "nlps", "ring").code == 3  # nothing of nlps itself is indexed
    assert offline("search", "nlps-sample", "ring", "--json").json["hits"]
    run = tmp_path / "run"
    ranked = offline("rank", "nlps-sample", "--split", "dev", "--recipe", "neighbours", "--out", run)
    assert ranked.code == 0, ranked.stderr
    scored = offline("evaluate", run, "--json", "--cutoff", 50)
    assert scored.code == 0, scored.stderr
    assert json.loads((run / "run.json").read_text())["task"] == "nlps-sample"
    listed = offline("indexes", "list", "--json").json["indexes"]
    assert "nlps-sample" in {index["index"] for index in listed}
    refused = offline("index", "nlps-sample", "--data", tmp_path)
    assert refused.code == 2 and "omit --data" in refused.stderr


def test_other_documents_replace_an_index_only_with_replace(offline: Cli, tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    assert offline("index", "nlps", "--data", data).code == 0
    documents = json.loads((data / "knowledge_base.json").read_text())
    for number, name in enumerate(documents):
        if number < 36:
            documents[name] += " Or so."
            if number == 30:  # 39 of 70 are unchanged
                (data / "knowledge_base.json").write_text(json.dumps(documents))
                assert offline("index", "nlps", "--data", data).code == 0
    other = {name: f"{text} Not so." for name, text in documents.items()}
    (data / "knowledge_base.json").write_text(json.dumps(other))
    for more in ([], ["--rebuild"]):
        refused = offline("index", "nlps", "--data", data, *more)
        assert refused.code == 2 and "shares only 0 of 70 documents with" in refused.stderr
        assert ": `searchapp index nlps --replace` replaces" in refused.stderr
    assert offline("index", "nlps", "--data", data, "--replace").code == 0


def test_other_documents_of_an_own_task_need_replace(offline: Cli, tmp_path: Path) -> None:
    task = tmp_path / "task.toml"
    task.write_text('name = "mine"\n[documents]\nfile = "documents.jsonl"\ntext = "text"\n')
    documents = tmp_path / "documents.jsonl"
    documents.write_text('{"id": "1", "text": "one"}\n{"id": "2", "text": "two"}\n')
    assert offline("index", task).code == 0
    documents.write_text('{"id": "1", "text": "other"}\n{"id": "2", "text": "words"}\n')
    refused = offline("index", task)
    assert refused.code == 2 and "--replace` replaces the index" in refused.stderr
    assert offline("search", "mine", "one", "--json").json["hits"]
    assert offline("index", task, "--replace").code == 0
