"""Runs have the same bytes on both engines and on any number of shards, for every task and recipe."""

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
"""The tasks whose samples are ranked on all numbers of shards; other samples are ranked on one shard."""


def splits_of(task: str) -> tuple[str, ...]:
    """Return splits that use every index of the task."""
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
    engines = {"embedded": 1} | {f"shards{count}": count for count in (SHARDS if task in TASKS else (1,))}
    rankings = [(recipe, split) for recipe in recipes.names(task) for split in splits_of(task)]
    for engine, shards in engines.items():
        if engine != "embedded":
            monkeypatch.setenv("SEARCHAPP_URL", elasticsearch_url)
            monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", index_prefix)
        result = offline("index", task, "--data", data, "--shards", shards, "--json")
        assert (result.code, result.json["shards"]) == (0, shards)
        for recipe, split in rankings:
            out = tmp_path / engine / recipe / split
            ranked = offline("rank", task, "--split", split, "--recipe", recipe, "--out", out)
            assert ranked.code == 0 and "may rank differently" not in ranked.stderr, ranked.stderr
    for recipe, split in rankings:
        runs = {engine: dict(contents(tmp_path / engine / recipe / split)) for engine in engines}
        assert runs["embedded"]["run.trec"]
        assert [engine for engine in engines if runs[engine] != runs["embedded"]] == [], (recipe, split)


if FULL:  # the short profile ranks a part of these topics on seven shards: tests/cli/test_real_data.py

    @pytest.mark.data
    @pytest.mark.parametrize("shards", SHARDS)
    def test_real_data_rank_the_same_on_any_shards(
        server: Cli, real_runs: RealRuns, tmp_path: Path, shards: int
    ) -> None:
        """Rank all dev topics of nlps with every recipe."""
        task = "nlps"
        assert server("index", task, "--data", real_data(task), "--shards", shards).code == 0
        for recipe in recipes.names(load(task).recipe_book()):
            out = tmp_path / recipe
            result = server("rank", task, "--split", "dev", "--recipe", recipe, "--out", out)
            assert result.code == 0, result.stderr
            embedded = real_runs.run(task, "dev", recipe)
            assert (out / "run.trec").read_bytes() == (embedded / "run.trec").read_bytes()
