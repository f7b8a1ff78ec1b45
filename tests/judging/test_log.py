"""Append, read and kill: the judgment log, and its record of exchanged events."""

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
log, author, batch = JudgmentLog(Path(sys.argv[1])), Author(sys.argv[2]), int(sys.argv[4])
for number in range(int(sys.argv[3])):
    events = [
        author.event("nlps", f"{os.getpid()}:{number}", f"d{rank}", Action.grade, grade=number % 4)
        for rank in range(number % batch + 1)
    ]
    assert log.append(events) == len(events)
    print(*(event.id for event in events), flush=True)
"""
"""Appends batches of events and prints the ids of each batch after `append` has returned."""


def event(document: str = "d", grade: int = 1) -> Event:
    return ANN.event("nlps", "t", document, Action.grade, grade=grade)


def logged(log: JudgmentLog) -> list[Event]:
    return [event for _, event in log.events()]


def test_events_are_read_as_they_were_appended(log: JudgmentLog) -> None:
    events = [
        event("é 𝔸"),
        ANN.event("nlps", "t", "d", Action.note, text='a "note"\nof two lines', run="run", rank=3),
        ANN.event("nlps", "t", "d", Action.retract, refers="x"),
        replace(event("visible"), saw_others=True),
        replace(event("hidden"), saw_others=False),
    ]
    assert log.append(events[:1]) == 1
    assert log.append(events[1:]) == 4
    assert logged(log) == events
    assert [event.saw_others for event in logged(log)] == [None, None, None, True, False]
    assert [sequence for sequence, _ in log.events(after=1)] == [2, 3, 4, 5]
    assert list(log.events("another")) == []


def test_an_event_that_is_appended_twice_is_stored_once(log: JudgmentLog) -> None:
    first, second = event("a"), event("b")
    assert log.append([first]) == 1
    assert log.append([first, second]) == 1
    assert logged(log) == [first, second]


def test_events_cannot_be_changed_or_deleted(log: JudgmentLog) -> None:
    log.append([event()])
    with sqlite3.connect(log.path) as database:
        for statement in ("UPDATE events SET grade = 3", "DELETE FROM events"):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                database.execute(statement)
    database.close()
    assert len(log) == 1


def test_foreign_damaged_and_newer_files_are_rejected(tmp_path: Path) -> None:
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


def test_a_full_disk_is_reported_and_no_batch_is_written_in_part(log: JudgmentLog) -> None:
    log.append([event("before")])
    (pages,) = log._database.execute("PRAGMA page_count").fetchone()
    # SQLite reports the same error for a file that can't grow as for a full disk.
    log._database.execute(f"PRAGMA max_page_count = {pages}")
    many = [event(f"d{number}") for number in range(2_000)]
    with pytest.raises(NotSaved, match="the disk is full"):
        log.append(many)
    assert len(log) == 1
    log._database.execute("PRAGMA max_page_count = 1000000")
    assert log.append(many) == len(many)


def test_a_read_only_folder_is_reported(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        target = Path("/proc/searchapp/judgments.sqlite")  # not even root can write here
    else:
        tmp_path.chmod(0o500)
        target = tmp_path / "judgments.sqlite"
    with pytest.raises(NotSaved, match="can't be"):
        JudgmentLog(target)


def start(path: Path, annotator: str, count: int, batch: int = 1) -> Program:
    return Program(WRITER, path, annotator, count, batch)


def verified_events(path: Path) -> list[Event]:
    """Check that a log is not damaged and has no event twice; return its events."""
    with JudgmentLog(path) as log:
        events = logged(log)
        verdict = verify(log)
        assert verdict.problems == ()
    assert len({event.id for event in events}) == len(events)
    return events


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path, count = tmp_path / "judgments.sqlite", 5_000 if FULL else 500
    writers = [start(path, annotator, count) for annotator in ("ann", "ben")]
    confirmed = []
    for writer in writers:
        with writer:
            confirmed += writer.stdout.read().split()
            assert writer.wait() == 0
    ids = [event.id for event in verified_events(path)]
    assert sorted(ids) == sorted(confirmed)
    assert len(ids) == 2 * count
    print(f"2 processes, {len(confirmed):,} events confirmed, {len(ids):,} in the log")


@pytest.mark.timeout(1_200)  # starts Python a thousand times
def test_every_confirmed_event_survives_kills_at_random_moments(tmp_path: Path) -> None:
    kills, batch_size = 1_000 if FULL else 25, 4
    path, rng = tmp_path / "judgments.sqlite", random.Random(8)
    confirmed: list[str] = []
    for _ in range(kills):
        with start(path, "ann", 100_000, batch_size) as writer:
            output = writer.stdout.readline()  # the writer has started
            time.sleep(rng.uniform(0, 0.02))
            writer.send_signal(signal.SIGKILL)
            output += writer.stdout.read()
        assert writer.returncode == -signal.SIGKILL  # it had not ended before
        confirmed += output[: output.rfind("\n") + 1].split()  # the last line can be incomplete
    events = verified_events(path)
    assert set(confirmed) <= {event.id for event in events}
    assert len(set(confirmed)) == len(confirmed) >= kills
    # A batch is complete or missing; its topic is the writer's process and the number of the batch.
    batches = {topic: len(list(batch)) for topic, batch in groupby(events, key=lambda event: event.topic_id)}
    assert batches == {topic: int(topic.partition(":")[2]) % batch_size + 1 for topic in batches}
    print(f"{kills:,} kills, {len(confirmed):,} events confirmed, {len(events):,} in the log, none twice")


@pytest.mark.timeout(1_200)  # starts Python a thousand times
def test_a_log_whose_creation_was_killed_opens(tmp_path: Path) -> None:
    kills, rng = 200 if FULL else 10, random.Random(9)
    for number in range(kills):
        path = tmp_path / f"{number}.sqlite"
        with start(path, "ann", 1) as writer:
            end = time.monotonic() + 10
            while not path.exists() and time.monotonic() < end:
                time.sleep(0.0002)
            time.sleep(rng.uniform(0, 0.003))
            writer.send_signal(signal.SIGKILL)
            output, _ = writer.communicate()
        with JudgmentLog(path) as log:
            log.append([event()])
        assert set(output.split()) <= {event.id for event in verified_events(path)}


def test_threads_create_the_same_log_at_once(tmp_path: Path) -> None:
    rounds, count = 300 if FULL else 60, 6
    for number in range(rounds):
        path, barrier = tmp_path / f"{number}.sqlite", Barrier(count)

        def write(name: int, path: Path = path, barrier: Barrier = barrier) -> int:
            barrier.wait()
            with JudgmentLog(path) as log:
                return log.append([event(str(name))])

        with ThreadPoolExecutor(count) as threads:
            assert sum(threads.map(write, range(count))) == count
        assert len(verified_events(path)) == count


def test_an_unknown_action_of_a_newer_version_is_rejected(log: JudgmentLog) -> None:
    log.append([event()])
    columns = ", ".join(event().to_json())
    values = columns.replace("id,", "'other',", 1).replace("action", "'award'")
    log._database.execute(f"INSERT INTO events ({columns}) SELECT {values} FROM events")
    log._seal(1)
    with pytest.raises(DataError, match=r"event 2: 'award' is not a valid action: update searchapp"):
        logged(log)


# Exchange with a cluster


def test_sent_and_received_events_are_recorded(log: JudgmentLog) -> None:
    assert (log.waiting("cluster"), len(log)) == (0, 0)
    sent, received = [event("a"), event("b")], [event("c"), event("d")]
    log.append(sent)
    assert log.waiting("cluster") == 2
    mirror = log.mirror("cluster", "first")
    assert (mirror.sent, mirror.received) == (0, -1)
    assert log.unsent(mirror, 0, 1) == [(1, sent[0])]
    assert log.receive(mirror, [sent[0], *received], 7) == 2  # the log has sent[0] already
    assert [event for _, event in log.unsent(mirror, 0, 9)] == sent and log.waiting("cluster") == 2
    log.sent(mirror, 2)
    log.sent(mirror, 1)  # by a slower process
    assert log.waiting("cluster") == 0
    assert log.receive(mirror, [event("e")], None) == 1
    mirror = log.mirror("cluster", "first")
    assert (mirror.sent, mirror.received) == (max(sequence for sequence, _ in log.events()), 7)
    log.append([event("f")])
    assert [event.document_id for _, event in log.unsent(mirror, mirror.sent, 9)] == ["f"]
    assert log.receive(mirror, [], 8) == 0 and log.waiting("cluster") == 1
    another = log.mirror("cluster", "second")
    assert len(log.unsent(another, another.sent, 9)) == 6 == log.waiting("cluster")


def test_sent_events_are_recorded_for_each_task(log: JudgmentLog) -> None:
    mirror = log.mirror("cluster", "first")
    other = replace(event("x"), task="checkthat")
    log.append([event("a"), other, event("b")])
    assert [event.document_id for _, event in log.unsent(mirror, 0, 9, "nlps")] == ["a", "b"]
    assert [log.waiting("cluster", *task) for task in ([], ["nlps"], ["checkthat"])] == [3, 2, 1]
    log.sent(mirror, 3, "nlps")
    log.sent(mirror, 1, "nlps")  # by a slower process
    assert (log.waiting("cluster"), log.waiting("cluster", "nlps")) == (1, 0)
    assert [event for _, event in log.unsent(mirror, 0, 9)] == [other]
    log.append([event("c")])
    assert [event.document_id for _, event in log.unsent(mirror, 0, 9, "nlps")] == ["c"]
    # Received events of one task leave the other task's events waiting.
    assert log.receive(mirror, [event("d")], 7) == 1
    assert [event.document_id for _, event in log.unsent(mirror, 0, 9)] == ["x", "c"]
    log.sent(mirror, 4)
    assert log.waiting("cluster") == 0
    assert log.receive(mirror, [event("e")], 8) == 1 and log.mirror("cluster", "first").sent == 6
    # A new index with the same address has no events.
    again = log.mirror("cluster", "second")
    assert len(log.unsent(again, 0, 9, "nlps")) == 5 and log.waiting("cluster", "nlps") == 5


FIRST_NODE, SECOND_NODE, BOTH_NODES = (
    "https://a:9200/j",
    "https://b:9200/j",
    "https://a:9200, https://b:9200/j",
)


def test_an_index_has_one_mirror_for_all_its_addresses(log: JudgmentLog) -> None:
    log.append([event("a"), event("b")])
    log.sent(log.mirror(FIRST_NODE, "first"), 2)
    log.receive(log.mirror(FIRST_NODE, "first"), [event("c")], 7)
    # The address of the second node is unknown until the index is mirrored under it.
    assert (log.waiting(BOTH_NODES), log.waiting(SECOND_NODE)) == (0, 3)
    mirror = log.mirror(BOTH_NODES, "first")
    assert (mirror.sent, mirror.received) == (3, 7) and log.unsent(mirror, mirror.sent, 9) == []
    log.append([event("d")])
    log.sent(log.mirror(SECOND_NODE, "first"), 4)
    assert (log.waiting(FIRST_NODE), log.waiting(SECOND_NODE), log.waiting(BOTH_NODES)) == (0, 0, 0)


def test_waiting_events_are_those_of_the_last_index_at_an_address(log: JudgmentLog) -> None:
    """A tunnel on one port can lead to one cluster, then to another, and back."""
    log.append([event("a")])
    log.mirror(FIRST_NODE, "first")
    log.sent(log.mirror(FIRST_NODE, "second"), 1)
    assert log.waiting(FIRST_NODE) == 0
    log.mirror(FIRST_NODE, "first")
    assert log.waiting(FIRST_NODE) == 1


@pytest.mark.parametrize("format_", [1, 7])
def test_a_log_of_an_earlier_format_is_rejected_and_not_changed(tmp_path: Path, format_: int) -> None:
    path = tmp_path / "judgments.sqlite"
    with JudgmentLog(path) as log:
        log.append([event()])
        log.keep_in_one_file()
        log._database.execute(f"PRAGMA user_version = {format_}")
    before = path.read_bytes()
    with pytest.raises(DataError, match=f"of format {format_}, and this .* reads format 8: export it with"):
        JudgmentLog(path)
    assert path.read_bytes() == before
