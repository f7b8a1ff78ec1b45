"""The main job on the real data of the task nlps: what is promised of its quality, order and bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.profile import FULL
from tests.real import RealRuns

EVERY = 1 if FULL else 24
"""The server ranks every EVERY-th topic, and the exported file has the same ones."""

DOCUMENTS_EVERY = 1 if FULL else 4
"""The engines are compared on every DOCUMENTS_EVERY-th document and those that the topics ranked are, or need."""

SHARDS = (1, 3) if FULL else (7,)
"""On one shard the short profile ranks by another recipe, in tests/engines/embedded/test_parity.py."""

RANKINGS = ("run.trec", "predict.txt")


@pytest.fixture
def rank_dev(server: Cli, tmp_path: Path) -> Callable[..., Path]:
    """Indexes the documents of a folder, with these options of `searchapp index`, and ranks its dev split."""

    def make(data: Path, engine: str, *more: object) -> Path:
        options = ["--data", data, "--engine", engine]
        indexed = server("index", "nlps", *options, *more)
        assert indexed.code == 0, indexed.stderr
        out = tmp_path / " ".join(map(str, [engine, *more]))
        ranked = server("rank", "nlps", *options, "--split", "dev", "--recipe", "bm25", "--out", out)
        assert ranked.code == 0, ranked.stderr
        return out

    return make


@pytest.fixture
def fewer(nlps_data: Path, tmp_path: Path) -> Path:
    """A folder with the same documents and a part of the dev topics."""
    folder = tmp_path / "fewer"
    folder.mkdir()
    for name in ("knowledge_base.json", "train_set.json"):
        (folder / name).symlink_to(nlps_data / name)
    topics = json.loads((nlps_data / "dev_set.json").read_text(encoding="utf-8"))
    part = dict(list(topics.items())[::EVERY])
    (folder / "dev_set.json").write_text(json.dumps(part, ensure_ascii=False), encoding="utf-8")
    return folder


def test_the_dev_split_is_ranked_well(real_runs: RealRuns) -> None:
    run = real_runs.run("nlps", "dev", "bm25")
    rows = [line.split(b" ", 3) for line in (run / "run.trec").read_bytes().splitlines()]
    assert len(rows) == 1913 * 500
    assert all(topic != document for topic, _q0, document, _rest in rows)

    scored = real_runs.scored("nlps", "dev", "bm25")
    assert scored["official"]["measure"] == "MAP@500"
    # 98 % of what docs/tasks/nlps.md documents.
    assert scored["official"]["value"] >= 0.98 * 0.228427
    assert scored["measures"]["AP"] >= 0.98 * 0.189448


def test_an_exported_file_is_valid_and_has_the_figures_of_its_run(
    offline: Cli, real_runs: RealRuns, fewer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_HOME", str(real_runs.home("nlps")))
    run, options = tmp_path / "run", ["--data", fewer, "--split", "dev"]
    assert offline("rank", "nlps", *options, "--recipe", "bm25", "--out", run).code == 0
    scored = offline("evaluate", run, "--json", "--per-topic").json
    exported = tmp_path / "predict.txt"
    assert offline("export", run, "--format", "official", "--out", exported).code == 0
    options = ["--task", "nlps", *options]
    assert offline("validate", exported, *options).code == 0
    of_file = offline("evaluate", exported, *options, "--json", "--per-topic").json
    assert of_file["official"] == scored["official"]
    assert of_file["measures"] == scored["measures"]
    assert of_file["per_topic"] == scored["per_topic"]


def _leave_documents(folder: Path) -> None:
    """Leave but every DOCUMENTS_EVERY-th document, and nothing that refers to others."""
    paths = [folder / name for name in ("knowledge_base.json", "dev_set.json", "train_set.json")]
    documents, topics, _examples = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    needed = {str(id_) for topic in topics.values() for id_ in topic["premises"]} | topics.keys()
    part = {
        id_: text
        for place, (id_, text) in enumerate(documents.items())
        if place % DOCUMENTS_EVERY == 0 or id_ in needed
    }
    for path, content in zip(paths, (part, topics, topics), strict=True):
        path.unlink()
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def test_it_is_ranked_the_same_on_the_server_on_any_number_of_shards(
    nlps_data: Path, fewer: Path, rank_dev: Callable[..., Path]
) -> None:
    _leave_documents(fewer)
    embedded = rank_dev(fewer, "embedded")
    assert len((embedded / "run.trec").read_bytes().splitlines()) == -(-1913 // EVERY) * 500
    for shards in SHARDS:
        run = rank_dev(fewer, "elasticsearch", "--shards", shards)
        for file in RANKINGS:
            assert (run / file).read_bytes() == (embedded / file).read_bytes()
