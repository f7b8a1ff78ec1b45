"""Recipes with the signal `vectors` rank typed words, and documents like another one."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli
from tests.cli.conftest import offline as offline
from tests.embeddings.server import EmbeddingServer, matrix
from tests.embeddings.test_embed import PROGRAM, endpoint, task_of, texts_of
from tests.embeddings.test_embed import folder as folder

WORDS = "garlic soup"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as server:
        yield server


@pytest.fixture
def task(offline: Cli, folder: Path, server: EmbeddingServer) -> Path:
    """A task with an index and vectors."""
    task = task_of(folder, endpoint(server, 'topic_prefix = "query: "\nprice = 1000'))
    for command in ("embed", "index"):
        result = offline(command, task)
        assert result.code == 0, result.stderr
    server.requests.clear()
    return task


def nearest(documents: Mapping[str, str], text: str) -> list[str]:
    """Return the ids of documents by the cosine of the bytes of their vectors and a text's."""
    floats = matrix([*documents.values(), text])
    rows = np.rint(127 * floats / np.abs(floats).max(axis=1, keepdims=True)).astype(np.int64)
    products = rows[:-1] @ rows[-1]
    cosines = products / np.sqrt(((rows[:-1] ** 2).sum(1) * (rows[-1] ** 2).sum()).astype(float))
    order = sorted(zip(documents, cosines.tolist(), strict=True), key=lambda hit: (-hit[1], hit[0].encode()))
    return [document for document, _cosine in order]


def hits(offline: Cli, *arguments: object) -> list[str]:
    result = offline("search", *arguments, "--size", 1000, "--json")
    assert result.code == 0, result.stderr
    return [hit["id"] for hit in result.json["hits"]]


def test_words_are_embedded_once_and_rank_by_their_cosine(
    offline: Cli, task: Path, server: EmbeddingServer
) -> None:
    documents, _topics = texts_of(task)
    for _repetition in range(2):
        assert hits(offline, task, WORDS, "--recipe", "dense") == nearest(documents, f"query: {WORDS}")
    assert [json.loads(request.body)["input"] for request in server.requests] == [[f"query: {WORDS}"]]
    hybrid = hits(offline, task, f"{WORDS} -garlic", "--recipe", "hybrid")
    assert hybrid and set(hybrid) < set(documents)
    explained = offline("search", task, WORDS, "--recipe", "hybrid", "--explain-document", hybrid[0])
    assert "cosine" in explained.stdout


@pytest.mark.parametrize("trouble", ["gone", "500", "slow", "nan", "cost"])
def test_if_the_model_fails_the_other_signals_rank_and_standard_error_says_so(
    offline: Cli, task: Path, server: EmbeddingServer, trouble: str
) -> None:
    options: list[object] = []
    if trouble == "gone":
        server.close()
    elif trouble == "cost":
        options = ["--max-cost", 0.001]
    else:
        server.faults = [trouble] * 9
    lexical = hits(offline, task, WORDS, "--recipe", "bm25")
    for recipe in ("hybrid", "dense"):
        result = offline("search", task, WORDS, "--recipe", recipe, "--size", 1000, "--json", *options)
        assert (result.code, result.json.get("offline")) == (0, True), result.stderr
        assert f"ranked by {recipe} without vectors" in result.stderr
        assert "resumes" not in result.stderr
        assert [hit["id"] for hit in result.json["hits"]] == lexical != []
    lines = offline("search", task, "--recipe", "hybrid", "--json", *options, typed=f"{WORDS}\nbread\n")
    assert [search["offline"] for search in lines.json["searches"]] == [True, True]


def test_words_without_a_permitted_model_are_an_error(offline: Cli, task: Path, folder: Path) -> None:
    written = task.read_text()
    search = ("search", task, WORDS, "--recipe", "dense")

    def refused(before: str, after: str, *options: object) -> tuple[int, str]:
        assert before in written
        task.write_text(written.replace(before, after))
        result = offline(*search, *options)
        return result.code, result.stderr

    code, error = refused('model = "tiny"', 'model = "other"')
    assert code == 4 and "another model" in error and "searchapp embed" in error
    table = written[written.index("[embeddings]") : written.index("[recipes.dense]")]
    code, error = refused(table, "")
    assert code == 4 and "no table [embeddings]" in error
    code, error = refused(table, '[embeddings]\ndocuments = "d.jsonl"\ntopics = "t.jsonl"\n\n')
    assert code == 4 and "only files of embeddings" in error

    (folder / "model.py").write_text(PROGRAM.format(root=str(Path(__file__).parents[2])))
    command = f"[embeddings]\ncommand = {json.dumps([sys.executable, 'model.py'])}\n\n"
    task.write_text(written.replace(table, command))
    assert offline("embed", task, "--run-command").code == 0
    result = offline(*search)
    assert (result.code, "--run-command" in result.stderr) == (2, True)
    documents, _topics = texts_of(task)
    assert hits(offline, *search[1:], "--run-command") == nearest(documents, WORDS)


def test_documents_like_another_one_are_those_with_the_nearest_vectors(
    offline: Cli, task: Path, server: EmbeddingServer
) -> None:
    documents, _topics = texts_of(task)
    document = next(iter(documents))
    server.close()  # all vectors are stored
    expected = [other for other in nearest(documents, documents[document]) if other != document]
    assert hits(offline, task, "--like", document, "--recipe", "dense") == expected
    words = re.sub(r"\W+", " ", documents[document])
    by_text = [other for other in hits(offline, task, words, "--recipe", "bm25") if other != document]
    assert hits(offline, task, "--like", document, "--recipe", "bm25") == by_text != expected[: len(by_text)]
    unknown = offline("search", task, "--like", "nothing", "--recipe", "dense")
    assert (unknown.code, "no document" in unknown.stderr) == (2, True)
    both = offline("search", task, WORDS, "--like", document)
    assert (both.code, "WORDS and --like exclude each other" in both.stderr) == (2, True)
