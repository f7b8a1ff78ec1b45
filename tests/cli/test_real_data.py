"""The main job on the real data of the task nlps: what is promised of its quality, order and bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


@pytest.fixture
def rank_dev(server: Cli, nlps_data: Path, tmp_path: Path) -> Callable[..., Path]:
    """Indexes the real data, on an engine and a number of shards, and ranks its dev split."""

    def make(name: str, engine: str, shards: int = 1) -> Path:
        options = ["--data", nlps_data, "--engine", engine]
        indexed = server("index", "nlps", *options, "--shards", shards)
        assert indexed.code == 0, indexed.stderr
        out = tmp_path / name
        ranked = server("rank", "nlps", *options, "--split", "dev", "--recipe", "bm25", "--out", out)
        assert ranked.code == 0, ranked.stderr
        return out

    return make


def test_the_dev_split_is_ranked_well_and_the_same_on_both_engines_and_any_number_of_shards(
    server: Cli, nlps_data: Path, rank_dev: Callable[..., Path], tmp_path: Path
) -> None:
    run = rank_dev("one", "elasticsearch")
    rows = [line.split() for line in (run / "run.trec").read_text().splitlines()]
    assert len(rows) == 1913 * 500
    assert all(topic != document for topic, _q0, document, *_rest in rows)

    scored = server("evaluate", run, "--json", "--per-topic").json
    assert scored["official"]["measure"] == "MAP@500"
    assert scored["official"]["value"] >= 0.150
    assert scored["measures"]["AP"] >= 0.125

    exported = tmp_path / "predict.txt"
    assert server("export", run, "--format", "official", "--out", exported).code == 0
    options = ["--task", "nlps", "--data", nlps_data, "--split", "dev"]
    assert server("validate", exported, *options).code == 0
    of_file = server("evaluate", exported, *options, "--json", "--per-topic").json
    assert of_file["official"] == scored["official"]
    assert of_file["measures"] == scored["measures"]
    assert of_file["per_topic"] == scored["per_topic"]

    again = rank_dev("again", "elasticsearch")
    sharded = rank_dev("three", "elasticsearch", shards=3)
    embedded = rank_dev("embedded", "embedded")
    for name in ("run.trec", "predict.txt"):
        assert (again / name).read_bytes() == (run / name).read_bytes()
        assert (sharded / name).read_bytes() == (run / name).read_bytes()
        assert (embedded / name).read_bytes() == (run / name).read_bytes()
