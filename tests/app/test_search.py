from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from searchapp.app import search
from searchapp.app.search import (
    GoldTopic,
    GoldTopicIndex,
    SearchRequest,
    TaskSearcher,
    read_gold_topics,
)
from searchapp.errors import DataError, EngineRefused, UsageError
from searchapp.model import Topic, float32
from searchapp.ranking import paging, recipes
from searchapp.ranking.paging import matching_only
from searchapp.ranking.query_language import (
    MAX_DEPTH,
    MAX_OPERATORS,
    MAX_PHRASE_WORDS,
    MAX_WORD_LENGTH,
    BrokenQuery,
    FieldFilter,
)
from searchapp.tasks import load
from tests.app.conftest import SAMPLES, MakeSearcher

DOCUMENT = Path(__file__).parents[2] / "docs" / "use" / "search.md"

RING = SearchRequest("ring", size=50)
LEARNED = SearchRequest("every ring is a group", recipe="neighbours", size=100)


@pytest.fixture(scope="module")
def nlps(make_searcher: MakeSearcher) -> TaskSearcher:
    return make_searcher("nlps")


@pytest.fixture(scope="module")
def checkthat(make_searcher: MakeSearcher) -> TaskSearcher:
    return make_searcher("checkthat")


def ids(searcher: TaskSearcher, request: SearchRequest) -> list[str]:
    return [result.hit.document_id for result in searcher.search(request)]


def all_ids(searcher: TaskSearcher) -> list[str]:
    return ids(searcher, SearchRequest("", size=10_000))


def test_words_rank_as_a_topic_does(nlps: TaskSearcher) -> None:
    recipe = nlps.recipe()
    (expected,) = nlps.index.search([recipe.body(recipe.typed("normal subgroup"), 10)])
    found = nlps.search(SearchRequest("normal  subgroup"))
    assert [result.hit for result in found] == list(expected)
    assert [result.rank for result in found] == list(range(1, 11))


def test_hits_have_their_text_and_what_matches_in_it(nlps: TaskSearcher) -> None:
    (result,) = nlps.search(SearchRequest('+"normal subgroup" kernel', size=1))
    assert result.hit.document_id == "603"
    assert [result.text[start:end] for start, end in result.matches] == ["kernel", "normal", "subgroup"]
    assert result.source == {"id": "603", "text": result.text}


def test_a_query_without_words_finds_every_document_that_its_signs_leave(nlps: TaskSearcher) -> None:
    every = nlps.search(SearchRequest("", size=100))
    assert [result.hit.document_id for result in every] == sorted(result.hit.document_id for result in every)
    assert {result.hit.score for result in every} == {1.0}
    without = set(all_ids(nlps)) - set(ids(nlps, SearchRequest("-ring", size=100)))
    assert without == set(ids(nlps, SearchRequest("+ring", size=100))) != set()


def test_a_word_that_says_nothing_is_as_if_it_were_not_there(nlps: TaskSearcher) -> None:
    assert ids(nlps, replace(RING, text="+the ring")) == ids(nlps, replace(RING, text="the ring"))
    assert ids(nlps, replace(RING, text='+"of the" ring')) == ids(nlps, RING)
    assert ids(nlps, replace(RING, text="the")) == ids(nlps, replace(RING, text="()")) == []


def test_a_literal_text_is_words_alone(checkthat: TaskSearcher) -> None:
    typed = SearchRequest('-people speaker:x "', literal=True)
    assert ids(checkthat, typed) == ids(checkthat, SearchRequest("people speaker x")) != []
    with pytest.raises(BrokenQuery):
        checkthat.search(replace(typed, literal=False))


@pytest.mark.parametrize("request_", [SearchRequest("a \udcff"), SearchRequest("\ud800", literal=True)])
def test_half_a_character_is_told(nlps: TaskSearcher, request_: SearchRequest) -> None:
    with pytest.raises(BrokenQuery, match="not UTF-8"):
        nlps.search(request_)


def test_the_recipe_of_searches_comes_first(nlps: TaskSearcher, checkthat: TaskSearcher) -> None:
    others = [name for name in recipes.names("nlps") if name != "words"]
    assert nlps.recipes == ("words", *others)
    assert {"best", "bm25"} < {*others}
    assert checkthat.recipes == ("words",)
    assert nlps.recipe().name == "words"
    with pytest.raises(UsageError, match="no recipe 'bm52'"):
        nlps.search(replace(RING, recipe="bm52"))
    with pytest.raises(UsageError, match="checkthat/bm25 needs a complete topic"):
        checkthat.search(replace(RING, recipe="bm25"))


