from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from threading import Barrier

import pytest

from searchapp.errors import DataError
from searchapp.judging.event_log import NotSaved
from searchapp.judging.events import Action, Author, Event
from searchapp.judging.log import JudgmentLog, verify
from tests.profile import FULL
from tests.programs import Program

ANN = Author("ann")

WRITER = """
import os
import sys
from pathlib import Path
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
log, author, together = JudgmentLog(Path(sys.argv[1])), Author(sys.argv[2]), int(sys.argv[4])
for number in range(int(sys.argv[3])):
    events = [
        author.event("nlps", f"{os.getpid()}:{number}", f"d{place}", Action.grade, grade=number % 4)
        for place in range(number % together + 1)
    ]
    assert log.append(events) == len(events)
    print(*(event.id for event in events), flush=True)
"""
"""Appends again and again, up to this many events at a time, and says which only once `append` has returned."""


def event(document: str = "d", grade: int = 1) -> Event:
    return ANN.event("nlps", "t", document, Action.grade, grade=grade)


def written(log: JudgmentLog) -> list[Event]:
    return [one for _, one in log.events()]


def test_what_was_appended_is_read_back_as_it_was(log: JudgmentLog) -> None:
    events = [
        event("é 𝔸"),
        ANN.event("nlps", "t", "d", Action.note, text='a "note"\nof two lines', run="run", rank=3),
        ANN.event("nlps", "t", "d", Action.retract, refers="x"),
        replace(event("in sight"), saw_others=True),
        replace(event("alone"), saw_others=False),
    ]
    assert log.append(events[:1]) == 1
    assert log.append(events[1:]) == 4
    assert written(log) == events
    assert [one.saw_others for one in written(log)] == [None, None, None, True, False]
    assert [place for place, _ in log.events(after=1)] == [2, 3, 4, 5]
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
        (damaged, "not a (readable )?judgment log"),
        (foreign, "not a (readable )?judgment log"),
        (newer, "newer version of searchapp: update"),
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


def start(path: Path, annotator: str, count: int, together: int = 1) -> Program:
    return Program(WRITER, path, annotator, count, together)


def sound(path: Path) -> list[Event]:
    """What a log holds that opens, is not damaged, and has nothing twice."""
    with JudgmentLog(path) as log:
        events = written(log)
        verdict = verify(log)
        assert verdict.problems == ()
    assert len({one.id for one in events}) == len(events)
    return events


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path, count = tmp_path / "judgments.sqlite", 5_000 if FULL else 500
    writers = [start(path, annotator, count) for annotator in ("ann", "ben")]
    confirmed = []
    for writer in writers:
        with writer:
            confirmed += writer.stdout.read().split()
            assert writer.wait() == 0
    ids = [one.id for one in sound(path)]
    assert sorted(ids) == sorted(confirmed)
    assert len(ids) == 2 * count
    print(f"2 processes, {len(confirmed):,} events confirmed, {len(ids):,} in the log")


@pytest.mark.timeout(1_200)  # a thousand starts of Python, on whatever machine
def test_every_confirmed_event_survives_kills_at_random_moments(tmp_path: Path) -> None:
    kills, together = 1_000 if FULL else 25, 4
    path, rng = tmp_path / "judgments.sqlite", random.Random(8)
    confirmed: list[str] = []
    for _ in range(kills):
        with start(path, "ann", 100_000, together) as writer:
            said = writer.stdout.readline()  # it is at work
            time.sleep(rng.uniform(0, 0.02))
            writer.send_signal(signal.SIGKILL)
            said += writer.stdout.read()
        assert writer.returncode == -signal.SIGKILL  # and had not ended by itself
        # A line without an end was not said in full.
        confirmed += [
            one for line in said.splitlines(keepends=True) if line.endswith("\n") for one in line.split()
        ]
    events = sound(path)
    assert set(confirmed) <= {one.id for one in events}
    assert len(set(confirmed)) == len(confirmed) >= kills
    # What was appended together is there together: each writer's batches go by its process and their numbers.
    batches = {topic: len(list(batch)) for topic, batch in groupby(events, key=lambda one: one.topic_id)}
    assert batches == {topic: int(topic.partition(":")[2]) % together + 1 for topic in batches}
    print(f"{kills:,} kills, {len(confirmed):,} events confirmed, {len(events):,} in the log, none twice")


@pytest.mark.timeout(1_200)  # a thousand starts of Python, on whatever machine
def test_a_log_that_is_killed_while_it_is_made_opens(tmp_path: Path) -> None:
    kills, rng = 200 if FULL else 10, random.Random(9)
    for number in range(kills):
        path = tmp_path / f"{number}.sqlite"
        with start(path, "ann", 1) as writer:
            until = time.monotonic() + 10
            while not path.exists() and time.monotonic() < until:
                time.sleep(0.0002)
            time.sleep(rng.uniform(0, 0.003))
            writer.send_signal(signal.SIGKILL)
            said, _ = writer.ended()
        with JudgmentLog(path) as log:
            log.append([event()])
        assert set(said.split()) <= {one.id for one in sound(path)}


def test_several_may_open_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    rounds, at_once = 300 if FULL else 60, 6
    for number in range(rounds):
        path, together = tmp_path / f"{number}.sqlite", Barrier(at_once)

        def write(name: int, path: Path = path, together: Barrier = together) -> int:
            together.wait()
            with JudgmentLog(path) as log:
                return log.append([event(str(name))])

        with ThreadPoolExecutor(at_once) as threads:
            assert sum(threads.map(write, range(at_once))) == at_once
        assert len(sound(path)) == at_once


