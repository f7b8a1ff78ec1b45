"""Every recorded case of the official scorers of explanation regeneration."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from searchapp.errors import NotScorable
from searchapp.evaluation.base import ScorerOptions
from searchapp.evaluation.explanation_2019 import Explanation2019Scorer
from searchapp.evaluation.explanation_2021 import Explanation2021Scorer

RECORDED = Path(__file__).parents[1] / "fixtures" / "conformance"
FOLDERS = [RECORDED, *(Path(given) for given in [os.environ.get("SEARCHAPP_TEST_CONFORMANCE")] if given)]
CASES = {
    f"{case.parents[1].name}/{case.parent.name}": case
    for folder in FOLDERS
    for case in sorted(folder.glob("explanation-*/*/case.json"))
}


def no_terms(_text: str) -> frozenset[str]:
    return frozenset()


SCORERS: dict[str, Any] = {
    "explanation-2019": Explanation2019Scorer(no_terms),
    "explanation-2021": Explanation2021Scorer(no_terms),
}


@pytest.mark.parametrize("path", CASES.values(), ids=CASES.keys())
def test_it_agrees_with_the_official_scorer(path: Path) -> None:
    case = json.loads(path.read_text())
    expected = case["expected"]
    scorer = SCORERS[case["task"]]
    files = [path.parent / case["inputs"]["predictions"]]
    gold = [path.parent / case["inputs"]["gold"]]
    if "error" in expected:
        with pytest.raises(NotScorable) as raised:
            scorer.score(scorer.read(files), gold, ScorerOptions())
        assert raised.value.official == expected["error"]
        return
    official = scorer.score(scorer.read(files), gold, ScorerOptions()).official
    assert official.values == pytest.approx(expected["values"], rel=0, abs=1e-12)
    assert list(official.per_topic) == list(expected["per_topic"])
    assert official.per_topic == pytest.approx(expected["per_topic"], rel=0, abs=1e-12)


def test_there_are_cases() -> None:
    assert sum(name.startswith("explanation-2019/") for name in CASES) >= 11
    assert sum(name.startswith("explanation-2021/") for name in CASES) >= 13
