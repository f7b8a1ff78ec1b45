"""`searchapp embed` without a model: latent semantic analysis of the documents, and votes of solved topics by it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from searchapp.formats.problems import Problems
from searchapp.ranking.learning import read_model
from searchapp.tasks import load
from tests.cli.conftest import SAMPLE, SAMPLES, Cli
from tests.cli.conftest import offline as offline

pytest.importorskip("sklearn")

RECIPES = """
[recipes.dense]
template = "bm25"
signals = [{ signal = "vectors", file = "embeddings.npz" }]

[recipes.votes]
template = "bm25"
signals = [{ signal = "vectors", file = "embeddings.npz", k = 3, power = 2.0 }]

[recipes.learned]
signals = [
  { signal = "direct", template = "bm25" },
  { signal = "vectors", file = "embeddings.npz", k = 3 },
]
fusion = { method = "learned", candidates = 10, max_topics = 20, folds = 2, num_trees = 2, num_leaves = 2, min_samples = 1, learning_rate = 0.5 }

[recipes.latent]
template = "bm25"
signals = [{ signal = "latent", dimensions = 12, k = 5, power = 2.0 }]

[recipes.latent-both]
signals = [
  { signal = "direct", template = "bm25" },
  { signal = "latent", dimensions = 4, k = 8, power = 1.0, boosts = { level = 0.5 }, weight = 0.5 },
]
"""  # noqa: E501

RECORDED = Path(__file__).parents[1] / "fixtures" / "latent"


def task_in(folder: Path, more: str = "") -> Path:
    path = Path(shutil.copytree(SAMPLES / "own", folder, dirs_exist_ok=True)) / "cooking.toml"
    path.write_text(f"{path.read_text()}\n{more}\n{RECIPES}")
    return path


def collection_texts(task: Path) -> dict[str, str]:
    collection = load(str(task)).collection(task.parent)
    return {document.id: document.text for document in collection.documents.read(Problems())}


def independent_vectors(texts: dict[str, str]) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return the vectors of texts as bytes, by scikit-learn alone."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    pattern = r"\\?[^\W\d_]+|\d+|[^\w\s\\]"
    weights = TfidfVectorizer(token_pattern=pattern, ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    order = sorted(texts, key=lambda id_: texts[id_])
    rows = weights.fit_transform([texts[id_] for id_ in order])
    rows = TruncatedSVD(min(rows.shape) - 1, n_iter=1, random_state=2021).fit_transform(rows)
    rows *= 127 / np.abs(rows).max(axis=1, keepdims=True)
    return dict(zip(order, np.rint(rows).astype(int), strict=True))


def cosine(first: Any, second: Any) -> float:
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


def rank(run: Cli, task: Path, recipe: str) -> str:
    out = task.parent / recipe
    ranked = run("rank", task, "--split", "dev", "--recipe", recipe, "--out", out, "--overwrite")
    assert ranked.code == 0, ranked.stderr
    return (out / "run.trec").read_text()


def test_a_task_without_a_table_has_vectors_by_which_documents_and_solved_topics_are_found(
    offline: Cli, tmp_path: Path
) -> None:
    task = task_in(tmp_path)
    assert offline("index", task).code == 0
    made = offline("embed", task, "--json")
    assert made.code == 0, made.stderr
    assert (made.json["documents"], made.json["requests"]) == (42, 0)
    stored = read_model(tmp_path / "embeddings.npz")
    assert {"versions", "processor"} <= stored.header.keys()
    vectors = dict(zip(stored.header["documents"], stored.arrays["documents"].astype(int), strict=True))
    expected = independent_vectors(collection_texts(task))
    # The stored ones come from sums in another order.
    assert max(np.abs(vectors[id_] - row).max() for id_, row in expected.items()) <= 1
    first = rank(offline, task, "dense").splitlines()[0].split()
    assert first[2] == max(
        vectors, key=lambda id_: cosine(vectors[id_], stored.arrays["topics"][0].astype(int))
    )
    question = (tmp_path / "questions.tsv").read_text().splitlines()[1].split("\t")[1]
    for words in (question, f"{question} unheardof"):
        typed = offline("search", task, words, "--recipe", "dense", "--json")
        assert typed.json["hits"][0]["id"] == first[2], typed.stderr
    votes = rank(offline, task, "votes")
    gold = {line.split(",")[1] for line in (tmp_path / "train-gold.csv").read_text().splitlines()[1:]}
    assert {line.split()[2] for line in votes.splitlines()} <= gold
    assert rank(offline, task, "learned")
    assert offline("embed", task, "--json").json["digest"] == made.json["digest"]
    with (tmp_path / "cooking.toml").open("a") as file:
        file.write("\n[embeddings]\ndimensions = 5\nmin_df = 3\nseed = 1\n")
    fewer = offline("embed", task, "--json").json
    assert (fewer["dimensions"], fewer["digest"] == made.json["digest"]) == (5, False)
    assert not np.array_equal(
        stored.arrays["documents"], read_model(tmp_path / "embeddings.npz").arrays["documents"]
    )


def test_the_file_of_a_shared_task_is_in_the_home_directory(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_HOME", str(tmp_path / "home"))
    made = offline("embed", "nlps", "--data", SAMPLE, "--json")
    assert made.code == 0, made.stderr
    assert Path(made.json["file"]) == tmp_path / "home" / "embeddings" / "nlps.npz"
    variant = tmp_path / "mine.toml"
    variant.write_text('extends = "nlps"\n')
    assert offline("embed", variant, "--data", SAMPLE).code == 0
    assert (tmp_path / "embeddings.npz").read_bytes() == Path(made.json["file"]).read_bytes()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('model = "m"', "needs one of url, command, documents"),
        ('url = "http://localhost/v1"\nmodel = "m"\nmodel2vec = "m"', "needs one of url"),
        ('model2vec = "m"\nmin_df = 2', "min_df"),
        ("dimensions = 0", "dimensions must be a whole number from 1 to 4096"),
        ('fastembed = "folder"', "needs model"),
    ],
)
def test_a_wrong_table_is_rejected(offline: Cli, tmp_path: Path, table: str, message: str) -> None:
    result = offline("embed", task_in(tmp_path, f"[embeddings]\n{table}"))
    assert (result.code, message in result.stderr) == (4, True), result.stderr


def test_documents_without_common_words_are_rejected(offline: Cli, tmp_path: Path) -> None:
    task = task_in(tmp_path, "[embeddings]\nmin_df = 1000")
    result = offline("embed", task)
    assert (result.code, "lower `min_df`" in result.stderr) == (4, True), result.stderr


def test_old_recipes_with_the_signal_latent_give_the_recorded_runs(offline: Cli, tmp_path: Path) -> None:
    task = task_in(tmp_path)
    assert offline("index", task).code == 0
    for recipe in ("latent", "latent-both"):
        assert rank(offline, task, recipe) == (RECORDED / f"{recipe}.trec").read_text()
