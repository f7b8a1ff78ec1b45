"""Rankings of the real data of explanation regeneration: figures, and the same bytes on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp import tasks
from searchapp.formats.problems import Problems
from tests.cli.conftest import Cli
from tests.profile import FULL
from tests.real import RealRuns, real_data

pytestmark = pytest.mark.data


@pytest.fixture(params=["explanation-2019", "explanation-2021"])
def task(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def data(task: str) -> Path:
    """The folder of the real data."""
    return real_data(task)


def test_the_real_files_are_read_without_a_problem(task: str, data: Path) -> None:
    loaded, problems = tasks.load(task), Problems()
    facts = sum(1 for _ in loaded.collection(data).documents.read(problems))
    questions = [loaded.collection(data).check_split(split, problems) for split in ("train", "dev")]
    expected = {"explanation-2019": (4_947, [616, 121]), "explanation-2021": (9_720, [965, 210])}
    assert (facts, questions) == expected[task]
    assert not list(problems)
    noted = {"explanation-2019": {"repeated id": 3, "repeated fact": 11, "unknown fact": 1}}
    assert problems.notes is not None
    assert problems.notes.counts() == noted.get(task, {"repeated id": 7})


SHALLOW = 300
"""The depth at which the engines are compared, since full depth takes a minute."""


def test_the_dev_split_has_the_expected_figures(real_runs: RealRuns, task: str) -> None:
    minima = {"explanation-2019": (0.43, 0.49), "explanation-2021": (0.64, 0.70)}
    # Ranking all facts of 2021 takes too long and changes the figures little.
    full = {"explanation-2019": 10_000, "explanation-2021": 1_000}[task]
    depths = {"bm25": full, "neighbours": full if FULL else SHALLOW}
    for (recipe, depth), value in zip(depths.items(), minima[task], strict=True):
        official = real_runs.scored(task, "dev", recipe, "--depth", depth)["official"]
        # The official scorer of 2019 gives 0 to a question that lacks a fact; the honest figure counts a miss.
        assert official["honest"].get("MAP", official["value"]) >= value


def test_both_engines_rank_to_the_same_bytes(
    server: Cli, real_runs: RealRuns, task: str, data: Path, tmp_path: Path
) -> None:
    options = ["--data", data, "--engine", "elasticsearch"]
    assert server("index", task, *options).code == 0
    depth = ["--depth", SHALLOW]
    options += ["--split", "dev", "--recipe", "neighbours", *depth, "--out", tmp_path / "run"]
    assert server("rank", task, *options).code == 0
    embedded = real_runs.run(task, "dev", "neighbours", *depth)
    assert (embedded / "run.trec").read_bytes() == (tmp_path / "run" / "run.trec").read_bytes()
