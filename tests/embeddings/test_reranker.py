"""The signal `reranker` orders first documents by the scores of a model, which it never asks twice."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from searchapp.embeddings import reranking
from searchapp.embeddings.access import Access
from searchapp.embeddings.cache import SCORES_FILE, pair_key
from searchapp.embeddings.reranker_source import RerankerSource
from searchapp.embeddings.reranking import Reranking
from searchapp.errors import DataError, UsageError
from searchapp.formats import trec
from searchapp.formats.problems import Problems
from searchapp.tasks import load
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.conftest import offline as offline
from tests.embeddings.server import FAULTS, RerankServer, kill_during_requests, score
from tests.profile import FULL, SEED
from tests.programs import COMMAND, Program

KILLS = 200 if FULL else 20

SECRET = "sk-hunter2"

CANDIDATES = 5

RERANKED = '{ signal = "reranker", reranker = "tiny", candidates = 5 }'

RECIPES = f"""
[recipes.first]
template = "bm25"

[recipes.reranked]
signals = [{{ signal = "direct", template = "bm25", weight = 0 }}, {RERANKED}]

[recipes.reranked-rrf]
signals = [{{ signal = "direct", template = "bm25", weight = 0 }}, {RERANKED}]
fusion = {{ method = "rrf" }}

[recipes.fused]
signals = [{{ signal = "direct", template = "bm25" }}, {RERANKED}]

[recipes.both]
signals = [{{ signal = "direct", template = "bm25" }}, {{ signal = "tfidf" }}]

[recipes.both-reranked]
signals = [
  {{ signal = "direct", template = "bm25", weight = 0 }},
  {{ signal = "tfidf", weight = 0 }},
  {RERANKED},
]
"""


@pytest.fixture
def folder(offline: Cli, tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "own", tmp_path / "own"))


def task_of(folder: Path, table: str, recipes: str = RECIPES) -> Path:
    path = folder / "cooking.toml"
    path.write_text(f"{(SAMPLES / 'own' / 'cooking.toml').read_text()}\n[rerankers.tiny]\n{table}\n{recipes}")
    return path


def endpoint(server: RerankServer, more: str = "") -> str:
    return f'url = "{server.url}/v1"\nmodel = "tiny"\nbatch_size = 3\ntimeout = 1\n{more}'


def rank(cli: Cli, task: Path, recipe: str, *options: object) -> Any:
    out = task.parent / "runs" / recipe
    return cli("rank", task, "--split", "dev", "--recipe", recipe, "--out", out, "--overwrite", *options)


def rankings(task: Path, recipe: str) -> dict[str, list[str]]:
    run = trec.read_run(task.parent / "runs" / recipe / "run.trec")
    return {ranking.topic_id: list(ranking.hits.document_ids) for ranking in run}


def texts_of(task: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of documents, and of the topics of dev, by id."""
    collection = load(str(task)).collection(task.parent)
    documents = {document.id: document.text for document in collection.documents.read(Problems())}
    return documents, {topic.id: topic.text for topic in collection.topics("dev", Problems())}


def expected(task: Path, recipe: str = "first") -> dict[str, list[str]]:
    """Return the rankings of a recipe with the first documents by the scores of the model."""
    documents, topics = texts_of(task)
    return {
        topic: sorted(ids[:CANDIDATES], key=lambda id_: -score(topics[topic], documents[id_]))
        + ids[CANDIDATES:]
        for topic, ids in rankings(task, recipe).items()
    }


