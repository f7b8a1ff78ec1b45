"""Details of events: side records in the log, its copies and its exports."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from searchapp.errors import DataError, InvalidFiles
from searchapp.judging import exchange
from searchapp.judging.events import Action, Author, Detail, Event
from searchapp.judging.log import JudgmentLog, back_up, verify

ANN = Author("ann")


def event(document: str = "d", task: str = "nlps") -> Event:
    return ANN.event(task, "t", document, Action.grade, grade=1)


def detail(of: Event, name: str = "guidelines", **value: object) -> Detail:
    return Detail(of.id, name, value or {"digest": "é 𝔸\x00\u2028", "parts": [1, None, {"b": 0.1}]})


def write(path: Path, events: Sequence[Event], details: Sequence[Detail]) -> Path:
    with path.open("wb") as file:
        exchange.write_jsonl(file, events, details)
    return path


def test_details_are_read_as_they_were_appended(log: JudgmentLog) -> None:
    first, second, other = event("a"), event("b"), event("a", "checkthat")
    details = [detail(first), detail(first, "model", tokens=3), detail(second), detail(other)]
    log.append([first], details[:2])
    log.append([first, second, other], details)
    assert list(log.details()) == details
    assert list(log.details("nlps", "guidelines")) == [details[0], details[2]]
    assert log.known_details([details[1].id, "model/none", "x"]) == {details[1].id: details[1]}
    # The first of an event and a name holds.
    log.append([], [detail(first, digest="another")])
    assert list(log.details()) == details
    assert verify(log).details == 4


def test_a_log_without_details_has_no_table_of_them(log: JudgmentLog) -> None:
    """The file is the same as that of version 0.3."""
    log.append([event()])
    assert list(log.details()) == [] and verify(log).is_sound
    with closing(sqlite3.connect(log.path)) as database:
        assert not database.execute("SELECT 1 FROM sqlite_master WHERE name LIKE '%details%'").fetchall()


def test_events_and_details_are_appended_together_or_not_at_all(log: JudgmentLog) -> None:
    with pytest.raises(DataError, match="can't be written as JSON"):
        log.append([event()], [detail(event(), value=float("nan"))])
    assert not len(log) and not list(log.details())


@pytest.mark.parametrize(
    ("statement", "details", "problem"),
    [
        ("UPDATE details SET value = '{}' WHERE number = 2", 2, "detail 2 is damaged"),
        ("UPDATE details SET value = CAST(X'FF' AS TEXT) WHERE number = 3", 2, "detail 3 is damaged"),
        ("DELETE FROM details WHERE number = 1", 2, "1 detail of events is missing"),
        ("DELETE FROM details WHERE number = 3", 2, "1 detail of events is missing"),
    ],
)
def test_altered_and_missing_details_are_detected(
    log: JudgmentLog, tmp_path: Path, statement: str, details: int, problem: str
) -> None:
    events = [event(document) for document in "abc"]
    log.append(events, [detail(each) for each in events])
    with sqlite3.connect(log.path) as database:
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            database.execute(statement)
        for trigger in ("updated", "deleted"):
            database.execute(f"DROP TRIGGER details_never_{trigger}")
        database.execute(statement)
    for verdict in (verify(log), back_up(log, tmp_path / "copy.sqlite")):
        assert (verdict.events, verdict.details) == (3, details)
        assert len(verdict.problems) == 1 and problem in verdict.problems[0]


def test_an_export_and_a_copy_have_the_details(log: JudgmentLog, tmp_path: Path) -> None:
    first, second = event("a"), event("b")
    details = [detail(first), detail(second)]
    log.append([first, second], details)
    file = write(tmp_path / "all.jsonl", [first, second], details)
    with JudgmentLog(tmp_path / "again.sqlite") as again:
        for number in (1, None):
            incoming = exchange.incoming_events(again, file, "nlps", 3)
            imported = exchange.import_file(again, "nlps", incoming)
            assert (imported and imported.number) == number
            assert list(again.details()) == details and incoming.judgments == 2
    # A log that got the events before, from a file without details, gets the details later.
    with JudgmentLog(tmp_path / "third.sqlite") as third:
        third.append([first, second])
        assert exchange.import_file(third, "nlps", exchange.incoming_events(third, file, "nlps", 3)) is None
        assert list(third.details()) == details
    back_up(log, tmp_path / "copy.sqlite")
    with JudgmentLog(tmp_path / "copy.sqlite") as copy:
        assert list(copy.details()) == details


def test_details_that_contradict_the_log_or_have_no_event_are_refused(
    log: JudgmentLog, tmp_path: Path
) -> None:
    known, new = event("a"), event("b")
    log.append([known], [detail(known)])
    bad = [detail(known, digest="another"), detail(event("missing")), detail(new), detail(new, digest="x")]
    file = write(tmp_path / "bad.jsonl", [known, new], bad)
    with file.open("ab") as lines:
        lines.write(b'{"event": "x", "name": "n"}\n{"event": "", "name": "n", "value": {}}\n')
        lines.write(
            b'{"event": "x", "name": "n", "value": 3}\n{"event": "x", "name": "n", "value": {}, "y": 1}\n'
        )
    with pytest.raises(InvalidFiles) as caught:
        exchange.incoming_events(log, file, "nlps", 3)
    text = str(caught.value)
    for words in (
        "the log has a different detail with the id",
        "the file has no event",
        "the file has two details with the id",
        "lacks the field 'value'",
        "'event' of a detail must be text",
        "'value' of a detail must be an object",
        "unknown field 'y' of a detail",
    ):
        assert words in text, words
    assert len(log) == 1