def test_a_recipe_that_fills_its_ranking_up_finds_what_matches(nlps: TaskSearcher) -> None:
    found = nlps.search(SearchRequest("homomorphism", recipe="bm25", size=100))
    assert 0 < len(found) < len(all_ids(nlps))
    assert min(result.hit.score for result in found) > 0
    assert nlps.counts(SearchRequest("homomorphism", recipe="bm25")).total == len(found)


# Pages


@pytest.mark.parametrize("request_", [RING, LEARNED, SearchRequest(""), SearchRequest("group -abelian")])
def test_pages_are_parts_of_one_list(nlps: TaskSearcher, request_: SearchRequest) -> None:
    whole = nlps.search(replace(request_, size=1_000))
    for first in (0, 1, len(whole) - 1, len(whole), len(whole) + 5, 9_999):
        page = nlps.search(replace(request_, first=first, size=3))
        assert [(one.rank, one.hit, one.matches) for one in page] == [
            (one.rank, one.hit, one.matches) for one in whole[first : first + 3]
        ]
    assert list(nlps.ranking(replace(request_, first=2, size=1))) == [one.hit for one in whole]


@pytest.mark.parametrize("text", ["", "the a ring group", "-ring", '"a ring" group'])
@pytest.mark.parametrize("window", [1, 7, 10, 1_000])
def test_pages_behind_what_an_engine_gives_at_once_are_parts_of_one_list(
    nlps: TaskSearcher, monkeypatch: pytest.MonkeyPatch, text: str, window: int
) -> None:
    request = SearchRequest(text, size=100)
    whole = [(one.rank, one.hit) for one in nlps.search(request)]
    monkeypatch.setattr(paging, "WINDOW", window)
    for first in (1, 5, 7, 13, 14, len(whole) - 1, len(whole), 200):
        page = nlps.search(replace(request, first=first, size=6))
        assert [(one.rank, one.hit) for one in page] == whole[first : first + 6]
    assert list(nlps.ranking(request)) == [hit for _, hit in whole]


def test_more_hits_at_once_than_an_engine_gives_are_refused(nlps: TaskSearcher) -> None:
    with pytest.raises(EngineRefused, match="10,000"):
        nlps.search(SearchRequest("ring", size=10_001))


# Filters and counts


def values(searcher: TaskSearcher, request: SearchRequest, field: str) -> list[Any]:
    return [result.source[field] for result in searcher.search(replace(request, size=10_000))]


def test_filters_leave_the_order_and_the_scores_as_they_are(checkthat: TaskSearcher) -> None:
    request = SearchRequest("the people", size=1_000)
    every = checkthat.search(request)
    speaker = every[0].source["speaker"]
    left = checkthat.search(replace(request, filters=(FieldFilter("speaker", speaker),)))
    assert [one.hit for one in left] == [one.hit for one in every if one.source["speaker"] == speaker]
    assert 0 < len(left) < len(every)


@pytest.mark.parametrize("text", ["", "the people", "+we -the", "zygomorphic"])
def test_counts_are_those_of_all_hits(checkthat: TaskSearcher, text: str) -> None:
    request = SearchRequest(text, size=1)
    counts = checkthat.counts(request)
    assert counts.total == len(checkthat.search(replace(request, size=10_000)))
    assert set(counts.values) == {"debate", "part", "speaker"}
    for field, counted in counts.values.items():
        there = values(checkthat, request, field)
        expected = sorted({(-there.count(value), value) for value in there})
        assert [(-count, value) for value, count in counted] == expected[: search.VALUES]


def test_a_number_is_searched_and_filtered_by(checkthat: TaskSearcher) -> None:
    assert set(values(checkthat, SearchRequest("line:5"), "line")) == {5}
    by_filter = SearchRequest("", filters=(FieldFilter("line", "5"),))
    assert values(checkthat, by_filter, "line") == values(checkthat, SearchRequest("+line:5"), "line")


# Recipes of several signals


def test_a_learned_recipe_ranks_words_as_a_topic(nlps: TaskSearcher) -> None:
    found = nlps.search(LEARNED)
    assert found and min(one.hit.score for one in found) > 0
    assert [one.hit.score for one in found] == sorted((one.hit.score for one in found), reverse=True)
    assert found[0].text and found[0].source["id"] == found[0].hit.document_id
    assert nlps.counts(LEARNED).total == len(found)


