"""`searchapp evaluate` has the recorded figures of the official scorers."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli, official_figures
from tests.conformance import CASES, Case, assert_as_recorded


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_command_agrees_with_the_official_scorer(offline: Cli, case: Case) -> None:
    expected = case.expected
    options: list[object] = ["--task", case.task, "--gold", case.gold]
    for name, value in {**case.options, "hierarchy": case.hierarchy}.items():
        options += [] if value is None else [f"--{name}", value]
    result = offline("evaluate", case.predictions, *options, "--json", "--per-topic")
    official = official_figures(result, expected)
    if official is None:
        return
    values = official.get("values", {official["measure"]: official["value"]})
    assert float(values[official["measure"]]) == pytest.approx(float(official["value"]), nan_ok=True)
    assert_as_recorded(expected, values, official["per_topic"])
