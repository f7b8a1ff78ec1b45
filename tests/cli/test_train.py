"""`searchapp train` and runs of recipes with trained signals, on the samples."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from searchapp.ranking import learning
from searchapp.runs import directory
from searchapp.tasks import load, splits
from tests.cli.conftest import SAMPLES, Cli, Result
from tests.profile import FULL

pytestmark = pytest.mark.shared_indexes

TASK = "smart-types-dbpedia"
TASKS = (TASK, "smart-types-wikidata", "smart-relations-dbpedia", "smart-relations-wikidata")


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def models(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "home" / "models").glob("*"))


def rank(run: Cli, task: str, out: Path, *options: object, split: str = "fold0") -> Result:
    data = SAMPLES / task
    assert run("index", task, "--data", data).code == 0
    return run("rank", task, "--data", data, "--split", split, "--recipe", "best", "--out", out, *options)


def bytes_of(run: Path) -> dict[str, bytes]:
    """Return the files of a run and the models in its manifest."""
    files = {file.name: file.read_bytes() for file in run.rglob("*.*") if file.name != "run.json"}
    return files | {"models": json.dumps(manifest(run)["recipe"]["models"]).encode()}


def manifest(run: Path) -> Any:
    return json.loads((run / "run.json").read_text())


def test_a_run_trains_a_missing_model_once_and_records_it(offline: Cli, task: str, tmp_path: Path) -> None:
    result = rank(offline, task, tmp_path / "run")
    assert result.code == 0, result.stderr
    (path,) = models(tmp_path)
    stored = learning.read_model(path)
    (recorded,) = manifest(tmp_path / "run")["recipe"]["models"].values()
    assert recorded == {
        "digest": stored.digest,
        "key": stored.header["key"],
        "training_topics": len(stored.header["topics"]),
        "labels": len(stored.header["labels"]),
        "features": len(stored.header["features"]),
        "versions": stored.header["versions"],
    }
    ranked = {line.split()[0] for line in (tmp_path / "run" / "run.trec").read_text().splitlines()}
    assert ranked and not ranked & set(stored.header["topics"])
    before = path.stat().st_mtime_ns
    assert rank(offline, task, tmp_path / "again").code == 0
    assert path.stat().st_mtime_ns == before
    assert bytes_of(tmp_path / "again") == bytes_of(tmp_path / "run")
    scored = offline("evaluate", tmp_path / "run", "--json")  # without --lenient, also for Wikidata
    assert scored.code == 0, scored.stderr
    assert offline("runs", "verify", tmp_path / "run").code == 0


def test_a_run_is_reusable_before_its_models_are_known(offline: Cli, tmp_path: Path) -> None:
    assert rank(offline, TASK, tmp_path / "run").code == 0
    stored = directory.read_manifest(tmp_path / "run")
    recipe = {key: value for key, value in stored.recipe.items() if key != "models"}
    assert directory.reusable_manifest(tmp_path / "run", replace(stored, recipe=recipe)) == stored
    other = replace(stored, recipe={**recipe, "name": "other"})
    assert directory.reusable_manifest(tmp_path / "run", other) is None


def test_train_and_rank_make_the_same_model(offline: Cli, tmp_path: Path) -> None:
    assert rank(offline, TASK, tmp_path / "run").code == 0
    (path,) = models(tmp_path)
    content = path.read_bytes()
    result = offline("train", TASK, "--split", "fold0", "--json")
    assert [model["trained"] for model in result.json["models"]] == [False]
    assert "already trained on" in result.stderr
    # Two worker processes take seconds to start; tests/cli/test_same_bytes.py has them in every profile.
    workers = 2 if FULL else 1
    rebuilt = offline("train", TASK, "--split", "fold0", "--rebuild", "--workers", workers, "--json").json
    assert [(model["trained"], model["path"]) for model in rebuilt["models"]] == [(True, str(path))]
    assert path.read_bytes() == content
    last = offline("train", TASK, "--json").json
    assert last["split"] == "test" and last["models"][0]["training_topics"] == 76
    other = offline("train", TASK, "--split", "fold0", "--set", "cost=2", "--json").json["models"][0]
    assert other["digest"] != rebuilt["models"][0]["digest"]
    # Parameters that only ranking reads need no other model.
    same = offline("train", TASK, "--split", "fold0", "--set", "steepness=3", "--json").json["models"][0]
    assert not same["trained"]
    assert len(models(tmp_path)) == 3


def test_each_debate_is_ranked_by_a_model_of_the_others(offline: Cli, tmp_path: Path) -> None:
    data = SAMPLES / "checkthat"
    trained = offline("train", "checkthat", "--data", data, "--split", "training", "--json")
    debates = trained.json["models"]
    names = ["farm_speech", "harbour_mayor", "valley_governors"]
    assert [(model["held_out_topic"], model["training_topics"], model["trained"]) for model in debates] == [
        (name, 2, True) for name in names
    ]
    assert "lines without farm_speech: trained on 2 training topics" in trained.stderr
    assert rank(offline, "checkthat", tmp_path / "run", split="training").code == 0
    digests = [model["digest"] for model in debates]
    recorded = manifest(tmp_path / "run")["recipe"]["models"]["lines"]["models"]
    assert [model["digest"] for model in recorded] == digests
    # One debate alone has the same model; debates without gold have the model of all training debates.
    assert rank(offline, "checkthat", tmp_path / "alone", split="harbour_mayor").code == 0
    assert manifest(tmp_path / "alone")["recipe"]["models"]["lines"]["digest"] == digests[1]
    assert len(models(tmp_path)) == 3
    (of_all,) = offline("train", "checkthat", "--split", "test_annotated", "--json").json["models"]
    assert of_all["training_topics"] == 3 and "held_out_topic" not in of_all
    for model in debates:
        topics = set(learning.read_model(Path(model["path"])).header["topics"])
        assert topics == set(names) - {model["held_out_topic"]}
    again = offline("train", "checkthat", "--split", "training", "--rebuild", "--workers", 2, "--json").json
    assert [model["digest"] for model in again["models"]] == digests


def test_a_damaged_model_is_refused_until_it_is_trained_again(offline: Cli, tmp_path: Path) -> None:
    assert rank(offline, TASK, tmp_path / "run").code == 0
    (path,) = models(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refused = rank(offline, TASK, tmp_path / "other")
    assert refused.code == 4 and not (tmp_path / "other").exists()
    assert f"{path} is not a model of searchapp, or is damaged" in refused.stderr
    assert offline("train", TASK, "--split", "fold0", "--rebuild").code == 0
    assert path.read_bytes() == content
    assert offline("train", TASK, "--split", "fold1").code == 0
    other = next(model for model in models(tmp_path) if model != path)
    path.write_bytes(other.read_bytes())
    refused = rank(offline, TASK, tmp_path / "other")
    assert refused.code == 4 and f"{path} was trained on other training topics" in refused.stderr


def test_without_scikit_learn_the_message_names_the_command_to_install_it(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == "scikit-learn":
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    installed = metadata.version
    monkeypatch.setattr(metadata, "version", version)
    for refused in (rank(offline, TASK, tmp_path / "run"), offline("train", TASK, "--split", "fold0")):
        assert refused.code == 2 and "-m pip install 'joblib>=1.3' 'scikit-learn>=1.4' " in refused.stderr
    assert not (tmp_path / "run").exists() and not models(tmp_path)


@pytest.mark.parametrize(
    ("task", "options", "code", "message"),
    [
        (TASK, ("--recipe", "neighbours"), 2, "the recipe neighbours has no model to train"),
        (TASK, ("--split", "fold9"), 2, "has no split 'fold9'"),
        ("smart-relations-dbpedia", ("--set", "min_samples=500"), 4, "lower `min_samples`"),
        (TASK, ("--set", "category_field=kind"), 4, "no document has the field kind"),
    ],
)
def test_a_recipe_that_can_not_be_trained_is_refused(
    offline: Cli, task: str, options: tuple[str, str], code: int, message: str
) -> None:
    refused = offline("train", task, "--data", SAMPLES / task, *options)
    assert refused.code == code and message in refused.stderr


def test_an_explanation_names_features_of_a_trained_signal(offline: Cli, task: str) -> None:
    assert offline("index", task, "--data", SAMPLES / task).code == 0
    words = "Who wrote the silent river?"
    options = ["--recipe", "best", "--json"]
    document = offline("search", task, words, *options).json["hits"][0]["id"]
    result = offline("search", task, words, "--explain-document", document, *options)
    assert result.code == 0, result.stderr
    (of_model,) = [
        part for part in result.json["explanation"]["details"] if part["description"].startswith("multi")
    ]

    def parts_below(part: Any) -> list[Any]:
        return [part, *(inner for detail in part["details"] for inner in parts_below(detail))]

    descriptions = [part["description"] for part in parts_below(of_model)]
    assert any(name.startswith(("words “who", "begins “who", "pattern “^ who")) for name in descriptions)
    sums = [part for part in parts_below(of_model) if part["description"].endswith("is the sum of")]
    assert sums
    for part in sums:
        (margin,) = re.findall(r"margin (-?[\d.]+) is", part["description"])
        assert float(margin) == pytest.approx(sum(detail["value"] for detail in part["details"]), abs=1e-4)
    plain = offline("search", task, words, "--explain-document", document, "--recipe", "best")
    assert plain.code == 0 and "begins “who" in plain.stdout


@pytest.mark.own_indexes
@pytest.mark.parametrize("task", [TASK, "smart-relations-dbpedia"])
def test_models_do_not_learn_from_training_topics_that_the_split_ranks(
    offline: Cli, task: str, data: Path
) -> None:
    train, test = next(data.glob("*train.json")), next(data.glob("*test*.json"))
    training = [entry for entry in json.loads(train.read_bytes()) if entry["question"]]
    repeated = [{"id": entry["id"], "question": entry["question"]} for entry in training[:2]]
    test.write_text(json.dumps([*json.loads(test.read_bytes()), *repeated]))
    arguments = (task, "--data", data, "--split", "test", "--recipe", "best")
    assert offline("index", *arguments[:3]).code == 0
    result = offline("rank", *arguments, "--out", data / "run")
    assert result.code == 0, result.stderr
    warning = "2 training topics are also topics of test: the models were trained without them"
    assert warning in result.stderr
    (model,) = manifest(data / "run")["recipe"]["models"].values()
    assert model["withheld"] == 2 and model["training_topics"] == len(training) - 2
    again = offline("train", *arguments, "--json")
    assert warning in again.stderr
    assert [(model["trained"], model["withheld"]) for model in again.json["models"]] == [(False, 2)]
    assert offline("runs", "verify", data / "run").code == 0
    # Without these questions in the file, the model is another one and there is no warning.
    train.write_text(json.dumps(training[2:]))
    assert "also" not in offline("rank", *arguments, "--out", data / "other").stderr


def test_a_model_refuses_to_rank_a_topic_it_was_trained_on(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rank training topics with a model of all of them, as a faulty task might; the tasks of SMART never do."""
    collection = type(load(TASK).collection(SAMPLES / TASK))
    examples: Any = collection.examples
    monkeypatch.setattr(splits, "in_split", lambda split, id_: split is not None)
    monkeypatch.setattr(collection, "training_splits", lambda _self, _split: splits.FOLD_NAMES)
    monkeypatch.setattr(
        collection, "examples", lambda self, _split, problems: examples(self, "test", problems)
    )
    refused = rank(offline, TASK, tmp_path / "run")
    assert refused.code == 4 and "was trained on the topic" in refused.stderr
    assert not (tmp_path / "run").exists()
