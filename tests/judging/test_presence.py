"""Who has a log open under the same name."""

from __future__ import annotations

import platform
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from searchapp.judging import log as presence
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog, Presence, Window
from tests.programs import Program

OTHER = """
import sys, time
from pathlib import Path
from searchapp.judging.log import Presence
with Presence(Path(sys.argv[1]), "nlps", "ann"):
    print("open", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def other(path: Path) -> Iterator[Program]:
    """Another process that has the log open."""
    with Program(OTHER, path) as program:
        assert program.heard() == "open"
        yield program


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_another_window_of_the_same_annotator_is_heard_of(path: Path, other: Program) -> None:
    with Presence(path, "nlps", "ann") as mine:
        (found,) = mine.others
        assert found.process == other.pid
        assert str(found).startswith(f"process {other.pid} on {platform.node()}, since ")
    with Presence(path, "nlps", "ben") as of_ben, Presence(path, "checkthat", "ann") as of_debates:
        assert of_ben.others == of_debates.others == ()


def test_a_window_that_was_killed_is_gone_at_once(path: Path, other: Program) -> None:
    other.send_signal(signal.SIGKILL)
    other.wait()
    with Presence(path, "nlps", "ann") as mine:
        assert mine.others == ()


def test_a_window_elsewhere_that_beats_no_more_is_forgotten(path: Path) -> None:
    now = time.time()
    elsewhere = Window("w", "ann", "nlps", "another host", 1, opened=now - 600, beat=now - 10)
    with JudgmentLog(path) as log:
        log.beat(elsewhere, 0)
    with Presence(path, "nlps", "ann") as mine:
        assert [one.host for one in mine.others] == ["another host"]
    with JudgmentLog(path) as log:
        log.beat(Window("w", "ann", "nlps", "another host", 1, opened=0, beat=now - 16), 0)
    with Presence(path, "nlps", "ann") as mine:
        assert mine.others == ()
    with JudgmentLog(path) as log:
        assert log.windows("nlps", "ann", 0) == []  # and the row is gone


def test_both_windows_hear_of_each_other_and_of_the_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "BEAT_SECONDS", 0.02)
    with Presence(path, "nlps", "ann") as first:
        assert first.others == ()
        with Presence(path, "nlps", "ann") as second:
            assert len(second.others) == 1
            wait_until(lambda: len(first.others) == 1)
        wait_until(lambda: first.others == ())


def test_beats_keep_nobody_from_judging_and_are_no_judgments(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "BEAT_SECONDS", 0.001)
    with Presence(path, "nlps", "ann"), JudgmentLog(path) as log:
        for number in range(200):
            log.append([Author("ann").event("nlps", "t", f"d{number}", Action.grade, grade=1)])
        assert len(log) == 200


def test_a_log_that_can_not_be_written_stops_nobody(path: Path) -> None:
    with JudgmentLog(path):
        pass
    path.write_bytes(b"no database at all" * 100)
    with Presence(path, "nlps", "ann") as mine:
        assert mine.others == ()
