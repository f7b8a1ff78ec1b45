"""Queries and values on which the engines once differed, and limits of both, compared with a real Elasticsearch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from searchapp.engines.embedded import EmbeddedIndex
from tests.engines.embedded.conftest import MAPPING, ORDER
from tests.search.comparing import Outcome
from tests.search.queries import ComparedEngines

Json = dict[str, Any]
Ask = Callable[[Json], tuple[Outcome, Outcome]]

BEYOND_DOUBLE = 2**53 + 1
HIGHLIGHT = {
    "type": "plain",
    "number_of_fragments": 0,
    "fields": {"text": {}, "text.gaps": {}, "a.b": {}, "tag": {}},
}
DOCUMENTS: list[Json] = [
    {"id": "1", "text": "ring a b", "year": 1, "long": BEYOND_DOUBLE, "weight": 0.0, "a.b": "dotted"},
    {"id": "2", "text": ["ring the", "of a b", "", "b a"], "year": [2, 3], "long": 2**63 - 1, "weight": -0.0},
    {"id": "3", "text": [["ring"], ["a", ["b"]]], "year": "5", "long": -(2**63), "weight": 1.5, "tag": 0.1},
    {
        "id": "4",
        "text": [True, None, 5, 1e16],
        "year": 7.9,
        "long": BEYOND_DOUBLE - 1,
        "weight": " 2 ",
        "tag": True,
    },
    {"id": "5", "text": ["the of", "", "a"], "ratio": [1e-7, 1.0000001788139343], "tag": [None, 5]},
    {"id": "6", "text": "", "ratio": 16777217, "a.b": "united dotted"},
]


def mapping(**properties: Any) -> Json:
    result = copy.deepcopy(MAPPING)
    for name in ("gaps", "words"):
        result["settings"]["analysis"]["analyzer"][name] |= {"position_increment_gap": 1}
    result["mappings"]["properties"] |= {"a.b": {"type": "text", "analyzer": "words"}, **properties}
    return result


@pytest.fixture(scope="module")
def ask(compared_engines: ComparedEngines) -> Iterator[Ask]:
    """Yield a function that returns both engines' outcomes of a body on `DOCUMENTS`."""
    with compared_engines.index({"mapping": mapping(), "documents": DOCUMENTS}) as (index, difference):
        assert isinstance(index, EmbeddedIndex), difference
        assert not difference
        embedded = index  # keeps the narrowed type in the lambda
        yield lambda body: compared_engines.outcomes(embedded, {"sort": ORDER, "size": 50} | body)


def phrase(text: str, field: str = "text.gaps") -> Json:
    return {"match_phrase": {field: text}}


def boosted_bools(*boosts: float) -> Json:
    query: Json = {"match": {"text": {"query": "ring", "boost": 0.3}}}
    for boost in boosts:
        query = {"bool": {"must": [query], "boost": boost}}
    return query


def functions(query: Json, **value: Any) -> Json:
    return {"function_score": {"query": query, "field_value_factor": {"field": "weight", **value}}}


RING = {"match": {"text": "ring"}}


