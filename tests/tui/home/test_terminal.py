"""The home screen as people meet it: the program on a terminal, driven by keys alone."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.terminal import Terminal


def test_from_nothing_to_a_search_on_a_small_terminal(tmp_path: Path) -> None:
    with Terminal("browse", home=tmp_path, columns=80, lines=24, NO_COLOR="1") as terminal:
        terminal.wait_for("Nothing is indexed yet")
        terminal.press("i")
        terminal.wait_for("Index nlps from which source")
        terminal.press("s")
        terminal.wait_for("indexed 70 documents into searchapp-nlps-sample-000001")
        terminal.wait_for("▶ nlps-sample +70")
        terminal.wait_for("↵ searches the documents")
        terminal.press("\x10", *"search nlps-sample")
        terminal.wait_for("task: search nlps-sample")
        terminal.press("enter")
        terminal.wait_for("70 documents · words")
        terminal.press(*"compact")
        terminal.wait_for("5 documents · words")
        terminal.press("\x11")
        terminal.wait_for("embedded answers")
        terminal.press("s")
        terminal.wait_for("user file")
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_for_end() == 128 + signal.SIGTERM
        assert b"\x1b[?1049l" in terminal.raw and not terminal.is_raw


def test_without_a_terminal_it_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "searchapp", "--home", str(tmp_path), "browse"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        "searchapp: the home screen needs a terminal: `searchapp tasks` lists the tasks without one\n"
    )
