"""Test processes are forks of a process that has imported the tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_scheduling import run_pytest
from tests.workers import JOIN, serve

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="xdist starts processes without forks on this system"
)

CONFTEST = """
from pathlib import Path
import pytest
from tests.workers import fork_workers

@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    if session.config.option.numprocesses:
        fork_workers(session.config, sorted(Path(__file__).parent.glob("test_*.py")))
"""

DYING = """
import os, signal
from pathlib import Path

HERE = Path(__file__).parent
(HERE / f"imported-{Path(__file__).stem}-{os.getpid()}").touch()

def test_first():
    (HERE / f"ran-{os.getpid()}").touch()
    if __file__.endswith("a.py") and not (HERE / "dead").exists():
        (HERE / "dead").touch()
        os.kill(os.getpid(), signal.SIGKILL)

def test_second():
    assert os.environ["PYTEST_XDIST_WORKER"]
"""


def test_processes_and_their_replacements_have_the_tests_imported(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n", encoding="utf-8")
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    for letter in "abc":
        (tmp_path / f"test_{letter}.py").write_text(DYING, encoding="utf-8")
    done = run_pytest(tmp_path, "-q", "-n", "2")
    assert "1 failed, 6 passed" in done.stdout, done.stdout + done.stderr
    imported = [path.name.rpartition("-") for path in tmp_path.glob("imported-*")]
    assert sorted(name for name, _, _ in imported) == [f"imported-test_{letter}" for letter in "abc"]
    assert len({process for _, _, process in imported}) == 1
    assert len(list(tmp_path.glob("ran-*"))) == 3, "two processes and one replacement"


def test_errors_of_imports_are_reported(tmp_path: Path) -> None:
    ini = "[pytest]\naddopts = --import-mode=importlib --strict-markers\nfilterwarnings = error\n"
    (tmp_path / "pytest.ini").write_text(ini, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    texts = {
        "a": "raise ValueError('invalid value')",
        "b": "import warnings; warnings.warn('deprecated')",
        "c": "import pytest; pytestmark = pytest.mark.misspelt",
        "d": "def test_first(): pass",
    }
    for letter, text in texts.items():
        (tmp_path / f"test_{letter}.py").write_text(f"{text}\n", encoding="utf-8")
    done = run_pytest(tmp_path, "-q", "-n", "1")
    for message in ("invalid value", "UserWarning: deprecated", "'misspelt' not found", "3 errors"):
        assert message in done.stdout, done.stdout + done.stderr


def test_a_fork_ends_with_the_program_that_joined_for_it(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(tmp_path / "line"))
        line.listen()
        ended, alive = os.pipe()
        if (pid := os.fork()) == 0:
            os.close(alive)
            serve(line, ended, signal.SIG_DFL)
            os._exit(0)
    text = "import time; print('runs', flush=True); time.sleep(60)"
    command = [sys.executable, "-S", "-E", "-c", JOIN, str(tmp_path / "line"), "-u", "-c", text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "runs\n"
        program.kill()
        assert program.stdout.read() == "", "the fork still has the output open"
    os.close(ended)
    os.close(alive)
    assert os.waitpid(pid, 0)[1] == 0
