"""The home screen in a real terminal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.terminal import Terminal


def test_the_sample_is_indexed_and_searched_on_a_small_terminal(tmp_path: Path) -> None:
    with Terminal("browse", home=tmp_path, columns=80, lines=24, NO_COLOR="1") as terminal:
        terminal.wait_for("Nothing is indexed yet")
        terminal.press("I")
        terminal.wait_for("Index nlps from which source")
        terminal.press("s")
        terminal.wait_for("indexed 70 documents into searchapp-nlps-sample-000001")
        terminal.wait_for("▶ nlps-sample +70")
        terminal.wait_for("↵ searches the documents")
        terminal.press("\x10", *"search nlps-sample")
        terminal.wait_for("task: search nlps-sample")
        terminal.press("enter")
        terminal.wait_for("70 documents · sorted by id")
        terminal.press(*"compact")
        terminal.wait_for("5 documents · words")
        terminal.press("\x11")
        terminal.wait_for("✓ embedded")
        terminal.press(",")
        terminal.wait_for("user file")
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_for_end() == 128 + signal.SIGTERM
        assert b"\x1b[?1049l" in terminal.raw and not terminal.is_raw


def test_the_screen_is_refused_without_a_terminal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "searchapp", "--home", str(tmp_path), "browse"]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr == (
        "searchapp: the home screen needs a terminal: `searchapp tasks` lists the tasks without one\n"
    )