@pytest.mark.parametrize("form", ["cohere", "tei"])
def test_an_endpoint_that_fails_in_every_way_reorders_the_first_documents(
    offline: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("SEARCHAPP_RERANKER_KEY", SECRET)
    monkeypatch.setenv("SEARCHAPP_EMBEDDING_KEY", "of another service")
    with RerankServer(FAULTS) as server:
        task = task_of(folder, endpoint(server, f'form = "{form}"\nprice = 1000'))
        assert offline("index", task).code == 0
        assert rank(offline, task, "first").code == 0
        result = rank(offline, task, "reranked")
        assert result.code == 0, result.stderr
        assert f"reranked in {len(server.requests)} requests" in result.stderr
        assert SECRET not in result.stdout + result.stderr
        assert set(server.keys) == {f"Bearer {SECRET}"}
        assert max(server.answered.values()) == 1
        pairs = [pair for batch in server.answered for pair in batch]
        assert len(pairs) == len(set(pairs)) == sum(len(ids[:CANDIDATES]) for ids in expected(task).values())
        for recipe in ("both", "both-reranked"):
            assert rank(offline, task, recipe).code == 0
    # Stored scores suffice, without the endpoint.
    for recipe in ("reranked-rrf", "fused"):
        assert rank(offline, task, recipe).code == 0
    assert rankings(task, "reranked") == rankings(task, "reranked-rrf") == expected(task)
    assert rankings(task, "both-reranked") == expected(task, "both") != expected(task)
    again = offline("rerun", folder / "runs" / "reranked", "--out", folder / "again")
    assert again.code == 0, again.stderr
    assert offline("runs", "verify", folder / "runs" / "reranked").code == 0
    manifest = json.loads((folder / "runs" / "reranked" / "run.json").read_text())
    described = manifest["recipe"]["signals"][1]
    assert (described["reranker"], described["candidates"]) == ("tiny", CANDIDATES)
    assert described["source"]["model"] == "tiny"
    assert described["source"]["digest"] == load(str(task)).info.rerankers["tiny"].digest
    task.write_text(task.read_text().replace('model = "tiny"', 'model = "tiny"\nversion = "2"'))
    changed = offline("runs", "verify", folder / "runs" / "reranked")
    assert (changed.code, "the recipe reranked changed" in changed.stderr) == (4, True)


def test_explanations_show_the_order_before_and_after(offline: Cli, folder: Path) -> None:
    with RerankServer() as server:
        task = task_of(folder, endpoint(server))
        assert offline("index", task).code == 0
        assert rank(offline, task, "first").code == rank(offline, task, "reranked").code == 0
        search = ("search", task, "--recipe", "reranked", "--json")
        documents, topics = texts_of(task)
        hits = [hit["id"] for hit in offline(*search, "soup with lentils").json["hits"]]
        first = [score("soup with lentils", documents[id_]) for id_ in hits[:CANDIDATES]]
        assert first == sorted(first, reverse=True)
    assert [hit["id"] for hit in offline(*search, "soup with lentils").json["hits"]] == hits  # stored
    alone = offline(*search, "tomato salad")
    assert (alone.code, "reranked without reranker" in alone.stderr) == (0, True)
    assert (
        alone.json["hits"]
        == offline("search", task, "tomato salad", "--recipe", "first", "--json").json["hits"]
    )
    topic, before = next((id_, ids) for id_, ids in rankings(task, "first").items() if len(ids) > CANDIDATES)
    after = rankings(task, "reranked")[topic]
    best, below = after[0], after[CANDIDATES]
    explain = ("explain", task, "--topic", topic, "--recipe", "reranked")
    said = offline(*explain, best).stdout
    assert f"rank 1 of the first 5, rank {before.index(best) + 1} before" in said
    assert f"{score(topics[topic], documents[best]):.4f}"[:6] in said
    assert "rank 6 before and after" in offline(*explain, below).stdout


def test_experiments_rerank_with_stored_scores(offline: Cli, folder: Path) -> None:
    with RerankServer() as server:
        task = task_of(folder, endpoint(server))
        assert offline("index", task).code == 0
        shared = (task, "--recipe", "fused")
        first = offline("ablate", *shared, "--split", "dev", "--json")
        assert first.code == 0, first.stderr
        names = [variant["name"] for variant in first.json["variants"]]
        assert any("reranker" in name for name in names)
        asked = len(server.requests)
        assert asked
        assert offline("ablate", *shared, "--split", "dev").code == 0
        assert len(server.requests) == asked
        tuned = offline("tune", *shared, "--param", "candidates=2,5", "--search", "grid", "--json")
        assert tuned.code == 0, tuned.stderr
        assert len(tuned.json["trials"]) >= 2
    rows = [pair for batch in server.answered for pair in batch]
    assert len(rows) == len(set(rows))


def test_a_killed_ranking_never_sends_a_stored_pair_again(folder: Path, offline: Cli, tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(4)]
    (folder / "recipes.jsonl").write_text(
        "".join(
            json.dumps(
                {"id": f"d{n}", "title": "t", "text": f"{' '.join(words)} {n}", "kind": "k", "minutes": 1}
            )
            + "\n"
            for n in range(40)
        )
    )
    (folder / "questions.tsv").write_text(
        "id\tquestion\tlevel\n" + "".join(f"q{n}\t{words[n % 4]} {n}\teasy\n" for n in range(8 * KILLS))
    )
    (folder / "gold.txt").write_text("q0 0 d0 1\n")
    chance = random.Random(SEED)
    with RerankServer(trouble=0.1) as server:
        task = task_of(folder, endpoint(server, "concurrency = 4"), RECIPES.replace("= 5 }", "= 12 }"))
        assert offline("index", task, "--lenient").code == 0  # training topics have gold for other documents
        database = tmp_path / "home" / SCORES_FILE
        kills = 0
        while True:
            arguments = ("rank", task, "--split", "dev", "--recipe", "reranked", "--out", tmp_path / "run")
            with Program(COMMAND, "--home", tmp_path / "home", *arguments) as job:
                if kills < KILLS:
                    kill_during_requests(job, server, chance.randrange(1, 12), 60)
                    kills += 1
                    with closing(sqlite3.connect(database)) as opened:
                        keys = {key for (key,) in opened.execute("SELECT question FROM answers")}
                    known = {pair for batch in server.answered for pair in batch}
                    server.stored |= {pair for pair in known if pair_key(*pair) in keys}
                    continue
                assert job.wait() == 0, job.stderr.read()
                break
    assert kills == KILLS
    assert server.stored
    assert not server.repeated
    assert sum(count - 1 for count in server.answered.values()) <= kills * 4
    _documents, topics = texts_of(task)
    assert len({query for batch in server.answered for query, _ in batch}) == len(topics)


def test_texts_commands_and_cost_need_consent(
    offline: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = task_of(folder, 'url = "http://models.example:8080/v1"\nmodel = "m"')
    assert offline("index", remote).code == 0
    refused = rank(offline, remote, "reranked")
    assert (refused.code, "SEARCHAPP_MODEL_HOSTS" in refused.stderr) == (2, True)
    monkeypatch.setenv("SEARCHAPP_MODEL_HOSTS", "models.example")
    refused = rank(offline, remote, "reranked")
    assert (refused.code, "--insecure" in refused.stderr) == (2, True)
    monkeypatch.setenv("SEARCHAPP_RERANKER_KEY", SECRET)
    with RerankServer() as server, RerankServer() as other:
        task = task_of(folder, endpoint(server, "concurrency = 1\nrequest_price = 1000"))
        server.redirect = f"{other.url}/v1/rerank"
        stopped = rank(offline, task, "reranked", "--max-cost", 2)
        assert (stopped.code, "--max-cost" in stopped.stderr) == (1, True)
        assert (len(other.requests), other.keys) == (2, [None, None])
        # A request of unknown outcome counts.
        server.redirect, server.faults = None, ["slow"]
        stopped = rank(offline, task, "reranked", "--max-cost", 2)
        assert (stopped.code, len(server.requests)) == (1, 2 + 2)
        server.faults = ["400"]
        rejected = rank(offline, task, "reranked")
        assert (rejected.code, "[rerankers.tiny]" in rejected.stderr) == (4, True)
        assert SECRET not in rejected.stderr
        assert rank(offline, task, "reranked").code == 0
        answered = [pair for each in (server, other) for batch in each.answered for pair in batch]
        assert len(answered) == len(set(answered))


PROGRAM = """
import json, sys
sys.path.insert(0, {root!r})
from tests.embeddings.server import score
for line in reversed(sys.stdin.readlines()):
    pair = json.loads(line)
    print(json.dumps({{"index": pair["index"], "score": score(pair["query"], pair["document"])}}))
"""


def test_a_command_scores_like_an_endpoint(offline: Cli, folder: Path) -> None:
    (folder / "model.py").write_text(PROGRAM.format(root=str(Path(__file__).parents[2])))
    task = task_of(folder, f"command = {json.dumps([sys.executable, 'model.py'])}")
    assert offline("index", task).code == 0
    assert rank(offline, task, "first").code == 0
    refused = rank(offline, task, "reranked")
    assert (refused.code, "--run-command" in refused.stderr) == (2, True)
    made = rank(offline, task, "reranked", "--run-command")
    assert made.code == 0, made.stderr
    assert rankings(task, "reranked") == expected(task)
    (folder / "model.py").write_text("raise SystemExit(3)")
    assert rank(offline, task, "reranked").code == 0  # scores are stored
    task.write_text(task.read_text().replace("candidates = 5", "candidates = 6"))
    failed = rank(offline, task, "reranked", "--run-command")
    assert (failed.code, "exit code 3" in failed.stderr) == (1, True)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('model = "m"', "needs one of url, command and cross_encoder"),
        ('url = "http://127.0.0.1:1"', "needs model"),
        ('url = "http://127.0.0.1:1"\nform = "jina"\nmodel = "m"', "choose cohere or tei"),
        ('url = "http://u:p@127.0.0.1:1"\nmodel = "m"', "without a password"),
        ('url = "http://127.0.0.1:1"\nmodel = "m"\nparameters = { query = "q" }', "without model, query"),
        ('url = "http://127.0.0.1:1"\nmodel = "m"\nrequest_price = -1', "a thousand requests"),
        ('url = "http://127.0.0.1:1"\nmodel = "m"\nbatchsize = 3', "batch_size"),
        ('cross_encoder = "missing"', "there is no model in the folder"),
    ],
)
def test_a_wrong_table_is_rejected(offline: Cli, folder: Path, table: str, message: str) -> None:
    result = offline("tasks", "show", task_of(folder, table), "--recipe", "reranked")
    if "missing" in table:
        assert offline("index", folder / "cooking.toml").code == 0
        result = rank(offline, folder / "cooking.toml", "reranked")
    assert (result.code, message in " ".join(result.stderr.split())) == (4, True), result.stderr


