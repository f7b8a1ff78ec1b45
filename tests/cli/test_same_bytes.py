"""The same seed produces the same bytes: on both engines, in two processes, with one worker and with two.

Recipes that learn are trained and rank once in another process, with one processor and one thread, and once in this
process with two workers, which share even the smallest batches of topics. The short profile has one recipe for each
task on the samples, the full one all recipes that learn, and the real data.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from searchapp import tasks
from searchapp.engines import embedded
from tests.cli import ranked_samples, test_shards
from tests.cli.conftest import SAMPLES, Cli
from tests.profile import FULL
from tests.real import FOLDERS, real_data

THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


def recipes_of(task: str) -> list[str]:
    result = ranked_samples.learning_recipes(tasks.load(task))
    assert result
    return result if FULL else result[:1]


def rank_in_process(folder: Path, *samples: tuple[str, str, Path]) -> Path:
    """Rank in another process with one worker; its folder has run directories, and models in `home`."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("SEARCHAPP_")}
    environ |= THREADS | {"SEARCHAPP_HOME": str(folder / "home"), "PYTHONHASHSEED": "7"}
    words = [":".join(map(str, sample)) for sample in samples]
    command = [sys.executable, "-m", "tests.cli.ranked_samples", str(folder), "1", *words]
    result = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def other_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of the samples from another process."""
    samples = [(task, recipe, SAMPLES / task) for task in tasks.names() for recipe in recipes_of(task)]
    return rank_in_process(tmp_path_factory.mktemp("runs"), *samples)


def require_same(
    run: Cli, task: str, recipe: str, data: Path, engine: str, other_runs: Path, tmp_path: Path
) -> None:
    """Train and rank in this process with two workers, and compare every file with the other process."""
    out = tmp_path / engine / recipe

    def command(arguments: Sequence[object]) -> None:
        result = run(*arguments, "--engine", engine)
        assert result.code == 0, result.stderr

    command(["index", task, "--data", data])
    ranked_samples.rank(command, tasks.load(task), data, recipe, 2, out)
    expected = dict(ranked_samples.contents(other_runs / f"{task}-{recipe}"))
    assert "run.trec" in expected
    assert dict(ranked_samples.contents(out)) == expected
    models = dict(ranked_samples.contents(other_runs / "home" / "models"))
    for name, content in ranked_samples.contents(tmp_path / "home" / "models"):
        assert models[name] == content


def engines_and_tasks() -> Iterator[ParameterSet]:
    """Yield all samples for the embedded engine; for the server in the short profile those not in `test_shards`."""
    for task in tasks.names():
        yield pytest.param("embedded", task)
        if FULL or task not in test_shards.TASKS:
            yield pytest.param("elasticsearch", task, marks=pytest.mark.elasticsearch)


@pytest.mark.parametrize(("engine", "task"), list(engines_and_tasks()))
def test_samples_rank_to_the_same_bytes(
    request: pytest.FixtureRequest,
    engine: str,
    task: str,
    other_runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run: Cli = request.getfixturevalue("offline" if engine == "embedded" else "server")
    monkeypatch.setattr(embedded, "BATCH_BODIES", 1)
    for recipe in recipes_of(task):
        require_same(run, task, recipe, SAMPLES / task, engine, other_runs, tmp_path)


@pytest.mark.data
@pytest.mark.elasticsearch
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not FULL, reason="training takes minutes; the samples are ranked above")
@pytest.mark.parametrize("task", FOLDERS)
def test_the_real_data_are_ranked_to_the_same_bytes(server: Cli, task: str, tmp_path: Path) -> None:
    data = real_data(task)
    recipes = recipes_of(task)[:1]
    runs = rank_in_process(tmp_path / "runs", *((task, recipe, data) for recipe in recipes))
    for engine in ("embedded", "elasticsearch"):
        for recipe in recipes:
            require_same(server, task, recipe, data, engine, runs, tmp_path)
