"""A log that is opened by what is remembered of it says what it says when all of it is read."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from dataclasses import astuple, replace
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
    """Events in any order of time, with retractions of what is there, of what comes later, and of nothing."""
    events: list[Event] = []
    count = draw(st.integers(1, 25))
    for number in range(count):
        author = draw(st.sampled_from(AUTHORS))
        # Few moments, so that some events have the same one.
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


def everything(view: JudgmentView) -> dict[str, Any]:
    """What a view says, whoever asks."""
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
        "said by": {(name, *key): list(view.events_on(name, *key)) for name in names for key in keys},
        "said": {(name, topic): dict(view.judgments(name, topic)) for name in names for topic in TOPICS},
        "decision": {key: view.decision(*key) for key in keys},
        "latest": {key: view.latest(*key) for key in keys},
        "holds": {f"e{number}": view.holds(f"e{number}") for number in range(30)},
        "topics": {name: sorted(view.topics_of(name)) for name in names},
        "listed": list_judgments(view),
        "agreement": repr(replace(agreement(view), topics={}, saw_others_by={})),
    }


@given(histories(), st.data())
def test_what_is_remembered_and_what_came_later_is_what_all_events_add_up_to(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("log")
    path = folder / "judgments.sqlite"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=3), label="cuts"))
    seen = data.draw(st.integers(0, len(events)), label="added to the view")
    own = sorted((one for one in events if one.task == "nlps"), key=lambda one: one.order)
    with pytest.MonkeyPatch.context() as patched, JudgmentLog(path) as log:
        patched.setattr(module, "FEW", -1)
        patched.setattr(module, "SHARE", 1 << 40)
        begin = 0
        for cut in [*cuts, max([seen, *cuts])]:
            log.append(events[begin:cut])
            begin = cut
            view = open_view(log, "nlps")  # and writes a snapshot
        again = read_snapshot(log, "nlps") or view
        assert (again is view) is (begin == 0) and everything(again) == everything(view)
        log.append(events[begin:])
        for place, event in log.events("nlps", again.last):
            # The session's own events have no place yet.
            again.add(event, data.draw(st.sampled_from([place, None]), label="place"))
        true = everything(JudgmentView(own))
        assert everything(again) == true
        assert everything(open_view(log, "nlps")) == true
        snapshot_path(path, "nlps").unlink()
        fresh = open_view(log, "nlps")
        assert everything(fresh) == true
        if len(log):
            restored = read_snapshot(log, "nlps")
            assert restored is not None and progress(restored) == progress(fresh)
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


def said(log: JudgmentLog) -> dict[str, Any]:
    return everything(open_view(log, "nlps"))


def test_only_later_events_are_read(log: JudgmentLog, monkeypatch: pytest.MonkeyPatch) -> None:
    first = said(log)
    read_after: list[int] = []
    events = JudgmentLog.events

    def watched(self: JudgmentLog, task: str | None = None, after: int = 0) -> Any:
        read_after.append(after)
        return events(self, task, after)

    monkeypatch.setattr(JudgmentLog, "events", watched)
    assert said(log) == first and read_after == [50]
    # Nor are those of another task, of which there is nothing.
    assert open_view(log, "checkthat").count == open_view(log, "checkthat").count == 0
    assert read_after == [50, 0, 50]


@pytest.mark.parametrize("how", ["gone", "flipped", "cut", "empty", "of another log", "older", "no JSON"])
def test_what_does_not_go_with_the_log_is_made_again(log: JudgmentLog, tmp_path: Path, how: str) -> None:
    first = said(log)
    path = snapshot_path(log.path, "nlps")
    content = path.read_bytes()
    rng = random.Random(3)
    for _ in range(20 if how in ("flipped", "cut") else 1):
        if how == "gone":
            path.unlink()
        elif how == "flipped":
            place = rng.randrange(len(content))
            path.write_bytes(
                content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]
            )
        elif how == "cut":
            path.write_bytes(content[: rng.randrange(len(content))])
        elif how == "of another log":
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
                }[how]
            )
        assert said(log) == first
        assert read_snapshot(log, "nlps") is not None


def test_damage_behind_what_is_remembered_is_reported_when_it_is_looked_at(log: JudgmentLog) -> None:
    open_view(log, "nlps")
    change(log.path, "UPDATE events SET grade = 2 WHERE sequence = 6")
    change(log.path, "DELETE FROM events WHERE sequence = 7")
    told: list[str] = []
    with JudgmentLog(log.path, report=told.append) as again:
        view = open_view(again, "nlps")
        assert view.opinion("ann", "t2", "d2") is not None and told == []
        assert view.opinion("ann", "t0", "d5") is None
        assert view.opinion("ann", "t1", "d6") is None
    assert [words.partition(": ")[2].partition(":")[0] for words in told] == [
        "event 6 is damaged and left out",
        "event 7 is missing",
    ]


def test_damaged_logs_are_not_remembered(tmp_path: Path, log: JudgmentLog) -> None:
    change(log.path, "UPDATE events SET grade = 2 WHERE sequence = 6")
    for _ in range(2):
        told: list[str] = []
        with JudgmentLog(log.path, report=told.append) as again:
            open_view(again, "nlps")
        assert len(told) == 1


def test_a_folder_that_can_not_be_written_to_is_no_harm(
    log: JudgmentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_options: object) -> Any:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "open", refuse)
    assert open_view(log, "nlps").count == 50


def test_earlier_actions_are_undone_one_by_one_the_last_first(log: JudgmentLog) -> None:
    own = [one for _, one in log.events("nlps")]
    for _ in range(2):
        session = Session(log, "nlps", AUTHORS[0])
        outcome = session.undo()
        assert outcome is not None and outcome.events[0].refers == own.pop().id
    session.grade([SeenDocument("t1", "new")], 1)
    undone = [session.undo() for _ in range(50)]
    assert undone[-1] is None and session.undo() is None
    assert [one.events[0].refers for one in undone[1:-1] if one] == [one.id for one in reversed(own)]


def test_pace_is_that_of_all_judgments(log: JudgmentLog) -> None:
    events = [
        replace(one, time=f"2026-03-01T09:{number // 60:02}:{number % 60:02}+00:00")
        for number, one in enumerate(graded(range(100, 400), AUTHORS[1]))
    ]
    log.append(events)
    first = Session(log, "nlps", AUTHORS[1]).pace.seconds
    assert first == Session(log, "nlps", AUTHORS[1]).pace.seconds == 1.0
    assert astuple(events[0])  # they are events still
