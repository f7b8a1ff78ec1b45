"""A full disk and a lack of descriptors or memory are reported, and no earlier file is lost."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from searchapp.cli.commands import guarded
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import Cli
from tests.profile import FULL
from tests.programs import COMMAND, Program

EVERY = 1 if FULL else 2
"""The short profile tries every second limit."""

LIMITED = """
import resource, sys
kind, limit = int(sys.argv.pop(1)), int(sys.argv.pop(1))
resource.setrlimit(kind, (limit, limit))
"""

TASK = 'name = "many"\n\n[documents]\nfile = "many.jsonl"\n'


@pytest.fixture
def task(tmp_path: Path, offline: Cli) -> Path:
    """An indexed task whose index has files of different sizes up to about 30 KiB."""
    words = [f"w{number}" for number in range(997)]
    with (tmp_path / "many.jsonl").open("w") as file:
        for number in range(600):
            text = " ".join(words[number * step % 997] for step in range(30))
            file.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
    path = tmp_path / "many.toml"
    path.write_text(TASK)
    assert offline("index", path).code == 0
    return path


@dataclass(frozen=True)
class ProcessResult:
    returncode: int
    stdout: str
    stderr: str


def run_limited(kind: int, limit: int, *command: object) -> ProcessResult:
    """Run a command with a limit of a resource."""
    with Program(LIMITED + COMMAND, kind, limit, *command) as program:
        output = program.communicate()
        return ProcessResult(program.wait(), *output)


def run_limited_from_start(kind: int, limit: int, *command: object) -> ProcessResult:
    """As `run_limited`, in a new Python whose imports are limited as well."""
    result = subprocess.run(
        [sys.executable, "-m", "searchapp", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(kind, (limit, limit)),
    )
    return ProcessResult(result.returncode, result.stdout, result.stderr)


def file_sizes(folder: Path) -> dict[str, int]:
    return {
        str(file): file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.name != "lock"
    }


@pytest.mark.parametrize("limit", [1, 2_000, 5_000, 9_000, 15_000, 30_000][::EVERY])
def test_a_full_disk_does_not_affect_the_live_index(
    offline: Cli, task: Path, tmp_path: Path, limit: int
) -> None:
    """Limit the size of files, so that at each limit another file does not fit."""
    before = file_sizes(tmp_path / "home")
    built = run_limited(resource.RLIMIT_FSIZE, limit, "index", task, "--rebuild")
    assert built.returncode == 1, built.stderr
    assert "could not be written: " in built.stderr and "internal error" not in built.stderr
    assert file_sizes(tmp_path / "home") == before
    assert offline("search", task, "w3 w7", "--json").json["hits"]
    assert offline("index", task, "--rebuild").code == 0


def test_few_descriptors_suffice_to_search_and_index(task: Path) -> None:
    searched = run_limited(resource.RLIMIT_NOFILE, 64, "search", task, "w3 w7", "--json")
    assert searched.returncode == 0, searched.stderr
    assert json.loads(searched.stdout)["hits"]
    assert run_limited(resource.RLIMIT_NOFILE, 64, "index", task, "--rebuild").returncode == 0


@pytest.mark.parametrize("limit", range(4, 20, 3)[::EVERY])
def test_too_few_descriptors_are_not_reported_as_damage(offline: Cli, task: Path, limit: int) -> None:
    for command in (["search", task, "w3 w7"], ["index", task, "--rebuild"]):
        result = run_limited_from_start(resource.RLIMIT_NOFILE, limit, *command)
        assert "damaged" not in result.stderr and "internal error" not in result.stderr
    assert offline("search", task, "w3 w7", "--json").json["hits"]


@pytest.mark.parametrize(
    "error",
    [MemoryError(), OSError(12, "Cannot allocate memory"), RuntimeError("can't start new thread")],
    ids=repr,
)
def test_a_lack_of_memory_is_reported(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise error

    assert guarded(fail, verbose=False) == 1
    assert capsys.readouterr().err.startswith("searchapp: not enough memory: ")


def test_a_backup_that_does_not_fit_is_reported_and_removed(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.sqlite", tmp_path / "backups"
    folder.mkdir()
    with JudgmentLog(log) as events:
        events.append(
            [Author("ann").event("nlps", "t", f"d{number}", Action.grade, grade=1) for number in range(1000)]
        )
    copy = folder / "monday.sqlite"
    backup = run_limited(resource.RLIMIT_FSIZE, 60_000, "judgments", "backup", copy, "--log", log)
    assert backup.returncode == 1
    assert backup.stderr.startswith(f"searchapp: {copy} can't be written: ")
    assert "no partial file remains" in backup.stderr and str(log) not in backup.stderr
    assert not list(folder.iterdir())
    assert (
        run_limited(resource.RLIMIT_FSIZE, 10**9, "judgments", "backup", copy, "--log", log).returncode == 0
    )
