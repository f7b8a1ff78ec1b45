"""`searchapp tasks`: tasks with their data and indexes, remembered folders, and recipes."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.conftest import SAMPLE, Cli


def test_a_task_is_listed_with_its_data_and_its_index(cli: Cli) -> None:
    before = cli("tasks")
    assert before.code == 0
    assert before.stdout.startswith("nlps  Natural language premise selection")
    assert "indexed  no\n" in before.stdout
    assert "missing: run searchapp data get nlps" in before.stdout
    cli("index", "nlps", "--data", SAMPLE)
    assert "indexed  70 documents" in cli("tasks").stdout


def test_the_tasks_as_json(cli: Cli) -> None:
    cli("index", "nlps", "--data", SAMPLE)
    nlps = next(task for task in cli("tasks", "--json").json["tasks"] if task["task"] == "nlps")
    assert (nlps["task"], nlps["indexed"], nlps["data_found"]) == ("nlps", 70, True)
    assert (nlps["data"], nlps["data_remembered"]) == (str(SAMPLE), True)
    assert nlps["official"] == {"measure": "MAP@500", "file": "predict.txt"}


def test_tasks_are_listed_without_the_server(offline: Cli) -> None:
    result = offline("tasks", "--url", "http://127.0.0.1:9")
    assert result.code == 0
    assert "indexed  unknown" in result.stdout
    assert "no Elasticsearch answers" in result.stderr


def test_show_lists_the_breakdowns_of_a_task(offline: Cli) -> None:
    assert "--by       role overlap precision length\n" in offline("tasks", "show", "explanation-2019").stdout
    assert "--by       (no breakdowns)\n" in offline("tasks", "show", "nlps").stdout
    output = offline("tasks", "show", "explanation-2021", "--json").json
    assert output["breakdowns"] == ["type", "rating", "precision", "overlap"]


def test_the_folder_that_was_indexed_is_remembered_for_every_command(cli: Cli, tmp_path: Path) -> None:
    """Run the commands of docs/tasks/overview.md."""
    run = tmp_path / "dev"
    result = cli("index", "nlps", "--data", SAMPLE)
    assert result.code == 0
    assert f"nlps: remembered the folder of its files, {SAMPLE}" in result.stderr
    again = cli("index", "nlps")
    assert again.code == 0 and "nothing has changed" in again.stderr
    assert "looked for" not in cli("index", "nlps", "--data", SAMPLE).stderr
    assert f"data     {SAMPLE} (remembered from `index --data`)" in cli("tasks").stdout
    assert cli("search", "nlps", "compact subset").code == 0
    assert cli("rank", "nlps", "--split", "dev", "--recipe", "neighbours", "--out", run).code == 0
    evaluated = cli("evaluate", run, "--cutoff", 50, "--json")
    assert evaluated.code == 0, evaluated.stderr
    official = tmp_path / "predict.txt"
    assert cli("export", run, "--format", "official", "--cutoff", 50, "--out", official).code == 0
    assert cli("validate", official, "--task", "nlps", "--split", "dev", "--cutoff", 50).code == 0
    figures = cli("evaluate", official, "--task", "nlps", "--split", "dev", "--cutoff", 50, "--json")
    assert figures.json["official"] == evaluated.json["official"]
    assert cli("judge", "nlps", "--run", run, "--plain", "--annotator", "ann").code == 0
    assigned = cli(
        "judgments", "assign", "nlps", "--split", "dev", "--quota", "ann=2", "--out", tmp_path / "a.json"
    )
    assert assigned.code == 0, assigned.stderr
    assert "missing file" in cli("data", "verify", "nlps").stderr + cli("data", "verify", "nlps").stdout


def test_the_folder_of_a_failed_build_is_not_remembered(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", "nlps", "--data", tmp_path).code == 4
    assert f"{tmp_path / 'home' / 'data' / 'nlps'} has no data of nlps" in offline("index", "nlps").stderr


def test_a_remembered_folder_that_was_moved_is_reported_and_can_be_replaced(
    offline: Cli, tmp_path: Path
) -> None:
    data, moved = tmp_path / "data", tmp_path / "moved"
    shutil.copytree(SAMPLE, data)
    assert offline("index", "nlps", "--data", data).code == 0
    data.rename(moved)
    for arguments in (
        ["index", "nlps"],
        ["rank", "nlps", "--split", "dev", "--out", tmp_path / "r"],
        ["validate", SAMPLE / "dev.json", "--task", "nlps", "--split", "dev"],
    ):
        result = offline(*arguments)
        assert result.code == 4
        assert f"the folder {data}, from which nlps was last indexed, no longer exists" in result.stderr
    assert f"{data} (no longer exists: run searchapp index nlps --data DIR)" in offline("tasks").stdout
    assert offline("search", "nlps", "group").code == 0
    assert offline("index", "nlps", "--data", moved).code == 0
    assert offline("rank", "nlps", "--split", "dev", "--out", tmp_path / "r").code == 0


def test_a_damaged_list_of_folders_is_reported_and_replaced(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    state = tmp_path / "home" / "folders.json"
    state.write_text("{")
    message = "folders.json, which lists the folders of the tasks, is damaged: remove it, and name the folder"
    listed = offline("tasks")
    assert listed.code == 0 and listed.stderr.count(message) == 1
    failed = offline("index", "nlps")
    assert failed.code == 4 and message in failed.stderr
    assert offline("rank", "nlps", "--split", "dev", "--data", SAMPLE, "--out", tmp_path / "r").code == 0
    assert offline("index", "nlps", "--data", SAMPLE).code == 0  # the list is written again
    assert offline("index", "nlps").code == 0
    state.unlink()
    state.mkdir()
    result = offline("index", "nlps", "--data", SAMPLE)
    assert result.code == 0
    assert "the folder was not remembered; give it with --data again: " in result.stderr


def test_show_lists_the_parameters_of_a_recipe(offline: Cli) -> None:
    result = offline("tasks", "show", "nlps", "--recipe", "neighbours", "--set", "k=7")
    assert result.code == 0
    assert result.stdout.startswith("nlps/neighbours  Votes of the most similar")
    line = "  k             7: number of nearest neighbours that vote (a whole number of at least 1)\n"
    assert line in result.stdout
    output = offline("tasks", "show", "nlps", "--recipe", "neighbours", "--json").json
    assert [parameter["name"] for parameter in output["parameters"]] == [
        "direct",
        "window",
        "neighbours",
        "k",
        "power",
        "normalization",
    ]
    assert "no parameters" in offline("tasks", "show", "nlps", "--recipe", "bm25").stdout
    assert offline("tasks", "show", "nlps", "--recipe", "none").code == 2