def test_an_event_that_only_a_newer_searchapp_knows_is_told(log: JudgmentLog) -> None:
    log.append([event()])
    columns = ", ".join(event().to_json())
    values = columns.replace("id,", "'other',", 1).replace("action", "'award'")
    log._database.execute(f"INSERT INTO events ({columns}) SELECT {values} FROM events")
    log._seal(1)
    with pytest.raises(DataError, match=r"event 2: 'award' is not a valid action: update searchapp"):
        written(log)


# What a cluster has


def test_what_is_sent_and_what_came_is_remembered(log: JudgmentLog) -> None:
    assert (log.waiting("there"), len(log)) == (0, 0)
    own, theirs = [event("a"), event("b")], [event("c"), event("d")]
    log.append(own)
    assert log.waiting("there") == 2
    mirror = log.mirror("there", "first")
    assert (mirror.sent, mirror.received) == (0, -1)
    assert log.unsent(mirror, 0, 1) == [(1, own[0])]
    assert log.receive(mirror, [own[0], *theirs], 7) == 2  # one is no news
    assert [one for _, one in log.unsent(mirror, 0, 9)] == own and log.waiting("there") == 2
    log.sent(mirror, 2)
    log.sent(mirror, 1)  # by a process that is slower
    assert log.waiting("there") == 0
    assert log.receive(mirror, [event("e")], None) == 1
    mirror = log.mirror("there", "first")
    assert (mirror.sent, mirror.received) == (max(place for place, _ in log.events()), 7)
    log.append([event("f")])
    assert [one.document_id for _, one in log.unsent(mirror, mirror.sent, 9)] == ["f"]
    assert log.receive(mirror, [], 8) == 0 and log.waiting("there") == 1
    another = log.mirror("there", "made again")
    assert len(log.unsent(another, another.sent, 9)) == 6 == log.waiting("there")


def test_what_was_sent_of_one_task_is_remembered_apart(log: JudgmentLog) -> None:
    mirror = log.mirror("there", "first")
    other = replace(event("x"), task="checkthat")
    log.append([event("a"), other, event("b")])
    assert [one.document_id for _, one in log.unsent(mirror, 0, 9, "nlps")] == ["a", "b"]
    assert (log.waiting("there"), log.waiting("there", "nlps"), log.waiting("there", "checkthat")) == (
        3,
        2,
        1,
    )
    log.sent(mirror, 3, "nlps")
    log.sent(mirror, 1, "nlps")  # by a process that is slower
    assert (log.waiting("there"), log.waiting("there", "nlps")) == (1, 0)
    assert [one for _, one in log.unsent(mirror, 0, 9)] == [other]
    log.append([event("c")])
    assert [one.document_id for _, one in log.unsent(mirror, 0, 9, "nlps")] == ["c"]
    # What comes from there leaves the other task's waiting.
    assert log.receive(mirror, [event("d")], 7) == 1
    assert [one.document_id for _, one in log.unsent(mirror, 0, 9)] == ["x", "c"]
    log.sent(mirror, 4)
    assert log.waiting("there") == 0
    assert log.receive(mirror, [event("e")], 8) == 1 and log.mirror("there", "first").sent == 6
    # An index that was made again has nothing of all this.
    again = log.mirror("there", "second")
    assert len(log.unsent(again, 0, 9, "nlps")) == 5 and log.waiting("there", "nlps") == 5


ONE, TWO, BOTH = "https://a:9200/j", "https://b:9200/j", "https://a:9200, https://b:9200/j"


def test_an_index_is_the_same_by_whatever_address_it_is_reached(log: JudgmentLog) -> None:
    log.append([event("a"), event("b")])
    log.sent(log.mirror(ONE, "first"), 2)
    log.receive(log.mirror(ONE, "first"), [event("c")], 7)
    # Before it is asked: one of its addresses is known.
    assert (log.waiting(BOTH), log.waiting(TWO)) == (0, 3)
    mirror = log.mirror(BOTH, "first")
    assert (mirror.sent, mirror.received) == (3, 7) and log.unsent(mirror, mirror.sent, 9) == []
    log.append([event("d")])
    log.sent(log.mirror(TWO, "first"), 4)
    assert (log.waiting(ONE), log.waiting(TWO), log.waiting(BOTH)) == (0, 0, 0)


def test_what_waits_is_that_of_the_index_that_an_address_led_to_last(log: JudgmentLog) -> None:
    """As a tunnel on one port leads to one cluster, then to another, and back."""
    log.append([event("a")])
    log.mirror(ONE, "first")
    log.sent(log.mirror(ONE, "second"), 1)
    assert log.waiting(ONE) == 0
    log.mirror(ONE, "first")
    assert log.waiting(ONE) == 1


@pytest.mark.parametrize("format_", [1, 7])
def test_a_log_of_an_earlier_format_is_refused_and_stays_as_it_is(tmp_path: Path, format_: int) -> None:
    path = tmp_path / "judgments.sqlite"
    with JudgmentLog(path) as log:
        log.append([event()])
        log.keep_in_one_file()
        log._database.execute(f"PRAGMA user_version = {format_}")
    held = path.read_bytes()
    with pytest.raises(DataError, match=f"of format {format_}, and this .* reads format 8: export it with"):
        JudgmentLog(path)
    assert path.read_bytes() == held
