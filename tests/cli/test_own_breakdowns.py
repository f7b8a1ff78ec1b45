"""`--by` on the topic fields of an own task."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from tests.cli.conftest import SAMPLES, Cli

pytestmark = pytest.mark.shared_indexes

OWN = SAMPLES / "own" / "cooking.toml"
LEVELS = dict(
    line.split("\t")[::2] for line in (SAMPLES / "own" / "questions.tsv").read_text("utf-8").splitlines()[1:]
)


def test_figures_are_broken_down_by_topic_fields(cli: Cli, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert cli("index", OWN).code == 0
    assert cli("rank", OWN, "--split", "dev", "--out", run).code == 0
    described = cli(
        "evaluate", run, "--by", "level", "--measure", "AP", "--measure", "nDCG@10", "--per-topic", "--json"
    ).json
    rows = described["breakdowns"]["level"]["rows"]
    for row in rows:
        names = [topic for topic, level in LEVELS.items() if level == row["group"]]
        assert row["topics"] == len(names)
        for measure in ("nDCG@10", "AP"):
            figures = described["per_topic"][measure]
            assert row[measure] == pytest.approx(fmean(figures[name] for name in names))
    assert [row["group"] for row in rows] == sorted(set(LEVELS.values()))
    assert cli("tasks", "show", OWN, "--json").json["breakdowns"] == ["level"]
    unknown = cli("evaluate", run, "--by", "lvel")
    assert unknown.code == 2 and "has no breakdown 'lvel' (did you mean level?)" in unknown.stderr
    words = tmp_path / "words"
    assert cli("rank", OWN, "--split", "dev", "--recipe", "words", "--out", words).code == 0
    compared = cli("compare", run, words, "--by", "all", "--permutations", 10, "--json")
    assert compared.code == 0 and compared.json["breakdowns"].keys() == {"level"}