VALID_QUERIES: list[Json] = [
    # several fields
    {"multi_match": {"query": "ring", "fields": ["text^2", "text.gaps", "text^0.3"]}},
    {"multi_match": {"query": "ring", "fields": ["text", "nowhere", 5]}},
    # positions across the values of an array
    phrase("ring b"),
    phrase("ring a"),
    phrase("b b"),
    phrase("ring a b", "text"),
    {"exists": {"field": "text.gaps"}},
    # numbers
    {"range": {"year": {"gt": 1, "gte": 2}}},
    {"range": {"year": {"gte": 2, "gt": 2}}},
    {"range": {"year": {"lt": 3, "lte": None}}},
    {"range": {"long": {"gte": BEYOND_DOUBLE}}},
    {"range": {"long": {"gt": 2**63 - 2}}},
    {"range": {"long": {"lte": -(2**63)}}},
    {"term": {"long": BEYOND_DOUBLE}},
    {"term": {"long": str(BEYOND_DOUBLE)}},
    {"terms": {"long": [2**63 - 1, -(2**63)]}},
    {"terms": {"weight": [-0.0]}},
    {"terms": {"weight": [0.0, "-0"]}},
    {"term": {"weight": -0.0}},
    {"term": {"year": 5}},
    {"term": {"year": 7}},
    {"term": {"year": 10**400}},
    {"term": {"ratio": 16777217}},
    {"term": {"ratio": 1.0000001788139343}},
    {"match": {"ratio": 1.0000001788139343}},
    {"match": {"ratio": "1.0000001788139343"}},
    {"match": {"year": 5.0}},
    {"match": {"year": "7"}},
    # text from other JSON types
    {"match": {"text": True}},
    {"match": {"text": 1e16}},
    {"match": {"text": 5.5}},
    {"term": {"tag": 0.1}},
    {"term": {"tag": True}},
    {"prefix": {"tag": 0.1}},
    # names with dots
    {"exists": {"field": "a"}},
    {"exists": {"field": "a.b"}},
    {"match": {"a.b": "dotted"}},
    # boosts of queries of one clause
    boosted_bools(1e-7, 0.7, 0.7),
    boosted_bools(33, 0.1, 1.7),
    {
        "dis_max": {
            "queries": [{"multi_match": {"query": "ring", "fields": ["text^0.3"], "boost": 1e-7}}],
            "boost": 1e-7,
        }
    },
    {"match": {"text": {"query": "", "boost": "NaN"}}},
    # functions of documents outside a filter, which lack a value
    {"bool": {"must": functions(RING), "filter": {"range": {"weight": {"gt": 0}}}}},
    {"bool": {"must": functions({"match_all": {}}, modifier="sqrt"), "filter": {"term": {"year": 1}}}},
    {
        "bool": {
            "must_not": {"bool": {"must_not": functions({"match": {"text": ""}}), "minimum_should_match": 0}}
        }
    },
    # values that both engines ignore
    {"match": {"year": {"query": 5, "analyzer": "words"}}},
    {"bool": {"must": RING, "minimum_should_match": None}},
    {"multi_match": {"query": "ring", "fields": ["text"], "tie_breaker": 2}},
    {"ids": {"values": [1, "2"]}},
    {"range": {"tag": {"gte": None}}},
    # ranges of terms
    {"range": {"tag": {"gt": "a", "lte": "y", "boost": 2}}},
    {"range": {"tag": {"gte": "*"}}},
    {"range": {"text": {"lt": "ring"}}},
    {"range": {"tag": {"gt": "y", "lt": "a"}}},
    # regular expressions
    *(
        {"regexp": {"text": text}}
        for text in [
            "",
            "r.ng",
            "R.*",
            "()",
            "a|b",
            "*",
            ")",
            "|a",
            "a?b*5+",
            "(a|b){1}",
            "a{2,}|b{0,1}",
            "\\d",
            "\\D+",
            "[\\w]{4}",
            "\\S\\W?",
            "[^a]",
            "[]a]",
            "[A-]]",
            "[\\-b]",
            '"r"ing',
            "#",
            "a#",
            "@",
            "~a",
            "~(a|b)&.{1,2}",
            "<1-7>",
            "<01-7>",
            "<5-5>",
            "<9-1>",
            "\\.",
            "\\😀|a",
            "[😀a]",
        ]
    ),
    {"regexp": {"text": {"value": "R(.)NG|k", "case_insensitive": True}}},
    {"regexp": {"text": {"value": "[R]in[G-H]", "case_insensitive": "true"}}},
    {"regexp": {"text": {"value": "a&b|~a", "flags": "NONE"}}},
    {"regexp": {"text": {"value": "~b", "flags": ""}}},
    {"regexp": {"text": {"value": "~b&@", "flags": "complement|intersection"}}},
    {"regexp": {"text": {"value": "<a>", "flags": "ANYSTRING"}}},
    {"regexp": {"text": {"value": "a", "flags_value": 5, "max_determinized_states": 20000, "boost": 2}}},
    {"regexp": {"tag": 0.1}},
    {"regexp": {"tag": True}},
    {"regexp": {"nowhere": "a"}},
    # similar terms
    {"fuzzy": {"text": "rimg"}},
    {"fuzzy": {"text": {"value": "", "fuzziness": 2}}},
    {"fuzzy": {"text": {"value": "gnir", "fuzziness": 2, "prefix_length": 9}}},
    {"fuzzy": {"text": {"term": "inrg", "fuzziness": "1.0", "transpositions": "false"}}},
    {"fuzzy": {"text": {"value": "the", "fuzziness": "auto:0,2"}}},
    {"fuzzy": {"text": {"value": "rinng", "fuzziness": 2, "rewrite": "top_terms_blended_freqs_2"}}},
    {"fuzzy": {"tag": {"value": 0.2, "max_expansions": 1}}},
    {"fuzzy": {"tag": True}},
    {"fuzzy": {"nowhere": "x"}},
    {"match": {"text": {"query": "rimg of", "fuzziness": 1, "fuzzy_rewrite": "top_terms_3"}}},
    {"match": {"text": {"query": "", "fuzziness": 1}}},
    {"match": {"text.alike": {"query": "ring cars", "fuzziness": 1}}},
    {"match": {"tag": {"query": 5, "fuzziness": 0}}},
    {"match": {"text": {"query": "a ring", "prefix_length": 2, "max_expansions": 3}}},
    {"multi_match": {"query": "rimg", "fields": ["text", "tag"], "type": "bool_prefix", "fuzziness": 1}},
    # patterns
    {"wildcard": {"text": "r?n*"}},
    {"wildcard": {"text": {"wildcard": "*", "boost": 0.3}}},
    {"wildcard": {"tag": {"value": "X", "case_insensitive": True}}},
    {"wildcard": {"tag": "\\x"}},
    {"wildcard": {"tag": ""}},
    {"wildcard": {"nowhere": "x"}},
    # simple query strings, also with operators that make no sense
    {"simple_query_string": {"query": "a b ring", "fields": ["text"]}},
    {"simple_query_string": {"query": "a + b | ring", "fields": ["text", "tag^2"]}},
    {"simple_query_string": {"query": "a -b", "fields": ["text"], "default_operator": "and"}},
    {"simple_query_string": {"query": "--a", "fields": ["text"]}},
    {"simple_query_string": {"query": "- a", "fields": ["text"]}},
    {"simple_query_string": {"query": "a + (b | (ring", "fields": ["text"]}},
    {"simple_query_string": {"query": "a () + b", "fields": ["text"]}},
    {"simple_query_string": {"query": 'a "b ring', "fields": ["text"]}},
    {"simple_query_string": {"query": '"a b" | "" ring', "fields": ["text"]}},
    {"simple_query_string": {"query": 'ring "a b"~', "fields": ["text"]}},
    {"simple_query_string": {"query": '"a b"~0 ring', "fields": ["text"]}},
    {"simple_query_string": {"query": '"a b"~x|ring', "fields": ["text"]}},
    {"simple_query_string": {"query": "ring~0 a~-1", "fields": ["text"]}},
    {"simple_query_string": {"query": "\\ri* R* ri\\*", "fields": ["text"]}},
    {"simple_query_string": {"query": "a\\", "fields": ["text"]}},
    {"simple_query_string": {"query": "", "fields": ["text"]}},
    {"simple_query_string": {"query": "the + ring", "fields": ["text.gaps"]}},
    {"simple_query_string": {"query": "the* ring", "fields": ["text.gaps"], "analyze_wildcard": True}},
    {"simple_query_string": {"query": 'a+b "ring" (a', "fields": ["text"], "flags": "PHRASE|WHITESPACE"}},
    {"simple_query_string": {"query": "a b", "fields": ["text"], "flags": "NONE", "default_operator": "AND"}},
    {"simple_query_string": {"query": "a|b", "fields": ["text"], "flags": 4}},
    {"simple_query_string": {"query": "ring 5 true"}},
    {"simple_query_string": {"query": "ri* 5*", "fields": ["*"]}},
    {"simple_query_string": {"query": "5", "fields": ["year", "long^2", "weight"]}},
    {"simple_query_string": {"query": "x", "fields": ["year", "text"], "lenient": True}},
    {"simple_query_string": {"query": "a b", "fields": ["text^2", "te*", "text"]}},
    {"simple_query_string": {"query": "a b", "fields": ["nowhere", "no*"]}},
    {"simple_query_string": {"query": '"a b" ring', "fields": ["text"], "quote_field_suffix": ".gaps"}},
    {"simple_query_string": {"query": "ring car", "fields": ["text.alike"], "minimum_should_match": 2}},
    {"simple_query_string": {"query": "a ring", "fields": ["text"], "analyzer": "gaps", "boost": 2}},
    {"simple_query_string": {"query": "Rng~ | rinf~1 + ringo~5", "fields": ["text", "tag^2"]}},
    {"simple_query_string": {"query": "rign~1", "fields": ["text"], "fuzzy_transpositions": False}},
    {"simple_query_string": {"query": '"ring b"~3 | "b ring"~9', "fields": ["text", "text.gaps"]}},
    # Lucene's classic syntax
    {"query_string": {"query": '"ring b"~3^2 OR "b ring"~9.5', "fields": ["text", "text.gaps"]}},
    {"query_string": {"query": '"ring b" "b ring"~0', "fields": ["text"], "phrase_slop": 2}},
    {"query_string": {"query": "ring b", "fields": ["text"], "type": "phrase", "phrase_slop": 2}},
    {"query_string": {"query": "ring a b", "fields": ["text"], "type": "phrase_prefix"}},
    {"query_string": {"query": "Rng~ OR rinf~1^2 OR rig^2~AUTO OR b~0", "fields": ["text", "tag^2"]}},
    {"query_string": {"query": "rng~ cing~", "fields": ["text"], "fuzziness": 1, "fuzzy_prefix_length": 1}},
    {"query_string": {"query": "ri*~2", "fields": ["text"]}},
    {"query_string": {"query": "a b ring", "fields": ["text"]}},
    {"query_string": {"query": "a OR b AND ring", "fields": ["text"]}},
    {"query_string": {"query": "a AND b OR ring", "fields": ["text"]}},
    {"query_string": {"query": "+a -b", "fields": ["text"]}},
    {"query_string": {"query": "a NOT b", "fields": ["text"]}},
    {"query_string": {"query": "NOT a", "fields": ["text"]}},
    {"query_string": {"query": "a && b || !ring", "fields": ["text"]}},
    {"query_string": {"query": "a ! b", "fields": ["text"]}},
    {"query_string": {"query": "- a", "fields": ["text"]}},
    {"query_string": {"query": "a + b", "fields": ["text"]}},
    {"query_string": {"query": "(a b) AND ring", "fields": ["text"]}},
    {"query_string": {"query": "((a))", "fields": ["text"]}},
    {"query_string": {"query": "-(a b) ring", "fields": ["text"]}},
    {"query_string": {"query": "text:a tag:x", "fields": ["text"]}},
    {"query_string": {"query": "text:(a b)^2 ring^0.5", "fields": ["text"]}},
    {"query_string": {"query": "tag:0.1", "fields": ["text"]}},
    {"query_string": {"query": "year:5", "fields": ["text"]}},
    {"query_string": {"query": "year:>2", "fields": ["text"]}},
    {"query_string": {"query": "year:>=5 OR year:<2", "fields": ["text"]}},
    {"query_string": {"query": ">5", "fields": ["text"]}},
    {"query_string": {"query": "year:[1 TO 3}", "fields": ["text"]}},
    {"query_string": {"query": "year:{1 TO *]", "fields": ["text"]}},
    {"query_string": {"query": "tag:[* TO *]", "fields": ["text"]}},
    {"query_string": {"query": "text:{a TO ring}", "fields": ["text"]}},
    {"query_string": {"query": 'text:["a" TO "ring"]', "fields": ["text"]}},
    {"query_string": {"query": "*:*", "fields": ["text"]}},
    {"query_string": {"query": "*", "fields": ["text"]}},
    {"query_string": {"query": "t*:ring", "fields": ["text"], "escape": True}},
    {"query_string": {"query": "RI*", "fields": ["text"]}},
    {"query_string": {"query": "t\\*:ring", "fields": ["text"]}},
    {"query_string": {"query": "_exists_:year", "fields": ["text"]}},
    {"query_string": {"query": "_exists_:nowhere", "fields": ["text"]}},
    {"query_string": {"query": "nowhere:a", "fields": ["text"]}},
    {"query_string": {"query": '"a b"', "fields": ["text"]}},
    {"query_string": {"query": '"the ring"', "fields": ["text"]}},
    {"query_string": {"query": '"a b"~0^2', "fields": ["text"]}},
    {"query_string": {"query": '"a b"~x', "fields": ["text"]}},
    {"query_string": {"query": '"ring"', "fields": ["text"]}},
    {"query_string": {"query": "r\\u0069ng", "fields": ["text"]}},
    {"query_string": {"query": "a\\ b", "fields": ["text"]}},
    {"query_string": {"query": "a\\:b", "fields": ["text"]}},
    {"query_string": {"query": "ring^2 a^0.1", "fields": ["text"]}},
    {"query_string": {"query": "the of", "fields": ["text"]}},
    {"query_string": {"query": "the AND ring", "fields": ["text"]}},
    {"query_string": {"query": "a b AND ring", "fields": ["text"]}},
    {"query_string": {"query": "a b c d -ring", "fields": ["text"]}},
    {"query_string": {"query": ""}},
    {"query_string": {"query": "ring x 5"}},
    {"query_string": {"query": "ring", "default_field": "*"}},
    {"query_string": {"query": "ring >4", "default_field": "year", "lenient": True}},
    {"query_string": {"query": "*", "default_field": "text.gaps"}},
    {"query_string": {"query": "a b", "fields": ["text^2", "tag", "text.gaps"], "tie_breaker": 0.3}},
    {"query_string": {"query": 'a "a b" ri* [a TO b]', "fields": ["te*", "tag"], "type": "most_fields"}},
    {"query_string": {"query": "a ring", "fields": ["text", "text.gaps"], "type": "phrase"}},
    {"query_string": {"query": "a ri", "fields": ["text", "tag"], "type": "bool_prefix"}},
    {"query_string": {"query": "a OR b ring", "fields": ["text"], "default_operator": "and"}},
    {"query_string": {"query": "the ring", "fields": ["text.gaps"], "default_operator": "and"}},
    {"query_string": {"query": "(a) AND [b", "fields": ["text"], "escape": True}},
    {"query_string": {"query": "a b ring", "fields": ["text"], "minimum_should_match": "2"}},
    {"query_string": {"query": "(a b ring)^2", "fields": ["text"], "minimum_should_match": "2", "boost": 2}},
    {"query_string": {"query": "the* ri*", "fields": ["text.gaps"], "analyze_wildcard": True}},
    {"query_string": {"query": '"a b" "the ring"', "fields": ["text"], "quote_field_suffix": ".gaps"}},
    {"query_string": {"query": '"the ring" the', "fields": ["text"], "quote_analyzer": "gaps"}},
    {"query_string": {"query": "RING R*", "fields": ["text", "tag"], "analyzer": "whitespace"}},
    {"query_string": {"query": "R?ng text:*ing", "fields": ["text"], "analyzer": "words"}},
    # the last word as a prefix, if nothing follows it
    {"match_bool_prefix": {"text": "b ri"}},
    {"match_bool_prefix": {"text": "b ri "}},
    {"match_bool_prefix": {"text": "r"}},
    {"match_bool_prefix": {"text.alike": "ri car"}},
    {"match_bool_prefix": {"tag": {"query": "x", "boost": 2}}},
    {"match_bool_prefix": {"year": 5}},
    {"match_bool_prefix": {"text": {"query": "a b ri", "minimum_should_match": 2}}},
    {"match_bool_prefix": {"text": {"query": "a ri", "operator": "and"}}},
    {"multi_match": {"query": "a ri", "fields": ["text", "tag^2"], "type": "bool_prefix"}},
    {"multi_match": {"query": "a b", "fields": ["text", "tag^2"], "type": "phrase"}},
]
"""Queries on `DOCUMENTS`."""


