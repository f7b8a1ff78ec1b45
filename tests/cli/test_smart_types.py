"""Answer type prediction from end to end on the samples, on both engines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from searchapp.tasks import load
from tests.cli.conftest import SAMPLES, Cli, index_and_rank

pytestmark = pytest.mark.shared_indexes

TASKS = ("smart-types-dbpedia", "smart-types-wikidata")
FOLDS = [f"fold{number}" for number in range(5)]


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def train_file(task: str, data: Path) -> Path:
    return data / f"task1_{task.rpartition('-')[2]}_train.json"


@pytest.mark.parametrize("recipe", ["bm25", "neighbours"])
@pytest.mark.parametrize("split", ["fold1", "test"])
def test_ranking_exporting_validating_and_evaluating_agree(
    cli: Cli, task: str, data: Path, split: str, recipe: str, tmp_path: Path
) -> None:
    run = index_and_rank(cli, task, data, tmp_path / "run", "--split", split, "--recipe", recipe)
    out = tmp_path / "answers.json"
    assert cli("export", run, "--out", out).code == 0
    assert out.read_bytes() == (run / load(task).info.official_file).read_bytes()
    options = ["--task", task, "--data", data, "--split", split]
    validated = cli("validate", out, *options)
    assert validated.code == 0, validated.stderr
    assert cli("validate", out, "--task", task).code == 0
    reporting = ["--json", "--per-topic", "--by", "all", "--lenient"]
    of_run = cli("evaluate", run, *reporting).json
    of_file = cli("evaluate", out, *options, *reporting).json
    for key in ("breakdowns", "topics"):
        assert of_run[key] == of_file[key]
    for key in ("measure", "values", "per_topic"):
        assert of_run["official"][key] == of_file["official"][key]
    if "wikidata" not in task:  # its file has more types than the ranking, which changes the honest figure
        assert of_run["official"] == of_file["official"] and of_run["warnings"] == of_file["warnings"]
    assert cli("evaluate", out, *options).code == 0  # without --lenient too
    assert set(of_run["breakdowns"]) == {"category", "gold-types", "first-word"}
    assert next(iter(of_run["official"]["values"].values())) >= 0.6


def test_every_fold_is_scored_against_its_own_questions(
    offline: Cli, task: str, data: Path, tmp_path: Path
) -> None:
    questions = [entry for entry in json.loads(train_file(task, data).read_text()) if entry["question"]]
    counted = 0
    for split in FOLDS:
        run = index_and_rank(offline, task, data, tmp_path / split, "--split", split, "--recipe", "bm25")
        counted += offline("evaluate", run, "--json", "--lenient").json["topics"]
    assert counted == len(questions)


def test_types_are_found_by_their_names(cli: Cli, task: str, data: Path) -> None:
    assert cli("index", task, "--data", data).code == 0
    hits = cli("search", task, "Which cities are there?", "--json").json["hits"]
    assert hits[0]["text"] == "city"


def test_all_problems_of_an_official_file_are_found(
    offline: Cli, task: str, data: Path, tmp_path: Path
) -> None:
    run = index_and_rank(offline, task, data, tmp_path / "run", "--split", "test")
    answers = json.loads((run / load(task).info.official_file).read_text())
    answers[0]["type"] = ["date"] if answers[0]["category"] == "resource" else ["dbo:City"]
    answers[1]["category"] = "place"
    answers[2]["type"] = answers[2]["type"] * 2
    answers[3]["id"] = 7 if "wikidata" in task else "nobody"
    bad = tmp_path / "bad.json"
    bad.write_text("[\n" + ",\n".join(map(json.dumps, answers)) + "\n]\n")
    options = ["--task", task, "--data", data, "--split", "test", "--json"]
    result = offline("validate", bad, *options)
    assert result.code == 4
    problems = {(problem["kind"], problem["where"].split(":")[0]) for problem in result.json["problems"]}
    assert ("contradiction", "line 2") in problems
    assert ("unknown category", "line 3") in problems
    assert ("repeated type", "line 4") in problems
    assert ("unknown question", "line 5") in problems
    assert sum(kind == "missing question" for kind, _where in problems) == 4


def test_every_part_of_a_label_on_which_the_scorer_stops_is_reported(offline: Cli, tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLES / "smart-types-wikidata", tmp_path / "data"))
    path = data / "task1_wikidata_test.json"
    questions = json.loads(path.read_text())
    for question in questions[:3]:
        question |= {"category": "resource", "type": ["big city", "town"]}
    path.write_text(json.dumps(questions))
    types = [["city", "town"], ["town", "city"], ["village", "t"]]
    answers = [
        {name: question[name] for name in ("id", "category")}
        | {"type": types[number] if number < 3 else question["type"]}
        for number, question in enumerate(questions)
    ]
    predicted = tmp_path / "predictions.json"
    predicted.write_text("[\n" + ",\n".join(map(json.dumps, answers)) + "\n]\n")
    options = ["--task", "smart-types-wikidata", "--data", data, "--split", "test"]
    result = offline("validate", predicted, *options, "--json")
    assert result.code == 4 and not result.json["valid"]
    problems = result.json["problems"]
    assert [(problem["kind"], problem["where"]) for problem in problems] == [
        ("part of a label", "line 2"),
        ("part of a label", "line 4"),
    ]
    assert "has the type city" in problems[0]["detail"]
    assert "ValueError: 'city' is not in list" in problems[0]["detail"]
    stopped = offline("evaluate", predicted, *options)
    assert stopped.code == 4 and "'city' is not in list" in stopped.stderr
    # Without gold there are no labels to compare with.
    path.write_text(
        json.dumps([{"id": question["id"], "question": question["question"]} for question in questions])
    )
    assert offline("validate", predicted, *options).code == 0


def test_problems_of_the_file_alone_are_found_without_data(offline: Cli, task: str, tmp_path: Path) -> None:
    predicted = tmp_path / "predictions.json"
    good = {"id": 1, "category": "literal", "type": ["date"]}
    for entries, kind in (
        ([], "no prediction"),
        ([{**good, "type": []}], "no type"),
        ([{**good, "type": None}], "wrong type"),
        ([{**good, "type": "date"}], "wrong type"),
        ([{"id": 1, "category": "literal"}], "missing key"),
        ([{**good, "category": "place"}], "unknown category"),
        ([good, {**good, "id": "2"}], "wrong type"),
    ):
        predicted.write_text(json.dumps(entries))
        result = offline("validate", predicted, "--task", task, "--json")
        assert result.code == 4
        assert [problem["kind"] for problem in result.json["problems"]] == [kind]
    predicted.write_text(json.dumps([good]))
    assert offline("validate", predicted, "--task", task).code == 0


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"category": "boolean"}, "contradiction"),
        ({"category": "Boolean"}, "unknown category"),
        ({"type": ["date"], "category": "resource"}, "contradiction"),
        ({"question": " "}, "blank text"),
    ],
)
def test_an_error_of_a_train_file_is_reported_once_with_its_line(
    offline: Cli, task: str, data: Path, changes: dict[str, Any], kind: str
) -> None:
    path = train_file(task, data)
    questions = json.loads(path.read_text())
    questions[2] = {**questions[2], "type": ["date"], "category": "literal", **changes}
    path.write_text("[\n" + ",\n".join(map(json.dumps, questions)) + "\n]\n")
    result = offline("index", task, "--data", data)
    assert result.code == 4
    assert result.stderr.count(kind) == 1
    assert "_train.json: line 4: question" in result.stderr


def test_a_missing_file_is_reported_once(offline: Cli, task: str, data: Path) -> None:
    (needed,) = load(task).collection(data).documents.files
    needed.unlink()
    result = offline("index", task, "--data", data)
    assert result.code == 4
    assert result.stderr.count("missing file") == 1 and needed.name in result.stderr


def test_masked_gold_is_not_scored(offline: Cli, task: str, data: Path, tmp_path: Path) -> None:
    path = data / f"task1_{task.rpartition('-')[2]}_test.json"
    questions = [{"id": entry["id"], "question": entry["question"]} for entry in json.loads(path.read_text())]
    path.write_text(json.dumps(questions))
    run = index_and_rank(offline, task, data, tmp_path / "run", "--split", "test")
    assert (run / load(task).info.official_file).is_file()
    result = offline("evaluate", run)
    assert result.code == 4 and "masked" in result.stderr


def test_an_unknown_split_is_a_usage_error(offline: Cli, task: str, data: Path, tmp_path: Path) -> None:
    result = offline("rank", task, "--data", data, "--split", "dev", "--out", tmp_path / "run")
    assert result.code == 2 and "fold0 or fold1" in result.stderr


def test_questions_without_text_are_grouped_if_the_scorer_accepts_them(
    offline: Cli, task: str, data: Path, tmp_path: Path
) -> None:
    run = index_and_rank(offline, task, data, tmp_path / "run", "--split", "fold1")
    path = train_file(task, data)
    questions = json.loads(path.read_text())
    for question in questions:
        del question["question"]
    path.write_text(json.dumps(questions))
    result = offline("evaluate", run, "--by", "all", "--lenient", "--json")
    if "dbpedia" in task:
        assert result.code == 4 and "question" in result.stderr
    else:
        assert [row["group"] for row in result.json["breakdowns"]["first-word"]["rows"]] == ["(none)"]
