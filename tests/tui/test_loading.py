"""The first frame in a real terminal, shown while engine and data are opened."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from searchapp.judging.log import JudgmentLog
from tests.terminal import Terminal
from tests.tui.conftest import SampleRuns
from tests.tui.test_terminal import events
from tests.tui.test_terminal import home as home  # a fixture

SLOW = """
import sys, time
from pathlib import Path
from searchapp import cli
from searchapp.app import search, sessions

def delayed(function):
    def wait(*arguments, **options):
        while not Path({go!r}).exists():
            time.sleep(0.01)
        return function(*arguments, **options)
    return wait

search.open_index = delayed(search.open_index)
sessions.require_topic = delayed(sessions.require_topic)
cli.main()
"""
"""Opens a screen slowly: searching before the index, judging after the log and the run."""


def open_slowly(home: Path, *arguments: object) -> Terminal:
    """Start a program that opens a screen once the file `go` exists."""
    program = "-c", SLOW.format(go=str(home / "go"))
    return Terminal(*arguments, home=home, columns=80, lines=24, program=program)


def judge(home: Path, samples: SampleRuns) -> Terminal:
    return open_slowly(home, "judge", "nlps", "--run", samples.run("nlps"), "--annotator", "ann")


def test_title_and_progress_are_shown_before_the_index_is_open(home: Path) -> None:
    with open_slowly(home, "search", "nlps") as terminal:
        terminal.wait_for(r"^ ?nlps *\n")
        terminal.wait_for("opening the index of nlps … +[1-9] s")
        terminal.wait_for(r"\^q quit")
        terminal.press(*"compact", "\x1b[200~ spaces\x1b[201~")
        (home / "go").touch()
        terminal.wait_for("› compact spaces")
        terminal.wait_for("documents? · words")
        terminal.press("\x11")
        assert terminal.wait_for_end() == 0


def test_grades_typed_while_loading_are_discarded(home: Path, samples: SampleRuns) -> None:
    with judge(home, samples) as terminal:
        terminal.wait_for("loading topics and judgments")
        terminal.press("1", "q")
        (home / "go").touch()
        terminal.wait_for("Document .* rank 1 ")
        terminal.press("\x11")
        assert terminal.wait_for_end() == 0
        assert b"all judgments are saved" in terminal.raw
    assert events(home) == []


LEAVING = {"ctrl+q": 0, "click": 0, "ctrl+c": 130, "SIGTERM": 143, "SIGHUP": 129}
"""Exit codes by the way to leave."""


@pytest.mark.parametrize("way", LEAVING)
def test_leaving_while_loading_restores_the_terminal_and_closes_the_log(
    home: Path, samples: SampleRuns, way: str
) -> None:
    with judge(home, samples) as terminal:
        terminal.wait_for("loading topics and judgments")
        terminal.wait_for(r"\^q quit")
        if way.startswith("SIG"):
            terminal.signal(signal.Signals[way])
        else:
            click = "\x1b[<0;3;24M\x1b[<0;3;24m"
            terminal.press({"ctrl+q": "\x11", "ctrl+c": "\x03"}.get(way, click))
        while b"\x1b[?1049l" not in terminal.raw:
            assert terminal._read(0.05)
        (home / "go").touch()  # opening ends, and leaving closes the log
        assert terminal.wait_for_end() == LEAVING[way]
        assert not terminal.is_raw
        after = terminal.raw.rpartition(b"\x1b[?1049l")[2]
        assert (b"searchapp: interrupted" in after) == (way == "ctrl+c") and b"Traceback" not in after
    with JudgmentLog(home / "judgments.sqlite") as log:
        assert not list(log.windows("nlps", "ann", 0)) and not list(log.events())


def test_leaving_does_not_wait_long_for_an_engine(home: Path) -> None:
    with open_slowly(home, "search", "nlps") as terminal:
        terminal.wait_for("opening the index of nlps")
        terminal.press("\x11")
        begin = time.monotonic()
        assert terminal.wait_for_end() == 0
        assert time.monotonic() - begin < 15


NO_RUN = "there is no run directory or TREC run missing: `searchapp rank` makes a run directory"
NO_INDEX = "there is no index in .*searchapp-nlps: create it with `searchapp index nlps`"


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("search nlps", 3, NO_INDEX),
        ("search nlps --recipe bm52", 2, "nlps has no recipe 'bm52' .*"),
        ("judge nlps --run missing", 2, NO_RUN),
        ("topics nlps --run missing", 2, NO_RUN),
        ("topics nlps --split dev", 3, NO_INDEX),
        ("compare missing gone --screen", 2, "missing is not a run directory .*"),
        ("browse", 4, ".*settings.toml: unknown action 'fly' .*"),
    ],
)
def test_an_error_while_loading_is_printed_below_the_restored_terminal(
    tmp_path: Path, command: str, code: int, message: str
) -> None:
    if command == "browse":
        (tmp_path / "settings.toml").write_text('[browse.keys]\nfly = "f"\n')
    with Terminal(*command.split(), home=tmp_path, columns=200, lines=24) as terminal:
        assert terminal.wait_for_end() == code
        after = terminal.raw.rpartition(b"\x1b[?1049l")[2].decode()
        assert re.search(f"searchapp: {message}\r\n$", after) and not terminal.is_raw