@pytest.mark.parametrize("query", VALID_QUERIES, ids=repr)
def test_queries_have_the_same_hits(ask: Ask, query: Json) -> None:
    ours, theirs = ask({"query": query, "explain": True, "highlight": HIGHLIGHT})
    assert isinstance(ours, list), ours
    assert ours == theirs


VALID_BODIES: list[Json] = [
    {"query": RING, "_source": "a"},
    {"query": RING, "_source": {"excludes": ["a"]}},
    {"query": RING, "highlight": {**HIGHLIGHT, "post_tags": [">"]}},
    {"query": {"match": {"text": "a b"}}, "highlight": HIGHLIGHT},
    {"query": {"match": {"tag": "0.1 5 true"}}, "highlight": HIGHLIGHT},
    {"query": {"function_score": {"query": {"function_score": {"query": {"prefix": {"text": "r"}}}}}}},
    {"query": RING, "size": "2", "from": 1.5},
    {"query": RING, "track_total_hits": 5, "track_scores": "true"},
    {
        "query": {
            "function_score": {
                "functions": [{"weight": 2}, {"field_value_factor": {"field": "ratio"}}],
                "score_mode": "first",
            }
        }
    },
    {"query": {"terms": {"year": [1, 5]}}, "explain": True},
    {"query": {"term": {"nowhere": 1}}, "explain": True},
    {"query": {"bool": {"must": RING, "filter": {"match": {"text.alike": "ring"}}}}, "explain": True},
    {"query": {"function_score": {"query": RING, "weight": 2, "max_boost": "Infinity"}}, "explain": True},
    {"query": {"range": {"ratio": {"gt": "-Infinity"}}}, "explain": True},
]
"""Bodies on `DOCUMENTS`; some have their own `highlight`."""


