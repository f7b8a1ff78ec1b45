"""Explanations of nested queries have the values, structure and descriptions of the server."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from searchapp.lucene.queries import match_all
from searchapp.model import Document
from tests.engines.embedded.conftest import EnginePair

DOCUMENTS = [
    Document("1", "a b c a", {"tag": ["x", "y"], "year": 5, "weight": 1.5, "ratio": 0.1}),
    Document("2", "a b", {"tag": "x", "year": 7, "weight": 0.0}),
    Document("10", "c d e h a a a", {"year": [1, 9], "ratio": [0.5, 0.25], "weight": 12345678.9}),
    Document("é", "A b C of a b", {"tag": "é", "weight": 1e-4, "year": 0}),
    Document("abcd", "b a b d", {"tag": "", "year": 2, "ratio": 0}),
]


def match(text: str, **more: Any) -> dict[str, Any]:
    return {"match": {"text": {"query": text, **more}}}


def score(**parameters: Any) -> dict[str, Any]:
    return {"function_score": parameters}


def value(field: str = "year", **parameters: Any) -> dict[str, Any]:
    return {"field_value_factor": {"field": field, "missing": 1, **parameters}}


def lowered(positive: Any, negative: Any, factor: float, **more: Any) -> dict[str, Any]:
    return {"boosting": {"positive": positive, "negative": negative, "negative_boost": factor, **more}}


X = {"term": {"tag": "x"}}
ALL: dict[str, Any] = {"match_all": {}}
SCORE_MODES = ("multiply", "sum", "avg", "first", "max", "min")
BOOST_MODES = ("multiply", "replace", "sum", "avg", "max", "min")

FUNCTIONS: dict[str, list[dict[str, Any]]] = {
    "weight": [{"weight": 0.3}],
    "weight of 1": [{"weight": 1}],
    "value": [value()],
    "value and weight": [{**value(), "weight": 0.3}],
    "filtered weight": [{"weight": 0.3, "filter": X}],
    "filtered value": [{**value(factor=0.1), "filter": X}],
    "all documents": [{"weight": 3, "filter": {"match_all": {"boost": 2}}}],
    "all documents by an empty bool": [{"weight": 3, "filter": {"bool": {"boost": 0}}}],
    "all documents by a constant": [{"weight": 3, "filter": {"constant_score": {"filter": ALL}}}],
    "several": [{"weight": 3, "filter": X}, value("weight", modifier="ln2p"), {"weight": 0.7}],
    "several filtered": [
        {"weight": 3, "filter": X},
        {**value("weight", modifier="sqrt"), "weight": 0.2, "filter": match("c d", boost=3)},
        {"weight": 0.7, "filter": {"bool": {"must": [match("b")], "filter": [match("c"), X]}}},
    ],
}


def functions() -> dict[str, dict[str, Any]]:
    modes = dict(zip(SCORE_MODES, BOOST_MODES, strict=True))
    queries = {
        f"{name}, {score_mode} {boost_mode}": score(
            query=match("a b c", boost=0.7), functions=function, score_mode=score_mode, boost_mode=boost_mode
        )
        for name, function in FUNCTIONS.items()
        for score_mode, boost_mode in itertools.product(SCORE_MODES, BOOST_MODES)
        if name.startswith("several") or modes[score_mode] == boost_mode
    }
    for modifier in ("none", "log1p", "log2p", "ln1p", "ln2p", "square", "sqrt"):
        for factor, missing in [(1, 1), (1e-5, 1e10), (12345678, 0.1), (0.3, 0)]:
            function = value("weight", modifier=modifier, factor=factor, missing=missing)
            queries[f"{modifier} {factor} {missing}"] = score(query=match("b c"), **function)
    queries["without missing"] = score(query=match("b"), field_value_factor={"field": "year"})
    queries["reciprocal"] = score(query=match("h"), **value(modifier="reciprocal"))
    for limit in (0, 1e-5, 2.5):
        queries[f"limited to {limit}"] = score(query=match("a b"), functions=[value()], max_boost=limit)
    for least in (0, 1, 3.5):
        function_list = FUNCTIONS["several"]
        queries[f"at least {least}"] = score(query=match("a b"), functions=function_list, min_score=least)
        queries[f"at least {least} without functions"] = score(query=match("a b"), min_score=least, boost=2)
    return queries


INSIDE = {
    "function, lowered": lowered(score(query=match("a b")), match("c"), 0.7),
    "function of a lowered one": score(query=lowered(match("a b"), match("c"), 0.3), weight=0.3),
    "function in a best": {
        "dis_max": {"queries": [score(query=match("a b"), weight=0.3), match("b")], "tie_breaker": 0.3}
    },
    "function in a bool": {
        "bool": {"must": [score(query=match("a b"), **value())], "should": [X], "boost": 3}
    },
    "function in a filter": {"bool": {"must": match("a"), "filter": score(query=match("b"), weight=2)}},
    "function without functions in a filter": {
        "bool": {"must": match("a"), "filter": score(query=match("b", boost=2), min_score=0.1)}
    },
    "lowered": lowered(match("a b c"), X, 0.3),
    "lowered with boost": lowered(match("a b c", boost=0.1), X, 0.3, boost=1.7),
    "lowered to nothing": lowered(match("a b c"), match("c d"), 0),
    "lowered twice": lowered(lowered(match("a b c"), X, 0.3), match("c"), 0.7, boost=0.9),
    "lowered by what is lowered": lowered(match("a b c"), lowered(X, match("c"), 0.1), 0.7),
    "lowered by a phrase without its first word": {
        "function_score": {
            "query": match("a"),
            "functions": [
                {"weight": 2, "filter": lowered(ALL, {"match_phrase": {"text.gaps": "the c ring"}}, 0)}
            ],
        }
    },
    "lowered by a bool": lowered(match("a"), {"bool": {"must": [X], "should": [match("b")]}}, 0.7),
    "lowered in a best": {
        "dis_max": {"queries": [lowered(match("a b"), X, 0.3), match("b c")], "tie_breaker": 0.3, "boost": 2}
    },
    "lowered in a filter": {
        "bool": {"must": match("a"), "filter": lowered({"constant_score": {"filter": match("b")}}, X, 0.3)}
    },
    "lowered in a bool in a filter": {
        "bool": {"must": match("a"), "filter": {"bool": {"should": [X, lowered(match("b"), X, 0.3)]}}}
    },
    "lowered in a constant": {"constant_score": {"filter": lowered(match("a b"), X, 0.3)}},
    "ids": {"ids": {"values": ["2", "é", "abcd", "10", "1", "_id"]}},
    "one id": {"ids": {"values": ["10"], "boost": 0.3}},
    "ids in a filter": {"bool": {"must": match("a"), "filter": {"ids": {"values": ["2", "é"]}}}},
    "float": {"term": {"ratio": 0.1}},
    "floats": {"terms": {"ratio": [0.5, "0.1", 0.5, 1e10]}},
    "doubles": {"terms": {"weight": [0.0001, 1.5, 12345678.9]}},
    "floats from": {"range": {"ratio": {"gte": 0.1}}},
    "floats above": {"range": {"ratio": {"gt": 0}}},
    "floats to": {"range": {"ratio": {"lt": 0.5, "boost": 2}}},
    "floats below": {"range": {"ratio": {"lte": -0.5}}},
}

EARLY: dict[str, Any] = {"terms": {"year": []}}
LATE: dict[str, Any] = match("")
NOTHING: dict[str, dict[str, Any]] = {
    "none": {"match_none": {}},
    "no terms": EARLY,
    "no ids": {"ids": {"values": []}},
    "no words": LATE,
    "no words in order": {"match_phrase": {"text": ""}},
    "no such field": {"term": {"zz": "a"}},
    "words in no such field": {"match": {"zz": "a"}},
    "no such year": {"term": {"year": 1.5}},
    "no such years": {"terms": {"year": [1.5]}},
    "year of words": {"match": {"year": 1.5}},
    "range backwards": {"range": {"year": {"gt": 5, "lt": 3}}},
    "required early": {"bool": {"must": [EARLY, X]}},
    "required late": {"bool": {"filter": [LATE, X]}},
    "all optional early": {"bool": {"should": [EARLY, EARLY]}},
    "all optional late": {"bool": {"should": [LATE]}},
    "optional and excluded": {"bool": {"should": [EARLY], "must_not": [X]}},
    "optional, but demanded": {"bool": {"should": [EARLY], "must": [X], "minimum_should_match": 1}},
    "all excluded": {"bool": {"must": [X], "must_not": [{"match_all": {"boost": 2}}]}},
    "too many demanded": {"bool": {"should": [X], "minimum_should_match": 3}},
    "constant early": {"constant_score": {"filter": EARLY}},
    "constant late": {"constant_score": {"filter": LATE}},
    "best of one": {"dis_max": {"queries": [EARLY]}},
    "best of several": {"dis_max": {"queries": [EARLY, {"match_none": {}}]}},
    "lowered early": lowered(EARLY, X, 0.5),
    "lowered late": lowered(LATE, X, 0.5),
    "function early": score(query=EARLY, weight=2),
    "function late": score(query={"bool": {"filter": [{"bool": {"must": [EARLY]}}]}}, weight=2),
}


def around_nothing() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield names and queries around a query that matches nothing."""
    for name, nothing in NOTHING.items():
        yield f"not: {name}", {"bool": {"must_not": [nothing]}}
        yield f"not a function of: {name}", {"bool": {"must_not": [score(query=nothing, weight=2)]}}
        yield f"or a function of: {name}", {"bool": {"should": [score(query=nothing, weight=2), ALL]}}


