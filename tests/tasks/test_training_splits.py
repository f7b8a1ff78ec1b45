"""The test split is ranked with the training topics of train and dev, or of chosen splits."""

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


def training_topics(collection: Collection, split: str) -> set[str]:
    return {example.topic.id for example in collection.examples(split, Problems(lenient=True))}


@pytest.mark.parametrize("name", DEV)
def test_the_training_topics_of_test_are_those_of_train_and_dev(name: str) -> None:
    collection = tasks.load(name).collection(SAMPLES / name)
    train, test = training_topics(collection, "train"), training_topics(collection, "test")
    dev = {topic.id for topic in collection.topics("dev", Problems())}
    assert train == training_topics(collection, "dev") and train < test and test - train <= dev
    assert collection.training_splits("test") == ("train", "dev")
    assert collection.training_splits("dev") == collection.training_splits("train") == ("train",)
    assert training_topics(collection.with_training_splits(["train"]), "test") == train
    assert training_topics(collection.with_training_splits(["dev"]), "test") == test - train
    assert not training_topics(collection.with_training_splits(["dev"]), "dev"), (
        "no topic is ranked with its own gold"
    )


@pytest.mark.parametrize("name", DEV)
def test_the_training_topics_of_test_are_those_of_train_without_dev(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLES / name, tmp_path / "data"))
    for file in tasks.load(name).collection(folder).split_files("dev"):
        file.unlink()
    collection = tasks.load(name).collection(folder)
    assert collection.training_splits("test") == ("train",)
    assert training_topics(collection, "test") == training_topics(collection, "train")


def test_training_splits_of_folds_and_debates() -> None:
    types = tasks.load("smart-types-dbpedia").collection(SAMPLES / "smart-types-dbpedia")
    assert types.training_splits("fold1") == ("fold0", "fold2", "fold3", "fold4")
    assert len(types.training_splits("test")) == 5
    two = types.with_training_splits(["fold2", "fold3"])
    assert training_topics(two, "fold0") == training_topics(two, "test") < training_topics(types, "fold0")
    debates = tasks.load("checkthat").collection(SAMPLES / "checkthat")
    assert debates.training_splits("test_annotated") == ("training",)


def test_a_split_without_training_topics_is_rejected() -> None:
    collection = tasks.load("nlps").collection(SAMPLES / "nlps")
    message = "nlps has no training topics in the split 'tran' .did you mean train"
    with pytest.raises(UsageError, match=message):
        collection.with_training_splits(["tran"])


def test_the_manifest_records_the_chosen_training_splits(offline: Cli, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLES / "nlps", tmp_path / "data"))
    (folder / "dev_set.json").rename(folder / "test_set.json")
    statements = list(json.loads((folder / "train_set.json").read_text()).items())
    (folder / "train_set.json").write_text(json.dumps(dict(statements[:6])))
    (folder / "dev_set.json").write_text(json.dumps(dict(statements[6:])))
    assert offline("index", "nlps", "--data", folder).code == 0
    options = ("--data", folder, "--split", "test", "--recipe", "neighbours")
    both = offline("rank", "nlps", *options, "--out", tmp_path / "both")
    train = offline("rank", "nlps", *options, "--out", tmp_path / "train", "--training-split", "train")
    assert (both.code, train.code) == (0, 0), both.stderr + train.stderr
    manifests = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("both", "train")]
    mapping = digest_json(tasks.load("nlps").examples_index_mapping())
    assert [manifest["recipe"]["training"] for manifest in manifests] == [
        {"splits": ["train", "dev"], "mapping_digest": mapping},
        {"splits": ["train"], "mapping_digest": mapping, "chosen": True},
    ]
    assert ["dev_set.json" in manifest["data_digests"] for manifest in manifests] == [True, False]
    assert (tmp_path / "both/run.trec").read_text() != (tmp_path / "train/run.trec").read_text()
    assert offline("runs", "verify", tmp_path / "train").code == 0
    result = offline(
        "rank", "nlps", *options[:4], "--out", tmp_path / "no", "--recipe", "bm25", "--training-split", "dev"
    )
    assert result.code == 2 and "does not learn from training topics" in result.stderr
