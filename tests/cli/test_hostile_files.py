"""Every kind of file that somebody else may have written, damaged and replaced: always a sentence and its exit code."""

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
from tests.cli.hostile import damaged
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
"""The commands that read each of the files of the scene."""

SETTINGS = '[judge]\ntheme = "dark"\n\n[judge.keys]\nundo = "z"\nskip = ["n", "space"]\n'


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with one file of each kind, and a home with an index and with judgments."""
    with pytest.MonkeyPatch.context() as patch:
        base = tmp_path_factory.mktemp("prepared")
        scene = base / "scene"
        patch.setenv("SEARCHAPP_HOME", str(scene / "home"))
        shutil.copytree(OWN, scene)
        patch.chdir(scene)
        task = scene / "cooking.toml"
        task.write_text(
            task.read_text("utf-8").replace("\n[documents]", 'mapping = "mapping.json"\n\n[documents]')
        )
        mapping = resources.index_mapping("text")
        (scene / "mapping.json").write_text(json.dumps(mapping, indent=1))

        def run(*arguments: str) -> None:
            result = run_command(*arguments, typed="2\n1\n0\nq\n")
            assert result.code == 0, (arguments, result.stdout, result.stderr)

        nlps = scene / "home/data/nlps"
        shutil.copytree(SAMPLE, nlps)
        entry = {"from": "https://example.org/a", "size": 7, "sha256": "0" * 64}
        (nlps / "fetched.json").write_text(json.dumps({"files": {"dev_set.json": entry, "a.json": entry}}))
        run("index", "nlps", "--data", str(SAMPLE))
        run("index", "cooking.toml")
        run("rank", "cooking.toml", "--split", "dev", "--out", "run", "--depth", "10")
        run("export", "run", "--format", "trec", "--out", "given.trec")
        run(*JUDGE)
        run("judgments", "export", "cooking.toml", "--format", "jsonl", "--out", "events.jsonl")
        run(
            "judgments",
            "assign",
            "cooking.toml",
            "--split",
            "dev",
            "--out",
            "assignment.json",
            "--quota",
            "ann=3",
            "--quota",
            "bob=3",
        )
        (scene / "home/settings.toml").write_text(SETTINGS)
        yield scene


@pytest.fixture
def scene(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: Cli) -> Path:
    """A copy of it that may be damaged, the folder in which commands run."""
    copy = Path(shutil.copytree(prepared, tmp_path / "scene"))
    monkeypatch.chdir(copy)
    monkeypatch.setenv("SEARCHAPP_HOME", str(copy / "home"))
    return copy


def fault(result: Result) -> str | None:
    """What is wrong with how a command ended."""
    if result.code not in CODES:
        return f"exit code {result.code}"
    if "Traceback" in result.stderr or "internal error" in result.stderr:
        return result.stderr.strip().splitlines()[-1][:300]
    return None


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", READ_BY)
def test_a_file_that_was_damaged_is_a_sentence(offline: Cli, scene: Path, name: str) -> None:
    path, chance, result = scene / name, random.Random(f"{SEED} {name}"), []
    good = path.read_bytes()
    for number in range(DAMAGES):
        what, content = damaged(path, good, chance)
        path.write_bytes(content)
        for command in READ_BY[name]:
            problem = fault(offline(*command))
            if problem:
                result.append(f"{number}: {what}: {' '.join(command[:3])}: {problem}")
        path.write_bytes(good)
    assert not result, "\n".join(result)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


REPLACED: dict[str, Callable[[Path], object]] = {
    "a pipe that nobody writes to": _pipe,
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
    "a device without content": lambda path: path.symlink_to("/dev/null"),
    "a terminal": lambda path: path.symlink_to("/dev/ptmx"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "an empty file": Path.touch,
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", READ_BY)
def test_what_is_named_as_a_file_may_be_anything(offline: Cli, scene: Path, name: str) -> None:
    path, result = scene / name, []
    for what, replace in REPLACED.items() if FULL else list(REPLACED.items())[:3]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        replace(path)
        for command in READ_BY[name]:
            if problem := fault(offline(*command)):
                result.append(f"{what}: {' '.join(command)}: {problem}")
    assert not result, "\n".join(result)
