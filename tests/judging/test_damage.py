"""What is noticed of damage to the log's files, and that an event is never used that is not what was written."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import suppress
from dataclasses import dataclass, field
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
"""Of each of the three states in which a log's files may be left."""

PAGES = 400 if FULL else 100
"""Of pages that are copied over others."""


def made(count: int = 60) -> list[Event]:
    """Judgments of two people and a model, with notes, and some taken back."""
    rng = random.Random(4)
    authors = [Author("ann"), Author("ben"), Author("bot", Kind.model)]
    events: list[Event] = []
    for number in range(count):
        author = rng.choice(authors)
        task = "nlps" if number % 5 else "checkthat"
        at = (task, f"t{rng.randrange(6)}", f"d{rng.randrange(9)}")
        if events and number % 7 == 0:
            gone = rng.choice(events)
            events.append(
                author.event(gone.task, gone.topic_id, gone.document_id, Action.retract, refers=gone.id)
            )
        elif number % 11 == 0:
            events.append(author.event(*at, Action.note, text="why é " * rng.randrange(1, 400)))
        else:
            events.append(author.event(*at, Action.grade, grade=rng.randrange(3), run="run", rank=number))
    return events


@dataclass
class Opened:
    """What a log says when it is opened: its events, and everything that was reported."""

    events: list[Event] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path) -> Opened:
        opened = cls()
        try:
            with JudgmentLog(path, 1.0, opened.told.append) as log:
                opened.events = [event for _, event in log.events()]
                log.imports("nlps")
                log.waiting("there")
        except SearchappError as error:
            opened.told.append(f"refused: {error}")
        return opened


def change(path: Path, statement: str) -> None:
    """Change the database behind the log's back."""
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
    told: list[str] = []
    with JudgmentLog(path) as log:
        log.append(events)
    change(path, statement)
    with JudgmentLog(path, report=told.append) as log:
        for _ in range(2):
            assert [event for _, event in log.events("nlps")] == [events[0], *events[2:]]
        assert log.known([events[1].id]) == {}
        assert told == [
            f"{path}: event 2 is damaged and left out: `searchapp judgments verify` reports details"
        ]
        later = Author("ann").event("nlps", "t", "later", Action.grade, grade=0)
        assert log.append([later]) == 1
        assert [event for _, event in log.events("nlps")] == [events[0], *events[2:], later]
        verdict = verify(log)
        assert (verdict.damaged, verdict.missing, verdict.events) == ((2,), (), 4)
    assert len(told) == 1


def test_an_event_that_is_gone_is_reported(path: Path) -> None:
    with JudgmentLog(path) as log:
        log.append(made(4))
    for place in (4, 2):
        change(path, f"DELETE FROM events WHERE sequence = {place}")
        told = Opened.of(path).told
        assert f"{path}: event {place} is missing: `searchapp judgments verify` reports details" in told
    with JudgmentLog(path) as log:
        assert verify(log).missing == (2, 4)


def test_events_that_are_gone_with_their_checksums_are_reported(path: Path) -> None:
    with JudgmentLog(path) as log:
        log.append(made(4))
    change(path, "DELETE FROM events WHERE sequence > 2")
    change(path, "DELETE FROM checksums WHERE sequence > 2")
    assert any("event 4 is missing" in words for words in Opened.of(path).told)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE checksums SET checksum = zeroblob(16) WHERE sequence = {}",
        "DELETE FROM checksums WHERE sequence = {}",
    ],
)
@pytest.mark.parametrize("place", [1, 3, 5])
def test_an_event_is_proven_by_the_next_one_where_its_checksum_is_damaged(
    path: Path, statement: str, place: int
) -> None:
    events = made(5)
    with JudgmentLog(path) as log:
        log.append(events)
    change(path, statement.format(place))
    found = Opened.of(path)
    assert found.events == events
    with JudgmentLog(path) as log:
        log.append(made(3))
        assert len(list(log.events())) == 8
        verdict = verify(log)
        assert (verdict.damaged, verdict.missing, verdict.events) == ((), (), 8)
        assert not verdict.is_sound


@pytest.mark.parametrize("sequence", [1, 1 << 40])
def test_a_damaged_end_is_reported_and_loses_no_later_event(path: Path, sequence: int) -> None:
    with JudgmentLog(path) as log:
        log.append(made(3))
    change(path, f"UPDATE head SET sequence = {sequence}")
    for count in (4, 5):
        with JudgmentLog(path) as log:
            log.append(made(1))
            assert len(list(log.events())) == count
    with JudgmentLog(path) as log:
        assert not verify(log).is_sound


def test_an_event_that_the_log_did_not_write_is_damage_and_stays_so(path: Path) -> None:
    events = made(3)
    with JudgmentLog(path) as log:
        log.append(events[:2])
    columns = ", ".join(COLUMNS)
    values = columns.replace("id,", "'other',", 1)
    change(path, f"INSERT INTO events ({columns}) SELECT {values} FROM events WHERE sequence = 1")
    for _ in range(2):
        assert any("event 3 is damaged" in words for words in Opened.of(path).told)
        with JudgmentLog(path) as log:
            log.append(events[2:])
            assert [one for _, one in log.events()] == events
            assert verify(log).damaged == (3,)


