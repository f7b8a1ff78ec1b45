"""A command that is stopped while it writes a run leaves nothing that passes for one, and can be given again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLE, Cli

SLOW_WRITER = """
import sys, time
from searchapp.formats import trec
rankings = trec._written_rankings
def slow(run):
    for one in rankings(run):
        time.sleep(0.2)
        yield one
trec._written_rankings = slow
from searchapp.cli import app
app(sys.argv[1:])
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_run_that_was_interrupted_is_not_there_and_can_be_made_again(
    offline: Cli, tmp_path: Path, name: str
) -> None:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    folder = tmp_path / "runs"
    folder.mkdir()
    arguments = [
        "rank",
        "nlps",
        "--data",
        SAMPLE,
        "--split",
        "dev",
        "--recipe",
        "bm25",
        "--out",
        folder / "run",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_WRITER, *map(str, arguments)], stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not list(folder.iterdir()):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(getattr(signal, name))
    _, told = process.communicate(timeout=60)
    assert process.returncode != 0 and "Traceback" not in told
    if name == "SIGINT":
        assert process.returncode == 130 and told.strip() == "searchapp: interrupted"
    assert not (folder / "run").exists()
    assert all(path.name.startswith(".") for path in folder.iterdir())
    assert offline(*arguments).code == 0
    assert offline("runs", "verify", folder / "run").code == 0


IGNORING = """
import signal, sys, time
from searchapp import cli
from searchapp.tasks import names
def slow():
    print("begun", flush=True)
    time.sleep(1)
    return names()
import searchapp.tasks
searchapp.tasks.names = slow
sys.argv[1:] = ["tasks", "--json"]
cli.main()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_that_is_ignored_where_the_command_was_started_is_ignored(offline: Cli, name: str) -> None:
    """As with `nohup`, and in the background of a script."""
    signaled = getattr(signal, name)
    for ignored in (True, False):
        with subprocess.Popen(
            [sys.executable, "-c", IGNORING],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=(lambda: signal.signal(signaled, signal.SIG_IGN)) if ignored else None,
        ) as process:
            assert process.stdout is not None and process.stdout.readline() == "begun\n"
            process.send_signal(signaled)
            process.communicate(timeout=60)
        assert process.returncode == (0 if ignored else 128 + signaled)


def test_tests_that_run_where_interruptions_are_ignored_can_interrupt() -> None:
    tests = [
        f"{__file__}::{test_a_run_that_was_interrupted_is_not_there_and_can_be_made_again.__name__}[SIGINT]"
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    ignoring = (
        "import os, sys; from signal import *; signal(SIGINT, SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    result = subprocess.run(
        [sys.executable, "-c", ignoring, *command],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert result.returncode == 0 and "1 passed" in result.stdout, result.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", [["tasks"], ["tasks", "--json"]])
def test_an_output_that_is_full_is_told(offline: Cli, command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "searchapp", *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ,
        )
    assert result.returncode == 1
    assert result.stderr.endswith("searchapp: the output could not be written: no space left on device\n")
