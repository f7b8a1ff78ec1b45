"""The scorer of relation prediction: cut-off, honest and micro figures, folds and breakdowns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchapp.errors import DataError, NotScorable
from searchapp.evaluation.base import GoldFiles, Scored, ScorerOptions
from searchapp.model import Hit, Hits, Ranking, Run
from searchapp.tasks.smart_relations.scorer import CutOff, RelationScorer

CUT_OFF = CutOff(share=0.5, most=3)


def hits(**scores: float) -> Hits:
    return Hits.of(*(Hit(name.replace("_", ":"), score) for name, score in scores.items()))


@pytest.mark.parametrize(
    ("ranking", "answer"),
    [
        (hits(), []),
        (hits(a=0.0, b=0.0), ["a"]),
        (hits(a=4.0, b=2.0, c=1.99), ["a", "b"]),
        (hits(a=4.0, b=4.0, c=4.0, d=4.0), ["a", "b", "c"]),
        (
            hits(dbo_birthPlace=4.0, dbp_birthPlace=4.0, dbp_birthplace=3.0, dbo_child=3.0),
            ["dbo:birthPlace", "dbo:child"],
        ),
    ],
)
def test_a_ranking_is_cut_to_an_answer(ranking: Hits, answer: list[str]) -> None:
    assert CUT_OFF.answer(ranking) == answer


@pytest.fixture
def score(tmp_path: Path) -> Any:
    def make(
        gold: dict[str, Any], predicted: dict[str, Any], base: str = "dbpedia", **options: Any
    ) -> Scored:
        files = []
        for name, entries in (("gold.json", gold), ("predictions.json", predicted)):
            files.append(tmp_path / name)
            listed = [{"id": id_, "relations": relations} for id_, relations in entries.items()]
            files[-1].write_text(json.dumps(listed))
        scorer = RelationScorer(base, CUT_OFF)
        return scorer.score(scorer.read([files[1]]), GoldFiles([files[0]], ScorerOptions(**options)))

    return make


def test_micro_figures_weigh_relations_not_questions(score: Any) -> None:
    gold = {"1": [["a"]], "2": [["a"], ["b"], ["c"]], "3": [["d"]]}
    honest = score(gold, {"1": ["a"], "2": ["a", "b", "x", "y"]}).official.honest
    precision, recall = 3 / 5, 3 / 5  # 1 + 2 of 1 + 4 predicted; 1 + 2 + 0 of 1 + 3 + 1 in the gold
    assert honest == pytest.approx({"Micro precision": precision, "Micro recall": recall, "Micro F1": 0.6})


def test_the_honest_figure_is_of_the_best_assignment(score: Any) -> None:
    official = score({"1": [["a", "b"], ["a"]]}, {"1": ["a", "b"]}).official
    assert official.values == {"Precision": 1.0, "Recall": 0.5, "F1": pytest.approx(2 / 3)}
    assert official.honest == dict.fromkeys(
        ("Recall", "F1", "Micro precision", "Micro recall", "Micro F1"), 1.0
    )
    assert any("best assignment" in warning for warning in official.warnings)


def test_the_best_assignment_moves_relations_for_later_slots(score: Any) -> None:
    gold = [["a", "b"], ["b", "c"], ["a"], ["b"]]
    assert score({"1": gold}, {"1": ["a", "b", "c"]}).official.honest["Micro recall"] == 0.75


def test_superfluous_repeats_are_wrong_in_the_honest_figure(score: Any) -> None:
    official = score({"1": [["a"]], "2": [["a"], ["a"]]}, {"1": ["a", "a"], "2": ["a", "a"]}).official
    assert official.values["Precision"] == 1.0
    assert official.honest["Precision"] == 0.75
    assert any("each repeat counts as right" in warning for warning in official.warnings)


def test_flat_gold_of_dbpedia_has_a_warning_and_an_honest_figure(score: Any) -> None:
    official = score({"1": ["ab", "cd"]}, {"1": ["ab", "cd"]}).official
    assert (official.values["F1"], official.honest["F1"]) == (0.0, 1.0)
    assert any("compares its letters" in warning for warning in official.warnings)


def test_a_valid_file_has_no_warning(score: Any) -> None:
    official = score({"1": [["a", "b"]]}, {"1": ["a", "b"]}).official
    assert official.warnings == ()
    assert set(official.honest) == {"Micro precision", "Micro recall", "Micro F1"}


def test_skipped_predictions_have_warnings(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text('[{"id": "1", "relations": ["a"]}, {"id": "1", "relations": ["b"]}, {"id": "2"}]')
    scorer = RelationScorer("wikidata", CUT_OFF)
    first, second = scorer.read([path]).warnings
    assert first.endswith("p.json: 1 prediction without `relations` skipped")
    assert second.endswith("1 prediction with a repeated id: the last one counts")


def test_only_the_questions_of_the_split_count(score: Any) -> None:
    gold = {"1": ["a"], "lcquad_0": ["b"]}  # in the folds 1 and 3
    scored = score(gold, {"1": ["a"]}, "wikidata", split="fold1")
    assert (scored.topics, scored.official.value) == (1, 1.0)
    assert score(gold, {"1": ["a"]}, "wikidata").official.value == 0.5
    with pytest.raises(NotScorable, match="contains no question to score"):
        score(gold, {"1": ["a"]}, "wikidata", split="fold0")


def test_the_option_kb_decides_how_the_gold_is_read(score: Any) -> None:
    assert score({"1": ["a"]}, {"1": ["a"]}, "dbpedia", knowledge_base="wikidata").official.value == 1.0


def test_a_run_is_scored_by_cut_answers_and_measured_by_full_rankings(tmp_path: Path) -> None:
    gold = tmp_path / "gold.json"
    gold.write_text('[{"id": "1", "question": "Who?", "relations": [["a"], ["c", "d"]]}]')
    scorer = RelationScorer("dbpedia", CUT_OFF)
    run = Run("tag", (Ranking("1", hits(a=2.0, b=1.5, c=0.1)),))
    scored = scorer.score(scorer.predictions(run), GoldFiles([gold]))
    assert scored.official.per_topic["1"] == {"Precision": 0.5, "Recall": 0.5, "F1": 0.5}
    assert scored.rankings == {"1": ("a", "b", "c")}
    assert scored.qrels == {"1": {"a": 1, "c": 1, "d": 1}}


@pytest.mark.parametrize(
    ("knowledge_base", "gold", "predicted", "official"),
    [
        ("dbpedia", [["a"]], "a", "AttributeError: 'str' object has no attribute 'copy'"),
        ("dbpedia", [["a"]], 7, "AttributeError: 'int' object has no attribute 'copy'"),
        ("wikidata", ["a"], 7, "TypeError: object of type 'int' has no len()"),
        ("wikidata", ["a"], [["a"]], "TypeError: unhashable type: 'list'"),
        ("wikidata", ["a"], [{"a": 1}], "TypeError: unhashable type: 'dict'"),
    ],
)
def test_predictions_that_stop_the_official_scorer(
    score: Any, knowledge_base: str, gold: Any, predicted: Any, official: str
) -> None:
    with pytest.raises(NotScorable) as caught:
        score({"1": gold}, {"1": predicted}, knowledge_base)
    assert caught.value.official == official
    assert "question 1" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{}", "it must contain a list of predictions"),
        ("[7]", "entry 1 must be an object"),
        ("[", "not JSON"),
        ('[{"relations": []}]', "entry 1 has no `id`"),
        ('[{"id": [], "relations": []}]', "entry 1: the id is a list"),
        ("\ufeff[]", "line 1 column 1: not JSON"),
    ],
)
def test_a_file_that_is_not_a_list_of_predictions_is_rejected(
    tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / "p.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match="p.json") as caught:
        RelationScorer("dbpedia", CUT_OFF).read([path])
    assert words in str(caught.value)


def test_figures_are_broken_down(tmp_path: Path) -> None:
    gold: list[dict[str, Any]] = [
        {"id": "1", "question": "Who is it?", "relations": [["dbo:a"]]},
        {"id": "2", "question": "who was it?", "relations": [["dbo:a"], ["dbp:b"]]},
        {"id": "3", "question": "'Is' it?", "relations": [["dbp:b"]]},
        {"id": "4", "question": None, "relations": [["dbp:b"]]},
    ]
    path, predictions = tmp_path / "gold.json", tmp_path / "p.json"
    path.write_text(json.dumps(gold))
    predictions.write_text(json.dumps([{"id": entry["id"], "relations": ["dbo:a"]} for entry in gold]))
    scorer = RelationScorer("dbpedia", CUT_OFF)
    read, files = scorer.read([predictions]), GoldFiles([path], folder=tmp_path)
    assert {
        breakdown.name: {row.group: (row.count, row.values["Recall"]) for row in breakdown.rows}
        for breakdown in scorer.breakdown(read, files, scorer.breakdowns)
    } == {
        "relations": {"1": (3, pytest.approx(1 / 3)), "2": (1, 0.5)},
        "first-word": {"who": (2, 0.75), "(none)": (1, 0.0), "is": (1, 0.0)},
        "namespace": {"dbp": (2, 0.0), "dbo": (1, 1.0), "dbo and dbp": (1, 0.5)},
    }
