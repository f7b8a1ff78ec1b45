from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from searchapp.judging.agreement import AnnotatorProgress, progress
from searchapp.judging.events import Action, Author, Event
from searchapp.judging.log import JudgmentLog
from searchapp.judging.view import open_view


def progress_of(folder: Path, events: Sequence[Event]) -> list[AnnotatorProgress]:
    with JudgmentLog(folder / "judgments.sqlite") as log:
        log.append(events)
        return progress(open_view(log, "nlps"))


def test_the_first_and_the_last_judgment_are_so_in_every_time_zone(tmp_path: Path) -> None:
    event = Author("ann").event("nlps", "t", "d", Action.grade, grade=1)
    times = ["2026-03-01T09:00:00+00:00", "2026-03-01T10:30:00+02:00", "2026-03-01T01:00:00-09:00"]
    events = [replace(event, id=time, time=time, document_id=time) for time in times]
    (found,) = progress_of(tmp_path, events)
    assert (found.first, found.last) == (times[1], times[2])


def test_breaks_say_nothing_about_pace(tmp_path: Path) -> None:
    event = Author("ann").event("nlps", "t", "d", Action.grade, grade=1, rank=1)
    minutes = ("00:00", "00:04", "00:10", "20:00", "20:05")
    times = [f"2026-03-01T09:{minute}+00:00" for minute in minutes]
    events = [replace(event, id=time, time=time, document_id=time) for time in times]
    (found,) = progress_of(tmp_path, events)
    assert (found.seconds, found.graded) == (5.0, 5)
