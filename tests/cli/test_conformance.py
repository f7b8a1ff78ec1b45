"""Every recorded case of an official scorer, through the command that people type."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli

RECORDED = Path(__file__).parents[1] / "fixtures" / "conformance"
FOLDERS = [RECORDED, *(Path(given) for given in [os.environ.get("SEARCHAPP_TEST_CONFORMANCE")] if given)]
CASES = {
    f"{folder.parent.name}/{case.parent.name}": case
    for folder in FOLDERS
    for case in sorted(folder.glob("nlps/*/case.json"))
}


@pytest.mark.parametrize("path", CASES.values(), ids=CASES.keys())
def test_the_command_agrees_with_the_official_scorer(offline: Cli, path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text())
    folder, expected = path.parent, case["expected"]
    options: list[object] = ["--task", "nlps", "--gold", folder / case["inputs"]["gold"]]
    if "nearest" in case.get("options", {}):
        options += ["--nearest", case["options"]["nearest"]]
    result = offline("evaluate", folder / case["inputs"]["predictions"], *options, "--json", "--per-topic")
    if "error" in expected:
        assert result.code == 4
        assert result.stdout == ""
        assert "the official scorer would not score this file" in result.stderr
        assert expected["error"] in result.stderr
        return
    assert result.code == 0, result.stderr
    official = result.json["official"]
    ((measure, value),) = expected["values"].items()
    assert official["measure"] == measure
    if value == "nan":
        assert official["value"] == "nan"
    else:
        assert math.isclose(official["value"], value, rel_tol=0, abs_tol=1e-12)
    assert official["per_topic"] == pytest.approx(expected["per_topic"], rel=0, abs=1e-12)


def test_there_are_cases() -> None:
    assert len(CASES) >= 13
