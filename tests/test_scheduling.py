"""Which test processes run which tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.scheduling import CLUSTER, LONGEST, OLDER, SECURED

ROOT = Path(__file__).parents[1]

TESTS = """
import os
import pytest

@pytest.fixture(params=["secured"])
def one():
    pass

def ran(factory, what):
    (factory.getbasetemp().parent / f"ran-{what}-{os.getpid()}").touch()

@pytest.mark.parametrize("number", range(9))
def test_with_the_one(one, number, tmp_path_factory):
    ran(tmp_path_factory, "with-the-one")

@pytest.mark.parametrize("number", range(9))
def test_of_the_file(number, tmp_path_factory, request):
    ran(tmp_path_factory, request.node.path.stem)
"""


def test_the_tests_of_a_file_stay_together_and_so_do_those_of_the_secured_node(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = elasticsearch\n", encoding="utf-8")
    names = [f"test_{letter}" for letter in "abcd"]
    for name in names:
        (tmp_path / f"{name}.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    command += ["-n", "3", "--dist", "loadfile", "--basetemp", str(tmp_path / "base"), "."]
    environment = {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "72 passed" in done.stdout, done.stdout + done.stderr
    ran = [path.name.removeprefix("ran-").rpartition("-") for path in (tmp_path / "base").glob("ran-*")]
    assert sorted(what for what, _, _ in ran) == [*names, "with-the-one"]
    assert len({process for _, _, process in ran}) == 3


def test_what_takes_long_begins_first(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = elasticsearch\n", encoding="utf-8")
    first = next(unit for unit in LONGEST if unit.endswith(".py"))
    path = tmp_path / first
    path.parent.mkdir(parents=True)
    for name, tests in ((path, 1), (tmp_path / "test_many.py", 50), (tmp_path / "test_more.py", 60)):
        lines = ["import pytest", f"@pytest.mark.parametrize('number', range({tests}))"]
        name.write_text("\n".join([*lines, "def test_one(number): pass", ""]), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    command += ["-n", "1", "--dist", "loadfile", "--basetemp", str(tmp_path / "base"), "."]
    environment = {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    passed = [line.split()[-1] for line in done.stdout.splitlines() if "PASSED" in line]
    assert len(passed) == 111, done.stdout + done.stderr
    assert passed[0].startswith(first)


def test_what_takes_long_is_there() -> None:
    assert [
        unit for unit in LONGEST if unit not in (SECURED, CLUSTER, OLDER) and not (ROOT / unit).is_file()
    ] == []
