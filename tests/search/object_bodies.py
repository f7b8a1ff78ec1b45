"""Search bodies on nested objects, points, ranges and addresses, and the parts of bodies besides the query."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from searchapp.model import Document
from tests.engines.embedded.conftest import ORDER, body
from tests.search.comparing import Json

MAPPING: Json = {
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "id": {"type": "keyword"},
            "text": {"type": "text"},
            "tag": {"type": "keyword"},
            "year": {"type": "integer"},
            "weight": {"type": "double"},
            "when": {"type": "date"},
            "place": {"type": "geo_point"},
            "net": {"type": "ip"},
            "attributes": {"type": "flattened"},
            "years": {"type": "integer_range"},
            "part": {
                "type": "nested",
                "properties": {
                    "word": {"type": "text"},
                    "n": {"type": "integer"},
                    "in": {"type": "nested", "properties": {"word": {"type": "text"}}},
                },
            },
        },
    }
}

WORDS = [
    "ring",
    "group",
    "field",
    "the ring of a group",
    "a field is a ring",
    "group theory. It is old. A ring too.",
]

PLACES = [[10.5, 50.2], [10.6, 50.3], [-0.1, 51.5], [179.9, 0], [-179.9, 0.5], [2.35, 48.85]]


def documents() -> list[Document]:
    return [_document(number) for number in range(24)]


def _document(number: int) -> Document:
    fields: Json = {
        "tag": "xyz"[number % 3],
        "year": 1990 + number % 7,
        "weight": number / 8,
        "when": f"2020-{1 + number % 12:02}-{1 + number:02}",
        "net": f"10.0.{number % 4}.{number}",
        "attributes": {"color": ["red", "blue"][number % 2], "size": number % 5},
        "years": {"gte": 1990 + number % 7, "lt": 1995 + number % 5},
        "part": [
            {"word": WORDS[(number + part) % 6], "n": part, "in": {"word": WORDS[(number * part) % 6]}}
            for part in range(number % 4)
        ],
    }
    if number % 5:
        fields["place"] = PLACES[number % 6]
    return Document(str(number), f"{WORDS[number % 6]} {WORDS[number % 4]}", fields)


def bodies() -> Iterator[tuple[str, Json]]:
    """Yield bodies by name."""
    for query in queries():
        yield f"{query}", body(query, explain=True)
    for part in parts():
        yield f"{part}", {"query": {"match": {"text": "ring"}}, "size": 20, "sort": ORDER, **part}


def queries() -> Iterator[Json]:
    inner: list[Json] = [
        {"match": {"part.word": "ring group"}},
        {"bool": {"must": [{"match": {"part.word": "ring"}}], "filter": [{"range": {"part.n": {"gte": 1}}}]}},
        {"exists": {"field": "part.n"}},
        {"match_phrase": {"part.word": "ring of a group"}},
        {"nested": {"path": "part.in", "query": {"match": {"part.in.word": "field"}}, "score_mode": "max"}},
    ]
    for query, mode in itertools.product(inner, ("avg", "sum", "min", "max", "none")):
        yield {"nested": {"path": "part", "query": query, "score_mode": mode}}
    yield {
        "bool": {"should": [{"nested": {"path": "part", "query": inner[0]}}, {"match": {"text": "field"}}]}
    }
    for distance, (longitude, latitude) in itertools.product(("5km", "400mi", "9000km"), PLACES):
        yield {"geo_distance": {"distance": distance, "place": {"lat": latitude, "lon": longitude}}}
    for first, second in itertools.combinations(PLACES, 2):
        top, bottom = max(first[1], second[1]), min(first[1], second[1])
        box = {"top": top, "left": first[0], "bottom": bottom, "right": second[0]}
        yield {"geo_bounding_box": {"place": box}}
    for shape, decay in itertools.product(("gauss", "exp", "linear"), (0.3, 0.5)):
        for field, values in (
            ("place", {"origin": "50,10", "scale": "300km", "offset": "10km"}),
            ("when", {"origin": "2020-06-15", "scale": "30d"}),
            ("weight", {"origin": 1, "scale": 0.7}),
        ):
            function = {shape: {field: {**values, "decay": decay}}}
            yield {"function_score": {"query": {"match": {"text": "ring"}}, **function}}
    like: Any
    for like in (
        "ring group theory",
        {"_id": "5"},
        ["a field", {"_id": "3"}],
        {"doc": {"text": "old ring group"}},
    ):
        for options in ({}, {"max_query_terms": 2}, {"minimum_should_match": "60%"}, {"boost_terms": 2}):
            least = {"min_term_freq": 1, "min_doc_freq": 2}
            yield {"more_like_this": {"like": like, "fields": ["text"], **least, **options}}
    for value in ("10.0.1.0/24", "10.0.2.6", "::ffff:10.0.3.3"):
        yield {"term": {"net": value}}
    yield {"range": {"net": {"gte": "10.0.1.0", "lt": "10.0.3.0"}}}
    yield {"term": {"attributes.color": "red"}}
    yield {"terms": {"attributes": ["blue", "3"]}}
    yield {"exists": {"field": "attributes.size"}}
    for terms, count in itertools.product((["ring", "group", "field"], ["ring", "ring", "a"]), (1, 2, 3)):
        yield {"terms_set": {"text": {"terms": terms, "minimum_should_match": count}}}
        yield {"terms_set": {"text": {"terms": terms, "minimum_should_match_field": "year", "boost": count}}}
    for terms in (["x", "y", "q"], ["z"], ["y", "z"]):
        yield {"terms_set": {"tag": {"terms": terms, "minimum_should_match": 1, "boost": 0.3}}}
    for origin, pivot in itertools.product(("2020-03-05", "2020-12-01||/M"), ("1d", "30d", "1000h")):
        yield {"distance_feature": {"field": "when", "origin": origin, "pivot": pivot, "boost": 1.7}}
        yield {"distance_feature": {"field": "place", "origin": [10.5, 50], "pivot": "100km"}}
    for relation in ("intersects", "contains", "within"):
        yield {"range": {"years": {"gte": 1992, "lte": 1994, "relation": relation}}}


def parts() -> Iterator[Json]:
    """Yield parts of bodies besides the query."""
    for sort in (
        ["tag", {"year": "desc"}],
        [{"weight": {"order": "desc", "missing": "_first"}}],
        [{"when": {"format": "yyyy-MM"}}, "_score"],
        [{"_geo_distance": {"place": [10, 50], "unit": "km"}}],
    ):
        yield {"sort": sort}
        yield {"sort": sort, "track_scores": True, "from": 2}
    yield {"sort": ["year", "id"], "search_after": [1992, "2"]}
    yield {"post_filter": {"term": {"tag": "x"}}}
    yield {"min_score": 0.2}
    yield {"collapse": {"field": "tag"}}
    yield {
        "rescore": {"window_size": 5, "query": {"rescore_query": {"match_phrase": {"text": "a ring"}}}},
        "sort": [],
    }
    of_tags: Json = {"terms": {"field": "tag"}, "aggs": {"objects": {"nested": {"path": "part"}}}}
    of_numbers: Json = {
        "terms": {"field": "part.n"},
        "aggs": {"documents": {"reverse_nested": {}, "aggs": {"tags": of_tags}}},
    }
    inner: Json = {
        "nested": {"path": "part.in"},
        "aggs": {"outer": {"reverse_nested": {"path": "part"}, "aggs": {"numbers": of_numbers}}},
    }
    rings: Json = {
        "filter": {"match": {"part.word": "ring"}},
        "aggs": {"inner": inner, "sum": {"sum": {"field": "part.n"}}},
    }
    yield {"aggs": {"parts": {"nested": {"path": "part"}, "aggs": {"numbers": of_numbers, "rings": rings}}}}
    yield {
        "aggs": {
            "tags": {**of_tags, "terms": {"field": "tag", "order": {"objects": "desc"}}},
            "inner": {"nested": {"path": "part.in"}},
        }
    }
    yield {"_source": ["part.w*", "attributes"]}
    yield {"_source": {"excludes": ["*.n", "pl*"]}}
    for total in (True, False, 3):
        yield {"track_total_hits": total}
    for options in ({}, {"number_of_fragments": 1, "fragment_size": 20}, {"type": "plain", "order": "score"}):
        yield {"highlight": {"fields": {"text": options, "tag": {"no_match_size": 5}}}}
