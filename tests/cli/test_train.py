"""`searchapp train`, and runs of recipes whose signals are trained, on the samples."""

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
from searchapp.tasks import load
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
    """The files of a run and what it records of its models."""
    held = {file.name: file.read_bytes() for file in run.rglob("*.*") if file.name != "run.json"}
    return held | {"models": json.dumps(manifest(run)["recipe"]["models"]).encode()}


def manifest(run: Path) -> Any:
    return json.loads((run / "run.json").read_text())


def test_a_run_trains_what_is_missing_once_and_says_what_it_ranked_by(
    offline: Cli, task: str, tmp_path: Path
) -> None:
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


def test_a_run_that_is_there_is_known_before_its_models_are(offline: Cli, tmp_path: Path) -> None:
    assert rank(offline, TASK, tmp_path / "run").code == 0
    made = directory.read_manifest(tmp_path / "run")
    recipe = {key: value for key, value in made.recipe.items() if key != "models"}
    assert directory.reusable_manifest(tmp_path / "run", replace(made, recipe=recipe)) == made
    assert (
        directory.reusable_manifest(tmp_path / "run", replace(made, recipe={**recipe, "name": "other"}))
        is None
    )


def test_train_makes_the_model_that_rank_makes(offline: Cli, tmp_path: Path) -> None:
    assert rank(offline, TASK, tmp_path / "run").code == 0
    (path,) = models(tmp_path)
    content = path.read_bytes()
    result = offline("train", TASK, "--split", "fold0", "--json")
    assert [model["trained"] for model in result.json["models"]] == [False]
    assert "already trained on" in result.stderr
    # The processes of two workers import all there is first; see tests/cli/test_same_bytes.py as well.
    workers = 2 if FULL else 1
    anew = offline("train", TASK, "--split", "fold0", "--rebuild", "--workers", workers, "--json").json
    assert [(model["trained"], model["path"]) for model in anew["models"]] == [(True, str(path))]
    assert path.read_bytes() == content
    last = offline("train", TASK, "--json").json
    assert last["split"] == "test" and last["models"][0]["training_topics"] == 76
    other = offline("train", TASK, "--split", "fold0", "--set", "cost=2", "--json").json["models"][0]
    assert other["digest"] != anew["models"][0]["digest"]
    # What only ranking depends on makes no other model.
    assert not offline("train", TASK, "--split", "fold0", "--set", "steepness=3", "--json").json["models"][0][
        "trained"
    ]
    assert len(models(tmp_path)) == 3


def test_each_debate_is_ranked_by_a_model_of_the_others(offline: Cli, tmp_path: Path) -> None:
    data = SAMPLES / "checkthat"
    trained = offline("train", "checkthat", "--data", data, "--split", "training", "--json")
    made = trained.json["models"]
    names = ["farm_speech", "harbour_mayor", "valley_governors"]
    assert [(one["held_out_topic"], one["training_topics"], one["trained"]) for one in made] == [
        (name, 2, True) for name in names
    ]
    assert "lines without farm_speech: trained on 2 training topics" in trained.stderr
    assert rank(offline, "checkthat", tmp_path / "run", split="training").code == 0
    recorded = manifest(tmp_path / "run")["recipe"]["models"]["lines"]["models"]
    assert [one["digest"] for one in recorded] == [one["digest"] for one in made]
    # One debate alone has the same model, and debates that are not solved that of all.
    assert rank(offline, "checkthat", tmp_path / "alone", split="harbour_mayor").code == 0
    assert manifest(tmp_path / "alone")["recipe"]["models"]["lines"]["digest"] == made[1]["digest"]
    assert len(models(tmp_path)) == 3
    (all_of_them,) = offline("train", "checkthat", "--split", "test_annotated", "--json").json["models"]
    assert all_of_them["training_topics"] == 3 and "held_out_topic" not in all_of_them
    for one in made:
        assert set(learning.read_model(Path(one["path"])).header["topics"]) == set(names) - {
            one["held_out_topic"]
        }
    again = offline("train", "checkthat", "--split", "training", "--rebuild", "--workers", 2, "--json").json
    assert [model["digest"] for model in again["models"]] == [one["digest"] for one in made]


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


