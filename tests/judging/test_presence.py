"""Detection of other windows in which the same annotator has a log open."""

from __future__ import annotations

import platform
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from searchapp.judging import log as log_module
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
    """A second process that has the log open."""
    with Program(OTHER, path) as program:
        assert program.read_line() == "open"
        yield program


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_another_window_of_the_same_annotator_is_detected(path: Path, other: Program) -> None:
    with Presence(path, "nlps", "ann") as presence:
        (window,) = presence.others
        assert window.process == other.pid
        assert str(window).startswith(f"process {other.pid} on {platform.node()}, since ")
    with Presence(path, "nlps", "ben") as of_ben, Presence(path, "checkthat", "ann") as of_debates:
        assert of_ben.others == of_debates.others == ()


def test_a_killed_window_disappears_at_once(path: Path, other: Program) -> None:
    other.send_signal(signal.SIGKILL)
    other.wait()
    with Presence(path, "nlps", "ann") as presence:
        assert presence.others == ()


def test_a_window_on_another_host_without_heartbeats_is_removed(path: Path) -> None:
    now = time.time()
    elsewhere = Window("w", "ann", "nlps", "another host", 1, opened=now - 600, beat=now - 10)
    with JudgmentLog(path) as log:
        log.beat(elsewhere, 0)
    with Presence(path, "nlps", "ann") as presence:
        assert [window.host for window in presence.others] == ["another host"]
    with JudgmentLog(path) as log:
        log.beat(Window("w", "ann", "nlps", "another host", 1, opened=0, beat=now - 16), 0)
    with Presence(path, "nlps", "ann") as presence:
        assert presence.others == ()
    with JudgmentLog(path) as log:
        assert log.windows("nlps", "ann", 0) == []  # the row is deleted, too


def test_windows_detect_each_other_and_the_end_of_each_other(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "BEAT_SECONDS", 0.02)
    with Presence(path, "nlps", "ann") as first:
        assert first.others == ()
        with Presence(path, "nlps", "ann") as second:
            assert len(second.others) == 1
            wait_until(lambda: len(first.others) == 1)
        wait_until(lambda: first.others == ())


def test_heartbeats_do_not_block_appends_and_are_not_events(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "BEAT_SECONDS", 0.001)
    with Presence(path, "nlps", "ann"), JudgmentLog(path) as log:
        for number in range(200):
            log.append([Author("ann").event("nlps", "t", f"d{number}", Action.grade, grade=1)])
        assert len(log) == 200


def test_a_damaged_log_has_no_other_windows(path: Path) -> None:
    with JudgmentLog(path):
        pass
    path.write_bytes(b"no database at all" * 100)
    with Presence(path, "nlps", "ann") as presence:
        assert presence.others == ()
