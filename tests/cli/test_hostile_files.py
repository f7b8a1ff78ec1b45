"""Files of every kind, damaged at random or replaced by devices and folders, cause no crash of any command."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from searchapp import resources
from tests.cli.conftest import SAMPLE, SAMPLES, Cli, Result, run_command
from tests.cli.hostile import damage
from tests.profile import FULL

OWN = SAMPLES / "own"
SEED = 20260101
DAMAGES = 300 if FULL else 6
CODES = {0, 1, 2, 3, 4}

Commands = list[list[str]]

RANK = ["rank", "cooking.toml", "--split", "dev", "--out", "again", "--overwrite"]
JUDGE = ["judge", "cooking.toml", "--run", "run", "--annotator", "ann", "--plain"]
OF_TASK: Commands = [
    ["index", "cooking.toml"],
    RANK,
    ["tasks", "show", "cooking.toml"],
    ["evaluate", "run"],
]
OF_RUN: Commands = [
    ["runs", "verify", "run"],
    ["evaluate", "run", "--json"],
    ["export", "run", "--out", "copy.trec", "--overwrite"],
    ["judgments", "pool", "run", "--depth", "3", "--out", "pool", "--overwrite"],
    JUDGE,
]
READ_BY: dict[str, Commands] = {
    "cooking.toml": [
        *OF_TASK,
        ["search", "cooking.toml", "soup"],
        ["analyze", "cooking.toml", "soup"],
        ["tasks"],
    ],
    "recipes.jsonl": [["index", "cooking.toml"]],
    "mapping.json": [["index", "cooking.toml", "--rebuild"], ["search", "cooking.toml", "soup"]],
    "half.json": [[*RANK, "--recipe", "half"], ["tasks", "show", "cooking.toml"]],
    "questions.tsv": OF_TASK,
    "gold.txt": [["index", "cooking.toml"], ["evaluate", "run"], ["evaluate", "run", "--qrels", "gold.txt"]],
    "train.tsv": [["index", "cooking.toml"], [*RANK, "--recipe", "neighbours"]],
    "train-gold.csv": [["index", "cooking.toml"], [*RANK, "--recipe", "neighbours"]],
    "run/run.json": OF_RUN,
    "run/run.trec": OF_RUN,
    "given.trec": [
        ["validate", "given.trec", "--task", "cooking.toml", "--split", "dev"],
        ["evaluate", "given.trec", "--task", "cooking.toml", "--split", "dev"],
        ["evaluate", "given.trec", "--qrels", "gold.txt"],
    ],
    "events.jsonl": [
        ["judgments", "import", "cooking.toml", "events.jsonl"],
        ["judgments", "stats", "cooking.toml"],
    ],
    "assignment.json": [[*JUDGE, "--assignment", "assignment.json"]],
    "home/settings.toml": [JUDGE],
    "home/folders.json": [["tasks"], ["index", "cooking.toml"], ["doctor"]],
    "home/data/nlps/fetched.json": [["data", "list"], ["data", "verify", "nlps"], ["tasks"]],
}
"""The commands that read each file of the workspace."""

SETTINGS = '[judge]\ntheme = "dark"\n\n[judge.keys]\nundo = "z"\nskip = ["n", "space"]\n'


@pytest.fixture(scope="module")
def prepared_workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with one file of each kind, and a home directory with an index and judgments."""
    with pytest.MonkeyPatch.context() as patch:
        base = tmp_path_factory.mktemp("prepared")
        workspace = base / "scene"
        patch.setenv("SEARCHAPP_HOME", str(workspace / "home"))
        shutil.copytree(OWN, workspace)
        patch.chdir(workspace)
        task = workspace / "cooking.toml"
        task.write_text(
            task.read_text("utf-8").replace("\n[documents]", 'mapping = "mapping.json"\n\n[documents]')
        )
        mapping = resources.index_mapping("text")
        (workspace / "mapping.json").write_text(json.dumps(mapping, indent=1))

        def run(*arguments: str) -> None:
            result = run_command(*arguments, typed="2\n1\n0\nq\n")
            assert result.code == 0, (arguments, result.stdout, result.stderr)

        nlps = workspace / "home/data/nlps"
        shutil.copytree(SAMPLE, nlps)
        entry = {"from": "https://example.org/a", "size": 7, "sha256": "0" * 64}
        (nlps / "fetched.json").write_text(json.dumps({"files": {"dev_set.json": entry, "a.json": entry}}))
        run("index", "nlps", "--data", str(SAMPLE))
        run("index", "cooking.toml")
        run("rank", "cooking.toml", "--split", "dev", "--out", "run", "--depth", "10")
        run("export", "run", "--format", "trec", "--out", "given.trec")
        run(*JUDGE)
        run("judgments", "export", "cooking.toml", "--format", "jsonl", "--out", "events.jsonl")
        quotas = ("--quota", "ann=3", "--quota", "bob=3")
        run("judgments", "assign", "cooking.toml", "--split", "dev", "--out", "assignment.json", *quotas)
        (workspace / "home/settings.toml").write_text(SETTINGS)
        yield workspace


@pytest.fixture
def workspace(
    prepared_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: Cli
) -> Path:
    """A copy of the prepared folder, as the working folder of commands."""
    copy = Path(shutil.copytree(prepared_workspace, tmp_path / "scene"))
    monkeypatch.chdir(copy)
    monkeypatch.setenv("SEARCHAPP_HOME", str(copy / "home"))
    return copy


def fault(result: Result) -> str | None:
    """Describe a crash or an undocumented exit code of a command."""
    if result.code not in CODES:
        return f"exit code {result.code}"
    if "Traceback" in result.stderr or "internal error" in result.stderr:
        return result.stderr.strip().splitlines()[-1][:300]
    return None


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", READ_BY)
def test_random_damage_crashes_no_command(offline: Cli, workspace: Path, name: str) -> None:
    path, chance, faults = workspace / name, random.Random(f"{SEED} {name}"), []
    good = path.read_bytes()
    for number in range(DAMAGES):
        description, content = damage(path, good, chance)
        path.write_bytes(content)
        for command in READ_BY[name]:
            if problem := fault(offline(*command)):
                faults.append(f"{number}: {description}: {' '.join(command[:3])}: {problem}")
        path.write_bytes(good)
    assert not faults, "\n".join(faults)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


REPLACEMENTS: dict[str, Callable[[Path], object]] = {
    "a pipe without a writer": _pipe,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
    "an empty device": lambda path: path.symlink_to("/dev/null"),
    "a terminal": lambda path: path.symlink_to("/dev/ptmx"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "an empty file": Path.touch,
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", READ_BY)
def test_devices_and_folders_in_place_of_a_file_crash_no_command(
    offline: Cli, workspace: Path, name: str
) -> None:
    path, faults = workspace / name, []
    for description, replace in list(REPLACEMENTS.items())[: None if FULL else 3]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        replace(path)
        for command in READ_BY[name]:
            if problem := fault(offline(*command)):
                faults.append(f"{description}: {' '.join(command)}: {problem}")
    assert not faults, "\n".join(faults)
