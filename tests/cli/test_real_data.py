"""Rankings of the real data of nlps: figures, and the same bytes on both engines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.profile import FULL
from tests.real import RealRuns

EVERY = 1 if FULL else 24
"""The server ranks every EVERY-th topic, and the exported file has these topics."""

DOCUMENTS_EVERY = 1 if FULL else 4
"""The engines are compared on every DOCUMENTS_EVERY-th document, and on the ranked topics and their premises."""

SHARDS = (1, 3) if FULL else (7,)
"""In the short profile, tests/engines/embedded/test_parity.py ranks on one shard, with another recipe."""

RANKINGS = ("run.trec", "predict.txt")


@pytest.fixture
def rank_dev(server: Cli, tmp_path: Path) -> Callable[..., Path]:
    """Indexes the documents of a folder with options of `searchapp index`, and ranks its dev split."""

    def make(data: Path, engine: str, *index_options: object) -> Path:
        options = ["--data", data, "--engine", engine]
        indexed = server("index", "nlps", *options, *index_options)
        assert indexed.code == 0, indexed.stderr
        out = tmp_path / " ".join(map(str, [engine, *index_options]))
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


def test_bm25_has_the_documented_figures_on_dev(real_runs: RealRuns) -> None:
    run = real_runs.run("nlps", "dev", "bm25")
    rows = [line.split(b" ", 3) for line in (run / "run.trec").read_bytes().splitlines()]
    assert len(rows) == 1913 * 500
    assert all(topic != document for topic, _q0, document, _rest in rows)

    scored = real_runs.scored("nlps", "dev", "bm25")
    assert scored["official"]["measure"] == "MAP@500"
    # 98 % of the figures in docs/tasks/nlps.md.
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


def _remove_documents(folder: Path) -> None:
    """Keep every DOCUMENTS_EVERY-th document and the documents that topics need; drop the training topics."""
    paths = [folder / name for name in ("knowledge_base.json", "dev_set.json", "train_set.json")]
    documents, topics, _examples = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    needed = {str(id_) for topic in topics.values() for id_ in topic["premises"]} | topics.keys()
    part = {
        id_: text
        for number, (id_, text) in enumerate(documents.items())
        if number % DOCUMENTS_EVERY == 0 or id_ in needed
    }
    for path, content in zip(paths, (part, topics, topics), strict=True):
        path.unlink()
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def test_the_server_ranks_the_same_on_any_number_of_shards(
    nlps_data: Path, fewer: Path, rank_dev: Callable[..., Path]
) -> None:
    _remove_documents(fewer)
    embedded = rank_dev(fewer, "embedded")
    assert len((embedded / "run.trec").read_bytes().splitlines()) == -(-1913 // EVERY) * 500
    for shards in SHARDS:
        run = rank_dev(fewer, "elasticsearch", "--shards", shards)
        for file in RANKINGS:
            assert (run / file).read_bytes() == (embedded / file).read_bytes()
