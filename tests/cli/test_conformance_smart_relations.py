"""Every recorded case of relation prediction, through the command that people type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

RECORDED = Path(__file__).parents[1] / "fixtures" / "conformance"
CASES = sorted(RECORDED.glob("smart-relations-*/*"))


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_the_command_agrees_with_the_official_scorer(offline: Cli, folder: Path) -> None:
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    expected, inputs = case["expected"], case["inputs"]
    options: list[object] = ["--task", case["task"], "--gold", folder / inputs["gold"]]
    if "kb" in case.get("options", {}):
        options += ["--kb", case["options"]["kb"]]
    result = offline("evaluate", folder / inputs["predictions"], *options, "--json", "--per-topic")
    if "error" in expected:
        assert result.code == 4
        assert result.stdout == ""
        assert "the official scorer would not score this file" in result.stderr
        assert expected["error"] in result.stderr
        return
    assert result.code == 0, result.stderr
    official = result.json["official"]
    assert official["measure"] == "F1"
    assert official["value"] == official["values"]["F1"]
    assert official["values"] == pytest.approx(expected["values"], rel=0, abs=1e-12)
    assert list(official["per_topic"]) == list(expected["per_topic"])
    for topic, figures in expected["per_topic"].items():
        assert official["per_topic"][topic] == pytest.approx(figures, rel=0, abs=1e-12)


def test_there_are_cases() -> None:
    assert len(CASES) == 22