def test_without_scikit_learn_a_sentence_says_what_to_do(
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


def test_a_recipe_without_anything_to_train_is_a_mistake(offline: Cli) -> None:
    refused = offline("train", TASK, "--data", SAMPLES / TASK, "--recipe", "neighbours")
    assert refused.code == 2 and "the recipe neighbours has no model to train" in refused.stderr
    refused = offline("train", TASK, "--data", SAMPLES / TASK, "--split", "fold9")
    assert refused.code == 2 and "has no split 'fold9'" in refused.stderr
    other = "smart-relations-dbpedia"
    refused = offline("train", other, "--data", SAMPLES / other, "--set", "min_samples=500")
    assert refused.code == 4 and "lower `min_samples`" in refused.stderr
    refused = offline("train", TASK, "--data", SAMPLES / TASK, "--set", "category_field=kind")
    assert refused.code == 4 and "no document has the field kind" in refused.stderr


def test_why_names_the_features_that_a_trained_signal_goes_by(offline: Cli, task: str) -> None:
    assert offline("index", task, "--data", SAMPLES / task).code == 0
    words = "Who wrote the silent river?"
    options = ["--recipe", "best", "--json"]
    first = offline("search", task, words, *options).json["hits"][0]["id"]
    result = offline("search", task, words, "--explain-document", first, *options)
    assert result.code == 0, result.stderr
    (of_model,) = [
        part for part in result.json["explanation"]["details"] if part["description"].startswith("multi")
    ]

    def every(part: Any) -> list[Any]:
        return [part, *(inner for detail in part["details"] for inner in every(detail))]

    named = [part["description"] for part in every(of_model)]
    assert any(name.startswith(("words “who", "begins “who", "pattern “^ who")) for name in named)
    sums = [part for part in every(of_model) if part["description"].endswith("is the sum of")]
    assert sums
    for part in sums:
        (margin,) = re.findall(r"margin (-?[\d.]+) is", part["description"])
        assert float(margin) == pytest.approx(sum(detail["value"] for detail in part["details"]), abs=1e-4)
    plain = offline("search", task, words, "--explain-document", first, "--recipe", "best")
    assert plain.code == 0 and "begins “who" in plain.stdout


@pytest.mark.own_indexes
@pytest.mark.parametrize("task", [TASK, "smart-relations-dbpedia"])
def test_models_do_not_learn_from_solved_topics_that_the_split_ranks(
    offline: Cli, task: str, data: Path
) -> None:
    train, test = next(data.glob("*train.json")), next(data.glob("*test*.json"))
    solved = [entry for entry in json.loads(train.read_bytes()) if entry["question"]]
    asked = [{"id": one["id"], "question": one["question"]} for one in solved[:2]]
    test.write_text(json.dumps([*json.loads(test.read_bytes()), *asked]))
    given = (task, "--data", data, "--split", "test", "--recipe", "best")
    assert offline("index", *given[:3]).code == 0
    result = offline("rank", *given, "--out", data / "run")
    assert result.code == 0, result.stderr
    said = "2 training topics are also topics of test: the models were trained without them"
    assert said in result.stderr
    (model,) = manifest(data / "run")["recipe"]["models"].values()
    assert model["withheld"] == 2 and model["training_topics"] == len(solved) - 2
    again = offline("train", *given, "--json")
    assert said in again.stderr
    assert [(model["trained"], model["withheld"]) for model in again.json["models"]] == [(False, 2)]
    assert offline("runs", "verify", data / "run").code == 0
    # A file that has lost these questions makes another model, about which nothing is said.
    train.write_text(json.dumps(solved[2:]))
    assert "also" not in offline("rank", *given, "--out", data / "other").stderr


def test_a_topic_that_the_model_knows_is_not_ranked_by_it(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a train split that is ranked by itself, which the tasks of SMART do not have."""
    from searchapp.tasks import splits

    monkeypatch.setattr(splits, "in_split", lambda split, id_: split is not None)
    collection = load(TASK).collection(SAMPLES / TASK)
    monkeypatch.setattr(type(collection), "training_splits", lambda _self, _split: splits.FOLD_NAMES)
    monkeypatch.setattr(type(collection), "examples", _every_question(type(collection)))
    refused = rank(offline, TASK, tmp_path / "run")
    assert refused.code == 4 and "was trained on the topic" in refused.stderr
    assert not (tmp_path / "run").exists()


def _every_question(kind: Any) -> Any:
    original = kind.examples
    return lambda self, _split, problems: original(self, "test", problems)
