"""Searching the documents of a task: hits, pages, filters, counts, learned recipes and explanations."""

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


def search_ids(searcher: TaskSearcher, request: SearchRequest) -> list[str]:
    return [result.hit.document_id for result in searcher.search(request)]


def all_ids(searcher: TaskSearcher) -> list[str]:
    return search_ids(searcher, SearchRequest("", size=10_000))


def test_words_are_ranked_as_a_topic(nlps: TaskSearcher) -> None:
    recipe = nlps.recipe()
    (expected,) = nlps.index.search([recipe.body(recipe.typed("normal subgroup"), 10)])
    results = nlps.search(SearchRequest("normal  subgroup"))
    assert [result.hit for result in results] == list(expected)
    assert [result.rank for result in results] == list(range(1, 11))


def test_hits_have_their_text_and_its_matches(nlps: TaskSearcher) -> None:
    (result,) = nlps.search(SearchRequest('+"normal subgroup" kernel', size=1))
    assert result.hit.document_id == "603"
    assert [result.text[start:end] for start, end in result.matches] == ["kernel", "normal", "subgroup"]
    assert result.source == {"id": "603", "text": result.text}


def test_a_query_without_words_finds_every_document_that_its_operators_allow(nlps: TaskSearcher) -> None:
    results = nlps.search(SearchRequest("", size=100))
    documents = [result.hit.document_id for result in results]
    assert documents == sorted(documents)
    assert {result.hit.score for result in results} == {1.0}
    without = set(all_ids(nlps)) - set(search_ids(nlps, SearchRequest("-ring", size=100)))
    assert without == set(search_ids(nlps, SearchRequest("+ring", size=100))) != set()


def test_stop_words_change_no_ranking(nlps: TaskSearcher) -> None:
    assert search_ids(nlps, replace(RING, text="+the ring")) == search_ids(
        nlps, replace(RING, text="the ring")
    )
    assert search_ids(nlps, replace(RING, text='+"of the" ring')) == search_ids(nlps, RING)
    assert search_ids(nlps, replace(RING, text="the")) == search_ids(nlps, replace(RING, text="()")) == []


def test_a_literal_text_has_no_operators(checkthat: TaskSearcher) -> None:
    literal = SearchRequest('-people speaker:x "', literal=True)
    assert search_ids(checkthat, literal) == search_ids(checkthat, SearchRequest("people speaker x")) != []
    with pytest.raises(BrokenQuery):
        checkthat.search(replace(literal, literal=False))


@pytest.mark.parametrize("request_", [SearchRequest("a \udcff"), SearchRequest("\ud800", literal=True)])
def test_half_a_character_is_refused(nlps: TaskSearcher, request_: SearchRequest) -> None:
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


def test_a_recipe_that_fills_up_its_ranking_finds_only_matches_in_a_search(nlps: TaskSearcher) -> None:
    results = nlps.search(SearchRequest("homomorphism", recipe="bm25", size=100))
    assert 0 < len(results) < len(all_ids(nlps))
    assert min(result.hit.score for result in results) > 0
    assert nlps.counts(SearchRequest("homomorphism", recipe="bm25")).total == len(results)


# Pages


@pytest.mark.parametrize("request_", [RING, LEARNED, SearchRequest(""), SearchRequest("group -abelian")])
def test_pages_are_parts_of_one_list(nlps: TaskSearcher, request_: SearchRequest) -> None:
    results = nlps.search(replace(request_, size=1_000))
    for first in (0, 1, len(results) - 1, len(results), len(results) + 5, 9_999):
        page = nlps.search(replace(request_, first=first, size=3))
        assert [(result.rank, result.hit, result.matches) for result in page] == [
            (result.rank, result.hit, result.matches) for result in results[first : first + 3]
        ]
    assert list(nlps.ranking(replace(request_, first=2, size=1))) == [result.hit for result in results]


@pytest.mark.parametrize("text", ["", "the a ring group", "-ring", '"a ring" group'])
@pytest.mark.parametrize("window", [1, 7, 10, 1_000])
def test_pages_beyond_one_window_of_an_engine_are_parts_of_one_list(
    nlps: TaskSearcher, monkeypatch: pytest.MonkeyPatch, text: str, window: int
) -> None:
    request = SearchRequest(text, size=100)
    results = [(result.rank, result.hit) for result in nlps.search(request)]
    monkeypatch.setattr(paging, "WINDOW", window)
    for first in (1, 5, 7, 13, 14, len(results) - 1, len(results), 200):
        page = nlps.search(replace(request, first=first, size=6))
        assert [(result.rank, result.hit) for result in page] == results[first : first + 6]
    assert list(nlps.ranking(request)) == [hit for _, hit in results]


def test_a_page_longer_than_an_engine_returns_is_refused(nlps: TaskSearcher) -> None:
    with pytest.raises(EngineRefused, match="10,000"):
        nlps.search(SearchRequest("ring", size=10_001))


