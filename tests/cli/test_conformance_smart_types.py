"""Every recorded case of the official scorers of answer type prediction, through the command that people type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.evaluation.test_conformance_smart_types import CASES, hierarchy_of


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_the_command_agrees_with_the_official_scorer(offline: Cli, folder: Path) -> None:
    case: dict[str, Any] = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    expected, inputs = case["expected"], case["inputs"]
    options: list[object] = ["--task", case["task"], "--gold", folder / inputs["gold"]]
    if (hierarchy := hierarchy_of(folder, case)) is not None:
        options += ["--hierarchy", hierarchy]
    result = offline("evaluate", folder / inputs["predictions"], *options, "--json", "--per-topic")
    if "error" in expected:
        assert result.code == 4
        assert result.stdout == ""
        assert "the official scorer would not score this file" in result.stderr
        assert expected["error"] in result.stderr
        return
    assert result.code == 0, result.stderr
    official = result.json["official"]
    assert official["values"] == pytest.approx(expected["values"], rel=0, abs=1e-12)
    assert official["value"] == official["values"][official["measure"]]
    if "per_topic" in expected:
        assert list(official["per_topic"]) == list(expected["per_topic"])
        for topic, figures in expected["per_topic"].items():
            for name, value in figures.items():
                found = official["per_topic"][topic][name]
                assert found is None if value is None else found == pytest.approx(value, rel=0, abs=1e-12)
    else:
        singles = [{"rank": one["rank"], "rr": one["rr"]} for one in expected["per_prediction"]]
        assert list(official["per_topic"].values()) == singles
