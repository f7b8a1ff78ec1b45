"""Runs are byte for byte the same on both engines and on any number of shards, for every task with every recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.ranking import recipes
from searchapp.tasks import load, names
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.ranked_samples import contents
from tests.profile import FULL
from tests.real import RealRuns, real_data

SHARDS = (1, 3, 7) if FULL else (1, 3)
TASKS = names() if FULL else ("nlps", "explanation-2019", "smart-types-dbpedia")
"""The tasks whose samples are ranked on all these numbers of shards; the others' are ranked on one."""


def splits_of(task: str) -> tuple[str, ...]:
    """Splits whose topics are ranked with and without solved ones: one for each index that the task has."""
    splits = load(task).info.splits
    if task == "checkthat":
        return splits
    return ("dev",) if "dev" in splits else splits[:1]


@pytest.mark.parametrize("task", names())
def test_samples_rank_the_same_on_any_shards(
    offline: Cli,
    elasticsearch_url: str,
    index_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    task: str,
) -> None:
    data = SAMPLES / task
    ways = {"embedded": 1} | {f"shards{count}": count for count in (SHARDS if task in TASKS else (1,))}
    every = [(recipe, split) for recipe in recipes.names(task) for split in splits_of(task)]
    for way, shards in ways.items():
        if way != "embedded":
            monkeypatch.setenv("SEARCHAPP_URL", elasticsearch_url)
            monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", index_prefix)
        result = offline("index", task, "--data", data, "--shards", shards, "--json")
        assert (result.code, result.json["shards"]) == (0, shards)
        for recipe, split in every:
            out = tmp_path / way / recipe / split
            made = offline("rank", task, "--split", split, "--recipe", recipe, "--out", out)
            assert made.code == 0 and "may rank differently" not in made.stderr, made.stderr
    for recipe, split in every:
        runs = {way: dict(contents(tmp_path / way / recipe / split)) for way in ways}
        assert runs["embedded"]["run.trec"]
        assert [way for way in ways if runs[way] != runs["embedded"]] == [], (recipe, split)


if FULL:  # the short profile ranks a part of these topics on seven shards: tests/cli/test_real_data.py

    @pytest.mark.data
    @pytest.mark.parametrize("shards", SHARDS)
    def test_real_data_rank_the_same_on_any_shards(
        server: Cli, real_runs: RealRuns, tmp_path: Path, shards: int
    ) -> None:
        """All dev topics of nlps, with every recipe."""
        task = "nlps"
        assert server("index", task, "--data", real_data(task), "--shards", shards).code == 0
        for recipe in recipes.names(load(task).recipe_book()):
            out = tmp_path / recipe
            result = server("rank", task, "--split", "dev", "--recipe", recipe, "--out", out)
            assert result.code == 0, result.stderr
            embedded = real_runs.run(task, "dev", recipe)
            assert (out / "run.trec").read_bytes() == (embedded / "run.trec").read_bytes()
