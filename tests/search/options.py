"""The parameters of each query with valid values of each kind and with invalid values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tests.engines.embedded.conftest import body
from tests.engines.embedded.test_explanations import score
from tests.search.comparing import Json

# fmt: off
TEXTS: list[Any] = ["a b c ring", "a b ring ring", "the of", "zebra a", "", 5, 5.5, True]
ANALYZERS = ["words", "gaps", "alike", "standard", "keyword", "english", "nowhere", ""]
MINIMUMS: list[Any] = [
    0, 1, 2, 3, 9, -1, -9, "0", "2", "-1", "0%", "34%", "75%", "100%", "120%", "-25%", "-75%", "-100%", "2<1", "2<50%",
    "1<-1 3<60%", "3<90% 1<50%", " 2 ", "2 < 50%", "2.5", 2.5, "x", "", None, "2<", "<2",
]
BOOSTS: list[Any] = [0, 1e-7, 0.3, 1, 2, 33.3, 1e9, "2", "x", -1, None, True, "-0.0"]
FIELDS = ["text", "text.gaps", "text.alike", "tag", "id", "year", "nowhere"]
SEVERAL = ["text^2", "text.gaps^0.3"]
FIELD_LISTS: list[Any] = [["text"], SEVERAL, ["text", "tag", "id"], ["text", "text"], "text", ["text^0"]]
NUMBERS: list[Any] = [
    0, -0.0, 5, "5", 5.0, 5.5, 1e3, 2**31, 2**60, 2**63, 1e39, "1e400", "x", "", True, None, [5],
]
MODIFIERS = [
    "none", "log", "log1p", "log2p", "ln", "ln1p", "ln2p", "square", "sqrt", "reciprocal", "SQRT", "x",
]
# fmt: on


def match(text: Any, field: str = "text", **more: Any) -> Json:
    return {"match": {field: {"query": text, **more}}}


def _multi_match(**parameters: Any) -> Json:
    return {"multi_match": {"query": "a c", "fields": SEVERAL, **parameters}}


def bodies() -> Iterator[tuple[str, Json]]:
    """Yield names and search bodies on the fields of the embedded engine's tests."""
    explained = [
        *_text_queries(),
        *_minimum_queries(),
        *_boost_queries(),
        *_analysis_queries(),
        *_field_queries(),
    ]
    for number, query in enumerate(explained):
        yield f"{number} {query}", body(query, explain=True, _source=False)
    unexplained = [*_number_queries(), *_function_queries(), *_missing_value_queries()]
    for number, query in enumerate(unexplained, len(explained)):
        yield f"{number} {query}", body(query, _source=False)
    for number, query in enumerate(
        [*_optional_clause_queries(), *_repeated_clause_queries()], len(explained) + len(unexplained)
    ):
        yield f"{number} {query}", body(query, explain=True, _source=False)

    for total in (True, False, 2, 2**31 - 1, "true"):
        for inner in _inner_function_queries(match("zebra"), match("zebra", "text.alike")):
            query = next(with_minimum_should_match({"constant_score": {"filter": inner}}))
            yield f"counted to {total} {query}", body(query, _source=False, track_total_hits=total)


def _text_queries() -> Iterator[Json]:
    for field, text in itertools.product(FIELDS, TEXTS):
        yield from ({kind: {field: text}} for kind in ("match", "match_phrase", "term", "prefix"))


def _minimum_queries() -> Iterator[Json]:
    for text, minimum in itertools.product(TEXTS[:2], MINIMUMS):
        yield match(text, minimum_should_match=minimum)
    clauses = [*({"term": {"tag": tag}} for tag in ("x", "y", "é")), match("a")]
    for minimum in MINIMUMS:
        yield {"bool": {"should": clauses, "minimum_should_match": minimum}}
        yield _multi_match(minimum_should_match=minimum)


def _boost_queries() -> Iterator[Json]:
    kinds: dict[str, Json] = {
        "bool": {"must": [match("a b")], "should": [match("c", boost=0.7)]},
        "dis_max": {"queries": [match("a b"), match("c")], "tie_breaker": 0.4},
        "constant_score": {"filter": match("a")},
        "boosting": {"positive": match("a"), "negative": match("b"), "negative_boost": 0.3},
        "function_score": {"query": match("a b"), "weight": 2},
        "match_all": {},
        "match_none": {},
        "exists": {"field": "year"},
        "ids": {"values": ["1", "z"]},
        "terms": {"tag": ["x", "z"]},
    }
    for boost in BOOSTS:
        inner = match("a ring", boost=boost)
        yield from (inner, _multi_match(boost=boost))
        for kind, parameters in kinds.items():
            yield {kind: {**parameters, "boost": boost}}
        yield from (
            {"term": {"tag": {"value": "x", "boost": boost}}},
            {"term": {"year": {"value": 5, "boost": boost}}},
            {"range": {"year": {"gte": 2, "boost": boost}}},
            {"prefix": {"text": {"value": "a", "boost": boost}}},
            {"match_phrase": {"text": {"query": "a b", "boost": boost}}},
            {"bool": {"must": [inner], "filter": [{"term": {"tag": {"value": "x", "boost": boost}}}]}},
        )


