"""`searchapp embed` with models in local folders, which the tests make; those of absent libraries are skipped."""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from searchapp.formats.problems import Problems
from searchapp.ranking.learning import read_model
from searchapp.ranking.signals.vectors import as_bytes
from searchapp.tasks import load
from tests.cli.conftest import Cli
from tests.cli.conftest import offline as offline
from tests.embeddings.test_lsa import task_in

SIZE = 384
"""Dimensions: those of the model of fastembed whose name the test uses."""

BGE = "BAAI/bge-small-en-v1.5"


def words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]+", text)


def texts_of(task: Path) -> dict[str, str]:
    collection = load(str(task)).collection(task.parent)
    return {document.id: document.text for document in collection.documents.read(Problems())}


def tokenizer_of(vocabulary: dict[str, int]) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return tokenizer


def make_model2vec(folder: Path, vocabulary: dict[str, int], weights: Any) -> None:
    model2vec = pytest.importorskip("model2vec")
    model2vec.StaticModel(weights, tokenizer_of(vocabulary)).save_pretrained(folder)


def make_sentence_transformers(folder: Path, vocabulary: dict[str, int], weights: Any) -> None:
    library = pytest.importorskip("sentence_transformers")
    static = library.models.StaticEmbedding(tokenizer_of(vocabulary), embedding_weights=weights)
    library.SentenceTransformer(modules=[static], device="cpu").save(str(folder))


def make_fastembed(folder: Path, vocabulary: dict[str, int], weights: Any) -> None:
    pytest.importorskip("fastembed")
    onnx = pytest.importorskip("onnx")
    helper, integers, floats = onnx.helper, onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Gather", ["weights", "input_ids"], ["last_hidden_state"])],
        "lookup",
        [
            helper.make_tensor_value_info(name, integers, ["n", "m"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("last_hidden_state", floats, ["n", "m", SIZE])],
        [onnx.numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    folder.mkdir()
    onnx.save(model, folder / "model_optimized.onnx")
    tokenizer_of(vocabulary).save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 1}))
    (folder / "special_tokens_map.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 512, "pad_token": "[PAD]"}))


@pytest.mark.parametrize(
    ("library", "make", "pooled"),
    [
        ("model2vec", make_model2vec, lambda rows: rows.mean(axis=0)),
        ("sentence_transformers", make_sentence_transformers, lambda rows: rows.mean(axis=0)),
        ("fastembed", make_fastembed, lambda rows: rows[0]),
    ],
)
def test_a_model_in_a_folder_gives_its_vectors_without_the_network(
    offline: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    library: str,
    make: Callable[[Path, dict[str, int], Any], None],
    pooled: Callable[[Any], Any],
) -> None:
    def refuse(*_arguments: object) -> None:
        raise AssertionError("a library uses the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    task = task_in(tmp_path, f'[embeddings]\n{library} = "model"\nmodel = "{BGE}"\nbatch_size = 5')
    texts = texts_of(task)
    known = sorted({word for text in texts.values() for word in words(text)})
    vocabulary = {word: number for number, word in enumerate(["[UNK]", "[PAD]", *known])}
    weights = np.random.default_rng(1).normal(size=(len(vocabulary), SIZE)).astype(np.float32)
    make(tmp_path / "model", vocabulary, weights)
    made = offline("embed", task, "--json")
    assert made.code == 0, made.stderr
    stored = read_model(tmp_path / "embeddings.npz")
    rows = dict(zip(stored.header["documents"], stored.arrays["documents"].astype(int), strict=True))
    for id_, text in texts.items():
        expected = as_bytes(pooled(weights[[vocabulary[word] for word in words(text)]])[None, :])
        assert np.abs(rows[id_] - expected[0].astype(int)).max() <= 1
    assert offline("embed", task, "--json").json["embedded"] == 0
    (tmp_path / "model" / "README.md").write_text("Another version.")
    assert offline("embed", task, "--json").json["embedded"] == made.json["embedded"]


def test_what_is_no_model_is_rejected(offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_in(tmp_path, '[embeddings]\nmodel2vec = "model"')
    monkeypatch.setitem(sys.modules, "model2vec", None)
    (tmp_path / "model").mkdir()
    refused = offline("embed", task)
    assert (refused.code, "there is no model in the folder" in refused.stderr) == (4, True)
    (tmp_path / "model" / "config.json").write_text("{")
    refused = offline("embed", task)
    assert (refused.code, "pip install" in refused.stderr) == (2, True)
    monkeypatch.delitem(sys.modules, "model2vec")
    pytest.importorskip("model2vec")
    refused = offline("embed", task)
    assert (refused.code, "model2vec can't embed texts" in refused.stderr) == (4, True)
    assert len(refused.stderr.splitlines()) == 1


def test_code_of_a_model_is_not_run(offline: Cli, tmp_path: Path) -> None:
    task = task_in(tmp_path, '[embeddings]\nsentence_transformers = "model"')
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "modules.json").write_text('[{"idx": 0, "path": "", "type": "own.Module"}]')
    (tmp_path / "model" / "own.py").write_text("raise SystemExit(99)")
    refused = offline("embed", task)
    assert (refused.code, "own.Module" in refused.stderr) == (4, True), refused.stderr
