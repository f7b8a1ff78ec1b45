"""Every recorded case of relation prediction: what the organisers' own script made of small invented files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchapp.errors import NotScorable
from searchapp.evaluation.base import ScorerOptions
from searchapp.evaluation.smart_relations import CutOff, RelationScorer

RECORDED = Path(__file__).parents[1] / "fixtures" / "conformance"
CASES = sorted(RECORDED.glob("smart-relations-*/*"))


def test_there_are_cases() -> None:
    assert len(CASES) == 22


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_case(folder: Path) -> None:
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    expected, inputs = case["expected"], case["inputs"]
    scorer = RelationScorer(folder.parent.name.rpartition("-")[2], CutOff(0.5, 2), lambda _split, _id: True)
    options = ScorerOptions(knowledge_base=case.get("options", {}).get("kb"))
    try:
        predictions = scorer.read([folder / inputs["predictions"]])
        official = scorer.score(predictions, [folder / inputs["gold"]], options).official
    except NotScorable as error:
        assert error.official == expected.get("error")
        assert error.exit_code == 4
        return
    assert "error" not in expected
    assert dict(official.values) == pytest.approx(expected["values"], rel=0, abs=1e-12)
    assert list(official.per_topic) == list(expected["per_topic"])
    for topic, figures in expected["per_topic"].items():
        assert official.per_topic[topic] == pytest.approx(figures, rel=0, abs=1e-12)