def test_signs_leave_the_learned_order_as_it_is(nlps: TaskSearcher) -> None:
    every = ids(nlps, LEARNED)
    matching = set(ids(nlps, SearchRequest("+ring", size=100)))
    assert ids(nlps, replace(LEARNED, text=LEARNED.text.replace("ring", "+ring"))) == [
        one for one in every if one in matching
    ]
    without = ids(nlps, replace(LEARNED, text=LEARNED.text + ' -"abelian group"'))
    phrase = set(ids(nlps, SearchRequest('"abelian group"', size=100)))
    assert without == [one for one in every if one not in phrase] != every


def test_a_learned_recipe_takes_filters(make_searcher: MakeSearcher) -> None:
    types = make_searcher("smart-types-dbpedia")
    request = SearchRequest("how many people live in which city", recipe="neighbours", size=100)
    every = types.search(request)
    left = types.search(replace(request, filters=(FieldFilter("category", "resource"),)))
    assert [one.hit for one in left] == [one.hit for one in every if one.source["category"] == "resource"]
    assert 0 < len(left) < len(every)
    assert types.counts(request).values["category"]


@pytest.mark.parametrize("text", ['"normal subgroup"', "-ring", "", "+(abelian)"])
def test_without_words_a_learned_recipe_finds_what_any_does(nlps: TaskSearcher, text: str) -> None:
    request = SearchRequest(text, size=100)
    assert ids(nlps, replace(request, recipe="neighbours")) == ids(nlps, request) != []
    assert nlps.counts(replace(request, recipe="neighbours")) == nlps.counts(request)


def test_a_learned_recipe_ranks_to_a_depth(nlps: TaskSearcher, monkeypatch: pytest.MonkeyPatch) -> None:
    every = ids(nlps, LEARNED)
    monkeypatch.setattr(search, "FUSED_DEPTH", 3)
    fresh = TaskSearcher(nlps.task, nlps._engine, nlps.index, nlps._progress, nlps._collection)
    assert len(ids(fresh, LEARNED)) == 3
    assert ids(fresh, replace(LEARNED, first=3)) == []
    assert fresh.is_cut(LEARNED) and not fresh.is_cut(RING)
    assert not nlps.is_cut(LEARNED) and len(every) > 3


def test_files_are_asked_for_by_the_recipes_that_learn(make_searcher: MakeSearcher, tmp_path: Path) -> None:
    nowhere = make_searcher("nlps", tmp_path / "nowhere")
    assert ids(nowhere, RING)
    with pytest.raises(
        DataError, match=r"the folder .*nowhere does not exist: give their folder with --data"
    ):
        nowhere.search(LEARNED)
    without = TaskSearcher(nowhere.task, nowhere._engine, nowhere.index, nowhere._progress)
    with pytest.raises(DataError, match="not available"):
        without.search(LEARNED)
    with pytest.raises(DataError, match="no training topics"):
        make_searcher("nlps", _empty(tmp_path)).search(LEARNED)


def _empty(folder: Path) -> Path:
    empty = folder / "empty"
    empty.mkdir()
    return empty


# Explanations


@pytest.mark.parametrize("recipe", ["words", "bm25", "neighbours"])
@pytest.mark.parametrize(
    "text", ["normal subgroup", "+ring group -field", 'ring "abelian group" id:603', "group*"]
)
def test_an_explanation_comes_to_the_score(nlps: TaskSearcher, recipe: str, text: str) -> None:
    request = SearchRequest(text, recipe=recipe, explain=True)
    found = nlps.search(request)
    assert found
    for result in found:
        explained = nlps.explain(request, result.hit.document_id)
        assert result.explanation is not None and explained is not None
        assert float32(result.explanation.value) == float32(explained.value) == result.hit.score


def test_what_does_not_match_has_no_explanation(nlps: TaskSearcher) -> None:
    for request in (RING, LEARNED, SearchRequest("-ring")):
        missing = [one for one in all_ids(nlps) if one not in ids(nlps, replace(request, size=100))]
        assert missing
        assert nlps.explain(request, missing[0]) is None
        assert not nlps.matches(request, missing[0])
    assert nlps.explain(RING, "nowhere") is None


# One document


def test_a_document_is_shown_with_what_matches_in_it(nlps: TaskSearcher) -> None:
    shown = nlps.document("603", SearchRequest("normal -kernel"))
    assert shown is not None
    assert [shown.text[start:end] for start, end in shown.matches] == ["normal"]
    plain = nlps.document("603", SearchRequest(""))
    assert plain is not None and (plain.text, plain.matches) == (shown.text, ())
    assert nlps.document("nowhere", RING) is None


