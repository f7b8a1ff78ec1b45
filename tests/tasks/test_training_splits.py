"""Test is ranked with the solved topics of train and dev; somebody may choose some of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from searchapp import tasks
from searchapp.errors import UsageError
from searchapp.files import digest_json
from searchapp.formats.problems import Problems
from searchapp.tasks.base import Collection
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.conftest import offline as offline

DEV = {
    "nlps": "dev_set.json",
    "explanation-2019": "questions/questions.dev.tsv",
    "explanation-2021": "wt-expert-ratings.dev.json",
}


def solved(collection: Collection, split: str) -> set[str]:
    return {one.topic.id for one in collection.examples(split, Problems(lenient=True))}


@pytest.mark.parametrize("name", DEV)
def test_test_has_the_solved_topics_of_train_and_dev(name: str) -> None:
    collection = tasks.load(name).collection(SAMPLES / name)
    train, test = solved(collection, "train"), solved(collection, "test")
    dev = {topic.id for topic in collection.topics("dev", Problems())}
    assert train == solved(collection, "dev") and train < test and test - train <= dev
    assert collection.training_splits("test") == ("train", "dev")
    assert collection.training_splits("dev") == collection.training_splits("train") == ("train",)
    assert solved(collection.with_training_splits(["train"]), "test") == train
    assert solved(collection.with_training_splits(["dev"]), "test") == test - train
    assert not solved(collection.with_training_splits(["dev"]), "dev"), (
        "no topic is ranked by its own answers"
    )


@pytest.mark.parametrize("name", DEV)
def test_without_dev_test_has_those_of_train(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLES / name, tmp_path / "data"))
    files = tasks.load(name).collection(folder).split_files("dev")
    for file in files:
        file.unlink()
    collection = tasks.load(name).collection(folder)
    assert collection.training_splits("test") == ("train",)
    assert solved(collection, "test") == solved(collection, "train")


def test_folds_are_solved_by_the_others_and_debates_by_training() -> None:
    types = tasks.load("smart-types-dbpedia").collection(SAMPLES / "smart-types-dbpedia")
    assert types.training_splits("fold1") == ("fold0", "fold2", "fold3", "fold4")
    assert len(types.training_splits("test")) == 5
    two = types.with_training_splits(["fold2", "fold3"])
    assert solved(two, "fold0") == solved(two, "test") < solved(types, "fold0")
    debates = tasks.load("checkthat").collection(SAMPLES / "checkthat")
    assert debates.training_splits("test_annotated") == ("training",)


def test_a_split_without_solved_topics_is_refused() -> None:
    collection = tasks.load("nlps").collection(SAMPLES / "nlps")
    with pytest.raises(
        UsageError, match=r"nlps has no training topics in the split 'tran' .did you mean train"
    ):
        collection.with_training_splits(["tran"])


def test_the_manifest_says_which_and_the_command_makes_the_same_run(offline: Cli, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLES / "nlps", tmp_path / "data"))
    (folder / "dev_set.json").rename(folder / "test_set.json")
    statements = list(json.loads((folder / "train_set.json").read_text()).items())
    (folder / "train_set.json").write_text(json.dumps(dict(statements[:6])))
    (folder / "dev_set.json").write_text(json.dumps(dict(statements[6:])))
    assert offline("index", "nlps", "--data", folder).code == 0
    given = ("--data", folder, "--split", "test", "--recipe", "neighbours")
    both = offline("rank", "nlps", *given, "--out", tmp_path / "both")
    one = offline("rank", "nlps", *given, "--out", tmp_path / "one", "--training-split", "train")
    assert (both.code, one.code) == (0, 0), both.stderr + one.stderr
    manifests = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("both", "one")]
    mapping = digest_json(tasks.load("nlps").examples_index_mapping())
    assert [one["recipe"]["training"] for one in manifests] == [
        {"splits": ["train", "dev"], "mapping_digest": mapping},
        {"splits": ["train"], "mapping_digest": mapping, "chosen": True},
    ]
    assert ["dev_set.json" in one["data_digests"] for one in manifests] == [True, False]
    assert (tmp_path / "both/run.trec").read_text() != (tmp_path / "one/run.trec").read_text()
    assert offline("runs", "verify", tmp_path / "one").code == 0
    refused = offline(
        "rank", "nlps", *given[:4], "--out", tmp_path / "no", "--recipe", "bm25", "--training-split", "dev"
    )
    assert refused.code == 2 and "does not learn from training topics" in refused.stderr
