"""Synonyms of one and several words, in the index or the query, rank as on the server."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import EngineRefused
from searchapp.lucene.errors import Refused
from searchapp.lucene.queries import fulltext
from searchapp.model import Document
from tests.engines.embedded.conftest import EnginePair, body, spec_of

QUERIES_PER_INDEX = 80

RULES = [
    "united states, usa, us of a",
    "dog, hound, canis lupus",
    "a b, c",
    "a b c => d e",
    "b c, x y z",
    "of => from",
    "hound => pet dog",
]


def _analyzer(*filters: str) -> dict[str, Any]:
    return {"tokenizer": "whitespace", "filter": ["lowercase", *filters]}


MAPPING: dict[str, Any] = {
    "settings": {
        "analysis": {
            "filter": {
                "same": {"type": "synonym", "synonyms": RULES},
                "first": {"type": "synonym", "synonyms": RULES, "expand": False},
                "little": {"type": "stop", "stopwords": ["the", "in"]},
                "big": {"type": "stop", "stopwords": ["united", "canis", "states", "x"]},
                "beginnings": {"type": "edge_ngram", "min_gram": 1, "max_gram": 2},
                "pairs": {"type": "shingle", "output_unigrams": False},
                "with_pairs": {"type": "shingle"},
            },
            "analyzer": {
                "words": _analyzer(),
                "same": _analyzer("same"),
                "first": _analyzer("first"),
                "after_stop": _analyzer("little", "same"),
                "before_stop": _analyzer("same", "big"),
                "beginnings": _analyzer("same", "beginnings"),
                "pairs": _analyzer("same", "pairs"),
                "with_pairs": _analyzer("same", "with_pairs"),
                "unique": _analyzer("same", "unique"),
            },
        }
    },
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "id": {"type": "keyword"},
            "text": {
                "type": "text",
                "analyzer": "words",
                "fields": {
                    "indexed": {"type": "text", "analyzer": "same", "search_analyzer": "words"},
                    "both": {"type": "text", "analyzer": "same"},
                    "first": {"type": "text", "analyzer": "first"},
                },
            },
            "tag": {"type": "keyword"},
        },
    },
}
DOCUMENTS = [
    Document("1", "the united states of a b c", {"tag": "a"}),
    Document("2", "usa hound", {"tag": "usa"}),
    Document("3", "states united dog x y z canis"),
    Document("4", "us of a canis lupus d e united"),
    Document("5", "united x states b c a c pet dog"),
    Document("6", "a b a b c c from usa usa lupus"),
]
ANALYZERS = sorted(MAPPING["settings"]["analysis"]["analyzer"])
FIELDS = ["text", "text.indexed", "text.both", "text.first", "tag"]
TEXTS = [
    *("united states", "the united states of x", "usa", "usa dog", "us of a", "us of a b c", "canis lupus"),
    *(
        "dog hound",
        "a b c",
        "a b",
        "b c a b",
        "hound",
        "united",
        "x usa",
        "canis lupus united states",
        "the usa",
    ),
    *("x y z", "a b united", "of", "united states united states", "of a b", "x united states"),
]


def _match(text: str, field: str = "text", **more: Any) -> dict[str, Any]:
    return {"match": {field: {"query": text, **more}}}


def test_texts_with_synonyms_match_as_on_the_server(make_pair: Callable[..., EnginePair]) -> None:
    engines = make_pair(DOCUMENTS, MAPPING)
    for text in TEXTS:
        for analyzer in ANALYZERS:
            engines.require_same_hits(_match(text, analyzer=analyzer))
            engines.require_same_hits(_match(text, analyzer=analyzer, operator="and"))
            engines.require_same_hits(_match(text, analyzer=analyzer, minimum_should_match=2))
            engines.require_same_hits(_match(text, "tag", analyzer=analyzer))
            engines.require_same_hits(
                {"multi_match": {"query": text, "fields": ["text", "text.both^2"], "analyzer": analyzer}}
            )
        for field in FIELDS:
            engines.require_same_hits(_match(text, field))


def test_phrases_on_synonyms_in_the_index_match_as_on_the_server(
    make_pair: Callable[..., EnginePair],
) -> None:
    engines = make_pair(DOCUMENTS, MAPPING)
    rankings = [engines.require_same_hits({"match_phrase": {"text.indexed": text}}) for text in TEXTS]
    assert any(rankings)


def test_hits_of_synonyms_are_explained_and_highlighted_as_on_the_server(
    make_pair: Callable[..., EnginePair],
) -> None:
    engines = make_pair(DOCUMENTS, MAPPING)
    highlight = {"type": "plain", "number_of_fragments": 0, "fields": {"text": {}, "text.both": {}}}
    for text in TEXTS:
        for query in (_match(text, analyzer="same"), _match(text, "text.both")):
            engines.require_same_details(query, explain=True)
            engines.require_same_details(query, highlight=highlight)


WORDS = ["of", "in", "the", "united", "states", "usa", "us", "dog", "hound", "canis", "lupus", "pet", "from"]
PHRASES = ["united states", "us of a", "canis lupus", "a b", "b c", "a b c", "x y z"]
texts = st.lists(
    st.sampled_from([*"abcdexyz", *WORDS, *PHRASES, *PHRASES]),
    max_size=9,
).map(" ".join)
names = st.sampled_from(FIELDS)


@st.composite
def random_query(draw: st.DrawFn) -> dict[str, Any]:
    parameters: dict[str, Any] = {"query": draw(texts)}
    options = {
        "analyzer": st.sampled_from(ANALYZERS),
        "operator": st.sampled_from(["and", "or"]),
        "minimum_should_match": st.sampled_from([1, 2, 3, -1, "60%"]),
        "boost": st.sampled_from([0.3, 2]),
    }
    parameters |= {name: draw(values) for name, values in options.items() if draw(st.booleans())}
    kind = draw(st.sampled_from(["match", "multi_match", "match_phrase"]))
    if kind == "multi_match":
        return {kind: parameters | {"fields": draw(st.lists(names, min_size=1, unique=True))}}
    if kind == "match_phrase":
        for name in ("operator", "minimum_should_match"):
            parameters.pop(name, None)
    return {kind: {draw(names): parameters}}


@hypothesis.settings(
    max_examples=max(5, hypothesis.settings().max_examples // 20),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture, *hypothesis.HealthCheck],
    print_blob=True,
)
@hypothesis.given(
    documents=st.lists(st.tuples(texts, texts), min_size=1, max_size=20),
    queries=st.lists(random_query(), min_size=QUERIES_PER_INDEX, max_size=QUERIES_PER_INDEX),
)
def test_random_texts_with_synonyms_rank_the_same(
    make_pair: Callable[..., EnginePair], documents: list[tuple[str, str]], queries: list[dict[str, Any]]
) -> None:
    engines = make_pair(
        [Document(str(number), text, {"tag": tag}) for number, (text, tag) in enumerate(documents)], MAPPING
    )
    for query in queries:
        try:
            list(engines.embedded.search([body(query)]))
        except EngineRefused as refusal:
            # Elasticsearch rejects a phrase of several terms on the field `tag` too. Of synonyms it is not supported.
            if not re.search(
                "no path through its tokens|needs a text field, tag is keyword|without positions on tag",
                str(refusal),
            ):
                raise
        else:
            engines.require_same_hits(query)


def test_prefixes_after_synonyms_of_several_words_are_rejected(embedded: EmbeddedEngine) -> None:
    embedded.build("refusing", spec_of(DOCUMENTS, MAPPING), DOCUMENTS)
    message = "a phrase with a prefix on text.both, whose analyzer produces a synonym of several words,"
    with pytest.raises(EngineRefused, match=message):
        list(
            embedded.open("refusing").search([body({"match_phrase_prefix": {"text.both": "united states"}})])
        )


def test_a_token_graph_is_split_at_positions_that_no_token_spans() -> None:
    parts = fulltext.graph_parts(
        [("x", 0, 1), ("a", 1, 1), ("ab", 1, 2), ("b", 2, 1), ("c", 3, 1), ("d", 3, 1)]
    )
    assert [(part.stacked, part.paths) for part in parts] == [
        (True, ((("x", 1),),)),
        (False, ((("a", 1), ("b", 1)), (("ab", 1),))),
        (True, ((("c", 1),), (("d", 1),))),
    ]


def test_a_path_of_a_token_graph_may_have_1000_tokens() -> None:
    (part,) = fulltext.graph_parts([("all", 0, 1000), *(("a", position, 1) for position in range(1000))])
    assert [len(path) for path in part.paths] == [1, 1000]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([("a", i, 1 + (i == 0)) for i in range(1002)], "more than 1000 positions"),
        (
            [token for i in range(11) for token in (("a", i, 1), ("b", i, 2), ("c", i, 1))],
            "more than 1024 paths",
        ),
        ([("abc", 0, 3), ("x", 1, 1), ("z", 3, 1)], "no path through its tokens"),
    ],
)
def test_too_large_and_broken_token_graphs_are_rejected(
    tokens: list[tuple[str, int, int]], message: str
) -> None:
    with pytest.raises(Refused, match=message):
        fulltext.graph_parts(tokens)
