"""Disk, descriptors or memory run out: a sentence that says which, and nothing that was there before is lost."""

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
what, limit = int(sys.argv.pop(1)), int(sys.argv.pop(1))
resource.setrlimit(what, (limit, limit))
"""

TASK = 'name = "many"\n\n[documents]\nfile = "many.jsonl"\n'


@pytest.fixture
def task(tmp_path: Path, offline: Cli) -> Path:
    """A task whose index has files of different sizes, the largest of some 100 KiB, indexed."""
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
class Done:
    returncode: int
    stdout: str
    stderr: str


def limited(what: int, limit: int, *command: object) -> Done:
    """What a command does that may have no more than this of something."""
    with Program(LIMITED + COMMAND, what, limit, *command) as program:
        said = program.communicate()
        return Done(program.wait(), *said)


def limited_from_the_start(what: int, limit: int, *command: object) -> Done:
    """As `limited`, of a new Python, which has no more for what it imports either."""
    result = subprocess.run(
        [sys.executable, "-m", "searchapp", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(what, (limit, limit)),
    )
    return Done(result.returncode, result.stdout, result.stderr)


def everything(folder: Path) -> dict[str, int]:
    return {
        str(file): file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.name != "lock"
    }


@pytest.mark.parametrize("limit", [1, 3000, 9000, 17000, 40000, 90000][::EVERY])
def test_a_full_disk_leaves_the_serving_index(offline: Cli, task: Path, tmp_path: Path, limit: int) -> None:
    """Files that may not grow: it is another file that does not fit at each size."""
    before = everything(tmp_path / "home")
    built = limited(resource.RLIMIT_FSIZE, limit, "index", task, "--rebuild")
    assert built.returncode == 1, built.stderr
    assert "could not be written: " in built.stderr and "internal error" not in built.stderr
    assert everything(tmp_path / "home") == before
    assert offline("search", task, "w3 w7", "--json").json["hits"]
    assert offline("index", task, "--rebuild").code == 0


def test_few_descriptors_are_enough_to_search_and_to_rank(task: Path) -> None:
    searched = limited(resource.RLIMIT_NOFILE, 64, "search", task, "w3 w7", "--json")
    assert searched.returncode == 0, searched.stderr
    assert json.loads(searched.stdout)["hits"]
    assert limited(resource.RLIMIT_NOFILE, 64, "index", task, "--rebuild").returncode == 0


@pytest.mark.parametrize("limit", range(4, 20, 3)[::EVERY])
def test_too_few_descriptors_are_not_taken_for_damage(offline: Cli, task: Path, limit: int) -> None:
    for command in (["search", task, "w3 w7"], ["index", task, "--rebuild"]):
        result = limited_from_the_start(resource.RLIMIT_NOFILE, limit, *command)
        assert "damaged" not in result.stderr and "internal error" not in result.stderr
    assert offline("search", task, "w3 w7", "--json").json["hits"]


@pytest.mark.parametrize(
    "error",
    [MemoryError(), OSError(12, "Cannot allocate memory"), RuntimeError("can't start new thread")],
    ids=repr,
)
def test_a_lack_of_memory_is_a_sentence(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def lacking() -> None:
        raise error

    assert guarded(lacking, verbose=False) == 1
    assert capsys.readouterr().err.startswith("searchapp: not enough memory: ")


def test_a_backup_that_does_not_fit_names_itself_and_leaves_nothing(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.sqlite", tmp_path / "backups"
    folder.mkdir()
    with JudgmentLog(log) as opened:
        opened.append(
            [Author("ann").event("nlps", "t", f"d{number}", Action.grade, grade=1) for number in range(1000)]
        )
    copy = folder / "monday.sqlite"
    backup = limited(resource.RLIMIT_FSIZE, 60_000, "judgments", "backup", copy, "--log", log)
    assert backup.returncode == 1
    assert backup.stderr.startswith(f"searchapp: {copy} can't be written: ")
    assert "no partial file remains" in backup.stderr and str(log) not in backup.stderr
    assert not list(folder.iterdir())
    assert limited(resource.RLIMIT_FSIZE, 10**9, "judgments", "backup", copy, "--log", log).returncode == 0
