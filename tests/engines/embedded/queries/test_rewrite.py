"""Queries that Lucene rewrites to one another have the same hits and float32 scores.

org.apache.lucene.search.{BooleanQuery, BoostQuery, ConstantScoreQuery, DisjunctionMaxQuery}#rewrite
"""

from __future__ import annotations

from typing import Any

import pytest

from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.model import Document, Hit
from tests.engines.embedded.conftest import body, spec_of
from tests.search.drawing import Draw

Query = dict[str, Any]


def match(text: str, **more: Any) -> Query:
    return {"match": {"text": {"query": text, **more}}}


def bool_(**clauses: Any) -> Query:
    return {"bool": clauses}


def constant(query: Query, boost: float = 1) -> Query:
    return {"constant_score": {"filter": query, "boost": boost}}


def boosted_all(boost: float) -> Query:
    return {"match_all": {"boost": boost}}


A, B, C = match("a"), match("b"), match("c d")
X, Y = {"term": {"tag": "x"}}, {"term": {"tag": "y"}}
ALL: Query = boosted_all(1)
NONE: Query = {"match_none": {}}

SAME: dict[str, tuple[Query, Query]] = {
    "a single clause is the clause": (bool_(must=[C]), C),
    "a single optional clause too": (bool_(should=[C]), C),
    "nested bools of one clause": (bool_(must=[bool_(should=[bool_(must=[C])])]), C),
    "a dis_max of one query": ({"dis_max": {"queries": [C]}}, C),
    "boosts that multiply": (bool_(must=[match("a", boost=2)], boost=4), match("a", boost=8)),
    "a boost of 1": (bool_(must=[A, B], boost=1), bool_(must=[A, B])),
    "an empty bool is all": (bool_(), ALL),
    "a filter that is also required": (bool_(must=[X, A], filter=[X]), bool_(must=[X, A])),
    "a repeated filter": (bool_(must=[A], filter=[X, X]), bool_(must=[A], filter=[X])),
    "a filter of all": (bool_(must=[A], filter=[ALL]), A),
    "a repeated exclusion": (bool_(must=[A], must_not=[X, X]), bool_(must=[A], must_not=[X])),
    "an exclusion of nothing": (bool_(must=[A], must_not=[NONE]), A),
    "an exclusion of all": (bool_(must=[A], must_not=[ALL]), NONE),
    "a clause that is required and excluded": (bool_(must=[A, X], must_not=[X]), NONE),
    "a filter that is excluded": (bool_(must=[A], filter=[X], must_not=[X]), NONE),
    "match_none, required": (bool_(must=[A, NONE]), NONE),
    "match_none as a filter": (bool_(must=[A], filter=[NONE]), NONE),
    "match_none, optional": (bool_(should=[A, B, NONE]), bool_(should=[A, B])),
    "match_none in a dis_max": ({"dis_max": {"queries": [A, B, NONE]}}, {"dis_max": {"queries": [A, B]}}),
    "a minimum of all optional clauses": (
        bool_(should=[A, B], minimum_should_match=2),
        bool_(must=[A, B]),
    ),
    "a minimum above the number of clauses": (bool_(should=[A, B], minimum_should_match=3), NONE),
    "a repeated optional clause": (bool_(should=[A, A, B]), bool_(should=[match("a", boost=2), B])),
    "a repeated required clause": (bool_(must=[B, B]), match("b", boost=2)),
    "nested disjunctions": (bool_(should=[A, bool_(should=[B, C])]), bool_(should=[A, B, C])),
    "nested conjunctions": (bool_(must=[A, bool_(must=[B, X])]), bool_(must=[A, B, X])),
    "match_all with a filter": (bool_(must=[boosted_all(3)], filter=[C]), constant(C, 3)),
    "only a filter": (bool_(filter=[C]), constant(C, 0)),
    "a constant of a constant": (constant(constant(C, 7), 3), constant(C, 3)),
    "a constant of a boost": (constant(match("c d", boost=9)), constant(C)),
    "a constant of a bool": (
        constant(bool_(must=[A], should=[B])),
        constant(bool_(filter=[A])),
    ),
    "scores in a filter": (
        bool_(must=[A], filter=[bool_(must=[B], should=[C])]),
        bool_(must=[A], filter=[B]),
    ),
    "a filter of a bool of filters": (
        bool_(must=[A], filter=[bool_(filter=[X, B])]),
        bool_(must=[A], filter=[X, B]),
    ),
    "the order of clauses": (bool_(must=[A, B, C]), bool_(must=[C, B, A])),
    "a match is a bool of its words": (match("a b"), bool_(should=[A, B])),
    "a match of all words": (match("a b", operator="and"), bool_(must=[A, B])),
    "a dis_max with a tie_breaker of 1": (
        {"dis_max": {"queries": [A, B], "tie_breaker": 1}},
        bool_(should=[A, B]),
    ),
    "several terms": ({"terms": {"tag": ["x", "y"]}}, constant(bool_(should=[X, Y]))),
    "a range of one number": ({"range": {"year": {"gte": 2, "lte": 2}}}, {"term": {"year": 2}}),
}


@pytest.fixture
def index(embedded: EmbeddedEngine) -> EmbeddedIndex:
    draw = Draw("rewritten")
    documents = [
        Document(
            str(number),
            " ".join(draw.several(lambda: draw.choice("aabbcde"), 8)),
            {"tag": draw.several(lambda: draw.choice("xyz"), 2), "year": draw.number(0, 4)},
        )
        for number in range(200)
    ]
    embedded.build("rewritten", spec_of(documents), documents)
    return embedded.open("rewritten")


def ranked(index: EmbeddedIndex, query: Query) -> list[Hit]:
    (hits,) = index.search([body(query, 1_000)])
    return list(hits)


def test_queries_that_are_rewritten_to_one_another_rank_the_same(index: EmbeddedIndex) -> None:
    differing = [
        name for name, (query, rewritten) in SAME.items() if ranked(index, query) != ranked(index, rewritten)
    ]
    assert differing == []
    assert {name for name, (_, rewritten) in SAME.items() if not ranked(index, rewritten)} == {
        name for name, (_, rewritten) in SAME.items() if rewritten == NONE
    }


@pytest.mark.parametrize("outer", ["must", "should", "filter", "must_not"])
def test_rewritten_queries_rank_the_same_inside_others(index: EmbeddedIndex, outer: str) -> None:
    differing = [
        name
        for name, (query, rewritten) in SAME.items()
        if ranked(index, bool_(**{"must": [B], outer: [query]}))
        != ranked(index, bool_(**{"must": [B], outer: [rewritten]}))
    ]
    assert differing == []


def test_boosts_change_scores_in_proportion(index: EmbeddedIndex) -> None:
    for query in (A, match("a b"), bool_(must=[A, B], should=[X]), {"dis_max": {"queries": [A, B]}}):
        (hits,) = index.search([body(query, 1_000)])
        (twice,) = index.search([body(bool_(must=[query], boost=2), 1_000)])
        assert [(hit.document_id, 2 * hit.score) for hit in hits] == [*map(tuple, twice)]


@pytest.mark.parametrize("mode", ["sum", "replace", "multiply"])
def test_functions_that_differ_only_in_an_unused_mode_are_equal(index: EmbeddedIndex, mode: str) -> None:
    """The server merges two equal clauses and explains them as one, even if their boost modes differ."""
    query = bool_(should=[{"function_score": {"boost_mode": mode}}, {"function_score": {"boost": 2}}])
    (hit,) = index.find(body(query, 1, explain=True))
    assert hit.explanation is not None and hit.explanation.description == "*:*^3.0"
