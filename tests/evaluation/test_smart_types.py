"""The scorers of answer type prediction: honest figures, document ids of types and breakdowns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import NotScorable, UsageError
from searchapp.evaluation.base import GoldFiles, Scored, ScorerOptions
from searchapp.model import Hits, Ranking, Run
from searchapp.tasks.smart_types.answers import (
    TypesPredictions,
    category_and_type,
    document_id,
    first_word,
    predict,
)
from searchapp.tasks.smart_types.scorer_dbpedia import SmartTypesDbpediaScorer
from searchapp.tasks.smart_types.scorer_wikidata import SmartTypesWikidataScorer

HIERARCHY = "Type\tDepth\tParent\na:Agent\t1\ta:Thing\na:Person\t2\ta:Agent\na:Poet\t3\ta:Person\n"
PERSON = {"id": "q1", "question": "Who wrote it?", "category": "resource", "type": ["a:Poet", "a:Person"]}
NUMBER = {"id": "q2", "question": "How many are there?", "category": "literal", "type": ["number"]}


def put(path: Path, entries: list[Any]) -> Path:
    path.write_text(json.dumps(entries))
    return path


def dbpedia(folder: Path, gold: list[Any], predictions: list[Any]) -> Scored:
    (folder / "types.tsv").write_text(HIERARCHY)
    scorer = SmartTypesDbpediaScorer()
    read = scorer.read([put(folder / "predictions.json", predictions)])
    options = ScorerOptions(hierarchy=folder / "types.tsv")
    return scorer.score(read, GoldFiles([put(folder / "gold.json", gold)], options))


def wikidata(folder: Path, gold: list[Any], predictions: list[Any], **options: Any) -> Scored:
    scorer = SmartTypesWikidataScorer()
    read = scorer.read([put(folder / "predictions.json", predictions)])
    return scorer.score(read, GoldFiles([put(folder / "gold.json", gold)], ScorerOptions(**options)))


@given(st.sampled_from(["resource", "literal", "boolean"]), st.text(min_size=1))
def test_a_document_id_identifies_a_type_and_has_no_blanks(category: str, type_: str) -> None:
    document = document_id(category, type_)
    assert category_and_type(document) == (category, type_)
    assert document.split() == [document]


def test_ids_of_common_types_are_readable() -> None:
    assert document_id("resource", "dbo:Person") == "dbo:Person"
    assert document_id("resource", "Bien de Interés Cultural") == "Bien_de_Interés_Cultural"
    assert document_id("resource", "literal:date") == "literal%3Adate"


def test_the_category_of_the_best_document_selects_the_types() -> None:
    ids = ["b", "literal:date", "a", "b", "boolean:boolean", *"cdefghijkl"]
    assert predict(Hits(ids, [1.0] * len(ids))) == ("resource", list("bacdefghij"))
    ids = ["literal:date", "a", "literal:number"]
    assert predict(Hits(ids, [1.0] * 3)) == ("literal", ["date"])


def test_a_run_scores_like_its_file_also_with_numeric_ids(tmp_path: Path) -> None:
    gold = [{**PERSON, "id": 7, "type": ["poet", "person"]}]
    scorer = SmartTypesWikidataScorer()
    run = Run("tag", (Ranking("7", Hits.of()), Ranking("7", Hits(["person"], [1.0]))))
    file = put(tmp_path / "gold.json", gold)
    of_run = scorer.score(scorer.predictions(run), GoldFiles([file]))
    of_file = wikidata(tmp_path, gold, [{"id": 7, "category": "resource", "type": ["person"]}])
    assert of_run == of_file
    assert of_run.official.values == {"accuracy": 1.0, "MRR": 0.5}


def test_repeated_types_have_a_warning_and_count_once_in_the_honest_figure(tmp_path: Path) -> None:
    answer = {"id": "q1", "category": "resource", "type": ["a:Poet"] * 5}
    official = dbpedia(tmp_path, [PERSON, NUMBER], [answer]).official
    once = dbpedia(tmp_path, [PERSON, NUMBER], [{**answer, "type": ["a:Poet"]}]).official
    assert official.values["NDCG@5"] > once.values["NDCG@5"]
    assert official.honest == once.honest
    assert once.honest["NDCG@5"] == once.values["NDCG@5"]
    repeats, missing = official.warnings
    assert "1 of 2 questions has repeated predicted types" in repeats
    assert "1 of 2 questions has no prediction" in missing
    assert len(once.warnings) == 1


def test_rankings_and_qrels_have_documents(tmp_path: Path) -> None:
    answers = [
        {"id": "q1", "category": "literal", "type": ["date"]},
        {"id": "x", "category": "boolean", "type": ["boolean"]},
    ]
    scored = dbpedia(tmp_path, [PERSON, NUMBER], answers)
    assert scored.topics == 2
    assert scored.rankings == {"q1": ["literal:date"]}
    assert scored.qrels == {"q1": {"a:Poet": 1, "a:Person": 1}, "q2": {"literal:number": 1}}


def test_scoring_dbpedia_needs_a_hierarchy(tmp_path: Path) -> None:
    scorer = SmartTypesDbpediaScorer()
    with pytest.raises(UsageError, match="name its file with --hierarchy"):
        scorer.score(
            TypesPredictions([]), GoldFiles([put(tmp_path / "gold.json", [PERSON])], ScorerOptions())
        )


def test_types_that_are_not_a_list_stop_the_official_scorer(tmp_path: Path) -> None:
    with pytest.raises(NotScorable) as raised:
        dbpedia(tmp_path, [PERSON], [{"id": "q1", "category": "resource", "type": None}])
    assert raised.value.official == "TypeError: object of type 'NoneType' has no len()"
    with pytest.raises(NotScorable) as raised:
        wikidata(tmp_path, [PERSON], [{"id": "q1", "category": "resource", "type": None}])
    assert raised.value.official == "TypeError: 'NoneType' object is not iterable"


def test_a_byte_order_mark_stops_the_scorer_of_dbpedia_only(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    path.write_text('\ufeff[{"id": "q1", "category": "resource", "type": []}]', encoding="utf-8")
    assert len(SmartTypesWikidataScorer().read([path]).entries) == 1
    with pytest.raises(NotScorable) as raised:
        SmartTypesDbpediaScorer().read([path])
    assert raised.value.official.startswith("json.decoder.JSONDecodeError: Unexpected UTF-8 BOM")


def test_the_honest_mrr_of_wikidata_goes_by_the_rank_in_the_prediction(tmp_path: Path) -> None:
    gold = [{**PERSON, "type": ["human being", "writer"]}, NUMBER]
    answer = {"id": "q1", "category": "resource", "type": ["writer", "x1"]}
    official = wikidata(tmp_path, gold, [answer]).official
    assert official.values == {"accuracy": 1.0, "MRR": 0.5}
    assert official.honest == {"accuracy": 0.5, "MRR": 0.5}
    assert "MRR is 0.500000" in official.warnings[0]
    assert "1 question of the gold without a prediction" in official.warnings[1]


def test_a_part_of_a_label_stops_the_scorer_except_in_lenient_mode(tmp_path: Path) -> None:
    gold = [{**PERSON, "type": ["big city", "town"]}]
    answers = [{"id": "q1", "category": "resource", "type": ["city", "town"]}]
    with pytest.raises(NotScorable, match="--lenient continues") as raised:
        wikidata(tmp_path, gold, answers)
    assert raised.value.official == "ValueError: 'city' is not in list"
    official = wikidata(tmp_path, gold, answers, lenient=True).official
    assert official.values == {"accuracy": 1.0, "MRR (whole labels)": 0.5}
    assert "unlike in the official scorer" in official.warnings[0]


def test_breakdowns_are_means_of_groups(tmp_path: Path) -> None:
    answers = [{"id": "q1", "category": "resource", "type": ["a:Poet"]}]
    (tmp_path / "dbpedia_types.tsv").write_text(HIERARCHY)
    scorer = SmartTypesDbpediaScorer()
    read = scorer.read([put(tmp_path / "predictions.json", answers)])
    gold = put(tmp_path / "gold.json", [PERSON, {**PERSON, "id": "q3", "type": []}, NUMBER])
    by_category, by_types, by_word = scorer.breakdown(
        read, GoldFiles([gold], folder=tmp_path), scorer.breakdowns
    )
    assert [(row.group, row.count, row.values["Accuracy"]) for row in by_category.rows] == [
        ("literal", 1, 0.0),
        ("resource", 2, 0.5),
    ]
    assert [(row.group, row.count) for row in by_types.rows] == [("0", 1), ("2", 1)]
    assert [(row.group, row.count) for row in by_word.rows] == [("who", 2), ("how", 1)]


@pytest.mark.parametrize(
    ("question", "word"), [("\"What's it?", "what"), ("  who is", "who"), ("?", "(none)"), ("N/A", "n")]
)
def test_the_first_word_has_no_quotes_and_no_capitals(question: str, word: str) -> None:
    assert first_word(question) == word
