"""A view from a snapshot and later events equals the view of all events."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.judging import view as module
from searchapp.judging.agreement import agreement, progress
from searchapp.judging.events import Action, Author, Event, Kind
from searchapp.judging.judgments import aggregate, list_judgments
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.judging.view import JudgmentView, open_view, read_snapshot, snapshot_path
from tests.judging.test_damage import change

AUTHORS = [Author("ann"), Author("ben"), Author("bot", Kind.model)]
TOPICS, DOCUMENTS = ("t1", "t2", "t3"), ("d1", "d2")


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Draw events in any order of time, with retractions of earlier, later and missing events."""
    events: list[Event] = []
    count = draw(st.integers(1, 25))
    for number in range(count):
        author = draw(st.sampled_from(AUTHORS))
        # Few different seconds, so that some events have the same time.
        time = datetime.fromisoformat("2026-03-01T09:00+00:00") + timedelta(seconds=draw(st.integers(0, 30)))
        action = draw(st.sampled_from(Action))
        refers = f"e{draw(st.integers(0, count))}" if action is Action.retract else ""
        graded = action in (Action.grade, Action.adjudicate)
        events.append(
            Event(
                id=f"e{number}",
                time=time.isoformat(),
                annotator=author.annotator,
                kind=author.kind,
                channel=author.channel,
                task=draw(st.sampled_from(["nlps", "nlps", "nlps", "checkthat"])),
                topic_id=draw(st.sampled_from(TOPICS)),
                document_id=draw(st.sampled_from(DOCUMENTS)),
                action=action,
                grade=draw(st.integers(0, 2)) if graded else None,
                text="why" if action is Action.note else "",
                rank=draw(st.none() | st.integers(1, 3)),
                refers=refers,
            )
        )
    return events


def contents(view: JudgmentView) -> dict[str, Any]:
    """Return the results of all queries of a view."""
    names = sorted(view.annotators())
    keys = sorted(view.judged_documents())
    return {
        "keys": keys,
        "names": names,
        "judged": {topic: dict(sorted(grades.items())) for topic, grades in aggregate(view).grades.items()},
        "disputed": sorted(aggregate(view).disputed),
        "opinions": {(name, *key): view.opinion(name, *key) for name in names for key in keys},
        "words": {(name, *key): view.words(name, *key) for name in names for key in keys},
        "standing": {(name, *key): view.standing(name, *key) for name in names for key in keys},
        "events": {(name, *key): list(view.events_on(name, *key)) for name in names for key in keys},
        "judgments": {(name, topic): dict(view.judgments(name, topic)) for name in names for topic in TOPICS},
        "decision": {key: view.decision(*key) for key in keys},
        "latest": {key: view.latest(*key) for key in keys},
        "holds": {f"e{number}": view.holds(f"e{number}") for number in range(30)},
        "topics": {name: sorted(view.topics_of(name)) for name in names},
        "listed": list_judgments(view),
        "agreement": repr(replace(agreement(view), topics={}, saw_others_by={})),
    }


@given(histories(), st.data())
def test_a_snapshot_and_later_events_equal_the_view_of_all_events(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("log")
    path = folder / "judgments.sqlite"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=3), label="cuts"))
    end = data.draw(st.integers(0, len(events)), label="end of the snapshot")
    own = sorted((event for event in events if event.task == "nlps"), key=lambda event: event.order)
    with pytest.MonkeyPatch.context() as patched, JudgmentLog(path) as log:
        patched.setattr(module, "FEW", -1)
        patched.setattr(module, "SHARE", 1 << 40)
        begin = 0
        for cut in [*cuts, max([end, *cuts])]:
            log.append(events[begin:cut])
            begin = cut
            view = open_view(log, "nlps")  # writes a snapshot, too
        restored = read_snapshot(log, "nlps") or view
        assert (restored is view) is (begin == 0) and contents(restored) == contents(view)
        log.append(events[begin:])
        for sequence, event in log.events("nlps", restored.last):
            # The session's own events have no sequence number yet.
            restored.add(event, data.draw(st.sampled_from([sequence, None]), label="sequence"))
        expected = contents(JudgmentView(own))
        assert contents(restored) == expected
        assert contents(open_view(log, "nlps")) == expected
        snapshot_path(path, "nlps").unlink()
        fresh = open_view(log, "nlps")
        assert contents(fresh) == expected
        if len(log):
            again = read_snapshot(log, "nlps")
            assert again is not None and progress(again) == progress(fresh)
    shutil.rmtree(folder)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(module, "FEW", 5)
    with JudgmentLog(tmp_path / "judgments.sqlite") as opened:
        opened.append(graded(range(50)))
        yield opened


