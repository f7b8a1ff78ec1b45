from __future__ import annotations

from tests.cli.conftest import SAMPLE, Cli


def test_a_task_is_told_with_its_data_and_what_is_indexed(cli: Cli) -> None:
    before = cli("tasks")
    assert before.code == 0
    assert before.stdout.startswith("nlps  Natural language premise selection")
    assert "indexed  nothing yet" in before.stdout
    assert "not there: searchapp data get nlps" in before.stdout
    cli("index", "nlps", "--data", SAMPLE)
    assert "indexed  70 documents" in cli("tasks").stdout


def test_the_tasks_as_json(cli: Cli) -> None:
    cli("index", "nlps", "--data", SAMPLE)
    nlps = next(task for task in cli("tasks", "--json").json["tasks"] if task["task"] == "nlps")
    assert (nlps["task"], nlps["indexed"], nlps["data_found"]) == ("nlps", 70, False)
    assert nlps["official"] == {"measure": "MAP@500", "file": "predict.txt"}


def test_a_server_that_does_not_answer_is_no_reason_to_say_nothing(offline: Cli) -> None:
    result = offline("tasks", "--url", "http://127.0.0.1:9")
    assert result.code == 0
    assert "indexed  unknown" in result.stdout
    assert "no Elasticsearch answers" in result.stderr


def test_a_task_says_by_what_its_figures_can_be_broken_down(offline: Cli) -> None:
    assert "--by       role overlap precision length\n" in offline("tasks", "show", "explanation-2019").stdout
    assert "--by       (no breakdowns)\n" in offline("tasks", "show", "nlps").stdout
    described = offline("tasks", "show", "explanation-2021", "--json").json
    assert described["breakdowns"] == ["type", "rating", "precision", "overlap"]
