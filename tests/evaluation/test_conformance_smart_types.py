"""Every recorded case: what the organisers' own scripts made of small invented files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from searchapp.errors import NotScorable
from searchapp.evaluation.base import OfficialScore, Scorer, ScorerOptions
from searchapp.evaluation.smart_types import InSplit
from searchapp.evaluation.smart_types_dbpedia import SmartTypesDbpediaScorer
from searchapp.evaluation.smart_types_wikidata import SmartTypesWikidataScorer

RECORDED = Path(__file__).parents[1] / "fixtures" / "conformance"
SCORERS: dict[str, Callable[[InSplit], Scorer]] = {
    "smart-types-dbpedia": SmartTypesDbpediaScorer,
    "smart-types-wikidata": SmartTypesWikidataScorer,
}
CASES = [case for task in SCORERS for case in sorted((RECORDED / task).iterdir())]


def hierarchy_of(folder: Path, case: Mapping[str, Any]) -> Path | None:
    """The hierarchy that a case names; the organisers' own file is not part of the project."""
    if "hierarchy" in case["inputs"]:
        return folder / str(case["inputs"]["hierarchy"])
    if "hierarchy" not in case:
        return None
    if not (root := os.environ.get("SEARCHAPP_TEST_DATA")):
        pytest.skip("set SEARCHAPP_TEST_DATA to the folder that holds the tasks' data")
    return Path(root) / "smart" / "dbpedia_types.tsv"


def test_there_are_cases() -> None:
    assert len(CASES) == 14 + 12


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_case(folder: Path) -> None:
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    expected, inputs = case["expected"], case["inputs"]
    scorer = SCORERS[case["task"]](lambda _split, _id: True)
    options = ScorerOptions(hierarchy=hierarchy_of(folder, case))
    try:
        predictions = scorer.read([folder / inputs["predictions"]])
        official = scorer.score(predictions, [folder / inputs["gold"]], options).official
    except NotScorable as error:
        assert error.official == expected.get("error")
        assert error.exit_code == 4
        return
    assert dict(official.values) == pytest.approx(expected["values"], rel=0, abs=1e-12)
    if "per_topic" in expected:
        assert_per_topic(official, expected["per_topic"])
    if "per_prediction" in expected:
        assert_per_prediction(official, expected["per_prediction"])


def assert_per_topic(official: OfficialScore, expected: Mapping[str, Mapping[str, float | None]]) -> None:
    assert list(official.per_topic) == list(expected)
    for topic, figures in expected.items():
        found = official.per_topic[topic]
        assert isinstance(found, Mapping)
        assert {name: value for name, value in found.items() if value is None} == {
            name: value for name, value in figures.items() if value is None
        }
        known = {name: value for name, value in figures.items() if value is not None}
        assert {name: found[name] for name in known} == pytest.approx(known, rel=0, abs=1e-12)


def assert_per_prediction(official: OfficialScore, expected: list[Mapping[str, Any]]) -> None:
    names = [name.split(" (")[0] for name in official.per_topic]
    assert names == [str(single["id"]) for single in expected]
    for found, single in zip(official.per_topic.values(), expected, strict=True):
        assert found == {"rank": single["rank"], "rr": single["rr"]}