# Filters and counts


def values(searcher: TaskSearcher, request: SearchRequest, field: str) -> list[Any]:
    return [result.source[field] for result in searcher.search(replace(request, size=10_000))]


def test_filters_change_neither_order_nor_scores(checkthat: TaskSearcher) -> None:
    request = SearchRequest("the people", size=1_000)
    results = checkthat.search(request)
    speaker = results[0].source["speaker"]
    filtered = checkthat.search(replace(request, filters=(FieldFilter("speaker", speaker),)))
    assert [result.hit for result in filtered] == [
        result.hit for result in results if result.source["speaker"] == speaker
    ]
    assert 0 < len(filtered) < len(results)


@pytest.mark.parametrize("text", ["", "the people", "+we -the", "zygomorphic"])
def test_counts_are_those_of_all_hits(checkthat: TaskSearcher, text: str) -> None:
    request = SearchRequest(text, size=1)
    counts = checkthat.counts(request)
    assert counts.total == len(checkthat.search(replace(request, size=10_000)))
    assert set(counts.values) == {"debate", "part", "speaker"}
    for field, value_counts in counts.values.items():
        found_values = values(checkthat, request, field)
        expected = sorted({(-found_values.count(value), value) for value in found_values})
        assert [(-count, value) for value, count in value_counts] == expected[: search.VALUES]


def test_numbers_can_be_searched_and_filtered(checkthat: TaskSearcher) -> None:
    assert set(values(checkthat, SearchRequest("line:5"), "line")) == {5}
    by_filter = SearchRequest("", filters=(FieldFilter("line", "5"),))
    assert values(checkthat, by_filter, "line") == values(checkthat, SearchRequest("+line:5"), "line")


# Recipes of several signals


def test_a_learned_recipe_ranks_words_as_a_topic(nlps: TaskSearcher) -> None:
    results = nlps.search(LEARNED)
    scores = [result.hit.score for result in results]
    assert scores and min(scores) > 0 and scores == sorted(scores, reverse=True)
    assert results[0].text and results[0].source["id"] == results[0].hit.document_id
    assert nlps.counts(LEARNED).total == len(results)


def test_operators_do_not_change_the_learned_order(nlps: TaskSearcher) -> None:
    documents = search_ids(nlps, LEARNED)
    matching = set(search_ids(nlps, SearchRequest("+ring", size=100)))
    assert search_ids(nlps, replace(LEARNED, text=LEARNED.text.replace("ring", "+ring"))) == [
        document for document in documents if document in matching
    ]
    without = search_ids(nlps, replace(LEARNED, text=LEARNED.text + ' -"abelian group"'))
    phrase = set(search_ids(nlps, SearchRequest('"abelian group"', size=100)))
    assert without == [document for document in documents if document not in phrase] != documents


def test_a_learned_recipe_takes_filters(make_searcher: MakeSearcher) -> None:
    types = make_searcher("smart-types-dbpedia")
    request = SearchRequest("how many people live in which city", recipe="neighbours", size=100)
    results = types.search(request)
    filtered = types.search(replace(request, filters=(FieldFilter("category", "resource"),)))
    assert [result.hit for result in filtered] == [
        result.hit for result in results if result.source["category"] == "resource"
    ]
    assert 0 < len(filtered) < len(results)
    assert types.counts(request).values["category"]


@pytest.mark.parametrize("text", ['"normal subgroup"', "-ring", "", "+(abelian)"])
def test_without_words_a_learned_recipe_finds_the_same_as_others(nlps: TaskSearcher, text: str) -> None:
    request = SearchRequest(text, size=100)
    assert search_ids(nlps, replace(request, recipe="neighbours")) == search_ids(nlps, request) != []
    assert nlps.counts(replace(request, recipe="neighbours")) == nlps.counts(request)


def test_a_learned_recipe_ranks_to_a_depth(nlps: TaskSearcher, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = search_ids(nlps, LEARNED)
    monkeypatch.setattr(search, "FUSED_DEPTH", 3)
    fresh = TaskSearcher(nlps.task, nlps._engine, nlps.index, nlps._progress, nlps._collection)
    assert len(search_ids(fresh, LEARNED)) == 3
    assert search_ids(fresh, replace(LEARNED, first=3)) == []
    assert fresh.is_cut(LEARNED) and not fresh.is_cut(RING)
    assert not nlps.is_cut(LEARNED) and len(documents) > 3


def test_only_recipes_that_learn_need_the_files(make_searcher: MakeSearcher, tmp_path: Path) -> None:
    missing = make_searcher("nlps", tmp_path / "nowhere")
    assert search_ids(missing, RING)
    with pytest.raises(
        DataError, match=r"the folder .*nowhere does not exist: give their folder with --data"
    ):
        missing.search(LEARNED)
    without = TaskSearcher(missing.task, missing._engine, missing.index, missing._progress)
    with pytest.raises(DataError, match="not available"):
        without.search(LEARNED)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="no training topics"):
        make_searcher("nlps", empty).search(LEARNED)


