"""`searchapp embed` makes the vectors of a task, and the signal `vectors` ranks by them."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from searchapp.embeddings.cache import FILE, open_cache, text_key
from searchapp.formats import trec
from searchapp.ranking.learning import read_model
from searchapp.tasks import load
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.conftest import offline as offline
from tests.embeddings.server import DIMENSIONS, EmbeddingServer, kill_during_requests, matrix, vector
from tests.profile import FULL, SEED
from tests.programs import COMMAND, Program

KILLS = 200 if FULL else 20

SECRET = "sk-hunter2"

RECIPES = """
[recipes.dense]
template = "bm25"
signals = [{ signal = "vectors", file = "embeddings.npz" }]

[recipes.hybrid]
signals = [{ signal = "direct", template = "bm25" }, { signal = "vectors", file = "embeddings.npz" }]
fusion = { method = "rrf" }
"""


@pytest.fixture
def folder(offline: Cli, tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "own", tmp_path / "own"))


def task_of(folder: Path, table: str) -> Path:
    path = folder / "cooking.toml"
    path.write_text(f"{(SAMPLES / 'own' / 'cooking.toml').read_text()}\n[embeddings]\n{table}\n{RECIPES}")
    return path


def endpoint(server: EmbeddingServer, more: str = "") -> str:
    return f'url = "{server.url}/v1"\nmodel = "tiny"\ndimensions = {DIMENSIONS}\nbatch_size = 3\ntimeout = 1\n{more}'


def texts_of(task: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of documents and of the topics of dev by id."""
    from searchapp.formats.problems import Problems

    collection = load(str(task)).collection(task.parent)
    documents = {document.id: document.text for document in collection.documents.read(Problems())}
    return documents, {topic.id: topic.text for topic in collection.topics("dev", Problems())}


