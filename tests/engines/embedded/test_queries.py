"""Each kind of query returns the ids, order and float32 scores of the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from searchapp.model import Document
from tests.engines.embedded.conftest import EnginePair

DOCUMENTS = [
    Document("1", "a b c a", {"tag": ["x", "y"], "year": 5, "weight": 1.5, "long": 2**60, "ratio": 0.1}),
    Document("2", "a b", {"tag": "x", "year": 7, "weight": 0.0}),
    Document("10", "c d e f g h a a a", {"year": [1, 9], "ratio": [0.5, 0.25]}),
    Document("3", ""),
    Document("4", "the ring of the car", {"tag": "z", "long": -3, "weight": -2.0}),
    Document("5", "ring of cars and auto " * 30, {"tag": ["x", "x"], "year": -5}),
    Document("é", "A b C the of a b", {"tag": "é", "weight": 1e-300}),
    Document("😀", "😀 a 😀 b", {"tag": []}),
    Document("z", "b a b a b a", {"tag": "", "year": 2}),
    Document("Z", "annulus auto car c", {"tag": None, "year": 5}),
]


def match(text: Any, field: str = "text", **more: Any) -> dict[str, Any]:
    return {"match": {field: {"query": text, **more}}}


def term(field: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"term": {field: {"value": value, **more}}}


QUERIES: dict[str, dict[str, Any]] = {
    "match": match("a b"),
    "match short": {"match": {"text": "a b"}},
    "match repeated terms": match("a b a c a"),
    "match boosted": match("a b c", boost=0.3),
    "match and": match("a c", operator="and"),
    "match and boosted": match("a c a", operator="AND", boost=2.5),
    "match minimum": match("a b c d", minimum_should_match=2),
    "match minimum negative": match("a b c d", minimum_should_match=-1),
    "match minimum percent": match("a b c d", minimum_should_match="70%"),
    "match minimum negative percent": match("a b c d", minimum_should_match="-30%"),
    "match minimum condition": match("a b c d", minimum_should_match="2<50% 3<-1"),
    "match minimum too many": match("a b c d", minimum_should_match=9),
    "match minimum repeated": match("a a b", minimum_should_match=2),
    "match minimum and": match("a b", operator="and", minimum_should_match=1),
    "match unknown term": match("zebra"),
    "match with unknown term": match("zebra a"),
    "match nothing": match(""),
    "match nothing is all": match("", zero_terms_query="all"),
    "match analyzer": match("A B", analyzer="keyword"),
    "match keyword": match("x", "tag"),
    "match number": match(5, "year"),
    "match number as text": match("5", "year"),
    "match no field": match("a", "nowhere"),
    "match a number in text": match(5),
    "match synonyms": match("car b ring", "text.alike"),
    "match one synonym": match("car", "text.alike"),
    "match synonyms and": match("car a", "text.alike", operator="and"),
    "match synonyms minimum": match("car ring a", "text.alike", minimum_should_match=2),
    "phrase": {"match_phrase": {"text": "a b"}},
    "phrase boosted": {"match_phrase": {"text": {"query": "b a b", "boost": 0.7}}},
    "phrase of equal terms": {"match_phrase": {"text": "a a"}},
    "phrase with gaps": {"match_phrase": {"text.gaps": "ring of the car"}},
    "phrase of one term": {"match_phrase": {"text": "ring"}},
    "phrase unknown": {"match_phrase": {"text": "a zebra"}},
    "phrase empty": {"match_phrase": {"text": ""}},
    "phrase keyword": {"match_phrase": {"tag": "x"}},
    "multi best": {"multi_match": {"query": "a ring", "fields": ["text^2", "text.gaps"]}},
    "multi tie": {
        "multi_match": {"query": "a ring", "fields": ["text", "text.gaps^0.3"], "tie_breaker": 0.3}
    },
    "multi most": {"multi_match": {"query": "a b", "fields": ["text", "text.gaps"], "type": "most_fields"}},
    "multi one": {"multi_match": {"query": "a b", "fields": "text^3"}},
    "multi and": {"multi_match": {"query": "a b", "fields": ["text", "tag"], "operator": "and"}},
    "multi minimum": {
        "multi_match": {
            "query": "a b c",
            "fields": ["text", "text.gaps"],
            "minimum_should_match": "60%",
            "boost": 2,
        }
    },
    "term text": term("text", "a"),
    "term keyword": term("tag", "x"),
    "term keyword boosted": term("tag", "x", boost=3),
    "term empty": term("tag", ""),
    "term number": term("year", 5),
    "term big number": term("long", 2**60),
    "term fraction of integer": term("year", 5.5),
    "term float": term("ratio", 0.1),
    "terms": {"terms": {"tag": ["x", "z", "nothing"], "boost": 0.5}},
    "terms numbers": {"terms": {"year": [5, 9]}},
    "terms none": {"terms": {"tag": []}},
    "ids": {"ids": {"values": ["1", "😀", "nobody"], "boost": 1.5}},
    "exists text": {"exists": {"field": "text"}},
    "exists keyword": {"exists": {"field": "tag", "boost": 2}},
    "exists number": {"exists": {"field": "weight"}},
    "prefix": {"prefix": {"text": {"value": "a", "boost": 2}}},
    "prefix keyword": {"prefix": {"id": "1"}},
    "fuzzy": {"fuzzy": {"text": {"value": "rimg", "boost": 0.5}}},
    "fuzzy swap": {"fuzzy": {"text": {"value": "rign", "transpositions": False, "fuzziness": 1}}},
    "fuzzy own frequencies": {"fuzzy": {"text": {"value": "rung", "rewrite": "top_terms_9"}}},
    "fuzzy keyword": {"fuzzy": {"tag": {"value": "x", "fuzziness": "AUTO:2,9"}}},
    "fuzzy filter": {"bool": {"must": match("a"), "filter": {"fuzzy": {"text": "rinng"}}}},
    "match fuzzy": match("rinf fixes", fuzziness="AUTO"),
    "match fuzzy and": match("rinf b", fuzziness=1, operator="and", prefix_length=1),
    "match fuzzy first": {"bool": {"should": [match("ring"), match("ring", fuzziness=1)]}},
    "multi fuzzy": {"multi_match": {"query": "rinf", "fields": ["text^2", "tag"], "fuzziness": 1}},
    "prefix fuzzy": {"match_bool_prefix": {"text": {"query": "rinf c", "fuzziness": 1}}},
    "regexp": {"regexp": {"text": {"value": "r(i|u)n+g?|[b-d]", "boost": 0.5}}},
    "regexp complement": {"regexp": {"text": "@&~(.*ing)&[^a].*"}},
    "regexp case": {"regexp": {"tag": {"value": "[X-Z]|x", "case_insensitive": True}}},
    "regexp interval": {"regexp": {"id": "<3-12>"}},
    "regexp filter": {"bool": {"must": match("a"), "filter": {"regexp": {"text": "b.*"}}}},
    "wildcard": {"wildcard": {"text": {"value": "r?n*", "boost": 0.5}}},
    "wildcard case": {"wildcard": {"tag": {"value": "X*", "case_insensitive": True}}},
    "prefix of last word": {"match_bool_prefix": {"text": "b ri"}},
    "prefix of no word": {"match_bool_prefix": {"text": {"query": "a ri ", "operator": "and"}}},
    "multi prefix": {"multi_match": {"query": "a ri", "fields": ["text^2", "tag"], "type": "bool_prefix"}},
    "slop": {"match_phrase": {"text": {"query": "a c", "slop": 3}}},
    "slop of moved words": {"match_phrase": {"text": {"query": "b a", "slop": 2, "boost": 0.3}}},
    "slop of equal terms": {"match_phrase": {"text": {"query": "a b a", "slop": 4}}},
    "slop of two equal terms": {"match_phrase": {"text": {"query": "a b b a", "slop": 5}}},
    "slop with gaps": {"match_phrase": {"text.gaps": {"query": "ring the car", "slop": 1}}},
    "phrase of synonyms": {"match_phrase": {"text.alike": "a car"}},
    "slop of synonyms": {"match_phrase": {"text.alike": {"query": "auto ring car", "slop": 40}}},
    "phrase prefix": {"match_phrase_prefix": {"text": "of c"}},
    "phrase prefix of one term": {"match_phrase_prefix": {"text": {"query": "c", "boost": 0.7}}},
    "phrase prefix of few terms": {"match_phrase_prefix": {"text": {"query": "c", "max_expansions": 2}}},
    "phrase prefix of nothing": {"match_phrase_prefix": {"text": "a zebra"}},
    "phrase prefix with slop": {"match_phrase_prefix": {"text": {"query": "a c", "slop": 5}}},
    "phrase prefix with gap": {"match_phrase_prefix": {"text.gaps": "the c"}},
    "phrase prefix of equal terms": {"match_phrase_prefix": {"text": {"query": "a b a", "slop": 4}}},
    "phrase prefix of synonyms": {"match_phrase_prefix": {"text.alike": "ring car"}},
    "multi phrase prefix": {
        "multi_match": {"query": "of c", "fields": ["text", "text.gaps^2"], "type": "phrase_prefix"}
    },
    "multi slop": {
        "multi_match": {"query": "b a", "fields": ["text^2", "text.gaps"], "type": "phrase", "slop": 2}
    },
    "cross": {"multi_match": {"query": "a ring", "fields": ["text", "tag^2"], "type": "cross_fields"}},
    "cross of groups": {
        "multi_match": {
            "query": "ring of",
            "fields": ["text^0.3", "text.gaps", "tag", "text.alike"],
            "type": "cross_fields",
            "tie_breaker": 0.3,
            "operator": "and",
        }
    },
    "cross of one analyzer": {
        "multi_match": {
            "query": "a b zebra ring",
            "fields": ["text^2", "text.gaps", "text.alike"],
            "type": "cross_fields",
            "analyzer": "words",
            "minimum_should_match": 2,
        }
    },
    "cross of equal terms": {
        "multi_match": {
            "query": "a a b",
            "fields": ["text", "text.gaps", "tag"],
            "type": "cross_fields",
            "analyzer": "words",
            "tie_breaker": 1,
        }
    },
    "cross with numbers": {
        "multi_match": {"query": 5, "fields": ["tag", "year^2", "long"], "type": "cross_fields"}
    },
    "cross of nothing": {
        "multi_match": {
            "query": "the",
            "fields": ["text.gaps", "text"],
            "type": "cross_fields",
            "zero_terms_query": "all",
        }
    },
    "combined field": {"combined_fields": {"query": "ring of a", "fields": ["text.gaps^1.7", "nowhere"]}},
    **{
        f"combined {words}": {"combined_fields": {"query": words, "fields": [f"{field}^{boost}"], **more}}
        for words, field, boost, more in (
            ("a", "text.gaps", 1, {}),
            ("a b c", "text.gaps", 2, {}),
            ("a c", "text.gaps", 1, {"operator": "and"}),
            ("a b ring", "text.gaps", 3, {"minimum_should_match": 2}),
            ("car auto", "text.gaps", 1, {"boost": 0.3}),
            ("b zebra", "text.gaps", 1.5, {}),
            ("ring car b", "text.gaps", 1, {}),
            ("the", "text.gaps", 1, {"zero_terms_query": "all"}),
        )
    },
    "multi phrase": {"multi_match": {"query": "a b", "fields": ["text", "text.gaps"], "type": "phrase"}},
    "classic": {"query_string": {"query": "a b OR ring", "fields": ["text^2", "text.gaps"]}},
    "classic operators": {"query_string": {"query": "a AND b OR c NOT ring", "fields": ["text"]}},
    "classic signs": {"query_string": {"query": "+a -(b c) ring^3", "fields": ["text"]}},
    "classic and": {"query_string": {"query": "a b OR ring", "fields": ["text"], "default_operator": "and"}},
    "classic fields": {"query_string": {"query": "text:(a ring) tag:x year:>2"}},
    "classic ranges": {"query_string": {"query": "year:[1 TO 5} OR tag:{a TO *]^2"}},
    "classic phrase": {"query_string": {"query": '"a b" OR ring', "fields": ["text", "text.gaps^0.3"]}},
    "classic patterns": {"query_string": {"query": "ri* OR ?A OR b*a", "fields": ["text", "tag"]}},
    "classic exists": {"query_string": {"query": "_exists_:year AND NOT ring", "fields": ["text"]}},
    "classic tie": {
        "query_string": {"query": "a ring (b c)", "fields": ["text", "text.gaps"], "tie_breaker": 0.3}
    },
    "classic escapes": {"query_string": {"query": "r\\u0069ng OR a\\:b", "fields": ["text"], "boost": 2}},
    "classic minimum": {
        "query_string": {"query": "a b c ring", "fields": ["text"], "minimum_should_match": "75%"}
    },
    "classic fuzzy": {"query_string": {"query": "rng~ OR rinf~1^2", "fields": ["text", "tag"]}},
    "simple fuzzy": {"simple_query_string": {"query": "rng~1 | rinf~2", "fields": ["text", "tag^2"]}},
    "simple": {"simple_query_string": {"query": "a b", "fields": ["text^2", "text.gaps"]}},
    "simple operators": {"simple_query_string": {"query": "a | b + c -ring", "fields": ["text"]}},
    "simple and": {
        "simple_query_string": {"query": "a b | ring", "fields": ["text"], "default_operator": "and"}
    },
    "simple precedence": {"simple_query_string": {"query": "+(a | ring) + (b -c)", "fields": ["text"]}},
    "simple phrase": {"simple_query_string": {"query": '"a b" ring', "fields": ["text", "text.gaps^0.3"]}},
    "simple prefix": {"simple_query_string": {"query": "Ri* b", "fields": ["text", "tag"], "boost": 2}},
    "simple negated": {"simple_query_string": {"query": "-ring", "fields": ["text"]}},
    "simple all fields": {"simple_query_string": {"query": "x 5"}},
    "simple pattern": {"simple_query_string": {"query": "a ring", "fields": ["text*^2"]}},
    "simple everything": {"simple_query_string": {"query": " * ", "fields": ["text"]}},
    "simple minimum": {
        "simple_query_string": {"query": "a b c ring", "fields": ["text"], "minimum_should_match": "75%"}
    },
    "range of terms": {"range": {"tag": {"gt": "a", "lte": "y"}}},
    "range closed": {"range": {"year": {"gte": 1, "lte": 5}}},
    "range open": {"range": {"year": {"gt": 1, "lt": 7, "boost": 0.1}}},
    "range fraction": {"range": {"year": {"gt": 4.5, "lte": 7.5}}},
    "range double": {"range": {"weight": {"gt": 0, "lt": 1.5}}},
    "range float": {"range": {"ratio": {"gt": 0.1, "lte": 0.5}}},
    "range empty": {"range": {"year": {"gt": 5, "lt": 6}}},
    "range all": {"range": {"year": {}}},
    "match all": {"match_all": {}},
    "match all boosted": {"match_all": {"boost": 0.25}},
    "match none": {"match_none": {}},
    "constant": {"constant_score": {"filter": match("a b"), "boost": 1.2}},
    "bool empty": {"bool": {}},
    "bool must": {"bool": {"must": [match("a b"), match("c", "text.gaps")], "boost": 0.7}},
    "bool nested must": {"bool": {"must": [{"bool": {"must": [match("b"), term("tag", "x")]}}, match("a")]}},
    "bool must should": {
        "bool": {"must": match("a b"), "should": [match("c ring", boost=0.3), term("tag", "x")]}
    },
    "bool filter": {"bool": {"filter": [match("a")]}},
    "bool filter should": {"bool": {"filter": [match("a")], "should": [match("c"), term("tag", "x")]}},
    "bool filter is should": {
        "bool": {"filter": [term("tag", "x")], "should": [term("tag", "x"), match("a")]}
    },
    "bool filter is must": {"bool": {"filter": [term("tag", "x")], "must": [term("tag", "x")]}},
    "bool must all and filter": {
        "bool": {"must": [{"match_all": {"boost": 3}}], "filter": [term("tag", "x")]}
    },
    "bool must not": {"bool": {"must_not": [term("tag", "x"), {"prefix": {"text": "r"}}]}},
    "bool contradiction": {"bool": {"must": [term("tag", "x")], "must_not": [term("tag", "x")]}},
    "bool not all": {"bool": {"should": [match("a")], "must_not": [{"match_all": {}}]}},
    "bool minimum": {
        "bool": {"should": [term("tag", "x"), term("tag", "y"), match("a")], "minimum_should_match": 2}
    },
    "bool minimum is all": {"bool": {"should": [term("tag", "x"), match("a b")], "minimum_should_match": 2}},
    "bool minimum too many": {"bool": {"should": [term("tag", "x")], "minimum_should_match": 2}},
    "bool must minimum": {
        "bool": {
            "must": [match("a")],
            "should": [match("b"), match("c"), match("d")],
            "minimum_should_match": "60%",
        }
    },
    "bool repeated": {"bool": {"should": [match("a b"), match("b a"), match("b")]}},
    "bool repeated must": {"bool": {"must": [match("a"), match("a", boost=0.1)]}},
    "bool flat": {
        "bool": {"should": [match("a b c"), {"bool": {"should": [match("d e"), term("tag", "x")]}}]}
    },
    "template": {
        "bool": {
            "must": [{"match_all": {"boost": 0}}],
            "should": [
                match("a b ring", boost=0.4),
                match("ring of", "text.gaps"),
                match("a", "text.alike", boost=0.6),
            ],
            "must_not": [term("id", "2")],
        }
    },
    "dis max": {"dis_max": {"queries": [match("a b"), term("tag", "x"), match("ring")], "tie_breaker": 0.3}},
    "dis max no tie": {"dis_max": {"queries": [match("a b"), term("tag", "x")], "boost": 0.3}},
    "dis max sum": {"dis_max": {"queries": [match("a b"), term("tag", "x")], "tie_breaker": 1}},
    "dis max one": {"dis_max": {"queries": [match("a b")]}},
    "boosting": {
        "boosting": {
            "positive": match("a b"),
            "negative": term("tag", "x"),
            "negative_boost": 0.3,
            "boost": 1.7,
        }
    },
    "function weight": {"function_score": {"query": match("a b"), "weight": 2.3, "boost": 0.7}},
    "function all": {"function_score": {"weight": 2}},
    "function none": {"function_score": {"query": match("a")}},
    "function value": {
        "function_score": {
            "query": match("a b"),
            "field_value_factor": {"field": "year", "factor": 1.2, "modifier": "square", "missing": 3},
        }
    },
    "function smallest value": {
        "function_score": {"query": match("h"), "field_value_factor": {"field": "ratio", "modifier": "sqrt"}}
    },
    **{
        f"function {score_mode} {boost_mode}": {
            "function_score": {
                "query": match("a b c"),
                "functions": [
                    {"weight": 3, "filter": term("tag", "x")},
                    {
                        "field_value_factor": {"field": "weight", "modifier": "ln2p", "missing": 1},
                        "filter": match("c"),
                    },
                    {"weight": 0.7, "filter": match("d")},
                ],
                "score_mode": score_mode,
                "boost_mode": boost_mode,
                "max_boost": 2.5,
            }
        }
        for score_mode, boost_mode in [
            ("multiply", "multiply"),
            ("sum", "sum"),
            ("avg", "avg"),
            ("first", "replace"),
            ("max", "max"),
            ("min", "min"),
        ]
    },
    "function alone, avg": {
        "function_score": {"query": match("a b"), "functions": [{"weight": 3}], "score_mode": "avg"}
    },
    "function minimum": {"function_score": {"query": match("a b"), "weight": 2, "min_score": 1.0}},
    "terms fractions of integers": {"terms": {"year": [5.5, "0.1"]}},
    "range below 0": {"range": {"weight": {"lt": 0}}},
    "range above -0": {"range": {"weight": {"gt": -0.0, "lt": 2}}},
    "range backwards": {"range": {"year": {"gt": 5, "lt": 3}}},
    "range of a whole field": {
        "bool": {"must": [match("a b")], "filter": [{"range": {"year": {"gt": -99}}}]}
    },
    "terms -0": {"terms": {"weight": [-0.0, 1.5]}},
    "function filter is all": {
        "function_score": {"functions": [{"weight": 3, "filter": {"match_all": {}}}], "score_mode": "avg"}
    },
    "boosting by what a boost lifts over a minimum": {
        "boosting": {
            "positive": match("a b"),
            "negative": {"function_score": {"query": match("b"), "min_score": 2, "boost": 100}},
            "negative_boost": 0.3,
        }
    },
    "function filter that a boost lifts over a minimum": {
        "function_score": {
            "query": match("a b"),
            "functions": [
                {
                    "weight": 3,
                    "filter": {"function_score": {"query": match("b"), "min_score": 2, "boost": 100}},
                }
            ],
        }
    },
    "constant of a boosting whose boost lifts its positive part over a minimum": {
        "boosting": {
            "positive": {"function_score": {"query": match("b"), "min_score": 2, "boost": 100}},
            "negative": match("c"),
            "negative_boost": 0.5,
            "boost": 0,
        }
    },
    "constant of a boost that lifts over a minimum in one of several ways": {
        "constant_score": {
            "filter": {
                "dis_max": {
                    "queries": [
                        {"function_score": {"query": match("b"), "min_score": 2, "boost": 100}},
                        match("c"),
                    ]
                }
            }
        }
    },
    "filter that the boost of the whole pulls below a minimum": {
        "bool": {
            "must": match("a b"),
            "filter": {"function_score": {"min_score": 0.5}},
            "boost": 0.3,
        }
    },
    "exclusion that the boost of the whole lifts over a minimum": {
        "bool": {"must": match("a b"), "must_not": {"function_score": {"min_score": 2}}, "boost": 3}
    },
    "filters whose boosts do not lift over a minimum": {
        "bool": {
            "must": {"match_all": {}},
            "filter": {"function_score": {"query": match("b"), "min_score": 2, "boost": 100}},
            "must_not": {"function_score": {"query": match("c"), "min_score": 2, "boost": 100}},
        }
    },
    "function of nothing": {
        "bool": {"should": [{"bool": {"should": [match("a b")]}}, {"function_score": {"query": match("")}}]}
    },
    "boost zero": {"bool": {"must": [match("a b", boost=0)], "should": [match("c", boost=0)]}},
}


@pytest.fixture
def engines(make_pair: Callable[..., EnginePair]) -> EnginePair:
    return make_pair(DOCUMENTS)


def check_each(check: Callable[[dict[str, Any]], object]) -> None:
    """Run a check on each query and report all failures."""
    failures = []
    for name, query in QUERIES.items():
        try:
            check(query)
        except AssertionError as error:
            failures.append(f"{name}: {error}")
    assert not failures, "\n".join(failures)


def test_every_query_ranks_as_on_the_server(engines: EnginePair) -> None:
    check_each(engines.require_same_hits)


def test_from_and_size_cut_the_ranking(engines: EnginePair) -> None:
    everything = engines.require_same_hits(match("a b c ring"))
    assert engines.require_same_hits(match("a b c ring"), 3, **{"from": 2}) == everything[2:5]
    assert engines.require_same_hits(match("a b c ring"), 0) == []
    assert engines.require_same_hits(match("a b c ring"), 5, **{"from": 100}) == []


def test_every_query_is_explained_as_on_the_server(engines: EnginePair) -> None:
    check_each(lambda query: engines.require_same_details(query, explain=True))


@pytest.mark.parametrize(
    "source", [True, False, "tag", ["id", "year"], {"excludes": ["text"]}, {"includes": "text"}]
)
def test_source_is_filtered_as_on_the_server(engines: EnginePair, source: Any) -> None:
    engines.require_same_details(match("a ring"), _source=source)


HIGHLIGHT = {
    "type": "plain",
    "number_of_fragments": 0,
    "pre_tags": ["<"],
    "post_tags": [">"],
    "fields": {"text": {}, "text.gaps": {}, "text.alike": {}, "tag": {}},
}


def test_every_query_highlights_as_on_the_server(engines: EnginePair) -> None:
    check_each(lambda query: engines.require_same_details(query, highlight=HIGHLIGHT))


def test_every_highlight_query_highlights_as_on_the_server(engines: EnginePair) -> None:
    everything: dict[str, Any] = {"match_all": {}}
    check_each(
        lambda query: engines.require_same_details(
            everything, highlight={**HIGHLIGHT, "highlight_query": query}
        )
    )


def test_documents_with_a_term_are_counted_as_on_the_server(engines: EnginePair) -> None:
    terms = {"text": ["a", "ring", "zebra"], "text.gaps": ["the", "car"], "tag": ["x", ""], "nowhere": ["a"]}
    counts = engines.embedded.frequencies(terms)
    assert counts == engines.server.frequencies(terms)
    assert counts["text"] == {"a": 6, "ring": 2, "zebra": 0} and counts["nowhere"] == {"a": 0}
