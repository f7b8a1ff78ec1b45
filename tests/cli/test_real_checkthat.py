"""The main job on the real debates of the task checkthat: what is promised of its quality and bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from searchapp.formats.debates import read_debate
from searchapp.formats.problems import Problems
from tests.cli.conftest import Cli
from tests.profile import FULL
from tests.real import RealRuns, real_data

pytestmark = pytest.mark.data


@pytest.fixture
def data() -> Path:
    """The folder of the real debates."""
    return real_data("checkthat")


def test_every_real_debate_is_read_without_a_problem(data: Path) -> None:
    problems = Problems()
    paths = sorted((data / "training").glob("*.tsv"))
    lines = [line for path in paths for line in read_debate(path, problems)]
    assert (len(paths), len(lines), sum(line.label for line in lines)) == (19, 16_421, 440)
    assert not list(problems)


def test_the_training_debates_are_ranked_well(offline: Cli, real_runs: RealRuns) -> None:
    run = real_runs.run("checkthat", "training", "bm25")
    # One debate has 44 lines, fewer than P@50 needs.
    refused = offline("evaluate", run)
    assert refused.code == 4 and "IndexError: list index out of range" in refused.stderr
    scored = offline("evaluate", run, "--lenient", "--json").json["official"]
    # 98 % of what docs/checkthat.md documents.
    assert scored["values"]["MAP"] >= 0.98 * 0.2303
    assert scored["honest"] == {}


DOCUMENTED = {"bm25": 0.2303, "neighbours": 0.2642} if FULL else {"bm25": 0.2303}
"""MAP of all debates by recipe. By neighbours the short profile ranks one debate only, see below."""


@pytest.mark.parametrize(("recipe", "documented"), DOCUMENTED.items())
def test_the_figures_are_the_documented_ones(
    offline: Cli, real_runs: RealRuns, recipe: str, documented: float
) -> None:
    run = real_runs.run("checkthat", "training", recipe)
    official = offline("evaluate", run, "--lenient", "--json").json["official"]
    assert round(official["values"]["MAP"], 4) == documented


DEBATES = None if FULL else 2
"""How many of the training debates are ranked with test debates beside them."""


@pytest.mark.parametrize("recipe", ["bm25", "neighbours"])
def test_the_ranking_does_not_depend_on_test_debates(
    offline: Cli, data: Path, tmp_path: Path, recipe: str
) -> None:
    folder, runs = tmp_path / "data", []
    (folder / "training").mkdir(parents=True)
    for path in sorted((data / "training").glob("*.tsv"))[:DEBATES]:
        shutil.copy(path, folder / "training")
    for name in ("without", "beside"):
        if name == "beside":
            (folder / "test_annotated").mkdir()
            for debate in ("20160226_10_gop", "20170315_nashville"):
                shutil.copy(
                    data / "training" / f"{debate}.tsv", folder / "test_annotated" / f"again_{debate}.tsv"
                )
        assert offline("index", "checkthat", "--data", folder).code == 0
        options = ["--data", folder, "--split", "training", "--recipe", recipe, "--out", tmp_path / name]
        assert offline("rank", "checkthat", *options).code == 0
        runs.append((tmp_path / name / "run.trec").read_bytes())
    assert runs[0] == runs[1]


def test_a_debate_is_ranked_well_by_its_neighbours_and_the_same_on_both_engines(
    server: Cli, real_runs: RealRuns, data: Path, tmp_path: Path
) -> None:
    options = ["--data", data, "--engine", "elasticsearch"]
    assert server("index", "checkthat", *options).code == 0
    split, recipe = "20181112_trump_pelosi", "neighbours"
    options += ["--split", split, "--recipe", recipe, "--out", tmp_path / "run"]
    assert server("rank", "checkthat", *options).code == 0
    made = [real_runs.run("checkthat", split, recipe), tmp_path / "run"]
    assert (made[0] / "run.trec").read_bytes() == (made[1] / "run.trec").read_bytes()
    official = made[0] / "20181112_trump_pelosi.tsv"
    assert official.read_bytes() == (made[1] / official.name).read_bytes()
    of_run = server("evaluate", made[0], "--json").json
    assert of_run["official"]["values"]["AP"] >= 0.40
    options = ["--task", "checkthat", "--data", data, "--split", "20181112_trump_pelosi"]
    assert server("validate", official, *options).code == 0
    of_file = server("evaluate", official, *options, "--json").json
    assert of_file["official"] == of_run["official"] and of_file["measures"] == of_run["measures"]