def test_an_unknown_reranker_is_rejected(offline: Cli, folder: Path) -> None:
    task = task_of(folder, 'cross_encoder = "model"', RECIPES.replace('"tiny"', '"tinny"'))
    result = offline("tasks", "show", task, "--recipe", "reranked")
    assert (result.code, "did you mean tiny" in result.stderr) == (4, True), result.stderr


class FakeModel:
    """What searchapp uses of `sentence_transformers.CrossEncoder`."""

    num_labels = 1

    def __init__(self, folder: str, **options: object) -> None:
        assert options == {"local_files_only": True, "trust_remote_code": False}
        if not (Path(folder) / "config.json").exists():
            raise OSError(f"no config.json in {folder}")

    def predict(self, pairs: Sequence[tuple[str, str]], **_options: object) -> Any:
        return np.array([score(*pair) for pair in pairs], np.float32)


def test_a_local_model_scores_pairs_and_changed_files_are_another_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(CrossEncoder=FakeModel))
    reranking._cross_encoder.cache_clear()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(b"1")

    def source() -> RerankerSource:
        return RerankerSource(name="tiny", folder=tmp_path, cross_encoder="model", batch_size=2)

    batches = [("q", ["a", "b", "c"]), ("p", ["a"]), ("q", ["c", "d"])]
    asked = Reranking(tmp_path / "home", Access())
    with pytest.raises(DataError, match="no config.json"):
        asked.scores(source(), batches)
    (tmp_path / "model" / "config.json").write_text("{}")
    advanced: list[int] = []
    scores = asked.scores(source(), batches, advanced.append)
    assert scores == [[float(np.float32(score(query, text))) for text in texts] for query, texts in batches]
    assert sum(advanced) == len(batches)
    digest = source().digest
    (tmp_path / "model" / "weights").write_bytes(b"2")
    assert source().digest != digest
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    reranking._cross_encoder.cache_clear()
    with pytest.raises(UsageError, match="sentence-transformers"):
        asked.scores(source(), batches)