def test_last_events_that_are_gone_with_the_write_ahead_log_are_reported(path: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with JudgmentLog(path) as log:
        events = made(6)
        log.append(events[:4])
        log._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        log.append(events[4:])
        shutil.copytree(
            path.parent, kept, ignore=lambda _, names: [n for n in names if n.endswith(("-wal", "kept"))]
        )
    found = Opened.of(kept / path.name)
    assert found.events == events[:4]
    (told,) = found.told
    assert "its last 2 events are gone" in told and "judgments.sqlite-head" in told
    # It is told until somebody has looked into it, whatever is written meanwhile.
    with JudgmentLog(kept / path.name) as log:
        log.append(made(9))
    assert Opened.of(kept / path.name).told
    (kept / "judgments.sqlite-head").unlink()
    assert Opened.of(kept / path.name).told == []


def test_many_damaged_events_do_not_flood(path: Path) -> None:
    with JudgmentLog(path) as log:
        log.append(made(50))
    change(path, "UPDATE events SET rank = 7")
    told = Opened.of(path).told
    assert len(told) == 11 and told[-1].startswith("more events are damaged")


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("state", ["closed", "killed", "killed young"])
def test_every_flipped_bit_is_noticed_or_has_no_effect(path: Path, tmp_path: Path, state: str) -> None:
    events = made()
    files = tmp_path / "files"
    with JudgmentLog(path) as log:
        log.append(events[:20])
        log.import_events(events[20:40], "nlps", "file", "jsonl")
        if state == "killed":
            log._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        log.receive(log.mirror("there", "first"), events[40:50], 3)
        for one in events[50:]:
            log.append([one])
        if state.startswith("killed"):
            shutil.copytree(path.parent, files, ignore=lambda _, names: [n for n in names if n == "files"])
            (files / "judgments.sqlite-shm").unlink()
    if state == "closed":
        files.mkdir()
        for file in path.parent.glob("judgments*"):
            shutil.copy(file, files)
    sizes = {one.name: one.stat().st_size for one in files.iterdir() if one.stat().st_size}
    true, rng = aggregate(JudgmentView(events)), random.Random(state)
    counts = dict.fromkeys(("noticed", "no effect", "refused"), 0)
    for number in range(FLIPS):
        copy = tmp_path / f"copy-{state}"
        shutil.copytree(files, copy)
        name = rng.choices(list(sizes), list(sizes.values()))[0]
        content = bytearray((copy / name).read_bytes())
        bit = rng.randrange(8 * len(content))
        content[bit // 8] ^= 1 << bit % 8
        (copy / name).write_bytes(content)
        found = Opened.of(copy / path.name)
        if any(words.startswith("refused") for words in found.told):
            counts["refused"] += 1
        elif found.told:
            counts["noticed"] += 1
            assert {one.id: one for one in found.events}.items() <= {one.id: one for one in events}.items()
        else:
            counts["no effect"] += 1
            assert sorted(one.id for one in found.events) == sorted(one.id for one in events), (
                number,
                name,
                bit,
            )
            assert {one.id: one for one in found.events} == {one.id: one for one in events}
            assert aggregate(JudgmentView(found.events)) == true
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
        log.append(made(2))
        log.import_events(made(1), "nlps", "file", "jsonl")
        log.mirror("there", "first")
        log.beat(Window("one", "ann", "nlps", "host", 1, 2.0, 3.0), 0)
    # As it is where a page of one table was copied over a page of another.
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA writable_schema = ON")
    for name in ("checksums_never_updated", "checksums_never_deleted"):
        database.execute(f"DROP TRIGGER {name}")
    database.execute("UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT', ''), 'NOT NULL', '')")
    database.close()
    change(path, statement)
    told = Opened.of(path).told
    try:
        with JudgmentLog(path) as log:
            log.windows("nlps", "ann", 0)
            told += verify(log).problems
            log.append(made(1))
    except SearchappError as error:
        told.append(str(error))
    assert told and all(str(path) in words or "checksum" in words for words in told)


def test_a_page_that_was_copied_over_another_is_noticed_or_has_no_effect(path: Path) -> None:
    events = made()
    with JudgmentLog(path) as log:
        log.append(events[:40])
        log.import_events(events[40:], "nlps", "file", "jsonl")
    held, size = path.read_bytes(), 4096
    pages = range(len(held) // size)
    pairs = random.Random(21).sample(
        [(one, other) for one in pages for other in pages if one != other], PAGES
    )
    for one, other in pairs:
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()
        path.write_bytes(
            held[: other * size] + held[one * size : (one + 1) * size] + held[(other + 1) * size :]
        )
        found = Opened.of(path)
        kept = {each.id: each for each in found.events}
        assert kept.items() <= {each.id: each for each in events}.items()
        assert found.told or len(kept) == len(events)
        with suppress(SearchappError), JudgmentLog(path) as log:
            verify(log)
            log.append(made(1))
            assert len(log)
