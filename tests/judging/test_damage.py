"""Damage to the files of a judgment log is reported, and changed events are never used."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

import pytest

from searchapp.errors import SearchappError
from searchapp.judging.event_log import COLUMNS
from searchapp.judging.events import Action, Author, Event, Kind
from searchapp.judging.judgments import aggregate
from searchapp.judging.log import JudgmentLog, Window, verify
from searchapp.judging.view import JudgmentView
from tests.profile import FULL

FLIPS = 340 if FULL else 40
"""Bits that are flipped in each of the three states in which a log's files may be left."""

PAGES = 400 if FULL else 100
"""Pairs of pages whose first page is copied over the second."""


def make_events(count: int = 60) -> list[Event]:
    """Make grades and notes of two people and a model, some of them retracted."""
    rng = random.Random(4)
    authors = [Author("ann"), Author("ben"), Author("bot", Kind.model)]
    events: list[Event] = []
    for number in range(count):
        author = rng.choice(authors)
        task = "nlps" if number % 5 else "checkthat"
        at = (task, f"t{rng.randrange(6)}", f"d{rng.randrange(9)}")
        if events and number % 7 == 0:
            target = rng.choice(events)
            at = (target.task, target.topic_id, target.document_id)
            events.append(author.event(*at, Action.retract, refers=target.id))
        elif number % 11 == 0:
            events.append(author.event(*at, Action.note, text="why é " * rng.randrange(1, 400)))
        else:
            events.append(author.event(*at, Action.grade, grade=rng.randrange(3), run="run", rank=number))
    return events


@dataclass
class LogContent:
    """The events of an opened log and all reports of damage."""

    events: list[Event] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> LogContent:
        """Open a log and read all its tables."""
        content = cls()
        try:
            with JudgmentLog(path, 1.0, content.reports.append) as log:
                content.events = logged(log)
                log.imports("nlps")
                log.waiting("cluster")
        except SearchappError as error:
            content.reports.append(f"refused: {error}")
        return content


def logged(log: JudgmentLog, task: str | None = None) -> list[Event]:
    return [event for _, event in log.events(task)]


def change(path: Path, statement: str) -> None:
    """Change the database without the log's code and triggers."""
    database = sqlite3.connect(path, isolation_level=None)
    for name in ("never_updated", "never_deleted", "checksums_never_updated", "checksums_never_deleted"):
        database.execute(f"DROP TRIGGER IF EXISTS {name}")
    database.execute(statement)
    database.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET grade = 2 WHERE sequence = 2",
        "UPDATE events SET task = 'nlpt' WHERE sequence = 2",
        "UPDATE events SET document_id = CAST(x'ff' AS TEXT) WHERE sequence = 2",
        "UPDATE events SET time = 'never' WHERE sequence = 2",
        "UPDATE events SET action = 'award' WHERE sequence = 2",
        "UPDATE events SET saw_others = 1 WHERE sequence = 2",
    ],
)
def test_a_damaged_event_is_reported_once_and_left_out(path: Path, statement: str) -> None:
    events = [Author("ann").event("nlps", "t", f"d{number}", Action.grade, grade=1) for number in range(4)]
    reports: list[str] = []
    with JudgmentLog(path) as log:
        log.append(events)
    change(path, statement)
    with JudgmentLog(path, report=reports.append) as log:
        for _ in range(2):
            assert logged(log, "nlps") == [events[0], *events[2:]]
        assert log.known([events[1].id]) == {}
        assert reports == [
            f"{path}: event 2 is damaged and left out: `searchapp judgments verify` reports details"
        ]
        later = Author("ann").event("nlps", "t", "later", Action.grade, grade=0)
        assert log.append([later]) == 1
        assert logged(log, "nlps") == [events[0], *events[2:], later]
        verdict = verify(log)
        assert (verdict.damaged, verdict.missing, verdict.events) == ((2,), (), 4)
    assert len(reports) == 1