@pytest.mark.parametrize("body", VALID_BODIES, ids=repr)
def test_bodies_have_the_same_details(ask: Ask, body: Json) -> None:
    ours, theirs = ask({"highlight": HIGHLIGHT} | body)
    assert isinstance(ours, list), ours
    assert ours == theirs


INVALID_BODIES: list[Json] = [
    {"query": {"match": {"year": {"query": "soon", "analyzer": "words"}}}},
    {"query": {"match": {"year": {"query": 5, "analyzer": "nowhere"}}}},
    {"query": {"match": {"text": {"query": "a", "analyzer": "nowhere"}}}},
    {"query": {"match": {"text": {"query": "a", "minimum_should_match": None}}}},
    {"query": {"range": {"year": {"gt": 10**400}}}},
    {"query": {"range": {"long": {"gt": 2**63}}}},
    {"query": {"function_score": {"weight": 2, "field_value_factor": {"field": "year"}}}},
    {"query": {"ids": {"values": 7}}},
    {"query": {"terms": {"tag": ["x"] * 65_537}}},
    {"query": {"bool": {"should": [{"term": {"tag": str(number)}} for number in range(30_000)]}}},
    {"query": {"prefix": {"tag": "x" * 1_001}}},
    {"query": {"wildcard": {"year": "5*"}}},
    *(
        {"query": {"regexp": {"text": text}}}
        for text in [
            "a)",
            "(a",
            "[a",
            "a|",
            "a&",
            "a{",
            "a{2,1}",
            "a{x}",
            '"a',
            "<a>",
            "<1-2-3>",
            "[b-a]",
            "[a-]]",
            "\\q",
            "a\\",
            "x" * 1_001,
        ]
    ),
    {"query": {"regexp": {"year": "5"}}},
    {"query": {"regexp": {"nowhere": "("}}},
    {"query": {"regexp": {"text": {"value": "a", "flags": "SOME"}}}},
    {"query": {"regexp": {"text": {"value": None}}}},
    {"query": {"fuzzy": {"year": 5}}},
    {"query": {"fuzzy": {"text": {"value": "a", "fuzziness": 3}}}},
    {"query": {"fuzzy": {"text": {"value": "a", "fuzziness": "AUTO:4,2"}}}},
    {"query": {"fuzzy": {"text": {"value": "a", "fuzziness": None}}}},
    {"query": {"fuzzy": {"text": {"value": "a", "prefix_length": -1}}}},
    {"query": {"match": {"year": {"query": 5, "fuzziness": 1}}}},
    {"query": {"match": {"text": {"query": "a", "max_expansions": 0}}}},
    {"query": {"multi_match": {"query": "a", "fields": ["text"], "type": "phrase", "fuzziness": 1}}},
    {"query": {"query_string": {"query": "(a", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "ring~3", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "ring~x", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "ring~0.5", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "5~1", "default_field": "year"}}},
    {"query": {"query_string": {"query": "a)", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a AND", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "AND a", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a OR OR b", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a:", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a:b:c", "fields": ["text"]}}},
    {"query": {"query_string": {"query": '"a', "fields": ["text"]}}},
    {"query": {"query_string": {"query": "[a TO b", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "[a b]", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "{a TO}", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a^", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a^x", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a^ 2", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a^2^3", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a\\", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a\\u00", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a\\u00zz", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "/a", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a/", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "~", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "()", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a !", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "+", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "te*:ring", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "year:x", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "year:[x TO 5]", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "*ing:a", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a", "fields": ["text"], "default_field": "text"}}},
    {"query": {"query_string": {"query": "year:=5", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "*:ring", "fields": ["text"]}}},
    {"query": {"query_string": {"query": "a", "fields": ["text", "tag"], "tie_breaker": 2}}},
    {"query": {"query_string": {"query": "?ing", "fields": ["text"], "allow_leading_wildcard": False}}},
    {"query": {"query_string": {"query": "5*", "default_field": "year"}}},
    {"query": {"simple_query_string": {"fields": ["text"]}}},
    {"query": {"simple_query_string": {"query": "a", "fields": "text"}}},
    {"query": {"simple_query_string": {"query": "x", "fields": ["year"]}}},
    {"query": {"simple_query_string": {"query": "5*", "fields": ["year"]}}},
    {"query": {"simple_query_string": {"query": "a", "fields": ["text^x"]}}},
    {"query": {"simple_query_string": {"query": "a", "fields": ["text^-1"]}}},
    {"query": {"simple_query_string": {"query": "a", "fields": ["text"], "flags": "SLOPE"}}},
    {"query": {"simple_query_string": {"query": "a", "fields": ["text"], "default_operator": "not"}}},
    {"query": {"simple_query_string": {"query": "a b", "fields": ["text"], "minimum_should_match": "x"}}},
    {"query": {"wildcard": {"tag": {}}}},
    {"query": {"term": {"tag": "x" * 32_767}}},
    {"query": RING, "size": 10_001},
    {"query": RING, "from": 9_999, "size": 2},
    {"query": RING, "track_total_hits": "some"},
    {"query": RING, "track_total_hits": -2},
    {"query": RING, "track_scores": 1},
    {"query": RING, "highlight": None},
]
"""Bodies on `DOCUMENTS`."""


