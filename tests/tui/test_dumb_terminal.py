"""A terminal that can't move its cursor gets a sentence instead of a screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal import Terminal
from tests.tui.conftest import SampleRuns

MOVE = "needs a terminal that can move its cursor, which TERM=dumb can't:"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "nlps"), f"the search screen {MOVE} give a query in quotes after the task"),
        (("browse",), f"the home screen {MOVE} `searchapp tasks` lists the tasks without one"),
        (("topics", "nlps", "--run", "RUN"), f"the topics screen {MOVE} use --plain to print the topics"),
        (("compare", "RUN", "RUN", "--screen"), f"the compare screen {MOVE} leave out --screen"),
        (("config", "--screen"), f"the settings screen {MOVE} leave out --screen"),
    ],
)
def test_screens_name_the_plain_alternative(
    samples: SampleRuns, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    run = str(samples.run("nlps"))
    given = [run if argument == "RUN" else argument for argument in arguments]
    with Terminal(*given, home=tmp_path, columns=200, TERM="dumb") as terminal:
        assert terminal.wait_for_end() == 2
    assert terminal.raw.decode() == f"searchapp: {message}\r\n"


def test_topics_are_printed_on_request(samples: SampleRuns) -> None:
    run = samples.run("nlps")
    with Terminal("topics", "nlps", "--run", run, "--plain", home=samples.home, TERM="dumb") as terminal:
        assert terminal.wait_for_end() == 0
    assert b"missed" in terminal.raw and b"\x1b[" not in terminal.raw


def test_a_terminal_without_an_entry_in_the_database_gets_the_screen(tmp_path: Path) -> None:
    with Terminal("browse", home=tmp_path, TERM="not-in-the-database") as terminal:
        terminal.wait_for("embedded")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
