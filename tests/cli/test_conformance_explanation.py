"""Every recorded case of the official scorers of explanation regeneration, through the command that people type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

RECORDED = Path(__file__).parents[1] / "fixtures" / "conformance"
CASES = {
    f"{case.parents[1].name}/{case.parent.name}": case
    for case in sorted(RECORDED.glob("explanation-*/*/case.json"))
}


@pytest.mark.parametrize("path", CASES.values(), ids=CASES.keys())
def test_the_command_agrees_with_the_official_scorer(offline: Cli, path: Path) -> None:
    case = json.loads(path.read_text())
    folder, expected = path.parent, case["expected"]
    result = offline(
        "evaluate",
        folder / case["inputs"]["predictions"],
        *("--task", case["task"], "--gold", folder / case["inputs"]["gold"], "--json", "--per-topic"),
    )
    if "error" in expected:
        assert (result.code, result.stdout) == (4, "")
        assert "the official scorer would not score this file" in result.stderr
        assert expected["error"] in result.stderr
        return
    assert result.code == 0, result.stderr
    official = result.json["official"]
    assert official["values"] == pytest.approx(expected["values"], rel=0, abs=1e-12)
    assert official["value"] == official["values"][official["measure"]]
    assert official["per_topic"] == pytest.approx(expected["per_topic"], rel=0, abs=1e-12)


def test_there_are_cases() -> None:
    assert len(CASES) >= 24
