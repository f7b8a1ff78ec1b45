"""The background exchange of events with a team."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Generic

import pytest

from searchapp.judging import team
from searchapp.judging.events import Action, Author, Detail, Event
from searchapp.judging.log import JudgmentLog
from searchapp.judging.team import (
    EventIndex,
    Exchanged,
    IndexState,
    R,
    RecordPage,
    Synchronizer,
    synchronize,
)


class RecordsInMemory(Generic[R]):
    """A cluster's index in memory."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.records: list[R] = []
        self.sent = 0

    def state(self) -> IndexState:
        return IndexState(self.address, len(self.records) - 1)

    def send(self, records: Sequence[R]) -> tuple[int, tuple[str, ...]]:
        known = {record.id: record for record in self.records}
        self.sent += len(records)
        new = [record for record in records if record.id not in known]
        self.records += new
        return len(new), tuple(record.id for record in records if known.get(record.id, record) != record)

    def fetch(self, after: int, up_to: int) -> RecordPage[R]:
        page = self.records[after + 1 : up_to + 1][: team.EVENTS_AT_ONCE]
        return RecordPage(tuple(page), after + len(page) if page else None)


class TeamInMemory(RecordsInMemory[Event]):
    def __init__(self) -> None:
        super().__init__("http://there/judgments")
        self.details = RecordsInMemory[Detail]("http://there/judgments-details")

    def has_details(self) -> bool:
        return bool(self.details.records)

    def close(self) -> None:
        pass


def graded(document: str, task: str = "nlps") -> Event:
    return Author("ann").event(task, "t", document, Action.grade, grade=1)


def test_details_are_exchanged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "EVENTS_AT_ONCE", 2)
    index = TeamInMemory()
    events = [*map(graded, "abc"), graded("d", "checkthat"), graded("e")]
    details = [Detail(event.id, "guidelines", {"digest": event.document_id}) for event in events]
    with JudgmentLog(tmp_path / "ann.sqlite") as ann, JudgmentLog(tmp_path / "ben.sqlite") as ben:
        ann.append(events[:1])
        assert synchronize(ann, index) == Exchanged(sent=1)
        assert not index.details.sent
        ann.append(events, details)
        assert synchronize(ann, index, "nlps") == Exchanged(sent=3)
        assert index.details.records == [details[0], details[1], details[2], details[4]]
        assert synchronize(ann, index) == Exchanged(sent=1)
        assert len(index.details.records) == 5
        sent = index.details.sent
        own = Detail(events[0].id, "model", {"tokens": 3})
        ben.append([], [own])
        assert synchronize(ben, index) == Exchanged(fetched=5)
        assert index.details.sent == sent + 1
        synchronize(ben, index)
        synchronize(ann, index)
        assert index.details.sent == sent + 1
        for log in (ann, ben):
            assert {detail.id: detail for detail in log.details()} == {
                detail.id: detail for detail in (*details, own)
            }


def test_a_synchronizer_reports_an_unexpected_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect() -> EventIndex:
        raise ValueError("no such thing")

    monkeypatch.setattr(team, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(team, "FETCH_SECONDS", 0.02)
    synchronizer = Synchronizer(tmp_path / "log.sqlite", connect, "there")
    synchronizer.start()
    end = time.monotonic() + 10
    while synchronizer.trouble is None and time.monotonic() < end:
        time.sleep(0.01)
    synchronizer.stop(10)
    assert synchronizer.trouble == "judgments are no longer exchanged: ValueError: no such thing"
