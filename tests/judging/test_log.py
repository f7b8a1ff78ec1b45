from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from searchapp.errors import DataError
from searchapp.judging.events import Action, Author, Event
from searchapp.judging.log import JudgmentLog, NotSaved

FULL = os.environ.get("SEARCHAPP_TEST_PROFILE") == "full"
ANN = Author("ann")

WRITER = """
import sys
from pathlib import Path
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
log, author = JudgmentLog(Path(sys.argv[1])), Author(sys.argv[2])
for number in range(int(sys.argv[3])):
    event = author.event("nlps", "t", f"d{number}", Action.grade, grade=number % 4)
    log.append([event])
    print(event.id, flush=True)
"""


def event(document: str = "d", grade: int = 1) -> Event:
    return ANN.event("nlps", "t", document, Action.grade, grade=grade)


@pytest.fixture
def log(tmp_path: Path) -> JudgmentLog:
    return JudgmentLog(tmp_path / "judgments.sqlite")


def written(log: JudgmentLog) -> list[Event]:
    return [one for _, one in log.events()]


def test_what_was_appended_is_read_back_as_it_was(log: JudgmentLog) -> None:
    events = [
        event("é 𝔸"),
        ANN.event("nlps", "t", "d", Action.note, text='a "note"\nof two lines', run="run", rank=3),
        ANN.event("nlps", "t", "d", Action.retract, refers="x"),
    ]
    assert log.append(events[:1]) == 1
    assert log.append(events[1:]) == 2
    assert written(log) == events
    assert [place for place, _ in log.events(after=1)] == [2, 3]
    assert list(log.events("another")) == []


def test_an_event_that_is_written_twice_is_one(log: JudgmentLog) -> None:
    one, two = event("a"), event("b")
    assert log.append([one]) == 1
    assert log.append([one, two]) == 1
    assert written(log) == [one, two]


def test_nothing_can_be_changed_or_deleted(log: JudgmentLog) -> None:
    log.append([event()])
    with sqlite3.connect(log.path) as database:
        for statement in ("UPDATE events SET grade = 3", "DELETE FROM events"):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                database.execute(statement)
    database.close()
    assert len(log) == 1


def test_a_foreign_or_damaged_or_newer_file_is_named(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"no database at all" * 100)
    foreign, newer = tmp_path / "foreign", tmp_path / "newer"
    for path, statement in ((foreign, "CREATE TABLE t (x)"), (newer, "PRAGMA user_version = 99")):
        with sqlite3.connect(path) as database:
            database.execute(statement)
        database.close()
    for path, part in (
        (damaged, "no judgment log"),
        (foreign, "no judgment log"),
        (newer, "newer searchapp"),
    ):
        with pytest.raises(DataError, match=part):
            JudgmentLog(path)


def test_a_full_disk_is_told_and_nothing_is_half_written(log: JudgmentLog) -> None:
    log.append([event("before")])
    (pages,) = log._database.execute("PRAGMA page_count").fetchone()
    log._database.execute(
        f"PRAGMA max_page_count = {pages}"
    )  # the file can't grow: what SQLite says is the same
    many = [event(f"d{number}") for number in range(2_000)]
    with pytest.raises(NotSaved, match="the disk is full"):
        log.append(many)
    assert len(log) == 1
    log._database.execute("PRAGMA max_page_count = 1000000")
    assert log.append(many) == len(many)  # whoever kept them can write them now


def test_a_read_only_folder_is_told(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        target = Path("/proc/searchapp/judgments.sqlite")  # where not even root can write
    else:
        tmp_path.chmod(0o500)
        target = tmp_path / "judgments.sqlite"
    with pytest.raises(NotSaved, match="can't be"):
        JudgmentLog(target)


def start(path: Path, annotator: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), annotator, str(count)], stdout=subprocess.PIPE, text=True
    )


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path, count = tmp_path / "judgments.sqlite", 5_000 if FULL else 500
    writers = [start(path, annotator, count) for annotator in ("ann", "ben")]
    confirmed = [line for writer in writers for line in writer.communicate(timeout=250)[0].split()]
    assert [writer.returncode for writer in writers] == [0, 0]
    with JudgmentLog(path) as log:
        ids = [one.id for one in written(log)]
    assert sorted(ids) == sorted(confirmed)
    assert len(set(ids)) == 2 * count


def test_every_confirmed_event_survives_kills_at_random_moments(tmp_path: Path) -> None:
    kills = 1_000 if FULL else 25
    path, rng = tmp_path / "judgments.sqlite", random.Random(8)
    confirmed: list[str] = []
    for _ in range(kills):
        writer = start(path, "ann", 100_000)
        assert writer.stdout is not None
        confirmed.append(writer.stdout.readline().strip())  # it is at work
        time.sleep(rng.uniform(0, 0.02))
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read()
        confirmed += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        writer.stdout.close()
        writer.wait(timeout=10)
    wanted = {line.strip() for line in confirmed}
    with JudgmentLog(path) as log:
        ids = [one.id for one in written(log)]
    assert len(set(ids)) == len(ids)
    assert wanted <= set(ids)
    assert len(wanted) >= kills
