"""The official scorer accepts runs of the best recipe of each task without `--lenient`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from searchapp import tasks
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.ranked_samples import SCORED_WITH, learning_recipes, split_of


@pytest.mark.parametrize("name", tasks.names())
def test_the_best_recipe_s_run_is_scored_and_its_official_file_valid(
    offline: Cli, name: str, tmp_path: Path
) -> None:
    task = tasks.load(name)
    data, split, out = SAMPLES / name, split_of(task), tmp_path / "run"
    assert offline("index", name, "--data", data).code == 0
    recipe = learning_recipes(task)[0]  # `best` if the task has it
    ranked = offline("rank", name, "--split", split, "--recipe", recipe, "--out", out)
    assert ranked.code == 0, ranked.stderr
    scored = offline("evaluate", out, "--json", *SCORED_WITH.get(name, []))
    assert scored.code == 0, scored.stderr
    assert math.isfinite(scored.json["official"]["value"])
    official = [
        path
        for path in sorted(out.iterdir())
        if path.is_file() and path.name not in ("run.json", "run.trec", "documents.json")
    ]
    if SCORED_WITH.get(name):  # written by `export` with the cut-off
        official = [tmp_path / "official"]
        exported = offline("export", out, "--format", "official", "--out", official[0], *SCORED_WITH[name])
        assert exported.code == 0, exported.stderr
    assert official
    options = ("--task", name, "--data", data, "--split", split, "--json", *SCORED_WITH.get(name, []))
    again = offline("evaluate", *official, *options)
    assert again.code == 0, again.stderr
    assert again.json["official"]["values"] == pytest.approx(scored.json["official"]["values"], abs=1e-12)
