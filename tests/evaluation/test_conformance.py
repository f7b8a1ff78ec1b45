"""Scorers reproduce the recorded results of the official scorers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from searchapp.errors import NotScorable
from searchapp.evaluation.base import GoldFiles, Scorer, ScorerOptions
from searchapp.tasks.explanation.scorer_2019 import Explanation2019Scorer
from searchapp.tasks.explanation.scorer_2021 import Explanation2021Scorer
from searchapp.tasks.nlps.scorer import NlpsScorer
from searchapp.tasks.smart_relations.scorer import CutOff, RelationScorer
from searchapp.tasks.smart_types.scorer_dbpedia import SmartTypesDbpediaScorer
from searchapp.tasks.smart_types.scorer_wikidata import SmartTypesWikidataScorer
from tests.conformance import CASES, Case, assert_as_recorded

SCORERS: dict[str, Callable[[], Scorer[Any]]] = {
    "nlps": NlpsScorer,
    "explanation-2019": Explanation2019Scorer,
    "explanation-2021": Explanation2021Scorer,
    "smart-types-dbpedia": SmartTypesDbpediaScorer,
    "smart-types-wikidata": SmartTypesWikidataScorer,
    "smart-relations-dbpedia": lambda: RelationScorer("dbpedia", CutOff(0.5, 2)),
    "smart-relations-wikidata": lambda: RelationScorer("wikidata", CutOff(0.5, 2)),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_scorer_agrees_with_the_official_one(case: Case) -> None:
    scorer, expected = SCORERS[case.task](), case.expected
    options = ScorerOptions(
        cutoff=case.options.get("cutoff"), knowledge_base=case.options.get("kb"), hierarchy=case.hierarchy
    )
    try:
        official = scorer.score(scorer.read([case.predictions]), GoldFiles([case.gold], options)).official
    except NotScorable as error:
        assert error.official == expected.get("error")
        assert error.exit_code == 4
        return
    assert "error" not in expected
    assert_as_recorded(expected, official.values, official.per_topic)
