"""A command that is stopped while it writes a run leaves nothing that passes for one, and can be given again."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLE, Cli
from tests.programs import COMMAND, Program

SLOW_WRITER = """
import sys, time
from searchapp.formats import trec
rankings = trec._format_rankings
def slow(run):
    for one in rankings(run):
        time.sleep(0.2)
        yield one
trec._format_rankings = slow
from searchapp.cli import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_an_interrupted_run_leaves_no_directory(offline: Cli, tmp_path: Path, name: str) -> None:
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
    with Program(SLOW_WRITER, *arguments) as program:
        deadline = time.monotonic() + 60
        while not list(folder.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        program.send_signal(getattr(signal, name))
        _, told = program.communicate()
    assert program.returncode != 0 and "Traceback" not in told
    if name == "SIGINT":
        assert program.returncode == 130 and told.strip() == "searchapp: interrupted"
    assert not (folder / "run").exists()
    assert all(path.name.startswith(".") for path in folder.iterdir())
    assert offline(*arguments).code == 0
    assert offline("runs", "verify", folder / "run").code == 0


IGNORING = """
import signal, sys, time
if sys.argv[1:]:  # as whoever starts it would have it ignored
    signal.signal(int(sys.argv[1]), signal.SIG_IGN)
from searchapp import cli
from searchapp.tasks import names
def slow():
    print("begun", flush=True)
    time.sleep(1)
    return names()
from searchapp.cli import tasks
tasks.names = slow
sys.argv[1:] = ["tasks", "--json"]
cli.main()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_that_is_ignored_where_the_command_was_started_is_ignored(offline: Cli, name: str) -> None:
    """As with `nohup`, and in the background of a script."""
    signaled = getattr(signal, name)
    for ignored in ([int(signaled)], []):
        with Program(IGNORING, *ignored) as program:
            assert program.read_line() == "begun"
            program.send_signal(signaled)
            program.wait()
        assert program.returncode == (0 if ignored else 128 + signaled)


ROOT = Path(__file__).parents[2]
_MODULE, _FUNCTION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][
    "searchapp"
].split(":")
SCRIPT = f"from {_MODULE} import {_FUNCTION}\n{_FUNCTION}()"
"""The script `searchapp`, as installers write it."""
MODULE = "import runpy; runpy.run_module('searchapp', run_name='__main__', alter_sys=True)"
"""What `python -m searchapp` does."""

IMPORTING = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == slow:
            print("begun", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
"""


@pytest.mark.parametrize("text", [SCRIPT, MODULE])
@pytest.mark.parametrize(
    "imported", ["searchapp.cli", "typer", "searchapp.cli.setup", "searchapp.app.doctor"]
)
def test_ctrl_c_ends_a_command_in_one_way_while_python_imports(text: str, imported: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"slow = {imported!r}{IMPORTING}{text}", "doctor"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert (process.returncode, told) == (130, "searchapp: interrupted\n")


ENDING = f"""
import atexit, time
def slow():
    print("ending", flush=True)
    time.sleep(60)
atexit.register(slow)
{MODULE}
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_behind_a_command_ends_the_program_without_a_traceback(offline: Cli, name: str) -> None:
    signaled = getattr(signal, name)
    with Program(ENDING, "--version") as program:
        assert program.read_line().startswith("searchapp ")
        assert program.read_line() == "ending"
        program.send_signal(signaled)
        _, told = program.communicate()
    assert "Traceback" not in told
    if name == "SIGINT":
        assert (program.returncode, told) == (130, "searchapp: interrupted\n")
    else:
        assert program.returncode == -signaled


def test_a_program_that_a_test_starts_can_be_interrupted() -> None:
    waiting = "import time; print('begun', flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", waiting], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT


TESTS_IGNORING = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--assert=plain", sys.argv[1]]))
"""


def test_tests_under_nohup_can_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    test = f"{__file__}::{test_a_program_that_a_test_starts_can_be_interrupted.__name__}"
    with Program(TESTS_IGNORING, test) as program:
        printed, complained = program.communicate()
    assert program.returncode == 0 and "1 passed" in printed, printed + complained


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", [["tasks"], ["tasks", "--json"]])
def test_an_output_that_is_full_is_told(offline: Cli, command: list[str]) -> None:
    full = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1)"
    with Program(f"{full}; {COMMAND}", *command, environment={"PYTHONUNBUFFERED": ""}) as program:
        _, told = program.communicate()
    assert program.returncode == 1
    assert told == "searchapp: the output could not be written: no space left on device\n"