def test_a_missing_event_is_reported(path: Path) -> None:
    with JudgmentLog(path) as log:
        log.append(make_events(4))
    for sequence in (4, 2):
        change(path, f"DELETE FROM events WHERE sequence = {sequence}")
        reports = LogContent.read(path).reports
        assert f"{path}: event {sequence} is missing: `searchapp judgments verify` reports details" in reports
    with JudgmentLog(path) as log:
        assert verify(log).missing == (2, 4)


def test_missing_events_without_checksums_are_reported(path: Path) -> None:
    with JudgmentLog(path) as log:
        log.append(make_events(4))
    change(path, "DELETE FROM events WHERE sequence > 2")
    change(path, "DELETE FROM checksums WHERE sequence > 2")
    assert any("event 4 is missing" in report for report in LogContent.read(path).reports)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE checksums SET checksum = zeroblob(16) WHERE sequence = {}",
        "DELETE FROM checksums WHERE sequence = {}",
    ],
)
@pytest.mark.parametrize("sequence", [1, 3, 5])
def test_the_next_checksum_verifies_an_event_whose_own_is_damaged(
    path: Path, statement: str, sequence: int
) -> None:
    events = make_events(5)
    with JudgmentLog(path) as log:
        log.append(events)
    change(path, statement.format(sequence))
    assert LogContent.read(path).events == events
    with JudgmentLog(path) as log:
        log.append(make_events(3))
        assert len(logged(log)) == 8
        verdict = verify(log)
        assert (verdict.damaged, verdict.missing, verdict.events) == ((), (), 8)
        assert not verdict.is_sound


@pytest.mark.parametrize("sequence", [1, 1 << 40])
def test_a_damaged_head_is_reported_and_loses_no_later_event(path: Path, sequence: int) -> None:
    with JudgmentLog(path) as log:
        log.append(make_events(3))
    change(path, f"UPDATE head SET sequence = {sequence}")
    for count in (4, 5):
        with JudgmentLog(path) as log:
            log.append(make_events(1))
            assert len(logged(log)) == count
    with JudgmentLog(path) as log:
        assert not verify(log).is_sound


def test_an_event_that_the_log_did_not_write_is_damaged_permanently(path: Path) -> None:
    events = make_events(3)
    with JudgmentLog(path) as log:
        log.append(events[:2])
    columns = ", ".join(COLUMNS)
    values = columns.replace("id,", "'other',", 1)
    change(path, f"INSERT INTO events ({columns}) SELECT {values} FROM events WHERE sequence = 1")
    for _ in range(2):
        assert any("event 3 is damaged" in report for report in LogContent.read(path).reports)
        with JudgmentLog(path) as log:
            log.append(events[2:])
            assert logged(log) == events
            assert verify(log).damaged == (3,)