@pytest.fixture
def engines(make_pair: Callable[..., EnginePair]) -> EnginePair:
    return make_pair(DOCUMENTS)


def test_functions_are_explained_as_on_the_server(engines: EnginePair) -> None:
    require_same_explanations(engines, functions())


def test_queries_inside_others_are_explained_as_on_the_server(engines: EnginePair) -> None:
    require_same_explanations(engines, INSIDE)


def test_queries_around_an_empty_query_are_omitted_as_on_the_server(
    engines: EnginePair,
) -> None:
    require_same_explanations(engines, dict(around_nothing()))


def require_same_explanations(engines: EnginePair, queries: dict[str, dict[str, Any]]) -> None:
    differing = []
    for name, query in queries.items():
        try:
            engines.require_same_details(query, explain=True)
        except AssertionError as error:
            differing.append(f"{name}: {error}")
    assert not differing, "\n".join(differing)


@pytest.mark.parametrize(
    ("document_id", "indexed"),
    [
        ("0", "fe0f"),
        ("0123", "fe0123"),
        ("ab", "ff6162"),
        ("aw", "6b"),
        ("abh", "ff616268"),
        ("abc", "69b7"),
        ("abcde", "ff6162636465"),
        ("ab-_", "69bfbf"),
        ("_id8", "fdfe277c"),
        ("a b c", "ff6120622063"),
        ("٣", "ffd9a3"),
    ],
)
def test_ids_are_indexed_as_on_the_server(document_id: str, indexed: str) -> None:
    assert match_all.indexed_id(document_id).hex() == indexed
