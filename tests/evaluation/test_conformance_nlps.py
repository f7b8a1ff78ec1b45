"""Every recorded case: what the organisers' own script made of small invented files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from searchapp.errors import NotScorable
from searchapp.evaluation.nlps import NEAREST, read_gold, score
from searchapp.formats.two_column import read_two_column

CASES = sorted((Path(__file__).parents[1] / "fixtures" / "conformance" / "nlps").iterdir())


def test_there_are_cases() -> None:
    assert len(CASES) == 13


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_case(folder: Path) -> None:
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    expected, inputs = case["expected"], case["inputs"]
    nearest = case.get("options", {}).get("nearest", NEAREST)
    try:
        predictions = read_two_column(folder / inputs["predictions"])
        result = score(predictions, read_gold(folder / inputs["gold"]), nearest)
    except NotScorable as error:
        assert error.official == expected.get("error")
        assert error.exit_code == 4
        return
    ((measure, value),) = expected["values"].items()
    assert result.measure == measure
    if value == "nan":
        assert math.isnan(result.value)
    else:
        assert result.value == pytest.approx(value, rel=0, abs=1e-12)
    assert dict(result.per_topic) == pytest.approx(expected["per_topic"], rel=0, abs=1e-12)
    assert list(result.per_topic) == list(expected["per_topic"])