def _analysis_queries() -> Iterator[Json]:
    """Yield queries with analyzers, operators and texts without terms."""
    text = "The Ring of a car"
    for analyzer, field in itertools.product(ANALYZERS, FIELDS[:4]):
        yield match(text, field, analyzer=analyzer)
        yield match(text, field, analyzer=analyzer, operator="and")
        yield {"match_phrase": {field: {"query": "a b", "analyzer": analyzer}}}
    for operator in ("and", "or", "AND", "xor", "", None, 1):
        yield match("a c", operator=operator)
        yield _multi_match(operator=operator)
    for zero, kind in itertools.product(("all", "none", "ALL", "some", None), ("match", "match_phrase")):
        for text in ("the", "", "a"):
            yield {kind: {"text.gaps": {"query": text, "zero_terms_query": zero}}}


def _field_queries() -> Iterator[Json]:
    """Yield queries on several fields, with each way to combine scores."""
    types = ("best_fields", "most_fields", "boolean", None)
    for fields, type_, tie in itertools.product(FIELD_LISTS, types, (0, 0.3, 1, "0.5")):
        parameters: Json = {"query": "a ring c", "fields": fields, "tie_breaker": tie}
        yield {"multi_match": parameters if type_ is None else {**parameters, "type": type_}}
    for tie in (-1, 2, "x", None, True):
        yield {"multi_match": {"query": "a", "fields": SEVERAL, "tie_breaker": tie}}
        yield {"dis_max": {"queries": [match("a"), match("b")], "tie_breaker": tie}}


def _number_queries() -> Iterator[Json]:
    for field, value in itertools.product(("year", "long", "weight", "ratio"), NUMBERS):
        yield {"term": {field: value}}
        yield {"terms": {field: [value, 1]}}
        yield {"match": {field: value}}
        yield from ({"range": {field: {bound: value}}} for bound in ("gt", "gte", "lt", "lte"))
    for low, high in itertools.product(("gt", "gte"), ("lt", "lte")):
        for low_value, high_value in ((1, 7), (5, 5), (7, 1), (-5, 2), (0.1, 0.5), (None, 5)):
            yield from (
                {"range": {field: {low: low_value, high: high_value}}}
                for field in ("year", "ratio", "nowhere")
            )
    invalid: tuple[Any, ...] = ({}, {"from": 1}, {"gte": 1, "unknown": 2}, 5, [])
    for bounds in invalid:
        yield {"range": {"year": bounds}}


def _function_queries() -> Iterator[Json]:
    """Yield functions with each modifier, mode and limit."""
    for modifier, field in itertools.product(MODIFIERS, ("year", "ratio", "nowhere")):
        value = {"field": field, "modifier": modifier, "missing": 2}
        yield score(query=match("a c"), field_value_factor=value)
        yield score(query=match("a c"), field_value_factor={**value, "factor": 0.3}, boost_mode="sum")
    modes = ("multiply", "sum", "avg", "first", "max", "min", "replace", "x")
    for score_mode, boost_mode in itertools.product(modes, modes):
        functions = [
            {"weight": 3, "filter": {"term": {"tag": "x"}}},
            {"field_value_factor": {"field": "year", "missing": 4, "modifier": "ln2p"}},
            {"weight": 0.5, "filter": match("c")},
        ]
        yield score(query=match("a b c"), functions=functions, score_mode=score_mode, boost_mode=boost_mode)
    for limit in (0, 0.5, 2, "Infinity", -1, "x", None):
        yield score(query=match("a b c"), weight=3, max_boost=limit)
        yield score(query=match("a b c"), weight=3, min_score=limit)
    for missing in (0, 0.3, "2", "x", None, -1):
        yield score(query=match("a b"), field_value_factor={"field": "year", "missing": missing})
    for weight in (0, 1, 1e-7, "2", -1, "x", None):
        yield score(query=match("a b"), weight=weight)
        yield score(query=match("a b"), functions=[{"weight": weight, "filter": match("c")}])
    yield from (
        score(),
        score(functions=[]),
        score(query=match("a"), functions=[{}]),
        score(query={}, weight=2),
    )


