"""Judgments that a team shares on a real cluster, from the command line."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from searchapp.tui.judge.prompts import JudgePrompts
from tests.cli.conftest import SAMPLE, Cli, Result, run_command
from tests.server.faults import FaultProxy


@pytest.fixture
def run(indexed_server: Cli, tmp_path: Path) -> Path:
    path = tmp_path / "run"
    assert indexed_server("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", path).code == 0
    return path


def judge(run: Path, name: str, *options: object, typed: str) -> Result:
    return run_command("judge", "nlps", "--run", run, "--annotator", name, "--plain", *options, typed=typed)


def be_member(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run further commands as this member of the team, and return the path of the member's log."""
    monkeypatch.setenv("SEARCHAPP_HOME", str(tmp_path / name))
    return tmp_path / name / "judgments.sqlite"


def count_events(log: Path) -> int:
    with JudgmentLog(log) as events:
        return len(events)


def test_members_see_each_others_judgments(
    run: Path, server: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = be_member(tmp_path, "ann", monkeypatch)
    result = judge(run, "ann", "--shared", typed="1 defines it\n0\nq\n")
    assert result.code == 0, result.stderr
    assert "all judgments are shared at http" in result.stderr and "wait for the cluster" not in result.stdout
    second = be_member(tmp_path, "ben", monkeypatch)
    result = judge(run, "ben", "--shared", typed="0\n# 1\nq\n")
    assert "ann: 1" in result.stdout, result.stderr
    assert "defines it" in result.stdout
    assert count_events(second) == 3
    counts = server("judgments", "sync", "--json").json
    assert (counts["sent"], counts["fetched"], counts["waiting"]) == (0, 0, 0)
    be_member(tmp_path, "ann", monkeypatch)
    assert server("judgments", "sync").stderr.startswith("sent 0 judgments to http")
    assert count_events(first) == 3
    agreements = []
    for name in ("ann", "ben"):
        be_member(tmp_path, name, monkeypatch)
        agreements.append(server("judgments", "agreement", "nlps", "--json").json)
    assert agreements[0] == agreements[1] and agreements[0]["documents"] == 1


def test_all_members_export_the_same(
    run: Path, server: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_member(tmp_path, "ann", monkeypatch)
    judge(run, "ann", typed="1\n0\nu\na a note\nq\n")
    be_member(tmp_path, "ben", monkeypatch)
    judge(run, "ben", "--shared", typed="0\n1\nx\nq\n")
    exports = []
    for name in ("ann", "ben", "eve"):
        be_member(tmp_path, name, monkeypatch)
        assert server("judgments", "sync").code == 0
    for name in ("ann", "ben", "eve"):
        be_member(tmp_path, name, monkeypatch)
        assert server("judgments", "sync").code == 0
        out = tmp_path / f"{name}.jsonl"
        assert server("judgments", "export", "nlps", "--out", out).code == 0
        exports.append(out.read_bytes())
    assert exports[0] == exports[1] == exports[2]
    assert exports[0].count(b'"action"') == 7


def test_judging_continues_without_the_server(
    run: Path, server: Cli, fault_proxy: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = be_member(tmp_path, "ann", monkeypatch)
    monkeypatch.setenv("SEARCHAPP_URL", fault_proxy.url)
    fault_proxy.answer(503, path="judgments", times=None)
    result = judge(run, "ann", "--shared", typed="1\n0\nq\n")
    assert result.code == 0 and "saved. " in result.stdout
    assert (
        "2 unsent judgments in" in result.stderr and "send with `searchapp judgments sync`" in result.stderr
    )
    assert count_events(log) == 2
    refused = server("judgments", "sync")
    assert refused.code == 3 and "2 unsent judgments in" in refused.stderr
    fault_proxy.heal()
    assert server("judgments", "sync", "--json").json["sent"] == 2


def test_with_the_setting_shared_commands_exchange_judgments(
    run: Path, server: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_SHARED", "1")
    be_member(tmp_path, "ann", monkeypatch)
    judge(run, "ann", typed="1\nq\n")
    be_member(tmp_path, "ben", monkeypatch)
    qrels = tmp_path / "ben.qrels"
    qrels.write_text("608 0 101 0\n")
    assert server("judgments", "import", "nlps", qrels, "--format", "qrels", "--annotator", "ben").code == 0
    be_member(tmp_path, "eve", monkeypatch)
    stats = server("judgments", "stats", "nlps", "--json")
    assert sorted(annotator["annotator"] for annotator in stats.json["annotators"]) == ["ann", "ben"]
    be_member(tmp_path, "dan", monkeypatch)
    result = judge(run, "dan", "--no-shared", typed="1\nq\n")
    assert "latest judgments of others" not in result.stderr and "shared at" not in result.stderr


def test_only_judgments_of_the_task_are_sent(
    run: Path, server: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = be_member(tmp_path, "ann", monkeypatch)
    with JudgmentLog(log) as events:
        private = Author("ann").event("explanation-2021", "t", "d", Action.grade, grade=1)
        events.append([private])
    result = judge(run, "ann", "--shared", typed="1\n0\nq\n")
    assert "all judgments are shared at http" in result.stderr and "wait for the cluster" not in result.stdout
    assert "1 unsent judgment of other tasks: send with `searchapp judgments sync`" in result.stderr
    monkeypatch.setenv("SEARCHAPP_SHARED", "1")
    assert server("judgments", "stats", "nlps").code == 0
    with JudgmentLog(be_member(tmp_path, "ben", monkeypatch)):
        assert server("judgments", "stats", "nlps", "--json").json["events"] == 2
    assert server("judgments", "stats", "explanation-2021").code == 4
    be_member(tmp_path, "ann", monkeypatch)
    assert server("judgments", "sync", "--json").json["sent"] == 1
    be_member(tmp_path, "ben", monkeypatch)
    assert server("judgments", "stats", "explanation-2021", "--json").json["events"] == 1


def test_retractions_reach_all_members(
    run: Path, server: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_SHARED", "1")
    qrels = tmp_path / "ben.qrels"
    qrels.write_text("608 0 101 1\n")
    be_member(tmp_path, "ben", monkeypatch)
    imported = ("judgments", "import", "nlps", qrels, "--format", "qrels", "--annotator", "ben")
    assert server(*imported).code == 0
    be_member(tmp_path, "eve", monkeypatch)

    def graded() -> int:
        (result,) = server("judgments", "stats", "nlps", "--json").json["annotators"]
        return int(result["graded"])

    assert graded() == 1
    assert (
        server("judgments", "imports", "nlps", "--json").json["imports"] == []
    )  # it was made on another machine
    be_member(tmp_path, "ben", monkeypatch)
    assert server("judgments", "retract", "nlps", "--import", 1).code == 0
    be_member(tmp_path, "eve", monkeypatch)
    assert graded() == 0
    # Importing the same file on another machine restores it.
    assert server(*imported, "--json").json["new"] == 1 and graded() == 1


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["sync"], {}, "shared judgments need an Elasticsearch server: give its address with --url"),
        (["stats", "nlps"], {"SHARED": "1"}, "shared judgments need an Elasticsearch server"),
        (["stats", "nlps"], {"SHARED": "maybe"}, "SEARCHAPP_SHARED is 'maybe': set it to 1 or 0"),
    ],
)
def test_sharing_needs_a_cluster(
    offline: Cli,
    arguments: list[str],
    environment: dict[str, str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"SEARCHAPP_{name}", value)
    result = offline("judgments", *arguments)
    assert result.code == 2 and message in result.stderr


def test_judging_for_a_team_without_a_cluster_is_refused(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    out = tmp_path / "run"
    assert offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", out).code == 0
    result = judge(out, "ann", "--shared", typed="q\n")
    assert result.code == 2 and "shared judgments need an Elasticsearch server" in result.stderr


# An unavailable server


@pytest.fixture
def faulty(fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> FaultProxy:
    """The server of further commands, behind a proxy that can make it hang or refuse requests."""
    monkeypatch.setenv("SEARCHAPP_URL", fault_proxy.url)
    return fault_proxy


class Typist:
    """Types lines, calls functions before some of them, and measures the seconds until the next prompt."""

    def __init__(self, *lines: str | tuple[str, Callable[[], None]]) -> None:
        self._lines = list(lines)
        self.seconds: list[float] = []
        self._typed_at: float | None = None

    def __call__(self, _prompt: str) -> str:
        if self._typed_at is not None:
            self.seconds.append(time.monotonic() - self._typed_at)
        line = self._lines.pop(0)
        if isinstance(line, tuple):
            line, action = line
            action()
        self._typed_at = time.monotonic()
        return line

    def judge(self, run: Path, *options: object, monkeypatch: pytest.MonkeyPatch) -> Result:
        """Judge as ann."""
        monkeypatch.setattr(JudgePrompts.__init__, "__defaults__", (None, self, None))
        return judge(run, "ann", *options, typed="")


@pytest.mark.parametrize("fault", ["refused", "hangs"])
def test_judging_works_without_the_server(
    run: Path, faulty: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    def fail() -> None:
        if fault == "hangs":
            faulty.delay(60, times=None)
        else:
            faulty.answer(503, times=None)

    log = be_member(tmp_path, "ann", monkeypatch)
    typist = Typist("1", ("0", fail), "1", "0", "q")
    result = typist.judge(run, "--shared", monkeypatch=monkeypatch)
    assert result.code == 0, result.stderr
    assert count_events(log) == 4
    assert "unsent judgments in" in result.stderr and "error" not in result.stdout
    assert "no longer in the index" not in result.stdout
    assert result.stdout.count("for the cluster") <= 1
    print(fault, "prompts:", typist.seconds)
    assert max(typist.seconds) < 1.5
    # The next session starts without the server.
    start = time.monotonic()
    again = Typist("1", "q")
    result = again.judge(run, "--shared", monkeypatch=monkeypatch)
    assert result.code == 0, result.stderr + result.stdout
    assert count_events(log) == 5
    assert (
        result.stderr.count("you can continue")
        + result.stderr.count("you begin without the latest judgments")
        == 1
    )
    print(fault, "whole session:", time.monotonic() - start)
    assert max(again.seconds) < 1.5


def test_judging_without_a_server_reads_files(
    run: Path, faulty: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty.answer(503, times=None)
    log = be_member(tmp_path, "ann", monkeypatch)
    result = judge(run, "ann", "--shared", typed="1\n0\nq\n")
    assert result.code == 0, result.stderr
    assert count_events(log) == 2 and "no longer in the index" not in result.stdout
    assert "2 unsent judgments in" in result.stderr
    result = judge(run, "ann", typed="1\nq\n")  # without sharing the server is not needed either
    assert result.code == 0 and count_events(log) == 3


def test_documents_are_read_from_files_when_the_server_fails(
    run: Path, faulty: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_member(tmp_path, "ann", monkeypatch)
    typist = Typist(("1", lambda: faulty.answer(503, times=None)), "0", "1", "q")
    result = typist.judge(run, monkeypatch=monkeypatch)
    assert result.code == 0, result.stderr
    assert result.stdout.count("on this machine") == 1
    assert "error" not in result.stdout and "no longer in the index" not in result.stdout


def test_disputes_read_files_without_the_server(
    run: Path, faulty: FaultProxy, server: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_member(tmp_path, "ann", monkeypatch)
    judge(run, "ann", typed="1\nq\n")
    judge(run, "ben", typed="0\nq\n")
    faulty.answer(503, times=None)
    arguments = ["judgments", "adjudicate", "nlps", "--annotator", "kim", "--run", run, "--plain"]
    result = run_command(*arguments, typed="1\nq\n")
    assert result.code == 0 and "1 of 1 disputed document is decided" in result.stderr
    assert "no longer in the index" not in result.stdout


def test_a_cluster_can_be_used_for_sharing_only(
    server: Cli, elasticsearch_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_ENGINE", "embedded")
    monkeypatch.delenv("SEARCHAPP_URL")
    out = tmp_path / "run"
    log = be_member(tmp_path, "ann", monkeypatch)
    assert server("index", "nlps", "--data", SAMPLE).code == 0
    assert server("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", out).code == 0
    for options in (("--engine", "embedded", "--url", elasticsearch_url), ()):
        if not options:
            monkeypatch.setenv("SEARCHAPP_URL", elasticsearch_url)
        result = judge(out, "ann", "--shared", *options, typed="1\nq\n")
        assert result.code == 0 and "all judgments are shared at http" in result.stderr
    assert count_events(log) == 2
    be_member(tmp_path, "ben", monkeypatch)
    assert server("judgments", "sync", "--json").json["fetched"] == 2