def graded(numbers: Iterable[int], author: Author = AUTHORS[0]) -> list[Event]:
    return [
        author.event("nlps", f"t{number % 5}", f"d{number}", Action.grade, grade=number % 2, rank=number + 1)
        for number in numbers
    ]


def opened_contents(log: JudgmentLog) -> dict[str, Any]:
    return contents(open_view(log, "nlps"))


def test_only_later_events_are_read(log: JudgmentLog, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened_contents(log)
    read_after: list[int] = []
    events = JudgmentLog.events

    def record(self: JudgmentLog, task: str | None = None, after: int = 0) -> Any:
        read_after.append(after)
        return events(self, task, after)

    monkeypatch.setattr(JudgmentLog, "events", record)
    assert opened_contents(log) == first and read_after == [50]
    # The same holds for a task without events.
    assert open_view(log, "checkthat").count == open_view(log, "checkthat").count == 0
    assert read_after == [50, 0, 50]


@pytest.mark.parametrize(
    "damage", ["missing", "flipped", "cut", "empty", "of another log", "older", "no JSON"]
)
def test_an_unusable_snapshot_is_written_again(log: JudgmentLog, tmp_path: Path, damage: str) -> None:
    first = opened_contents(log)
    path = snapshot_path(log.path, "nlps")
    content = path.read_bytes()
    rng = random.Random(3)
    for _ in range(20 if damage in ("flipped", "cut") else 1):
        if damage == "missing":
            path.unlink()
        elif damage == "flipped":
            flipped = bytearray(content)
            flipped[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            path.write_bytes(flipped)
        elif damage == "cut":
            path.write_bytes(content[: rng.randrange(len(content))])
        elif damage == "of another log":
            with JudgmentLog(tmp_path / "another.sqlite") as another:
                another.append(graded(range(60), AUTHORS[1]))
                open_view(another, "nlps")
            shutil.copy(snapshot_path(tmp_path / "another.sqlite", "nlps"), path)
        else:
            path.write_bytes(
                {
                    "empty": b"",
                    "older": content.replace(b'"format": 3', b'"format": 2', 1),
                    "no JSON": b"[]\n",
                }[damage]
            )
        assert opened_contents(log) == first
        assert read_snapshot(log, "nlps") is not None


def test_damaged_events_in_a_snapshot_are_reported_when_they_are_read(log: JudgmentLog) -> None:
    open_view(log, "nlps")
    change(log.path, "UPDATE events SET grade = 2 WHERE sequence = 6")
    change(log.path, "DELETE FROM events WHERE sequence = 7")
    reports: list[str] = []
    with JudgmentLog(log.path, report=reports.append) as again:
        view = open_view(again, "nlps")
        assert view.opinion("ann", "t2", "d2") is not None and reports == []
        assert view.opinion("ann", "t0", "d5") is None
        assert view.opinion("ann", "t1", "d6") is None
    assert [report.partition(": ")[2].partition(":")[0] for report in reports] == [
        "event 6 is damaged and left out",
        "event 7 is missing",
    ]


def test_a_damaged_log_has_no_snapshot(tmp_path: Path, log: JudgmentLog) -> None:
    change(log.path, "UPDATE events SET grade = 2 WHERE sequence = 6")
    for _ in range(2):
        reports: list[str] = []
        with JudgmentLog(log.path, report=reports.append) as again:
            open_view(again, "nlps")
        assert len(reports) == 1


def test_a_log_opens_if_the_snapshot_cannot_be_written(
    log: JudgmentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_options: object) -> Any:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "open", refuse)
    assert open_view(log, "nlps").count == 50


def test_actions_of_earlier_sessions_are_undone_in_reverse_order(log: JudgmentLog) -> None:
    own = [event for _, event in log.events("nlps")]
    for _ in range(2):
        session = Session(log, "nlps", AUTHORS[0])
        outcome = session.undo()
        assert outcome is not None and outcome.events[0].refers == own.pop().id
    session.grade([SeenDocument("t1", "new")], 1)
    undone = [session.undo() for _ in range(50)]
    assert undone[-1] is None and session.undo() is None
    assert [outcome.events[0].refers for outcome in undone[1:-1] if outcome] == [
        event.id for event in reversed(own)
    ]


def test_the_pace_is_restored_from_the_snapshot(log: JudgmentLog) -> None:
    events = [
        replace(event, time=f"2026-03-01T09:{number // 60:02}:{number % 60:02}+00:00")
        for number, event in enumerate(graded(range(100, 400), AUTHORS[1]))
    ]
    log.append(events)
    first = Session(log, "nlps", AUTHORS[1]).pace.seconds
    assert first == Session(log, "nlps", AUTHORS[1]).pace.seconds == 1.0