def test_an_endpoint_that_fails_in_every_way_gives_the_vectors_and_the_signal_ranks_by_their_cosine(
    offline: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_EMBEDDING_KEY", SECRET)
    faults = ["429", "500", "cut", "slow", "count", "nan", "dimensions", "order", "json"]
    with EmbeddingServer(faults) as server:
        task = task_of(folder, endpoint(server, 'document_prefix = "passage: "\nprice = 1000'))
        dry = offline("embed", task, "--dry-run", "--json").json
        assert not server.requests
        result = offline("embed", task, "--json")
        assert result.code == 0, result.stderr
        assert SECRET not in result.stdout + result.stderr
        assert set(server.keys) == {f"Bearer {SECRET}"}
        again = offline("embed", task, "--json").json
    report = result.json
    assert dry["missing"] == report["embedded"] == sum(map(len, server.answered))
    assert max(server.answered.values()) == 1
    assert report["requests"] == len(server.requests) > len(server.answered)
    assert report["cost"] == report["tokens"] / 1000 >= report["embedded"] / 1000
    assert (again["requests"], again["digest"]) == (0, report["digest"])
    assert report["overlap"] > 0.9

    documents, topics = texts_of(task)
    as_floats = matrix([f"passage: {text}" for text in documents.values()])
    as_bytes = np.rint(127 * as_floats / np.abs(as_floats).max(axis=1, keepdims=True)).astype(np.int64)
    assert offline("index", task).code == 0
    for recipe in ("dense", "hybrid"):
        ranked = offline("rank", task, "--split", "dev", "--recipe", recipe, "--out", folder / recipe)
        assert ranked.code == 0, ranked.stderr
    for ranking in trec.read_run(folder / "dense" / "run.trec"):
        of_topic = matrix([topics[ranking.topic_id]])[0]
        query = np.rint(127 * of_topic / np.abs(of_topic).max()).astype(np.int64)
        products = as_bytes @ query
        lengths = (as_bytes * as_bytes).sum(1) * (query @ query)
        scores = (
            np.float32(1) + (products / np.sqrt(lengths.astype(float))).astype(np.float32)
        ) / np.float32(2)
        expected = sorted(
            zip(documents, scores.tolist(), strict=True), key=lambda hit: (-hit[1], hit[0].encode())
        )
        assert list(ranking.hits.document_ids) == [document for document, _score in expected]
        assert list(ranking.hits.scores) == pytest.approx([score for _document, score in expected], rel=1e-7)
    topic = next(iter(topics))
    best = next(iter(trec.read_run(folder / "dense" / "run.trec"))).hits.document_ids[0]
    explained = offline("explain", task, best, "--topic", topic, "--recipe", "hybrid", "--split", "dev")
    assert "cosine" in explained.stdout, explained.stderr
    rerun = offline("rerun", folder / "dense", "--out", folder / "again")
    assert rerun.code == 0, rerun.stderr
    assert (folder / "again" / "run.trec").read_bytes() == (folder / "dense" / "run.trec").read_bytes()


def test_a_killed_job_never_requests_a_stored_text_again(folder: Path, tmp_path: Path) -> None:
    names = [f"text {number}" for number in range(12 * KILLS)]
    (folder / "recipes.jsonl").write_text(
        "".join(
            json.dumps({"id": f"d{n}", "title": "t", "text": text, "kind": "k", "minutes": 1}) + "\n"
            for n, text in enumerate(names)
        )
    )
    chance = random.Random(SEED)
    home = tmp_path / "home"
    with EmbeddingServer(trouble=0.1) as server:
        task = task_of(folder, endpoint(server, "concurrency = 4"))
        source = load(str(task)).info.embeddings
        assert source is not None
        kills = 0
        while True:
            with Program(COMMAND, "--home", home, "embed", task, "--data", folder) as job:
                if kills < KILLS:
                    kill_during_requests(job, server, chance.randrange(1, 12))
                    kills += 1
                    with closing(sqlite3.connect(home / FILE)) as database:
                        keys = {key for (key,) in database.execute("SELECT text FROM vectors")}
                    known = {text for batch in server.answered for text in batch}
                    server.stored |= {text for text in known if text_key(text) in keys}
                    continue
                assert job.wait() == 0, job.stderr.read()
                break
        documents, _topics = texts_of(task)
    assert kills == KILLS
    assert server.stored
    assert not server.repeated
    assert sum(count - 1 for count in server.answered.values()) <= kills * source.concurrency
    with open_cache(home, source.digest) as cache:
        assert (cache.vectors(list(documents.values())) == matrix(list(documents.values()))).all()
    assert (folder / "embeddings.npz").exists()


def test_texts_and_key_go_only_where_the_user_allows_it(
    offline: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_EMBEDDING_KEY", SECRET)
    remote = task_of(folder, 'url = "http://models.example:8080/v1"\nmodel = "m"')
    refused = offline("embed", remote)
    assert (refused.code, "SEARCHAPP_MODEL_HOSTS" in refused.stderr) == (2, True)
    monkeypatch.setenv("SEARCHAPP_MODEL_HOSTS", "other.example, models.example")
    refused = offline("embed", remote)
    assert (refused.code, "--insecure" in refused.stderr) == (2, True)
    with EmbeddingServer() as server, EmbeddingServer() as other:
        task = task_of(folder, endpoint(server))
        server.redirect = "https://elsewhere.example/v1/embeddings"
        refused = offline("embed", task)
        assert (refused.code, "elsewhere.example" in refused.stderr) == (2, True)
        server.redirect = f"{other.url}/v1/embeddings"
        assert offline("embed", task, "--limit", 3).code == 0
        assert other.keys == [None]
        server.redirect, server.faults = None, ["400"]
        rejected = offline("embed", task)
        assert rejected.code == 4
        assert SECRET not in rejected.stderr


def test_the_work_is_limited_by_number_and_cost(offline: Cli, folder: Path) -> None:
    with EmbeddingServer() as server:
        task = task_of(folder, endpoint(server, "price = 1000\nconcurrency = 1"))
        first = offline("embed", task, "--limit", 4, "--json").json
        assert (first["embedded"], first["file"], first["cost"]) == (4, None, 0.004)
        stopped = offline("embed", task, "--max-cost", 0.1)
        assert (stopped.code, "--max-cost" in stopped.stderr) == (1, True)
        served = sum(map(len, server.answered))
        assert 4 < served < first["missing"]
        rest = offline("embed", task, "--json").json
        assert rest["embedded"] == first["missing"] - served


PROGRAM = """
import json, sys
sys.path.insert(0, {root!r})
from tests.embeddings.server import vector
for line in reversed(sys.stdin.readlines()):
    text = json.loads(line)
    print(json.dumps({{"index": text["index"], "embedding": vector(text["text"])}}))
"""


def test_a_command_and_files_give_the_same_vectors_as_an_endpoint(offline: Cli, folder: Path) -> None:
    with EmbeddingServer() as server:
        task = task_of(folder, endpoint(server))
        assert offline("embed", task, "--split", "dev").code == 0
    expected = read_model(folder / "embeddings.npz")
    documents, topics = texts_of(task)

    (folder / "model.py").write_text(PROGRAM.format(root=str(Path(__file__).parents[2])))
    task = task_of(folder, f"command = {json.dumps([sys.executable, 'model.py'])}")
    refused = offline("embed", task, "--split", "dev")
    assert (refused.code, "--run-command" in refused.stderr) == (2, True)
    tables = [(f"command = {json.dumps([sys.executable, 'model.py'])}", ["--run-command"])]
    for name, texts in (("documents", documents), ("topics", topics)):
        rows = [{"id": id_, "embedding": vector(text)} for id_, text in texts.items()]
        np.save(folder / f"{name}.npy", matrix(list(texts.values())))
        (folder / f"{name}.txt").write_text("".join(f"{id_}\n" for id_ in texts))
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"{name}.parquet")
    for suffix in ("npy", "jsonl", "parquet"):
        tables.append((f'documents = "documents.{suffix}"\ntopics = "topics.{suffix}"', []))
    for table, options in tables:
        result = offline("embed", task_of(folder, table), "--split", "dev", *options)
        assert result.code == 0, result.stderr
        made = read_model(folder / "embeddings.npz")
        assert all((made.arrays[name] == expected.arrays[name]).all() for name in ("documents", "topics"))


def test_vectors_of_other_documents_or_topics_are_rejected(offline: Cli, folder: Path) -> None:
    with EmbeddingServer() as server:
        task = task_of(folder, endpoint(server))
        assert offline("index", task).code == 0
        rank = ("rank", task, "--split", "dev", "--recipe", "dense", "--overwrite", "--out", folder / "run")
        assert "searchapp embed" in offline(*rank).stderr
        assert offline("embed", task, "--split", "train").code == 0
        result = offline(*rank)
        assert (result.code, "has no vector of" in result.stderr) == (4, True)
        assert offline("embed", task).code == 0
        with (folder / "recipes.jsonl").open("a") as file:
            file.write('{"id": "new", "title": "Soup", "text": "Boil.", "kind": "soup", "minutes": 1}\n')
        assert offline("index", task).code == 0
        result = offline(*rank)
        assert (result.code, "of other documents" in result.stderr) == (4, True)
        assert offline("embed", task, "--json").json["embedded"] == 1
        assert offline(*rank).code == 0
    damaged = bytearray((folder / "embeddings.npz").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (folder / "embeddings.npz").write_bytes(damaged)
    assert offline(*rank).code == 4
