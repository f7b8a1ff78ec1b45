"""Tasks as data sets of ir_datasets."""

from __future__ import annotations

import shutil
from pathlib import Path

import ir_datasets
import pytest

import searchapp as sa
import searchapp.irds
from tests.cli.conftest import SAMPLES


def test_a_sample_is_a_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHAPP_HOME", str(tmp_path))
    dataset = ir_datasets.load("searchapp/nlps-sample/dev")
    task = sa.task("nlps-sample")
    documents = {document.id: document.text for document in task.documents()}
    assert {document.doc_id: document.text for document in dataset.docs_iter()} == documents
    assert dataset.docs_count() == len(dataset.docs) == len(documents)
    assert [(query.query_id, query.text) for query in dataset.queries_iter()] == [
        (topic.id, topic.text) for topic in task.topics("dev")
    ]
    assert dataset.qrels_dict() == task.qrels("dev")
    first = next(iter(documents))
    assert dataset.docs_store().get(first).default_text() == documents[first]
    assert dataset.docs_store().get_many([first, "none"]).keys() == {first}
    whole = ir_datasets.load("searchapp/nlps-sample")
    assert whole.has_docs() and not whole.has_queries() and not whole.has_qrels()
    assert ir_datasets.docs_parent_id("searchapp/nlps-sample/dev") == "searchapp/nlps-sample"
    assert dataset.docs_cls()._fields == ("doc_id", "text", "title")


def test_an_own_task_is_a_data_set(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLES / "own", tmp_path / "own"))
    dataset = ir_datasets.load(f"searchapp/{folder}/cooking.toml/dev")
    assert dataset.docs_store().get("r01").title and len(list(dataset.queries_iter())) == 8
    assert dataset.has_qrels()
    (folder / "bare.toml").write_text(
        'name = "bare"\n[documents]\nfile = "recipes.jsonl"\n[topics.test]\nfile = "questions.tsv"\ntext = "question"\n'
    )
    assert not ir_datasets.load(f"searchapp/{folder}/bare.toml/test").has_qrels()


@pytest.mark.parametrize(
    "name", ["searchapp/none/dev", "searchapp/nlps-sample/none", "searchapp/none.toml/dev"]
)
def test_an_unknown_task_or_split_is_a_key_error(name: str) -> None:
    with pytest.raises(KeyError):
        ir_datasets.load(name)
