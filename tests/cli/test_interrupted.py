"""Signals: an interrupted command leaves no incomplete run, prints one line, and can be repeated."""

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
def format_slowly(run):
    for ranking in rankings(run):
        time.sleep(0.2)
        yield ranking
trec._format_rankings = format_slowly
from searchapp.cli import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_an_interrupted_run_leaves_no_directory(offline: Cli, tmp_path: Path, name: str) -> None:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    folder = tmp_path / "runs"
    folder.mkdir()
    options = ("--data", SAMPLE, "--split", "dev", "--recipe", "bm25", "--out", folder / "run")
    arguments = ("rank", "nlps", *options)
    with Program(SLOW_WRITER, *arguments) as program:
        deadline = time.monotonic() + 60
        while not list(folder.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        program.send_signal(getattr(signal, name))
        _, stderr = program.communicate()
    assert program.returncode != 0 and "Traceback" not in stderr
    if name == "SIGINT":
        assert program.returncode == 130 and stderr.strip() == "searchapp: interrupted"
    assert not (folder / "run").exists()
    assert all(path.name.startswith(".") for path in folder.iterdir())
    assert offline(*arguments).code == 0
    assert offline("runs", "verify", folder / "run").code == 0


IGNORING = """
import signal, sys, time
if sys.argv[1:]:  # as if the parent process ignored it
    signal.signal(int(sys.argv[1]), signal.SIG_IGN)
from searchapp import cli
from searchapp.tasks import names
def names_slowly():
    print("started", flush=True)
    time.sleep(1)
    return names()
from searchapp.cli import tasks
tasks.names = names_slowly
sys.argv[1:] = ["tasks", "--json"]
cli.main()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_that_the_parent_process_ignores_is_ignored(offline: Cli, name: str) -> None:
    """With `nohup` and in the background of a script, signals are ignored."""
    number = getattr(signal, name)
    for ignored in ([int(number)], []):
        with Program(IGNORING, *ignored) as program:
            assert program.read_line() == "started"
            program.send_signal(number)
            program.wait()
        assert program.returncode == (0 if ignored else 128 + number)


ROOT = Path(__file__).parents[2]
_MODULE, _FUNCTION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][
    "searchapp"
].split(":")
SCRIPT = f"from {_MODULE} import {_FUNCTION}\n{_FUNCTION}()"
"""The script `searchapp`, as installers write it."""
MODULE = "import runpy; runpy.run_module('searchapp', run_name='__main__', alter_sys=True)"
"""The code of `python -m searchapp`."""

IMPORTING = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == slow:
            print("started", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
"""


@pytest.mark.parametrize("text", [SCRIPT, MODULE])
@pytest.mark.parametrize(
    "imported", ["searchapp.cli", "typer", "searchapp.cli.setup", "searchapp.app.doctor"]
)
def test_an_interrupt_during_imports_prints_one_line(text: str, imported: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"slow = {imported!r}{IMPORTING}{text}", "doctor"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
    assert (process.returncode, stderr) == (130, "searchapp: interrupted\n")


ENDING = f"""
import atexit, time
def exit_slowly():
    print("ending", flush=True)
    time.sleep(60)
atexit.register(exit_slowly)
{MODULE}
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_after_the_command_ends_the_program_without_a_traceback(offline: Cli, name: str) -> None:
    number = getattr(signal, name)
    with Program(ENDING, "--version") as program:
        assert program.read_line().startswith("searchapp ")
        assert program.read_line() == "ending"
        program.send_signal(number)
        _, stderr = program.communicate()
    assert "Traceback" not in stderr
    if name == "SIGINT":
        assert (program.returncode, stderr) == (130, "searchapp: interrupted\n")
    else:
        assert program.returncode == -number


def test_a_program_that_a_test_starts_can_be_interrupted() -> None:
    waiting = "import time; print('started', flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", waiting], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "started\n"
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
        stdout, stderr = program.communicate()
    assert program.returncode == 0 and "1 passed" in stdout, stdout + stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", [["tasks"], ["tasks", "--json"]])
def test_a_full_disk_for_the_output_is_reported(offline: Cli, command: list[str]) -> None:
    full = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1)"
    with Program(f"{full}; {COMMAND}", *command, environment={"PYTHONUNBUFFERED": ""}) as program:
        _, stderr = program.communicate()
    assert program.returncode == 1
    assert stderr == "searchapp: the output could not be written: no space left on device\n"