# Limits


def test_a_thousand_words_are_searched_for(nlps: TaskSearcher) -> None:
    assert ids(nlps, SearchRequest(" ".join(f"ring{number}" for number in range(1_000)) + " ring"))


def test_more_words_than_an_engine_takes_are_told(nlps: TaskSearcher) -> None:
    with pytest.raises(EngineRefused, match="at most 8,192 are allowed"):
        nlps.search(SearchRequest(" ".join(f"ring{number}" for number in range(9_000))))


# The document

EXAMPLES = re.findall(r"^\| `(.+)` \| .+ \| (\d+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("typed", "hits"), EXAMPLES)
def test_the_examples_of_the_document_find_what_it_says(nlps: TaskSearcher, typed: str, hits: str) -> None:
    assert (
        len(nlps.search(SearchRequest(typed, size=100)))
        == int(hits)
        == nlps.counts(SearchRequest(typed)).total
    )


def test_the_document_has_examples() -> None:
    assert len(EXAMPLES) == 12


def test_the_limits_are_those_of_the_document() -> None:
    said = (
        f"{MAX_OPERATORS} parts that are more than words, groups {MAX_DEPTH} deep, "
        f"phrases of {MAX_PHRASE_WORDS:,} words, words of {MAX_WORD_LENGTH:,} characters"
    )
    assert said in DOCUMENT.read_text(encoding="utf-8")


# What a template asks for


FILLING = {"match_all": {"boost": 0}}
SHOULD: Sequence[dict[str, Any]] = [{"match": {"text": "a"}}]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"bool": {"must": [FILLING], "should": SHOULD}}, {"should": SHOULD, "minimum_should_match": 1}),
        ({"bool": {"must": FILLING, "should": SHOULD}}, {"should": SHOULD, "minimum_should_match": 1}),
        (
            {"bool": {"must": [FILLING], "should": SHOULD, "minimum_should_match": 0, "boost": 2}},
            {"should": SHOULD, "minimum_should_match": 1, "boost": 2},
        ),
        (
            {"bool": {"must": [FILLING], "should": SHOULD, "minimum_should_match": "2<75%"}},
            {"should": SHOULD, "minimum_should_match": "2<75%"},
        ),
    ],
)
def test_a_template_finds_only_what_matches(query: dict[str, Any], expected: dict[str, Any]) -> None:
    assert matching_only(query) == {"bool": expected}


@pytest.mark.parametrize(
    "query",
    [
        {"match": {"text": "a"}},
        {"bool": {"must": [FILLING]}},
        {"bool": {"must": [{"match_all": {}}], "should": SHOULD}},
        {"bool": {"must": [FILLING, *SHOULD], "should": SHOULD}},
        {"bool": {"should": SHOULD}},
    ],
)
def test_other_templates_stay_as_they_are(query: dict[str, Any]) -> None:
    assert matching_only(query) == query


def test_topics_of_all_splits_cite_the_documents_of_their_gold() -> None:
    task = load("nlps")
    solved = read_gold_topics(task, task.collection(SAMPLES / "nlps"))
    topic = solved.topic("602")
    assert topic is not None and topic.split == "dev" and topic.topic.text
    for document, grade in topic.answers:
        assert grade == 1.0 and topic in solved.citing(document)
    assert len(solved) == 22 and not solved.citing("nowhere") and solved.topic("nowhere") is None


def test_a_topic_counts_once_and_the_best_grade_is_first() -> None:
    def solved(topic: str, split: str, **gold: float) -> GoldTopic:
        return GoldTopic(Topic(topic, ""), split, gold)

    found = GoldTopicIndex([solved("1", "a", x=1, y=0), solved("1", "b", y=1), solved("2", "b", x=2, z=1)])
    assert [one.topic.id for one in found.citing("x")] == ["2", "1"]
    assert not found.citing("y"), "what is not relevant cites nothing, nor does a second reading"
    assert found.topic("2") == solved("2", "b", x=2, z=1)
    assert solved("2", "b", z=1, x=2).answers == [("x", 2), ("z", 1)]


def test_files_that_are_missing_are_left_out(tmp_path: object) -> None:
    task = load("nlps")
    assert not len(read_gold_topics(task, task.collection(SAMPLES / "checkthat")))
