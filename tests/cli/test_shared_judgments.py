"""Judgments of a team from the command line, on a real cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from searchapp.cli import app
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import SAMPLE, Cli
from tests.server.faults import FaultProxy


@pytest.fixture
def run(indexed_server: Cli, tmp_path: Path) -> Path:
    path = tmp_path / "run"
    assert indexed_server("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", path).code == 0
    return path


def judge(run: Path, name: str, *options: object, typed: str) -> Any:
    arguments = ["judge", "nlps", "--run", run, "--annotator", name, "--plain", *options]
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=typed)


def home(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """From here on commands are those of this member."""
    monkeypatch.setenv("SEARCHAPP_HOME", str(tmp_path / name))
    return tmp_path / name / "judgments.sqlite"


def count(log: Path) -> int:
    with JudgmentLog(log) as opened:
        return len(opened)


def test_two_members_judge_and_see_each_other(
    run: Path, server: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = home(tmp_path, "ann", monkeypatch)
    told = judge(run, "ann", "--shared", typed="1 defines it\n0\nq\n")
    assert told.exit_code == 0, told.stderr
    assert "the team has them in http" in told.stderr and "wait for the cluster" not in told.stdout
    second = home(tmp_path, "ben", monkeypatch)
    told = judge(run, "ben", "--shared", typed="0\nq\n")
    assert "ann: 1" in told.stdout and "defines it" in told.stdout
    assert count(second) == 3
    found = server("judgments", "sync", "--json")
    assert (found.json["sent"], found.json["fetched"], found.json["waiting"]) == (0, 0, 0)
    home(tmp_path, "ann", monkeypatch)
    assert server("judgments", "sync").stderr.startswith("0 judgments were sent to http")
    assert count(first) == 3
    one, two = (
        (home(tmp_path, name, monkeypatch), server("judgments", "agreement", "nlps", "--json"))[1].json
        for name in ("ann", "ben")
    )
    assert one == two and one["documents"] == 1


def test_exports_of_all_members_are_the_same(
    run: Path, server: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home(tmp_path, "ann", monkeypatch)
    judge(run, "ann", typed="1\n0\nu\nn a note\nq\n")
    home(tmp_path, "ben", monkeypatch)
    judge(run, "ben", "--shared", typed="0\n1\nx\nq\n")
    exports = []
    for name in ("ann", "ben", "eve"):
        home(tmp_path, name, monkeypatch)
        assert server("judgments", "sync").code == 0
    for name in ("ann", "ben", "eve"):
        home(tmp_path, name, monkeypatch)
        assert server("judgments", "sync").code == 0
        out = tmp_path / f"{name}.jsonl"
        assert server("judgments", "export", "nlps", "--out", out).code == 0
        exports.append(out.read_bytes())
    assert exports[0] == exports[1] == exports[2]
    assert exports[0].count(b"\n") == 7


def test_a_server_that_is_gone_stops_nobody_who_judges(
    run: Path, server: Cli, fault_proxy: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = home(tmp_path, "ann", monkeypatch)
    monkeypatch.setenv("SEARCHAPP_URL", fault_proxy.url)
    fault_proxy.answer(503, path="judgments", times=None)
    told = judge(run, "ann", "--shared", typed="1\n0\nq\n")
    assert told.exit_code == 0 and "saved. " in told.stdout
    assert (
        "2 judgments wait in" in told.stderr and "`searchapp judgments sync` sends what waits" in told.stderr
    )
    assert count(log) == 2
    refused = server("judgments", "sync")
    assert refused.code == 3 and "2 judgments wait in" in refused.stderr
    fault_proxy.heal()
    assert server("judgments", "sync", "--json").json["sent"] == 2


def test_with_the_setting_every_command_exchanges(
    run: Path, server: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_SHARED", "1")
    home(tmp_path, "ann", monkeypatch)
    judge(run, "ann", typed="1\nq\n")
    home(tmp_path, "ben", monkeypatch)
    qrels = tmp_path / "ben.qrels"
    qrels.write_text("608 0 101 0\n")
    assert server("judgments", "import", "nlps", qrels, "--format", "qrels", "--annotator", "ben").code == 0
    home(tmp_path, "eve", monkeypatch)
    stats = server("judgments", "stats", "nlps", "--json")
    assert sorted(one["annotator"] for one in stats.json["annotators"]) == ["ann", "ben"]
    home(tmp_path, "dan", monkeypatch)
    told = judge(run, "dan", "--no-shared", typed="1\nq\n")
    assert "the team has" not in told.stderr


def test_only_the_judgments_of_the_task_at_hand_are_sent(
    run: Path, server: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = home(tmp_path, "ann", monkeypatch)
    with JudgmentLog(log) as opened:
        private = Author("ann").event("explanation-2021", "t", "d", Action.grade, grade=1)
        opened.append([private])
    told = judge(run, "ann", "--shared", typed="1\n0\nq\n")
    assert "the team has them in http" in told.stderr and "wait for the cluster" not in told.stdout
    assert "1 judgment of another task stays here: `searchapp judgments sync` sends all" in told.stderr
    monkeypatch.setenv("SEARCHAPP_SHARED", "1")
    assert server("judgments", "stats", "nlps").code == 0
    with JudgmentLog(home(tmp_path, "ben", monkeypatch)):
        assert server("judgments", "stats", "nlps", "--json").json["events"] == 2
    assert server("judgments", "stats", "explanation-2021").code == 4
    home(tmp_path, "ann", monkeypatch)
    assert server("judgments", "sync", "--json").json["sent"] == 1
    home(tmp_path, "ben", monkeypatch)
    assert server("judgments", "stats", "explanation-2021", "--json").json["events"] == 1


def test_an_import_that_is_taken_back_is_taken_back_for_everybody(
    run: Path, server: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_SHARED", "1")
    qrels = tmp_path / "ben.qrels"
    qrels.write_text("608 0 101 1\n")
    home(tmp_path, "ben", monkeypatch)
    imported = ("judgments", "import", "nlps", qrels, "--format", "qrels", "--annotator", "ben")
    assert server(*imported).code == 0
    home(tmp_path, "eve", monkeypatch)

    def graded() -> int:
        (found,) = server("judgments", "stats", "nlps", "--json").json["annotators"]
        return int(found["graded"])

    assert graded() == 1
    assert (
        server("judgments", "imports", "nlps", "--json").json["imports"] == []
    )  # it was made on another machine
    home(tmp_path, "ben", monkeypatch)
    assert server("judgments", "retract", "nlps", "--import", 1).code == 0
    home(tmp_path, "eve", monkeypatch)
    assert graded() == 0
    # Who imports the same file elsewhere brings it back as well.
    assert server(*imported, "--json").json["new"] == 1 and graded() == 1


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        (["sync"], {}, "judgments are shared through an Elasticsearch: give its address with --url"),
        (["stats", "nlps"], {"SHARED": "1"}, "judgments are shared through an Elasticsearch"),
        (["stats", "nlps"], {"SHARED": "maybe"}, "SEARCHAPP_SHARED is 'maybe': set it to 1 or 0"),
    ],
)
def test_sharing_without_a_cluster_is_refused(
    offline: Cli,
    arguments: list[str],
    environment: dict[str, str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"SEARCHAPP_{name}", value)
    result = offline("judgments", *arguments)
    assert result.code == 2 and told in result.stderr


def test_judging_for_a_team_without_a_cluster_is_refused(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    out = tmp_path / "run"
    assert offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", out).code == 0
    result = judge(out, "ann", "--shared", typed="q\n")
    assert result.exit_code == 2 and "judgments are shared through an Elasticsearch" in result.stderr
