"""Assignment of tests to test processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.scheduling import CLUSTER, LONGEST, OLDER, SECURED, pytest_xdist_make_scheduler

ROOT = Path(__file__).parents[1]

TESTS = """
import os
import pytest

@pytest.fixture(params=["secured"])
def node():
    pass

def record(factory, name):
    (factory.getbasetemp().parent / f"ran-{name}-{os.getpid()}").touch()

@pytest.mark.parametrize("number", range(9))
def test_on_the_node(node, number, tmp_path_factory):
    record(tmp_path_factory, "on-the-node")

@pytest.mark.parametrize("number", range(9))
def test_of_the_file(number, tmp_path_factory, request):
    record(tmp_path_factory, request.node.path.stem)
"""


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder in several processes without unnecessary plugins."""
    if not (folder / "pytest.ini").exists():
        (folder / "pytest.ini").write_text("[pytest]\nmarkers = elasticsearch\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", "-p", "xdist"]
    command += ["-p", "tests.scheduling", "--dist", "loadfile", "--basetemp", str(folder / "base"), "."]
    environment = {"PATH": str(folder), "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_tests_of_a_file_and_those_of_the_secured_node_run_in_one_process_each(tmp_path: Path) -> None:
    names = [f"test_{letter}" for letter in "abcd"]
    for name in names:
        (tmp_path / f"{name}.py").write_text(TESTS, encoding="utf-8")
    done = run_pytest(tmp_path, "-q", "-n", "3")
    assert "72 passed" in done.stdout, done.stdout + done.stderr
    ran = [path.name.removeprefix("ran-").rpartition("-") for path in (tmp_path / "base").glob("ran-*")]
    assert sorted(name for name, _, _ in ran) == ["on-the-node", *names]
    assert len({process for _, _, process in ran}) == 3


def test_long_units_start_first(tmp_path: Path) -> None:
    first = next(unit for unit in LONGEST if unit.endswith(".py"))
    path = tmp_path / first
    path.parent.mkdir(parents=True)
    for name, tests in ((path, 1), (tmp_path / "test_many.py", 50), (tmp_path / "test_more.py", 60)):
        lines = ["import pytest", f"@pytest.mark.parametrize('number', range({tests}))"]
        name.write_text("\n".join([*lines, "def test_number(number): pass", ""]), encoding="utf-8")
    done = run_pytest(tmp_path, "-v", "-n", "1")
    passed = [line.split()[-1] for line in done.stdout.splitlines() if "PASSED" in line]
    assert len(passed) == 111, done.stdout + done.stderr
    assert passed[0].startswith(first)


DYING = """
import os
import signal
import time
from pathlib import Path

HERE = Path(__file__).parent
WORKER = os.environ.get("PYTEST_XDIST_WORKER")

if WORKER == "gw2":  # the first replacement
    (HERE / "replaced").touch()
    while not (HERE / "dead-b").exists():
        time.sleep(0.01)
    time.sleep(0.5)  # until xdist has noticed it

def test_first():
    name = Path(__file__).stem[-1]
    while name == "b" and not (HERE / "replaced").exists():
        time.sleep(0.01)
    if not (HERE / f"dead-{name}").exists():
        (HERE / f"dead-{name}").touch()
        os.kill(os.getpid(), signal.SIGKILL)

def test_second():
    pass
"""


def test_a_process_that_dies_is_replaced_also_while_another_is_replaced(tmp_path: Path) -> None:
    for letter in "ab":
        (tmp_path / f"test_{letter}.py").write_text(DYING, encoding="utf-8")
    for letter in "cd":
        (tmp_path / f"test_{letter}.py").write_text("def test_first(): pass\n", encoding="utf-8")
    done = run_pytest(tmp_path, "-q", "-n", "2")
    assert done.returncode == 1 and "INTERNALERROR" not in done.stdout, done.stdout + done.stderr
    assert "2 failed, 6 passed" in done.stdout, (
        "the death of a process fails its test; the test passes in the replacement"
    )


def test_the_scheduler_is_registered(pytestconfig: pytest.Config) -> None:
    hooks = pytestconfig.hook.pytest_xdist_make_scheduler.get_hookimpls()
    assert pytest_xdist_make_scheduler in [hook.function for hook in hooks]


def test_the_files_of_long_units_exist() -> None:
    files = [unit for unit in LONGEST if unit not in (SECURED, CLUSTER, OLDER)]
    assert [file for file in files if not (ROOT / file).is_file()] == []