def test_last_events_that_are_lost_with_the_write_ahead_log_are_reported(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with JudgmentLog(path) as log:
        events = make_events(6)
        log.append(events[:4])
        log._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        log.append(events[4:])
        shutil.copytree(path.parent, copy, ignore=shutil.ignore_patterns("*-wal", "copy"))
    content = LogContent.read(copy / path.name)
    assert content.events == events[:4]
    (report,) = content.reports
    assert "its last 2 events are gone" in report and "judgments.sqlite-head" in report
    # The report continues after further events until the file -head is removed.
    with JudgmentLog(copy / path.name) as log:
        log.append(make_events(9))
    assert LogContent.read(copy / path.name).reports
    (copy / "judgments.sqlite-head").unlink()
    assert LogContent.read(copy / path.name).reports == []


def test_reports_of_damaged_events_are_limited(path: Path) -> None:
    with JudgmentLog(path) as log:
        log.append(make_events(50))
    change(path, "UPDATE events SET rank = 7")
    reports = LogContent.read(path).reports
    assert len(reports) == 11 and reports[-1].startswith("more events are damaged")


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("state", ["closed", "killed", "killed young"])
def test_a_flipped_bit_is_reported_or_has_no_effect(path: Path, tmp_path: Path, state: str) -> None:
    events = make_events()
    files = tmp_path / "files"
    with JudgmentLog(path) as log:
        log.append(events[:20])
        log.import_events(events[20:40], "nlps", "file", "jsonl")
        if state == "killed":
            log._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        log.receive(log.mirror("cluster", "first"), events[40:50], 3)
        for event in events[50:]:
            log.append([event])
        if state.startswith("killed"):
            shutil.copytree(path.parent, files, ignore=shutil.ignore_patterns("files"))
            (files / "judgments.sqlite-shm").unlink()
    if state == "closed":
        files.mkdir()
        for file in path.parent.glob("judgments*"):
            shutil.copy(file, files)
    sizes = {file.name: file.stat().st_size for file in files.iterdir() if file.stat().st_size}
    by_id = {event.id: event for event in events}
    grades, rng = aggregate(JudgmentView(events)), random.Random(state)
    counts = dict.fromkeys(("reported", "no effect", "refused"), 0)
    for number in range(FLIPS):
        copy = tmp_path / f"copy-{state}"
        shutil.copytree(files, copy)
        name = rng.choices(list(sizes), list(sizes.values()))[0]
        data = bytearray((copy / name).read_bytes())
        bit = rng.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        (copy / name).write_bytes(data)
        content = LogContent.read(copy / path.name)
        if any(report.startswith("refused") for report in content.reports):
            counts["refused"] += 1
        elif content.reports:
            counts["reported"] += 1
            assert {event.id: event for event in content.events}.items() <= by_id.items()
        else:
            counts["no effect"] += 1
            ids = sorted(event.id for event in content.events)
            assert ids == sorted(event.id for event in events), (number, name, bit)
            assert {event.id: event for event in content.events} == by_id
            assert aggregate(JudgmentView(content.events)) == grades
        shutil.rmtree(copy)
    print(f"{state}: {counts} of {FLIPS} flips in {sizes}")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE head SET events = 'a'",
        "UPDATE head SET checksum = 7",
        "UPDATE checksums SET checksum = 'text' WHERE sequence = 3",
        "UPDATE imports SET events = 'a'",
        "UPDATE mirrors SET sent = NULL",
        "UPDATE windows SET beat = 'late'",
    ],
)
def test_values_of_another_type_are_damage(path: Path, statement: str) -> None:
    with JudgmentLog(path) as log:
        log.append(make_events(2))
        log.import_events(make_events(1), "nlps", "file", "jsonl")
        log.mirror("cluster", "first")
        log.beat(Window("w", "ann", "nlps", "host", 1, 2.0, 3.0), 0)
    # The same values appear when a page of one table is copied over a page of another.
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA writable_schema = ON")
    for name in ("checksums_never_updated", "checksums_never_deleted"):
        database.execute(f"DROP TRIGGER {name}")
    database.execute("UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT', ''), 'NOT NULL', '')")
    database.close()
    change(path, statement)
    reports = LogContent.read(path).reports
    try:
        with JudgmentLog(path) as log:
            log.windows("nlps", "ann", 0)
            reports += verify(log).problems
            log.append(make_events(1))
    except SearchappError as error:
        reports.append(str(error))
    assert reports and all(str(path) in report or "checksum" in report for report in reports)


def test_a_page_that_is_copied_over_another_is_reported_or_has_no_effect(path: Path) -> None:
    events = make_events()
    with JudgmentLog(path) as log:
        log.append(events[:40])
        log.import_events(events[40:], "nlps", "file", "jsonl")
    by_id = {event.id: event for event in events}
    data, size = path.read_bytes(), 4096
    pairs = list(permutations(range(len(data) // size), 2))
    for source, target in random.Random(21).sample(pairs, PAGES):
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()
        page = data[source * size : (source + 1) * size]
        path.write_bytes(data[: target * size] + page + data[(target + 1) * size :])
        content = LogContent.read(path)
        used = {event.id: event for event in content.events}
        assert used.items() <= by_id.items()
        assert content.reports or len(used) == len(events)
        with suppress(SearchappError), JudgmentLog(path) as log:
            verify(log)
            log.append(make_events(1))
            assert len(log)
