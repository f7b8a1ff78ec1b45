"""Relation prediction from end to end on the samples, on both engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchapp.tasks import load
from tests.cli.conftest import Cli, index_and_rank, read_rankings

pytestmark = pytest.mark.shared_indexes

TASKS = ("smart-relations-dbpedia", "smart-relations-wikidata")


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_breakdowns_of_given_gold_have_the_scored_questions(
    offline: Cli, task: str, data: Path, tmp_path: Path
) -> None:
    run = index_and_rank(offline, task, data, tmp_path / "run", "--split", "fold2", "--recipe", "bm25")
    gold = next(data.glob("*-train.json"))
    output = offline("evaluate", run, "--gold", gold, "--by", "first-word", "--json").json
    of_split = offline("evaluate", run, "--by", "first-word", "--json").json
    for evaluated in (output, of_split):
        rows = evaluated["breakdowns"]["first-word"]["rows"]
        assert sum(row["questions"] for row in rows) == evaluated["topics"]
    assert output["topics"] > of_split["topics"]


@pytest.mark.parametrize("recipe", ["bm25", "neighbours"])
def test_ranking_exporting_validating_and_evaluating_agree(
    cli: Cli, task: str, data: Path, recipe: str, tmp_path: Path
) -> None:
    run = index_and_rank(cli, task, data, tmp_path / "run", "--split", "fold2", "--recipe", recipe)
    out = tmp_path / "answers.json"
    assert cli("export", run, "--out", out).code == 0
    assert out.read_bytes() == (run / load(task).info.official_file).read_bytes()
    options = ["--task", task, "--data", data, "--split", "fold2"]
    assert cli("validate", out, *options).code == 0
    assert cli("validate", out, "--task", task).code == 0
    of_run = cli("evaluate", run, "--json", "--per-topic", "--by", "all").json
    of_file = cli("evaluate", out, *options, "--json", "--per-topic", "--by", "all").json
    for key in ("official", "breakdowns", "topics", "warnings"):
        assert of_run[key] == of_file[key]
    assert of_run["official"]["value"] > 0.55
    assert (
        of_run["measures"]["R@50"]
        > of_file["measures"]["R@50"]
        >= of_run["official"]["values"]["Recall"] - 0.5
    )


def test_every_question_is_ranked_in_one_fold(cli: Cli, task: str, data: Path, tmp_path: Path) -> None:
    questions = {entry["id"] for entry in json.loads(next(data.glob("*train.json")).read_text())}
    ranked: list[str] = []
    for number in range(5):
        run = index_and_rank(cli, task, data, tmp_path / f"run{number}", "--split", f"fold{number}")
        topics = list(read_rankings(run))
        assert cli("evaluate", run, "--json").json["topics"] == len(topics)
        ranked += topics
    assert (len(ranked), set(ranked)) == (len(questions), questions)


def test_the_test_split_is_ranked_and_has_no_gold(cli: Cli, task: str, data: Path, tmp_path: Path) -> None:
    run = index_and_rank(cli, task, data, tmp_path / "run", "--split", "test")
    answers = json.loads((run / load(task).info.official_file).read_text())
    assert [answer["id"].rpartition("-")[2] for answer in answers] == ["1", "2", "3"]
    assert answers[0]["relations"][0] in ("dbo:author", "P50")
    result = cli("evaluate", run)
    assert result.code == 4 and "masked" in result.stderr


def test_relations_are_found_by_words_and_ids(cli: Cli, task: str, data: Path) -> None:
    assert cli("index", task, "--data", data).code == 0
    for words, expected in (("birthplace", ("dbo:birthPlace", "P19")), ("directed", ("dbo:director", "P57"))):
        hits = cli("search", task, words, "--size", 2, "--json").json["hits"]
        assert hits[0]["id"] in expected
    for words in ("dbo:spouse", "P26"):
        if words.startswith("d") == task.endswith("dbpedia"):
            (hit,) = cli("search", task, words, "--size", 1, "--json").json["hits"]
            assert hit["id"] == words


def test_problems_of_a_file_with_five_splits_are_reported_once(cli: Cli, task: str, data: Path) -> None:
    path = next(data.glob("*train.json"))
    path.write_text(path.read_text().replace("P50", "P99999").replace("dbo:author", "dbo:nothing"))
    result = cli("index", task, "--data", data)
    assert result.code == 4
    wrong = sum("nothing" in line or "P99999" in line for line in path.read_text().splitlines())
    assert wrong > 3
    assert f"{wrong} problems: unknown relation ({wrong})" in result.stderr
    assert f"{path}: line " in result.stderr


def test_a_missing_train_file_is_reported_by_recipes_that_need_it(
    cli: Cli, task: str, data: Path, tmp_path: Path
) -> None:
    next(data.glob("*train.json")).unlink()
    assert cli("index", task, "--data", data).code == 0
    command = ("rank", task, "--data", data, "--split", "test", "--out", tmp_path / "run")
    result = cli(*command)
    assert result.code == 4
    assert "train.json is expected in" in result.stderr
    assert cli(*command, "--recipe", "bm25").code == 0


def test_all_problems_of_an_official_file_are_found(
    offline: Cli, task: str, data: Path, tmp_path: Path
) -> None:
    good = (
        index_and_rank(offline, task, data, tmp_path / "run", "--split", "test")
        / load(task).info.official_file
    )
    entries: list[Any] = json.loads(good.read_text())
    entries[0]["relations"] = ["dbo:nothing"]
    entries[1]["id"] = "nobody"
    entries.append(entries[2])
    bad = tmp_path / "bad.json"
    bad.write_text("[" + ",\n".join(map(json.dumps, entries)) + "]")
    result = offline("validate", bad, "--task", task, "--data", data, "--split", "test", "--json")
    assert result.code == 4
    prefix = "sample-" + task.rpartition("-")[2]
    assert [(problem["where"], problem["kind"]) for problem in result.json["problems"]] == [
        (f"line 1: question {prefix}-test-1", "unknown relation"),
        ("line 2", "unknown question"),
        ("line 4", "duplicate id"),
        (f"question {prefix}-test-1", "missing question"),
        (f"question {prefix}-test-2", "missing question"),
    ]


def test_an_unknown_split_is_refused(offline: Cli, task: str, data: Path, tmp_path: Path) -> None:
    offline("index", task, "--data", data)
    result = offline("rank", task, "--data", data, "--split", "dev", "--out", tmp_path / "run")
    assert result.code == 2 and "choose fold0 or fold1" in result.stderr