@pytest.mark.parametrize("body", INVALID_BODIES, ids=lambda body: repr(body)[:100])
def test_both_reject_invalid_bodies(ask: Ask, body: Json) -> None:
    ours, theirs = ask(body)
    assert isinstance(theirs, str)
    assert isinstance(ours, str)
    assert any(
        reason in ours for reason in ("invalid request", "is not supported", "unknown analyzer `nowhere`")
    )


def test_both_reject_scores_beyond_float32(ask: Ask) -> None:
    for outcome in ask({"query": {"function_score": {"query": RING, "weight": 3e38, "boost": 1e38}}}):
        assert isinstance(outcome, str)
        assert "infinite or not a number" in outcome


KEYWORD = {"type": "keyword"}


@pytest.mark.parametrize(
    "invalid",
    [
        mapping(_id=KEYWORD),
        mapping(**{" ": KEYWORD}),
        mapping(**{"a..b": KEYWORD}),
        mapping(a=KEYWORD),
        mapping(**{f"field{number}": KEYWORD for number in range(1_000)}),
        mapping(**{".".join("abcdefghijklmnopqrstu"): KEYWORD}),
        mapping(tag={"type": "keyword", "meta": {"a": "x" * 51}}),
        mapping() | {"settings": {**MAPPING["settings"], "similarity": {"flat": {"k1": 1}}}},
    ],
    ids=["_id", "blank", "empty part", "field and object", "1,000 fields", "depth", "meta", "no type"],
)
def test_both_reject_invalid_mappings(compared_engines: ComparedEngines, invalid: Json) -> None:
    with compared_engines.index({"mapping": invalid, "documents": []}) as (index, difference):
        assert index is None
        assert not difference


@pytest.mark.parametrize(
    "value",
    [
        {"year": 10**400},
        {"year": 2**31},
        {"year": "x"},
        {"year": True},
        {"long": 2**63},
        {"ratio": 1e39},
        {"weight": "NaN"},
        {"text": {"x": 1}},
        {"_id": "1"},
        {"": 1},
    ],
    ids=repr,
)
def test_both_reject_invalid_documents(compared_engines: ComparedEngines, value: Json) -> None:
    case = {"mapping": mapping(), "documents": [{"id": "1", "text": "a"}, {"id": "2", "text": "a", **value}]}
    with compared_engines.index(case) as (index, difference):
        assert not difference
        assert index is not None
        assert index.info.documents == 1


def test_small_and_large_boosts_rank_the_same_in_a_batch(compared_engines: ComparedEngines) -> None:
    case = {
        "mapping": mapping(),
        "documents": DOCUMENTS,
        "bodies": [{"sort": ORDER, "query": boosted_bools(1e-7, number / 7, 0.7)} for number in range(1, 9)],
    }
    assert not list(compared_engines.differences(case))