def _missing_value_queries() -> Iterator[Json]:
    """Yield queries with null parameters and empty field names."""
    for name in ("query", "functions", "weight", "boost", "min_score", "boost_mode", "unknown"):
        yield {"function_score": {"query": match("a"), "functions": [{"weight": 2}], name: None}}
    for parameters in ("a", "", None, {"query": "a", "operator": "and"}, {"query": "a", "boost": -1}):
        yield {"match": {"": parameters}}
    yield match("", "", zero_terms_query="all")
    yield {"bool": {"must": [match("a")], "should": [match("b", "")]}}
    for kind in ("term", "prefix", "match_phrase"):
        yield {kind: {"": "a"}}
    yield from ({"terms": {"": ["a"]}}, {"range": {"": {"gte": 1}}}, {"exists": {"field": ""}})
    yield from (_multi_match(fields=fields) for fields in ([""], ["^2", "text"]))
    values: tuple[Any, ...] = ("x", [], ["x"], {}, None)
    for value, term in itertools.product(values, repeat=2):
        yield {"term": {"tag": {"value": value, "term": term}}}
        yield {"term": {"tag": {"term": value, "value": term}}}


def _optional_clause_queries() -> Iterator[Json]:
    """Yield required and optional clauses with a minimum of matches, with existing and unknown terms."""
    for word in ("c", "zebra"):
        phrase = {"match_phrase": {"text": f"a {word}"}}
        optional: list[Json] = [
            *(match(word), match(f"{word} zebra"), match(f"{word} b", operator="and"), phrase),
            *({"prefix": {"text": word}}, {"term": {"tag": "x" if word == "c" else word}}),
            {"dis_max": {"queries": [match("zebra"), phrase]}},
            {"boosting": {"positive": match(word), "negative": match("b"), "negative_boost": 0.3}},
            score(query=match(word), weight=2),
            {"bool": {"must": [match("a")], "should": [match(word)], "minimum_should_match": 1}},
            {"bool": {"should": [match(word), phrase], "minimum_should_match": 2}},
            *({"match_all": {}}, {"match_none": {}}, match("zebra", boost=0.3), match(word, boost=0.3)),
            match(word, "text.alike"),
        ]
        for clause in optional:
            yield from with_minimum_should_match(clause)
            for without_score in ({"constant_score": {"filter": clause}}, {"bool": {"filter": [clause]}}):
                yield next(with_minimum_should_match(without_score))
        for mode, limit in itertools.product(("replace", "multiply"), (None, 0.1)):
            for functions in ([], [{"weight": 2}]):
                inner = score(query=match(word), functions=functions, boost_mode=mode, min_score=limit)
                yield next(with_minimum_should_match(inner))
        for inner in _inner_function_queries(match(word), match(word, "text.alike")):
            yield next(with_minimum_should_match(inner))
    for clause in ({"term": {"year": 3}}, {"term": {"year": 99}}, {"term": {"weight": 1}}):
        yield from with_minimum_should_match(clause)
    for values in ([3, 4], [-99, 99], [99]):
        yield from with_minimum_should_match({"terms": {"year": values}})
    yield from with_minimum_should_match({"range": {"year": {"gt": 2, "lt": 5}}})
    yield from with_minimum_should_match({"terms": {"tag": ["zebra", "xylophone"]}})


def _inner_function_queries(*queries: Json) -> Iterator[Json]:
    """Yield functions inside queries that need no scores, or the scores of all documents."""
    for query in queries:
        plain, weighted = score(query=query), score(query=query, weight=2)
        for inner in (plain, weighted):
            yield {"constant_score": {"filter": score(query=inner, weight=3, boost_mode="replace")}}
            yield {
                "boosting": {
                    "positive": {"constant_score": {"filter": inner}},
                    "negative": match("b"),
                    "negative_boost": 0.3,
                }
            }
            yield {"bool": {"should": [match("a")], "filter": [inner]}}


def with_minimum_should_match(clause: Json) -> Iterator[Json]:
    """Yield queries whose scores depend on the order in which Lucene sums clauses."""
    for least in (1, 2):
        optional = {"should": [clause, match("b a c ring", boost=1.1)], "minimum_should_match": least}
        yield {"bool": {"must": [match("a b", boost=0.3), match("c a")], **optional}}
        yield {"bool": {"filter": [match("a")], **optional}}


def _repeated_clause_queries() -> Iterator[Json]:
    """Yield `bool` queries with a repeated clause, alone and inside others."""
    tagged: Json = {"term": {"tag": "x"}}
    for first, second in itertools.product(("must", "should", "filter", "must_not"), repeat=2):
        clauses: Json = {"must": [match("a b")]}
        for kind in (first, second):
            clauses[kind] = [*clauses.get(kind, []), tagged]
        yield {"bool": clauses}
        yield {"bool": {"should": [match("a"), {"bool": clauses}]}}
        yield {"bool": {"must": [match("a")], "filter": [{"bool": clauses}]}}
        yield {"bool": {"must": [match("a")], "must_not": [{"bool": clauses}]}}