# Explanations


@pytest.mark.parametrize("recipe", ["words", "bm25", "neighbours"])
@pytest.mark.parametrize(
    "text", ["normal subgroup", "+ring group -field", 'ring "abelian group" id:603', "group*"]
)
def test_an_explanation_adds_up_to_the_score(nlps: TaskSearcher, recipe: str, text: str) -> None:
    request = SearchRequest(text, recipe=recipe, explain=True)
    results = nlps.search(request)
    assert results
    for result in results:
        explained = nlps.explain(request, result.hit.document_id)
        assert result.explanation is not None and explained is not None
        assert float32(result.explanation.value) == float32(explained.value) == result.hit.score


def test_a_document_that_does_not_match_has_no_explanation(nlps: TaskSearcher) -> None:
    for request in (RING, LEARNED, SearchRequest("-ring")):
        hits = search_ids(nlps, replace(request, size=100))
        other = next(document for document in all_ids(nlps) if document not in hits)
        assert nlps.explain(request, other) is None
        assert not nlps.matches(request, other)
    assert nlps.explain(RING, "nowhere") is None


# One document


def test_a_document_is_shown_with_its_matches(nlps: TaskSearcher) -> None:
    document = nlps.document("603", SearchRequest("normal -kernel"))
    assert document is not None
    assert [document.text[start:end] for start, end in document.matches] == ["normal"]
    plain = nlps.document("603", SearchRequest(""))
    assert plain is not None and (plain.text, plain.matches) == (document.text, ())
    assert nlps.document("nowhere", RING) is None


# Limits


def test_a_query_of_a_thousand_words_finds_documents(nlps: TaskSearcher) -> None:
    assert search_ids(nlps, SearchRequest(" ".join(f"ring{number}" for number in range(1_000)) + " ring"))


def test_more_words_than_an_engine_takes_are_refused(nlps: TaskSearcher) -> None:
    with pytest.raises(EngineRefused, match="at most 8,192 are allowed"):
        nlps.search(SearchRequest(" ".join(f"ring{number}" for number in range(9_000))))


# The documentation

EXAMPLES = re.findall(r"^\| `(.+)` \| .+ \| (\d+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("typed", "hits"), EXAMPLES)
def test_the_examples_of_the_documentation_have_its_numbers_of_hits(
    nlps: TaskSearcher, typed: str, hits: str
) -> None:
    assert (
        len(nlps.search(SearchRequest(typed, size=100)))
        == int(hits)
        == nlps.counts(SearchRequest(typed)).total
    )


def test_the_documentation_has_examples() -> None:
    assert len(EXAMPLES) == 12


def test_the_limits_are_those_of_the_documentation() -> None:
    assert (
        f"{MAX_OPERATORS} parts that are more than words, groups {MAX_DEPTH} deep, "
        f"phrases of {MAX_PHRASE_WORDS:,} words, words of {MAX_WORD_LENGTH:,} characters"
    ) in DOCUMENT.read_text(encoding="utf-8")


# Query templates

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
def test_a_template_is_restricted_to_matches(query: dict[str, Any], expected: dict[str, Any]) -> None:
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
def test_other_templates_are_not_changed(query: dict[str, Any]) -> None:
    assert matching_only(query) == query


def test_topics_of_all_splits_cite_the_documents_of_their_gold() -> None:
    task = load("nlps")
    gold_topics = read_gold_topics(task, task.collection(SAMPLES / "nlps"))
    topic = gold_topics.topic("602")
    assert topic is not None and topic.split == "dev" and topic.topic.text
    for document, grade in topic.answers:
        assert grade == 1.0 and topic in gold_topics.citing(document)
    assert (
        len(gold_topics) == 22 and not gold_topics.citing("nowhere") and gold_topics.topic("nowhere") is None
    )


def test_a_topic_counts_once_and_the_best_grade_is_first() -> None:
    def gold_topic(topic: str, split: str, **gold: float) -> GoldTopic:
        return GoldTopic(Topic(topic, ""), split, gold)

    index = GoldTopicIndex(
        [gold_topic("1", "a", x=1, y=0), gold_topic("1", "b", y=1), gold_topic("2", "b", x=2, z=1)]
    )
    assert [topic.topic.id for topic in index.citing("x")] == ["2", "1"]
    assert not index.citing("y"), "neither a grade of 0 nor a second split with the same topic counts"
    assert index.topic("2") == gold_topic("2", "b", x=2, z=1)
    assert gold_topic("2", "b", z=1, x=2).answers == [("x", 2), ("z", 1)]


def test_missing_files_have_no_topics() -> None:
    task = load("nlps")
    assert not len(read_gold_topics(task, task.collection(SAMPLES / "checkthat")))
