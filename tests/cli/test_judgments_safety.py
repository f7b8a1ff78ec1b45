"""`searchapp judgments verify` and `backup`, and warnings of other commands about a damaged log."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import SAMPLE, Cli, run_command
from tests.judging.test_damage import change
from tests.judging.test_log import WRITER
from tests.programs import Program

TASK = "explanation-2021"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.sqlite"
    with JudgmentLog(path) as events:
        events.append(
            [Author("ann").event(TASK, "t", f"d{number}", Action.grade, grade=1) for number in range(5)]
        )
    return path


def test_an_intact_log_is_reported_as_intact(offline: Cli, log: Path) -> None:
    result = offline("judgments", "verify", "--log", log)
    assert (result.code, result.stdout) == (0, "")
    assert result.stderr == f"{log}: 5 events, all intact\n"
    assert offline("judgments", "verify", "--log", log, "--json").json == {
        "log": str(log), "intact": True, "events": 5, "details": 0, "damaged": [], "missing": [], "problems": []
    }  # fmt: skip


def test_damaged_and_missing_events_are_named(offline: Cli, log: Path) -> None:
    change(log, "UPDATE events SET grade = 2 WHERE sequence = 2")
    change(log, "DELETE FROM events WHERE sequence = 4")
    result = offline("judgments", "verify", "--log", log)
    assert result.code == 4
    assert result.stdout.splitlines() == [
        "event 2 is damaged: its content has changed",
        "event 4 is missing",
    ]
    assert f"{log} is damaged" in result.stderr and "restore a backup" in result.stderr
    result = offline("judgments", "verify", "--log", log, "--json")
    assert result.code == 4 and (result.json["damaged"], result.json["missing"]) == ([2], [4])


def test_unreadable_and_missing_logs_are_reported(offline: Cli, log: Path) -> None:
    log.write_bytes(log.read_bytes()[:8192])
    result = offline("judgments", "verify", "--log", log)
    assert result.code == 4 and "Traceback" not in result.stderr
    assert offline("judgments", "verify", "--log", log.with_name("none")).code == 4


def test_commands_warn_of_damage_and_leave_it_out(offline: Cli, log: Path, tmp_path: Path) -> None:
    change(log, "UPDATE events SET grade = 2 WHERE sequence = 2")
    result = offline("judgments", "stats", TASK, "--log", log, "--json")
    assert result.json["events"] == 4
    assert result.stderr == (
        f"warning: {log}: event 2 is damaged and left out: `searchapp judgments verify` reports details\n"
    )
    # The intact events can be copied to a new log.
    out, new = tmp_path / "all.jsonl", tmp_path / "new.sqlite"
    assert offline("judgments", "export", TASK, "--log", log, "--out", out).code == 0
    assert offline("judgments", "import", TASK, out, "--log", new).code == 0
    assert offline("judgments", "verify", "--log", new, "--json").json["events"] == 4


def test_a_backup_is_one_file_that_opens(offline: Cli, log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    copy = folder / "monday.sqlite"
    result = offline("judgments", "backup", copy, "--log", log)
    assert result.code == 0 and f"{copy}: 5 events, all intact" in result.stderr
    assert list(folder.iterdir()) == [copy]
    shutil.copy(copy, tmp_path / "copied.sqlite")
    with JudgmentLog(log) as original, JudgmentLog(tmp_path / "copied.sqlite") as copied:
        assert list(original.events()) == list(copied.events())
    before = copy.read_bytes()
    again = offline("judgments", "backup", copy, "--log", log)
    assert again.code == 2 and "exists already" in again.stderr
    assert copy.read_bytes() == before
    assert offline("judgments", "backup", folder / "no" / "where", "--log", log).code == 2


def test_a_backup_of_a_damaged_log_is_kept_with_an_error(offline: Cli, log: Path, tmp_path: Path) -> None:
    change(log, "UPDATE events SET grade = 2 WHERE sequence = 2")
    result = offline("judgments", "backup", tmp_path / "copy", "--log", log)
    assert result.code == 4 and "and therefore the copy are damaged" in result.stderr
    with JudgmentLog(tmp_path / "copy") as copy:
        assert len(list(copy.events())) == 4


def test_a_backup_is_consistent_while_others_write(offline: Cli, log: Path, tmp_path: Path) -> None:
    with Program(WRITER, log, "ben", 100_000, 4) as writer:
        writer.read_line()
        for number in range(5):
            copy = tmp_path / f"copy-{number}"
            result = offline("judgments", "backup", copy, "--log", log, "--json")
            assert result.code == 0 and json.loads(result.stdout)["intact"]
            database = sqlite3.connect(copy)
            batches = dict(database.execute("SELECT topic_id, count(*) FROM events GROUP BY topic_id"))
            database.close()
            # Events that were appended together are copied together.
            assert batches.pop("t") == 5
            assert batches == {topic: int(topic.partition(":")[2]) % 4 + 1 for topic in batches}


def test_annotators_are_warned_of_damage_once(offline: Cli, tmp_path: Path) -> None:
    run, log = tmp_path / "run", tmp_path / "judged.sqlite"
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    assert offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run).code == 0
    arguments = ["judge", "nlps", "--run", run, "--annotator", "ann", "--plain", "--log", log]
    run_command(*arguments, typed="1\n0\n1\nq\n")
    change(log, "UPDATE events SET grade = 1 WHERE sequence = 2")
    result = run_command(*arguments, typed="# 2\nq\n")
    assert result.code == 0
    assert (result.stderr + result.stdout).count("event 2 is damaged and left out") == 1
    assert "you: " not in result.stdout  # no grade is shown
